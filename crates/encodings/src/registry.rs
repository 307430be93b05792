//! From a stored tag to the node that reads it: the one place that lists every reader.
//!
//! A values node is the encoding's tag and its payload. The payload reaches to the end of the reader that the
//! node is given, as a parent writes the length of every child. This file decides which tags a physical type
//! allows. All others are corrupt.

use vector::{Error, PhysicalType, Result};

use crate::cursor::Reader;
use crate::encoding::{Node, NodeContext};
use crate::options::EncodingId;
use crate::{constant, dictionary, floats, integers, numerics, plain, runs, strings};

/// Opens the values node that fills the rest of `reader`.
pub(crate) fn open_values<'a>(
    reader: &mut Reader<'a>,
    context: &NodeContext<'a>,
) -> Result<Box<dyn Node + 'a>> {
    let id = EncodingId::from_tag(reader.u8()?)?;
    match (context.physical(), id) {
        (_, EncodingId::Dictionary) => dictionary::open(reader, context),
        (PhysicalType::Int16 | PhysicalType::Int32 | PhysicalType::Int64, _) => {
            integers::open(id, reader, context)
        }
        (_, EncodingId::Constant) => constant::open(reader, context),
        (PhysicalType::Bytes | PhysicalType::Fixed(_), _) => strings::open(id, reader, context),
        (PhysicalType::Numeric, EncodingId::Numeric) => numerics::open(reader, context),
        (PhysicalType::Bool | PhysicalType::Float32 | PhysicalType::Float64, EncodingId::RunLength) => {
            runs::open(reader, context)
        }
        (PhysicalType::Float32 | PhysicalType::Float64, EncodingId::Alp) => floats::open_alp(reader, context),
        (PhysicalType::Float32 | PhysicalType::Float64, EncodingId::AlpRd) => {
            floats::open_alp_rd(reader, context)
        }
        (PhysicalType::Bool | PhysicalType::Float32 | PhysicalType::Float64, EncodingId::Plain) => {
            plain::open(reader, context)
        }
        (physical, _) => Err(unknown(id, physical)),
    }
}

/// The error of a tag that the physical type does not allow.
pub(crate) fn unknown(id: EncodingId, physical: PhysicalType) -> Error {
    Error::corrupt(format!("encoding {} for {physical:?} values", id.name()))
}
