//! The versions of hot rows, and what becomes of each.
//!
//! Pages are looked at one at a time under a shared lock. Every version is judged as heap's own rewrite
//! judges it: dead to all, alive, or still to be seen by somebody.
//! - A version that is alive and nobody's successor may become a row of a stripe, with its age.
//! - A version that a mover has deleted is left out. Its row is in a stripe, and `cold` takes it from there
//!   with its right age.
//! - Everything else is copied with its header by the server's rewrite (`heap_rewrite::HeapRewrite`), which
//!   keeps chains of versions.
//!
//! The table is locked against all others. So a version that is being inserted or deleted is this
//! transaction's. Another transaction's would be copied, as heap does.
//!
//! Invariant: a page that is looked at twice gives the same answers.

use std::cell::Cell;

use pgrx::pg_sys::{self, BlockNumber, Buffer, HTSV_Result, HeapTupleData, TransactionId};

use crate::compat;
use crate::host::heap_rewrite::HeapRewrite;
use crate::host::relation::Open;
use crate::host::{buffer, guarded_run, heap_tuple};
use crate::storage::change::row_move;
use crate::storage::directory::age::Age;
use crate::storage::directory::entries;
use crate::storage::directory::rewrite_horizon::Horizon;
use crate::storage::file::{hot_runs, metapage, tid};

/// LP_NORMAL.
const NORMAL: u32 = 1;

/// What becomes of a version.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The server says that the version is dead to all. So is every version that it has replaced.
    Dead,
    /// It is not copied, because nobody is going to look for it here.
    LeftOut,
    /// It is a living row. The age says which snapshots see it.
    Alive(Age),
    /// It is copied with its header, by itself or as a link of a chain.
    Kept,
}

/// The hot rows of a table that is being rewritten.
pub struct HotRows<'a> {
    old: Open<'a>,
    storage_id: Option<u64>,
    horizon: &'a Horizon,
    /// The last answer of `is_mover`, with its transaction.
    known: Cell<(TransactionId, bool)>,
    /// Room for the values of one row, and for which of them are NULL.
    row: Cell<(Vec<pg_sys::Datum>, Vec<bool>)>,
}

impl<'a> HotRows<'a> {
    /// The hot rows of a table that is open and locked.
    ///
    /// # Safety
    /// The table is locked so that nobody else changes it.
    pub unsafe fn new(old: Open<'a>, horizon: &'a Horizon) -> Self {
        let storage_id = metapage::storage_id(old);
        Self {
            old,
            storage_id,
            horizon,
            known: Cell::new((pg_sys::InvalidTransactionId, false)),
            row: Cell::default(),
        }
    }

    /// Every block that may have hot rows.
    pub fn blocks(&self) -> Vec<hot_runs::Span> {
        let entries = self.storage_id.map_or_else(Vec::new, entries::all_versions);
        hot_runs::hot_spans(entries.into_iter().map(|entry| entry.run), self.old.block_count())
    }

    /// Calls `with` for each version in some blocks, page by page. The page is pinned then, and nobody
    /// changes it.
    pub unsafe fn each(
        &self,
        blocks: impl Iterator<Item = BlockNumber>,
        mut with: impl FnMut(&mut HeapTupleData, Buffer, Fate),
    ) {
        // SAFETY: line pointers up to the page's last one are its own.
        unsafe {
            let strategy = pg_sys::GetAccessStrategy(pg_sys::BufferAccessStrategyType::BAS_BULKREAD);
            let mut found: Vec<(HeapTupleData, Fate, TransactionId)> = Vec::new();
            for block in blocks {
                pgrx::check_for_interrupts!();
                found.clear();
                let buf = buffer::read(self.old, block, strategy);
                buffer::lock_shared(buf);
                let page = buffer::page(buf);
                let last = if pg_sys::PageIsNew(page) { 0 } else { pg_sys::PageGetMaxOffsetNumber(page) };
                for offset in 1..=last {
                    let pointer = pg_sys::PageGetItemId(page, offset);
                    if (*pointer).lp_flags() != NORMAL {
                        continue;
                    }
                    let mut tuple = HeapTupleData {
                        t_len: (*pointer).lp_len(),
                        t_self: tid::tid(block, offset),
                        t_tableOid: self.old.oid(),
                        t_data: pg_sys::PageGetItem(page, pointer).cast(),
                    };
                    let (fate, killer) = self.judge(&mut tuple, buf);
                    found.push((tuple, fate, killer));
                }
                buffer::unlock(buf);
                for (tuple, fate, killer) in &mut found {
                    with(tuple, buf, if self.is_mover(*killer) { Fate::LeftOut } else { *fate });
                }
                pg_sys::ReleaseBuffer(buf);
            }
            pg_sys::FreeAccessStrategy(strategy);
        }
    }

