//! Runs templates' programs forwards: rows of literal bytes and hole contents, put end to end.
//!
//! Called by the template node for whole chunks and for taken rows alike. Idea: each path column becomes a *lane* that
//! gives its next value cheaply (a dictionary's short entries lie in slots of 16 bytes that are stored with one move), and a
//! row costs one short loop over its program's steps. Nothing here knows jsonb.
//!
//! Invariant: a row never writes past the `limit` declared for all rows; programs, codes and numbers may be anything, wrong ones give
//! `Corrupt`.

use vector::{Bitmap, ByteViews, Error, Result};

use super::number;
use super::program::{FLAG_UNIT, MAX_CONTAINERS, PathKind, Program, Step, Word};

/// Bytes stored at once for a short value.
const SLOT_BYTES: usize = 16;

/// Unused bytes kept after the last row so that short values can be stored as whole slots.
const SLACK: usize = 32;

/// Byte strings laid out for storing: up to 16 bytes inline.
#[derive(Debug, Default)]
pub struct Slots<'a> {
    slots: Vec<Slot<'a>>,
}

#[derive(Debug, Clone, Copy)]
struct Slot<'a> {
    head: [u8; SLOT_BYTES],
    value: &'a [u8],
}

impl<'a> Slots<'a> {
    /// Slots of these values.
    pub fn new(values: &'a ByteViews) -> Self {
        let slot = |value: &'a [u8]| {
            let mut head = [0; SLOT_BYTES];
            head.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
            Slot { head, value }
        };
        Self { slots: values.iter().map(slot).collect() }
    }
}

