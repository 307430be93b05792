//! An opened chunk that owns the bytes that it reads, so that it can be kept from one look-up to the next.
//!
//! Opening a chunk (its checksum, the headers of its nodes) costs several times as much as taking one value.

use std::ops::Range;
use std::sync::Arc;

use encodings::{BlockCodecs, Chunk, SharedColumn};
use self_cell::self_cell;
use vector::{LogicalType, Result};

use crate::owned_chunk::OwnedChunk;
use crate::row_block::RowBlock;

/// What a chunk reads.
pub(crate) enum Source {
    /// A chunk of one piece.
    Chunk(Arc<OwnedChunk>),
    /// A column's piece in a row block. Its checksum was compared.
    Block {
        block: Arc<RowBlock>,
        column: usize,
        logical: LogicalType,
        piece: Range<usize>,
        shared: Arc<SharedColumn>,
    },
}

impl Source {
    fn open<'a>(&'a self, codecs: &'a dyn BlockCodecs) -> Result<Chunk<'a>> {
        match self {
            Self::Chunk(stored) => stored.open(codecs),
            Self::Block { block, column, logical, piece, shared } => {
                Chunk::open(*logical, block.rows(), block.part(*column, piece.clone()), shared, codecs)
            }
        }
    }
}

self_cell!(
    struct Cell {
        owner: Source,
        #[covariant]
        dependent: Chunk,
    }
);

/// An opened chunk with its bytes.
pub struct OpenedChunk(Cell);

impl OpenedChunk {
    /// A chunk of one piece that was read and verified.
    pub fn of(stored: &Arc<OwnedChunk>, codecs: &'static dyn BlockCodecs) -> Result<Self> {
        Self::open(Source::Chunk(Arc::clone(stored)), codecs)
    }

    pub(crate) fn open(source: Source, codecs: &'static dyn BlockCodecs) -> Result<Self> {
        Cell::try_new(source, |source| source.open(codecs)).map(Self)
    }

    /// The chunk.
    pub fn chunk(&self) -> &Chunk<'_> {
        self.0.borrow_dependent()
    }

    /// About how much memory it takes beside the bytes that it reads. An opened chunk keeps up to one number
    /// for each row: where texts begin, or which shape documents have.
    pub fn memory(&self) -> usize {
        size_of::<Source>() + size_of::<Chunk<'_>>() + self.chunk().rows() * size_of::<u32>()
    }
}
