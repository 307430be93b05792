//! The value of a key, as text (`->>`) or as a document (`->`).

use vector::Result;

use super::text::write_item;
use super::{ARRAY, Container, FALSE, HAS_END, Item, NULL, NUMERIC, SCALAR, STRING, TRUE, damaged};

/// `value ->> key`. False for NULL.
pub fn field_text(value: &[u8], key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
    match Container::root(value)?.field(key)? {
        None | Some(Item::Null) => Ok(false),
        Some(Item::String(text)) => {
            out.extend_from_slice(text);
            Ok(true)
        }
        Some(item) => {
            write_item(&item, out)?;
            Ok(true)
        }
    }
}

/// `value -> key`. False for NULL.
pub fn field(value: &[u8], key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
    let Some(item) = Container::root(value)?.field(key)? else { return Ok(false) };
    let mut scalar = |kind: u32, bytes: &[u8]| {
        let length = u32::try_from(bytes.len()).unwrap_or(0);
        out.extend_from_slice(&(ARRAY | SCALAR | 1).to_le_bytes());
        // The first child's entry always holds its end, which is its length.
        out.extend_from_slice(&(kind | length | HAS_END).to_le_bytes());
        out.extend_from_slice(bytes);
    };
    match item {
        Item::Null => scalar(NULL, &[]),
        Item::Bool(truth) => scalar(if truth { TRUE } else { FALSE }, &[]),
        Item::String(text) => scalar(STRING, text),
        Item::Numeric(number) => {
            let mut bytes = u32::try_from(number.len() + 4)
                .map_err(|_| damaged())?
                .wrapping_shl(2)
                .to_le_bytes()
                .to_vec();
            bytes.extend_from_slice(number);
            scalar(NUMERIC, &bytes);
        }
        Item::Container(container) => {
            let mut children = container.children();
            let mut end = container.start + 4;
            while let Some(child) = children.next_child()? {
                end = child.end;
            }
            out.extend_from_slice(value.get(container.start..end).ok_or_else(damaged)?);
        }
    }
    Ok(true)
}
