//! The schema in a footer, read before the crate reads the footer.
//!
//! The crate goes down a schema by recursion without a limit, so a small file could nest deeper than a stack
//! is long. Here the schema is read with a limit. The crate is given what came out, and passes over the
//! file's own (`ParquetMetaDataOptions::with_schema`). So it does not matter whether both would read it
//! alike.
//!
//! The bytes are those of Thrift's compact protocol. A footer begins with its version, then comes the schema:
//! a list of elements, each before its children.

use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type, TypePtr};

use crate::{Error, Result};

/// How deep a schema may nest.
const MOST_DEPTH: usize = 200;
/// How deep parts nest that are passed over.
const MOST_SKIPPED: usize = 8;

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const INTEGERS: [u8; 3] = [4, 5, 6];
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Reads the schema of a footer.
///
/// # Errors
/// `Unsupported` where it nests too deep, `Malformed` where it is none.
pub fn read(footer: &[u8]) -> Result<SchemaDescPtr> {
    let mut rest = Cursor(footer);
    match rest.field(0)? {
        Some((1, kind)) if INTEGERS.contains(&kind) => rest.integer()?,
        _ => return Err(malformed("its footer does not begin with a version")),
    };
    if rest.field(1)? != Some((2, LIST)) {
        return Err(malformed("its footer has no schema behind the version"));
    }
    let (mut elements, of) = rest.list()?;
    if of != STRUCT {
        return Err(malformed("its schema is no list of elements"));
    }
    let root = rest.tree(&mut elements, 0)?;
    if elements > 0 || !root.is_group() {
        return Err(malformed("its schema has not one root"));
    }
    Ok(Arc::new(SchemaDescriptor::new(root)))
}

/// An element of a schema.
#[derive(Default)]
struct Element {
    physical: Option<Physical>,
    length: Option<i32>,
    repetition: Option<Repetition>,
    name: Option<String>,
    children: i32,
    converted: Option<ConvertedType>,
    scale: Option<i32>,
    precision: Option<i32>,
    id: Option<i32>,
    logical: Option<LogicalType>,
}

