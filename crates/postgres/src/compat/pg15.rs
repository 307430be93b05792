//! PostgreSQL 15.

use std::ffi::{c_char, c_void};

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::{self, BlockNumber, Buffer, ItemPointer, Relation, Snapshot, TransactionId};

use crate::host::{buffer, relation};

/// Place of AddinShmemInitLock among the server's locks.
pub const SHMEM_INIT_LOCK: usize = 21;
/// Place of ProcArrayLock.
const PROC_ARRAY_LOCK: usize = 4;
/// Place of ReplicationSlotControlLock.
const REPLICATION_SLOT_LOCK: usize = 37;

/// One of the server's own locks, by its place.
pub unsafe fn main_lock(place: usize) -> *mut pg_sys::LWLock {
    // SAFETY: the places above are those of the server's list.
    unsafe { &raw mut (*pg_sys::MainLWLockArray.add(place)).lock }
}

/// Declares this process one that does maintenance: whoever waits for it longer than `deadlock_timeout`
/// interrupts it (SIGINT), and who needs the database for itself ends it, as it would autovacuum's.
pub unsafe fn declare_maintenance() {
    // SAFETY: as the server sets the flags of its own processes.
    unsafe {
        let lock = main_lock(PROC_ARRAY_LOCK);
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let me = pg_sys::MyProc;
        (*me).statusFlags |= pg_sys::PROC_IS_AUTOVACUUM as u8;
        if let Ok(at) = usize::try_from((*me).pgxactoff) {
            *(*pg_sys::ProcGlobal).statusFlags.add(at) = (*me).statusFlags;
        }
        pg_sys::LWLockRelease(lock);
    }
}

/// `statement_timeout`'s number among the server's timeouts.
const STATEMENT_TIMEOUT: std::ffi::c_int = 3;

/// From now on the statement may take so many milliseconds.
pub unsafe fn start_timeout(milliseconds: i32) {
    unsafe extern "C-unwind" {
        fn enable_timeout_after(id: std::ffi::c_int, milliseconds: std::ffi::c_int);
    }
    // SAFETY: a call into the server, guarded so that its ERROR unwinds.
    unsafe { pg_guard_ffi_boundary(|| enable_timeout_after(STATEMENT_TIMEOUT, milliseconds)) }
}

/// Undoes `start_timeout`.
pub unsafe fn stop_timeout() {
    unsafe extern "C-unwind" {
        fn disable_timeout(id: std::ffi::c_int, keep_indicator: bool);
    }
    // SAFETY: as above.
    unsafe { pg_guard_ffi_boundary(|| disable_timeout(STATEMENT_TIMEOUT, false)) }
}

/// Whether rows may be taken away that a snapshot still sees, which then is to meet an ERROR
/// (`old_snapshot_threshold`, which newer servers do not have).
pub fn may_outlive_rows() -> bool {
    // SAFETY: a plain setting of the server's.
    unsafe { pg_sys::old_snapshot_threshold >= 0 }
}

/// A logical replication slot of this database whose output plugin does not go by publications.
#[derive(Clone, PartialEq, Eq)]
pub struct DecodingSlot {
    /// Its name.
    pub name: String,
    /// Its output plugin; empty while the slot is being made.
    pub plugin: String,
}

/// The logical replication slots of this database whose output plugins do not go by publications, at most
/// `limit` of them. One that has no plugin yet is among them; one that was invalidated, so that nobody can
/// read from it any more, is not. A look at shared memory.
pub unsafe fn decoding_slots(limit: usize) -> Vec<DecodingSlot> {
    // SAFETY: the server's array of slots, under the lock that keeps slots from coming and going.
    unsafe {
        if pg_sys::wal_level < pg_sys::WalLevel::WAL_LEVEL_LOGICAL as i32 {
            return Vec::new();
        }
        let count = usize::try_from(pg_sys::max_replication_slots).unwrap_or(0);
        let first =
            (&raw mut (*pg_sys::ReplicationSlotCtl).replication_slots).cast::<pg_sys::ReplicationSlot>();
        let text = |name: &pg_sys::NameData| {
            let bytes = name.data.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0);
            String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
        };
        let lock = main_lock(REPLICATION_SLOT_LOCK);
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_SHARED);
        let slots = (0..count).map(|at| first.add(at)).filter_map(|slot| {
            let data = &(*slot).data;
            if !(*slot).in_use || data.database != pg_sys::MyDatabaseId || data.invalidated_at != 0 {
                return None;
            }
            let plugin = text(&data.plugin);
            (plugin != "pgoutput").then(|| DecodingSlot { name: text(&data.name), plugin })
        });
        let found = slots.take(limit).collect();
        pg_sys::LWLockRelease(lock);
        found
    }
}

