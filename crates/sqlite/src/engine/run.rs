//! Plans, run to their end or batch by batch.

use std::sync::Arc;

use query::{
    Aggregate, AggregateFunction, Batch, Execution, Expression, Plan, Profile, Settings, Source, TextOrder,
};
use vector::LogicalType;

use super::host::SqliteHost;
use super::source::TableSource;
use super::temp_files::Directory;
use crate::api::{Connection, Error, Result, raw};

/// What a query may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes that one operator may hold before it writes rows to temporary files.
    pub memory: usize,
    /// Threads, the caller's among them.
    pub threads: usize,
}

impl Limits {
    fn settings(self) -> Settings {
        Settings { memory: self.memory, threads: self.threads, temp_files: Some(Arc::<Directory>::default()) }
    }
}

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
        limits: Limits,
        profile: Option<Arc<Profile>>,
    ) -> Result<Self> {
        let execution = Execution::measured(plan, sources, limits.settings(), profile).map_err(told)?;
        Ok(Self { execution, host: SqliteHost::new(db) })
    }

    /// The next rows, None at the end.
    pub fn next(&mut self) -> Result<Option<Batch>> {
        self.execution.next(&mut self.host).map_err(told)
    }
}

/// All rows of a plan over these sources.
pub fn run_plan(
    db: Connection,
    plan: &Plan,
    sources: Vec<Box<dyn Source>>,
    limits: Limits,
) -> Result<Vec<Batch>> {
    all(db, plan, sources, limits).map_err(told)
}

fn all(
    db: Connection,
    plan: &Plan,
    sources: Vec<Box<dyn Source>>,
    limits: Limits,
) -> query::Result<Vec<Batch>> {
    let mut host = SqliteHost::new(db);
    let mut execution = Execution::new(plan, sources, limits.settings())?;
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
    // One row comes of it, so there is nothing to write to files.
    match all(db, plan, vec![Box::new(source)], Limits { memory: 64 << 20, threads: 1 }) {
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
