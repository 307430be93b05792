//! Writes rows as a stream of Arrow, for pyarrow, DuckDB, polars and others that read one from a pipe.
//!
//! - `fields`: which type of Arrow a column has
//! - `arrays`: its values
//!
//! A batch has the rows of a chunk, or fewer where they are large. One is in memory at a time.

mod arrays;
mod fields;

use std::io::{BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use files::{Error, Result};
use vector::Vector;

use crate::source::Source;

/// A batch of more bytes than these is cut in two. So offsets of 32 bits reach to its end.
const BATCH_BYTES: usize = 64 << 20;

/// Writes a file's rows to stdout, of these columns only, not more than `limit`.
pub fn run(path: &Path, columns: Option<&[String]>, limit: Option<u64>) -> Result<()> {
    let source = Source::open(path, columns)?;
    let out = std::io::stdout().lock();
    if out.is_terminal() {
        return Err(Error::Unsupported(
            "a stream of Arrow is not for a terminal: send it to a program or a file".into(),
        ));
    }
    write(source, BufWriter::new(out), limit)
}

fn write(mut source: Source, out: impl Write, limit: Option<u64>) -> Result<()> {
    let fields = source.columns.iter().map(fields::of).collect::<Result<Vec<_>>>()?;
    let schema = Arc::new(Schema::new(fields));
    let mut writer = StreamWriter::try_new(out, &schema).map_err(failed)?;
    let mut left = limit.unwrap_or(u64::MAX);
    while left > 0
        && let Some(mut rows) = source.next()?
    {
        let mut count = rows.first().map_or(0, Vector::len);
        if let Ok(most) = usize::try_from(left)
            && most < count
        {
            rows = cut(&rows, 0, most);
            count = most;
        }
        left -= count as u64;
        write_batches(&mut writer, &schema, &source, rows, count)?;
    }
    writer.finish().map_err(failed)
}

fn write_batches(
    writer: &mut StreamWriter<impl Write>,
    schema: &SchemaRef,
    source: &Source,
    rows: Vec<Vector>,
    count: usize,
) -> Result<()> {
    if count > 1 && rows.iter().map(Vector::bytes).sum::<usize>() > BATCH_BYTES {
        let half = count / 2;
        write_batches(writer, schema, source, cut(&rows, 0, half), half)?;
        return write_batches(writer, schema, source, cut(&rows, half, count - half), count - half);
    }
    let columns = rows.into_iter().zip(&source.columns).zip(schema.fields());
    let arrays = columns.map(|((values, column), field)| arrays::of(values, column, field.data_type()));
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    let batch =
        RecordBatch::try_new_with_options(Arc::clone(schema), arrays.collect::<Result<_>>()?, &options);
    writer.write(&batch.map_err(failed)?).map_err(failed)
}

fn cut(rows: &[Vector], start: usize, count: usize) -> Vec<Vector> {
    rows.iter().map(|column| column.slice(start, count)).collect()
}

fn failed(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, error) => Error::Io(error),
        other => Error::Unsupported(other.to_string()),
    }
}