/// Identity of a relation's file: tablespace, database, number.
pub type FileLocator = pg_sys::RelFileNode;

/// The number in the file's name: changes with every rewrite of the relation.
pub unsafe fn file_number(locator: &FileLocator) -> u32 {
    u32::from(locator.relNode)
}

/// The file a relation has now.
pub unsafe fn locator(rel: Relation) -> FileLocator {
    // SAFETY: rel is open.
    unsafe { (*rel).rd_node }
}

mod c {
    use super::{BlockNumber, ItemPointer, Relation, Snapshot, TransactionId};
    unsafe extern "C-unwind" {
        pub fn PredicateLockRelation(relation: Relation, snapshot: Snapshot);
        pub fn PredicateLockTID(relation: Relation, tid: ItemPointer, snapshot: Snapshot, xid: TransactionId);
        pub fn CheckForSerializableConflictOutNeeded(relation: Relation, snapshot: Snapshot) -> bool;
        pub fn CheckForSerializableConflictOut(relation: Relation, xid: TransactionId, snapshot: Snapshot);
        pub fn CheckForSerializableConflictIn(relation: Relation, tid: ItemPointer, block: BlockNumber);
        pub fn TransferPredicateLocksToHeapRelation(relation: Relation);
    }
}

/// Takes a serializable transaction's predicate lock on a whole relation.
pub unsafe fn predicate_lock_relation(rel: Relation, snapshot: Snapshot) {
    // SAFETY: a call into the server, guarded so that its ERROR unwinds.
    unsafe { pg_guard_ffi_boundary(|| c::PredicateLockRelation(rel, snapshot)) }
}

/// Whether this transaction, or that of a parallel worker's leader, is a serializable one.
#[inline]
pub fn is_serializable() -> bool {
    // SAFETY: a plain number of the server's.
    unsafe { pg_sys::XactIsoLevel == pg_sys::XACT_SERIALIZABLE as i32 }
}

/// Takes a predicate lock on one row, unless transaction `inserter` is the reader itself.
#[inline]
pub unsafe fn predicate_lock_tid(
    rel: Relation,
    tid: ItemPointer,
    snapshot: Snapshot,
    inserter: TransactionId,
) {
    #[inline(never)]
    unsafe fn lock(rel: Relation, tid: ItemPointer, snapshot: Snapshot, inserter: TransactionId) {
        // SAFETY: as above.
        unsafe { pg_guard_ffi_boundary(|| c::PredicateLockTID(rel, tid, snapshot, inserter)) }
    }
    if is_serializable() {
        // SAFETY: as above.
        unsafe { lock(rel, tid, snapshot, inserter) }
    }
}

/// Whether a read under `snapshot` has to look for conflicts with writes that it does not see.
#[inline]
pub unsafe fn serializable_reads(rel: Relation, snapshot: Snapshot) -> bool {
    #[inline(never)]
    unsafe fn needed(rel: Relation, snapshot: Snapshot) -> bool {
        // SAFETY: as above.
        unsafe { pg_guard_ffi_boundary(|| c::CheckForSerializableConflictOutNeeded(rel, snapshot)) }
    }
    // SAFETY: as above.
    is_serializable() && unsafe { needed(rel, snapshot) }
}

/// Reports a read that did not see what `xid` wrote.
pub unsafe fn serializable_missed(rel: Relation, xid: TransactionId, snapshot: Snapshot) {
    // SAFETY: as above.
    unsafe { pg_guard_ffi_boundary(|| c::CheckForSerializableConflictOut(rel, xid, snapshot)) }
}

/// Reports a write to the relation, to be matched with others' predicate locks on it.
pub unsafe fn serializable_write(rel: Relation) {
    // SAFETY: as above.
    unsafe {
        pg_guard_ffi_boundary(|| {
            c::CheckForSerializableConflictIn(rel, std::ptr::null_mut(), pg_sys::InvalidBlockNumber);
        });
    }
}

