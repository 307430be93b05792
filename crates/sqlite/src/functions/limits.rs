//! `columnar_threads` and `columnar_memory`: what queries of a connection may take.

use crate::api::{Argument, Context, Error, Result, Value};
use crate::engine::Limits;
use crate::table::Tables;

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
