//! The heap's visibility map: reading it for many blocks at once, and setting bits that VACUUM would set.

use pgrx::pg_sys::{self, BlockNumber, Buffer, TransactionId};

use super::{copy, layout};
use crate::host::relation::Open;
use crate::host::{buffer, guarded_run, heap_tuple};

/// Bits of a block in the map.
const BITS: usize = 2;
/// Heap blocks of a page of the map.
const BLOCKS_PER_PAGE: u32 = (((buffer::PAGE_BYTES - buffer::PAGE_HEADER_BYTES) * 8) / BITS) as u32;

/// Blocks of a byte of the map.
const BLOCKS_PER_BYTE: usize = 8 / BITS;

/// Which of a byte's blocks are all-visible.
fn of_byte(byte: u8) -> [bool; BLOCKS_PER_BYTE] {
    std::array::from_fn(|at| u32::from(byte >> (at * BITS)) & pg_sys::VISIBILITYMAP_ALL_VISIBLE != 0)
}

/// Which blocks of a region are all-visible now, in a table of so many: one for each. The bits of one page of
/// the map are read under its shared lock, so that all later looks at the index see what was done before they
/// were set.
///
/// # Safety
/// The heap is open and locked.
pub unsafe fn visible(heap: Open, region: u32, blocks: BlockNumber) -> Vec<bool> {
    // Regions and pages of the map begin with a byte's first block.
    const { assert!((layout::REGION_BLOCKS as usize).is_multiple_of(BLOCKS_PER_BYTE)) };
    let blocks = layout::blocks_of(region, blocks);
    let mut found = Vec::with_capacity((blocks.end - blocks.start) as usize);
    let mut map: Buffer = 0;
    let mut at = blocks.start;
    // SAFETY: the map's page is read under pin and lock; a page has as many bits as it says.
    unsafe {
        while at < blocks.end {
            let end = (at / BLOCKS_PER_PAGE + 1).saturating_mul(BLOCKS_PER_PAGE).min(blocks.end);
            // Pins the map's page, if there is one.
            pg_sys::visibilitymap_get_status(heap.as_ptr(), at, &raw mut map);
            if map == 0 {
                found.extend((at..end).map(|_| false));
            } else {
                buffer::lock_shared(map);
                let first = (at % BLOCKS_PER_PAGE) as usize / BLOCKS_PER_BYTE;
                let bytes = buffer::bytes(buffer::page(map)).iter().skip(buffer::PAGE_HEADER_BYTES + first);
                let read = (end - at) as usize;
                for byte in bytes.take(read.div_ceil(BLOCKS_PER_BYTE)) {
                    found.extend_from_slice(&of_byte(*byte));
                }
                found.truncate((end - blocks.start) as usize);
                buffer::unlock(map);
            }
            at = end;
        }
        if map != 0 {
            pg_sys::ReleaseBuffer(map);
        }
    }
    found
}

/// What a heap block turned out to be.
pub struct Settled {
    /// All-visible, by the map and by the page.
    pub visible: bool,
    /// Live rows.
    pub rows: u64,
}

