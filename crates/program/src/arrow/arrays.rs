//! Values of a column as an array of Arrow.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, BinaryType, ByteArrayType, Date32Type, Decimal128Type, Float32Type, Float64Type,
    Int16Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType, UInt64Type, Utf8Type,
};
use arrow_array::{ArrayRef, BooleanArray, FixedSizeBinaryArray, GenericByteArray, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::DataType;
use files::column::Column;
use files::{Error, Result, text};
use vector::calendar::SINCE_1970;
use vector::{Bitmap, Values, Vector, unsigned};

use crate::source::in_column;

const DAY_MICROS: i64 = 86_400_000_000;

/// The values of a flat vector as an array of the type that its column has (`fields::of`).
///
/// # Errors
/// `Unsupported` for values that the type has not: infinite dates and times, NaN and infinities of decimals,
/// text that is not UTF-8.
pub fn of(values: Vector, column: &Column, data_type: &DataType) -> Result<ArrayRef> {
    let rows = values.len();
    let nulls = values.validity.as_ref().map(|validity| NullBuffer::new(bits(validity)));
    let infinite = || refused(column, "an infinity");
    if let (DataType::Utf8, false) = (data_type, matches!(values.values, Values::Bytes(_))) {
        return words(&values, column, nulls);
    }
    match (data_type, values.values) {
        (DataType::Boolean, Values::Bool(values)) => Ok(Arc::new(BooleanArray::new(bits(&values), nulls))),
        (DataType::Int16, Values::Int16(values)) => primitive::<Int16Type>(values, nulls, data_type),
        (DataType::Int32, Values::Int32(values)) => primitive::<Int32Type>(values, nulls, data_type),
        (DataType::Int64, Values::Int64(values)) => primitive::<Int64Type>(values, nulls, data_type),
        (DataType::UInt64, Values::Int64(held)) => {
            primitive::<UInt64Type>(held.into_iter().map(unsigned).collect(), nulls, data_type)
        }
        (DataType::Float32, Values::Float32(values)) => primitive::<Float32Type>(values, nulls, data_type),
        (DataType::Float64, Values::Float64(values)) => primitive::<Float64Type>(values, nulls, data_type),
        (DataType::Date32, Values::Int32(days)) => {
            let since_1970 = |day: i32| match day {
                i32::MIN | i32::MAX => None,
                day => i32::try_from(i64::from(day) + SINCE_1970).ok(),
            };
            let days = each(days, nulls.as_ref(), since_1970).ok_or_else(infinite)?;
            primitive::<Date32Type>(days, nulls, data_type)
        }
        (DataType::Time64(_), Values::Int64(micros)) => {
            let of_day = |micros: i64| (0..DAY_MICROS).contains(&micros).then_some(micros);
            let end = || refused(column, "the time 24:00:00");
            let micros = each(micros, nulls.as_ref(), of_day).ok_or_else(end)?;
            primitive::<Time64MicrosecondType>(micros, nulls, data_type)
        }
        (DataType::Timestamp(..), Values::Int64(micros)) => {
            let since_1970 = |micros: i64| match micros {
                i64::MIN | i64::MAX => None,
                micros => micros.checked_add(SINCE_1970 * DAY_MICROS),
            };
            let micros = each(micros, nulls.as_ref(), since_1970).ok_or_else(infinite)?;
            primitive::<TimestampMicrosecondType>(micros, nulls, data_type)
        }
        (DataType::Decimal128(precision, scale), Values::Numeric(values)) => {
            let digits = (u16::from(*precision), u16::try_from(*scale).unwrap_or(0));
            let other =
                || refused(column, &format!("a value that no decimal({precision},{scale}) is, as NaN"));
            let decimal = |row| values.as_decimal(row, digits);
            let unscaled = each(0..rows, nulls.as_ref(), decimal).ok_or_else(other)?;
            primitive::<Decimal128Type>(unscaled, nulls, data_type)
        }
        (DataType::FixedSizeBinary(width), Values::Fixed(values)) => {
            let array = FixedSizeBinaryArray::try_new(*width, Buffer::from_vec(values.bytes), nulls);
            Ok(Arc::new(array.map_err(super::failed)?))
        }
        (DataType::Utf8, Values::Bytes(views)) => {
            byte_array::<Utf8Type>(column, nulls, (0..rows).map(|row| views.get(row)))
        }
        (DataType::Binary, Values::Bytes(views)) => {
            byte_array::<BinaryType>(column, nulls, (0..rows).map(|row| views.get(row)))
        }
        _ => Err(refused(column, &format!("{} in the place of {data_type}", column.declared))),
    }
}

fn refused(column: &Column, what: &str) -> Error {
    Error::Unsupported(format!("column {} has {what}, which Arrow has not", column.name))
}

fn bits(bitmap: &Bitmap) -> BooleanBuffer {
    let words = bitmap.words().iter().map(|word| word.to_le()).collect::<Vec<u64>>();
    BooleanBuffer::new(Buffer::from_vec(words), 0, bitmap.len())
}

fn primitive<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let array = PrimitiveArray::<T>::try_new(values.into(), nulls).map_err(super::failed)?;
    Ok(Arc::new(array.with_data_type(data_type.clone())))
}

/// What is made of each value; of those that are NULL, any. None where there is nothing to be made of one.
fn each<V, W: Default>(
    values: impl IntoIterator<Item = V>,
    nulls: Option<&NullBuffer>,
    make: impl Fn(V) -> Option<W>,
) -> Option<Vec<W>> {
    let is_null = |row| nulls.is_some_and(|nulls| nulls.is_null(row));
    let made = |(row, value)| if is_null(row) { Some(W::default()) } else { make(value) };
    values.into_iter().enumerate().map(made).collect()
}

/// Values of a type that Arrow has not, as text.
fn words(values: &Vector, column: &Column, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let (mut all, mut ends) = (String::new(), Vec::with_capacity(values.len()));
    for row in 0..values.len() {
        if values.is_valid(row) {
            text::append(values, row, &column.declared, &mut all)
                .map_err(|error| in_column(column, error))?;
        }
        ends.push(all.len());
    }
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let each = starts.zip(&ends).map(|(start, end)| all.as_bytes().get(start..*end).unwrap_or_default());
    byte_array::<Utf8Type>(column, nulls, each)
}

fn byte_array<'a, T: ByteArrayType<Offset = i32>>(
    column: &Column,
    nulls: Option<NullBuffer>,
    values: impl Iterator<Item = &'a [u8]>,
) -> Result<ArrayRef> {
    let (mut all, mut offsets) = (Vec::new(), vec![0]);
    for (row, value) in values.enumerate() {
        // What lies where a value is NULL may be anything.
        if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
            all.extend_from_slice(value);
        }
        let end = i32::try_from(all.len()).map_err(|_| refused(column, "a value past 2 GiB"))?;
        offsets.push(end);
    }
    let array =
        GenericByteArray::<T>::try_new(OffsetBuffer::new(offsets.into()), Buffer::from_vec(all), nulls);
    // Of what is made here, nothing else can be wrong.
    Ok(Arc::new(array.map_err(|_| refused(column, "text that is not UTF-8"))?))
}
