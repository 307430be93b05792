//! Hash aggregation: the sink of `Plan::Aggregate`.
//!
//! Each thread fills a table of its own: the keys of a batch become group numbers (`groups`), then each accumulator (`accumulate` and its families) goes through its argument
//! once. When a thread finishes, its table is merged into the shared one, whose groups are the output.

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
mod percentile;
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
pub use self::sets::SetsSink;
use self::table::Table;
use crate::operators::sort::Room;
use crate::row_container::BatchFile;
use crate::{
    Aggregate, BATCH_ROWS, Batch, Error, Expression, Host, Plan, Result, Settings, SharedTempFiles, Sink,
    SinkLocal, Source, Summary, SummaryNeed, Unit,
};

/// What all threads know.
pub struct AggregateSink {
    shared: Arc<Shared>,
    needs: Option<Vec<SummaryNeed>>,
}

struct Shared {
    spec: Spec,
    table: Mutex<Option<Table>>,
}

/// What is computed.
pub struct Spec {
    keys: Vec<Expression>,
    aggregates: Vec<Aggregate>,
    /// Types of the input's columns.
    input: Vec<LogicalType>,
    /// Bytes that one thread's table may take, and that its memo of group numbers may.
    memory: usize,
    memo: usize,
    /// Where rows go for which there is no room.
    files: Option<SharedTempFiles>,
    /// There is one group, and no other grouping beside it.
    alone: bool,
}

impl Spec {
    /// Where one aggregate collects rows to put them in order: half of the memory is for those of all.
    fn room(&self) -> Room {
        let sharing = self.aggregates.iter().filter(|aggregate| aggregate.is_ordered()).count();
        Room { memory: self.memory / 2 / sharing.max(1), files: self.files.clone() }
    }

    fn key_types(&self) -> Vec<LogicalType> {
        self.keys.iter().map(|key| key.logical(&self.input)).collect()
    }
}

impl AggregateSink {
    /// The sink of an aggregate plan.
    pub fn new(plan: &Plan, settings: &Arc<Settings>) -> Result<Self> {
        let Plan::Aggregate { input, keys, aggregates, .. } = plan else {
            return Err(Error::Decline("not an aggregate"));
        };
        Self::over(input.types(), keys.clone(), aggregates, keys.is_empty(), settings.memory, settings)
    }

    /// The sink of these keys and aggregates over an input of these types, with so many bytes; `alone` as in `Spec`.
    fn over(
        input: Vec<LogicalType>,
        keys: Vec<Expression>,
        aggregates: &[Aggregate],
        alone: bool,
        memory: usize,
        settings: &Settings,
    ) -> Result<Self> {
        let memory = memory / settings.threads.max(1);
        let spec = Spec {
            keys,
            aggregates: aggregates.to_vec(),
            input,
            memory,
            memo: memory / 4,
            files: settings.temp_files.clone(),
            alone,
        };
        // What cannot be computed is said before anything runs.
        Table::new(&spec, 0)?;
        let needs = summary::needs(&spec);
        Ok(Self { shared: Arc::new(Shared { spec, table: Mutex::new(None) }), needs })
    }
}

const POISONED: Error = Error::Decline("a thread panicked");

impl Sink for AggregateSink {
    fn make(&self) -> Result<Box<dyn SinkLocal>> {
        let table = Table::new(&self.shared.spec, 0)?;
        Ok(Box::new(Local { table, shared: Arc::clone(&self.shared) }))
    }

    fn complete(&self) -> Result<Box<dyn Source>> {
        let table = self.shared.table.lock().map_err(|_| POISONED)?.take();
        let table = match table {
            Some(table) => table,
            None => Table::new(&self.shared.spec, 0)?,
        };
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(Groups { shared, table, sealed: false, next: 0, files: Vec::new() }))
    }

    fn wants_summary(&self) -> Option<Vec<SummaryNeed>> {
        self.needs.clone()
    }

    fn needs_host(&self) -> bool {
        let spec = &self.shared.spec;
        spec.keys.iter().any(Expression::needs_host)
            || spec.aggregates.iter().any(|aggregate| {
                let keys = aggregate.order_by.iter().map(|key| &key.expression);
                let mut all = aggregate.arguments.iter().chain(&aggregate.filter).chain(keys);
                Hosted::streams(aggregate, spec) || all.any(Expression::needs_host)
            })
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
}

impl SinkLocal for Local {
    fn push(&mut self, batch: Batch) -> Result<bool> {
        self.table.push(&batch)?;
        Ok(true)
    }

    fn push_summary(&mut self, summary: Summary) -> Result<()> {
        summary::push(&self.shared.spec, &mut self.table, &summary)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let mut shared = self.shared.table.lock().map_err(|_| POISONED)?;
        match shared.as_mut() {
            None => *shared = Some(self.table),
            Some(table) => table.merge(self.table)?,
        }
        Ok(())
    }
}

/// The groups of a finished table, then those of the files it had no room for.
struct Groups {
    shared: Arc<Shared>,
    table: Table,
    sealed: bool,
    next: usize,
    files: Vec<(BatchFile, u32)>,
}

impl Source for Groups {
    fn next_unit(&mut self, host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        if !self.sealed {
            self.table.seal(host)?;
            self.sealed = true;
        }
        while self.next == self.table.groups() {
            self.files.extend(self.table.take_spilled());
            let Some((mut file, level)) = self.files.pop() else { return Ok(None) };
            self.table = Table::new(&self.shared.spec, level)?;
            while let Some(batch) = file.read()? {
                host.check_interrupts()?;
                self.table.push(&batch)?;
            }
            self.table.seal(host)?;
            self.next = 0;
        }
        // Averages of very different magnitude may have no scale in common: fewer at a time then.
        let mut rows = BATCH_ROWS.min(self.table.groups() - self.next);
        let batch = loop {
            match self.table.output(self.next, rows) {
                Err(Error::Decline(_)) if rows > 1 => rows = rows.div_ceil(4),
                output => break output?,
            }
        };
        self.next += rows;
        Ok(Some(Box::new(Some(batch))))
    }
}
