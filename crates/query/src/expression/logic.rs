//! Three-valued logic, word by word.
//!
//! Called by nodes. A part that may fail or costs much sees only the rows that the parts before it left
//! undecided. Cheap parts are computed for all rows, because to gather the undecided rows would cost more.

use std::sync::Arc;

use vector::{Bitmap, LogicalType, Values, Vector};

use super::node::Node;
use super::value::{Value, repeated};
use crate::kernels::words::{combine, not as inverted, positions};
use crate::{Batch, Error, Result};

/// Which rows are TRUE and which FALSE; the others are NULL.
pub(super) struct Truth {
    pub yes: Bitmap,
    pub no: Bitmap,
}

impl Truth {
    fn filled(rows: usize, yes: bool) -> Self {
        Self { yes: Bitmap::filled(rows, yes), no: Bitmap::filled(rows, !yes) }
    }

    /// Of a boolean value.
    pub fn of(value: &Value, rows: usize) -> Result<Self> {
        let wrong = Error::Decline("not a boolean");
        if let Some(one) = value.constant() {
            let Values::Bool(bits) = &one.values else { return Err(wrong) };
            return Ok(match (one.is_valid(0), bits.get(0)) {
                (true, yes) => Self::filled(rows, yes),
                (false, _) => Self { yes: Bitmap::filled(rows, false), no: Bitmap::filled(rows, false) },
            });
        }
        let flat = value.clone().flat();
        let Values::Bool(bits) = &flat.vector.values else { return Err(wrong) };
        Ok(match &flat.vector.validity {
            None => Self { yes: bits.clone(), no: inverted(bits) },
            Some(valid) => Self {
                yes: combine(bits, valid, |bits, valid| bits & valid),
                no: combine(bits, valid, |bits, valid| !bits & valid),
            },
        })
    }

    /// As a boolean vector.
    pub fn into_value(self) -> Value {
        let known = combine(&self.yes, &self.no, |yes, no| yes | no);
        let validity = (known.count_zeros() > 0).then_some(known);
        Vector { logical: LogicalType::Bool, validity, values: Values::Bool(self.yes) }.into()
    }
}

/// True if a node is to see only `left` of `rows` rows, because it must or because gathering them pays.
pub(super) fn narrows(node: &Node, left: usize, rows: usize) -> bool {
    left < rows
        && (node.may_fail
            || left.saturating_mul(4 + node.cost as usize) < rows.saturating_mul(node.cost as usize))
}

/// Sets the bits at `rows` that are set in `from`, bit i of which belongs to row `rows[i]`.
pub(super) fn scatter(to: &mut Bitmap, from: &Bitmap, rows: &[u32]) {
    for at in from.ones() {
        if let Some(&row) = rows.get(at) {
            to.set(row as usize, true);
        }
    }
}

/// The truth of a node for the rows in `wanted`; others are unspecified where it was computed for all of
/// them, else NULL.
pub(super) fn truth_where(node: &mut Node, batch: &Batch, wanted: &Bitmap, left: usize) -> Result<Truth> {
    if !narrows(node, left, batch.rows) {
        return Truth::of(&node.evaluate(batch)?, batch.rows);
    }
    let rows = positions(wanted.words(), wanted.len());
    let narrowed = node.narrowed(batch, &rows);
    let part = Truth::of(&node.evaluate(&narrowed)?, rows.len())?;
    let mut truth = Truth { yes: Bitmap::filled(batch.rows, false), no: Bitmap::filled(batch.rows, false) };
    scatter(&mut truth.yes, &part.yes, &rows);
    scatter(&mut truth.no, &part.no, &rows);
    Ok(truth)
}

/// AND of all parts.
pub(super) fn all(parts: &mut [Node], batch: &Batch) -> Result<Value> {
    let mut so_far = Truth::filled(batch.rows, true);
    for part in parts {
        let open = inverted(&so_far.no);
        let left = open.count_ones();
        if left == 0 {
            break;
        }
        let truth = truth_where(part, batch, &open, left)?;
        so_far.yes = combine(&so_far.yes, &truth.yes, |a, b| a & b);
        so_far.no = combine(&so_far.no, &truth.no, |a, b| a | b);
    }
    Ok(so_far.into_value())
}

/// OR of all parts.
pub(super) fn any(parts: &mut [Node], batch: &Batch) -> Result<Value> {
    let mut so_far = Truth::filled(batch.rows, false);
    for part in parts {
        let open = inverted(&so_far.yes);
        let left = open.count_ones();
        if left == 0 {
            break;
        }
        let truth = truth_where(part, batch, &open, left)?;
        so_far.yes = combine(&so_far.yes, &truth.yes, |a, b| a | b);
        so_far.no = combine(&so_far.no, &truth.no, |a, b| a & b);
    }
    Ok(so_far.into_value())
}

/// NOT.
pub(super) fn not(value: &Value, rows: usize) -> Result<Value> {
    let Truth { yes, no } = Truth::of(value, rows)?;
    Ok(Truth { yes: no, no: yes }.into_value())
}

/// IS NULL.
pub(super) fn is_null(value: Value, rows: usize) -> Value {
    let bits = |bits: Bitmap| Value::from(Vector::new(LogicalType::Bool, Values::Bool(bits)));
    if let Some(one) = value.constant() {
        let one = Vector::new(LogicalType::Bool, Values::Bool(Bitmap::filled(1, !one.is_valid(0))));
        return repeated(&one, rows).into();
    }
    let vector: Arc<Vector> = match &value.vector.values {
        Values::Dictionary { .. } => value.vector,
        _ => value.flat().vector,
    };
    bits(match &vector.validity {
        None => Bitmap::filled(rows, false),
        Some(valid) => inverted(valid),
    })
}
