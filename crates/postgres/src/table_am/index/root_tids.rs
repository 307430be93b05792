//! The TIDs under which indexes have hot rows: those of the roots of their update chains.
//!
//! Called by code that walks a table to compare it with an index. Invariant: the page of the scan's present
//! row is pinned, so its chains stay as they are while the scan is on it.

use pgrx::pg_sys::{self, BlockNumber, HeapScanDescData, ItemPointerData, TupleTableSlot};

use crate::host::relation::Open;
use crate::host::{buffer, error};

/// The most line pointers of a heap page.
const ITEMS: usize = 291;

/// The roots of the page that a scan is on.
pub struct RootTids {
    block: BlockNumber,
    roots: [u16; ITEMS],
}

impl Default for RootTids {
    /// A state before the first page.
    fn default() -> Self {
        Self { block: pg_sys::InvalidBlockNumber, roots: [0; ITEMS] }
    }
}

impl RootTids {
    /// The root of the hot row that `heap` has just put into the slot.
    pub unsafe fn root(
        &mut self,
        rel: Open,
        heap: *mut HeapScanDescData,
        slot: *mut TupleTableSlot,
    ) -> ItemPointerData {
        // SAFETY: the scan pins the page; the slot is a heap slot that holds a tuple of it.
        unsafe {
            if (*heap).rs_cblock != self.block {
                self.block = (*heap).rs_cblock;
                buffer::lock_shared((*heap).rs_cbuf);
                pg_sys::heap_get_root_tuples(buffer::page((*heap).rs_cbuf), self.roots.as_mut_ptr());
                buffer::unlock((*heap).rs_cbuf);
            }
            let tuple = (*slot.cast::<pg_sys::BufferHeapTupleTableSlot>()).base.tuple;
            let mut root = (*tuple).t_self;
            if (*(*tuple).t_data).t_infomask2 & pg_sys::HEAP_ONLY_TUPLE as u16 != 0 {
                let offset = self.roots[usize::from(root.ip_posid).saturating_sub(1).min(ITEMS - 1)];
                if offset == 0 {
                    error::corrupt(rel, None, "A heap-only row has no root in its page.");
                }
                root.ip_posid = offset;
            }
            root
        }
    }
}
