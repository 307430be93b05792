//! PostgreSQL 16 and later. `pg15` has the same names.

use std::ffi::{CStr, c_char, c_int, c_void};

use pgrx::pg_sys::errcodes::PgSqlErrorCode;
use pgrx::pg_sys::{
    self, CommandId, Datum, FunctionCallInfo, HeapTuple, ItemPointer, List, LockTupleMode, MultiXactId,
    NodeTag, Oid, PgStat_StatDBEntry, PgStat_StatTabEntry, PgStat_TableStatus, RangeBound, RangeType,
    Relation, Snapshot, SubTransactionId, TM_FailureData, TM_Result, TableAmRoutine, TransactionId,
    Tuplesortstate, TypeCacheEntry,
};

/// Identity of a relation's file: tablespace, database, number.
pub type FileLocator = pg_sys::RelFileLocator;

/// The callback that gives a relation a new file.
pub type SetNewFile =
    unsafe extern "C-unwind" fn(Relation, *const FileLocator, c_char, *mut TransactionId, *mut MultiXactId);

/// The place of that callback in a routine.
pub fn set_new_file(routine: &mut TableAmRoutine) -> &mut Option<SetNewFile> {
    &mut routine.relation_set_new_filelocator
}

/// The number in the file's name: changes with every rewrite of the relation.
pub fn file_number(locator: &FileLocator) -> u32 {
    u32::from(locator.relNumber)
}

/// The file that a relation has now.
///
/// # Safety
/// The relation is open.
pub unsafe fn locator(rel: Relation) -> FileLocator {
    // SAFETY: it is open.
    unsafe { (*rel).rd_locator }
}

/// The subtransaction that has given a relation its present file. Invalid if that was committed.
///
/// # Safety
/// The relation is open.
pub unsafe fn new_file_subtransaction(rel: Relation) -> SubTransactionId {
    // SAFETY: it is open.
    unsafe { (*rel).rd_firstRelfilelocatorSubid }
}

/// Which indexes get an entry for the new version of a row.
pub type UpdateIndexes = pg_sys::TU_UpdateIndexes::Type;
/// All of them.
pub const ALL_INDEXES: UpdateIndexes = pg_sys::TU_UpdateIndexes::TU_All;

/// Whether any index gets one.
pub fn updates_indexes(which: UpdateIndexes) -> bool {
    which != pg_sys::TU_UpdateIndexes::TU_None
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
    let mut which = pg_sys::TU_UpdateIndexes::TU_None;
    // SAFETY: the caller's promise.
    unsafe { pg_sys::heap_update(rel, old, new, command, crosscheck, wait, failure, mode, &raw mut which) }
}

/// Counts an update of a row that is no HOT update and says nothing of the page.
///
/// # Safety
/// The relation is open.
pub unsafe fn count_heap_update(rel: Relation) {
    // SAFETY: it is open.
    unsafe { pg_sys::pgstat_count_heap_update(rel, false, false) }
}

/// What this backend has counted of a table and has not reported yet: (live, dead) rows by which it changes.
pub fn pending_rows(counts: &PgStat_TableStatus) -> (i64, i64) {
    (counts.counts.delta_live_tuples, counts.counts.delta_dead_tuples)
}

/// Counts rows that died.
pub fn count_dead(counts: &mut PgStat_TableStatus, rows: i64) {
    counts.counts.delta_dead_tuples += rows;
}

/// Counts a scan that begins.
pub fn count_scan(counts: &mut PgStat_TableStatus) {
    counts.counts.numscans += 1;
}

/// Counts rows that a scan has read.
pub fn count_returned(counts: &mut PgStat_TableStatus, rows: i64) {
    counts.counts.tuples_returned += rows;
}

/// Counts a row that was fetched through an index.
pub fn count_fetched(counts: &mut PgStat_TableStatus) {
    counts.counts.tuples_fetched += 1;
}

/// Sets how many live and dead rows a table has.
pub fn set_rows(entry: &mut PgStat_StatTabEntry, live: i64, dead: i64) {
    entry.live_tuples = live;
    entry.dead_tuples = dead;
}

/// How many dead rows a table has.
pub fn dead_rows(entry: &PgStat_StatTabEntry) -> i64 {
    entry.dead_tuples
}

/// When a table was vacuumed last, in the server's microseconds.
pub fn last_vacuum(entry: &PgStat_StatTabEntry) -> i64 {
    entry.last_vacuum_time.max(entry.last_autovacuum_time)
}

/// How many rows were inserted and updated in a database.
pub fn written_rows(entry: &PgStat_StatDBEntry) -> i64 {
    entry.tuples_inserted + entry.tuples_updated
}

/// Whether a user owns a table.
///
/// # Safety
/// In a transaction.
pub unsafe fn owns_table(table: Oid, user: Oid) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::object_ownercheck(pg_sys::RelationRelationId, table, user) }
}

/// Whether a user owns a database.
///
/// # Safety
/// In a transaction.
pub unsafe fn owns_database(database: Oid, user: Oid) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::object_ownercheck(pg_sys::DatabaseRelationId, database, user) }
}

