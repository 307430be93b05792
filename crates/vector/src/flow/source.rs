//! Where batches come from.
//!
//! A `Source` lives on the host's main thread, because it needs the host to find the next rows (pages,
//! visibility, its own executor). It hands out `Unit`s: pieces of work that own their bytes and may be
//! decoded and filtered on any thread. `query` pulls from sources, and a host can implement a source with
//! `stripe::scan`.

use std::sync::Arc;

use super::{Batch, Edge, Ranking, Result};
use crate::{Decimal, Predicate, Scalar, Vector};

/// What is known of one column of a unit without decoding it.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnSummary {
    /// Rows that are NULL.
    pub nulls: u64,
    /// The least and the greatest value that is not NULL, under the type's own order, if they are known
    /// exactly. Decimals show as many digits as their scale has.
    pub bounds: Option<(Scalar, Scalar)>,
    /// The sum of the values that are not NULL, if it is known exactly.
    pub sum: Option<Decimal>,
}

/// Stands for rows that need not be looked at one by one.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// How many rows.
    pub rows: u64,
    /// One for each column of the source. None if nothing is known of the column.
    pub columns: Vec<Option<ColumnSummary>>,
}

/// What a unit gives next.
#[derive(Debug)]
pub enum Step {
    /// Rows.
    Batch(Batch),
    /// Rows that the pipeline's sink said it can take as a summary (`Sink::wants_summary`).
    Summary(Summary),
    /// No more.
    Done,
}

/// A piece of work: the rows of a chunk, say. Owns what it needs.
pub trait Unit: Send {
    /// The next rows.
    fn next(&mut self) -> Result<Step>;
}

/// A batch that is there already.
impl Unit for Option<Batch> {
    fn next(&mut self) -> Result<Step> {
        Ok(self.take().map_or(Step::Done, Step::Batch))
    }
}

/// A table, an index scan, rows of the host's executor. Used on the main thread only.
pub trait Source {
    /// The next piece of work, None at the end.
    fn next_unit(&mut self, host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>>;

    /// Rows for which this is not TRUE need not come (a join knows by now what can match). May be ignored.
    /// Only before the first unit.
    fn narrow(&mut self, _predicate: Predicate) {}

    /// Rows whose value in this column `members` does not select need not come. A source that decodes columns
    /// late asks `members` before it decodes the others, on any thread. False: it will not ask. Only before
    /// the first unit.
    fn narrow_members(&mut self, _column: usize, _members: &Arc<dyn Members>) -> bool {
        false
    }

    /// A sort wants only the first rows by this column. Rows past `bound` need not come. The source should
    /// give the rows that can come first before others, so that the bound is close soon. False: it will not
    /// ask `bound`. Only before the first unit.
    fn rank(&mut self, _column: usize, _bound: &Arc<dyn Ranking>) -> bool {
        false
    }

    /// How early, in the order of the bound that it was given, the first of its rows still to come can be.
    /// None if it has no row left.
    fn edge(&mut self) -> Result<Option<Edge>> {
        Ok(Some(Edge::Anywhere))
    }

    /// Rows for which `condition` is not TRUE do not come. A source that decodes columns late asks the
    /// condition when it has the columns that the condition reads. Conditions are asked in the order in which
    /// they were given, each only about rows that passed the earlier ones. False: the rows come. Only before
    /// the first unit.
    fn filter(&mut self, _condition: &Arc<dyn RowFilter>) -> bool {
        false
    }

    /// Columns without a flag may hold anything of their type, because nobody reads them. Only before the
    /// first unit.
    fn read_only(&mut self, _columns: &[bool]) {}

    /// Bytes that it holds now, for EXPLAIN.
    fn memory(&self) -> usize {
        0
    }

    /// True if its units must run on the host's main thread.
    fn needs_host(&self) -> bool {
        false
    }

    /// True if the order of its rows may mean something to the query (rows of an index scan or a sort).
    /// Threads would mix them up.
    fn is_ordered(&self) -> bool {
        false
    }

    /// From now on a unit may give a summary instead of rows, if all its rows qualify and the summary has the
    /// wanted parts (see `Sink::wants_summary`).
    fn allow_summaries(&mut self, _columns: &[SummaryNeed]) {}
}

/// A source without rows. It stands for one that nobody reads or needs to read.
pub struct Nothing;

impl Source for Nothing {
    fn next_unit(&mut self, _host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        Ok(None)
    }
}

/// A condition that a source looks at before it decodes the columns that only later operators read. Any
/// number of threads may ask at once.
pub trait RowFilter: Send + Sync {
    /// Positions of the columns it reads, ascending.
    fn columns(&self) -> &[usize];

    /// The rows for which it is TRUE, ascending. None if it is TRUE for all. Columns of the batch that it
    /// does not read may hold anything.
    ///
    /// # Errors
    /// Those of the condition.
    fn select(&self, batch: &Batch) -> Result<Option<Vec<u32>>>;
}

/// Which values of a column can matter, because the kept side of a join has them.
pub trait Members: Send + Sync {
    /// The rows whose value may matter, ascending. None for all rows.
    fn select(&self, column: &Vector) -> Option<Vec<u32>>;

    /// The same for consecutive integers from `first` on, one for each of `rows` rows, without a vector of
    /// them. None if the vector has to be asked.
    fn select_consecutive(&self, _first: i64, _rows: u32) -> Option<Vec<u32>> {
        None
    }
}

/// What a sink needs to know of a column to take a summary for its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SummaryNeed {
    /// The column's bounds.
    pub bounds: bool,
    /// The column's sum.
    pub sum: bool,
    /// How many of its rows are NULL.
    pub nulls: bool,
}

/// Services of the host, on its main thread.
pub trait Host {
    /// Ends the query with `Error::Cancelled` if the user asked for that. Called at least once a batch.
    fn check_interrupts(&mut self) -> Result<()>;

    /// Says, on any thread, that `check_interrupts` is going to end the query. This is a flag that is set
    /// from outside. Work that takes long on one batch looks at it (`interrupt`).
    fn interrupted(&self) -> fn() -> bool {
        || false
    }

    /// Called before threads are started, which inherit this thread's signal mask. If they must not handle
    /// the host's signals, the host blocks the signals here,
    fn before_threads(&mut self) {}

    /// and unblocks them here.
    fn after_threads(&mut self) {}
}
