//! Pruning never lies: compared with every row's own answer, for random columns and predicate trees.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

mod support;

use encodings::NoPglz;
use stripe::{
    EncodedStripe, Prune, StripeOptions, StripeReader, Summary, prune_chunk, prune_stripe, write_stripe,
};
use support::{Random, Shape, TYPES, any_column, column, predicate, satisfies};
use vector::{CompareOp, LogicalType, Predicate, Scalar, Selection, Vector};

fn open(stripe: &EncodedStripe) -> StripeReader {
    StripeReader::open(&stripe.bytes[stripe.footer_offset as usize..]).unwrap()
}

/// Number of proofs of each kind, so that a test can see that something was proven at all.
#[derive(Default, Debug)]
struct Proofs {
    none: usize,
    all: usize,
}

impl Proofs {
    fn check(&mut self, verdict: Prune, answers: &[Option<bool>], what: &str) {
        match verdict {
            Prune::NoRow => {
                assert!(answers.iter().all(|&answer| answer == Some(false)), "{what}: NoRow");
                self.none += usize::from(!answers.is_empty());
            }
            Prune::AllRows => {
                assert!(answers.iter().all(|&answer| answer == Some(true)), "{what}: AllRows");
                self.all += usize::from(!answers.is_empty());
            }
            Prune::SomeRows => {}
        }
    }
}

#[test]
fn never_drops_a_row_and_never_adds_one() {
    let mut proofs = Proofs::default();
    for seed in 0..400 {
        let mut random = Random(seed);
        let rows = random.pick(&[1usize, 5, 200]);
        let columns: Vec<Vector> = (0..3)
            .map(|_| {
                let logical = random.pick(&TYPES);
                any_column(&mut random, logical, rows)
            })
            .collect();
        let bloom: &[usize] = if seed % 2 == 0 { &[0, 1, 2] } else { &[] };
        let options = StripeOptions { chunk_rows: 64, bloom_columns: bloom, ..Default::default() };
        let stripe = write_stripe(rows as u32, &columns, &options).unwrap();
        let reader = open(&stripe);
        let summary = Summary::open(&stripe.summary).unwrap();
        for _ in 0..60 {
            let wanted = predicate(&mut random, &columns, 2);
            let what = format!("seed {seed}, {wanted:?}");
            let answers: Vec<Option<bool>> = (0..rows).map(|row| satisfies(&columns, row, &wanted)).collect();
            proofs.check(prune_stripe(&summary, &wanted).unwrap(), &answers, &what);
            for chunk in 0..reader.chunk_count() {
                let within = reader.chunk_rows(chunk);
                let verdict = prune_chunk(&reader, chunk, &wanted, &stripe.bytes).unwrap();
                let answers = &answers[within.start as usize..within.end as usize];
                proofs.check(verdict, answers, &format!("{what}, chunk {chunk}"));
            }
        }
    }
    assert!(proofs.none > 5_000 && proofs.all > 5_000, "{proofs:?}");
}

#[test]
fn agrees_with_filtering_of_encoded_chunks() {
    let mut filtered = 0;
    for seed in 0..150 {
        let mut random = Random(seed + 1000);
        let logical = random.pick(&TYPES);
        let columns = [any_column(&mut random, logical, 300)];
        let options = StripeOptions { chunk_rows: 128, ..Default::default() };
        let stripe = write_stripe(300, &columns, &options).unwrap();
        let reader = open(&stripe);
        for _ in 0..20 {
            let wanted = predicate(&mut random, &columns, 1);
            for chunk in 0..reader.chunk_count() {
                let within = reader.chunk_rows(chunk);
                let answers: Vec<Option<bool>> =
                    within.clone().map(|row| satisfies(&columns, row as usize, &wanted)).collect();
                let owned = reader.read_chunk(0, chunk, &stripe.bytes, &NoPglz).unwrap();
                let mut selection = Selection::All(owned.rows());
                match owned.filter(&wanted, &mut selection, &NoPglz) {
                    Ok(true) => {}
                    Ok(false) => continue,
                    // Side values are for the host to compare.
                    Err(error) => {
                        assert!(answers.contains(&None), "{error} for {wanted:?}");
                        continue;
                    }
                }
                filtered += 1;
                let kept: Vec<u32> = selection.iter().collect();
                let expected: Vec<u32> =
                    (0..within.len() as u32).filter(|&row| answers[row as usize] == Some(true)).collect();
                assert_eq!(kept, expected, "seed {seed} {logical:?} {wanted:?}");
            }
        }
    }
    assert!(filtered > 1000, "{filtered}");
}

