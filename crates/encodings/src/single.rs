//! One value of a chunk, for which no vector is made.
//!
//! Called for rows that are looked up one by one (`Chunk::single`). If few values are taken, making vectors
//! around them is most of the work.

use vector::{Values, Vector};

/// A value as a node gives it. What it borrows is the node's, or the room that the caller gave.
#[derive(Debug, Clone, Copy)]
pub enum Single<'a> {
    /// SQL NULL.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer, date or timestamp.
    Int(i64),
    /// A single float, bit pattern kept.
    Float32(f32),
    /// A double float, bit pattern kept.
    Float64(f64),
    /// An exact decimal.
    Numeric {
        /// Integer part of the representation.
        unscaled: i64,
        /// Power of ten it is divided by.
        scale: u16,
        /// Digits shown after the point.
        display: u16,
    },
    /// A byte string, or a value of fixed width.
    Bytes(&'a [u8]),
    /// A row of a vector that exists already: a dictionary's entry, or the one value of all rows.
    Of(&'a Vector, usize),
}

impl<'a> Single<'a> {
    /// The bytes of a byte string of variable width. `None` for any other value.
    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Of(Vector { values: Values::Bytes(views), .. }, row) if row < views.len() => {
                Some(views.get(row))
            }
            _ => None,
        }
    }

    /// An integer. `None` for any other value.
    pub(crate) fn int(self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(value),
            Self::Of(vector, row) => match &vector.values {
                Values::Int16(values) => values.get(row).map(|&value| value.into()),
                Values::Int32(values) => values.get(row).map(|&value| value.into()),
                Values::Int64(values) => values.get(row).copied(),
                _ => None,
            },
            _ => None,
        }
    }

    /// A truth value. `None` for any other value.
    pub(crate) fn truth(self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(value),
            Self::Of(Vector { values: Values::Bool(bits), .. }, row) if row < bits.len() => {
                Some(bits.get(row))
            }
            _ => None,
        }
    }
}
