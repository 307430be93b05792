//! CASE and COALESCE. Called by nodes.
//!
//! A branch that may fail or costs much is computed only for the rows that reach it; its values are scattered
//! into the result. Other branches are computed for all rows and blended, which is cheaper than gathering the
//! rows.

use std::sync::Arc;

use vector::{Bitmap, DisplayScales, LogicalType, NumericInts, NumericValues, Values, Vector};

use super::logic::{narrows, truth_where};
use super::node::Node;
use super::value::{Value, end_to_end, nulls, zeros};
use crate::kernels::Lane;
use crate::kernels::blend;
use crate::kernels::words::{combine, positions};
use crate::{Batch, Result};

/// The value of some rows of a result.
struct Part {
    /// The rows.
    rows: Bitmap,
    /// Whether `value` has the rows at their own places or one after the other.
    dense: bool,
    /// A flat vector or a constant.
    value: Value,
}

impl Part {
    fn of(node: &mut Node, batch: &Batch, rows: Bitmap) -> Result<Self> {
        let left = rows.count_ones();
        let dense = !narrows(node, left, batch.rows);
        let value = if dense {
            node.evaluate(batch)?
        } else {
            let narrowed = node.narrowed(batch, &positions(rows.words(), rows.len()));
            node.evaluate(&narrowed)?
        };
        Ok(Self { rows, dense, value: value.plain() })
    }

    /// Calls `put` with each of its rows and their places in the inner vector of its value.
    fn for_each(&self, mut put: impl FnMut(usize, usize)) {
        match (self.value.constant(), self.dense) {
            (Some(_), _) => self.rows.ones().for_each(|row| put(row, 0)),
            (None, true) => self.rows.ones().for_each(|row| put(row, row)),
            (None, false) => self.rows.ones().enumerate().for_each(|(at, row)| put(row, at)),
        }
    }
}

/// The value of the first branch whose condition is TRUE.
pub(super) fn case(
    branches: &mut [(Node, Node)],
    otherwise: Option<&mut Node>,
    logical: LogicalType,
    batch: &Batch,
) -> Result<Value> {
    let mut reach = Bitmap::filled(batch.rows, true);
    let mut parts = Vec::with_capacity(branches.len() + 1);
    for (condition, value) in branches {
        let left = reach.count_ones();
        if left == 0 {
            break;
        }
        let truth = truth_where(condition, batch, &reach, left)?;
        let chosen = combine(&reach, &truth.yes, |reach, yes| reach & yes);
        reach = combine(&reach, &truth.yes, |reach, yes| reach & !yes);
        if chosen.count_ones() > 0 {
            parts.push(Part::of(value, batch, chosen)?);
        }
    }
    if reach.count_ones() > 0 {
        parts.push(match otherwise {
            Some(value) => Part::of(value, batch, reach)?,
            None => Part { dense: true, value: nulls(logical, batch.rows).into(), rows: reach },
        });
    }
    joined(parts, logical, batch.rows)
}

/// The first value that is not NULL.
pub(super) fn coalesce(nodes: &mut [Node], logical: LogicalType, batch: &Batch) -> Result<Value> {
    let mut reach = Bitmap::filled(batch.rows, true);
    let mut parts: Vec<Part> = Vec::with_capacity(nodes.len());
    for node in nodes {
        if reach.count_ones() == 0 {
            break;
        }
        let mut part = Part::of(node, batch, reach.clone())?;
        let mut found = Bitmap::filled(batch.rows, false);
        let vector = Arc::clone(&part.value.vector);
        let inner = part.value.inner();
        match (&vector.validity, part.dense, part.value.constant()) {
            (_, _, Some(one)) if one.is_valid(0) => found = part.rows.clone(),
            (_, _, Some(_)) => {}
            (None, _, None) => found = part.rows.clone(),
            (Some(valid), true, None) => found = combine(&part.rows, valid, |rows, valid| rows & valid),
            (Some(_), false, None) => part.for_each(|row, at| {
                if inner.is_valid(at) {
                    found.set(row, true);
                }
            }),
        }
        reach = combine(&reach, &found, |reach, found| reach & !found);
        if !part.dense && part.value.constant().is_none() && found != part.rows {
            // Places are counted along `rows`: keep only the values that are found.
            let mut places = Vec::with_capacity(found.count_ones());
            part.for_each(|row, at| {
                if found.get(row) {
                    places.push(u32::try_from(at).unwrap_or(u32::MAX));
                }
            });
            part.value = Value { vector: Arc::new(vector.take(&places)), bounds: part.value.bounds };
        }
        part.rows = found;
        if part.rows.count_ones() > 0 {
            parts.push(part);
        }
    }
    if reach.count_ones() > 0 {
        parts.push(Part { dense: true, value: nulls(logical, batch.rows).into(), rows: reach });
    }
    joined(parts, logical, batch.rows)
}

