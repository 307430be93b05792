//! Encodings of byte strings: text, bytes, uuids and other values of a fixed width.

mod plain;

use vector::Result;

use crate::cursor::Reader;
use crate::encoding::{Encoding, Node, NodeContext};
use crate::options::EncodingId;
use crate::registry::unknown;

/// Every encoding that may hold byte strings.
pub(crate) fn candidates() -> Vec<&'static dyn Encoding> {
    vec![&plain::PlainBytes]
}

/// The encoding that holds any byte strings.
pub(crate) fn fallback() -> &'static dyn Encoding {
    &plain::PlainBytes
}

/// Opens a values node of byte strings.
pub(crate) fn open<'a>(
    id: EncodingId,
    reader: &mut Reader<'a>,
    context: &NodeContext<'a>,
) -> Result<Box<dyn Node + 'a>> {
    match id {
        EncodingId::Plain => plain::open(reader, context),
        _ => Err(unknown(id, context.physical())),
    }
}
