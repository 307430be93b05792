//! The bound of a top-N sort: a row that comes after the last kept row by the first key is not needed.
//!
//! `Sort` offers the bound to the source of its pipeline. The source then decodes the other columns only for
//! rows that may be among the first. It reads first what can come first (`Edge`), so that the bound rules out
//! the rest unread. The `SortedRows` of all threads move the bound when they drop kept rows that cannot be
//! among the first. Invariant: at least as many rows as are wanted do not come after the bound.

use std::cmp::Ordering;
use std::sync::{Arc, RwLock};

use vector::{Scalar, Values, Vector};

use super::order::{Key, compare_vectors, holds_wide};
use crate::{Edge, Extent, Members, Ranking, TextOrder};

/// The bound of one sort.
pub struct Bound {
    /// The first key; its column is the only one of `last`.
    key: Key,
    /// There are no other keys: rows that are equal in this one are of no use once there are enough.
    only: bool,
    /// None before enough rows were seen.
    last: RwLock<Option<Last>>,
}

/// The last row that is wanted of those seen.
#[derive(Clone)]
struct Last {
    /// One row.
    row: Arc<Vector>,
    /// Where it comes.
    edge: Edge,
}

impl Bound {
    /// No bound yet on this first key, which may be the only one.
    pub(super) fn new(first: &Key, only: bool) -> Self {
        Self { key: Key { column: 0, ..first.clone() }, only, last: RwLock::default() }
    }

    /// As many rows as are wanted do not come after the one row of this vector.
    pub(super) fn lower(&self, row: &Arc<Vector>) {
        if let Ok(mut last) = self.last.write()
            && last.as_ref().is_none_or(|last| self.order(row, 0, &last.row).is_lt())
        {
            *last = Some(Last { row: Arc::clone(row), edge: self.edge_of_row(row) });
        }
    }

    /// Which of two values comes first, if that is known.
    fn values(&self, a: &Scalar, b: &Scalar) -> Option<Ordering> {
        let order = a.compare(b);
        if self.key.descending { order.map(Ordering::reverse) } else { order }
    }

    /// Where the one row of a flat vector comes.
    fn edge_of_row(&self, row: &Vector) -> Edge {
        if !row.is_valid(0) {
            return Edge::Null;
        }
        let value = match &row.values {
            Values::Bool(bits) => Some(Scalar::Bool(bits.get(0))),
            Values::Int16(values) => values.first().map(|&value| Scalar::Int(value.into())),
            Values::Int32(values) => values.first().map(|&value| Scalar::Int(value.into())),
            Values::Int64(values) => values.first().map(|&value| Scalar::Int(value)),
            Values::Float32(values) => values.first().map(|&value| Scalar::Float(value.into())),
            Values::Float64(values) => values.first().map(|&value| Scalar::Float(value)),
            Values::Fixed(values) => Some(Scalar::Bytes(values.get(0).into())),
            Values::Bytes(values) => Some(Scalar::Bytes(values.get(0).into())),
            // NaN, infinities and decimals with too many digits are in the side lane.
            Values::Numeric(values) if values.side.is_empty() => {
                Some(Scalar::Numeric { unscaled: values.ints.get(0), scale: values.scale })
            }
            _ => None,
        };
        let value = value.as_ref();
        self.edge(Extent { nulls: false, values: true, least: value, greatest: value })
    }

    /// Whether a row is of use that compares so with the last one.
    const fn keeps(&self, order: Ordering) -> bool {
        order.is_lt() || order.is_eq() && !self.only
    }

    fn order(&self, column: &Arc<Vector>, row: usize, last: &Arc<Vector>) -> Ordering {
        let (column, last) = (std::slice::from_ref(column), std::slice::from_ref(last));
        compare_vectors(std::slice::from_ref(&self.key), (column, row), (last, 0))
    }

    /// Integers that do not come after `last`.
    fn ints<T: Copy + Ord>(&self, values: &[T], last: &[T]) -> Option<Vec<u32>> {
        let last = *last.first()?;
        let rows = (0u32..).zip(values);
        Some(match (self.key.descending, self.only) {
            (true, false) => rows.filter(|(_, value)| **value >= last).map(|(row, _)| row).collect(),
            (true, true) => rows.filter(|(_, value)| **value > last).map(|(row, _)| row).collect(),
            (false, false) => rows.filter(|(_, value)| **value <= last).map(|(row, _)| row).collect(),
            (false, true) => rows.filter(|(_, value)| **value < last).map(|(row, _)| row).collect(),
        })
    }
}

impl Ranking for Bound {
    fn edge(&self, extent: Extent<'_>) -> Edge {
        if extent.nulls && (self.key.nulls_first || !extent.values) {
            return Edge::Null;
        }
        let end = if self.key.descending { extent.greatest } else { extent.least };
        match (&self.key.order, end) {
            // Statistics are about values that are not NULL, in the order of their bytes.
            (TextOrder::Bytes, Some(end)) if extent.values && !end.is_null() => Edge::Value(end.clone()),
            _ => Edge::Anywhere,
        }
    }

    fn compare(&self, a: &Edge, b: &Edge) -> Ordering {
        let rank = |edge: &Edge| match edge {
            Edge::Anywhere => 0,
            Edge::Null if self.key.nulls_first => 1,
            Edge::Value(_) => 2,
            Edge::Null => 3,
        };
        match (a, b) {
            (Edge::Value(a), Edge::Value(b)) => self.values(a, b).unwrap_or(Ordering::Equal),
            _ => rank(a).cmp(&rank(b)),
        }
    }

