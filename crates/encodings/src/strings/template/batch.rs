//! Many rows of one template at once, step by step instead of row by row.
//!
//! Called by `fill.rs` for runs of rows of one template whose lengths do not differ much. A step is decoded
//! once a batch and then done to all rows in one short loop (`kernels/rows.rs`). This is more than twice as
//! fast as running the program for each row.
//!
//! Invariant: gives the same rows as `fill::row`.

use server_bytes::numeric::small;

use super::fill::{Lane, Slots, Taken};
use super::program::{FLAG_UNIT, PathKind, Program, Step, Word};
use crate::kernels::rows::{BATCH, Places, Rows, SLACK, SLOT_BYTES};

/// What a program needs to know about the lanes of a chunk.
pub struct Plan {
    /// For each step that takes a value: how many values of its path a row takes, and which of them this is.
    uses: Vec<(usize, usize)>,
    /// Bytes that a row may need, slack included.
    pub stride: usize,
}

impl Plan {
    /// The plan of a program; `None` when a path does not exist or the stretch of a row overflows.
    pub fn new(program: &Program, taken: &[Taken<'_, '_>], longest: &[usize]) -> Option<Self> {
        let mut counts = vec![0usize; taken.len()];
        let mut uses = Vec::with_capacity(program.steps.len());
        let mut stride = SLACK;
        for step in &program.steps {
            let mut ordinal = 0;
            match *step {
                Step::Begin => stride += 3,
                Step::Literal { len, .. } => stride = stride.checked_add(len as usize)?,
                Step::Value { path, .. } | Step::Whole { path } => {
                    let count = counts.get_mut(path as usize)?;
                    ordinal = *count;
                    *count += 1;
                    stride = stride.checked_add(*longest.get(path as usize)? + 3)?;
                }
                Step::Nothing { .. } | Step::End { .. } => {}
            }
            uses.push((0, ordinal));
        }
        for (step, uses) in program.steps.iter().zip(&mut uses) {
            if let Step::Value { path, .. } | Step::Whole { path } = *step {
                uses.0 = *counts.get(path as usize)?;
            }
        }
        Some(Self { uses, stride: stride.next_multiple_of(8) })
    }
}

/// The most bytes that a value of the lane appends.
pub fn longest(lane: &Lane<'_>) -> usize {
    match lane {
        Lane::Same(slots) | Lane::Codes(_, slots) => slots.longest(),
        Lane::Views(views) => views.views().iter().map(vector::ByteView::len).max().unwrap_or(0),
        Lane::Numbers(..) => small::MAX_BYTES,
        Lane::Flags(_) | Lane::SameFlag(_) | Lane::Empty => 0,
    }
}

/// Containers' positions in the rows of the batch.
struct Containers {
    starts: Vec<Places>,
    unpadded: Vec<Places>,
    /// Where each container's first literal lies in the program's literals.
    literals: Vec<usize>,
}

/// Builds `count` rows (1 to `BATCH`), whose stretches were begun.
pub fn run(
    program: &Program,
    plan: &Plan,
    taken: &mut [Taken<'_, '_>],
    count: usize,
    rows: &mut Rows,
) -> Option<()> {
    debug_assert!((1..=BATCH).contains(&count));
    let mut containers = Containers { starts: Vec::new(), unpadded: Vec::new(), literals: Vec::new() };
    for (step, &(every, ordinal)) in program.steps.iter().zip(&plan.uses) {
        match *step {
            Step::Begin => {
                containers.unpadded.push(*rows.at());
                rows.pad()?;
                containers.starts.push(*rows.at());
            }
            Step::Literal { start, len } => {
                let start = start as usize;
                if containers.literals.len() < containers.starts.len() {
                    containers.literals.push(start);
                }
                rows.literal(program.literals.get(start..start.checked_add(len as usize)?)?)?;
            }
            Step::Value { path, kind, word } => {
                let taken = taken.get(path as usize)?;
                let first = taken.next + ordinal;
                let before = *rows.at();
                if matches!(kind, PathKind::Number | PathKind::Aligned) {
                    rows.pad()?;
                }
                append(taken.lane, first, every, count, rows)?;
                match taken.lane {
                    Lane::Flags(bits) => {
                        let last = first + every * (count - 1);
                        (last < bits.len()).then_some(())?;
                        let add = |row| FLAG_UNIT * u32::from(bits.get(first + row * every));
                        complete(&containers, program, &word, &before, add, rows)?;
                    }
                    Lane::SameFlag(bit) => {
                        let add = FLAG_UNIT * u32::from(*bit);
                        complete(&containers, program, &word, &before, |_| add, rows)?;
                    }
                    _ => complete(&containers, program, &word, &before, |_| 0, rows)?,
                }
            }
            Step::Nothing { word } => {
                let before = *rows.at();
                complete(&containers, program, &word, &before, |_| 0, rows)?;
            }
            Step::End { container, word } => {
                let before = *containers.unpadded.get(usize::from(container))?;
                complete(&containers, program, &word, &before, |_| 0, rows)?;
            }
            Step::Whole { path } => {
                let taken = taken.get(path as usize)?;
                append(taken.lane, taken.next + ordinal, every, count, rows)?;
            }
        }
    }
    for (step, &(every, ordinal)) in program.steps.iter().zip(&plan.uses) {
        if let (Step::Value { path, .. } | Step::Whole { path }, 0) = (*step, ordinal) {
            taken.get_mut(path as usize)?.next += count * every;
        }
    }
    Some(())
}

