//! Runs templates' programs forwards: rows of literal bytes and hole contents, put end to end.
//!
//! Called by the template node for whole chunks and for taken rows alike. Idea: each path column becomes a
//! *lane* that gives its next value cheaply. For example, a dictionary's short entries lie in slots of 16
//! bytes, and one move stores such an entry. So a row costs one short loop over its program's steps. Nothing
//! here knows jsonb.
//!
//! Invariant: a row never writes past the `limit` declared for all rows. Programs, codes and numbers may be
//! anything; wrong ones give `Corrupt`.

use std::sync::Arc;

use server_bytes::numeric::small;
use vector::{Bitmap, ByteView, ByteViews, Error, Result};

use super::batch::{self, Plan};
use super::program::{FLAG_UNIT, MAX_CONTAINERS, PathKind, Program, Step, Word};
use crate::kernels::append::{Appender, SLOT_BYTES};
use crate::kernels::rows::{BATCH, Rows};
use crate::strings::views::{view, views_of};

/// Lanes of longer values are measured value by value for the room that a row needs.
const NEAR_BYTES: usize = 256;

/// Most memory taken before any row is built, whatever the chunk claims to hold.
const FIRST_BYTES: usize = 16 << 20;

/// Shorter runs of one template are built row by row.
const MIN_RUN: usize = 4;

/// Unused bytes kept after the last row so that short values can be stored as whole slots.
const SLACK: usize = 32;

/// Byte strings laid out for storing: up to 16 bytes inline.
#[derive(Debug, Default)]
pub struct Slots<'a> {
    slots: Vec<Slot<'a>>,
    longest: usize,
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
        let longest = values.views().iter().map(ByteView::len).max().unwrap_or(0);
        Self { slots: values.iter().map(slot).collect(), longest }
    }

    /// Length of the longest value.
    pub const fn longest(&self) -> usize {
        self.longest
    }

    /// The first bytes of a value and its length.
    #[inline]
    pub fn head(&self, index: usize) -> Option<(&[u8; SLOT_BYTES], usize)> {
        self.slots.get(index).map(|slot| (&slot.head, slot.value.len()))
    }

    /// A value.
    #[inline]
    pub fn value(&self, index: usize) -> Option<&'a [u8]> {
        self.slots.get(index).map(|slot| slot.value)
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

/// A lane and how many of its values were taken.
pub struct Taken<'l, 'a> {
    /// The lane.
    pub lane: &'l Lane<'a>,
    /// Its next value.
    pub next: usize,
}

/// What gives a row the values of its paths.
pub trait Source {
    /// Appends the next value of a path, and says what is added to its word besides the length. `None` if
    /// there is no value or no room.
    fn append(&mut self, path: u32, out: &mut Appender) -> Option<u32>;
}

impl Source for [Taken<'_, '_>] {
    #[inline]
    fn append(&mut self, path: u32, out: &mut Appender) -> Option<u32> {
        let taken = self.get_mut(path as usize)?;
        let index = taken.next;
        taken.next += 1;
        match taken.lane {
            Lane::Codes(codes, slots) => {
                append_slot(slots.slots.get(*codes.get(index)? as usize)?, out)?;
            }
            Lane::Same(slots) => append_slot(slots.slots.first()?, out)?,
            Lane::Views(views) => {
                (index < views.len()).then_some(())?;
                out.bytes(views.get(index))?;
            }
            Lane::Numbers(values, scales) => {
                let scale = *if let [scale] = scales { scale } else { scales.get(index)? };
                append_number(*values.get(index)?, scale, out)?;
            }
            Lane::Flags(bits) => {
                (index < bits.len()).then_some(())?;
                return Some(FLAG_UNIT * u32::from(bits.get(index)));
            }
            Lane::SameFlag(bit) => return Some(FLAG_UNIT * u32::from(*bit)),
            Lane::Empty => return None,
        }
        Some(0)
    }
}

/// Appends a decimal in PostgreSQL's short form.
#[inline]
pub fn append_number(value: i64, scale: i16, out: &mut Appender) -> Option<()> {
    if !small::writable(value, i64::from(scale)) {
        return None;
    }
    let (bytes, len) = small::write(value, u8::try_from(scale).ok()?);
    out.slot(&bytes, len)
}

