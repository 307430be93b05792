//! Values of cold rows, for slots, in the order of the stripes.
//!
//! `ColdRows` walks the stripes of a scan in either direction. A chunk is decoded once, and its columns are
//! turned into Datums a window of rows at a time. (`cold_fetch` serves single rows by number.)
//!
//! A heap slot is filled as a virtual one. If `hooks` has marked the slot because its plan asks for system
//! columns, it gets a real heap tuple instead.
//!
//! Invariant: Datums live until the window moves.

use std::rc::Rc;

use pgrx::pg_sys::{self, Datum, Relation, TupleTableSlot};
use stripe::StripeReader;
use vector::{Error, LogicalType, Vector};

use super::wanted;
use crate::compat;
use crate::convert::{ColumnReader, ColumnType, missing_value};
use crate::host::error;
use crate::host::relation::Open;
use crate::storage::change::delete_bitmap;
use crate::storage::directory::StripeEntry;
use crate::storage::file::codecs::ServerCodecs;
use crate::storage::file::tid;
use crate::storage::read::stripe_on_pages::{self, Pages, StripeHandle};

/// Rows whose Datums exist at a time.
const WINDOW: u32 = 1024;
/// Our own bit in a slot's flags: the plan above reads xmin and the like.
pub const SLOT_WANTS_SYSTEM_COLUMNS: u16 = 1 << 14;

/// Puts one row into a slot. `inserter` is the transaction that put its stripe into the directory. If it is
/// this one, the tuple's header says so, because a foreign key's UPDATE check and ON CONFLICT ask for it.
/// `fill` finds all columns NULL.
pub unsafe fn store(
    rel: Open,
    slot: *mut TupleTableSlot,
    row: u64,
    inserter: pg_sys::TransactionId,
    fill: impl FnOnce(&mut [Datum], &mut [bool]),
) {
    // SAFETY: the slot was made from the table's row type, so it has room for as many columns as it says.
    unsafe {
        if !holds_nothing(slot) {
            pg_sys::ExecClearTuple(slot);
        }
        let count = usize::try_from((*(*slot).tts_tupleDescriptor).natts).unwrap_or(0);
        std::ptr::write_bytes((*slot).tts_values, 0, count);
        std::ptr::write_bytes((*slot).tts_isnull, 1, count);
        fill(
            std::slice::from_raw_parts_mut((*slot).tts_values, count),
            std::slice::from_raw_parts_mut((*slot).tts_isnull, count),
        );
        if (*slot).tts_flags & SLOT_WANTS_SYSTEM_COLUMNS != 0 {
            let tuple =
                pg_sys::heap_form_tuple((*slot).tts_tupleDescriptor, (*slot).tts_values, (*slot).tts_isnull);
            // Heap's insert turns a free-standing tuple into a stored one in the same way.
            let header = (*tuple).t_data;
            (*header).t_infomask &= !(pg_sys::HEAP_XACT_MASK as u16);
            (*header).t_infomask |= pg_sys::HEAP_XMAX_INVALID as u16;
            (*header).t_infomask2 &= !(pg_sys::HEAP2_XACT_MASK as u16);
            (*header).t_choice.t_heap.t_xmin = if pg_sys::TransactionIdIsCurrentTransactionId(inserter) {
                inserter
            } else {
                (*header).t_infomask |= pg_sys::HEAP_XMIN_FROZEN as u16;
                pg_sys::FrozenTransactionId
            };
            (*header).t_choice.t_heap.t_xmax = pg_sys::InvalidTransactionId;
            (*header).t_choice.t_heap.t_field3.t_cid = 0;
            (*header).t_ctid = tid::cold_tid(row);
            (*tuple).t_self = tid::cold_tid(row);
            (*tuple).t_tableOid = rel.oid();
            pg_sys::ExecForceStoreHeapTuple(tuple, slot, true);
        } else {
            // This does what ExecStoreVirtualTuple does, whose call would cost more.
            (*slot).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
            (*slot).tts_nvalid = (*(*slot).tts_tupleDescriptor).natts as i16;
        }
        (*slot).tts_tid = tid::cold_tid(row);
        (*slot).tts_tableOid = rel.oid();
    }
}

/// Whether a slot of heap's kind has neither a tuple nor a page that would have to be released. That is so if
/// its last row was virtual, or if there was none.
unsafe fn holds_nothing(slot: *mut TupleTableSlot) -> bool {
    // SAFETY: the casts follow the slot's kind.
    unsafe {
        let heap = slot.cast::<pg_sys::BufferHeapTupleTableSlot>();
        std::ptr::eq((*slot).tts_ops, &raw const pg_sys::TTSOpsBufferHeapTuple)
            && (*slot).tts_flags & pg_sys::TTS_FLAG_SHOULDFREE as u16 == 0
            && (*heap).base.tuple.is_null()
            && (*heap).buffer == pg_sys::InvalidBuffer as pg_sys::Buffer
    }
}

