//! How far the rows of a stripe, or of a chunk, reach in the order of a table's keys, by their statistics.
//!
//! The host says of which columns the statistics are in the order that it sorts by. There are two questions.
//! `follows`: do all rows of one chunk come before those of the next? It takes bounds that no row passes.
//! `reach`: what do the rows of a stripe lie across for certain? It takes ends that some row reaches or
//! passes. So stripes that were sorted over each other never seem to overlap. NULLs, and values that
//! statistics leave out, say nothing. A column of one value, or of NULLs only, leaves both questions to the
//! next column.
//! Invariant: a hint for what to sort; an answer may be "unknown" at any time.

use std::cmp::Ordering;

use vector::{LogicalType, Result, Scalar};

use crate::reader::{StripeBytes, StripeReader};
use crate::statistics::{Bound, ColumnStatistics, above_prefix};
use crate::summary::Summary;

/// A key of the order: a column.
#[derive(Debug, Clone, Copy)]
pub struct SortColumn {
    /// Which of the table's columns.
    pub column: usize,
    /// Its type. Of a stripe that has another one there nothing is known.
    pub logical: LogicalType,
    /// Largest first.
    pub descending: bool,
    /// NULLs before every value.
    pub nulls_first: bool,
    /// The column's statistics are in the order that the host sorts by.
    pub is_known: bool,
}

/// The keys of a table, the most important first.
#[derive(Debug, Clone)]
pub struct SortOrder(Vec<SortColumn>);

/// One end of what rows lie across: a value for each of the first keys. Of those that begin so it is before
/// or behind all.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    values: Vec<Scalar>,
    side: Ordering,
}

/// The first and the last value of a key, in its order.
type Values = (Scalar, Scalar);

impl SortOrder {
    /// By these keys.
    pub const fn new(keys: Vec<SortColumn>) -> Self {
        Self(keys)
    }

    /// Whether statistics tell stripes apart by the first key.
    pub fn is_known(&self) -> bool {
        self.0.first().is_some_and(|key| key.is_known)
    }

    /// Whether the rows of each chunk of a stripe come before those of the next, by their statistics.
    ///
    /// # Errors
    /// `Corrupt` where statistics are bad.
    pub fn chunks_follow(&self, reader: &StripeReader, bytes: &dyn StripeBytes) -> Result<bool> {
        let mut before: Option<Vec<ColumnStatistics>> = None;
        for chunk in 0..reader.chunk_count() {
            let mut known = Vec::new();
            for (column, logical) in self.columns() {
                // A column that is younger than the stripe, or was of another type, is not known, nor are
                // those after it.
                if reader.logical(column) != Some(logical) {
                    return Ok(false);
                }
                known.push(reader.statistics(column, chunk, bytes)?.clone());
            }
            if before.as_ref().is_some_and(|before| !self.follows(before, &known)) {
                return Ok(false);
            }
            before = Some(known);
        }
        Ok(true)
    }

