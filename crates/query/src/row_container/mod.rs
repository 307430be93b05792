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
pub use value_column::{Integers, ValueColumn, float_order};
use vector::{LogicalType, Values, Vector, VectorBuilder};

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
