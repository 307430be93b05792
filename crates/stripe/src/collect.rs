//! Statistics of rows in memory, in one pass over a flat vector for each chunk. Called by the writer, and by
//! hosts that want to know the range of rows which are not stored yet.

use std::ops::Range;

use vector::{
    Bitmap, ByteViews, DisplayScales, Error, FixedBytes, INLINE_BYTES, LogicalType, NumericInts,
    NumericValues, Result, Scalar, Values, Vector, compare_floats,
};

use crate::distinct::{Sketch, hash_bytes, hash_float, hash_int, hash_wide};
use crate::statistics::{BOUND_BYTES, Bound, ColumnStatistics, Scales};

/// Statistics of rows `rows` of a flat vector. Every value's hash goes into `sketch`.
pub fn collect(vector: &Vector, rows: Range<usize>, sketch: &mut Sketch) -> Result<ColumnStatistics> {
    let logical = vector.logical;
    let validity = vector.validity.as_ref();
    let null_count =
        validity.map_or(0, |validity| rows.len() - validity.slice(rows.start, rows.len()).count_ones());
    let unknown = ColumnStatistics::unknown(count(rows.len())?, count(null_count)?);
    // Without NULLs the loops below run over plain slices and vectorise.
    let valid = validity.filter(|_| null_count > 0);
    let mut statistics = match &vector.values {
        Values::Bool(bits) => collect_bools(bits, rows, valid, unknown, sketch),
        Values::Int16(values) => {
            collect_ints(logical, cut(values, &rows), rows.start, valid, unknown, sketch)
        }
        Values::Int32(values) => {
            collect_ints(logical, cut(values, &rows), rows.start, valid, unknown, sketch)
        }
        Values::Int64(values) => {
            collect_ints(logical, cut(values, &rows), rows.start, valid, unknown, sketch)
        }
        Values::Float32(values) => {
            let values = cut(values, &rows).iter().map(|&value| f64::from(value));
            collect_floats(values, rows.start, valid, unknown, sketch)
        }
        Values::Float64(values) => {
            collect_floats(cut(values, &rows).iter().copied(), rows.start, valid, unknown, sketch)
        }
        Values::Fixed(fixed) => collect_fixed(logical, fixed, rows, valid, unknown, sketch),
        Values::Bytes(views) => collect_views(logical, views, rows, valid, unknown, sketch),
        Values::Numeric(numeric) => collect_numeric(numeric, rows, valid, unknown, sketch)?,
        Values::Constant(..) | Values::Dictionary { .. } | Values::Runs { .. } => {
            return Err(Error::InvalidInput("statistics are collected from flat vectors".into()));
        }
    };
    statistics.distinct = None;
    Ok(statistics.shortened(BOUND_BYTES))
}

/// Hashes of the rows that are not NULL, as bloom filters keep them. Empty for types without a filter.
pub fn bloom_hashes(vector: &Vector, rows: Range<usize>) -> Vec<u64> {
    let valid = rows.clone().filter(|&row| vector.is_valid(row));
    match &vector.values {
        Values::Int16(values) => {
            valid.filter_map(|r| values.get(r)).map(|&v| hash_int(i64::from(v))).collect()
        }
        Values::Int32(values) => {
            valid.filter_map(|r| values.get(r)).map(|&v| hash_int(i64::from(v))).collect()
        }
        Values::Int64(values) => valid.filter_map(|r| values.get(r)).map(|&v| hash_int(v)).collect(),
        Values::Fixed(values) => valid.map(|row| hash_bytes(values.get(row))).collect(),
        Values::Bytes(values) => valid.map(|row| hash_bytes(values.get(row))).collect(),
        _ => Vec::new(),
    }
}

fn count(rows: usize) -> Result<u32> {
    u32::try_from(rows).map_err(|_| Error::InvalidInput(format!("{rows} rows in one stripe")))
}

fn cut<'a, T>(values: &'a [T], rows: &Range<usize>) -> &'a [T] {
    values.get(rows.clone()).unwrap_or(&[])
}

