//! What planning wants to know of a table's directory, kept from one statement to the next.
//!
//! Callers: the table's size estimate, the prices of scans and index paths, the question whether rows are
//! hot. A plan asks several times, and a point query must not pay a walk over the directory for each: the
//! outline is read once and kept while the file has as many blocks and nothing was said about the relation or
//! the directory. A load or a merge adds blocks; what else can change it (a rollback) makes it an estimate
//! that is off until the next ANALYZE or write. Rows of writers still at work count, those deleted do not.
//! Invariant: estimates only. Which rows a query returns never depends on it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use pgrx::pg_sys::{self, Oid};

use super::StripeEntry;
use super::cursor::walk;
use crate::host::relation::Open;
use crate::storage::file::metapage;
use crate::storage::file::pages::BlockRun;

/// Summaries kept, in bytes, before all outlines are forgotten.
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

/// The outline of a table; None where nothing was ever written to it.
pub fn of(rel: Open) -> Option<Rc<Outline>> {
    // Nothing is borrowed while the server is called.
    let storage_id = metapage::storage_id(rel)?;
    let blocks = rel.block_count();
    let known = KEPT.with_borrow(|kept| kept.outlines.get(&storage_id).cloned());
    if let Some(known) = known.filter(|known| known.blocks == blocks && known.relation == rel.oid()) {
        return Some(known);
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
    Some(outline)
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
            if !seen && cursor.is_void() {
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

/// Something has changed about a relation, or (an invalid Oid) about any.
pub(super) fn forget(relation: Oid) {
    // Nothing borrows this while it calls the server, which is who calls here.
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

/// This backend changes what the directory says about a storage id.
pub(super) fn forget_storage(storage_id: u64) {
    KEPT.with_borrow_mut(|kept| kept.outlines.remove(&storage_id));
}
