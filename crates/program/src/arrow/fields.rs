//! Which type of Arrow a column has.

use std::collections::HashMap;

use arrow_schema::{DataType, Field, TimeUnit};
use files::column::Column;
use files::{Error, FieldKind, Result, parquet};
use vector::LogicalType;

/// The field of a column, which may be NULL. A type that Arrow has not becomes text.
///
/// # Errors
/// `Unsupported` for a type of which only the server knows the text.
pub fn of(column: &Column) -> Result<Field> {
    let data_type = match column.logical {
        // Of Parquet those have a counterpart that Arrow has, too.
        _ if let Ok(field) = parquet::field(column) => of_kind(field.kind),
        // Amounts of money, and domains. What the integers mean, only the server knows.
        LogicalType::Int64 => DataType::Int64,
        LogicalType::Bytes | LogicalType::FixedBytes(_) => {
            return Err(Error::Unsupported(format!(
                "column {} is {}, of which only the server knows the text: leave it out by --columns",
                column.name, column.declared
            )));
        }
        _ => DataType::Utf8,
    };
    let field = Field::new(&column.name, data_type, true);
    Ok(match column.logical {
        LogicalType::Uuid => field.with_metadata(extension("arrow.uuid")),
        _ => field,
    })
}

fn of_kind(kind: FieldKind) -> DataType {
    match kind {
        FieldKind::Bool => DataType::Boolean,
        FieldKind::Integer { bits: 16 } => DataType::Int16,
        FieldKind::Integer { bits: 32 } => DataType::Int32,
        FieldKind::Integer { .. } => DataType::Int64,
        FieldKind::Unsigned => DataType::UInt64,
        FieldKind::Real { bits: 32 } => DataType::Float32,
        FieldKind::Real { .. } => DataType::Float64,
        FieldKind::Date => DataType::Date32,
        FieldKind::Time(_) => DataType::Time64(TimeUnit::Microsecond),
        FieldKind::Timestamp { is_instant, .. } => {
            DataType::Timestamp(TimeUnit::Microsecond, is_instant.then(|| "UTC".into()))
        }
        // Both are at most 38.
        FieldKind::Decimal { precision, scale } => DataType::Decimal128(precision as u8, scale as i8),
        FieldKind::Uuid => DataType::FixedSizeBinary(16),
        FieldKind::Bytes | FieldKind::Jsonb => DataType::Binary,
        FieldKind::Text | FieldKind::Json | FieldKind::Other(_) => DataType::Utf8,
    }
}

/// What tells readers that bytes are more than that.
fn extension(name: &str) -> HashMap<String, String> {
    [("ARROW:extension:name", name), ("ARROW:extension:metadata", "")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}
