//! Reads a value as PostgreSQL jsonb and writes the template it belongs to.
//!
//! Called by the template encoder when no known template fits a value. Layout read here (`utils/jsonb.h`): a
//! container is a header word (count and kind), one JEntry word a child (an object's keys first, then its
//! values), then the children's bytes; a JEntry holds a kind and either a length or, every 32nd, an end
//! offset; containers and numerics start at multiples of four bytes. All little-endian, because the host's
//! machine is.
//!
//! Nothing is trusted: the value may be any bytes. What comes out is only a proposal, which the matcher
//! proves or refuses byte by byte. Scalars become holes, so values that differ only in them share a template;
//! keys, array lengths, nesting and NULLs make the template.

use std::collections::HashMap;

use super::program::{MAX_CONTAINERS, PathKind, Program, Step, Word};

const COUNT_MASK: u32 = 0x0FFF_FFFF;
const SCALAR: u32 = 0x1000_0000;
const OBJECT: u32 = 0x2000_0000;
const ARRAY: u32 = 0x4000_0000;
const HAS_OFFSET: u32 = 0x8000_0000;
const KIND_MASK: u32 = 0x7000_0000;
const IS_STRING: u32 = 0;
const IS_NUMERIC: u32 = 0x1000_0000;
const IS_FALSE: u32 = 0x2000_0000;
const IS_TRUE: u32 = 0x3000_0000;
const IS_NULL: u32 = 0x4000_0000;
const IS_CONTAINER: u32 = 0x5000_0000;

/// Bits of a word that the length or end offset takes.
pub const LENGTH_MASK: u32 = COUNT_MASK;

/// Deepest nesting that is shredded.
const MAX_DEPTH: usize = 16;
/// Most children in one value that is shredded.
const MAX_WORDS: usize = 1024;

/// One component of a path, as stored: an object's key or "any element of the array".
pub const KEY_COMPONENT: u8 = 0;
/// See `KEY_COMPONENT`.
pub const ELEMENT_COMPONENT: u8 = 1;

/// The table of paths of one column: name and kind by number.
#[derive(Debug, Default)]
pub struct PathTable {
    numbers: HashMap<(Vec<u8>, PathKind), u32>,
    paths: Vec<(Vec<u8>, PathKind)>,
}

impl PathTable {
    /// The number of a path, given on first sight.
    pub fn number(&mut self, name: &[u8], kind: PathKind) -> u32 {
        let next = u32::try_from(self.paths.len()).unwrap_or(u32::MAX);
        *self.numbers.entry((name.to_vec(), kind)).or_insert_with(|| {
            self.paths.push((name.to_vec(), kind));
            next
        })
    }

    /// Names and kinds in the order of their numbers.
    pub fn paths(&self) -> &[(Vec<u8>, PathKind)] {
        &self.paths
    }

    /// Forgets the paths numbered `len` and up.
    pub fn truncate(&mut self, len: usize) {
        for path in self.paths.drain(len.min(self.paths.len())..) {
            self.numbers.remove(&path);
        }
    }
}

/// A program with what the matcher needs besides.
#[derive(Debug, Clone)]
pub struct Shape {
    /// The program.
    pub program: Program,
    /// For each container, the bytes of its first literal that values may change: start and end.
    pub variable: Vec<(u32, u32)>,
}

struct Reader<'a> {
    value: &'a [u8],
    shape: Shape,
    paths: &'a mut PathTable,
    name: Vec<u8>,
    words: usize,
}

/// The template of `value`, or `None` when it is no jsonb that can be shredded. New paths enter `paths`.
pub fn shape_of(value: &[u8], paths: &mut PathTable) -> Option<Shape> {
    let known = paths.paths().len();
    let shape = Shape { program: Program::default(), variable: Vec::new() };
    let mut reader = Reader { value, shape, paths, name: Vec::new(), words: 0 };
    let read = reader.container(0, value.len(), 0);
    let shape = reader.shape;
    if read.is_none() {
        paths.truncate(known);
    }
    read.map(|()| shape)
}

fn word_at(value: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*value.get(at..)?.first_chunk::<4>()?))
}

