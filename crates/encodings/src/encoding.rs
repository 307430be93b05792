//! The shape that every encoding has, on both sides of the bytes.
//!
//! **How to add an encoding.** Give it a folder (or file) of its own and an [`EncodingId`].
//! - On the writing side, implement [`Encoding`] (`estimate` on a sample, then `begin` over the whole column
//!   of the stripe). Implement [`ColumnEncoder`] (`chunk` for each chunk, `shared` at the end for what all
//!   chunks use). Name it in the list of candidates of its physical type (`chooser::candidates`,
//!   `strings::candidates`).
//! - On the reading side, implement [`Node`]: `decode`, `take`, `single` if a value can be read without a
//!   vector, and `test` if a predicate can be answered without decoding. Name its `open` function in
//!   `open_values` of `registry.rs` or, for byte strings, in `strings::open`.
//! - Parts that are themselves integers (codes, lengths, positions) go through [`crate::integers`]. Byte
//!   strings that a block codec may shrink go through [`crate::codec`].
//!
//! **An encoding of integers** is different, because parts of other encodings are integers, too. Add a
//! variant to `Kind` and a branch to `open_tagged` in `integers/node.rs`, and a branch to `write_node` in
//! `integers/mod.rs`.
//!
//! **Tests** of an encoding: `tests/conformance.rs` (integers: `INTEGER_ENCODINGS`) and a golden file
//! (`tests/golden.rs`). `tests/random.rs` takes each [`EncodingId`] by itself. FORMAT.md describes the bytes.
//!
//! Estimate, choose and encode are separate steps. `estimate` writes nothing, and the chooser (`chooser.rs`)
//! compares. An encoder may find on the whole column that the sample misled it. Then it gives up and returns
//! `None` from `begin`, or `false` from `chunk`. Such a chunk gets the type's plain or chunk-local encoding.
//!
//! Invariant: a node has exactly the rows that its parent says. It holds a value for NULL rows, too (any
//! value). `decode`, `take`, `single` and `test` agree.

use std::ops::Range;
use std::sync::Arc;

use vector::{
    Bitmap, CompareOp, Error, LogicalType, PhysicalType, Predicate, Result, Scalar, Selection, Values, Vector,
};

use crate::cursor::Writer;
use crate::options::{BlockCodecs, Codec, EncodeOptions, EncodingId};
use crate::shared::SharedColumn;
use crate::single::Single;
use crate::strings::template::PathColumn;

/// How deep a values node may nest children. Deeper is corrupt on reading and never written.
pub const MAX_DEPTH: u8 = 3;

/// What an encoding expects to need.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Bytes of the whole column, shared parts included.
    pub bytes: f64,
    /// Factor on `bytes` when candidates are compared: 1 for the fastest decoders, more for slower ones.
    pub penalty: f64,
}

/// A few contiguous runs of rows, spread over the column, so that they show both neighbours and the whole
/// range.
#[derive(Debug)]
pub struct Sample<'c> {
    /// The whole column (flat).
    pub column: &'c Vector,
    /// The sampled rows, run after run (flat).
    pub rows: Vector,
}

impl Sample<'_> {
    /// How many rows of the column there are for each row of the sample.
    pub fn factor(&self) -> f64 {
        match self.rows.len() {
            0 => 1.0,
            sampled => self.column.len() as f64 / sampled as f64,
        }
    }
}

/// The writing side of an encoding.
pub trait Encoding: Sync {
    /// Its stored id.
    fn id(&self) -> EncodingId;

    /// What it would cost, judged by the sample. `None` if it cannot hold such values or surely does not pay.
    fn estimate(&self, sample: &Sample<'_>, options: &EncodeOptions<'_>) -> Option<Estimate>;

    /// Prepares to encode the whole column. `None` if the full column shows that it cannot or should not. A
    /// forced encoding gives up only if it cannot.
    fn begin<'c>(
        &self,
        column: &'c Vector,
        options: &EncodeOptions<'c>,
    ) -> Result<Option<Box<dyn ColumnEncoder + 'c>>>;
}