fn is_valid(valid: Option<&Bitmap>, row: usize) -> bool {
    valid.is_none_or(|valid| valid.get(row))
}

fn exact(value: Scalar) -> Option<Bound> {
    Some(Bound { value, exact: true })
}

fn collect_bools(
    bits: &Bitmap,
    rows: Range<usize>,
    valid: Option<&Bitmap>,
    mut statistics: ColumnStatistics,
    sketch: &mut Sketch,
) -> ColumnStatistics {
    let ones = rows.filter(|&row| bits.get(row) && is_valid(valid, row)).count();
    let values = statistics.value_count() as usize;
    if values > 0 {
        statistics.min = exact(Scalar::Bool(ones == values));
        statistics.max = exact(Scalar::Bool(ones > 0));
    }
    if ones > 0 {
        sketch.add(hash_int(1));
    }
    if ones < values {
        sketch.add(hash_int(0));
    }
    statistics.sum = i128::try_from(ones).ok();
    statistics
}

/// An integer of any width held in vectors.
trait Integer: Copy + Ord {
    const LEAST: Self;
    const GREATEST: Self;
    fn widen(self) -> i64;
}

macro_rules! integer {
    ($($type:ty),*) => {$(
        impl Integer for $type {
            const LEAST: Self = Self::MIN;
            const GREATEST: Self = Self::MAX;
            #[inline]
            fn widen(self) -> i64 {
                self.into()
            }
        }
    )*};
}
integer!(i16, i32, i64);

fn collect_ints<T: Integer>(
    logical: LogicalType,
    values: &[T],
    start: usize,
    valid: Option<&Bitmap>,
    mut statistics: ColumnStatistics,
    sketch: &mut Sketch,
) -> ColumnStatistics {
    let (min, max, sum) = range_and_sum(values, start, valid);
    // Runs of equal values (sorted keys, flags) need one hash each.
    let mut last = None;
    for (row, &value) in (start..).zip(values) {
        if last != Some(value) && is_valid(valid, row) {
            last = Some(value);
            sketch.add(hash_int(value.widen()));
        }
    }
    if statistics.value_count() > 0 {
        statistics.min = exact(Scalar::Int(min.widen()));
        statistics.max = exact(Scalar::Int(max.widen()));
    }
    statistics.sum = match logical {
        LogicalType::Int16 | LogicalType::Int32 | LogicalType::Int64 => Some(sum),
        // Each is held less 2^63.
        LogicalType::UInt64 => Some(sum + (i128::from(statistics.value_count()) << 63)),
        _ => None,
    };
    statistics
}

/// The least and the greatest of the values that are not NULL, and their sum. If there is none, the type's
/// extremes are returned in the wrong order.
fn range_and_sum<T: Integer>(values: &[T], start: usize, valid: Option<&Bitmap>) -> (T, T, i128) {
    let (mut min, mut max, mut sum) = (T::GREATEST, T::LEAST, 0i128);
    // A 128-bit addition for each value is slow. So the halves of 64-bit values are added in 64 bits within a
    // block.
    for (block, block_values) in values.chunks(1024).enumerate() {
        let (mut low, mut high) = (0u64, 0i64);
        match valid {
            None => {
                for &value in block_values {
                    (min, max) = (min.min(value), max.max(value));
                }
                for &value in block_values {
                    low += value.widen().cast_unsigned() & 0xffff_ffff;
                    high += value.widen() >> 32;
                }
            }
            Some(valid) => {
                for (row, &value) in (start + block * 1024..).zip(block_values) {
                    if valid.get(row) {
                        (min, max) = (min.min(value), max.max(value));
                        low += value.widen().cast_unsigned() & 0xffff_ffff;
                        high += value.widen() >> 32;
                    }
                }
            }
        }
        sum += (i128::from(high) << 32) + i128::from(low);
    }
    (min, max, sum)
}

