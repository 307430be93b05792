//! A column of values in memory. It is not always an Arrow array: a constant, dictionary or run-length vector
//! stays as it is up to the operator that needs its values.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::expand::repeat;
use crate::{Bitmap, ByteViews, LogicalType, NumericValues};

/// Values of one fixed width, end to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedBytes {
    /// Width of a value in bytes, at least 1.
    pub width: usize,
    /// `width` bytes a value.
    pub bytes: Vec<u8>,
}

impl FixedBytes {
    /// The value at `index`; empty past the end.
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        self.bytes.get(index * self.width..(index + 1) * self.width).unwrap_or(&[])
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.width.max(1)
    }

    /// True when there is no value.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// The distinct values that codes point at. Vectors with the same `id` share one dictionary. An operator may
/// cache what it computes for each code (hash, group, filter result) as long as the id stays the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Dictionary {
    /// Unique within one backend among dictionaries that differ.
    pub id: u64,
    /// The entries: a flat vector without NULLs.
    pub entries: Vector,
}

impl Dictionary {
    /// An id that no other dictionary of this process has.
    pub fn next_id() -> u64 {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        NEXT_ID.fetch_add(1, Ordering::Relaxed)
    }
}

/// The values of a vector. At rows that are NULL they are unspecified but present.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Booleans.
    Bool(Bitmap),
    /// 16-bit integers.
    Int16(Vec<i16>),
    /// 32-bit integers and dates.
    Int32(Vec<i32>),
    /// 64-bit integers and timestamps.
    Int64(Vec<i64>),
    /// Single floats, bit patterns kept.
    Float32(Vec<f32>),
    /// Double floats, bit patterns kept.
    Float64(Vec<f64>),
    /// Values of a fixed width.
    Fixed(FixedBytes),
    /// Byte strings.
    Bytes(ByteViews),
    /// Exact decimals.
    Numeric(NumericValues),
    /// One value for every row: a flat vector of length 1.
    Constant(Box<Vector>, usize),
    /// A code per row into a dictionary.
    Dictionary {
        /// Positions in the dictionary's entries, each within bounds (decoders check).
        codes: Vec<u32>,
        /// The entries.
        dictionary: Arc<Dictionary>,
    },
    /// Runs of equal values: run i covers rows `ends[i - 1]..ends[i]`.
    Runs {
        /// One past the last row of each run, ascending.
        ends: Vec<u32>,
        /// A flat vector with one value for each run. Its validity is that of the run's rows.
        values: Box<Vector>,
    },
}

/// A column of values with their meaning and validity.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// What the values mean.
    pub logical: LogicalType,
    /// One bit a row, 1 = not NULL; `None` when no row is NULL.
    pub validity: Option<Bitmap>,
    /// The values.
    pub values: Values,
}

impl Vector {
    /// A vector without NULLs.
    pub const fn new(logical: LogicalType, values: Values) -> Self {
        Self { logical, validity: None, values }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match &self.values {
            Values::Bool(bits) => bits.len(),
            Values::Int16(values) => values.len(),
            Values::Int32(values) => values.len(),
            Values::Int64(values) => values.len(),
            Values::Float32(values) => values.len(),
            Values::Float64(values) => values.len(),
            Values::Fixed(values) => values.len(),
            Values::Bytes(values) => values.len(),
            Values::Numeric(values) => values.len(),
            Values::Constant(_, len) => *len,
            Values::Dictionary { codes, .. } => codes.len(),
            Values::Runs { ends, .. } => ends.last().map_or(0, |&end| end as usize),
        }
    }

    /// True when there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True when the row is not NULL. For `Constant` and `Runs` the inner vector's validity counts too.
    #[inline]
    pub fn is_valid(&self, row: usize) -> bool {
        self.validity.as_ref().is_none_or(|validity| validity.get(row))
            && match &self.values {
                Values::Constant(value, _) => value.is_valid(0),
                Values::Runs { ends, values } => values.is_valid(run_of(ends, row)),
                _ => true,
            }
    }

