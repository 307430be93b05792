//! Statistics of rows in memory: one pass over a flat vector per chunk. Called by the writer, and by hosts that want to
//! know the range of rows not yet stored.

use std::ops::Range;

use vector::{
    Bitmap, ByteViews, Error, LogicalType, NumericInts, NumericValues, Result, Scalar, Values, Vector,
    compare_floats,
};

use crate::distinct::{Sketch, hash_bytes, hash_float, hash_int};
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
        Values::Fixed(fixed) => {
            collect_bytes(logical, rows.map(|row| (row, fixed.get(row))), valid, unknown, sketch)
        }
        Values::Bytes(views) => collect_views(logical, views, rows, valid, unknown, sketch),
        Values::Numeric(numeric) => collect_numeric(numeric, rows, valid, unknown, sketch)?,
        Values::Constant(..) | Values::Dictionary { .. } | Values::Runs { .. } => {
            return Err(Error::InvalidInput("statistics are collected from flat vectors".into()));
        }
    };
    statistics.distinct = None;
    Ok(statistics.shortened(BOUND_BYTES))
}

/// Hashes of the rows that are not NULL, as bloom filters keep them; empty for types without one.
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
    let (mut min, mut max, mut sum) = (T::GREATEST, T::LEAST, 0i128);
    // Sums of 64-bit integers run in two 64-bit halves per block: cheaper than a 128-bit addition per value.
    for (block, block_values) in values.chunks(1024).enumerate() {
        let (mut low, mut high) = (0u64, 0i64);
        let mut add = |value: T| {
            (min, max) = (min.min(value), max.max(value));
            let wide = value.widen();
            low += wide.cast_unsigned() & 0xffff_ffff;
            high += wide >> 32;
        };
        match valid {
            None => block_values.iter().for_each(|&value| add(value)),
            Some(valid) => {
                for (row, &value) in (start + block * 1024..).zip(block_values) {
                    if valid.get(row) {
                        add(value);
                    }
                }
            }
        }
        sum += (i128::from(high) << 32) + i128::from(low);
    }
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
    let summable = matches!(logical, LogicalType::Int16 | LogicalType::Int32 | LogicalType::Int64);
    statistics.sum = summable.then_some(sum);
    statistics
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
    // -0 and 0 are equal but print differently: a host must look which of them MIN would have met first.
    let bound =
        |value: f64| Some(Bound { value: Scalar::Float(value), exact: value != 0.0 || !negative_zero });
    if let Some((min, max)) = range {
        (statistics.min, statistics.max) = (bound(min), bound(max));
    }
    statistics
}

fn collect_bytes<'a>(
    logical: LogicalType,
    values: impl Iterator<Item = (usize, &'a [u8])>,
    valid: Option<&Bitmap>,
    mut statistics: ColumnStatistics,
    sketch: &mut Sketch,
) -> ColumnStatistics {
    let mut range: Option<(&[u8], &[u8])> = None;
    let mut last: Option<&[u8]> = None;
    for (row, value) in values {
        if !is_valid(valid, row) || last == Some(value) {
            continue;
        }
        last = Some(value);
        sketch.add(hash_bytes(value));
        let (min, max) = range.get_or_insert((value, value));
        if value < *min {
            *min = value;
        } else if value > *max {
            *max = value;
        }
    }
    if logical.is_ordered()
        && let Some((min, max)) = range
    {
        statistics.min = exact(Scalar::Bytes(min.into()));
        statistics.max = exact(Scalar::Bytes(max.into()));
    }
    statistics
}

fn collect_views(
    logical: LogicalType,
    views: &ByteViews,
    rows: Range<usize>,
    valid: Option<&Bitmap>,
    statistics: ColumnStatistics,
    sketch: &mut Sketch,
) -> ColumnStatistics {
    collect_bytes(logical, rows.map(|row| (row, views.get(row))), valid, statistics, sketch)
}

fn collect_numeric(
    numeric: &NumericValues,
    rows: Range<usize>,
    valid: Option<&Bitmap>,
    mut statistics: ColumnStatistics,
    sketch: &mut Sketch,
) -> Result<ColumnStatistics> {
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
        let value = match &numeric.ints {
            NumericInts::Int32(values) => values.get(row).map_or(0, |&value| i128::from(value)),
            NumericInts::Int64(values) => values.get(row).map_or(0, |&value| i128::from(value)),
            NumericInts::Int128(values) => values.get(row).copied().unwrap_or(0),
        };
        let (min, max) = range.get_or_insert((value, value));
        (*min, *max) = (value.min(*min), value.max(*max));
        let shown = numeric.display.get(row);
        let (fewest, most) = display.get_or_insert((shown, shown));
        (*fewest, *most) = (shown.min(*fewest), shown.max(*most));
        sum = sum.and_then(|sum| sum.checked_add(value));
        #[allow(clippy::cast_possible_truncation)]
        sketch.add(hash_int((value as i64) ^ hash_int((value >> 64) as i64).cast_signed()));
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
