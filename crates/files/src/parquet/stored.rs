//! How values lie in a Parquet file that is written.

use bytes::Bytes;
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    FloatType, Int32Type, Int64Type,
};
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::Type;
use vector::{Bitmap, ByteViews, NumericValues, Values, Vector, unsigned};

use crate::{Error, Field, FieldKind, Result, Unit};

/// Bytes that decimals of so many digits are held in.
const fn decimal_bytes(precision: u16) -> u8 {
    match precision {
        0..=9 => 4,
        10..=18 => 8,
        _ => 16,
    }
}

/// The type of a column that may be NULL.
pub fn column_type(field: &Field) -> Result<Type> {
    let unit = |unit: Unit| match unit {
        Unit::Millis => TimeUnit::MILLIS,
        Unit::Micros => TimeUnit::MICROS,
        Unit::Nanos => TimeUnit::NANOS,
    };
    let (physical, logical, length) = match field.kind {
        FieldKind::Bool => (Physical::BOOLEAN, None, 0),
        FieldKind::Integer { bits: 16 } => (Physical::INT32, Some(LogicalType::integer(16, true)), 0),
        FieldKind::Integer { bits: 32 } => (Physical::INT32, None, 0),
        FieldKind::Integer { .. } => (Physical::INT64, None, 0),
        FieldKind::Unsigned => (Physical::INT64, Some(LogicalType::integer(64, false)), 0),
        FieldKind::Real { bits: 32 } => (Physical::FLOAT, None, 0),
        FieldKind::Real { .. } => (Physical::DOUBLE, None, 0),
        FieldKind::Date => (Physical::INT32, Some(LogicalType::Date), 0),
        // Milliseconds would be of 32 bits.
        FieldKind::Time(Unit::Millis) => {
            return Err(Error::Unsupported("times in milliseconds are not written".into()));
        }
        FieldKind::Time(of) => (Physical::INT64, Some(LogicalType::time(false, unit(of))), 0),
        FieldKind::Timestamp { unit: of, is_instant } => {
            (Physical::INT64, Some(LogicalType::timestamp(is_instant, unit(of))), 0)
        }
        FieldKind::Decimal { precision, scale } => {
            let logical = LogicalType::decimal(i32::from(scale), i32::from(precision));
            match decimal_bytes(precision) {
                4 => (Physical::INT32, Some(logical), 0),
                8 => (Physical::INT64, Some(logical), 0),
                _ => (Physical::FIXED_LEN_BYTE_ARRAY, Some(logical), 16),
            }
        }
        FieldKind::Uuid => (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid), 16),
        FieldKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String), 0),
        FieldKind::Bytes => (Physical::BYTE_ARRAY, None, 0),
        FieldKind::Json => (Physical::BYTE_ARRAY, Some(LogicalType::Json), 0),
        FieldKind::Jsonb => return Err(Error::Unsupported("jsonb is not written".into())),
        FieldKind::Other(what) => return Err(Error::Unsupported(format!("{what} is not written"))),
    };
    let (precision, scale) = match field.kind {
        FieldKind::Decimal { precision, scale } => (i32::from(precision), i32::from(scale)),
        _ => (-1, -1),
    };
    let built = Type::primitive_type_builder(&field.name, physical).with_repetition(Repetition::OPTIONAL);
    let built =
        built.with_logical_type(logical).with_length(length).with_precision(precision).with_scale(scale);
    Ok(built.build()?)
}

