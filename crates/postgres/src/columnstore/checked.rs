//! Rows of copies of blocks that not everybody sees whole.
//!
//! An entry that names a copy tells two things, whatever the block's bit in the visibility map says. No row
//! has come to the block since under a line pointer that indexes know (a *root*). And each version of a row
//! has the values that the copy has. The index is told of both kinds of change, and would name no copy then.
//! So one question is open for such a *checked* block: which of the copy's rows the snapshot sees. Its heap
//! page answers it for each root. No value is taken from the page.
//!
//! The order is snapshot, entry, page. After the look at the entry, VACUUM may take a dead row away, and its
//! root may be given to a new row. The snapshot does not see that one: who inserted it had not committed.
//! Rows that the transaction itself writes later are another matter (`is_urgent`).
//!
//! A page is looked at when rows of its block are first asked for, so blocks of pruned chunks cost nothing.
//! Invariant: what was found of a block is kept, as a scan's snapshot always gives the same answer.

use std::cell::OnceCell;
use std::ops::Range;

use pgrx::pg_sys::{
    self, BlockNumber, Buffer, BufferAccessStrategy, HeapTupleData, ItemPointerData, Page, Relation,
    Snapshot, TransactionId,
};
use stripe::scan::RowsOut;
use stripe::{StripeBytes, StripeReader};
use vector::{Error, Values};

use crate::host::{buffer, error, guarded_run, heap_tuple};
use crate::storage::file::codecs::ServerCodecs;
use crate::storage::file::tid;

/// A block whose rows are read from a copy if the snapshot sees them.
#[derive(Debug)]
pub struct CheckedBlock {
    /// The rows, by number. There is one at least.
    pub rows: Range<u64>,
    /// The block.
    pub block: BlockNumber,
    /// The position of the copy among those of the scan.
    pub stripe: usize,
    /// Positions among the rows of those that the snapshot does not see, once it is known.
    out: OnceCell<Box<[u16]>>,
}

impl CheckedBlock {
    /// A block of which nothing is known yet.
    pub const fn new(rows: Range<u64>, block: BlockNumber, stripe: usize) -> Self {
        Self { rows, block, stripe, out: OnceCell::new() }
    }
}

/// The roots of rows of a copy, by their positions, which ascend. They are in this column.
///
/// # Errors
/// `Corrupt` where stored bytes are bad, `InvalidInput` past the last row.
pub fn roots(
    reader: &StripeReader,
    bytes: &dyn StripeBytes,
    column: usize,
    rows: impl Iterator<Item = u64>,
) -> vector::Result<Vec<u16>> {
    let rows: Vec<u32> = rows.map(|row| u32::try_from(row).unwrap_or(u32::MAX)).collect();
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    // Codes of a dictionary, for one, may stand for them.
    let found = reader.take(column, &rows, bytes, &ServerCodecs)?.flatten();
    match found.values {
        Values::Int16(roots) if found.validity.is_none() => {
            Ok(roots.into_iter().map(i16::cast_unsigned).collect())
        }
        _ => Err(Error::corrupt("the places of rows are no numbers")),
    }
}

/// The checked blocks of a scan.
pub struct Checked {
    heap: Relation,
    snapshot: Snapshot,
    /// Of many blocks only a few stay in the buffers.
    strategy: BufferAccessStrategy,
    /// In the order of their rows' numbers.
    blocks: Vec<CheckedBlock>,
}

impl Checked {
    /// These blocks, in the order of their rows' numbers.
    ///
    /// # Safety
    /// The heap stays open and locked, the snapshot registered and the current memory alive for as long as
    /// this is used. The blocks' entries were looked at after the snapshot was taken.
    pub unsafe fn new(heap: Relation, snapshot: Snapshot, blocks: Vec<CheckedBlock>) -> Self {
        // SAFETY: a setting of the server's. The strategy goes with the current memory.
        let strategy = unsafe {
            match blocks.len() > usize::try_from(pg_sys::NBuffers / 4).unwrap_or(0) {
                true => pg_sys::GetAccessStrategy(pg_sys::BufferAccessStrategyType::BAS_BULKREAD),
                false => std::ptr::null_mut(),
            }
        };
        Self { heap, snapshot, strategy, blocks }
    }

