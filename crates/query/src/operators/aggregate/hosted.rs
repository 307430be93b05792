//! Aggregates that the host computes. This file collects their values, puts them in order, and hands them to
//! the host group by group at the end, on its main thread.
//!
//! Each row consists of a group number, the arguments and the order keys. Without order keys rows are taken
//! in the order they came. With one group and no order nothing is collected: the host takes the rows as they
//! come, and the sink runs on its thread. Invariant: the host sees each group once, all its rows side by
//! side.

use std::sync::Arc;

use vector::{LogicalType, Values, Vector};

use super::Spec;
use super::accumulate::{Accumulator, Groups, MISTYPED, same};
use crate::kernels::words::both;
use crate::operators::sort::{FirstOfEach, Key, SortedRows};
use crate::row_container::{ValueColumn, flat};
use crate::{Aggregate, AggregateFunction, Batch, Error, Expression, HostAggregate, Result, TextOrder};

/// Group without a result.
const NONE: u32 = u32::MAX;

/// The rows of one aggregate of the host's.
pub struct Hosted {
    host: Arc<dyn HostAggregate>,
    rows: SortedRows,
    keys: Vec<Key>,
    /// Equal rows count once.
    distinct: bool,
    /// The host takes rows as they come, and whether it has begun to.
    streams: bool,
    begun: bool,
    /// Columns that are arguments: they come after the group number.
    arguments: usize,
    groups: usize,
    /// Where each group's result is among the values.
    at: Vec<u32>,
    values: ValueColumn,
    /// Groups that the host has rows of and gave no result for.
    waiting: Vec<usize>,
}

impl Hosted {
    /// What is taken of each row: the arguments, then the order keys.
    pub fn columns(aggregate: &Aggregate) -> Vec<&Expression> {
        let keys = aggregate.order_by.iter().map(|key| &key.expression);
        aggregate.arguments.iter().chain(keys).collect()
    }

    /// Whether the host takes the rows of an aggregate as they come.
    pub fn streams(aggregate: &Aggregate, spec: &Spec) -> bool {
        spec.alone && aggregate.host.is_some() && !aggregate.distinct && aggregate.order_by.is_empty()
    }

    /// For an aggregate over this input; its `update` takes `columns`.
    pub fn new(host: &Arc<dyn HostAggregate>, aggregate: &Aggregate, spec: &Spec) -> Result<Self> {
        let columns = Self::columns(aggregate).into_iter().map(|column| column.logical(&spec.input));
        let types: Vec<_> = std::iter::once(LogicalType::Int32).chain(columns).collect();
        let group = Key { column: 0, descending: false, nulls_first: false, order: TextOrder::Bytes };
        let keys = (1 + aggregate.arguments.len()..).zip(&aggregate.order_by).map(|(column, key)| Key {
            column,
            descending: key.descending,
            nulls_first: key.nulls_first,
            order: key.order.clone(),
        });
        let keys: Vec<_> = std::iter::once(group).chain(keys).collect();
        if keys.iter().any(|key| types.get(key.column).is_none_or(|&logical| !key.order.is_of(logical))) {
            return Err(Error::Decline("order of this type"));
        }
        let room = spec.room();
        Ok(Self {
            host: Arc::clone(host),
            rows: SortedRows::new(&types, &keys, None, &room),
            keys,
            distinct: aggregate.distinct,
            streams: Self::streams(aggregate, spec),
            begun: false,
            arguments: aggregate.arguments.len(),
            groups: 0,
            at: Vec::new(),
            values: ValueColumn::new(aggregate.result),
            waiting: Vec::new(),
        })
    }

    /// Takes rows of group number, arguments and order keys.
    fn take(&mut self, columns: &[Arc<Vector>], rows: usize) -> Result<()> {
        let mut validity = None;
        if self.host.is_strict() {
            for column in columns.iter().skip(1).take(self.arguments) {
                validity = both(validity.as_ref(), flat(column).validity.as_ref());
            }
        }
        match validity {
            Some(validity) if validity.count_zeros() > 0 => {
                let valid = validity.positions();
                let columns = columns.iter().map(|column| Arc::new(column.take(&valid))).collect();
                self.keep(Batch::new(valid.len(), columns))
            }
            _ => self.keep(Batch::new(rows, columns.to_vec())),
        }
    }

    fn keep(&mut self, batch: Batch) -> Result<()> {
        if !self.streams {
            return self.rows.push(&batch.columns, batch.rows);
        }
        if !self.begun {
            self.host.begin()?;
            self.begun = true;
        }
        if batch.rows == 0 { Ok(()) } else { self.batch(&batch) }
    }

    fn batch(&mut self, batch: &Batch) -> Result<()> {
        let Some((groups, rest)) = batch.columns.split_first() else { return Err(MISTYPED) };
        let groups = flat(groups);
        let Values::Int32(groups) = &groups.values else { return Err(MISTYPED) };
        let arguments: Vec<_> = rest.iter().take(self.arguments).map(flat).collect();
        let ended = self.host.push(groups, &arguments)?;
        for &group in groups {
            if self.waiting.last() != Some(&(group as usize)) {
                self.waiting.push(group as usize);
            }
        }
        self.results(&ended)
    }

    /// Results of the groups that have waited longest.
    fn results(&mut self, results: &Vector) -> Result<()> {
        let next = self.values.len() as u32;
        for (group, at) in self.waiting.drain(..results.len().min(self.waiting.len())).zip(next..) {
            self.at[group] = at;
        }
        self.values.append_all(results)
    }
}

impl Accumulator for Hosted {
    fn grow(&mut self, groups: usize) {
        self.groups = groups;
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
        other.rows.drain(|batch| {
            let (Some(Values::Int32(groups)), Some(arguments)) =
                (batch.columns.first().map(|column| &column.values), batch.columns.get(1..))
            else {
                return Err(MISTYPED);
            };
            let numbers: Vec<u32> = groups.iter().map(|&group| to[group as usize]).collect();
            self.update(arguments, batch.rows, Groups::Numbers(&numbers))
        })
    }

    fn is_divisible(&self) -> bool {
        false
    }

    fn complete(&mut self, check: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.at = vec![NONE; self.groups];
        self.rows.sort()?;
        if !self.begun {
            self.host.begin()?;
        }
        let mut distinct = self.distinct.then(|| FirstOfEach::new(self.keys.clone()));
        while let Some(mut batch) = self.rows.next_batch()? {
            check()?;
            if let Some(distinct) = &mut distinct {
                batch = distinct.of(batch);
            }
            if batch.rows > 0 {
                self.batch(&batch)?;
            }
        }
        if !self.waiting.is_empty() {
            let last = self.host.end()?;
            self.results(&last)?;
        }
        if self.at.contains(&NONE) {
            self.host.begin()?;
            let at = self.values.len() as u32;
            self.values.append_all(&self.host.end()?)?;
            self.at.iter_mut().filter(|place| **place == NONE).for_each(|place| *place = at);
        }
        self.values.seal();
        Ok(())
    }

    fn finish(&mut self, _function: AggregateFunction, start: usize, len: usize) -> Result<Vector> {
        Ok(self.values.take(&self.at[start..start + len]))
    }

    fn bytes(&self) -> usize {
        self.rows.bytes() + self.values.bytes() + self.at.capacity() * 4
    }
}
