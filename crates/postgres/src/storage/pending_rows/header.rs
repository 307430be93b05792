//! What RETURNING may ask of a row that has just been numbered: xmin, cmin and the like.
//!
//! Called by `set` for statements with RETURNING. A numbered row has no heap tuple, so its slot is made to
//! hold one with the header that heap would have written. Invariant: the slot's values stay what they were.

use pgrx::pg_sys::{self, CommandId, TupleTableSlot};

/// Makes the slot's row a heap tuple with the header that heap would have given it, for RETURNING xmin and
/// its like.
pub(super) unsafe fn give(slot: *mut TupleTableSlot, command: CommandId) {
    // SAFETY: the slot's operations say which struct it really is; both kinds begin with a
    // HeapTupleTableSlot.
    unsafe {
        let kind = (*slot).tts_ops;
        if !std::ptr::eq(kind, &raw const pg_sys::TTSOpsBufferHeapTuple)
            && !std::ptr::eq(kind, &raw const pg_sys::TTSOpsHeapTuple)
        {
            return;
        }
        let (place, table) = ((*slot).tts_tid, (*slot).tts_tableOid);
        pg_sys::ExecMaterializeSlot(slot);
        (*slot).tts_tid = place;
        let tuple = (*slot.cast::<pg_sys::HeapTupleTableSlot>()).tuple;
        if tuple.is_null() || (*tuple).t_data.is_null() {
            return;
        }
        (*tuple).t_self = place;
        (*tuple).t_tableOid = table;
        let header = (*tuple).t_data;
        (*header).t_choice.t_heap.t_xmin = pg_sys::GetCurrentTransactionId();
        (*header).t_choice.t_heap.t_xmax = pg_sys::InvalidTransactionId;
        (*header).t_choice.t_heap.t_field3.t_cid = command;
        (*header).t_infomask |= pg_sys::HEAP_XMAX_INVALID as u16;
        (*header).t_ctid = place;
    }
}
