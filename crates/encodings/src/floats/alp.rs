//! ALP: floats that are decimals as integers (Afroozeh, Kuffo, Boncz: "ALP: Adaptive Lossless floating-Point
//! Compression", SIGMOD 2023).
//!
//! value = integer x 10^factor x 10^-exponent, computed in doubles from left to right with the nearest
//! doubles of both powers (a single is rounded once more at the end). A value that does not come back bit for
//! bit is an exception.
//! Payload: exponent, factor; number of exceptions (varint) and, if any, an integer child of their rows and
//! their bit patterns; an integer node of the integers (exceptions have any integer).
//!
//! The product grows with the integer. So a comparison with a constant is a comparison of integers, and
//! `test` searches the limits.

use std::ops::Range;

use vector::{Bitmap, CompareOp, PhysicalType, Result, Scalar, Selection, Values, Vector, compare_floats};

use super::{Real, all_rows, exception_at, read_positions, spread, with_floats, write_positions};
use crate::cursor::{Reader, Writer};
use crate::encoding::{ColumnEncoder, Encoding, Estimate, Leaf, Node, NodeContext, Sample};
use crate::filter::{IntCondition, test_values};
use crate::integers::{self, IntNode};
use crate::kernels::floats;
use crate::options::{EncodeOptions, EncodingId};
use crate::registry::unknown;
use crate::single::Single;

/// The largest exponent that is tried: 10^18 is the largest power of ten in a 64-bit integer.
const MAX_EXPONENT: u8 = 18;

/// How many values are looked at when the exponents are chosen, for a column and for a chunk.
const COLUMN_SAMPLE: usize = 512;
const CHUNK_SAMPLE: usize = 64;

/// Pairs of exponent and factor kept for a column; each chunk picks one.
const KEPT: usize = 4;

/// The encoding does not fit if more than one value in this many is an exception.
const MAX_EXCEPTIONS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Powers {
    exponent: u8,
    factor: u8,
}

/// How many bits these values take with these powers, exceptions included.
fn cost<T: Real>(values: &[T], powers: Powers) -> (usize, usize) {
    let (mut low, mut high, mut exceptions) = (i64::MAX, i64::MIN, 0usize);
    let scale = floats::Scale::new(powers.exponent, powers.factor);
    for &value in values {
        match floats::to_int(value, scale) {
            Some(int) => (low, high) = (low.min(int), high.max(int)),
            None => exceptions += 1,
        }
    }
    let width = if low > high { 0 } else { 64 - high.abs_diff(low).leading_zeros() as usize };
    (values.len() * width + exceptions * (T::BYTES * 8 + 16), exceptions)
}

/// The best pairs for a sample, best first. Empty if the values are no decimals.
fn choose<T: Real>(values: &[T]) -> Vec<Powers> {
    let mut found: Vec<(usize, Powers)> = Vec::new();
    // A few values are enough to rule most pairs out.
    let first = spread(values, 32);
    for exponent in 0..=MAX_EXPONENT {
        for factor in 0..=exponent {
            let powers = Powers { exponent, factor };
            if cost(&first, powers).1 * 2 <= first.len() {
                let (bits, exceptions) = cost(values, powers);
                if exceptions * MAX_EXCEPTIONS <= values.len() {
                    found.push((bits, powers));
                }
            }
        }
    }
    found.sort_by_key(|(bits, powers)| (*bits, powers.exponent));
    found.into_iter().take(KEPT).map(|(_, powers)| powers).collect()
}

/// The encoding.
pub(crate) struct Alp;

impl Encoding for Alp {
    fn id(&self) -> EncodingId {
        EncodingId::Alp
    }

    fn estimate(&self, sample: &Sample<'_>, _: &EncodeOptions<'_>) -> Option<Estimate> {
        let rows = all_rows(&sample.rows.values);
        let bytes = with_floats!(&sample.rows.values, rows, values => {
            let kept = choose(&spread(values, COLUMN_SAMPLE));
            let mut out = Writer::new();
            write(values, &kept, MAX_EXCEPTIONS, &mut out).then_some(out.len())
        })??;
        Some(Estimate { bytes: bytes as f64 * sample.factor(), penalty: 1.05 })
    }

