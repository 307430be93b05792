//! to_char of timestamps, for patterns of numbers only.

use vector::{Bitmap, ByteViews, Values};

use super::{DAY, is_infinite_timestamp, timestamps};
use crate::expression::functions::{Output, Picked, Value};
use crate::{Error, Result};
use vector::calendar::from_days;

enum Piece {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Literal(u8),
}

/// The pieces of a pattern; None where it has something else.
fn pieces(pattern: &[u8]) -> Option<Vec<Piece>> {
    let mut rest = pattern;
    let mut pieces = Vec::new();
    while let Some(&first) = rest.first() {
        let known: [(&[u8], &[u8], Piece); 6] = [
            (b"YYYY", b"yyyy", Piece::Year),
            (b"MM", b"mm", Piece::Month),
            (b"DD", b"dd", Piece::Day),
            (b"HH24", b"hh24", Piece::Hour),
            (b"MI", b"mi", Piece::Minute),
            (b"SS", b"ss", Piece::Second),
        ];
        let found =
            known.into_iter().find(|(upper, lower, _)| rest.starts_with(upper) || rest.starts_with(lower));
        let (len, piece) = match found {
            Some((name, _, piece)) => (name.len(), piece),
            None if b"-/.,: _".contains(&first) => (1, Piece::Literal(first)),
            None => return None,
        };
        let (done, left) = rest.split_at(len);
        // SSSS and DDD are names of their own.
        if found_again(done, left) {
            return None;
        }
        pieces.push(piece);
        rest = left;
    }
    Some(pieces)
}

fn found_again(done: &[u8], left: &[u8]) -> bool {
    matches!((done.last(), left.first()), (Some(last), Some(next)) if last.is_ascii_alphabetic() && last.eq_ignore_ascii_case(next))
}

/// Appends a number of at least `width` digits.
fn number(out: &mut Vec<u8>, value: i64, width: usize) {
    let mut digits = [b'0'; 20];
    let (mut rest, mut used) = (value.unsigned_abs(), 0);
    for digit in digits.iter_mut().rev() {
        if rest == 0 && used >= width {
            break;
        }
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        used += 1;
    }
    out.extend_from_slice(digits.get(20 - used..).unwrap_or_default());
}

/// to_char with this pattern.
pub(in crate::expression::functions) fn to_char(pattern: &[u8]) -> Option<Picked> {
    let pieces = pieces(pattern).filter(|pieces| !pieces.is_empty())?;
    Some((
        Box::new(move |arguments: &[Value], _rows: usize, _: Option<&Bitmap>| -> Result<Output> {
            let argument = arguments.first().ok_or(Error::Decline("number of arguments"))?;
            let values = timestamps(argument)?;
            let infinite = values.iter().any(|&value| is_infinite_timestamp(value));
            let validity =
                infinite.then(|| values.iter().map(|&value| !is_infinite_timestamp(value)).collect());
            let mut texts = ByteViews::new();
            let mut out = Vec::new();
            for &value in values {
                let (days, time) = (value.div_euclid(DAY), value.rem_euclid(DAY) / 1_000_000);
                let day = from_days(days);
                out.clear();
                for piece in &pieces {
                    match piece {
                        // 1 BC is year 0.
                        Piece::Year if day.year > 0 => number(&mut out, day.year, 4),
                        Piece::Year => number(&mut out, 1 - day.year, 4),
                        Piece::Month => number(&mut out, day.month, 2),
                        Piece::Day => number(&mut out, day.day, 2),
                        Piece::Hour => number(&mut out, time / 3600, 2),
                        Piece::Minute => number(&mut out, time / 60 % 60, 2),
                        Piece::Second => number(&mut out, time % 60, 2),
                        Piece::Literal(byte) => out.push(*byte),
                    }
                }
                texts.push(&out);
            }
            texts.seal();
            Ok(Output { values: Values::Bytes(texts), validity, bounds: None })
        }),
        40,
    ))
}
