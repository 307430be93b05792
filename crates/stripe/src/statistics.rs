//! What is known of a column's values without reading them: for each column chunk, for the stripe and,
//! shortened, in the directory.
//!
//! Owns the type, its bytes, and how two statistics are merged. `collect` makes them, and `prune` and hosts
//! read them. The bytes are a flag byte and then the parts that the flags announce, in the order of the
//! `HAS_*` constants.
//!
//! Invariant: a bound that is not exact is never tighter than the values. No value is below such a lower
//! bound or above such an upper bound. So pruning by it is safe.

use std::cmp::Ordering;

use encodings::cursor::Reader;
use vector::{Error, LogicalType, Result, Scalar};

use crate::cursor::{Put, ReadMore};

/// Text bounds in a stripe are cut to this many bytes.
pub const BOUND_BYTES: usize = 64;
/// Text bounds in the directory's summary are cut to this many bytes.
pub const SUMMARY_BOUND_BYTES: usize = 16;

const HAS_NULLS: u8 = 1;
const HAS_MIN: u8 = 1 << 1;
const HAS_MAX: u8 = 1 << 2;
const MIN_INEXACT: u8 = 1 << 3;
const MAX_INEXACT: u8 = 1 << 4;
const HAS_SUM: u8 = 1 << 5;
const HAS_SIDE: u8 = 1 << 6;
const HAS_DISTINCT: u8 = 1 << 7;

/// One end of the range of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The value of the bound. If `exact` is false, it may be farther out than all values.
    pub value: Scalar,
    /// True when a row has exactly this value (so that it answers MIN or MAX).
    pub exact: bool,
}

/// How many digits after the point decimals show, and the scale of their unscaled integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scales {
    /// Scale of `sum` and of the bounds.
    pub common: u16,
    /// Fewest digits a value shows.
    pub display_min: u16,
    /// Most digits a value shows: the display scale of the sum.
    pub display_max: u16,
}

/// Statistics of some rows of one column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnStatistics {
    /// Rows they describe.
    pub rows: u32,
    /// Rows that are NULL.
    pub null_count: u32,
    /// Decimals in the side lane (NaN, infinities, huge ones): not NULL, in neither bounds nor sum.
    pub side_rows: u32,
    /// Smallest value under the type's own order. `None`: unknown, or no value.
    pub min: Option<Bound>,
    /// Largest value. `None`: unknown (may be above any bound), or no value.
    pub max: Option<Bound>,
    /// Sum of integers, or of the unscaled integers of decimals. Number of TRUE for booleans. `None` if it
    /// would not be exact.
    pub sum: Option<i128>,
    /// Scales of decimals. `None` for other types, and if there is no value.
    pub scales: Option<Scales>,
    /// Estimated number of distinct values that are not NULL.
    pub distinct: Option<u32>,
}

impl ColumnStatistics {
    /// Statistics that say only how many of `rows` rows are NULL.
    pub const fn unknown(rows: u32, null_count: u32) -> Self {
        Self { rows, null_count, side_rows: 0, min: None, max: None, sum: None, scales: None, distinct: None }
    }

    /// Rows whose value is not NULL.
    pub const fn value_count(&self) -> u32 {
        self.rows.saturating_sub(self.null_count)
    }

    /// The one value that all rows have which are not NULL, if the bounds prove it.
    pub fn only_value(&self) -> Option<&Scalar> {
        let (min, max) = (self.min.as_ref()?, self.max.as_ref()?);
        let equal = min.exact && max.exact && min.value.compare(&max.value) == Some(Ordering::Equal);
        (equal && self.side_rows == 0).then_some(&min.value)
    }

    /// The statistics of these rows and `other`'s together. The distinct estimate is left to the caller.
    pub fn merge(&mut self, other: &Self) {
        let (had, has) = (self.has_plain_values(), other.has_plain_values());
        self.scales = match (self.scales, other.scales) {
            (Some(a), Some(b)) if a.common == b.common => Some(Scales {
                common: a.common,
                display_min: a.display_min.min(b.display_min),
                display_max: a.display_max.max(b.display_max),
            }),
            (Some(_), Some(_)) => None,
            (a, b) => a.or(b),
        };
        let scales_lost = self.scales.is_none() && had && has && other.scales.is_some();
        self.sum = match (self.sum, other.sum) {
            (Some(a), Some(b)) if !scales_lost => a.checked_add(b),
            _ => None,
        };
        if !had {
            (self.min, self.max) = (other.min.clone(), other.max.clone());
        } else if has {
            self.min = outer(self.min.take(), &other.min, Ordering::Greater);
            self.max = outer(self.max.take(), &other.max, Ordering::Less);
        }
        self.rows = self.rows.saturating_add(other.rows);
        self.null_count = self.null_count.saturating_add(other.null_count);
        self.side_rows = self.side_rows.saturating_add(other.side_rows);
        self.distinct = None;
    }

