//! One column chunk, opened for reading: validity, values node, and the three ways to read them.
//!
//! Bytes: version (1), validity node (`validity.rs`), values node (absent if every row is NULL). A chunk is
//! parsed once, when it is opened (headers only, no values). It borrows its bytes, unless a block codec has
//! compressed the whole node.

use std::sync::Arc;

use vector::{Bitmap, Error, LogicalType, Predicate, Result, Selection, Values, Vector};

use crate::cursor::Reader;
use crate::encoding::{Leaf, MAX_DEPTH, NodeContext};
use crate::options::{BlockCodecs, Codec};
use crate::registry::{OpenNode, open_values};
use crate::shared::SharedColumn;
use crate::single::Single;
use crate::strings::template::PathColumn;
use crate::validity::{self, Validity};

/// Version of the chunk format.
pub(crate) const VERSION: u8 = 1;

/// A column chunk over its stored bytes.
pub struct Chunk<'a> {
    logical: LogicalType,
    rows: usize,
    validity: Validity,
    values: Option<OpenNode<'a>>,
}

impl<'a> Chunk<'a> {
    /// Parses a chunk of `rows` rows (as the footer says). Values are checked when they are read.
    pub fn open(
        logical: LogicalType,
        rows: u32,
        bytes: &'a [u8],
        shared: &'a Arc<SharedColumn>,
        codecs: &'a dyn BlockCodecs,
    ) -> Result<Self> {
        let rows = rows as usize;
        let mut reader = Reader::new(bytes);
        let version = reader.u8()?;
        if version != VERSION {
            return Err(Error::Unsupported(format!("chunk version {version}")));
        }
        let validity = validity::read(&mut reader, rows)?;
        let values = match validity {
            Validity::AllNull => None,
            _ => {
                let context = NodeContext { logical, rows, shared, codecs, depth: MAX_DEPTH };
                Some(open_values(&mut reader, &context)?)
            }
        };
        Ok(Self { logical, rows, validity, values })
    }

    /// Number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Which rows are NULL.
    pub const fn validity(&self) -> &Validity {
        &self.validity
    }

    /// Its encodings, outermost first: `dictionary > bitpacked`.
    pub fn encoding(&self) -> String {
        let mut out = String::new();
        match &self.values {
            Some(values) => values.describe(&mut out),
            None => out.push_str("null"),
        }
        out
    }

    /// The block codecs that compressed some of its bytes, each perhaps several times. `SharedColumn::codec`
    /// tells that of the shared section.
    ///
    /// # Errors
    /// `Corrupt` where stored bytes are bad.
    pub fn codecs(&self) -> Result<Vec<Codec>> {
        let mut out = Vec::new();
        if let Some(values) = &self.values {
            values.codecs(&mut out)?;
        }
        Ok(out)
    }

    /// All rows. The vector may be constant, dictionary-coded or run-length.
    pub fn decode(&self) -> Result<Vector> {
        let Some(values) = &self.values else { return Ok(nulls(self.logical, self.rows)) };
        let values = values.decode()?;
        self.vector(values, self.rows, || self.bits().cloned())
    }

    /// The rows at these ascending positions.
    pub fn take(&self, rows: &[u32]) -> Result<Vector> {
        let ascending = rows.is_sorted();
        if !ascending || rows.last().is_some_and(|&row| row as usize >= self.rows) {
            return Err(Error::InvalidInput(format!("positions not ascending below {}", self.rows)));
        }
        let Some(values) = &self.values else { return Ok(nulls(self.logical, rows.len())) };
        let values = values.take(rows)?;
        self.vector(values, rows.len(), || self.bits().map(|bits| bits.take(rows)))
    }

    /// The value of one row, if it can be read without making a vector. `take` reads it otherwise. `room` is
    /// for bytes that are not stored as such; what is in there is replaced.
    pub fn single<'s>(&'s self, row: u32, room: &'s mut Vec<u8>) -> Result<Option<Single<'s>>> {
        let row = row as usize;
        if row >= self.rows {
            return Err(Error::InvalidInput(format!("row {row} of a chunk of {}", self.rows)));
        }
        match &self.values {
            Some(values) if self.bits().is_none_or(|bits| bits.get(row)) => values.single(row, room),
            _ => Ok(Some(Single::Null)),
        }
    }

    /// The first value of a chunk of integers, if none is NULL and each is one more than the one before. Then
    /// positions can be computed from values. `None` for any other chunk.
    pub fn consecutive(&self) -> Option<i64> {
        match (&self.validity, &self.values) {
            (Validity::AllValid, Some(values)) => values.consecutive(),
            _ => None,
        }
    }

    /// The values of path `path` (its position in [`SharedColumn::paths`]) without the documents around them.
    /// Rows that are NULL may have values, too: look at `validity`. `None` if this chunk is not shredded:
    /// then its documents have to be decoded.
    /// Errors: `InvalidInput` when there is no such path.
    pub fn path(&self, path: usize) -> Result<Option<PathColumn>> {
        match &self.values {
            Some(values) => values.path(path),
            None => Ok(None),
        }
    }

    fn bits(&self) -> Option<&Bitmap> {
        match &self.validity {
            Validity::Some(bits) => Some(bits),
            _ => None,
        }
    }

