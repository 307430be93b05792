//! TRUNCATE of foreign tables.

use pgrx::pg_guard;
use pgrx::pg_sys::{DropBehavior, List};

use crate::host::relation::Open;
use crate::storage::column_file::publish;

/// `ExecForeignTruncate`: relations that are open and locked. There are no sequences to restart, and what
/// refers to a foreign table the server knows.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn truncate(
    relations: *mut List,
    _behavior: DropBehavior::Type,
    _restart_sequences: bool,
) {
    // SAFETY: a list of open relations of ours.
    unsafe {
        for rel in pgrx::PgList::<pgrx::pg_sys::RelationData>::from_pg(relations).iter_ptr() {
            publish::truncate(Open::of(rel));
        }
    }
}