    /// Number of NULL rows.
    pub fn null_count(&self) -> usize {
        match &self.values {
            Values::Constant(..) | Values::Runs { .. } => {
                (0..self.len()).filter(|&row| !self.is_valid(row)).count()
            }
            _ => self.validity.as_ref().map_or(0, Bitmap::count_zeros),
        }
    }

    /// About how many bytes of memory the rows take. Shared values (a dictionary's entries, buffers of long
    /// text) count as if each row had its own.
    pub fn bytes(&self) -> usize {
        let values = match &self.values {
            Values::Bool(bits) => bits.len() / 8,
            Values::Int16(values) => values.len() * 2,
            Values::Int32(values) => values.len() * 4,
            Values::Int64(values) => values.len() * 8,
            Values::Float32(values) => values.len() * 4,
            Values::Float64(values) => values.len() * 8,
            Values::Fixed(fixed) => fixed.bytes.len(),
            Values::Bytes(views) => {
                let long = views.views().iter().filter(|view| view.place().is_some());
                views.len() * 16 + long.map(crate::ByteView::len).sum::<usize>()
            }
            Values::Numeric(numeric) => {
                let width = match numeric.ints {
                    crate::NumericInts::Int32(_) => 4,
                    crate::NumericInts::Int64(_) => 8,
                    crate::NumericInts::Int128(_) => 16,
                };
                let scale = usize::from(matches!(numeric.display, crate::DisplayScales::PerValue(_))) * 2;
                let side = numeric.side.iter().map(|(_, bytes)| bytes.len() + 32).sum::<usize>();
                numeric.len() * (width + scale) + side
            }
            Values::Constant(value, rows) => value.bytes() * rows,
            Values::Dictionary { codes, dictionary } => {
                // The size of an entry is estimated from a few of them, because this is asked for every
                // batch.
                let some = dictionary.entries.slice(0, 64);
                codes.len() * (some.bytes() / some.len().max(1)).max(4)
            }
            Values::Runs { ends, values } => {
                values.bytes() / values.len().max(1) * ends.last().map_or(0, |&end| end as usize)
            }
        };
        values + self.validity.as_ref().map_or(0, |validity| validity.len() / 8)
    }

    /// The rows at `positions`, in that order. The result is flat if this vector is.
    #[must_use]
    pub fn take(&self, positions: &[u32]) -> Self {
        fn pick<T: Copy + Default>(values: &[T], positions: &[u32]) -> Vec<T> {
            positions.iter().map(|&p| values.get(p as usize).copied().unwrap_or_default()).collect()
        }
        let values = match &self.values {
            Values::Bool(bits) => Values::Bool(bits.take(positions)),
            Values::Int16(values) => Values::Int16(pick(values, positions)),
            Values::Int32(values) => Values::Int32(pick(values, positions)),
            Values::Int64(values) => Values::Int64(pick(values, positions)),
            Values::Float32(values) => Values::Float32(pick(values, positions)),
            Values::Float64(values) => Values::Float64(pick(values, positions)),
            Values::Fixed(fixed) => {
                let mut bytes = Vec::with_capacity(positions.len() * fixed.width);
                positions.iter().for_each(|&p| bytes.extend_from_slice(fixed.get(p as usize)));
                Values::Fixed(FixedBytes { width: fixed.width, bytes })
            }
            Values::Bytes(views) => Values::Bytes(views.take(positions)),
            Values::Numeric(numeric) => Values::Numeric(numeric.take(positions)),
            Values::Constant(value, _) => Values::Constant(value.clone(), positions.len()),
            Values::Dictionary { codes, dictionary } => {
                Values::Dictionary { codes: pick(codes, positions), dictionary: Arc::clone(dictionary) }
            }
            Values::Runs { ends, values } => {
                let runs: Vec<u32> = positions
                    .iter()
                    .map(|&p| u32::try_from(run_of(ends, p as usize)).unwrap_or(u32::MAX))
                    .collect();
                let outer = self.validity.as_ref().map(|validity| validity.take(positions));
                return values.take(&runs).with_validity_and(outer);
            }
        };
        let validity = self.validity.as_ref().map(|validity| validity.take(positions));
        Self { logical: self.logical, validity, values }
    }

