//! The best row of frames that move forward.
//!
//! Used by `extremes`, and by `sums` for the digits that are shown. It keeps, in order, the rows of the frame
//! that no later row replaces. The first of them is the answer. Each row enters and leaves once.

use std::collections::VecDeque;

use vector::Vector;

use super::input::{Input, Reader};
use super::places::Places;
use crate::{FrameBound, Result, WindowFrame, interrupt};

/// The best rows of frames.
pub struct Best<V> {
    /// The best rows of the frame's part before the rows it leaves out, and of the part after them.
    before: Slide<V>,
    after: Slide<V>,
    /// The current row, where the frame leaves out its peers.
    row: Option<(u32, V)>,
    reader: Reader,
}

impl<V> Best<V> {
    /// The best rows of frames of this kind.
    pub fn new(frame: &WindowFrame) -> Self {
        let slide = |anchored| Slide { rows: VecDeque::new(), seen: 0, anchored, reader: Reader::default() };
        let before = slide(matches!(frame.start, FrameBound::Unbounded));
        Self { before, after: slide(false), row: None, reader: Reader::default() }
    }

    /// The best row of the frame at a place, with its value. `value` gives a row's value, if it has one.
    /// `replaces` says whether a later value is at least as good as an earlier one.
    pub fn of(
        &mut self,
        input: &Input,
        argument: usize,
        (at, place): (&Places, usize),
        value: &impl Fn(&Vector, usize) -> Result<Option<V>>,
        replaces: &impl Fn(&V, &V) -> bool,
    ) -> Result<Option<&(u32, V)>> {
        let [before, (row, row_end), after] = at.parts(place);
        let best = self.before.best(input, argument, before, value, replaces)?;
        if at.holes.is_none() {
            return Ok(best);
        }
        self.row = None;
        if row < row_end {
            let (column, here) = self.reader.at(input, argument, row as usize)?;
            self.row = value(column, here)?.map(|value| (row, value));
        }
        let after = self.after.best(input, argument, after, value, replaces)?;
        let all = [best, self.row.as_ref(), after].into_iter().flatten();
        Ok(all.reduce(|best, next| if replaces(&next.1, &best.1) { next } else { best }))
    }
}

/// Rows that may become the best.
struct Slide<V> {
    rows: VecDeque<(u32, V)>,
    /// One past the last row that was looked at.
    seen: u32,
    /// No row leaves before all do.
    anchored: bool,
    reader: Reader,
}

impl<V> Slide<V> {
    /// Moves to rows `start..end`; neither may go back.
    fn best(
        &mut self,
        input: &Input,
        argument: usize,
        (start, end): (u32, u32),
        value: &impl Fn(&Vector, usize) -> Result<Option<V>>,
        replaces: &impl Fn(&V, &V) -> bool,
    ) -> Result<Option<&(u32, V)>> {
        while self.rows.front().is_some_and(|(first, _)| *first < start) {
            self.rows.pop_front();
        }
        for row in self.seen.max(start)..end {
            interrupt::check_at(row as usize)?;
            let (column, at) = self.reader.at(input, argument, row as usize)?;
            let Some(value) = value(column, at)? else { continue };
            while self.rows.back().is_some_and(|(_, last)| replaces(&value, last)) {
                self.rows.pop_back();
            }
            if !self.anchored || self.rows.is_empty() {
                self.rows.push_back((row, value));
            }
        }
        self.seen = self.seen.max(end);
        // A frame of no rows may end before rows that an earlier one reached.
        Ok(self.rows.front().filter(|_| start < end))
    }
}
