//! Aggregates that take their values in order: percentiles, mode, string_agg.
//!
//! Rows of group number, arguments and order keys are collected and sorted by all of them at the end; one pass over them then makes each group's result. Rows without a value
//! are left out at once, as the server does.

use std::sync::Arc;

use vector::{Bitmap, LogicalType, Values, Vector};

use super::Spec;
use super::accumulate::{Accumulator, Groups, MISTYPED, same};
use super::results::with_nulls;
use crate::operators::sort::{Key, Room, SortedRows};
use crate::row_container::{ValueColumn, flat};
use crate::{Aggregate, AggregateFunction, Batch, Error, Host, Result};

/// Longest text that string_agg makes; the server ends with an error at 1 GB.
const LONGEST: usize = 1 << 29;
/// Group without a result.
const NONE: u32 = u32::MAX;

/// An aggregate over sorted rows.
pub struct Ordered {
    function: AggregateFunction,
    logical: LogicalType,
    rows: SortedRows,
    empty: Box<dyn Fn() -> SortedRows + Send>,
    /// Column, among arguments and order keys, of the values.
    value: usize,
    /// Values in each group.
    counts: Vec<u64>,
    /// Where each group's result is among the results.
    at: Vec<u32>,
    results: ValueColumn,
}

/// The group that the pass over sorted rows is in.
struct Pass {
    group: usize,
    /// Rows of it that were seen.
    row: u64,
    lower: f64,
    text: Vec<u8>,
    /// Mode: the length of the current run of equal values, that of the longest one, and whether they are the same.
    run: u64,
    longest: u64,
    leads: bool,
    /// The value of the longest run.
    mode: Option<Arc<Vector>>,
    previous: Option<Arc<Vector>>,
}

impl Ordered {
    /// For an aggregate whose arguments have these types; its `update` takes the arguments, then the order keys.
    pub fn new(aggregate: &Aggregate, types: &[LogicalType], spec: &Spec) -> Result<Self> {
        let keys = aggregate.order_by.iter().map(|key| key.expression.logical(&spec.input));
        let types: Vec<_> =
            std::iter::once(LogicalType::Int32).chain(types.iter().copied()).chain(keys).collect();
        let first_key = 1 + aggregate.arguments.len();
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
        if keys.iter().any(|key| types.get(key.column).is_none_or(|logical| !logical.is_ordered())) {
            return Err(Error::Decline("order of this type"));
        }
        let room = Room { memory: spec.memory / 2, files: spec.files.clone() };
        let empty = move || SortedRows::new(&types, &keys, None, &room);
        Ok(Self {
            function: aggregate.function,
            logical,
            rows: empty(),
            empty: Box::new(empty),
            value,
            counts: Vec::new(),
            at: Vec::new(),
            results: ValueColumn::new(logical),
        })
    }

