//! The groups one thread has seen, and their states.
//!
//! When a table has outgrown its memory it takes no further groups. Rows of the groups it has still go to
//! their states. All other rows go to temporary files by the hash of their keys. Each file is aggregated by a
//! table of its own once the groups in memory were given out, and may spill again. When several threads'
//! tables are merged, rows that one table had no room for are looked up once more among all groups.

use std::sync::Arc;

use vector::Vector;

use super::Spec;
use super::accumulate::{self, Accumulator, Groups};
use super::distinct::Distinct;
use super::hosted::Hosted;
use super::ordered::Ordered;
use crate::row_container::{ABSENT, BatchFile, Numbering, Partitions};
use crate::{
    Aggregate, AggregateFunction, BATCH_ROWS, Batch, Error, Evaluator, Result, SharedTempFiles, hash,
    interrupt,
};

/// Levels of a hash (`Partitions`) that groups are put into partitions by.
const LEVELS: u32 = 1;

/// Groups and states.
pub struct Table {
    keys: Vec<Evaluator>,
    /// None without keys: one group, which is there without rows, too.
    set: Option<Numbering>,
    states: Vec<State>,
    results: Results,
    groups: usize,
    numbers: Vec<u32>,
    spilled: Spilled,
}

/// Rows of groups for which there was no room.
struct Spilled {
    /// Bytes the table may take.
    memory: usize,
    files: Option<SharedTempFiles>,
    level: u32,
    /// All go to one file: they were spread before.
    whole: bool,
    rows: Option<Partitions>,
    /// Rows that other threads had no room for, though there may be a group here.
    again: Vec<BatchFile>,
}

struct State {
    /// Arguments; of aggregates in order `Ordered::columns`.
    arguments: Vec<Evaluator>,
    filter: Option<Evaluator>,
    /// The filter may end the query with an error.
    raises: bool,
    accumulator: Box<dyn Accumulator>,
}

/// For each aggregate its function and which of the states has its result.
type Results = Vec<(AggregateFunction, usize)>;

/// The states of all aggregates, and for each of them which: equal values are gone through once for all
/// aggregates of them that one state can compute.
fn states(spec: &Spec) -> Result<(Vec<State>, Results)> {
    let mut states: Vec<(&Aggregate, State)> = Vec::new();
    let mut results = Vec::new();
    for aggregate in &spec.aggregates {
        let shared = states.iter_mut().position(|(first, state)| {
            let same = first.arguments == aggregate.arguments
                && first.filter == aggregate.filter
                && first.distinct == aggregate.distinct
                && first.order_by == aggregate.order_by
                && aggregate.host.is_none();
            same && (first.function == aggregate.function && first.order == aggregate.order
                || state.accumulator.also(aggregate.function))
        });
        let at = match shared {
            Some(at) => at,
            None => {
                states.push((aggregate, State::new(aggregate, spec)?));
                states.len() - 1
            }
        };
        results.push((aggregate.function, at));
    }
    Ok((states.into_iter().map(|(_, state)| state).collect(), results))
}

impl State {
    fn new(aggregate: &Aggregate, spec: &Spec) -> Result<Self> {
        let types: Vec<_> = aggregate.arguments.iter().map(|a| a.logical(&spec.input)).collect();
        let (mut accumulator, arguments): (Box<dyn Accumulator>, Vec<_>) = match &aggregate.host {
            Some(host) => (Box::new(Hosted::new(host, aggregate, spec)?), Hosted::columns(aggregate)),
            None if aggregate.is_ordered() => {
                (Box::new(Ordered::new(aggregate, spec)?), Ordered::columns(aggregate))
            }
            None => (accumulate::make(aggregate, &types)?, aggregate.arguments.iter().collect()),
        };
        // Values in order have equal ones side by side.
        if aggregate.distinct && !aggregate.is_ordered() {
            accumulator = Box::new(Distinct::new(accumulator, &types, spec));
        }
        Ok(Self {
            arguments: arguments.into_iter().map(Evaluator::new).collect(),
            raises: aggregate.filter.as_ref().is_some_and(|filter| filter.can_raise(&spec.input)),
            filter: aggregate.filter.as_ref().map(Evaluator::new),
            accumulator,
        })
    }

