//! What SQL calls by name.
//!
//! - `totals`: what is summed up of a column
//! - `grouping`: groups of rows, by the engine or one by one
//! - `scalars`: functions that give one value
//! - `convert`: a plain table becomes a columnar one, and back
//! - `query`: a SELECT in the engine; `explain`: what its operators did; `limits`: what it may take
//! - `row_function`: functions that give rows; `groups`: a row for each group; `inspect`: what a table is
//!   made of

mod convert;
pub mod explain;
mod grouping;
mod groups;
pub mod inspect;
mod limits;
pub mod query;
mod row_function;
mod scalars;
mod totals;

use std::ffi::{CStr, c_int};
use std::rc::Rc;

use crate::api::{Argument, Connection, Context, Function, Result, Value, raw};
use crate::table::Tables;
use crate::transfer::{export, import};
use row_function::{Functions, RowFunction};

fn version(_tables: &Tables, context: &mut Context<'_>, _arguments: &[Argument<'_>]) -> Result<()> {
    context.set(Value::Text(env!("CARGO_PKG_VERSION").as_bytes()));
    Ok(())
}

/// What changes the schema, or opens files, must not be called by what a schema holds: a view or a trigger.
const DIRECT: c_int = raw::SQLITE_DIRECTONLY;

/// All functions that give rows.
static ROW_FUNCTIONS: [&[RowFunction]; 3] = [&groups::FUNCTIONS, &inspect::FUNCTIONS, &explain::FUNCTIONS];

/// Makes all functions known.
pub fn register(db: Connection, tables: &Rc<Tables>) -> Result<()> {
    db.register_named::<query::QueryTable>(c"columnar_query", tables)?;
    let functions: [(&CStr, i32, c_int, Function<Tables>); 17] = [
        (c"columnar_version", 0, raw::SQLITE_DETERMINISTIC, version),
        (c"columnar_threads", 0, 0, limits::threads),
        (c"columnar_threads", 1, 0, limits::threads),
        (c"columnar_memory", 0, 0, limits::memory),
        (c"columnar_memory", 1, 0, limits::memory),
        (c"columnar_analyze", 1, 0, scalars::analyze),
        (c"columnar_convert", -1, DIRECT, convert::to_columnar),
        (c"columnar_revert", 1, DIRECT, convert::to_plain),
        (c"columnar_import", -1, DIRECT, import),
        (c"columnar_export", -1, DIRECT, export),
        (c"columnar_count", 1, 0, scalars::count),
        (c"columnar_count", 2, 0, scalars::count),
        (c"columnar_sum", 2, 0, scalars::sum),
        (c"columnar_avg", 2, 0, scalars::average),
        (c"columnar_count_where_range", 5, 0, scalars::count),
        (c"columnar_sum_where_range", 5, 0, scalars::sum),
        (c"columnar_avg_where_range", 5, 0, scalars::average),
    ];
    Functions { all: &ROW_FUNCTIONS, tables: Rc::clone(tables) }.register(db)?;
    functions.into_iter().try_for_each(|(name, arguments, flags, function)| {
        db.register_function(name, arguments, flags, tables, function)
    })
}
