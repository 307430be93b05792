//! An opened integer node: one enum over the integer encodings, so that children cost no allocation.

use vector::{Bitmap, Error, Result, Selection};

use super::plain::PlainInts;
use crate::cursor::Reader;
use crate::filter::IntTest;
use crate::options::EncodingId;

/// A width that integers can be decoded to; wider values wrap.
pub trait Lane: Copy + Default + 'static {
    /// The low bits of a value.
    fn wrap(value: i64) -> Self;
}

impl Lane for i16 {
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    fn wrap(value: i64) -> Self {
        value as Self
    }
}

impl Lane for i32 {
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    fn wrap(value: i64) -> Self {
        value as Self
    }
}

impl Lane for u32 {
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn wrap(value: i64) -> Self {
        value as Self
    }
}

impl Lane for i64 {
    #[inline(always)]
    fn wrap(value: i64) -> Self {
        value
    }
}

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
}

impl<'a> IntNode<'a> {
    /// Opens the node (tag and payload) that fills the rest of `reader`; `depth` levels of children are allowed.
    pub fn open(reader: &mut Reader<'a>, rows: usize, depth: u8) -> Result<Self> {
        let id = EncodingId::from_tag(reader.u8()?)?;
        Self::open_tagged(id, reader, rows, depth)
    }

    /// The same for a node whose tag was read already.
    pub fn open_tagged(id: EncodingId, reader: &mut Reader<'a>, rows: usize, _depth: u8) -> Result<Self> {
        let kind = match id {
            EncodingId::Plain => Kind::Plain(PlainInts::open(reader, rows)?),
            EncodingId::Constant => Kind::Constant(reader.zigzag()?),
            _ => return Err(Error::corrupt(format!("encoding {} for integers", id.name()))),
        };
        Ok(Self { rows, kind })
    }

    /// Number of values.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The value of every row, if the node says that they are all the same.
    pub const fn constant(&self) -> Option<i64> {
        match self.kind {
            Kind::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Appends its name and those of its children.
    pub fn describe(&self, out: &mut String) {
        out.push_str(match &self.kind {
            Kind::Plain(_) => EncodingId::Plain.name(),
            Kind::Constant(_) => EncodingId::Constant.name(),
        });
    }

    /// Appends all values.
    pub fn decode_into<T: Lane>(&self, out: &mut Vec<T>) -> Result<()> {
        match &self.kind {
            Kind::Plain(plain) => plain.decode_into(out),
            Kind::Constant(value) => out.resize(out.len() + self.rows, T::wrap(*value)),
        }
        Ok(())
    }

    /// The value of one row. Cheap for every encoding but delta, which unpacks up to one block.
    pub fn get(&self, row: usize) -> Result<i64> {
        match &self.kind {
            Kind::Plain(plain) => plain.get(row),
            Kind::Constant(value) => (row < self.rows).then_some(*value),
        }
        .ok_or_else(|| Error::corrupt(format!("row {row} of {}", self.rows)))
    }

    /// Appends the values of these ascending rows.
    pub fn take_into<T: Lane>(&self, rows: &[u32], out: &mut Vec<T>) -> Result<()> {
        out.reserve(rows.len());
        for &row in rows {
            out.push(T::wrap(self.get(row as usize)?));
        }
        Ok(())
    }

    /// One bit a row: does the value pass? Only rows in `selection` need a right bit.
    pub(crate) fn test(&self, test: &IntTest, selection: &Selection) -> Result<Bitmap> {
        if let Kind::Constant(value) = self.kind {
            return Ok(Bitmap::filled(self.rows, test.passes(i128::from(value))));
        }
        match selection {
            Selection::Rows(rows) if rows.len() * 8 < self.rows => {
                let mut bits = Bitmap::filled(self.rows, false);
                for &row in rows {
                    bits.set(row as usize, test.passes(i128::from(self.get(row as usize)?)));
                }
                Ok(bits)
            }
            _ => {
                let mut values: Vec<i64> = Vec::new();
                self.decode_into(&mut values)?;
                Ok(values.iter().map(|&value| test.passes(i128::from(value))).collect())
            }
        }
    }
}