    fn begin<'c>(
        &self,
        column: &'c Vector,
        options: &EncodeOptions<'c>,
    ) -> Result<Option<Box<dyn ColumnEncoder + 'c>>> {
        let rows = all_rows(&column.values);
        let mut kept = with_floats!(&column.values, rows, values => choose(&spread(values, COLUMN_SAMPLE)))
            .unwrap_or_default();
        let forced = options.force == Some(EncodingId::Alp);
        if kept.is_empty() && forced {
            kept.push(Powers { exponent: 14, factor: 0 });
        }
        if kept.is_empty() {
            return Ok(None);
        }
        Ok(Some(Box::new(AlpEncoder {
            column,
            kept,
            max_exceptions: if forced { 1 } else { MAX_EXCEPTIONS },
        })))
    }
}

struct AlpEncoder<'c> {
    column: &'c Vector,
    kept: Vec<Powers>,
    max_exceptions: usize,
}

impl ColumnEncoder for AlpEncoder<'_> {
    fn chunk(&mut self, rows: Range<usize>, out: &mut Writer) -> Result<bool> {
        let written = with_floats!(&self.column.values, rows, values => {
            write(values, &self.kept, self.max_exceptions, out)
        });
        Ok(written.unwrap_or(false))
    }
}

/// Appends a node. False if more than one value in `max_exceptions` is an exception.
fn write<T: Real>(values: &[T], kept: &[Powers], max_exceptions: usize, out: &mut Writer) -> bool {
    let few = spread(values, CHUNK_SAMPLE);
    let Some(&powers) = kept.iter().min_by_key(|powers| cost(&few, **powers).0) else { return false };
    let scale = floats::Scale::new(powers.exponent, powers.factor);
    let mut ints = Vec::with_capacity(values.len());
    let (mut positions, mut patterns) = (Vec::new(), Vec::new());
    let mut last = values.iter().find_map(|&value| floats::to_int(value, scale)).unwrap_or(0);
    for (position, &value) in (0i64..).zip(values) {
        match floats::to_int(value, scale) {
            Some(int) => last = int,
            None => {
                positions.push(position);
                let bytes = value.bits().to_le_bytes();
                patterns.extend_from_slice(bytes.get(..T::BYTES).unwrap_or(&bytes));
            }
        }
        ints.push(last);
    }
    if positions.len() * max_exceptions > values.len() {
        return false;
    }
    out.u8(EncodingId::Alp.tag());
    out.u8(powers.exponent);
    out.u8(powers.factor);
    write_positions(&positions, out);
    out.bytes(&patterns);
    integers::write_node(&ints, integers::CHILD_DEPTH, None, out);
    true
}

/// The reading side.
pub(crate) struct AlpNode<'a> {
    physical: PhysicalType,
    rows: usize,
    scale: floats::Scale,
    positions: Vec<u32>,
    patterns: &'a [u8],
    ints: IntNode<'a>,
}

/// Opens an ALP node.
pub(crate) fn open<'a>(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<AlpNode<'a>> {
    let (rows, depth, physical) = (context.rows, context.deeper()?, context.physical());
    let width = match physical {
        PhysicalType::Float32 => 4,
        PhysicalType::Float64 => 8,
        physical => return Err(unknown(EncodingId::Alp, physical)),
    };
    let (exponent, factor) = (reader.u8()?, reader.u8()?);
    if exponent > MAX_EXPONENT || factor > exponent {
        return Err(vector::Error::corrupt(format!("powers of ten {exponent} and {factor}")));
    }
    let positions = read_positions(reader, rows, depth)?;
    let patterns = reader.take(positions.len() * width)?;
    let ints = IntNode::open(reader, rows, depth)?;
    let scale = floats::Scale::new(exponent, factor);
    Ok(AlpNode { physical, rows, scale, positions, patterns, ints })
}

