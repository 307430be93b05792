//! The server's jsonb: what a document is made of.
//!
//! Layout (`utils/jsonb.h`):
//! - A container is a header word (count and kind), an entry word for each child (an object's keys first,
//!   then its values), and the children's bytes.
//! - An entry holds a kind and a length. Every 32nd entry holds, instead of the length, the offset of the
//!   child's end from the first child's start.
//! - Numerics (with their length words) and containers begin on a border of four, counted from the document's
//!   start. The padding before them belongs to the child.
//! - A document that is a scalar is an array of one element, with a flag.
//! - Keys are ordered by length, then by their bytes.
//!
//! | file | owns |
//! | --- | --- |
//! | `contains.rs` | `?` and `@>` |
//! | `field.rs` | `->` and `->>` |
//! | `leaves.rs` | the scalars that containing an object asks for |
//! | `parse.rs` | text of JSON, checked and made documents |
//! | `text.rs` | documents as text |
//!
//! Called by `question`, by the template encoding of `encodings`, and by readers of JSON in other systems'
//! files.
//!
//! Invariant: every offset is checked, and a child lies wholly inside the bytes that its container gives it.
//! So the work for any bytes is bounded by their number and how deep they nest.

mod contains;
mod field;
mod leaves;
mod parse;
mod text;

use vector::{Error, Result};

pub use contains::{contains, exists, is_deep};
pub use field::{field, field_text};
pub use leaves::{Leaf, Placed, leaves};
pub use parse::{Refusal, check_text, from_text};

use crate::words::u32_at;

/// Bits of a container's header that hold the number of its elements or pairs.
pub const COUNT: u32 = 0x0FFF_FFFF;
const SCALAR: u32 = 0x1000_0000;
/// Bit of a container's header that an object has.
pub const OBJECT: u32 = 0x2000_0000;
const ARRAY: u32 = 0x4000_0000;

/// Bits of an entry that hold the length of its child, or the offset of its end.
pub const LENGTH: u32 = 0x0FFF_FFFF;
/// Bit of an entry that holds the offset of its child's end.
pub const HAS_END: u32 = 0x8000_0000;
/// Bits of an entry that hold the kind of its child: one of the kinds below.
pub const KIND: u32 = 0x7000_0000;
/// Text, or a key.
pub const STRING: u32 = 0;
/// A numeric.
pub const NUMERIC: u32 = 0x1000_0000;
/// False, which has no bytes.
pub const FALSE: u32 = 0x2000_0000;
/// True, which has no bytes.
pub const TRUE: u32 = 0x3000_0000;
/// NULL, which has no bytes.
pub const NULL: u32 = 0x4000_0000;
/// An object or array.
pub const CONTAINER: u32 = 0x5000_0000;

#[cold]
fn damaged() -> Error {
    Error::corrupt("a jsonb value ends before its parts")
}

#[inline]
fn word(value: &[u8], at: usize) -> Result<u32> {
    u32_at(value, at).ok_or_else(damaged)
}

/// What a container is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Keys and values.
    Object,
    /// Elements.
    Array,
    /// The one element of a document that is a scalar.
    Scalar,
}

/// An object or array inside a document.
#[derive(Debug, Clone, Copy)]
pub struct Container<'a> {
    /// The document up to the container's end.
    bytes: &'a [u8],
    start: usize,
    form: Form,
    count: usize,
}

