//! The next rows of stripes as Datums, and when heap pages are due.
//!
//! Called by the row loop whenever it runs out of rows. Invariant: only verdicts and Datums kept by
//! dictionary outlive their chunk.

use stripe::scan::Turns;

use super::parallel::Shared;
use super::state::{Phase, RowScan};

impl RowScan {
    /// Finds the next rows, and says in `phase` where they are.
    ///
    /// # Safety
    /// Called under guard while the node runs.
    pub unsafe fn refill(&mut self) {
        // SAFETY: the caller's promise: the node runs, so relation, slots and contexts are there.
        unsafe {
            match self.phase {
                Phase::Start => {
                    let shared = self.shared.as_ref().map_or(std::ptr::null_mut(), Shared::table);
                    self.table.start(std::iter::empty(), Vec::new(), Vec::new(), shared);
                    self.phase = if self.scrolls { Phase::Scroll } else { Phase::Cold };
                    if self.scrolls {
                        return;
                    }
                }
                Phase::Cold => {}
                Phase::Hot => {
                    self.phase = Phase::Done;
                    return;
                }
                Phase::Done | Phase::Test | Phase::Scroll => return,
            }
            if !self.next_batch() {
                self.phase = if self.table.hot.is_some() { Phase::Hot } else { Phase::Done };
            }
        }
    }

    /// Puts the next rows of stripes into the batch; false when there are none.
    unsafe fn next_batch(&mut self) -> bool {
        // SAFETY: as refill; the shared state is null or alive until shutdown.
        unsafe {
            while self.loaded.as_ref().is_none_or(|loaded| loaded.done >= loaded.selection.len()) {
                let only_counts = self.only_counts();
                let turns = self.shared.as_ref().map(|shared| shared as &dyn Turns);
                let Some(stripes) = &mut self.table.stripes else { return false };
                match stripes.next_chunk(only_counts, turns, &mut self.table.counters) {
                    Ok(Some(loaded)) => self.loaded = Some(loaded),
                    Ok(None) => {
                        self.loaded = None;
                        self.table.report_rows_read();
                        return false;
                    }
                    Err(problem) => self.table.raise(problem),
                }
            }
            self.fill_batch();
            true
        }
    }
}
