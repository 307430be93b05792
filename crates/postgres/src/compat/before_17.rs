//! PostgreSQL 15 and 16. `since_17` has the same names for all later versions.

use std::ffi::{c_char, c_int};
use std::ops::Range;

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::panic::pgrx_extern_c_guard;
use pgrx::pg_sys::{
    self, BlockNumber, Buffer, HeapScanDescData, Oid, Relation, TableScanDesc, TransactionId,
};

use super::AnalyzedBlocks;

/// Whether a partition has its partitioned table's access method if it is given none.
pub const PARTITIONS_INHERIT_METHOD: bool = false;

/// The number of this session's transaction, which no other transaction of the session has.
pub fn local_transaction() -> pg_sys::LocalTransactionId {
    // SAFETY: this process's entry, which lasts as long as it.
    unsafe { (*pg_sys::MyProc).lxid }
}

/// A virtual transaction: the place of its session, and its number there.
pub fn virtual_transaction(id: &pg_sys::VirtualTransactionId) -> (i32, u32) {
    (id.backendId, id.localTransactionId)
}

/// The oldest transaction whose end is known.
pub fn oldest_known_transaction() -> TransactionId {
    // SAFETY: a plain number in shared memory.
    unsafe { (*pg_sys::ShmemVariableCache).oldestClogXid }
}

/// Whether a user may have a table vacuumed, packed or rewritten: its owner may.
///
/// # Safety
/// In a transaction.
pub unsafe fn may_maintain(table: Oid, user: Oid) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { super::owns_table(table, user) }
}

/// Gives an index's own expressions the path that the server gives them: the session's.
///
/// # Safety
/// In a level of settings of the caller's own.
pub unsafe fn restrict_search_path() {}

/// Ends insertions into an index by hand.
///
/// # Safety
/// Both are open and belong together.
pub unsafe fn end_insertions(_index: Relation, _info: *mut pg_sys::IndexInfo) {}

/// Whether rows may be taken away that a snapshot still sees, so that it gets an ERROR
/// (`old_snapshot_threshold`).
pub fn may_outlive_rows() -> bool {
    // SAFETY: a plain setting of the server's.
    unsafe { pg_sys::old_snapshot_threshold >= 0 }
}

/// Reads a block of the main fork past the buffers.
///
/// # Safety
/// The relation is open and has the block; `image` is a page.
pub unsafe fn read_from_disk(rel: Relation, block: BlockNumber, image: *mut std::ffi::c_char) {
    // SAFETY: the caller's promise.
    unsafe {
        let file = pg_sys::smgropen(super::locator(rel), (*rel).rd_backend);
        pg_sys::smgrread(file, pg_sys::ForkNumber::MAIN_FORKNUM, block, image.cast());
    }
}

/// Lets a copy of a relation's entry forget its file, which the relation may have no more.
///
/// # Safety
/// `rd_smgr` is null or valid.
pub unsafe fn forget_file(copy: Relation) {
    // SAFETY: the caller's promise. Closing the file makes the pointer null.
    unsafe {
        if !(*copy).rd_smgr.is_null() {
            pg_sys::smgrclose((*copy).rd_smgr);
        }
    }
}

/// Whether this session holds just this lock.
///
/// # Safety
/// An ERROR jumps past the caller, which guards.
pub unsafe fn holds_lock(tag: &pg_sys::LOCKTAG, mode: c_int) -> bool {
    unsafe extern "C-unwind" {
        fn LockHeldByMe(tag: *const pg_sys::LOCKTAG, mode: c_int) -> bool;
    }
    // SAFETY: a call into the server.
    unsafe { LockHeldByMe(tag, mode) }
}

/// Makes line pointers of a heap page dead.
///
/// # Safety
/// In a critical section; the page is locked for cleanup.
pub unsafe fn make_dead(page: Buffer, offsets: &mut [u16]) {
    let none = std::ptr::null_mut();
    let count = offsets.len() as c_int;
    // SAFETY: the caller's promise.
    unsafe { pg_sys::heap_page_prune_execute(page, none, 0, offsets.as_mut_ptr(), count, none, 0) }
}

