//! Decides from statistics alone whether no row, some rows or all rows of a stripe or chunk satisfy a
//! predicate.
//!
//! Called by scans before they read anything. Invariant: `NoRow` and `AllRows` are proofs. Everything that is
//! unknown is `SomeRows`: a column that the stripe does not have, a type without order, a cut bound, decimals
//! in the side lane.

use std::cmp::Ordering;

use vector::{CompareOp, Predicate, Result, Scalar};

use crate::OpenStripe;
use crate::reader::StripeBytes;
use crate::statistics::{Bound, ColumnStatistics};
use crate::summary::Summary;

/// How many rows can satisfy a predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Prune {
    /// Proven: none.
    NoRow,
    /// Not known.
    SomeRows,
    /// Proven: every one.
    AllRows,
}

/// Asks a stripe's summary.
pub fn prune_stripe(summary: &Summary<'_>, predicate: &Predicate) -> Result<Prune> {
    prune(predicate, &mut |column, leaf| {
        Ok(summary.column(column)?.map_or(Prune::SomeRows, |(_, statistics)| prune_leaf(&statistics, leaf)))
    })
}

/// Asks the statistics of one chunk. If the bounds decide nothing and the predicate wants single values, asks
/// the chunk's bloom filters.
pub fn prune_chunk(
    reader: &dyn OpenStripe,
    chunk: u32,
    predicate: &Predicate,
    bytes: &dyn StripeBytes,
) -> Result<Prune> {
    prune_rows(reader, Some(chunk), predicate, bytes)
}

/// Asks the filters that an open stripe has over all of its rows (`OpenStripe::has_stripe_filters`). Its
/// summary has been asked before.
pub fn prune_opened(
    reader: &dyn OpenStripe,
    predicate: &Predicate,
    bytes: &dyn StripeBytes,
) -> Result<Prune> {
    prune_rows(reader, None, predicate, bytes)
}

/// The rows of a chunk, or of the whole stripe without one.
fn prune_rows(
    reader: &dyn OpenStripe,
    chunk: Option<u32>,
    predicate: &Predicate,
    bytes: &dyn StripeBytes,
) -> Result<Prune> {
    prune(predicate, &mut |column, leaf| {
        if reader.logical(column).is_none() {
            return Ok(Prune::SomeRows);
        }
        let statistics = match chunk {
            Some(chunk) => reader.statistics(column, chunk, bytes)?,
            None => reader.column_statistics(column, bytes)?,
        };
        let Some(statistics) = statistics else { return Ok(Prune::SomeRows) };
        let pruned = prune_leaf(statistics, leaf);
        if pruned != Prune::SomeRows {
            return Ok(pruned);
        }
        let wanted = match leaf {
            Predicate::Compare { op: CompareOp::Equal, value, .. } => std::slice::from_ref(value),
            Predicate::In { values, .. } => values.as_slice(),
            _ => return Ok(pruned),
        };
        let is_inside = |value: &Scalar| !compare(statistics, CompareOp::Equal, value).none;
        Ok(match reader.may_have(column, chunk, wanted, &is_inside, bytes)? {
            true => pruned,
            false => Prune::NoRow,
        })
    })
}

/// Asks statistics of columns that the caller gives, for hosts that keep statistics elsewhere (rows in
/// memory).
pub fn prune_statistics(
    predicate: &Predicate,
    statistics: &dyn Fn(usize) -> Option<ColumnStatistics>,
) -> Result<Prune> {
    prune(predicate, &mut |column, leaf| {
        Ok(statistics(column).map_or(Prune::SomeRows, |statistics| prune_leaf(&statistics, leaf)))
    })
}

fn prune(predicate: &Predicate, leaf: &mut dyn FnMut(usize, &Predicate) -> Result<Prune>) -> Result<Prune> {
    Ok(match predicate {
        Predicate::Always(true) => Prune::AllRows,
        Predicate::Always(false) => Prune::NoRow,
        Predicate::And(parts) => {
            let mut all = Prune::AllRows;
            for part in parts {
                match prune(part, leaf)? {
                    Prune::NoRow => return Ok(Prune::NoRow),
                    Prune::SomeRows => all = Prune::SomeRows,
                    Prune::AllRows => {}
                }
            }
            all
        }
        Predicate::Or(parts) => {
            let mut none = Prune::NoRow;
            for part in parts {
                match prune(part, leaf)? {
                    Prune::AllRows => return Ok(Prune::AllRows),
                    Prune::SomeRows => none = Prune::SomeRows,
                    Prune::NoRow => {}
                }
            }
            none
        }
        Predicate::Compare { column, .. }
        | Predicate::In { column, .. }
        | Predicate::NotIn { column, .. }
        | Predicate::IsNull { column }
        | Predicate::IsNotNull { column }
        | Predicate::StartsWith { column, .. } => leaf(*column, predicate)?,
    })
}

