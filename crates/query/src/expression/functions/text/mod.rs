//! Functions of text. Characters are counted as in UTF-8.

mod anchored;
mod case;
mod like;
pub mod regexp;
mod search;
mod slice;

use std::ops::Range;

use vector::{Bitmap, ByteViews, LogicalType, Values};

use super::lanes::{Texts, WRONG_TYPE, lane};
use super::{Output, Picked, Value};
use crate::expression::Function;
use crate::kernels::Lane;
use crate::{Error, Result};

/// A function of text; `text` tells which arguments are constants.
pub(super) fn compile(
    function: Function,
    inputs: &[LogicalType],
    text: &dyn Fn(usize) -> Option<Vec<u8>>,
) -> Option<Picked> {
    use LogicalType::{Bytes, Int32, Text};
    match (function, inputs) {
        (Function::Like, [Text, Text]) => like::compile(&text(1)?),
        (Function::ILike(rule), [Text, Text]) => like::compile_without_case(&text(1)?, rule),
        (Function::StartsWith, [Text, Text]) => Some((Box::new(search::starts_with), 4)),
        (Function::Length, [Text]) => {
            Some((Box::new(|a: &[Value], rows: usize, _: Option<&Bitmap>| numbers(a, rows, characters)), 6))
        }
        (Function::OctetLength, [Text | Bytes]) => Some((
            Box::new(|a: &[Value], rows: usize, _: Option<&Bitmap>| numbers(a, rows, |text| text.len())),
            2,
        )),
        (Function::Lower(rule), [Text]) => Some(case::compile(rule, <[u8]>::make_ascii_lowercase)),
        (Function::Upper(rule), [Text]) => Some(case::compile(rule, <[u8]>::make_ascii_uppercase)),
        (Function::Substring, [Text, Int32] | [Text, Int32, Int32]) => Some((Box::new(slice::substring), 12)),
        (Function::Left, [Text, Int32]) => Some((Box::new(slice::left), 12)),
        (Function::Right, [Text, Int32]) => Some((Box::new(slice::right), 12)),
        (Function::Trim { start, end }, [Text]) => Some(slice::trim(start, end)),
        (Function::Trim { start, end }, [Text, Text]) => Some(slice::trim(start, end)),
        (Function::Position, [Text, Text]) => Some((Box::new(search::position), 20)),
        (Function::SplitPart, [Text, Text, Int32]) => Some((Box::new(search::split_part), 20)),
        (Function::Replace, [Text, Text, Text]) => Some((Box::new(search::replace), 40)),
        (Function::RegexpReplace, [Text, Text, Text]) => regexp::compile(&text(1)?, &text(2)?),
        (Function::Concat, [Text, Text]) => Some((
            Box::new(|arguments: &[Value], rows: usize, _: Option<&Bitmap>| {
                let (a, b) = super::lanes::two(arguments)?;
                let (a, b) = (Texts::of(a)?, Texts::of(b)?);
                Ok(built(rows, |row, out| {
                    out.extend_from_slice(a.get(row));
                    out.extend_from_slice(b.get(row));
                }))
            }),
            10,
        )),
        _ => None,
    }
}

/// True for a byte that begins a character.
#[inline(always)]
pub(super) const fn begins(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

/// How many characters.
#[inline]
pub(super) fn characters(text: &[u8]) -> usize {
    // Eight bytes at a time. A byte that continues a character has the highest bit set and the next one
    // clear.
    let (words, rest) = text.as_chunks::<8>();
    let ones = u64::from_ne_bytes([1; 8]);
    let going_on = |word: &[u8; 8]| {
        let word = u64::from_ne_bytes(*word);
        (word >> 7 & !(word >> 6) & ones).count_ones() as usize
    };
    let going_on: usize = words.iter().map(going_on).sum();
    words.len() * 8 - going_on + rest.iter().filter(|&&byte| begins(byte)).count()
}

/// Where the character after this many characters begins; the length of the text if it has no more.
#[inline]
pub(super) fn byte_of_character(text: &[u8], count: usize) -> usize {
    // ASCII up to there: characters are bytes.
    if text.get(..count).is_some_and(<[u8]>::is_ascii) {
        return count;
    }
    let mut starts = text.iter().enumerate().filter(|&(_, &byte)| begins(byte));
    starts.nth(count).map_or(text.len(), |(at, _)| at)
}

fn numbers(arguments: &[Value], rows: usize, f: impl Fn(&[u8]) -> usize) -> Result<Output> {
    let texts = Texts::of(super::lanes::one(arguments)?)?;
    let number = |row: usize| i32::try_from(f(texts.get(row))).unwrap_or(i32::MAX);
    Ok(Values::Int32((0..rows).map(number).collect()).into())
}

/// Texts made row by row in a buffer.
pub(super) fn built(rows: usize, mut make: impl FnMut(usize, &mut Vec<u8>)) -> Output {
    let mut views = ByteViews::new();
    let mut out = Vec::new();
    for row in 0..rows {
        out.clear();
        make(row, &mut out);
        views.push(&out);
    }
    views.seal();
    Values::Bytes(views).into()
}

/// A part of each row's text, given by its bytes' range. Bytes of longer texts are shared.
pub(super) fn cut(
    argument: &Value,
    rows: usize,
    mut part: impl FnMut(usize, &[u8]) -> Range<usize>,
) -> Result<Output> {
    Ok(match Texts::of(argument)? {
        Texts::Many(views) => Values::Bytes(views.parts(part)).into(),
        Texts::One(text) => built(rows, |row, out| {
            out.extend_from_slice(text.get(part(row, text)).unwrap_or_default());
        }),
    })
}

/// The argument at `at` as integers.
pub(super) fn integers(arguments: &[Value], at: usize) -> Result<Lane<'_, i32>> {
    lane(arguments.get(at).ok_or(Error::Decline("number of arguments"))?)
}

/// The argument at `at` as texts.
pub(super) fn texts(arguments: &[Value], at: usize) -> Result<Texts<'_>> {
    Texts::of(arguments.get(at).ok_or(WRONG_TYPE)?)
}
