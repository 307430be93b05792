//! Which rows may be dead, kept per backend, so that most look-ups of single rows ask no catalog.
//!
//! Called by `visibility::is_there` before it walks, and before tombstones of many rows are read. For a
//! storage id this keeps the rows that any tombstone names, and the spans of all delete bitmaps, whoever sees
//! them. A row that is not among them is alive for every snapshot, while the generation is the same
//! (`catalog::generation`). Live proxies do not count: a row that is only locked is there.
//!
//! What is kept is read again once it has become old, if that pays: after so many questions that what has to
//! be read is a fraction of what they cost.
//!
//! Invariant: nothing here says that a row is dead.

use std::cell::RefCell;
use std::ops::Range;

use pgrx::pg_sys;

use super::Proxy;
use crate::host::numbers::NumberMap;
use crate::storage::catalog::generation::{self, Generation};
use crate::storage::catalog::side_table::SideTable;
use crate::storage::change::delete_bitmap::{self, SPAN};

/// If more storage ids are known than this, all are forgotten.
const KEPT: usize = 1024;
/// For each question that was asked in vain so many rows of the catalogs may be read.
const ROWS_A_QUESTION: usize = 16;
/// Not more rows than this are kept of one storage id, and of all together.
const MOST: usize = 1 << 14;
const MOST_IN_ALL: usize = 1 << 18;

/// What is known of all storage ids.
#[derive(Default)]
struct All {
    known: NumberMap<u64, Known>,
    /// At most so many suspects are kept.
    suspects: usize,
}

/// What is known of a storage id.
struct Known {
    generation: Generation,
    /// None if it was not read in this generation.
    suspects: Option<Suspects>,
    /// Questions in this generation without an answer from here.
    asked: usize,
    /// About how many rows have to be read. More than `MOST`: so many that nothing is read in this
    /// generation.
    expected: usize,
}

struct Suspects {
    /// Ascending.
    rows: Vec<u64>,
    /// In the order of their first rows.
    spans: Vec<Range<u64>>,
}

thread_local! {
    static ALL: RefCell<All> = RefCell::new(All::default());
}

/// Whether a row of a stripe is alive for every snapshot as of now, and this backend has not marked it to be
/// deleted in bulk. False: it may be dead, or it is not known.
pub fn is_certainly_alive(storage_id: u64, row: u64) -> bool {
    if delete_bitmap::marked_by(storage_id, row).is_some() {
        return false;
    }
    let Some(generation) = generation::of(storage_id) else { return false };
    ALL.with_borrow_mut(|all| {
        if all.known.len() > KEPT || all.suspects > MOST_IN_ALL {
            *all = All::default();
        }
        let fresh = Known { generation, suspects: None, asked: 0, expected: ROWS_A_QUESTION };
        let known = all.known.entry(storage_id).or_insert(fresh);
        if known.generation != generation {
            (known.generation, known.suspects, known.asked) = (generation, None, 0);
            known.expected = known.expected.min(MOST);
        }
        if known.suspects.is_none() {
            known.read(storage_id);
            all.suspects += known.suspects.as_ref().map_or(0, Suspects::len);
        }
        known.suspects.as_ref().is_some_and(|suspects| !suspects.contains(row))
    })
}

impl Known {
    /// Reads the suspects, if that pays by now.
    fn read(&mut self, storage_id: u64) {
        self.asked = self.asked.saturating_add(1);
        let limit = self.asked.saturating_mul(ROWS_A_QUESTION).min(MOST);
        // SAFETY: a plain counter of the server. Whoever holds the lock of an index page is asked for one
        // row, and others wait.
        if limit < self.expected || unsafe { pg_sys::InterruptHoldoffCount } > 0 {
            return;
        }
        self.suspects = Suspects::read(storage_id, limit);
        self.expected = match &self.suspects {
            Some(suspects) => suspects.len(),
            // Each further question would read as many in vain.
            None if limit == MOST => usize::MAX,
            None => limit.saturating_mul(4).min(MOST),
        };
    }
}

impl Suspects {
    /// None if this takes more than `limit` rows of the catalogs.
    fn read(storage_id: u64, limit: usize) -> Option<Self> {
        // Without the catalogs nothing is known, and nothing is kept.
        SideTable::RowProxy.oids_if_present().and(SideTable::DeleteBitmap.oids_if_present())?;
        let mut seen = 0;
        let mut rows = Vec::new();
        SideTable::RowProxy.walk(storage_id, None, false, |cursor| {
            // SAFETY: the cursor stands on a row of this catalog.
            let proxy = unsafe { Proxy::at(cursor) };
            if proxy.dead {
                rows.push(proxy.row);
            }
            seen += 1;
            seen <= limit
        });
        let spans = delete_bitmap::spans(storage_id, limit.checked_sub(seen)?)?;
        Some(Self { rows, spans })
    }

    const fn len(&self) -> usize {
        self.rows.len() + self.spans.len()
    }

    fn contains(&self, row: u64) -> bool {
        let begun = self.spans.partition_point(|span| span.start <= row);
        let mut near = self.spans.iter().take(begun).rev().take_while(|span| row - span.start < SPAN);
        self.rows.binary_search(&row).is_ok() || near.any(|span| span.contains(&row))
    }
}
