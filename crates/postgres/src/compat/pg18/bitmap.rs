//! Bitmap scans of PostgreSQL 18 and later: one callback walks over the bitmap and gives row after row.
//!
//! A bitmap names blocks in ascending order, the cold ones last. The heap's blocks come through a stream that
//! reads ahead. The stream ends before the first cold block, and from there the bitmap is asked directly.
//!
//! Heap's callback would walk over the bitmap itself, and read blocks that no file has. So its scan is given
//! one page at a time, with the places of the visible rows. It is asked only for as many rows as that.

use std::ffi::c_void;

use pgrx::pg_sys::panic::pgrx_extern_c_guard;
use pgrx::pg_sys::{
    self, BlockNumber, Buffer, HeapScanDescData, HeapTupleData, ItemPointerData, ReadStream,
    TBMIterateResult, TableAmRoutine, TableScanDesc, TupleTableSlot,
};

use crate::compat::BitmapBlocks;

/// As many rows as a block of a bitmap can name: the server's MaxHeapTuplesPerPage. That many line pointers
/// of 4 bytes, with headers of 24, have room behind the page's own 24 bytes.
const ROWS: usize = (pg_sys::BLCKSZ as usize - 24) / (24 + 4);

/// What a bitmap scan keeps for its callback. It begins as zeroes.
pub struct BitmapState {
    /// The heap's blocks of the bitmap. Null before the first row.
    stream: *mut ReadStream,
    /// The first cold block, which the stream has come upon.
    first_cold: TBMIterateResult,
    has_first_cold: bool,
    /// The stream has ended.
    is_past_heap: bool,
    /// It stands on a page of the heap, or on a cold block.
    is_hot: bool,
    is_cold: bool,
}

/// Makes the scan begin again.
pub fn restart_bitmap(state: &mut BitmapState) {
    let stream = state.stream;
    // SAFETY: all its bytes may be zero; the stream is the scan's own.
    unsafe {
        *state = std::mem::zeroed();
        state.stream = stream;
        if !stream.is_null() {
            pg_sys::read_stream_reset(stream);
        }
    }
}

/// Gives back what it holds.
pub fn end_bitmap(state: &mut BitmapState) {
    // SAFETY: the stream is the scan's own.
    unsafe {
        if !state.stream.is_null() {
            pg_sys::read_stream_end(state.stream);
            state.stream = std::ptr::null_mut();
        }
    }
}

/// Sets the callback of a bitmap scan.
pub fn set_bitmap<B: BitmapBlocks>(routine: &mut TableAmRoutine) {
    /// Hot rows go straight through.
    unsafe extern "C-unwind" fn next_tuple<B: BitmapBlocks>(
        scan: TableScanDesc,
        slot: *mut TupleTableSlot,
        recheck: *mut bool,
        lossy: *mut u64,
        exact: *mut u64,
    ) -> bool {
        // SAFETY: the server's call; this frame owns nothing.
        unsafe {
            let heap = B::heap(scan);
            let page = heap.cast::<HeapScanDescData>();
            let Some(next) = B::heap_routine().scan_bitmap_next_tuple else { return false };
            loop {
                let state = B::state(scan);
                if state.is_cold && B::next(scan, *recheck, slot) {
                    return true;
                }
                let is_hot = state.is_hot;
                loop {
                    // Each call of heap's goes on by one row of the page.
                    if !is_hot || (*page).rs_cindex >= (*page).rs_ntuples {
                        break;
                    }
                    if next(heap, slot, recheck, lossy, exact) && B::is_there((*scan).rs_rd, scan, slot) {
                        return true;
                    }
                }
                let next_block = || next_block::<B>(scan, &mut *recheck, &mut *lossy, &mut *exact);
                if !pgrx_extern_c_guard(next_block) {
                    return false;
                }
            }
        }
    }
    routine.scan_bitmap_next_tuple = Some(next_tuple::<B>);
}

