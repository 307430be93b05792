//! Statistics are what a loop over the rows finds, chunk by chunk and over the stripe.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_precision_loss)]

mod support;

use std::cmp::Ordering;
use std::collections::HashSet;

use stripe::{ColumnStatistics, StripeOptions, StripeReader, Summary, write_stripe};
use support::{Cell, Random, SHAPES, TYPES, cell, column, scalar};
use vector::{LogicalType, Scalar, Vector};

fn check(statistics: &ColumnStatistics, rows: &Vector, what: &str) {
    let cells: Vec<Cell> = (0..rows.len()).map(|row| cell(rows, row)).collect();
    let count = |wanted: fn(&&Cell) -> bool| cells.iter().filter(wanted).count();
    assert_eq!(statistics.rows as usize, rows.len(), "{what}");
    assert_eq!(statistics.null_count as usize, count(|cell| **cell == Cell::Null), "{what}");
    let side = count(|cell| matches!(cell, Cell::Side(_)));
    assert_eq!(statistics.side_rows as usize, side, "{what}");
    let values: Vec<Scalar> = (0..rows.len()).filter_map(|row| scalar(rows, row)).collect();
    let exact = |bound: &Option<stripe::Bound>, outer: Ordering| {
        let Some(bound) = bound else { return };
        for value in &values {
            assert_ne!(value.compare(&bound.value), Some(outer), "{what}: {value:?} beyond {bound:?}");
        }
        let met = values.iter().any(|value| value.compare(&bound.value) == Some(Ordering::Equal));
        assert!(met || !bound.exact, "{what}: {bound:?} is no value");
    };
    exact(&statistics.min, Ordering::Less);
    exact(&statistics.max, Ordering::Greater);
    if rows.logical.is_ordered() && !values.is_empty() {
        assert!(statistics.min.is_some(), "{what}");
        // Only text may be unbounded above: 64 bytes of 0xff have nothing above them.
        assert!(statistics.max.is_some() || rows.logical == LogicalType::Text, "{what}");
    }
    let sum: Option<i128> = match rows.logical {
        LogicalType::Bool => Some(values.iter().filter(|v| **v == Scalar::Bool(true)).count() as i128),
        LogicalType::Int16 | LogicalType::Int32 | LogicalType::Int64 => Some(
            values.iter().map(|v| if let Scalar::Int(v) = v { i128::from(*v) } else { unreachable!() }).sum(),
        ),
        LogicalType::UInt64 => {
            Some(
                values
                    .iter()
                    .map(|v| {
                        if let Scalar::Int(v) = v { i128::from(vector::unsigned(*v)) } else { unreachable!() }
                    })
                    .sum(),
            )
        }
        LogicalType::Numeric if side == 0 => values.iter().try_fold(0i128, |sum, value| match value {
            Scalar::Numeric { unscaled, .. } => sum.checked_add(*unscaled),
            _ => unreachable!(),
        }),
        _ => None,
    };
    assert_eq!(statistics.sum, sum, "{what}");
    if rows.logical == LogicalType::Numeric && !values.is_empty() {
        let shown =
            |cell: &Cell| if let Cell::Decimal { display, .. } = cell { Some(*display) } else { None };
        let scales = statistics.scales.unwrap();
        assert_eq!(Some(scales.display_min), cells.iter().filter_map(shown).min(), "{what}");
        assert_eq!(Some(scales.display_max), cells.iter().filter_map(shown).max(), "{what}");
    }
    let canonical = |cell: &Cell| format!("{cell:?}");
    let distinct = cells.iter().filter(|c| **c != Cell::Null).map(canonical).collect::<HashSet<_>>().len();
    let estimate = statistics.distinct.unwrap() as f64;
    let close = (estimate - distinct as f64).abs() <= 2.0 + distinct as f64 * 0.15;
    // Floats and decimals with several faces of one value have fewer values than faces.
    let faces = matches!(rows.logical, LogicalType::Float32 | LogicalType::Float64 | LogicalType::Numeric);
    assert!(close || (faces && estimate <= distinct as f64 * 1.15), "{what}: {estimate} of {distinct}");
}

#[test]
fn every_type_and_shape() {
    let mut random = Random(11);
    for logical in TYPES {
        for shape in SHAPES {
            for nulls in [0, 40, 100] {
                let what = format!("{logical:?} {shape:?} {nulls}");
                let rows = column(&mut random, logical, shape, 1500, nulls);
                let options = StripeOptions { chunk_rows: 600, ..Default::default() };
                let stripe = write_stripe(1500, std::slice::from_ref(&rows), &options).unwrap();
                let reader = StripeReader::open(&stripe.bytes[stripe.footer_offset as usize..]).unwrap();
                for chunk in 0..3 {
                    let within = reader.chunk_rows(chunk);
                    let part = rows.slice(within.start as usize, within.len());
                    check(reader.statistics(0, chunk, &stripe.bytes).unwrap(), &part, &what);
                }
                check(reader.column_statistics(0, &stripe.bytes).unwrap(), &rows, &what);
                let summary = Summary::open(&stripe.summary).unwrap();
                check(&summary.column(0).unwrap().unwrap().1, &rows, &what);
            }
        }
    }
}

#[test]
fn zeros_of_both_signs_do_not_answer_min() {
    for (values, exact) in
        [(&[0.0, -0.0, 1.0][..], false), (&[0.0, 1.0][..], true), (&[-0.0, -1.0][..], true)]
    {
        let rows = Vector::new(LogicalType::Float64, vector::Values::Float64(values.to_vec()));
        let mut sketch = stripe::Sketch::new();
        let statistics = stripe::collect(&rows, 0..values.len(), &mut sketch).unwrap();
        assert_eq!(statistics.min.unwrap().exact, exact, "{values:?}");
    }
}

#[test]
fn summaries_stay_small() {
    let mut random = Random(12);
    let columns: Vec<Vector> =
        TYPES.iter().map(|&logical| column(&mut random, logical, support::Shape::Small, 5000, 3)).collect();
    let stripe = write_stripe(5000, &columns, &StripeOptions::default()).unwrap();
    assert!(stripe.summary.len() < 40 * columns.len(), "{} bytes", stripe.summary.len());
}