    /// Whether there are rows for the bounds and the sum.
    const fn has_plain_values(&self) -> bool {
        self.value_count() > self.side_rows
    }

    /// The same with text bounds cut to `limit` bytes.
    #[must_use]
    pub fn shortened(mut self, limit: usize) -> Self {
        self.min = self.min.map(|bound| shorten_min(bound, limit));
        self.max = self.max.and_then(|bound| shorten_max(bound, limit));
        self
    }

    /// Appends the bytes. The caller stores `rows` and the type.
    pub fn write(&self, logical: LogicalType, out: &mut Vec<u8>) {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let inexact = |bound: &Option<Bound>| bound.as_ref().is_some_and(|bound| !bound.exact);
        out.push(
            flag(self.null_count > 0, HAS_NULLS)
                | flag(self.min.is_some(), HAS_MIN)
                | flag(self.max.is_some(), HAS_MAX)
                | flag(inexact(&self.min), MIN_INEXACT)
                | flag(inexact(&self.max), MAX_INEXACT)
                | flag(self.sum.is_some(), HAS_SUM)
                | flag(self.side_rows > 0, HAS_SIDE)
                | flag(self.distinct.is_some(), HAS_DISTINCT),
        );
        if logical == LogicalType::Numeric {
            // The scale is stored plus one, so that zero can say "no value, no scale".
            match self.scales {
                None => out.put_varint(0),
                Some(scales) => {
                    out.put_varint(u128::from(scales.common) + 1);
                    out.put_varint(u128::from(scales.display_min));
                    out.put_varint(u128::from(scales.display_max));
                }
            }
        }
        if self.null_count > 0 {
            out.put_varint(u128::from(self.null_count));
        }
        for bound in [&self.min, &self.max].into_iter().flatten() {
            write_scalar(&bound.value, logical, out);
        }
        if let Some(sum) = self.sum {
            out.put_signed(sum);
        }
        if self.side_rows > 0 {
            out.put_varint(u128::from(self.side_rows));
        }
        if let Some(distinct) = self.distinct {
            out.put_varint(u128::from(distinct));
        }
    }

    /// Reads what `write` wrote about `rows` rows.
    pub fn read(logical: LogicalType, rows: u32, cursor: &mut Reader<'_>) -> Result<Self> {
        let flags = cursor.u8()?;
        let has = |bit: u8| flags & bit != 0;
        let scales = match logical {
            LogicalType::Numeric => match cursor.varint()? {
                0 => None,
                shifted => Some(Scales {
                    common: u16::try_from(shifted - 1)
                        .map_err(|_| Error::corrupt("decimal scale past 16 bits"))?,
                    display_min: cursor.varint16()?,
                    display_max: cursor.varint16()?,
                }),
            },
            _ => None,
        };
        let null_count = if has(HAS_NULLS) { cursor.varint32()? } else { 0 };
        let mut bound = |present: u8, inexact: u8| -> Result<Option<Bound>> {
            if !has(present) {
                return Ok(None);
            }
            let value = read_scalar(logical, scales, cursor)?;
            Ok(Some(Bound { value, exact: !has(inexact) }))
        };
        let min = bound(HAS_MIN, MIN_INEXACT)?;
        let max = bound(HAS_MAX, MAX_INEXACT)?;
        let sum = if has(HAS_SUM) { Some(cursor.signed()?) } else { None };
        let side_rows = if has(HAS_SIDE) { cursor.varint32()? } else { 0 };
        let distinct = if has(HAS_DISTINCT) { Some(cursor.varint32()?) } else { None };
        if u64::from(null_count) + u64::from(side_rows) > u64::from(rows) {
            return Err(Error::corrupt(format!(
                "statistics count {null_count} NULLs and {side_rows} side values in {rows} rows"
            )));
        }
        Ok(Self { rows, null_count, side_rows, min, max, sum, scales, distinct })
    }
}

/// The bound that is farther out. `inner_if` is how a bound compares with one that is farther out. If both
/// are equal, the exact one is taken, because a row has that value.
fn outer(a: Option<Bound>, b: &Option<Bound>, inner_if: Ordering) -> Option<Bound> {
    let (a, b) = (a?, b.as_ref()?);
    match a.value.compare(&b.value)? {
        Ordering::Equal => Some(Bound { exact: a.exact || b.exact, ..a }),
        order if order == inner_if => Some(b.clone()),
        _ => Some(a),
    }
}

fn shorten_min(bound: Bound, limit: usize) -> Bound {
    match &bound.value {
        Scalar::Bytes(bytes) if bytes.len() > limit => {
            let cut = bytes.get(..limit).unwrap_or(bytes);
            Bound { value: Scalar::Bytes(cut.into()), exact: false }
        }
        _ => bound,
    }
}

