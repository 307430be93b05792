//! Whole queries in the vectorised engine: from the text of a SELECT to a plan.
//!
//! - `statement`: the text, asked of SQLite and parsed
//! - `typed`: expressions with the class of their values; `host_functions`: functions that the engine has
//!   not; `asked`: those that SQLite computes itself
//! - `planner`: columns by number, and parts of a plan; `names`: what a name stands for
//! - `expressions`, `compare`, `arithmetic`, `calls`, `glob`: expressions as SQLite computes them
//! - `frame`: what one SELECT is made of; `from`: its tables; `plain`: tables that are not columnar
//! - `tables`, `joins`: which conditions go where, and in which order relations are joined
//! - `aggregates`, `windows`, `subqueries`, `sets`, `select`: the rest of a SELECT
//! - `output`: the engine's rows as SQLite's values
//!
//! What the engine cannot compute as SQLite does is an error that names it. Nothing is computed otherwise.

mod aggregates;
mod arithmetic;
mod asked;
mod calls;
mod compare;
mod expressions;
mod frame;
mod from;
mod glob;
mod host_functions;
mod joins;
mod names;
mod output;
mod plain;
mod planner;
mod select;
mod sets;
mod statement;
mod subqueries;
mod tables;
mod typed;
mod windows;

use std::rc::Rc;
use std::sync::Arc;

use query::explain::{Options, Spelling, add_figures, lines, operators};
use query::{Plan, Profile, Source};

pub use output::Rows;
pub use statement::Described;

use crate::api::{Connection, Result};
use crate::engine::Running;
use crate::table::Tables;
use crate::values::Owned;
use output::OutputColumn;
use planner::Shown;

/// A query that is ready to run.
pub struct Prepared {
    plan: Plan,
    sources: Vec<Box<dyn Source>>,
    source_names: Vec<Shown>,
    layout: Vec<OutputColumn>,
}

/// A query that runs.
pub struct Results {
    running: Running,
    layout: Vec<OutputColumn>,
}

impl Prepared {
    /// Plans a query with these values of its parameters. Tables are as they are now.
    pub fn new(
        db: Connection,
        tables: &Rc<Tables>,
        described: &Described,
        parameters: Vec<Option<Owned>>,
    ) -> Result<Self> {
        let room = bumpalo::Bump::new();
        let mut planner = planner::Planner::new(db, Rc::clone(tables), parameters, &room);
        planner.parameter_names.clone_from(&described.parameters);
        statement::words(&described.text, &mut planner.words);
        let select = statement::parse(&room, &described.text)?;
        let output = planner.select(select)?;
        let columns: Vec<typed::Typed> = output.ids.iter().map(|&id| planner.column(id)).collect();
        let mut flat = Vec::new();
        for (column, id) in columns.iter().zip(&output.ids) {
            flat.push((column.value.clone(), *id));
            if let typed::Class::Number(is_real) = &column.class {
                let flag = planner.new_hidden(typed::Class::Truth);
                flat.push(((**is_real).clone(), flag));
            }
        }
        let mut plan = query::simplify(output.node.projected(&flat)?.plan);
        let (sources, source_names) = planner.take_sources(&mut plan);
        Ok(Self { plan, sources, source_names, layout: output::layout(&columns) })
    }

    /// Begins to run it.
    pub fn start(self, db: Connection, threads: usize) -> Result<Results> {
        let running = Running::new(db, &self.plan, self.sources, threads, None)?;
        Ok(Results { running, layout: self.layout })
    }

    /// Runs it to its end. The operators with what they did, a line each, and how many rows there were.
    pub fn explain(self, db: Connection, threads: usize) -> Result<Vec<String>> {
        let profile = Profile::of(&self.plan);
        let mut running = Running::new(db, &self.plan, self.sources, threads, Some(Arc::clone(&profile)))?;
        while running.next()?.is_some() {}
        drop(running);
        let spelling = Names(self.source_names);
        let mut figures = Vec::new();
        add_figures(&mut figures, &profile);
        let options = Options { verbose: false, figures: &figures, with_work: true };
        Ok(lines(&operators(&self.plan, &spelling, options), "", threads))
    }
}

impl Results {
    /// The next rows, None at the end.
    pub fn next(&mut self) -> Result<Option<Rows>> {
        match self.running.next()? {
            Some(batch) => Rows::new(&batch, &self.layout).map(Some),
            None => Ok(None),
        }
    }
}

/// The names of sources' columns.
struct Names(Vec<Shown>);

impl Spelling for Names {
    fn columns(&self, source: usize) -> Vec<String> {
        match self.0.get(source) {
            Some(Shown { table, columns }) => {
                columns.iter().map(|column| format!("{table}.{column}")).collect()
            }
            None => Vec::new(),
        }
    }
}
