//! Whole queries in the vectorised engine: from the text of a SELECT to a plan.
//!
//! - `statement`: the text, asked of SQLite and parsed
//! - `typed`: expressions with the class of their values; `host_functions`, `kernels`: functions that the
//!   engine has not; `asked`: those that SQLite computes itself
//! - `planner`: columns by number, and parts of a plan; `names`: what a name stands for
//! - `expressions`, `compare`, `arithmetic`, `calls`, `glob`: expressions as SQLite computes them
//! - `frame`: what one SELECT is made of; `from`: its tables; `plain`: tables that are not columnar
//! - `statistics`, `tables`, `joins`: which conditions go where, and in which order relations are joined
//! - `aggregates`, `groups`, `windows`, `subqueries`, `sets`, `select`: the rest of a SELECT
//! - `output`: the engine's rows as SQLite's values; `explained`: a query with what was done for it
//!
//! What the engine cannot compute as SQLite does is an error that names it. Nothing is computed otherwise.

mod aggregates;
mod arithmetic;
mod asked;
mod calls;
mod compare;
mod explained;
mod expressions;
mod frame;
mod from;
mod glob;
mod groups;
mod host_functions;
mod joins;
mod kernels;
mod names;
mod output;
mod plain;
mod planner;
mod select;
mod sets;
mod statement;
mod statistics;
mod subqueries;
mod tables;
mod typed;
mod windows;

use std::collections::VecDeque;
use std::rc::Rc;

use query::{Plan, Source};

pub use output::Rows;
pub use statement::Described;

use crate::api::{Connection, Error, Result};
use crate::engine::{REFUSAL, Running};
use crate::table::Tables;
use crate::values::Owned;
use output::OutputColumn;
use planner::Shown;

/// A query that is ready to run.
struct Prepared {
    plan: Plan,
    sources: Vec<Box<dyn Source>>,
    source_names: Vec<Shown>,
    layout: Vec<OutputColumn>,
    may_be_unsettled: bool,
}

/// A query with the values of its parameters, on a connection.
pub struct Query<'q> {
    /// The connection.
    pub db: Connection,
    /// Its tables.
    pub tables: &'q Rc<Tables>,
    /// The text.
    pub described: &'q Described,
    /// The values of parameters.
    pub parameters: Vec<Option<Owned>>,
}

/// The rows of a query, as they come.
pub enum Results {
    /// While it runs.
    Running(Box<Running>, Vec<OutputColumn>),
    /// From one that has ended.
    Kept(VecDeque<Rows>),
}

impl Query<'_> {
    /// Plans it. Tables are as they are now.
    fn prepare(&self, looks_at_classes: bool) -> Result<Prepared> {
        let room = bumpalo::Bump::new();
        let mut planner =
            planner::Planner::new(self.db, Rc::clone(self.tables), self.parameters.clone(), &room);
        planner.parameter_names.clone_from(&self.described.parameters);
        planner.looks_at_classes = looks_at_classes;
        statement::words(&self.described.text, &mut planner.words);
        planner.uses = statement::uses(&self.described.text);
        let select = statement::parse(&room, &self.described.text)?;
        let output = planner.select(select)?;
        let columns: Vec<typed::Typed> = output.ids.iter().map(|&id| planner.column(id)).collect();
        let flat = planner.flat(&columns);
        let mut plan = query::simplify(output.node.projected(&flat)?.plan);
        let (sources, source_names) = planner.take_sources(&mut plan);
        let may_be_unsettled = planner.may_be_unsettled;
        Ok(Prepared { plan, sources, source_names, layout: output::layout(&columns), may_be_unsettled })
    }

    /// Does something with the plan, and once more with one that looks at classes if it has to.
    fn with_plan<R>(&self, run: impl Fn(Prepared) -> Result<R>) -> Result<R> {
        match self.prepare(false).and_then(&run) {
            Err(error) if error.message.contains(kernels::UNSETTLED) => run(self.prepare(true)?),
            result => result,
        }
    }

    /// Begins to run it.
    pub fn start(&self) -> Result<Results> {
        self.results(false)
    }

    /// Runs it to its end. None where the engine cannot compute it.
    pub fn all(&self) -> Result<Option<Results>> {
        match self.results(true) {
            Err(error) if is_refusal(&error) => Ok(None),
            result => result.map(Some),
        }
    }

    fn results(&self, to_the_end: bool) -> Result<Results> {
        self.with_plan(|prepared| {
            let Prepared { plan, sources, layout, may_be_unsettled, .. } = prepared;
            let mut running = Running::new(self.db, &plan, sources, self.tables.limits(), None)?;
            if !may_be_unsettled && !to_the_end {
                return Ok(Results::Running(Box::new(running), layout));
            }
            // No row is handed out before it is known that all of them come.
            let mut kept = VecDeque::new();
            while let Some(batch) = running.next()? {
                kept.push_back(Rows::new(&batch, &layout)?);
            }
            Ok(Results::Kept(kept))
        })
    }
}

/// Whether an error says that the engine cannot compute something.
fn is_refusal(error: &Error) -> bool {
    error.message.starts_with(typed::REFUSAL) || error.message.starts_with(REFUSAL)
}

impl Results {
    /// The next rows, None at the end.
    pub fn next(&mut self) -> Result<Option<Rows>> {
        match self {
            Self::Kept(rows) => Ok(rows.pop_front()),
            Self::Running(running, layout) => match running.next()? {
                Some(batch) => Rows::new(&batch, layout).map(Some),
                None => Ok(None),
            },
        }
    }
}
