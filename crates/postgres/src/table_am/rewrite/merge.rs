//! Two functions that rewrite a table: `engine.colcompress_merge(regclass)` puts all its rows into full
//! stripes, sorted by `orderby` if it has one. `engine.unpack(regclass)` puts them all into heap pages, which
//! publishing the table needs.
//!
//! Both work like CLUSTER. A new file is filled with what any snapshot may still see, as the header of
//! `rewrite` says. It takes the old file's place, and indexes are built anew. All this is in the caller's
//! transaction under AccessExclusiveLock.
//!
//! A merge puts rows that every snapshot sees into full stripes. Other rows go into stripes of their age if
//! they are many. Rows of small transactions stay in heap pages with their headers, as do versions that only
//! older snapshots see.
//!
//! Invariant: until the swap the old file is untouched, so an ERROR anywhere leaves the table as it was.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use pgrx::pg_guard;
use pgrx::pg_sys::{
    self, BlockNumber, CommandId, Datum, FunctionCallInfo, HeapTupleData, Oid, TupleTableSlot,
};

use super::{ColdHistory, Fate, HotRows, Part, bury_anew};
use crate::host::error::{self, PgSqlErrorCode};
use crate::host::heap_rewrite;
use crate::host::heap_rewrite::{HeapRewrite, RewriteLimits};
use crate::host::memory;
use crate::host::predicate_locks;
use crate::host::relation::Open;
use crate::options::maintenance;
use crate::storage::directory::age::Age;
use crate::storage::directory::rewrite_horizon::Horizon;
use crate::storage::file::{metapage, tid};
use crate::storage::pending_rows::{self, LoadOrder, Loader};
use crate::storage::{decoding, published};
use crate::table_am::maintain::progress::Rewriting;
use crate::table_am::maintain::vacuum_counts;
use crate::table_am::read::cold_rows::ColdRows;

crate::sql_function!(pg_finfo_colonnade_colcompress_merge);
crate::sql_function!(pg_finfo_colonnade_unpack);

/// `engine.colcompress_merge(regclass)`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_colcompress_merge(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; checks raise an ERROR.
    unsafe {
        for table in maintenance::columnar_tables(maintenance::table_argument(call)) {
            rewrite(table, Into::Stripes);
        }
        Datum::null()
    }
}

/// `engine.unpack(regclass)`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_unpack(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; checks raise an ERROR.
    unsafe {
        for table in maintenance::columnar_tables(maintenance::table_argument(call)) {
            rewrite(table, Into::HeapPages);
        }
        Datum::null()
    }
}

/// Where the rows go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Into {
    Stripes,
    HeapPages,
}

unsafe fn rewrite(table: Oid, into: Into) {
    // SAFETY: the lock is kept to the end of the transaction; every check may raise an ERROR.
    unsafe {
        let verb = if into == Into::Stripes { "merge" } else { "unpack" };
        let old = Open::of(maintenance::open_maintained(table, pg_sys::AccessExclusiveLock, verb));
        if into == Into::Stripes {
            check_undecoded(old);
        }
        pg_sys::PreventCommandIfReadOnly(
            if into == Into::Stripes { c"engine.colcompress_merge()" } else { c"engine.unpack()" }.as_ptr(),
        );
        pg_sys::CheckTableNotInUse(
            old.as_ptr(),
            if into == Into::Stripes { c"merge" } else { c"unpack" }.as_ptr(),
        );
        pending_rows::flush_relation(old);
        pg_sys::CommandCounterIncrement();
        let form = old.form();
        let (space, method, persistence) = ((*form).reltablespace, (*form).relam, (*form).relpersistence);
        let target = heap_rewrite::make_new_heap(
            table,
            space,
            method,
            persistence,
            pg_sys::AccessExclusiveLock as i32,
        );
        // Rows get other numbers, and predicate locks on rows are by number.
        predicate_locks::transfer_predicate_locks(old);
        // VACUUM must not remove TOAST values of rows that are not taken for dead here.
        let toast = (*form).reltoastrelid;
        if toast != Oid::INVALID {
            pg_sys::LockRelationOid(toast, pg_sys::AccessExclusiveLock as i32);
        }
        let limits = heap_rewrite::rewrite_limits(old);
        copy(old, target, into, &limits);
        pg_sys::table_close(old.as_ptr(), pg_sys::NoLock as i32);
        heap_rewrite::finish_heap_swap(table, target, &limits, persistence);
        Rewriting::end();
    }
}