/// Goes to the next block of the bitmap that has rows for the scan. False at the end.
unsafe fn next_block<B: BitmapBlocks>(
    scan: TableScanDesc,
    recheck: &mut bool,
    lossy: &mut u64,
    exact: &mut u64,
) -> bool {
    // SAFETY: the scan is the access method's.
    unsafe {
        let state = B::state(scan);
        (state.is_hot, state.is_cold) = (false, false);
        if !state.is_past_heap {
            if state.stream.is_null() {
                state.stream = begin_stream::<B>(scan);
            }
            let mut named = std::ptr::null_mut();
            let page = pg_sys::read_stream_next_buffer(state.stream, &raw mut named);
            if page != 0 {
                let named = &mut *named.cast::<TBMIterateResult>();
                *(if named.lossy { lossy } else { exact }) += 1;
                *recheck = named.recheck;
                enter_page(scan, B::heap(scan), page, named);
                B::state(scan).is_hot = true;
                return true;
            }
            B::state(scan).is_past_heap = true;
        }
        let state = B::state(scan);
        loop {
            let mut named = state.first_cold;
            if !std::mem::take(&mut state.has_first_cold)
                && !pg_sys::tbm_iterate(&raw mut (*scan).st.rs_tbmiterator, &raw mut named)
            {
                return false;
            }
            pgrx::check_for_interrupts!();
            *(if named.lossy { &mut *lossy } else { &mut *exact }) += 1;
            *recheck = named.recheck;
            let mut rows = [0; ROWS];
            let rows = rows_of(&mut named, &mut rows);
            if B::begin(scan, named.blockno, rows) {
                state.is_cold = true;
                return true;
            }
        }
    }
}

/// The rows that a block of a bitmap names. None if it is lossy there.
fn rows_of<'a>(named: &mut TBMIterateResult, room: &'a mut [u16; ROWS]) -> Option<&'a [u16]> {
    if named.lossy {
        return None;
    }
    // SAFETY: the page of the bitmap is there for as long as the bitmap.
    let count = unsafe { pg_sys::tbm_extract_page_tuple(named, room.as_mut_ptr(), ROWS as u32) };
    room.get(..usize::try_from(count).unwrap_or(0))
}

/// A stream of the heap's blocks of a bitmap.
unsafe fn begin_stream<B: BitmapBlocks>(scan: TableScanDesc) -> *mut ReadStream {
    /// The next block of the heap. It owns nothing, as an ERROR jumps past it.
    unsafe extern "C-unwind" fn next<B: BitmapBlocks>(
        _stream: *mut ReadStream,
        scan: *mut c_void,
        named: *mut c_void,
    ) -> BlockNumber {
        unsafe extern "C-unwind" {
            fn tbm_iterate(iterator: *mut pg_sys::TBMIterator, result: *mut TBMIterateResult) -> bool;
        }
        // SAFETY: the scan that the stream was made for, and room for what the bitmap says.
        unsafe {
            let (scan, named) = (scan.cast::<pg_sys::TableScanDescData>(), named.cast::<TBMIterateResult>());
            let file_end = (*B::heap(scan).cast::<HeapScanDescData>()).rs_nblocks;
            let state = B::state(scan);
            while !state.has_first_cold && tbm_iterate(&raw mut (*scan).st.rs_tbmiterator, named) {
                let block = (*named).blockno;
                if B::is_cold(block) {
                    (state.first_cold, state.has_first_cold) = (*named, true);
                // Rows behind the end are younger than the snapshot. A serializable transaction has to see
                // that.
                } else if block < file_end || pg_sys::XactIsoLevel == pg_sys::XACT_SERIALIZABLE as i32 {
                    return block;
                }
            }
            pg_sys::InvalidBlockNumber
        }
    }
    // SAFETY: the relation is open for as long as the scan, and the stream lives and ends with it.
    unsafe {
        let previous = pg_sys::MemoryContextSwitchTo(pg_sys::GetMemoryChunkContext(scan.cast()));
        let stream = pg_sys::read_stream_begin_relation(
            pg_sys::READ_STREAM_DEFAULT as i32,
            (*B::heap(scan).cast::<HeapScanDescData>()).rs_strategy,
            (*scan).rs_rd,
            pg_sys::ForkNumber::MAIN_FORKNUM,
            Some(next::<B>),
            scan.cast(),
            size_of::<TBMIterateResult>(),
        );
        pg_sys::MemoryContextSwitchTo(previous);
        stream
    }
}