impl AlpNode<'_> {
    fn pattern(&self, at: usize, width: usize) -> u64 {
        let mut bytes = [0u8; 8];
        if let (Some(to), Some(from)) =
            (bytes.get_mut(..width), self.patterns.get(at * width..(at + 1) * width))
        {
            to.copy_from_slice(from);
        }
        u64::from_le_bytes(bytes)
    }

    fn all<T: Real>(&self) -> Result<Vec<T>> {
        let mut ints: Vec<i64> = Vec::new();
        self.ints.decode_into(&mut ints)?;
        let mut out: Vec<T> = Vec::with_capacity(ints.len());
        floats::to_floats(&ints, self.scale, &mut out);
        for (at, &position) in self.positions.iter().enumerate() {
            if let Some(slot) = out.get_mut(position as usize) {
                *slot = T::of_bits(self.pattern(at, T::BYTES));
            }
        }
        Ok(out)
    }

    fn some<T: Real>(&self, rows: &[u32]) -> Result<Vec<T>> {
        let mut ints: Vec<i64> = Vec::new();
        self.ints.take_into(rows, &mut ints)?;
        let mut out: Vec<T> = Vec::with_capacity(ints.len());
        floats::to_floats(&ints, self.scale, &mut out);
        if !self.positions.is_empty() {
            for (slot, row) in out.iter_mut().zip(rows) {
                if let Ok(at) = self.positions.binary_search(row) {
                    *slot = T::of_bits(self.pattern(at, T::BYTES));
                }
            }
        }
        Ok(out)
    }

    fn one<T: Real>(&self, row: usize) -> Result<Option<Single<'_>>> {
        let value = match exception_at(&self.positions, row) {
            Some(at) => T::of_bits(self.pattern(at, T::BYTES)),
            None => floats::to_float(self.ints.get(row)?, self.scale),
        };
        Ok(Some(value.single()))
    }

    /// The integers whose values pass. Values grow with the integers, so a comparison is a range.
    fn int_condition<T: Real>(&self, leaf: &Leaf<'_>) -> Option<IntCondition> {
        let value = |int: i64| floats::to_float::<T>(int, self.scale).double();
        // The first integer for which `at_least` holds. It holds for all above.
        let first = |at_least: &dyn Fn(f64) -> bool| -> i128 {
            let (mut low, mut high) = (-floats::MAX_INT, floats::MAX_INT + 1);
            while low < high {
                let middle = low + (high - low) / 2;
                if at_least(value(middle)) { high = middle } else { low = middle + 1 }
            }
            low.into()
        };
        let limits = |constant: f64| {
            let equal = first(&|v| compare_floats(v, constant).is_ge());
            let above = first(&|v| compare_floats(v, constant).is_gt());
            (equal, above)
        };
        let range = |low: i128, high: i128| match low <= high {
            true => IntCondition::Range { low, high, outside: false },
            false => IntCondition::Never,
        };
        let (min, max) = (i128::MIN, i128::MAX);
        match leaf {
            Leaf::Compare(op, Scalar::Float(constant)) => {
                let (equal, above) = limits(*constant);
                Some(match op {
                    CompareOp::Less => range(min, equal - 1),
                    CompareOp::LessOrEqual => range(min, above - 1),
                    CompareOp::Greater => range(above, max),
                    CompareOp::GreaterOrEqual => range(equal, max),
                    CompareOp::Equal => range(equal, above - 1),
                    CompareOp::NotEqual if equal < above => {
                        IntCondition::Range { low: equal, high: above - 1, outside: true }
                    }
                    CompareOp::NotEqual => IntCondition::ALWAYS,
                })
            }
            _ => None,
        }
    }
}

impl Node for AlpNode<'_> {
    fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::Alp.name());
        out.push_str(" > ");
        self.ints.describe(out);
    }

    fn decode(&self) -> Result<Values> {
        match self.physical {
            PhysicalType::Float32 => self.all().map(Values::Float32),
            _ => self.all().map(Values::Float64),
        }
    }

    fn take(&self, rows: &[u32]) -> Result<Values> {
        match self.physical {
            PhysicalType::Float32 => self.some(rows).map(Values::Float32),
            _ => self.some(rows).map(Values::Float64),
        }
    }

    fn single<'s>(&'s self, row: usize, _: &'s mut Vec<u8>) -> Result<Option<Single<'s>>> {
        match self.physical {
            PhysicalType::Float32 => self.one::<f32>(row),
            _ => self.one::<f64>(row),
        }
    }

    fn test(&self, leaf: &Leaf<'_>, selection: &Selection) -> Result<Option<Bitmap>> {
        let test = match self.physical {
            PhysicalType::Float32 => self.int_condition::<f32>(leaf),
            _ => self.int_condition::<f64>(leaf),
        };
        let Some(test) = test else { return Ok(None) };
        let mut bits = self.ints.test(&test, selection)?;
        if !self.positions.is_empty() {
            // Exceptions are tested by their own values.
            let values = self.take(&self.positions)?;
            let all: Vec<u32> = (0..).take(self.positions.len()).collect();
            let passed = test_values(&values, leaf, &all)?;
            for (at, &position) in self.positions.iter().enumerate() {
                bits.set(position as usize, passed.get(at));
            }
        }
        debug_assert_eq!(bits.len(), self.rows);
        Ok(Some(bits))
    }
}
