//! Which blocks of a table may hold hot rows.
//!
//! They are all blocks except block 0 and those that any version of any directory row names. Stripe pages
//! that no row names count as hot, as those of a loader that is still at work or has died. They look empty to
//! heap, so this costs time but is never wrong.
//!
//! A block that a row names cannot turn into a heap page while a version of that row is there (protocol point
//! 7). So a scan that begins after its snapshot was taken misses nothing.

use pgrx::pg_sys::BlockNumber;

use crate::storage::file::pages::BlockRun;

/// Blocks `start..end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First block.
    pub start: BlockNumber,
    /// One past the last block.
    pub end: BlockNumber,
}

impl Span {
    /// Number of blocks.
    pub fn blocks(&self) -> u32 {
        self.end.saturating_sub(self.start)
    }
}

/// Blocks of one piece.
const PIECE: u32 = 1024;

/// A span in pieces, so that a scan can report its progress after each.
pub fn pieces(span: Span) -> impl Iterator<Item = Span> {
    (span.start..span.end)
        .step_by(PIECE as usize)
        .map(move |start| Span { start, end: start.saturating_add(PIECE).min(span.end) })
}

/// The hot spans below `blocks`, ascending. `runs` are those of every version of the directory's rows.
pub fn hot_spans(runs: impl IntoIterator<Item = BlockRun>, blocks: BlockNumber) -> Vec<Span> {
    let mut cold: Vec<(u32, u32)> =
        runs.into_iter().filter(|run| run.block_count > 0).map(|run| (run.first_block, run.end())).collect();
    cold.sort_unstable();
    let mut spans = Vec::new();
    let mut at = 1;
    for (start, end) in cold {
        let start = start.min(blocks);
        if start > at {
            spans.push(Span { start: at, end: start });
        }
        at = at.max(end);
    }
    if at < blocks {
        spans.push(Span { start: at, end: blocks });
    }
    spans
}

/// The parts of `spans` within blocks `first..=last`.
pub fn clip(spans: &[Span], first: BlockNumber, last: BlockNumber) -> Vec<Span> {
    spans
        .iter()
        .map(|span| Span { start: span.start.max(first), end: span.end.min(last.saturating_add(1)) })
        .filter(|span| span.start < span.end)
        .collect()
}

/// At most `limit` spans that cover all of `spans`. The narrowest gaps are closed first.
pub fn coarsen(mut spans: Vec<Span>, limit: usize) -> Vec<Span> {
    while spans.len() > limit.max(1) {
        let Some(at) = (1..spans.len()).min_by_key(|&i| spans[i].start - spans[i - 1].end) else { break };
        spans[at - 1].end = spans[at].end;
        spans.remove(at);
    }
    spans
}