    /// Whether all pages have to be looked at before the transaction does anything else. A statement of its
    /// own that is still running may write rows with a lower command id than the snapshot's. The snapshot
    /// sees them, although they come after the look at the entries.
    pub fn is_urgent(&self) -> bool {
        // SAFETY: the promise of `new`.
        !self.blocks.is_empty() && unsafe { (*self.snapshot).curcid > pg_sys::FirstCommandId }
    }

    /// The blocks that have some of these rows.
    fn blocks_of(&self, rows: &Range<u64>) -> &[CheckedBlock] {
        let first = self.blocks.partition_point(|block| block.rows.end <= rows.start);
        let there = self.blocks.get(first..).unwrap_or(&[]);
        there.get(..there.partition_point(|block| block.rows.start < rows.end)).unwrap_or(&[])
    }

    /// Looks at the pages of these rows, unless that was done before. `roots` gives the roots of ranges of
    /// rows, one after the other, of the stripe at a position.
    pub fn look(&self, rows: &Range<u64>, roots: impl FnOnce(usize, &[Range<u64>]) -> Vec<u16>) {
        let unknown: Vec<_> = self.blocks_of(rows).iter().filter(|block| block.out.get().is_none()).collect();
        let Some(first) = unknown.first() else { return };
        let ranges: Vec<_> = unknown.iter().map(|block| block.rows.clone()).collect();
        let all = roots(first.stripe, &ranges);
        let mut rest = all.as_slice();
        for block in unknown {
            let count = usize::try_from(block.rows.end - block.rows.start).unwrap_or(usize::MAX);
            let Some((own, after)) = rest.split_at_checked(count) else {
                error::internal("a copy has fewer places of rows than rows");
            };
            rest = after;
            // SAFETY: the promise of `new`.
            block.out.get_or_init(|| unsafe { self.unseen(block.block, own) });
        }
    }

    /// Tells `out` which of these rows the snapshot does not see. They were looked at.
    pub fn tell(&self, rows: &Range<u64>, out: &mut RowsOut) {
        for block in self.blocks_of(rows) {
            for &at in block.out.get().into_iter().flatten() {
                out.row(block.rows.start + u64::from(at));
            }
        }
    }

    /// The positions of the roots of a block whose rows the snapshot does not see.
    unsafe fn unseen(&self, block: BlockNumber, roots: &[u16]) -> Box<[u16]> {
        pgrx::check_for_interrupts!();
        let mut seen = vec![false; roots.len()];
        // SAFETY: the promise of `new`.
        unsafe { see(self.heap, block, self.snapshot, self.strategy, roots, &mut seen) };
        (0..).zip(seen).filter(|(_, seen)| !seen).map(|(at, _)| at).collect()
    }
}

/// Finds out which rows of a block the snapshot sees, by their roots.
///
/// # Safety
/// The heap is open and locked and has the block, and the snapshot is registered.
unsafe fn see(
    heap: Relation,
    block: BlockNumber,
    snapshot: Snapshot,
    strategy: BufferAccessStrategy,
    roots: &[u16],
    seen: &mut [bool],
) {
    let (main, normal) = (pg_sys::ForkNumber::MAIN_FORKNUM, pg_sys::ReadBufferMode::RBM_NORMAL);
    // SAFETY: the page is looked at under pin and lock. The closure owns nothing.
    unsafe {
        guarded_run::together(|| {
            let buf = guarded_run::ReadBufferExtended(heap, main, block, normal, strategy);
            guarded_run::LockBuffer(buf, pg_sys::BUFFER_LOCK_SHARE as i32);
            let page = buffer::page(buf);
            for (&root, seen) in roots.iter().zip(seen.iter_mut()) {
                let plainly = is_plainly_seen(page, root, snapshot);
                *seen = plainly.unwrap_or_else(|| leads_to(heap, (block, buf), root, snapshot).is_some());
            }
            guarded_run::LockBuffer(buf, pg_sys::BUFFER_LOCK_UNLOCK as i32);
            guarded_run::ReleaseBuffer(buf);
        });
    }
}