/// Encodes the chunks of one column in order.
pub trait ColumnEncoder {
    /// Appends the values node (tag, payload) of these rows. False, with nothing appended, if this encoding
    /// cannot hold them.
    fn chunk(&mut self, rows: Range<usize>, out: &mut Writer) -> Result<bool>;

    /// The payload of the shared section, asked for after the last chunk. `None` if no chunk needs one.
    fn shared(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

/// What a node needs to know to read itself.
#[derive(Clone, Copy)]
pub struct NodeContext<'a> {
    /// Meaning of the values.
    pub logical: LogicalType,
    /// Rows the node holds.
    pub rows: usize,
    /// The column's shared section.
    pub shared: &'a Arc<SharedColumn>,
    /// The host's block codecs.
    pub codecs: &'a dyn BlockCodecs,
    /// Levels of children still allowed below this node.
    pub depth: u8,
}

impl NodeContext<'_> {
    /// The width in which the values are held.
    pub const fn physical(&self) -> PhysicalType {
        self.logical.physical()
    }

    /// The depth that is left to a child. `Corrupt` if there is none.
    pub fn deeper(&self) -> Result<u8> {
        self.depth.checked_sub(1).ok_or_else(|| Error::corrupt("nodes nested too deep"))
    }
}

/// The reading side: a parsed values node.
pub trait Node {
    /// Appends its name and those of its children, for EXPLAIN and benchmarks.
    fn describe(&self, out: &mut String);

    /// Appends the block codecs that compressed some of its bytes, and of its children's. Those of the shared
    /// section are left out.
    fn codecs(&self, _out: &mut Vec<Codec>) -> Result<()> {
        Ok(())
    }

    /// All rows. May be `Constant`, `Dictionary` or `Runs`.
    fn decode(&self) -> Result<Values>;

    /// The rows at these ascending positions, each below the node's row count (checked by the caller).
    fn take(&self, rows: &[u32]) -> Result<Values>;

    /// The value of one row, which is not NULL and below the node's row count (checked by the caller). Bytes
    /// that are not stored as such are put into `room`, in place of what is there. `None` if `take` has to
    /// make a vector for it.
    fn single<'s>(&'s self, _row: usize, _room: &'s mut Vec<u8>) -> Result<Option<Single<'s>>> {
        Ok(None)
    }

    /// One bit a row: does the value pass? Only rows in `selection` need a right bit. NULL rows may have any.
    /// `None` if the encoding cannot tell without decoding.
    fn test(&self, _leaf: &Leaf<'_>, _selection: &Selection) -> Result<Option<Bitmap>> {
        Ok(None)
    }

    /// The first value, if each value is one more than the one before, as `Node::decode` would give them.
    /// `None` otherwise.
    fn consecutive(&self) -> Option<i64> {
        None
    }

    /// The values of one path of shredded documents. `None` if the encoding keeps documents whole.
    fn path(&self, _path: usize) -> Result<Option<PathColumn>> {
        Ok(None)
    }
}

/// A condition on one value that is not NULL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Leaf<'p> {
    /// Comparison with a constant that is not NULL.
    Compare(CompareOp, &'p Scalar),
    /// Equality with one of these.
    In(&'p [Scalar]),
    /// Bytes start with these.
    StartsWith(&'p [u8]),
}

impl<'p> Leaf<'p> {
    /// The condition as a predicate of its own (on column 0), to keep.
    pub fn to_predicate(self) -> Predicate {
        let column = 0;
        match self {
            Self::Compare(op, value) => Predicate::Compare { column, op, value: value.clone() },
            Self::In(values) => Predicate::In { column, values: values.to_vec() },
            Self::StartsWith(prefix) => Predicate::StartsWith { column, prefix: prefix.into() },
        }
    }

    /// The leaf that a predicate is. None if it is no leaf.
    pub fn of(predicate: &'p Predicate) -> Option<Self> {
        match predicate {
            Predicate::Compare { op, value, .. } => Some(Self::Compare(*op, value)),
            Predicate::In { values, .. } => Some(Self::In(values)),
            Predicate::StartsWith { prefix, .. } => Some(Self::StartsWith(prefix)),
            _ => None,
        }
    }
}
