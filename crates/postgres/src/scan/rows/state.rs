//! What the node that hands out rows remembers, and how it is read off the finished plan.
//!
//! It decides once per execution whether rows can go straight to the result slot, and which conditions may be
//! kept by dictionary code. So the plan need not store either.

use pgrx::PgList;
use pgrx::pg_sys::{self, NodeTag, TupleTableSlot};
use stripe::scan::LoadedChunk;

use super::parallel::Shared;
use super::scroll::{self, Scroll};
use crate::host::relation::has_attribute;
use crate::scan::datums::{RowCheck, Step};
use crate::scan::fill_batch::Use;
use crate::scan::table::{Column, TableScan};

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

/// Everything the node remembers.
pub struct RowScan {
    /// The scan of the table.
    pub table: TableScan,
    /// Shaped like the target list.
    pub result_slot: *mut TupleTableSlot,
    /// Columns of the target list.
    pub columns_in_result_slot: i16,
    /// The target list is plain columns: no projection needed.
    pub direct: bool,
    /// Zero-based attribute of each target, when direct.
    pub output_columns: Vec<usize>,
    /// Whether the server may ask for a row's position.
    pub keep_position: bool,
    /// Conditions checked row by row.
    pub row_checks: Vec<RowCheck>,
    /// Wanted attributes, zero-based, of hot rows.
    pub hot_fills: Vec<usize>,
    /// Where it stands.
    pub phase: Phase,
    /// The chunk whose rows are handed out.
    pub loaded: Option<LoadedChunk>,
    /// The statement is a cursor's that may move backward.
    pub scrolls: bool,
    /// Where such a cursor stands.
    pub scroll: Scroll,
    /// What parallel participants share; null in a serial scan.
    pub shared: *const Shared,
}

impl RowScan {
    /// Reads the plan.
    ///
    /// # Safety
    /// Called by the server while it initialises the node; the current memory is the query's.
    pub unsafe fn begin(
        custom: *mut pg_sys::CustomScanState,
        estate: *mut pg_sys::EState,
        eflags: i32,
    ) -> Self {
        // SAFETY: the server passes its own node, plan and state; the sets and lists are its own kinds.
        unsafe {
            let (mut table, mentioned) = TableScan::begin(custom, estate, eflags);
            let plan = (*custom).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let relid = (*plan).scan.scanrelid;
            let output_columns = plain_columns((*plan).scan.plan.targetlist, relid);
            let position = [mentioned.targets, mentioned.checked, mentioned.native]
                .into_iter()
                .any(|set| has_attribute(set, pg_sys::SelfItemPointerAttributeNumber));
            let row_checks = row_checks(custom, relid, &table.columns);
            table.hot_steps.extend(row_checks.iter().map(|check| Step::of(check.state, false)));
            let result_slot = (*custom).ss.ps.ps_ResultTupleSlot;
            Self {
                result_slot,
                columns_in_result_slot: i16::try_from((*(*result_slot).tts_tupleDescriptor).natts)
                    .unwrap_or(0),
                direct: output_columns.is_some(),
                output_columns: output_columns.unwrap_or_default(),
                // No cursor stands on a row below Gather; and all participants must decide alike, though a
                // worker has only a part of the plan.
                keep_position: position
                    || (!(*(*custom).ss.ps.plan).parallel_aware && may_be_positioned_on(estate)),
                row_checks,
                hot_fills: table.columns.iter().map(|column| column.index).collect(),
                table,
                phase: match (*estate).es_epq_active.is_null() {
                    true => Phase::Start,
                    false => Phase::Test,
                },
                loaded: None,
                scrolls: scroll::may_move_backward(eflags),
                scroll: Scroll::new(),
                shared: std::ptr::null(),
            }
        }
    }

    /// True if the scan only needs the number of rows of its stripes.
    pub fn only_counts(&self) -> bool {
        self.table.columns.is_empty() && self.table.clauses.is_empty() && !self.keep_position
    }

    /// Turns the next selected rows of the loaded chunk into Datums.
    ///
    /// # Safety
    /// As `TableScan::fill_batch`.
    pub unsafe fn fill_batch(&mut self) {
        let Some(loaded) = &mut self.loaded else { return };
        let mut using = Use {
            hands_out: true,
            keep_position: self.keep_position,
            direct: self.direct.then_some(self.output_columns.as_slice()),
            row_checks: &mut self.row_checks,
        };
        // SAFETY: the caller's promise.
        unsafe { self.table.fill_batch(loaded, &mut using) };
    }

    /// Goes back to before the first row; parameters may have changed.
    ///
    /// # Safety
    /// Called under guard between rows.
    pub unsafe fn restart(&mut self) {
        if self.phase == Phase::Start || self.phase == Phase::Test {
            return;
        }
        self.scroll = Scroll::new();
        self.loaded = None;
        // SAFETY: the caller's promise.
        unsafe { self.table.restart() };
        for check in &mut self.row_checks {
            check.verdicts.clear();
        }
        self.phase = Phase::Start;
    }

    /// Gives back what the server holds for us.
    ///
    /// # Safety
    /// Called once, when the node ends without an ERROR.
    pub unsafe fn close(&mut self) {
        self.loaded = None;
        // SAFETY: the caller's promise.
        unsafe { self.table.close() };
    }
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

/// The plan's qual, in one piece, or clause by clause where that lets verdicts be cached.
unsafe fn row_checks(custom: *mut pg_sys::CustomScanState, relid: u32, columns: &[Column]) -> Vec<RowCheck> {
    let check = |state, column| RowCheck { state, column, dictionary: 0, verdicts: Vec::new() };
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
            return vec![check(whole, None)];
        }
        PgList::<pg_sys::Node>::from_pg(qual)
            .iter_ptr()
            .zip(cached)
            .map(|(node, column)| {
                let single = pg_sys::lappend(std::ptr::null_mut(), node.cast());
                check(pg_sys::ExecInitQual(single, custom.cast()), column)
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
        let attno = pg_sys::bms_next_member(set, -1) + pg_sys::FirstLowInvalidHeapAttributeNumber;
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
