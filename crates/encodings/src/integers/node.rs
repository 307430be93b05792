//! An opened integer node: one enum over the integer encodings, so that children cost no allocation.

use vector::{Bitmap, Error, Result, Selection};

use super::bitpacked::BitPacked;
use super::delta::Delta;
use super::filter::{Words, mark_values};
use super::levels::Levels;
use super::multiple::Multiple;
use super::periodic::Periodic;
use super::plain::PlainInts;
use super::run_length::RunLength;
use crate::cursor::Reader;
use crate::filter::IntCondition;
use crate::kernels::bitpack::BLOCK;
use crate::kernels::fill;
use crate::options::EncodingId;

/// A width that integers can be decoded to. Wider values wrap.
pub trait Lane: Copy + Default + 'static {
    /// The low bits of a value.
    fn wrap(value: i64) -> Self;

    /// The wrapped sum with a 32-bit offset.
    fn add32(self, offset: u32) -> Self;

    /// The wrapped sum with a 64-bit offset.
    fn add(self, offset: u64) -> Self;

    /// The wrapped sum of two values.
    fn plus(self, other: Self) -> Self;

    /// The wrapped product of two values.
    fn times(self, other: Self) -> Self;
}

macro_rules! lane {
    ($($type:ty),*) => {$(
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss, clippy::cast_lossless)]
        impl Lane for $type {
            #[inline(always)]
            fn wrap(value: i64) -> Self {
                value as Self
            }

            #[inline(always)]
            fn add32(self, offset: u32) -> Self {
                self.wrapping_add(offset as Self)
            }

            #[inline(always)]
            fn add(self, offset: u64) -> Self {
                self.wrapping_add(offset as Self)
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
    )*};
}

lane!(i16, i32, i64, u32);

/// Runs that are shorter than this on average are expanded when they are decoded.
const KEPT_RUN: usize = 32;

/// A selection of fewer than one row in this many is taken and tested row by row.
const SINGLE_ROWS: usize = 16;

/// The same if a row is found by a search or by counting bits.
const SEARCHED_ROWS: usize = 64;

/// An integer node over its stored bytes.
#[derive(Debug)]
pub struct IntNode<'a> {
    rows: usize,
    kind: Kind<'a>,
}

