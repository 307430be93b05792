//! A plan over one table, run to its end.

use query::{Execution, Plan, Settings};

use super::host::SqliteHost;
use super::source::TableSource;
use crate::api::{Connection, Error, Result, raw};

/// Bytes that one operator may hold.
const MEMORY: usize = 1 << 30;

/// All rows of a plan whose only source is this one. None if the engine declines.
pub fn rows_of(db: Connection, plan: &Plan, source: TableSource) -> Result<Option<Vec<query::Batch>>> {
    let settings = Settings { memory: MEMORY, threads: 1, temp_files: None };
    let mut host = SqliteHost::new(db);
    let mut batches = Vec::new();
    let run = || {
        let mut execution = Execution::new(plan, vec![Box::new(source)], settings)?;
        while let Some(batch) = execution.next(&mut host)? {
            batches.push(batch);
        }
        Ok(())
    };
    match run() {
        Ok(()) => Ok(Some(batches)),
        Err(query::Error::Decline(_)) => Ok(None),
        Err(query::Error::Data(error)) => Err(error.into()),
        Err(query::Error::Cancelled) => Err(Error::coded(raw::SQLITE_INTERRUPT, "interrupted")),
        Err(query::Error::Sql(error)) => Err(Error::new(format!("{error:?}"))),
    }
}