    fn vector(&self, values: Values, rows: usize, validity: impl Fn() -> Option<Bitmap>) -> Result<Vector> {
        let vector = Vector { logical: self.logical, validity: validity(), values };
        if vector.len() == rows {
            Ok(vector)
        } else {
            Err(Error::corrupt(format!("{} values for {rows} rows", vector.len())))
        }
    }

    /// Narrows `selection` to the rows for which `predicate` is TRUE, by reading encoded data. The predicate
    /// is about this column; its column index is ignored. False, with `selection` untouched, if the encoding
    /// cannot do it: then decode and use [`crate::filter_vector`].
    pub fn filter(&self, predicate: &Predicate, selection: &mut Selection) -> Result<bool> {
        match self.mask(predicate, selection)? {
            Some(Mask::All) => Ok(true),
            Some(Mask::Bits(bits)) => {
                selection.retain_mask(&bits);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// The rows that pass. Bits of rows outside `selection` mean nothing.
    fn mask(&self, predicate: &Predicate, selection: &Selection) -> Result<Option<Mask>> {
        let none = || Ok(Some(Mask::Bits(Bitmap::filled(self.rows, false))));
        match predicate {
            Predicate::Always(true) => Ok(Some(Mask::All)),
            Predicate::Always(false) => none(),
            Predicate::IsNotNull { .. } => match &self.validity {
                Validity::AllValid => Ok(Some(Mask::All)),
                Validity::AllNull => none(),
                Validity::Some(bits) => Ok(Some(Mask::Bits(bits.clone()))),
            },
            Predicate::IsNull { .. } => match &self.validity {
                Validity::AllValid => none(),
                Validity::AllNull => Ok(Some(Mask::All)),
                Validity::Some(bits) => {
                    let words = bits.words().iter().map(|word| !word).collect();
                    Ok(Some(Mask::Bits(Bitmap::from_words(words, self.rows))))
                }
            },
            Predicate::And(parts) => {
                let mut narrowed = selection.clone();
                for part in parts {
                    match self.mask(part, &narrowed)? {
                        None => return Ok(None),
                        Some(Mask::All) => {}
                        Some(Mask::Bits(bits)) => narrowed.retain_mask(&bits),
                    }
                }
                Ok(Some(Mask::of(&narrowed, self.rows)))
            }
            Predicate::Or(parts) => {
                let mut words = vec![0u64; self.rows.div_ceil(64)];
                for part in parts {
                    match self.mask(part, selection)? {
                        None => return Ok(None),
                        Some(Mask::All) => return Ok(Some(Mask::All)),
                        Some(Mask::Bits(bits)) => {
                            words.iter_mut().zip(bits.words()).for_each(|(word, more)| *word |= more);
                        }
                    }
                }
                Ok(Some(Mask::Bits(Bitmap::from_words(words, self.rows))))
            }
            Predicate::NotIn { values, .. } => {
                Ok(self.leaf_mask(&Leaf::In(values), selection, true)?.map(Mask::Bits))
            }
            Predicate::Compare { .. } | Predicate::In { .. } | Predicate::StartsWith { .. } => {
                let Some(leaf) = Leaf::of(predicate) else { return none() };
                Ok(self.leaf_mask(&leaf, selection, false)?.map(Mask::Bits))
            }
        }
    }

    /// The rows that are not NULL and pass a leaf or, if `negated`, do not pass it. None if the encoding
    /// cannot tell.
    fn leaf_mask(&self, leaf: &Leaf<'_>, selection: &Selection, negated: bool) -> Result<Option<Bitmap>> {
        let Some(values) = &self.values else { return Ok(Some(Bitmap::filled(self.rows, false))) };
        let Some(passed) = values.test(leaf, selection)? else { return Ok(None) };
        let passed = match negated {
            true => Bitmap::from_words(passed.words().iter().map(|word| !word).collect(), self.rows),
            false => passed,
        };
        Ok(Some(match &self.validity {
            Validity::Some(bits) => {
                let both = passed.words().iter().zip(bits.words()).map(|(a, b)| a & b).collect();
                Bitmap::from_words(both, self.rows)
            }
            _ => passed,
        }))
    }
}

impl std::fmt::Debug for Chunk<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chunk")
            .field("logical", &self.logical)
            .field("rows", &self.rows)
            .field("encoding", &self.encoding())
            .finish_non_exhaustive()
    }
}

enum Mask {
    All,
    Bits(Bitmap),
}

impl Mask {
    fn of(selection: &Selection, rows: usize) -> Self {
        match selection {
            Selection::All(_) => Self::All,
            Selection::Rows(kept) => {
                let mut bits = Bitmap::filled(rows, false);
                kept.iter().for_each(|&row| bits.set(row as usize, true));
                Self::Bits(bits)
            }
        }
    }
}

/// `rows` NULLs of a type.
pub(crate) fn nulls(logical: LogicalType, rows: usize) -> Vector {
    let mut builder = vector::VectorBuilder::new(logical);
    builder.push_null();
    let one = builder.finish(&|_, _, _| Box::default());
    Vector::new(logical, Values::Constant(Box::new(one), rows))
}
