//! What is advised for a table.
//!
//! Each adviser is a function in the list `ADVISERS`. There are two weights:
//! - *needed*: nothing does it by itself, and not doing it costs more and more
//! - *possible*: it would help, but it is done in the background sooner or later, or is a matter of taste
//!
//! Invariant: advice can be followed now, and is not given any more once it was followed.

use super::figures::Figures;
use super::index_bloat::{self, Bloat};
use crate::host::relation::Open;
use crate::storage::{decoding, published};
use crate::table_am::packing;

/// How urgent it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Weight {
    Needed,
    Possible,
}

/// What a user could do, and what for.
pub(super) struct Advice {
    pub weight: Weight,
    /// Without a full stop; no semicolons.
    pub text: String,
}

/// The table that is asked about.
struct Subject<'a> {
    rel: Open<'a>,
    figures: &'a Figures,
    /// The table keeps its heap rows, because logical decoding reads only these. It is published, or a slot
    /// decodes it without a publication.
    is_published: bool,
    /// The table can be packed beside its writers, in the background or by CALL.
    can_be_packed: bool,
    /// Packing in the background sees to the table.
    is_packed: bool,
}

/// The advisers, in the order of their advice.
const ADVISERS: [fn(&Subject, &mut Vec<Advice>); 4] = [slots, rewriting, empty_pages, bloated_indexes];

/// All advice for a table.
pub(super) fn of(rel: Open, figures: &Figures) -> Vec<Advice> {
    let mut found = Vec::new();
    {
        let (can_be_packed, is_packed) = packing::sees_to(rel);
        let subject = Subject {
            rel,
            figures,
            is_published: published::is_published(rel) || decoding::slot(rel).is_some(),
            can_be_packed,
            is_packed,
        };
        for adviser in ADVISERS {
            adviser(&subject, &mut found);
        }
    }
    found
}

/// Advises on slots that decode the table, as they do not see its rows in stripes.
fn slots(subject: &Subject, found: &mut Vec<Advice>) {
    let figures = subject.figures;
    let has_many = figures.hot.settled >= f64::from(figures.options.chunk_group_row_limit);
    if let Some(text) = decoding::advice(subject.rel, figures.cold_rows, has_many) {
        let weight = if figures.cold_rows > 0 { Weight::Needed } else { Weight::Possible };
        found.push(Advice { weight, text });
    }
}

/// What rewriting rows would do for the table: beside others, or under a lock.
fn rewriting(subject: &Subject, found: &mut Vec<Advice>) {
    let Subject { rel, figures, .. } = *subject;
    if subject.is_published {
        return;
    }
    let usual = if subject.is_packed { Weight::Possible } else { Weight::Needed };
    let mut list = Vec::new();
    let can_be_joined = || packing::can_be_joined(rel, &figures.examples);
    // One small stripe is allowed for: the last one of a table that was loaded at once may have any size.
    if figures.small_stripes > 1 + figures.stripes / 4 && can_be_joined() {
        list.push((usual, format!("join {} small stripes", figures.small_stripes)));
    }
    if figures.hot.settled >= f64::from(figures.options.chunk_group_row_limit) {
        list.push((usual, format!("put some {} heap rows into stripes", figures.hot.settled)));
    }
    if figures.dead_rows > 0 && figures.dead_rows >= figures.cold_rows / 5 {
        list.push((usual, format!("drop {} dead rows of stripes", figures.dead_rows)));
    }
    let unsorted = figures.unsorted_stripes;
    if unsorted > 0 {
        let are_many = unsorted > figures.stripes / 4;
        let which = if unsorted == 1 { "stripe that is" } else { "stripes that are" };
        let text = format!("sort the rows of {unsorted} {which} not known to be in the order of orderby");
        list.push((if are_many { usual } else { Weight::Possible }, text));
    }
    let overlapping = figures.overlapping_stripes;
    if overlapping > 1 + figures.stripes / 4 {
        list.push((usual, format!("sort {overlapping} stripes that overlap in the order of orderby")));
    }
    let what =
        if subject.can_be_packed { "CALL engine.colcompress_repack()" } else { "engine.colcompress_merge()" };
    for weight in [Weight::Needed, Weight::Possible] {
        let of_it: Vec<&str> =
            list.iter().filter(|(of, _)| *of == weight).map(|(_, text)| text.as_str()).collect();
        if !of_it.is_empty() {
            found.push(Advice { weight, text: format!("{what} would {}", of_it.join(", ")) });
        }
    }
}

/// Pages that VACUUM would free.
fn empty_pages(subject: &Subject, found: &mut Vec<Advice>) {
    let figures = subject.figures;
    if figures.free_blocks > 0 && figures.free_blocks >= figures.file_blocks / 10 {
        // If packing sees to the table, it also vacuums it.
        let weight = if subject.is_packed { Weight::Possible } else { Weight::Needed };
        let text = format!("VACUUM would free up to {} pages for new rows", figures.free_blocks);
        found.push(Advice { weight, text });
    }
}

/// Btrees that REINDEX would make much smaller.
fn bloated_indexes(subject: &Subject, found: &mut Vec<Advice>) {
    for bloat in index_bloat::of(subject.rel) {
        let Bloat { index, blocks, needed, is_huge } = bloat;
        let free = blocks - needed;
        found.push(Advice {
            weight: if is_huge { Weight::Needed } else { Weight::Possible },
            text: format!("REINDEX INDEX CONCURRENTLY {index} would free some {free} of its {blocks} pages"),
        });
    }
}
