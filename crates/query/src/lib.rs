//! Vectorised query execution: plans of operators over batches of column vectors, with the host's data and
//! the host's answers.
//!
//! A host translates (part of) a query into a `Plan`, which is plain data, hands over a `Source` for each
//! table it reads and pulls batches from an `Execution`. Everything here works on `vector::Vector`s; it knows
//! no page, snapshot, Datum or file. Operators form pipelines. A pipeline has a source of work units,
//! transforms that run on the thread that took the unit, and a sink. A sink that has seen all rows becomes
//! the source of the next pipeline.
//!
//! Exactness: every operator gives the host's own answer or declines (`Error::Decline`). Then the host runs
//! the query itself. An error that SQL defines (overflow, division by zero) is an `Error::Sql`. If no row was
//! handed out yet, the host repeats the query with its own executor.
#![deny(unsafe_code)]

mod derive;
mod division;
mod execution;
pub mod explain;
pub mod expression;
mod hash;
mod int_bits;
mod interrupt;
mod kernels;
pub mod operators;
mod pipeline;
mod plan;
pub mod row_container;
mod simplify;
mod stream;
mod temp_file;

pub use derive::{DerivedColumn, DerivedColumns, derive_columns};
pub use execution::{Execution, Figures, Profile};
pub use expression::{
    CaseRule, Condition, DateField, Evaluator, Expression, Function, HostFunction, is_known_regexp,
};
pub use operators::{Bound, is_fraction};
pub use pipeline::{Build, Emit, Pipeline, Runner, Settings, Sink, SinkLocal, Transform, TransformFactory};
pub use plan::{
    Aggregate, AggregateFunction, FrameBound, FrameExclusion, FrameOffset, FrameUnits, HostAggregate,
    JoinKind, Plan, Regression, SortKey, TextCompare, TextOrder, WindowCall, WindowFrame, WindowFunction,
};
pub use simplify::simplify;
pub use stream::settled;
pub use temp_file::{SharedTempFiles, TempFile, TempFiles};
pub use vector::flow::{
    BATCH_ROWS, Batch, ColumnSummary, Edge, Error, Extent, Host, Members, Ranking, Result, RowFilter, Source,
    SqlError, Step, Summary, SummaryNeed, Unit,
};
