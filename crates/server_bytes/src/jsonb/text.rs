//! Documents as text, as the server's output function writes them.

use vector::Result;

use super::{Children, Container, Item, damaged};
use crate::numeric;

/// Appends an item as the server's output function writes it. There is no recursion, because documents may be
/// nested thousands of levels deep.
pub(super) fn write_item(item: &Item<'_>, out: &mut Vec<u8>) -> Result<()> {
    let mut open: Vec<Open<'_>> = Vec::new();
    open.extend(write_scalar(item, out)?);
    while let Some(inner) = open.last_mut() {
        let next = inner.next(out)?;
        match next {
            None => {
                open.pop();
            }
            Some(item) => open.extend(write_scalar(&item, out)?),
        }
    }
    Ok(())
}

/// Writes a scalar, or opens a container.
fn write_scalar<'a>(item: &Item<'a>, out: &mut Vec<u8>) -> Result<Option<Open<'a>>> {
    match item {
        Item::Null => out.extend_from_slice(b"null"),
        Item::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Item::String(text) => write_string(text, out),
        Item::Numeric(number) => numeric::write_text(number, out)?,
        Item::Container(container) => return Open::begin(*container, out).map(Some),
    }
    Ok(None)
}

/// A container that is being written.
struct Open<'a> {
    container: Container<'a>,
    /// An array's elements or an object's keys.
    children: Children<'a>,
    /// An object's values.
    values: Children<'a>,
    /// Elements or pairs that were begun.
    begun: usize,
}

impl<'a> Open<'a> {
    fn begin(container: Container<'a>, out: &mut Vec<u8>) -> Result<Self> {
        let values = if container.is_object() { container.values()? } else { container.children() };
        out.push(if container.is_object() { b'{' } else { b'[' });
        Ok(Self { container, children: container.children(), values, begun: 0 })
    }

    /// Writes what comes before the next element or value and returns that element or value. If there is
    /// none, it closes the container.
    fn next(&mut self, out: &mut Vec<u8>) -> Result<Option<Item<'a>>> {
        if self.begun == self.container.count {
            out.push(if self.container.is_object() { b'}' } else { b']' });
            return Ok(None);
        }
        if self.begun > 0 {
            out.extend_from_slice(b", ");
        }
        self.begun += 1;
        let child = self.children.next()?.ok_or_else(damaged)?;
        if !self.container.is_object() {
            return Ok(Some(child));
        }
        write_scalar(&child, out)?;
        out.extend_from_slice(b": ");
        self.values.next()?.ok_or_else(damaged).map(Some)
    }
}

fn write_string(text: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for &byte in text {
        let short = match byte {
            b'\x08' => b'b',
            b'\x0C' => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            b'"' | b'\\' => byte,
            0..b' ' => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX.get(usize::from(byte >> 4)).copied().unwrap_or(b'0'));
                out.push(HEX.get(usize::from(byte & 15)).copied().unwrap_or(b'0'));
                continue;
            }
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
    out.push(b'"');
}
