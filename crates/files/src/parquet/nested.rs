//! Lists, maps and structs of a Parquet file's schema.
//!
//! A file has columns of single values alone. Each entry of such a column has two levels: up to which of the
//! lists, structs and values that may be missing there is something (definition), and in which of its lists
//! it goes on (repetition). The format of both is that of Dremel (Melnik et al., VLDB 2010); which groups are
//! lists and maps, the document LogicalTypes of Parquet says, with what older writers did.

use std::ops::Range;
use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type};
use parquet::file::metadata::RowGroupMetaData;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type as SchemaType};

use super::{columns as declared_columns, schema};
use crate::{Error, Field, FieldKind, Result};

/// Entries of all columns that are read at once, about.
const ENTRIES_AT_ONCE: u64 = 1 << 20;
/// Bytes of all columns that are read at once, about.
const BYTES_AT_ONCE: u64 = 16 << 20;

/// Bytes that a text of a dictionary takes at least, where the file does not say how long all are.
const TEXT: u64 = 32;

/// A column that may be read of a file.
#[derive(Debug)]
pub struct Found {
    pub field: Field,
    pub nested: Nested,
    /// It is part of no struct.
    pub is_outermost: bool,
}

/// A value that one or more columns of the file have together.
#[derive(Debug, Clone)]
pub struct Nested {
    pub root: Arc<Node>,
    /// All columns of the file.
    leaves: Arc<[Leaf]>,
}

/// A column of the file.
#[derive(Debug)]
pub struct Leaf {
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
    /// The numbers of its columns in the file, which follow each other. There is one at least.
    pub leaves: Range<usize>,
    pub shape: Shape,
}

/// What a part consists of.
#[derive(Debug)]
pub enum Shape {
    Value,
    /// Parts and their names.
    Struct(Vec<(String, Arc<Node>)>),
    List(Arc<Node>),
    /// Keys and values.
    Map(Arc<Node>, Arc<Node>),
}

impl Found {
    /// The number of the column in the file, if it is one of single values.
    pub fn column(&self) -> Option<usize> {
        matches!(self.nested.root.shape, Shape::Value).then_some(self.nested.root.leaves.start)
    }

    /// Whether it has parts that are columns, too.
    pub fn is_struct(&self) -> bool {
        matches!(self.nested.root.shape, Shape::Struct(_))
    }
}

impl Nested {
    /// Its columns.
    pub fn leaves(&self) -> &[Leaf] {
        self.leaves.get(self.root.leaves.clone()).unwrap_or_default()
    }

