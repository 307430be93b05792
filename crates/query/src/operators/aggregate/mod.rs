//! Hash aggregation: the sink of `Plan::Aggregate`.
//!
//! Each thread fills a table of its own: the keys of a batch become group numbers (`groups`), then each
//! accumulator (`accumulate` and its families) goes through its argument once. When a thread finishes, its
//! table is merged into the shared one, whose groups are the output. When it has met many groups before, all
//! threads' groups go to tables that they share (`partitioned`).

mod accumulate;
mod boolean;
mod copies;
mod count;
mod distinct;
mod extreme;
mod first;
pub(super) mod float_sum;
mod hosted;
mod ordered;
mod output;
mod partitioned;
mod percentile;
mod precise_sum;
mod regression;
pub(super) mod results;
mod sets;
mod sum;
mod summary;
mod table;
pub(super) mod variance;

use std::any::Any;
use std::sync::{Arc, Mutex};

use vector::LogicalType;

use self::hosted::Hosted;
use self::output::Output;
use self::partitioned::{Partitioned, Scatter};
pub use self::precise_sum::is_fraction;
pub use self::sets::SetsSink;
use self::table::Table;
use crate::operators::sort::Room;
use crate::{
    Aggregate, Batch, Error, Expression, Host, Plan, Result, Settings, SharedTempFiles, Sink, SinkLocal,
    Source, Step, Summary, SummaryNeed, Unit,
};

/// Groups that a thread keeps to itself: they stay in the caches near the processor.
const OWN: usize = 1 << 15;
/// Groups that a thread keeps to itself where no further groups are expected. To merge the tables of all
/// threads costs less then than to divide rows.
const FORESEEN: usize = 1 << 18;
/// A thread brings groups to the shared tables, and not rows, if a group has at least this many rows on
/// average.
const MANY: usize = 4;

/// Whether a thread keeps its table of `groups` groups, which has outgrown a limit. `rows` rows came since
/// the last limit and made `new` groups. The thread keeps the table if not many more groups are to come. Two
/// signs say so: the expected number of groups, and the share of rows that made a new group.
///
/// The share alone would mislead where each row is of a new group until all groups were met. Only the
/// expectation tells this from rows that are all groups of their own. The expectation was wrong if the table
/// has a quarter more groups. A table of more than `FORESEEN` groups is never kept: it takes longer to divide
/// than its rows would have.
fn keeps(expected: f64, groups: usize, rows: usize, new: usize) -> bool {
    let few = expected <= FORESEEN as f64 && groups <= FORESEEN;
    few && (groups as f64 <= 1.25 * expected || new < rows / 4 * 3)
}

/// The data that all threads share.
pub struct AggregateSink {
    shared: Arc<Shared>,
    needs: Option<Vec<SummaryNeed>>,
}

struct Shared {
    spec: Spec,
    gathered: Mutex<Gathered>,
}

/// The groups that threads have brought.
enum Gathered {
    Nothing,
    Table(Box<Table>),
    Partitioned(Arc<Partitioned>),
}

/// What the aggregation computes.
pub struct Spec {
    keys: Vec<Expression>,
    aggregates: Vec<Aggregate>,
    /// Groups expected.
    expected: f64,
    /// Types of the input's columns.
    input: Vec<LogicalType>,
    /// Bytes that the tables of all threads may take together.
    memory: usize,
    /// Threads that compute.
    threads: usize,
    /// Parts that many groups are divided into; 0: they are not.
    parts: usize,
    /// The files for rows that have no room in memory.
    files: Option<SharedTempFiles>,
    /// There is one group, and no other grouping beside it.
    alone: bool,
}

impl Spec {
    /// A sorter in which one aggregate of one thread collects rows to put them in order. All such sorters
    /// together have half of the memory.
    fn room(&self) -> Room {
        let sharing = self.aggregates.iter().filter(|aggregate| aggregate.is_ordered()).count();
        Room { memory: self.memory / self.threads / 2 / sharing.max(1), files: self.files.clone() }
    }

    /// Whether some part of the aggregation has to be computed on the main thread.
    fn needs_host(&self) -> bool {
        self.keys.iter().any(Expression::needs_host)
            || self.aggregates.iter().any(|aggregate| {
                let keys = aggregate.order_by.iter().map(|key| &key.expression);
                let mut all = aggregate.arguments.iter().chain(&aggregate.filter).chain(keys);
                Hosted::streams(aggregate, self) || all.any(Expression::needs_host)
            })
    }

    /// Whether no row can raise an error, or decline, when it is aggregated.
    fn is_certain(&self) -> bool {
        let keys = self.keys.iter().all(|key| key.logical(&self.input) != LogicalType::Numeric);
        keys && self.aggregates.iter().all(|aggregate| aggregate.is_certain(&self.input))
    }

    fn key_types(&self) -> Vec<LogicalType> {
        self.keys.iter().map(|key| key.logical(&self.input)).collect()
    }

    fn own_table(&self) -> Result<Table> {
        Table::new(self, 0, self.own_memory())
    }

