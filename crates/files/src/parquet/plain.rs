//! Values that lie plainly one after the other, as vectors of a column of PostgreSQL.
//!
//! Called for data pages and for dictionaries. Values of four and eight bytes go straight to where they
//! belong. What is rarer goes by way of `to_column`.

use std::ops::Range;
use std::sync::Arc;

use vector::{
    ByteView, ByteViews, DisplayScales, LogicalType, NumericInts, NumericValues, Values, Vector,
    VectorBuilder,
};

use super::file::ReadColumn;
use super::read::{big_endian, half, is_text};
use super::{schema, to_column};
use crate::{Error, FieldKind, Result, json};

/// Decimals of at most so many digits have an integer of 64 bits.
const DIGITS_OF_64: u16 = 18;

/// A value of PostgreSQL with its length word has fewer bytes than this and that word.
const LONGEST: usize = (1 << 30) - 64;

/// How values lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Four bytes each: integers, or reals.
    Int32,
    Float,
    /// Eight bytes each.
    Int64,
    Double,
    /// So many bytes each.
    Fixed(usize),
    /// Four bytes that say how many follow.
    Bytes,
}

impl Layout {
    /// Bytes of a value. None where they differ.
    const fn width(self) -> Option<usize> {
        match self {
            Self::Int32 | Self::Float => Some(4),
            Self::Int64 | Self::Double => Some(8),
            Self::Fixed(width) => Some(width),
            Self::Bytes => None,
        }
    }

    /// Bytes that the first values take.
    pub fn length(self, bytes: &[u8], count: usize) -> Result<usize> {
        let length = match self.width() {
            Some(width) => width.checked_mul(count).ok_or_else(ended)?,
            None => {
                let mut at = 0;
                for _ in 0..count {
                    at = value_at(bytes, at)?.end;
                }
                at
            }
        };
        if length <= bytes.len() { Ok(length) } else { Err(ended()) }
    }
}

/// Refuses values of so many bytes that a server holds none.
pub fn fits(length: usize) -> Result<()> {
    match length < LONGEST {
        true => Ok(()),
        false => Err(Error::Unsupported(format!("a value of {length} bytes, where a server holds 1 GB"))),
    }
}

fn ended() -> Error {
    Error::Malformed("values end before their page".into())
}

/// Where a value lies that begins, with its length, at a place.
fn value_at(bytes: &[u8], at: usize) -> Result<Range<usize>> {
    let length = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).ok_or_else(ended)?;
    let (start, length) = (at + 4, u32::from_le_bytes(*length) as usize);
    fits(length)?;
    let end = start.checked_add(length);
    end.filter(|end| *end <= bytes.len()).map(|end| start..end).ok_or_else(ended)
}

/// The first values of some bytes, none of which is NULL, and how many bytes they take.
pub fn vector(column: &ReadColumn, layout: Layout, bytes: &[u8], count: usize) -> Result<(Vector, usize)> {
    let (views, length) = match layout {
        Layout::Bytes => views(bytes, count)?,
        _ => (ByteViews::new(), layout.length(bytes, count)?),
    };
    Ok((of(column, layout, bytes.get(..length).unwrap_or(&[]), views)?, length))
}

/// These values, of which `views` are those that differ in length.
fn of(column: &ReadColumn, layout: Layout, bytes: &[u8], views: ByteViews) -> Result<Vector> {
    let kind = column.kind;
    let of = |values: Values| Ok(Vector::new(column.logical, values));
    match (layout, kind) {
        (Layout::Int32, FieldKind::Integer { bits: 32 }) => {
            of(Values::Int32(fixed(bytes, i32::from_le_bytes)))
        }
        (Layout::Int32, FieldKind::Decimal { scale, .. }) => {
            of(decimals(NumericInts::Int32(fixed(bytes, i32::from_le_bytes)), scale))
        }
        (Layout::Int32, _) => {
            let wide = |bytes| match schema::is_unsigned(&column.description) {
                true => i64::from(u32::from_le_bytes(bytes)),
                false => i64::from(i32::from_le_bytes(bytes)),
            };
            to_column(Vector::new(LogicalType::Int64, Values::Int64(fixed(bytes, wide))), kind)
        }
        (Layout::Int64, FieldKind::Decimal { scale, .. }) => {
            of(decimals(NumericInts::Int64(fixed(bytes, i64::from_le_bytes)), scale))
        }
        (Layout::Int64, FieldKind::Unsigned) => {
            of(Values::Int64(fixed(bytes, |bytes| i64::from_le_bytes(bytes) ^ i64::MIN)))
        }
        (Layout::Int64, _) => {
            let values = Values::Int64(fixed(bytes, i64::from_le_bytes));
            to_column(Vector::new(LogicalType::Int64, values), kind)
        }
        (Layout::Float, FieldKind::Real { bits: 32 }) => {
            of(Values::Float32(fixed(bytes, f32::from_le_bytes)))
        }
        (Layout::Float, _) => of(Values::Float64(fixed(bytes, |bytes| f64::from(f32::from_le_bytes(bytes))))),
        (Layout::Double, _) => of(Values::Float64(fixed(bytes, f64::from_le_bytes))),
        (Layout::Bytes, FieldKind::Text | FieldKind::Bytes) => {
            if kind == FieldKind::Text && !is_all_text(bytes, &views) {
                return Err(Error::Malformed(format!(
                    "column {} has text that is not UTF-8",
                    column.field.name
                )));
            }
            of(Values::Bytes(views))
        }
        (Layout::Bytes, FieldKind::Json | FieldKind::Jsonb) => {
            let values = Vector::new(LogicalType::Bytes, Values::Bytes(views));
            json::read_as(values, kind, column.logical, &column.field.name)
        }
        (Layout::Fixed(width), FieldKind::Decimal { precision, scale }) => {
            of(decimals(big_decimals(bytes.chunks_exact(width), precision)?, scale))
        }
        (Layout::Bytes, FieldKind::Decimal { precision, scale }) => {
            of(decimals(big_decimals(views.iter(), precision)?, scale))
        }
        (Layout::Fixed(width), _) => of_bytes(column, bytes.chunks_exact(width)),
        (Layout::Bytes, _) => of_bytes(column, views.iter()),
    }
}