/// A cut upper bound is the smallest shorter string above it. None if there is none.
fn shorten_max(bound: Bound, limit: usize) -> Option<Bound> {
    let Scalar::Bytes(bytes) = &bound.value else { return Some(bound) };
    if bytes.len() <= limit {
        return Some(bound);
    }
    let above = above_prefix(bytes.get(..limit).unwrap_or(bytes))?;
    Some(Bound { value: Scalar::Bytes(above), exact: false })
}

/// The smallest string of at most this length that is above all strings with this prefix. None if there is
/// none.
pub fn above_prefix(prefix: &[u8]) -> Option<Box<[u8]>> {
    let mut above = prefix.to_vec();
    while above.last() == Some(&0xff) {
        above.pop();
    }
    *above.last_mut()? += 1;
    Some(above.into_boxed_slice())
}

fn write_scalar(value: &Scalar, logical: LogicalType, out: &mut Vec<u8>) {
    match value {
        Scalar::Null => {}
        Scalar::Bool(value) => out.push(u8::from(*value)),
        Scalar::Int(value) => out.put_signed(i128::from(*value)),
        // Statistics of single floats hold widened singles, so narrowing gives the same value back.
        #[allow(clippy::cast_possible_truncation)]
        Scalar::Float(value) if logical == LogicalType::Float32 => {
            out.extend_from_slice(&(*value as f32).to_le_bytes());
        }
        Scalar::Float(value) => out.extend_from_slice(&value.to_le_bytes()),
        Scalar::Numeric { unscaled, .. } => out.put_signed(*unscaled),
        Scalar::Bytes(bytes) => out.put_sized(bytes),
    }
}

fn read_scalar(logical: LogicalType, scales: Option<Scales>, cursor: &mut Reader<'_>) -> Result<Scalar> {
    Ok(match logical {
        LogicalType::Bool => match cursor.u8()? {
            0 => Scalar::Bool(false),
            1 => Scalar::Bool(true),
            other => return Err(Error::corrupt(format!("boolean bound {other}"))),
        },
        LogicalType::Int16
        | LogicalType::Int32
        | LogicalType::Int64
        | LogicalType::Date
        | LogicalType::Timestamp
        | LogicalType::UInt64 => Scalar::Int(
            i64::try_from(cursor.signed()?).map_err(|_| Error::corrupt("integer bound past 64 bits"))?,
        ),
        LogicalType::Float32 => Scalar::Float(f64::from(f32::from_le_bytes(cursor.array()?))),
        LogicalType::Float64 => Scalar::Float(f64::from_le_bytes(cursor.array()?)),
        LogicalType::Numeric => {
            let Some(scales) = scales else { return Err(Error::corrupt("decimal bound without a scale")) };
            Scalar::Numeric { unscaled: cursor.signed()?, scale: scales.common }
        }
        LogicalType::Uuid | LogicalType::Text | LogicalType::FixedBytes(_) | LogicalType::Bytes => {
            Scalar::Bytes(cursor.sized()?.into())
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn text(value: &[u8], exact: bool) -> Option<Bound> {
        Some(Bound { value: Scalar::Bytes(value.into()), exact })
    }

    #[test]
    fn cut_upper_bounds_stay_above() {
        let max = |bytes: &[u8]| shorten_max(text(bytes, true).unwrap(), 3);
        assert_eq!(max(b"abc"), text(b"abc", true));
        assert_eq!(max(b"abcd"), text(b"abd", false));
        assert_eq!(max(b"ab\xffd"), text(b"ac", false));
        assert_eq!(max(b"\xff\xff\xff\x00"), None);
        assert_eq!(max(b"\xff\xff\xff"), text(b"\xff\xff\xff", true));
    }

    #[test]
    fn merging_keeps_the_outer_bound_and_prefers_exact_ties() {
        let stats = |min, max| ColumnStatistics { min, max, ..ColumnStatistics::unknown(5, 0) };
        let mut a = stats(text(b"b", false), text(b"m", true));
        a.merge(&stats(text(b"b", true), text(b"n", false)));
        assert_eq!((a.min.clone(), a.max.clone()), (text(b"b", true), text(b"n", false)));
        a.merge(&stats(text(b"c", true), None));
        assert_eq!((a.min, a.max), (text(b"b", true), None));
    }

    #[test]
    fn merging_with_rows_of_nulls_changes_no_bound() {
        let nulls = ColumnStatistics { sum: Some(0), ..ColumnStatistics::unknown(4, 4) };
        let ints = ColumnStatistics {
            min: Some(Bound { value: Scalar::Int(3), exact: true }),
            max: Some(Bound { value: Scalar::Int(9), exact: true }),
            sum: Some(12),
            ..ColumnStatistics::unknown(2, 0)
        };
        let mut a = nulls.clone();
        a.merge(&ints);
        assert_eq!((&a.min, &a.max, a.sum, a.rows, a.null_count), (&ints.min, &ints.max, Some(12), 6, 4));
        let mut b = ints.clone();
        b.merge(&nulls);
        assert_eq!(a, b);
    }
}
