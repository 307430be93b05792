//! The shared state of a parallel scan: work units for hot and cold rows.
//!
//! Heap's own block counter would visit every stripe page. So the leader puts the hot spans into shared
//! memory (at most `SPANS`; neighbours are merged beyond that). Workers take pieces of them from an atomic
//! counter, and read each piece as an ordinary serial heap scan with limits.
//!
//! Cold rows are handed out stripe by stripe, by first row number. A worker takes the lowest stripe *of its
//! own list* at or above the shared mark, and moves the mark past it. So no row is handed out twice, even if
//! the workers' lists differ (under SnapshotAny).
//!
//! Invariant: the struct begins with what the server shares for block scans, because generic code reads that
//! part.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pgrx::pg_guard;
use pgrx::pg_sys::{self, ParallelTableScanDesc, Relation, Size};

use crate::host::heap_am::heap_guarded;
use crate::host::relation::Open;
use crate::storage::directory::StripeEntry;
use crate::storage::directory::entries;
use crate::storage::file::hot_runs::{self, Span};
use crate::storage::file::metapage;

const SPANS: usize = 128;
/// Largest piece of a hot span that one worker takes, in blocks.
const PIECE: u32 = 256;

/// What workers share.
#[repr(C)]
pub struct Shared {
    base: pg_sys::ParallelBlockTableScanDescData,
    hot_next: AtomicU64,
    cold_next: AtomicU64,
    /// Blocks whose rows a build of an index has read.
    done: AtomicU64,
    piece: AtomicU32,
    span_count: u32,
    spans: [(u32, u32); SPANS],
}

impl Shared {
    /// The next piece of a hot span, or None when all are taken.
    pub fn take_hot(&self) -> Option<Span> {
        let piece = u64::from(self.piece.load(Ordering::Relaxed).max(1));
        let mut number = self.hot_next.fetch_add(1, Ordering::Relaxed);
        for &(start, end) in self.spans.iter().take(self.span_count as usize) {
            let length = u64::from(end - start);
            let pieces = length.div_ceil(piece);
            if number < pieces {
                let from = start + (number * piece) as u32;
                let to = (u64::from(from) + piece).min(u64::from(end)) as u32;
                return Some(Span { start: from, end: to });
            }
            number -= pieces;
        }
        None
    }

    /// Blocks of all hot spans.
    pub fn hot_blocks(&self) -> u64 {
        self.spans.iter().take(self.span_count as usize).map(|&(start, end)| u64::from(end - start)).sum()
    }

    /// Adds blocks that have been read, and returns how many that makes in all.
    pub fn add_done(&self, blocks: u64) -> u64 {
        self.done.fetch_add(blocks, Ordering::Relaxed) + blocks
    }

    /// The position in `stripes` (ordered by first row number) of the next stripe to read, or None.
    pub fn take_cold(&self, stripes: &[StripeEntry]) -> Option<usize> {
        let mut mark = self.cold_next.load(Ordering::Relaxed);
        loop {
            let at = stripes.partition_point(|entry| entry.first_row < mark);
            let entry = stripes.get(at)?;
            let next = entry.end_row().max(mark + 1);
            match self.cold_next.compare_exchange_weak(mark, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(at),
                Err(now) => mark = now,
            }
        }
    }
}

/// The shared state behind a scan, or None for a serial one.
pub unsafe fn shared<'a>(scan: ParallelTableScanDesc) -> Option<&'a Shared> {
    // SAFETY: scans of our tables are given memory sized and initialised below; it outlives them.
    unsafe { scan.cast::<Shared>().as_ref() }
}

/// `parallelscan_estimate`.
#[pg_guard]
pub unsafe extern "C-unwind" fn parallelscan_estimate(_rel: Relation) -> Size {
    size_of::<Shared>()
}

/// `parallelscan_initialize`.
#[pg_guard]
pub unsafe extern "C-unwind" fn parallelscan_initialize(rel: Relation, pscan: ParallelTableScanDesc) -> Size {
    // SAFETY: pscan points at as many bytes as parallelscan_estimate asked for.
    unsafe {
        let rel = Open::of(rel);
        heap_guarded!(parallelscan_initialize(rel.as_ptr(), pscan));
        let blocks = rel.block_count();
        let entries = match metapage::storage_id(rel) {
            Some(storage_id) => entries::all_versions(storage_id),
            None => Vec::new(),
        };
        let spans =
            hot_runs::coarsen(hot_runs::hot_spans(entries.into_iter().map(|entry| entry.run), blocks), SPANS);
        let total: u64 = spans.iter().map(|span| u64::from(span.blocks())).sum();
        let shared = pscan.cast::<Shared>();
        (*shared).hot_next = AtomicU64::new(0);
        (*shared).cold_next = AtomicU64::new(0);
        (*shared).done = AtomicU64::new(0);
        // Small tables are cut into small pieces, so that every worker gets some.
        (*shared).piece = AtomicU32::new((total / 64).clamp(1, u64::from(PIECE)) as u32);
        (*shared).span_count = spans.len() as u32;
        for (at, span) in spans.iter().enumerate() {
            (*shared).spans[at] = (span.start, span.end);
        }
        size_of::<Shared>()
    }
}

/// `parallelscan_reinitialize`.
#[pg_guard]
pub unsafe extern "C-unwind" fn parallelscan_reinitialize(rel: Relation, pscan: ParallelTableScanDesc) {
    // SAFETY: pscan was initialised above; no worker runs now.
    unsafe {
        heap_guarded!(parallelscan_reinitialize(rel, pscan));
        let shared = &*pscan.cast::<Shared>();
        shared.hot_next.store(0, Ordering::Relaxed);
        shared.cold_next.store(0, Ordering::Relaxed);
        shared.done.store(0, Ordering::Relaxed);
    }
}