/// What is left of a footer.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    /// The next element with all that is below it. There are so many elements left.
    fn tree(&mut self, elements: &mut u64, depth: usize) -> Result<TypePtr> {
        *elements = elements.checked_sub(1).ok_or_else(|| malformed("its schema lacks elements"))?;
        let element = self.element()?;
        let name = element.name.as_deref().ok_or_else(|| malformed("a part of its schema has no name"))?;
        let repetition = match (element.repetition, depth) {
            // Some writers give the root one.
            (_, 0) => None,
            (None, _) => return Err(malformed("a part of its schema is not said to be there")),
            (repetition, _) => repetition,
        };
        let converted = element.converted.unwrap_or(ConvertedType::NONE);
        // Some writers count the children of plain columns, of which there is none.
        if let (0, Some(physical), Some(repetition)) = (element.children, element.physical, repetition) {
            let built = Type::primitive_type_builder(name, physical)
                .with_repetition(repetition)
                .with_converted_type(converted)
                .with_logical_type(element.logical)
                .with_length(element.length.unwrap_or(-1))
                .with_precision(element.precision.unwrap_or(-1))
                .with_scale(element.scale.unwrap_or(-1))
                .with_id(element.id)
                .build()?;
            return Ok(Arc::new(built));
        }
        if depth >= MOST_DEPTH {
            return Err(Error::Unsupported(format!("a schema of more than {MOST_DEPTH} levels")));
        }
        let children = (0..element.children).map(|_| self.tree(elements, depth + 1));
        let mut group = Type::group_type_builder(name)
            .with_fields(children.collect::<Result<_>>()?)
            .with_converted_type(converted)
            .with_logical_type(element.logical)
            .with_id(element.id);
        if let Some(repetition) = repetition {
            group = group.with_repetition(repetition);
        }
        Ok(Arc::new(group.build()?))
    }

    fn element(&mut self) -> Result<Element> {
        let (mut element, mut before) = (Element::default(), 0);
        while let Some((number, kind)) = self.field(before)? {
            before = number;
            match (number, kind) {
                (4, BINARY) => element.name = Some(self.text()?),
                (10, STRUCT) => element.logical = self.logical()?,
                (1..=9, kind) if INTEGERS.contains(&kind) => {
                    let value = self.integer()?;
                    match number {
                        1 => element.physical = Some(one_of(&PHYSICAL, value)?),
                        2 => element.length = Some(value),
                        3 => element.repetition = Some(one_of(&REPETITIONS, value)?),
                        5 if value < 0 => return Err(malformed("its schema counts children below zero")),
                        5 => element.children = value,
                        6 => element.converted = Some(one_of(&CONVERTED, value)?),
                        7 => element.scale = Some(value),
                        8 => element.precision = Some(value),
                        _ => element.id = Some(value),
                    }
                }
                (..=10, _) => return Err(malformed("a part of its schema is of another type")),
                _ => self.skip(kind, 0)?,
            }
        }
        Ok(element)
    }

    /// A logical type. None for those that no reader here knows.
    fn logical(&mut self) -> Result<Option<LogicalType>> {
        let Some((number, STRUCT)) = self.field(0)? else {
            return Err(malformed("a logical type is none"));
        };
        let logical = match number {
            5 => {
                let [scale, precision] = self.integers()?;
                Some(LogicalType::decimal(scale, precision))
            }
            7 | 8 => {
                let (is_instant, unit) = self.moment()?;
                Some(match number {
                    7 => LogicalType::time(is_instant, unit),
                    _ => LogicalType::timestamp(is_instant, unit),
                })
            }
            10 => {
                let (bits, is_signed) = self.width()?;
                Some(LogicalType::integer(bits, is_signed))
            }
            _ => {
                self.skip(STRUCT, 0)?;
                match number {
                    1 => Some(LogicalType::String),
                    2 => Some(LogicalType::Map),
                    3 => Some(LogicalType::List),
                    4 => Some(LogicalType::Enum),
                    6 => Some(LogicalType::Date),
                    11 => Some(LogicalType::Unknown),
                    12 => Some(LogicalType::Json),
                    13 => Some(LogicalType::Bson),
                    14 => Some(LogicalType::Uuid),
                    15 => Some(LogicalType::Float16),
                    16 => Some(LogicalType::variant(None)),
                    _ => None,
                }
            }
        };
        match self.field(number)? {
            None => Ok(logical),
            Some(_) => Err(malformed("a logical type is two")),
        }
    }

    /// A struct of two integers.
    fn integers(&mut self) -> Result<[i32; 2]> {
        let (mut found, mut before) = ([None; 2], 0);
        while let Some((number, kind)) = self.field(before)? {
            before = number;
            match (number, found.get_mut(usize::try_from(number - 1).unwrap_or(usize::MAX))) {
                (_, Some(place)) if INTEGERS.contains(&kind) => *place = Some(self.integer()?),
                (1 | 2, _) => return Err(malformed("a logical type has other parts")),
                _ => self.skip(kind, 0)?,
            }
        }
        match found {
            [Some(first), Some(second)] => Ok([first, second]),
            _ => Err(malformed("a logical type lacks a part")),
        }
    }

    /// Whether a time is an instant, and what it counts.
    fn moment(&mut self) -> Result<(bool, TimeUnit)> {
        let (mut is_instant, mut unit, mut before) = (None, None, 0);
        while let Some((number, kind)) = self.field(before)? {
            before = number;
            match (number, kind) {
                (1, TRUE | FALSE) => is_instant = Some(kind == TRUE),
                (2, STRUCT) => {
                    let Some((number, STRUCT)) = self.field(0)? else {
                        return Err(malformed("a unit of time is none"));
                    };
                    unit = Some(match number {
                        1 => TimeUnit::MILLIS,
                        2 => TimeUnit::MICROS,
                        3 => TimeUnit::NANOS,
                        _ => return Err(malformed("a unit of time is not known")),
                    });
                    self.skip(STRUCT, 0)?;
                    if self.field(number)?.is_some() {
                        return Err(malformed("a unit of time is two"));
                    }
                }
                (1 | 2, _) => return Err(malformed("a logical type has other parts")),
                _ => self.skip(kind, 0)?,
            }
        }
        is_instant.zip(unit).ok_or_else(|| malformed("a logical type lacks a part"))
    }

    /// How wide an integer is, and whether it has a sign.
    fn width(&mut self) -> Result<(i8, bool)> {
        let (mut bits, mut is_signed, mut before) = (None, None, 0);
        while let Some((number, kind)) = self.field(before)? {
            before = number;
            match (number, kind) {
                (1, BYTE) => bits = Some(self.byte()?.cast_signed()),
                (2, TRUE | FALSE) => is_signed = Some(kind == TRUE),
                (1 | 2, _) => return Err(malformed("a logical type has other parts")),
                _ => self.skip(kind, 0)?,
            }
        }
        bits.zip(is_signed).ok_or_else(|| malformed("a logical type lacks a part"))
    }

    fn byte(&mut self) -> Result<u8> {
        let (first, rest) = self.0.split_first().ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(*first)
    }

    fn bytes(&mut self, length: u64) -> Result<&'a [u8]> {
        let length = usize::try_from(length).map_err(|_| cut_off())?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<String> {
        let length = self.varint()?;
        let text = std::str::from_utf8(self.bytes(length)?);
        text.map(str::to_owned).map_err(|_| malformed("a name in its schema is not UTF-8"))
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(cut_off())
    }

    fn integer(&mut self) -> Result<i32> {
        let value = self.varint()?;
        let value = (value >> 1).cast_signed() ^ -(value & 1).cast_signed();
        i32::try_from(value).map_err(|_| malformed("its schema has a number past 32 bits"))
    }

    /// Number and type of the next field of a struct, given the number of the one before. None at its end.
    fn field(&mut self, before: i32) -> Result<Option<(i32, u8)>> {
        let head = self.byte()?;
        Ok(match (head >> 4, head & 15) {
            (_, 0) => None,
            (0, kind) => Some((self.integer()?, kind)),
            (step, kind) => Some((before.saturating_add(step.into()), kind)),
        })
    }

    /// Length of a list, and the type of its elements.
    fn list(&mut self) -> Result<(u64, u8)> {
        let head = self.byte()?;
        Ok(match head >> 4 {
            15 => (self.varint()?, head & 15),
            length => (length.into(), head & 15),
        })
    }

    /// Passes over a field that is not known. Those of today have no lists.
    fn skip(&mut self, kind: u8, depth: usize) -> Result<()> {
        match kind {
            _ if depth > MOST_SKIPPED => Err(Error::Unsupported("a schema whose parts nest too deep".into())),
            TRUE | FALSE => Ok(()),
            BYTE => self.byte().map(drop),
            kind if INTEGERS.contains(&kind) => self.varint().map(drop),
            DOUBLE => self.bytes(8).map(drop),
            BINARY => {
                let length = self.varint()?;
                self.bytes(length).map(drop)
            }
            STRUCT => {
                let mut before = 0;
                while let Some((number, kind)) = self.field(before)? {
                    before = number;
                    self.skip(kind, depth + 1)?;
                }
                Ok(())
            }
            _ => Err(Error::Unsupported("a schema with parts that are not known".into())),
        }
    }
}

