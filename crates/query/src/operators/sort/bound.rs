//! What the rows that a top-N sort has kept say about those to come: none is needed that comes after the last of them by the first key.
//!
//! `Sort` offers the bound to the source of its pipeline, which then decodes the other columns only of rows that may be among the first; `SortedRows` of all threads move it
//! when they thin out what they kept. Invariant: as many rows as are wanted do not come after the bound.

use std::sync::{Arc, RwLock};

use vector::{Values, Vector};

use super::order::{Key, compare_vectors};
use crate::Members;

/// The bound of one sort.
pub struct Bound {
    /// The first key; its column is the only one of `last`.
    key: Key,
    /// None before enough rows were seen.
    last: RwLock<Option<Arc<Vector>>>,
}

impl Bound {
    /// No bound yet on this first key.
    pub fn new(first: &Key) -> Self {
        Self { key: Key { column: 0, ..first.clone() }, last: RwLock::default() }
    }

    /// As many rows as are wanted do not come after the one row of this vector.
    pub fn lower(&self, row: &Arc<Vector>) {
        if let Ok(mut last) = self.last.write()
            && last.as_ref().is_none_or(|last| self.order(row, 0, last).is_lt())
        {
            *last = Some(Arc::clone(row));
        }
    }

    fn order(&self, column: &Arc<Vector>, row: usize, last: &Arc<Vector>) -> std::cmp::Ordering {
        let (column, last) = (std::slice::from_ref(column), std::slice::from_ref(last));
        compare_vectors(std::slice::from_ref(&self.key), (column, row), (last, 0))
    }

    /// Integers that do not come after `last`.
    fn ints<T: Copy + Ord>(&self, values: &[T], last: &[T]) -> Option<Vec<u32>> {
        let last = *last.first()?;
        let rows = (0u32..).zip(values);
        Some(if self.key.descending {
            rows.filter(|(_, value)| **value >= last).map(|(row, _)| row).collect()
        } else {
            rows.filter(|(_, value)| **value <= last).map(|(row, _)| row).collect()
        })
    }
}

impl Members for Bound {
    fn select(&self, column: &Vector) -> Option<Vec<u32>> {
        let last = self.last.read().ok()?.clone()?;
        let rows = match (&column.values, &last.values) {
            _ if column.validity.is_some() || last.validity.is_some() => None,
            (Values::Int16(values), Values::Int16(last)) => self.ints(values, last),
            (Values::Int32(values), Values::Int32(last)) => self.ints(values, last),
            (Values::Int64(values), Values::Int64(last)) => self.ints(values, last),
            (Values::Dictionary { codes, dictionary }, _) if dictionary.entries.len() < codes.len() => {
                let entries = Arc::new(dictionary.entries.clone());
                let kept = (0..entries.len()).map(|at| self.order(&entries, at, &last).is_le());
                let kept: Vec<bool> = kept.collect();
                let rows = (0u32..).zip(codes).filter(|(_, code)| kept.get(**code as usize) == Some(&true));
                Some(rows.map(|(row, _)| row).collect())
            }
            _ => None,
        };
        let rows = rows.unwrap_or_else(|| {
            let column = Arc::new(column.clone().flatten());
            let rows = 0..column.len() as u32;
            rows.filter(|&row| self.order(&column, row as usize, &last).is_le()).collect()
        });
        (rows.len() < column.len()).then_some(rows)
    }
}
