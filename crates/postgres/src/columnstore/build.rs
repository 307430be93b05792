//! CREATE INDEX and REINDEX: all blocks that are all-visible are copied.
//!
//! Nobody writes to the table meanwhile (ShareLock), so a copy counts at once. The bits of a table that was
//! just loaded are set here, as VACUUM would set them.
//!
//! An index that is built CONCURRENTLY begins empty: writers of that time tell nobody of their rows. Later
//! the server inserts every row, which finds no copy. A refresh fills the index.

use pgrx::pg_guard;
use pgrx::pg_sys::{self, IndexBuildResult, IndexInfo, Relation};

use super::layout::{self, Kind};
use super::refresh::Refresh;
use super::{access_method, regions};
use crate::host::relation::Open;
use crate::host::{buffer, critical, generic_wal};
use crate::storage::file::metapage;

/// `ambuild`.
#[pg_guard]
pub unsafe extern "C-unwind" fn build(
    heap: Relation,
    index: Relation,
    info: *mut IndexInfo,
) -> *mut IndexBuildResult {
    // SAFETY: the server passes open relations, locked as it builds indexes.
    unsafe {
        let (heap, index) = (Open::of(heap), Open::of(index));
        access_method::refuse(heap, index, info);
        regions::forget(index);
        regions::create(index);
        let result = pg_sys::palloc0(size_of::<IndexBuildResult>()).cast::<IndexBuildResult>();
        let rows = match (*info).ii_Concurrent {
            true => (*heap.form()).reltuples.max(0.0).into(),
            false => with_snapshot(|| Refresh::build(index, heap).rows as f64),
        };
        ((*result).heap_tuples, (*result).index_tuples) = (rows, rows);
        result
    }
}

/// Runs with a snapshot that keeps the values that lie outside of their rows.
fn with_snapshot<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: an ERROR takes the snapshot off with the transaction.
    unsafe {
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let result = work();
        pg_sys::PopActiveSnapshot();
        result
    }
}

/// `ambuildempty`: the init fork of an unlogged index.
#[pg_guard]
pub unsafe extern "C-unwind" fn build_empty(index: Relation) {
    let id = metapage::new_storage_id();
    // SAFETY: the fork is new, and nobody else has it. Inside the critical section are stores and logging.
    unsafe {
        let buf = pg_sys::ReadBufferExtended(
            index,
            pg_sys::ForkNumber::INIT_FORKNUM,
            buffer::NEW_BLOCK,
            pg_sys::ReadBufferMode::RBM_ZERO_AND_LOCK,
            std::ptr::null_mut(),
        );
        critical::start();
        let page = buffer::page(buf);
        generic_wal::without_hole(page);
        layout::begin(&mut *page.cast::<layout::PageBytes>(), Kind::Meta, id);
        pg_sys::MarkBufferDirty(buf);
        pg_sys::log_newpage_buffer(buf, true);
        critical::end();
        buffer::unlock_release(buf);
    }
}
