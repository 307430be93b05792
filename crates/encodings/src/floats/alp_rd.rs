//! ALP-RD: floats whose low bits are noise ("real doubles" of the ALP paper). The bits are cut in two. The
//! high ones (sign, exponent, a few more) have few different values and become codes of a small dictionary.
//! The low ones are packed as they are.
//!
//! The payload:
//! - number of low bits
//! - dictionary size (1-16) and entries (16 bits each, most frequent first)
//! - number of exceptions (varint) and, if any, an integer child of their rows and their high bits (16 bits
//!   each)
//! - an integer child of the codes
//! - an integer node of the low bits
//!
//! Codes are numbered by frequency, so that `levels` can spend fewer bits on the frequent ones.

use std::ops::Range;

use vector::{Error, PhysicalType, Result, Values, Vector};

use super::{Real, all_rows, exception_at, read_positions, spread, with_floats, write_positions};
use crate::cursor::{Reader, Writer};
use crate::encoding::{ColumnEncoder, Encoding, Estimate, Node, NodeContext, Sample};
use crate::integers::{self, IntNode};
use crate::kernels::floats;
use crate::options::{EncodeOptions, EncodingId};
use crate::registry::unknown;
use crate::single::Single;

const MAX_ENTRIES: usize = 16;
const MAX_LEFT_BITS: usize = 16;
const SAMPLE: usize = 1024;
const NO_CODE: u8 = u8::MAX;

/// Where the bits are cut and which high parts have codes.
#[derive(Debug, Clone)]
struct Cut {
    right_bits: u32,
    lefts: Vec<u16>,
}

impl Cut {
    #[allow(clippy::cast_possible_truncation)]
    fn split(&self, bits: u64) -> (u16, u64) {
        ((bits >> self.right_bits) as u16, bits & ((1 << self.right_bits) - 1))
    }
}

/// The cheapest cut for a sample, and its bits a value.
fn choose<T: Real>(values: &[T]) -> Option<(Cut, f64)> {
    let total = T::BYTES * 8;
    let mut best: Option<(Cut, f64)> = None;
    for left_bits in 1..=MAX_LEFT_BITS.min(total - 1) {
        let right_bits = u32::try_from(total - left_bits).ok()?;
        let cut = Cut { right_bits, lefts: Vec::new() };
        let mut lefts: Vec<u16> = values.iter().map(|value| cut.split(value.bits()).0).collect();
        lefts.sort_unstable();
        let mut counts: Vec<(usize, u16)> =
            lefts.chunk_by(|a, b| a == b).filter_map(|run| Some((run.len(), *run.first()?))).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let exceptions: usize = counts.iter().skip(MAX_ENTRIES).map(|(count, _)| count).sum();
        counts.truncate(MAX_ENTRIES);
        // A code costs its packed width or, with `levels`, one bit more than its rank, whichever is less
        // overall.
        let width = usize::BITS - (counts.len() - 1).leading_zeros();
        let packed = f64::from(width) * values.len() as f64;
        let levels: f64 = (1..).zip(&counts).map(|(rank, (count, _))| f64::from(rank) * *count as f64).sum();
        let bits = packed.min(levels) + exceptions as f64 * 32.0;
        let each = f64::from(right_bits) + bits / values.len() as f64;
        if best.as_ref().is_none_or(|(_, least)| each < *least) {
            best =
                Some((Cut { right_bits, lefts: counts.into_iter().map(|(_, left)| left).collect() }, each));
        }
    }
    best
}

/// The encoding.
pub(crate) struct AlpRd;

impl Encoding for AlpRd {
    fn id(&self) -> EncodingId {
        EncodingId::AlpRd
    }

    fn estimate(&self, sample: &Sample<'_>, _: &EncodeOptions<'_>) -> Option<Estimate> {
        let rows = all_rows(&sample.rows.values);
        let (_, bits) = with_floats!(&sample.rows.values, rows, values => choose(&spread(values, SAMPLE)))??;
        Some(Estimate { bytes: bits / 8.0 * sample.column.len() as f64, penalty: 1.02 })
    }

    fn begin<'c>(
        &self,
        column: &'c Vector,
        _: &EncodeOptions<'c>,
    ) -> Result<Option<Box<dyn ColumnEncoder + 'c>>> {
        let rows = all_rows(&column.values);
        let chosen = with_floats!(&column.values, rows, values => choose(&spread(values, SAMPLE))).flatten();
        let Some((cut, _)) = chosen else { return Ok(None) };
        let mut code_of = vec![NO_CODE; 1 << MAX_LEFT_BITS];
        for (code, &left) in (0u8..).zip(&cut.lefts) {
            if let Some(slot) = code_of.get_mut(usize::from(left)) {
                *slot = code;
            }
        }
        Ok(Some(Box::new(AlpRdEncoder { column, cut, code_of })))
    }
}

struct AlpRdEncoder<'c> {
    column: &'c Vector,
    cut: Cut,
    /// The code of every possible high part.
    code_of: Vec<u8>,
}

impl ColumnEncoder for AlpRdEncoder<'_> {
    fn chunk(&mut self, rows: Range<usize>, out: &mut Writer) -> Result<bool> {
        let written = with_floats!(&self.column.values, rows, values => {
            write(values, &self.cut, &self.code_of, out);
        });
        Ok(written.is_some())
    }
}

