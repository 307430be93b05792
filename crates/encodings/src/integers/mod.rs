//! Integer nodes: what integers, dates, timestamps, dictionary codes, lengths, positions and unscaled decimals are stored in.
//!
//! An integer node is a tag and a payload that reaches to the end of its reader; its parent knows the number of rows. Values are 64-bit signed
//! while encoding; a reader asks for the width it wants ([`Lane`]) and gets them wrapped to it, so a parent checks whatever limits
//! it needs (code below dictionary size, sum of lengths).
//!
//! | tag | payload |
//! | --- | --- |
//! | plain | width in bytes (1, 2, 4, 8), then the values |
//! | constant | value (zigzag) |

mod column;
mod node;
mod plain;

pub(crate) use column::{Integers, open};
pub use node::{IntNode, Lane};

use crate::cursor::Writer;
use crate::encoding::MAX_DEPTH;
use crate::options::EncodingId;

/// Depth left to an integer node that is the child of a column's values node.
pub const CHILD_DEPTH: u8 = MAX_DEPTH - 1;

/// Appends an integer node with its length before it.
pub fn write_child(values: &[i64], depth: u8, out: &mut Writer) {
    let mut child = Writer::new();
    write_node(values, depth, None, &mut child);
    out.child(child.as_slice());
}

/// Appends an integer node: the cheapest encoding for these values, or the forced one where it can hold them.
/// `depth` levels of children are allowed below it.
pub fn write_node(values: &[i64], _depth: u8, force: Option<EncodingId>, out: &mut Writer) {
    if force.is_none_or(|force| force == EncodingId::Constant)
        && let Some((first, rest)) = values.split_first()
        && rest.iter().all(|value| value == first)
    {
        out.u8(EncodingId::Constant.tag());
        out.zigzag(*first);
        return;
    }
    plain::write(values, out);
}
