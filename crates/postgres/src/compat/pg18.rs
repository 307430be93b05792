//! PostgreSQL 18 and later. `before_18` has the same names.

use std::ffi::{c_char, c_int, c_void};

use pgrx::pg_sys::{
    self, BlockNumber, FormData_pg_attribute, IndexScanDesc, Oid, QueryDesc, Relation, SetOp, Snapshot,
    TransactionId, TupleDesc,
};

use super::RunHook;

mod bitmap;
mod pruning;
mod skip_support;

pub use bitmap::{BitmapState, end_bitmap, restart_bitmap, set_bitmap};
pub use pruning::{PruneState, begin_pruning, matching_inputs};

/// Whether the expression of a projection returns a value. Here it does not, and wants no place for NULL.
pub const PROJECTIONS_RETURN: bool = false;

/// The option of a heap scan without which a bitmap scan passes over the rows of an all-visible page.
pub const NEED_TUPLES: u32 = 0;

/// The option of a read stream whose callback neither locks nor reads.
pub const SIMPLE_CALLBACK: u32 = pg_sys::READ_STREAM_USE_BATCHING;

/// Lets a bitmap scan read every block itself, one after another. The access method reads them all.
pub fn read_each_block(_scan: &mut pg_sys::BitmapHeapScanState) {}

/// The columns of a row type, dropped ones included.
///
/// # Safety
/// A valid descriptor, which lives as long as what is returned.
pub unsafe fn attributes<'a>(descriptor: TupleDesc) -> &'a [FormData_pg_attribute] {
    // SAFETY: the caller's promise. The columns stand behind their compact forms.
    unsafe {
        let count = usize::try_from((*descriptor).natts).unwrap_or(0);
        let compact = (&raw const (*descriptor).compact_attrs).cast::<pg_sys::CompactAttribute>();
        std::slice::from_raw_parts(compact.add(count).cast(), count)
    }
}

/// The server's `pg_locale_struct`.
#[repr(C)]
pub struct PgLocale {
    /// A letter of pg_collation.
    pub provider: c_char,
    deterministic: bool,
    collate_is_c: bool,
    ctype_is_c: bool,
    is_default: bool,
    methods: *const c_void,
    /// A `locale_t` if the provider is the C library. ICU's name of the locale if it is ICU.
    pub locale: *mut c_void,
    /// ICU's collator.
    pub collator: *const c_void,
}

unsafe extern "C-unwind" {
    fn pg_newlocale_from_collation(collation: Oid) -> *mut PgLocale;
}

/// Whether a collation orders text bytewise.
///
/// # Safety
/// In a transaction. An ERROR jumps past the caller, which guards.
pub unsafe fn orders_bytewise(collation: Oid) -> bool {
    // SAFETY: a call into the server, which gives a valid locale.
    unsafe { (*pg_newlocale_from_collation(collation)).collate_is_c }
}

/// Whether a collation knows ASCII letters alone.
///
/// # Safety
/// As `orders_bytewise`.
pub unsafe fn has_ascii_letters(collation: Oid) -> bool {
    // SAFETY: a call into the server, which gives a valid locale.
    unsafe { (*pg_newlocale_from_collation(collation)).ctype_is_c }
}

/// A hook of ExecutorRun.
pub fn run_hook<R: RunHook>() -> pg_sys::ExecutorRun_hook_type {
    unsafe extern "C-unwind" fn run<R: RunHook>(
        query: *mut QueryDesc,
        direction: pg_sys::ScanDirection::Type,
        count: u64,
    ) {
        unsafe extern "C-unwind" {
            fn standard_ExecutorRun(
                query: *mut QueryDesc,
                direction: pg_sys::ScanDirection::Type,
                count: u64,
            );
        }
        // SAFETY: the hook's own arguments, handed on from a frame without destructors.
        unsafe {
            let begun = R::begin(query);
            match R::next() {
                Some(next) => next(query, direction, count),
                None => standard_ExecutorRun(query, direction, count),
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
            instrument: *mut c_void,
            keys: c_int,
            orders: c_int,
        ) -> IndexScanDesc;
    }
    // SAFETY: the caller's promise.
    unsafe { index_beginscan(table, index, snapshot, std::ptr::null_mut(), keys, orders) }
}

/// Waits for the end of a transaction if it needs not wait. Whether it is over.
///
/// # Safety
/// In a transaction.
pub unsafe fn is_over(transaction: TransactionId) -> bool {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::ConditionalXactLockTableWait(transaction, false) }
}

/// Sleeps for as long as VACUUM's settings ask for.
///
/// # Safety
/// Holds no lock of a buffer.
pub unsafe fn vacuum_delay() {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::vacuum_delay_point(false) }
}

/// Whether VACUUM of a table by this name vacuums its children, too: it does, without ONLY.
///
/// # Safety
/// A valid node, or null.
pub unsafe fn vacuums_children(name: *const pg_sys::RangeVar, _is_partitioned: bool) -> bool {
    // SAFETY: the caller's promise.
    unsafe { name.as_ref() }.is_some_and(|name| name.inh)
}

/// Gives VACUUM's parameters what a plain VACUUM takes from settings.
pub fn set_vacuum_defaults(parameters: &mut pg_sys::VacuumParams) {
    // SAFETY: a plain setting of the server's.
    parameters.max_eager_freeze_failure_rate = unsafe { pg_sys::vacuum_max_eager_freeze_failure_rate };
}

/// Writes to pg_class in place how many pages, rows and all-visible pages a relation has, and whether a table
/// has indexes. Leaves its horizons alone. No page is told to be all-frozen.
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
            rel, pages, rows, visible, 0, has_index, no_xid, no_multi, none, none, false,
        );
    }
}