/// Raises an ERROR if a replication slot decodes the table. Merging would put all rows into stripes, which
/// such slots do not read.
fn check_undecoded(rel: Open) {
    if published::is_published(rel) {
        error::raise(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("cannot merge table {} because it is published", rel.quoted_name()),
            "Logical decoding reads ordinary heap rows only, so a published table has no stripes.",
            "Take the table out of its publications first.",
        );
    }
    if let Some(slot) = decoding::is_decoded(rel) {
        error::raise(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "cannot merge table {} because replication slot \"{}\" decodes it",
                rel.quoted_name(),
                slot.name
            ),
            "The slot's output plugin does not go by publications, and logical decoding reads ordinary heap rows only.",
            "Drop the slot, or let its consumer use the plugin pgoutput.",
        );
    }
}

/// Hot rows of one age.
#[derive(Default)]
struct Young {
    rows: usize,
    bytes: usize,
    /// The blocks that have some of them, ascending.
    blocks: Vec<BlockNumber>,
}

/// Adds a block to an ascending list.
fn note(blocks: &mut Vec<BlockNumber>, block: BlockNumber) {
    if blocks.last() != Some(&block) {
        blocks.push(block);
    }
}

/// A rewrite under way.
struct Copy<'a> {
    old: Open<'a>,
    new: Open<'a>,
    limits: &'a RewriteLimits,
    hot: HotRows<'a>,
    cold: ColdHistory,
    rows: ColdRows,
    slot: *mut TupleTableSlot,
    command: CommandId,
    /// Memory for one row.
    context: pg_sys::MemoryContext,
    /// How many rows nobody has deleted.
    living: f64,
    progress: RefCell<Rewriting>,
}

/// Whether a version is a row that nobody has deleted.
fn is_living(tuple: &HeapTupleData, fate: Fate) -> bool {
    match fate {
        Fate::Alive(_) => true,
        // SAFETY: the tuple's page is pinned.
        Fate::Kept => unsafe { u32::from((*tuple.t_data).t_infomask) & pg_sys::HEAP_XMAX_INVALID != 0 },
        Fate::Dead | Fate::LeftOut => false,
    }
}

/// Fills the new file.
unsafe fn copy(old: Open, target: Oid, into: Into, limits: &RewriteLimits) {
    // SAFETY: both relations are locked exclusively; the slot fits both, since the new one has the old one's
    // row type.
    unsafe {
        let new = Open::of(pg_sys::table_open(target, pg_sys::NoLock as i32));
        let command = pg_sys::GetCurrentCommandId(true);
        let horizon = Horizon::of_now(limits.oldest_xmin, pending_rows::known_snapshots());
        let context = memory::reset_often(c"colonnade merge");
        let mut copy = Copy {
            old,
            new,
            limits,
            hot: HotRows::new(old, &horizon),
            cold: ColdHistory::of(old, &horizon),
            rows: ColdRows::new(old, std::ptr::null_mut()),
            slot: pg_sys::table_slot_create(old.as_ptr(), std::ptr::null_mut()),
            command,
            context,
            living: 0.0,
            // This must begin after the horizon was found: finding it ends a subtransaction, which ends the
            // report of progress.
            progress: RefCell::new(Rewriting::begin(old.oid(), old.block_count())),
        };
        match into {
            Into::Stripes => copy.fill_stripes(horizon.own_of_before()),
            Into::HeapPages => copy.fill_heap_pages(),
        }
        copy.progress.borrow().all_written();
        pg_sys::ExecDropSingleTupleTableSlot(copy.slot);
        pg_sys::MemoryContextDelete(context);
        // The swap takes these figures along.
        vacuum_counts::set_counts(new, copy.living);
        pg_sys::table_close(new.as_ptr(), pg_sys::NoLock as i32);
        pg_sys::CommandCounterIncrement();
    }
}