fn collect_floats(
    values: impl Iterator<Item = f64>,
    start: usize,
    valid: Option<&Bitmap>,
    mut statistics: ColumnStatistics,
    sketch: &mut Sketch,
) -> ColumnStatistics {
    let mut range: Option<(f64, f64)> = None;
    let mut negative_zero = false;
    for (row, value) in (start..).zip(values) {
        if !is_valid(valid, row) {
            continue;
        }
        negative_zero |= value == 0.0 && value.is_sign_negative();
        let (min, max) = range.get_or_insert((value, value));
        if compare_floats(value, *min).is_lt() {
            *min = value;
        }
        if compare_floats(value, *max).is_gt() {
            *max = value;
        }
        sketch.add(hash_float(value));
    }
    // -0 and 0 are equal but print differently, so the bound is not exact: a host must look which of them MIN
    // would have met first.
    let bound =
        |value: f64| Some(Bound { value: Scalar::Float(value), exact: value != 0.0 || !negative_zero });
    if let Some((min, max)) = range {
        (statistics.min, statistics.max) = (bound(min), bound(max));
    }
    statistics
}

fn collect_fixed(
    logical: LogicalType,
    fixed: &FixedBytes,
    rows: Range<usize>,
    valid: Option<&Bitmap>,
    mut statistics: ColumnStatistics,
    sketch: &mut Sketch,
) -> ColumnStatistics {
    let mut range: Option<(u128, u128)> = None;
    let mut last = None;
    for row in rows {
        if !is_valid(valid, row) {
            continue;
        }
        // Values of sixteen bytes are uuids and order as big-endian numbers. Other widths have no order and
        // need only a hash.
        let value = fixed.get(row);
        let Some(key) = value.first_chunk::<16>().filter(|_| fixed.width == 16) else {
            sketch.add(hash_bytes(value));
            continue;
        };
        let key = u128::from_be_bytes(*key);
        if last == Some(key) {
            continue;
        }
        last = Some(key);
        sketch.add(hash_wide(key));
        let (min, max) = range.get_or_insert((key, key));
        (*min, *max) = (key.min(*min), key.max(*max));
    }
    if logical.is_ordered()
        && let Some((min, max)) = range
    {
        statistics.min = exact(Scalar::Bytes(min.to_be_bytes().into()));
        statistics.max = exact(Scalar::Bytes(max.to_be_bytes().into()));
    }
    statistics
}

/// A value with its first four bytes as a number.
type Prefixed<'a> = (u32, &'a [u8]);

fn collect_views(
    logical: LogicalType,
    views: &ByteViews,
    rows: Range<usize>,
    valid: Option<&Bitmap>,
    mut statistics: ColumnStatistics,
    sketch: &mut Sketch,
) -> ColumnStatistics {
    // Short values are compared as numbers. For long values, the prefixes as big-endian numbers settle most
    // comparisons.
    let mut short: Option<((u128, usize), (u128, usize))> = None;
    let mut long: Option<(Prefixed<'_>, Prefixed<'_>)> = None;
    let mut last = None;
    for (row, view) in rows.clone().zip(views.views().get(rows).unwrap_or(&[])) {
        if !is_valid(valid, row) {
            continue;
        }
        if view.len() > INLINE_BYTES {
            let value = views.get(row);
            sketch.add(hash_bytes(value));
            let prefix = u32::from_be_bytes(view.prefix());
            let (min, max) = long.get_or_insert(((prefix, value), (prefix, value)));
            if prefix <= min.0 && value < min.1 {
                *min = (prefix, value);
            }
            if prefix >= max.0 && value > max.1 {
                *max = (prefix, value);
            }
            continue;
        }
        // A run of equal values is looked at once.
        let key = view.inline_key();
        if last == Some(key) {
            continue;
        }
        last = Some(key);
        sketch.add(hash_wide(key));
        let (min, max) = short.get_or_insert(((key, row), (key, row)));
        if key < min.0 {
            *min = (key, row);
        }
        if key > max.0 {
            *max = (key, row);
        }
    }
    let short = short.map(|((_, min), (_, max))| (views.get(min), views.get(max)));
    let long = long.map(|((_, min), (_, max))| (min, max));
    let bounds = [short, long].into_iter().flatten().reduce(|(a, b), (c, d)| (a.min(c), b.max(d)));
    if logical.is_ordered()
        && let Some((min, max)) = bounds
    {
        statistics.min = exact(Scalar::Bytes(min.into()));
        statistics.max = exact(Scalar::Bytes(max.into()));
    }
    statistics
}

