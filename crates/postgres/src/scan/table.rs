//! The part of a scan that both kinds of node share, and how it is read off the plan.
//!
//! Made once per execution, before the first row, by the nodes in `rows` and `vectors`. Invariant: opening
//! costs the same for a table of any size; stripes are looked up at the first row.

use std::sync::Arc;

use pgrx::pg_sys::{self, ParallelTableScanDesc, Relation, TupleTableSlot};
use stripe::scan::{
    ChunkPlan, Counters, DerivedColumns, Located, MemberColumns, ScanClause, ScanColumn, StripeScan,
};
use vector::LogicalType;

use super::clauses::{self, Clause};
use super::datums::{Batch, ColumnData, Step};
use super::groups::Groups;
use super::hot::Hot;
use super::others::Others;
use super::session_counts;
use super::store::{Out, OwnStripes, Part};
use super::stripes::Stripes;
use crate::columnstore;
use crate::columnstore::checked::Checked;
use crate::columnstore::cover::{self, Counts};
use crate::compat;
use crate::convert::{ColumnReader, ColumnType};
use crate::host::error;
use crate::host::relation::{Open, has_attribute};
use crate::options::foreign::{self, Wrapper};
use crate::planner::plan;
use crate::storage::column_file::open::Rows;
use crate::storage::{column_file, directory};
use crate::table_am::read::own_writes;

/// A column that the query looks at.
pub struct Column {
    /// Zero-based attribute.
    pub index: usize,
    /// Its values are handed out.
    pub in_rows: bool,
    /// Conditions checked row by row look at it.
    pub in_checks: bool,
    /// What rows have that are older than the column: value and NULL flag.
    pub missing: (pg_sys::Datum, bool),
    /// What a stripe must say it holds for native conditions to apply.
    pub logical: LogicalType,
    /// Turns vectors into Datums.
    pub reader: ColumnReader,
    /// The Datums of the current batch.
    pub data: ColumnData,
}

/// A scan of one table.
pub struct TableScan {
    /// The server's node.
    pub custom: *mut pg_sys::CustomScanState,
    /// The table.
    pub rel: Relation,
    /// The columnstore indexes that have copies of its blocks. None: the table has stripes of its own.
    pub copies: Option<Copies>,
    /// What it sees.
    pub snapshot: pg_sys::Snapshot,
    /// Memory and slots for expressions.
    pub econtext: *mut pg_sys::ExprContext,
    /// Table-shaped, virtual; only wanted columns are filled.
    pub scan_slot: *mut TupleTableSlot,
    /// Columns of the table.
    pub columns_in_scan_slot: i16,
    /// Wanted columns, ascending.
    pub columns: Vec<Column>,
    /// Conditions with a predicate.
    pub clauses: Vec<Clause>,
    /// Attributes up to here are taken out of hot rows.
    pub hot_columns: i32,
    /// Conditions for hot rows: those of `clauses`, to which `RowScan` adds what it checks row by row.
    pub hot_steps: Vec<Step>,
    /// The scan of stripes, once open.
    pub stripes: Option<StripeScan<Stripes>>,
    /// The scan of heap pages, once open.
    pub hot: Option<Hot>,
    /// Rows of a chunk as Datums.
    pub batch: Batch,
    /// What was read of stripes, for EXPLAIN.
    pub counters: Counters,
    /// Rows found in heap pages.
    pub hot_rows: u64,
    /// Rows of these that native conditions left out.
    pub hot_filtered: u64,
    /// Rows of stripes that the server's statistics know of.
    rows_reported: u64,
}

/// The columnstore indexes that a scan of a heap table reads.
pub struct Copies {
    /// The indexes, each with its columns, as zero-based attributes of the table. There is one at least.
    pub indexes: Vec<(Relation, Vec<usize>)>,
    /// How many blocks were read from where, once the scan has started.
    pub counts: Counts,
}

impl Copies {
    /// Opens the indexes that a plan names.
    ///
    /// # Safety
    /// The plan is a scan node of ours, whose table is locked.
    unsafe fn open(plan: *mut pg_sys::CustomScan) -> Option<Self> {
        // SAFETY: the caller's promise; indexes are closed by `TableScan::close`, or after an ERROR by the
        // server.
        let open = |index| unsafe {
            let index = pg_sys::index_open(index, pg_sys::AccessShareLock as i32);
            if !columnstore::is_ours(Open::of(index)) {
                error::internal("the plan's index is no columnstore index");
            }
            (index, columnstore::attributes(Open::of(index)))
        };
        // SAFETY: the caller's promise.
        let indexes: Vec<_> = unsafe { plan::indexes_of(plan) }.into_iter().map(open).collect();
        (!indexes.is_empty()).then(|| Self { indexes, counts: Counts::default() })
    }