    fn push(&mut self, batch: &Batch, numbers: Option<&[u32]>) -> Result<()> {
        let Some(filter) = &mut self.filter else { return self.update(batch, numbers) };
        let chosen = if self.raises { filter.select_value(batch)? } else { filter.select(batch)? };
        match chosen {
            None => self.update(batch, numbers),
            Some(rows) if rows.is_empty() => Ok(()),
            Some(rows) => {
                let kept: Option<Vec<u32>> =
                    numbers.map(|numbers| rows.iter().map(|&row| numbers[row as usize]).collect());
                self.update(&batch.take(&rows), kept.as_deref())
            }
        }
    }

    fn update(&mut self, batch: &Batch, numbers: Option<&[u32]>) -> Result<()> {
        let arguments = self.arguments.iter_mut().map(|argument| argument.evaluate(batch));
        let arguments = arguments.collect::<Result<Vec<Arc<Vector>>>>()?;
        let groups = numbers.map_or(Groups::One, Groups::Numbers);
        self.accumulator.update(&arguments, batch.rows, groups)
    }
}

impl Table {
    /// A table without groups, or with the one group if there are no keys. Its groups may take this many
    /// bytes. Rows of further groups are spread by this level of their hash.
    pub fn new(spec: &Spec, level: u32, memory: usize) -> Result<Self> {
        let (states, results) = states(spec)?;
        let mut table = Self {
            keys: spec.keys.iter().map(Evaluator::new).collect(),
            set: (!spec.keys.is_empty()).then(|| Numbering::new(&spec.key_types(), memory / 4)),
            states,
            results,
            groups: 0,
            numbers: Vec::new(),
            spilled: Spilled {
                memory,
                files: spec.files.clone(),
                level,
                whole: false,
                rows: None,
                again: Vec::new(),
            },
        };
        if table.set.is_none() {
            table.grow(1);
        }
        Ok(table)
    }

    /// A table of groups whose hashes have their highest bits in common.
    pub fn of_partition(spec: &Spec, memory: usize) -> Result<Self> {
        let mut table = Self::new(spec, LEVELS, memory)?;
        // Its keys are few of a range's, so that an array of a place for each would be mostly empty.
        table.set = table.set.map(|_| Numbering::new(&spec.key_types(), 0));
        table.spilled.whole = true;
        Ok(table)
    }

    /// Whether groups can be taken out of it and the others left.
    pub fn is_divisible(&self) -> bool {
        self.set.is_some() && self.states.iter().all(|state| state.accumulator.is_divisible())
    }

    /// True when it takes no further groups.
    pub fn is_full(&self) -> bool {
        self.set.as_ref().is_some_and(Numbering::is_frozen)
    }

    /// Number of groups.
    pub const fn groups(&self) -> usize {
        self.groups
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        self.set.as_ref().map_or(0, Numbering::bytes)
            + self.states.iter().map(|state| state.accumulator.bytes()).sum::<usize>()
    }

    fn grow(&mut self, groups: usize) {
        if groups > self.groups {
            self.groups = groups;
            self.states.iter_mut().for_each(|state| state.accumulator.grow(groups));
        }
    }

    /// Takes the rows of a batch.
    pub fn push(&mut self, batch: &Batch) -> Result<()> {
        let Some(set) = &mut self.set else {
            return self.states.iter_mut().try_for_each(|state| state.push(batch, None));
        };
        let keys = self.keys.iter_mut().map(|key| key.evaluate(batch)).collect::<Result<Vec<_>>>()?;
        set.number(&keys, batch.rows, &mut self.numbers)?;
        let groups = set.len();
        if set.is_frozen() && self.numbers.contains(&ABSENT) {
            return self.push_some(batch, &keys);
        }
        self.grow(groups);
        for state in &mut self.states {
            state.push(batch, Some(&self.numbers))?;
        }
        self.close_if_full()
    }

    /// Takes no further groups where its memory is used up.
    pub fn close_if_full(&mut self) -> Result<()> {
        if self.bytes() > self.spilled.memory
            && let Some(set) = &mut self.set
        {
            if self.spilled.files.is_none() {
                return Err(Error::Decline("groups past the memory, and no temporary files"));
            }
            set.freeze();
        }
        Ok(())
    }

