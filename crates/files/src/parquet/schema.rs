//! What the columns of a Parquet file are.
//!
//! Types are told twice in a file: by the logical type, and by the older converted type. The first counts.

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::schema::types::ColumnDescriptor;

use crate::{Field, FieldKind, Unit};

/// Most digits of a decimal that vectors hold.
const MOST_DIGITS: i32 = 38;

/// A column, from its description in the file.
pub fn field(column: &ColumnDescriptor) -> Field {
    Field { name: column.path().string(), kind: kind(column) }
}

fn kind(column: &ColumnDescriptor) -> FieldKind {
    match column.max_rep_level() {
        0 => of_values(column),
        _ => FieldKind::Other("a list or a map"),
    }
}

/// What single values of a column are, within lists or not.
pub fn of_values(column: &ColumnDescriptor) -> FieldKind {
    let physical = column.physical_type();
    if let Some(logical) = column.logical_type_ref() {
        let unit = |unit: &TimeUnit| match unit {
            TimeUnit::MILLIS => Unit::Millis,
            TimeUnit::MICROS => Unit::Micros,
            TimeUnit::NANOS => Unit::Nanos,
        };
        match logical {
            LogicalType::String | LogicalType::Enum => return FieldKind::Text,
            LogicalType::Json => return FieldKind::Json,
            LogicalType::Bson => return FieldKind::Bytes,
            LogicalType::Uuid => return FieldKind::Uuid,
            LogicalType::Date => return FieldKind::Date,
            LogicalType::Time(time) => return FieldKind::Time(unit(&time.unit)),
            LogicalType::Timestamp(time) => {
                return FieldKind::Timestamp {
                    unit: unit(&time.unit),
                    is_instant: time.is_adjusted_to_u_t_c,
                };
            }
            LogicalType::Decimal(decimal) => return of_decimal(decimal.precision, decimal.scale),
            LogicalType::Integer(integer) if !integer.is_signed => {
                return unsigned(physical, integer.bit_width.unsigned_abs());
            }
            LogicalType::Integer(integer) => {
                return FieldKind::Integer { bits: at_least_16(integer.bit_width.unsigned_abs()) };
            }
            LogicalType::Float16 => return FieldKind::Real { bits: 32 },
            LogicalType::Variant(_) => return FieldKind::Other("a variant"),
            _ => {}
        }
    }
    match column.converted_type() {
        ConvertedType::UTF8 | ConvertedType::ENUM => FieldKind::Text,
        ConvertedType::JSON => FieldKind::Json,
        ConvertedType::DECIMAL => of_decimal(column.type_precision(), column.type_scale()),
        ConvertedType::DATE => FieldKind::Date,
        ConvertedType::TIME_MILLIS => FieldKind::Time(Unit::Millis),
        ConvertedType::TIME_MICROS => FieldKind::Time(Unit::Micros),
        ConvertedType::TIMESTAMP_MILLIS => FieldKind::Timestamp { unit: Unit::Millis, is_instant: true },
        ConvertedType::TIMESTAMP_MICROS => FieldKind::Timestamp { unit: Unit::Micros, is_instant: true },
        ConvertedType::UINT_8 => unsigned(physical, 8),
        ConvertedType::UINT_16 => unsigned(physical, 16),
        ConvertedType::UINT_32 | ConvertedType::UINT_64 => unsigned(physical, 32),
        ConvertedType::INT_8 | ConvertedType::INT_16 => FieldKind::Integer { bits: 16 },
        ConvertedType::INTERVAL => FieldKind::Other("an interval"),
        _ => match physical {
            Type::BOOLEAN => FieldKind::Bool,
            Type::INT32 => FieldKind::Integer { bits: 32 },
            Type::INT64 => FieldKind::INTEGER,
            // Times of older systems.
            Type::INT96 => FieldKind::Timestamp { unit: Unit::Micros, is_instant: false },
            Type::FLOAT => FieldKind::Real { bits: 32 },
            Type::DOUBLE => FieldKind::REAL,
            Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => FieldKind::Bytes,
        },
    }
}

/// Unsigned integers of so many bits: signed ones of the next width hold them.
fn unsigned(physical: Type, bits: u8) -> FieldKind {
    match physical {
        Type::INT64 => FieldKind::Unsigned,
        _ => FieldKind::Integer { bits: at_least_16(bits.saturating_mul(2)) },
    }
}

const fn at_least_16(bits: u8) -> u8 {
    match bits {
        0..=16 => 16,
        17..=32 => 32,
        _ => 64,
    }
}

fn of_decimal(precision: i32, scale: i32) -> FieldKind {
    match (u16::try_from(precision), u16::try_from(scale)) {
        (Ok(precision), Ok(scale))
            if (1..=MOST_DIGITS).contains(&i32::from(precision)) && scale <= precision =>
        {
            FieldKind::Decimal { precision, scale }
        }
        _ => FieldKind::Other("a decimal of more than 38 digits"),
    }
}

/// Whether integers of 32 bits are unsigned.
pub fn is_unsigned(column: &ColumnDescriptor) -> bool {
    match column.logical_type_ref() {
        Some(LogicalType::Integer(integer)) => !integer.is_signed,
        Some(_) => false,
        None => matches!(
            column.converted_type(),
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64
        ),
    }
}
