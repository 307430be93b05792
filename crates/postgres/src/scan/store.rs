//! Stripes on pages as a store that the engine's scan reads (`stripe::scan::Store`): a table's own, or those
//! of its columnstore index.
//!
//! Made at the first row by `table`, from one look at the directory. Invariant: the relation stays open and
//! the snapshot registered for as long as the store is used.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use encodings::BlockCodecs;
use pgrx::pg_sys::{self, Relation};
use stripe::StripeReader;
use stripe::scan::{RowsOut, Store, StripeInfo};
use vector::{Error, Result};

use crate::host::relation::Open;
use crate::storage::change::delete_bitmap;
use crate::storage::change::row_proxy::Tombstones;
use crate::storage::directory::StripeEntry;
use crate::storage::file::codecs::ServerCodecs;
use crate::storage::read::pages_ahead::PagesAhead;
use crate::storage::read::stripe_on_pages::{self, Pages, StripeHandle};

/// Which rows of stripes a scan must not see.
pub enum Out {
    /// Those that are dead to the snapshot.
    Dead(Tombstones),
    /// Those that are read from the heap: ranges of row numbers, ascending.
    Elsewhere(Vec<Range<u64>>),
}

/// Stripes that a snapshot sees.
pub struct OwnStripes {
    /// Whose pages they are on: the table, or its index.
    rel: Relation,
    entries: Vec<StripeEntry>,
    out: RefCell<Out>,
    ahead: PagesAhead,
}

impl OwnStripes {
    /// These stripes of a relation, and those of their rows that are out.
    ///
    /// # Safety
    /// `rel` stays open, and what `out` was made of and `memory` alive, as long as this is used.
    pub unsafe fn new(
        rel: Relation,
        entries: Vec<StripeEntry>,
        out: Out,
        memory: pg_sys::MemoryContext,
    ) -> Self {
        // SAFETY: the caller's promise.
        let ahead = PagesAhead::new(unsafe { Open::of(rel) }, memory);
        Self { rel, entries, out: RefCell::new(out), ahead }
    }

    /// How many stripes there are.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    fn entry(&self, at: usize) -> Result<&StripeEntry> {
        self.entries.get(at).ok_or_else(|| Error::InvalidInput(format!("no stripe at {at}")))
    }
}

impl Store for OwnStripes {
    type Stripe = Rc<StripeHandle>;
    type Bytes<'a> = Pages<'a>;

    fn stripe(&self, at: usize) -> Option<StripeInfo<'_>> {
        let entry = self.entries.get(at)?;
        let StripeEntry { first_row, row_count, footer_offset, footer_length, .. } = *entry;
        let footer = footer_offset..footer_offset.saturating_add(footer_length.into());
        Some(StripeInfo { first_row, row_count, summary: &entry.summary, footer })
    }

    fn open(&self, at: usize) -> Result<Rc<StripeHandle>> {
        // SAFETY: the promise of `new`.
        unsafe { stripe_on_pages::open(Open::of(self.rel), self.entry(at)?) }
    }

    fn reader(stripe: &Rc<StripeHandle>) -> &StripeReader {
        &stripe.reader
    }

    fn bytes(&self, at: usize) -> Result<Pages<'_>> {
        // SAFETY: the promise of `new`.
        let rel = unsafe { Open::of(self.rel) };
        Ok(Pages::new(rel, self.entry(at)?))
    }

    fn rows_out(&self, rows: Range<u64>, out: &mut RowsOut) {
        match &mut *self.out.borrow_mut() {
            Out::Dead(dead) => dead.among(rows).iter().for_each(|&row| out.row(row)),
            Out::Elsewhere(ranges) => {
                let first = ranges.partition_point(|range| range.end <= rows.start);
                let there = ranges.iter().skip(first).take_while(|range| range.start < rows.end);
                there.for_each(|range| out.rows(range.clone()));
            }
        }
    }

    fn codecs(&self) -> &'static dyn BlockCodecs {
        &ServerCodecs
    }

    fn number(&self) -> u32 {
        // SAFETY: the promise of `new`.
        unsafe { (*self.rel).rd_id.to_u32() }
    }

    fn pause(&self) {
        pgrx::check_for_interrupts!();
        // SAFETY: a statement that changes rows may be what reads; no content lock is held.
        unsafe { delete_bitmap::yield_to_waiters() }
    }

    fn reach(&self) -> u64 {
        self.ahead.reach()
    }

    fn read_ahead(&self, at: usize, ranges: &[Range<u64>]) -> u64 {
        let Some(entry) = self.entries.get(at) else { return 0 };
        // SAFETY: the promise of `new`.
        unsafe { self.ahead.name(Open::of(self.rel), entry.run, ranges) }
    }

    fn await_ahead(&self, number: u64) {
        // SAFETY: the promise of `new`.
        unsafe { self.ahead.wait_for(number) }
    }

    fn stop_ahead(&self) {
        // SAFETY: the promise of `new`; the scan calls it between two rows.
        unsafe { self.ahead.stop() }
    }
}