/// The columns of a row type, and a reader for each. The row type is the slot's, not the relation's: while
/// ALTER TABLE rewrites a table, the relation already has the new one.
struct Columns {
    desc: pg_sys::TupleDesc,
    /// For each column whether it is wanted and not dropped.
    live: Vec<bool>,
    readers: Vec<ColumnReader>,
}

impl Columns {
    unsafe fn of(slot: *mut TupleTableSlot, wanted: Option<&[bool]>) -> Self {
        // SAFETY: the slot keeps its row type.
        unsafe {
            let desc = (*slot).tts_tupleDescriptor;
            let attributes = compat::attributes(desc).iter().enumerate();
            let live = attributes
                .map(|(at, a)| !a.attisdropped && wanted.is_none_or(|w| w.get(at).copied().unwrap_or(true)))
                .collect();
            let readers = ColumnType::of_all(desc).into_iter().map(ColumnReader::new).collect();
            Self { desc, live, readers }
        }
    }

    const fn none() -> Self {
        Self { desc: std::ptr::null_mut(), live: Vec::new(), readers: Vec::new() }
    }
}

/// The columns of `rel` that cannot be built from what the stripe holds.
pub fn unfit_columns(rel: Open, reader: &StripeReader) -> Vec<usize> {
    // SAFETY: an open relation keeps its row type.
    let kinds = unsafe { ColumnType::of_all(rel.descriptor()) };
    let live = live(&kinds, reader);
    live.filter(|(column, kind)| fits(reader, *column, kind).is_err()).map(|(column, _)| column).collect()
}

/// Checks that a table's columns, which have these types, can be built from what a stripe holds.
///
/// # Errors
/// `Corrupt` for the first column that cannot.
pub fn all_fit(kinds: &[ColumnType], reader: &StripeReader) -> Result<(), Error> {
    live(kinds, reader).try_for_each(|(column, kind)| fits(reader, column, kind))
}

/// The columns of a table that are not dropped and that a stripe has, each with its type.
fn live<'a>(kinds: &'a [ColumnType], reader: &StripeReader) -> impl Iterator<Item = (usize, &'a ColumnType)> {
    let stored = kinds.iter().enumerate().take(reader.column_count());
    stored.filter(|(_, kind)| kind.type_oid != pg_sys::InvalidOid)
}

/// Checks that the table's column can be built from what the stripe's column holds. A type with a length word
/// needs one, and a type of fixed length needs that many bytes.
pub(super) fn fits(reader: &StripeReader, column: usize, kind: &ColumnType) -> Result<(), Error> {
    let stored = reader.logical(column);
    let same = stored == Some(kind.logical);
    let alike =
        || stored.is_some_and(|stored| width(stored).is_some() && width(stored) == width(kind.logical));
    let text = |logical| matches!(logical, LogicalType::Text | LogicalType::Bytes);
    if same || alike() || (stored.is_some_and(text) && text(kind.logical)) {
        return Ok(());
    }
    let number = u32::try_from(column).ok();
    Err(Error::corrupt(format!("stripe holds {stored:?} where the table has {:?}", kind.logical))
        .at(number, None))
}

/// Bytes of a value, for types of fixed length whose vectors hold a value's own bytes.
fn width(logical: LogicalType) -> Option<u16> {
    Some(match logical {
        LogicalType::Bool => 1,
        LogicalType::Int16 => 2,
        LogicalType::Int32 | LogicalType::Date | LogicalType::Float32 => 4,
        LogicalType::Int64 | LogicalType::Timestamp | LogicalType::Float64 => 8,
        LogicalType::Uuid => 16,
        LogicalType::FixedBytes(width) => width,
        _ => return None,
    })
}

/// Where a column of the loaded chunk comes from.
enum Loaded {
    Decoded(Vector),
    /// The stripe is older than the column.
    Missing(Datum, bool),
    Dropped,
}

/// A window of Datums. `first` and `end` are positions of rows within the stripe.
struct Window {
    first: u32,
    end: u32,
    values: Vec<Vec<Datum>>,
    nulls: Vec<Vec<bool>>,
}

/// A cursor over the rows of some stripes.
pub struct ColdRows {
    rel: Relation,
    strategy: pg_sys::BufferAccessStrategy,
    wanted: Option<Vec<bool>>,
    columns: Columns,
    stripe: Option<(StripeEntry, Rc<StripeHandle>)>,
    chunk: Option<(u32, Vec<Loaded>)>,
    window: Window,
}

impl ColdRows {
    /// A cursor that has no stripe yet. `strategy` has the meaning that it has for `Pages`.
    pub unsafe fn new(rel: Open, strategy: pg_sys::BufferAccessStrategy) -> Self {
        let window = Window { first: 0, end: 0, values: Vec::new(), nulls: Vec::new() };
        Self {
            rel: rel.as_ptr(),
            strategy,
            wanted: None,
            columns: Columns::none(),
            stripe: None,
            chunk: None,
            window,
        }
    }

    /// Makes the cursor decode only the columns marked in `wanted`. The others read as NULL. Must be called
    /// before the first row.
    pub fn restrict(&mut self, wanted: Vec<bool>) {
        self.wanted = Some(wanted);
    }