#[derive(Debug)]
enum Kind<'a> {
    Plain(PlainInts<'a>),
    Constant(i64),
    Sequence(i64, i64),
    RunLength(RunLength<'a>),
    BitPacked(BitPacked<'a>),
    Delta(Delta<'a>),
    Levels(Levels<'a>),
    Multiple(Multiple<'a>),
    Periodic(Periodic<'a>),
}

impl<'a> IntNode<'a> {
    /// Opens the node (tag and payload) that fills the rest of `reader`. `depth` levels of children are
    /// allowed.
    pub fn open(reader: &mut Reader<'a>, rows: usize, depth: u8) -> Result<Self> {
        let id = EncodingId::from_tag(reader.u8()?)?;
        Self::open_tagged(id, reader, rows, depth)
    }

    /// Opens a node whose tag was read already.
    pub fn open_tagged(id: EncodingId, reader: &mut Reader<'a>, rows: usize, depth: u8) -> Result<Self> {
        let kind = match id {
            EncodingId::Plain => Kind::Plain(PlainInts::open(reader, rows)?),
            EncodingId::Constant => Kind::Constant(reader.zigzag()?),
            EncodingId::Sequence => Kind::Sequence(reader.zigzag()?, reader.zigzag()?),
            EncodingId::RunLength => Kind::RunLength(RunLength::open(reader, rows, depth)?),
            EncodingId::BitPacked => Kind::BitPacked(BitPacked::open(reader, rows)?),
            EncodingId::Delta => Kind::Delta(Delta::open(reader, rows)?),
            EncodingId::Levels => Kind::Levels(Levels::open(reader, rows)?),
            EncodingId::Multiple => Kind::Multiple(Multiple::open(reader, rows, depth)?),
            EncodingId::Periodic => Kind::Periodic(Periodic::open(reader, rows, depth)?),
            _ => return Err(Error::corrupt(format!("encoding {} for integers", id.name()))),
        };
        Ok(Self { rows, kind })
    }

    /// The value of every row, if the node says that they are all the same.
    pub const fn constant(&self) -> Option<i64> {
        match self.kind {
            Kind::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The first value, if the node says that each value is one more than the one before.
    pub fn consecutive(&self) -> Option<i64> {
        let steps = i64::try_from(self.rows).ok()?;
        match self.kind {
            // Sequences wrap around. A sequence that does so must be decoded.
            Kind::Sequence(first, 1) => first.checked_add(steps).map(|_| first),
            _ => None,
        }
    }

    /// Ends and values of the runs, if the node has runs that are long enough to stay runs in memory.
    pub fn runs(&self) -> Option<(&[u32], &IntNode<'a>)> {
        match &self.kind {
            Kind::RunLength(runs) if runs.ends().len() * KEPT_RUN <= self.rows => {
                Some((runs.ends(), runs.values()))
            }
            _ => None,
        }
    }

    /// Appends its name and those of its children.
    pub fn describe(&self, out: &mut String) {
        match &self.kind {
            Kind::Plain(_) => out.push_str(EncodingId::Plain.name()),
            Kind::Constant(_) => out.push_str(EncodingId::Constant.name()),
            Kind::Sequence(..) => out.push_str(EncodingId::Sequence.name()),
            Kind::RunLength(runs) => runs.describe(out),
            Kind::BitPacked(packed) => packed.describe(out),
            Kind::Delta(_) => out.push_str(EncodingId::Delta.name()),
            Kind::Levels(_) => out.push_str(EncodingId::Levels.name()),
            Kind::Multiple(multiple) => multiple.describe(out),
            Kind::Periodic(periodic) => periodic.describe(out),
        }
    }

    /// Appends all values.
    pub fn decode_into<T: Lane>(&self, out: &mut Vec<T>) -> Result<()> {
        match &self.kind {
            Kind::Plain(plain) => plain.decode_into(out),
            Kind::Constant(value) => out.resize(out.len() + self.rows, T::wrap(*value)),
            Kind::Sequence(first, step) => {
                let start = out.len();
                out.resize(start + self.rows, T::default());
                if let Some(values) = out.get_mut(start..) {
                    fill::sequence(*first, *step, values);
                }
            }
            Kind::RunLength(runs) => runs.decode_into(out)?,
            Kind::BitPacked(packed) => packed.decode_into(out)?,
            Kind::Delta(delta) => delta.decode_into(out)?,
            Kind::Levels(levels) => levels.decode_into(out),
            Kind::Multiple(multiple) => multiple.decode_into(out)?,
            Kind::Periodic(periodic) => periodic.decode_into(out)?,
        }
        Ok(())
    }

    /// The value of one row. Cheap for every encoding but delta, which unpacks up to one block.
    pub fn get(&self, row: usize) -> Result<i64> {
        if row >= self.rows {
            return Err(Error::corrupt(format!("row {row} of {}", self.rows)));
        }
        match &self.kind {
            Kind::Plain(plain) => plain.get(row).ok_or_else(|| Error::corrupt("plain integers cut short")),
            Kind::Constant(value) => Ok(*value),
            Kind::Sequence(first, step) => {
                Ok(first.wrapping_add(step.wrapping_mul(i64::try_from(row).unwrap_or(0))))
            }
            Kind::RunLength(runs) => runs.get(row),
            Kind::BitPacked(packed) => packed.get(row),
            Kind::Delta(delta) => delta.get(row),
            Kind::Levels(levels) => Ok(levels.get(row)),
            Kind::Multiple(multiple) => multiple.get(row),
            Kind::Periodic(periodic) => periodic.get(row),
        }
    }

    /// Appends the values of these ascending rows. If they are many, all values are decoded. That takes a
    /// fraction of a nanosecond for each value. Finding a single value takes some nanoseconds, and tens of
    /// them in runs and levels.
    pub fn take_into<T: Lane>(&self, rows: &[u32], out: &mut Vec<T>) -> Result<()> {
        out.reserve(rows.len());
        let single = match (&self.kind, rows) {
            (Kind::Delta(delta), [_, _, ..]) => return delta.take_into(rows, out),
            (Kind::Multiple(multiple), _) => return multiple.take_into(rows, out),
            (Kind::RunLength(_) | Kind::Levels(_), _) => SEARCHED_ROWS,
            (Kind::BitPacked(_) | Kind::Periodic(_), _) => SINGLE_ROWS,
            _ => 0,
        };
        if rows.len() * single < self.rows || single == 0 {
            for &row in rows {
                out.push(T::wrap(self.get(row as usize)?));
            }
            return Ok(());
        }
        let mut values: Vec<T> = Vec::new();
        self.decode_into(&mut values)?;
        for &row in rows {
            let value = values.get(row as usize);
            out.push(*value.ok_or_else(|| Error::corrupt(format!("row {row} of {}", self.rows)))?);
        }
        Ok(())
    }

    /// One bit a row: does the value pass? Only rows in `selection` need a right bit.
    pub(crate) fn test(&self, test: &IntCondition, selection: &Selection) -> Result<Bitmap> {
        match &self.kind {
            Kind::Constant(value) => return Ok(Bitmap::filled(self.rows, test.passes(i128::from(*value)))),
            Kind::RunLength(runs) => return runs.test(test, self.rows),
            Kind::Multiple(multiple) => {
                if let Some(bits) = multiple.test(test, selection)? {
                    return Ok(bits);
                }
            }
            _ => {}
        }
        if let Selection::Rows(rows) = selection
            && rows.len() * SINGLE_ROWS < self.rows
        {
            let mut values: Vec<i64> = Vec::new();
            self.take_into(rows, &mut values)?;
            let mut bits = Bitmap::filled(self.rows, false);
            for (&row, &value) in rows.iter().zip(&values) {
                bits.set(row as usize, test.passes(i128::from(value)));
            }
            return Ok(bits);
        }
        match &self.kind {
            Kind::BitPacked(packed) => packed.test(test, self.rows, selection),
            Kind::Delta(delta) => delta.test(test, self.rows, selection),
            _ => {
                let mut values: Vec<i64> = Vec::new();
                self.decode_into(&mut values)?;
                let mut words = Words::new(self.rows);
                for (at, values) in values.chunks(BLOCK).enumerate() {
                    mark_values(values, test, words.block(at));
                }
                Ok(words.finish())
            }
        }
    }
}