fn equal(column: usize, value: Scalar) -> Predicate {
    Predicate::Compare { column, op: CompareOp::Equal, value }
}

#[test]
fn sorted_keys_prune_to_their_chunk() {
    let mut random = Random(3);
    let columns = [column(&mut random, LogicalType::Int64, Shape::Sorted, 10_000, 0)];
    let stripe =
        write_stripe(10_000, &columns, &StripeOptions { chunk_rows: 1000, ..Default::default() }).unwrap();
    let reader = open(&stripe);
    let wanted = equal(0, Scalar::Int(3 * 4321 - 100));
    let left: Vec<u32> = (0..reader.chunk_count())
        .filter(|&chunk| prune_chunk(&reader, chunk, &wanted, &stripe.bytes).unwrap() != Prune::NoRow)
        .collect();
    assert_eq!(left, [4]);
}

#[test]
fn bloom_filters_drop_chunks_that_bounds_cannot() {
    let mut random = Random(4);
    let columns = [column(&mut random, LogicalType::Text, Shape::Small, 20_000, 5)];
    let left = |bloom: &[usize]| {
        let options = StripeOptions { chunk_rows: 1000, bloom_columns: bloom, ..Default::default() };
        let stripe = write_stripe(20_000, &columns, &options).unwrap();
        let reader = open(&stripe);
        let value = (0..).find_map(|row| support::scalar(&columns[0], row + 7_000)).unwrap();
        let wanted =
            Predicate::In { column: 0, values: vec![value, Scalar::Bytes(b"8000".as_slice().into())] };
        (0..reader.chunk_count())
            .filter(|&chunk| prune_chunk(&reader, chunk, &wanted, &stripe.bytes).unwrap() != Prune::NoRow)
            .count()
    };
    assert_eq!(left(&[]), 20);
    assert!((1..=3).contains(&left(&[0])), "{}", left(&[0]));
}

#[test]
fn what_is_not_known_is_some_rows() {
    let mut random = Random(5);
    let columns = [column(&mut random, LogicalType::Int32, Shape::Sorted, 10, 0)];
    let stripe = write_stripe(10, &columns, &StripeOptions::default()).unwrap();
    let (reader, summary) = (open(&stripe), Summary::open(&stripe.summary).unwrap());
    // A column that the stripe does not have, and a constant of another kind.
    for wanted in [equal(1, Scalar::Int(1)), equal(0, Scalar::Float(0.5)), Predicate::IsNull { column: 9 }] {
        assert_eq!(prune_stripe(&summary, &wanted).unwrap(), Prune::SomeRows);
        assert_eq!(prune_chunk(&reader, 0, &wanted, &stripe.bytes).unwrap(), Prune::SomeRows);
    }
    assert_eq!(prune_stripe(&summary, &equal(0, Scalar::Null)).unwrap(), Prune::NoRow);
    assert_eq!(prune_stripe(&summary, &Predicate::Always(true)).unwrap(), Prune::AllRows);
    assert_eq!(prune_stripe(&summary, &Predicate::And(vec![])).unwrap(), Prune::AllRows);
    assert_eq!(prune_stripe(&summary, &Predicate::Or(vec![])).unwrap(), Prune::NoRow);
}