/// Sets a block's bit if everything on it is visible to everybody, as VACUUM does where there is nothing to
/// clean up. `oldest` is the horizon of the relation; `map` is kept from call to call.
///
/// # Safety
/// The heap is locked so that no VACUUM runs.
pub unsafe fn settle(heap: Open, block: BlockNumber, oldest: TransactionId, map: &mut Buffer) -> Settled {
    // SAFETY: page and map are pinned, the page is locked; the server's own function logs the change.
    unsafe {
        pg_sys::visibilitymap_pin(heap.as_ptr(), block, map);
        let buf = buffer::read(heap, block, std::ptr::null_mut());
        buffer::lock_exclusive(buf);
        let head = buffer::page(buf).cast::<pg_sys::PageHeaderData>();
        let is_marked = u32::from((*head).pd_flags) & pg_sys::PD_ALL_VISIBLE != 0;
        let bits = u32::from(pg_sys::visibilitymap_get_status(heap.as_ptr(), block, map));
        if is_marked && bits & pg_sys::VISIBILITYMAP_ALL_VISIBLE != 0 {
            // Each of its rows is live.
            let page = buffer::page(buf);
            let offsets = 1..=pg_sys::PageGetMaxOffsetNumber(page);
            let rows = offsets
                .filter(|&offset| (*pg_sys::PageGetItemId(page, offset)).lp_flags() == pg_sys::LP_NORMAL)
                .count() as u64;
            buffer::unlock_release(buf);
            return Settled { visible: true, rows };
        }
        let judged = judge(heap, block, buf, oldest);
        let visible = match judged.newest {
            Some(newest) if (*head).pd_upper != 0 => {
                (*head).pd_flags |= pg_sys::PD_ALL_VISIBLE as u16;
                pg_sys::MarkBufferDirty(buf);
                let all = pg_sys::VISIBILITYMAP_ALL_VISIBLE as u8;
                pg_sys::visibilitymap_set(heap.as_ptr(), block, buf, 0, *map, newest, all);
                true
            }
            _ => false,
        };
        buffer::unlock_release(buf);
        Settled { visible, rows: judged.rows }
    }
}

#[derive(Clone, Copy)]
struct Judged {
    /// Live rows, those of transactions that still run among them.
    rows: u64,
    /// The newest inserter, if all rows are visible to everybody and nothing is to be cleaned up.
    newest: Option<TransactionId>,
}

unsafe fn judge(heap: Open, block: BlockNumber, buf: Buffer, oldest: TransactionId) -> Judged {
    // SAFETY: the caller holds the page's lock.
    unsafe {
        let (page, table) = (buffer::page(buf), heap.oid());
        guarded_run::together(|| judge_rows(table, block, buf, page, oldest))
    }
}

/// Under a guard.
unsafe fn judge_rows(
    table: pg_sys::Oid,
    block: BlockNumber,
    buf: Buffer,
    page: pg_sys::Page,
    oldest: TransactionId,
) -> Judged {
    use pg_sys::HTSV_Result as H;
    // SAFETY: the caller holds the page's lock; line pointers and tuples lie on the page.
    unsafe {
        let mut newest = Some(pg_sys::InvalidTransactionId);
        let mut rows = 0;
        for offset in 1..=pg_sys::PageGetMaxOffsetNumber(page) {
            let item = pg_sys::PageGetItemId(page, offset);
            match (*item).lp_flags() {
                pg_sys::LP_UNUSED | pg_sys::LP_REDIRECT => continue,
                pg_sys::LP_NORMAL => {}
                _ => {
                    newest = None;
                    continue;
                }
            }
            let mut tuple = copy::tuple(page, item, table);
            tuple.t_self.ip_blkid.bi_hi = (block >> 16) as u16;
            tuple.t_self.ip_blkid.bi_lo = (block & 0xffff) as u16;
            tuple.t_self.ip_posid = offset;
            let state = guarded_run::HeapTupleSatisfiesVacuum(&raw mut tuple, oldest, buf);
            rows += u64::from(matches!(state, H::HEAPTUPLE_LIVE | H::HEAPTUPLE_INSERT_IN_PROGRESS));
            let header = tuple.t_data;
            let committed = u32::from((*header).t_infomask) & pg_sys::HEAP_XMIN_COMMITTED != 0;
            newest = newest.filter(|_| state == H::HEAPTUPLE_LIVE && committed).and_then(|newest| {
                let Some(inserter) = heap_tuple::inserter(header) else { return Some(newest) };
                if !guarded_run::TransactionIdPrecedes(inserter, oldest) {
                    return None;
                }
                let is_newer = newest == pg_sys::InvalidTransactionId
                    || guarded_run::TransactionIdPrecedes(newest, inserter);
                Some(if is_newer { inserter } else { newest })
            });
        }
        Judged { rows, newest }
    }
}
