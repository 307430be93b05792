//! Aggregates that take their values in order: percentiles, mode, string_agg.
//!
//! Each row consists of a group number, the arguments and the order keys. The rows are collected, and at the
//! end they are sorted by all of these columns. One pass over the sorted rows makes each group's result. If
//! all rows have room in memory, percentiles are selected without a sort (`percentile`). Rows without a value
//! are left out when they come, as the server does. DISTINCT leaves out each row that equals the row before
//! it.

use std::sync::Arc;

use vector::{Bitmap, LogicalType, Values, Vector};

use super::Spec;
use super::accumulate::{Accumulator, Groups, MISTYPED, same};
use super::percentile::{self, Ranks};
use super::results::with_nulls;
use crate::operators::sort::{FirstOfEach, Key, SortedRows};
use crate::row_container::{Integers, ValueColumn, flat};
use crate::{Aggregate, AggregateFunction, Batch, Error, Expression, Result};

/// Longest text that string_agg makes; the server ends with an error at 1 GB.
const LONGEST: usize = 1 << 29;
/// Group without a result.
const NONE: u32 = u32::MAX;

/// An aggregate over sorted rows, or several percentiles of them.
pub struct Ordered {
    results: Vec<Results>,
    logical: LogicalType,
    keys: Vec<Key>,
    rows: SortedRows,
    empty: Box<dyn Fn() -> SortedRows + Send>,
    /// Column, among arguments and order keys, of the values.
    value: usize,
    /// Equal rows count once.
    distinct: bool,
    /// Values in each group.
    counts: Vec<u64>,
}

/// The results of a function.
struct Results {
    function: AggregateFunction,
    /// Where each group's result is among the values.
    at: Vec<u32>,
    values: ValueColumn,
    /// A percentile of the group that the pass is in, and the value of its first row.
    ranks: Option<Ranks>,
    lower: f64,
}

impl Results {
    fn new(function: AggregateFunction, logical: LogicalType) -> Self {
        Self { function, at: Vec::new(), values: ValueColumn::new(logical), ranks: None, lower: 0.0 }
    }

    /// Adds a group's result: the value in a row.
    fn push(&mut self, group: usize, value: &Vector, row: usize) -> Result<()> {
        self.at[group] = self.values.len() as u32;
        self.values.append(value, &[row as u32])
    }

    fn push_float(&mut self, group: usize, value: f64) -> Result<()> {
        self.push(group, &Vector::new(LogicalType::Float64, Values::Float64(vec![value])), 0)
    }
}

/// The group that the pass over sorted rows is in.
struct Pass {
    group: usize,
    /// Rows of it that were seen.
    row: u64,
    text: Vec<u8>,
    /// For mode: the length of the current run of equal values, the length of the longest run, and whether
    /// both are the same run.
    run: u64,
    longest: u64,
    leads: bool,
    /// The first row of the current run: its place in this batch, or its value if it came in an earlier
    /// batch.
    begins: Option<usize>,
    first: Option<Arc<Vector>>,
    /// The value of the first row of the longest run, which is the server's choice among equal values.
    mode: Option<Arc<Vector>>,
    previous: Option<Arc<Vector>>,
}

impl Ordered {
    /// What is taken of each row: the arguments that are read, then the order keys.
    pub fn columns(aggregate: &Aggregate) -> Vec<&Expression> {
        let keys = aggregate.order_by.iter().map(|key| &key.expression);
        Self::arguments(aggregate).iter().chain(keys).collect()
    }

    /// The argument of an ordered-set function is its order key.
    fn arguments(aggregate: &Aggregate) -> &[Expression] {
        match aggregate.function {
            AggregateFunction::StringAgg => &aggregate.arguments,
            _ => &[],
        }
    }

