//! Encodings of floats: decimals as integers (ALP), bits cut in two (ALP-RD), and the general ones
//! (dictionary, runs, plain).
//!
//! Invariant: bit patterns are kept exactly. NaN payloads and -0 are exceptions wherever arithmetic would
//! lose them.

mod alp;
mod alp_rd;

pub(crate) use alp::{Alp, AlpNode, open as open_alp};
pub(crate) use alp_rd::{AlpRd, AlpRdNode, open as open_alp_rd};

use std::ops::Range;

use vector::Values;

use crate::cursor::{Reader, Writer};
use crate::integers::{self, IntNode};
use crate::single::Single;
use vector::{Error, Result};

/// A float type: its bits in 64, and its value as a double.
pub(crate) trait Real: Copy + Default + 'static {
    /// Bytes of a value.
    const BYTES: usize;
    fn bits(self) -> u64;
    fn of_bits(bits: u64) -> Self;
    fn double(self) -> f64;
    fn of_double(value: f64) -> Self;
    fn single(self) -> Single<'static>;
}

impl Real for f32 {
    const BYTES: usize = 4;

    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits().into()
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    fn of_bits(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }

    #[inline(always)]
    fn double(self) -> f64 {
        self.into()
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    fn of_double(value: f64) -> Self {
        value as Self
    }

    fn single(self) -> Single<'static> {
        Single::Float32(self)
    }
}

impl Real for f64 {
    const BYTES: usize = 8;

    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits()
    }

    #[inline(always)]
    fn of_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }

    #[inline(always)]
    fn double(self) -> f64 {
        self
    }

    #[inline(always)]
    fn of_double(value: f64) -> Self {
        value
    }

    fn single(self) -> Single<'static> {
        Single::Float64(self)
    }
}

/// The place of a row among the ascending positions of exceptions.
fn exception_at(positions: &[u32], row: usize) -> Option<usize> {
    let row = u32::try_from(row).ok().filter(|_| !positions.is_empty())?;
    positions.binary_search(&row).ok()
}

/// Runs `$body` with `$values` bound to the floats of these rows, of either width.
macro_rules! with_floats {
    ($source:expr, $rows:expr, $values:ident => $body:expr) => {
        match $source {
            Values::Float32(all) => all.get($rows).map(|$values| $body),
            Values::Float64(all) => all.get($rows).map(|$values| $body),
            _ => None,
        }
    };
}
pub(crate) use with_floats;

/// About `count` values spread over the rows.
fn spread<T: Copy>(values: &[T], count: usize) -> Vec<T> {
    values.iter().step_by((values.len() / count).max(1)).copied().collect()
}

/// Rows of a whole column.
fn all_rows(values: &Values) -> Range<usize> {
    match values {
        Values::Float32(all) => 0..all.len(),
        Values::Float64(all) => 0..all.len(),
        _ => 0..0,
    }
}

/// Appends the rows of exceptions: their number (varint), and an integer child of their positions if there
/// are any.
fn write_positions(positions: &[i64], out: &mut Writer) {
    out.count(positions.len());
    if !positions.is_empty() {
        integers::write_child(positions, integers::CHILD_DEPTH, out);
    }
}

/// Reads the rows of exceptions: ascending and below `rows`.
fn read_positions(reader: &mut Reader<'_>, rows: usize, depth: u8) -> Result<Vec<u32>> {
    let count = reader.count(rows, "exceptions")?;
    let mut positions: Vec<u32> = Vec::new();
    if count > 0 {
        IntNode::open(&mut reader.child()?, count, depth)?.decode_into(&mut positions)?;
    }
    if positions.is_sorted_by(|a, b| a < b) && positions.last().is_none_or(|&last| (last as usize) < rows) {
        Ok(positions)
    } else {
        Err(Error::corrupt("positions of exceptions"))
    }
}
