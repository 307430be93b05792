//! Stripes of a table that the engine's scan reads (`stripe::scan::Store`): its own, those of its columnstore
//! index or of several side by side, or those of a column file.
//!
//! Made at the first row by `table`, from one look at the directory. Invariant: the relation stays open and
//! the snapshot registered for as long as the store is used.

use std::cell::{OnceCell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use pgrx::pg_sys::{self, Relation};
use stripe::StripeBytes;
use stripe::scan::{Located, RowsOut, StripeInfo};
use vector::{Error, Result};

use crate::columnstore::checked::{self, Checked};
use crate::convert::ColumnType;
use crate::host::error;
use crate::host::relation::Open;
use crate::storage::change::delete_bitmap;
use crate::storage::change::row_proxy::Tombstones;
use crate::storage::column_file::open::{self, TableFile};
use crate::storage::directory::StripeEntry;
use crate::storage::read::pages_ahead::PagesAhead;
use crate::storage::read::stripe_on_pages::{self, Pages, StripeHandle};
use crate::table_am::read::cold_rows;

/// Which rows of stripes a scan must not see.
pub enum Out {
    /// None.
    None,
    /// Those that are dead to the snapshot.
    Dead(Tombstones),
    /// Those of copies that are not to be read there.
    OfCopies {
        /// Those that are read from the heap: ranges of row numbers, ascending.
        elsewhere: Vec<Range<u64>>,
        /// Blocks of which the snapshot may not see all rows.
        checked: Checked,
        /// The column of the copies that has the roots of rows.
        roots: usize,
    },
}

/// Stripes of one relation.
pub struct Part {
    /// Whose pages they are on: the table, or its index.
    rel: Relation,
    /// The file that they are in instead, and the types that the table has.
    file: Option<(TableFile, Vec<ColumnType>)>,
    entries: Vec<StripeEntry>,
}

impl Part {
    /// These stripes of a relation.
    pub const fn new(rel: Relation, entries: Vec<StripeEntry>) -> Self {
        Self { rel, file: None, entries }
    }

    /// These stripes of the file of a foreign table.
    ///
    /// # Safety
    /// The relation is open.
    pub unsafe fn in_file(rel: Relation, file: TableFile, entries: Vec<StripeEntry>) -> Self {
        // SAFETY: the caller's promise.
        let kinds = unsafe { ColumnType::of_all((*rel).rd_att) };
        Self { rel, file: Some((file, kinds)), entries }
    }

    fn entry(&self, at: usize) -> Result<&StripeEntry> {
        self.entries.get(at).ok_or_else(|| Error::InvalidInput(format!("no stripe at {at}")))
    }
}

/// Stripes that a snapshot sees. Where there are several parts, the stripes at one position have the same
/// rows and lie side by side.
pub struct OwnStripes {
    parts: Vec<Part>,
    /// The summaries of stripes that lie side by side, and the stripes once they are open.
    beside: Vec<(Vec<u8>, OnceCell<Rc<StripeHandle>>)>,
    out: RefCell<Out>,
    ahead: PagesAhead,
}

impl OwnStripes {
    /// These stripes, and those of their rows that are out. There is one part, or more.
    ///
    /// # Errors
    /// Where summaries of stripes that lie side by side are bad: the error, at the stripe of the first part.
    ///
    /// # Safety
    /// The parts' relations stay open, and what `out` was made of and `memory` alive, as long as this is
    /// used.
    pub unsafe fn new(
        parts: Vec<Part>,
        out: Out,
        memory: pg_sys::MemoryContext,
    ) -> std::result::Result<Self, Located> {
        let mut beside = Vec::new();
        if let [first, _, ..] = parts.as_slice() {
            for (at, entry) in first.entries.iter().enumerate() {
                let summaries: Vec<_> =
                    parts.iter().filter_map(|part| Some(part.entries.get(at)?.summary.as_slice())).collect();
                let summary = stripe::summaries_beside(&summaries)
                    .map_err(|problem| Located::new(entry.first_row, problem))?;
                beside.push((summary, OnceCell::new()));
            }
        }
        // SAFETY: the caller's promise.
        let is_local = parts.first().is_some_and(|part| unsafe { Open::of(part.rel) }.is_local());
        let ahead = PagesAhead::new(parts.len(), is_local, memory);
        let made = Self { parts, beside, out: RefCell::new(out), ahead };
        if let Out::OfCopies { checked, roots, .. } = &*made.out.borrow()
            && checked.is_urgent()
        {
            for stripe in (0..made.len()).filter_map(|at| made.stripe(at)) {
                checked.look(&stripe.rows(), |at, rows| made.roots(at, rows, *roots));
            }
        }
        Ok(made)
    }

    /// How many stripes there are.
    pub fn len(&self) -> usize {
        self.parts.first().map_or(0, |part| part.entries.len())
    }

    /// The stripes at a position, each with its relation and its first byte among those of the whole.
    fn at(&self, at: usize) -> Result<Vec<(Open<'_>, &StripeEntry, u64)>> {
        let mut start = 0_u64;
        let mut found = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let entry = part.entry(at)?;
            // SAFETY: the promise of `new`.
            found.push((unsafe { Open::of(part.rel) }, entry, start));
            start = start.saturating_add(entry.byte_length);
        }
        Ok(found)
    }

    /// The roots of rows of the stripe at a position. They are in this column.
    fn roots(&self, at: usize, rows: &[Range<u64>], column: usize) -> Vec<u16> {
        let first_row = self.stripe(at).map_or(0, |stripe| stripe.first_row);
        let read = || -> Result<Vec<u16>> {
            let (open, bytes) = (self.open(at)?, self.bytes(at)?);
            let positions = rows.iter().cloned().flatten().map(|row| row - first_row);
            checked::roots(&open.reader, &bytes, column, positions)
        };
        read().unwrap_or_else(|problem| {
            // SAFETY: the promise of `new`.
            let rel = self.parts.first().map(|part| unsafe { Open::of(part.rel) });
            match rel {
                Some(rel) => error::raise_stripe(rel, first_row, problem),
                None => error::raise_plain(problem),
            }
        })
    }
}

