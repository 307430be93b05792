//! PostgreSQL 15 to 17. `pg18` has the same names.

use std::ffi::{c_char, c_int, c_void};

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::panic::pgrx_extern_c_guard;
use pgrx::pg_sys::{
    self, Bitmapset, BlockNumber, FormData_pg_attribute, IndexScanDesc, Oid, PartitionPruneInfo, PlanState,
    PlannedStmt, QueryDesc, Relation, SetOp, Snapshot, TBMIterateResult, TableAmRoutine, TableScanDesc,
    TransactionId, TupleDesc, TupleTableSlot,
};

use super::{BitmapBlocks, Partitioned, RunHook};

/// Whether the expression of a projection returns a value. Here it does, and wants a place for NULL, as
/// others.
pub const PROJECTIONS_RETURN: bool = true;

/// The columns of a row type, dropped ones included.
///
/// # Safety
/// A valid descriptor, which lives as long as what is returned.
pub unsafe fn attributes<'a>(descriptor: TupleDesc) -> &'a [FormData_pg_attribute] {
    // SAFETY: the caller's promise.
    unsafe { (*descriptor).attrs.as_slice(usize::try_from((*descriptor).natts).unwrap_or(0)) }
}

/// The first fields of the server's `pg_locale_struct`.
#[repr(C)]
pub struct PgLocale {
    /// A letter of pg_collation.
    pub provider: c_char,
    deterministic: bool,
    /// A `locale_t` if the provider is the C library. ICU's name of the locale if it is ICU.
    pub locale: *mut c_void,
    /// ICU's collator.
    pub collator: *const c_void,
}

/// Whether a collation orders text bytewise.
///
/// # Safety
/// In a transaction. An ERROR jumps past the caller, which guards.
pub unsafe fn orders_bytewise(collation: Oid) -> bool {
    unsafe extern "C-unwind" {
        fn lc_collate_is_c(collation: Oid) -> bool;
    }
    // SAFETY: a call into the server.
    unsafe { lc_collate_is_c(collation) }
}

/// Whether a collation knows ASCII letters alone.
///
/// # Safety
/// As `orders_bytewise`.
pub unsafe fn has_ascii_letters(collation: Oid) -> bool {
    unsafe extern "C-unwind" {
        fn lc_ctype_is_c(collation: Oid) -> bool;
    }
    // SAFETY: a call into the server.
    unsafe { lc_ctype_is_c(collation) }
}

/// What a bitmap scan keeps for its callbacks. It begins as zeroes.
pub struct BitmapState {
    /// It stands on a cold block.
    is_cold: bool,
}

/// Makes the scan begin again.
pub fn restart_bitmap(_state: &mut BitmapState) {}

/// Gives back what it holds.
pub fn end_bitmap(_state: &mut BitmapState) {}

/// Sets the callbacks of a bitmap scan.
pub fn set_bitmap<B: BitmapBlocks>(routine: &mut TableAmRoutine) {
    unsafe extern "C-unwind" fn next_block<B: BitmapBlocks>(
        scan: TableScanDesc,
        result: *mut TBMIterateResult,
    ) -> bool {
        // SAFETY: the server's call, guarded; the result has as many offsets as it says.
        unsafe {
            pgrx_extern_c_guard(|| {
                let block = (*result).blockno;
                let is_cold = B::is_cold(block);
                B::state(scan).is_cold = is_cold;
                if !is_cold {
                    let heap = B::heap(scan);
                    // A parallel bitmap scan gets its snapshot late, and only in the outer scan.
                    (*heap).rs_snapshot = (*scan).rs_snapshot;
                    let next = B::heap_routine().scan_bitmap_next_block;
                    return next.is_some_and(|next| pg_guard_ffi_boundary(|| next(heap, result)));
                }
                match usize::try_from((*result).ntuples) {
                    Ok(count) => B::begin(scan, block, Some((*result).offsets.as_slice(count))),
                    Err(_) => B::begin(scan, block, None),
                }
            })
        }
    }
    /// Hot rows go straight through.
    unsafe extern "C-unwind" fn next_tuple<B: BitmapBlocks>(
        scan: TableScanDesc,
        result: *mut TBMIterateResult,
        slot: *mut TupleTableSlot,
    ) -> bool {
        // SAFETY: the server's call; this frame owns nothing.
        unsafe {
            if B::state(scan).is_cold {
                return B::next(scan, (*result).recheck, slot);
            }
            let heap = B::heap(scan);
            let Some(next) = B::heap_routine().scan_bitmap_next_tuple else { return false };
            while next(heap, result, slot) {
                if B::is_there((*scan).rs_rd, scan, slot) {
                    return true;
                }
            }
            false
        }
    }
    routine.scan_bitmap_next_block = Some(next_block::<B>);
    routine.scan_bitmap_next_tuple = Some(next_tuple::<B>);
}

