//! Answers from statistics: aggregates without keys that can take a chunk's summary instead of its rows.

use vector::LogicalType;

use super::Spec;
use super::table::Table;
use crate::{Aggregate, AggregateFunction, Expression, Result, Summary, SummaryNeed, TextOrder};

/// What must be known of each column, or None where some aggregate has to see rows.
pub fn needs(spec: &Spec) -> Option<Vec<SummaryNeed>> {
    if !spec.keys.is_empty() {
        return None;
    }
    let mut needs = vec![SummaryNeed::default(); spec.input.len()];
    for aggregate in &spec.aggregates {
        if aggregate.distinct || aggregate.filter.is_some() || !aggregate.order_by.is_empty() {
            return None;
        }
        if aggregate.function == AggregateFunction::CountRows {
            continue;
        }
        let column = column(aggregate)?;
        let (need, logical) = (needs.get_mut(column)?, *spec.input.get(column)?);
        use AggregateFunction as F;
        use LogicalType as T;
        match (aggregate.function, logical) {
            (F::Count, _) => {}
            (F::Sum | F::Avg, T::Int16 | T::Int32 | T::Int64 | T::UInt64 | T::Numeric) => need.sum = true,
            (
                F::Min | F::Max,
                T::Int16 | T::Int32 | T::Int64 | T::UInt64 | T::Date | T::Timestamp | T::Numeric,
            ) => {
                need.bounds = true;
            }
            // Zeros of both signs are equal: which one is the answer is known only from the rows.
            (F::Min | F::Max, T::Text | T::Bytes) if matches!(aggregate.order, TextOrder::Bytes) => {
                need.bounds = true;
            }
            _ => return None,
        }
        need.nulls = true;
    }
    Some(needs)
}

/// The column that is the only argument, if it is one.
fn column(aggregate: &Aggregate) -> Option<usize> {
    match aggregate.arguments.as_slice() {
        [Expression::Column(at)] => Some(*at),
        _ => None,
    }
}

/// Takes rows as a summary.
pub fn push(spec: &Spec, table: &mut Table, summary: &Summary) -> Result<()> {
    for (at, aggregate) in spec.aggregates.iter().enumerate() {
        let known = column(aggregate).and_then(|column| summary.columns.get(column)?.as_ref());
        if let Some(accumulator) = table.own_states(at) {
            accumulator.summary(summary.rows, known)?;
        }
    }
    Ok(())
}