/// Has a signal handled.
///
/// # Safety
/// The handler does what a handler may do.
pub unsafe fn handle_signal(signal: c_int, handler: pg_sys::pqsigfunc) {
    unsafe extern "C-unwind" {
        #[link_name = "pqsignal_be"]
        fn pqsignal(signal: c_int, handler: pg_sys::pqsigfunc);
    }
    // SAFETY: the caller's promise.
    unsafe { pqsignal(signal, handler) };
}

/// Whether a page's header and checksum are right.
///
/// # Safety
/// A whole page, aligned as one.
pub unsafe fn is_page_sound(page: pg_sys::Page, block: BlockNumber) -> bool {
    let mut failed = false;
    // SAFETY: the caller's promise.
    unsafe { pg_sys::PageIsVerified(page, block, 0, &raw mut failed) }
}

/// The columns that a set operation tells rows apart by: number, equality operator, collation.
///
/// # Safety
/// A valid plan, in a transaction.
pub unsafe fn compared_columns(operation: &SetOp) -> Vec<(i16, Oid, Oid)> {
    let count = usize::try_from(operation.numCols).unwrap_or(0);
    let sorted = operation.strategy == pg_sys::SetOpStrategy::SETOP_SORTED;
    // SAFETY: the arrays have so many entries. Of sorted inputs they have the operators of the order.
    let column = |at: usize| unsafe {
        let operator = *operation.cmpOperators.add(at);
        let equality = match sorted {
            true => pg_sys::get_equality_op_for_ordering_op(operator, std::ptr::null_mut()),
            false => operator,
        };
        (*operation.cmpColIdx.add(at), equality, *operation.cmpCollations.add(at))
    };
    (0..count).map(column).collect()
}

/// The column of a set operation's one input that says from which of its two sides a row is. None: each side
/// is an input.
pub fn side_column(_operation: &SetOp) -> Option<i16> {
    None
}

/// Makes a path the planner's last choice, because its kind is switched off.
pub fn switch_off(path: &mut pg_sys::Path) {
    path.disabled_nodes += 1;
}

/// Whether a path is of a kind that is switched off.
pub fn is_switched_off(path: &pg_sys::Path) -> bool {
    path.disabled_nodes > 0
}

/// Whether an entry of a range table stands for what a query groups by.
pub fn is_grouping(entry: &pg_sys::RangeTblEntry) -> bool {
    entry.rtekind == pg_sys::RTEKind::RTE_GROUP
}

/// Whether a column that is declared NOT NULL has no NULL. The declaration may be one that was not checked.
///
/// # Safety
/// A valid descriptor that has the column, numbered from 0.
pub unsafe fn has_no_null(descriptor: TupleDesc, column: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        if column >= usize::try_from((*descriptor).natts).unwrap_or(0) {
            return false;
        }
        let compact = (&raw const (*descriptor).compact_attrs).cast::<pg_sys::CompactAttribute>();
        u32::from((*compact.add(column)).attnullability as u8) == ATTNULLABLE_VALID
    }
}

/// The server's mark of a NOT NULL constraint that was checked.
const ATTNULLABLE_VALID: u32 = b'v' as u32;

/// The type of join that gives the rows of its inner side that have a match.
pub const RIGHT_SEMI: Option<pg_sys::JoinType::Type> = Some(pg_sys::JoinType::JOIN_RIGHT_SEMI);

/// What stands for the call of a window function in a list of columns that EXPLAIN shows: the call without
/// its window. The server looks for the window's name in a node of its own, and raises an ERROR in others.
///
/// # Safety
/// A valid node.
pub unsafe fn shown_window_call(call: *mut pg_sys::WindowFunc) -> Option<*mut pg_sys::Expr> {
    // SAFETY: a new node over a valid one.
    unsafe {
        let shown = pg_sys::makeFuncExpr(
            (*call).winfnoid,
            (*call).wintype,
            (*call).args,
            (*call).wincollid,
            (*call).inputcollid,
            pg_sys::CoercionForm::COERCE_EXPLICIT_CALL,
        );
        Some(shown.cast())
    }
}

/// How many tables EXPLAIN can name.
pub fn shown_tables(explain: &pg_sys::ExplainState) -> i32 {
    explain.rtable_size
}

/// The oldest snapshots of this session: its others are later. None if they cannot be known. `known` are some
/// that have its oldest among them, where its hooks can tell.
///
/// # Safety
/// In a transaction.
pub unsafe fn oldest_snapshots(known: Option<Vec<Snapshot>>) -> Option<Vec<Snapshot>> {
    known
}

/// Takes a lock for the session if it gets it at once. Returns what the session knows of it, else null.
///
/// # Safety
/// No transaction need be open. The session gives the lock back.
pub unsafe fn lock_for_session(tag: &pg_sys::LOCKTAG, mode: pg_sys::LOCKMODE) -> *mut pg_sys::LOCALLOCK {
    let mut own = std::ptr::null_mut();
    // SAFETY: the caller's promise.
    let got = unsafe { pg_sys::LockAcquireExtended(tag, mode, true, true, true, &raw mut own, false) };
    if got == pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL { std::ptr::null_mut() } else { own }
}

/// An option of an access method: its name, its type, and where its value lies in the struct of all.
pub const fn option(
    name: &std::ffi::CStr,
    opttype: pg_sys::relopt_type::Type,
    offset: std::ffi::c_int,
) -> pg_sys::relopt_parse_elt {
    pg_sys::relopt_parse_elt { optname: name.as_ptr(), opttype, offset, isset_offset: 0 }
}

/// Runs a query that was started to its end.
///
/// # Safety
/// A query that was started.
pub unsafe fn run_query(query: *mut QueryDesc) {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::ExecutorRun(query, pg_sys::ScanDirection::ForwardScanDirection, 0) }
}
