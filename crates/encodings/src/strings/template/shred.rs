//! Cuts the values of a column into template numbers and path columns.
//!
//! Called by the template encoder, once for a sample and once for the column. Each value is tried against the
//! template of the value before it, then against templates with the same outline (root keys' lengths). If
//! none fits, the value is read as jsonb to make a new template. A value that is no jsonb, or comes after
//! there are too many templates, is kept whole as a value of path 0.
//!
//! Invariant: running template `templates[row]` forwards with the next values of its paths gives the row's
//! bytes: the matcher has proven it for each row.

use std::collections::HashMap;
use std::ops::Range;

use server_bytes::jsonb::{COUNT, OBJECT};
use vector::{Bitmap, ByteViews};

use super::matcher::{Hole, fit};
use super::program::{PathKind, Program};
use super::shape::{PathTable, Shape, shape_of};
use crate::strings::intern::hash;

/// Most templates of one column.
pub const MAX_TEMPLATES: usize = 2048;
/// Most path columns of one column.
pub const MAX_PATHS: usize = 4096;
/// Templates of one outline that are tried before the value is read anew.
const MAX_TRIES: usize = 16;
/// Rows between two judgements whether shredding works out.
const CHECK_ROWS: usize = 4096;

/// The values of one path column and where each chunk's values begin.
#[derive(Debug)]
pub struct PathColumn {
    /// The values in row order.
    pub values: PathValues,
    /// Number of values before each chunk; one more at the end.
    pub starts: Vec<usize>,
}

/// The values of one path column.
#[derive(Debug)]
pub enum PathValues {
    /// Kinds text and aligned.
    Bytes(ByteViews),
    /// Integers and display scales.
    Numbers(Vec<i64>, Vec<i16>),
    /// Truth values.
    Flags(Bitmap),
}

impl PathValues {
    fn new(kind: PathKind) -> Self {
        match kind {
            PathKind::Text | PathKind::Aligned => Self::Bytes(ByteViews::new()),
            PathKind::Number => Self::Numbers(Vec::new(), Vec::new()),
            PathKind::Flag => Self::Flags(Bitmap::new()),
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(views) => views.len(),
            Self::Numbers(values, _) => values.len(),
            Self::Flags(bits) => bits.len(),
        }
    }
}

/// A column in pieces.
#[derive(Debug)]
pub struct Shredded {
    /// The programs, by template number.
    pub programs: Vec<Program>,
    /// A template number for each row.
    pub templates: Vec<u32>,
    /// Names and kinds of the paths.
    pub paths: Vec<(Vec<u8>, PathKind)>,
    /// Their values.
    pub columns: Vec<PathColumn>,
}

struct Shredder {
    shapes: Vec<Shape>,
    by_outline: HashMap<u64, Vec<u32>>,
    by_program: HashMap<Program, u32>,
    paths: PathTable,
    columns: Vec<PathColumn>,
    holes: Vec<(u32, Hole)>,
    whole_rows: usize,
}

/// Shreds the rows of each chunk in turn; `None` when most values do not shred.
pub fn shred(views: &ByteViews, chunks: &[Range<usize>]) -> Option<Shredded> {
    let mut shredder = Shredder {
        shapes: Vec::new(),
        by_outline: HashMap::new(),
        by_program: HashMap::new(),
        paths: PathTable::default(),
        columns: Vec::new(),
        holes: Vec::new(),
        whole_rows: 0,
    };
    // Path 0 and template 0 are for whole values.
    let whole = shredder.paths.number(b"", PathKind::Text);
    shredder.shapes.push(Shape { program: Program::whole(whole), variable: Vec::new() });
    let mut templates: Vec<u32> = Vec::with_capacity(views.len());
    let mut last = 0u32;
    for (chunk, rows) in chunks.iter().enumerate() {
        shredder.columns.iter_mut().for_each(|column| column.starts.push(column.values.len()));
        for row in rows.clone() {
            let value = views.get(row);
            last = shredder.template(value, last);
            templates.push(last);
            shredder.keep(value, chunk);
            if templates.len().is_multiple_of(CHECK_ROWS) && !shredder.works(templates.len()) {
                return None;
            }
        }
    }
    if !shredder.works(templates.len()) {
        return None;
    }
    // A template that was proposed but did not fit leaves paths without values.
    for (_, kind) in shredder.paths.paths().iter().skip(shredder.columns.len()) {
        shredder.columns.push(PathColumn { values: PathValues::new(*kind), starts: vec![0; chunks.len()] });
    }
    shredder.columns.iter_mut().for_each(|column| column.starts.push(column.values.len()));
    Some(Shredded {
        programs: shredder.shapes.into_iter().map(|shape| shape.program).collect(),
        templates,
        paths: shredder.paths.paths().to_vec(),
        columns: shredder.columns,
    })
}