    /// Takes the rows whose group is there, and writes the others to files.
    fn push_some(&mut self, batch: &Batch, keys: &[Arc<Vector>]) -> Result<()> {
        let (absent, present): (Vec<u32>, Vec<u32>) =
            (0..batch.rows as u32).partition(|&row| self.numbers[row as usize] == ABSENT);
        let Some(files) = &self.spilled.files else { return Err(Error::Decline("no temporary files")) };
        let absent_keys: Vec<_> = keys.iter().map(|key| Arc::new(key.take(&absent))).collect();
        let level = self.spilled.level;
        let make = if self.spilled.whole { Partitions::whole } else { Partitions::new };
        self.spilled.rows.get_or_insert_with(|| make(level)).write(
            &absent_keys,
            &batch.take(&absent).columns,
            absent.len(),
            files,
        )?;
        let numbers: Vec<u32> = present.iter().map(|&row| self.numbers[row as usize]).collect();
        let batch = batch.take(&present);
        self.states.iter_mut().try_for_each(|state| state.push(&batch, Some(&numbers)))
    }

    /// Files of rows whose groups are not here, each with the level at which its rows are spread. Called once
    /// the groups that are here were given out.
    pub fn take_spilled(&mut self) -> Vec<(BatchFile, u32)> {
        self.spilled.rows.take().map(|rows| rows.into_files().collect()).unwrap_or_default()
    }

    /// The states of one aggregate, unless an earlier one has them, too.
    pub fn own_states(&mut self, aggregate: usize) -> Option<&mut Box<dyn Accumulator>> {
        let &(_, at) = self.results.get(aggregate)?;
        let first = self.results.iter().position(|&(_, other)| other == at) == Some(aggregate);
        self.states.get_mut(at).filter(|_| first).map(|state| &mut state.accumulator)
    }

    /// Takes over the groups of another thread's table.
    pub fn merge(&mut self, mut other: Self) -> Result<()> {
        let rows = other.spilled.rows.take().into_iter().flat_map(Partitions::into_files);
        self.spilled.again.extend(other.spilled.again.drain(..).chain(rows.map(|(file, _)| file)));
        other.close();
        let all: Vec<u32> = (0..other.groups as u32).collect();
        self.take_groups(&mut other, &all)
    }

    /// Takes over these groups of another table that is closed, all of them unless it is divisible.
    pub fn take_groups(&mut self, other: &mut Self, groups: &[u32]) -> Result<()> {
        // Rows of these groups may have gone to files.
        let rows = self.spilled.rows.take().into_iter().flat_map(Partitions::into_files);
        self.spilled.again.extend(rows.map(|(file, _)| file));
        let mut to = Vec::with_capacity(groups.len());
        match (&mut self.set, &other.set) {
            (Some(set), Some(from)) => {
                let full = set.is_frozen();
                set.thaw();
                let mut numbers = Vec::new();
                for groups in groups.chunks(BATCH_ROWS) {
                    interrupt::check()?;
                    set.number(&from.take(groups), groups.len(), &mut numbers)?;
                    to.extend_from_slice(&numbers);
                }
                if full {
                    set.freeze();
                }
                let known = set.len();
                self.grow(known);
            }
            _ => to.push(0),
        }
        for (state, other) in self.states.iter_mut().zip(&mut other.states) {
            state.accumulator.merge(other.accumulator.as_mut(), groups, &to)?;
        }
        Ok(())
    }

    /// Hashes of the keys of all groups. The table is closed.
    pub fn hashes(&self, hashes: &mut Vec<u64>) -> Result<()> {
        let keys = self.set.as_ref().map(|set| set.slice(0, self.groups)).unwrap_or_default();
        hash::hash_rows(&keys, self.groups, hashes)
    }

    /// No further rows come, so that keys can be shared.
    pub fn close(&mut self) {
        if let Some(set) = &mut self.set {
            set.seal();
        }
    }

    /// A file of rows to push once more before the table is complete: their groups may be here, and no
    /// further ones are taken.
    pub fn take_again(&mut self) -> Option<BatchFile> {
        let file = self.spilled.again.pop()?;
        if let Some(set) = &mut self.set {
            set.freeze();
        }
        Some(file)
    }

    /// All rows were seen.
    pub fn complete(&mut self, check: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.close();
        self.states.iter_mut().try_for_each(|state| state.accumulator.complete(check))
    }

    /// Keys and results of groups `start..start + rows`.
    pub fn output(&mut self, start: usize, rows: usize) -> Result<Batch> {
        let mut columns = self.set.as_ref().map(|set| set.slice(start, rows)).unwrap_or_default();
        for &(function, at) in &self.results {
            if let Some(state) = self.states.get_mut(at) {
                columns.push(Arc::new(state.accumulator.finish(function, start, rows)?));
            }
        }
        Ok(Batch::new(rows, columns))
    }
}
