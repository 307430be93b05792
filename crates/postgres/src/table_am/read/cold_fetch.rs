//! Single rows of stripes by number, for fetches by index, bitmap and TID.
//!
//! Only the wanted values are taken out of column chunks. `kept_chunk` keeps the chunks from fetch to fetch,
//! and decodes a chunk from which many values are taken.
//!
//! An index names rows in any order. So a fetcher remembers the stripes and chunks that it has met and finds
//! them again without a look-up. It only borrows the chunks: the cache bounds their memory. Long runs in
//! storage order are left to `ColdRows`.
//!
//! Invariant: Datums live until the next rows are loaded.

use std::rc::Rc;

use encodings::Single;
use pgrx::pg_sys::{self, Datum, Relation, TupleDesc, TupleTableSlot};
use stripe::Layout;
use vector::Error;

use super::cold_rows::{ColdRows, SLOT_WANTS_SYSTEM_COLUMNS, fits, store};
use super::wanted;
use crate::compat;
use crate::convert::{Arena, ColumnType, missing_value, single_datum};
use crate::host::error;
use crate::host::relation::Open;
use crate::storage::directory::StripeEntry;
use crate::storage::read::stripe_on_pages::{self, Pages, StripeHandle};
use crate::storage::read::{kept_block, kept_chunk};

/// If this many fetches in a row each go a little forward, the index scan is in storage order, and chunks are
/// decoded after all.
const RUN: u32 = 128;
/// How far "a little forward" is, in rows.
const STRIDE: u32 = 16;

/// A column that values are looked up for.
struct Column {
    /// The column's place in the row type.
    at: usize,
    kind: ColumnType,
}

/// A stripe that rows were fetched from.
struct Met {
    entry: StripeEntry,
    open: Rc<StripeHandle>,
    /// For each wanted column that is younger than the stripe: the value that the stripe's rows have there.
    missing: Vec<Option<(Datum, bool)>>,
}

/// Fetches rows.
pub struct ColdFetch {
    rel: Relation,
    /// Whether a condition on the rows is rechecked.
    recheck: bool,
    desc: TupleDesc,
    columns: Vec<Column>,
    /// By first row number.
    stripes: Vec<Met>,
    /// The rows loaded, how many they are, and their values; the values of one column lie side by side.
    places: Vec<u32>,
    count: usize,
    first: u64,
    inserter: pg_sys::TransactionId,
    values: Vec<(Datum, bool)>,
    /// Memory of the values.
    arena: Arena,
    /// Room for the bytes of one value.
    room: Vec<u8>,
    /// The row fetched last, and how many fetches in a row went only a little forward.
    last: u64,
    run: u32,
    /// Takes over in long runs.
    rows: Option<Box<ColdRows>>,
}

impl ColdFetch {
    /// A fetcher for rows of `rel`.
    ///
    /// # Safety
    /// `rel` stays open while this is used.
    pub unsafe fn new(rel: Open) -> Self {
        // SAFETY: the table stays open, as is promised.
        Self {
            rel: rel.as_ptr(),
            recheck: true,
            desc: std::ptr::null_mut(),
            columns: Vec::new(),
            stripes: Vec::new(),
            places: Vec::new(),
            count: 0,
            first: 0,
            inserter: pg_sys::InvalidTransactionId,
            values: Vec::new(),
            arena: Arena::new(),
            room: Vec::new(),
            last: u64::MAX,
            run: 0,
            rows: None,
        }
    }

