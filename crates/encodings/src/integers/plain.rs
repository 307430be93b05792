//! Plain integers: a width in bytes and the values, two's complement.

use vector::{Error, Result};

use super::Lane;
use crate::cursor::{Reader, Writer};
use crate::options::EncodingId;

/// The narrowest width that holds `low..=high`.
const fn width(low: i64, high: i64) -> u8 {
    if low >= i8::MIN as i64 && high <= i8::MAX as i64 {
        1
    } else if low >= i16::MIN as i64 && high <= i16::MAX as i64 {
        2
    } else if low >= i32::MIN as i64 && high <= i32::MAX as i64 {
        4
    } else {
        8
    }
}

fn width_of(values: &[i64]) -> u8 {
    width(values.iter().copied().min().unwrap_or(0), values.iter().copied().max().unwrap_or(0))
}

/// Bytes of a plain node.
pub(super) fn bytes(values: &[i64]) -> usize {
    values.len() * usize::from(width_of(values)) + 1
}

/// Appends a plain node.
pub(super) fn write(values: &[i64], out: &mut Writer) {
    let width = width_of(values);
    out.u8(EncodingId::Plain.tag());
    out.u8(width);
    let buffer = out.buffer();
    buffer.reserve(values.len() * usize::from(width));
    for value in values {
        let bytes = value.to_le_bytes();
        buffer.extend_from_slice(bytes.get(..usize::from(width)).unwrap_or(&bytes));
    }
}

/// Plain integers over their bytes.
#[derive(Debug, Clone, Copy)]
pub(super) enum PlainInts<'a> {
    One(&'a [[u8; 1]]),
    Two(&'a [[u8; 2]]),
    Four(&'a [[u8; 4]]),
    Eight(&'a [[u8; 8]]),
}

impl<'a> PlainInts<'a> {
    pub(super) fn open(reader: &mut Reader<'a>, rows: usize) -> Result<Self> {
        match reader.u8()? {
            1 => Ok(Self::One(reader.take(rows)?.as_chunks().0)),
            2 => Ok(Self::Two(reader.take(rows * 2)?.as_chunks().0)),
            4 => Ok(Self::Four(reader.take(rows * 4)?.as_chunks().0)),
            8 => Ok(Self::Eight(reader.take(rows * 8)?.as_chunks().0)),
            width => Err(Error::corrupt(format!("plain integers of {width} bytes"))),
        }
    }

    pub(super) fn decode_into<T: Lane>(&self, out: &mut Vec<T>) {
        match self {
            Self::One(values) => {
                out.extend(values.iter().map(|v| T::wrap(i64::from(i8::from_le_bytes(*v)))));
            }
            Self::Two(values) => {
                out.extend(values.iter().map(|v| T::wrap(i64::from(i16::from_le_bytes(*v)))));
            }
            Self::Four(values) => {
                out.extend(values.iter().map(|v| T::wrap(i64::from(i32::from_le_bytes(*v)))));
            }
            Self::Eight(values) => out.extend(values.iter().map(|v| T::wrap(i64::from_le_bytes(*v)))),
        }
    }

    pub(super) fn get(&self, row: usize) -> Option<i64> {
        match self {
            Self::One(values) => values.get(row).map(|v| i64::from(i8::from_le_bytes(*v))),
            Self::Two(values) => values.get(row).map(|v| i64::from(i16::from_le_bytes(*v))),
            Self::Four(values) => values.get(row).map(|v| i64::from(i32::from_le_bytes(*v))),
            Self::Eight(values) => values.get(row).map(|v| i64::from_le_bytes(*v)),
        }
    }
}