/// A condition on one column against that column's statistics.
pub fn prune_leaf(statistics: &ColumnStatistics, leaf: &Predicate) -> Prune {
    let (rows, nulls) = (statistics.rows, statistics.null_count);
    if rows == 0 {
        return Prune::NoRow;
    }
    let verdict = match leaf {
        Predicate::IsNull { .. } if nulls == rows => return Prune::AllRows,
        Predicate::IsNull { .. } if nulls == 0 => return Prune::NoRow,
        Predicate::IsNotNull { .. } if nulls == rows => return Prune::NoRow,
        Predicate::IsNotNull { .. } if nulls == 0 => return Prune::AllRows,
        Predicate::IsNull { .. } | Predicate::IsNotNull { .. } => return Prune::SomeRows,
        // All other leaves are unknown for NULL, so never true.
        _ if nulls == rows => return Prune::NoRow,
        Predicate::Compare { op, value, .. } => compare(statistics, *op, value),
        Predicate::In { values, .. } => among(statistics, values),
        Predicate::NotIn { values, .. } => {
            let Verdict { none, all, .. } = among(statistics, values);
            Verdict::of(all, none)
        }
        Predicate::StartsWith { prefix, .. } => starts_with(statistics, prefix),
        Predicate::Always(_) | Predicate::And(_) | Predicate::Or(_) => Verdict::UNKNOWN,
    };
    // Side values are outside the bounds, and only the host knows how they compare.
    if statistics.side_rows > 0 {
        return if verdict.needs_value { Prune::SomeRows } else { Prune::NoRow };
    }
    match verdict {
        Verdict { none: true, .. } => Prune::NoRow,
        Verdict { all: true, .. } if nulls == 0 => Prune::AllRows,
        _ => Prune::SomeRows,
    }
}

/// What is proven about the rows that are not NULL.
struct Verdict {
    none: bool,
    all: bool,
    /// False if no value at all can satisfy the condition.
    needs_value: bool,
}

impl Verdict {
    const UNKNOWN: Self = Self { none: false, all: false, needs_value: true };
    const NEVER: Self = Self { none: true, all: false, needs_value: false };

    const fn of(none: bool, all: bool) -> Self {
        Self { none, all, needs_value: true }
    }
}

/// How a bound compares with a value. `None` if either is unknown or the kinds differ.
fn order(bound: &Option<Bound>, value: &Scalar) -> Option<Ordering> {
    bound.as_ref()?.value.compare(value)
}

fn compare(statistics: &ColumnStatistics, op: CompareOp, value: &Scalar) -> Verdict {
    if value.is_null() {
        return Verdict::NEVER;
    }
    let (min, max) = (order(&statistics.min, value), order(&statistics.max, value));
    let min_is = |orders: &[Ordering]| min.is_some_and(|order| orders.contains(&order));
    let max_is = |orders: &[Ordering]| max.is_some_and(|order| orders.contains(&order));
    const LESS: &[Ordering] = &[Ordering::Less];
    const GREATER: &[Ordering] = &[Ordering::Greater];
    const NOT_LESS: &[Ordering] = &[Ordering::Equal, Ordering::Greater];
    const NOT_GREATER: &[Ordering] = &[Ordering::Equal, Ordering::Less];
    let outside = max_is(LESS) || min_is(GREATER);
    // If a bound that is not exact equals the value, there is still no row beyond the value.
    let only = min_is(NOT_LESS) && max_is(NOT_GREATER) && !outside;
    match op {
        CompareOp::Equal => Verdict::of(outside, only),
        CompareOp::NotEqual => Verdict::of(only, outside),
        CompareOp::Less => Verdict::of(min_is(NOT_LESS), max_is(LESS)),
        CompareOp::LessOrEqual => Verdict::of(min_is(GREATER), max_is(NOT_GREATER)),
        CompareOp::Greater => Verdict::of(max_is(NOT_GREATER), min_is(GREATER)),
        CompareOp::GreaterOrEqual => Verdict::of(max_is(LESS), min_is(NOT_LESS)),
    }
}

fn among(statistics: &ColumnStatistics, values: &[Scalar]) -> Verdict {
    if values.iter().all(Scalar::is_null) {
        return Verdict::NEVER;
    }
    let mut verdict = Verdict::of(true, false);
    for value in values.iter().filter(|value| !value.is_null()) {
        let one = compare(statistics, CompareOp::Equal, value);
        // The value is between bounds that differ, so no other value of the list can decide more.
        if !one.none && !one.all {
            return Verdict::UNKNOWN;
        }
        verdict.none &= one.none;
        verdict.all |= one.all;
    }
    verdict
}

fn starts_with(statistics: &ColumnStatistics, prefix: &[u8]) -> Verdict {
    let bytes = |bound: &'_ Option<Bound>| match bound {
        Some(Bound { value: Scalar::Bytes(bytes), .. }) => Some(bytes.clone()),
        _ => None,
    };
    let (min, max) = (bytes(&statistics.min), bytes(&statistics.max));
    // Strings with a prefix are an interval. It begins with the prefix itself, and ends before the next
    // string of the same length.
    let above = min.as_ref().is_some_and(|min| min.as_ref() > prefix && !min.starts_with(prefix));
    let below = max.as_ref().is_some_and(|max| max.as_ref() < prefix);
    let inside = |bound: Option<Box<[u8]>>| bound.is_some_and(|bound| bound.starts_with(prefix));
    Verdict::of(above || below, prefix.is_empty() || (inside(min) && inside(max)))
}
