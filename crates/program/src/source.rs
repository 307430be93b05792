//! Rows of a column file, a Parquet or a CSV file, in vectors of a column file's types.

use std::fs::File;
use std::path::Path;

use files::column::{Column, ColumnFile};
use files::csv::{self, CsvReader, Dialect, Record};
use files::parquet::{Form, ParquetReader, columns, to_column};
use files::{Error, Field, FieldKind, Result};
use vector::{LogicalType, Vector, VectorBuilder};

use crate::Format;

/// Rows that are read at once from files of other systems.
const ROWS: usize = 10_000;

/// A file that is read from its first row to its last.
pub struct Source {
    /// Its columns.
    pub columns: Vec<Column>,
    rows: Rows,
}

enum Rows {
    Column { file: Box<ColumnFile<File>>, chosen: Vec<usize>, stripe: usize, chunk: u32 },
    Parquet { reader: Box<ParquetReader>, kinds: Vec<FieldKind> },
    Csv { reader: Box<CsvReader<File>>, kinds: Vec<FieldKind>, chosen: Vec<usize>, width: usize },
}

impl Source {
    /// Opens a file; `chosen`: these columns only, in this order.
    pub fn open(path: &Path, chosen: Option<&[String]>) -> Result<Self> {
        match Format::of(path) {
            Format::Column => Self::of_column_file(path, chosen),
            Format::Parquet => Self::of_parquet(path, chosen),
            Format::Csv => Self::of_csv(path, chosen),
        }
    }

    fn of_column_file(path: &Path, names: Option<&[String]>) -> Result<Self> {
        let file = Box::new(ColumnFile::open(File::open(path)?)?);
        let chosen = choose(file.columns().iter().map(|column| column.name.as_str()), names)?;
        let columns = chosen.iter().filter_map(|&at| file.columns().get(at).cloned()).collect();
        Ok(Self { columns, rows: Rows::Column { file, chosen, stripe: 0, chunk: 0 } })
    }

    fn of_parquet(path: &Path, names: Option<&[String]>) -> Result<Self> {
        let mut reader = Box::new(ParquetReader::open(path)?);
        let fields = reader.fields();
        let chosen = match names {
            None => reader.parts(),
            named => choose(fields.iter().map(|field| field.name.as_str()), named)?,
        };
        reader.choose(chosen.iter().map(|&at| (at, Form::Json)));
        let fields: Vec<Field> = chosen.iter().filter_map(|&at| fields.get(at).cloned()).collect();
        let kinds = fields.iter().map(|field| field.kind).collect();
        Ok(Self { columns: columns(&fields)?, rows: Rows::Parquet { reader, kinds } })
    }

    /// Reads a CSV file once to find out what its columns are.
    fn of_csv(path: &Path, names: Option<&[String]>) -> Result<Self> {
        let open = || File::open(path).map(|file| CsvReader::new(file, Dialect::default()));
        let (mut reader, mut record) = (open()?, Record::default());
        reader.next(&mut record)?;
        let head =
            record.iter().map(|(name, _)| utf8(name).map(str::to_owned)).collect::<Result<Vec<_>>>()?;
        let kinds = csv::kinds(&mut reader, head.len(), is_null)?;
        let chosen = choose(head.iter().map(String::as_str), names)?;
        let field = |&at: &usize| Some(Field { name: head.get(at)?.clone(), kind: *kinds.get(at)? });
        let fields: Vec<Field> = chosen.iter().filter_map(field).collect();
        let kinds = fields.iter().map(|field| field.kind).collect();
        let mut reader = Box::new(open()?);
        reader.next(&mut record)?;
        Ok(Self { columns: columns(&fields)?, rows: Rows::Csv { reader, kinds, chosen, width: head.len() } })
    }

    /// The next rows: a vector for each column. None at the end.
    pub fn next(&mut self) -> Result<Option<Vec<Vector>>> {
        match &mut self.rows {
            Rows::Column { file, chosen, stripe, chunk } => loop {
                let Some(open) = file.stripe(*stripe)? else { return Ok(None) };
                if *chunk < open.reader().chunk_count() {
                    let columns = chosen.iter().map(|&at| open.read(at, *chunk)).collect::<Result<_>>()?;
                    *chunk += 1;
                    return Ok(Some(columns));
                }
                (*stripe, *chunk) = (*stripe + 1, 0);
            },
            Rows::Parquet { reader, kinds } => {
                let Some(columns) = reader.next(ROWS)? else { return Ok(None) };
                let columns = columns.into_iter().zip(kinds).zip(&self.columns);
                columns
                    .map(|((values, kind), column)| {
                        to_column(values, *kind).map_err(|error| in_column(column, error))
                    })
                    .collect::<Result<_>>()
                    .map(Some)
            }
            Rows::Csv { reader, kinds, chosen, width } => {
                let mut builders: Vec<VectorBuilder> =
                    kinds.iter().map(|kind| VectorBuilder::new(of_csv(*kind))).collect();
                let (mut record, mut rows) = (Record::default(), 0);
                while rows < ROWS && reader.next_of(*width, &mut record)? {
                    for ((builder, kind), &at) in builders.iter_mut().zip(kinds.iter()).zip(chosen.iter()) {
                        let value = record.field(at).filter(|&(text, quoted)| !is_null(text, quoted));
                        push(builder, *kind, value.map(|(text, _)| text))?;
                    }
                    rows += 1;
                }
                let finished = builders.into_iter().map(|builder| builder.finish(&|_, _, _| Box::default()));
                Ok((rows > 0).then(|| finished.collect()))
            }
        }
    }
}

/// Names the column whose values are refused.
pub fn in_column(column: &Column, error: Error) -> Error {
    match error {
        Error::Unsupported(what) => Error::Unsupported(format!("column {}: {what}", column.name)),
        other => other,
    }
}

/// The positions of columns of these names; all of them where no name is given.
fn choose<'a>(all: impl Iterator<Item = &'a str>, names: Option<&[String]>) -> Result<Vec<usize>> {
    let all: Vec<&str> = all.collect();
    let Some(names) = names else { return Ok((0..all.len()).collect()) };
    let find = |name: &String| {
        let found = all.iter().position(|column| column == name);
        found.ok_or_else(|| Error::Unsupported(format!("there is no column {name}")))
    };
    names.iter().map(find).collect()
}

/// An empty field without quotes is NULL.
const fn is_null(text: &[u8], quoted: bool) -> bool {
    text.is_empty() && !quoted
}

/// A column file's text is UTF-8, so that every reader can show it.
fn utf8(text: &[u8]) -> Result<&str> {
    std::str::from_utf8(text).map_err(|_| Error::Malformed("it has text that is not UTF-8".into()))
}

const fn of_csv(kind: FieldKind) -> LogicalType {
    match kind {
        FieldKind::Integer { .. } => LogicalType::Int64,
        FieldKind::Real { .. } => LogicalType::Float64,
        _ => LogicalType::Text,
    }
}

/// Adds a value of a column whose values were all looked at.
fn push(builder: &mut VectorBuilder, kind: FieldKind, value: Option<&[u8]>) -> Result<()> {
    let Some(text) = value.map(utf8).transpose()? else {
        builder.push_null();
        return Ok(());
    };
    let fits = match kind {
        FieldKind::Integer { .. } => text.parse().is_ok_and(|value| builder.push_i64(value)),
        FieldKind::Real { .. } => text.parse().is_ok_and(|value| builder.push_f64(value)),
        _ => builder.push_bytes(text.as_bytes()),
    };
    fits.then_some(()).ok_or_else(|| Error::Malformed(format!("the file has changed meanwhile: {text}")))
}
