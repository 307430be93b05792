//! PostgreSQL 15 alone. `since_16` has the same names for all later versions.

use std::ffi::{CStr, c_char, c_int, c_void};

use pgrx::pg_sys::errcodes::PgSqlErrorCode;
use pgrx::pg_sys::{
    self, CommandId, Datum, FunctionCallInfo, HeapTuple, ItemPointer, List, LockTupleMode, MultiXactId, Oid,
    PgStat_StatDBEntry, PgStat_StatTabEntry, PgStat_TableStatus, RangeBound, RangeType, Relation, Snapshot,
    SubTransactionId, TM_FailureData, TM_Result, TableAmRoutine, TransactionId, Tuplesortstate,
    TypeCacheEntry,
};

/// Identity of a relation's file: tablespace, database, number.
pub type FileLocator = pg_sys::RelFileNode;

/// The callback that gives a relation a new file.
pub type SetNewFile =
    unsafe extern "C-unwind" fn(Relation, *const FileLocator, c_char, *mut TransactionId, *mut MultiXactId);

/// The place of that callback in a routine.
pub fn set_new_file(routine: &mut TableAmRoutine) -> &mut Option<SetNewFile> {
    &mut routine.relation_set_new_filenode
}

/// The number in the file's name: changes with every rewrite of the relation.
pub fn file_number(locator: &FileLocator) -> u32 {
    u32::from(locator.relNode)
}

/// The file that a relation has now.
///
/// # Safety
/// The relation is open.
pub unsafe fn locator(rel: Relation) -> FileLocator {
    // SAFETY: it is open.
    unsafe { (*rel).rd_node }
}

/// The subtransaction that has given a relation its present file. Invalid if that was committed.
///
/// # Safety
/// The relation is open.
pub unsafe fn new_file_subtransaction(rel: Relation) -> SubTransactionId {
    // SAFETY: it is open.
    unsafe { (*rel).rd_firstRelfilenodeSubid }
}

/// Which indexes get an entry for the new version of a row.
pub type UpdateIndexes = bool;
/// All of them.
pub const ALL_INDEXES: UpdateIndexes = true;

/// Whether any index gets one.
pub fn updates_indexes(which: UpdateIndexes) -> bool {
    which
}

/// heap's own update of a row.
///
/// # Safety
/// As the server calls it. An ERROR unwinds.
#[allow(clippy::too_many_arguments, reason = "the server's signature")]
pub unsafe fn heap_update(
    rel: Relation,
    old: ItemPointer,
    new: HeapTuple,
    command: CommandId,
    crosscheck: Snapshot,
    wait: bool,
    failure: *mut TM_FailureData,
    mode: *mut LockTupleMode::Type,
) -> TM_Result::Type {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::heap_update(rel, old, new, command, crosscheck, wait, failure, mode) }
}

/// Counts an update of a row that is no HOT update and says nothing of the page.
///
/// # Safety
/// The relation is open.
pub unsafe fn count_heap_update(rel: Relation) {
    // SAFETY: it is open.
    unsafe { pg_sys::pgstat_count_heap_update(rel, false) }
}

/// What this backend has counted of a table and has not reported yet: (live, dead) rows by which it changes.
pub fn pending_rows(counts: &PgStat_TableStatus) -> (i64, i64) {
    (counts.t_counts.t_delta_live_tuples, counts.t_counts.t_delta_dead_tuples)
}

/// Counts rows that died.
pub fn count_dead(counts: &mut PgStat_TableStatus, rows: i64) {
    counts.t_counts.t_delta_dead_tuples += rows;
}

/// Counts a scan that begins.
pub fn count_scan(counts: &mut PgStat_TableStatus) {
    counts.t_counts.t_numscans += 1;
}

/// Counts rows that a scan has read.
pub fn count_returned(counts: &mut PgStat_TableStatus, rows: i64) {
    counts.t_counts.t_tuples_returned += rows;
}

/// Counts a row that was fetched through an index.
pub fn count_fetched(counts: &mut PgStat_TableStatus) {
    counts.t_counts.t_tuples_fetched += 1;
}

/// Sets how many live and dead rows a table has.
pub fn set_rows(entry: &mut PgStat_StatTabEntry, live: i64, dead: i64) {
    entry.n_live_tuples = live;
    entry.n_dead_tuples = dead;
}

/// How many dead rows a table has.
pub fn dead_rows(entry: &PgStat_StatTabEntry) -> i64 {
    entry.n_dead_tuples
}

/// When a table was vacuumed last, in the server's microseconds.
pub fn last_vacuum(entry: &PgStat_StatTabEntry) -> i64 {
    entry.vacuum_timestamp.max(entry.autovac_vacuum_timestamp)
}

/// How many rows were inserted and updated in a database.
pub fn written_rows(entry: &PgStat_StatDBEntry) -> i64 {
    entry.n_tuples_inserted + entry.n_tuples_updated
}

/// Whether a user owns a table.
///
/// # Safety
/// In a transaction.
pub unsafe fn owns_table(table: Oid, user: Oid) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::pg_class_ownercheck(table, user) }
}

/// Whether a user owns a database.
///
/// # Safety
/// In a transaction.
pub unsafe fn owns_database(database: Oid, user: Oid) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::pg_database_ownercheck(database, user) }
}