    /// Stores row `position` of `entry` into the slot.
    pub unsafe fn fetch(&mut self, entry: &StripeEntry, position: u32, slot: *mut TupleTableSlot) {
        // SAFETY: see the methods called.
        unsafe {
            if !std::ptr::eq(self.columns.desc, (*slot).tts_tupleDescriptor) {
                let noted = if self.wanted.is_none() { wanted::of(slot, true) } else { None };
                self.columns = Columns::of(slot, self.wanted.as_deref().or(noted.as_deref()));
                let count = self.columns.live.len();
                self.stripe = None;
                self.window = Window {
                    first: 0,
                    end: 0,
                    values: vec![Vec::new(); count],
                    nulls: vec![Vec::new(); count],
                };
            }
            if let Err(problem) = self.place(entry, position) {
                error::raise_stripe(Open::of(self.rel), entry.first_row, problem);
            }
            let at = (position - self.window.first) as usize;
            let window = &self.window;
            let row = entry.first_row + u64::from(position);
            store(Open::of(self.rel), slot, row, entry.inserter, |values, nulls| {
                let stored = window.values.iter().zip(&window.nulls);
                for ((value, null), (from, from_null)) in values.iter_mut().zip(nulls).zip(stored) {
                    if let (Some(&from), Some(&from_null)) = (from.get(at), from_null.get(at)) {
                        (*value, *null) = (from, from_null);
                    }
                }
            });
        }
    }

    /// Makes the window hold row `position` of `entry`.
    fn place(&mut self, entry: &StripeEntry, position: u32) -> Result<(), Error> {
        let same = self.stripe.as_ref().is_some_and(|(open, _)| {
            open.first_row == entry.first_row && open.storage_id == entry.storage_id
        });
        if same && position >= self.window.first && position < self.window.end {
            return Ok(());
        }
        // SAFETY: the relation stays open, as `new` says.
        unsafe {
            if !same {
                self.chunk = None;
                self.stripe = Some((entry.clone(), stripe_on_pages::open(Open::of(self.rel), entry)?));
            }
            let Some((_, stripe)) = &self.stripe else { return Ok(()) };
            let chunk = stripe.reader.chunk_of(position);
            let rows = stripe.reader.chunk_rows(chunk);
            if !rows.contains(&position) {
                return Err(Error::corrupt(format!("row {position} lies outside its chunk")));
            }
            if self.chunk.as_ref().is_none_or(|(loaded, _)| *loaded != chunk) {
                pgrx::check_for_interrupts!();
                delete_bitmap::yield_to_waiters();
                let stripe = Rc::clone(stripe);
                self.chunk = None;
                let loaded = self.decode(entry, &stripe, chunk)?;
                self.chunk = Some((chunk, loaded));
            }
            let within = (position - rows.start) / WINDOW * WINDOW;
            self.fill(rows.start, within, (within + WINDOW).min(rows.end - rows.start));
            Ok(())
        }
    }

    fn decode(&self, entry: &StripeEntry, stripe: &StripeHandle, chunk: u32) -> Result<Vec<Loaded>, Error> {
        // SAFETY: what made this promised that both stay.
        let pages = unsafe { Pages::by(Open::of(self.rel), entry, self.strategy) };
        let mut loaded = Vec::with_capacity(self.columns.live.len());
        // As long as one column has the bytes of its blocks, the next need not read them again.
        let mut last = None;
        for (column, &live) in self.columns.live.iter().enumerate() {
            loaded.push(if !live {
                Loaded::Dropped
            } else if column >= stripe.reader.column_count() {
                // SAFETY: the slot keeps its row type.
                let (value, null) = unsafe { missing_value(self.columns.desc, column) };
                Loaded::Missing(value, null)
            } else {
                fits(&stripe.reader, column, self.columns.readers[column].kind())?;
                let chunk = stripe.reader.read_chunk(column, chunk, &pages, &ServerCodecs)?;
                let decoded = chunk.decode(&ServerCodecs)?;
                last.replace(chunk);
                Loaded::Decoded(decoded)
            });
        }
        Ok(loaded)
    }

    /// Turns rows `from..to` of the loaded chunk, whose first row is `base`, into Datums.
    fn fill(&mut self, base: u32, from: u32, to: u32) {
        let count = (to - from) as usize;
        let Some((_, loaded)) = &self.chunk else { return };
        for (column, source) in loaded.iter().enumerate() {
            let (values, nulls) = (&mut self.window.values[column], &mut self.window.nulls[column]);
            values.resize(count, Datum::null());
            nulls.resize(count, true);
            match source {
                Loaded::Decoded(vector) => {
                    let reader = &mut self.columns.readers[column];
                    reader.reset();
                    reader.datums_in(vector, from as usize..to as usize, values, nulls);
                }
                Loaded::Missing(value, null) => {
                    values.fill(*value);
                    nulls.fill(*null);
                }
                Loaded::Dropped => {
                    values.fill(Datum::null());
                    nulls.fill(true);
                }
            }
        }
        self.window.first = base + from;
        self.window.end = base + to;
    }
}