    /// Bytes of a thread's own table.
    const fn own_memory(&self) -> usize {
        match self.parts {
            0 => self.memory / self.threads,
            // The shared tables have the rest.
            _ => self.memory / self.threads / 8 * 3,
        }
    }

    fn columns_read(&self) -> Vec<bool> {
        let mut read = vec![false; self.input.len()];
        let arguments = self.aggregates.iter().flat_map(|aggregate| {
            let order = aggregate.order_by.iter().map(|key| &key.expression);
            aggregate.arguments.iter().chain(&aggregate.filter).chain(order)
        });
        self.keys.iter().chain(arguments).for_each(|expression| expression.mark_columns(&mut read));
        read
    }
}

impl Shared {
    /// The tables of all threads.
    fn partitioned(&self) -> Result<Arc<Partitioned>> {
        let mut gathered = self.gathered.lock().map_err(|_| POISONED)?;
        if let Gathered::Partitioned(parts) = &*gathered {
            return Ok(Arc::clone(parts));
        }
        let parts = Arc::new(Partitioned::new(&self.spec, self.spec.parts, self.spec.memory / 8 * 5)?);
        let before = std::mem::replace(&mut *gathered, Gathered::Partitioned(Arc::clone(&parts)));
        drop(gathered);
        if let Gathered::Table(table) = before {
            parts.take_table(*table)?;
        }
        Ok(parts)
    }
}

impl AggregateSink {
    /// The sink of an aggregate plan.
    pub fn new(plan: &Plan, settings: &Arc<Settings>) -> Result<Self> {
        let Plan::Aggregate { input, keys, aggregates, groups } = plan else {
            return Err(Error::Decline("not an aggregate"));
        };
        let alone = keys.is_empty();
        Self::over(input.types(), keys.clone(), aggregates.clone(), *groups, alone, settings)
    }

    /// The sink of these keys and aggregates, with groups as expected, over an input of these types; `alone`
    /// as in `Spec`.
    fn over(
        input: Vec<LogicalType>,
        keys: Vec<Expression>,
        aggregates: Vec<Aggregate>,
        expected: f64,
        alone: bool,
        settings: &Settings,
    ) -> Result<Self> {
        let mut spec = Spec {
            keys,
            aggregates,
            expected,
            input,
            memory: settings.memory,
            threads: settings.threads.max(1),
            parts: 0,
            files: settings.temp_files.clone(),
            alone,
        };
        // An aggregate that cannot be computed is declined here, before anything runs.
        let divisible = Table::new(&spec, 0, 0)?.is_divisible();
        // One thread has nothing to share: bringing its rows to parts costs more than it saves. An aggregate
        // that only the main thread can compute needs the main thread again for rows that come back from
        // files.
        if divisible && spec.threads > 1 && !spec.needs_host() {
            spec.parts = partitioned::parts(settings.memory);
        }
        let needs = summary::needs(&spec);
        Ok(Self { shared: Arc::new(Shared { spec, gathered: Mutex::new(Gathered::Nothing) }), needs })
    }
}

const POISONED: Error = Error::Decline("a thread panicked");

impl Sink for AggregateSink {
    fn make(&self) -> Result<Box<dyn SinkLocal>> {
        let shared = Arc::clone(&self.shared);
        let table = shared.spec.own_table()?;
        Ok(Box::new(Local { table, shared, rows: 0, limit: OWN, before: (0, 0), scatter: None }))
    }

    fn complete(&self) -> Result<Box<dyn Source>> {
        let mut gathered = self.shared.gathered.lock().map_err(|_| POISONED)?;
        let gathered = std::mem::replace(&mut *gathered, Gathered::Nothing);
        let (shared, spec) = (Arc::clone(&self.shared), &self.shared.spec);
        let table = match gathered {
            Gathered::Nothing => spec.own_table()?,
            Gathered::Table(table) => *table,
            Gathered::Partitioned(parts) => {
                let parts = Arc::into_inner(parts).ok_or(Error::Decline("a thread still has rows"))?;
                return Ok(Box::new(Parts { shared, tables: parts.into_tables()? }));
            }
        };
        Ok(Box::new(Groups { shared, output: Output::new(table, spec.own_memory()) }))
    }

    fn wants_summary(&self) -> Option<Vec<SummaryNeed>> {
        self.needs.clone()
    }

    fn needs_host(&self) -> bool {
        self.shared.spec.needs_host()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> String {
        let spec = &self.shared.spec;
        let functions = spec.aggregates.iter().map(|aggregate| format!("{aggregate:?}"));
        format!("Aggregate: {} by {:?}", functions.collect::<Vec<_>>().join(", "), spec.keys)
    }
}

struct Local {
    shared: Arc<Shared>,
    table: Table,
    /// Rows that went into the table.
    rows: usize,
    /// With more groups than this the thread decides again whether it keeps the table. `before` has the
    /// table's rows and groups at the last decision.
    limit: usize,
    before: (usize, usize),
    /// Takes the rows instead of the table where there are about as many groups as rows.
    scatter: Option<Scatter>,
}

impl Local {
    /// Whether the table has more groups than a thread keeps, or takes more memory.
    fn is_outgrown(&mut self) -> bool {
        let (spec, groups) = (&self.shared.spec, self.table.groups());
        if spec.parts == 0 {
            return false;
        }
        if self.table.bytes() > spec.own_memory() / 2 {
            return true;
        }
        if groups <= self.limit {
            return false;
        }
        let (rows, known) = std::mem::replace(&mut self.before, (self.rows, groups));
        self.limit = groups * 2;
        !keeps(spec.expected, groups, self.rows - rows, groups - known)
    }

