//! Integer nodes store integers, dates, timestamps, dictionary codes, lengths, positions and unscaled
//! decimals.
//!
//! An integer node is a tag and a payload that reaches to the end of its reader. Its parent knows the number
//! of rows. Values are 64-bit signed while they are encoded. A reader asks for the width that it wants
//! ([`Lane`]) and gets the values wrapped to it. So a parent checks the limits that it needs (code below
//! dictionary size, sum of lengths).
//!
//! | tag | payload |
//! | --- | --- |
//! | plain | width in bytes (1, 2, 4, 8), then the values |
//! | constant | value (zigzag) |
//! | sequence | first value, step (zigzag) |
//! | run_length | see `run_length.rs` |
//! | bitpacked | see `bitpacked.rs`, `block.rs` |
//! | delta | see `delta.rs` |
//! | levels | see `levels.rs` |
//! | multiple | see `multiple.rs` |
//! | periodic | see `periodic.rs` |

mod bitpacked;
mod block;
mod column;
mod delta;
mod filter;
mod levels;
mod multiple;
mod node;
mod periodic;
mod plain;
mod run_length;

pub(crate) use column::{IntegerNode, Integers, open};
pub use node::{IntNode, Lane};

use crate::cursor::Writer;
use crate::encoding::MAX_DEPTH;
use crate::options::EncodingId;

/// The depth that is left to an integer node which is a child of a column's values node.
pub const CHILD_DEPTH: u8 = MAX_DEPTH - 1;

/// Appends an integer node with its length before it.
pub fn write_child(values: &[i64], depth: u8, out: &mut Writer) {
    let mut child = Writer::new();
    write_node(values, depth, None, &mut child);
    out.child(child.as_slice());
}

/// Differences must save one byte in this many against bit-packing, because reading a single row then costs a
/// block.
const DELTA_GAIN: usize = 8;

/// A factor must save one byte in this many.
const MULTIPLE_GAIN: usize = 8;

/// A pattern must take less than one byte for this many values. Otherwise packing them is as good.
const PERIODIC_GAIN: usize = 16;

/// Levels must save one byte in this many, because counting bits is slower than unpacking.
const LEVELS_GAIN: usize = 8;

/// Runs that are shorter than this on average are not considered.
const MIN_RUN: usize = 4;

/// Appends an integer node with the cheapest encoding for these values, or with the forced one if it can hold
/// them. `depth` levels of children are allowed below it.
pub fn write_node(values: &[i64], depth: u8, force: Option<EncodingId>, out: &mut Writer) {
    let wanted = |id| force.is_none_or(|force| force == id);
    if force == Some(EncodingId::Plain) || values.is_empty() {
        return plain::write(values, out);
    }
    if wanted(EncodingId::Constant) || wanted(EncodingId::Sequence) {
        match sequence(values) {
            Some((first, 0)) if wanted(EncodingId::Constant) => {
                out.u8(EncodingId::Constant.tag());
                return out.zigzag(first);
            }
            Some((first, step)) if wanted(EncodingId::Sequence) => {
                out.u8(EncodingId::Sequence.tag());
                out.zigzag(first);
                return out.zigzag(step);
            }
            _ => {}
        }
    }
    if (force.is_none() || force == Some(EncodingId::Periodic))
        && let (Some(depth), Some(pattern)) =
            (depth.checked_sub(1), periodic::period(values).and_then(|period| values.get(..period)))
    {
        let mut node = Writer::new();
        node.u8(EncodingId::Periodic.tag());
        node.count(pattern.len());
        write_node(pattern, depth, None, &mut node);
        if force.is_some() || node.len() * PERIODIC_GAIN < values.len() {
            return out.bytes(node.as_slice());
        }
    }
    if (force.is_none() || force == Some(EncodingId::Multiple))
        && let (Some(depth), Some((base, factor))) = (depth.checked_sub(1), multiple::factor(values))
    {
        let mut node = Writer::new();
        multiple::write_head(base, factor, &mut node);
        write_node(&multiple::divided(values, base, factor), depth, None, &mut node);
        let start = out.len();
        if force.is_none() {
            write_whole(values, depth, None, out);
        }
        let direct = out.len() - start;
        if force.is_some() || node.len() + direct / MULTIPLE_GAIN < direct {
            out.truncate(start);
            out.bytes(node.as_slice());
        }
        return;
    }
    write_whole(values, depth, force, out);
}

/// Appends an integer node that is none of the special cases.
fn write_whole(values: &[i64], depth: u8, force: Option<EncodingId>, out: &mut Writer) {
    let wanted = |id| force.is_none_or(|force| force == id);
    if force == Some(EncodingId::RunLength)
        && let (Some(depth), Some((ends, runs))) =
            (depth.checked_sub(1), run_length::split(values, usize::MAX))
    {
        return run_length::write(&ends, &runs, depth, out);
    }
    if force == Some(EncodingId::Delta) {
        let (deltas, plans, _) = delta::plan(values);
        return delta::write(values, &deltas, &plans, out);
    }
    let (packed, packed_bytes) = bitpacked::plan(values);
    if force == Some(EncodingId::BitPacked) {
        return bitpacked::write(values, &packed, out);
    }
    let (deltas, plans, delta_bytes) = delta::plan(values);
    let is_delta = delta_bytes + packed_bytes / DELTA_GAIN < packed_bytes;
    let best = if is_delta { delta_bytes } else { packed_bytes };
    if wanted(EncodingId::Levels)
        && let Some(bytes) = levels::bytes(values)
        && (force.is_some() || bytes + best / LEVELS_GAIN < best)
    {
        return levels::write(values, out);
    }
    let start = out.len();
    if let (Some(depth), Some((ends, runs))) =
        (depth.checked_sub(1), run_length::split(values, values.len() / MIN_RUN + 2))
    {
        run_length::write(&ends, &runs, depth, out);
        if out.len() - start <= best {
            return;
        }
        out.truncate(start);
    }
    // Packing to 64 bits is like plain with more work. With fewer bits it always saves something.
    if best >= values.len() && plain::bytes(values) <= best {
        return plain::write(values, out);
    }
    if is_delta { delta::write(values, &deltas, &plans, out) } else { bitpacked::write(values, &packed, out) }
}

/// Appends a bit-packed (or plain) node, for values that are known to be noise, as the low bits of floats.
pub fn write_noise(values: &[i64], out: &mut Writer) {
    let (packed, packed_bytes) = bitpacked::plan(values);
    if plain::bytes(values) <= packed_bytes {
        plain::write(values, out)
    } else {
        bitpacked::write(values, &packed, out)
    }
}

/// First value and step of an arithmetic progression.
fn sequence(values: &[i64]) -> Option<(i64, i64)> {
    let (first, step) = match values {
        [] => return None,
        [first] => (*first, 0),
        [first, second, ..] => (*first, second.wrapping_sub(*first)),
    };
    values
        .windows(2)
        .all(|pair| matches!(pair, [a, b] if b.wrapping_sub(*a) == step))
        .then_some((first, step))
}