impl Reader<'_> {
    /// Reads the container at `start` (a multiple of four), whose bytes end at `end`.
    fn container(&mut self, start: usize, end: usize, depth: usize) -> Option<()> {
        let header = word_at(self.value, start)?;
        let count = (header & COUNT_MASK) as usize;
        let (keys, words) = match header & !COUNT_MASK {
            OBJECT => (count, count.checked_mul(2)?),
            ARRAY => (0, count),
            kind if kind == ARRAY | SCALAR && count == 1 && depth == 0 => (0, 1),
            _ => return None,
        };
        self.words = self.words.checked_add(words)?;
        let number = u8::try_from(self.shape.variable.len()).ok()?;
        if self.words > MAX_WORDS || depth > MAX_DEPTH || usize::from(number) >= MAX_CONTAINERS {
            return None;
        }
        let data = start + 4 + 4 * words;
        let literal = u32::try_from(self.shape.program.literals.len()).ok()?;
        self.shape.program.literals.extend_from_slice(self.value.get(start..data)?);
        // The keys' bytes follow the words directly: one literal holds both.
        let mut at = data;
        let mut key_ends = Vec::with_capacity(keys);
        for key in 0..keys {
            let word = word_at(self.value, start + 4 + 4 * key)?;
            if word & KIND_MASK != IS_STRING {
                return None;
            }
            let next = child_end(word, at, data)?;
            key_ends.push((at, next));
            at = next;
        }
        if at > end {
            return None;
        }
        self.shape.program.literals.extend_from_slice(self.value.get(data..at)?);
        let len = u32::try_from(at - start).ok()?;
        self.shape.program.steps.push(Step::Begin);
        self.shape.program.steps.push(Step::Literal { start: literal, len });
        let first_value = u32::try_from(4 + 4 * keys).ok()?;
        self.shape.variable.push((first_value, u32::try_from(data - start).ok()?));
        for child in keys..words {
            let offset = u32::try_from(4 + 4 * child).ok()?;
            let bits = word_at(self.value, start + offset as usize)?;
            let next = child_end(bits, at, data)?;
            if next > end {
                return None;
            }
            let end_from = (bits & HAS_OFFSET != 0).then_some(u32::try_from(data - start).ok()?);
            let word = Word { container: number, offset, end_from };
            let kept = self.name.len();
            match key_ends.get(child - keys) {
                Some(&(from, to)) => {
                    self.name.push(KEY_COMPONENT);
                    self.name.extend_from_slice(&u32::try_from(to - from).ok()?.to_le_bytes());
                    self.name.extend_from_slice(self.value.get(from..to)?);
                }
                None => self.name.push(ELEMENT_COMPONENT),
            }
            let kind = self.child(bits, word, at, next, depth)?;
            self.name.truncate(kept);
            // What the program itself will add is taken out of the literal's word.
            let place = literal as usize + offset as usize;
            let flags = (bits & HAS_OFFSET) | kind;
            self.shape.program.literals.get_mut(place..place + 4)?.copy_from_slice(&flags.to_le_bytes());
            at = next;
        }
        (at == end).then_some(())
    }

    /// Adds the steps of one child; returns the kind bits that its word starts with.
    fn child(&mut self, bits: u32, word: Word, at: usize, next: usize, depth: usize) -> Option<u32> {
        let (kind, start) = match bits & KIND_MASK {
            IS_STRING => (PathKind::Text, IS_STRING),
            IS_NUMERIC => match self.value.get(at.next_multiple_of(4)..next).and_then(super::number::parse) {
                Some(_) => (PathKind::Number, IS_NUMERIC),
                None => (PathKind::Aligned, IS_NUMERIC),
            },
            IS_FALSE | IS_TRUE => (PathKind::Flag, IS_FALSE),
            IS_NULL => {
                self.shape.program.steps.push(Step::Nothing { word });
                return Some(IS_NULL);
            }
            IS_CONTAINER => {
                let container = u8::try_from(self.shape.variable.len()).ok()?;
                self.container(at.next_multiple_of(4), next, depth + 1)?;
                self.shape.program.steps.push(Step::End { container, word });
                return Some(IS_CONTAINER);
            }
            _ => return None,
        };
        let path = self.paths.number(&self.name, kind);
        self.shape.program.steps.push(Step::Value { path, kind, word });
        Some(start)
    }
}

/// Where the child that starts at `at` ends, in a container whose children start at `data`.
fn child_end(word: u32, at: usize, data: usize) -> Option<usize> {
    let field = (word & LENGTH_MASK) as usize;
    let end = if word & HAS_OFFSET == 0 { at.checked_add(field)? } else { data.checked_add(field)? };
    (end >= at).then_some(end)
}
