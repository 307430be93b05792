//! Runs a template's program backwards over a value: does it fit, and what are its holes?
//!
//! Called by the template encoder for every value. A template that fits is the proof that decoding gives the
//! same bytes. Every byte of the value was compared with a literal, recomputed (words, padding) or captured.

use server_bytes::jsonb::LENGTH;
use server_bytes::numeric::small;

use super::program::{FLAG_UNIT, MAX_CONTAINERS, PathKind, Step, Word};
use super::shape::Shape;

/// The content of one hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hole {
    /// `value[start..start + len]`.
    Bytes {
        /// First byte.
        start: usize,
        /// Number of bytes.
        len: usize,
    },
    /// A number as scaled integer and display scale.
    Number {
        /// The integer.
        value: i64,
        /// Digits after the point.
        scale: u8,
    },
    /// A truth value.
    Flag(bool),
}

/// Values only set positions of containers begun before; the rest stays zero.
struct Positions {
    starts: [usize; MAX_CONTAINERS],
    unpadded: [usize; MAX_CONTAINERS],
    literals: [usize; MAX_CONTAINERS],
}

/// Fits `value` to `shape`; the holes (path, content) are left in `holes`, in order. False when it does not
/// fit.
pub fn fit(shape: &Shape, value: &[u8], holes: &mut Vec<(u32, Hole)>) -> bool {
    holes.clear();
    try_fit(shape, value, holes).is_some()
}

fn try_fit(shape: &Shape, value: &[u8], holes: &mut Vec<(u32, Hole)>) -> Option<()> {
    let mut positions = Positions {
        starts: [0; MAX_CONTAINERS],
        unpadded: [0; MAX_CONTAINERS],
        literals: [0; MAX_CONTAINERS],
    };
    let mut at = 0usize;
    let mut begun = 0usize;
    let mut first_literal = false;
    for step in &shape.program.steps {
        match *step {
            Step::Begin => {
                *positions.unpadded.get_mut(begun)? = at;
                at = padded(value, at)?;
                *positions.starts.get_mut(begun)? = at;
                begun += 1;
                first_literal = true;
            }
            Step::Literal { start, len } => {
                let (start, len) = (start as usize, len as usize);
                let literal = shape.program.literals.get(start..start + len)?;
                let found = value.get(at..at + len)?;
                if first_literal {
                    first_literal = false;
                    *positions.literals.get_mut(begun - 1)? = start;
                    let &(from, to) = shape.variable.get(begun - 1)?;
                    let (from, to) = (from as usize, to as usize);
                    if literal.get(..from)? != found.get(..from)? || literal.get(to..)? != found.get(to..)? {
                        return None;
                    }
                } else if literal != found {
                    return None;
                }
                at += len;
            }
            Step::Value { path, kind, word } => {
                let (bits, expected, end) = child(shape, value, &positions, &word, at)?;
                let flags = bits & !LENGTH;
                let hole = match kind {
                    PathKind::Text => {
                        let hole = Hole::Bytes { start: at, len: end - at };
                        (flags == expected).then_some(hole)?
                    }
                    PathKind::Number => {
                        let start = padded(value, at)?;
                        let (value, scale) = small::parse(value.get(start..end)?)?;
                        (flags == expected).then_some(Hole::Number { value, scale })?
                    }
                    PathKind::Aligned => {
                        let start = padded(value, at).filter(|&start| start <= end)?;
                        (flags == expected).then_some(Hole::Bytes { start, len: end - start })?
                    }
                    PathKind::Flag => {
                        let set = flags == expected.wrapping_add(FLAG_UNIT);
                        ((set || flags == expected) && end == at).then_some(Hole::Flag(set))?
                    }
                };
                holes.push((path, hole));
                at = end;
            }
            Step::Nothing { word } => {
                let (bits, expected, end) = child(shape, value, &positions, &word, at)?;
                if bits & !LENGTH != expected || end != at {
                    return None;
                }
            }
            Step::End { container, word } => {
                let start = *positions.unpadded.get(usize::from(container))?;
                let (bits, expected, end) = child(shape, value, &positions, &word, start)?;
                if bits & !LENGTH != expected || end != at {
                    return None;
                }
            }
            Step::Whole { path } => {
                holes.push((path, Hole::Bytes { start: at, len: value.len() - at }));
                at = value.len();
            }
        }
    }
    (at == value.len()).then_some(())
}

/// The next multiple of four, if the bytes up to it are zero.
#[inline]
fn padded(value: &[u8], at: usize) -> Option<usize> {
    let start = at.next_multiple_of(4);
    value.get(at..start)?.iter().all(|&byte| byte == 0).then_some(start)
}

/// A child's word as found, the flags its template gives it, and where the child that starts at `at` ends.
#[inline]
fn child(
    shape: &Shape,
    value: &[u8],
    positions: &Positions,
    word: &Word,
    at: usize,
) -> Option<(u32, u32, usize)> {
    let container = usize::from(word.container);
    let read = |bytes: &[u8], at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk::<4>()?));
    let start = *positions.starts.get(container)?;
    let bits = read(value, start + word.offset as usize)?;
    let expected = read(&shape.program.literals, positions.literals.get(container)? + word.offset as usize)?;
    let field = (bits & LENGTH) as usize;
    let end = match word.end_from {
        None => at + field,
        Some(base) => start + base as usize + field,
    };
    (end >= at && end <= value.len()).then_some((bits, expected, end))
}
