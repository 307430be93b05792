//! A relation that heap takes for its own.
//!
//! Heap's index build reads with `heap_getnext`, which refuses a relation whose access method is not heap's.
//! So it is given a copy of the relation cache's entry that differs in the access method. The copy is
//! permanent, one per table and backend: after an ERROR the storage manager and the resource owner still hold
//! its address. It has its own storage-manager link and reference count, and no statistics. Only heap code
//! sees it.

use std::cell::RefCell;
use std::collections::HashMap;

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
                if !(*shim).rd_smgr.is_null() {
                    pg_sys::smgrclose((*shim).rd_smgr);
                }
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