/// The bytes of a stripe, or of several that lie side by side.
pub enum Bytes<'a> {
    /// Of one.
    One(Pages<'a>),
    /// In a column file.
    File(open::Bytes),
    /// Of several, with the first byte of each among those of the whole.
    Beside(Vec<(u64, Pages<'a>)>),
}

impl StripeBytes for Bytes<'_> {
    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let parts = match self {
            Self::One(pages) => return pages.read(range, out),
            Self::File(bytes) => return bytes.read(range, out),
            Self::Beside(parts) => parts,
        };
        let part = parts.iter().rev().find(|(start, _)| *start <= range.start);
        let (start, pages) = part.ok_or_else(|| Error::InvalidInput("no stripe".into()))?;
        pages.read(range.start - start..range.end.saturating_sub(*start), out)
    }
}

/// As `stripe::scan::Store`.
impl OwnStripes {
    pub(super) fn stripe(&self, at: usize) -> Option<StripeInfo<'_>> {
        let entry = self.parts.first()?.entries.get(at)?;
        let StripeEntry { first_row, row_count, footer_offset, footer_length, .. } = *entry;
        let footer = footer_offset..footer_offset.saturating_add(footer_length.into());
        let summary = self.beside.get(at).map_or(&entry.summary, |(summary, _)| summary);
        Some(StripeInfo { first_row, row_count, summary, footer })
    }

    pub(super) fn open(&self, at: usize) -> Result<Rc<StripeHandle>> {
        if let [part] = self.parts.as_slice() {
            if let Some((file, kinds)) = &part.file {
                let open = stripe_on_pages::open_in_file(file, part.entry(at)?)?;
                cold_rows::all_fit(kinds, &open.reader)?;
                return Ok(open);
            }
            // SAFETY: the promise of `new`.
            return stripe_on_pages::open(unsafe { Open::of(part.rel) }, part.entry(at)?);
        }
        let (_, kept) =
            self.beside.get(at).ok_or_else(|| Error::InvalidInput(format!("no stripe at {at}")))?;
        if let Some(open) = kept.get() {
            return Ok(Rc::clone(open));
        }
        let open = stripe_on_pages::open_beside(&self.at(at)?)?;
        Ok(Rc::clone(kept.get_or_init(|| open)))
    }

    pub(super) fn bytes(&self, at: usize) -> Result<Bytes<'_>> {
        if let [part] = self.parts.as_slice() {
            if let Some((file, _)) = &part.file {
                return Ok(Bytes::File(file.stripe(part.entry(at)?)?));
            }
            // SAFETY: the promise of `new`.
            return Ok(Bytes::One(Pages::new(unsafe { Open::of(part.rel) }, part.entry(at)?)));
        }
        let parts = self.at(at)?.into_iter().map(|(rel, entry, start)| (start, Pages::new(rel, entry)));
        Ok(Bytes::Beside(parts.collect()))
    }

    pub(super) fn rows_out(&self, rows: Range<u64>, out: &mut RowsOut) {
        match &mut *self.out.borrow_mut() {
            Out::None => {}
            Out::Dead(dead) => dead.among(rows).iter().for_each(|&row| out.row(row)),
            Out::OfCopies { elsewhere, checked, roots } => {
                let first = elsewhere.partition_point(|range| range.end <= rows.start);
                let there = elsewhere.iter().skip(first).take_while(|range| range.start < rows.end);
                there.for_each(|range| out.rows(range.clone()));
                checked.look(&rows, |at, rows| self.roots(at, rows, *roots));
                checked.tell(&rows, out);
            }
        }
    }

    pub(super) fn number(&self) -> u32 {
        // SAFETY: the promise of `new`.
        self.parts.first().map_or(0, |part| unsafe { (*part.rel).rd_id.to_u32() })
    }

    pub(super) fn pause(&self) {
        pgrx::check_for_interrupts!();
        // SAFETY: a statement that changes rows may be what reads; no content lock is held.
        unsafe { delete_bitmap::yield_to_waiters() }
    }

    pub(super) fn reach(&self) -> u64 {
        match self.parts.first() {
            // Reading ahead is the operating system's business there.
            Some(Part { file: Some(_), .. }) => 0,
            _ => self.ahead.reach(),
        }
    }

    pub(super) fn read_ahead(&self, at: usize, ranges: &[Range<u64>]) -> u64 {
        let mut named = 0;
        for (number, (rel, entry, start)) in self.at(at).into_iter().flatten().enumerate() {
            let own = part_of(ranges, start..start.saturating_add(entry.byte_length));
            // SAFETY: the promise of `new`.
            named = unsafe { self.ahead.name(number, rel, entry.run, &own) };
        }
        named
    }

    pub(super) fn await_ahead(&self, number: u64) {
        // SAFETY: the promise of `new`.
        unsafe { self.ahead.wait_for(number) }
    }

    pub(super) fn stop_ahead(&self) {
        // SAFETY: the promise of `new`; the scan calls it between two rows.
        unsafe { self.ahead.stop() }
    }
}

/// What lies within some bytes, counted from the first of them.
fn part_of(ranges: &[Range<u64>], within: Range<u64>) -> Vec<Range<u64>> {
    let clipped = ranges.iter().map(|range| range.start.max(within.start)..range.end.min(within.end));
    let own = clipped.filter(|range| !range.is_empty());
    own.map(|range| range.start - within.start..range.end - within.start).collect()
}