impl Shredder {
    /// Whether at least three values of four found a template with holes, and templates repeat.
    fn works(&self, rows: usize) -> bool {
        self.whole_rows * 4 <= rows && self.shapes.len() * 4 <= rows + 16 && self.paths.paths().len() > 1
    }

    /// The template of a value; its holes are in `self.holes`.
    fn template(&mut self, value: &[u8], last: u32) -> u32 {
        if last != 0 && self.fits(last, value) {
            return last;
        }
        let outline = outline(value);
        let tried = self.by_outline.get(&outline).map_or(0, Vec::len).min(MAX_TRIES);
        for place in 0..tried {
            // The latest found are tried first.
            let Some(list) = self.by_outline.get_mut(&outline) else { break };
            let Some(&candidate) = list.get(place) else { break };
            if candidate != last && self.fits(candidate, value) {
                if let Some(list) = self.by_outline.get_mut(&outline) {
                    list.swap(0, place);
                }
                return candidate;
            }
        }
        if let Some(new) = self.learn(value, outline)
            && self.fits(new, value)
        {
            return new;
        }
        self.whole_rows += 1;
        self.holes.clear();
        self.holes.push((0, Hole::Bytes { start: 0, len: value.len() }));
        0
    }

    fn fits(&mut self, template: u32, value: &[u8]) -> bool {
        self.shapes.get(template as usize).is_some_and(|shape| fit(shape, value, &mut self.holes))
    }

    /// The number of the template that reading `value` proposes.
    fn learn(&mut self, value: &[u8], outline: u64) -> Option<u32> {
        let known = self.paths.paths().len();
        let shape = shape_of(value, &mut self.paths)?;
        if let Some(&number) = self.by_program.get(&shape.program) {
            return Some(number);
        }
        if self.shapes.len() >= MAX_TEMPLATES || self.paths.paths().len() > MAX_PATHS {
            self.paths.truncate(known);
            return None;
        }
        let number = u32::try_from(self.shapes.len()).ok()?;
        self.by_program.insert(shape.program.clone(), number);
        self.by_outline.entry(outline).or_default().insert(0, number);
        self.shapes.push(shape);
        Some(number)
    }

    /// Appends the holes to their columns.
    fn keep(&mut self, value: &[u8], chunk: usize) {
        for &(path, hole) in &self.holes {
            let path = path as usize;
            while self.columns.len() <= path {
                let kind = self.paths.paths().get(self.columns.len()).map_or(PathKind::Text, |path| path.1);
                let starts = vec![0; chunk + 1];
                self.columns.push(PathColumn { values: PathValues::new(kind), starts });
            }
            let Some(column) = self.columns.get_mut(path) else { continue };
            match (&mut column.values, hole) {
                (PathValues::Bytes(views), Hole::Bytes { start, len }) => {
                    views.push(value.get(start..start + len).unwrap_or(&[]));
                }
                (PathValues::Numbers(values, scales), Hole::Number { value, scale }) => {
                    values.push(value);
                    scales.push(i16::from(scale));
                }
                (PathValues::Flags(bits), Hole::Flag(bit)) => bits.push(bit),
                _ => {}
            }
        }
    }
}

/// A hash of what cheaply tells values of different templates apart: the root's header and its keys' words.
fn outline(value: &[u8]) -> u64 {
    let header = value.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let keys = if header & OBJECT == 0 { 0 } else { (header & COUNT) as usize };
    hash(value.get(..4 + 4 * keys.min(1024)).unwrap_or(value))
}
