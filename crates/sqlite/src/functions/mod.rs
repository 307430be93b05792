//! What SQL calls by name.
//!
//! - `totals`: what is summed up of a column
//! - `grouping`: groups of rows, by the engine or one by one
//! - `scalars`: functions that give one value
//! - `groups`: functions that give a row for each group

mod grouping;
mod groups;
mod scalars;
mod totals;

use std::ffi::CStr;
use std::rc::Rc;

use crate::api::{Argument, Connection, Context, Function, Result, Value, raw};
use crate::table::Tables;

fn version(_tables: &Tables, context: &mut Context<'_>, _arguments: &[Argument<'_>]) -> Result<()> {
    context.set(Value::Text(env!("CARGO_PKG_VERSION").as_bytes()));
    Ok(())
}

/// Makes all functions known.
pub fn register(db: Connection, tables: &Rc<Tables>) -> Result<()> {
    db.register_function(c"columnar_version", 0, raw::SQLITE_DETERMINISTIC, tables, version)?;
    let functions: [(&CStr, i32, Function<Tables>); 7] = [
        (c"columnar_count", 1, scalars::count),
        (c"columnar_count", 2, scalars::count),
        (c"columnar_sum", 2, scalars::sum),
        (c"columnar_avg", 2, scalars::average),
        (c"columnar_count_where_range", 5, scalars::count),
        (c"columnar_sum_where_range", 5, scalars::sum),
        (c"columnar_avg_where_range", 5, scalars::average),
    ];
    groups::register(db, tables)?;
    functions.into_iter().try_for_each(|(name, arguments, function)| {
        db.register_function(name, arguments, 0, tables, function)
    })
}