/// Whether a user may call a function.
///
/// # Safety
/// In a transaction.
pub unsafe fn may_execute(function: Oid, user: Oid) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::pg_proc_aclcheck(function, user, pg_sys::ACL_EXECUTE) == pg_sys::AclResult::ACLCHECK_OK }
}

/// The next datum of a sort, which is the caller's.
///
/// # Safety
/// The sort was performed.
pub unsafe fn sorted_datum(sort: *mut Tuplesortstate, value: &mut Datum, null: &mut bool) -> bool {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::tuplesort_getdatum(sort, true, value, null, std::ptr::null_mut()) }
}

/// VACUUM of tables in their own transactions, as a top-level statement. `_context` lives as long as that.
///
/// # Safety
/// As the server's.
pub unsafe fn vacuum(
    tables: *mut List,
    parameters: *mut pg_sys::VacuumParams,
    strategy: pg_sys::BufferAccessStrategy,
    _context: pg_sys::MemoryContext,
) {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::vacuum(tables, parameters, strategy, true) }
}

/// The buffers that VACUUM uses, in the current memory.
///
/// # Safety
/// As the server's.
pub unsafe fn vacuum_strategy() -> pg_sys::BufferAccessStrategy {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::GetAccessStrategy(pg_sys::BufferAccessStrategyType::BAS_VACUUM) }
}

/// The bits that make VACUUM do a table itself, not its TOAST table alone.
pub const VACUUM_MAIN: u32 = 0;

/// The table that an index to be vacuumed belongs to.
pub fn set_vacuumed_table(_info: &mut pg_sys::IndexVacuumInfo, _table: Relation) {}

/// The oldest xmin, the limit for freezing and that for MultiXacts of a rewrite of a table now, as CLUSTER
/// takes them.
///
/// # Safety
/// The table is open.
pub unsafe fn rewrite_limits(rel: Relation) -> (TransactionId, TransactionId, MultiXactId) {
    let (mut oldest_xmin, mut freeze) = (pg_sys::InvalidTransactionId, pg_sys::InvalidTransactionId);
    let (mut oldest_multi, mut freeze_multi) = Default::default();
    // SAFETY: a question about an open relation.
    unsafe {
        pg_sys::vacuum_set_xid_limits(
            rel,
            0,
            0,
            0,
            0,
            &raw mut oldest_xmin,
            &raw mut oldest_multi,
            &raw mut freeze,
            &raw mut freeze_multi,
        );
    }
    (oldest_xmin, freeze, freeze_multi)
}

/// Whether a replication slot can be read no more.
pub fn is_invalid(slot: &pg_sys::ReplicationSlotPersistentData) -> bool {
    slot.invalidated_at != 0
}

/// The type of join that gives the rows of its inner side that have no match.
pub const RIGHT_ANTI: Option<pg_sys::JoinType::Type> = None;

/// How many bytes end a record of killed rows. They say whether logical decoding reads the table, as it does
/// catalogs alone.
pub const CATALOG_FLAG: usize = 0;

/// The server's walks over trees of expressions.
pub mod tree {
    use super::{c_int, c_void};
    use pgrx::pg_sys::{Node, Query};

    type Visit = unsafe extern "C-unwind" fn(node: *mut Node, data: *mut c_void) -> bool;
    type Change = unsafe extern "C-unwind" fn(node: *mut Node, data: *mut c_void) -> *mut Node;

    #[allow(missing_docs, reason = "the server's own functions")]
    unsafe extern "C-unwind" {
        pub fn expression_tree_walker(node: *mut Node, walker: Option<Visit>, context: *mut c_void) -> bool;
        pub fn expression_tree_mutator(
            node: *mut Node,
            mutator: Option<Change>,
            context: *mut c_void,
        ) -> *mut Node;
        pub fn query_tree_mutator(
            query: *mut Query,
            mutator: Option<Change>,
            context: *mut c_void,
            flags: c_int,
        ) -> *mut Query;
    }
}

/// Notes an error where the caller of a function wants to be told of it and to go on. No caller does before
/// version 16.
///
/// # Safety
/// The server's call frame.
pub unsafe fn note_error(_call: FunctionCallInfo, _code: PgSqlErrorCode, _message: &CStr) -> bool {
    false
}

/// A range with these bounds, in the current memory.
///
/// # Safety
/// The entry and the bounds are of one range type.
pub unsafe fn range_of(
    _call: FunctionCallInfo,
    entry: *mut TypeCacheEntry,
    lower: &mut RangeBound,
    upper: &mut RangeBound,
) -> *mut RangeType {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::range_serialize(entry, lower, upper, false) }
}

/// 16 and later: an index may keep something of blocks, so that updates of its columns may be HOT.
pub const fn is_summarizing(_routine: &mut pg_sys::IndexAmRoutine) {}

/// A time that passed, as the server counts it.
pub fn instr_time(passed: std::time::Duration) -> pg_sys::instr_time {
    pg_sys::timespec {
        tv_sec: i64::try_from(passed.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(passed.subsec_nanos()),
    }
}

/// Makes the entries of a new row in all indexes of its table.
///
/// # Safety
/// The row was inserted; the indexes are open.
pub unsafe fn insert_index_entries(
    result: *mut pg_sys::ResultRelInfo,
    slot: *mut pg_sys::TupleTableSlot,
    estate: *mut pg_sys::EState,
) {
    let (conflict, arbiters) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::ExecInsertIndexTuples(result, slot, estate, false, false, conflict, arbiters);
    }
}