    /// Where the stripes have an attribute. Those of the first index come first; each index has the places of
    /// rows behind its columns.
    fn place(&self, attribute: usize) -> Option<usize> {
        let mut before = 0;
        for (_, attributes) in &self.indexes {
            if let Some(at) = attributes.iter().position(|&own| own == attribute) {
                return Some(before + at);
            }
            before += attributes.len() + 1;
        }
        None
    }
}

/// Attributes that the parts of a plan mention.
pub struct Mentioned {
    /// The target list.
    pub targets: *mut pg_sys::Bitmapset,
    /// The qual.
    pub checked: *mut pg_sys::Bitmapset,
    /// Native conditions.
    pub native: *mut pg_sys::Bitmapset,
}

impl TableScan {
    /// Reads the plan.
    ///
    /// # Safety
    /// Called by the server while it initialises the node; the current memory is the query's.
    pub unsafe fn begin(
        custom: *mut pg_sys::CustomScanState,
        estate: *mut pg_sys::EState,
        eflags: i32,
    ) -> (Self, Mentioned) {
        // SAFETY: the server passes its own node, plan and state; the sets and lists are its own kinds.
        unsafe {
            let plan = (*custom).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let relid = (*plan).scan.scanrelid;
            let rel = (*custom).ss.ss_currentRelation;
            if eflags & pg_sys::EXEC_FLAG_EXPLAIN_ONLY as i32 == 0 {
                // By the first row the server may be in parallel mode, where nothing can be written.
                own_writes::flush(Open::of(rel));
            }
            let mentioned = Mentioned {
                targets: attributes((*plan).scan.plan.targetlist, relid),
                checked: attributes((*plan).scan.plan.qual, relid),
                native: attributes((*plan).custom_exprs, relid),
            };
            let columns = columns_of(rel, &mentioned);
            let scan_slot = (*custom).ss.ss_ScanTupleSlot;
            let natts = blank(scan_slot, (*rel).rd_id);
            let clauses = clauses::build(custom);
            let scan = Self {
                custom,
                rel,
                copies: Copies::open(plan),
                snapshot: (*estate).es_snapshot,
                econtext: (*custom).ss.ps.ps_ExprContext,
                scan_slot,
                columns_in_scan_slot: i16::try_from(natts).unwrap_or(i16::MAX),
                hot_columns: last_attribute(&columns),
                hot_steps: native_steps(&clauses),
                columns,
                clauses,
                stripes: None,
                hot: None,
                batch: Batch::default(),
                counters: Counters::default(),
                hot_rows: 0,
                hot_filtered: 0,
                rows_reported: 0,
            };
            (scan, mentioned)
        }
    }

    /// Begins, or begins again, with the values that parameters have now. `narrowing` leaves rows out that
    /// are of no use to anybody; `derived` and `members` are as in `ChunkPlan`. `shared` is null in a serial
    /// scan.
    ///
    /// # Safety
    /// Called under guard while the node runs.
    pub unsafe fn start(
        &mut self,
        narrowing: impl Iterator<Item = ScanClause>,
        derived: DerivedColumns,
        members: MemberColumns,
        shared: ParallelTableScanDesc,
    ) {
        // SAFETY: the caller's promise: relation, slots and contexts are there; the hot scan is made in
        // memory that lives as long as the query.
        unsafe {
            let state = (*self.custom).ss.ps.state;
            clauses::resolve_all(&mut self.clauses, self.econtext);
            if self.stripes.is_none() {
                let previous = pg_sys::MemoryContextSwitchTo((*state).es_query_cxt);
                let (hot, stripes) = self.open(shared);
                pg_sys::MemoryContextSwitchTo(previous);
                self.hot = hot;
                self.stripes = Some(StripeScan::new(stripes));
            }
            let column = |column: &Column| ScanColumn {
                index: self.place(column.index),
                logical: column.logical,
                wanted: column.in_rows || column.in_checks,
            };
            // Those of the plan first: what a chunk leaves to be checked is named by position.
            let clauses =
                self.clauses.iter().map(|clause| self.renamed(clause.for_scan())).chain(narrowing).collect();
            let columns = self.columns.iter().map(column).collect();
            let Some(stripes) = &mut self.stripes else { return };
            let plan = ChunkPlan::new(columns, clauses, derived, members, stripes.codecs());
            if let Err(problem) = stripes.start(Arc::new(plan)) {
                self.raise(problem);
            }
        }
    }

