//! Reading shredded columns: template numbers, path columns, rows put together again.
//!
//! The payload, in this order:
//! 1. the bytes of all rows (varint);
//! 2. an integer node of the template numbers, with its length before it;
//! 3. for every path in order, the values nodes of its child columns, each with its length before it. A path
//!    of which no row of the chunk takes a value has none.
//!
//! The number of values in a path column follows from the template numbers, so it is not stored.
//!
//! A reader that takes single rows out of a chunk does so again and again. So facts that follow from all
//! template numbers are computed once and kept in the node.
//!
//! Invariant: child nodes lie one after the other behind their lengths, so one path can be read without the
//! others.

use std::cell::OnceCell;
use std::sync::Arc;

use vector::{Bitmap, ByteViews, Error, LogicalType, Result, Values, Vector};

use super::fill::{Lane, Slots, fill};
use super::numbered::{Numbered, counts, places, uses_of, values_before};
use super::one::{self, OpenPath};
use super::paths::PathColumn;
use super::program::{PathKind, Program};
use super::stored::{self, StoredPath, Templates};
use crate::cursor::Reader;
use crate::encoding::{Node, NodeContext};
use crate::integers::IntNode;
use crate::options::{Codec, EncodingId};
use crate::registry::{OpenNode, open_values};
use crate::shared::SharedColumn;
use crate::single::Single;
use crate::strings::hex::only_bytes;
use crate::strings::profile;

/// A dictionary is laid out in slots if it has at most this many entries per value.
const SLOT_ENTRIES: usize = 2;

/// Opens a node of templates.
pub(crate) fn open<'a>(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<TemplateNode<'a>> {
    only_bytes(EncodingId::Template, context)?;
    let total = reader.count(profile::MAX_CHUNK_BYTES, "bytes of templates")?;
    let templates = IntNode::open(&mut reader.child()?, context.rows, context.deeper()?)?;
    let known = OnceCell::new();
    Ok(TemplateNode { context: *context, total, templates, children: reader.clone(), known })
}

/// The reading side.
pub(crate) struct TemplateNode<'a> {
    context: NodeContext<'a>,
    total: usize,
    templates: IntNode<'a>,
    children: Reader<'a>,
    known: OnceCell<Numbered>,
}

/// The values of one path.
enum PathVector {
    None,
    Bytes(Values),
    Numbers(Vec<i64>, Vec<i16>),
    Flags(Values),
}

/// Which values of a path are wanted.
enum Wanted<'w> {
    All(usize),
    At(usize, &'w [u32]),
}