    /// What becomes of a version. Also the transaction that has killed it, if it has to be asked whether that
    /// is a mover.
    unsafe fn judge(&self, tuple: &mut HeapTupleData, buf: Buffer) -> (Fate, TransactionId) {
        let nobody = pg_sys::InvalidTransactionId;
        // SAFETY: the page is pinned and locked.
        unsafe {
            let mut killer = nobody;
            let state = pg_sys::HeapTupleSatisfiesVacuumHorizon(tuple, buf, &raw mut killer);
            let header = tuple.t_data;
            let fate = match state {
                HTSV_Result::HEAPTUPLE_DEAD => Fate::Dead,
                HTSV_Result::HEAPTUPLE_RECENTLY_DEAD => {
                    if pg_sys::TransactionIdPrecedes(killer, self.horizon.oldest_xmin()) {
                        Fate::Dead
                    } else if self.horizon.sees_all(killer) {
                        Fate::LeftOut
                    } else {
                        return (Fate::Kept, killer);
                    }
                }
                HTSV_Result::HEAPTUPLE_LIVE | HTSV_Result::HEAPTUPLE_INSERT_IN_PROGRESS => {
                    let inserter = heap_tuple::inserter(header).unwrap_or(nobody);
                    let is_running = state == HTSV_Result::HEAPTUPLE_INSERT_IN_PROGRESS;
                    if is_running && !pg_sys::TransactionIdIsCurrentTransactionId(inserter) {
                        return (Fate::Kept, nobody);
                    }
                    let age = self.horizon.age(inserter, || pg_sys::HeapTupleHeaderGetCmin(header));
                    let follows = u32::from((*header).t_infomask) & pg_sys::HEAP_UPDATED != 0;
                    // The version before it may be kept, and leads to it.
                    if follows && matches!(age, Age::Since(_)) { Fate::Kept } else { Fate::Alive(age) }
                }
                _ => Fate::Kept,
            };
            (fate, nobody)
        }
    }

    /// Whether a committed transaction was a mover, so that the rows that it has deleted are in stripes. No
    /// page is locked.
    fn is_mover(&self, xid: TransactionId) -> bool {
        let (last, answer) = self.known.get();
        if last == xid {
            return answer;
        }
        let answer = self.storage_id.is_some_and(|id| row_move::is_mover(id, xid));
        self.known.set((xid, answer));
        answer
    }

    /// Copies a version with its header. Its tuple is made anew, because the table forgets the defaults of
    /// columns that old rows lack, and what dropped columns held.
    pub unsafe fn copy(&self, rewrite: &mut HeapRewrite, tuple: &mut HeapTupleData) {
        // SAFETY: the tuple has the row type of both relations, and lies on a pinned page; what is made lives
        // in the caller's short-lived context.
        unsafe {
            let desc = self.old.descriptor();
            let count = usize::try_from((*desc).natts).unwrap_or(0);
            let mut row = self.row.take();
            row.0.resize(count, pg_sys::Datum::null());
            row.1.resize(count, true);
            let (values, nulls, tuple) = (row.0.as_mut_ptr(), row.1.as_mut_ptr(), &raw mut *tuple);
            let attributes = compat::attributes(desc);
            let copy = guarded_run::together(|| {
                guarded_run::heap_deform_tuple(tuple, desc, values, nulls);
                for (at, attribute) in attributes.iter().enumerate() {
                    *nulls.add(at) |= attribute.attisdropped;
                }
                guarded_run::heap_form_tuple(desc, values, nulls)
            });
            self.row.set(row);
            rewrite.write(tuple, copy);
        }
    }
}
