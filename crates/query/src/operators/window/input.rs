//! The part of a chunk's rows that functions look at: the arguments, and where partitions and groups of peers
//! begin. The arguments are one piece in memory or pages of a temporary file.
//!
//! Made by `unit`, read by everything that computes. Code that goes through the rows has a `Reader`, which
//! holds the piece that it is at. The last few pages read are kept, so readers that are close together share
//! them. Rows in any order are asked for many at a time (`take`), so that each page is read once for them.
//! Invariant: a piece is never empty, and pieces follow each other without a gap.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use vector::{Bitmap, LogicalType, Vector};

use super::MISTYPED;
use crate::expression::end_to_end;
use crate::kernels::words::both;
use crate::row_container::{BatchFile, BatchQueue, Queued};
use crate::{Result, interrupt};

/// No row: NULL.
pub const ABSENT: u32 = u32::MAX;
/// Pages that are kept beside those that readers hold.
const RECENT: usize = 8;

/// The rows.
pub struct Input {
    /// How many.
    pub rows: usize,
    /// Where partitions begin, and the number of rows.
    pub partitions: Vec<u32>,
    /// A bit for each row: it begins a group of peers.
    peers: Bitmap,
    arguments: Arguments,
}

enum Arguments {
    Memory(Arc<Piece>),
    File(Box<RefCell<Pages>>),
}

/// Rows that follow each other.
pub struct Piece {
    /// Which ones.
    pub rows: Range<usize>,
    columns: Vec<Arc<Vector>>,
}

impl Piece {
    /// An argument's values, flat.
    pub fn argument(&self, at: usize) -> Result<&Vector> {
        self.columns.get(at).map(AsRef::as_ref).ok_or(MISTYPED)
    }
}

struct Pages {
    file: BatchFile,
    /// First row of each page.
    starts: Vec<u32>,
    recent: VecDeque<Arc<Piece>>,
}

impl Pages {
    fn piece(&mut self, row: usize) -> Result<Arc<Piece>> {
        if let Some(piece) = self.recent.iter().find(|piece| piece.rows.contains(&row)) {
            return Ok(Arc::clone(piece));
        }
        interrupt::check()?;
        let page = self.starts.partition_point(|&start| start as usize <= row).saturating_sub(1);
        let start = self.starts.get(page).map_or(0, |&start| start as usize);
        let batch = self.file.page(page)?;
        let piece = Arc::new(Piece { rows: start..start + batch.rows, columns: batch.columns });
        self.recent.truncate(RECENT - 1);
        self.recent.push_front(Arc::clone(&piece));
        Ok(piece)
    }
}

impl Input {
    /// The input of a chunk with these arguments.
    pub fn new(
        partitions: Vec<u32>,
        peers: Bitmap,
        arguments: BatchQueue,
        types: &[LogicalType],
    ) -> Result<Self> {
        let rows = peers.len();
        let arguments = match arguments.into_queued()? {
            Queued::Batches(batches) => {
                let mut parts: Vec<Vec<Vector>> = types.iter().map(|_| Vec::new()).collect();
                for batch in batches {
                    for (parts, column) in parts.iter_mut().zip(batch.columns) {
                        parts.push(Arc::unwrap_or_clone(column));
                    }
                }
                let columns = types.iter().zip(parts).map(|(&logical, parts)| {
                    interrupt::check()?;
                    joined(logical, parts).map(Arc::new)
                });
                Arguments::Memory(Arc::new(Piece { rows: 0..rows, columns: columns.collect::<Result<_>>()? }))
            }
            Queued::File(file) => {
                let starts = file.pages().scan(0, |next, rows| {
                    let start = *next;
                    *next += rows as u32;
                    Some(start)
                });
                let starts = starts.collect();
                let pages = Pages { file, starts, recent: VecDeque::new() };
                Arguments::File(Box::new(RefCell::new(pages)))
            }
        };
        Ok(Self { rows, partitions, peers, arguments })
    }

    /// Where the first group of peers begins at this row or after it; the number of rows behind the last one.
    pub fn next_peers(&self, row: usize) -> usize {
        self.peers.next_one(row).unwrap_or(self.rows)
    }

