//! Single rows of stripes by number, for fetches by index, bitmap and TID.
//!
//! Only the wanted values are taken out of column chunks, which `kept_chunk` keeps from fetch to fetch and decodes where many are taken. An index names rows in any order, so a fetcher
//! finds the stripes and chunks that it has met again without a look-up; it only borrows the chunks, whose memory is the cache's to bound. Long runs in storage order are left to
//! `ColdRows`. Datums live until the next rows are loaded.

use std::rc::{Rc, Weak};

use pgrx::pg_sys::{self, Datum, Relation, TupleTableSlot};
use vector::Error;

use super::cold_rows::{ColdRows, Columns, SLOT_WANTS_SYSTEM_COLUMNS, fits, store};
use super::wanted;
use crate::convert::missing_value;
use crate::host::error;
use crate::storage::directory::StripeEntry;
use crate::storage::kept_chunk::{self, KeptChunk, Place};
use crate::storage::open_stripe::{self, OpenStripe};

/// So many fetches in a row that each go a little forward within one chunk mean an index scan in storage order: then
/// the chunk is decoded after all.
const RUN: u32 = 128;
/// How far "a little forward" is, in rows.
const STRIDE: u32 = 16;

/// A stripe that rows were fetched from.
struct Met {
    entry: StripeEntry,
    open: Rc<OpenStripe>,
    columns: Vec<Stored>,
}

/// A column of such a stripe.
enum Stored {
    /// Not looked at yet.
    Unknown,
    /// The stripe is older than the column.
    Missing,
    /// Its chunks, those that were looked at.
    Chunks(Vec<Weak<KeptChunk>>),
}

/// Fetches rows.
pub struct ColdFetch {
    rel: Relation,
    columns: Columns,
    /// The attributes that values are looked up for.
    wanted: Vec<usize>,
    /// By first row number.
    stripes: Vec<Met>,
    /// The rows loaded, how many they are, and their values, all of a column side by side.
    places: Vec<u32>,
    count: usize,
    first: u64,
    inserter: pg_sys::TransactionId,
    values: Vec<Datum>,
    nulls: Vec<bool>,
    /// Row fetched last, and for how many fetches the steps have been short.
    last: u64,
    run: u32,
    /// Takes over in long runs.
    rows: Option<Box<ColdRows>>,
}

impl ColdFetch {
    /// A fetcher for rows of `rel`.
    pub unsafe fn new(rel: Relation) -> Self {
        // SAFETY: rel is open and stays so while this is used.
        Self {
            rel,
            columns: Columns::none(),
            wanted: Vec::new(),
            stripes: Vec::new(),
            places: Vec::new(),
            count: 0,
            first: 0,
            inserter: pg_sys::InvalidTransactionId,
            values: Vec::new(),
            nulls: Vec::new(),
            last: u64::MAX,
            run: 0,
            rows: None,
        }
    }

    /// Stores row number `row` of `entry` into the slot. Its values live until the next call.
    pub unsafe fn fetch(&mut self, entry: &StripeEntry, row: u64, slot: *mut TupleTableSlot) {
        let forward = row.checked_sub(self.last).is_some_and(|step| step <= u64::from(STRIDE));
        self.run = if forward { self.run.saturating_add(1) } else { 0 };
        self.last = row;
        // SAFETY: see the methods called.
        unsafe {
            let position = row.checked_sub(entry.first_row).and_then(|position| u32::try_from(position).ok());
            let position = position.unwrap_or(u32::MAX);
            if self.run >= RUN && entry.covers(row) {
                let rel = self.rel;
                let rows =
                    self.rows.get_or_insert_with(|| Box::new(ColdRows::new(rel, std::ptr::null_mut())));
                rows.fetch(entry, position, slot);
                return;
            }
            self.load(entry, &[position], slot);
            self.show(0, slot);
        }
    }

    /// `fetch` with a tuple header, for who looks at xmin, and a copy of the values, which lives as long as the slot's row.
    pub unsafe fn fetch_with_header(&mut self, entry: &StripeEntry, row: u64, slot: *mut TupleTableSlot) {
        // SAFETY: as `fetch`. Later rows of the slot get a header only where its plan asked for one.
        unsafe {
            let before = (*slot).tts_flags & SLOT_WANTS_SYSTEM_COLUMNS;
            (*slot).tts_flags |= SLOT_WANTS_SYSTEM_COLUMNS;
            self.fetch(entry, row, slot);
            (*slot).tts_flags &= !SLOT_WANTS_SYSTEM_COLUMNS | before;
        }
    }

