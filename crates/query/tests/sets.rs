//! Grouping sets, repeated rows and DISTINCT ON against plans of their own for each set, and against rows one
//! by one.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::HashMap;
use std::sync::Arc;

use query::*;
use support::*;
use vector::LogicalType as T;

/// Rows of a few keys with NULLs and a number.
fn batches(rows: i64) -> Vec<Batch> {
    let key = |row: i64, of: i64| if row % (of + 4) == 0 { Plain::Null } else { Plain::Int(row * 7 % of) };
    (0..rows)
        .step_by(500)
        .map(|start| {
            let rows: Vec<i64> = (start..rows.min(start + 500)).collect();
            let a: Vec<Plain> = rows.iter().map(|&row| key(row, 5)).collect();
            let b: Vec<Plain> = rows.iter().map(|&row| key(row, 15_000)).collect();
            let n: Vec<Plain> = rows.iter().map(|&row| Plain::Int(row)).collect();
            let columns = [(T::Int32, a), (T::Int64, b), (T::Int64, n)];
            let columns = columns.iter().map(|(logical, values)| Arc::new(vector(*logical, values)));
            Batch::new(rows.len(), columns.collect())
        })
        .collect()
}

const TYPES: [T; 3] = [T::Int32, T::Int64, T::Int64];

fn sums() -> Vec<Aggregate> {
    vec![
        aggregate(AggregateFunction::CountRows, None, T::Int64),
        aggregate(AggregateFunction::Sum, Some(2), T::Numeric),
    ]
}

/// What each set gives by itself.
fn apart(rows: i64, sets: &[Vec<usize>]) -> Vec<Vec<Plain>> {
    let mut all = Vec::new();
    for (number, set) in sets.iter().enumerate() {
        let plan = Plan::Aggregate {
            input: scan(&TYPES),
            keys: set.iter().map(|&key| Expression::Column(key)).collect(),
            aggregates: sums(),
            groups: 10.0,
        };
        for row in run(&plan, Steps::batches(&batches(rows)), roomy()).unwrap() {
            let key =
                |at: usize| set.iter().position(|&key| key == at).map_or(Plain::Null, |at| row[at].clone());
            let rest = row[set.len()..].iter().cloned();
            all.push([key(0), key(1)].into_iter().chain(rest).chain([Plain::Int(number as i64)]).collect());
        }
    }
    all
}

#[test]
fn grouping_sets_are_the_groups_of_each_set() {
    let sets = vec![vec![0, 1], vec![], vec![1], vec![0], vec![1, 0], vec![]];
    for rows in [0, 1, 60_000] {
        let expected = shown(&apart(rows, &sets));
        let plan = Plan::GroupingSets {
            input: scan(&TYPES),
            keys: vec![Expression::Column(0), Expression::Column(1)],
            sets: sets.clone(),
            aggregates: sums(),
        };
        for (threads, memory) in [(1, 1 << 30), (3, 1 << 30), (1, 1 << 14), (2, 1 << 14)] {
            let files = Memory::default();
            let written = Arc::clone(&files.written);
            let settings = Settings { memory, threads, temp_files: Some(Arc::new(files)) };
            let found = run(&plan, Steps::batches(&batches(rows)), settings).unwrap();
            assert_eq!(shown(&found), expected, "{rows} rows, {threads} threads, {memory} bytes");
            let spilled = written.load(std::sync::atomic::Ordering::Relaxed) > 0;
            assert_eq!(spilled, rows > 1 && memory < 1 << 30, "{rows} rows, {memory} bytes");
        }
    }
}

#[test]
fn rows_are_repeated_as_often_as_the_count_says() {
    let values =
        [Plain::Int(3), Plain::Null, Plain::Int(0), Plain::Int(-7), Plain::Int(5_000), Plain::Int(1)];
    let batch = Batch::new(values.len(), vec![Arc::new(vector(T::Int64, &values))]);
    let plan = Plan::Repeat { input: scan(&[T::Int64]), count: Expression::Column(0) };
    let rows = run(&plan, Steps::batches(&[batch]), roomy()).unwrap();
    let mut counts: HashMap<String, usize> = HashMap::new();
    rows.iter().for_each(|row| *counts.entry(row[0].show()).or_default() += 1);
    let expected = [("3", 3), ("5000", 5_000), ("1", 1)].map(|(value, count)| (value.to_string(), count));
    assert_eq!(counts, HashMap::from(expected));
}

#[test]
fn the_first_row_of_each_value_is_given() {
    let key = |column, descending| SortKey {
        expression: Expression::Column(column),
        descending,
        nulls_first: false,
        order: TextOrder::Bytes,
    };
    for rows in [0, 1, 60_000] {
        let keys = vec![key(1, false), key(0, true), key(2, true)];
        let sorted = Plan::Sort { input: scan(&TYPES), keys: keys.clone(), limit: None };
        let mut expected = run(&sorted, Steps::batches(&batches(rows)), roomy()).unwrap();
        expected.dedup_by_key(|row| [row[1].show(), row[0].show()]);
        let plan = Plan::DistinctOn { input: scan(&TYPES), keys, on: 2 };
        for (threads, memory) in [(1, 1 << 30), (2, 1 << 30), (1, 1 << 14)] {
            let files = Some(Arc::new(Memory::default()) as SharedTempFiles);
            let settings = Settings { memory, threads, temp_files: files };
            let found = run(&plan, Steps::batches(&batches(rows)), settings).unwrap();
            let show = |rows: &[Vec<Plain>]| -> Vec<String> {
                rows.iter().map(|row| row.iter().map(Plain::show).collect::<Vec<_>>().join("|")).collect()
            };
            assert_eq!(show(&found), show(&expected), "{rows} rows, {threads} threads, {memory} bytes");
        }
    }
}