/// One vector of the parts' rows, which are all rows, each in one part.
fn joined(mut parts: Vec<Part>, logical: LogicalType, rows: usize) -> Result<Value> {
    if let [part] = parts.as_slice()
        && (part.dense || part.value.constant().is_none() && part.value.vector.len() == rows)
        && let Some(part) = parts.pop()
    {
        return Ok(part.value);
    }
    let validity = validity(&parts, rows);
    let fast = match parts.first().map(|part| &part.value.inner().values) {
        Some(Values::Int16(_)) => {
            fill(&parts, rows, |v| if let Values::Int16(v) = v { Some(v) } else { None }).map(Values::Int16)
        }
        Some(Values::Int32(_)) => {
            fill(&parts, rows, |v| if let Values::Int32(v) = v { Some(v) } else { None }).map(Values::Int32)
        }
        Some(Values::Int64(_)) => {
            fill(&parts, rows, |v| if let Values::Int64(v) = v { Some(v) } else { None }).map(Values::Int64)
        }
        Some(Values::Float32(_)) => {
            fill(&parts, rows, |v| if let Values::Float32(v) = v { Some(v) } else { None })
                .map(Values::Float32)
        }
        Some(Values::Float64(_)) => {
            fill(&parts, rows, |v| if let Values::Float64(v) = v { Some(v) } else { None })
                .map(Values::Float64)
        }
        Some(Values::Numeric(_)) => numeric(&parts, rows),
        _ => None,
    };
    if let Some(values) = fast {
        return Ok(Vector { logical, validity, values }.into());
    }
    let mut from = vec![0u32; rows];
    let mut start = 0;
    for part in &parts {
        part.for_each(|row, at| {
            if let Some(slot) = from.get_mut(row) {
                *slot = u32::try_from(start + at).unwrap_or(u32::MAX);
            }
        });
        start += part.value.inner().len();
    }
    let inner = parts.iter().map(|part| part.value.inner().clone()).collect::<Vec<_>>();
    if inner.is_empty() {
        return Ok(Vector::new(logical, zeros(logical, 0)).into());
    }
    Ok(end_to_end(logical, inner)?.take(&from).into())
}

fn validity(parts: &[Part], rows: usize) -> Option<Bitmap> {
    if parts.iter().all(|part| part.value.inner().validity.is_none()) {
        return None;
    }
    let mut valid = Bitmap::filled(rows, false);
    for part in parts {
        let inner = part.value.inner();
        match (&inner.validity, part.dense && part.value.constant().is_none()) {
            (None, _) => valid = combine(&valid, &part.rows, |valid, rows| valid | rows),
            (Some(own), true) => {
                let here = combine(&part.rows, own, |rows, own| rows & own);
                valid = combine(&valid, &here, |valid, here| valid | here);
            }
            (Some(_), false) => part.for_each(|row, at| {
                if inner.is_valid(at) {
                    valid.set(row, true);
                }
            }),
        }
    }
    Some(valid)
}

/// The parts' values in their places; None where the parts differ in kind.
fn fill<T: Copy + Default>(
    parts: &[Part],
    rows: usize,
    lane: impl Fn(&Values) -> Option<&Vec<T>>,
) -> Option<Vec<T>> {
    let mut out = vec![T::default(); rows];
    for part in parts {
        put(&mut out, part, lane(&part.value.inner().values)?, |value| value);
    }
    Some(out)
}

fn put<T: Copy, U: Copy>(out: &mut [U], part: &Part, values: &[T], convert: impl Fn(T) -> U) {
    match (part.value.constant(), values.first(), part.dense) {
        (Some(_), Some(&value), _) => blend::put(out, part.rows.words(), Lane::One(value), convert),
        (None, _, true) => blend::put(out, part.rows.words(), Lane::Many(values), convert),
        _ => part.for_each(|row, at| {
            if let (Some(slot), Some(&value)) = (out.get_mut(row), values.get(at)) {
                *slot = convert(value);
            }
        }),
    }
}

/// Decimals meet at the largest scale, in 64 bits where that is known to be enough; None: the slow way.
fn numeric(parts: &[Part], rows: usize) -> Option<Values> {
    let lanes = parts.iter().map(|part| match &part.value.inner().values {
        Values::Numeric(numeric) if numeric.side.is_empty() => Some(numeric),
        _ => None,
    });
    let lanes: Vec<&NumericValues> = lanes.collect::<Option<_>>()?;
    let scale = lanes.iter().map(|lane| lane.scale).max()?;
    let mut out = vec![0i64; rows];
    for (part, lane) in parts.iter().zip(&lanes) {
        let factor = 10i64.checked_pow(u32::from(scale - lane.scale))?;
        match &lane.ints {
            NumericInts::Int32(values) => {
                // 32 bits times this stays within 64.
                if factor > 1_000_000_000 {
                    return None;
                }
                put(&mut out, part, values, |value| i64::from(value) * factor);
            }
            NumericInts::Int64(values) if factor == 1 => put(&mut out, part, values, |value| value),
            NumericInts::Int64(values) => {
                let limit = i64::MAX / factor;
                if values.iter().any(|&value| value > limit || value < -limit) {
                    return None;
                }
                put(&mut out, part, values, |value| value * factor);
            }
            NumericInts::Int128(_) => return None,
        }
    }
    let constants: Vec<Option<u16>> = parts
        .iter()
        .zip(&lanes)
        .map(|(part, lane)| match &lane.display {
            DisplayScales::Constant(display) => Some(*display),
            DisplayScales::PerValue(displays) => {
                part.value.constant().and_then(|_| displays.first().copied())
            }
        })
        .collect();
    // NULLs show nothing: they take over what the others show.
    let shown = parts
        .iter()
        .zip(&constants)
        .filter(|(part, _)| part.value.constant().is_none_or(|one| one.is_valid(0)));
    let mut shown = shown.map(|(_, display)| *display);
    let first = shown.next().unwrap_or(Some(0));
    let display = match first.filter(|_| shown.all(|display| display == first)) {
        Some(display) => DisplayScales::Constant(display),
        None => {
            let mut displays = vec![0u16; rows];
            for (part, lane) in parts.iter().zip(&lanes) {
                match &lane.display {
                    DisplayScales::Constant(display) => {
                        blend::put(&mut displays, part.rows.words(), Lane::One(*display), |display: u16| {
                            display
                        });
                    }
                    DisplayScales::PerValue(scales) => put(&mut displays, part, scales, |display| display),
                }
            }
            DisplayScales::PerValue(displays)
        }
    };
    Some(Values::Numeric(NumericValues { ints: NumericInts::Int64(out), scale, display, side: Vec::new() }))
}
