//! What the server knows of a collation.

use pgrx::pg_sys::Oid;

unsafe extern "C-unwind" {
    /// The server's function: true if the collation orders text bytewise.
    pub fn lc_collate_is_c(collation: Oid) -> bool;
}
