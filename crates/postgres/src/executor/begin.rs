//! The node's state, and how it is read off the finished plan.
//!
//! Called once per execution, before the first row. Which columns are wanted, whether rows can go straight to
//! the result slot, and which conditions may be cached by dictionary code are decided here, so that nothing
//! of it has to be stored in the plan. Invariant: opening costs the same for a table of any size; stripes are
//! looked up at the first row.

use std::sync::Arc;

use pgrx::PgList;
use pgrx::pg_sys::{self, NodeTag, Relation, TupleTableSlot};
use vector::LogicalType;

use super::batch::{Batch, ColumnData, Step};
use super::clauses::{self, Clause};
use super::cold::Cold;
use super::hot::Hot;
use super::parallel::Shared;
use super::ranked::Rank;
use super::scroll::{self, Scroll};
use super::shape::Tally;
use super::steps::{Further, Members};
use crate::convert::{ColumnReader, ColumnType};
use crate::table_am::read::own_writes;

/// Attribute sets of the server are shifted by this much.
const SHIFT: i32 = 7;

/// Where the scan stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Nothing looked up yet.
    Start,
    /// Rows come from stripes.
    Cold,
    /// Rows come from heap pages.
    Hot,
    /// Rows come from wherever a cursor that can turn round stands.
    Scroll,
    /// No rows left.
    Done,
    /// EvalPlanQual: the server supplies the row.
    Test,
}

/// What EXPLAIN ANALYZE tells.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counters {
    /// Stripes looked into.
    pub stripes_read: u64,
    /// Stripes left out by their statistics.
    pub stripes_pruned: u64,
    /// Chunks looked into.
    pub chunks_read: u64,
    /// Chunks left out by their statistics, those of pruned stripes not counted.
    pub chunks_pruned: u64,
    /// Stripes not looked into because a sort wanted no more rows,
    pub stripes_skipped: u64,
    /// and chunks of those that were looked into.
    pub chunks_skipped: u64,
    /// Rows of chunks left out by native conditions.
    pub rows_filtered: u64,
    /// Rows found in heap pages,
    pub hot_rows: u64,
    /// and how many of them native conditions left out.
    pub hot_filtered: u64,
    /// Rows of the chunks looked into.
    pub rows_read: u64,
    /// How many of these the server's statistics know of.
    pub rows_reported: u64,
    /// Rows answered from statistics.
    pub rows_known: u64,
    /// Bytes of column chunks read.
    pub bytes_read: u64,
    /// Bytes of values decoded.
    pub bytes_decoded: u64,
}

/// A column that the query looks at.
pub struct Column {
    /// Zero-based attribute.
    pub index: usize,
    /// Its values are handed out.
    pub in_rows: bool,
    /// Conditions checked row by row look at it.
    pub in_checks: bool,
    /// What a stripe must say it holds for native conditions to apply.
    pub logical: LogicalType,
    /// Turns vectors into Datums.
    pub reader: ColumnReader,
    /// The Datums of the current batch.
    pub data: ColumnData,
}

/// A condition of the plan's qual.
pub struct Residual {
    /// Ready to run on the scan slot.
    pub state: *mut pg_sys::ExprState,
    /// Position in `Scan::columns` of the only column it reads, where verdicts may be cached by dictionary
    /// code.
    pub column: Option<usize>,
    /// The dictionary that `verdicts` belong to.
    pub dictionary: u64,
    /// Verdict by code.
    pub verdicts: Vec<u8>,
}

/// Everything the node remembers.
pub struct Scan {
    /// The server's node.
    pub custom: *mut pg_sys::CustomScanState,
    /// The table.
    pub rel: Relation,
    /// What it sees.
    pub snapshot: pg_sys::Snapshot,
    /// Memory and slots for expressions.
    pub econtext: *mut pg_sys::ExprContext,
    /// Table-shaped, virtual; only wanted columns are filled.
    pub scan_slot: *mut TupleTableSlot,
    /// Hot rows that become a batch of vectors.
    pub hot_slots: Vec<*mut TupleTableSlot>,
    /// Shaped like the target list.
    pub result_slot: *mut TupleTableSlot,
    /// Columns of the table.
    pub columns_in_scan_slot: i16,
    /// Columns of the target list.
    pub columns_in_result_slot: i16,
    /// The target list is plain columns: no projection needed.
    pub direct: bool,
    /// Zero-based attribute of each target, when direct.
    pub output_columns: Vec<usize>,
    /// Somebody may ask where a row is.
    pub keep_position: bool,
    /// Wanted columns, ascending.
    pub columns: Vec<Column>,
    /// Columns made of others, for who takes vectors.
    pub further: Further,
    /// What a join can use, for who takes vectors.
    pub members: Members,
    /// How a sort wants rows, for who takes vectors.
    pub rank: Option<Rank>,
    /// Conditions with a predicate.
    pub clauses: Vec<Clause>,
    /// Conditions checked row by row.
    pub residuals: Vec<Residual>,
    /// Attributes up to here are taken out of hot rows.
    pub hot_columns: i32,
    /// Wanted attributes, zero-based.
    pub hot_fills: Vec<usize>,
    /// All conditions, for hot rows.
    pub hot_steps: Vec<Step>,
    /// Where it stands.
    pub phase: Phase,
    /// The statement is a cursor's that may move backward.
    pub scrolls: bool,
    /// Where such a cursor stands.
    pub scroll: Scroll,
    /// Rows that come next.
    pub batch: Batch,
    /// Stripes and chunks still to come.
    pub cold: Option<Cold>,
    /// The scan of heap pages, once open.
    pub hot: Option<Hot>,
    /// What parallel participants share; null in a serial scan.
    pub shared: *const Shared,
    /// For EXPLAIN.
    pub counters: Counters,
    /// For EXPLAIN: what other threads counted.
    pub tally: Arc<Tally>,
}

