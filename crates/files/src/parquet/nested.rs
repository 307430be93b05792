//! Lists, maps and structs of a Parquet file's schema.
//!
//! A file has columns of single values alone. Each entry of such a column has two levels: up to which of the
//! lists, structs and values that may be missing there is something (definition), and in which of its lists
//! it goes on (repetition). The format of both is that of Dremel (Melnik et al., VLDB 2010); which groups are
//! lists and maps, the document LogicalTypes of Parquet says, with what older writers did.

use std::ops::Range;
use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Repetition};
use parquet::file::metadata::RowGroupMetaData;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type};

use super::{columns as declared_columns, schema};
use crate::{Error, Field, FieldKind, Result};

/// Entries of all columns that are read at once, about.
const ENTRIES_AT_ONCE: u64 = 1 << 20;
/// Bytes of all columns that are read at once, about.
const BYTES_AT_ONCE: u64 = 16 << 20;

/// A column that may be read of a file.
#[derive(Debug)]
pub struct Found {
    pub field: Field,
    pub of: Of,
    /// Its first column among those of the file.
    pub first: usize,
    /// It is part of no struct.
    pub is_outermost: bool,
}

impl Found {
    /// Whether it has parts that are columns, too.
    pub fn is_struct(&self) -> bool {
        matches!(&self.of, Of::Nested(nested) if matches!(nested.root.shape, Shape::Struct(_)))
    }
}

/// What it is.
#[derive(Debug)]
pub enum Of {
    /// A column of the file, by its number.
    Leaf(usize),
    /// Several that are one value together.
    Nested(Arc<Nested>),
}

/// A list, a map or a struct.
#[derive(Debug)]
pub struct Nested {
    pub root: Node,
    /// The columns of the file that have its values, which follow each other there.
    pub leaves: Vec<Leaf>,
}

/// A column of the file.
#[derive(Debug)]
pub struct Leaf {
    /// Its number.
    pub at: usize,
    pub description: ColumnDescPtr,
    pub field: Field,
    /// What PostgreSQL calls the type of the values.
    pub declared: String,
}

/// A part of the schema.
#[derive(Debug)]
pub struct Node {
    /// Definition levels from this one on say that it is not NULL.
    pub definition: i16,
    /// How many lists it is in.
    pub repetition: i16,
    /// Positions of its columns among the leaves.
    pub leaves: Range<usize>,
    pub shape: Shape,
}

/// What a part consists of.
#[derive(Debug)]
pub enum Shape {
    Value,
    /// Parts and their names.
    Struct(Vec<(String, Node)>),
    List(Box<Node>),
    /// Keys and values.
    Map(Box<Node>, Box<Node>),
}

impl Nested {
    /// How many rows of a row group are read at once.
    pub fn rows_at_once(&self, group: &RowGroupMetaData) -> usize {
        let of_file = |number: i64| u64::try_from(number).unwrap_or(0);
        let chunks = self.leaves.iter().filter_map(|leaf| group.columns().get(leaf.at));
        let (mut entries, mut bytes) = (0u64, 0u64);
        for chunk in chunks {
            entries = entries.saturating_add(of_file(chunk.num_values()));
            bytes = bytes.saturating_add(of_file(chunk.uncompressed_size()));
        }
        let rows = of_file(group.num_rows()).max(1);
        let share = |most: u64, all: u64| u128::from(most) * u128::from(rows) / u128::from(all.max(1));
        let rows = share(ENTRIES_AT_ONCE, entries).min(share(BYTES_AT_ONCE, bytes));
        usize::try_from(rows).unwrap_or(usize::MAX).max(1)
    }
}

/// All columns of a file: single values by their names, with those of structs before theirs and dots between;
/// lists and maps as one value; behind these, structs as one value.
///
/// # Errors
/// `Malformed` for a schema that contradicts itself.
pub fn columns(schema: &SchemaDescriptor) -> Result<Vec<Found>> {
    let mut walk = Walk { schema, next: 0, found: Vec::new(), structs: Vec::new() };
    for field in schema.root_schema().get_fields() {
        walk.column(field, &[], 0)?;
    }
    walk.found.append(&mut walk.structs);
    Ok(walk.found)
}

struct Walk<'a> {
    schema: &'a SchemaDescriptor,
    /// The next column of the file.
    next: usize,
    found: Vec<Found>,
    structs: Vec<Found>,
}

impl Walk<'_> {
    fn column(&mut self, field: &Type, above: &[&str], definition: i16) -> Result<()> {
        let path: Vec<&str> = above.iter().copied().chain([field.name()]).collect();
        let name = path.join(".");
        let is_outermost = above.is_empty();
        let first = self.next;
        let is_plain = !is_repeated(field) && !is_list(field) && !is_map(field);
        if is_plain && field.is_primitive() {
            let described = self.take()?;
            let found = Found { field: schema::field(&described), of: Of::Leaf(first), first, is_outermost };
            self.found.push(found);
            return Ok(());
        }
        let mut nested = Nesting { walk: self, leaves: Vec::new() };
        let root = nested.node(field, definition, 0)?;
        let leaves = nested.leaves;
        let refused = leaves.iter().find_map(|leaf| match leaf.field.kind {
            FieldKind::Other(what) => Some(what),
            _ => None,
        });
        let kind = refused.map_or(FieldKind::Json, FieldKind::Other);
        let nested = Of::Nested(Arc::new(Nested { root, leaves }));
        let found = Found { field: Field { name, kind }, of: nested, first, is_outermost };
        if !is_plain {
            self.found.push(found);
            return Ok(());
        }
        self.structs.push(found);
        // Its parts one by one.
        self.next = first;
        let definition = definition + i16::from(is_optional(field));
        field.get_fields().iter().try_for_each(|part| self.column(part, &path, definition))
    }

    fn take(&mut self) -> Result<ColumnDescPtr> {
        let found = self.schema.columns().get(self.next).cloned();
        self.next += 1;
        found.ok_or_else(|| Error::Malformed("its schema has more columns than it has".into()))
    }
}

