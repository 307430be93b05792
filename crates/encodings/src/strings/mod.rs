//! Encodings of byte strings: text, bytes, uuids and other values of a fixed width.
//!
//! | file | owns |
//! | --- | --- |
//! | `plain.rs` | values end to end, the fallback |
//! | `dictionary.rs`, `intern.rs` | distinct values and codes |
//! | `hex.rs` | hexadecimal and uuid text |
//! | `digits.rs` | a prefix and a decimal number |
//! | `fsst.rs`, `blocks.rs` | free text |
//! | `template/` | shredded JSON |
//! | `lengths.rs`, `views.rs`, `leaf.rs`, `profile.rs` | what they share: places, views, prepared conditions, a look at the column |

mod blocks;
mod dictionary;
mod digits;
mod fsst;
mod hex;
mod intern;
mod leaf;
mod lengths;
mod plain;
mod profile;
pub(crate) mod template;
mod views;

pub(crate) use blocks::BlocksNode;
pub(crate) use digits::DigitsNode;
pub(crate) use fsst::FsstNode;
pub(crate) use hex::{HexNode, UuidNode};
pub(crate) use plain::PlainBytesNode;
pub(crate) use template::TemplateNode;
use vector::Result;

use crate::cursor::Reader;
use crate::encoding::{Encoding, NodeContext};
use crate::options::{Codec, EncodingId};
use crate::registry::{OpenNode, unknown};

/// Every encoding that may hold byte strings.
pub(crate) fn candidates() -> Vec<&'static dyn Encoding> {
    vec![
        &plain::PlainBytes,
        &dictionary::StringDictionary,
        &hex::Hex,
        &hex::UuidText,
        &digits::Digits,
        &fsst::Fsst,
        &blocks::Blocks,
        &template::Template,
    ]
}

/// The encodings for byte strings that stand alone in one node (dictionary entries). A codec compresses plain
/// text better than FSST codes.
pub(crate) fn candidates_alone(codec: Codec) -> Vec<&'static dyn Encoding> {
    let mut candidates: Vec<&'static dyn Encoding> =
        vec![&plain::PlainBytes, &digits::Digits, &hex::Hex, &hex::UuidText];
    if codec == Codec::None {
        candidates.push(&fsst::Fsst);
    }
    candidates
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
) -> Result<OpenNode<'a>> {
    Ok(match id {
        EncodingId::Plain => plain::open(reader, context)?.into(),
        EncodingId::Hex => hex::open(reader, context)?.into(),
        EncodingId::UuidText => hex::open_uuid(reader, context)?.into(),
        EncodingId::Digits => digits::open(reader, context)?.into(),
        EncodingId::Fsst => fsst::open(reader, context)?.into(),
        EncodingId::Blocks => blocks::open(reader, context)?.into(),
        EncodingId::Template => template::open(reader, context)?.into(),
        _ => return Err(unknown(id, context.physical())),
    })
}
