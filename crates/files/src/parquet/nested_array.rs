//! Lists of single values as the server's arrays.
//!
//! The elements are of types of the server's own, whose numbers and widths never change. So arrays are made
//! in threads, without a call into the server.

use server_bytes::array::{Builder, ElementType};
use server_bytes::numeric;
use vector::{LogicalType, Values, Vector, VectorBuilder};

use super::columns::read_as;
use super::nested::{Nested, Node, Shape};
use super::records::{Entries, contradiction, too_much};
use crate::column::Column;
use crate::{Error, FieldKind, Result, json};

/// Types that elements may have: name, what vectors of them mean, number in `pg_type`, bytes (0: a length
/// word), border.
const TYPES: [(&str, LogicalType, u32, usize, usize); 17] = [
    ("boolean", LogicalType::Bool, 16, 1, 1),
    ("bytea", LogicalType::Bytes, 17, 0, 4),
    ("bigint", LogicalType::Int64, 20, 8, 8),
    ("smallint", LogicalType::Int16, 21, 2, 2),
    ("integer", LogicalType::Int32, 23, 4, 4),
    ("text", LogicalType::Text, 25, 0, 4),
    ("json", LogicalType::Bytes, 114, 0, 4),
    ("real", LogicalType::Float32, 700, 4, 4),
    ("double precision", LogicalType::Float64, 701, 8, 8),
    ("character varying", LogicalType::Text, 1043, 0, 4),
    ("date", LogicalType::Date, 1082, 4, 4),
    ("time without time zone", LogicalType::Int64, 1083, 8, 8),
    ("timestamp without time zone", LogicalType::Timestamp, 1114, 8, 8),
    ("timestamp with time zone", LogicalType::Timestamp, 1184, 8, 8),
    ("numeric", LogicalType::Numeric, 1700, 0, 4),
    ("uuid", LogicalType::Uuid, 2950, 16, 1),
    ("jsonb", LogicalType::Bytes, 3802, 0, 4),
];

/// The array that a list becomes.
#[derive(Debug, Clone, Copy)]
pub struct Array {
    element: ElementType,
    /// What elements become.
    kind: FieldKind,
}

impl Array {
    /// The array that a column of a table has of lists. None: it is none.
    ///
    /// # Errors
    /// `Unsupported` where its elements do not hold those of the lists.
    pub fn of(nested: &Nested, column: &Column) -> Result<Option<Self>> {
        let Some(declared) = column.declared.strip_suffix("[]") else { return Ok(None) };
        let name = if declared.starts_with("numeric(") { "numeric" } else { declared };
        let found = TYPES.iter().find(|(known, ..)| *known == name);
        let (Some(&(_, logical, oid, width, align)), Some(leaf)) = (found, element_of(nested)) else {
            return Ok(None);
        };
        let of_element = Column { declared: declared.into(), logical, ..column.clone() };
        let kind = read_as(&leaf.field, &of_element)?;
        let width = (width > 0).then_some(width);
        Ok(Some(Self { element: ElementType { oid, width, align }, kind }))
    }
}

/// The column of a list of single values.
fn element_of(nested: &Nested) -> Option<&super::nested::Leaf> {
    match (&nested.root.shape, nested.leaves()) {
        (Shape::List(element), [leaf]) if matches!(element.shape, Shape::Value) => Some(leaf),
        _ => None,
    }
}

/// Appends the arrays of so many rows, all that the entries have, of `most` bytes. Returns their bytes.
///
/// # Errors
/// `Malformed` where levels contradict each other, `Unsupported` for too much.
pub fn append(
    nested: &Nested,
    array: &Array,
    mut entries: Entries,
    rows: usize,
    most: usize,
    out: &mut VectorBuilder,
) -> Result<usize> {
    let list: &Node = &nested.root;
    let Shape::List(element) = &list.shape else { return Err(contradiction()) };
    let documents = match (array.kind, &entries.values.values) {
        (FieldKind::Jsonb, Values::Bytes(all)) => Some(json::to_jsonb(all.iter().map(Some), "of a list")?),
        _ => None,
    };
    if let (FieldKind::Json, Values::Bytes(all)) = (array.kind, &entries.values.values) {
        // What the file says to be text is to be JSON.
        all.iter().try_for_each(|value| json::check(value, "of a list"))?;
    }
    let mut builder = Builder::new(array.element);
    let (mut made, mut value, mut all) = (Vec::new(), Vec::new(), 0);
    for _ in 0..rows {
        if entries.repetition() != Some(0) {
            return Err(contradiction());
        }
        let definition = entries.definition()?;
        if definition <= list.definition {
            entries.pass();
            if definition < list.definition {
                out.push_null();
                continue;
            }
        } else {
            loop {
                let definition = entries.definition()?;
                if definition <= list.definition {
                    return Err(contradiction());
                }
                if definition >= element.definition {
                    let row = entries.take()?;
                    value.clear();
                    append_value(documents.as_ref().unwrap_or(&entries.values), row, array, &mut value)?;
                    builder.push(&value);
                } else {
                    entries.pass();
                    builder.push_null();
                }
                if builder.bytes() > most - all {
                    return Err(too_much());
                }
                match entries.repetition() {
                    Some(level) if level == element.repetition => {}
                    Some(level) if level > element.repetition => return Err(contradiction()),
                    _ => break,
                }
            }
        }
        made.clear();
        builder.finish(&mut made);
        all += made.len();
        if all > most || !out.push_bytes(&made) {
            return Err(too_much());
        }
    }
    match entries.repetition() {
        None => Ok(all),
        Some(_) => Err(contradiction()),
    }
}

/// Appends the bytes of a value.
fn append_value(values: &Vector, row: usize, array: &Array, out: &mut Vec<u8>) -> Result<()> {
    let other = || Error::Malformed("a list of other values than its type says".into());
    let integer = |value: Option<i64>, out: &mut Vec<u8>| {
        // Wider ones hold narrower ones, as `read_as` has it.
        let width = array.element.width.ok_or_else(other)?;
        out.extend_from_slice(value.ok_or_else(other)?.to_le_bytes().get(..width).ok_or_else(other)?);
        Ok(())
    };
    match &values.values {
        Values::Bool(all) => out.push(u8::from(all.get(row))),
        Values::Int16(all) => return integer(all.get(row).map(|value| (*value).into()), out),
        Values::Int32(all) => return integer(all.get(row).map(|value| (*value).into()), out),
        Values::Int64(all) => return integer(all.get(row).copied(), out),
        Values::Float32(all) => {
            let value = *all.get(row).ok_or_else(other)?;
            match array.element.width {
                Some(4) => out.extend_from_slice(&value.to_le_bytes()),
                _ => out.extend_from_slice(&f64::from(value).to_le_bytes()),
            }
        }
        Values::Float64(all) => out.extend_from_slice(&all.get(row).ok_or_else(other)?.to_le_bytes()),
        Values::Fixed(all) => out.extend_from_slice(all.get(row)),
        Values::Bytes(all) => out.extend_from_slice(all.get(row)),
        Values::Numeric(all) => {
            let mut room = [0; numeric::MAX_ENCODED];
            let (scale, display) = (all.scale, all.display.get(row));
            let length =
                numeric::encode(vector::Decimal { unscaled: all.ints.get(row), scale, display }, &mut room);
            out.extend_from_slice(room.get(..length).ok_or_else(other)?);
        }
        _ => return Err(other()),
    }
    Ok(())
}
