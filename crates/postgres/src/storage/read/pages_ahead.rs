//! Pages of stripes that are read before a scan asks for them.
//!
//! Made by `scan::store` for each scan. The engine's scan names bytes of stripes in the order in which it
//! wants them (`stripe::scan::Store::read_ahead`). How the server reads ahead depends on its version
//! (`compat::BlocksAhead`): from 17 on by a read stream, which 18 fills without waiting; before, by advice to
//! the operating system. The scan itself then finds the pages in buffers.
//!
//! Whether it pays is seen by what the backend reads: while pages are in the server's buffers, no page is
//! looked up twice.
//!
//! Invariant: a stream is ended by `stop`, or by the server's abort after an ERROR, never by a destructor.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Range;

use pgrx::pg_sys;

use crate::compat::BlocksAhead;
use crate::host::relation::Open;
use crate::host::server_statistics;
use crate::storage::file::page_header::PAYLOAD_BYTES;
use crate::storage::file::pages::BlockRun;

/// So many chunks in a row without a page from outside the buffers mean that pages are near.
const NEAR: u32 = 8;

/// The part of the server's buffers that is named at a time. Others use them, too, and what was read ahead
/// has to stay until the scan comes to it.
const SHARE: u64 = 32;

/// What a scan reads ahead.
pub struct PagesAhead {
    /// The most bytes to name at a time.
    most: u64,
    /// The memory that lives as long as the scan.
    memory: pg_sys::MemoryContext,
    /// For each relation that the scan reads, once it is named.
    streams: RefCell<Vec<Option<BlocksAhead>>>,
    /// What was named and not waited for yet, in order: how many blocks of which relation.
    order: RefCell<VecDeque<(usize, u64)>>,
    /// Blocks that were named, and those of them that were waited for.
    named: Cell<u64>,
    awaited: Cell<u64>,
    /// Pages that this backend had read from outside its buffers when the scan asked last.
    reads: Cell<i64>,
    /// How often in a row there was no further one.
    near: Cell<u32>,
}

impl PagesAhead {
    /// For a scan of relations that begins; all are temporary or none. `memory` lives as long as it. Pages of
    /// temporary tables are not read ahead: a session has few buffers for them, and a read stream may pin
    /// them all.
    pub fn new(count: usize, is_local: bool, memory: pg_sys::MemoryContext) -> Self {
        // SAFETY: a plain number of the server's.
        let buffers = u64::try_from(unsafe { pg_sys::NBuffers }).unwrap_or(0);
        let page = PAYLOAD_BYTES as u64;
        Self {
            most: if is_local { 0 } else { (buffers / SHARE).max(1) * page },
            memory,
            streams: RefCell::new((0..count).map(|_| None).collect()),
            order: RefCell::default(),
            named: Cell::new(0),
            awaited: Cell::new(0),
            reads: Cell::new(server_statistics::pages_read()),
            near: Cell::new(NEAR),
        }
    }

    /// The most bytes to name at a time. 0 if pages do not come from outside the server's buffers.
    pub fn reach(&self) -> u64 {
        let reads = server_statistics::pages_read();
        let near = if reads == self.reads.replace(reads) { self.near.get().saturating_add(1) } else { 0 };
        self.near.set(near);
        if near < NEAR { self.most } else { 0 }
    }

    /// Names bytes of a stripe that lies in `run` of the relation at a position. Returns how many blocks were
    /// named so far.
    ///
    /// # Safety
    /// The relation stays open until `stop`.
    pub unsafe fn name(&self, at: usize, rel: Open, run: BlockRun, ranges: &[Range<u64>]) -> u64 {
        if let Some(stream) = self.streams.borrow_mut().get_mut(at)
            && !ranges.is_empty()
        {
            // SAFETY: the caller's promise; the memory lives as long as the scan.
            unsafe {
                let blocks = stream.get_or_insert_with(|| {
                    let previous = pg_sys::MemoryContextSwitchTo(self.memory);
                    let begun = BlocksAhead::begin(rel.as_ptr());
                    pg_sys::MemoryContextSwitchTo(previous);
                    begun
                });
                let (mut done, mut count) = (0, 0);
                for bytes in ranges {
                    let pages = blocks_of(run, bytes);
                    // Two ranges may share a page.
                    let pages = pages.start.max(done)..pages.end;
                    if !pages.is_empty() {
                        done = pages.end;
                        count += u64::from(pages.end - pages.start);
                        blocks.name(pages);
                    }
                }
                self.named.set(self.named.get() + count);
                if count > 0 {
                    self.order.borrow_mut().push_back((at, count));
                }
            }
        }
        self.named.get()
    }

    /// Waits for the blocks up to this number.
    ///
    /// # Safety
    /// The relations are open.
    pub unsafe fn wait_for(&self, number: u64) {
        let mut more = number.min(self.named.get()).saturating_sub(self.awaited.get());
        self.awaited.set(self.awaited.get() + more);
        let (mut streams, mut order) = (self.streams.borrow_mut(), self.order.borrow_mut());
        while more > 0
            && let Some((at, count)) = order.front_mut()
        {
            let now = more.min(*count);
            if let Some(Some(blocks)) = streams.get_mut(*at) {
                // SAFETY: the caller's promise.
                unsafe { blocks.wait_for(now) };
            }
            more -= now;
            *count -= now;
            if *count == 0 {
                order.pop_front();
            }
        }
    }

    /// Drops what was named and not read.
    ///
    /// # Safety
    /// The relations are open, and no ERROR has been raised.
    pub unsafe fn stop(&self) {
        self.awaited.set(self.named.get());
        self.order.borrow_mut().clear();
        for stream in self.streams.borrow_mut().iter_mut() {
            if let Some(blocks) = stream.take() {
                // SAFETY: the caller's promise.
                unsafe { blocks.end() };
            }
        }
    }
}

/// The blocks that hold these bytes of a run. None of them lies outside the run.
fn blocks_of(run: BlockRun, bytes: &Range<u64>) -> Range<pg_sys::BlockNumber> {
    let payload = PAYLOAD_BYTES as u64;
    let block = |number: u64| {
        let number = u32::try_from(number).unwrap_or(u32::MAX).min(run.block_count);
        run.first_block.saturating_add(number)
    };
    block(bytes.start / payload)..block(bytes.end.div_ceil(payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_bytes_become_the_blocks_that_hold_them() {
        let (run, page) = (BlockRun { first_block: 100, block_count: 10 }, PAYLOAD_BYTES as u64);
        assert_eq!(blocks_of(run, &(0..1)), 100..101);
        assert_eq!(blocks_of(run, &(page - 1..page + 1)), 100..102);
        assert_eq!(blocks_of(run, &(page..2 * page)), 101..102);
        assert!(blocks_of(run, &(5..5)).is_empty() || blocks_of(run, &(5..5)) == (100..101));
        assert_eq!(blocks_of(run, &(9 * page..u64::MAX)), 109..110);
        assert!(blocks_of(run, &(50 * page..51 * page)).is_empty());
    }
}
