//! Every kind of join, random rows and many of them.

use proptest::prelude::*;

use crate::check::check;
use crate::keys::{Encoding, KEYS, Key, Row};
use crate::model::Case;

fn rows(max: usize, nulls: bool) -> impl Strategy<Value = Vec<Row>> {
    let value = move || {
        (0u8..7, 0u8..if nulls { 6 } else { 1 }).prop_map(move |(value, null)| (null != 5).then_some(value))
    };
    let flag = prop_oneof![Just(None), Just(Some(true)), Just(Some(false))];
    prop::collection::vec(
        (value(), value(), flag).prop_map(|(a, b, flag)| Row { keys: [a, b], flag }),
        0..max,
    )
}

fn encoding() -> impl Strategy<Value = Encoding> {
    prop_oneof![Just(Encoding::Flat), Just(Encoding::Dictionary), Just(Encoding::Runs)]
}

fn case() -> impl Strategy<Value = Case> {
    let key = || prop::sample::select(KEYS.to_vec());
    (
        (any::<bool>(), any::<bool>()).prop_flat_map(|(a, b)| (rows(20, a), rows(12, b))),
        [key(), key()],
        0usize..3,
        prop::option::of(0u8..3),
        (1usize..20, 1usize..12),
        (encoding(), encoding()),
    )
        .prop_map(|((left, right), types, keys, condition, cuts, encodings)| Case {
            left,
            right,
            types,
            keys,
            condition,
            cuts,
            encodings,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_kind_gives_the_rows_of_nested_loops(case in case()) {
        check(&case);
    }
}

/// Many rows with many duplicates: pairs come in several batches, chains are cut in the middle.
#[test]
fn many_pairs() {
    for key in [Key::Small, Key::Sparse, Key::Text] {
        let row =
            |at: usize| Row { keys: [(at % 9 != 8).then_some((at % 3) as u8), None], flag: Some(at % 7 > 1) };
        let case = Case {
            left: (0..70).map(row).collect(),
            right: (0..700).map(row).collect(),
            types: [key, Key::Bool],
            keys: 1,
            condition: None,
            cuts: (50, 300),
            encodings: (Encoding::Flat, Encoding::Flat),
        };
        check(&case);
        check(&Case { condition: Some(1), ..case.clone() });
        check(&Case { keys: 0, ..case });
    }
}
