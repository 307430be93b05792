//! One chunk through the three steps: prune, filter, project.
//!
//! Called by `cold` and `vectors` for each chunk in turn. The chunk's statistics come first (all clauses with
//! a predicate), then native filtering on encoded data, one clause after the other until no row is left, then
//! dead rows go, then come the wanted columns, decoded whole or only the surviving rows (`work`). What the
//! stripe cannot answer natively (a column it is too old to have or that has changed its type since, decimals
//! in the side lane) is left to be checked row by row, in this chunk only. Pruning needs the table's pages;
//! the rest may run on any thread.

use std::sync::Arc;

use stripe::{OwnedChunk, Prune, prune_chunk};
use vector::{LogicalType, Result, Selection, Vector};

use super::begin::Counters;
use super::steps::Steps;
use super::work::Work;
use crate::storage::change::row_proxy::Tombstones;
use crate::storage::directory::StripeEntry;
use crate::storage::file::codecs::ServerCodecs;
use crate::storage::read::stripe_on_pages::{Pages, StripeHandle};

/// Where the values of a wanted column come from, for the loaded chunk.
pub enum Source {
    /// Not wanted in this chunk.
    Unwanted,
    /// Every row of the chunk.
    Whole(Arc<Vector>),
    /// The selected rows only.
    Taken(Arc<Vector>),
    /// The stripe is older than the column: one value for every row (`convert::missing_value`).
    Missing,
}

/// A chunk whose rows are being handed out.
pub struct Loaded {
    /// Row number of the chunk's first row.
    pub base: u64,
    /// Rows that passed.
    pub selection: Selection,
    /// One for each of `Scan::columns`.
    pub sources: Vec<Source>,
    /// Further columns for the selected rows; None where the stripe is older than the column they are made
    /// of.
    pub further: Vec<Option<Vector>>,
    /// Native clauses that have to be checked row by row here.
    pub checks: Vec<usize>,
    /// Selected rows handed out so far.
    pub done: usize,
}

impl Loaded {
    /// The rows of a stripe, for a scan that wants to know no more of them than how many there are.
    pub const fn whole(entry: &StripeEntry, rows: u32) -> Self {
        Self {
            base: entry.first_row,
            selection: Selection::All(rows),
            sources: Vec::new(),
            further: Vec::new(),
            checks: Vec::new(),
            done: 0,
        }
    }
}

/// Gives the column chunk of an attribute.
pub type Fetch<'a> = dyn FnMut(usize) -> Result<OwnedChunk> + 'a;

/// Asks a chunk's statistics. None when no row can pass.
pub fn prune(
    open: &StripeHandle,
    chunk: u32,
    dead: &mut Tombstones,
    steps: &Arc<Steps>,
    pages: &Pages,
    counters: &mut Counters,
) -> Result<Option<Work>> {
    let mut to_filter = Vec::new();
    for (at, clause) in steps.clauses.iter().enumerate() {
        match prune_chunk(&open.reader, chunk, &clause.predicate, pages)? {
            Prune::NoRow => {
                counters.chunks_pruned += 1;
                return Ok(None);
            }
            Prune::SomeRows if !clause.prunes_only => to_filter.push(at),
            Prune::SomeRows | Prune::AllRows => {}
        }
    }
    counters.chunks_read += 1;
    let mut side = false;
    for clause in to_filter.iter().filter_map(|&at| steps.clauses.get(at)) {
        for &index in &clause.columns {
            if open.reader.logical(index) == Some(LogicalType::Numeric) {
                side |= open.reader.statistics(index, chunk, pages)?.side_rows > 0;
            }
        }
    }
    let rows = open.reader.chunk_rows(chunk);
    let rows = open.first_row + u64::from(rows.start)..open.first_row + u64::from(rows.end);
    counters.rows_read += rows.end - rows.start;
    let dead =
        dead.among(rows.clone()).iter().filter_map(|row| u32::try_from(row - rows.start).ok()).collect();
    Ok(Some(Work::of(steps, open, rows, dead, to_filter, side)))
}

/// Takes a chunk through all steps, reading column chunks as they are needed. None when no row is left.
pub fn load(
    open: &StripeHandle,
    chunk: u32,
    dead: &mut Tombstones,
    steps: &Arc<Steps>,
    pages: &Pages,
    counters: &mut Counters,
) -> Result<Option<Loaded>> {
    match prune(open, chunk, dead, steps, pages, counters)? {
        Some(work) => work.run(&mut fetch(open, chunk, pages), counters),
        None => Ok(None),
    }
}

/// As `fetch`, for `Work::read_all`: whoever runs the work compares checksums.
pub fn fetch_for_later<'a>(
    open: &'a StripeHandle,
    chunk: u32,
    pages: &'a Pages,
) -> impl FnMut(usize) -> Result<OwnedChunk> + 'a {
    move |index| open.reader.read_chunk_unverified(index, chunk, pages, &ServerCodecs)
}

/// Reads column chunks from the table's pages.
pub fn fetch<'a>(
    open: &'a StripeHandle,
    chunk: u32,
    pages: &'a Pages,
) -> impl FnMut(usize) -> Result<OwnedChunk> + 'a {
    move |index| open.reader.read_chunk(index, chunk, pages, &ServerCodecs)
}
