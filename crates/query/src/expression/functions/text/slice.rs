//! Functions that give a part of a text: substring, left, right, trim.

use vector::Bitmap;

use super::{begins, byte_of_character, characters, cut, integers, texts};
use crate::expression::functions::lanes::{Texts, any_fails};
use crate::expression::functions::{Output, Picked, Value};
use crate::{Error, Result, SqlError};

fn first(arguments: &[Value]) -> Result<&Value> {
    arguments.first().ok_or(Error::Decline("number of arguments"))
}

/// Characters from `start` (from 1), `length` of them or all.
pub(super) fn substring(arguments: &[Value], rows: usize, valid: Option<&Bitmap>) -> Result<Output> {
    let start = integers(arguments, 1)?;
    let length = match arguments.get(2) {
        Some(_) => Some(integers(arguments, 2)?),
        None => None,
    };
    if let Some(length) = length
        && any_fails(rows, valid, |row| length.get(row).is_some_and(|length| length < 0))
    {
        return Err(Error::Sql(SqlError::NegativeSubstringLength));
    }
    cut(first(arguments)?, rows, |row, text| {
        let start = start.get(row).unwrap_or(1);
        // If the sum overflows, the whole rest is wanted.
        let end = length.and_then(|length| start.checked_add(length.get(row).unwrap_or(0)));
        let before = |position: i32| usize::try_from(position.max(1) - 1).unwrap_or(0);
        let from = byte_of_character(text, before(start));
        match end {
            None => from..text.len(),
            Some(end) if end <= 1 => 0..0,
            Some(end) => {
                let rest = text.get(from..).unwrap_or_default();
                from..from + byte_of_character(rest, before(end).saturating_sub(before(start)))
            }
        }
    })
}

/// The first characters. A negative number gives all but that many last ones.
pub(super) fn left(arguments: &[Value], rows: usize, _valid: Option<&Bitmap>) -> Result<Output> {
    let count = integers(arguments, 1)?;
    cut(first(arguments)?, rows, |row, text| match count.get(row).unwrap_or(0) {
        count @ 0.. => 0..byte_of_character(text, usize::try_from(count).unwrap_or(0)),
        count => 0..byte_of_character(text, characters(text).saturating_sub(count.unsigned_abs() as usize)),
    })
}

/// The last characters. A negative number gives all but that many first ones.
pub(super) fn right(arguments: &[Value], rows: usize, _valid: Option<&Bitmap>) -> Result<Output> {
    let count = integers(arguments, 1)?;
    cut(first(arguments)?, rows, |row, text| {
        let skipped = match count.get(row).unwrap_or(0) {
            count @ 0.. => characters(text).saturating_sub(count.unsigned_abs() as usize),
            count => count.unsigned_abs() as usize,
        };
        byte_of_character(text, skipped)..text.len()
    })
}

/// Without the set's characters at its start or end.
pub(super) fn trim(start: bool, end: bool) -> Picked {
    (
        Box::new(move |arguments: &[Value], rows: usize, _: Option<&Bitmap>| {
            let set = if arguments.len() > 1 { texts(arguments, 1)? } else { Texts::One(b" ") };
            cut(first(arguments)?, rows, |row, text| {
                let set = set.get(row);
                let (mut from, mut to) = (0, text.len());
                while start && from < to {
                    let length = character(text.get(from..to).unwrap_or_default());
                    if !contains(set, text.get(from..from + length).unwrap_or_default()) {
                        break;
                    }
                    from += length;
                }
                while end && from < to {
                    let kept = text.get(from..to).unwrap_or_default();
                    let last = kept.iter().rposition(|&byte| begins(byte)).unwrap_or(0);
                    if !contains(set, kept.get(last..).unwrap_or_default()) {
                        break;
                    }
                    to = from + last;
                }
                from..to
            })
        }),
        8,
    )
}

/// Length of the first character in bytes.
fn character(text: &[u8]) -> usize {
    text.iter().skip(1).position(|&byte| begins(byte)).map_or(text.len(), |at| at + 1)
}

/// Whether a character is one of a set's.
fn contains(set: &[u8], wanted: &[u8]) -> bool {
    match wanted {
        [byte] => set.contains(byte),
        _ => set.windows(wanted.len().max(1)).any(|window| window == wanted),
    }
}