    /// For an aggregate over this input; its `update` takes `columns`.
    pub fn new(aggregate: &Aggregate, spec: &Spec) -> Result<Self> {
        let arguments = Self::arguments(aggregate);
        let columns = Self::columns(aggregate).into_iter().map(|column| column.logical(&spec.input));
        let types: Vec<_> = std::iter::once(LogicalType::Int32).chain(columns).collect();
        let first_key = 1 + arguments.len();
        let (value, logical) = match aggregate.function {
            AggregateFunction::StringAgg => (1, LogicalType::Text),
            _ => (first_key, *types.get(first_key).ok_or(MISTYPED)?),
        };
        if aggregate.function == AggregateFunction::StringAgg && types.get(1) != Some(&LogicalType::Text) {
            return Err(MISTYPED);
        }
        let percentile = matches!(aggregate.function, AggregateFunction::PercentileCont(_));
        if percentile && logical != LogicalType::Float64 {
            return Err(Error::Decline("percentile_cont of this type"));
        }
        let group = Key { column: 0, descending: false, nulls_first: false, order: crate::TextOrder::Bytes };
        let keys = aggregate.order_by.iter().enumerate().map(|(at, key)| Key {
            column: first_key + at,
            descending: key.descending,
            nulls_first: key.nulls_first,
            order: key.order.clone(),
        });
        let keys: Vec<_> = std::iter::once(group).chain(keys).collect();
        if keys.iter().any(|key| types.get(key.column).is_none_or(|&logical| !key.order.is_of(logical))) {
            return Err(Error::Decline("order of this type"));
        }
        let room = spec.room();
        let all = keys.clone();
        let empty = move || SortedRows::new(&types, &all, None, &room);
        Ok(Self {
            results: vec![Results::new(aggregate.function, logical)],
            logical,
            keys,
            rows: empty(),
            empty: Box::new(empty),
            value,
            distinct: aggregate.distinct,
            counts: Vec::new(),
        })
    }

    /// Takes rows of group number, arguments and order keys.
    fn take(&mut self, columns: &[Arc<Vector>], rows: usize) -> Result<()> {
        let value = flat(columns.get(self.value).ok_or(MISTYPED)?);
        let columns = match &value.validity {
            Some(validity) if validity.count_zeros() > 0 => {
                let valid = validity.positions();
                columns.iter().map(|column| Arc::new(column.take(&valid))).collect()
            }
            _ => columns.to_vec(),
        };
        let rows = columns.first().map_or(rows, |column| column.len());
        if let Some(Values::Int32(groups)) = columns.first().map(|column| &column.values) {
            groups.iter().for_each(|&group| self.counts[group as usize] += 1);
        }
        self.rows.push(&columns, rows)
    }

    /// Selects percentiles if all rows are in memory. False if the function is no percentile or rows are in
    /// files.
    fn select(&mut self) -> Result<bool> {
        let functions: Vec<_> = self.results.iter().map(|results| results.function).collect();
        let percentiles = functions.iter().all(|&function| Ranks::of(function, 1).is_some());
        let (true, Some(columns)) = (percentiles, self.rows.in_memory()) else { return Ok(false) };
        let (Some(groups), Some(values)) = (columns.first(), columns.get(self.value)) else {
            return Err(MISTYPED);
        };
        let (Some(Integers::Int32(groups)), Some(key)) = (groups.integers(), self.keys.get(1)) else {
            return Err(MISTYPED);
        };
        let found = percentile::select(key, values, groups, &self.counts, &functions)?;
        for (place, results) in self.results.iter_mut().enumerate() {
            let full = results.at.iter_mut().zip(&self.counts).filter(|(_, count)| **count > 0);
            full.zip(0..).for_each(|((at, _), next)| *at = next);
            let found = found.iter().skip(place).step_by(functions.len());
            match (results.function, values.integers()) {
                (AggregateFunction::PercentileCont(_), Some(Integers::Float64(floats))) => {
                    let counts = self.counts.iter().filter(|count| **count > 0);
                    let between = found.zip(counts).filter_map(|(&(first, second), &count)| {
                        let ranks = Ranks::of(results.function, count)?;
                        Some(ranks.between(floats[first as usize], floats[second as usize]))
                    });
                    let between = Values::Float64(between.collect());
                    results.values.append_all(&Vector::new(LogicalType::Float64, between))?;
                }
                _ => {
                    let rows: Vec<u32> = found.map(|&(first, _)| first).collect();
                    results.values.append_all(&values.take(&rows))?;
                }
            }
        }
        Ok(true)
    }

