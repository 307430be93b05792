//! One column chunk that was read: its bytes, and what is needed to decode them. It knows no store, so that
//! any thread can work on it.
//!
//! Made by `StripeReader`. A chunk has one *piece* where a stripe stores each column apart, and one for each
//! row block where it stores rows in blocks (`blocks`). A piece is what `encodings` calls a chunk. Errors
//! name column and chunk.
//!
//! Invariant: no byte is decoded before its checksum was compared.

use std::ops::Range;
use std::sync::Arc;

use encodings::{BlockCodecs, Chunk, Path, SharedColumn, filter_vector};
use vector::{Error, LogicalType, PhysicalType, Predicate, Result, Selection, Vector, concat_coded};

use crate::blocks::short_checksum;
use crate::cursor::checksum;
use crate::footer::Section;

/// Encoded rows of one column that lie together.
#[derive(Clone)]
pub(crate) struct Piece {
    /// Rows.
    pub rows: u32,
    /// Bytes that were read at once, perhaps with those of other pieces.
    pub source: Arc<Vec<u8>>,
    /// Which of them are this piece's.
    pub range: Range<usize>,
    /// Where they lie in the stripe, and their checksum.
    pub section: Section,
    /// The checksum is that of a piece in a row block.
    pub is_short: bool,
}

impl Piece {
    /// All of some bytes.
    pub fn whole(rows: u32, bytes: Vec<u8>, section: Section) -> Self {
        Self { rows, range: 0..bytes.len(), source: Arc::new(bytes), section, is_short: false }
    }

    fn bytes(&self) -> &[u8] {
        self.source.get(self.range.clone()).unwrap_or(&[])
    }

    fn verify(&self) -> Result<()> {
        match self.is_short {
            true => self.section.expect(short_checksum(self.bytes(), self.section.range.start).into()),
            // An empty section has no checksum.
            false if self.section.range.is_empty() => Ok(()),
            false => self.section.expect(checksum(self.bytes())),
        }
    }
}

/// The bytes of one column chunk with what is needed to read them.
#[derive(Clone)]
pub struct OwnedChunk {
    logical: LogicalType,
    rows: u32,
    pieces: Vec<Piece>,
    /// The bytes were compared with their checksums.
    verified: bool,
    shared: Arc<SharedColumn>,
    column: Option<u32>,
    chunk: u32,
}

impl OwnedChunk {
    /// A chunk that has yet to be verified. `column` and `chunk` are for errors.
    pub(crate) fn new(
        logical: LogicalType,
        pieces: Vec<Piece>,
        shared: Arc<SharedColumn>,
        column: Option<u32>,
        chunk: u32,
    ) -> Self {
        let rows = pieces.iter().map(|piece| piece.rows).sum();
        Self { logical, rows, pieces, verified: false, shared, column, chunk }
    }

    /// Number of rows.
    pub const fn rows(&self) -> u32 {
        self.rows
    }