/// Positions of the containers of the row being built.
struct Positions {
    starts: [usize; MAX_CONTAINERS],
    unpadded: [usize; MAX_CONTAINERS],
}

impl Positions {
    const fn new() -> Self {
        Self { starts: [0; MAX_CONTAINERS], unpadded: [0; MAX_CONTAINERS] }
    }
}

/// Builds the rows whose templates are `shapes`, taking values from `lanes` in order. `total` is the number
/// of bytes that the rows must have; `None` if the caller does not know it.
pub fn fill(
    programs: &[Program],
    shapes: &[u32],
    lanes: &[Lane<'_>],
    total: Option<usize>,
) -> Result<ByteViews> {
    let mut taken: Vec<Taken<'_, '_>> = lanes.iter().map(|lane| Taken { lane, next: 0 }).collect();
    match total {
        Some(total) => fill_side_by_side(programs, shapes, &mut taken, total),
        None => fill_one_by_one(programs, shapes, &mut taken),
    }
}

fn broken() -> Error {
    Error::corrupt("template row does not fit its values")
}

fn program_of(programs: &[Program], shape: u32) -> Result<&Program> {
    programs.get(shape as usize).ok_or_else(|| Error::corrupt("no such template"))
}

/// Runs of rows of one template in batches, each row in a stretch of its own; the others row by row.
fn fill_side_by_side(
    programs: &[Program],
    shapes: &[u32],
    taken: &mut [Taken<'_, '_>],
    total: usize,
) -> Result<ByteViews> {
    let longest: Vec<usize> = taken.iter().map(|taken| batch::longest(taken.lane)).collect();
    let average = total / shapes.len().max(1);
    let mut plans: Vec<Option<Plan>> = Vec::new();
    plans.resize_with(programs.len(), || None);
    let mut rows = Rows::over(Vec::with_capacity((total + total / 8).min(FIRST_BYTES)));
    let mut views = Vec::with_capacity(shapes.len());
    let mut built = 0usize;
    let mut overflow = false;
    for run in shapes.chunk_by(|a, b| a == b) {
        let Some(&shape) = run.first() else { continue };
        let program = program_of(programs, shape)?;
        let slot = plans.get_mut(shape as usize).ok_or_else(broken)?;
        if slot.is_none() {
            *slot = Plan::new(program, taken, &longest);
        }
        let plan = slot.as_ref().ok_or_else(broken)?;
        // Where rows differ so much that stretches would waste half the memory, all are built one by one
        // instead.
        if run.len() >= MIN_RUN && plan.stride <= average + average / 2 + 64 {
            for batch in run.chunks(BATCH) {
                rows.begin(batch.len(), plan.stride);
                batch::run(program, plan, taken, batch.len(), &mut rows).ok_or_else(broken)?;
                rows.end(|offset, bytes| {
                    built += bytes.len();
                    let view = u32::try_from(offset).ok().and_then(|offset| view(bytes, offset));
                    overflow |= view.is_none();
                    views.extend(view);
                });
            }
        } else {
            let mut positions = Positions::new();
            for _ in run {
                let mut out = Appender::over(std::mem::replace(&mut rows, Rows::over(Vec::new())).finish());
                let start = out.at();
                out.reserve(room_of(program, taken, &longest).ok_or_else(broken)?);
                row(program, taken, &mut positions, &mut out).ok_or_else(broken)?;
                let data = out.finish();
                let bytes = data.get(start..).unwrap_or(&[]);
                built += bytes.len();
                let view = u32::try_from(start).ok().and_then(|start| view(bytes, start));
                overflow |= view.is_none();
                views.extend(view);
                rows = Rows::over(data);
            }
        }
        if built > total || overflow {
            return Err(broken());
        }
    }
    if built != total {
        return Err(Error::corrupt(format!("template rows take {built} bytes instead of {total}")));
    }
    Ok(ByteViews::from_parts(views, vec![Arc::new(rows.finish())]))
}

fn fill_one_by_one(programs: &[Program], shapes: &[u32], taken: &mut [Taken<'_, '_>]) -> Result<ByteViews> {
    let longest: Vec<usize> = taken.iter().map(|taken| batch::longest(taken.lane)).collect();
    let mut out = Appender::over(Vec::new());
    let mut offsets = Vec::with_capacity(shapes.len() + 1);
    offsets.push(0);
    let mut positions = Positions::new();
    for &shape in shapes {
        let program = program_of(programs, shape)?;
        out.reserve(room_of(program, taken, &longest).ok_or_else(broken)?);
        row(program, taken, &mut positions, &mut out).ok_or_else(broken)?;
        offsets.push(u32::try_from(out.at()).map_err(|_| broken())?);
    }
    views_of(&offsets, out.finish())
}

/// Builds one row whose source makes the room that each value needs. `None` if the program does not fit its
/// values.
pub fn fill_one(program: &Program, source: &mut impl Source, out: &mut Appender) -> Option<()> {
    row(program, source, &mut Positions::new(), out)
}

/// Room that a row needs besides its values.
pub fn room_around(program: &Program) -> usize {
    let room = program.steps.iter().map(|step| match step {
        Step::Literal { len, .. } => *len as usize,
        _ => 3,
    });
    SLACK + room.sum::<usize>()
}

/// Upper bound of the room that the next row needs. `longest` has the longest value of each lane.
fn room_of(program: &Program, taken: &[Taken<'_, '_>], longest: &[usize]) -> Option<usize> {
    let mut room = SLACK;
    for step in &program.steps {
        room += match *step {
            Step::Begin => 3,
            Step::Literal { len, .. } => len as usize,
            Step::Value { path, .. } | Step::Whole { path } => {
                let (taken, longest) = (taken.get(path as usize)?, *longest.get(path as usize)?);
                // A row may take several values of a lane. If some are long, the longest of the values nearby
                // bounds each.
                let near = if longest <= NEAR_BYTES { None } else { Some(program.steps.len()) };
                3 + near.map_or(longest, |near| longest_of(taken.lane, taken.next, near))
            }
            Step::Nothing { .. } | Step::End { .. } => 0,
        };
    }
    Some(room)
}

/// The longest of the next `count` values of a lane of byte strings.
fn longest_of(lane: &Lane<'_>, next: usize, count: usize) -> usize {
    (next..next + count).map_while(|index| bytes_at(lane, index).map(<[u8]>::len)).max().unwrap_or(0)
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

#[inline]
fn append_slot(slot: &Slot<'_>, out: &mut Appender) -> Option<()> {
    match slot.value.len() {
        len @ ..=SLOT_BYTES => out.slot(&slot.head, len),
        _ => out.bytes(slot.value),
    }
}

/// Builds one row. `None` if the program does not fit its values, or there is no room.
#[inline]
fn row(
    program: &Program,
    source: &mut (impl Source + ?Sized),
    positions: &mut Positions,
    out: &mut Appender,
) -> Option<()> {
    let row = out.at();
    let mut begun = 0usize;
    for step in &program.steps {
        match *step {
            Step::Begin => {
                *positions.unpadded.get_mut(begun)? = out.at();
                out.pad(row)?;
                *positions.starts.get_mut(begun)? = out.at();
                begun += 1;
            }
            Step::Literal { start, len } => {
                let (start, len) = (start as usize, len as usize);
                out.bytes(program.literals.get(start..start.checked_add(len)?)?)?;
            }
            Step::Value { path, kind, word } => {
                let before = out.at();
                if matches!(kind, PathKind::Number | PathKind::Aligned) {
                    out.pad(row)?;
                }
                let add = source.append(path, out)?;
                complete(positions, &word, before, add, out)?;
            }
            Step::Nothing { word } => complete(positions, &word, out.at(), 0, out)?,
            Step::End { container, word } => {
                let before = *positions.unpadded.get(usize::from(container))?;
                complete(positions, &word, before, 0, out)?;
            }
            Step::Whole { path } => {
                source.append(path, out)?;
            }
        }
    }
    Some(())
}

/// Adds the length of the child that begins at `before` and ends here, or its end, and `add`, to its word.
#[inline]
fn complete(positions: &Positions, word: &Word, before: usize, add: u32, out: &mut Appender) -> Option<()> {
    let start = *positions.starts.get(usize::from(word.container))?;
    let from = match word.end_from {
        None => before,
        Some(base) => start.checked_add(base as usize)?,
    };
    let length = u32::try_from(out.at().checked_sub(from)?).ok()?;
    out.add_to_word(start.checked_add(word.offset as usize)?, length.wrapping_add(add))
}