impl Copy<'_> {
    /// Fills stripes. `own`: the age of rows of this transaction that all its snapshots see.
    fn fill_stripes(&mut self, own: Option<Age>) {
        // SAFETY: see `copy`. Stripes are written before the rewrite of heap pages begins, as it adds pages
        // on its own.
        unsafe {
            let mut young: BTreeMap<Age, Young> = BTreeMap::new();
            let mut kept: Vec<BlockNumber> = Vec::new();
            let mut by_age: BTreeMap<Age, Vec<usize>> = BTreeMap::new();
            for (at, stripe) in self.cold.stripes.iter().enumerate() {
                by_age.entry(stripe.born).or_default().push(at);
            }
            let mut loader = self.loader(Age::Everybody);
            let mut living = self.sort_out(&mut loader, &mut young, &mut kept);
            let none = Vec::new();
            self.load_cold(&mut loader, by_age.get(&Age::Everybody).unwrap_or(&none));
            loader.finish(self.new);
            // If there are stripes of an age anyway, hot rows of that age go into them.
            let mut ages: BTreeSet<Age> = BTreeSet::new();
            for at in 0..self.cold.stripes.len() {
                let rows = self.cold.living(at).0;
                living += f64::from(rows);
                if rows > 0 {
                    ages.insert(self.cold.stripes[at].born);
                }
            }
            self.living = living;
            ages.extend(young.iter().filter_map(|(age, group)| {
                (Some(*age) == own || pending_rows::are_many(group.rows, group.bytes)).then_some(*age)
            }));
            ages.remove(&Age::Everybody);
            for &age in &ages {
                self.load_age(age, young.remove(&age), by_age.get(&age).unwrap_or(&none));
            }
            for (&born, stripes) in &by_age {
                bury_anew(&mut self.cold, self.old, self.new, stripes, born, self.command);
            }
            kept.extend(young.values().flat_map(|group| &group.blocks));
            self.copy_kept(kept, &ages);
        }
    }

    /// Copies the hot rows of these blocks that are not loaded: of other ages than these.
    fn copy_kept(&mut self, mut blocks: Vec<BlockNumber>, loaded: &BTreeSet<Age>) {
        blocks.sort_unstable();
        blocks.dedup();
        if blocks.is_empty() {
            return;
        }
        let is_loaded = |age: Age| age == Age::Everybody || loaded.contains(&age);
        // SAFETY: see `copy`; all stripes are written.
        unsafe {
            // Heap would take block 0 otherwise.
            metapage::ensure(self.new);
            let mut rewrite = HeapRewrite::begin(self.old, self.new, self.limits);
            self.copy_hot(&mut rewrite, blocks.into_iter(), |fate| match fate {
                Fate::Alive(age) => !is_loaded(age),
                fate => fate == Fate::Kept,
            });
            rewrite.end();
        }
    }

    /// Loads the hot rows that everybody sees; notes where the others are that stay. Returns how many rows
    /// live.
    fn sort_out(
        &self,
        loader: &mut Loader,
        young: &mut BTreeMap<Age, Young>,
        kept: &mut Vec<BlockNumber>,
    ) -> f64 {
        // SAFETY: see `fill_stripes`.
        unsafe {
            let blocks = self.hot.blocks().into_iter().flat_map(|span| span.start..span.end);
            let blocks = blocks.inspect(|_| self.progress.borrow_mut().add_blocks(1));
            let mut living = 0.0;
            self.hot.each(blocks, |tuple, buf, fate| {
                self.progress.borrow_mut().add_read();
                living += f64::from(u8::from(is_living(tuple, fate)));
                let block = tid::block_of(tuple.t_self);
                match fate {
                    Fate::Dead | Fate::LeftOut => {}
                    Fate::Kept => note(kept, block),
                    Fate::Alive(Age::Everybody) => self.load_hot(loader, tuple, buf),
                    Fate::Alive(age) => {
                        let group = young.entry(age).or_default();
                        group.rows += 1;
                        group.bytes += tuple.t_len as usize;
                        note(&mut group.blocks, block);
                    }
                }
            });
            living
        }
    }

    /// Loads the rows of one age, hot ones and those of stripes.
    fn load_age(&mut self, age: Age, hot: Option<Young>, stripes: &[usize]) {
        // SAFETY: see `fill_stripes`.
        unsafe {
            let mut loader = self.loader(age);
            if let Some(group) = hot {
                self.hot.each(group.blocks.into_iter(), |tuple, buf, fate| {
                    if fate == Fate::Alive(age) {
                        self.load_hot(&mut loader, tuple, buf);
                    }
                });
            }
            self.load_cold(&mut loader, stripes);
            loader.finish(self.new);
        }
    }

    /// A loader for rows of this age.
    fn loader(&self, age: Age) -> Loader {
        // SAFETY: see `copy`.
        unsafe { Loader::new(self.new, LoadOrder::Sorted, self.command, age) }
    }

    unsafe fn load_hot(&self, loader: &mut Loader, tuple: &mut HeapTupleData, buf: pg_sys::Buffer) {
        // SAFETY: the page is pinned; the slot lets go of it before the tuple goes.
        unsafe {
            let before = pg_sys::MemoryContextSwitchTo(self.context);
            pg_sys::ExecStoreBufferHeapTuple(tuple, self.slot, buf);
            loader.push(self.new, &[self.slot]);
            self.progress.borrow_mut().add_written();
            pg_sys::ExecClearTuple(self.slot);
            pg_sys::MemoryContextSwitchTo(before);
            pg_sys::MemoryContextReset(self.context);
        }
    }

    /// Loads the living rows of some stripes.
    fn load_cold(&mut self, loader: &mut Loader, stripes: &[usize]) {
        // SAFETY: see `copy`. What the loader makes of a row goes with it; what the cursor over the stripe
        // keeps is not in that context.
        unsafe {
            for &at in stripes {
                let (new, slot, context) = (self.new, self.slot, self.context);
                let progress = &self.progress;
                self.cold.each(at, Part::Living, &mut self.rows, slot, |_, _| {
                    let before = pg_sys::MemoryContextSwitchTo(context);
                    loader.push(new, &[slot]);
                    progress.borrow_mut().add_read();
                    progress.borrow_mut().add_written();
                    pg_sys::MemoryContextSwitchTo(before);
                    pg_sys::MemoryContextReset(context);
                });
                progress.borrow_mut().add_blocks(self.cold.stripes[at].entry.run.block_count);
            }
        }
    }

    /// Copies the wanted versions of some blocks with their headers. Returns how many of all versions there
    /// are rows that nobody has deleted.
    fn copy_hot(
        &self,
        rewrite: &mut HeapRewrite,
        blocks: impl Iterator<Item = BlockNumber>,
        is_wanted: impl Fn(Fate) -> bool,
    ) -> f64 {
        let mut living = 0.0;
        // SAFETY: see `copy`.
        unsafe {
            self.hot.each(blocks, |tuple, _, fate| {
                living += f64::from(u8::from(is_living(tuple, fate)));
                if fate == Fate::Dead {
                    rewrite.leave_out(tuple);
                } else if is_wanted(fate) {
                    let before = pg_sys::MemoryContextSwitchTo(self.context);
                    self.hot.copy(rewrite, tuple);
                    self.progress.borrow_mut().add_written();
                    pg_sys::MemoryContextSwitchTo(before);
                    pg_sys::MemoryContextReset(self.context);
                }
            });
        }
        living
    }

    fn fill_heap_pages(&mut self) {
        // SAFETY: see `copy`.
        unsafe {
            // Heap would take block 0 otherwise.
            metapage::ensure(self.new);
            let mut rewrite = HeapRewrite::begin(self.old, self.new, self.limits);
            let blocks = self.hot.blocks().into_iter().flat_map(|span| span.start..span.end);
            let blocks = blocks.inspect(|_| self.progress.borrow_mut().add_blocks(1));
            self.living = self.copy_hot(&mut rewrite, blocks, |fate| fate != Fate::LeftOut);
            let (new, slot, context) = (self.new, self.slot, self.context);
            let progress = &self.progress;
            for at in 0..self.cold.stripes.len() {
                let born = self.cold.stripes[at].born;
                self.living += f64::from(self.cold.living(at).0);
                for part in [Part::Living, Part::Dying] {
                    self.cold.each(at, part, &mut self.rows, slot, |_, died| {
                        let before = pg_sys::MemoryContextSwitchTo(context);
                        write_as_hot(new, &mut rewrite, slot, born, died);
                        progress.borrow_mut().add_read();
                        progress.borrow_mut().add_written();
                        pg_sys::MemoryContextSwitchTo(before);
                        pg_sys::MemoryContextReset(context);
                    });
                }
                progress.borrow_mut().add_blocks(self.cold.stripes[at].entry.run.block_count);
            }
            rewrite.end();
        }
    }
}