    fn batch(&mut self, batch: &Batch, pass: &mut Pass) -> Result<()> {
        let (Some(groups), Some(value)) = (batch.columns.first(), batch.columns.get(self.value)) else {
            return Err(MISTYPED);
        };
        let (groups, value) = (flat(groups), flat(value));
        let Values::Int32(groups) = &groups.values else { return Err(MISTYPED) };
        let mode = self.results.iter().any(|results| results.function == AggregateFunction::Mode);
        let same = if mode { equal_to_previous(&value, pass.previous.as_deref())? } else { Vec::new() };
        for (row, &group) in groups.iter().enumerate() {
            let group = group as usize;
            if group != pass.group {
                self.end(pass)?;
                (pass.group, pass.row, pass.run, pass.longest) = (group, 0, 0, 0);
                pass.leads = false;
                pass.text.clear();
                for results in &mut self.results {
                    results.ranks = Ranks::of(results.function, self.counts[group]);
                }
            }
            for results in &mut self.results {
                match results.function {
                    AggregateFunction::PercentileDisc(_) => {
                        if results.ranks.is_some_and(|ranks| ranks.first == pass.row) {
                            results.push(group, &value, row)?;
                        }
                    }
                    AggregateFunction::PercentileCont(_) => {
                        let Values::Float64(floats) = &value.values else { return Err(MISTYPED) };
                        let Some(ranks) = results.ranks else { continue };
                        if pass.row == ranks.first {
                            results.lower = floats[row];
                        }
                        if pass.row == ranks.second {
                            results.push_float(group, ranks.between(results.lower, floats[row]))?;
                        }
                    }
                    AggregateFunction::Mode => {
                        let goes_on = pass.row > 0 && same[row];
                        pass.run = if goes_on { pass.run + 1 } else { 1 };
                        pass.leads &= goes_on;
                        if !goes_on {
                            pass.begins = Some(row);
                        }
                        if pass.run > pass.longest {
                            pass.longest = pass.run;
                            if !pass.leads {
                                let here = pass.begins.map(|row| Arc::new(value.slice(row, 1)));
                                pass.mode = here.or_else(|| pass.first.clone());
                                pass.leads = true;
                            }
                        }
                    }
                    AggregateFunction::StringAgg => {
                        let Values::Bytes(texts) = &value.values else { return Err(MISTYPED) };
                        if pass.row > 0
                            && let Some(between) = batch.columns.get(2).map(flat)
                            && between.is_valid(row)
                            && let Values::Bytes(between) = &between.values
                        {
                            pass.text.extend_from_slice(between.get(row));
                        }
                        pass.text.extend_from_slice(texts.get(row));
                        if pass.text.len() > LONGEST {
                            return Err(Error::Decline("string_agg past 512 MB"));
                        }
                    }
                    _ => return Err(MISTYPED),
                }
            }
            pass.row += 1;
        }
        if batch.rows > 0 {
            pass.previous = Some(Arc::new(value.slice(batch.rows - 1, 1)));
            if let Some(row) = pass.begins.take() {
                pass.first = Some(Arc::new(value.slice(row, 1)));
            }
        }
        Ok(())
    }

