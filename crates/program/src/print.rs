//! Prints rows as CSV. NULL is an empty field, an empty text two quotes.

use std::io::{BufWriter, Write};
use std::path::Path;

use files::csv::{CsvWriter, Dialect};
use files::{Result, text};

use crate::source::{Source, in_column};

/// Prints a file's rows, of these columns only, not more than `limit`.
pub fn run(path: &Path, columns: Option<&[String]>, limit: Option<u64>) -> Result<()> {
    let source = Source::open(path, columns)?;
    write(source, BufWriter::new(std::io::stdout().lock()), limit)
}

/// Writes the rows of a source, with the names of its columns first.
pub fn write(mut source: Source, out: impl Write, limit: Option<u64>) -> Result<()> {
    // A line that has nothing would be no record.
    let null = if source.columns.len() == 1 { "NULL" } else { "" };
    let mut out = CsvWriter::new(out, Dialect::default(), null.into());
    source.columns.iter().for_each(|column| out.field(column.name.as_bytes()));
    out.end()?;
    let (mut left, mut value) = (limit.unwrap_or(u64::MAX), String::new());
    while left > 0
        && let Some(rows) = source.next()?
    {
        for row in 0..rows.first().map_or(0, vector::Vector::len) {
            if left == 0 {
                break;
            }
            left -= 1;
            for (values, column) in rows.iter().zip(&source.columns) {
                match values.is_valid(row) {
                    true => {
                        value.clear();
                        text::append(values, row, &column.declared, &mut value)
                            .map_err(|error| in_column(column, error))?;
                        out.field(value.as_bytes());
                    }
                    false => out.null(),
                }
            }
            out.end()?;
        }
    }
    out.finish()?;
    Ok(())
}
