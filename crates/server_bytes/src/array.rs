//! The server's arrays.
//!
//! Layout (`utils/array.h`), with offsets that count from the value's length word:
//! - the length word, the number of dimensions, the offset of the data (0 if there are no NULLs), the element
//!   type
//! - lengths and lower bounds of the dimensions
//! - if there are NULLs, a bit for each element (1: not NULL)
//! - the elements, each on its type's border
//!
//! The bytes that the functions here take begin behind the length word.
//!
//! Called by `question`, by hosts that take constants apart, and by readers of other systems' lists, which
//! make arrays of them (`Builder`).
//!
//! Invariant: every offset is checked. Elements are compared byte by byte, so the caller names only types for
//! which that is equality.

use vector::{Error, Result};

use crate::words::u32_at;

/// Length of the length word, which is in front of the bytes that we get.
const WORD: usize = 4;
/// Bytes up to the dimensions.
const HEADER: usize = 16;

/// How elements lie in the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// With a length word of their own, on a border of four.
    Varlena,
    /// This many bytes, on a border of as many.
    Fixed(usize),
}

/// A type of the server's own whose values may be elements: its number in `pg_type`, and how they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementType {
    /// `pg_type.oid`.
    pub oid: u32,
    /// Bytes of a value. None: it has a length word.
    pub width: Option<usize>,
    /// The border that values lie on, in bytes.
    pub align: usize,
}

/// Makes an array of one dimension that begins at 1, as the server makes it.
#[derive(Debug)]
pub struct Builder {
    element: ElementType,
    is_there: Vec<bool>,
    data: Vec<u8>,
}

impl Builder {
    /// An array without elements.
    pub const fn new(element: ElementType) -> Self {
        Self { element, is_there: Vec::new(), data: Vec::new() }
    }

    /// Bytes of the elements so far.
    pub const fn bytes(&self) -> usize {
        self.data.len() + self.is_there.len() / 8
    }

    /// Adds NULL.
    pub fn push_null(&mut self) {
        self.is_there.push(false);
    }

    /// Adds a value, without a length word. Of a fixed width: so many bytes.
    pub fn push(&mut self, value: &[u8]) {
        self.is_there.push(true);
        if self.element.width.is_none() {
            // The two lowest bits say that the word has four bytes.
            let length = u32::try_from(value.len() + WORD).unwrap_or(u32::MAX >> 2);
            self.data.extend_from_slice(&(length << 2).to_le_bytes());
        }
        self.data.extend_from_slice(value);
        // The server ends the last one on a border, too.
        self.data.resize(self.data.len().next_multiple_of(self.element.align), 0);
    }

    /// Appends the array, without its length word. The builder is empty afterwards.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let count = self.is_there.len();
        let word = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
        let has_nulls = self.is_there.contains(&false);
        let bits = HEADER + 8;
        let data = (bits + if has_nulls { count.div_ceil(8) } else { 0 }).next_multiple_of(8);
        out.extend_from_slice(&word(usize::from(count > 0)));
        out.extend_from_slice(&word(if has_nulls { data } else { 0 }));
        out.extend_from_slice(&self.element.oid.to_le_bytes());
        if count > 0 {
            out.extend_from_slice(&word(count));
            out.extend_from_slice(&word(1));
            if has_nulls {
                let bit = |(at, is_there): (usize, &bool)| u8::from(*is_there) << at;
                let bytes = self.is_there.chunks(8).map(|bits| bits.iter().enumerate().map(bit).sum::<u8>());
                let start = out.len();
                out.extend(bytes);
                out.resize(start + data - bits, 0);
            }
        }
        out.append(&mut self.data);
        self.is_there.clear();
    }
}

#[cold]
fn damaged() -> Error {
    Error::corrupt("an array ends before its elements")
}

/// Turns an offset that counts from the length word into a place in our bytes. An offset into the length word
/// becomes a place behind any bytes, so that a reader finds nothing there.
#[inline]
const fn place(at: usize) -> usize {
    at.wrapping_sub(WORD)
}

#[inline]
fn word(array: &[u8], at: usize) -> Result<u32> {
    u32_at(array, place(at)).ok_or_else(damaged)
}

