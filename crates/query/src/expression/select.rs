//! The rows for which a condition is TRUE. Called by `Evaluator::select` and `select_value`.
//!
//! The parts of a conjunction are computed one after the other. Once few rows are left, the later parts see
//! only these. A row is out as soon as one part is not TRUE for it, whatever the other parts give. The server
//! treats the conditions of a filter in the same way.

use vector::{Bitmap, Values};

use super::logic::{Truth, truth_where};
use super::node::{Kind, Node};
use super::value::Value;
use crate::kernels::words::{combine, positions};
use crate::{Batch, Result};

/// Rows for which the node is TRUE, ascending; None when it is for all.
pub(super) fn rows(node: &mut Node, batch: &Batch) -> Result<Option<Vec<u32>>> {
    Ok(chosen(node, batch)?.and_then(but_all))
}

/// The same, with each part computed for all rows that its AND or OR asks for it.
pub(super) fn rows_of_value(node: &mut Node, batch: &Batch) -> Result<Option<Vec<u32>>> {
    Ok(but_all(yes(&node.evaluate(batch)?, batch.rows)?))
}

/// The positions of the bits that are set; None for all.
fn but_all(bits: Bitmap) -> Option<Vec<u32>> {
    (bits.count_zeros() > 0).then(|| positions(bits.words(), bits.len()))
}

/// The same as bits.
fn chosen(node: &mut Node, batch: &Batch) -> Result<Option<Bitmap>> {
    let parts = match &mut node.kind {
        Kind::And(parts) => parts,
        Kind::Encoded(encoded) if !encoded.applies(batch) => return chosen(encoded.node_mut(), batch),
        _ => return yes(&node.evaluate(batch)?, batch.rows).map(Some),
    };
    let mut so_far: Option<Bitmap> = None;
    for part in parts {
        so_far = match so_far {
            None => chosen(part, batch)?,
            Some(bits) => {
                let left = bits.count_ones();
                if left == 0 {
                    return Ok(Some(bits));
                }
                let truth = truth_where(part, batch, &bits, left)?;
                Some(combine(&bits, &truth.yes, |a, b| a & b))
            }
        };
    }
    Ok(so_far)
}

/// The rows where a boolean value is TRUE.
fn yes(value: &Value, rows: usize) -> Result<Bitmap> {
    Ok(match (&value.vector.values, &value.vector.validity) {
        (Values::Bool(bits), None) => bits.clone(),
        (Values::Bool(bits), Some(valid)) => combine(bits, valid, |bits, valid| bits & valid),
        _ => Truth::of(value, rows)?.yes,
    })
}