    /// How many rows of a row group are read at once.
    pub fn rows_at_once(&self, group: &RowGroupMetaData) -> usize {
        let of_file = |number: i64| u64::try_from(number).unwrap_or(0);
        let chunks = group.columns().get(self.root.leaves.clone()).unwrap_or_default();
        let (mut entries, mut bytes) = (0u64, 0u64);
        for chunk in chunks {
            let of_chunk = of_file(chunk.num_values());
            let texts = match (chunk.column_type(), chunk.unencoded_byte_array_data_bytes()) {
                (Type::BYTE_ARRAY, Some(known)) => of_file(known),
                (Type::BYTE_ARRAY, None) => of_chunk.saturating_mul(TEXT),
                _ => 0,
            };
            entries = entries.saturating_add(of_chunk);
            bytes = bytes.saturating_add(of_file(chunk.uncompressed_size()).max(texts));
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
    let mut tree = Tree { columns: schema.columns(), next: 0 };
    let fields = schema.root_schema().get_fields().iter();
    let parts = fields.map(|field| Ok((field, tree.node(field, 0, 0)?))).collect::<Result<Vec<_>>>()?;
    let leaf = |description: &ColumnDescPtr| {
        let kind = schema::of_values(description);
        let field = Field { name: description.path().string(), kind };
        let declared = declared_columns(std::slice::from_ref(&field)).ok();
        let declared = declared.and_then(|all| Some(all.into_iter().next()?.declared)).unwrap_or_default();
        Leaf { description: description.clone(), field, declared }
    };
    let mut list =
        List { leaves: schema.columns().iter().map(leaf).collect(), found: Vec::new(), structs: Vec::new() };
    for (field, node) in parts {
        if let Some(node) = node {
            list.add(field.name(), &node, true);
        }
    }
    list.found.append(&mut list.structs);
    Ok(list.found)
}

/// Makes the list of columns.
struct List {
    leaves: Arc<[Leaf]>,
    found: Vec<Found>,
    structs: Vec<Found>,
}

impl List {
    fn add(&mut self, name: &str, node: &Arc<Node>, is_outermost: bool) {
        let nested = Nested { root: Arc::clone(node), leaves: Arc::clone(&self.leaves) };
        let refused = nested.leaves().iter().find_map(|leaf| match leaf.field.kind {
            FieldKind::Other(what) => Some(FieldKind::Other(what)),
            _ => None,
        });
        let kind = match (&node.shape, nested.leaves()) {
            (Shape::Value, [leaf]) => leaf.field.kind,
            _ => refused.unwrap_or(FieldKind::Json),
        };
        let found = Found { field: Field { name: name.to_owned(), kind }, nested, is_outermost };
        let Shape::Struct(parts) = &node.shape else { return self.found.push(found) };
        self.structs.push(found);
        parts.iter().for_each(|(part, node)| self.add(&format!("{name}.{part}"), node, false));
    }
}

/// Makes the tree of a schema.
struct Tree<'a> {
    columns: &'a [ColumnDescPtr],
    /// The next column of the file.
    next: usize,
}

impl Tree<'_> {
    /// A part within `repetition` lists. Up to `definition`, levels say that what it is in is missing. None:
    /// it has no columns.
    fn node(&mut self, field: &SchemaType, definition: i16, repetition: i16) -> Result<Option<Arc<Node>>> {
        let first = self.next;
        // A field that comes any number of times without a group around is a list that is never NULL.
        if is_repeated(field) {
            let Some(element) = self.present(field, definition + 1, repetition + 1)? else { return Ok(None) };
            let (leaves, shape) = (first..self.next, Shape::List(element));
            return Ok(Some(Arc::new(Node { definition, repetition, leaves, shape })));
        }
        self.present(field, definition + i16::from(is_optional(field)), repetition)
    }

    /// A part that is there from level `definition` on. None: it has no columns.
    fn present(&mut self, field: &SchemaType, definition: i16, repetition: i16) -> Result<Option<Arc<Node>>> {
        let first = self.next;
        let (inner, within) = (definition + 1, repetition + 1);
        let shape = if field.is_primitive() {
            self.next += 1;
            if self.next > self.columns.len() {
                return Err(Error::Malformed("its schema has more columns than it has".into()));
            }
            Some(Shape::Value)
        } else if let Some((key, value)) = map_of(field) {
            let (key, value) = (self.node(key, inner, within)?, self.node(value, inner, within)?);
            key.zip(value).map(|(key, value)| Shape::Map(key, value))
        } else if let Some(repeated) = list_of(field) {
            let element = match element_of(repeated, field.name()) {
                Some(element) => self.node(element, inner, within)?,
                None => self.present(repeated, inner, within)?,
            };
            element.map(Shape::List)
        } else {
            let mut parts = Vec::new();
            for part in field.get_fields() {
                let node = self.node(part, definition, repetition)?;
                parts.extend(node.map(|node| (part.name().to_owned(), node)));
            }
            (!parts.is_empty()).then_some(Shape::Struct(parts))
        };
        let node = |shape| Arc::new(Node { definition, repetition, leaves: first..self.next, shape });
        Ok(shape.map(node))
    }
}

fn repetition_of(field: &SchemaType) -> Option<Repetition> {
    let info = field.get_basic_info();
    info.has_repetition().then(|| info.repetition())
}

fn is_repeated(field: &SchemaType) -> bool {
    repetition_of(field) == Some(Repetition::REPEATED)
}

fn is_optional(field: &SchemaType) -> bool {
    repetition_of(field) == Some(Repetition::OPTIONAL)
}

/// The one part of a group that says that it is one of these, if that comes any number of times.
fn repeated_of(
    field: &SchemaType,
    is_such: impl Fn(Option<&LogicalType>, ConvertedType) -> bool,
) -> Option<&SchemaType> {
    let info = field.get_basic_info();
    if field.is_primitive() || !is_such(info.logical_type_ref(), info.converted_type()) {
        return None;
    }
    match field.get_fields() {
        [only] if is_repeated(only) => Some(only),
        _ => None,
    }
}

