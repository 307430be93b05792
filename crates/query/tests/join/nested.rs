//! Joins below other operators.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use query::{AggregateFunction, Batch, Execution, Expression, JoinKind, Plan, Source};
use vector::LogicalType;

use crate::check::settings;
use crate::keys::{Encoding, Key, Row, batches, shown};
use crate::model::{Case, expected, plan_of};
use crate::source::{Batches, TestHost};
use crate::support::{Plain, aggregate, scan, value, vector};

#[test]
fn appended_parts_keep_their_own_rest() {
    let rows: Vec<Row> = (0..10u8).map(|at| Row { keys: [Some(at % 7), None], flag: None }).collect();
    let case = Case {
        left: rows[..3].to_vec(),
        right: rows,
        types: [Key::Small, Key::Text],
        keys: 1,
        condition: None,
        cuts: (2, 4),
        encodings: (Encoding::Flat, Encoding::Dictionary),
    };
    let full = plan_of(&case, JoinKind::Full);
    let inner = plan_of(&case, JoinKind::Inner);
    let shift = |plan: Plan| match plan {
        Plan::Join { kind, keys, condition, left, right } => {
            let moved = |side: Plan| match side {
                Plan::Scan { source, types } => Plan::Scan { source: source + 2, types },
                other => other,
            };
            Plan::Join { kind, keys, condition, left: Box::new(moved(*left)), right: Box::new(moved(*right)) }
        }
        other => other,
    };
    let plan = Plan::Append { inputs: vec![full, shift(inner)], removed: 0 };
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    for _ in 0..2 {
        let left = batches(&case.left, case.types, true, case.cuts.0, case.encodings.0);
        let right = batches(&case.right, case.types, false, case.cuts.1, case.encodings.1);
        sources.push(Batches::new(left));
        sources.push(Batches::new(right));
    }
    let mut execution = Execution::new(&plan, sources, settings()).unwrap();
    let mut got = Vec::new();
    while let Some(batch) = execution.next(&mut TestHost).unwrap() {
        got.extend(shown(&batch, &[2, 3, 6, 7]));
    }
    got.sort();
    let mut wanted = expected(&case, JoinKind::Full);
    wanted.extend(expected(&case, JoinKind::Inner));
    wanted.sort();
    assert_eq!(got, wanted);
}

/// Groups by the first two columns, joined on one or both with a few rows: what comes out, and how many rows
/// were aggregated.
fn groups_joined(function: AggregateFunction, argument: LogicalType, both: bool) -> (Vec<String>, usize) {
    let result = if function == AggregateFunction::Sum { argument } else { LogicalType::Int64 };
    let types = [LogicalType::Int32, LogicalType::Int64, argument];
    let columns = |rows: &[i64]| {
        let third = |row: &i64| match argument {
            LogicalType::Float64 => Plain::Float(*row as f64),
            _ => Plain::Int(*row),
        };
        let first = rows.iter().map(|row| if row % 8 == 7 { Plain::Null } else { Plain::Int(row % 8) });
        vec![
            Arc::new(vector(types[0], &first.collect::<Vec<_>>())),
            Arc::new(vector(types[1], &rows.iter().map(|row| Plain::Int(row / 8 % 5)).collect::<Vec<_>>())),
            Arc::new(vector(types[2], &rows.iter().map(third).collect::<Vec<_>>())),
        ]
    };
    let rows: Vec<i64> = (0..400).collect();
    let left = Batches::new(rows.chunks(70).map(|rows| Batch::new(rows.len(), columns(rows))).collect());
    let served = Arc::clone(&left.served);
    let right = Batches::new(VecDeque::from([Batch::new(3, columns(&[2, 3, 15]))]));
    let Plan::Scan { types: right_types, .. } = *scan(&types) else { unreachable!() };
    let plan = Plan::Join {
        kind: JoinKind::Inner,
        left: Box::new(Plan::Aggregate {
            input: scan(&types),
            keys: vec![Expression::Column(0), Expression::Column(1)],
            aggregates: vec![aggregate(function, Some(2), result)],
            groups: 10.0,
        }),
        right: Box::new(Plan::Scan { source: 1, types: right_types }),
        keys: (0..if both { 2 } else { 1 })
            .map(|at| (Expression::Column(at), Expression::Column(at)))
            .collect(),
        condition: None,
    };
    let mut execution = Execution::new(&plan, vec![left, right], settings()).unwrap();
    let mut got = Vec::new();
    while let Some(batch) = execution.next(&mut TestHost).unwrap() {
        for row in 0..batch.rows {
            got.push(
                batch.columns[..3]
                    .iter()
                    .map(|column| value(column, row).show())
                    .collect::<Vec<_>>()
                    .join("|"),
            );
        }
    }
    got.sort();
    (got, served.load(Ordering::Relaxed))
}

/// A join above an aggregation narrows what is aggregated, by the columns that are grouped by, where groups
/// that are left out could not have ended the query.
#[test]
fn groups_that_a_join_drops_are_not_made() {
    let (groups, aggregated) = groups_joined(AggregateFunction::Count, LogicalType::Int64, true);
    assert_eq!((groups.join(" ").as_str(), aggregated), ("2|0|10 3|0|10", 40));
    let (groups, aggregated) = groups_joined(AggregateFunction::Count, LogicalType::Int64, false);
    assert_eq!((groups.len(), aggregated), (10, 100));
    // Sums of floats may overflow.
    let (groups, aggregated) = groups_joined(AggregateFunction::Sum, LogicalType::Float64, true);
    assert_eq!((groups.join(" ").as_str(), aggregated), ("2|0|1820 3|0|1830", 400));
}
