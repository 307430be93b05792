//! A table's rows written anew into another file.

use std::ffi::{c_char, c_void};

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::{self, TransactionId};

use super::relation::Open;
use crate::compat;

pub use crate::compat::may_outlive_rows;

/// The type of `relpersistence` in callbacks.
pub type Persistence = c_char;

mod c {
    use pgrx::pg_sys::{HeapTuple, MultiXactId, Oid, Relation, TransactionId};
    use std::ffi::{c_char, c_int, c_void};
    unsafe extern "C-unwind" {
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

/// Makes an empty table like `old`, which is to replace it. Returns its OID.
pub unsafe fn make_new_heap(
    old: pg_sys::Oid,
    tablespace: pg_sys::Oid,
    method: pg_sys::Oid,
    persistence: Persistence,
    lock: i32,
) -> pg_sys::Oid {
    // SAFETY: a call into the server, guarded so that its ERROR unwinds.
    unsafe { pg_guard_ffi_boundary(|| c::make_new_heap(old, tablespace, method, persistence, lock)) }
}

/// What a rewrite of a table may drop and freeze.
pub struct RewriteLimits {
    /// Rows that were dead before are dead to every snapshot.
    pub oldest_xmin: TransactionId,
    /// Older inserters are frozen; becomes the table's relfrozenxid.
    pub freeze: TransactionId,
    /// The same for MultiXacts, the locks that several transactions hold.
    pub freeze_multi: pg_sys::MultiXactId,
}

/// The limits for a rewrite of `rel` now, as CLUSTER takes them.
pub fn rewrite_limits(rel: Open) -> RewriteLimits {
    // SAFETY: a question about an open relation.
    unsafe {
        let (mut oldest_xmin, mut freeze, mut freeze_multi) = compat::rewrite_limits(rel.as_ptr());
        // A snapshot that would get an ERROR from heap pages gets none from stripes. So rows that it sees are
        // not dropped.
        if may_outlive_rows() {
            oldest_xmin = rel.oldest_xmin();
            freeze = pg_sys::TransactionIdOlder(freeze, oldest_xmin);
        }
        // The limits in pg_class must not go backwards.
        let form = rel.form();
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
            c::finish_heap_swap(old, new, false, false, false, true, frozen, cutoff, persistence);
        });
    }
}

/// The server's own rewrite of heap pages. It keeps who wrote a row, who killed it, and which version follows
/// which. While it goes on, nobody else adds pages to the new file.
pub struct HeapRewrite(*mut c_void);

impl HeapRewrite {
    /// Begins a rewrite, behind the last block of `new`.
    ///
    /// # Safety
    /// Both relations are locked so that nobody else changes them.
    pub unsafe fn begin(old: Open, new: Open, limits: &RewriteLimits) -> Self {
        let RewriteLimits { oldest_xmin, freeze, freeze_multi } = *limits;
        // SAFETY: both are locked, as is promised; a call into the server, guarded so that its ERROR unwinds.
        unsafe {
            Self(pg_guard_ffi_boundary(|| {
                c::begin_heap_rewrite(old.as_ptr(), new.as_ptr(), oldest_xmin, freeze, freeze_multi)
            }))
        }
    }

    /// Writes `new`, a separate tuple, with the visibility that the header of `old` has.
    pub unsafe fn write(&mut self, old: pg_sys::HeapTuple, new: pg_sys::HeapTuple) {
        // SAFETY: as above.
        unsafe { pg_guard_ffi_boundary(|| c::rewrite_heap_tuple(self.0, old, new)) }
    }

    /// Tells the rewrite that a tuple is dead to everybody. So is the version that it has replaced.
    pub unsafe fn leave_out(&mut self, old: pg_sys::HeapTuple) {
        // SAFETY: as above.
        unsafe {
            pg_guard_ffi_boundary(|| c::rewrite_heap_dead_tuple(self.0, old));
        }
    }

    /// Writes what is left.
    pub unsafe fn end(self) {
        // SAFETY: as above.
        unsafe { pg_guard_ffi_boundary(|| c::end_heap_rewrite(self.0)) }
    }
}