/// Narrow decimals of one scale that all show the same number of digits.
struct Alike {
    scale: u16,
    shown: u16,
}

impl Alike {
    fn collect<T: Integer>(
        &self,
        values: &[T],
        start: usize,
        valid: Option<&Bitmap>,
        mut statistics: ColumnStatistics,
        sketch: &mut Sketch,
    ) -> ColumnStatistics {
        let (min, max, sum) = range_and_sum(values, start, valid);
        for (row, &value) in (start..).zip(values) {
            if is_valid(valid, row) {
                sketch.add(hash_int(value.widen()));
            }
        }
        statistics.side_rows = 0;
        statistics.sum = Some(sum);
        if statistics.value_count() > 0 {
            let bound =
                |value: T| exact(Scalar::Numeric { unscaled: value.widen().into(), scale: self.scale });
            (statistics.min, statistics.max) = (bound(min), bound(max));
            statistics.scales =
                Some(Scales { common: self.scale, display_min: self.shown, display_max: self.shown });
        }
        statistics
    }
}

fn collect_numeric(
    numeric: &NumericValues,
    rows: Range<usize>,
    valid: Option<&Bitmap>,
    mut statistics: ColumnStatistics,
    sketch: &mut Sketch,
) -> Result<ColumnStatistics> {
    if numeric.side.is_empty()
        && let DisplayScales::Constant(shown) = numeric.display
    {
        let alike = Alike { scale: numeric.scale, shown };
        match &numeric.ints {
            NumericInts::Int32(values) => {
                return Ok(alike.collect(cut(values, &rows), rows.start, valid, statistics, sketch));
            }
            NumericInts::Int64(values) => {
                return Ok(alike.collect(cut(values, &rows), rows.start, valid, statistics, sketch));
            }
            NumericInts::Int128(_) => {}
        }
    }
    // The side lane is short and sorted, so a cursor over it replaces a search per row.
    let first = numeric.side.partition_point(|(row, _)| (*row as usize) < rows.start);
    let mut side = numeric.side.get(first..).unwrap_or(&[]).iter().peekable();
    let mut range: Option<(i128, i128)> = None;
    let mut display: Option<(u16, u16)> = None;
    let mut sum = Some(0i128);
    let mut side_rows = 0usize;
    for row in rows {
        let in_side = side.next_if(|(at, _)| *at as usize == row);
        if !is_valid(valid, row) {
            continue;
        }
        if let Some((_, bytes)) = in_side {
            side_rows += 1;
            sketch.add(hash_bytes(bytes));
            continue;
        }
        let value = numeric.ints.get(row);
        let (min, max) = range.get_or_insert((value, value));
        (*min, *max) = (value.min(*min), value.max(*max));
        let shown = numeric.display.get(row);
        let (fewest, most) = display.get_or_insert((shown, shown));
        (*fewest, *most) = (shown.min(*fewest), shown.max(*most));
        sum = sum.and_then(|sum| sum.checked_add(value));
        sketch.add(hash_wide(value.cast_unsigned()));
    }
    statistics.side_rows = count(side_rows)?;
    statistics.sum = sum.filter(|_| side_rows == 0);
    if let (Some((min, max)), Some((display_min, display_max))) = (range, display) {
        let bound = |unscaled| exact(Scalar::Numeric { unscaled, scale: numeric.scale });
        (statistics.min, statistics.max) = (bound(min), bound(max));
        statistics.scales = Some(Scales { common: numeric.scale, display_min, display_max });
    }
    Ok(statistics)
}
