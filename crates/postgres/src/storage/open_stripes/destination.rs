//! Where the rows of a command go: to the heap, into memory, or under a row number at once.
//!
//! Asked once per command and table. Rows may wait in memory only when nothing looks at a row's TID before
//! the command ends: no index entry, no AFTER ROW trigger (foreign keys are such), no RETURNING, no move
//! between partitions. A caller that no hook announced (a logical replication worker, another extension's C
//! code) may do anything with the TID and gets hot rows. Tables that are published, or that a replication
//! slot decodes, get hot rows only.

use pgrx::pg_sys::{self, CommandId, Oid, Relation};

use super::set::Placement;
use super::statement::{self, Insertion};
use super::transaction;
use crate::compat;
use crate::host::relation;
use crate::storage::decoding;

/// What to do with rows of `command` into `rel`, and whether the statement may ask for xmin and the like of
/// rows it has just inserted. None: hot rows, and not even worth remembering.
pub(super) unsafe fn choose(rel: Relation, command: CommandId) -> Option<(Placement, bool)> {
    // SAFETY: rel is open.
    unsafe {
        if transaction::is_committing() {
            return None;
        }
        let insertion = statement::insertion(command)?;
        if is_published(rel) || has_exclusion_constraint(rel) || decoding::is_decoded(rel).is_some() {
            return Some((Placement::Hot, false));
        }
        let looked_at = insertion == Insertion::NeedsTid;
        let numbered = looked_at || has_index(rel) || has_after_row_trigger(rel);
        Some((if numbered { Placement::Numbered } else { Placement::Deferred }, looked_at))
    }
}

/// Whether some publication has the table. Logical decoding reads hot rows only, so such a table has no
/// others. A table that is to take another's place answers for that one.
pub unsafe fn is_published(rel: Relation) -> bool {
    // SAFETY: rel is open. The server keeps the answer in the relation cache.
    unsafe {
        let replaced = (*(*rel).rd_rel).relrewrite;
        if replaced != Oid::INVALID && is_listed(replaced) {
            return true;
        }
        if (*(*rel).rd_rel).relpersistence != pg_sys::RELPERSISTENCE_PERMANENT as std::ffi::c_char {
            return false;
        }
        let mut description = pg_sys::PublicationDesc::default();
        pg_sys::RelationBuildPublicationDesc(rel, &raw mut description);
        let actions = &description.pubactions;
        actions.pubinsert || actions.pubupdate || actions.pubdelete
    }
}

/// Whether a publication names the table, its schema, or a partitioned table above it. Needs no lock.
unsafe fn is_listed(table: Oid) -> bool {
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
        let ancestors = compat::partition_ancestors(table);
        let count = if ancestors.is_null() { 0 } else { (*ancestors).length };
        let found = (0..count).any(|at| listed_itself(pg_sys::list_nth_oid(ancestors, at)));
        pg_sys::list_free(ancestors);
        found
    }
}

unsafe fn listed_itself(table: Oid) -> bool {
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

unsafe fn has_index(rel: Relation) -> bool {
    // SAFETY: rel is open; relhasindex may be true without an index, never false with one.
    unsafe { (*(*rel).rd_rel).relhasindex && !relation::indexes(rel).is_empty() }
}

/// Its check reads the values of rows that conflict, of this very command too, while rows in memory can only
/// be counted.
unsafe fn has_exclusion_constraint(rel: Relation) -> bool {
    // SAFETY: as above.
    unsafe { (*(*rel).rd_rel).relhasindex && relation::count_indexes(rel, |index| index.indisexclusion) > 0 }
}

unsafe fn has_after_row_trigger(rel: Relation) -> bool {
    // SAFETY: rel is open; trigdesc is null without triggers.
    unsafe { (*rel).trigdesc.as_ref().is_some_and(|triggers| triggers.trig_insert_after_row) }
}