/// Points heap's scan at a pinned page, with the places of the rows that the bitmap names and the snapshot
/// sees.
unsafe fn enter_page(scan: TableScanDesc, heap: TableScanDesc, page: Buffer, named: &mut TBMIterateResult) {
    // SAFETY: the pin is the scan's from here on. An ERROR gives the lock back.
    unsafe {
        let (rel, snapshot) = ((*scan).rs_rd, (*scan).rs_snapshot);
        let at = heap.cast::<HeapScanDescData>();
        // A parallel bitmap scan gets its snapshot late, and only in the outer scan.
        (*heap).rs_snapshot = snapshot;
        if (*at).rs_cbuf != 0 {
            pg_sys::ReleaseBuffer((*at).rs_cbuf);
        }
        (*at).rs_cbuf = page;
        (*at).rs_cblock = named.blockno;
        (*at).rs_cindex = 0;
        (*at).rs_ntuples = 0;
        pg_sys::heap_page_prune_opt(rel, page);
        // A serializable reader leaves its predicate locks under this lock. Who changes a row afterwards
        // finds them.
        pg_sys::LockBuffer(page, pg_sys::BUFFER_LOCK_SHARE as i32);
        let mut room = [0; ROWS];
        match rows_of(named, &mut room) {
            Some(rows) => {
                for &row in rows {
                    let mut place = ItemPointerData::default();
                    pg_sys::ItemPointerSet(&raw mut place, named.blockno, row);
                    let mut tuple = HeapTupleData::default();
                    if pg_sys::heap_hot_search_buffer(
                        &raw mut place,
                        rel,
                        page,
                        snapshot,
                        &raw mut tuple,
                        std::ptr::null_mut(),
                        true,
                    ) {
                        found(&mut *at, place.ip_posid);
                    }
                }
            }
            None => enter_whole_page(scan, &mut *at, page),
        }
        pg_sys::LockBuffer(page, pg_sys::BUFFER_LOCK_UNLOCK as i32);
    }
}

/// Adds a row to those of the page.
fn found(at: &mut HeapScanDescData, row: u16) {
    at.rs_vistuples[at.rs_ntuples as usize] = row;
    at.rs_ntuples += 1;
}

/// `enter_page` where the bitmap is lossy: all rows of the page, which is locked. Their chains of versions do
/// not matter, since each version is looked at.
unsafe fn enter_whole_page(scan: TableScanDesc, at: &mut HeapScanDescData, buffer: Buffer) {
    unsafe extern "C-unwind" {
        fn PredicateLockTID(
            rel: pg_sys::Relation,
            place: *mut ItemPointerData,
            snapshot: pg_sys::Snapshot,
            inserter: pg_sys::TransactionId,
        );
    }
    // SAFETY: the scan's own relation and snapshot, and its pinned and locked page. What the server's
    // function raises unwinds.
    unsafe {
        let (rel, snapshot) = ((*scan).rs_rd, (*scan).rs_snapshot);
        let page = pg_sys::BufferGetPage(buffer);
        for row in 1..=pg_sys::PageGetMaxOffsetNumber(page) {
            let item = pg_sys::PageGetItemId(page, row);
            if (*item).lp_flags() != pg_sys::LP_NORMAL {
                continue;
            }
            let mut tuple = HeapTupleData {
                t_len: (*item).lp_len(),
                t_data: pg_sys::PageGetItem(page, item).cast(),
                t_tableOid: (*rel).rd_id,
                ..HeapTupleData::default()
            };
            pg_sys::ItemPointerSet(&raw mut tuple.t_self, at.rs_cblock, row);
            let seen = pg_sys::HeapTupleSatisfiesVisibility(&raw mut tuple, snapshot, buffer);
            if seen {
                found(at, row);
                let header = &*tuple.t_data;
                let inserter = match u32::from(header.t_infomask) & pg_sys::HEAP_XMIN_FROZEN {
                    pg_sys::HEAP_XMIN_FROZEN => pg_sys::TransactionId::FROZEN,
                    _ => header.t_choice.t_heap.t_xmin,
                };
                pg_sys::ffi::pg_guard_ffi_boundary(|| {
                    PredicateLockTID(rel, &raw mut tuple.t_self, snapshot, inserter);
                });
            }
            pg_sys::HeapCheckForSerializableConflictOut(seen, rel, &raw mut tuple, buffer, snapshot);
        }
    }
}