/// Reports a write to one row, to be matched with others' predicate locks on it, its block and its relation.
pub unsafe fn serializable_write_row(rel: Relation, tid: ItemPointer, block: BlockNumber) {
    // SAFETY: as above.
    unsafe { pg_guard_ffi_boundary(|| c::CheckForSerializableConflictIn(rel, tid, block)) }
}

/// Turns every predicate lock on rows, pages and indexes of the relation into one on the whole relation.
pub unsafe fn transfer_predicate_locks(rel: Relation) {
    // SAFETY: as above.
    unsafe { pg_guard_ffi_boundary(|| c::TransferPredicateLocksToHeapRelation(rel)) }
}

/// The type of `relpersistence` in callbacks.
pub type Persistence = c_char;

mod rewrite {
    use pgrx::pg_sys::{HeapTuple, LOCKTAG, List, MultiXactId, Oid, Relation, TransactionId};
    use std::ffi::{c_char, c_int, c_void};
    unsafe extern "C-unwind" {
        pub fn get_partition_ancestors(table: Oid) -> *mut List;
        pub fn find_all_inheritors(table: Oid, lock: c_int, parents: *mut *mut List) -> *mut List;
        pub fn LockHeldByMe(tag: *const LOCKTAG, mode: c_int) -> bool;
        pub fn LockHasWaiters(tag: *const LOCKTAG, mode: c_int, session: bool) -> bool;
        pub fn make_new_heap(old: Oid, tablespace: Oid, method: Oid, persistence: c_char, lock: c_int)
        -> Oid;
        pub fn finish_heap_swap(
            old: Oid,
            new: Oid,
            is_system_catalog: bool,
            swap_toast_by_content: bool,
            check_constraints: bool,
            is_internal: bool,
            frozen: TransactionId,
            cutoff: MultiXactId,
            persistence: c_char,
        );
        pub fn begin_heap_rewrite(
            old: Relation,
            new: Relation,
            oldest_xmin: TransactionId,
            freeze: TransactionId,
            freeze_multi: MultiXactId,
        ) -> *mut c_void;
        pub fn rewrite_heap_tuple(state: *mut c_void, old: HeapTuple, new: HeapTuple);
        pub fn rewrite_heap_dead_tuple(state: *mut c_void, old: HeapTuple) -> bool;
        pub fn end_heap_rewrite(state: *mut c_void);
    }
}

/// Makes an empty table like `old` that is to take its place. Returns its OID.
pub unsafe fn make_new_heap(
    old: pg_sys::Oid,
    tablespace: pg_sys::Oid,
    method: pg_sys::Oid,
    persistence: Persistence,
    lock: i32,
) -> pg_sys::Oid {
    // SAFETY: a call into the server, guarded so that its ERROR unwinds.
    unsafe { pg_guard_ffi_boundary(|| rewrite::make_new_heap(old, tablespace, method, persistence, lock)) }
}

/// What a rewrite of a table may drop and freeze.
pub struct RewriteLimits {
    /// Rows that were dead before are dead to every snapshot.
    pub oldest_xmin: TransactionId,
    /// Older inserters are frozen; becomes the table's relfrozenxid.
    pub freeze: TransactionId,
    /// The same for locks that several hold.
    pub freeze_multi: pg_sys::MultiXactId,
}

/// The limits for a rewrite of `rel` now, as CLUSTER takes them.
pub unsafe fn rewrite_limits(rel: Relation) -> RewriteLimits {
    // SAFETY: rel is open and locked.
    unsafe {
        let (mut oldest_xmin, mut freeze) = (pg_sys::InvalidTransactionId, pg_sys::InvalidTransactionId);
        let (mut oldest_multi, mut freeze_multi) = Default::default();
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
        // A snapshot that the server would let meet an ERROR in heap pages finds no such in stripes.
        if may_outlive_rows() {
            oldest_xmin = pg_sys::GetOldestNonRemovableTransactionId(rel);
            freeze = pg_sys::TransactionIdOlder(freeze, oldest_xmin);
        }
        // What pg_class says must not go backwards.
        let form = (*rel).rd_rel;
        if pg_sys::TransactionIdPrecedes(freeze, (*form).relfrozenxid) {
            freeze = (*form).relfrozenxid;
        }
        if pg_sys::MultiXactIdPrecedes(freeze_multi, (*form).relminmxid) {
            freeze_multi = (*form).relminmxid;
        }
        RewriteLimits { oldest_xmin, freeze, freeze_multi }
    }
}