struct Nesting<'a, 'w> {
    walk: &'a mut Walk<'w>,
    leaves: Vec<Leaf>,
}

impl Nesting<'_, '_> {
    /// A part within `repetition` lists. Up to `definition`, levels say that what it is in is missing.
    fn node(&mut self, field: &Type, definition: i16, repetition: i16) -> Result<Node> {
        let first = self.leaves.len();
        // A field that comes any number of times without a group around is a list that is never NULL.
        if is_repeated(field) {
            let element = self.present(field, definition + 1, repetition + 1)?;
            let leaves = first..self.leaves.len();
            return Ok(Node { definition, repetition, leaves, shape: Shape::List(Box::new(element)) });
        }
        self.present(field, definition + i16::from(is_optional(field)), repetition)
    }

    /// A part that is there from level `definition` on.
    fn present(&mut self, field: &Type, definition: i16, repetition: i16) -> Result<Node> {
        let first = self.leaves.len();
        let shape = if field.is_primitive() {
            let description = self.walk.take()?;
            let kind = schema::of_values(&description);
            let field = Field { name: description.path().string(), kind };
            let declared = declared_columns(std::slice::from_ref(&field)).ok();
            let declared =
                declared.and_then(|all| Some(all.into_iter().next()?.declared)).unwrap_or_default();
            self.leaves.push(Leaf { at: self.walk.next - 1, description, field, declared });
            Shape::Value
        } else if let Some((key, value)) = map_of(field) {
            let mut part = |part: &Type| self.node(part, definition + 1, repetition + 1).map(Box::new);
            Shape::Map(part(key)?, part(value)?)
        } else if let Some(repeated) = list_of(field) {
            let element = match element_of(repeated, field.name()) {
                Some(element) => self.node(element, definition + 1, repetition + 1)?,
                None => self.present(repeated, definition + 1, repetition + 1)?,
            };
            Shape::List(Box::new(element))
        } else {
            let part =
                |part: &Arc<Type>| Ok((part.name().to_owned(), self.node(part, definition, repetition)?));
            Shape::Struct(field.get_fields().iter().map(part).collect::<Result<_>>()?)
        };
        let leaves = first..self.leaves.len();
        match leaves.is_empty() {
            true => Err(Error::Unsupported(format!("\"{}\" has no columns", field.name()))),
            false => Ok(Node { definition, repetition, leaves, shape }),
        }
    }
}

fn repetition_of(field: &Type) -> Option<Repetition> {
    let info = field.get_basic_info();
    info.has_repetition().then(|| info.repetition())
}

fn is_repeated(field: &Type) -> bool {
    repetition_of(field) == Some(Repetition::REPEATED)
}

fn is_optional(field: &Type) -> bool {
    repetition_of(field) == Some(Repetition::OPTIONAL)
}

fn is_list(field: &Type) -> bool {
    list_of(field).is_some()
}

fn is_map(field: &Type) -> bool {
    map_of(field).is_some()
}

/// The one part of a group that says that it is one of these, if that comes any number of times.
fn repeated_of(field: &Type, is_such: impl Fn(Option<&LogicalType>, ConvertedType) -> bool) -> Option<&Type> {
    let info = field.get_basic_info();
    if field.is_primitive() || !is_such(info.logical_type_ref(), info.converted_type()) {
        return None;
    }
    match field.get_fields() {
        [only] if is_repeated(only) => Some(only),
        _ => None,
    }
}

fn list_of(field: &Type) -> Option<&Type> {
    let is_such = |logical: Option<&LogicalType>, converted| {
        matches!(logical, Some(LogicalType::List)) || converted == ConvertedType::LIST
    };
    // A map without values is a list of its keys.
    repeated_of(field, is_such)
        .or_else(|| repeated_of(field, is_map_type).filter(|_| map_of(field).is_none()))
}

fn is_map_type(logical: Option<&LogicalType>, converted: ConvertedType) -> bool {
    matches!(logical, Some(LogicalType::Map))
        || matches!(converted, ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE)
}

fn map_of(field: &Type) -> Option<(&Type, &Type)> {
    let entry = repeated_of(field, is_map_type).filter(|entry| !entry.is_primitive())?;
    match entry.get_fields() {
        [key, value] if key.is_primitive() && !is_repeated(key) => Some((key, value)),
        _ => None,
    }
}

/// The element of a list, where the repeated group is not the element itself.
fn element_of<'a>(repeated: &'a Type, list: &str) -> Option<&'a Type> {
    if repeated.is_primitive() {
        return None;
    }
    match repeated.get_fields() {
        [only] if repeated.name() != "array" && repeated.name() != format!("{list}_tuple") => Some(only),
        _ => None,
    }
}
