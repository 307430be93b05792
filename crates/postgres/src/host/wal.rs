//! WAL records of the server's that we write.

use pgrx::pg_sys::{self, BlockNumber, Buffer, TransactionId};

use super::buffer;
use super::relation::Open;
use super::relation_file::{FileLocator, locator};
use crate::compat;

/// Logs that the traces of rows which `newest` and older transactions have killed are about to be removed. A
/// standby replays it by ending queries that may still see such a row. (The record is the one for a btree
/// page that is used again.)
pub fn log_conflict_horizon(rel: Open, newest: TransactionId) {
    // SAFETY: reads a counter.
    let next = unsafe { pg_sys::ReadNextFullTransactionId().value };
    let (epoch, newest) = (next >> 32, u64::from(newest.into_inner()));
    // If the counter has wrapped since, the id is of the epoch before.
    let epoch = if newest > next & u64::from(u32::MAX) { epoch.saturating_sub(1) } else { epoch };
    log_full_conflict_horizon(rel, epoch << 32 | newest);
}

/// The same for a transaction id with its epoch: a standby ends queries whose snapshots are not newer.
pub fn log_full_conflict_horizon(rel: Open, newest: u64) {
    const XLOG_BTREE_REUSE_PAGE: u8 = 0xD0;
    #[repr(C)]
    struct ReusePage {
        locator: FileLocator,
        block: BlockNumber,
        newest: u64,
    }
    // SAFETY: the record's data is copied by the server.
    unsafe {
        let mut record = ReusePage { locator: locator(rel), block: 0, newest };
        pg_sys::XLogBeginInsert();
        pg_sys::XLogRegisterData((&raw mut record).cast(), size_of::<ReusePage>() as _);
        let mut flag = [0; compat::CATALOG_FLAG];
        if !flag.is_empty() {
            pg_sys::XLogRegisterData(flag.as_mut_ptr().cast(), flag.len() as _);
        }
        pg_sys::XLogInsert(pg_sys::RmgrIds::RM_BTREE_ID as u8, XLOG_BTREE_REUSE_PAGE);
    }
}

/// Logs that xmax and its bits of a row's version have changed, because somebody has locked the row by an
/// older version. `cleared`: its page was all-frozen in the visibility map before. Called in a critical
/// section, with the page locked.
pub unsafe fn log_version_locked(rel: Open, page: Buffer, tuple: &pg_sys::HeapTupleData, cleared: bool) {
    const XLOG_HEAP2_LOCK_UPDATED: u8 = 0x60;
    #[repr(C)]
    struct LockUpdated {
        xmax: TransactionId,
        offset: u16,
        bits: u8,
        flags: u8,
    }
    // SAFETY: the record's data is copied by the server.
    unsafe {
        if !rel.needs_wal() {
            return;
        }
        let header = tuple.t_data;
        let of = |word: u16, server: u32, ours: u8| if u32::from(word) & server != 0 { ours } else { 0 };
        let (one, two) = ((*header).t_infomask, (*header).t_infomask2);
        let mut record = LockUpdated {
            xmax: (*header).t_choice.t_heap.t_xmax,
            offset: tuple.t_self.ip_posid,
            bits: of(one, pg_sys::HEAP_XMAX_IS_MULTI, 0x01)
                | of(one, pg_sys::HEAP_XMAX_LOCK_ONLY, 0x02)
                | of(one, pg_sys::HEAP_XMAX_EXCL_LOCK, 0x04)
                | of(one, pg_sys::HEAP_XMAX_KEYSHR_LOCK, 0x08)
                | of(two, pg_sys::HEAP_KEYS_UPDATED, 0x10),
            flags: u8::from(cleared),
        };
        pg_sys::XLogBeginInsert();
        pg_sys::XLogRegisterBuffer(0, page, pg_sys::REGBUF_STANDARD as u8);
        pg_sys::XLogRegisterData((&raw mut record).cast(), size_of::<LockUpdated>() as _);
        let at = pg_sys::XLogInsert(pg_sys::RmgrIds::RM_HEAP2_ID as u8, XLOG_HEAP2_LOCK_UPDATED);
        buffer::set_lsn(buffer::page(page), at);
    }
}

/// Makes these line pointers of a heap table's page dead, and logs that if `logged`. Their tuples matter to
/// no snapshot. Called in a critical section, with the page locked for cleanup.
pub unsafe fn make_dead(rel: Open, page: Buffer, offsets: &mut [u16], logged: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        compat::make_dead(page, offsets);
        let head = buffer::page(page).cast::<pg_sys::PageHeaderData>();
        (*head).pd_flags &= !(pg_sys::PD_PAGE_FULL as u16);
        pg_sys::MarkBufferDirty(page);
        if logged {
            compat::log_made_dead(rel.as_ptr(), page, offsets);
        }
    }
}