const PHYSICAL: [Physical; 8] = [
    Physical::BOOLEAN,
    Physical::INT32,
    Physical::INT64,
    Physical::INT96,
    Physical::FLOAT,
    Physical::DOUBLE,
    Physical::BYTE_ARRAY,
    Physical::FIXED_LEN_BYTE_ARRAY,
];
const REPETITIONS: [Repetition; 3] = [Repetition::REQUIRED, Repetition::OPTIONAL, Repetition::REPEATED];
const CONVERTED: [ConvertedType; 22] = [
    ConvertedType::UTF8,
    ConvertedType::MAP,
    ConvertedType::MAP_KEY_VALUE,
    ConvertedType::LIST,
    ConvertedType::ENUM,
    ConvertedType::DECIMAL,
    ConvertedType::DATE,
    ConvertedType::TIME_MILLIS,
    ConvertedType::TIME_MICROS,
    ConvertedType::TIMESTAMP_MILLIS,
    ConvertedType::TIMESTAMP_MICROS,
    ConvertedType::UINT_8,
    ConvertedType::UINT_16,
    ConvertedType::UINT_32,
    ConvertedType::UINT_64,
    ConvertedType::INT_8,
    ConvertedType::INT_16,
    ConvertedType::INT_32,
    ConvertedType::INT_64,
    ConvertedType::JSON,
    ConvertedType::BSON,
    ConvertedType::INTERVAL,
];