    /// Opens what the rows come from. The current memory lives as long as the query.
    unsafe fn open(&mut self, shared: ParallelTableScanDesc) -> (Option<Hot>, Stripes) {
        // SAFETY: the caller's promise, that of `start`.
        unsafe {
            let memory = pg_sys::CurrentMemoryContext;
            let stripes = |parts, out| {
                let own = OwnStripes::new(parts, out, memory);
                Stripes::Own(Box::new(own.unwrap_or_else(|problem| self.raise(problem))))
            };
            match foreign::wrapper_of(Open::of(self.rel)) {
                Some(Wrapper::ColumnFile) => {
                    let parts = match column_file::open::of(Open::of(self.rel)) {
                        None => Vec::new(),
                        Some(Rows::Own(file)) => {
                            let entries = directory::visible(file.owner.storage_id, self.snapshot);
                            vec![Part::in_file(self.rel, file, entries)]
                        }
                        Some(Rows::Others(file)) => {
                            return (None, Stripes::Others(Others::of(self.rel, file)));
                        }
                    };
                    return (None, stripes(parts, Out::None));
                }
                Some(Wrapper::Parquet) => return (None, Stripes::Groups(Groups::of(self.rel))),
                None => {}
            }
            let Some(copies) = &self.copies else {
                let (hot, entries, dead) = Hot::open(self.rel, self.snapshot, shared);
                return (Some(hot), stripes(vec![Part::new(self.rel, entries)], Out::Dead(dead)));
            };
            let uses_copies = cover::may_use_copies(self.snapshot);
            let indexes: Vec<Open> = copies.indexes.iter().map(|&(index, _)| Open::of(index)).collect();
            let cover = cover::take(&indexes, Open::of(self.rel), uses_copies);
            let parts = copies.indexes.iter().zip(cover.stripes);
            let parts = parts.map(|(&(index, _), stripes)| Part::new(index, stripes)).collect();
            let checked = Checked::new(self.rel, self.snapshot, cover.checked);
            let roots = copies.indexes.first().map_or(0, |(_, attributes)| attributes.len());
            let stripes = stripes(parts, Out::OfCopies { elsewhere: cover.elsewhere, checked, roots });
            if let Some(copies) = &mut self.copies {
                copies.counts = cover.counts;
            }
            (Some(Hot::over(self.rel, self.snapshot, cover.loose)), stripes)
        }
    }

    /// Where a stripe has an attribute of the table.
    pub fn place(&self, attribute: usize) -> usize {
        match &self.copies {
            None => attribute,
            Some(copies) => copies
                .place(attribute)
                .unwrap_or_else(|| error::internal("the plan reads a column that its index does not have")),
        }
    }

    /// A condition on attributes of the table as one on columns of stripes.
    fn renamed(&self, mut clause: ScanClause) -> ScanClause {
        if self.copies.is_some() {
            clause.predicate.rename(&|attribute| Some(self.place(attribute)));
            for column in clause.columns.iter_mut().chain(&mut clause.reads) {
                *column = self.place(*column);
            }
        }
        clause
    }

    /// Raises an error that was met in a stripe.
    pub fn raise(&self, problem: Located) -> ! {
        let index = self.copies.as_ref().and_then(|copies| copies.indexes.first());
        // SAFETY: the scan holds the table and its indexes open.
        let rel = unsafe { Open::of(index.map_or(self.rel, |(index, _)| *index)) };
        error::raise_stripe(rel, problem.first_row, problem.error)
    }

    /// Goes back to before the first row; parameters may have changed.
    ///
    /// # Safety
    /// Called under guard between rows.
    pub unsafe fn restart(&mut self) {
        self.batch.at = 0;
        self.batch.end = 0;
        if let Some(stripes) = &mut self.stripes {
            stripes.rewind();
        }
        // SAFETY: the scan is open.
        unsafe {
            match self.hot.take() {
                // Its shared state may be another one next time.
                Some(hot) if hot.is_parallel() => {
                    hot.close();
                    self.stripes = None;
                }
                Some(hot) => {
                    hot.restart();
                    self.hot = Some(hot);
                }
                None => {}
            }
        }
    }

