//! PostgreSQL 17 and later. `before_17` has the same names.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::ops::Range;

use pgrx::pg_sys::panic::pgrx_extern_c_guard;
use pgrx::pg_sys::{
    self, BlockNumber, Buffer, Datum, HeapScanDescData, Oid, Relation, TableScanDesc, TransactionId,
};

use super::AnalyzedBlocks;

/// Whether a partition has its partitioned table's access method if it is given none.
pub const PARTITIONS_INHERIT_METHOD: bool = true;

/// The number of this session's transaction, which no other transaction of the session has.
pub fn local_transaction() -> pg_sys::LocalTransactionId {
    // SAFETY: this process's entry, which lasts as long as it.
    unsafe { (*pg_sys::MyProc).vxid.lxid }
}

/// A virtual transaction: the place of its session, and its number there.
pub fn virtual_transaction(id: &pg_sys::VirtualTransactionId) -> (i32, u32) {
    (id.procNumber, id.localTransactionId)
}

/// The oldest transaction whose end is known.
pub fn oldest_known_transaction() -> TransactionId {
    // SAFETY: a plain number in shared memory.
    unsafe { (*pg_sys::TransamVariables).oldestClogXid }
}

/// Whether a user may have a table vacuumed, packed or rewritten: its owner may, and who has MAINTAIN.
///
/// # Safety
/// In a transaction.
pub unsafe fn may_maintain(table: Oid, user: Oid) -> bool {
    // SAFETY: a catalog look-up.
    unsafe {
        let mode = pg_sys::AclMode::from(pg_sys::ACL_MAINTAIN);
        pg_sys::pg_class_aclcheck(table, user, mode) == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// Gives an index's own expressions the path that the server gives them: none of users' schemas.
///
/// # Safety
/// In a level of settings of the caller's own.
pub unsafe fn restrict_search_path() {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::RestrictSearchPath() };
}

/// Ends insertions into an index by hand. Access methods keep things, and pins of pages, for the next one.
///
/// # Safety
/// Both are open and belong together.
pub unsafe fn end_insertions(index: Relation, info: *mut pg_sys::IndexInfo) {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::index_insert_cleanup(index, info) };
}

/// Whether rows may be taken away that a snapshot still sees. They may not.
pub fn may_outlive_rows() -> bool {
    false
}

/// Reads a block of the main fork past the buffers.
///
/// # Safety
/// The relation is open and has the block; `image` is a page.
pub unsafe fn read_from_disk(rel: Relation, block: BlockNumber, image: *mut std::ffi::c_char) {
    // SAFETY: the caller's promise.
    unsafe {
        let file = pg_sys::smgropen(super::locator(rel), (*rel).rd_backend);
        let mut pages = [image.cast()];
        pg_sys::smgrreadv(file, pg_sys::ForkNumber::MAIN_FORKNUM, block, pages.as_mut_ptr(), 1);
    }
}

/// Lets a copy of a relation's entry forget its file, which the relation may have no more.
///
/// # Safety
/// `rd_smgr` is null or valid.
pub unsafe fn forget_file(copy: Relation) {
    // SAFETY: the caller's promise. An entry that has the pointer has pinned the file.
    unsafe {
        if !(*copy).rd_smgr.is_null() {
            pg_sys::smgrunpin((*copy).rd_smgr);
            (*copy).rd_smgr = std::ptr::null_mut();
        }
    }
}

/// Whether this session holds just this lock.
///
/// # Safety
/// An ERROR jumps past the caller, which guards.
pub unsafe fn holds_lock(tag: &pg_sys::LOCKTAG, mode: c_int) -> bool {
    unsafe extern "C-unwind" {
        fn LockHeldByMe(tag: *const pg_sys::LOCKTAG, mode: c_int, or_stronger: bool) -> bool;
    }
    // SAFETY: a call into the server.
    unsafe { LockHeldByMe(tag, mode, false) }
}

/// Makes line pointers of a heap page dead.
///
/// # Safety
/// In a critical section; the page is locked for cleanup.
pub unsafe fn make_dead(page: Buffer, offsets: &mut [u16]) {
    let none = std::ptr::null_mut();
    let count = offsets.len() as c_int;
    // SAFETY: the caller's promise.
    unsafe { pg_sys::heap_page_prune_execute(page, false, none, 0, offsets.as_mut_ptr(), count, none, 0) }
}

/// Logs `make_dead`. No snapshot sees the tuples.
///
/// # Safety
/// As `make_dead`. The table is open.
pub unsafe fn log_made_dead(rel: Relation, page: Buffer, offsets: &mut [u16]) {
    let none = std::ptr::null_mut();
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::log_heap_prune_and_freeze(
            rel,
            page,
            pg_sys::InvalidTransactionId,
            true,
            pg_sys::PruneReason::PRUNE_ON_ACCESS,
            std::ptr::null_mut(),
            0,
            none,
            0,
            offsets.as_mut_ptr(),
            offsets.len() as c_int,
            none,
            0,
        );
    }
}