    /// A group's rows are all seen.
    fn end(&mut self, pass: &mut Pass) -> Result<()> {
        if pass.row == 0 {
            return Ok(());
        }
        for results in &mut self.results {
            match results.function {
                AggregateFunction::Mode => {
                    if let Some(mode) = pass.mode.take() {
                        results.push(pass.group, &mode, 0)?;
                    }
                }
                AggregateFunction::StringAgg => {
                    let texts = std::iter::once(pass.text.as_slice()).collect();
                    results.push(pass.group, &Vector::new(LogicalType::Text, Values::Bytes(texts)), 0)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether each row equals the one before it.
fn equal_to_previous(value: &Vector, previous: Option<&Vector>) -> Result<Vec<bool>> {
    let mut kept = ValueColumn::new(value.logical);
    if let Some(previous) = previous {
        kept.append_all(previous)?;
    }
    let first = kept.len();
    kept.append_all(value)?;
    let mut same = vec![true; value.len()];
    let rows: Vec<u32> = (0..value.len() as u32).collect();
    // The first row has no row before it and is compared with itself. It begins its group anyway.
    let before: Vec<u32> = rows.iter().map(|&row| (row + first as u32).saturating_sub(1)).collect();
    kept.compare(value, &rows, &before, &mut same)?;
    Ok(same)
}

impl Accumulator for Ordered {
    fn also(&mut self, function: AggregateFunction) -> bool {
        let percentile = |function| Ranks::of(function, 1).is_some();
        let shared = percentile(function) && self.results.iter().all(|results| percentile(results.function));
        if shared {
            self.results.push(Results::new(function, self.logical));
        }
        shared
    }

    fn grow(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
    }

    fn update(&mut self, arguments: &[Arc<Vector>], rows: usize, groups: Groups<'_>) -> Result<()> {
        let numbers = match groups {
            Groups::One => vec![0; rows],
            Groups::Numbers(numbers) => numbers.iter().map(|&number| number as i32).collect(),
        };
        let mut columns = vec![Arc::new(Vector::new(LogicalType::Int32, Values::Int32(numbers)))];
        columns.extend_from_slice(arguments);
        self.take(&columns, rows)
    }

    fn merge(&mut self, other: &mut dyn Accumulator, _from: &[u32], to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        to.iter().zip(&other.counts).for_each(|(&group, count)| self.counts[group as usize] += count);
        other.rows.drain(|batch| {
            let (Some(Values::Int32(groups)), Some(arguments)) =
                (batch.columns.first().map(|column| &column.values), batch.columns.get(1..))
            else {
                return Err(MISTYPED);
            };
            // Rows without a value were left out when they came.
            let numbers = groups.iter().map(|&group| to[group as usize] as i32).collect();
            let mut columns = vec![Arc::new(Vector::new(LogicalType::Int32, Values::Int32(numbers)))];
            columns.extend_from_slice(arguments);
            self.rows.push(&columns, batch.rows)
        })
    }

    fn is_divisible(&self) -> bool {
        false
    }

    fn complete(&mut self, check: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.results.iter_mut().for_each(|results| results.at = vec![NONE; self.counts.len()]);
        if self.select()? {
            self.rows = (self.empty)();
            return Ok(());
        }
        let mut rows = std::mem::replace(&mut self.rows, (self.empty)());
        rows.sort()?;
        let mut pass = Pass {
            group: usize::MAX,
            row: 0,
            text: Vec::new(),
            run: 0,
            longest: 0,
            leads: false,
            begins: None,
            first: None,
            mode: None,
            previous: None,
        };
        let mut distinct = self.distinct.then(|| FirstOfEach::new(self.keys.clone()));
        while let Some(mut batch) = rows.next_batch()? {
            check()?;
            if let Some(distinct) = &mut distinct {
                batch = distinct.of(batch);
            }
            self.batch(&batch, &mut pass)?;
        }
        self.end(&mut pass)?;
        self.results.iter_mut().for_each(|results| results.values.seal());
        Ok(())
    }

    fn finish(&mut self, function: AggregateFunction, start: usize, len: usize) -> Result<Vector> {
        let mut results = self.results.iter();
        let results = results.find(|results| results.function == function).ok_or(MISTYPED)?;
        let at = &results.at[start..start + len];
        let seen = at.iter().map(|&at| at != NONE);
        if at.iter().all(|&at| at == NONE) {
            let mut builder = vector::VectorBuilder::new(self.logical);
            at.iter().for_each(|_| builder.push_null());
            return Ok(builder.finish(&|_, _, _| Box::default()));
        }
        let places: Vec<u32> = at.iter().map(|&at| if at == NONE { 0 } else { at }).collect();
        let values = results.values.take(&places);
        let validity: Option<Bitmap> = values.validity;
        let seen = seen.enumerate().map(|(row, seen)| seen && validity.as_ref().is_none_or(|v| v.get(row)));
        Ok(with_nulls(self.logical, values.values, seen))
    }

    fn bytes(&self) -> usize {
        let results = self.results.iter().map(|results| results.values.bytes() + results.at.capacity() * 4);
        self.rows.bytes() + self.counts.capacity() * 8 + results.sum::<usize>()
    }
}
