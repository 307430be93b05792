//! VACUUM FULL and CLUSTER.
//!
//! Heap's own rewrite would copy the hot rows and lose the stripes.

use pgrx::pg_guard;
use pgrx::pg_sys::{MultiXactId, Relation, TransactionId};

use super::delegate::heap_guarded;
use super::vacuum;
use crate::host::{error, relation};
use crate::storage::metapage;

/// `relation_copy_for_cluster`.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn copy_for_cluster(
    old: Relation,
    new: Relation,
    index: Relation,
    sort: bool,
    oldest_xmin: TransactionId,
    xid_cutoff: *mut TransactionId,
    multi_cutoff: *mut MultiXactId,
    tuples: *mut f64,
    vacuumed: *mut f64,
    recently_dead: *mut f64,
) {
    // SAFETY: as the server calls it, with AccessExclusiveLock.
    unsafe {
        if vacuum::cold_row_count(old) > 0.0 {
            error::not_supported(
                format!("rewriting table {} is not supported yet", relation::quoted_name(old)),
                "The table has rows in stripes.",
                "Use engine.colcompress_merge() to rewrite its stripes.",
            );
        }
        metapage::ensure(new);
        heap_guarded!(relation_copy_for_cluster(
            old,
            new,
            index,
            sort,
            oldest_xmin,
            xid_cutoff,
            multi_cutoff,
            tuples,
            vacuumed,
            recently_dead
        ));
    }
}
