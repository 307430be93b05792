//! What is known of a table's columns without reading them: for estimates, and for limits that hold.

use std::collections::HashSet;

use stripe::{Bound, Summary};
use vector::{Scalar, Values};

use super::planner::Estimate;
use crate::api::Result;
use crate::storage::Storage;
use crate::values::Column;

/// What stripes' statistics and the tail tell of the column at a place. Bounds hold for all values.
pub fn estimate(storage: &Storage, place: usize, tail: &[Column]) -> Result<Estimate> {
    let mut bounds = Bounds::default();
    let (mut most, mut sum, mut rows) = (0.0_f64, 0.0, 0.0);
    for entry in storage.directory.entries().iter() {
        rows += f64::from(entry.rows);
        let known = Summary::open(&entry.summary)?.column(place)?.map(|(_, known)| known);
        let Some(known) = known else {
            bounds.is_known = false;
            continue;
        };
        let distinct = known.distinct.map_or(f64::from(entry.rows) / 10.0, f64::from);
        (most, sum) = (most.max(distinct), sum + distinct);
        if known.value_count() > 0 {
            bounds.add(number(known.min.as_ref()), number(known.max.as_ref()));
        }
    }
    if let Some(column) = tail.get(place) {
        let (distinct, own) = of_tail(column, &mut bounds);
        (most, sum, rows) = (most.max(distinct), sum + distinct, rows + own);
    }
    // A column whose values hardly repeat within a stripe has other ones in the next.
    let mut distinct = if sum > rows / 2.0 { sum } else { most };
    if let Some((low, high)) = bounds.known()
        && bounds.are_whole
    {
        distinct = distinct.max(f64::min(sum, high - low + 1.0)).min(high - low + 1.0);
    }
    Ok(Estimate { distinct: distinct.clamp(1.0, rows.max(1.0)), bounds: bounds.known() })
}

/// The least and the greatest number so far.
struct Bounds {
    found: Option<(f64, f64)>,
    /// Nothing was met whose bounds are not known.
    is_known: bool,
    are_whole: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { found: None, is_known: true, are_whole: true }
    }
}

impl Bounds {
    fn add(&mut self, low: Option<(f64, bool)>, high: Option<(f64, bool)>) {
        let (Some(low), Some(high)) = (low, high) else {
            self.is_known = false;
            return;
        };
        self.are_whole &= low.1 && high.1;
        self.found = Some(match self.found {
            Some((least, greatest)) => (least.min(low.0), greatest.max(high.0)),
            None => (low.0, high.0),
        });
    }

    fn known(&self) -> Option<(f64, f64)> {
        self.found.filter(|_| self.is_known)
    }
}

/// A bound as a number, and whether it is an integer.
#[allow(clippy::cast_precision_loss)]
fn number(bound: Option<&Bound>) -> Option<(f64, bool)> {
    match bound.map(|bound| &bound.value) {
        Some(Scalar::Int(value)) => Some((*value as f64, true)),
        Some(Scalar::Float(value)) => Some((*value, false)),
        _ => None,
    }
}

/// Different values, and rows, of a column of the tail.
#[allow(clippy::cast_precision_loss)]
fn of_tail(column: &Column, bounds: &mut Bounds) -> (f64, f64) {
    let vector = &column.vector;
    let valid = (0..vector.len()).filter(|&row| vector.is_valid(row));
    let distinct = match &vector.values {
        Values::Int64(values) => {
            let known: HashSet<i64> = valid.filter_map(|row| values.get(row).copied()).collect();
            if let (Some(&least), Some(&greatest)) = (known.iter().min(), known.iter().max()) {
                bounds.add(Some((least as f64, true)), Some((greatest as f64, true)));
            }
            known.len()
        }
        Values::Float64(values) => {
            let mut count = HashSet::new();
            for value in valid.filter_map(|row| values.get(row).copied()) {
                bounds.add(Some((value, false)), Some((value, false)));
                count.insert(value.to_bits());
            }
            count.len()
        }
        Values::Bytes(views) => valid.map(|row| views.get(row)).collect::<HashSet<_>>().len(),
        _ => 1,
    };
    (distinct as f64, vector.len() as f64)
}
