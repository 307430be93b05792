//! How many rows and pages a foreign table has, for the planner.

use std::rc::Rc;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Oid, PlannerInfo, RelOptInfo};

use crate::host::relation::with_table;
use crate::options::foreign;
use crate::storage::column_file::open::{self, Rows};
use crate::storage::column_file::{BLOCK_BYTES, named};
use crate::storage::directory::outline::{self, Outline};

/// What the directory has of a table. None: it was never loaded.
pub fn outline(table: Oid) -> Option<Rc<Outline>> {
    let storage_id = named::storage_id(table)?;
    // A load makes the file longer, which tells that the directory has to be read anew.
    let length = foreign::file_of(table).metadata().map_or(0, |found| found.len());
    let blocks = u32::try_from(length / BLOCK_BYTES).unwrap_or(u32::MAX);
    Some(with_table(table, pg_sys::NoLock, |rel| outline::of_storage(rel, storage_id, blocks)))
}

/// `GetForeignRelSize`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn estimate(root: *mut PlannerInfo, rel: *mut RelOptInfo, table: Oid) {
    // SAFETY: the planner's own structs, of a foreign table that is locked.
    unsafe {
        ((*rel).tuples, (*rel).pages) = match outline(table) {
            Some(own) => (own.rows, own.stripes.iter().map(|stripe| stripe.run.block_count).sum()),
            None => match with_table(table, pg_sys::NoLock, open::of) {
                Some(Rows::Others(file)) => (file.rows() as f64, file.pages()),
                _ => (0.0, 0),
            },
        };
        pg_sys::set_baserel_size_estimates(root, rel);
    }
}
