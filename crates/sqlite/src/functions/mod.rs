//! What SQL calls by name.
//!
//! - `totals`: what is summed up of a column
//! - `grouping`: groups of rows, by the engine or one by one
//! - `scalars`: functions that give one value
//! - `convert`: a plain table becomes a columnar one, and back
//! - `query`: a SELECT in the engine; `explain`: what its operators did
//! - `row_function`: functions that give rows; `groups`: a row for each group; `inspect`: what a table is
//!   made of

mod convert;
pub mod explain;
mod grouping;
mod groups;
pub mod inspect;
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

/// Functions that change the schema, or open files, must not be called by what a schema holds: a view or a
/// trigger.
fn flags_of(name: &CStr) -> c_int {
    match name.to_bytes() {
        b"columnar_convert" | b"columnar_revert" | b"columnar_import" | b"columnar_export" => {
            raw::SQLITE_DIRECTONLY
        }
        _ => 0,
    }
}

/// All functions that give rows.
static ROW_FUNCTIONS: [&[RowFunction]; 3] = [&groups::FUNCTIONS, &inspect::FUNCTIONS, &explain::FUNCTIONS];

/// Makes all functions known.
pub fn register(db: Connection, tables: &Rc<Tables>) -> Result<()> {
    db.register_function(c"columnar_version", 0, raw::SQLITE_DETERMINISTIC, tables, version)?;
    db.register_named::<query::QueryTable>(c"columnar_query", tables)?;
    let functions: [(&CStr, i32, Function<Tables>); 16] = [
        (c"columnar_memory", 0, explain::memory),
        (c"columnar_memory", 1, explain::memory),
        (c"columnar_import", -1, import),
        (c"columnar_export", -1, export),
        (c"columnar_threads", 0, explain::threads),
        (c"columnar_threads", 1, explain::threads),
        (c"columnar_analyze", 1, scalars::analyze),
        (c"columnar_convert", -1, convert::to_columnar),
        (c"columnar_revert", 1, convert::to_plain),
        (c"columnar_count", 1, scalars::count),
        (c"columnar_count", 2, scalars::count),
        (c"columnar_sum", 2, scalars::sum),
        (c"columnar_avg", 2, scalars::average),
        (c"columnar_count_where_range", 5, scalars::count),
        (c"columnar_sum_where_range", 5, scalars::sum),
        (c"columnar_avg_where_range", 5, scalars::average),
    ];
    Functions { all: &ROW_FUNCTIONS, tables: Rc::clone(tables) }.register(db)?;
    functions.into_iter().try_for_each(|(name, arguments, function)| {
        db.register_function(name, arguments, flags_of(name), tables, function)
    })
}