/// Logs `make_dead`. No snapshot sees the tuples.
///
/// # Safety
/// As `make_dead`. The table is open.
pub unsafe fn log_made_dead(_rel: Relation, page: Buffer, offsets: &mut [u16]) {
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
        let mut flag = [0; super::CATALOG_FLAG];
        pg_sys::XLogBeginInsert();
        pg_sys::XLogRegisterData((&raw mut record).cast(), size_of::<Prune>() as _);
        if !flag.is_empty() {
            pg_sys::XLogRegisterData(flag.as_mut_ptr(), flag.len() as _);
        }
        pg_sys::XLogRegisterBuffer(0, page, pg_sys::REGBUF_STANDARD as u8);
        pg_sys::XLogRegisterBufData(0, offsets.as_mut_ptr().cast(), size_of_val(offsets) as _);
        let at = pg_sys::XLogInsert(pg_sys::RmgrIds::RM_HEAP2_ID as u8, XLOG_HEAP2_PRUNE);
        let head = pg_sys::BufferGetPage(page).cast::<pg_sys::PageHeaderData>();
        (*head).pd_lsn.xlogid = (at >> 32) as u32;
        (*head).pd_lsn.xrecoff = at as u32;
    }
}

/// Lets a heap scan that has come to the end of its blocks begin with others.
///
/// # Safety
/// A heap scan.
pub unsafe fn restart_scan(_scan: *mut HeapScanDescData) {}

/// Makes what a heap scan has read ahead no part of it, because it turns to `_direction` at its block.
///
/// # Safety
/// A heap scan that stands on a block.
pub unsafe fn turn_scan(_scan: *mut HeapScanDescData, _direction: pg_sys::ScanDirection::Type) {}

/// A column's statistics target. None: the server's usual one.
///
/// # Safety
/// In a transaction.
pub unsafe fn column_target(_table: Oid, column: &pg_sys::FormData_pg_attribute) -> Option<i32> {
    #[allow(clippy::unnecessary_cast, reason = "16 has an i16")]
    let target = column.attstattarget as i32;
    (target >= 0).then_some(target)
}

/// The target of an extended statistics object. None: the server's usual one.
///
/// # Safety
/// A valid row of pg_statistic_ext.
pub unsafe fn extended_target(row: pg_sys::HeapTuple) -> Option<i32> {
    // SAFETY: the caller's promise.
    let target =
        unsafe { (*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_statistic_ext>()).stxstattarget };
    (target >= 0).then_some(target)
}

/// Points a heap scan at one block, whose visible rows its sample is to be taken of.
///
/// # Safety
/// A heap scan that has a block of this number. An ERROR unwinds.
pub unsafe fn enter_block(scan: TableScanDesc, block: BlockNumber) {
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::heapgetpage(scan, block);
        (*scan.cast::<HeapScanDescData>()).rs_inited = true;
    }
}

/// The option of a heap scan without which a bitmap scan passes over the rows of an all-visible page.
pub const NEED_TUPLES: u32 = 0;

/// Lets a bitmap scan read every block itself, one after another. Older minor versions trust the visibility
/// map after the pin of the index page is gone.
pub fn read_each_block(scan: &mut pg_sys::BitmapHeapScanState) {
    scan.prefetch_maximum = 0;
    scan.can_skip_fetch = false;
}

/// Sets the callback that begins with a block of ANALYZE's sample.
pub fn set_analyze<B: AnalyzedBlocks>(routine: &mut pg_sys::TableAmRoutine) {
    unsafe extern "C-unwind" fn next_block<B: AnalyzedBlocks>(
        scan: TableScanDesc,
        block: BlockNumber,
        strategy: pg_sys::BufferAccessStrategy,
    ) -> bool {
        // SAFETY: the server's call, guarded; heap's scan is the access method's.
        unsafe {
            pgrx_extern_c_guard(|| {
                let heap = (*pg_sys::GetHeapamTableAmRoutine()).scan_analyze_next_block;
                B::begin(scan, block)
                    || heap.is_some_and(|next| pg_guard_ffi_boundary(|| next(B::heap(scan), block, strategy)))
            })
        }
    }
    routine.scan_analyze_next_block = Some(next_block::<B>);
}