    /// The table's groups go to the shared tables.
    fn divide(&mut self) -> Result<()> {
        let spec = &self.shared.spec;
        let parts = self.shared.partitioned()?;
        let table = std::mem::replace(&mut self.table, spec.own_table()?);
        let many = table.groups() * MANY <= self.rows;
        parts.take_table(table)?;
        (self.rows, self.limit, self.before) = (0, OWN, (0, 0));
        if !many || parts.is_full() {
            self.scatter = Some(Scatter::new(spec, parts, spec.own_memory() / 2));
        }
        Ok(())
    }
}

impl SinkLocal for Local {
    fn push(&mut self, batch: Batch) -> Result<bool> {
        if let Some(scatter) = &mut self.scatter {
            scatter.push(batch)?;
            return Ok(true);
        }
        self.rows += batch.rows;
        self.table.push(&batch)?;
        if self.is_outgrown() {
            self.divide()?;
        }
        Ok(true)
    }

    fn push_summary(&mut self, summary: Summary) -> Result<()> {
        summary::push(&self.shared.spec, &mut self.table, &summary)
    }

    fn memory(&self) -> usize {
        self.table.bytes() + self.scatter.as_ref().map_or(0, Scatter::bytes)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if let Some(scatter) = &mut self.scatter {
            return scatter.finish();
        }
        let mut gathered = self.shared.gathered.lock().map_err(|_| POISONED)?;
        let parts = match &mut *gathered {
            Gathered::Nothing => {
                *gathered = Gathered::Table(Box::new(self.table));
                return Ok(());
            }
            Gathered::Table(table) => return table.merge(self.table),
            Gathered::Partitioned(parts) => Arc::clone(parts),
        };
        drop(gathered);
        parts.take_table(self.table)
    }
}

/// The groups of one table, on the main thread.
struct Groups {
    shared: Arc<Shared>,
    output: Output,
}

impl Source for Groups {
    fn next_unit(&mut self, host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        loop {
            host.check_interrupts()?;
            let Some(batch) = self.output.step(&self.shared.spec, &mut || host.check_interrupts())? else {
                return Ok(None);
            };
            if batch.rows > 0 {
                return Ok(Some(Box::new(Some(batch))));
            }
        }
    }
}

/// The groups of several tables, each a unit of work. Rows that queue for a table go into it first.
struct Parts {
    shared: Arc<Shared>,
    tables: Vec<(Table, Vec<Batch>)>,
}

impl Source for Parts {
    fn next_unit(&mut self, _: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        let Some((table, waiting)) = self.tables.pop() else { return Ok(None) };
        // Rows that queue for other tables have the rest.
        let output = Output::new(table, self.shared.spec.own_memory() / 2).after(waiting);
        Ok(Some(Box::new(Part { shared: Arc::clone(&self.shared), output: Some(output) })))
    }
}

struct Part {
    shared: Arc<Shared>,
    output: Option<Output>,
}

impl Unit for Part {
    fn next(&mut self) -> Result<Step> {
        let Some(output) = &mut self.output else { return Ok(Step::Done) };
        // States of divided tables have nothing to complete that takes long.
        let step = output.step(&self.shared.spec, &mut || Ok(()))?;
        if step.is_none() {
            self.output = None;
        }
        Ok(step.map_or(Step::Done, Step::Batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_kept_where_no_many_groups_are_to_come() {
        // Each row is of a new group: all users in turn, and only the planner knows that they come again.
        assert!(keeps(50_000.0, OWN + 1, OWN + 1, OWN + 1));
        assert!(keeps(79_000.0, 2 * OWN, OWN, OWN));
        // Nothing is known of them, or they are more than were expected, or a great many.
        assert!(!keeps(200.0, OWN + 1, OWN + 1, OWN + 1));
        assert!(!keeps(50_000.0, 4 * OWN, 2 * OWN, 2 * OWN));
        assert!(!keeps(1e6, OWN + 1, OWN + 1, OWN + 1));
        // Most rows are of groups that are known.
        assert!(keeps(200.0, OWN + 1, 4 * OWN, OWN + 1));
        assert!(keeps(1.0, 8 * OWN, 12 * OWN, 4 * OWN));
        assert!(!keeps(1e6, OWN + 1, 4 * OWN, OWN + 1));
        assert!(!keeps(1.0, 9 * OWN, 36 * OWN, OWN));
    }
}
