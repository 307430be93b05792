//! Where the rows of a range stand: their partitions, their peers and their frames.

use std::ops::Range;

use super::frames::Frames;
use super::input::Input;
use crate::Result;

/// For each row of a range, positions in the chunk; ends are one past the last row.
#[derive(Default)]
pub struct Places {
    /// The rows.
    pub rows: Range<usize>,
    /// Where the row's partition begins.
    pub partition_start: Vec<u32>,
    /// Where the row's partition ends.
    pub partition_end: Vec<u32>,
    /// Where the row's peers begin.
    pub peers_start: Vec<u32>,
    /// Where the row's peers end.
    pub peers_end: Vec<u32>,
    /// How many groups of peers the partition has before this one.
    pub group: Vec<u32>,
    /// Where the frame begins, without regard to the rows that it leaves out.
    pub frame_start: Vec<u32>,
    /// Where the frame ends; never before it begins.
    pub frame_end: Vec<u32>,
    /// The rows that frames leave out, if they leave out any.
    pub holes: Option<Holes>,
    /// The partition at hand, by number, the group of peers, and its number in the partition.
    partition: usize,
    peers: Range<usize>,
    number: u32,
}

/// What each frame leaves out.
#[derive(Default)]
pub struct Holes {
    /// First row left out, within the frame.
    pub start: Vec<u32>,
    /// One past the last one.
    pub end: Vec<u32>,
    /// The current row is in the frame though its peers are not.
    pub keep_row: bool,
}

impl Places {
    /// Goes on to the next `len` rows.
    pub fn next(&mut self, input: &Input, len: usize, frames: Option<&mut Frames>) -> Result<()> {
        let start = self.rows.end;
        self.rows = start..(start + len).min(input.rows);
        for column in [
            &mut self.partition_start,
            &mut self.partition_end,
            &mut self.peers_start,
            &mut self.peers_end,
            &mut self.group,
        ] {
            column.clear();
        }
        let mut at = start;
        while at < self.rows.end {
            while input.partitions.get(self.partition + 1).is_some_and(|&end| end as usize <= at) {
                self.partition += 1;
            }
            let bound = |number: usize| input.partitions.get(number).copied().unwrap_or(input.rows as u32);
            let partition = (bound(self.partition), bound(self.partition + 1));
            if at >= self.peers.end {
                self.number = if at == partition.0 as usize { 0 } else { self.number + 1 };
                self.peers = at..input.next_peers(at + 1);
            }
            let end = self.peers.end.min(self.rows.end);
            let rows = self.partition_start.len() + end - at;
            self.partition_start.resize(rows, partition.0);
            self.partition_end.resize(rows, partition.1);
            self.peers_start.resize(rows, self.peers.start as u32);
            self.peers_end.resize(rows, self.peers.end as u32);
            self.group.resize(rows, self.number);
            at = end;
        }
        match frames {
            Some(frames) => frames.fill(input, self),
            None => Ok(()),
        }
    }

    /// How many rows the range has.
    pub const fn len(&self) -> usize {
        self.rows.end - self.rows.start
    }

    /// The rows of the frame of the `at`-th row: up to three ranges, in order.
    #[inline]
    pub fn parts(&self, at: usize) -> [(u32, u32); 3] {
        let (start, end) = (self.frame_start[at], self.frame_end[at]);
        match &self.holes {
            None => [(start, end), (end, end), (end, end)],
            Some(holes) => {
                let (from, to) = (holes.start[at], holes.end[at]);
                let row = (self.rows.start + at) as u32;
                let middle =
                    if holes.keep_row && start <= row && row < end { (row, row + 1) } else { (to, to) };
                [(start, from), middle, (to, end)]
            }
        }
    }

    /// Whether a row's frame is that of the row before, which is in the range, too.
    #[inline]
    pub fn is_repeated(&self, at: usize) -> bool {
        at > 0
            && self.holes.is_none()
            && self.frame_start[at] == self.frame_start[at - 1]
            && self.frame_end[at] == self.frame_end[at - 1]
    }
}