/// Blocks of a relation that the operating system is asked to read before somebody asks for them.
pub struct BlocksAhead {
    rel: Relation,
    /// Whether `effective_io_concurrency` allows it.
    is_allowed: bool,
}

impl BlocksAhead {
    /// Nothing is named yet.
    ///
    /// # Safety
    /// The relation stays open until `end`.
    pub unsafe fn begin(rel: Relation) -> Self {
        // SAFETY: the caller's promise.
        let allowed = unsafe { pg_sys::get_tablespace_io_concurrency((*(*rel).rd_rel).reltablespace) };
        Self { rel, is_allowed: allowed > 0 }
    }

    /// Names blocks, to be read after those named before.
    ///
    /// # Safety
    /// The relation has them.
    pub unsafe fn name(&mut self, blocks: Range<BlockNumber>) {
        if self.is_allowed {
            for block in blocks {
                // SAFETY: the relation is open.
                unsafe { pg_sys::PrefetchBuffer(self.rel, pg_sys::ForkNumber::MAIN_FORKNUM, block) };
            }
        }
    }

    /// Whoever reads the blocks waits for them.
    ///
    /// # Safety
    /// None: later versions have one.
    pub unsafe fn wait_for(&mut self, _count: u64) {}

    /// Ends it.
    ///
    /// # Safety
    /// None: later versions have one.
    pub unsafe fn end(self) {}
}

/// Whether old snapshots raise errors instead of rows that were there (`old_snapshot_threshold`).
pub fn snapshots_become_too_old() -> bool {
    // SAFETY: a plain number of the server's.
    unsafe { pg_sys::old_snapshot_threshold >= 0 }
}

/// Plans a query, and shows what EXPLAIN says of it, as the server does where it has no hook.
///
/// # Safety
/// As the server calls that hook. An ERROR jumps past the caller, which guards.
pub unsafe fn explain_one_query(
    query: *mut pg_sys::Query,
    options: c_int,
    into: *mut pg_sys::IntoClause,
    es: *mut pg_sys::ExplainState,
    text: *const c_char,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
) {
    unsafe extern "C-unwind" {
        fn pg_plan_query(
            query: *mut pg_sys::Query,
            text: *const c_char,
            options: c_int,
            params: pg_sys::ParamListInfo,
        ) -> *mut pg_sys::PlannedStmt;
        fn BufferUsageAccumDiff(
            to: *mut pg_sys::BufferUsage,
            now: *const pg_sys::BufferUsage,
            before: *const pg_sys::BufferUsage,
        );
        fn ExplainOnePlan(
            plan: *mut pg_sys::PlannedStmt,
            into: *mut pg_sys::IntoClause,
            es: *mut pg_sys::ExplainState,
            text: *const c_char,
            params: pg_sys::ParamListInfo,
            environment: *mut pg_sys::QueryEnvironment,
            planning: *const pg_sys::instr_time,
            buffers: *const pg_sys::BufferUsage,
        );
    }
    // SAFETY: calls into the server with what it gave; numbers of this process alone.
    unsafe {
        let (before, started) = (pg_sys::pgBufferUsage, std::time::Instant::now());
        let plan = pg_plan_query(query, text, options, params);
        let planning = super::instr_time(started.elapsed());
        let mut buffers = pg_sys::BufferUsage::default();
        BufferUsageAccumDiff(&raw mut buffers, &raw const pg_sys::pgBufferUsage, &raw const before);
        let buffers = if (*es).buffers { &raw const buffers } else { std::ptr::null() };
        ExplainOnePlan(plan, into, es, text, params, environment, &raw const planning, buffers);
    }
}
