//! What SQL calls by name.

use crate::api::{Argument, Connection, Context, Result, Value, raw};

fn version(context: &mut Context<'_>, _arguments: &[Argument<'_>]) -> Result<()> {
    context.set(Value::Text(env!("CARGO_PKG_VERSION").as_bytes()));
    Ok(())
}

/// Makes all functions known.
pub fn register(db: Connection) -> Result<()> {
    db.register_function(c"columnar_version", 0, raw::SQLITE_DETERMINISTIC, version)
}