/// Reads the plan.
///
/// # Safety
/// Called by the server while it initialises the node; the current memory is the query's.
pub unsafe fn begin(custom: *mut pg_sys::CustomScanState, estate: *mut pg_sys::EState, eflags: i32) -> Scan {
    // SAFETY: the server passes its own node, plan and state; the sets and lists are its own kinds.
    unsafe {
        let plan = (*custom).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let relid = (*plan).scan.scanrelid;
        let rel = (*custom).ss.ss_currentRelation;
        if eflags & pg_sys::EXEC_FLAG_EXPLAIN_ONLY as i32 == 0 {
            // By the first row the server may be in parallel mode, where nothing can be written.
            own_writes::flush(rel);
        }
        let targets = attributes((*plan).scan.plan.targetlist, relid);
        let checked = attributes((*plan).scan.plan.qual, relid);
        let native = attributes((*plan).custom_exprs, relid);
        let output_columns = plain_columns((*plan).scan.plan.targetlist, relid);
        let columns = columns_of(rel, targets, checked, native);
        let scan_slot = (*custom).ss.ss_ScanTupleSlot;
        let natts = (*(*scan_slot).tts_tupleDescriptor).natts;
        for at in 0..usize::try_from(natts).unwrap_or(0) {
            *(*scan_slot).tts_isnull.add(at) = true;
        }
        (*scan_slot).tts_tableOid = (*rel).rd_id;
        let result_slot = (*custom).ss.ps.ps_ResultTupleSlot;
        let position = [targets, checked, native]
            .into_iter()
            .any(|set| pg_sys::bms_is_member(pg_sys::SelfItemPointerAttributeNumber + SHIFT, set));
        let clauses = clauses::build(custom);
        let residuals = residuals(custom, relid, &columns);
        let hot_steps = clauses
            .iter()
            .filter(|clause| clause.native)
            .map(|clause| (clause.qual, true))
            .chain(residuals.iter().map(|residual| (residual.state, false)))
            .map(|(state, native)| Step {
                state,
                codes: std::ptr::null(),
                verdicts: std::ptr::null_mut(),
                native,
            })
            .collect();
        Scan {
            custom,
            rel,
            snapshot: (*estate).es_snapshot,
            econtext: (*custom).ss.ps.ps_ExprContext,
            scan_slot,
            hot_slots: Vec::new(),
            result_slot,
            columns_in_scan_slot: i16::try_from(natts).unwrap_or(i16::MAX),
            columns_in_result_slot: i16::try_from((*(*result_slot).tts_tupleDescriptor).natts).unwrap_or(0),
            direct: output_columns.is_some(),
            output_columns: output_columns.unwrap_or_default(),
            // No cursor stands on a row below Gather; and all participants must decide alike, though a worker
            // has only a part of the plan.
            keep_position: position
                || (!(*(*custom).ss.ps.plan).parallel_aware && may_be_positioned_on(estate)),
            hot_columns: columns.last().map_or(0, |column| i32::try_from(column.index + 1).unwrap_or(0)),
            hot_fills: columns.iter().map(|column| column.index).collect(),
            columns,
            further: Vec::new(),
            members: Vec::new(),
            rank: None,
            clauses,
            residuals,
            hot_steps,
            phase: match (*estate).es_epq_active.is_null() {
                true => Phase::Start,
                false => Phase::Test,
            },
            scrolls: scroll::may_move_backward(eflags),
            scroll: Scroll::new(),
            batch: Batch::default(),
            cold: None,
            hot: None,
            shared: std::ptr::null(),
            counters: Counters::default(),
            tally: Arc::default(),
        }
    }
}

/// The attributes of the scanned table that an expression list mentions.
unsafe fn attributes(list: *mut pg_sys::List, relid: u32) -> *mut pg_sys::Bitmapset {
    let mut set: *mut pg_sys::Bitmapset = std::ptr::null_mut();
    // SAFETY: a list of expressions or target entries.
    unsafe { pg_sys::pull_varattnos(list.cast(), relid, &raw mut set) };
    set
}