/// The one of this number.
fn one_of<T: Copy>(all: &[T], number: i32) -> Result<T> {
    let found = usize::try_from(number).ok().and_then(|number| all.get(number));
    found.copied().ok_or_else(|| malformed("a part of its schema has a type that is not known"))
}

fn malformed(what: &str) -> Error {
    Error::Malformed(what.into())
}

fn cut_off() -> Error {
    malformed("its footer is cut off")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::read;
    use crate::Error;

    /// A footer whose schema has so many groups in each other, above a column of text.
    fn footer(depth: u32) -> Vec<u8> {
        let mut out = vec![0x15, 2, 0x19, 0xfc];
        let count = depth + 2;
        out.extend([
            count as u8 | 0x80,
            (count >> 7) as u8 | 0x80,
            (count >> 14) as u8 | 0x80,
            (count >> 21) as u8,
        ]);
        out.extend([0x48, 1, b'a', 0x15, 2, 0]);
        (0..depth).for_each(|_| out.extend([0x35, 0, 0x18, 1, b'a', 0x15, 2, 0]));
        out.extend([0x15, 12, 0x25, 0, 0x18, 1, b'a', 0, 0x16, 0, 0x19, 0x0c, 0]);
        out
    }

    #[test]
    fn deep_schemas_are_refused_and_others_not() {
        assert_eq!(read(&footer(3)).unwrap().num_columns(), 1);
        assert!(read(&footer(199)).is_ok());
        assert!(matches!(read(&footer(200)), Err(Error::Unsupported(_))));
        assert!(matches!(read(&footer(1_000_000)), Err(Error::Unsupported(_))));
        for length in 0..60 {
            assert!(matches!(read(footer(5).get(..length).unwrap()), Err(Error::Malformed(_))), "{length}");
        }
    }

    #[test]
    fn what_hides_from_a_look_at_the_bytes_is_refused() {
        let whole = footer(1);
        let children = whole.windows(3).rposition(|part| part == [0x15, 2, 0]).unwrap() + 1;
        for (place, with) in [
            // Children: -1, and a number that 32 bits cut to 1.
            (children, vec![1]),
            (children, vec![0x82, 0x80, 0x80, 0x80, 0x20]),
            // The field of the schema by its number and 65,536; as bytes; behind another one.
            (2, vec![0x09, 0x84, 0x80, 8]),
            (2, vec![0x18]),
            (2, vec![0x26, 0, 0x09, 4]),
        ] {
            let mut spoiled = whole.clone();
            spoiled.splice(place..=place, with.clone());
            assert!(matches!(read(&spoiled), Err(Error::Malformed(_))), "{with:?}");
        }
    }

    #[test]
    fn schemas_are_what_the_crate_reads() {
        let message = "message m {
            required boolean a; optional int32 b (INTEGER(8, false)); required int64 c (TIMESTAMP(MICROS, true));
            optional int64 d (TIME(NANOS, false)); required int96 e; optional float f; required double g;
            optional binary h (UTF8); required fixed_len_byte_array(16) i (UUID); optional int32 j (DECIMAL(9, 2));
            required fixed_len_byte_array(2) k (FLOAT16); optional binary l (JSON); optional int32 m (DATE);
            optional int32 n (TIMESTAMP_MILLIS); optional group o (LIST) { repeated group list { optional int32 element; } }
            required group p (MAP) { repeated group key_value { required binary key (STRING); optional group value { optional int64 q = 7; } } }
        }";
        let message =
            message.replace("optional int32 n (TIMESTAMP_MILLIS);", "optional int64 n (TIMESTAMP_MILLIS);");
        let schema = std::sync::Arc::new(parse_message_type(&message).unwrap());
        let mut file = Vec::new();
        SerializedFileWriter::new(&mut file, schema.clone(), Default::default()).unwrap().close().unwrap();
        let length = u32::from_le_bytes(*file.get(file.len() - 8..).unwrap().first_chunk().unwrap()) as usize;
        let found = read(file.get(file.len() - 8 - length..file.len() - 8).unwrap()).unwrap();
        assert_eq!(found.root_schema(), schema.as_ref());
    }
}
