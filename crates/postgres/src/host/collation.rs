//! What the server knows of a collation.

use pgrx::pg_sys::Oid;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;

use crate::compat;

/// Whether the collation orders text bytewise.
pub unsafe fn orders_bytewise(collation: Oid) -> bool {
    // SAFETY: a catalog look-up, guarded so that its ERROR unwinds.
    unsafe { pg_guard_ffi_boundary(|| compat::orders_bytewise(collation)) }
}

/// Whether the collation knows no letters but ASCII's.
pub unsafe fn has_ascii_letters(collation: Oid) -> bool {
    // SAFETY: as above.
    unsafe { pg_guard_ffi_boundary(|| compat::has_ascii_letters(collation)) }
}