    /// Stored length in bytes.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.range.len()).sum()
    }

    /// True when it takes no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Compares the bytes with their checksums, unless that was done. No other method works before.
    pub fn verify(&mut self) -> Result<()> {
        if !self.verified {
            for piece in &self.pieces {
                piece.verify().map_err(|e| self.located(e))?;
            }
            self.verified = true;
        }
        Ok(())
    }

    /// Its pieces, each as a chunk of its own.
    pub fn pieces(&self) -> impl ExactSizeIterator<Item = Self> + '_ {
        self.pieces.iter().map(|piece| Self { rows: piece.rows, pieces: vec![piece.clone()], ..self.alone() })
    }

    fn alone(&self) -> Self {
        let Self { logical, rows, verified, column, chunk, .. } = *self;
        Self { logical, rows, pieces: Vec::new(), verified, shared: Arc::clone(&self.shared), column, chunk }
    }

    /// The encoded values of a chunk of one piece. Errors of its methods do not name the place. Errors of the
    /// methods below do.
    pub fn open<'a>(&'a self, codecs: &'a dyn BlockCodecs) -> Result<Chunk<'a>> {
        match self.pieces.as_slice() {
            [piece] => self.open_piece(piece, codecs),
            pieces => Err(self.located(Error::InvalidInput(format!("a chunk of {} pieces", pieces.len())))),
        }
    }

    fn open_piece<'a>(&'a self, piece: &'a Piece, codecs: &'a dyn BlockCodecs) -> Result<Chunk<'a>> {
        if !self.verified {
            return Err(self.located(Error::InvalidInput("a chunk that was not verified".into())));
        }
        Chunk::open(self.logical, piece.rows, piece.bytes(), &self.shared, codecs)
            .map_err(|e| self.located(e))
    }

    /// The paths of shredded documents (`Chunk::path`), by number. Empty for any other column.
    pub fn paths(&self, codecs: &dyn BlockCodecs) -> Result<Vec<Path>> {
        self.shared.paths(codecs).map_err(|e| self.located(e))
    }

    /// All rows.
    pub fn decode(&self, codecs: &dyn BlockCodecs) -> Result<Vector> {
        let decoded = |piece| {
            let vector = self.open_piece(piece, codecs)?.decode().map_err(|e| self.located(e))?;
            self.checked(vector, piece.rows as usize)
        };
        self.joined(self.pieces.iter().map(decoded).collect::<Result<_>>()?)
    }

    /// The rows at these ascending positions in the chunk.
    pub fn take(&self, rows: &[u32], codecs: &dyn BlockCodecs) -> Result<Vector> {
        if rows.last().is_some_and(|&last| last >= self.rows) || !rows.is_sorted() {
            let (count, total) = (rows.len(), self.rows);
            return Err(Error::InvalidInput(format!("{count} rows that do not ascend below {total}")));
        }
        let mut parts = Vec::new();
        let (mut rest, mut start) = (rows, 0);
        for piece in &self.pieces {
            let end = start + piece.rows;
            let (here, after) = rest.split_at(rest.partition_point(|&row| row < end));
            if !here.is_empty() {
                let places: Vec<u32> = here.iter().map(|&row| row - start).collect();
                let taken = self.open_piece(piece, codecs)?.take(&places).map_err(|e| self.located(e))?;
                parts.push(self.checked(taken, here.len())?);
            }
            (rest, start) = (after, end);
        }
        self.joined(parts)
    }

    /// The first value of a chunk of integers, if each integer is one more than the one before
    /// (`Chunk::consecutive`). Chunks of other types are not opened, because that may mean to decompress
    /// them.
    pub fn consecutive(&self, codecs: &dyn BlockCodecs) -> Result<Option<i64>> {
        if !matches!(self.logical.physical(), PhysicalType::Int16 | PhysicalType::Int32 | PhysicalType::Int64)
        {
            return Ok(None);
        }
        let (mut first, mut next) = (None, None);
        for piece in &self.pieces {
            match self.open_piece(piece, codecs)?.consecutive() {
                Some(value) if next.is_none_or(|next| value == next) => {
                    first = first.or(Some(value));
                    next = value.checked_add(piece.rows.into());
                    if next.is_none() && piece.rows > 0 {
                        return Ok(None);
                    }
                }
                _ => return Ok(None),
            }
        }
        Ok(first)
    }

    /// Keeps the selected rows that satisfy a predicate on this column, on encoded data. False: it is not
    /// possible, and nothing was changed.
    pub fn filter(
        &self,
        predicate: &Predicate,
        selection: &mut Selection,
        codecs: &dyn BlockCodecs,
    ) -> Result<bool> {
        if let [piece] = self.pieces.as_slice() {
            let chunk = self.open_piece(piece, codecs)?;
            return chunk.filter(predicate, selection).map_err(|e| self.located(e));
        }
        if self.logical.physical() != PhysicalType::Bytes && has_long_list(predicate) {
            return Ok(false);
        }
        let mut kept = Vec::new();
        let mut asked = false;
        let mut start = 0;
        for piece in &self.pieces {
            let end = start + piece.rows;
            let mut here = part(selection, start..end);
            if !here.is_empty() {
                let chunk = self.open_piece(piece, codecs)?;
                if !chunk.filter(predicate, &mut here).map_err(|e| self.located(e))? {
                    // What the first piece cannot answer, the others cannot either, as a rule.
                    if !asked {
                        return Ok(false);
                    }
                    let decoded = chunk.decode().map_err(|e| self.located(e))?;
                    filter_vector(&decoded, predicate, &mut here)?;
                }
                asked = true;
                kept.extend(here.iter().map(|row| start + row));
            }
            start = end;
        }
        if kept.len() < selection.len() {
            *selection = Selection::Rows(kept);
        }
        Ok(true)
    }

    fn joined(&self, parts: Vec<Vector>) -> Result<Vector> {
        concat_coded(self.logical, parts).map_err(|e| self.located(e))
    }

    fn checked(&self, vector: Vector, rows: usize) -> Result<Vector> {
        match vector.len() == rows {
            true => Ok(vector),
            false => {
                Err(self.located(Error::corrupt(format!("{} values where {rows} belong", vector.len()))))
            }
        }
    }

    /// Adds the place to an error of the opened chunk.
    pub fn located(&self, error: Error) -> Error {
        error.at(self.column, Some(self.chunk))
    }
}

/// A list of more values than this is made ready for all rows of a chunk, and not for each piece anew.
const LONG_LIST: usize = 8;

fn has_long_list(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::In { values, .. } | Predicate::NotIn { values, .. } => values.len() > LONG_LIST,
        Predicate::And(parts) | Predicate::Or(parts) => parts.iter().any(has_long_list),
        _ => false,
    }
}

/// The selected rows among these, counted from the first of them.
fn part(selection: &Selection, rows: Range<u32>) -> Selection {
    match selection {
        Selection::All(_) => Selection::All(rows.end - rows.start),
        Selection::Rows(selected) => {
            let from = selected.partition_point(|&row| row < rows.start);
            let to = selected.partition_point(|&row| row < rows.end);
            let here = selected.get(from..to).unwrap_or(&[]);
            match here.len() == (rows.end - rows.start) as usize {
                true => Selection::All(rows.end - rows.start),
                false => Selection::Rows(here.iter().map(|&row| row - rows.start).collect()),
            }
        }
    }
}

impl std::fmt::Debug for OwnedChunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnedChunk")
            .field("logical", &self.logical)
            .field("rows", &self.rows)
            .field("bytes", &self.len())
            .finish_non_exhaustive()
    }
}