    /// Rows `start..start + len`, clipped to what is there.
    #[must_use]
    pub fn slice(&self, start: usize, len: usize) -> Self {
        fn cut<T: Copy>(values: &[T], start: usize, end: usize) -> Vec<T> {
            values.get(start..end).unwrap_or(&[]).to_vec()
        }
        let end = (start + len).min(self.len());
        let start = start.min(end);
        let values = match &self.values {
            Values::Bool(bits) => Values::Bool(bits.slice(start, end - start)),
            Values::Int16(values) => Values::Int16(cut(values, start, end)),
            Values::Int32(values) => Values::Int32(cut(values, start, end)),
            Values::Int64(values) => Values::Int64(cut(values, start, end)),
            Values::Float32(values) => Values::Float32(cut(values, start, end)),
            Values::Float64(values) => Values::Float64(cut(values, start, end)),
            Values::Fixed(fixed) => Values::Fixed(FixedBytes {
                width: fixed.width,
                bytes: cut(&fixed.bytes, start * fixed.width, end * fixed.width),
            }),
            Values::Bytes(views) => Values::Bytes(views.slice(start, end - start)),
            Values::Numeric(numeric) => Values::Numeric(numeric.slice(start, end - start)),
            Values::Constant(value, _) => Values::Constant(value.clone(), end - start),
            Values::Dictionary { codes, dictionary } => {
                Values::Dictionary { codes: cut(codes, start, end), dictionary: Arc::clone(dictionary) }
            }
            Values::Runs { .. } => {
                let rows = start..end;
                let positions: Vec<u32> = rows.map(|row| u32::try_from(row).unwrap_or(u32::MAX)).collect();
                return self.take(&positions);
            }
        };
        let validity = self.validity.as_ref().map(|validity| validity.slice(start, end - start));
        Self { logical: self.logical, validity, values }
    }

    /// The same rows with constants, codes and runs expanded.
    #[must_use]
    pub fn flatten(self) -> Self {
        match self.values {
            Values::Constant(value, len) => expanded(&value, &[len]).with_validity_and(self.validity),
            Values::Dictionary { codes, dictionary } => {
                dictionary.entries.take(&codes).with_validity_and(self.validity)
            }
            Values::Runs { ends, values } => {
                let starts = std::iter::once(0).chain(ends.iter().copied());
                let counts: Vec<usize> =
                    starts.zip(&ends).map(|(start, &end)| end.saturating_sub(start) as usize).collect();
                expanded(&values, &counts).with_validity_and(self.validity)
            }
            _ => self,
        }
    }

    fn with_validity_and(mut self, outer: Option<Bitmap>) -> Self {
        self.validity = match (self.validity.take(), outer) {
            (None, outer) => outer,
            (inner, None) => inner,
            (Some(inner), Some(outer)) => Some(inner.iter().zip(outer.iter()).map(|(a, b)| a && b).collect()),
        };
        self
    }
}

/// Row i of `values` repeated `counts[i]` times.
fn expanded(values: &Vector, counts: &[usize]) -> Vector {
    let gathered = || {
        let mut rows = Vec::with_capacity(counts.iter().sum());
        for (row, count) in (0u32..).zip(counts) {
            rows.resize(rows.len() + count, row);
        }
        rows
    };
    let validity = values.validity.as_ref().map(|validity| validity.take(&gathered()));
    match repeat(values, counts) {
        Some(repeated) => Vector { logical: values.logical, validity, values: repeated },
        None => values.take(&gathered()),
    }
}

/// Which run a row belongs to.
fn run_of(ends: &[u32], row: usize) -> usize {
    ends.partition_point(|&end| end as usize <= row)
}