/// Writes the values of a column, a flat vector of the field's kind. `levels` are the definition and
/// repetition levels of its entries, if it is part of a list or struct.
pub fn write(
    writer: &mut SerializedColumnWriter<'_>,
    column: &Vector,
    field: &Field,
    levels: Option<[&[i16]; 2]>,
) -> Result<()> {
    let validity = column.validity.as_ref();
    let is_there: Vec<i16> = match (levels, validity) {
        (Some(_), _) => Vec::new(),
        (None, None) => vec![1; column.len()],
        (None, Some(validity)) => validity.iter().map(i16::from).collect(),
    };
    let (definition, repetition) = match levels {
        Some([definition, repetition]) => (definition, Some(repetition)),
        None => (is_there.as_slice(), None),
    };
    let into = &mut Into { writer, definition, repetition };
    match (field.kind, &column.values) {
        (FieldKind::Bool, Values::Bool(bits)) => {
            into.put::<BoolType>(&chosen(bits.len(), validity, |row| bits.get(row)))
        }
        (FieldKind::Unsigned, Values::Int64(held)) => {
            into.put::<Int64Type>(&of(held, validity, |held| unsigned(held).cast_signed()))
        }
        (FieldKind::Date, Values::Int64(days)) => {
            let days =
                of(days, validity, i32::try_from).into_iter().collect::<std::result::Result<Vec<i32>, _>>();
            into.put::<Int32Type>(
                &days.map_err(|_| Error::Unsupported("a date past those of Parquet".into()))?,
            )
        }
        (FieldKind::Decimal { precision, scale }, Values::Numeric(values)) => {
            let all = decimals(values, validity, field, (precision, scale))?;
            // All have no more digits than the column.
            match decimal_bytes(precision) {
                4 => into.put::<Int32Type>(&all.into_iter().map(|value| value as i32).collect::<Vec<_>>()),
                8 => into.put::<Int64Type>(&all.into_iter().map(|value| value as i64).collect::<Vec<_>>()),
                _ => {
                    let bytes =
                        all.into_iter().map(|value| FixedLenByteArray::from(value.to_be_bytes().to_vec()));
                    into.put::<FixedLenByteArrayType>(&bytes.collect::<Vec<_>>())
                }
            }
        }
        (FieldKind::Uuid, Values::Fixed(values)) => {
            let each = |row| FixedLenByteArray::from(values.get(row).to_vec());
            into.put::<FixedLenByteArrayType>(&chosen(values.len(), validity, each))
        }
        (FieldKind::Integer { bits: 16 | 32 }, Values::Int64(values)) => {
            let narrow =
                of(values, validity, i32::try_from).into_iter().collect::<std::result::Result<Vec<i32>, _>>();
            into.put::<Int32Type>(&narrow.map_err(|_| {
                Error::Unsupported(format!("column {} has an integer of more than 32 bits", field.name))
            })?)
        }
        (
            FieldKind::Integer { .. } | FieldKind::Time(_) | FieldKind::Timestamp { .. },
            Values::Int64(values),
        ) => into.put::<Int64Type>(&of(values, validity, |value| value)),
        (FieldKind::Real { bits: 32 }, Values::Float64(values)) => {
            into.put::<FloatType>(&of(values, validity, |value| value as f32))
        }
        (FieldKind::Real { .. }, Values::Float64(values)) => {
            into.put::<DoubleType>(&of(values, validity, |value| value))
        }
        (FieldKind::Text | FieldKind::Bytes | FieldKind::Json, Values::Bytes(views)) => {
            into.put::<ByteArrayType>(&byte_arrays(views, validity))
        }
        _ => Err(Error::Unsupported(format!("{:?} is not written as {:?}", column.logical, field.kind))),
    }
}

/// Where values go, and which entries have one.
struct Into<'a, 'w> {
    writer: &'a mut SerializedColumnWriter<'w>,
    definition: &'a [i16],
    repetition: Option<&'a [i16]>,
}

impl Into<'_, '_> {
    fn put<T: DataType>(&mut self, values: &[T::T]) -> Result<()> {
        self.writer.typed::<T>().write_batch(values, Some(self.definition), self.repetition)?;
        Ok(())
    }
}

/// What is made of each row that is not NULL.
fn chosen<W>(rows: usize, validity: Option<&Bitmap>, make: impl Fn(usize) -> W) -> Vec<W> {
    match validity {
        None => (0..rows).map(make).collect(),
        Some(validity) => validity.ones().map(make).collect(),
    }
}

/// What is made of each value that is not NULL.
fn of<V: Copy + Default, W>(values: &[V], validity: Option<&Bitmap>, make: impl Fn(V) -> W) -> Vec<W> {
    chosen(values.len(), validity, |row| make(values.get(row).copied().unwrap_or_default()))
}

/// Decimals at the scale of their column.
fn decimals(
    values: &NumericValues,
    validity: Option<&Bitmap>,
    field: &Field,
    (precision, scale): (u16, u16),
) -> Result<Vec<i128>> {
    let refused = || {
        Error::Unsupported(format!(
            "column {} has a value that no decimal({precision},{scale}) is",
            field.name
        ))
    };
    let each = |row| values.as_decimal(row, (precision, scale));
    chosen(values.len(), validity, each).into_iter().collect::<Option<_>>().ok_or_else(refused)
}

/// Byte strings that are not NULL. They share one piece of memory.
fn byte_arrays(views: &ByteViews, validity: Option<&Bitmap>) -> Vec<ByteArray> {
    let mut all = Vec::new();
    let rows = chosen(views.len(), validity, |row| row);
    let ends: Vec<usize> = rows
        .into_iter()
        .map(|row| {
            all.extend_from_slice(views.get(row));
            all.len()
        })
        .collect();
    let all = Bytes::from(all);
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(&ends).map(|(start, &end)| ByteArray::from(all.slice(start..end))).collect()
}
