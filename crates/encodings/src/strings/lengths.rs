//! The lengths of byte strings that are end to end, and so their places.
//!
//! Called by every string node that keeps data in one run of bytes. Bytes: varint 0 and an integer node of
//! the lengths (with its length before it), or varint `length + 1` if all are equal.
//!
//! Invariant: `spans` checks that the lengths add up to exactly the data that they describe. So a place is
//! always inside it.

use std::cell::OnceCell;
use std::rc::Rc;

use vector::{Error, Result};

use crate::cursor::{Reader, Writer};
use crate::encoding::NodeContext;
use crate::integers::{self, IntNode};

/// The largest length or sum of lengths in one node, because views address 32 bits.
const MAX_BYTES: usize = u32::MAX as usize;

/// Lengths as stored.
pub enum Lengths<'a> {
    /// All the same.
    Fixed(u32),
    /// One length for each value, and the places that follow from them once they were asked for. Code that
    /// takes single values asks again and again.
    Node(IntNode<'a>, OnceCell<Rc<Vec<u32>>>),
}

/// Where values are.
#[derive(Debug)]
pub enum Spans {
    /// All values have this length.
    Fixed(u32),
    /// Value i is at `offsets[i]..offsets[i + 1]`.
    Offsets(Rc<Vec<u32>>),
}

/// Writes the lengths.
pub fn write(lengths: &[i64], out: &mut Writer) -> Result<()> {
    let total: i64 = lengths.iter().sum();
    if u32::try_from(total).is_err() {
        return Err(Error::InvalidInput(format!("{total} bytes in one chunk")));
    }
    match lengths {
        [first, rest @ ..] if rest.iter().all(|length| length == first) => {
            out.varint(first.cast_unsigned() + 1);
        }
        _ => {
            out.varint(0);
            integers::write_child(lengths, integers::CHILD_DEPTH, out);
        }
    }
    Ok(())
}

impl<'a> Lengths<'a> {
    /// Reads the lengths of `context.rows` values.
    pub fn read(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<Self> {
        match reader.count(MAX_BYTES + 1, "length of values")? {
            0 => {
                let node = IntNode::open(&mut reader.child()?, context.rows, context.deeper()?)?;
                Ok(Self::each(node))
            }
            length => Ok(Self::Fixed(u32::try_from(length - 1).unwrap_or(u32::MAX))),
        }
    }

    /// One length for each value, of a node that is open.
    pub const fn each(node: IntNode<'a>) -> Self {
        Self::Node(node, OnceCell::new())
    }

    /// Appends the name of the node that holds the lengths, if there is one.
    pub fn describe(&self, out: &mut String) {
        if let Self::Node(node, _) = self {
            out.push_str(" > ");
            node.describe(out);
        }
    }

    /// Where values begin, and where the last one ends, for code that asks once. As `spans`.
    pub fn offsets(&self, rows: usize, data: usize) -> Result<Vec<u32>> {
        match self {
            Self::Node(node, _) => offsets_of(node, data),
            Self::Fixed(_) => {
                let offsets = self.spans(rows, data)?.offsets(rows, 1);
                offsets.ok_or_else(|| Error::corrupt("byte strings past 4 GiB"))
            }
        }
    }

    /// The places of `rows` values in data of `data` bytes. `Corrupt` if they do not fill it exactly.
    pub fn spans(&self, rows: usize, data: usize) -> Result<Spans> {
        let wrong =
            |total: u64| Error::corrupt(format!("byte strings of {total} bytes in {data} bytes of data"));
        match self {
            Self::Fixed(length) => {
                let total = u64::from(*length) * rows as u64;
                (total == data as u64).then_some(Spans::Fixed(*length)).ok_or_else(|| wrong(total))
            }
            Self::Node(node, known) => {
                let offsets = match known.get() {
                    Some(offsets) => offsets,
                    None => {
                        let offsets = Rc::new(offsets_of(node, data)?);
                        known.get_or_init(|| offsets)
                    }
                };
                Ok(Spans::Offsets(Rc::clone(offsets)))
            }
        }
    }
}

/// Where values of these lengths begin in data of `data` bytes, and where the last one ends. `Corrupt` if
/// they do not fill it exactly.
fn offsets_of(lengths: &IntNode<'_>, data: usize) -> Result<Vec<u32>> {
    let mut offsets: Vec<u32> = vec![0];
    lengths.decode_into(&mut offsets)?;
    let mut at = 0u64;
    for offset in &mut offsets {
        at += u64::from(*offset);
        *offset = at as u32;
    }
    // Sums only grow, so none was cut if the last one fits.
    if at == data as u64 && data <= MAX_BYTES {
        Ok(offsets)
    } else {
        Err(Error::corrupt(format!("byte strings of {at} bytes in {data} bytes of data")))
    }
}

impl Spans {
    /// Where value `row` is.
    #[inline]
    pub fn get(&self, row: usize) -> std::ops::Range<usize> {
        match self {
            Self::Fixed(length) => {
                let length = *length as usize;
                row * length..(row + 1) * length
            }
            Self::Offsets(offsets) => match (offsets.get(row), offsets.get(row + 1)) {
                (Some(&start), Some(&end)) => start as usize..end as usize,
                _ => 0..0,
            },
        }
    }

    /// The end of each of `rows` values, times `factor`, with a leading zero, as views need them.
    pub fn offsets(&self, rows: usize, factor: u32) -> Option<Vec<u32>> {
        match self {
            Self::Fixed(length) => {
                let length = length.checked_mul(factor)?;
                length.checked_mul(u32::try_from(rows).ok()?)?;
                Some((0..=rows).map(|row| row as u32 * length).collect())
            }
            Self::Offsets(offsets) => {
                offsets.last().copied().unwrap_or(0).checked_mul(factor)?;
                Some(offsets.iter().map(|offset| offset * factor).collect())
            }
        }
    }
}
