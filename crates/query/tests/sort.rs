//! Sorting, the first few rows, and limits against a stable sort of single rows.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::cmp::Ordering;
use std::sync::Arc;

use proptest::prelude::*;
use query::*;
use support::*;
use vector::LogicalType as T;

const TYPES: [T; 6] = [T::Int32, T::Float64, T::Numeric, T::Text, T::Bool, T::Int64];

fn any_value(logical: T) -> BoxedStrategy<Plain> {
    let value = match logical {
        T::Int32 => (-3i64..3).prop_map(Plain::Int).boxed(),
        T::Int64 => prop_oneof![Just(i64::MIN), Just(i64::MAX), 0i64..3].prop_map(Plain::Int).boxed(),
        T::Float64 => {
            prop_oneof![Just(-0.0), Just(0.0), Just(f64::NAN), Just(f64::NEG_INFINITY), -1.5..1.5f64]
                .prop_map(Plain::Float)
                .boxed()
        }
        T::Numeric => (-300i128..300, 0u16..3).prop_map(|(v, s)| Plain::decimal(v, s)).boxed(),
        T::Text => prop_oneof!["[ab]{0,3}", "the same first bytes of a text, [ab]{1,2}"]
            .prop_map(Plain::text)
            .boxed(),
        _ => any::<bool>().prop_map(Plain::Bool).boxed(),
    };
    prop_oneof![5 => value, 1 => Just(Plain::Null)].boxed()
}

fn any_batches() -> impl Strategy<Value = Vec<Batch>> {
    let batch = (1usize..30).prop_flat_map(|rows| {
        TYPES.map(|logical| proptest::collection::vec(any_value(logical), rows)).to_vec()
    });
    proptest::collection::vec(batch, 0..5).prop_map(|batches| {
        let mut start = 0;
        let made = batches.into_iter().map(|columns| {
            let rows = columns[0].len();
            let mut columns: Vec<_> = columns
                .iter()
                .zip(TYPES)
                .map(|(values, logical)| Arc::new(vector(logical, values)))
                .collect();
            let numbers: Vec<Plain> = (start..start + rows).map(|row| Plain::Int(row as i64)).collect();
            start += rows;
            columns.push(Arc::new(vector(T::Int64, &numbers)));
            Batch::new(rows, columns)
        });
        made.collect()
    })
}

#[derive(Debug, Clone, Copy)]
struct By {
    column: usize,
    descending: bool,
    nulls_first: bool,
    host: bool,
}

fn any_keys() -> impl Strategy<Value = Vec<By>> {
    let key = (0..TYPES.len(), any::<bool>(), any::<bool>(), any::<bool>())
        .prop_map(|(column, descending, nulls_first, host)| By { column, descending, nulls_first, host });
    proptest::collection::vec(key, 1..4)
}

/// An order of texts that is not that of their bytes.
fn from_behind(a: &[u8], b: &[u8]) -> Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

