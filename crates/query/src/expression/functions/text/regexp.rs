//! regexp_replace with a pattern of `anchored`: the text becomes the replacement, or stays.

use vector::Bitmap;

use super::anchored::{Anchored, TooLong};
use super::{built, cut, texts};
use crate::expression::functions::{Output, Picked, Value};
use crate::{Error, Result};

/// A piece of a replacement.
enum Piece {
    Text(Vec<u8>),
    Capture(usize),
    Whole,
}

/// Whether these constants are understood.
pub fn is_known(pattern: &[u8], replacement: &[u8]) -> bool {
    Anchored::new(pattern).and_then(|pattern| pieces(replacement, pattern.captures())).is_some()
}

/// The function for these constants.
pub(super) fn compile(pattern: &[u8], replacement: &[u8]) -> Option<Picked> {
    let pattern = Anchored::new(pattern)?;
    let pieces = pieces(replacement, pattern.captures())?;
    let replace = move |arguments: &[Value], rows: usize, _: Option<&Bitmap>| -> Result<Output> {
        let mut failed = Ok(());
        let mut find = |text: &[u8]| {
            pattern.find(text).unwrap_or_else(|TooLong| {
                failed = Err(Error::Decline("a pattern that goes back too often"));
                None
            })
        };
        let text = arguments.first().ok_or(super::WRONG_TYPE)?;
        let output = if let [Piece::Capture(number)] = pieces.as_slice() {
            // A part of the text, whose bytes are shared.
            cut(text, rows, |_, text| match find(text).and_then(|found| found.get(*number).copied()) {
                Some((from, to)) => from..to,
                None => 0..text.len(),
            })?
        } else {
            let texts = texts(arguments, 0)?;
            built(rows, |row, out| {
                let text = texts.get(row);
                let Some(found) = find(text) else { return out.extend_from_slice(text) };
                for piece in &pieces {
                    out.extend_from_slice(match piece {
                        Piece::Text(piece) => piece,
                        Piece::Whole => text,
                        Piece::Capture(number) => {
                            let (from, to) = found.get(*number).copied().unwrap_or((0, 0));
                            text.get(from..to).unwrap_or_default()
                        }
                    });
                }
            })
        };
        failed.map(|()| output)
    };
    Some((Box::new(replace), 60))
}

/// The pieces of a replacement; None where it names what is not there.
fn pieces(replacement: &[u8], captures: usize) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut bytes = replacement.iter().copied();
    while let Some(byte) = bytes.next() {
        let literal = match byte {
            b'\\' => match bytes.next()? {
                b'\\' => b'\\',
                b'&' => {
                    pieces.push(Piece::Whole);
                    continue;
                }
                digit @ b'1'..=b'9' => {
                    let number = usize::from(digit - b'1');
                    pieces.push(Piece::Capture(number));
                    if number >= captures {
                        return None;
                    }
                    continue;
                }
                _ => return None,
            },
            byte => byte,
        };
        match pieces.last_mut() {
            Some(Piece::Text(text)) => text.push(literal),
            _ => pieces.push(Piece::Text(vec![literal])),
        }
    }
    Some(pieces)
}
