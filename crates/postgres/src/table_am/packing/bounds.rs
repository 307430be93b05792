//! How far the rows of a stripe, or of a chunk, reach in the order of `orderby`, by their statistics.
//!
//! Of columns whose statistics are in the order that the server sorts by: numbers, days, times, booleans,
//! uuids, and text that is compared by its bytes. There are two questions. `follows`: do all rows of one
//! chunk come before those of the next? It takes bounds that no row passes. `ranges`: what do rows of a
//! stripe lie across for certain? It takes ends that some row reaches or passes, so that stripes that were
//! sorted over each other never seem to overlap; NULLs and values that statistics leave out say nothing. A
//! column of one value, or of NULLs only, leaves both questions to the next one. Invariant: a hint for what
//! to sort; an answer may be "unknown" at any time.

use std::cmp::Ordering;

use pgrx::pg_sys;
use stripe::{Bound, ColumnStatistics, Summary};
use vector::{LogicalType, Scalar};

use crate::convert::ColumnType;
use crate::host::collation::lc_collate_is_c;
use crate::host::error;
use crate::host::relation::Open;
use crate::options::SortKey;
use crate::storage::directory::StripeEntry;

/// A key and its column.
struct Key {
    key: SortKey,
    column: usize,
    logical: LogicalType,
    /// The column's statistics are in the server's order.
    is_known: bool,
}

/// The keys of a table.
pub(super) struct Bounds(Vec<Key>);

/// One end of what rows lie across: a value for each of the first keys. Of those that begin so it is before
/// or behind all.
struct End {
    values: Vec<Scalar>,
    side: Ordering,
}

/// The first and the last value of a key, in its order.
type Reach = (Scalar, Scalar);

impl Bounds {
    pub fn of(rel: Open, keys: &[SortKey]) -> Self {
        let key = |key: &SortKey| {
            let column = usize::try_from(key.attnum).ok()?.checked_sub(1)?;
            // SAFETY: a question to the catalogs about a collation.
            unsafe {
                let attribute = rel.columns().get(column)?;
                let ColumnType { logical, type_oid, .. } = ColumnType::of(attribute);
                let is_known = match logical {
                    LogicalType::Text => {
                        type_oid != pg_sys::BPCHAROID && lc_collate_is_c(attribute.attcollation)
                    }
                    LogicalType::FixedBytes(_) | LogicalType::Bytes => false,
                    _ => true,
                };
                Some(Key { key: *key, column, logical, is_known })
            }
        };
        Self(keys.iter().map_while(key).collect())
    }

    /// Whether statistics tell stripes apart by the first key.
    pub fn are_known(&self) -> bool {
        self.0.first().is_some_and(|key| key.is_known)
    }

    /// What the rows of each stripe lie across, where that is known and more than a point, as numbers that
    /// are in the order of the ends.
    pub fn ranges(&self, rel: Open, stripes: &[&StripeEntry]) -> Vec<Option<(i64, i64)>> {
        let found: Vec<Option<(End, End)>> = stripes.iter().map(|entry| self.range(rel, entry)).collect();
        ranked(&found, |a, b| self.compare_ends(a, b))
    }

    fn range(&self, rel: Open, entry: &StripeEntry) -> Option<(End, End)> {
        let summary = match Summary::open(&entry.summary) {
            Ok(summary) => summary,
            Err(problem) => error::raise_stripe(rel, entry.first_row, problem),
        };
        let mut values = Vec::new();
        for key in self.0.iter().take_while(|key| key.is_known) {
            let (logical, known) = match summary.column(key.column) {
                Ok(found) => found?,
                Err(problem) => error::raise_stripe(rel, entry.first_row, problem),
            };
            if logical != key.logical {
                return None;
            }
            let (first, last) = key.reached(&known)?;
            match key.compare(&first, &last) {
                Ordering::Equal if key.is_point(&known) => values.push(first),
                Ordering::Less => {
                    let end = |value, side| End { values: [&values[..], &[value]].concat(), side };
                    return Some((end(first, Ordering::Greater), end(last, Ordering::Less)));
                }
                _ => return None,
            }
        }
        None
    }

    fn compare_ends(&self, a: &End, b: &End) -> Ordering {
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
    pub fn columns(&self) -> impl Iterator<Item = (usize, LogicalType)> + '_ {
        self.0.iter().take_while(|key| key.is_known).map(|key| (key.column, key.logical))
    }

