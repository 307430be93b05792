//! Plans, run to their end or batch by batch.

use std::sync::Arc;

use query::{
    Aggregate, AggregateFunction, Batch, Execution, Expression, Plan, Profile, Settings, Source, TextOrder,
};
use vector::LogicalType;

use super::host::SqliteHost;
use super::source::TableSource;
use crate::api::{Connection, Error, Result, raw};

/// Bytes that one operator may hold.
const MEMORY: usize = 1 << 30;

/// A plan that runs.
pub struct Running {
    execution: Execution,
    host: SqliteHost,
}

impl Running {
    /// Begins to run a plan over these sources.
    pub fn new(
        db: Connection,
        plan: &Plan,
        sources: Vec<Box<dyn Source>>,
        threads: usize,
        profile: Option<Arc<Profile>>,
    ) -> Result<Self> {
        let settings = Settings { memory: MEMORY, threads, temp_files: None };
        let execution = Execution::measured(plan, sources, settings, profile).map_err(told)?;
        Ok(Self { execution, host: SqliteHost::new(db) })
    }

    /// The next rows, None at the end.
    pub fn next(&mut self) -> Result<Option<Batch>> {
        self.execution.next(&mut self.host).map_err(told)
    }
}

/// All rows of a plan over these sources.
pub fn run_plan(db: Connection, plan: &Plan, sources: Vec<Box<dyn Source>>) -> Result<Vec<Batch>> {
    all(db, plan, sources).map_err(told)
}

fn all(db: Connection, plan: &Plan, sources: Vec<Box<dyn Source>>) -> query::Result<Vec<Batch>> {
    let settings = Settings { memory: MEMORY, threads: 1, temp_files: None };
    let mut host = SqliteHost::new(db);
    let mut execution = Execution::new(plan, sources, settings)?;
    let mut batches = Vec::new();
    while let Some(batch) = execution.next(&mut host)? {
        batches.push(batch);
    }
    Ok(batches)
}

/// How errors begin that name what the engine has met and cannot compute.
pub const REFUSAL: &str = "the engine cannot compute this: ";

/// What the engine's errors are called in SQLite.
fn told(error: query::Error) -> Error {
    use query::SqlError as S;
    match error {
        query::Error::Data(error) => error.into(),
        query::Error::Cancelled => Error::coded(raw::SQLITE_INTERRUPT, "interrupted"),
        query::Error::Decline(what) => Error::new(format!("{REFUSAL}{what}")),
        query::Error::Sql(S::BigintOutOfRange | S::IntegerOutOfRange | S::SmallintOutOfRange) => {
            Error::new("integer overflow")
        }
        query::Error::Sql(error) => Error::new(format!("{REFUSAL}{error:?}")),
    }
}

/// All rows of a plan whose only source is this one. None if the engine declines.
pub fn rows_of(db: Connection, plan: &Plan, source: TableSource) -> Result<Option<Vec<Batch>>> {
    match all(db, plan, vec![Box::new(source)]) {
        Ok(batches) => Ok(Some(batches)),
        Err(query::Error::Decline(_)) => Ok(None),
        Err(error) => Err(told(error)),
    }
}

/// An aggregate of the engine's.
pub fn aggregate(function: AggregateFunction, arguments: Vec<Expression>, result: LogicalType) -> Aggregate {
    Aggregate {
        function,
        arguments,
        distinct: false,
        filter: None,
        order_by: Vec::new(),
        order: TextOrder::Bytes,
        result,
        host: None,
    }
}