/// Zero-based attributes of a target list that is nothing but plain columns.
unsafe fn plain_columns(targetlist: *mut pg_sys::List, relid: u32) -> Option<Vec<usize>> {
    let mut columns = Vec::new();
    // SAFETY: a list of target entries; the cast follows the tag.
    unsafe {
        for target in PgList::<pg_sys::TargetEntry>::from_pg(targetlist).iter_ptr() {
            let expr = (*target).expr.cast::<pg_sys::Node>();
            if expr.is_null() || (*expr).type_ != NodeTag::T_Var {
                return None;
            }
            let var = &*expr.cast::<pg_sys::Var>();
            if var.varno as u32 != relid || var.varattno <= 0 {
                return None;
            }
            columns.push(usize::try_from(var.varattno - 1).ok()?);
        }
    }
    Some(columns)
}

unsafe fn columns_of(
    rel: Relation,
    targets: *mut pg_sys::Bitmapset,
    checked: *mut pg_sys::Bitmapset,
    native: *mut pg_sys::Bitmapset,
) -> Vec<Column> {
    let mut columns = Vec::new();
    // SAFETY: the descriptor belongs to the open relation.
    unsafe {
        let desc = (*rel).rd_att;
        let count = usize::try_from((*desc).natts).unwrap_or(0);
        let has = |set, attno: i16| {
            pg_sys::bms_is_member(i32::from(attno) + SHIFT, set) || pg_sys::bms_is_member(SHIFT, set)
        };
        for (index, attribute) in (*desc).attrs.as_slice(count).iter().enumerate() {
            let (in_rows, in_checks) = (has(targets, attribute.attnum), has(checked, attribute.attnum));
            if attribute.attisdropped || !(in_rows || in_checks || has(native, attribute.attnum)) {
                continue;
            }
            let kind = ColumnType::of(attribute);
            columns.push(Column {
                index,
                in_rows,
                in_checks,
                logical: kind.logical,
                reader: ColumnReader::new(kind),
                data: ColumnData::default(),
            });
        }
    }
    columns
}

/// The plan's qual, in one piece, or clause by clause where that lets verdicts be cached.
unsafe fn residuals(custom: *mut pg_sys::CustomScanState, relid: u32, columns: &[Column]) -> Vec<Residual> {
    let residual = |state, column| Residual { state, column, dictionary: 0, verdicts: Vec::new() };
    // SAFETY: the qual is a list of expressions of a node that is being initialised.
    unsafe {
        let plan = (*custom).ss.ps.plan;
        let qual = (*plan).qual;
        let whole = (*custom).ss.ps.qual;
        if whole.is_null() {
            return Vec::new();
        }
        // Expressions with sub-plans must not be initialised twice.
        let cached: Vec<Option<usize>> = match pg_sys::contain_subplans(qual.cast()) {
            true => Vec::new(),
            false => PgList::<pg_sys::Node>::from_pg(qual)
                .iter_ptr()
                .map(|node| cacheable(node, relid, columns))
                .collect(),
        };
        if cached.iter().all(Option::is_none) {
            return vec![residual(whole, None)];
        }
        PgList::<pg_sys::Node>::from_pg(qual)
            .iter_ptr()
            .zip(cached)
            .map(|(node, column)| {
                let single = pg_sys::lappend(std::ptr::null_mut(), node.cast());
                residual(pg_sys::ExecInitQual(single, custom.cast()), column)
            })
            .collect()
    }
}

/// The only column of a condition whose verdict depends on nothing else for the whole scan.
unsafe fn cacheable(node: *mut pg_sys::Node, relid: u32, columns: &[Column]) -> Option<usize> {
    // SAFETY: a valid expression.
    unsafe {
        let mut set: *mut pg_sys::Bitmapset = std::ptr::null_mut();
        pg_sys::pull_varattnos(node, relid, &raw mut set);
        if pg_sys::bms_num_members(set) != 1 || pg_sys::contain_volatile_functions(node) {
            return None;
        }
        let attno = pg_sys::bms_next_member(set, -1) - SHIFT;
        let index = usize::try_from(attno).ok()?.checked_sub(1)?;
        columns.iter().position(|column| column.index == index)
    }
}

/// Whether a cursor could stand on one of the node's rows (WHERE CURRENT OF): only under plans that pass rows
/// on as they are.
unsafe fn may_be_positioned_on(estate: *mut pg_sys::EState) -> bool {
    use NodeTag as T;
    // SAFETY: the statement lives as long as its execution.
    unsafe {
        let statement = (*estate).es_plannedstmt;
        if statement.is_null() || (*statement).planTree.is_null() {
            return true;
        }
        matches!(
            (*(*statement).planTree).type_,
            T::T_CustomScan | T::T_Append | T::T_Result | T::T_Limit | T::T_SubqueryScan | T::T_LockRows
        )
    }
}
