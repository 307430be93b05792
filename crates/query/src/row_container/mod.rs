//! Rows that operators keep: hashes of rows, columns of kept values that grow, and batches written to temporary files.
//!
//! Shared by aggregation, sorting, joins and windows. Kept values are columns, too: a group's key or a build row is a position, and its values are found there.

mod batch_queue;
mod coding;
pub mod hash;
mod int_index;
mod numbering;
mod pages;
mod prefetch;
mod row_set;
mod value_column;

use std::sync::Arc;

pub use batch_queue::BatchQueue;
pub use numbering::Numbering;
pub use pages::{BatchFile, Partitions};
pub use row_set::{ABSENT, RowSet};
pub use value_column::{Integers, ValueColumn, float_order, integer_of, is_special};
use vector::{ByteView, ByteViews, LogicalType, Values, Vector, VectorBuilder};

use crate::{Result, interrupt};

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

/// A vector of `rows` NULLs.
pub fn nulls(logical: LogicalType, rows: usize) -> Vector {
    let mut one = VectorBuilder::new(logical);
    one.push_null();
    let one = one.finish(&|_, _, _| Box::default());
    Vector::new(logical, Values::Constant(Box::new(one), rows))
}

/// The same values in few large buffers, and without what no view points at: taking rows copies the list of buffers, and holds them.
pub fn compacted(views: &ByteViews) -> Result<ByteViews> {
    const BUFFER: usize = 1 << 30;
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
        open.extend_from_slice(value);
    }
    if !open.is_empty() {
        buffers.push(Arc::new(open));
    }
    Ok(ByteViews::from_parts(moved, buffers))
}
