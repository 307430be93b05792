//! Several short calls of the server in a row, under one guard.
//!
//! pgrx guards each call by itself, which takes as long as pinning a page. Some code makes several calls in a
//! row for a single row, as look-ups in the catalogs beside the users' tables and locks do. It makes them
//! under one guard, by the server's plain functions.
//!
//! Invariant: code under the guard owns nothing, because an ERROR jumps past it. So it has only numbers and
//! raw pointers, and calls only the functions that are declared here.

use std::ffi::c_int;

use pgrx::pg_sys::{
    BlockNumber, Buffer, BufferAccessStrategy, CommandId, Datum, ForkNumber, HTSV_Result, HeapTuple,
    IndexScanDesc, ItemPointer, List, LockTupleMode, LockWaitPolicy, Oid, ReadBufferMode, Relation,
    ScanDirection, ScanKey, Snapshot, TM_FailureData, TM_Result, TransactionId, TupleDesc, TupleTableSlot,
};

/// Runs the calls. An ERROR of one of them unwinds from here.
///
/// # Safety
/// The closure owns nothing and calls nothing that does.
#[inline(always)]
pub unsafe fn together<R: Copy>(calls: impl FnOnce() -> R) -> R {
    // SAFETY: the caller's promise.
    unsafe { pgrx::pg_sys::ffi::pg_guard_ffi_boundary(calls) }
}

#[allow(missing_docs, reason = "the server's own functions")]
unsafe extern "C-unwind" {
    pub fn table_open(id: Oid, lock: c_int) -> Relation;
    pub fn table_close(rel: Relation, lock: c_int);
    pub fn index_open(id: Oid, lock: c_int) -> Relation;
    pub fn index_close(rel: Relation, lock: c_int);
    pub fn table_slot_create(rel: Relation, list: *mut *mut List) -> *mut TupleTableSlot;
    pub fn ExecDropSingleTupleTableSlot(slot: *mut TupleTableSlot);
    pub fn index_rescan(
        scan: IndexScanDesc,
        keys: ScanKey,
        count: c_int,
        orders: ScanKey,
        order_count: c_int,
    );
    pub fn index_getnext_slot(
        scan: IndexScanDesc,
        direction: ScanDirection::Type,
        slot: *mut TupleTableSlot,
    ) -> bool;
    pub fn index_endscan(scan: IndexScanDesc);
    pub fn ReadBufferExtended(
        rel: Relation,
        fork: ForkNumber::Type,
        block: BlockNumber,
        mode: ReadBufferMode::Type,
        strategy: BufferAccessStrategy,
    ) -> Buffer;
    pub fn TransactionStartedDuringRecovery() -> bool;
    pub fn LockBuffer(buffer: Buffer, mode: c_int);
    pub fn ReleaseBuffer(buffer: Buffer);
    pub fn HeapTupleSatisfiesVisibility(tuple: HeapTuple, snapshot: Snapshot, buffer: Buffer) -> bool;
    pub fn HeapTupleSatisfiesVacuum(
        tuple: HeapTuple,
        oldest: TransactionId,
        buffer: Buffer,
    ) -> HTSV_Result::Type;
    pub fn TransactionIdPrecedes(one: TransactionId, other: TransactionId) -> bool;
    pub fn heap_hot_search_buffer(
        root: ItemPointer,
        rel: Relation,
        buffer: Buffer,
        snapshot: Snapshot,
        tuple: HeapTuple,
        all_dead: *mut bool,
        first_call: bool,
    ) -> bool;
    pub fn heap_deform_tuple(tuple: HeapTuple, desc: TupleDesc, values: *mut Datum, nulls: *mut bool);
    pub fn heap_form_tuple(desc: TupleDesc, values: *mut Datum, nulls: *mut bool) -> HeapTuple;
    pub fn heap_fetch(
        rel: Relation,
        snapshot: Snapshot,
        tuple: HeapTuple,
        buffer: *mut Buffer,
        keep: bool,
    ) -> bool;
    pub fn heap_lock_tuple(
        rel: Relation,
        tuple: HeapTuple,
        command: CommandId,
        mode: LockTupleMode::Type,
        wait: LockWaitPolicy::Type,
        follow: bool,
        buffer: *mut Buffer,
        failure: *mut TM_FailureData,
    ) -> TM_Result::Type;
}
