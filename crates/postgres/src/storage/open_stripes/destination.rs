//! Where the rows of a command go: to the heap, into memory, or under a row number at once.
//!
//! Asked once per command and table. Rows may wait in memory only when nothing looks at a row's TID before the command ends: no
//! index entry, no AFTER ROW trigger (foreign keys are such), no RETURNING, no move between partitions. A caller that no hook
//! announced (a logical replication worker, another extension's C code) may do anything with the TID and gets hot rows.

use pgrx::pg_sys::{self, CommandId, Relation};

use super::set::Placement;
use super::statement::{self, Insertion};

/// What to do with rows of `command` into `rel`, and whether the statement may ask for xmin and the like of rows it has just
/// inserted. None: hot rows, and not even worth remembering.
pub(super) unsafe fn choose(rel: Relation, command: CommandId) -> Option<(Placement, bool)> {
    // SAFETY: rel is open.
    unsafe {
        let insertion = statement::insertion(command)?;
        if is_published(rel) || has_exclusion_constraint(rel) {
            return Some((Placement::Hot, false));
        }
        let looked_at = insertion == Insertion::NeedsTid;
        let numbered = looked_at || has_index(rel) || has_after_row_trigger(rel);
        Some((if numbered { Placement::Numbered } else { Placement::Deferred }, looked_at))
    }
}

/// Whether some publication has the table. Logical decoding reads hot rows only, so such a table has no others.
pub unsafe fn is_published(rel: Relation) -> bool {
    // SAFETY: rel is open. The server keeps the answer in the relation cache.
    unsafe {
        if (*(*rel).rd_rel).relpersistence != pg_sys::RELPERSISTENCE_PERMANENT as std::ffi::c_char {
            return false;
        }
        let mut description = pg_sys::PublicationDesc::default();
        pg_sys::RelationBuildPublicationDesc(rel, &raw mut description);
        let actions = &description.pubactions;
        actions.pubinsert || actions.pubupdate || actions.pubdelete
    }
}

unsafe fn has_index(rel: Relation) -> bool {
    // SAFETY: rel is open; relhasindex may be true without an index, never false with one.
    unsafe {
        if !(*(*rel).rd_rel).relhasindex {
            return false;
        }
        let list = pg_sys::RelationGetIndexList(rel);
        let some = !list.is_null();
        pg_sys::list_free(list);
        some
    }
}

/// Its check reads the values of rows that conflict, of this very command too, while rows in memory can only be counted.
unsafe fn has_exclusion_constraint(rel: Relation) -> bool {
    // SAFETY: rel is open; the list is a copy and its indexes cannot go away meanwhile.
    unsafe {
        if !(*(*rel).rd_rel).relhasindex {
            return false;
        }
        let list = pg_sys::RelationGetIndexList(rel);
        if list.is_null() {
            return false;
        }
        let mut found = false;
        for cell in (*list).elements.as_ref().map_or(&[][..], |first| {
            std::slice::from_raw_parts(first, usize::try_from((*list).length).unwrap_or(0))
        }) {
            let index = pg_sys::index_open(cell.oid_value, pg_sys::AccessShareLock as i32);
            found |= (*(*index).rd_index).indisexclusion;
            pg_sys::index_close(index, pg_sys::NoLock as i32);
        }
        pg_sys::list_free(list);
        found
    }
}

unsafe fn has_after_row_trigger(rel: Relation) -> bool {
    // SAFETY: rel is open; trigdesc is null without triggers.
    unsafe { (*rel).trigdesc.as_ref().is_some_and(|triggers| triggers.trig_insert_after_row) }
}
