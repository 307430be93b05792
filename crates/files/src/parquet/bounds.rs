//! What the footer of a Parquet file knows of a column's values in a row group, as statistics of ours.
//!
//! Invariant: no bound is tighter than the values. So whatever a writer may have got wrong for some type is
//! not used: orders that the file does not name, old statistics of types whose order was not agreed upon,
//! greatest reals (NaN is not among them, and is above all others in PostgreSQL). No bound counts as exact.

use parquet::basic::{ColumnOrder, SortOrder, Type};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use stripe::{Bound, ColumnStatistics, Scales};
use vector::{Bitmap, LogicalType, Scalar, Values, Vector};

use super::file::ReadColumn;
use super::read::big_endian;
use super::schema;
use super::to_column;
use crate::FieldKind;

/// Statistics of a column in a row group of so many rows. None where it is not known how many are NULL.
pub fn statistics(
    chunk: &ColumnChunkMetaData,
    column: &ReadColumn,
    rows: u32,
    order: ColumnOrder,
) -> Option<ColumnStatistics> {
    let known = chunk.statistics();
    let nulls = match column.description.max_def_level() {
        0 => 0,
        _ => u32::try_from(known?.null_count_opt()?).ok()?,
    };
    let mut statistics = ColumnStatistics::unknown(rows, nulls.min(rows));
    // Before orders were agreed upon, values were compared as signed integers or signed bytes.
    let is_signed = column.kind != FieldKind::Unsigned
        && !schema::is_unsigned(&column.description)
        && !matches!(
            column.description.physical_type(),
            Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY | Type::INT96
        );
    let trusted = |known: &&Statistics| match known.is_min_max_deprecated() {
        true => is_signed,
        false => is_agreed(order),
    };
    if let Some(known) = known.filter(trusted) {
        let (min, max) = ends(known, column);
        let bound = |value: Option<Scalar>| value.map(|value| Bound { value, exact: false });
        (statistics.min, statistics.max) = (bound(min), bound(max));
    }
    if let FieldKind::Decimal { scale, .. } = column.kind {
        statistics.scales = Some(Scales { common: scale, display_min: scale, display_max: scale });
    }
    Some(statistics)
}

/// Whether it was agreed upon how values compare.
pub const fn is_agreed(order: ColumnOrder) -> bool {
    matches!(order, ColumnOrder::TYPE_DEFINED_ORDER(SortOrder::SIGNED | SortOrder::UNSIGNED))
}

/// The least and the greatest value as the column has them.
pub fn ends(known: &Statistics, column: &ReadColumn) -> (Option<Scalar>, Option<Scalar>) {
    let of_bytes = |bytes: Option<&[u8]>| bytes.and_then(|bytes| of_bytes(bytes, column));
    let of_integer = |value: Option<i64>| value.and_then(|value| of_integer(value, column));
    match known {
        Statistics::Boolean(known) => {
            (known.min_opt().copied().map(Scalar::Bool), known.max_opt().copied().map(Scalar::Bool))
        }
        Statistics::Int32(known) => {
            let wide = |value: &i32| match schema::is_unsigned(&column.description) {
                true => i64::from(value.cast_unsigned()),
                false => i64::from(*value),
            };
            (of_integer(known.min_opt().map(wide)), of_integer(known.max_opt().map(wide)))
        }
        Statistics::Int64(known) => {
            (of_integer(known.min_opt().copied()), of_integer(known.max_opt().copied()))
        }
        Statistics::Float(known) => (least(known.min_opt().map(|value| f64::from(*value))), None),
        Statistics::Double(known) => (least(known.min_opt().copied()), None),
        // Days and times of day, in an order that nobody agreed upon.
        Statistics::Int96(_) => (None, None),
        Statistics::ByteArray(_) | Statistics::FixedLenByteArray(_) => {
            (of_bytes(known.min_bytes_opt()), of_bytes(known.max_bytes_opt()))
        }
    }
}

/// The least of some reals.
fn least(value: Option<f64>) -> Option<Scalar> {
    value.filter(|value| !value.is_nan()).map(Scalar::Float)
}

