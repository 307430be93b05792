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
//! Called by `question` and by hosts that take constants apart.
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
