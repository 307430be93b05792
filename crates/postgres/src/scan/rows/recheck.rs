//! EvalPlanQual: the server supplies one row of the table and asks whether it still qualifies.
//!
//! Used when another transaction has changed a row that the query locks: the query runs again over the new
//! version alone. The row of a target or locked table comes from the server's own slot. The row of another
//! table is fetched again by its row mark. If the server has neither for this table, the node scans as usual.
//! Invariant: a row is returned at most once, and only when all conditions hold, native ones included.

use pgrx::pg_sys::{self, TupleTableSlot};

use super::state::{Phase, RowScan};

/// What there is to check.
enum Given {
    /// A row, in the scan slot.
    Row,
    /// Nothing, or nothing more.
    Nothing,
    /// No substitute: scan.
    Scan,
}

/// The next row under EvalPlanQual.
///
/// # Safety
/// Called under guard; the node's state is inside an EvalPlanQual query.
pub unsafe fn next(custom: *mut pg_sys::CustomScanState, scan: &mut RowScan) -> *mut TupleTableSlot {
    // SAFETY: the caller's promise.
    unsafe {
        match given(custom, scan) {
            Given::Row if qualifies(scan) => project(custom, scan),
            Given::Row | Given::Nothing => {
                pg_sys::ExecClearTuple(scan.table.scan_slot);
                pg_sys::ExecClearTuple(scan.result_slot)
            }
            Given::Scan => {
                scan.phase = Phase::Start;
                super::run::exec_node(custom.cast())
            }
        }
    }
}

unsafe fn given(custom: *mut pg_sys::CustomScanState, scan: &RowScan) -> Given {
    // SAFETY: the arrays have one entry a range table entry; EvalPlanQual's state outlives its query.
    unsafe {
        let epq = (*(*custom).ss.ps.state).es_epq_active;
        let relid = (*(*custom).ss.ps.plan.cast::<pg_sys::Scan>()).scanrelid;
        let Ok(at) = usize::try_from(relid - 1) else { return Given::Scan };
        let done = (*epq).relsubs_done.add(at);
        if *done {
            return Given::Nothing;
        }
        let supplied = *(*epq).relsubs_slot.add(at);
        if !supplied.is_null() {
            *done = true;
            if (*supplied).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 != 0 {
                return Given::Nothing;
            }
            pg_sys::ExecCopySlot(scan.table.scan_slot, supplied);
            (*scan.table.scan_slot).tts_tid = (*supplied).tts_tid;
            return Given::Row;
        }
        if !(*(*epq).relsubs_rowmark.add(at)).is_null() {
            *done = true;
            let fetched = pg_sys::table_slot_create(scan.table.rel, std::ptr::null_mut());
            let found = pg_sys::EvalPlanQualFetchRowMark(epq, relid, fetched)
                && (*fetched).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 == 0;
            if found {
                pg_sys::ExecCopySlot(scan.table.scan_slot, fetched);
                (*scan.table.scan_slot).tts_tid = (*fetched).tts_tid;
            }
            pg_sys::ExecDropSingleTupleTableSlot(fetched);
            return if found { Given::Row } else { Given::Nothing };
        }
        Given::Scan
    }
}

unsafe fn qualifies(scan: &RowScan) -> bool {
    // SAFETY: slot, context and expressions are the node's own.
    unsafe {
        (*scan.table.scan_slot).tts_tableOid = (*scan.table.rel).rd_id;
        pg_sys::MemoryContextReset((*scan.table.econtext).ecxt_per_tuple_memory);
        (*scan.table.econtext).ecxt_scantuple = scan.table.scan_slot;
        scan.table.hot_steps.iter().all(|step| pg_sys::ExecQual(step.state, scan.table.econtext))
    }
}

unsafe fn project(custom: *mut pg_sys::CustomScanState, scan: &RowScan) -> *mut TupleTableSlot {
    // SAFETY: as `qualifies`; attributes of the target list are within the row type.
    unsafe {
        let projection = (*custom).ss.ps.ps_ProjInfo;
        if !scan.direct {
            return match projection.is_null() {
                true => scan.table.scan_slot,
                false => pg_sys::ExecProject(projection),
            };
        }
        pg_sys::ExecClearTuple(scan.result_slot);
        for (to, &from) in scan.output_columns.iter().enumerate() {
            *(*scan.result_slot).tts_values.add(to) = *(*scan.table.scan_slot).tts_values.add(from);
            *(*scan.result_slot).tts_isnull.add(to) = *(*scan.table.scan_slot).tts_isnull.add(from);
        }
        pg_sys::ExecStoreVirtualTuple(scan.result_slot)
    }
}