impl TemplateNode<'_> {
    fn shared(&self) -> Result<Arc<Templates>> {
        let codecs = self.context.codecs;
        self.context.shared.parsed(EncodingId::Template, |reader| stored::parse(reader, codecs))
    }

    /// Template numbers of all rows, each below the number of programs.
    fn numbers(&self, shared: &Templates) -> Result<Vec<u32>> {
        let mut numbers: Vec<u32> = Vec::new();
        self.templates.decode_into(&mut numbers)?;
        let mut least = 0u64;
        for &number in &numbers {
            match shared.programs.get(number as usize) {
                Some(program) => least += program.literals.len() as u64,
                None => return Err(missing(number, shared)),
            }
        }
        self.expect_room(least)?;
        Ok(numbers)
    }

    /// `Corrupt` if literals of so many bytes do not fit the rows. Every row has its template's literals, and
    /// no template has more values than words in them. So what follows from the template numbers is bounded
    /// by the chunk's own size.
    fn expect_room(&self, least: u64) -> Result<()> {
        match least <= self.total as u64 {
            true => Ok(()),
            false => Err(Error::corrupt(format!("templates of {least} bytes in rows of {}", self.total))),
        }
    }

    /// The values of every path, of which `wanted` says which are needed.
    fn vectors<'w>(
        &self,
        shared: &Templates,
        wanted: impl Fn(usize) -> Wanted<'w>,
    ) -> Result<Vec<PathVector>> {
        let mut children = self.children.clone();
        let mut vectors = Vec::with_capacity(shared.paths.len());
        for (number, path) in shared.paths.iter().enumerate() {
            vectors.push(self.vector(path, &wanted(number), &mut children)?);
        }
        if children.remaining() > 0 {
            return Err(Error::corrupt("bytes after the path columns"));
        }
        Ok(vectors)
    }

    /// Opens a child column of `rows` values.
    fn open_child<'n>(
        &self,
        child: &mut Reader<'n>,
        logical: LogicalType,
        rows: usize,
        shared: &'n Arc<SharedColumn>,
    ) -> Result<OpenNode<'n>>
    where
        Self: 'n,
    {
        // A path column is a column: its tree may be as deep as any, but templates do not nest.
        if child.clone().u8()? == EncodingId::Template.tag() {
            return Err(Error::corrupt("template in a template"));
        }
        open_values(child, &NodeContext { logical, rows, shared, ..self.context })
    }

    /// The wanted values of a path's child columns; none when none are wanted.
    fn columns(
        &self,
        path: &StoredPath,
        wanted: &Wanted<'_>,
        children: &mut Reader<'_>,
    ) -> Result<Vec<Vector>> {
        let mut values = Vec::with_capacity(2);
        for (&logical, shared) in stored::children_of(path.kind).iter().zip(&path.shared) {
            let mut child = children.child()?;
            let (rows, at) = match *wanted {
                Wanted::All(rows) => (rows, None),
                Wanted::At(rows, at) => (rows, Some(at)),
            };
            if rows == 0 || at.is_some_and(<[u32]>::is_empty) {
                continue;
            }
            let node = self.open_child(&mut child, logical, rows, shared)?;
            let wide = match at {
                None => node.decode()?,
                Some(at) => node.take(at)?,
            };
            let vector = Vector::new(logical, wide);
            if vector.len() != at.map_or(rows, <[u32]>::len) {
                return Err(Error::corrupt(format!("{} values of a path with {rows}", vector.len())));
            }
            values.push(vector);
        }
        Ok(values)
    }

    fn vector(
        &self,
        path: &StoredPath,
        wanted: &Wanted<'_>,
        children: &mut Reader<'_>,
    ) -> Result<PathVector> {
        let mut values = self.columns(path, wanted, children)?.into_iter();
        Ok(match (path.kind, values.next(), values.next()) {
            (_, None, _) => PathVector::None,
            (PathKind::Text | PathKind::Aligned, Some(vector), _) => {
                PathVector::Bytes(match &vector.values {
                    Values::Dictionary { codes, dictionary }
                        if dictionary.entries.len() > codes.len() * SLOT_ENTRIES =>
                    {
                        vector.flatten().values
                    }
                    Values::Runs { .. } => vector.flatten().values,
                    _ => vector.values,
                })
            }
            (PathKind::Number, Some(numbers), Some(scales)) => {
                let scales = match scales.values {
                    Values::Constant(one, _) => one.values,
                    _ => scales.flatten().values,
                };
                match (numbers.flatten().values, scales) {
                    (Values::Int64(numbers), Values::Int16(scales)) => PathVector::Numbers(numbers, scales),
                    _ => return Err(Error::corrupt("numbers of another type")),
                }
            }
            (PathKind::Flag, Some(vector), _) => PathVector::Flags(match vector.values {
                Values::Runs { .. } | Values::Dictionary { .. } => vector.flatten().values,
                values => values,
            }),
            (PathKind::Number, Some(_), None) => return Err(Error::corrupt("numbers without scales")),
        })
    }

    /// What follows from all template numbers.
    fn known(&self, shared: &Templates) -> Result<&Numbered> {
        match self.known.get() {
            Some(known) => Ok(known),
            None => {
                let numbers = self.numbers(shared)?;
                Ok(self.known.get_or_init(|| Numbered::of(shared, numbers)))
            }
        }
    }

    /// The template with this number, if all rows of the chunk have it.
    fn only_program<'p>(&self, shared: &'p Templates, number: i64) -> Result<(u32, &'p Program)> {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let program = shared.programs.get(number as usize).ok_or_else(|| missing(number, shared))?;
        self.expect_room(program.literals.len() as u64 * self.context.rows as u64)?;
        Ok((number, program))
    }

    /// The paths that a row takes values of, opened, by number. `uses` says how many it takes of each, and
    /// `place` how many values the path has and which one comes next.
    fn open_paths<'n>(
        &'n self,
        shared: &'n Templates,
        uses: &[u32],
        place: impl Fn(usize) -> (usize, usize),
    ) -> Result<Vec<Option<OpenPath<'n>>>> {
        let mut children = self.children.clone();
        let mut paths = Vec::with_capacity(uses.len());
        let last = uses.iter().rposition(|&uses| uses > 0).map_or(0, |last| last + 1);
        for ((number, path), &uses) in shared.paths.iter().enumerate().zip(uses).take(last) {
            let (rows, next) = place(number);
            let mut nodes = Vec::with_capacity(2);
            for (&logical, shared) in stored::children_of(path.kind).iter().zip(&path.shared) {
                let mut child = children.child()?;
                if uses > 0 {
                    nodes.push(self.open_child(&mut child, logical, rows, shared)?);
                }
            }
            paths.push((uses > 0).then_some(OpenPath { kind: path.kind, nodes, rows, next }));
        }
        Ok(paths)
    }

    /// These rows (ascending, each once).
    fn take_numbered(&self, shared: &Templates, rows: &[u32]) -> Result<ByteViews> {
        let known = self.known(shared)?;
        let places = places(shared, known, rows);
        let vectors = self.vectors(shared, |path| {
            let places = places.get(path).map_or(&[][..], Vec::as_slice);
            Wanted::At(known.counts.get(path).copied().unwrap_or(0), places)
        })?;
        let taken: Vec<u32> =
            rows.iter().map(|&row| known.numbers.get(row as usize).copied().unwrap_or(0)).collect();
        self.rows(shared, &taken, &vectors, None)
    }

    /// As `take_numbered`, where all rows of the chunk have this template. Then it is known where the values
    /// of a row lie.
    fn take_alike(&self, shared: &Templates, number: i64, rows: &[u32]) -> Result<ByteViews> {
        let (number, program) = self.only_program(shared, number)?;
        let (all, uses) = (self.context.rows, uses_of(shared, program));
        let places: Vec<Vec<u32>> = uses
            .iter()
            .map(|&uses| rows.iter().flat_map(|&row| (0..uses).map(move |at| row * uses + at)).collect())
            .collect();
        let vectors = self.vectors(shared, |path| {
            let uses = uses.get(path).map_or(0, |&uses| uses as usize);
            Wanted::At(uses * all, places.get(path).map_or(&[][..], Vec::as_slice))
        })?;
        self.rows(shared, &vec![number; rows.len()], &vectors, None)
    }

    fn rows(
        &self,
        shared: &Templates,
        numbers: &[u32],
        vectors: &[PathVector],
        total: Option<usize>,
    ) -> Result<ByteViews> {
        let mut lanes = Vec::with_capacity(vectors.len());
        for vector in vectors {
            lanes.push(lane(vector)?);
        }
        fill(&shared.programs, numbers, &lanes, total)
    }
}