/// The rows of a page that the snapshot sees: their roots, ascending, and where they lie. `places` has room
/// for each line pointer of a page. Returns how many there are.
///
/// # Safety
/// Page, buffer and block are one, pinned and locked. The heap is open, and the snapshot registered.
pub unsafe fn rows_seen(
    heap: Relation,
    (block, buf): (BlockNumber, Buffer),
    snapshot: Snapshot,
    places: &mut [(u16, u16)],
) -> usize {
    // SAFETY: the caller's promise. The closure owns nothing.
    unsafe {
        guarded_run::together(|| {
            let mut found = 0;
            for root in 1..=pg_sys::PageGetMaxOffsetNumber(buffer::page(buf)) {
                // Line pointers that no index knows lead nowhere.
                let to = leads_to(heap, (block, buf), root, snapshot);
                if let (Some(to), Some(place)) = (to, places.get_mut(found)) {
                    *place = (root, to);
                    found += 1;
                }
            }
            found
        })
    }
}

/// Where on the page the row lies that a root leads to, if the snapshot sees one. Under a guard.
///
/// # Safety
/// As `rows_seen`.
unsafe fn leads_to(
    heap: Relation,
    (block, buf): (BlockNumber, Buffer),
    root: u16,
    snapshot: Snapshot,
) -> Option<u16> {
    let mut at: ItemPointerData = tid::tid(block, root);
    let mut row = HeapTupleData::default();
    let (to, row, dead) = (&raw mut at, &raw mut row, std::ptr::null_mut());
    // SAFETY: the caller's promise. The server sets the place in `at`.
    let found = unsafe { guarded_run::heap_hot_search_buffer(to, heap, buf, snapshot, row, dead, true) };
    found.then_some(at.ip_posid)
}

/// What the line pointer and the header of a root's row tell already. None: the server has to judge.
///
/// # Safety
/// A locked page of the heap, and an MVCC snapshot.
unsafe fn is_plainly_seen(page: Page, root: u16, snapshot: Snapshot) -> Option<bool> {
    // SAFETY: the caller's promise. A normal line pointer leads to a row of the page.
    unsafe {
        if root == 0 || root > pg_sys::PageGetMaxOffsetNumber(page) {
            return Some(false);
        }
        let item = pg_sys::PageGetItemId(page, root);
        match (*item).lp_flags() {
            pg_sys::LP_NORMAL => {}
            pg_sys::LP_REDIRECT => return None,
            _ => return Some(false),
        }
        let header = pg_sys::PageGetItem(page, item).cast::<pg_sys::HeapTupleHeaderData>();
        let bits = u32::from((*header).t_infomask);
        if heap_tuple::tells_change(bits) || bits & pg_sys::HEAP_XMIN_COMMITTED == 0 {
            return None;
        }
        if u32::from((*header).t_infomask2) & pg_sys::HEAP_ONLY_TUPLE != 0 {
            return None;
        }
        // Both are ordinary transaction ids, which are compared as the server does (`TransactionIdPrecedes`).
        let oldest = (*snapshot).xmin.into_inner();
        let is_older = |xid: TransactionId| xid.into_inner().wrapping_sub(oldest).cast_signed() < 0;
        match heap_tuple::inserter(header) {
            None => Some(true),
            Some(xid) if xid >= pg_sys::FirstNormalTransactionId && is_older(xid) => Some(true),
            Some(_) => None,
        }
    }
}