/// A hook of ExecutorRun.
pub fn run_hook<R: RunHook>() -> pg_sys::ExecutorRun_hook_type {
    unsafe extern "C-unwind" fn run<R: RunHook>(
        query: *mut QueryDesc,
        direction: pg_sys::ScanDirection::Type,
        count: u64,
        once: bool,
    ) {
        unsafe extern "C-unwind" {
            fn standard_ExecutorRun(
                query: *mut QueryDesc,
                direction: pg_sys::ScanDirection::Type,
                count: u64,
                once: bool,
            );
        }
        // SAFETY: the hook's own arguments, handed on from a frame without destructors.
        unsafe {
            let begun = R::begin(query);
            match R::next() {
                Some(next) => next(query, direction, count, once),
                None => standard_ExecutorRun(query, direction, count, once),
            }
            R::end(begun);
        }
    }
    Some(run::<R>)
}

/// Begins an index scan.
///
/// # Safety
/// As the server's. An ERROR jumps past the caller, which guards.
pub unsafe fn index_beginscan(
    table: Relation,
    index: Relation,
    snapshot: Snapshot,
    keys: c_int,
    orders: c_int,
) -> IndexScanDesc {
    unsafe extern "C-unwind" {
        fn index_beginscan(
            table: Relation,
            index: Relation,
            snapshot: Snapshot,
            keys: c_int,
            orders: c_int,
        ) -> IndexScanDesc;
    }
    // SAFETY: the caller's promise.
    unsafe { index_beginscan(table, index, snapshot, keys, orders) }
}

/// Waits for the end of a transaction if it needs not wait. Whether it is over.
///
/// # Safety
/// In a transaction.
pub unsafe fn is_over(transaction: TransactionId) -> bool {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::ConditionalXactLockTableWait(transaction) }
}

/// Sleeps for as long as VACUUM's settings ask for.
///
/// # Safety
/// Holds no lock of a buffer.
pub unsafe fn vacuum_delay() {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::vacuum_delay_point() }
}

/// Whether VACUUM of a table by this name vacuums its children, too: only partitions.
///
/// # Safety
/// A valid node, or null.
pub unsafe fn vacuums_children(_name: *const pg_sys::RangeVar, is_partitioned: bool) -> bool {
    is_partitioned
}

/// Gives VACUUM's parameters what a plain VACUUM takes from settings.
pub fn set_vacuum_defaults(_parameters: &mut pg_sys::VacuumParams) {}

/// Writes to pg_class in place how many pages, rows and all-visible pages a relation has, and whether a table
/// has indexes. Leaves its horizons alone.
///
/// # Safety
/// The relation is locked so that nobody else writes this.
pub unsafe fn write_statistics(
    rel: Relation,
    pages: BlockNumber,
    rows: f64,
    visible: BlockNumber,
    has_index: bool,
) {
    let none = std::ptr::null_mut();
    let (no_xid, no_multi) = (pg_sys::InvalidTransactionId, pg_sys::MultiXactId::from(0u32));
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::vac_update_relstats(
            rel, pages, rows, visible, has_index, no_xid, no_multi, none, none, false,
        );
    }
}

/// Has a signal handled.
///
/// # Safety
/// The handler does what a handler may do.
pub unsafe fn handle_signal(signal: c_int, handler: pg_sys::pqsigfunc) {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::pqsignal(signal, handler) };
}

/// Whether a page's header and checksum are right.
///
/// # Safety
/// A whole page, aligned as one.
pub unsafe fn is_page_sound(page: pg_sys::Page, block: BlockNumber) -> bool {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::PageIsVerifiedExtended(page, block, 0) }
}

macro_rules! partitioned {
    ($($kind:ident)*) => { $(
        impl Partitioned for pg_sys::$kind {
            unsafe fn partitions(&self, _statement: *mut PlannedStmt) -> *mut PartitionPruneInfo {
                self.part_prune_info
            }
        }
    )* };
}
partitioned! { Append MergeAppend }

/// The server's state of partitions that are left out.
pub type PruneState = pg_sys::PartitionPruneState;

/// Finds out which inputs of an Append are left by the values known when a statement starts. Gives the node
/// an expression context. Returns the state for `matching_inputs`, and the set of inputs.
///
/// # Safety
/// The node runs, and `partitions` is its statement's. An ERROR jumps past the caller, which guards.
pub unsafe fn begin_pruning(
    node: *mut PlanState,
    inputs: c_int,
    partitions: *mut PartitionPruneInfo,
) -> Option<(*mut PruneState, *mut Bitmapset)> {
    unsafe extern "C-unwind" {
        fn ExecInitPartitionPruning(
            node: *mut PlanState,
            inputs: c_int,
            partitions: *mut PartitionPruneInfo,
            remaining: *mut *mut Bitmapset,
        ) -> *mut PruneState;
    }
    let mut remaining = std::ptr::null_mut();
    // SAFETY: the caller's promise.
    let state = unsafe { ExecInitPartitionPruning(node, inputs, partitions, &raw mut remaining) };
    Some((state, remaining))
}

