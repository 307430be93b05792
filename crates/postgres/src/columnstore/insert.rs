//! `aminsert`: a row was added to a heap block, so the block's copy does not count any more.
//!
//! Called before the inserter can commit, so before the block can become all-visible with the row on it. It
//! is not skipped for a block that the same statement has found without a copy: rows that lose a speculative
//! insertion are dead at once, so that the block may be cleaned and copied while the statement goes on.

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, IndexInfo, ItemPointer, Relation};

use super::regions;
use crate::host::relation::Open;
use crate::storage::file::tid;

/// The callback.
#[pg_guard]
#[allow(clippy::too_many_arguments, reason = "the server's signature")]
pub unsafe extern "C-unwind" fn insert(
    index: Relation,
    _values: *mut Datum,
    _nulls: *mut bool,
    row: ItemPointer,
    _heap: Relation,
    _unique: pg_sys::IndexUniqueCheck::Type,
    _unchanged: bool,
    _info: *mut IndexInfo,
) -> bool {
    // SAFETY: the server passes an open index and a row's TID.
    unsafe { regions::clear(Open::of(index), tid::block_of(*row)) };
    false
}