/// Appends to each of `count` rows a value of the lane: the first one at `first`, then every `every`th.
fn append(lane: &Lane<'_>, first: usize, every: usize, count: usize, rows: &mut Rows) -> Option<()> {
    match lane {
        Lane::Codes(codes, slots) => {
            let codes = codes.get(first..)?;
            match (slots.longest() <= SLOT_BYTES, every) {
                (true, 1) => short_codes(codes.iter(), slots, rows),
                (true, _) => short_codes(codes.iter().step_by(every), slots, rows),
                _ => long_codes(codes.iter().step_by(every), slots, rows),
            }
        }
        Lane::Same(slots) if slots.longest() <= SLOT_BYTES => {
            rows.slots(std::iter::repeat_n(slots.head(0), count))
        }
        Lane::Same(slots) => rows.pieces(std::iter::repeat_n(slots.value(0), count)),
        Lane::Views(views) => {
            let indexes = (first..views.len()).step_by(every);
            rows.pieces(indexes.map(|index| Some(views.get(index))))
        }
        Lane::Numbers(values, scales) => {
            let values = values.get(first..)?.iter().step_by(every);
            match scales {
                [scale] => numbers(values.zip(std::iter::repeat(scale)), rows),
                _ => numbers(values.zip(scales.get(first..)?.iter().step_by(every)), rows),
            }
        }
        Lane::Flags(_) | Lane::SameFlag(_) => Some(()),
        Lane::Empty => None,
    }
}

// Loops of their own: inlined into the walk over the steps they would fight for registers.

#[inline(never)]
fn short_codes<'c>(codes: impl Iterator<Item = &'c u32>, slots: &Slots<'_>, rows: &mut Rows) -> Option<()> {
    rows.slots(codes.map(|&code| slots.head(code as usize)))
}

#[inline(never)]
fn long_codes<'c>(codes: impl Iterator<Item = &'c u32>, slots: &Slots<'_>, rows: &mut Rows) -> Option<()> {
    rows.pieces(codes.map(|&code| slots.value(code as usize)))
}

#[inline(never)]
fn numbers<'n>(values: impl Iterator<Item = (&'n i64, &'n i16)>, rows: &mut Rows) -> Option<()> {
    rows.made(values.map(|(&value, &scale)| {
        if !small::writable(value, i64::from(scale)) {
            return None;
        }
        Some(small::write(value, u8::try_from(scale).ok()?))
    }))
}

/// Stores each row's word: its bits in the literal, plus length or end of the child that began at `before`,
/// plus `add`.
#[inline(never)]
fn complete(
    containers: &Containers,
    program: &Program,
    word: &Word,
    before: &Places,
    add: impl Fn(usize) -> u32,
    rows: &mut Rows,
) -> Option<()> {
    let container = usize::from(word.container);
    let starts = containers.starts.get(container)?;
    let offset = word.offset as usize;
    let literal = containers.literals.get(container)?.checked_add(offset)?;
    let bits = u32::from_le_bytes(*program.literals.get(literal..)?.first_chunk::<4>()?);
    match word.end_from {
        None => rows.words(starts, offset, bits, before, add),
        Some(base) => rows.words(starts, offset, bits.wrapping_sub(base), starts, add),
    }
}
