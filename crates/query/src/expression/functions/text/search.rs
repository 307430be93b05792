//! Functions that look for one text in another: position, split_part, replace, starts_with.

use std::ops::Range;

use memchr::memmem::{Finder, find_iter};
use vector::{Bitmap, Values};

use super::{characters, cut, integers, texts};
use crate::expression::functions::compare::by_row;
use crate::expression::functions::lanes::{Texts, any_fails};
use crate::expression::functions::{Output, Value};
use crate::{Error, Result};

/// Finders of what is looked for: one where that is a constant.
struct Needles<'a> {
    constant: Option<Finder<'a>>,
    texts: Texts<'a>,
}

impl<'a> Needles<'a> {
    fn of(texts: Texts<'a>) -> Self {
        let constant = match texts {
            Texts::One(needle) => Some(Finder::new(needle)),
            Texts::Many(_) => None,
        };
        Self { constant, texts }
    }

    /// Where a row's text is found.
    fn find(&self, row: usize, text: &[u8]) -> Option<usize> {
        match &self.constant {
            Some(finder) => finder.find(text),
            None => memchr::memmem::find(text, self.texts.get(row)),
        }
    }
}

pub(super) fn starts_with(arguments: &[Value], rows: usize, _valid: Option<&Bitmap>) -> Result<Output> {
    let (text, prefix) = (texts(arguments, 0)?, texts(arguments, 1)?);
    let words = by_row(rows, |row| text.get(row).starts_with(prefix.get(row)));
    Ok(Values::Bool(Bitmap::from_words(words, rows)).into())
}

pub(super) fn position(arguments: &[Value], rows: usize, _valid: Option<&Bitmap>) -> Result<Output> {
    let (text, needles) = (texts(arguments, 0)?, Needles::of(texts(arguments, 1)?));
    let place = |row: usize| {
        let text = text.get(row);
        let at = needles.find(row, text).map(|at| characters(text.get(..at).unwrap_or_default()) + 1);
        i32::try_from(at.unwrap_or(0)).unwrap_or(i32::MAX)
    };
    Ok(Values::Int32((0..rows).map(place).collect()).into())
}

/// The bytes of a field, counted from 1 or, negative, from the end.
fn field(text: &[u8], separator: &[u8], number: i32) -> Range<usize> {
    let step = separator.len();
    let wanted = number.unsigned_abs() as usize - 1;
    if step == 0 {
        return if wanted == 0 { 0..text.len() } else { 0..0 };
    }
    let ends = || find_iter(text, separator).chain(std::iter::once(text.len()));
    let wanted = match number > 0 {
        true => wanted,
        false => match ends().count().checked_sub(wanted + 1) {
            Some(wanted) => wanted,
            None => return 0..0,
        },
    };
    let start = match wanted {
        0 => Some(0),
        _ => find_iter(text, separator).nth(wanted - 1).map(|end| end + step),
    };
    match (start, ends().nth(wanted)) {
        (Some(start), Some(end)) => start..end,
        _ => 0..0,
    }
}

pub(super) fn split_part(arguments: &[Value], rows: usize, valid: Option<&Bitmap>) -> Result<Output> {
    let (separator, number) = (texts(arguments, 1)?, integers(arguments, 2)?);
    if any_fails(rows, valid, |row| number.get(row) == Some(0)) {
        return Err(Error::Decline("field 0 of a text"));
    }
    let text = arguments.first().ok_or(Error::Decline("number of arguments"))?;
    cut(text, rows, |row, text| match number.get(row) {
        None | Some(0) => 0..0,
        Some(number) => field(text, separator.get(row), number),
    })
}

pub(super) fn replace(arguments: &[Value], rows: usize, _valid: Option<&Bitmap>) -> Result<Output> {
    let (text, needles, with) =
        (texts(arguments, 0)?, Needles::of(texts(arguments, 1)?), texts(arguments, 2)?);
    Ok(super::built(rows, |row, out| {
        let mut rest = text.get(row);
        let len = needles.texts.get(row).len();
        while len > 0
            && let Some(at) = needles.find(row, rest)
        {
            out.extend_from_slice(rest.get(..at).unwrap_or_default());
            out.extend_from_slice(with.get(row));
            rest = rest.get(at + len..).unwrap_or_default();
        }
        out.extend_from_slice(rest);
    }))
}
