//! Sorting: the sink of `Plan::Sort` and of `Plan::DistinctOn`. Sort keeps all rows or the first few of them.
//! DistinctOn keeps the first of rows that are equal in some of the keys.
//!
//! Rows are kept in columns (`rows`), the values of the sort keys beside them, and put in order at the end
//! (`order`, `pieces`, `merge`).

mod bound;
mod first;
mod merge;
mod order;
pub mod pieces;
mod ranks;
mod rows;

use std::any::Any;
use std::sync::{Arc, Mutex};

use vector::LogicalType;

pub use self::bound::Bound;
pub use self::first::FirstOfEach;
pub use self::order::Key;
pub use self::rows::{Room, SortedRows};
use crate::{
    Batch, Error, Evaluator, Expression, Host, Members, Pipeline, Plan, Ranking, Result, Settings, Sink,
    SinkLocal, SortKey, Source, Unit,
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
    /// Only the first of rows that are equal in this many of the keys stays.
    on: Option<usize>,
    room: Room,
    /// With a limit, where the source asks for it.
    bound: Option<Arc<Bound>>,
    rows: Mutex<Option<SortedRows>>,
}

impl Shared {
    fn rows(&self) -> SortedRows {
        let rows = SortedRows::new(&self.types, &self.order, self.limit, &self.room);
        match &self.bound {
            Some(bound) => rows.with_bound(bound),
            None => rows,
        }
    }
}

impl Sort {
    /// The sink of a sort plan over this pipeline.
    pub fn new(plan: &Plan, pipeline: &mut Pipeline, settings: &Arc<Settings>) -> Result<Self> {
        let (input, keys, limit, on) = match plan {
            Plan::Sort { input, keys, limit } => (input, keys, *limit, None),
            Plan::DistinctOn { input, keys, on } => (input, keys, None, Some(*on)),
            _ => return Err(Error::Decline("not a sort")),
        };
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
            if types.get(column).is_none_or(|&logical| !key.order.is_of(logical)) {
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
        let quiet = limit.is_some_and(|limit| limit > 0)
            && is_quiet(input)
            && !keys.iter().any(|key| key.expression.can_raise(&types[..width]));
        let bound = if quiet { offered(&order, width, pipeline) } else { None };
        let rows = Mutex::new(None);
        let shared = Shared { keys: keys.clone(), limit, types, width, order, on, room, bound, rows };
        Ok(Self { shared: Arc::new(shared) })
    }
}

/// Whether rows that are left out of a plan's source cannot be missed but as rows: no error of theirs is.
fn is_quiet(plan: &Plan) -> bool {
    match plan {
        Plan::Scan { .. } => true,
        Plan::Filter { input, condition } => !condition.can_raise(&input.types()) && is_quiet(input),
        Plan::Project { input, expressions } => {
            let types = input.types();
            !expressions.iter().any(|expression| expression.can_raise(&types)) && is_quiet(input)
        }
        Plan::Append { inputs, .. } => inputs.iter().all(is_quiet),
        // The kept side is read whole before; whether keys and conditions are quiet is told by the columns
        // that come through (`Pipeline::source_column`).
        Plan::Join { kind, left, .. } => !kind.marks_right() && is_quiet(left),
        _ => false,
    }
}

/// The bound by the first key, if the pipeline's source asks for it.
fn offered(order: &[Key], width: usize, pipeline: &mut Pipeline) -> Option<Arc<Bound>> {
    let first = order.first().filter(|first| first.column < width)?;
    let column = pipeline.source_column(first.column)?;
    let bound = Arc::new(Bound::new(first, order.len() == 1));
    let members: Arc<dyn Members> = Arc::clone(&bound) as _;
    let narrowed = pipeline.source.narrow_members(column, &members);
    let ranking: Arc<dyn Ranking> = Arc::clone(&bound) as _;
    let ranked = pipeline.source.rank(column, &ranking);
    (narrowed || ranked).then_some(bound)
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
        let on = self.shared.on.and_then(|on| self.shared.order.get(..on));
        let on = on.map(|keys| FirstOfEach::new(keys.to_vec()));
        Ok(Box::new(Output { rows, width: self.shared.width, on }))
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
        match (self.shared.limit, self.shared.on) {
            (Some(limit), _) => format!("Top {limit}: {keys}"),
            (None, Some(on)) => format!("Distinct on {on} of {keys}"),
            (None, None) => format!("Sort: {keys}"),
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

    fn memory(&self) -> usize {
        self.rows.bytes()
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
    /// Where one row of equal ones is wanted.
    on: Option<FirstOfEach>,
}

impl Source for Output {
    fn next_unit(&mut self, host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        while let Some(mut batch) = self.rows.next_batch()? {
            host.check_interrupts()?;
            if let Some(on) = &mut self.on {
                batch = on.of(batch);
            }
            if batch.rows > 0 {
                batch.columns.truncate(self.width);
                return Ok(Some(Box::new(Some(batch))));
            }
        }
        Ok(None)
    }
}