/// The values of one path column, in the order rows take them.
#[derive(Debug)]
pub enum Lane<'a> {
    /// One byte string for all.
    Same(Slots<'a>),
    /// Byte strings by code.
    Codes(&'a [u32], Slots<'a>),
    /// Byte strings.
    Views(&'a ByteViews),
    /// Scaled integers and display scales (one scale for all, or one each).
    Numbers(&'a [i64], &'a [i16]),
    /// Truth values.
    Flags(&'a Bitmap),
    /// Truth values, all the same.
    SameFlag(bool),
    /// A path of which no row here takes a value.
    Empty,
}

/// Containers' positions in the row being built.
#[derive(Clone, Copy)]
struct Positions {
    starts: [u32; MAX_CONTAINERS],
    unpadded: [u32; MAX_CONTAINERS],
}

/// Builds the rows whose templates are `shapes`, taking values from `lanes` in order. Returns the bytes of all rows and where
/// each begins, with the end of the last. `total` is what the rows must come to; `None` where the caller does not know.
pub fn fill(
    programs: &[Program],
    shapes: impl ExactSizeIterator<Item = u32>,
    lanes: &[Lane<'_>],
    total: Option<usize>,
) -> Result<(Vec<u8>, Vec<u32>)> {
    let broken = || Error::corrupt("template row does not fit its values");
    let limit = total.unwrap_or(u32::MAX as usize - SLACK);
    let mut out = vec![0u8; total.unwrap_or(0) + SLACK];
    let mut ends = Vec::with_capacity(shapes.len() + 1);
    ends.push(0);
    let mut cursors = vec![0usize; lanes.len()];
    let mut positions = Positions { starts: [0; MAX_CONTAINERS], unpadded: [0; MAX_CONTAINERS] };
    let mut at = 0usize;
    for shape in shapes {
        let program = programs.get(shape as usize).ok_or_else(|| Error::corrupt("no such template"))?;
        if total.is_none() {
            let room = room_of(program, lanes, &cursors).ok_or_else(broken)?;
            if out.len() < at + room + SLACK {
                out.resize((at + room + SLACK).max(out.len() * 2), 0);
            }
        }
        at = row(program, lanes, &mut cursors, &mut positions, &mut out, at).ok_or_else(broken)?;
        if at > limit {
            return Err(broken());
        }
        ends.push(u32::try_from(at).map_err(|_| broken())?);
    }
    if total.is_some_and(|total| total != at) {
        return Err(Error::corrupt(format!("template rows take {at} bytes instead of {limit}")));
    }
    out.truncate(at);
    Ok((out, ends))
}

/// Upper bound of the bytes of the next row.
fn room_of(program: &Program, lanes: &[Lane<'_>], cursors: &[usize]) -> Option<usize> {
    let mut room = 0usize;
    for step in &program.steps {
        room += match *step {
            Step::Begin => 3,
            Step::Literal { len, .. } => len as usize,
            Step::Value { path, .. } | Step::Whole { path } => match lanes.get(path as usize)? {
                Lane::Numbers(..) => number::MAX_BYTES + 3,
                Lane::Flags(_) | Lane::SameFlag(_) => 0,
                // A row may take several values of a lane: all that are near bound it only together.
                lane => 3 + longest(lane, *cursors.get(path as usize)?, program),
            },
            Step::Nothing { .. } | Step::End { .. } => 0,
        };
    }
    Some(room)
}

/// The longest of the values that one row may take from a lane of byte strings.
fn longest(lane: &Lane<'_>, cursor: usize, program: &Program) -> usize {
    (cursor..cursor + program.steps.len())
        .map_while(|index| bytes_at(lane, index).map(|slot| slot.len()))
        .max()
        .unwrap_or(0)
}

#[inline]
fn bytes_at<'a>(lane: &Lane<'a>, index: usize) -> Option<&'a [u8]> {
    match lane {
        Lane::Same(slots) => slots.slots.first().map(|slot| slot.value),
        Lane::Codes(codes, slots) => slots.slots.get(*codes.get(index)? as usize).map(|slot| slot.value),
        Lane::Views(views) => (index < views.len()).then(|| views.get(index)),
        _ => None,
    }
}

/// Appends a slot; the bytes after the value are overwritten by what follows.
#[inline]
fn append_slot(slot: &Slot<'_>, out: &mut [u8], at: usize) -> Option<usize> {
    if slot.value.len() <= SLOT_BYTES {
        *out.get_mut(at..)?.first_chunk_mut::<SLOT_BYTES>()? = slot.head;
        Some(at + slot.value.len())
    } else {
        append(slot.value, out, at)
    }
}

#[inline]
fn append(value: &[u8], out: &mut [u8], at: usize) -> Option<usize> {
    out.get_mut(at..at + value.len())?.copy_from_slice(value);
    Some(at + value.len())
}

/// Pads to a multiple of four counted from `row`.
#[inline]
fn pad(out: &mut [u8], at: usize, row: usize) -> Option<usize> {
    // Whole slots may have left bytes here.
    *out.get_mut(at..)?.first_chunk_mut::<4>()? = [0; 4];
    Some(row + (at - row).next_multiple_of(4))
}

#[inline]
fn row(
    program: &Program,
    lanes: &[Lane<'_>],
    cursors: &mut [usize],
    positions: &mut Positions,
    out: &mut [u8],
    row: usize,
) -> Option<usize> {
    let mut at = row;
    let mut begun = 0usize;
    for step in &program.steps {
        match *step {
            Step::Begin => {
                *positions.unpadded.get_mut(begun)? = u32::try_from(at).ok()?;
                at = pad(out, at, row)?;
                *positions.starts.get_mut(begun)? = u32::try_from(at).ok()?;
                begun += 1;
            }
            Step::Literal { start, len } => {
                let (start, len) = (start as usize, len as usize);
                at = append(program.literals.get(start..start.checked_add(len)?)?, out, at)?;
            }
            Step::Value { path, kind, word } => {
                let lane = lanes.get(path as usize)?;
                let cursor = cursors.get_mut(path as usize)?;
                let (index, before) = (*cursor, at);
                *cursor += 1;
                let mut add = 0;
                if matches!(kind, PathKind::Number | PathKind::Aligned) {
                    at = pad(out, at, row)?;
                }
                match lane {
                    Lane::Codes(codes, slots) => {
                        at = append_slot(slots.slots.get(*codes.get(index)? as usize)?, out, at)?;
                    }
                    Lane::Same(slots) => at = append_slot(slots.slots.first()?, out, at)?,
                    Lane::Views(views) if index < views.len() => at = append(views.get(index), out, at)?,
                    Lane::Numbers(values, scales) => {
                        let value = *values.get(index)?;
                        let scale = *if let [scale] = scales { scale } else { scales.get(index)? };
                        if !number::writable(value, i64::from(scale)) {
                            return None;
                        }
                        let (bytes, len) = number::write(value, u8::try_from(scale).ok()?);
                        *out.get_mut(at..)?.first_chunk_mut()? = bytes;
                        at += len;
                    }
                    Lane::Flags(bits) if index < bits.len() => add = FLAG_UNIT * u32::from(bits.get(index)),
                    Lane::SameFlag(bit) => add = FLAG_UNIT * u32::from(*bit),
                    _ => return None,
                }
                complete(positions, &word, before, at, add, out)?;
            }
            Step::Nothing { word } => complete(positions, &word, at, at, 0, out)?,
            Step::End { container, word } => {
                let before = *positions.unpadded.get(usize::from(container))? as usize;
                complete(positions, &word, before, at, 0, out)?;
            }
            Step::Whole { path } => {
                let cursor = cursors.get_mut(path as usize)?;
                at = append(bytes_at(lanes.get(path as usize)?, *cursor)?, out, at)?;
                *cursor += 1;
            }
        }
    }
    Some(at)
}

/// Adds length or end of the child `before..at`, and `add`, to its word.
#[inline]
fn complete(
    positions: &Positions,
    word: &Word,
    before: usize,
    at: usize,
    add: u32,
    out: &mut [u8],
) -> Option<()> {
    let start = *positions.starts.get(usize::from(word.container))? as usize;
    let length = match word.end_from {
        None => at - before,
        Some(base) => at.checked_sub(start + base as usize)?,
    };
    let place = out.get_mut(start + word.offset as usize..)?.first_chunk_mut::<4>()?;
    let bits = u32::from_le_bytes(*place);
    *place = bits.wrapping_add(u32::try_from(length).ok()?).wrapping_add(add).to_le_bytes();
    Some(())
}
