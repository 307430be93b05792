//! Reading ahead: tells the store which bytes the scan will ask for, while those before them are worked on.
//!
//! Called by `walk` before each chunk. As long as the store says that bytes come from a device, the chunks to
//! come are named in windows of a few MB. Each window names its bytes in the order in which they are stored,
//! so that the device reads long runs, whatever the order is in which columns are asked for. When the scan
//! comes to a window, all of it has to be there. While it goes through that window, the next one arrives.
//!
//! Chunks that statistics rule out or answer for are not named. A scan that looks at other columns only where
//! rows pass its clauses names these columns once most chunks have such rows.
//!
//! Invariant: what is named decides when bytes are read, and never which rows come. A stripe that cannot be
//! opened is not named: the scan meets it later, and raises the error. A host may raise an error for damaged
//! bytes earlier than the scan would.

use std::collections::VecDeque;
use std::ops::Range;

use vector::Result;

use super::chunk::{self, Place};
use super::plan::ChunkPlan;
use super::store::{Store, StripeInfo, positions_out};
use super::summaries::{OfSummary, Question};
use crate::StripeReader;

/// How many windows are named at a time: the one that is worked on, the one that arrives meanwhile, and one
/// more, so that a device with a queue has work at the border.
const WINDOWS: usize = 3;
/// Bytes of the first window, and of the largest. Each is twice as large as the one before, because a reader
/// may want the first rows only. A store may ask for smaller ones (`Store::reach`).
const SMALLEST: u64 = 256 << 10;
const LARGEST: u64 = 2 << 20;

/// Chunks of one window at most. Those that are not read add no bytes, and looking at statistics takes time.
const MOST_CHUNKS: u64 = 64;

/// The place of a chunk: position of its stripe, and its number there.
pub(super) type At = (usize, u32);

/// Chunks that were named together.
#[derive(Default)]
struct Window {
    first: At,
    /// How many chunks it has, and how many of them the scan has come to.
    chunks: u64,
    passed: u64,
    /// What the store calls its last bytes.
    ticket: u64,
}

/// What a scan has named.
#[derive(Default)]
pub(super) struct Ahead {
    windows: VecDeque<Window>,
    /// The first chunk that is not named.
    next: At,
    /// There is nothing more to name.
    at_end: bool,
    /// Bytes of the last window.
    size: u64,
    /// The stripe that was named last.
    last_stripe: Option<usize>,
    /// Bytes before a stripe's footer that hold the footers of the scan's columns, in that stripe.
    column_footers: u64,
    /// Chunks that the scan has looked at, and those that had rows that passed.
    chunks: u64,
    with_rows: u64,
}

/// What the scan does.
pub(super) struct Scanned<'a, S: Store> {
    pub store: &'a S,
    pub plan: &'a ChunkPlan,
    /// Of each stripe, whether pruning left it.
    pub kept: &'a [bool],
    /// What is asked of statistics, in place of rows.
    pub question: Option<Question<'a>>,
    /// Columns are read one after the other, as long as rows are left.
    pub lazy: bool,
    /// One past the last chunk to name, if others read what comes after it.
    pub end: Option<u32>,
}

impl Ahead {
    /// Before the scan reads this chunk.
    pub(super) fn before<S: Store>(&mut self, at: At, scanned: &Scanned<'_, S>) {
        let reach = scanned.store.reach();
        if reach == 0 {
            if !self.windows.is_empty() {
                scanned.store.stop_ahead();
                let (chunks, with_rows) = (self.chunks, self.with_rows);
                *self = Self { chunks, with_rows, ..Self::default() };
            }
            return;
        }
        if self.next <= at {
            self.windows.clear();
            (self.next, self.at_end) = (at, false);
        }
        while self.windows.get(1).is_some_and(|window| window.first <= at) {
            self.windows.pop_front();
        }
        while self.windows.len() < WINDOWS && !self.at_end {
            self.name_window(reach, scanned);
        }
        if let Some(window) = self.windows.front_mut() {
            let (here, passed, chunks) = (window.ticket, window.passed, window.chunks.max(1));
            window.passed += 1;
            let next = self.windows.get(1).map_or(here, |next| next.ticket);
            let share = next.saturating_sub(here).saturating_mul(passed.min(chunks)) / chunks;
            scanned.store.await_ahead(here.saturating_add(share));
        }
    }

    /// A chunk was read, and rows of it passed or not.
    pub(super) fn count(&mut self, has_rows: bool) {
        self.chunks += 1;
        self.with_rows += u64::from(has_rows);
    }

    fn name_window<S: Store>(&mut self, reach: u64, scanned: &Scanned<'_, S>) {
        self.size = (self.size * 2).clamp(SMALLEST, LARGEST).min(reach);
        let mut window = Window { first: self.next, ..Window::default() };
        let mut bytes = 0;
        while bytes < self.size && window.chunks < MOST_CHUNKS {
            scanned.store.pause();
            let (mut at, mut chunk) = self.next;
            while scanned.kept.get(at) == Some(&false) {
                (at, chunk) = (at + 1, 0);
            }
            let enough = (self.size - bytes, MOST_CHUNKS - window.chunks);
            let named = self.name_stripe((at, chunk), enough, scanned);
            // A problem is met again by the scan itself.
            let Ok(Some(named)) = named else {
                self.at_end = true;
                break;
            };
            bytes += named.bytes;
            window.chunks += named.chunks;
            window.ticket = window.ticket.max(named.ticket);
            self.next = named.next;
            if scanned.end.is_some_and(|end| named.next >= (at, end)) {
                self.at_end = true;
                break;
            }
        }
        if window.chunks > 0 {
            self.windows.push_back(window);
        }
    }