    /// Takes rows of group number, arguments and order keys.
    fn take(&mut self, columns: &[Arc<Vector>], rows: usize) -> Result<()> {
        let value = flat(columns.get(self.value).ok_or(MISTYPED)?);
        let columns = match &value.validity {
            Some(validity) if validity.count_zeros() > 0 => {
                let valid: Vec<u32> = validity.ones().map(|row| row as u32).collect();
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

    /// Adds a group's result: the value in a row.
    fn result(&mut self, group: usize, value: &Vector, row: usize) -> Result<()> {
        self.at[group] = self.results.len() as u32;
        self.results.append(value, &[row as u32])
    }

    fn batch(&mut self, batch: &Batch, pass: &mut Pass) -> Result<()> {
        let (Some(groups), Some(value)) = (batch.columns.first(), batch.columns.get(self.value)) else {
            return Err(MISTYPED);
        };
        let (groups, value) = (flat(groups), flat(value));
        let Values::Int32(groups) = &groups.values else { return Err(MISTYPED) };
        let same = if self.function == AggregateFunction::Mode {
            equal_to_previous(&value, pass.previous.as_deref())?
        } else {
            Vec::new()
        };
        for (row, &group) in groups.iter().enumerate() {
            let group = group as usize;
            if group != pass.group {
                self.end(pass)?;
                (pass.group, pass.row, pass.run, pass.longest) = (group, 0, 0, 0);
                pass.leads = false;
                pass.text.clear();
            }
            let count = self.counts[group];
            match self.function {
                AggregateFunction::PercentileDisc(fraction) => {
                    let wanted = (fraction * count as f64).ceil() as u64;
                    if pass.row + 1 == wanted.max(1) {
                        self.result(group, &value, row)?;
                    }
                }
                AggregateFunction::PercentileCont(fraction) => {
                    let Values::Float64(floats) = &value.values else { return Err(MISTYPED) };
                    let place = fraction * (count - 1) as f64;
                    let (first, second) = (place.floor() as u64, place.ceil() as u64);
                    if pass.row == first {
                        pass.lower = floats[row];
                    }
                    if pass.row == second {
                        let between = if first == second {
                            floats[row]
                        } else {
                            pass.lower + (place - first as f64) * (floats[row] - pass.lower)
                        };
                        let between = Vector::new(LogicalType::Float64, Values::Float64(vec![between]));
                        self.result(group, &between, 0)?;
                    }
                }
                AggregateFunction::Mode => {
                    let goes_on = pass.row > 0 && same[row];
                    pass.run = if goes_on { pass.run + 1 } else { 1 };
                    pass.leads &= goes_on;
                    if pass.run > pass.longest {
                        pass.longest = pass.run;
                        if !pass.leads {
                            pass.mode = Some(Arc::new(value.slice(row, 1)));
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
            pass.row += 1;
        }
        if batch.rows > 0 {
            pass.previous = Some(Arc::new(value.slice(batch.rows - 1, 1)));
        }
        Ok(())
    }

    /// A group's rows are all seen.
    fn end(&mut self, pass: &mut Pass) -> Result<()> {
        if pass.row == 0 {
            return Ok(());
        }
        match self.function {
            AggregateFunction::Mode => match pass.mode.take() {
                Some(mode) => self.result(pass.group, &mode, 0),
                None => Ok(()),
            },
            AggregateFunction::StringAgg => {
                let texts = std::iter::once(pass.text.as_slice()).collect();
                let text = Vector::new(LogicalType::Text, Values::Bytes(texts));
                self.result(pass.group, &text, 0)
            }
            _ => Ok(()),
        }
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
    // Without a row before the first it is compared with itself; it begins its group then.
    let before: Vec<u32> = rows.iter().map(|&row| (row + first as u32).saturating_sub(1)).collect();
    kept.compare(value, &rows, &before, &mut same)?;
    Ok(same)
}

impl Accumulator for Ordered {
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

    fn merge(&mut self, other: Box<dyn Accumulator>, to: &[u32]) -> Result<()> {
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

    fn complete(&mut self, host: &mut dyn Host) -> Result<()> {
        self.at = vec![NONE; self.counts.len()];
        let mut rows = std::mem::replace(&mut self.rows, (self.empty)());
        rows.sort()?;
        let mut pass = Pass {
            group: usize::MAX,
            row: 0,
            lower: 0.0,
            text: Vec::new(),
            run: 0,
            longest: 0,
            leads: false,
            mode: None,
            previous: None,
        };
        while let Some(batch) = rows.next_batch()? {
            host.check_interrupts()?;
            self.batch(&batch, &mut pass)?;
        }
        self.end(&mut pass)?;
        self.results.seal();
        Ok(())
    }

    fn finish(&mut self, start: usize, len: usize) -> Result<Vector> {
        let at = &self.at[start..start + len];
        let seen = at.iter().map(|&at| at != NONE);
        if at.iter().all(|&at| at == NONE) {
            let mut builder = vector::VectorBuilder::new(self.logical);
            at.iter().for_each(|_| builder.push_null());
            return Ok(builder.finish(&|_, _, _| Box::default()));
        }
        let places: Vec<u32> = at.iter().map(|&at| if at == NONE { 0 } else { at }).collect();
        let results = self.results.take(&places);
        let validity: Option<Bitmap> = results.validity;
        let seen = seen.enumerate().map(|(row, seen)| seen && validity.as_ref().is_none_or(|v| v.get(row)));
        Ok(with_nulls(self.logical, results.values, seen))
    }

    fn bytes(&self) -> usize {
        self.rows.bytes() + self.counts.capacity() * 8 + self.results.bytes()
    }
}