    /// A fetcher for rows of a bitmap whose condition is not rechecked.
    pub fn without_recheck(rel: Open) -> Self {
        // SAFETY: as `new`.
        unsafe { Self { recheck: false, ..Self::new(rel) } }
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
                let rows = self
                    .rows
                    .get_or_insert_with(|| Box::new(ColdRows::new(Open::of(rel), std::ptr::null_mut())));
                rows.fetch(entry, position, slot);
                return;
            }
            self.load(entry, &[position], slot);
            self.show(0, slot);
        }
    }

    /// As `fetch`, but with a tuple header, for callers that look at xmin, and with a copy of the values that
    /// lives as long as the slot's row.
    pub unsafe fn fetch_with_header(&mut self, entry: &StripeEntry, row: u64, slot: *mut TupleTableSlot) {
        // SAFETY: as `fetch`. Later rows of the slot get a header only where its plan asked for one.
        unsafe {
            let before = (*slot).tts_flags & SLOT_WANTS_SYSTEM_COLUMNS;
            (*slot).tts_flags |= SLOT_WANTS_SYSTEM_COLUMNS;
            self.fetch(entry, row, slot);
            (*slot).tts_flags &= !SLOT_WANTS_SYSTEM_COLUMNS | before;
        }
    }

    /// Loads rows for `show`, and returns how many: those at the beginning of `rows` that are read at once.
    /// The rows are positions in the stripe and ascend.
    pub unsafe fn load(&mut self, entry: &StripeEntry, rows: &[u32], slot: *mut TupleTableSlot) -> usize {
        // SAFETY: the slot is one of the table's; rel is open.
        unsafe {
            if !std::ptr::eq(self.desc, (*slot).tts_tupleDescriptor) {
                self.begin(slot);
            }
            if let Err(problem) = self.try_load(entry, rows) {
                error::raise_stripe(Open::of(self.rel), entry.first_row, problem);
            }
            self.count
        }
    }

    /// Stores one of the rows loaded last into the slot.
    pub unsafe fn show(&self, at: usize, slot: *mut TupleTableSlot) {
        let Some(&place) = self.places.get(at) else { return };
        // SAFETY: the slot that the rows were loaded for.
        unsafe {
            store(Open::of(self.rel), slot, self.first + u64::from(place), self.inserter, |values, nulls| {
                for (position, column) in self.columns.iter().enumerate() {
                    if let Some(&loaded) = self.values.get(position * self.count + at)
                        && let (Some(value), Some(null)) =
                            (values.get_mut(column.at), nulls.get_mut(column.at))
                    {
                        (*value, *null) = loaded;
                    }
                }
            });
        }
    }

    /// Notes the row type of a slot and which of its columns are wanted.
    unsafe fn begin(&mut self, slot: *mut TupleTableSlot) {
        // SAFETY: the slot keeps its row type.
        unsafe {
            let desc = (*slot).tts_tupleDescriptor;
            let wanted = wanted::of(slot, self.recheck);
            let attributes = compat::attributes(desc);
            self.columns.clear();
            self.columns.reserve(attributes.len());
            for (at, attribute) in attributes.iter().enumerate() {
                if !attribute.attisdropped
                    && wanted.as_ref().is_none_or(|wanted| wanted.get(at).copied().unwrap_or(true))
                {
                    self.columns.push(Column { at, kind: ColumnType::of(attribute) });
                }
            }
            self.stripes.clear();
            self.count = 0;
            self.desc = desc;
        }
    }

    /// The place of a stripe among those that were met.
    fn meet(&mut self, entry: &StripeEntry) -> Result<usize, Error> {
        let at = self.stripes.partition_point(|met| met.entry.first_row < entry.first_row);
        let known = self.stripes.get(at).map(|met| (met.entry.first_row, met.entry.storage_id));
        if known == Some((entry.first_row, entry.storage_id)) {
            return Ok(at);
        }
        // SAFETY: the relation stays open, as `new` says.
        let open = unsafe { stripe_on_pages::open(Open::of(self.rel), entry)? };
        let missing = |column: &Column| {
            if column.at < open.reader.column_count() {
                return fits(&open.reader, column.at, &column.kind).map(|()| None);
            }
            // SAFETY: the slot keeps its row type.
            Ok(Some(unsafe { missing_value(self.desc, column.at) }))
        };
        let mut values = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            values.push(missing(column)?);
        }
        self.stripes.retain(|met| met.entry.storage_id == entry.storage_id);
        let at = self.stripes.partition_point(|met| met.entry.first_row < entry.first_row);
        self.stripes.insert(at, Met { entry: entry.clone(), open, missing: values });
        Ok(at)
    }

    unsafe fn try_load(&mut self, entry: &StripeEntry, rows: &[u32]) -> Result<(), Error> {
        let outside = || Error::InvalidInput("row number lies outside its stripe".into());
        // SAFETY: the slot keeps its row type.
        unsafe {
            let met = self.meet(entry)?;
            let Met { entry, open, missing } = self.stripes.get(met).ok_or_else(outside)?;
            let (unit, within) = open.reader.unit_of(rows.first().copied().unwrap_or_default());
            self.places.clear();
            self.places
                .extend(rows.iter().take_while(|row| within.contains(row)).map(|row| row - within.start));
            if self.places.is_empty() {
                return Err(outside());
            }
            self.first = entry.first_row + u64::from(within.start);
            self.inserter = entry.inserter;
            self.count = self.places.len();
            self.values.clear();
            self.values.reserve(self.columns.len() * self.count);
            self.arena.reset();
            let block = match open.reader.layout() {
                Layout::Columns => None,
                Layout::Blocks => {
                    let block = kept_block::of(Open::of(self.rel), entry, open, unit)?;
                    block.take(self.count);
                    Some((block, Pages::new(Open::of(self.rel), entry)))
                }
            };
            for (column, missing) in self.columns.iter().zip(missing) {
                if let Some(value) = *missing {
                    self.values.extend(std::iter::repeat_n(value, self.count));
                    continue;
                }
                let use_value = |value: Single<'_>| {
                    self.values.push(single_datum(&mut self.arena, &column.kind, value));
                };
                match &block {
                    Some((block, pages)) => {
                        block.each_value(open, pages, column.at, &self.places, &mut self.room, use_value)?;
                    }
                    None => {
                        let kept = kept_chunk::of(Open::of(self.rel), entry, open, column.at, unit)?;
                        kept.each_value(&self.places, &mut self.room, use_value)?;
                    }
                }
            }
            Ok(())
        }
    }
}