fn fixed<const N: usize, T>(bytes: &[u8], make: impl Fn([u8; N]) -> T) -> Vec<T> {
    let (chunks, _) = bytes.as_chunks::<N>();
    chunks.iter().map(|chunk| make(*chunk)).collect()
}

fn decimals(ints: NumericInts, scale: u16) -> Values {
    let display = DisplayScales::Constant(scale);
    Values::Numeric(NumericValues { ints, scale, display, side: Vec::new() })
}

/// Decimals whose bytes come greatest first.
fn big_decimals<'a>(values: impl Iterator<Item = &'a [u8]>, precision: u16) -> Result<NumericInts> {
    let unscaled =
        |bytes| big_endian(bytes).ok_or_else(|| Error::Unsupported("a decimal past 128 bits".into()));
    let all = values.map(unscaled).collect::<Result<Vec<i128>>>()?;
    if precision <= DIGITS_OF_64 {
        let narrow: std::result::Result<Vec<i64>, _> =
            all.iter().map(|value| i64::try_from(*value)).collect();
        if let Ok(narrow) = narrow {
            return Ok(NumericInts::Int64(narrow));
        }
    }
    Ok(NumericInts::Int128(all))
}

/// Values that are rare among bytes: uuids, half floats.
fn of_bytes<'a>(column: &ReadColumn, values: impl Iterator<Item = &'a [u8]>) -> Result<Vector> {
    let mut builder = VectorBuilder::new(match column.kind {
        FieldKind::Real { .. } => LogicalType::Float64,
        _ => column.logical,
    });
    for bytes in values {
        let fits = match column.kind {
            FieldKind::Real { .. } => half(bytes).is_some_and(|real| builder.push_f64(real)),
            FieldKind::Uuid if bytes.len() != 16 => false,
            _ => builder.push_bytes(bytes),
        };
        if !fits {
            return Err(Error::Malformed(format!(
                "column {} has values of another width",
                column.field.name
            )));
        }
    }
    to_column(builder.finish(&|_, _, _| Box::default()), column.kind)
}

/// The first values, which say each how long they are, and how many bytes they take.
fn views(bytes: &[u8], count: usize) -> Result<(ByteViews, usize)> {
    // The count is the file's word, and each value has four bytes at least.
    let mut views: Vec<ByteView> = Vec::with_capacity(count.min(bytes.len() / 4));
    let mut end = 0;
    for _ in 0..count {
        let value = value_at(bytes, end)?;
        let too_long = |_| Error::Unsupported("a page of more than 4 GiB".into());
        let (start, stop) = (u32::try_from(value.start), u32::try_from(value.end));
        let (start, stop) = (start.map_err(too_long)?, stop.map_err(too_long)?);
        views.push(ByteViews::view_at(bytes, start, stop - start));
        end = value.end;
    }
    let data = bytes.get(..end).unwrap_or(&[]).to_vec();
    Ok((ByteViews::from_parts(views, vec![Arc::new(data)]), end))
}

/// Whether all values are text that PostgreSQL can hold. `bytes` are those of the values and of their
/// lengths.
fn is_all_text(bytes: &[u8], values: &ByteViews) -> bool {
    // Most are ASCII. Then no character is the one of number zero if all zeros are those of lengths.
    if bytes.is_ascii() {
        let of_length =
            |view: &ByteView| view.len().to_le_bytes().iter().take(4).filter(|byte| **byte == 0).count();
        let expected: usize = values.views().iter().map(of_length).sum();
        if bytes.iter().filter(|byte| **byte == 0).count() == expected {
            return true;
        }
    }
    values.iter().all(is_text)
}
