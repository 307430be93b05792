//! A copy of a relation that heap code takes for a heap table.
//!
//! Heap's index build reads with `heap_getnext`, which refuses a relation whose access method is not heap. So
//! it gets a copy of the relation cache's entry that differs in the access method. Each backend keeps one
//! copy for each table for good, because the storage manager and the resource owner still hold its address
//! after an ERROR. The copy has a storage-manager link and a reference count of its own, and no statistics.
//!
//! Invariant: only heap code sees the copy.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::compat;
use crate::host::heap_am::heap;
use pgrx::pg_sys::{self, Relation, RelationData};

use crate::host::relation::Open;

thread_local! {
    static SHIMS: RefCell<HashMap<u32, Relation>> = RefCell::new(HashMap::new());
}

/// The heap-typed twin of `rel`, refreshed from it.
pub fn of(rel: Open) -> Relation {
    let oid = u32::from(rel.oid());
    let known = SHIMS.with(|shims| shims.borrow().get(&oid).copied());
    // SAFETY: the copy is made field by field into memory that is never freed.
    unsafe {
        let shim = match known {
            Some(shim) => {
                compat::forget_file(shim);
                shim
            }
            None => {
                let shim =
                    pg_sys::MemoryContextAllocZero(pg_sys::TopMemoryContext, size_of::<RelationData>())
                        .cast::<RelationData>();
                SHIMS.with(|shims| shims.borrow_mut().insert(oid, shim));
                shim
            }
        };
        let (smgr, references) = ((*shim).rd_smgr, (*shim).rd_refcnt);
        std::ptr::copy_nonoverlapping(rel.as_ptr(), shim, 1);
        (*shim).rd_smgr = smgr;
        (*shim).rd_refcnt = references;
        (*shim).rd_tableam = std::ptr::from_ref(heap());
        (*shim).rd_amcache = std::ptr::null_mut();
        (*shim).pgstat_info = std::ptr::null_mut();
        (*shim).pgstat_enabled = false;
        shim
    }
}
