//! Bloom filters of a column in a row group: which values are not in it.
//!
//! Called by `group` for conditions that want single values. The crate reads filters and asks them. What is
//! known here is where a filter ends that does not say so, and which bytes a value of a table has in the
//! file. Source: the Parquet format, "Bloom Filter" (BloomFilter.md of apache/parquet-format): filters are
//! asked for the bytes that values have as plain ones.
//!
//! Invariant: a value that the column has is never denied. So a value that may have several forms is not
//! asked for: reals that are zero or NaN, parts of microseconds, decimals of a varying length.

use parquet::basic::Type;
use parquet::bloom_filter::{BITSET_MAX_LENGTH, Sbbf};
use parquet::file::metadata::ColumnChunkMetaData;
use stripe::StripeBytes;
use vector::{Result, Scalar, rescaled};

use super::file::ReadColumn;
use super::hybrid::varint;
use super::read::{big_endian, guarded};
use super::{columns, schema};
use crate::{FieldKind, Unit};

/// Bytes in which a header ends. They are always there: a filter has 32 bytes at least beside its header.
const HEADER: u64 = 32;
/// Bytes of a header beside its first number: that one's mark, three empty unions and the end.
const HEADER_REST: u64 = 14;

/// Reads the filter of a column. None where there is none that can be used.
///
/// # Errors
/// Those of `bytes`.
pub fn read(metadata: &ColumnChunkMetaData, bytes: &dyn StripeBytes) -> Result<Option<Sbbf>> {
    let Some(start) = metadata.bloom_filter_offset().and_then(|start| u64::try_from(start).ok()) else {
        return Ok(None);
    };
    let length = match metadata.bloom_filter_length() {
        Some(length) => u64::try_from(length).ok(),
        None => {
            let mut header = Vec::new();
            bytes.read(start..start.saturating_add(HEADER), &mut header)?;
            length_of(&header)
        }
    };
    let Some(length) = length.filter(|length| *length <= BITSET_MAX_LENGTH as u64 + HEADER) else {
        return Ok(None);
    };
    let mut stored = Vec::new();
    bytes.read(start..start.saturating_add(length), &mut stored)?;
    let filter = guarded(|| Ok(Sbbf::from_bytes(&stored)?)).ok();
    // One without any bit has no value, or has lost them.
    Ok(filter.filter(|filter| filter.estimated_fpp() > 0.0))
}

/// How long a filter is, header and all. The header begins with the number of bytes behind it, as a field of
/// Thrift's compact protocol: the mark of a first field that is a number, and a zigzag varint.
fn length_of(header: &[u8]) -> Option<u64> {
    let (mark, rest) = header.split_first()?;
    let (zigzag, digits) = varint(rest)?;
    (*mark == 0x15 && zigzag % 2 == 0).then_some(zigzag / 2 + digits as u64 + HEADER_REST)
}

/// The bytes that a value has in a column of a file. None where other bytes could stand for it as well.
pub fn stored(value: &Scalar, column: &ReadColumn) -> Option<Vec<u8>> {
    let physical = column.description.physical_type();
    match value {
        Scalar::Int(value) => {
            let value = match column.kind {
                FieldKind::Integer { .. } => *value,
                FieldKind::Unsigned => *value ^ i64::MIN,
                FieldKind::Date => columns::days_in_file(*value)?,
                FieldKind::Time(unit) => of_micros(*value, unit)?,
                FieldKind::Timestamp { unit, .. } => of_micros(columns::micros_in_file(*value)?, unit)?,
                _ => return None,
            };
            integer(value.into(), physical, schema::is_unsigned(&column.description))
        }
        Scalar::Numeric { unscaled, scale } => {
            let FieldKind::Decimal { scale: wanted, .. } = column.kind else { return None };
            let unscaled = rescaled(*unscaled, *scale, wanted)?;
            match physical {
                Type::FIXED_LEN_BYTE_ARRAY => fixed(unscaled, column),
                _ => integer(unscaled, physical, false),
            }
        }
        Scalar::Bytes(bytes) => match (physical, column.kind) {
            (Type::BYTE_ARRAY, FieldKind::Text | FieldKind::Bytes) => Some(bytes.to_vec()),
            (Type::FIXED_LEN_BYTE_ARRAY, FieldKind::Bytes | FieldKind::Uuid) => {
                (width(column)? == bytes.len()).then(|| bytes.to_vec())
            }
            _ => None,
        },
        // Zero has two forms, and NaN many.
        Scalar::Float(value) if *value != 0.0 => match physical {
            Type::FLOAT => {
                let narrow = *value as f32;
                (f64::from(narrow) == *value).then(|| narrow.to_le_bytes().to_vec())
            }
            Type::DOUBLE => (!value.is_nan()).then(|| value.to_le_bytes().to_vec()),
            _ => None,
        },
        Scalar::Float(_) | Scalar::Bool(_) | Scalar::Null => None,
    }
}

/// An integer of a file's column. `unsigned`: those of 32 bits have no sign.
fn integer(value: i128, physical: Type, unsigned: bool) -> Option<Vec<u8>> {
    match physical {
        Type::INT32 if unsigned => Some(u32::try_from(value).ok()?.to_le_bytes().to_vec()),
        Type::INT32 => Some(i32::try_from(value).ok()?.to_le_bytes().to_vec()),
        Type::INT64 => Some(i64::try_from(value).ok()?.to_le_bytes().to_vec()),
        _ => None,
    }
}

/// A decimal in so many bytes as those of its column have, greatest first.
fn fixed(unscaled: i128, column: &ReadColumn) -> Option<Vec<u8>> {
    let all = unscaled.to_be_bytes();
    let bytes = all.get(all.len().checked_sub(width(column)?)?..)?;
    (big_endian(bytes) == Some(unscaled)).then(|| bytes.to_vec())
}

fn width(column: &ReadColumn) -> Option<usize> {
    usize::try_from(column.description.type_length()).ok()
}

/// Microseconds in a unit. None where several times of the file, or none, are this one.
const fn of_micros(micros: i64, unit: Unit) -> Option<i64> {
    match unit {
        Unit::Micros => Some(micros),
        Unit::Millis if micros % 1000 == 0 => Some(micros / 1000),
        Unit::Millis | Unit::Nanos => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_filter_tells_how_long_it_is() {
        for bytes in [32, 64, 1 << 12, 1 << 20] {
            let filter = Sbbf::new_with_num_of_bytes(bytes);
            let mut written = Vec::new();
            filter.write(&mut written).unwrap();
            let header = written.get(..32).unwrap();
            assert_eq!(length_of(header), Some(written.len() as u64), "{bytes} bytes");
        }
        assert_eq!(length_of(&[]), None);
        assert_eq!(length_of(&[0x15]), None);
        assert_eq!(length_of(&[0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 1]), None);
        assert_eq!(length_of(&[0x15, 1]), None, "a negative number");
    }
}
