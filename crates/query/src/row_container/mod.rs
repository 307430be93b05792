//! Rows that operators keep: their numbers by value, columns of kept values that grow, and batches written
//! to temporary files.
//!
//! Shared by aggregation, sorting, joins and windows. Kept values are columns, too: a group's key or a build
//! row is a position, and its values are found there.

mod batch_queue;
mod group_numbers;
mod int_codes;
mod int_index;
mod key_codes;
mod pages;
mod prefetch;
mod row_set;
mod tagged_slots;
mod value_column;

use std::sync::Arc;

pub use batch_queue::{BatchQueue, Queued};
pub use group_numbers::Numbering;
pub use int_codes::{IntCodes, NO_CODE};
pub use int_index::IntIndex;
pub use pages::{BatchFile, Partitions};
pub use row_set::{ABSENT, RowSet};
pub use tagged_slots::TaggedSlots;
pub use value_column::{Integers, ValueColumn, float_order, integer_of, integers_of, is_special};
use vector::{ByteView, ByteViews, LogicalType, Values, Vector, VectorBuilder};

use crate::{Error, Result, interrupt};

/// The vector without constants, codes and runs; shared where it has none.
#[must_use]
pub fn flat(vector: &Arc<Vector>) -> Arc<Vector> {
    match &vector.values {
        Values::Constant(..) | Values::Dictionary { .. } | Values::Runs { .. } => {
            Arc::new(vector.as_ref().clone().flatten())
        }
        _ => Arc::clone(vector),
    }
}

/// A table of `len` entries that are as new.
///
/// # Errors
/// `OutOfMemory`.
pub fn table_of<T: Default + Clone>(len: usize) -> Result<Vec<T>> {
    let mut slots = Vec::new();
    slots.try_reserve_exact(len).map_err(|_| Error::out_of_memory(len * size_of::<T>()))?;
    slots.resize(len, T::default());
    Ok(slots)
}

/// A vector of `rows` NULLs.
pub fn nulls(logical: LogicalType, rows: usize) -> Vector {
    let mut one = VectorBuilder::new(logical);
    one.push_null();
    let one = one.finish(&|_, _, _| Box::default());
    Vector::new(logical, Values::Constant(Box::new(one), rows))
}

/// The same values in few large buffers, and without what no view points at: taking rows copies the list of
/// buffers, and holds them. Values that many rows share are left where they are, if they are long: each row
/// would get its own.
pub fn compacted(views: &ByteViews) -> Result<ByteViews> {
    const BUFFER: usize = 1 << 30;
    const COPIED: usize = 16 << 20;
    let mut ends: Vec<usize> = Vec::new();
    let mut total = 0;
    for (view, (buffer, offset)) in views.views().iter().filter_map(|view| Some((view, view.place()?))) {
        let buffer = buffer as usize;
        if ends.len() <= buffer {
            ends.resize(buffer + 1, 0);
        }
        ends[buffer] = ends[buffer].max(offset as usize + view.len());
        total += view.len();
    }
    if total > COPIED && total > ends.iter().sum() {
        return Ok(views.clone());
    }
    let mut buffers = Vec::new();
    let mut open: Vec<u8> = Vec::new();
    let mut moved = Vec::with_capacity(views.len());
    for (row, view) in views.views().iter().enumerate() {
        interrupt::check_at(row)?;
        if view.place().is_none() {
            moved.push(*view);
            continue;
        }
        let value = views.get(row);
        if !open.is_empty() && open.len() + value.len() > BUFFER {
            buffers.push(Arc::new(std::mem::take(&mut open)));
        }
        let number = u32::try_from(buffers.len()).unwrap_or(u32::MAX);
        let (len, offset) = (u32::try_from(value.len()), u32::try_from(open.len()));
        let (len, offset) = (len.unwrap_or(0), offset.unwrap_or(0));
        moved.push(ByteView::reference(len, view.prefix(), number, offset));
        open.try_reserve(value.len()).map_err(|_| Error::out_of_memory(open.len() + value.len()))?;
        open.extend_from_slice(value);
    }
    if !open.is_empty() {
        buffers.push(Arc::new(open));
    }
    Ok(ByteViews::from_parts(moved, buffers))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A long text that many rows share stays one; long texts of which each row has its own come into one
    /// buffer.
    #[test]
    fn shared_values_are_not_multiplied() {
        let long: ByteViews =
            std::iter::once(vec![b'x'; 1 << 20]).collect::<Vec<_>>().iter().map(Vec::as_slice).collect();
        let shared = compacted(&long.take(&[0; 100])).unwrap();
        assert_eq!(shared.len(), 100);
        assert!(shared.views().iter().all(|view| view.place() == shared.views()[0].place()));
        let own: Vec<Vec<u8>> = (0..100u8).map(|row| vec![row; 1 << 18]).collect();
        let own: ByteViews = own.iter().map(Vec::as_slice).collect();
        let moved = compacted(&own.take(&(0..100).rev().collect::<Vec<_>>())).unwrap();
        assert!(moved.iter().zip((0..100u8).rev()).all(|(value, row)| value == vec![row; 1 << 18]));
        assert!(moved.views().windows(2).all(|pair| pair[0].place() < pair[1].place()));
    }
}
