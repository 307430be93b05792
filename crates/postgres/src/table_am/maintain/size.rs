//! What the planner is told about a table's size.
//!
//! - Cold rows are counted in the directory's outline, without those that were dead already when VACUUM or
//!   ANALYZE counted.
//! - Hot rows are estimated from the hot pages, by the density that the last VACUUM or ANALYZE implies, or
//!   from the columns' widths.
//! - The all-visible share is that of hot rows in all-visible pages among all rows, because only hot pages
//!   can spare an index-only scan its fetch.

use pgrx::pg_guard;
use pgrx::pg_sys::{BlockNumber, Relation, int32};

use crate::host::heap_am::heap_guarded;
use crate::host::relation::Open;
use crate::storage::directory::StripeEntry;
use crate::storage::directory::outline;
use crate::storage::file::hot_runs;

/// `relation_estimate_size`.
#[pg_guard]
pub unsafe extern "C-unwind" fn estimate_size(
    rel: Relation,
    widths: *mut int32,
    pages: *mut BlockNumber,
    tuples: *mut f64,
    all_visible: *mut f64,
) {
    // SAFETY: the server passes places for its answers.
    unsafe {
        let rel = Open::of(rel);
        heap_guarded!(relation_estimate_size(rel.as_ptr(), widths, pages, tuples, all_visible));
        let Some(outline) = outline::of(rel) else { return };
        if outline.rows == 0.0 {
            return;
        }
        let blocks = rel.block_count();
        let spans = hot_runs::hot_spans(outline.runs.iter().copied(), blocks);
        let hot_pages: f64 = spans.iter().map(|span| f64::from(span.blocks())).sum();
        let stripe_pages = f64::from(blocks) - hot_pages;
        let form = rel.form();
        let (known, known_pages) = (f64::from((*form).reltuples), f64::from((*form).relpages));
        let cold = outline.rows - dead_then(&outline.stripes, blocks, known, known_pages);
        let hot = if hot_pages == 0.0 {
            0.0
        } else if known >= 0.0 && known_pages > 0.0 {
            // The density that the hot pages had then, as far as pg_class tells.
            let hot_then = (known_pages - stripe_pages).max(1.0);
            let density = ((known - cold).max(0.0) / hot_then).min(300.0);
            (density * hot_pages).round()
        } else {
            // Heap's guess is a density by width times all pages.
            (*tuples * hot_pages / f64::from((*pages).max(1))).round()
        };
        *pages = blocks;
        // VACUUM and ANALYZE have not counted dead rows of stripes. So their count is an upper bound, as long
        // as the file is the same.
        let counted = (known > 0.0 && known_pages == f64::from(blocks)).then_some(known);
        *tuples = counted.map_or(hot + cold, |counted| counted.min(hot + cold));
        let visible_hot = (f64::from((*form).relallvisible) - stripe_pages).max(0.0);
        *all_visible = if hot_pages == 0.0 {
            0.0
        } else {
            (visible_hot / hot_pages).min(1.0) * hot / (hot + cold).max(1.0)
        };
    }
}

/// How many rows must have been dead when the table was counted. Loads write at the end of the file. So the
/// stripes before the end that the file had then were there already, except those of movers. At most `known`
/// of their rows were alive.
fn dead_then(stripes: &[StripeEntry], blocks: BlockNumber, known: f64, known_pages: f64) -> f64 {
    if known < 0.0 || known_pages == 0.0 || f64::from(blocks) < known_pages {
        return 0.0;
    }
    let was_there = |entry: &&StripeEntry| !entry.moved && f64::from(entry.run.first_block) < known_pages;
    let rows: f64 = stripes.iter().filter(was_there).map(|entry| f64::from(entry.row_count)).sum();
    (rows - known).max(0.0)
}
