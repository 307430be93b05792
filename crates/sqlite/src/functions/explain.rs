//! `columnar_explain(query, parameter, ...)` runs a query and tells what its operators did.

use super::query::described;
use super::row_function::{Answer, RowFunction};
use crate::api::{Argument, Connection, Result, Value};
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
