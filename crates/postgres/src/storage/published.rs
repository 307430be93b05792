//! Which tables are published for logical replication, and therefore keep every row hot.
//!
//! Asked by loads, packing, merging, and the functions that tell why a table is not packed. `decoding` knows
//! the replication slots that read tables which no publication names.

use pgrx::pg_sys::{self, Oid};

use crate::host::catalogs;
use crate::host::relation::Open;

/// Whether some publication has the table. Logical decoding reads hot rows only, so such a table has no
/// others. For a table that is to replace another one, the other one counts.
pub fn is_published(rel: Open) -> bool {
    // SAFETY: the server keeps the answer in the relation cache.
    unsafe {
        let replaced = (*rel.form()).relrewrite;
        if replaced != Oid::INVALID && is_listed(replaced) {
            return true;
        }
        if rel.persistence() != pg_sys::RELPERSISTENCE_PERMANENT {
            return false;
        }
        let mut description = pg_sys::PublicationDesc::default();
        pg_sys::RelationBuildPublicationDesc(rel.as_ptr(), &raw mut description);
        let actions = &description.pubactions;
        actions.pubinsert || actions.pubupdate || actions.pubdelete
    }
}

/// Whether a publication names the table, its schema, or a partitioned table above it. Needs no lock.
fn is_listed(table: Oid) -> bool {
    // SAFETY: catalog look-ups; the lists are our own.
    unsafe {
        if pg_sys::get_rel_relkind(table) as u8 != pg_sys::RELKIND_RELATION {
            return false;
        }
        if listed_itself(table) {
            return true;
        }
        if !pg_sys::get_rel_relispartition(table) {
            return false;
        }
        let ancestors = catalogs::partition_ancestors(table);
        let count = if ancestors.is_null() { 0 } else { (*ancestors).length };
        let found = (0..count).any(|at| listed_itself(pg_sys::list_nth_oid(ancestors, at)));
        pg_sys::list_free(ancestors);
        found
    }
}

fn listed_itself(table: Oid) -> bool {
    // SAFETY: as above; a table that is gone has no entries.
    unsafe {
        any(pg_sys::GetRelationPublications(table))
            || any(pg_sys::GetSchemaPublications(pg_sys::get_rel_namespace(table)))
    }
}

unsafe fn any(list: *mut pg_sys::List) -> bool {
    // SAFETY: an OID list of our own, or null.
    unsafe {
        let some = !list.is_null();
        pg_sys::list_free(list);
        some
    }
}
