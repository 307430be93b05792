//! From a subtree of the server's finished plan to a `query::Plan`.

use pgrx::pg_sys;

use super::translated::{Reason, Translated, Values};

/// The translation of a subtree, or why there is none.
///
/// # Safety
/// `plan` is a subtree of a finished plan, which outlives what is returned.
pub unsafe fn translate(_plan: *mut pg_sys::Plan, _values: &mut dyn Values) -> Result<Translated, Reason> {
    Err(Reason("no node is translated".into()))
}