    /// Loads rows for `show`, which are positions in the stripe, ascending: as many of the first ones as are in one chunk, and says how many.
    pub unsafe fn load(&mut self, entry: &StripeEntry, rows: &[u32], slot: *mut TupleTableSlot) -> usize {
        // SAFETY: the slot is one of the table's; rel is open.
        unsafe {
            if !std::ptr::eq(self.columns.desc, (*slot).tts_tupleDescriptor) {
                self.columns = Columns::of(slot, wanted::of(slot).as_deref());
                self.wanted =
                    (0..).zip(&self.columns.live).filter_map(|(at, &live)| live.then_some(at)).collect();
                self.stripes.clear();
                self.count = 0;
            }
            if let Err(problem) = self.try_load(entry, rows) {
                error::raise_stripe(self.rel, entry.first_row, problem);
            }
            self.count
        }
    }

    /// Stores one of the rows loaded last into the slot.
    pub unsafe fn show(&self, at: usize, slot: *mut TupleTableSlot) {
        let Some(&place) = self.places.get(at) else { return };
        let place_of = |column: usize| column * self.count + at;
        // SAFETY: the slot that the rows were loaded for.
        unsafe {
            store(self.rel, slot, self.first + u64::from(place), self.inserter, |column| {
                let at = place_of(column);
                match (self.values.get(at), self.nulls.get(at)) {
                    (Some(&value), Some(&null)) => (value, null),
                    _ => (Datum::null(), true),
                }
            });
        }
    }

    /// The place of a stripe among those met.
    unsafe fn meet(&mut self, entry: &StripeEntry) -> Result<usize, Error> {
        let at = self.stripes.partition_point(|met| met.entry.first_row < entry.first_row);
        let known = self.stripes.get(at).map(|met| (met.entry.first_row, met.entry.storage_id));
        if known != Some((entry.first_row, entry.storage_id)) {
            // SAFETY: rel is open.
            let open = unsafe { open_stripe::open(self.rel, entry)? };
            self.stripes.retain(|met| met.entry.storage_id == entry.storage_id);
            let at = self.stripes.partition_point(|met| met.entry.first_row < entry.first_row);
            self.stripes.insert(at, Met { entry: entry.clone(), open, columns: Vec::new() });
            return Ok(at);
        }
        Ok(at)
    }

    unsafe fn try_load(&mut self, entry: &StripeEntry, rows: &[u32]) -> Result<(), Error> {
        let outside = || Error::InvalidInput("row number lies outside its stripe".into());
        // SAFETY: rel is open; the slot keeps its row type.
        unsafe {
            let met = self.meet(entry)?;
            let Met { entry, open, columns } = self.stripes.get_mut(met).ok_or_else(outside)?;
            let chunk = rows.first().map_or(0, |&row| open.reader.chunk_of(row));
            let within = open.reader.chunk_rows(chunk);
            self.places.clear();
            self.places
                .extend(rows.iter().take_while(|row| within.contains(row)).map(|row| row - within.start));
            if self.places.is_empty() {
                return Err(outside());
            }
            self.first = entry.first_row + u64::from(within.start);
            self.inserter = entry.inserter;
            if self.count != self.places.len() {
                self.count = self.places.len();
                self.values.clear();
                self.nulls.clear();
                self.values.resize(self.columns.live.len() * self.count, Datum::null());
                self.nulls.resize(self.columns.live.len() * self.count, true);
            }
            if columns.is_empty() {
                columns.resize_with(self.columns.live.len(), || Stored::Unknown);
            }
            for &column in &self.wanted {
                let (Some(stored), Some(reader)) =
                    (columns.get_mut(column), self.columns.readers.get_mut(column))
                else {
                    continue;
                };
                let from = column * self.count;
                let (Some(values), Some(nulls)) = (
                    self.values.get_mut(from..from + self.count),
                    self.nulls.get_mut(from..from + self.count),
                ) else {
                    continue;
                };
                if matches!(stored, Stored::Unknown) {
                    *stored = if column < open.reader.column_count() {
                        fits(&open.reader, column, reader.kind())?;
                        let count = open.reader.chunk_count() as usize;
                        Stored::Chunks(std::iter::repeat_with(Weak::new).take(count).collect())
                    } else {
                        Stored::Missing
                    };
                }
                let Stored::Chunks(chunks) = stored else {
                    let (value, null) = missing_value(self.columns.desc, column);
                    values.fill(value);
                    nulls.fill(null);
                    continue;
                };
                let place = chunks.get_mut(chunk as usize).ok_or_else(outside)?;
                let kept = match place.upgrade() {
                    Some(kept) => {
                        kept.touch();
                        kept
                    }
                    None => {
                        let kept = kept_chunk::of(self.rel, entry, open, column, chunk)?;
                        *place = Rc::downgrade(&kept);
                        kept
                    }
                };
                reader.reset();
                match kept.take(&self.places)? {
                    Place::Alone(vector) => reader.datums_in(&vector, 0..self.count, values, nulls),
                    Place::Among(vector) => reader.datums_at(vector, &self.places, values, nulls),
                };
            }
            Ok(())
        }
    }
}
