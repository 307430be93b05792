//! Templates and paths as bytes: the shared section of a shredded column.
//!
//! FORMAT.md ("Templates") has the layout: programs, then paths with the shared sections of their child
//! columns.
//!
//! Invariant: what `parse` returns has passed `Program::check`.

use std::sync::Arc;

use vector::{Error, LogicalType, Result};

use super::program::{PathKind, Program, Step, Word};
use super::shred::{MAX_PATHS, MAX_TEMPLATES};
use crate::cursor::{Reader, Writer};
use crate::options::BlockCodecs;
use crate::shared::SharedColumn;

/// Most steps in one program.
const MAX_STEPS: usize = 1 << 14;

/// A path with what its child columns share.
#[derive(Debug)]
pub struct StoredPath {
    /// Name in components.
    pub name: Vec<u8>,
    /// What it holds.
    pub kind: PathKind,
    /// One per child column.
    pub shared: Vec<Arc<SharedColumn>>,
}

/// The shared section of a shredded column.
#[derive(Debug)]
pub struct Templates {
    /// Programs by template number.
    pub programs: Vec<Program>,
    /// Paths by number.
    pub paths: Vec<StoredPath>,
}

/// The types of a path's child columns. Byte strings are `Text`, which is never shredded again.
pub const fn children_of(kind: PathKind) -> &'static [LogicalType] {
    match kind {
        PathKind::Text | PathKind::Aligned => &[LogicalType::Text],
        PathKind::Number => &[LogicalType::Int64, LogicalType::Int16],
        PathKind::Flag => &[LogicalType::Bool],
    }
}

const KINDS: [PathKind; 4] = [PathKind::Text, PathKind::Number, PathKind::Aligned, PathKind::Flag];

const fn kind_tag(kind: PathKind) -> u8 {
    match kind {
        PathKind::Text => 0,
        PathKind::Number => 1,
        PathKind::Aligned => 2,
        PathKind::Flag => 3,
    }
}

const BEGIN: u8 = 0;
const LITERAL: u8 = 1;
const VALUE: u8 = 2;
const NOTHING: u8 = 6;
const END: u8 = 7;
const WHOLE: u8 = 8;

/// The section's payload. `shared` has the bytes of every path's child columns.
pub fn write(programs: &[Program], paths: &[(Vec<u8>, PathKind)], shared: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let mut out = Writer::new();
    out.count(programs.len());
    for program in programs {
        out.count(program.steps.len());
        program.steps.iter().for_each(|step| write_step(step, &mut out));
        out.child(&program.literals);
    }
    out.count(paths.len());
    for ((name, kind), sections) in paths.iter().zip(shared) {
        out.u8(kind_tag(*kind));
        out.child(name);
        sections.iter().for_each(|section| out.child(section));
    }
    out.into_bytes()
}

fn write_word(word: &Word, out: &mut Writer) {
    out.varint(word.container.into());
    out.varint(word.offset.into());
    out.varint(word.end_from.map_or(0, |base| u64::from(base) + 1));
}

fn write_step(step: &Step, out: &mut Writer) {
    match step {
        Step::Begin => out.u8(BEGIN),
        Step::Literal { start, len } => {
            out.u8(LITERAL);
            out.varint((*start).into());
            out.varint((*len).into());
        }
        Step::Value { path, kind, word } => {
            out.u8(VALUE + kind_tag(*kind));
            out.varint((*path).into());
            write_word(word, out);
        }
        Step::Nothing { word } => {
            out.u8(NOTHING);
            write_word(word, out);
        }
        Step::End { container, word } => {
            out.u8(END);
            out.varint((*container).into());
            write_word(word, out);
        }
        Step::Whole { path } => {
            out.u8(WHOLE);
            out.varint((*path).into());
        }
    }
}

fn number(reader: &mut Reader<'_>) -> Result<u32> {
    let value = reader.varint()?;
    u32::try_from(value).map_err(|_| Error::corrupt(format!("{value} in a template")))
}

fn read_word(reader: &mut Reader<'_>) -> Result<Word> {
    let container = number(reader)?;
    let container = u8::try_from(container).map_err(|_| Error::corrupt(format!("container {container}")))?;
    Ok(Word { container, offset: number(reader)?, end_from: number(reader)?.checked_sub(1) })
}

fn read_step(reader: &mut Reader<'_>) -> Result<Step> {
    Ok(match reader.u8()? {
        BEGIN => Step::Begin,
        LITERAL => Step::Literal { start: number(reader)?, len: number(reader)? },
        NOTHING => Step::Nothing { word: read_word(reader)? },
        END => {
            let container = number(reader)?;
            let container =
                u8::try_from(container).map_err(|_| Error::corrupt(format!("container {container}")))?;
            Step::End { container, word: read_word(reader)? }
        }
        WHOLE => Step::Whole { path: number(reader)? },
        tag => match KINDS.get(usize::from(tag.wrapping_sub(VALUE))) {
            Some(&kind) => Step::Value { path: number(reader)?, kind, word: read_word(reader)? },
            None => return Err(Error::corrupt(format!("template step {tag}"))),
        },
    })
}

/// Reads the section's payload.
pub fn parse(mut reader: Reader<'_>, codecs: &dyn BlockCodecs) -> Result<Templates> {
    let count = reader.count(MAX_TEMPLATES, "templates")?;
    let mut programs = Vec::with_capacity(count);
    for _ in 0..count {
        let steps = reader.count(MAX_STEPS.min(reader.remaining()), "template steps")?;
        let steps = (0..steps).map(|_| read_step(&mut reader)).collect::<Result<Vec<Step>>>()?;
        programs.push(Program { steps, literals: reader.child()?.rest().to_vec() });
    }
    let count = reader.count(MAX_PATHS.min(reader.remaining()), "paths")?;
    let mut paths = Vec::with_capacity(count);
    for _ in 0..count {
        let tag = reader.u8()?;
        let kind = *KINDS.get(usize::from(tag)).ok_or_else(|| Error::corrupt(format!("path kind {tag}")))?;
        let name = reader.child()?.rest().to_vec();
        let shared = children_of(kind)
            .iter()
            .map(|&logical| SharedColumn::open(logical, reader.child()?.rest(), codecs))
            .collect::<Result<Vec<_>>>()?;
        paths.push(StoredPath { name, kind, shared });
    }
    if reader.remaining() > 0 {
        return Err(Error::corrupt("bytes after the paths"));
    }
    let kinds: Vec<PathKind> = paths.iter().map(|path| path.kind).collect();
    if programs.iter().any(|program| !program.check(&kinds)) {
        return Err(Error::corrupt("template with an impossible step"));
    }
    Ok(Templates { programs, paths })
}