    /// The piece that has a row.
    fn piece(&self, row: usize) -> Result<Arc<Piece>> {
        match &self.arguments {
            Arguments::Memory(piece) => Ok(Arc::clone(piece)),
            Arguments::File(pages) => pages.borrow_mut().piece(row),
        }
    }

    /// Calls `look` with each piece, in order.
    pub fn each_piece(&self, mut look: impl FnMut(&Piece) -> Result<()>) -> Result<()> {
        let mut row = 0;
        while row < self.rows {
            let piece = self.piece(row)?;
            look(&piece)?;
            row = piece.rows.end;
        }
        Ok(())
    }

    /// The values of an argument in rows that follow each other.
    pub fn slice(&self, argument: usize, rows: Range<usize>) -> Result<Vector> {
        let mut parts = Vec::new();
        let mut row = rows.start;
        while row < rows.end {
            let piece = self.piece(row)?;
            let end = rows.end.min(piece.rows.end);
            parts.push(piece.argument(argument)?.slice(row - piece.rows.start, end - row));
            row = end;
        }
        joined(parts.first().ok_or(MISTYPED)?.logical, parts)
    }

    /// The values of an argument in these rows; NULL for `ABSENT`.
    pub fn take(&self, argument: usize, rows: &mut [u32]) -> Result<Vector> {
        if !rows.contains(&ABSENT) {
            return self.present(argument, rows);
        }
        let present: Bitmap = rows.iter().map(|&row| row != ABSENT).collect();
        // Any row will do for them: one that is needed anyway.
        let mut last = rows.iter().copied().find(|&row| row != ABSENT).unwrap_or(0);
        for row in rows.iter_mut() {
            match *row {
                ABSENT => *row = last,
                row => last = row,
            }
        }
        let mut taken = self.present(argument, rows)?;
        taken.validity = both(taken.validity.as_ref(), Some(&present));
        Ok(taken)
    }

    fn present(&self, argument: usize, rows: &[u32]) -> Result<Vector> {
        if let Arguments::Memory(piece) = &self.arguments {
            return Ok(piece.argument(argument)?.take(rows));
        }
        let ordered = rows.is_sorted();
        let mut places: Vec<u32> = (0..rows.len() as u32).collect();
        if !ordered {
            places.sort_by_key(|&place| rows[place as usize]);
        }
        let mut parts = Vec::new();
        let mut left = places.as_slice();
        while let Some(&first) = left.first() {
            let piece = self.piece(rows[first as usize] as usize)?;
            let here = left.partition_point(|&place| (rows[place as usize] as usize) < piece.rows.end);
            let (some, others) = left.split_at(here);
            let local = some.iter().map(|&place| rows[place as usize] - piece.rows.start as u32);
            parts.push(piece.argument(argument)?.take(&local.collect::<Vec<_>>()));
            left = others;
        }
        let taken = joined(parts.first().ok_or(MISTYPED)?.logical, parts)?;
        if ordered {
            return Ok(taken);
        }
        let mut back = vec![0; rows.len()];
        (0..).zip(&places).for_each(|(at, &place)| back[place as usize] = at);
        Ok(taken.take(&back))
    }
}

fn joined(logical: LogicalType, mut parts: Vec<Vector>) -> Result<Vector> {
    match parts.len() {
        1 => parts.pop().ok_or(MISTYPED),
        _ => end_to_end(logical, parts),
    }
}

/// A place in a chunk's rows, for code that goes through them. It always belongs to the same chunk.
#[derive(Default)]
pub struct Reader(Option<Arc<Piece>>);

impl Reader {
    /// The piece that has a row.
    #[inline]
    pub fn piece(&mut self, input: &Input, row: usize) -> Result<&Piece> {
        if !self.0.as_ref().is_some_and(|piece| piece.rows.contains(&row)) {
            self.0 = Some(input.piece(row)?);
        }
        self.0.as_deref().ok_or(MISTYPED)
    }

    /// An argument's values around a row, and the row's place among them.
    #[inline]
    pub fn at(&mut self, input: &Input, argument: usize, row: usize) -> Result<(&Vector, usize)> {
        let piece = self.piece(input, row)?;
        Ok((piece.argument(argument)?, row - piece.rows.start))
    }
}