/// Gives `old` the files of `new`, drops `new` and builds the indexes of `old` anew.
pub unsafe fn finish_heap_swap(
    old: pg_sys::Oid,
    new: pg_sys::Oid,
    limits: &RewriteLimits,
    persistence: Persistence,
) {
    let (frozen, cutoff) = (limits.freeze, limits.freeze_multi);
    // SAFETY: as above.
    unsafe {
        pg_guard_ffi_boundary(|| {
            rewrite::finish_heap_swap(old, new, false, false, false, true, frozen, cutoff, persistence);
        });
    }
}

/// The server's own rewrite of heap pages, which keeps who wrote a row, who killed it, and which version
/// follows which. While one is going on nobody else adds pages to the
/// new file.
pub struct HeapRewrite(*mut c_void);

impl HeapRewrite {
    /// Begins one, behind the last block of `new`.
    pub unsafe fn begin(old: Relation, new: Relation, limits: &RewriteLimits) -> Self {
        let RewriteLimits { oldest_xmin, freeze, freeze_multi } = *limits;
        // SAFETY: both are open and locked; a call into the server, guarded so that its ERROR unwinds.
        unsafe {
            Self(pg_guard_ffi_boundary(|| {
                rewrite::begin_heap_rewrite(old, new, oldest_xmin, freeze, freeze_multi)
            }))
        }
    }

    /// Writes `new`, a tuple of its own, with what the header of `old` says of who sees it.
    pub unsafe fn write(&mut self, old: pg_sys::HeapTuple, new: pg_sys::HeapTuple) {
        // SAFETY: as above.
        unsafe { pg_guard_ffi_boundary(|| rewrite::rewrite_heap_tuple(self.0, old, new)) }
    }

    /// Tells of a tuple that is dead to everybody, and so is what it has replaced.
    pub unsafe fn leave_out(&mut self, old: pg_sys::HeapTuple) {
        // SAFETY: as above.
        unsafe {
            pg_guard_ffi_boundary(|| rewrite::rewrite_heap_dead_tuple(self.0, old));
        }
    }

    /// Writes what is left.
    pub unsafe fn end(self) {
        // SAFETY: as above.
        unsafe { pg_guard_ffi_boundary(|| rewrite::end_heap_rewrite(self.0)) }
    }
}

/// What every snapshot of other sessions sees that read tables of this database, standbys' included: what was
/// committed before. The caller asks of transactions that have
/// ended, so each snapshot that does not see one says so by its xmin already.
pub unsafe fn oldest_xmin_of_others() -> TransactionId {
    // SAFETY: the server's array of processes, under the lock that snapshots are taken under; single numbers
    // are read at once.
    unsafe {
        let mut oldest = pg_sys::ReadNextTransactionId();
        let lock = main_lock(PROC_ARRAY_LOCK);
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_SHARED);
        let count = (*pg_sys::ProcGlobal).allProcCount as usize;
        for at in 0..count {
            let process = (*pg_sys::ProcGlobal).allProcs.add(at);
            let (xmin, flags) =
                ((&raw const (*process).xmin).read_volatile(), u32::from((*process).statusFlags));
            let database = (*process).databaseId;
            let elsewhere = database != pg_sys::MyDatabaseId
                && database != pg_sys::Oid::INVALID
                && flags & pg_sys::PROC_AFFECTS_ALL_HORIZONS == 0;
            let ignored = pg_sys::PROC_IN_VACUUM | pg_sys::PROC_IN_LOGICAL_DECODING;
            if process == pg_sys::MyProc || elsewhere || flags & ignored != 0 {
                continue;
            }
            oldest = pg_sys::TransactionIdOlder(oldest, xmin);
        }
        pg_sys::LWLockRelease(lock);
        let (mut slots, mut catalogs) = (pg_sys::InvalidTransactionId, pg_sys::InvalidTransactionId);
        pg_sys::ProcArrayGetReplicationSlotXmin(&raw mut slots, &raw mut catalogs);
        pg_sys::TransactionIdOlder(oldest, slots)
    }
}

/// The partitioned tables above a partition, nearest first, as a list of OIDs.
pub unsafe fn partition_ancestors(table: pg_sys::Oid) -> *mut pg_sys::List {
    // SAFETY: as above.
    unsafe { pg_guard_ffi_boundary(|| rewrite::get_partition_ancestors(table)) }
}