fn list_of(field: &SchemaType) -> Option<&SchemaType> {
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

fn map_of(field: &SchemaType) -> Option<(&SchemaType, &SchemaType)> {
    let entry = repeated_of(field, is_map_type).filter(|entry| !entry.is_primitive())?;
    match entry.get_fields() {
        [key, value] if key.is_primitive() && !is_repeated(key) => Some((key, value)),
        _ => None,
    }
}

/// The element of a list. None: the repeated group is the element itself.
fn element_of<'a>(repeated: &'a SchemaType, list: &str) -> Option<&'a SchemaType> {
    if repeated.is_primitive() {
        return None;
    }
    match repeated.get_fields() {
        [only] if is_repeated(only) => None,
        [only] if repeated.name() != "array" && repeated.name() != format!("{list}_tuple") => Some(only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;

    use super::{Node, Shape, columns};

    fn shape(node: &Node) -> String {
        let levels = format!("{}/{}", node.definition, node.repetition);
        match &node.shape {
            Shape::Value => levels,
            Shape::List(element) => format!("{levels}[{}]", shape(element)),
            Shape::Map(key, value) => format!("{levels}<{}: {}>", shape(key), shape(value)),
            Shape::Struct(parts) => {
                let parts = parts.iter().map(|(name, part)| format!("{name} {}", shape(part)));
                format!("{levels}({})", parts.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// The columns of a schema, with the levels of each part: definition and repetition.
    fn found(fields: &str) -> String {
        let schema = parse_message_type(&format!("message m {{ {fields} }}")).unwrap();
        let found = columns(&SchemaDescriptor::new(Arc::new(schema))).unwrap();
        let shown = found.iter().map(|found| format!("{} {}", found.field.name, shape(&found.nested.root)));
        shown.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn structs_are_one_value_and_their_parts_are_columns() {
        assert_eq!(
            found(
                "required int32 a; optional group s { required int32 b; optional group t { optional int32 c; } }"
            ),
            "a 0/0; s.b 1/0; s.t.c 3/0; s 1/0(b 1/0, t 2/0(c 3/0)); s.t 2/0(c 3/0)"
        );
        assert_eq!(found("required int32 a; optional group s { }"), "a 0/0");
    }

    #[test]
    fn lists_are_known_by_every_layout() {
        for (fields, expected) in [
            ("optional group x (LIST) { repeated group list { optional int32 element; } }", "x 1/0[3/1]"),
            ("required group x (LIST) { repeated group list { required int32 element; } }", "x 0/0[1/1]"),
            ("repeated int32 x;", "x 0/0[1/1]"),
            ("repeated group x { optional int32 y; }", "x 0/0[1/1(y 2/1)]"),
            ("optional group x (LIST) { repeated int32 element; }", "x 1/0[2/1]"),
            (
                "optional group x (LIST) { repeated group element { required int32 y; required int32 z; } }",
                "x 1/0[2/1(y 2/1, z 2/1)]",
            ),
            ("optional group x (LIST) { repeated group array { required int32 y; } }", "x 1/0[2/1(y 2/1)]"),
            ("optional group x (LIST) { repeated group x_tuple { required int32 y; } }", "x 1/0[2/1(y 2/1)]"),
            // A group whose only part is repeated is the element itself.
            (
                "optional group x (LIST) { repeated group element { repeated int32 y; } }",
                "x 1/0[2/1(y 2/1[3/2])]",
            ),
            (
                "optional group x (LIST) { repeated group element (LIST) { repeated group list { optional int32 element; } } }",
                "x 1/0[2/1[4/2]]",
            ),
        ] {
            assert_eq!(found(fields), expected, "{fields}");
        }
    }

    #[test]
    fn maps_without_values_are_lists_of_keys() {
        let key = "required binary key (UTF8);";
        let map = |value: &str| {
            format!("optional group x (MAP) {{ repeated group key_value {{ {key} {value} }} }}")
        };
        assert_eq!(found(&map("optional int32 value;")), "x 1/0<2/1: 3/1>");
        assert_eq!(found(&map("")), "x 1/0[2/1]");
    }
}
