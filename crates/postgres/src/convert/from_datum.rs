//! Filling vector builders from slots: one column at a time over a batch of rows.
//!
//! Called by `pending_rows` for every row that is loaded. So values are read through raw pointers, and the
//! type is looked at once per column and call. Slots must have all their attributes deconstructed.
//!
//! Invariant: when a call returns, every row that it was given is in the builder exactly once. An ERROR while
//! a value is fetched leaves the builder unusable, and ends the transaction that owns it.

use std::ffi::CStr;

use pgrx::pg_sys::{Datum, TupleTableSlot};
use server_bytes::numeric;
use vector::{LogicalType, Vector, VectorBuilder};

use super::type_map::{ColumnType, Shape};
use super::varlena;
use crate::host::memory;

/// Collects the values of one column.
pub struct ColumnWriter {
    kind: ColumnType,
    builder: VectorBuilder,
}

impl ColumnWriter {
    /// An empty column.
    pub fn new(kind: ColumnType) -> Self {
        Self { kind, builder: VectorBuilder::new(kind.logical) }
    }

    /// The column's type.
    pub const fn kind(&self) -> &ColumnType {
        &self.kind
    }

    /// Rows so far.
    pub const fn len(&self) -> usize {
        self.builder.len()
    }

    /// True when there is no row.
    pub const fn is_empty(&self) -> bool {
        self.builder.is_empty()
    }

    /// Memory held by the values, in bytes (an estimate for byte caps).
    pub const fn bytes(&self) -> usize {
        self.builder.bytes()
    }

    /// Adds one value.
    ///
    /// # Safety
    /// The Datum is one of the column's type, or NULL.
    pub unsafe fn push_value(&mut self, datum: Datum, is_null: bool) {
        // SAFETY: the caller's promise.
        unsafe { self.extend(std::iter::once((!is_null).then_some(datum))) };
    }

    /// Adds attribute `index` (zero-based) of every slot, in order.
    pub unsafe fn push(&mut self, slots: &[*mut TupleTableSlot], index: usize) {
        // SAFETY: the caller's slots have at least index + 1 valid attributes.
        unsafe {
            self.extend(
                slots
                    .iter()
                    .map(|&slot| (!*(*slot).tts_isnull.add(index)).then(|| *(*slot).tts_values.add(index))),
            );
        }
    }

    /// Adds values that are side by side in memory.
    pub unsafe fn push_datums(&mut self, values: &[Datum], nulls: &[bool]) {
        // SAFETY: the caller's values are of the column's type.
        unsafe { self.extend(values.iter().zip(nulls).map(|(&value, &null)| (!null).then_some(value))) };
    }

    /// Adds values; None is NULL.
    ///
    /// # Safety
    /// The Datums are of the column's type.
    pub unsafe fn extend(&mut self, rows: impl Iterator<Item = Option<Datum>>) {
        let builder = &mut self.builder;
        // SAFETY: for all arms: a Datum is what the column's type says.
        unsafe {
            match (self.kind.logical, self.kind.shape) {
                (LogicalType::Bool, _) => each(rows, builder, |b, d| b.push_bool(d.value() as u8 != 0)),
                (LogicalType::Int16, _) => each(rows, builder, |b, d| b.push_i16(d.value() as i16)),
                (LogicalType::Int32 | LogicalType::Date, _) => {
                    each(rows, builder, |b, d| b.push_i32(d.value() as i32));
                }
                (LogicalType::Int64 | LogicalType::Timestamp, _) => {
                    each(rows, builder, |b, d| b.push_i64(d.value() as i64));
                }
                (_, Shape::Unsigned) => {
                    each(rows, builder, |b, d| b.push_i64(vector::held(d.value() as u64)));
                }
                (LogicalType::Float32, _) => {
                    each(rows, builder, |b, d| b.push_f32(f32::from_bits(d.value() as u32)));
                }
                (LogicalType::Float64, _) => {
                    each(rows, builder, |b, d| b.push_f64(f64::from_bits(d.value() as u64)));
                }
                (LogicalType::Numeric, _) => each(rows, builder, |b, d| push_numeric(b, d)),
                (_, Shape::ByValue(width)) => each(rows, builder, |b, d| {
                    let bytes = (d.value() as u64).to_le_bytes();
                    b.push_bytes(bytes.get(..usize::from(width)).unwrap_or(&bytes))
                }),
                (LogicalType::Text, Shape::Fixed(width)) => each(rows, builder, |b, d| {
                    let bytes = std::slice::from_raw_parts(d.cast_mut_ptr::<u8>(), usize::from(width));
                    b.push_bytes(bytes.split(|&byte| byte == 0).next().unwrap_or(bytes))
                }),
                (_, Shape::Fixed(width)) => each(rows, builder, |b, d| {
                    b.push_bytes(std::slice::from_raw_parts(d.cast_mut_ptr::<u8>(), usize::from(width)))
                }),
                (_, Shape::Varlena { .. }) => each(rows, builder, |b, d| {
                    varlena::with_payload(d.cast_mut_ptr(), |bytes| {
                        // The buffer that the value goes to may have to move, which takes as much again.
                        memory::expect(bytes.len().saturating_mul(2));
                        b.push_bytes(bytes)
                    })
                }),
                (_, Shape::CString) => {
                    each(rows, builder, |b, d| b.push_bytes(CStr::from_ptr(d.cast_mut_ptr()).to_bytes()))
                }
            }
        }
    }

    /// The values so far as a flat vector. The column is empty afterwards.
    pub fn take(&mut self) -> Vector {
        let full = std::mem::replace(&mut self.builder, VectorBuilder::new(self.kind.logical));
        full.finish(&numeric::to_side)
    }
}

#[inline]
fn each(
    rows: impl Iterator<Item = Option<Datum>>,
    builder: &mut VectorBuilder,
    mut push: impl FnMut(&mut VectorBuilder, Datum) -> bool,
) {
    for row in rows {
        match row {
            None => builder.push_null(),
            Some(value) => {
                if !push(builder, value) {
                    crate::host::error::internal("a value does not have the type of its column");
                }
            }
        }
    }
}

#[inline]
unsafe fn push_numeric(builder: &mut VectorBuilder, datum: Datum) -> bool {
    // SAFETY: the column is numeric, so the Datum points at a varlena.
    unsafe {
        varlena::with_payload(datum.cast_mut_ptr(), |bytes| match numeric::decode(bytes) {
            Some(decimal) => builder.push_numeric(decimal.unscaled, decimal.scale, decimal.display),
            None => builder.push_numeric_side(bytes),
        })
    }
}
