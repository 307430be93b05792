//! What planning wants to know of a table's directory, kept from one statement to the next.
//!
//! Asked for the table's size estimate, for the costs of scans and index paths, and for the question whether
//! rows are hot. A plan asks several times, and a query of a single row must not walk over the directory each
//! time. So the outline is read once. It is kept while the file has as many blocks and no change of the
//! relation or of the directory was reported.
//!
//! A load or a merge adds blocks. Any other change, as a rollback, leaves the estimate wrong until the next
//! ANALYZE or write. Rows of writers that are still at work count. Deleted rows do not.
//!
//! Invariant: estimates only. Which rows a query returns never depends on this.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use pgrx::pg_sys::{self, Oid};

use super::StripeEntry;
use super::cursor::walk;
use crate::host::relation::Open;
use crate::storage::file::metapage;
use crate::storage::file::pages::BlockRun;

/// If the kept summaries have more bytes than this, all outlines are forgotten.
const KEPT_BYTES: usize = 8 << 20;

/// A table's stripes as far as estimates need them.
pub struct Outline {
    relation: Oid,
    blocks: u32,
    /// Rows in stripes.
    pub rows: f64,
    /// The stripes with their summaries.
    pub stripes: Vec<StripeEntry>,
    /// Blocks of every version of every row.
    pub runs: Vec<BlockRun>,
}

#[derive(Default)]
struct Kept {
    outlines: HashMap<u64, Rc<Outline>>,
    bytes: usize,
}

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::new(Kept::default());
}

/// The outline of a table. None if nothing was ever written to it.
pub fn of(rel: Open) -> Option<Rc<Outline>> {
    // Nothing is borrowed while the server is called.
    let storage_id = metapage::storage_id(rel)?;
    Some(of_storage(rel, storage_id, rel.block_count()))
}

/// The outline of a table whose rows are under this storage id, and whose file has so many blocks now.
pub fn of_storage(rel: Open, storage_id: u64, blocks: u32) -> Rc<Outline> {
    let known = KEPT.with_borrow(|kept| kept.outlines.get(&storage_id).cloned());
    if let Some(known) = known.filter(|known| known.blocks == blocks && known.relation == rel.oid()) {
        return known;
    }
    let outline = Rc::new(read(rel, storage_id, blocks));
    let bytes: usize =
        outline.stripes.iter().map(|entry| size_of::<StripeEntry>() + entry.summary.len()).sum();
    KEPT.with_borrow_mut(|kept| {
        if kept.bytes + bytes > KEPT_BYTES {
            *kept = Kept::default();
        }
        if bytes <= KEPT_BYTES {
            kept.bytes += bytes;
            kept.outlines.insert(storage_id, Rc::clone(&outline));
        }
    });
    outline
}

fn read(rel: Open, storage_id: u64, blocks: u32) -> Outline {
    let mut outline =
        Outline { relation: Oid::INVALID, blocks, rows: 0.0, stripes: Vec::new(), runs: Vec::new() };
    // SAFETY: see `walk`. A dirty snapshot sees what is being written; nobody waits for the writers that it
    // names.
    unsafe {
        outline.relation = rel.oid();
        let mut dirty = pg_sys::SnapshotData {
            snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY,
            ..Default::default()
        };
        walk(storage_id, None, |cursor| {
            let seen = cursor.satisfies(&raw mut dirty);
            if !seen && cursor.was_rolled_back() {
                return true;
            }
            let entry = cursor.entry(seen);
            outline.runs.push(entry.run);
            if seen && !entry.reserved_only {
                outline.rows += f64::from(entry.row_count);
                outline.stripes.push(entry);
            }
            true
        });
    }
    outline
}

/// Forgets the outline of a relation of which something has changed. An invalid Oid means any relation.
pub(super) fn forget(relation: Oid) {
    // The server calls this function, and no code holds a borrow while it calls the server.
    let _ = KEPT.try_with(|kept| {
        if let Ok(mut kept) = kept.try_borrow_mut() {
            if relation == Oid::INVALID {
                *kept = Kept::default();
            } else {
                kept.outlines.retain(|_, outline| outline.relation != relation);
            }
        }
    });
}

/// Forgets the outline of a storage id. Called when this backend changes the directory's rows of it.
pub(super) fn forget_storage(storage_id: u64) {
    KEPT.with_borrow_mut(|kept| kept.outlines.remove(&storage_id));
}