/// A table and all that inherit from it, partitions included, as a list of OIDs. Locks none of them.
pub unsafe fn inheritors(table: pg_sys::Oid) -> *mut pg_sys::List {
    // SAFETY: as above.
    unsafe {
        pg_guard_ffi_boundary(|| {
            rewrite::find_all_inheritors(table, pg_sys::NoLock as i32, std::ptr::null_mut())
        })
    }
}

/// Whether this session holds just this lock on a table of its database.
pub unsafe fn holds_lock(table: pg_sys::Oid, mode: u32) -> bool {
    // SAFETY: as above; the tag names a relation.
    unsafe { holds(table, 0, pg_sys::LockTagType::LOCKTAG_RELATION, mode) }
}

/// Whether this session holds just this lock on a page of a table of its database.
pub unsafe fn holds_page_lock(table: pg_sys::Oid, block: BlockNumber, mode: u32) -> bool {
    // SAFETY: as above; the tag names a page.
    unsafe { holds(table, block, pg_sys::LockTagType::LOCKTAG_PAGE, mode) }
}

/// Whether somebody waits for a lock on a page of a table of this database that this session holds in just
/// this mode.
pub unsafe fn page_lock_has_waiters(table: pg_sys::Oid, block: BlockNumber, mode: u32) -> bool {
    // SAFETY: as above.
    unsafe {
        let tag = lock_tag(table, block, pg_sys::LockTagType::LOCKTAG_PAGE);
        pg_guard_ffi_boundary(|| rewrite::LockHasWaiters(&raw const tag, mode as i32, false))
    }
}

unsafe fn holds(table: pg_sys::Oid, block: BlockNumber, kind: pg_sys::LockTagType::Type, mode: u32) -> bool {
    // SAFETY: the callers' promise.
    unsafe {
        let tag = lock_tag(table, block, kind);
        pg_guard_ffi_boundary(|| rewrite::LockHeldByMe(&raw const tag, mode as i32))
    }
}

unsafe fn lock_tag(
    table: pg_sys::Oid,
    block: BlockNumber,
    kind: pg_sys::LockTagType::Type,
) -> pg_sys::LOCKTAG {
    pg_sys::LOCKTAG {
        // SAFETY: a plain number of the server's.
        locktag_field1: unsafe { pg_sys::MyDatabaseId }.into(),
        locktag_field2: table.into(),
        locktag_field3: block,
        locktag_field4: 0,
        locktag_type: kind as u8,
        locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
    }
}

/// The first fields of the server's `pg_locale_struct`.
#[repr(C)]
struct PgLocale {
    provider: c_char,
    deterministic: bool,
    /// A `locale_t` where the provider is the C library; ICU's name of the locale where it is ICU.
    locale: *mut c_void,
    /// ICU's collator.
    collator: *const c_void,
}

/// What orders the text of a collation.
#[derive(Debug, Clone, Copy)]
pub enum Locale {
    /// The C library's locale, null for that of the process.
    C(*mut c_void),
    /// A collator of ICU.
    Icu(*const c_void),
    /// Something else.
    Other,
}

/// What orders the text of a collation.
pub unsafe fn locale(collation: pg_sys::Oid) -> Locale {
    unsafe extern "C-unwind" {
        fn pg_newlocale_from_collation(collation: pg_sys::Oid) -> *mut PgLocale;
    }
    // SAFETY: a call into the server, guarded so that its ERROR unwinds; what it gives lives as long as the
    // process.
    unsafe {
        let locale = pg_guard_ffi_boundary(|| pg_newlocale_from_collation(collation));
        if locale.is_null() {
            return Locale::C(std::ptr::null_mut());
        }
        match (*locale).provider as u8 {
            pg_sys::COLLPROVIDER_LIBC => Locale::C((*locale).locale),
            pg_sys::COLLPROVIDER_ICU => Locale::Icu((*locale).collator),
            _ => Locale::Other,
        }
    }
}