/// Which of those inputs are left by the present parameters. Inputs that were left out before are not
/// counted.
///
/// # Safety
/// A state of `begin_pruning`, whose node runs. An ERROR jumps past the caller, which guards.
pub unsafe fn matching_inputs(state: *mut PruneState) -> *mut Bitmapset {
    unsafe extern "C-unwind" {
        fn ExecFindMatchingSubPlans(state: *mut PruneState, initial: bool) -> *mut Bitmapset;
    }
    // SAFETY: the caller's promise.
    unsafe { ExecFindMatchingSubPlans(state, false) }
}

/// The columns that a set operation tells rows apart by: number, equality operator, collation.
///
/// # Safety
/// A valid plan.
pub unsafe fn compared_columns(operation: &SetOp) -> Vec<(i16, Oid, Oid)> {
    let count = usize::try_from(operation.numCols).unwrap_or(0);
    // SAFETY: the arrays have so many entries.
    let column = |at: usize| unsafe {
        (*operation.dupColIdx.add(at), *operation.dupOperators.add(at), *operation.dupCollations.add(at))
    };
    (0..count).map(column).collect()
}

/// The column of a set operation's one input that says from which of its two sides a row is. None: each side
/// is an input.
pub fn side_column(operation: &SetOp) -> Option<i16> {
    Some(operation.flagColIdx)
}

/// Makes a path the planner's last choice, because its kind is switched off.
pub fn switch_off(path: &mut pg_sys::Path) {
    // SAFETY: a plain number of the server's.
    let much = unsafe { pg_sys::disable_cost };
    path.startup_cost += much;
    path.total_cost += much;
}

/// Whether a path is of a kind that is switched off.
pub fn is_switched_off(path: &pg_sys::Path) -> bool {
    // SAFETY: a plain number of the server's.
    path.total_cost >= unsafe { pg_sys::disable_cost }
}

/// Whether an entry of a range table stands for what a query groups by.
pub fn is_grouping(_entry: &pg_sys::RangeTblEntry) -> bool {
    false
}

/// Whether a column that is declared NOT NULL has no NULL.
///
/// # Safety
/// A valid descriptor that has the column, numbered from 0.
pub unsafe fn has_no_null(descriptor: TupleDesc, column: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { attributes(descriptor).get(column).is_some_and(|column| column.attnotnull) }
}

/// The type of join that gives the rows of its inner side that have a match.
pub const RIGHT_SEMI: Option<pg_sys::JoinType::Type> = None;

/// What stands for the call of a window function in a list of columns that EXPLAIN shows. None: the call.
///
/// # Safety
/// A valid node.
pub unsafe fn shown_window_call(_call: *mut pg_sys::WindowFunc) -> Option<*mut pg_sys::Expr> {
    None
}

/// How many tables EXPLAIN can name.
pub fn shown_tables(explain: &pg_sys::ExplainState) -> i32 {
    // SAFETY: a list, or null.
    unsafe { explain.rtable.as_ref() }.map_or(0, |tables| tables.length)
}

/// The oldest snapshots of this session: its others are later. None if they cannot be known. `_known` are
/// some that have its oldest among them, where its hooks can tell.
///
/// # Safety
/// In a transaction.
pub unsafe fn oldest_snapshots(_known: Option<Vec<Snapshot>>) -> Option<Vec<Snapshot>> {
    // SAFETY: the caller's promise.
    Some(vec![unsafe { pg_sys::GetOldestSnapshot() }])
}

/// Takes a lock for the session if it gets it at once. Returns what the session knows of it, else null.
///
/// # Safety
/// No transaction need be open. The session gives the lock back.
pub unsafe fn lock_for_session(tag: &pg_sys::LOCKTAG, mode: pg_sys::LOCKMODE) -> *mut pg_sys::LOCALLOCK {
    let mut own = std::ptr::null_mut();
    // SAFETY: the caller's promise.
    let got = unsafe { pg_sys::LockAcquireExtended(tag, mode, true, true, true, &raw mut own) };
    if got == pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL { std::ptr::null_mut() } else { own }
}

/// An option of an access method: its name, its type, and where its value lies in the struct of all.
pub const fn option(
    name: &std::ffi::CStr,
    opttype: pg_sys::relopt_type::Type,
    offset: std::ffi::c_int,
) -> pg_sys::relopt_parse_elt {
    pg_sys::relopt_parse_elt { optname: name.as_ptr(), opttype, offset }
}

/// Runs a query that was started to its end.
///
/// # Safety
/// A query that was started.
pub unsafe fn run_query(query: *mut QueryDesc) {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::ExecutorRun(query, pg_sys::ScanDirection::ForwardScanDirection, 0, true) }
}
