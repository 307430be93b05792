//! Reads a value as PostgreSQL jsonb and writes the template it belongs to.
//!
//! Called by the template encoder when no known template fits a value. `server_bytes::jsonb` knows the layout
//! of documents.
//!
//! Nothing is trusted: the value may be any bytes. The template is only a proposal, which the matcher proves
//! or refuses byte by byte. Scalars become holes, so values that differ only in them share a template; keys,
//! array lengths, nesting and NULLs make the template.

use std::collections::HashMap;

use server_bytes::jsonb::{
    CONTAINER, Child, Container, FALSE, Form, HAS_END, KIND, NULL, NUMERIC, STRING, TRUE,
};
use server_bytes::numeric::small;

use super::program::{MAX_CONTAINERS, PathKind, Program, Step, Word};

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
    let read = Container::root(value).ok().and_then(|root| reader.container(root, 0));
    let shape = reader.shape;
    if read.is_none() {
        paths.truncate(known);
    }
    read.map(|()| shape)
}

impl Reader<'_> {
    /// Adds the steps of a container and of all in it.
    fn container(&mut self, container: Container<'_>, depth: usize) -> Option<()> {
        let (start, data) = (container.start(), container.data_start());
        let keys = match container.form() {
            Form::Object => container.count(),
            Form::Array => 0,
            Form::Scalar if depth == 0 => 0,
            Form::Scalar => return None,
        };
        let words = container.words();
        self.words = self.words.checked_add(words)?;
        let number = u8::try_from(self.shape.variable.len()).ok()?;
        if self.words > MAX_WORDS || depth > MAX_DEPTH || usize::from(number) >= MAX_CONTAINERS {
            return None;
        }
        let literal = u32::try_from(self.shape.program.literals.len()).ok()?;
        self.shape.program.literals.extend_from_slice(self.value.get(start..data)?);
        // The keys' bytes follow the words directly: one literal holds both.
        let mut at = data;
        let mut children = container.children();
        let mut key_ends = Vec::with_capacity(keys);
        for _ in 0..keys {
            let key = children.next_child().ok()??;
            if key.entry & KIND != STRING {
                return None;
            }
            key_ends.push((key.start, key.end));
            at = key.end;
        }
        self.shape.program.literals.extend_from_slice(self.value.get(data..at)?);
        let len = u32::try_from(at - start).ok()?;
        self.shape.program.steps.push(Step::Begin);
        self.shape.program.steps.push(Step::Literal { start: literal, len });
        let first_value = u32::try_from(4 + 4 * keys).ok()?;
        self.shape.variable.push((first_value, u32::try_from(data - start).ok()?));
        for position in 0..words - keys {
            let child = children.next_child().ok()??;
            let offset = u32::try_from(child.entry_at - start).ok()?;
            let end_from = (child.entry & HAS_END != 0).then_some(u32::try_from(data - start).ok()?);
            let word = Word { container: number, offset, end_from };
            let kept = self.name.len();
            match key_ends.get(position) {
                Some(&(from, to)) => {
                    self.name.push(KEY_COMPONENT);
                    self.name.extend_from_slice(&u32::try_from(to - from).ok()?.to_le_bytes());
                    self.name.extend_from_slice(self.value.get(from..to)?);
                }
                None => self.name.push(ELEMENT_COMPONENT),
            }
            let kind = self.child(container, child, word, depth)?;
            self.name.truncate(kept);
            // The length that the program itself will add is taken out of the literal's word.
            let place = literal as usize + offset as usize;
            let flags = (child.entry & HAS_END) | kind;
            self.shape.program.literals.get_mut(place..place + 4)?.copy_from_slice(&flags.to_le_bytes());
            at = child.end;
        }
        (at == container.end()).then_some(())
    }

    /// Adds the steps of one child; returns the kind bits that its word starts with.
    fn child(&mut self, parent: Container<'_>, child: Child, word: Word, depth: usize) -> Option<u32> {
        let (kind, start) = match child.entry & KIND {
            STRING => (PathKind::Text, STRING),
            NUMERIC => {
                let bytes = self.value.get(child.start.next_multiple_of(4)..child.end);
                match bytes.and_then(small::parse) {
                    Some(_) => (PathKind::Number, NUMERIC),
                    None => (PathKind::Aligned, NUMERIC),
                }
            }
            FALSE | TRUE => (PathKind::Flag, FALSE),
            NULL => {
                self.shape.program.steps.push(Step::Nothing { word });
                return Some(NULL);
            }
            CONTAINER => {
                let container = u8::try_from(self.shape.variable.len()).ok()?;
                self.container(parent.of_child(child).ok()?, depth + 1)?;
                self.shape.program.steps.push(Step::End { container, word });
                return Some(CONTAINER);
            }
            _ => return None,
        };
        let path = self.paths.number(&self.name, kind);
        self.shape.program.steps.push(Step::Value { path, kind, word });
        Some(start)
    }
}