    /// Names chunks of one stripe, from one on, until they have this many bytes, or are as many. None past
    /// the last stripe.
    fn name_stripe<S: Store>(
        &mut self,
        (at, from): At,
        (enough, most): (u64, u64),
        scanned: &Scanned<'_, S>,
    ) -> Result<Option<Named>> {
        let Scanned { store, plan, question, .. } = scanned;
        let Some(info) = store.stripe(at) else { return Ok(None) };
        // What comes after a part of a stripe is its next part.
        let next = scanned.end.map_or((at + 1, 0), |end| (at, end));
        let mut named = Named { next, ..Named::default() };
        let live = || {
            let out = positions_out(*store, info.rows()).len();
            info.row_count.saturating_sub(u32::try_from(out).unwrap_or(u32::MAX))
        };
        if let Some(question) = question
            && let OfSummary::Known(_) = question.of_summary(info.summary, info.row_count, live)?
        {
            named.chunks = 1;
            return Ok(Some(named));
        }
        let (open, bytes) = (store.open(at)?, store.bytes(at)?);
        // Of other formats nothing is named: the scan reads their bytes when it comes to them.
        let Some(reader) = S::reader(&open).as_stripe() else { return Ok(None) };
        let mut ranges = Vec::new();
        if self.last_stripe.replace(at) != Some(at) {
            self.column_footers = column_footers(&info, reader, plan);
            self.name_footers(at + 1, scanned);
            for column in &plan.columns {
                if reader.logical(column.index).is_some() {
                    ranges.extend(reader.unread_shared_range(column.index, &bytes)?);
                }
            }
        }
        let end = scanned.end.unwrap_or(u32::MAX).min(reader.chunk_count());
        for chunk in from..end {
            if named.bytes >= enough || named.chunks >= most {
                named.next = (at, chunk);
                break;
            }
            named.chunks += 1;
            let place = Place { reader, bytes: &bytes, first_row: info.first_row, chunk };
            let out = || positions_out(*store, place.rows()).len();
            if let Some(question) = question
                && question.of_chunk(&place, out)?.is_some()
            {
                continue;
            }
            let Some(asked) = chunk::clauses_to_ask(&place, plan)? else { continue };
            for index in self.columns(&asked, scanned) {
                if reader.logical(index).is_some() {
                    let range = reader.chunk_range(index, chunk, &bytes)?;
                    // The columns of a chunk lie in the same row blocks.
                    if ranges.last() != Some(&range) {
                        named.bytes += range.end - range.start;
                        ranges.push(range);
                    }
                }
            }
        }
        named.ticket = store.read_ahead(at, &merged(ranges));
        Ok(Some(named))
    }

    /// The columns that a chunk is sure to need.
    fn columns<S: Store>(&self, asked: &[usize], scanned: &Scanned<'_, S>) -> Vec<usize> {
        let plan = scanned.plan;
        let filters = !asked.is_empty() || !plan.members.is_empty();
        let only_filtering = scanned.lazy && filters && self.with_rows * 2 < self.chunks;
        let needed = match only_filtering {
            true => plan.filtering_columns(asked),
            false => plan.needed_columns(asked),
        };
        needed.into_iter().filter_map(|at| plan.columns.get(at)).map(|column| column.index).collect()
    }

    /// Names the footers of the first stripe from this position on that the scan reads. It opens that stripe
    /// when it names its chunks.
    fn name_footers<S: Store>(&self, from: usize, scanned: &Scanned<'_, S>) {
        let mut places = (from..scanned.kept.len()).filter(|&at| scanned.kept.get(at) == Some(&true));
        if scanned.end.is_none()
            && let Some(at) = places.next()
            && let Some(info) = scanned.store.stripe(at)
        {
            let start = info.footer.start.saturating_sub(self.column_footers);
            scanned.store.read_ahead(at, std::slice::from_ref(&(start..info.footer.end)));
        }
    }
}

/// What was named of a stripe.
#[derive(Default)]
struct Named {
    /// The first chunk after it.
    next: At,
    chunks: u64,
    bytes: u64,
    ticket: u64,
}

/// Bytes from the first footer of the scan's columns to the stripe's own.
fn column_footers(info: &StripeInfo<'_>, reader: &StripeReader, plan: &ChunkPlan) -> u64 {
    let starts = plan.columns.iter().filter_map(|column| reader.footer_range(column.index));
    let first = starts.map(|range| range.start).min().unwrap_or(info.footer.start);
    info.footer.start.saturating_sub(first)
}

/// The ranges in ascending order. Those that touch are one.
fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|later, range| {
        let touches = later.start <= range.end;
        if touches {
            range.end = range.end.max(later.end);
        }
        touches
    });
    ranges
}
