//! Writes what waits in memory to shadow tables.
//!
//! Many rows become a stripe, few go to the tail. Once the tail is long it becomes a stripe. Then stripes are
//! tidied. All of this is part of the transaction that is running.

use super::TableState;
use super::pending::Pending;
use crate::api::{Error, Result};

/// So many rows at a time, or as many as a stripe has, become a stripe of their own. Fewer go to the tail.
const DIRECT_ROWS: u32 = 8_192;
/// Once the tail has so many rows, or as many as a stripe has, it becomes a stripe.
const TAIL_ROWS: u32 = 16_384;
/// Or once its rows take so much memory: a query reads all of them.
const TAIL_BYTES: usize = 32 << 20;
/// Sorted tables wait for so many stripes: rows of all of them are sorted together.
const SORTED_STRIPES: usize = 8;
/// Rows after which their memory is looked at.
const COUNTED_ROWS: usize = 8;
/// Rows that take so much memory do not wait for more.
const PENDING_BYTES: usize = 128 << 20;

impl TableState {
    /// An error once a write has failed in the middle.
    pub(super) fn expect_whole(&self) -> Result<()> {
        match self.writing.get() {
            true => Err(Error::new("an earlier write of this transaction has failed: roll it back")),
            false => Ok(()),
        }
    }

    /// Writes all that waits.
    pub(super) fn flush(&self) -> Result<()> {
        if !self.dirty.get() {
            return Ok(());
        }
        self.expect_whole()?;
        // What is half written is not to be written again, nor to be taken for whole.
        self.writing.set(true);
        self.flushing.set(true);
        let db = self.storage.shadow.db;
        let written = db.keeping_last_id(|| self.write().and_then(|()| self.storage.directory.write()));
        self.flushing.set(false);
        written?;
        self.writing.set(false);
        self.dirty.set(false);
        Ok(())
    }

    /// Writes all that waits, and looks what others have written.
    pub fn settle_for_reading(&self) -> Result<()> {
        self.flush()?;
        self.storage.directory.refresh()
    }

    /// Rows that may wait at once.
    fn most_waiting(&self) -> usize {
        let stripes = if self.storage.is_sorted() { SORTED_STRIPES } else { 1 };
        self.storage.options.stripe_rows as usize * stripes
    }

    /// Rows that may come before those that wait are written.
    pub(super) fn room(&self) -> usize {
        self.most_waiting().saturating_sub(self.pending.borrow().rows()).max(1)
    }

    /// Writes rows that wait, if there are enough.
    pub(super) fn flush_full(&self) -> Result<()> {
        let full = {
            let (pending, most) = (self.pending.borrow(), self.most_waiting());
            let in_tail = self.storage.directory.tail_rows() as usize;
            // Bytes are counted now and then.
            pending.rows() >= most
                || (pending.rows().is_multiple_of(COUNTED_ROWS) && pending.bytes() >= PENDING_BYTES)
                || in_tail >= most.max(TAIL_ROWS as usize)
                || self.storage.tail.bytes() >= PENDING_BYTES
        };
        if full { self.flush() } else { Ok(()) }
    }

    fn write(&self) -> Result<()> {
        let storage = &self.storage;
        let waiting = self.pending.replace(Pending::new(storage.tail.builders()));
        let rows = waiting.rows();
        // What is known of the greatest id may be older than these rows.
        waiting.greatest().into_iter().for_each(|id| storage.directory.saw_row_id(id));
        let most = storage.options.stripe_rows;
        if rows >= DIRECT_ROWS.min(most) as usize {
            storage.write(waiting.finish())?;
        } else if rows > 0 {
            storage.tail.insert_all(&waiting.finish())?;
            storage.directory.change_tail(rows.cast_signed() as i64);
        }
        let in_tail = storage.directory.tail_rows();
        if in_tail >= TAIL_ROWS.min(most) || (in_tail > 0 && storage.tail.bytes() >= TAIL_BYTES) {
            let rows = storage.tail.rows(None)?;
            storage.write(rows.to_vec())?;
            storage.tail.clear()?;
            storage.directory.change_tail(-i64::from(in_tail));
        }
        storage.tidy()
    }
}
