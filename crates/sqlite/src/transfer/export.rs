//! `columnar_export(table or query, file, option, ...)`: a file from the rows of a query.

use std::path::PathBuf;

use super::options::{Transfer, Way};
use super::progress::Progress;
use super::target::{Kinds, Place, Target, Trouble};
use crate::api::{Argument, Connection, Context, Error, Result, Statement, Value};
use crate::declaration::quoted;
use crate::table::{Tables, resolve};

/// The function. Returns how many rows were written.
pub fn export(_tables: &Tables, context: &mut Context<'_>, arguments: &[Argument<'_>]) -> Result<()> {
    let db = context.connection();
    let [what, path, options @ ..] = arguments else {
        return Err(Error::new("columnar_export requires a table or a query, and a file"));
    };
    let path = PathBuf::from(String::from_utf8_lossy(path.text()).into_owned());
    let options = Transfer::parse(Way::Export, &path, options)?;
    let text = String::from_utf8_lossy(what.text()).into_owned();
    let query = db.prepare(&query_of(db, &text)?)?;
    if !query.is_readonly() || query.column_count() == 0 {
        return Err(Error::new("columnar_export takes a table or a SELECT"));
    }
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

/// The query that a text stands for.
fn query_of(db: Connection, text: &str) -> Result<String> {
    let text = text.trim().trim_end_matches(';').trim_end();
    let word = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let begins = |own: &&str| word.eq_ignore_ascii_case(own) && text.len() > word.len();
    if ["SELECT", "WITH", "VALUES"].iter().any(begins) {
        return Ok(text.to_owned());
    }
    let (schema, name) = resolve(db, text)?;
    Ok(format!("SELECT * FROM {}.{}", quoted(&schema), quoted(&name)))
}

fn write(
    query: &Statement,
    mut target: Target,
    progress: &mut Progress,
) -> std::result::Result<(u64, std::fs::File), Trouble> {
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