fn of_bytes(bytes: &[u8], column: &ReadColumn) -> Option<Scalar> {
    let is_fixed = column.description.physical_type() == Type::FIXED_LEN_BYTE_ARRAY;
    let width = usize::try_from(column.description.type_length()).unwrap_or(0);
    match column.kind {
        FieldKind::Text | FieldKind::Bytes => Some(Scalar::Bytes(bytes.into())),
        FieldKind::Uuid if bytes.len() == 16 => Some(Scalar::Bytes(bytes.into())),
        // Those that were cut are none.
        FieldKind::Decimal { scale, .. } if !is_fixed || bytes.len() == width => {
            Some(Scalar::Numeric { unscaled: big_endian(bytes)?, scale })
        }
        // Half floats have an order of their own.
        _ => None,
    }
}

/// A value as the column has it. None where the column cannot hold it, which the rows will tell.
fn of_integer(value: i64, column: &ReadColumn) -> Option<Scalar> {
    if let FieldKind::Decimal { scale, .. } = column.kind {
        return Some(Scalar::Numeric { unscaled: value.into(), scale });
    }
    let (logical, value) = match column.field.kind {
        FieldKind::Unsigned => (LogicalType::UInt64, value ^ i64::MIN),
        _ => (LogicalType::Int64, value),
    };
    let vector = Vector { logical, validity: None::<Bitmap>, values: Values::Int64(vec![value]) };
    match to_column(vector, column.kind).ok()?.values {
        Values::Int16(values) => values.first().map(|value| Scalar::Int((*value).into())),
        Values::Int32(values) => values.first().map(|value| Scalar::Int((*value).into())),
        Values::Int64(values) => values.first().map(|value| Scalar::Int(*value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use parquet::data_type::ByteArray;
    use parquet::file::statistics::ValueStatistics;
    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;

    use super::*;

    /// What is known of a column of this type, from statistics of the old kind or the new.
    fn known(of_type: &str, kind: FieldKind, logical: LogicalType, known: Statistics) -> ColumnStatistics {
        let schema = parse_message_type(&format!("message rows {{ OPTIONAL {of_type}; }}")).unwrap();
        let description = SchemaDescriptor::new(Arc::new(schema)).column(0);
        let field = schema::field(&description);
        let chunk =
            ColumnChunkMetaData::builder(Arc::clone(&description)).set_statistics(known).build().unwrap();
        let column = ReadColumn { at: 0, description, field, kind, logical };
        statistics(&chunk, &column, 10, ColumnOrder::TYPE_DEFINED_ORDER(SortOrder::UNSIGNED)).unwrap()
    }

    #[test]
    fn old_statistics_count_only_where_signed_order_is_the_order() {
        for is_old in [false, true] {
            let text = |text: &str| Some(ByteArray::from(text));
            let texts = ValueStatistics::new(text("a"), text("z"), None, Some(0), is_old);
            let of_text = known(
                "BYTE_ARRAY c (STRING)",
                FieldKind::Text,
                LogicalType::Text,
                Statistics::ByteArray(texts),
            );
            assert_eq!((of_text.min.is_none(), of_text.max.is_none()), (is_old, is_old));
            let ints = || Statistics::Int32(ValueStatistics::new(Some(-1), Some(7), None, Some(3), is_old));
            let kind = FieldKind::Integer { bits: 32 };
            let signed = known("INT32 c", kind, LogicalType::Int32, ints());
            assert_eq!(signed.min.map(|bound| bound.value), Some(Scalar::Int(-1)));
            assert_eq!(signed.null_count, 3);
            let unsigned =
                known("INT32 c (INTEGER(32,false))", FieldKind::INTEGER, LogicalType::Int64, ints());
            assert_eq!(unsigned.max.is_none(), is_old);
        }
    }

    #[test]
    fn reals_have_no_greatest() {
        let reals = ValueStatistics::new(Some(1.0), Some(2.0), None, Some(0), false);
        let known = known("DOUBLE c", FieldKind::REAL, LogicalType::Float64, Statistics::Double(reals));
        assert!(known.max.is_none() && known.min.is_some_and(|bound| !bound.exact));
    }
}
