//! Rows in both directions, for cursors that may move backward.
//!
//! Used instead of `refill`, which only moves forward, when the statement may move backward. The server says
//! so for every cursor whose plan can move backward, declared with SCROLL or not. Rows have the same order as
//! in a forward scan: stripe by stripe, then heap pages. The row loop gets one row at a time out of a window
//! of Datums around it. A chunk that is entered again is loaded again. Invariant: going one way and then the
//! other gives the same rows.

use std::ops::Range;

use pgrx::pg_sys::{self, ScanDirection};

use stripe::scan::{LoadedChunk, Store};

use super::state::{Phase, RowScan};
use crate::scan::datums;
use crate::scan::stripes::Stripes;

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

impl RowScan {
    /// Whether the executor moves backward now.
    ///
    /// # Safety
    /// The node runs.
    pub unsafe fn is_backward(&self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { (*(*self.table.custom).ss.ps.state).es_direction == ScanDirection::BackwardScanDirection }
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
                    let rows = self.loaded.as_ref().map_or(0, |loaded| loaded.selection.len());
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
            let rows = self.loaded.as_ref().map_or(0, |loaded| loaded.selection.len());
            self.show(if backward { rows.saturating_sub(1) } else { 0 }, backward)
        }
    }

    unsafe fn load_beside(&mut self, from: Option<(usize, u32)>, backward: bool) -> bool {
        let only_counts = self.only_counts();
        self.loaded = None;
        let (table, position) = (&mut self.table, &mut self.scroll);
        let Some(stripes) = &table.stripes else { return false };
        let counters = &mut table.counters;
        // A chunk of None: the stripe's first one, or its last.
        let mut place = match (from, backward) {
            (None, false) => Some((0, None)),
            (None, true) => stripes.store().len().checked_sub(1).map(|last| (last, None)),
            (Some((stripe, chunk)), false) => Some((stripe, Some(chunk + 1))),
            (Some((stripe, chunk)), true) => match chunk.checked_sub(1) {
                Some(chunk) => Some((stripe, Some(chunk))),
                None => stripe.checked_sub(1).map(|stripe| (stripe, None)),
            },
        };
        while let Some((at, chunk)) = place {
            pgrx::check_for_interrupts!();
            let Some(info) = stripes.store().stripe(at) else { return false };
            let beside = if backward { at.checked_sub(1) } else { Some(at + 1) };
            place = beside.map(|at| (at, None));
            if !stripes.is_kept(at) {
                counters.stripes_pruned += u64::from(chunk.is_none());
                continue;
            }
            counters.stripes_read += u64::from(chunk.is_none());
            if only_counts {
                if chunk.is_some() || info.row_count == 0 {
                    continue;
                }
                let rows = stripes.live_rows(at);
                if rows == 0 {
                    continue;
                }
                counters.rows_read += u64::from(rows);
                self.loaded = Some(LoadedChunk::only_rows(info.first_row, rows));
                (position.stripe, position.chunk) = (at, 0);
                return true;
            }
            let open = match stripes.open(at) {
                Ok(Some(open)) => open,
                Ok(None) => return false,
                Err(problem) => self.table.raise(problem),
            };
            let chunks = Stripes::reader(&open).chunk_count();
            let first = chunk.unwrap_or(if backward { chunks.saturating_sub(1) } else { 0 });
            let mut next = (first < chunks).then_some(first);
            while let Some(chunk) = next {
                next = if backward { chunk.checked_sub(1) } else { Some(chunk + 1).filter(|&c| c < chunks) };
                match stripes.load(at, &open, chunk, counters) {
                    Ok(Some(loaded)) if !loaded.selection.is_empty() => {
                        self.loaded = Some(loaded);
                        (position.stripe, position.chunk) = (at, chunk);
                        return true;
                    }
                    Ok(_) => {}
                    Err(problem) => self.table.raise(problem),
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
                let start = if backward { (row + 1).saturating_sub(datums::ROWS) } else { row };
                if let Some(loaded) = &mut self.loaded {
                    loaded.done = start;
                }
                self.fill_batch();
                self.scroll.window = start..start + self.table.batch.end;
            }
            self.table.batch.at = row - self.scroll.window.start;
            self.table.batch.end = self.table.batch.at + 1;
            self.phase = Phase::Scroll;
            Next::Batch
        }
    }
}

/// Whether the server may ask the node to move backward.
pub fn may_move_backward(eflags: i32) -> bool {
    eflags & pg_sys::EXEC_FLAG_BACKWARD as i32 != 0
}