fn missing(number: u32, shared: &Templates) -> Error {
    Error::corrupt(format!("template {number} of {}", shared.programs.len()))
}

fn lane(vector: &PathVector) -> Result<Lane<'_>> {
    let wrong = || Error::corrupt("path column of another type");
    let bytes =
        |vector: &'_ Vector| -> Option<()> { matches!(vector.values, Values::Bytes(_)).then_some(()) };
    Ok(match vector {
        PathVector::None => Lane::Empty,
        PathVector::Bytes(Values::Bytes(views)) => Lane::Views(views),
        PathVector::Bytes(Values::Constant(one, _)) => match &one.values {
            Values::Bytes(views) => Lane::Same(Slots::new(views)),
            _ => return Err(wrong()),
        },
        PathVector::Bytes(Values::Dictionary { codes, dictionary }) => {
            bytes(&dictionary.entries).ok_or_else(wrong)?;
            match &dictionary.entries.values {
                Values::Bytes(views) => Lane::Codes(codes, Slots::new(views)),
                _ => return Err(wrong()),
            }
        }
        PathVector::Numbers(numbers, scales) => Lane::Numbers(numbers, scales),
        PathVector::Flags(Values::Bool(bits)) => Lane::Flags(bits),
        PathVector::Flags(Values::Constant(one, _)) => match &one.values {
            Values::Bool(bits) => Lane::SameFlag(Bitmap::get(bits, 0)),
            _ => return Err(wrong()),
        },
        PathVector::Bytes(_) | PathVector::Flags(_) => return Err(wrong()),
    })
}