/// Whether the current user may call a function.
pub unsafe fn may_execute(function: pg_sys::Oid) -> bool {
    // SAFETY: a catalog look-up.
    unsafe {
        let mode = pg_sys::ACL_EXECUTE;
        pg_sys::pg_proc_aclcheck(function, pg_sys::GetUserId(), mode) == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// How many columns the key has by which a partition's table is divided; 0 where there is none any more.
pub unsafe fn partition_key_columns(partition: pg_sys::Oid) -> i32 {
    unsafe extern "C-unwind" {
        fn get_partition_parent(relid: pg_sys::Oid, even_if_detached: bool) -> pg_sys::Oid;
    }
    // SAFETY: catalog look-ups; the fixed part of a row of pg_partitioned_table begins with its table, the
    // strategy and the number of columns.
    unsafe {
        let table = pg_guard_ffi_boundary(|| get_partition_parent(partition, true));
        let cache = pg_sys::SysCacheIdentifier::PARTRELID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, table.into());
        if tuple.is_null() {
            return 0;
        }
        let row = &*pg_sys::GETSTRUCT(tuple).cast::<PartitionedTable>();
        let columns = i32::from(row.columns);
        pg_sys::ReleaseSysCache(tuple);
        columns
    }
}

/// The first columns of pg_partitioned_table.
#[repr(C)]
struct PartitionedTable {
    table: pg_sys::Oid,
    strategy: c_char,
    columns: i16,
}

/// Copies a block of the main fork as it is on disk, past the buffers. The block is below the end of the
/// file.
pub unsafe fn read_from_disk(rel: Relation, block: BlockNumber, image: &mut [u8; pg_sys::BLCKSZ as usize]) {
    // SAFETY: rel is open; the server fills one page.
    unsafe {
        let file = pg_sys::smgropen((*rel).rd_node, (*rel).rd_backend);
        pg_sys::smgrread(file, pg_sys::ForkNumber::MAIN_FORKNUM, block, image.as_mut_ptr().cast());
    }
}

/// Whether two values of one type have the same bytes.
pub unsafe fn same_bytes(one: pg_sys::Datum, other: pg_sys::Datum, by_value: bool, length: i16) -> bool {
    unsafe extern "C-unwind" {
        fn datumIsEqual(
            one: pg_sys::Datum,
            other: pg_sys::Datum,
            by_value: bool,
            length: std::ffi::c_int,
        ) -> bool;
    }
    // SAFETY: a call into the server, guarded so that its ERROR unwinds; the values are of the type that is
    // described.
    unsafe { pg_guard_ffi_boundary(|| datumIsEqual(one, other, by_value, length.into())) }
}

mod pruning {
    use pgrx::pg_sys::{Bitmapset, PartitionPruneInfo, PartitionPruneState, PlanState};
    use std::ffi::c_int;
    unsafe extern "C-unwind" {
        pub fn ExecInitPartitionPruning(
            node: *mut PlanState,
            inputs: c_int,
            partitions: *mut PartitionPruneInfo,
            remaining: *mut *mut Bitmapset,
        ) -> *mut PartitionPruneState;
        pub fn ExecFindMatchingSubPlans(state: *mut PartitionPruneState, initial: bool) -> *mut Bitmapset;
    }
}

/// Finds out, when a statement starts, which inputs of an Append the values known by then leave. Gives the
/// node an expression context. Returns what `matching_inputs` needs, and the set.
pub unsafe fn begin_pruning(
    node: *mut pg_sys::PlanState,
    inputs: i32,
    partitions: *mut pg_sys::PartitionPruneInfo,
) -> (*mut pg_sys::PartitionPruneState, *mut pg_sys::Bitmapset) {
    let mut remaining = std::ptr::null_mut();
    // SAFETY: a call into the server, guarded so that its ERROR unwinds.
    let state = unsafe {
        pg_guard_ffi_boundary(|| {
            pruning::ExecInitPartitionPruning(node, inputs, partitions, &raw mut remaining)
        })
    };
    (state, remaining)
}

/// Which of the inputs that were left the parameters of now leave, counted without those that were not. An
/// ERROR jumps past the caller, who guards.
pub unsafe fn matching_inputs(state: *mut pg_sys::PartitionPruneState) -> *mut pg_sys::Bitmapset {
    // SAFETY: a call into the server.
    unsafe { pruning::ExecFindMatchingSubPlans(state, false) }
}

/// Numbers of columns of `pg_aggregate`.
pub mod aggregate_column {
    /// The transition function.
    pub const STEP: i16 = 4;
    /// The final function.
    pub const LAST: i16 = 5;
    /// Whether the final function gets further arguments.
    pub const LAST_EXTRA: i16 = 12;
    /// The initial state.
    pub const INITIAL: i16 = 21;
}

/// Logs that rows which `newest` and older transactions have killed are about to lose their traces: a standby
/// replays it by ending queries that may still see such a row. (The record is the one of a btree page that is
/// used again.)
pub unsafe fn log_conflict_horizon(rel: Relation, newest: TransactionId) {
    const XLOG_BTREE_REUSE_PAGE: u8 = 0xD0;
    #[repr(C)]
    struct ReusePage {
        locator: FileLocator,
        block: BlockNumber,
        newest: u64,
    }
    // SAFETY: rel is open; the record's data is copied by the server.
    unsafe {
        let next = pg_sys::ReadNextFullTransactionId().value;
        let (epoch, newest) = (next >> 32, u64::from(newest.into_inner()));
        // Of the epoch before where the counter has wrapped since.
        let epoch = if newest > next & u64::from(u32::MAX) { epoch.saturating_sub(1) } else { epoch };
        let mut record = ReusePage { locator: locator(rel), block: 0, newest: epoch << 32 | newest };
        pg_sys::XLogBeginInsert();
        pg_sys::XLogRegisterData((&raw mut record).cast(), size_of::<ReusePage>() as i32);
        pg_sys::XLogInsert(pg_sys::RmgrIds::RM_BTREE_ID as u8, XLOG_BTREE_REUSE_PAGE);
    }
}

/// Logs that xmax and its bits on a row's version have changed: somebody has locked the row by an older
/// version. `cleared`: its page was all-frozen in the visibility map before. In a critical section; the page
/// is locked.
pub unsafe fn log_version_locked(rel: Relation, page: Buffer, tuple: &pg_sys::HeapTupleData, cleared: bool) {
    const XLOG_HEAP2_LOCK_UPDATED: u8 = 0x60;
    #[repr(C)]
    struct LockUpdated {
        xmax: TransactionId,
        offset: u16,
        bits: u8,
        flags: u8,
    }
    // SAFETY: the record's data is copied by the server.
    unsafe {
        if !relation::needs_wal(rel) {
            return;
        }
        let header = tuple.t_data;
        let of = |word: u16, server: u32, ours: u8| if u32::from(word) & server != 0 { ours } else { 0 };
        let (one, two) = ((*header).t_infomask, (*header).t_infomask2);
        let mut record = LockUpdated {
            xmax: (*header).t_choice.t_heap.t_xmax,
            offset: tuple.t_self.ip_posid,
            bits: of(one, pg_sys::HEAP_XMAX_IS_MULTI, 0x01)
                | of(one, pg_sys::HEAP_XMAX_LOCK_ONLY, 0x02)
                | of(one, pg_sys::HEAP_XMAX_EXCL_LOCK, 0x04)
                | of(one, pg_sys::HEAP_XMAX_KEYSHR_LOCK, 0x08)
                | of(two, pg_sys::HEAP_KEYS_UPDATED, 0x10),
            flags: u8::from(cleared),
        };
        pg_sys::XLogBeginInsert();
        pg_sys::XLogRegisterBuffer(0, page, pg_sys::REGBUF_STANDARD as u8);
        pg_sys::XLogRegisterData((&raw mut record).cast(), size_of::<LockUpdated>() as i32);
        let at = pg_sys::XLogInsert(pg_sys::RmgrIds::RM_HEAP2_ID as u8, XLOG_HEAP2_LOCK_UPDATED);
        buffer::set_lsn(buffer::page(page), at);
    }
}

/// Logs that these line pointers of a page of a heap table have been made dead, and that no snapshot has
/// anything to say about their tuples. In a critical section; the page is locked for cleanup.
pub unsafe fn log_made_dead(page: Buffer, offsets: &mut [u16]) {
    const XLOG_HEAP2_PRUNE: u8 = 0x10;
    #[repr(C)]
    struct Prune {
        newest: TransactionId,
        redirected: u16,
        dead: u16,
    }
    // SAFETY: the record's data is copied by the server.
    unsafe {
        let dead = offsets.len() as u16;
        let mut record = Prune { newest: pg_sys::InvalidTransactionId, redirected: 0, dead };
        pg_sys::XLogBeginInsert();
        pg_sys::XLogRegisterData((&raw mut record).cast(), size_of::<Prune>() as i32);
        pg_sys::XLogRegisterBuffer(0, page, pg_sys::REGBUF_STANDARD as u8);
        pg_sys::XLogRegisterBufData(0, offsets.as_mut_ptr().cast(), size_of_val(offsets) as i32);
        let at = pg_sys::XLogInsert(pg_sys::RmgrIds::RM_HEAP2_ID as u8, XLOG_HEAP2_PRUNE);
        buffer::set_lsn(buffer::page(page), at);
    }
}

/// Has the shared statistics say how many live and dead rows a table has, once this backend has told what it
/// has counted and not told yet. Nothing where there is no entry.
pub unsafe fn set_row_counts(rel: Relation, live: i64, dead: i64) {
    /// What utils/pgstat_internal.h calls PgStat_EntryRef: its first fields.
    #[repr(C)]
    struct EntryRef {
        hash_entry: *mut std::ffi::c_void,
        shared: *mut SharedRelation,
    }
    /// PgStatShared_Relation.
    #[repr(C)]
    struct SharedRelation {
        magic: u32,
        lock: pg_sys::LWLock,
        counts: pg_sys::PgStat_StatTabEntry,
    }
    unsafe extern "C-unwind" {
        fn pgstat_get_entry_ref_locked(
            kind: i32,
            database: pg_sys::Oid,
            object: pg_sys::Oid,
            nowait: bool,
        ) -> *mut EntryRef;
        fn pgstat_unlock_entry(entry: *mut EntryRef);
    }
    /// PGSTAT_KIND_RELATION.
    const RELATION: i32 = 2;
    // SAFETY: rel is open. Calls into the server, guarded so that an ERROR unwinds; between lock and unlock
    // are stores only.
    unsafe {
        let info = (*rel).pgstat_info;
        if info.is_null() && !(*rel).pgstat_enabled {
            return;
        }
        let untold = if info.is_null() {
            (0, 0)
        } else {
            ((*info).t_counts.t_delta_live_tuples, (*info).t_counts.t_delta_dead_tuples)
        };
        pg_guard_ffi_boundary(|| {
            let database =
                if (*(*rel).rd_rel).relisshared { pg_sys::Oid::INVALID } else { pg_sys::MyDatabaseId };
            let entry = pgstat_get_entry_ref_locked(RELATION, database, (*rel).rd_id, false);
            if !entry.is_null() {
                let counts = &raw mut (*(*entry).shared).counts;
                (*counts).n_live_tuples = live - untold.0;
                (*counts).n_dead_tuples = dead - untold.1;
                pgstat_unlock_entry(entry);
            }
        });
        pg_sys::pgstat_force_next_flush();
    }
}

/// Takes the lock on a database that a session takes when it connects, to the end of the transaction, if it
/// is to be had at once.
pub unsafe fn lock_database_if_free(database: pg_sys::Oid) -> bool {
    let tag = pg_sys::LOCKTAG {
        // Of no database.
        locktag_field1: 0,
        locktag_field2: pg_sys::DatabaseRelationId.to_u32(),
        locktag_field3: database.to_u32(),
        locktag_field4: 0,
        locktag_type: pg_sys::LockTagType::LOCKTAG_OBJECT as u8,
        locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
    };
    // SAFETY: in a transaction; the tag names a database.
    unsafe {
        let got = pg_sys::LockAcquire(&raw const tag, pg_sys::RowExclusiveLock as i32, false, true);
        got != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL
    }
}

/// What a process has used of the machine since some moment, as the server's log has it.
pub struct Usage([u64; 32]);

mod usage {
    unsafe extern "C-unwind" {
        pub fn pg_rusage_init(usage: *mut u64);
        pub fn pg_rusage_show(usage: *const u64) -> *const std::ffi::c_char;
    }
}

impl Usage {
    /// From now on.
    pub unsafe fn now() -> Self {
        let mut usage = [0; 32];
        // SAFETY: the server's struct is a timeval and a rusage, 160 bytes; neither call raises an ERROR.
        unsafe { usage::pg_rusage_init(usage.as_mut_ptr()) };
        Self(usage)
    }

    /// In the server's words.
    pub unsafe fn show(&self) -> String {
        // SAFETY: as above; a string of the server's that lasts until the next call.
        unsafe {
            std::ffi::CStr::from_ptr(usage::pg_rusage_show(self.0.as_ptr())).to_string_lossy().into_owned()
        }
    }
}