    /// Whether no row of one chunk comes behind a row of the next. Of both the statistics of the columns that
    /// `columns` names.
    pub fn follows(&self, before: &[ColumnStatistics], behind: &[ColumnStatistics]) -> bool {
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

/// The places of ranges' ends among all of them.
pub(super) fn ranked<T>(
    ranges: &[Option<(T, T)>],
    mut compare: impl FnMut(&T, &T) -> Ordering,
) -> Vec<Option<(i64, i64)>> {
    let mut ends: Vec<&T> = ranges.iter().flatten().flat_map(|(first, last)| [first, last]).collect();
    ends.sort_by(|a, b| compare(a, b));
    ends.dedup_by(|a, b| compare(a, b).is_eq());
    let mut rank = |end: &T| {
        let before = ends.partition_point(|other| compare(other, end).is_lt());
        i64::try_from(before).unwrap_or(i64::MAX)
    };
    ranges.iter().map(|range| range.as_ref().map(|(first, last)| (rank(first), rank(last)))).collect()
}

impl Key {
    fn compare(&self, a: &Scalar, b: &Scalar) -> Ordering {
        let null_first = if self.key.nulls_first { Ordering::Less } else { Ordering::Greater };
        match (a.is_null(), b.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => null_first,
            (false, true) => null_first.reverse(),
            (false, false) => {
                let order = a.compare(b).unwrap_or(Ordering::Equal);
                if self.key.descending { order.reverse() } else { order }
            }
        }
    }

    fn in_order(&self, least: Scalar, greatest: Scalar) -> Reach {
        if self.key.descending { (greatest, least) } else { (least, greatest) }
    }

    /// Values that no row comes before or behind.
    fn bounds(&self, known: &ColumnStatistics) -> Option<Reach> {
        if known.value_count() == 0 {
            return Some((Scalar::Null, Scalar::Null));
        }
        if known.side_rows > 0 {
            return None;
        }
        let (least, greatest) = (known.min.as_ref()?, known.max.as_ref()?);
        let (first, last) = self.in_order(least.value.clone(), greatest.value.clone());
        Some(match (known.null_count > 0, self.key.nulls_first) {
            (false, _) => (first, last),
            (true, true) => (Scalar::Null, last),
            (true, false) => (first, Scalar::Null),
        })
    }

    /// Values that some row comes before or has, and behind or has.
    fn reached(&self, known: &ColumnStatistics) -> Option<Reach> {
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
        Scalar::Bytes(cut) => {
            let mut above = cut.to_vec();
            while above.last() == Some(&0xff) {
                above.pop();
            }
            *above.last_mut()? += 1;
            Some(Scalar::Bytes(above.into()))
        }
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

    fn key(descending: bool, nulls_first: bool, is_known: bool) -> Key {
        let key = SortKey { attnum: 1, descending, nulls_first };
        Key { key, column: 0, logical: LogicalType::Int64, is_known }
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
        let up = Bounds(vec![key(false, false, true)]);
        let one = std::slice::from_ref;
        assert!(up.follows(one(&a), one(&b)) && !up.follows(one(&b), one(&a)));
        assert!(up.follows(one(&a), one(&null)) && up.follows(one(&null), one(&null)));
        assert!(up.follows(one(&some_null), one(&null)) && !up.follows(one(&some_null), one(&b)));
        let down = Bounds(vec![key(true, true, true)]);
        assert!(down.follows(one(&b), one(&a)) && !down.follows(one(&a), one(&b)));
        assert!(down.follows(one(&null), one(&some_null)) && !down.follows(one(&b), one(&some_null)));
        // What has one value in common is told by the next key, if that is known.
        let two = Bounds(vec![key(false, false, true), key(true, true, true)]);
        assert!(!two.follows(&[a.clone(), a.clone()], &[b.clone(), b.clone()]));
        assert!(two.follows(&[a.clone(), b.clone()], &[b.clone(), a.clone()]));
        let unknown = Bounds(vec![key(false, false, true), key(false, false, false)]);
        assert!(!unknown.follows(one(&a), one(&b)));
        assert!(unknown.follows(one(&a), one(&ints(&[Some(6)]))));
    }

    #[test]
    fn ends_are_in_order() {
        let two = Bounds(vec![key(false, false, true), key(true, true, true)]);
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
}
