//! Counts the rows in heap pages.
//!
//! Asked by `health` and by VACUUM, whose own count is only of the pages that it has read. It looks at the
//! pages that belong to no stripe. If there are more than may be read, it divides them into that many parts
//! and reads one random page of each.
//!
//! A row counts as it does for ANALYZE: a row that somebody is just deleting is live, and a row that somebody
//! else is just inserting is not.
//!
//! Invariant: the count is exact if all pages are read and nobody writes.

use std::ops::AddAssign;

use pgrx::pg_sys::{self, BlockNumber, BufferAccessStrategy, HTSV_Result, TransactionId};

use crate::compat;
use crate::host::relation::Open;
use crate::host::{buffer, heap_tuple, random};
use crate::storage::directory::entries;
use crate::storage::file::hot_runs::{self, Span};
use crate::storage::file::{metapage, tid};

/// LP_NORMAL.
const NORMAL: u32 = 1;

/// Rows in heap pages.
#[derive(Debug, Default, Clone, Copy)]
pub struct HotRows {
    pub live: f64,
    /// How many of these every snapshot sees and nobody is changing. They can be packed.
    pub settled: f64,
    /// Dead rows that are still there, for older snapshots or until the next VACUUM.
    pub dead: f64,
}

impl AddAssign for HotRows {
    fn add_assign(&mut self, other: Self) {
        self.live += other.live;
        self.settled += other.settled;
        self.dead += other.dead;
    }
}

/// Counts the rows, or estimates them from `most` pages.
pub unsafe fn count(rel: Open, most: u32, strategy: BufferAccessStrategy) -> HotRows {
    // SAFETY: the strategy is null or the caller's.
    unsafe {
        let Some(storage_id) = metapage::storage_id(rel) else { return HotRows::default() };
        let runs = entries::all_versions(storage_id).into_iter().map(|entry| entry.run);
        let spans = hot_runs::hot_spans(runs, rel.block_count());
        let pages: u32 = spans.iter().map(Span::blocks).sum();
        let oldest_xmin = rel.oldest_xmin();
        let mut rows = HotRows::default();
        let mut blocks = Blocks { spans: &spans, before: 0 };
        let read = pages.min(most.max(1));
        for part in 0..read {
            // Looks for interrupts, and sleeps at VACUUM's pace.
            compat::vacuum_delay();
            // The pages of this part. It is one page if all are read.
            let part_of = |part: u32| (u64::from(part) * u64::from(pages) / u64::from(read)) as u32;
            let (from, to) = (part_of(part), part_of(part + 1));
            let at = from + random::below(u64::from(to - from)) as u32;
            if let Some(block) = blocks.nth(at) {
                rows += on_page(rel, block, oldest_xmin, strategy);
            }
        }
        if read < pages {
            let factor = f64::from(pages) / f64::from(read);
            for figure in [&mut rows.live, &mut rows.settled, &mut rows.dead] {
                *figure = (*figure * factor).round();
            }
        }
        rows
    }
}

/// Finds blocks of some spans by number. The numbers must ascend from call to call.
struct Blocks<'a> {
    /// The spans that may still be asked for.
    spans: &'a [Span],
    /// How many blocks the spans before these have.
    before: u32,
}

impl Blocks<'_> {
    fn nth(&mut self, at: u32) -> Option<BlockNumber> {
        while let Some((span, rest)) = self.spans.split_first() {
            let ahead = at - self.before;
            if ahead < span.blocks() {
                return Some(span.start + ahead);
            }
            self.before += span.blocks();
            self.spans = rest;
        }
        None
    }
}

unsafe fn on_page(
    rel: Open,
    block: BlockNumber,
    oldest_xmin: TransactionId,
    strategy: BufferAccessStrategy,
) -> HotRows {
    // SAFETY: tuples are looked at under pin and shared lock, as the server's functions ask for.
    unsafe {
        let mut rows = HotRows::default();
        let buf = buffer::read(rel, block, strategy);
        buffer::lock_shared(buf);
        let page = buffer::page(buf);
        let last = if pg_sys::PageIsNew(page) { 0 } else { pg_sys::PageGetMaxOffsetNumber(page) };
        for offset in 1..=last {
            let item = pg_sys::PageGetItemId(page, offset);
            if (*item).lp_flags() != NORMAL {
                continue;
            }
            let header = pg_sys::PageGetItem(page, item).cast::<pg_sys::HeapTupleHeaderData>();
            let mut tuple = pg_sys::HeapTupleData {
                t_len: (*item).lp_len(),
                t_data: header,
                t_tableOid: rel.oid(),
                t_self: tid::tid(block, offset),
            };
            let own = |xid: TransactionId| pg_sys::TransactionIdIsCurrentTransactionId(xid);
            match pg_sys::HeapTupleSatisfiesVacuum(&raw mut tuple, oldest_xmin, buf) {
                HTSV_Result::HEAPTUPLE_LIVE => {
                    rows.live += 1.0;
                    rows.settled += f64::from(u8::from(is_settled(header, oldest_xmin)));
                }
                HTSV_Result::HEAPTUPLE_RECENTLY_DEAD | HTSV_Result::HEAPTUPLE_DEAD => rows.dead += 1.0,
                HTSV_Result::HEAPTUPLE_INSERT_IN_PROGRESS if own((*header).t_choice.t_heap.t_xmin) => {
                    rows.live += 1.0;
                }
                HTSV_Result::HEAPTUPLE_DELETE_IN_PROGRESS if own(heap_tuple::updater(header)) => {
                    rows.dead += 1.0;
                }
                HTSV_Result::HEAPTUPLE_DELETE_IN_PROGRESS => rows.live += 1.0,
                _ => {}
            }
        }
        buffer::unlock_release(buf);
        rows
    }
}

/// Whether every snapshot sees a live row.
unsafe fn is_settled(header: pg_sys::HeapTupleHeader, oldest_xmin: TransactionId) -> bool {
    // SAFETY: the tuple's page is locked; xids of live rows can be compared.
    unsafe { heap_tuple::inserter(header).is_none_or(|by| pg_sys::TransactionIdPrecedes(by, oldest_xmin)) }
}

#[cfg(test)]
mod tests {
    use super::{Blocks, Span};

    #[test]
    fn blocks_are_numbered_over_all_spans() {
        let spans = [(1, 3), (7, 8), (8, 8), (20, 22)].map(|(start, end)| Span { start, end });
        let mut blocks = Blocks { spans: &spans, before: 0 };
        let found: Vec<_> = (0..6).map(|at| blocks.nth(at)).collect();
        assert_eq!(found, [Some(1), Some(2), Some(7), Some(20), Some(21), None]);
        assert_eq!(Blocks { spans: &spans, before: 0 }.nth(4), Some(21));
    }
}
