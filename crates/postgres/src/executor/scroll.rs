//! Rows in both directions, for cursors that may move backward.
//!
//! Used instead of `cold`'s straight run through the table when the statement was started for moving backward
//! (the server says so for a cursor whose plan can, declared with SCROLL or not). Rows have the same order as
//! ever: stripe by stripe, then heap pages. One row at a time is shown to the row loop, out of a window of
//! Datums around it; a chunk that is entered again is loaded again. Invariant: going one way and then the
//! other gives the same rows.

use std::ops::Range;

use pgrx::pg_sys::{self, ScanDirection};

use super::batch;
use super::begin::{Phase, Scan};
use super::chunk::{self, Loaded};
use super::cold::live_rows;
use crate::host::error;
use crate::storage::read::stripe_on_pages::{self, Pages};

/// Where the cursor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Before the first row.
    Before,
    /// On a row of a chunk, or on one that was looked at and did not pass.
    Cold,
    /// Somewhere in the heap pages: their own scan knows where.
    Hot,
    /// After the last row.
    After,
}

/// The position of a scan that can turn round.
pub struct Scroll {
    side: Side,
    /// Position in the list of stripes, and the chunk there that is loaded.
    stripe: usize,
    chunk: u32,
    /// Which of the chunk's selected rows.
    row: usize,
    /// The selected rows that the batch holds.
    window: Range<usize>,
}

impl Scroll {
    /// Before the first row.
    pub const fn new() -> Self {
        Self { side: Side::Before, stripe: 0, chunk: 0, row: 0, window: 0..0 }
    }
}

/// What comes next in the direction asked for.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The one row that the batch is set to.
    Batch,
    /// Whatever the scan of heap pages has; when it has none, `leave_hot`.
    Hot,
    /// Nothing.
    End,
}

impl Scan {
    /// Whether the executor moves backward now.
    ///
    /// # Safety
    /// The node runs.
    pub unsafe fn is_backward(&self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { (*(*self.custom).ss.ps.state).es_direction == ScanDirection::BackwardScanDirection }
    }

    /// Steps to the next row that statistics and native conditions leave.
    ///
    /// # Safety
    /// Called under guard while the node runs.
    pub unsafe fn scroll(&mut self) -> Next {
        // SAFETY: the caller's promise.
        unsafe {
            let backward = self.is_backward();
            match (self.scroll.side, backward) {
                (Side::Before, true) | (Side::After, false) => Next::End,
                (Side::Before, false) => self.enter_chunk(None, false),
                (Side::After, true) => {
                    self.scroll.side = Side::Hot;
                    Next::Hot
                }
                (Side::Hot, _) => Next::Hot,
                (Side::Cold, _) => {
                    let rows = self.loaded().map_or(0, |loaded| loaded.selection.len());
                    let row =
                        if backward { self.scroll.row.checked_sub(1) } else { Some(self.scroll.row + 1) };
                    match row.filter(|&row| row < rows) {
                        Some(row) => self.show(row, backward),
                        None => self.enter_chunk(Some((self.scroll.stripe, self.scroll.chunk)), backward),
                    }
                }
            }
        }
    }

    /// The scan of heap pages has no more rows this way. What comes then.
    ///
    /// # Safety
    /// As `scroll`.
    pub unsafe fn leave_hot(&mut self) -> Next {
        // SAFETY: the caller's promise.
        unsafe {
            if self.is_backward() {
                return self.enter_chunk(None, true);
            }
            self.scroll.side = Side::After;
            Next::End
        }
    }

    fn loaded(&self) -> Option<&Loaded> {
        self.cold.as_ref().and_then(|cold| cold.loaded.as_ref())
    }

    /// Goes to the nearest chunk with selected rows beside `from`, or from the end of all that is left.
    unsafe fn enter_chunk(&mut self, from: Option<(usize, u32)>, backward: bool) -> Next {
        // SAFETY: as scroll.
        unsafe {
            self.scroll.window = 0..0;
            if !self.load_beside(from, backward) {
                // Off the end of the stripes.
                self.scroll.side = if backward { Side::Before } else { Side::Hot };
                return if backward { Next::End } else { Next::Hot };
            }
            self.scroll.side = Side::Cold;
            let rows = self.loaded().map_or(0, |loaded| loaded.selection.len());
            self.show(if backward { rows.saturating_sub(1) } else { 0 }, backward)
        }
    }