fn write<T: Real>(values: &[T], cut: &Cut, code_of: &[u8], out: &mut Writer) {
    let (mut codes, mut rights) = (Vec::with_capacity(values.len()), Vec::with_capacity(values.len()));
    let (mut positions, mut exceptions) = (Vec::new(), Writer::new());
    for (position, value) in (0i64..).zip(values) {
        let (left, right) = cut.split(value.bits());
        let code = code_of.get(usize::from(left)).copied().unwrap_or(NO_CODE);
        if code == NO_CODE {
            positions.push(position);
            exceptions.u16(left);
        }
        codes.push(if code == NO_CODE { 0 } else { i64::from(code) });
        rights.push(right.cast_signed());
    }
    out.u8(EncodingId::AlpRd.tag());
    out.u8(u8::try_from(cut.right_bits).unwrap_or(0));
    out.u8(u8::try_from(cut.lefts.len()).unwrap_or(0));
    cut.lefts.iter().for_each(|&left| out.u16(left));
    write_positions(&positions, out);
    out.bytes(exceptions.as_slice());
    integers::write_child(&codes, integers::CHILD_DEPTH, out);
    integers::write_noise(&rights, out);
}

/// The reading side.
pub(crate) struct AlpRdNode<'a> {
    physical: PhysicalType,
    right_bits: u32,
    lefts: [u64; MAX_ENTRIES],
    positions: Vec<u32>,
    exceptions: &'a [[u8; 2]],
    codes: IntNode<'a>,
    rights: IntNode<'a>,
}

/// Opens an ALP-RD node.
pub(crate) fn open<'a>(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<AlpRdNode<'a>> {
    let (rows, depth, physical) = (context.rows, context.deeper()?, context.physical());
    let total: u32 = match physical {
        PhysicalType::Float32 => 32,
        PhysicalType::Float64 => 64,
        physical => return Err(unknown(EncodingId::AlpRd, physical)),
    };
    let right_bits = u32::from(reader.u8()?);
    let count = usize::from(reader.u8()?);
    if right_bits >= total || total - right_bits > 16 || count > MAX_ENTRIES {
        return Err(Error::corrupt(format!("floats cut at bit {right_bits} with {count} high parts")));
    }
    let mut lefts = [0u64; MAX_ENTRIES];
    for left in lefts.iter_mut().take(count) {
        *left = u64::from(reader.u16()?) << right_bits;
    }
    let positions = read_positions(reader, rows, depth)?;
    let (exceptions, _) = reader.take(positions.len() * 2)?.as_chunks();
    let codes = IntNode::open(&mut reader.child()?, rows, depth)?;
    let rights = IntNode::open(reader, rows, depth)?;
    Ok(AlpRdNode { physical, right_bits, lefts, positions, exceptions, codes, rights })
}

impl AlpRdNode<'_> {
    fn exception<T: Real>(&self, at: usize, value: T) -> T {
        let left = self.exceptions.get(at).map_or(0, |left| u64::from(u16::from_le_bytes(*left)));
        T::of_bits((left << self.right_bits) | (value.bits() & ((1 << self.right_bits) - 1)))
    }

    fn all<T: Real>(&self) -> Result<Vec<T>> {
        let (mut codes, mut rights): (Vec<u32>, Vec<i64>) = (Vec::new(), Vec::new());
        self.codes.decode_into(&mut codes)?;
        self.rights.decode_into(&mut rights)?;
        let mut out = Vec::with_capacity(codes.len());
        floats::join(&codes, &rights, &self.lefts, &mut out);
        for (at, &position) in self.positions.iter().enumerate() {
            if let Some(slot) = out.get_mut(position as usize) {
                *slot = self.exception(at, *slot);
            }
        }
        Ok(out)
    }

    fn some<T: Real>(&self, rows: &[u32]) -> Result<Vec<T>> {
        let (mut codes, mut rights): (Vec<u32>, Vec<i64>) = (Vec::new(), Vec::new());
        self.codes.take_into(rows, &mut codes)?;
        self.rights.take_into(rows, &mut rights)?;
        let mut out = Vec::with_capacity(codes.len());
        floats::join(&codes, &rights, &self.lefts, &mut out);
        if !self.positions.is_empty() {
            for (slot, row) in out.iter_mut().zip(rows) {
                if let Ok(at) = self.positions.binary_search(row) {
                    *slot = self.exception(at, *slot);
                }
            }
        }
        Ok(out)
    }

    fn one<T: Real>(&self, row: usize) -> Result<Option<Single<'_>>> {
        let (code, right) = (self.codes.get(row)?, self.rights.get(row)?);
        let left =
            usize::try_from(code & 15).ok().and_then(|code| self.lefts.get(code)).copied().unwrap_or(0);
        let value = T::of_bits(left | right.cast_unsigned());
        let exception = exception_at(&self.positions, row);
        Ok(Some(exception.map_or(value, |at| self.exception(at, value)).single()))
    }
}

impl Node for AlpRdNode<'_> {
    fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::AlpRd.name());
        out.push_str(" > ");
        self.codes.describe(out);
        out.push_str(", ");
        self.rights.describe(out);
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
}
