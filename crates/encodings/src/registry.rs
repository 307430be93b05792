//! From a stored tag to the node that reads it: the one place that lists every reader.
//!
//! A values node is the encoding's tag and its payload. The payload reaches to the end of the reader that the
//! node is given, as a parent writes the length of every child. This file decides which tags a physical type
//! allows. All others are corrupt.

use std::ops::Deref;

use vector::{Error, PhysicalType, Result};

use crate::cursor::Reader;
use crate::encoding::{Node, NodeContext};
use crate::options::EncodingId;
use crate::{constant, dictionary, floats, integers, numerics, plain, runs, strings};

/// Nodes of every kind, held by value: rows that are looked up one by one open a node for each value.
macro_rules! open_nodes {
    ($($kind:ident($node:ty),)*) => {
        /// A parsed values node.
        pub(crate) enum OpenNode<'a> {
            $($kind($node),)*
        }

        impl<'a> Deref for OpenNode<'a> {
            type Target = dyn Node + 'a;

            #[inline]
            fn deref(&self) -> &Self::Target {
                match self {
                    $(Self::$kind(node) => node,)*
                }
            }
        }

        $(impl<'a> From<$node> for OpenNode<'a> {
            fn from(node: $node) -> Self {
                Self::$kind(node)
            }
        })*
    };
}

open_nodes! {
    Alp(floats::AlpNode<'a>),
    AlpRd(floats::AlpRdNode<'a>),
    Blocks(strings::BlocksNode<'a>),
    Bytes(strings::PlainBytesNode<'a>),
    Constant(constant::ConstantNode<'a>),
    Dictionary(dictionary::DictionaryNode<'a>),
    Digits(strings::DigitsNode<'a>),
    Fsst(strings::FsstNode<'a>),
    Hex(strings::HexNode<'a>),
    Integers(integers::IntegerNode<'a>),
    Numeric(numerics::NumericNode<'a>),
    Plain(plain::PlainNode<'a>),
    Runs(runs::RunsNode<'a>),
    Template(strings::TemplateNode<'a>),
    UuidText(strings::UuidNode<'a>),
}

/// Opens the values node that fills the rest of `reader`.
pub(crate) fn open_values<'a>(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<OpenNode<'a>> {
    let id = EncodingId::from_tag(reader.u8()?)?;
    Ok(match (context.physical(), id) {
        (_, EncodingId::Dictionary) => dictionary::open(reader, context)?.into(),
        (PhysicalType::Int16 | PhysicalType::Int32 | PhysicalType::Int64, _) => {
            integers::open(id, reader, context)?.into()
        }
        (_, EncodingId::Constant) => constant::open(reader, context)?.into(),
        (PhysicalType::Bytes | PhysicalType::Fixed(_), _) => strings::open(id, reader, context)?,
        (PhysicalType::Numeric, EncodingId::Numeric) => numerics::open(reader, context)?.into(),
        (PhysicalType::Bool | PhysicalType::Float32 | PhysicalType::Float64, EncodingId::RunLength) => {
            runs::open(reader, context)?.into()
        }
        (PhysicalType::Float32 | PhysicalType::Float64, EncodingId::Alp) => {
            floats::open_alp(reader, context)?.into()
        }
        (PhysicalType::Float32 | PhysicalType::Float64, EncodingId::AlpRd) => {
            floats::open_alp_rd(reader, context)?.into()
        }
        (PhysicalType::Bool | PhysicalType::Float32 | PhysicalType::Float64, EncodingId::Plain) => {
            plain::open(reader, context)?.into()
        }
        (physical, _) => return Err(unknown(id, physical)),
    })
}

/// The error of a tag that the physical type does not allow.
pub(crate) fn unknown(id: EncodingId, physical: PhysicalType) -> Error {
    Error::corrupt(format!("encoding {} for {physical:?} values", id.name()))
}