    unsafe fn load_beside(&mut self, from: Option<(usize, u32)>, backward: bool) -> bool {
        let only_count = self.columns.is_empty() && self.clauses.is_empty() && !self.keep_position;
        let Some(cold) = &mut self.cold else { return false };
        cold.loaded = None;
        let stripes = cold.stripes.len();
        // A chunk of None: the stripe's first one, or its last.
        let mut place = match (from, backward) {
            (None, false) => Some((0, None)),
            (None, true) => stripes.checked_sub(1).map(|last| (last, None)),
            (Some((stripe, chunk)), false) => Some((stripe, Some(chunk + 1))),
            (Some((stripe, chunk)), true) => match chunk.checked_sub(1) {
                Some(chunk) => Some((stripe, Some(chunk))),
                None => stripe.checked_sub(1).map(|stripe| (stripe, None)),
            },
        };
        while let Some((at, chunk)) = place {
            pgrx::check_for_interrupts!();
            let Some(entry) = cold.stripes.get(at) else { return false };
            let beside = if backward { at.checked_sub(1) } else { Some(at + 1) };
            place = beside.map(|at| (at, None));
            if !cold.is_kept(at) {
                self.counters.stripes_pruned += u64::from(chunk.is_none());
                continue;
            }
            self.counters.stripes_read += u64::from(chunk.is_none());
            if only_count {
                if chunk.is_some() || entry.row_count == 0 {
                    continue;
                }
                let rows = live_rows(entry, &mut cold.dead);
                if rows == 0 {
                    continue;
                }
                self.counters.rows_read += u64::from(rows);
                cold.loaded = Some(Loaded::whole(entry, rows));
                (self.scroll.stripe, self.scroll.chunk) = (at, 0);
                return true;
            }
            // SAFETY: rel is open.
            let open = unsafe { stripe_on_pages::open(self.rel, entry) };
            let open = match open {
                Ok(open) => open,
                Err(problem) => error::raise_stripe(self.rel, entry.first_row, problem),
            };
            let chunks = open.reader.chunk_count();
            let first = chunk.unwrap_or(if backward { chunks.saturating_sub(1) } else { 0 });
            let mut next = (first < chunks).then_some(first);
            while let Some(chunk) = next {
                next = if backward { chunk.checked_sub(1) } else { Some(chunk + 1).filter(|&c| c < chunks) };
                // SAFETY: rel is open.
                let pages = unsafe { Pages::new(self.rel, entry, std::ptr::null_mut()) };
                match chunk::load(&open, chunk, &mut cold.dead, &cold.steps, &pages, &mut self.counters) {
                    Ok(Some(loaded)) if !loaded.selection.is_empty() => {
                        cold.loaded = Some(loaded);
                        (self.scroll.stripe, self.scroll.chunk) = (at, chunk);
                        return true;
                    }
                    Ok(_) => {}
                    Err(problem) => error::raise_stripe(self.rel, entry.first_row, problem),
                }
            }
        }
        false
    }

    /// Sets the batch to one selected row of the loaded chunk.
    unsafe fn show(&mut self, row: usize, backward: bool) -> Next {
        // SAFETY: as scroll.
        unsafe {
            self.scroll.row = row;
            if !self.scroll.window.contains(&row) {
                let start = if backward { (row + 1).saturating_sub(batch::ROWS) } else { row };
                if let Some(loaded) = self.cold.as_mut().and_then(|cold| cold.loaded.as_mut()) {
                    loaded.done = start;
                }
                self.fill_batch();
                self.scroll.window = start..start + self.batch.end;
            }
            self.batch.at = row - self.scroll.window.start;
            self.batch.end = self.batch.at + 1;
            self.phase = Phase::Scroll;
            Next::Batch
        }
    }
}

/// Whether the server may ask the node to move backward.
pub fn may_move_backward(eflags: i32) -> bool {
    eflags & pg_sys::EXEC_FLAG_BACKWARD as i32 != 0
}
