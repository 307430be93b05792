//! What rows have in a column that is younger than they are.
//!
//! A server that adds a column with a default does not write older stripes anew. The file says the value, in
//! the bytes that the server has it in: integers and reals with their least byte first, numerics as
//! `server_bytes::numeric` has them, text and others without a length word.

use server_bytes::numeric;
use vector::{LogicalType, Vector, VectorBuilder};

use super::Column;

/// The number of a column, and the bytes of the value.
pub type ColumnDefault = (u32, Vec<u8>);

/// The value as a vector of one row. None: the bytes are none of the column's type.
pub fn value(column: &Column, bytes: &[u8]) -> Option<Vector> {
    fn first<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
        bytes.first_chunk::<N>().copied()
    }
    let mut builder = VectorBuilder::new(column.logical);
    let is_taken = match column.logical {
        LogicalType::Bool => builder.push_bool(first::<1>(bytes)? != [0]),
        LogicalType::Int16 => builder.push_i16(i16::from_le_bytes(first(bytes)?)),
        LogicalType::Int32 | LogicalType::Date => builder.push_i32(i32::from_le_bytes(first(bytes)?)),
        LogicalType::Int64 | LogicalType::Timestamp => builder.push_i64(i64::from_le_bytes(first(bytes)?)),
        LogicalType::UInt64 => builder.push_i64(vector::held(u64::from_le_bytes(first(bytes)?))),
        LogicalType::Float32 => builder.push_f32(f32::from_le_bytes(first(bytes)?)),
        LogicalType::Float64 => builder.push_f64(f64::from_le_bytes(first(bytes)?)),
        LogicalType::Numeric => match numeric::decode(bytes) {
            Some(decimal) => builder.push_numeric(decimal.unscaled, decimal.scale, decimal.display),
            None => numeric::is_sound(bytes) && builder.push_numeric_side(bytes),
        },
        LogicalType::Uuid => builder.push_bytes(&first::<16>(bytes)?),
        LogicalType::FixedBytes(width) => builder.push_bytes(bytes.get(..usize::from(width))?),
        // Names have a fixed width, and end before it.
        LogicalType::Text if column.declared == "name" => {
            builder.push_bytes(bytes.split(|&byte| byte == 0).next()?)
        }
        LogicalType::Text | LogicalType::Bytes => builder.push_bytes(bytes),
    };
    is_taken.then(|| builder.finish(&numeric::to_side))
}
