//! Where the rows of a command go: to the heap, into memory, or under a row number at once.
//!
//! Asked once for each command and table.
//!
//! Rows may wait in memory only if nothing looks at a row's TID before the command ends. So there must be no
//! index entry, no AFTER ROW trigger (as foreign keys have), no RETURNING and no move between partitions.
//!
//! A caller that no hook announced may do anything with the TID, and gets hot rows. Such callers are a
//! logical replication worker or another extension's C code. Tables that are published, or that a replication
//! slot decodes, get hot rows only.

use pgrx::pg_sys::CommandId;

use super::set::Placement;
use super::statement::{self, Insertion};
use super::transaction;
use crate::host::relation::Open;
use crate::options::foreign;
use crate::storage::{decoding, published};

/// Where rows of `command` into `rel` go, and whether the statement may ask for xmin and the like of rows
/// that it has just inserted. None: they are hot rows, and this is not worth remembering.
pub(super) fn choose(rel: Open, command: CommandId) -> Option<(Placement, bool)> {
    if transaction::is_committing() {
        return None;
    }
    if foreign::is_column_file(rel) {
        // Such rows have no TIDs.
        return Some((Placement::Deferred, false));
    }
    let insertion = statement::insertion(command)?;
    if published::is_published(rel) || has_exclusion_constraint(rel) || decoding::is_decoded(rel).is_some() {
        return Some((Placement::Hot, false));
    }
    let looked_at = insertion == Insertion::NeedsTid;
    let numbered = looked_at || has_index(rel) || has_after_row_trigger(rel);
    Some((if numbered { Placement::Numbered } else { Placement::Deferred }, looked_at))
}

fn has_index(rel: Open) -> bool {
    // `relhasindex` may be true without an index, never false with one.
    rel.may_have_indexes() && !rel.indexes().is_empty()
}

/// Whether the table has an exclusion constraint. Its check reads the values of rows that conflict, also of
/// rows of this very command. Rows in memory cannot be read.
fn has_exclusion_constraint(rel: Open) -> bool {
    rel.may_have_indexes() && rel.count_indexes(|index| index.indisexclusion) > 0
}

fn has_after_row_trigger(rel: Open) -> bool {
    // SAFETY: trigdesc is null without triggers.
    unsafe { (*rel.as_ptr()).trigdesc.as_ref().is_some_and(|triggers| triggers.trig_insert_after_row) }
}