    fn is_past(&self, edge: &Edge) -> bool {
        let Ok(last) = self.last.read() else { return false };
        let order = match (edge, last.as_ref().map(|last| &last.edge)) {
            (_, None | Some(Edge::Anywhere)) | (Edge::Anywhere, _) => return false,
            (Edge::Value(edge), Some(Edge::Value(last))) => self.values(edge, last),
            (edge, Some(last)) => Some(self.compare(edge, last)),
        };
        order.is_some_and(|order| order.is_gt() || self.only && order.is_eq())
    }
}

impl Members for Bound {
    fn select(&self, column: &Vector) -> Option<Vec<u32>> {
        let last = self.last.read().ok()?.as_ref()?.row.clone();
        let rows = match (&column.values, &last.values) {
            _ if column.validity.is_some() || last.validity.is_some() => None,
            (Values::Int16(values), Values::Int16(last)) => self.ints(values, last),
            (Values::Int32(values), Values::Int32(last)) => self.ints(values, last),
            (Values::Int64(values), Values::Int64(last)) => self.ints(values, last),
            (Values::Dictionary { codes, dictionary }, _) if dictionary.entries.len() < codes.len() => {
                let entries = Arc::new(dictionary.entries.clone());
                if holds_wide(&entries) {
                    return None;
                }
                let kept = (0..entries.len()).map(|at| self.keeps(self.order(&entries, at, &last)));
                let kept: Vec<bool> = kept.collect();
                let rows = (0u32..).zip(codes).filter(|(_, code)| kept.get(**code as usize) == Some(&true));
                Some(rows.map(|(row, _)| row).collect())
            }
            _ => None,
        };
        let rows = match rows {
            Some(rows) => rows,
            None => {
                let column = Arc::new(column.clone().flatten());
                // The sort has to see them.
                if holds_wide(&column) {
                    return None;
                }
                let rows = 0..column.len() as u32;
                rows.filter(|&row| self.keeps(self.order(&column, row as usize, &last))).collect()
            }
        };
        (rows.len() < column.len()).then_some(rows)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use vector::{Bitmap, LogicalType};

    use super::*;

    fn bound(descending: bool, nulls_first: bool, only: bool) -> Bound {
        Bound::new(&Key { column: 0, descending, nulls_first, order: TextOrder::Bytes }, only)
    }

    fn row(value: i64) -> Arc<Vector> {
        Arc::new(Vector::new(LogicalType::Int64, Values::Int64(vec![value])))
    }

    fn edge(bound: &Bound, nulls: bool, ends: Option<(i64, i64)>) -> Edge {
        let ends = ends.map(|(least, greatest)| (Scalar::Int(least), Scalar::Int(greatest)));
        let (least, greatest) = (ends.as_ref().map(|ends| &ends.0), ends.as_ref().map(|ends| &ends.1));
        bound.edge(Extent { nulls, values: ends.is_some(), least, greatest })
    }

    #[test]
    fn what_can_come_first_is_the_end_that_the_key_begins_with() {
        assert_eq!(edge(&bound(false, false, true), true, Some((3, 9))), Edge::Value(Scalar::Int(3)));
        assert_eq!(edge(&bound(true, false, true), true, Some((3, 9))), Edge::Value(Scalar::Int(9)));
        assert_eq!(edge(&bound(true, true, true), true, Some((3, 9))), Edge::Null);
        assert_eq!(edge(&bound(true, false, true), true, None), Edge::Null);
        let unknown = Extent { nulls: false, values: true, least: None, greatest: None };
        assert_eq!(bound(true, false, true).edge(unknown), Edge::Anywhere);
    }

    #[test]
    fn what_comes_after_the_last_wanted_row_is_past_and_so_is_its_equal_where_no_other_key_is() {
        for only in [false, true] {
            let bound = bound(true, false, only);
            let past = |edge: &Edge| bound.is_past(edge);
            let value = |value| Edge::Value(Scalar::Int(value));
            assert!(!past(&value(-5)) && !past(&Edge::Null));
            bound.lower(&row(7));
            assert!(past(&value(6)) && past(&Edge::Null));
            assert!(!past(&value(8)) && !past(&Edge::Anywhere) && !past(&Edge::Value(Scalar::Bool(true))));
            assert_eq!(past(&value(7)), only);
            // It only comes closer.
            bound.lower(&row(5));
            assert!(past(&value(6)));
            let kept = bound.select(&Vector::new(LogicalType::Int64, Values::Int64(vec![7, 6, 8])));
            assert_eq!(kept, Some(if only { vec![2] } else { vec![0, 2] }));
        }
    }

    #[test]
    fn a_null_as_the_last_row_rules_out_by_where_nulls_come() {
        let null = || {
            let mut row = Vector::new(LogicalType::Int64, Values::Int64(vec![0]));
            row.validity = Some(Bitmap::filled(1, false));
            Arc::new(row)
        };
        let (first, last) = (bound(false, true, true), bound(false, false, true));
        first.lower(&null());
        last.lower(&null());
        assert!(first.is_past(&Edge::Null) && first.is_past(&Edge::Value(Scalar::Int(1))));
        assert!(last.is_past(&Edge::Null) && !last.is_past(&Edge::Value(Scalar::Int(1))));
    }
}