/// Whether a user may call a function.
///
/// # Safety
/// In a transaction.
pub unsafe fn may_execute(function: Oid, user: Oid) -> bool {
    // SAFETY: a catalog look-up.
    unsafe {
        let mode = pg_sys::AclMode::from(pg_sys::ACL_EXECUTE);
        pg_sys::object_aclcheck(pg_sys::ProcedureRelationId, function, user, mode)
            == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// The next datum of a sort, which is the caller's.
///
/// # Safety
/// The sort was performed.
pub unsafe fn sorted_datum(sort: *mut Tuplesortstate, value: &mut Datum, null: &mut bool) -> bool {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::tuplesort_getdatum(sort, true, true, value, null, std::ptr::null_mut()) }
}

/// VACUUM of tables in their own transactions, as a top-level statement. `context` lives as long as that.
///
/// # Safety
/// As the server's.
pub unsafe fn vacuum(
    tables: *mut List,
    parameters: *mut pg_sys::VacuumParams,
    strategy: pg_sys::BufferAccessStrategy,
    context: pg_sys::MemoryContext,
) {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::vacuum(tables, parameters, strategy, context, true) }
}

/// The buffers that VACUUM uses, in the current memory. Null: all.
///
/// # Safety
/// As the server's.
pub unsafe fn vacuum_strategy() -> pg_sys::BufferAccessStrategy {
    // SAFETY: a plain setting of the server's.
    unsafe {
        let kind = pg_sys::BufferAccessStrategyType::BAS_VACUUM;
        pg_sys::GetAccessStrategyWithSize(kind, pg_sys::VacuumBufferUsageLimit)
    }
}

/// The bits that make VACUUM do a table itself, not its TOAST table alone.
pub const VACUUM_MAIN: u32 = pg_sys::VACOPT_PROCESS_MAIN;

/// The table that an index to be vacuumed belongs to.
pub fn set_vacuumed_table(info: &mut pg_sys::IndexVacuumInfo, table: Relation) {
    info.heaprel = table;
}

/// The oldest xmin, the limit for freezing and that for MultiXacts of a rewrite of a table now, as CLUSTER
/// takes them.
///
/// # Safety
/// The table is open.
pub unsafe fn rewrite_limits(rel: Relation) -> (TransactionId, TransactionId, MultiXactId) {
    let parameters = pg_sys::VacuumParams::default();
    let mut limits = pg_sys::VacuumCutoffs::default();
    // SAFETY: a question about an open relation.
    unsafe { pg_sys::vacuum_get_cutoffs(rel, &raw const parameters, &raw mut limits) };
    (limits.OldestXmin, limits.FreezeLimit, limits.MultiXactCutoff)
}

/// Whether a replication slot can be read no more.
pub fn is_invalid(slot: &pg_sys::ReplicationSlotPersistentData) -> bool {
    slot.invalidated != pg_sys::ReplicationSlotInvalidationCause::RS_INVAL_NONE
}

/// The type of join that gives the rows of its inner side that have no match.
pub const RIGHT_ANTI: Option<pg_sys::JoinType::Type> = Some(pg_sys::JoinType::JOIN_RIGHT_ANTI);

/// How many bytes end a record of killed rows. They say whether logical decoding reads the table, as it does
/// catalogs alone.
pub const CATALOG_FLAG: usize = 1;

/// The server's walks over trees of expressions.
pub mod tree {
    use super::{c_int, c_void};
    use pgrx::pg_sys::{Node, Query};

    type Visit = unsafe extern "C-unwind" fn(node: *mut Node, data: *mut c_void) -> bool;
    type Change = unsafe extern "C-unwind" fn(node: *mut Node, data: *mut c_void) -> *mut Node;

    #[allow(missing_docs, reason = "the server's own functions")]
    unsafe extern "C-unwind" {
        #[link_name = "expression_tree_walker_impl"]
        pub fn expression_tree_walker(node: *mut Node, walker: Option<Visit>, context: *mut c_void) -> bool;
        #[link_name = "expression_tree_mutator_impl"]
        pub fn expression_tree_mutator(
            node: *mut Node,
            mutator: Option<Change>,
            context: *mut c_void,
        ) -> *mut Node;
        #[link_name = "query_tree_mutator_impl"]
        pub fn query_tree_mutator(
            query: *mut Query,
            mutator: Option<Change>,
            context: *mut c_void,
            flags: c_int,
        ) -> *mut Query;
    }
}

/// Notes an error where the caller of a function wants to be told of it and to go on. False if it does not:
/// the error has to be raised. The caller that is told looks at no result.
///
/// # Safety
/// The server's call frame.
pub unsafe fn note_error(call: FunctionCallInfo, code: PgSqlErrorCode, message: &CStr) -> bool {
    unsafe extern "C-unwind" {
        fn errcode(code: c_int) -> c_int;
    }
    // SAFETY: the context is null or a node; one of this kind has these fields.
    unsafe {
        let context = (*call).context;
        if context.is_null() || (*context).type_ != NodeTag::T_ErrorSaveContext {
            return false;
        }
        if pg_sys::errsave_start(context, std::ptr::null()) {
            errcode(code as c_int);
            pg_sys::errmsg_internal(c"%s".as_ptr(), message.as_ptr());
            pg_sys::errsave_finish(context, c"uint8".as_ptr(), 0, c"colonnade".as_ptr());
        }
        true
    }
}

/// A range with these bounds, in the current memory.
///
/// # Safety
/// The entry and the bounds are of one range type.
pub unsafe fn range_of(
    call: FunctionCallInfo,
    entry: *mut TypeCacheEntry,
    lower: &mut RangeBound,
    upper: &mut RangeBound,
) -> *mut RangeType {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::range_serialize(entry, lower, upper, false, (*call).context) }
}

/// Notes that an index keeps something of blocks, not of rows: updates of its columns may be HOT all the
/// same.
pub fn is_summarizing(routine: &mut pg_sys::IndexAmRoutine) {
    routine.amsummarizing = true;
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
        pg_sys::ExecInsertIndexTuples(result, slot, estate, false, false, conflict, arbiters, false);
    }
}