impl Node for TemplateNode<'_> {
    fn path(&self, path: usize) -> Result<Option<PathColumn>> {
        let shared = self.shared()?;
        let wanted = shared
            .paths
            .get(path)
            .ok_or_else(|| Error::InvalidInput(format!("path {path} of {}", shared.paths.len())))?;
        let numbers = self.numbers(&shared)?;
        // How many values each template takes of the path.
        let uses: Vec<usize> = shared
            .programs
            .iter()
            .map(|program| program.paths().filter(|&used| used as usize == path).count())
            .collect();
        let mut rows = Vec::new();
        for (row, &number) in (0u32..).zip(&numbers) {
            let count = uses.get(number as usize).copied().unwrap_or(0);
            rows.extend(std::iter::repeat_n(row, count));
        }
        let mut children = self.children.clone();
        for before in shared.paths.iter().take(path) {
            for _ in stored::children_of(before.kind) {
                children.child()?;
            }
        }
        let columns = self.columns(wanted, &Wanted::All(rows.len()), &mut children)?;
        Ok(Some(PathColumn { rows, columns }))
    }

    fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::Template.name());
        if let Ok(shared) = self.shared() {
            out.push_str(&format!(" ({} templates, {} paths)", shared.programs.len(), shared.paths.len()));
        }
    }

    fn codecs(&self, out: &mut Vec<Codec>) -> Result<()> {
        let shared = self.shared()?;
        let counts = counts(&shared, &self.numbers(&shared)?);
        let mut children = self.children.clone();
        for (path, rows) in shared.paths.iter().zip(counts) {
            for (&logical, shared) in stored::children_of(path.kind).iter().zip(&path.shared) {
                let mut child = children.child()?;
                if rows > 0 {
                    self.open_child(&mut child, logical, rows, shared)?.codecs(out)?;
                }
            }
        }
        Ok(())
    }

    fn decode(&self) -> Result<Values> {
        let shared = self.shared()?;
        let numbers = self.numbers(&shared)?;
        let counts = counts(&shared, &numbers);
        let vectors = self.vectors(&shared, |path| Wanted::All(counts.get(path).copied().unwrap_or(0)))?;
        self.rows(&shared, &numbers, &vectors, Some(self.total)).map(Values::Bytes)
    }

    fn take(&self, rows: &[u32]) -> Result<Values> {
        let shared = self.shared()?;
        // Rows may be asked for twice: build each once.
        let mut unique = rows.to_vec();
        unique.dedup();
        let views = match self.templates.constant() {
            Some(number) => self.take_alike(&shared, number, &unique)?,
            None => self.take_numbered(&shared, &unique)?,
        };
        if unique.len() == rows.len() {
            return Ok(Values::Bytes(views));
        }
        let positions: Vec<u32> = rows
            .iter()
            .map(|row| u32::try_from(unique.partition_point(|one| one < row)).unwrap_or(u32::MAX))
            .collect();
        Ok(Values::Bytes(views.take(&positions)))
    }

    fn single<'s>(&'s self, row: usize, room: &'s mut Vec<u8>) -> Result<Option<Single<'s>>> {
        let shared = self.shared()?;
        match self.templates.constant() {
            Some(number) => {
                let (_, program) = self.only_program(&shared, number)?;
                let uses = uses_of(&shared, program);
                let all = self.context.rows;
                let paths = self.open_paths(&shared, &uses, |path| {
                    let uses = uses.get(path).map_or(0, |&uses| uses as usize);
                    (uses * all, uses * row)
                })?;
                one::build(program, paths, self.total, room)?;
            }
            None => {
                let known = self.known(&shared)?;
                let number = known.numbers.get(row).copied().unwrap_or(u32::MAX);
                let program = shared.programs.get(number as usize).ok_or_else(|| missing(number, &shared))?;
                let before = values_before(&shared, known, row);
                let paths = self.open_paths(&shared, &uses_of(&shared, program), |path| {
                    let count = known.counts.get(path).copied().unwrap_or(0);
                    (count, before.get(path).copied().unwrap_or(count))
                })?;
                one::build(program, paths, self.total, room)?;
            }
        }
        Ok(Some(Single::Bytes(room)))
    }
}
