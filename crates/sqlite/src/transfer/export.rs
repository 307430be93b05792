//! `columnar_export(table or query, file, option, ...)`: a file from the rows of a query.

use std::fs::File;

use super::groups::{Kinds, Trouble, Written};
use super::options::{Transfer, Way};
use super::place::Place;
use super::progress::Progress;
use super::target::Target;
use crate::api::{Argument, Connection, Context, Error, Result, Statement, Value};
use crate::declaration::quoted;
use crate::table::{Tables, resolve};

/// The function. Returns how many rows were written.
pub fn export(_tables: &Tables, context: &mut Context<'_>, arguments: &[Argument<'_>]) -> Result<()> {
    let db = context.connection();
    let wants = "columnar_export requires a table or a query, and a file";
    let (text, path, options) = Transfer::asked(Way::Export, arguments, wants)?;
    let query = query_of(db, &text)?;
    let mut progress = Progress::new(db, options.progress.as_deref(), &path.to_string_lossy())?;
    let names: Vec<String> = (0..query.column_count()).map(|at| query.column_name(at)).collect();
    let mut kinds: Kinds = vec![None; names.len()];
    let place = Place::new(&path);
    loop {
        let target = Target::new(place.create()?, &names, &options, kinds.clone())?;
        match write(&query, target, &mut progress) {
            Ok((rows, file)) => {
                place.keep(&file)?;
                context.set(Value::Integer(rows.cast_signed()));
                return Ok(());
            }
            Err(Trouble::Wider(wider)) => {
                query.reset();
                kinds = wider;
            }
            Err(Trouble::Error(error)) => return Err(error),
        }
    }
}

/// The query that a text stands for: a table's rows, or the text itself.
fn query_of(db: Connection, text: &str) -> Result<Statement> {
    let no_table = match resolve(db, text) {
        Ok((schema, name)) => {
            return db.prepare(&format!("SELECT * FROM {}.{}", quoted(&schema), quoted(&name)));
        }
        Err(error) => error,
    };
    match db.prepare_only(text) {
        Ok(query) if query.is_readonly() && query.column_count() > 0 => Ok(query),
        Ok(_) => Err(Error::new("columnar_export takes a table or a SELECT")),
        // A single word was meant as a table.
        Err(_) if !text.trim().contains(char::is_whitespace) => Err(no_table),
        Err(error) => Err(error),
    }
}

fn write(query: &Statement, mut target: Target, progress: &mut Progress) -> Written<(u64, File)> {
    let mut rows = 0u64;
    while query.step()? {
        let value = |at| query.value(at);
        target.row((0..query.column_count()).map(value)).inspect_err(|_| query.reset())?;
        rows += 1;
        if rows.is_multiple_of(4096) {
            progress.at(rows, None).inspect_err(|_| query.reset())?;
        }
    }
    let file = target.finish()?;
    progress.end(rows)?;
    Ok((rows, file))
}
