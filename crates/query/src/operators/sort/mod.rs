//! Sorting: the sink of `Plan::Sort`, all rows or the first few of them.
//!
//! Rows are kept in columns (`rows`), the values of the sort keys beside them, and put in order at the end (`order`, `merge`).

mod merge;
mod order;
mod rows;

use std::any::Any;
use std::sync::{Arc, Mutex};

use vector::LogicalType;

pub use self::order::Key;
pub use self::rows::{Room, SortedRows};
use crate::{
    Batch, Error, Evaluator, Expression, Host, Plan, Result, Settings, Sink, SinkLocal, SortKey, Source, Unit,
};

/// The shared part.
pub struct Sort {
    shared: Arc<Shared>,
}

struct Shared {
    keys: Vec<SortKey>,
    limit: Option<usize>,
    /// Types of the columns, those of computed keys after them.
    types: Vec<LogicalType>,
    /// Columns of the input.
    width: usize,
    order: Vec<Key>,
    room: Room,
    rows: Mutex<Option<SortedRows>>,
}

impl Shared {
    fn rows(&self) -> SortedRows {
        SortedRows::new(&self.types, &self.order, self.limit, &self.room)
    }
}

impl Sort {
    /// The sink of a sort plan.
    pub fn new(plan: &Plan, settings: &Arc<Settings>) -> Result<Self> {
        let Plan::Sort { input, keys, limit } = plan else { return Err(Error::Decline("not a sort")) };
        let mut types = input.types();
        let width = types.len();
        let mut order = Vec::with_capacity(keys.len());
        for key in keys {
            let column = match &key.expression {
                Expression::Column(at) if *at < width => *at,
                expression => {
                    types.push(expression.logical(&types[..width]));
                    types.len() - 1
                }
            };
            if types.get(column).is_none_or(|logical| !logical.is_ordered()) {
                return Err(Error::Decline("order of this type"));
            }
            order.push(Key {
                column,
                descending: key.descending,
                nulls_first: key.nulls_first,
                order: key.order.clone(),
            });
        }
        let limit = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let memory = settings.memory / settings.threads.max(1);
        let room = Room { memory, files: settings.temp_files.clone() };
        let shared = Shared { keys: keys.clone(), limit, types, width, order, room, rows: Mutex::new(None) };
        Ok(Self { shared: Arc::new(shared) })
    }
}

const POISONED: Error = Error::Decline("a thread panicked");

impl Sink for Sort {
    fn make(&self) -> Result<Box<dyn SinkLocal>> {
        let shared = Arc::clone(&self.shared);
        let computed = shared.keys.iter().filter_map(|key| match &key.expression {
            Expression::Column(at) if *at < shared.width => None,
            expression => Some(Evaluator::new(expression)),
        });
        Ok(Box::new(Local { computed: computed.collect(), rows: shared.rows(), shared }))
    }

    fn complete(&self) -> Result<Box<dyn Source>> {
        let mut rows = match self.shared.rows.lock().map_err(|_| POISONED)?.take() {
            Some(rows) => rows,
            None => self.shared.rows(),
        };
        rows.sort()?;
        Ok(Box::new(Output { rows, width: self.shared.width }))
    }

    fn needs_host(&self) -> bool {
        self.shared.keys.iter().any(|key| key.expression.needs_host())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> String {
        let keys = self
            .shared
            .keys
            .iter()
            .map(|key| format!("{:?}{}", key.expression, if key.descending { " desc" } else { "" }));
        let keys = keys.collect::<Vec<_>>().join(", ");
        match self.shared.limit {
            Some(limit) => format!("Top {limit}: {keys}"),
            None => format!("Sort: {keys}"),
        }
    }
}

struct Local {
    shared: Arc<Shared>,
    computed: Vec<Evaluator>,
    rows: SortedRows,
}

impl SinkLocal for Local {
    fn push(&mut self, batch: Batch) -> Result<bool> {
        if self.shared.limit == Some(0) {
            return Ok(false);
        }
        let mut columns = batch.columns.clone();
        for key in &mut self.computed {
            columns.push(key.evaluate(&batch)?);
        }
        self.rows.push(&columns, batch.rows)?;
        Ok(true)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let mut shared = self.shared.rows.lock().map_err(|_| POISONED)?;
        match shared.as_mut() {
            None => *shared = Some(self.rows),
            Some(rows) => rows.merge(self.rows)?,
        }
        Ok(())
    }
}

struct Output {
    rows: SortedRows,
    width: usize,
}

impl Source for Output {
    fn next_unit(&mut self, _host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        let Some(batch) = self.rows.next_batch()? else { return Ok(None) };
        let mut columns = batch.columns;
        columns.truncate(self.width);
        Ok(Some(Box::new(Some(Batch::new(batch.rows, columns)))))
    }
}
