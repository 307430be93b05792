//! The program of a template: how one shape of value is put together from literal bytes and the values of
//! path columns.
//!
//! A template stands for all values that differ only in the contents and lengths of their holes. Its program
//! runs from front to back. There are four kinds of step:
//! - append literal bytes;
//! - append the next value of a path column;
//! - pad to four bytes;
//! - put the length of what was appended, or its end offset, into a little-endian 32-bit word that was
//!   appended earlier.
//!
//! PostgreSQL's jsonb layout needs no more (`utils/jsonb.h`: containers of JEntry words followed by the
//! children's bytes). Yet nothing here knows jsonb: `shape.rs` writes programs, `matcher.rs` runs them
//! backwards over values, `fill.rs` runs them forwards.
//!
//! Invariant: a word is only touched inside the literal that directly follows the `Begin` of its container.
//! Every container is begun once, before it is used. `Program::check` checks both for every stored program.

use server_bytes::jsonb::{FALSE, TRUE};

/// Most containers in one template.
pub const MAX_CONTAINERS: usize = 64;

/// What a path column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathKind {
    /// Byte strings, appended as they are.
    Text,
    /// Decimals as (scaled integer, display scale), appended in PostgreSQL's short numeric form.
    Number,
    /// Byte strings that start at a multiple of four bytes (numerics that are no 64-bit integers).
    Aligned,
    /// Truth values: they add one unit of `FLAG_UNIT` to their word and append nothing.
    Flag,
}

/// The number that a flag of value true adds to its word. It turns jsonb's type bits for false into the bits
/// for true.
pub const FLAG_UNIT: u32 = TRUE - FALSE;

/// A word to be completed: at `offset` bytes after the start of container `container`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Word {
    /// Number of the container, in the order of `Begin` steps.
    pub container: u8,
    /// Bytes after the container's start.
    pub offset: u32,
    /// `None`: the length of the child is added. `Some(base)`: its end, counted from `base` bytes after the
    /// container's start.
    pub end_from: Option<u32>,
}

/// One step of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Pads to four bytes and starts the next container.
    Begin,
    /// Appends `literals[start..start + len]`.
    Literal {
        /// First byte.
        start: u32,
        /// Number of bytes.
        len: u32,
    },
    /// Appends the next value of a path column and completes its word.
    Value {
        /// Position in the table of paths.
        path: u32,
        /// That path's kind.
        kind: PathKind,
        /// The word that tells its length.
        word: Word,
    },
    /// Completes the word of a child without bytes.
    Nothing {
        /// The word.
        word: Word,
    },
    /// Ends the container `container` and completes the word that tells its length.
    End {
        /// The container that ends.
        container: u8,
        /// The word, in another container.
        word: Word,
    },
    /// Appends the next value of a path column of kind text without any word.
    Whole {
        /// Position in the table of paths.
        path: u32,
    },
}

/// How to put one shape of value together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Program {
    /// The steps in order.
    pub steps: Vec<Step>,
    /// The literal bytes the steps refer to.
    pub literals: Vec<u8>,
}

impl Program {
    /// The program that appends one value of path `path` as it is: values that no other template fits.
    pub fn whole(path: u32) -> Self {
        Self { steps: vec![Step::Whole { path }], literals: Vec::new() }
    }

    /// The paths it takes a value from, once per value.
    pub fn paths(&self) -> impl Iterator<Item = u32> + '_ {
        self.steps.iter().filter_map(|step| match step {
            Step::Value { path, .. } | Step::Whole { path } => Some(*path),
            _ => None,
        })
    }

    /// True when every step may be run: see the invariant above. `kinds` are the kinds of all paths.
    pub fn check(&self, kinds: &[PathKind]) -> bool {
        // Bytes of literal that are surely there after each container's start.
        let mut rooms: Vec<u32> = Vec::new();
        let mut begun = false;
        // Each value has a word of its own in the literals; a whole value has none.
        let words = self.literals.len() / 4 + 1;
        if self.paths().count() > words {
            return false;
        }
        let fits = |rooms: &[u32], word: &Word| {
            rooms
                .get(usize::from(word.container))
                .is_some_and(|&room| word.offset.checked_add(4) <= Some(room))
                && word.end_from.is_none_or(|base| base <= 1 << 28)
        };
        self.steps.iter().all(|step| {
            let after_begin = std::mem::replace(&mut begun, matches!(step, Step::Begin));
            match step {
                Step::Begin => {
                    rooms.push(0);
                    rooms.len() <= MAX_CONTAINERS
                }
                Step::Literal { start, len } => {
                    if after_begin && let Some(room) = rooms.last_mut() {
                        *room = *len;
                    }
                    start.checked_add(*len).is_some_and(|end| end as usize <= self.literals.len())
                }
                Step::Value { path, kind, word } => {
                    kinds.get(*path as usize) == Some(kind) && fits(&rooms, word)
                }
                Step::Nothing { word } => fits(&rooms, word),
                Step::End { container, word } => {
                    usize::from(*container) < rooms.len()
                        && word.container != *container
                        && fits(&rooms, word)
                }
                Step::Whole { path } => kinds.get(*path as usize) == Some(&PathKind::Text),
            }
        })
    }
}