/// Writes a row of a stripe as a hot row that was born and has died at these ages.
unsafe fn write_as_hot(
    new: Open,
    rewrite: &mut HeapRewrite,
    slot: *mut TupleTableSlot,
    born: Age,
    died: Option<Age>,
) {
    // SAFETY: the slot has the row type of `new`; the tuple and its header live in the caller's short-lived
    // context. Command ids of both ends come from this transaction.
    unsafe {
        let desc = new.descriptor();
        pg_sys::slot_getallattrs(slot);
        for (column, attribute) in new.columns().iter().enumerate() {
            *(*slot).tts_isnull.add(column) |= attribute.attisdropped;
        }
        let tuple = pg_sys::heap_form_tuple(desc, (*slot).tts_values, (*slot).tts_isnull);
        // The tuple becomes what it would be if the row had been hot all the time.
        let model = pg_sys::heap_copytuple(tuple);
        let header = (*model).t_data;
        (*model).t_self = (*slot).tts_tid;
        (*header).t_ctid = (*slot).tts_tid;
        let fields = &mut (*header).t_choice.t_heap;
        fields.t_field3.t_cid = 0;
        let (mut bits, own) = (0, || pg_sys::GetCurrentTransactionId());
        fields.t_xmin = match born {
            Age::Everybody => {
                bits |= pg_sys::HEAP_XMIN_FROZEN;
                pg_sys::FrozenTransactionId
            }
            Age::Since(inserter) => {
                bits |= pg_sys::HEAP_XMIN_COMMITTED;
                inserter
            }
            Age::Own(command) => {
                fields.t_field3.t_cid = command;
                own()
            }
            Age::New => own(),
        };
        (*header).t_infomask = ((*header).t_infomask & !(pg_sys::HEAP_XACT_MASK as u16)) | bits as u16;
        end(header, died);
        rewrite.write(model, tuple);
    }
}

/// Writes the end of a row, of this age, into the header of its tuple.
unsafe fn end(header: pg_sys::HeapTupleHeader, died: Option<Age>) {
    // SAFETY: as `thaw`.
    unsafe {
        let (mut killer, mut end) = (pg_sys::InvalidTransactionId, 0);
        match died {
            None | Some(Age::Everybody | Age::New) => end |= pg_sys::HEAP_XMAX_INVALID,
            Some(Age::Since(xid)) => {
                end |= pg_sys::HEAP_XMAX_COMMITTED;
                killer = xid;
            }
            Some(Age::Own(command)) => {
                let (mut command, mut is_combo) = (command, false);
                pg_sys::HeapTupleHeaderAdjustCmax(header, &raw mut command, &raw mut is_combo);
                (*header).t_choice.t_heap.t_field3.t_cid = command;
                end |= if is_combo { pg_sys::HEAP_COMBOCID } else { 0 };
                killer = pg_sys::GetCurrentTransactionId();
            }
        }
        (*header).t_choice.t_heap.t_xmax = killer;
        (*header).t_infomask |= end as u16;
    }
}
