//! `columnar_explain(query, parameter, ...)` runs a query and tells what its operators did.

use super::query::described;
use super::row_function::{Answer, RowFunction};
use crate::api::{Argument, Connection, Context, Error, Result, Value};
use crate::engine::Limits;
use crate::sql::Query;
use crate::table::Tables;
use crate::values::Owned;
use std::rc::Rc;

/// Most parameters of a query that is explained.
const PARAMETERS: usize = 10;
const ARGUMENTS: &[(&str, &str)] = &[
    ("query", "a query"),
    ("p1", "parameters"),
    ("p2", "parameters"),
    ("p3", "parameters"),
    ("p4", "parameters"),
    ("p5", "parameters"),
    ("p6", "parameters"),
    ("p7", "parameters"),
    ("p8", "parameters"),
    ("p9", "parameters"),
    ("p10", "parameters"),
];

/// The function.
pub static FUNCTIONS: [RowFunction; 1] = [RowFunction {
    name: c"columnar_explain",
    columns: &["plan"],
    arguments: ARGUMENTS,
    optional: PARAMETERS,
    compute,
}];

fn compute(
    _function: &RowFunction,
    tables: &Rc<Tables>,
    db: Connection,
    given: &[Argument<'_>],
) -> Result<Answer> {
    let (described, parameters) = described(db, given)?;
    let lines = Query { db, tables, described: &described, parameters }.explain()?;
    let rows = lines.into_iter().map(|line| vec![Owned::of(Value::Text(line.as_bytes()))]);
    Ok(Answer::Rows(rows.collect()))
}

/// `columnar_threads()` tells how many threads a query takes at most, `columnar_threads(n)` says it.
pub fn threads(tables: &Tables, context: &mut Context<'_>, arguments: &[Argument<'_>]) -> Result<()> {
    let limits = tables.limits();
    let threads = number(arguments, "columnar_threads", 256)?.unwrap_or(limits.threads);
    tables.set_limits(Limits { threads, ..limits });
    context.set(Value::Integer(threads.cast_signed() as i64));
    Ok(())
}

/// `columnar_memory()` tells how many MiB an operator of a query may hold, `columnar_memory(n)` says it.
pub fn memory(tables: &Tables, context: &mut Context<'_>, arguments: &[Argument<'_>]) -> Result<()> {
    let limits = tables.limits();
    let mebibytes = number(arguments, "columnar_memory", 1 << 20)?.unwrap_or(limits.memory >> 20);
    tables.set_limits(Limits { memory: mebibytes << 20, ..limits });
    context.set(Value::Integer(mebibytes.cast_signed() as i64));
    Ok(())
}

/// The number that a function is given, if it is given one.
fn number(arguments: &[Argument<'_>], name: &str, most: usize) -> Result<Option<usize>> {
    let [given] = arguments else { return Ok(None) };
    let number = match given.value() {
        Value::Integer(number) => usize::try_from(number).ok().filter(|number| (1..=most).contains(number)),
        _ => None,
    };
    match number {
        Some(number) => Ok(Some(number)),
        None => Err(Error::new(format!("{name} takes a number from 1 to {most}"))),
    }
}