/// Lets a heap scan that has come to the end of its blocks begin with others. Its stream of pages, which has
/// said that it is at the end, would say so for ever.
///
/// # Safety
/// A heap scan.
pub unsafe fn restart_scan(scan: *mut HeapScanDescData) {
    // SAFETY: the caller's promise.
    unsafe {
        if !(*scan).rs_read_stream.is_null() {
            pg_sys::read_stream_reset((*scan).rs_read_stream);
        }
    }
}

/// Makes what a heap scan has read ahead no part of it, because it turns to `direction` at its block.
///
/// # Safety
/// A heap scan that stands on a block.
pub unsafe fn turn_scan(scan: *mut HeapScanDescData, direction: pg_sys::ScanDirection::Type) {
    // SAFETY: the caller's promise.
    unsafe {
        (*scan).rs_prefetch_block = (*scan).rs_cblock;
        (*scan).rs_dir = direction;
        restart_scan(scan);
    }
}

/// Points a heap scan at one block, whose visible rows its sample is to be taken of.
///
/// # Safety
/// A heap scan that has a block of this number. An ERROR unwinds.
pub unsafe fn enter_block(scan: TableScanDesc, block: BlockNumber) {
    // SAFETY: the caller's promise.
    unsafe {
        let heap = scan.cast::<HeapScanDescData>();
        if (*heap).rs_cbuf != 0 {
            pg_sys::ReleaseBuffer((*heap).rs_cbuf);
            (*heap).rs_cbuf = 0;
        }
        (*heap).rs_cbuf = pg_sys::ReadBufferExtended(
            (*scan).rs_rd,
            pg_sys::ForkNumber::MAIN_FORKNUM,
            block,
            pg_sys::ReadBufferMode::RBM_NORMAL,
            (*heap).rs_strategy,
        );
        (*heap).rs_cblock = block;
        (*heap).rs_inited = true;
        if (*scan).rs_flags & pg_sys::ScanOptions::SO_ALLOW_PAGEMODE != 0 {
            pg_sys::heap_prepare_pagescan(scan);
        }
    }
}

/// A column's statistics target. None: the server's usual one.
///
/// # Safety
/// In a transaction.
pub unsafe fn column_target(table: Oid, column: &pg_sys::FormData_pg_attribute) -> Option<i32> {
    // SAFETY: a catalog look-up.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::ATTNUM as c_int;
        let row = pg_sys::SearchSysCache2(cache, table.into(), Datum::from(column.attnum));
        if row.is_null() {
            return None;
        }
        let target = target_in(cache, row, pg_sys::Anum_pg_attribute_attstattarget as i16);
        pg_sys::ReleaseSysCache(row);
        target
    }
}

/// Place of stxstattarget in pg_statistic_ext.
const STXSTATTARGET: i16 = 7;

/// The target of an extended statistics object. None: the server's usual one.
///
/// # Safety
/// A valid row of pg_statistic_ext.
pub unsafe fn extended_target(row: pg_sys::HeapTuple) -> Option<i32> {
    let cache = pg_sys::SysCacheIdentifier::STATEXTOID as c_int;
    // SAFETY: the caller's promise.
    unsafe { target_in(cache, row, STXSTATTARGET) }
}

/// A target in a column of a catalog's row, where null means the usual one.
unsafe fn target_in(cache: c_int, row: pg_sys::HeapTuple, column: i16) -> Option<i32> {
    // SAFETY: the callers' promise.
    unsafe {
        let mut null = false;
        let value = pg_sys::SysCacheGetAttr(cache, row, column, &raw mut null);
        (!null).then(|| i32::from(value.value() as i16)).filter(|&target| target >= 0)
    }
}

/// Sets the callback that begins with a block of ANALYZE's sample. The sample's stream gives the block's
/// page, pinned.
pub fn set_analyze<B: AnalyzedBlocks>(routine: &mut pg_sys::TableAmRoutine) {
    unsafe extern "C-unwind" fn next_block<B: AnalyzedBlocks>(
        scan: TableScanDesc,
        stream: *mut pg_sys::ReadStream,
    ) -> bool {
        // SAFETY: the server's call, guarded; heap's scan is the access method's.
        unsafe {
            pgrx_extern_c_guard(|| {
                let page = pg_sys::read_stream_next_buffer(stream, std::ptr::null_mut());
                if page == 0 {
                    return false;
                }
                let block = pg_sys::BufferGetBlockNumber(page);
                if B::begin(scan, block) {
                    pg_sys::ReleaseBuffer(page);
                    return true;
                }
                // Heap's own callback would take the next page from the stream. Its rows are given by a
                // callback that expects the page locked, and unlocks it at its end.
                pg_sys::LockBuffer(page, pg_sys::BUFFER_LOCK_SHARE as c_int);
                let heap = B::heap(scan).cast::<HeapScanDescData>();
                (*heap).rs_cbuf = page;
                (*heap).rs_cblock = block;
                (*heap).rs_cindex = 1;
                true
            })
        }
    }
    routine.scan_analyze_next_block = Some(next_block::<B>);
}