    /// What the rows of a stripe lie across, where that is known and more than a point; of the stripe its
    /// summary in the directory.
    pub fn reach(&self, summary: &[u8]) -> Result<Option<(End, End)>> {
        let summary = Summary::open(summary)?;
        let mut values = Vec::new();
        for key in self.0.iter().take_while(|key| key.is_known) {
            let Some((logical, known)) = summary.column(key.column)? else { return Ok(None) };
            if logical != key.logical {
                return Ok(None);
            }
            let Some((first, last)) = key.reached(&known) else { return Ok(None) };
            match key.compare(&first, &last) {
                Ordering::Equal if key.is_point(&known) => values.push(first),
                Ordering::Less => {
                    let end = |value, side| End { values: [&values[..], &[value]].concat(), side };
                    return Ok(Some((end(first, Ordering::Greater), end(last, Ordering::Less))));
                }
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The order of two ends.
    pub fn compare_ends(&self, a: &End, b: &End) -> Ordering {
        for ((key, x), y) in self.0.iter().zip(&a.values).zip(&b.values) {
            let order = key.compare(x, y);
            if order.is_ne() {
                return order;
            }
        }
        match a.values.len().cmp(&b.values.len()) {
            Ordering::Less => a.side,
            Ordering::Greater => b.side.reverse(),
            Ordering::Equal => a.side.cmp(&b.side),
        }
    }

    /// The columns that `follows` asks about.
    fn columns(&self) -> impl Iterator<Item = (usize, LogicalType)> + '_ {
        self.0.iter().take_while(|key| key.is_known).map(|key| (key.column, key.logical))
    }

    /// Whether no row of one chunk comes behind a row of the next. Of both the statistics of the columns that
    /// `columns` names.
    fn follows(&self, before: &[ColumnStatistics], behind: &[ColumnStatistics]) -> bool {
        for ((key, before), behind) in self.0.iter().zip(before).zip(behind) {
            let (Some((_, last)), Some((first, _))) = (key.bounds(before), key.bounds(behind)) else {
                return false;
            };
            match key.compare(&last, &first) {
                Ordering::Less => return true,
                Ordering::Equal => {}
                Ordering::Greater => return false,
            }
        }
        // The same values up to a key that statistics know nothing of.
        self.0.iter().all(|key| key.is_known)
    }
}

impl SortColumn {
    fn compare(&self, a: &Scalar, b: &Scalar) -> Ordering {
        let null_first = if self.nulls_first { Ordering::Less } else { Ordering::Greater };
        match (a.is_null(), b.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => null_first,
            (false, true) => null_first.reverse(),
            (false, false) => {
                let order = a.compare(b).unwrap_or(Ordering::Equal);
                if self.descending { order.reverse() } else { order }
            }
        }
    }

    fn in_order(&self, least: Scalar, greatest: Scalar) -> Values {
        if self.descending { (greatest, least) } else { (least, greatest) }
    }

    /// Values that no row comes before or behind.
    fn bounds(&self, known: &ColumnStatistics) -> Option<Values> {
        if known.value_count() == 0 {
            return Some((Scalar::Null, Scalar::Null));
        }
        if known.side_rows > 0 {
            return None;
        }
        let (least, greatest) = (known.min.as_ref()?, known.max.as_ref()?);
        let (first, last) = self.in_order(least.value.clone(), greatest.value.clone());
        Some(match (known.null_count > 0, self.nulls_first) {
            (false, _) => (first, last),
            (true, true) => (Scalar::Null, last),
            (true, false) => (first, Scalar::Null),
        })
    }

    /// Values that some row comes before or has, and behind or has.
    fn reached(&self, known: &ColumnStatistics) -> Option<Values> {
        if known.value_count() == 0 {
            return Some((Scalar::Null, Scalar::Null));
        }
        let (least, greatest) = (known.min.as_ref()?, known.max.as_ref()?);
        Some(self.in_order(at_most(least)?, at_least(greatest)?))
    }

    /// Whether all rows have one value, or NULL.
    fn is_point(&self, known: &ColumnStatistics) -> bool {
        known.value_count() == 0 || (known.null_count == 0 && known.only_value().is_some())
    }
}

/// A value that the least one is not above.
fn at_most(least: &Bound) -> Option<Scalar> {
    match &least.value {
        value if least.exact => Some(value.clone()),
        // What is cut begins with these bytes.
        Scalar::Bytes(cut) => above_prefix(cut).map(Scalar::Bytes),
        _ => None,
    }
}

/// A value that the greatest one is not below.
fn at_least(greatest: &Bound) -> Option<Scalar> {
    match &greatest.value {
        value if greatest.exact => Some(value.clone()),
        // The last of its first bytes was made one more.
        Scalar::Bytes(cut) => {
            let mut below = cut.to_vec();
            let last = below.last_mut()?;
            *last = last.checked_sub(1)?;
            Some(Scalar::Bytes(below.into()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packing::overlapping::{are_apart, ranked};
    use crate::summary::write_summary;

    fn key(descending: bool, nulls_first: bool, is_known: bool) -> SortColumn {
        SortColumn { column: 0, logical: LogicalType::Int64, descending, nulls_first, is_known }
    }

    fn ints(rows: &[Option<i64>]) -> ColumnStatistics {
        let values = || rows.iter().flatten();
        let bound =
            |value: Option<&i64>| value.map(|value| Bound { value: Scalar::Int(*value), exact: true });
        let nulls = rows.iter().filter(|row| row.is_none()).count();
        ColumnStatistics {
            min: bound(values().min()),
            max: bound(values().max()),
            ..ColumnStatistics::unknown(rows.len() as u32, nulls as u32)
        }
    }

    #[test]
    fn chunks_follow_each_other() {
        let (a, b, null) = (ints(&[Some(1), Some(5)]), ints(&[Some(5), Some(9)]), ints(&[None, None]));
        let some_null = ints(&[Some(1), None]);
        let up = SortOrder::new(vec![key(false, false, true)]);
        let one = std::slice::from_ref;
        assert!(up.follows(one(&a), one(&b)) && !up.follows(one(&b), one(&a)));
        assert!(up.follows(one(&a), one(&null)) && up.follows(one(&null), one(&null)));
        assert!(up.follows(one(&some_null), one(&null)) && !up.follows(one(&some_null), one(&b)));
        let down = SortOrder::new(vec![key(true, true, true)]);
        assert!(down.follows(one(&b), one(&a)) && !down.follows(one(&a), one(&b)));
        assert!(down.follows(one(&null), one(&some_null)) && !down.follows(one(&b), one(&some_null)));
        // What has one value in common is told by the next key, if that is known.
        let two = SortOrder::new(vec![key(false, false, true), key(true, true, true)]);
        assert!(!two.follows(&[a.clone(), a.clone()], &[b.clone(), b.clone()]));
        assert!(two.follows(&[a.clone(), b.clone()], &[b.clone(), a.clone()]));
        let unknown = SortOrder::new(vec![key(false, false, true), key(false, false, false)]);
        assert!(!unknown.follows(one(&a), one(&b)));
        assert!(unknown.follows(one(&a), one(&ints(&[Some(6)]))));
    }

    #[test]
    fn ends_are_in_order() {
        let two = SortOrder::new(vec![key(false, false, true), key(true, true, true)]);
        let end =
            |values: &[i64], side| End { values: values.iter().map(|v| Scalar::Int(*v)).collect(), side };
        let (before, behind) = (Ordering::Less, Ordering::Greater);
        let sorted = [
            end(&[1], before),
            end(&[1, 9], before),
            end(&[1, 9], behind),
            end(&[1, 2], before),
            end(&[1], behind),
            end(&[2], before),
        ];
        for (at, a) in sorted.iter().enumerate() {
            for (other, b) in sorted.iter().enumerate() {
                assert_eq!(two.compare_ends(a, b), at.cmp(&other));
            }
        }
    }

    #[test]
    fn bounds_that_are_cut() {
        let bound = |bytes: &[u8]| Bound { value: Scalar::Bytes(bytes.into()), exact: false };
        let text = |bytes: &[u8]| Some(Scalar::Bytes(bytes.into()));
        assert_eq!(at_most(&bound(b"ab\xff")), text(b"ac"));
        assert_eq!(at_most(&bound(b"\xff")), None);
        assert_eq!(at_least(&bound(b"abd")), text(b"abc"));
    }

    /// The columns of a stripe, in the directory.
    fn summary(columns: &[ColumnStatistics]) -> Vec<u8> {
        let columns: Vec<_> = columns.iter().map(|known| (LogicalType::Int64, known.clone())).collect();
        write_summary(columns.first().map_or(0, |(_, known)| known.rows), &columns).unwrap()
    }

    fn two_keys() -> SortOrder {
        SortOrder::new(vec![key(false, false, true), SortColumn { column: 1, ..key(true, true, true) }])
    }

    #[test]
    fn stripes_reach_from_their_first_value_to_their_last() {
        let reach = |order: &SortOrder, columns: &[ColumnStatistics]| {
            let found = order.reach(&summary(columns)).unwrap();
            found.map(|(first, last)| (first.values, last.values))
        };
        let values = |values: &[i64]| values.iter().map(|value| Scalar::Int(*value)).collect::<Vec<_>>();
        let up = SortOrder::new(vec![key(false, false, true)]);
        let down = SortOrder::new(vec![key(true, true, true)]);
        let some = [ints(&[Some(1), Some(5)])];
        assert_eq!(reach(&up, &some), Some((values(&[1]), values(&[5]))));
        assert_eq!(reach(&down, &some), Some((values(&[5]), values(&[1]))));
        // A point is left to the next key.
        let point = [ints(&[Some(7), Some(7)]), ints(&[Some(1), Some(5)])];
        assert_eq!(reach(&up, &point), None);
        assert_eq!(reach(&two_keys(), &point), Some((values(&[7, 5]), values(&[7, 1]))));
        // NULLs beside values say nothing, a column that is not there or of another type neither.
        assert_eq!(reach(&two_keys(), &[ints(&[Some(7), None]), ints(&[Some(1), Some(5)])]), None);
        assert_eq!(reach(&two_keys(), &point[..1]), None);
        let other = SortColumn { logical: LogicalType::Int32, ..key(false, false, true) };
        assert_eq!(reach(&SortOrder::new(vec![other]), &some), None);
        assert_eq!(reach(&SortOrder::new(vec![key(false, false, false)]), &some), None);
        assert!(up.reach(b"no summary").is_err());
    }

    /// Rows that were sorted and cut into stripes never seem to overlap, equal ones and NULLs included.
    #[test]
    fn what_was_sorted_does_not_overlap() {
        let mut seed = 1_u64;
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let order = two_keys();
        for different in [2, 5, 300] {
            let mut value = || (random(8) > 0).then(|| random(different) as i64);
            let mut rows: Vec<[Option<i64>; 2]> = (0..600).map(|_| [value(), value()]).collect();
            let scalar = |value: Option<i64>| value.map_or(Scalar::Null, Scalar::Int);
            rows.sort_by(|a, b| {
                let keys = order.0.iter().zip(a).zip(b);
                let orders = keys.map(|((key, a), b)| key.compare(&scalar(*a), &scalar(*b)));
                orders.fold(Ordering::Equal, Ordering::then)
            });
            let reaches = |rows: &[[Option<i64>; 2]]| {
                let of = |rows: &[[Option<i64>; 2]]| {
                    let column = |at: usize| ints(&rows.iter().map(|row| row[at]).collect::<Vec<_>>());
                    order.reach(&summary(&[column(0), column(1)])).unwrap()
                };
                let found: Vec<_> = rows.chunks(20).map(of).collect();
                ranked(&found, |a, b| order.compare_ends(a, b))
            };
            assert!(are_apart(&reaches(&rows)));
            rows.sort_by_key(|row| row[0].unwrap_or(-1) % 7);
            assert!(different < 300 || !are_apart(&reaches(&rows)));
        }
    }
}