    /// Gives back what the server holds for us.
    ///
    /// # Safety
    /// Called once, when the node ends without an ERROR.
    pub unsafe fn close(&mut self) {
        if let Some(mut stripes) = self.stripes.take() {
            stripes.rewind();
            // SAFETY: the relation is open.
            session_counts::add(unsafe { Open::of(self.rel) }, &self.counters);
        }
        if let Some(hot) = self.hot.take() {
            // SAFETY: the caller's promise.
            unsafe { hot.close() };
        }
        for (index, _) in self.copies.take().into_iter().flat_map(|copies| copies.indexes) {
            // SAFETY: opened when the node began; the lock stays to the end of the transaction.
            unsafe { pg_sys::index_close(index, pg_sys::NoLock as i32) };
        }
    }

    /// What EXPLAIN calls rows of heap pages.
    pub const fn hot_label(&self) -> &'static std::ffi::CStr {
        if self.copies.is_some() { c"Heap Rows" } else { c"Hot Rows" }
    }

    /// Tells the server's statistics about rows read since it was last called, as heap does.
    ///
    /// # Safety
    /// The relation is open.
    pub unsafe fn report_rows_read(&mut self) {
        let new = self.counters.rows_read - self.rows_reported;
        self.rows_reported = self.counters.rows_read;
        // SAFETY: null, or this backend's counters of the open relation.
        unsafe {
            if let Some(statistics) = (*self.rel).pgstat_info.as_mut() {
                compat::count_returned(statistics, i64::try_from(new).unwrap_or(0));
            }
        }
    }
}

/// Makes a virtual slot one whose columns are all NULL and whose rows are of this table: its width.
///
/// # Safety
/// A virtual slot.
unsafe fn blank(slot: *mut TupleTableSlot, table: pg_sys::Oid) -> i32 {
    // SAFETY: the caller's promise; a slot has a flag for each column of its row type.
    unsafe {
        let natts = (*(*slot).tts_tupleDescriptor).natts;
        let columns = usize::try_from(natts).unwrap_or(0);
        std::slice::from_raw_parts_mut((*slot).tts_isnull, columns).fill(true);
        (*slot).tts_tableOid = table;
        natts
    }
}

/// The number of the last of these attributes; 0 where there is none.
fn last_attribute(columns: &[Column]) -> i32 {
    columns.last().map_or(0, |column| i32::try_from(column.index + 1).unwrap_or(0))
}

/// The native conditions as they are checked for single rows.
fn native_steps(clauses: &[Clause]) -> Vec<Step> {
    clauses.iter().filter(|clause| clause.native).map(|clause| Step::of(clause.qual, true)).collect()
}

/// The attributes of the scanned table that an expression list mentions.
unsafe fn attributes(list: *mut pg_sys::List, relid: u32) -> *mut pg_sys::Bitmapset {
    let mut set: *mut pg_sys::Bitmapset = std::ptr::null_mut();
    // SAFETY: a list of expressions or target entries.
    unsafe { pg_sys::pull_varattnos(list.cast(), relid, &raw mut set) };
    set
}

unsafe fn columns_of(rel: Relation, mentioned: &Mentioned) -> Vec<Column> {
    let mut columns = Vec::new();
    // SAFETY: the descriptor belongs to the open relation.
    unsafe {
        let desc = (*rel).rd_att;
        let has = |set, attno: i16| has_attribute(set, attno.into()) || has_attribute(set, 0);
        for (index, attribute) in compat::attributes(desc).iter().enumerate() {
            let (in_rows, in_checks) =
                (has(mentioned.targets, attribute.attnum), has(mentioned.checked, attribute.attnum));
            if attribute.attisdropped || !(in_rows || in_checks || has(mentioned.native, attribute.attnum)) {
                continue;
            }
            let kind = ColumnType::of(attribute);
            columns.push(Column {
                index,
                in_rows,
                in_checks,
                missing: column_file::missing::value(Open::of(rel), index),
                logical: kind.logical,
                reader: ColumnReader::new(kind),
                data: ColumnData::default(),
            });
        }
    }
    columns
}