/// One value inside a document.
enum Item<'a> {
    Null,
    Bool(bool),
    String(&'a [u8]),
    /// Without its length word.
    Numeric(&'a [u8]),
    Container(Container<'a>),
}

/// The entry of a child, and where its bytes lie in the document.
#[derive(Debug, Clone, Copy)]
pub struct Child {
    /// The entry word.
    pub entry: u32,
    /// Where the entry word is.
    pub entry_at: usize,
    /// First byte, padding included.
    pub start: usize,
    /// The byte behind the last one.
    pub end: usize,
}

/// Children of a container in order, keys of an object first.
#[derive(Debug)]
pub struct Children<'a> {
    container: Container<'a>,
    words: usize,
    next: usize,
    /// Where the next child's bytes begin, from the first child's.
    offset: usize,
}

impl<'a> Container<'a> {
    /// The outermost container of a document.
    #[inline]
    pub fn root(document: &'a [u8]) -> Result<Self> {
        Self::open(document, 0)
    }

    /// The container that a child is.
    #[inline]
    pub fn of_child(self, child: Child) -> Result<Self> {
        Self::open(self.bytes.get(..child.end).ok_or_else(damaged)?, child.start.next_multiple_of(4))
    }

    fn open(bytes: &'a [u8], start: usize) -> Result<Self> {
        let header = word(bytes, start)?;
        let count = (header & COUNT) as usize;
        let form = match header & !COUNT {
            OBJECT => Form::Object,
            ARRAY => Form::Array,
            flags if flags == ARRAY | SCALAR && count == 1 => Form::Scalar,
            _ => return Err(Error::corrupt("a jsonb container of no kind")),
        };
        Ok(Self { bytes, start, form, count })
    }

    /// Number of elements or pairs.
    #[inline]
    pub const fn count(self) -> usize {
        self.count
    }

    /// What it is.
    #[inline]
    pub const fn form(self) -> Form {
        self.form
    }

    /// Where its header is in the document.
    #[inline]
    pub const fn start(self) -> usize {
        self.start
    }

    /// Where the bytes that it may have end in the document.
    #[inline]
    pub const fn end(self) -> usize {
        self.bytes.len()
    }

    /// Where the bytes of its first child begin in the document: behind the entry words.
    #[inline]
    pub const fn data_start(self) -> usize {
        self.start + 4 + 4 * self.words()
    }

    /// Number of entry words: one an element, two a pair.
    #[inline]
    pub const fn words(self) -> usize {
        if self.is_object() { self.count * 2 } else { self.count }
    }

    #[inline]
    const fn is_object(self) -> bool {
        matches!(self.form, Form::Object)
    }

    #[inline]
    const fn is_scalar(self) -> bool {
        matches!(self.form, Form::Scalar)
    }

    /// Its children, the keys of an object before its values.
    #[inline]
    pub const fn children(self) -> Children<'a> {
        Children { container: self, words: self.words(), next: 0, offset: 0 }
    }

    /// The values of an object.
    fn values(self) -> Result<Children<'a>> {
        let mut children = self.children();
        for _ in 0..self.count {
            children.next_child()?;
        }
        Ok(children)
    }

    /// The value of a key.
    fn field(self, key: &[u8]) -> Result<Option<Item<'a>>> {
        if !self.is_object() {
            return Ok(None);
        }
        let mut children = self.children();
        let mut found = None;
        for number in 0..self.count {
            let Child { entry, start, end, .. } = children.next_child()?.ok_or_else(damaged)?;
            if found.is_none() && entry & KIND == STRING && self.bytes.get(start..end) == Some(key) {
                found = Some(number);
            }
        }
        let Some(found) = found else { return Ok(None) };
        for _ in 0..found {
            children.next_child()?;
        }
        children.next()
    }
}

impl<'a> Children<'a> {
    /// The next child, wherever its entry says that it lies.
    #[inline]
    pub fn next_child(&mut self) -> Result<Option<Child>> {
        if self.next >= self.words {
            return Ok(None);
        }
        let first = self.container.start + 4;
        let entry_at = first + 4 * self.next;
        let entry = word(self.container.bytes, entry_at)?;
        self.next += 1;
        let length = (entry & LENGTH) as usize;
        let start = self.offset;
        self.offset = if entry & HAS_END != 0 { length } else { start + length };
        let base = first + 4 * self.words;
        if self.offset < start || base + self.offset > self.container.bytes.len() {
            return Err(damaged());
        }
        Ok(Some(Child { entry, entry_at, start: base + start, end: base + self.offset }))
    }

    fn next(&mut self) -> Result<Option<Item<'a>>> {
        let Some(child) = self.next_child()? else { return Ok(None) };
        let bytes = self.container.bytes;
        Ok(Some(match child.entry & KIND {
            STRING => Item::String(bytes.get(child.start..child.end).ok_or_else(damaged)?),
            NUMERIC => Item::Numeric(number(bytes, child.start.next_multiple_of(4), child.end)?),
            FALSE => Item::Bool(false),
            TRUE => Item::Bool(true),
            NULL => Item::Null,
            CONTAINER => Item::Container(self.container.of_child(child)?),
            _ => return Err(Error::corrupt("a jsonb value of no kind")),
        }))
    }
}

/// A numeric inside a document, without its length word.
fn number(value: &[u8], start: usize, end: usize) -> Result<&[u8]> {
    let header = word(value, start)?;
    let (skip, length) = match header & 1 {
        0 => (4, (header >> 2) as usize),
        _ => (1, (header >> 1 & 0x7F) as usize),
    };
    if length < skip || start + length > end {
        return Err(damaged());
    }
    value.get(start + skip..start + length).ok_or_else(damaged)
}