/// Blocks of a relation that are read into the server's buffers before somebody asks for them, by a read
/// stream. It takes as much in hand at a time as the server's settings allow.
pub struct BlocksAhead {
    stream: *mut pg_sys::ReadStream,
    /// Shared with the stream's callback.
    named: Box<UnsafeCell<VecDeque<Range<BlockNumber>>>>,
    /// Who holds the stream's pins: whoever runs the query.
    owner: pg_sys::ResourceOwner,
}

impl BlocksAhead {
    /// Nothing is named yet.
    ///
    /// # Safety
    /// The relation stays open until `end`, and the current memory and resource owner live as long.
    pub unsafe fn begin(rel: Relation) -> Self {
        /// The next block. It owns nothing, and calls nothing of the server.
        unsafe extern "C-unwind" fn next(
            _stream: *mut pg_sys::ReadStream,
            named: *mut c_void,
            _for_buffer: *mut c_void,
        ) -> BlockNumber {
            // SAFETY: the list outlives the stream, and nobody else looks at it while the stream runs.
            let named = unsafe { &mut *named.cast::<VecDeque<Range<BlockNumber>>>() };
            while let Some(blocks) = named.front_mut() {
                if let Some(block) = blocks.next() {
                    return block;
                }
                named.pop_front();
            }
            pg_sys::InvalidBlockNumber
        }
        let named = Box::new(UnsafeCell::new(VecDeque::new()));
        // SAFETY: the caller's promise.
        unsafe {
            let stream = pg_sys::read_stream_begin_relation(
                (pg_sys::READ_STREAM_FULL | super::SIMPLE_CALLBACK) as c_int,
                std::ptr::null_mut(),
                rel,
                pg_sys::ForkNumber::MAIN_FORKNUM,
                Some(next),
                named.get().cast(),
                0,
            );
            Self { stream, named, owner: pg_sys::CurrentResourceOwner }
        }
    }

    /// Names blocks, to be read after those named before.
    ///
    /// # Safety
    /// The relation has them.
    pub unsafe fn name(&mut self, blocks: Range<BlockNumber>) {
        self.named.get_mut().push_back(blocks);
    }

    /// Waits until so many more of the named blocks are in buffers.
    ///
    /// # Safety
    /// Called between `begin` and `end`, by the same query.
    pub unsafe fn wait_for(&mut self, count: u64) {
        // SAFETY: the stream is open. Its pins are its owner's.
        unsafe {
            let owner = pg_sys::CurrentResourceOwner;
            pg_sys::CurrentResourceOwner = self.owner;
            let mut left = count;
            while left > 0 {
                let page = pg_sys::read_stream_next_buffer(self.stream, std::ptr::null_mut());
                if page != 0 {
                    pg_sys::ReleaseBuffer(page);
                    left -= 1;
                // It had come to the end of what was named by then.
                } else if !self.named.get_mut().is_empty() {
                    pg_sys::read_stream_reset(self.stream);
                } else {
                    break;
                }
            }
            pg_sys::CurrentResourceOwner = owner;
        }
    }

    /// Ends it, whatever was read. Not called after an ERROR: the server's abort releases everything.
    ///
    /// # Safety
    /// As `wait_for`.
    pub unsafe fn end(self) {
        // SAFETY: the stream is open.
        unsafe {
            let owner = pg_sys::CurrentResourceOwner;
            pg_sys::CurrentResourceOwner = self.owner;
            pg_sys::read_stream_end(self.stream);
            pg_sys::CurrentResourceOwner = owner;
        }
    }
}

/// Whether old snapshots raise errors instead of rows that were there: not any more.
pub const fn snapshots_become_too_old() -> bool {
    false
}

unsafe extern "C-unwind" {
    /// Plans a query, and shows what EXPLAIN says of it, as the server does where it has no hook.
    ///
    /// # Safety
    /// As the server calls that hook. An ERROR jumps past the caller, which guards.
    #[link_name = "standard_ExplainOneQuery"]
    pub fn explain_one_query(
        query: *mut pg_sys::Query,
        options: c_int,
        into: *mut pg_sys::IntoClause,
        es: *mut pg_sys::ExplainState,
        text: *const c_char,
        params: pg_sys::ParamListInfo,
        environment: *mut pg_sys::QueryEnvironment,
    );
}