fn compare(keys: &[By], a: &[Plain], b: &[Plain]) -> Ordering {
    for key in keys {
        let (a, b) = (&a[key.column], &b[key.column]);
        let order = match (a, b) {
            (Plain::Null, Plain::Null) => Ordering::Equal,
            (Plain::Null, _) => {
                if key.nulls_first {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            (_, Plain::Null) => {
                if key.nulls_first {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            _ => {
                let order = match (a, b) {
                    (Plain::Text(a), Plain::Text(b)) if key.host => from_behind(a, b),
                    _ => a.compare(b),
                };
                if key.descending { order.reverse() } else { order }
            }
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

fn sort_keys(keys: &[By]) -> Vec<SortKey> {
    keys.iter()
        .map(|key| SortKey {
            expression: Expression::Column(key.column),
            descending: key.descending,
            nulls_first: key.nulls_first,
            order: if key.host { TextOrder::Host(Arc::new(from_behind)) } else { TextOrder::Bytes },
        })
        .collect()
}

fn types() -> Vec<T> {
    TYPES.iter().copied().chain([T::Int64]).collect()
}

fn in_order(rows: &[Vec<Plain>]) -> Vec<String> {
    rows.iter().map(|row| row.iter().map(Plain::show).collect::<Vec<_>>().join("|")).collect()
}

fn expected(batches: &[Batch], keys: &[By]) -> Vec<Vec<Plain>> {
    let mut rows: Vec<Vec<Plain>> = Vec::new();
    for batch in batches {
        for row in 0..batch.rows {
            rows.push(batch.columns.iter().map(|column| value(column, row)).collect());
        }
    }
    rows.sort_by(|a, b| compare(keys, a, b));
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn rows_come_in_order(batches in any_batches(), keys in any_keys(), limit in proptest::option::of(0u64..20)) {
        let plan = Plan::Sort { input: scan(&types()), keys: sort_keys(&keys), limit };
        let rows = run(&plan, Steps::batches(&batches), roomy()).unwrap();
        let mut expected = expected(&batches, &keys);
        expected.truncate(limit.map_or(usize::MAX, |limit| limit as usize));
        prop_assert_eq!(in_order(&rows), in_order(&expected));
        // Every batch becomes a run.
        let settings = Settings { memory: 1, threads: 1, temp_files: Some(Arc::new(Memory::default())) };
        let rows = run(&plan, Steps::batches(&batches), settings).unwrap();
        prop_assert_eq!(in_order(&rows), in_order(&expected));
    }
}

#[test]
fn more_runs_than_are_merged_at_once() {
    let batches: Vec<Batch> = (0..100i64)
        .map(|batch| {
            let values: Vec<Plain> =
                (0..100).map(|row| Plain::Int((row * 7_919 + batch * 31) % 1_009)).collect();
            let numbers: Vec<Plain> = (0..100).map(|row| Plain::Int(batch * 100 + row)).collect();
            Batch::new(100, vec![Arc::new(vector(T::Int64, &values)), Arc::new(vector(T::Int64, &numbers))])
        })
        .collect();
    let by = By { column: 0, descending: false, nulls_first: false, host: false };
    let plan = Plan::Sort { input: scan(&[T::Int64, T::Int64]), keys: sort_keys(&[by]), limit: None };
    let settings = Settings { memory: 1, threads: 1, temp_files: Some(Arc::new(Memory::default())) };
    let rows = run(&plan, Steps::batches(&batches), settings).unwrap();
    assert_eq!(in_order(&rows), in_order(&expected(&batches, &[by])));
    let settings = Settings { memory: 1, threads: 1, temp_files: None };
    assert!(matches!(run(&plan, Steps::batches(&batches), settings), Err(Error::Decline(_))));
}

#[test]
fn the_first_few_of_many() {
    let mut batches = Vec::new();
    for batch in 0..40i64 {
        let values: Vec<Plain> =
            (0..2048).map(|row| Plain::Int((row * 7919 + batch * 104_729) % 65_537)).collect();
        batches.push(Batch::new(2048, vec![Arc::new(vector(T::Int64, &values))]));
    }
    let by = By { column: 0, descending: true, nulls_first: true, host: false };
    let plan = Plan::Sort { input: scan(&[T::Int64]), keys: sort_keys(&[by]), limit: Some(5_000) };
    let rows = run(&plan, Steps::batches(&batches), roomy()).unwrap();
    let mut expected = expected(&batches, &[by]);
    expected.truncate(5_000);
    assert_eq!(in_order(&rows), in_order(&expected));
}

#[test]
fn limits_cut_and_stop() {
    let batch = |from: i64| {
        let values: Vec<Plain> = (from..from + 10).map(Plain::Int).collect();
        Batch::new(10, vec![Arc::new(vector(T::Int64, &values))])
    };
    let batches: Vec<Batch> = (0..5).map(|at| batch(at * 10)).collect();
    for (offset, limit, first, count) in
        [(0, Some(3), 0, 3), (8, Some(15), 8, 15), (45, None, 45, 5), (50, Some(1), 0, 0), (3, Some(0), 0, 0)]
    {
        let plan = Plan::Limit { input: scan(&[T::Int64]), offset, limit };
        let rows = run(&plan, Steps::batches(&batches), roomy()).unwrap();
        let expected: Vec<String> = (first..first + count).map(|v: i64| v.to_string()).collect();
        assert_eq!(in_order(&rows), expected, "{offset} {limit:?}");
    }
    // The source fails after two batches: nobody may ask it for a third.
    struct Two(Vec<Batch>);
    impl Source for Two {
        fn next_unit(&mut self, _host: &mut dyn Host) -> query::Result<Option<Box<dyn Unit>>> {
            let batch = self.0.pop().ok_or(Error::Cancelled)?;
            Ok(Some(Box::new(Some(batch))))
        }
    }
    let plan = Plan::Limit { input: scan(&[T::Int64]), offset: 5, limit: Some(15) };
    let rows = run(&plan, Box::new(Two(batches[..2].to_vec())), roomy()).unwrap();
    assert_eq!(rows.len(), 15);
}