/// Calls `each` with every element (None for NULL) until it gives false.
fn walk<'a>(array: &'a [u8], layout: Layout, each: &mut dyn FnMut(Option<&'a [u8]>) -> bool) -> Result<()> {
    let dimensions = word(array, 4)? as usize;
    if dimensions == 0 {
        return Ok(());
    }
    let offset = word(array, 8)? as usize;
    let mut count = 1usize;
    for dimension in 0..dimensions {
        let length = word(array, HEADER + 4 * dimension)? as usize;
        count = count.checked_mul(length).ok_or_else(damaged)?;
    }
    let bits = HEADER + 8 * dimensions;
    let mut at = if offset == 0 { bits.next_multiple_of(8) } else { offset };
    for number in 0..count {
        if offset > 0 {
            let byte = array.get(place(bits) + number / 8).ok_or_else(damaged)?;
            if byte >> (number % 8) & 1 == 0 {
                if !each(None) {
                    return Ok(());
                }
                continue;
            }
        }
        let (start, end) = match layout {
            Layout::Fixed(width) => {
                // An element of no bytes would let a count alone keep this going.
                let width = width.max(1);
                at = at.next_multiple_of(width);
                (at, at + width)
            }
            Layout::Varlena => {
                let first = *array.get(place(at)).ok_or_else(damaged)?;
                // Padding is zero. A length word begins with a zero byte only if it is on its border.
                if first == 0 {
                    at = at.next_multiple_of(4);
                }
                let first = *array.get(place(at)).ok_or_else(damaged)?;
                match first & 3 {
                    1 | 3 if first != 1 => (at + 1, at + usize::from(first >> 1)),
                    0 => (at + 4, at + (word(array, at)? >> 2) as usize),
                    _ => return Err(Error::corrupt("an array's element is stored elsewhere")),
                }
            }
        };
        let element = array.get(place(start)..place(end)).ok_or_else(damaged)?;
        if !each(Some(element)) {
            return Ok(());
        }
        at = end;
        if layout == Layout::Varlena {
            at = at.next_multiple_of(4);
        }
    }
    Ok(())
}

/// All elements.
pub fn elements_of(array: &[u8], layout: Layout) -> Result<Vec<Option<Vec<u8>>>> {
    let mut found = Vec::new();
    walk(array, layout, &mut |element| {
        found.push(element.map(<[u8]>::to_vec));
        true
    })?;
    Ok(found)
}

/// Whether there is no element.
pub fn is_empty(array: &[u8], layout: Layout) -> Result<bool> {
    let mut empty = true;
    walk(array, layout, &mut |_| {
        empty = false;
        false
    })?;
    Ok(empty)
}

/// Whether each of the others is an element. NULL never is.
pub fn contains(array: &[u8], layout: Layout, others: &[Option<Vec<u8>>]) -> Result<bool> {
    for other in others {
        match other {
            Some(other) if has(array, layout, other)? == Some(true) => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Whether one of the others is an element.
pub fn overlaps(array: &[u8], layout: Layout, others: &[Option<Vec<u8>>]) -> Result<bool> {
    let mut found = false;
    walk(array, layout, &mut |element| {
        found = element.is_some_and(|element| others.iter().flatten().any(|other| other == element));
        !found
    })?;
    Ok(found)
}

/// Whether a value is an element. None if it is not, but some element is NULL.
pub fn has(array: &[u8], layout: Layout, value: &[u8]) -> Result<Option<bool>> {
    let (mut found, mut nulls) = (false, false);
    walk(array, layout, &mut |element| {
        match element {
            Some(element) => found = element == value,
            None => nulls = true,
        }
        !found
    })?;
    Ok(if found || !nulls { Some(found) } else { None })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Builder, ElementType, Layout, elements_of};

    fn words(bytes: &[u8]) -> Vec<u32> {
        bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }

    #[test]
    fn arrays_are_the_servers() {
        let mut ints = Builder::new(ElementType { oid: 23, width: Some(4), align: 4 });
        let (mut none, mut two, mut with_null) = (Vec::new(), Vec::new(), Vec::new());
        ints.finish(&mut none);
        assert_eq!(words(&none), [0, 0, 23]);
        [7u32, 8].iter().for_each(|value| ints.push(&value.to_le_bytes()));
        ints.finish(&mut two);
        // One dimension, no NULLs, the type, two elements, the first is number 1.
        assert_eq!(words(&two), [1, 0, 23, 2, 1, 7, 8]);
        ints.push_null();
        ints.push(&9u32.to_le_bytes());
        ints.finish(&mut with_null);
        // The elements begin at 32; of the bits the second is set; a word of padding.
        assert_eq!(words(&with_null), [1, 32, 23, 2, 1, 2, 0, 9]);
        assert_eq!(
            elements_of(&with_null, Layout::Fixed(4)).unwrap(),
            [None, Some(9u32.to_le_bytes().to_vec())]
        );
    }

    #[test]
    fn texts_have_length_words() {
        let mut texts = Builder::new(ElementType { oid: 25, width: None, align: 4 });
        let mut made = Vec::new();
        let all: Vec<Option<Vec<u8>>> = (0..20).map(|n| (n % 7 != 3).then(|| vec![b'x'; n])).collect();
        for text in &all {
            match text {
                Some(text) => texts.push(text),
                None => texts.push_null(),
            }
        }
        texts.finish(&mut made);
        assert_eq!(made.len() % 4, 0);
        assert_eq!(elements_of(&made, Layout::Varlena).unwrap(), all);
    }
}
