//! Rows of a file, in either format: some at a time, as columns of SQLite's values.

use std::fs::File;
use std::path::Path;

use files::csv::{self, CsvReader, Record};
use files::parquet::{Form, ParquetReader};
use files::{Field, FieldKind};

use super::options::{Format, Transfer};
use super::values;
use crate::api::{Error, Result, Value};
use crate::values::{Affinity, Column, ColumnBuilder};

/// Rows that are read at once, and memory that they may take, about.
const ROWS: usize = 8192;
const BYTES: usize = 32 << 20;
/// Rows that are read first, when nothing is known of their length.
const FIRST_ROWS: usize = 256;

/// A file that is being read.
pub struct Source {
    fields: Vec<Field>,
    rows: Rows,
    /// Rows that are going to be read at once.
    most: usize,
}

enum Rows {
    Parquet(Box<ParquetReader>),
    Csv(Box<Csv>),
}

struct Csv {
    reader: CsvReader<File>,
    /// The column of the file of each column that is read, and what its values are.
    chosen: Vec<(usize, FieldKind)>,
    /// Columns of the file.
    width: usize,
    null: Vec<u8>,
    /// Bytes of the file.
    length: u64,
    record: Record,
    /// The record was read, and is still to be given.
    waits: bool,
}

impl Source {
    /// Opens a file. `guesses`: what the columns of CSV are is found out, for which all of it is read once.
    pub fn open(path: &Path, options: &Transfer, guesses: bool) -> Result<Self> {
        let opened = match options.format {
            Format::Parquet => ParquetReader::open(path).map_err(Error::from).map(|reader| Self {
                fields: reader.fields(),
                rows: Rows::Parquet(Box::new(reader)),
                most: FIRST_ROWS,
            }),
            Format::Csv => Self::open_csv(path, options, guesses),
        };
        let mut source = opened
            .map_err(|error| Error::coded(error.code, format!("{}: {}", path.display(), error.message)))?;
        if let Some(names) = &options.columns {
            source.choose(names)?;
        } else if let Rows::Parquet(reader) = &source.rows {
            let parts = reader.parts();
            source.choose_at(&parts);
        }
        match source.fields.is_empty() {
            true => Err(Error::new(format!("{} has no columns", path.display()))),
            false => Ok(source),
        }
    }

    fn open_csv(path: &Path, options: &Transfer, guesses: bool) -> Result<Self> {
        let mut record = Record::default();
        let file = File::open(path).map_err(files::Error::from)?;
        let about = file.metadata().map_err(files::Error::from)?;
        let mut reader = CsvReader::new(file, options.dialect);
        let has_records = reader.next(&mut record)?;
        let width = record.len();
        let name = |(at, (text, _)): (usize, (&[u8], bool))| match options.has_header && !text.is_empty() {
            true => String::from_utf8_lossy(text).into_owned(),
            false => format!("c{}", at + 1),
        };
        let names: Vec<String> = record.iter().enumerate().map(name).collect();
        let kinds = match guesses && about.is_file() {
            true => Self::kinds(path, options, width)?,
            // What is no file cannot be read twice.
            false => vec![FieldKind::Text; width],
        };
        let (chosen, null) = (kinds.iter().copied().enumerate().collect(), options.null.clone());
        let fields = names.into_iter().zip(kinds).map(|(name, kind)| Field { name, kind }).collect();
        let (waits, length) = (has_records && !options.has_header, about.len());
        let csv = Csv { reader, chosen, width, null, length, record, waits };
        Ok(Self { fields, rows: Rows::Csv(Box::new(csv)), most: FIRST_ROWS })
    }

    /// What the columns of a CSV file are, all of which is read for that.
    fn kinds(path: &Path, options: &Transfer, width: usize) -> Result<Vec<FieldKind>> {
        let mut reader = CsvReader::new(File::open(path).map_err(files::Error::from)?, options.dialect);
        if options.has_header {
            reader.next(&mut Record::default())?;
        }
        Ok(csv::kinds(&mut reader, width, |text, is_quoted| !is_quoted && text == options.null)?)
    }

    fn choose(&mut self, names: &[String]) -> Result<()> {
        let find = |name: &String| {
            let found = self.fields.iter().position(|field| field.name.eq_ignore_ascii_case(name));
            found.ok_or_else(|| Error::new(format!("the file has no column {name}")))
        };
        let chosen: Vec<usize> = names.iter().map(find).collect::<Result<_>>()?;
        self.choose_at(&chosen);
        Ok(())
    }

    /// Reads the columns at these positions, in this order.
    fn choose_at(&mut self, chosen: &[usize]) {
        self.fields = chosen.iter().filter_map(|&at| self.fields.get(at).cloned()).collect();
        match &mut self.rows {
            Rows::Parquet(reader) => reader.choose(chosen.iter().map(|&at| (at, Form::Json))),

            Rows::Csv(csv) => {
                let kinds = self.fields.iter().map(|field| field.kind);
                csv.chosen = chosen.iter().copied().zip(kinds).collect();
            }
        }
    }

    /// The columns that are read.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Which share of the file was read after so many rows. None if it is not known.
    #[allow(clippy::cast_precision_loss)]
    pub fn share(&self, rows: u64) -> Option<f64> {
        let (done, all) = match &self.rows {
            Rows::Parquet(reader) => (rows, reader.rows()),
            Rows::Csv(csv) => (csv.reader.bytes(), csv.length),
        };
        (all > 0).then(|| done as f64 / all as f64)
    }

    /// The next rows: a column for each field. None at the end.
    pub fn next(&mut self) -> Result<Option<Vec<Column>>> {
        let columns = match &mut self.rows {
            Rows::Parquet(reader) => {
                let Some(vectors) = reader.next(self.most)? else { return Ok(None) };
                let column = |(field, vector): (&Field, _)| {
                    values::column(field.kind, vector).map_err(|error| {
                        Error::coded(error.code, format!("column {}: {}", field.name, error.message))
                    })
                };
                self.fields.iter().zip(vectors).map(column).collect::<Result<_>>()?
            }
            Rows::Csv(csv) => match csv.next(self.most)? {
                Some(columns) => columns,
                None => return Ok(None),
            },
        };
        let bytes: usize = columns.iter().map(|column| column.vector.bytes()).sum();
        let rows = columns.first().map_or(0, |column: &Column| column.vector.len());
        self.most = BYTES.saturating_mul(rows).checked_div(bytes).unwrap_or(ROWS).clamp(1, ROWS);
        Ok(Some(columns))
    }
}

impl Csv {
    fn next(&mut self, most: usize) -> Result<Option<Vec<Column>>> {
        let mut builders: Vec<ColumnBuilder> =
            self.chosen.iter().map(|_| ColumnBuilder::new(Affinity::Blob)).collect();
        let mut rows = 0;
        while rows < most
            && (std::mem::take(&mut self.waits) || self.reader.next_of(self.width, &mut self.record)?)
        {
            for (builder, &(at, kind)) in builders.iter_mut().zip(&self.chosen) {
                builder.push(match self.record.field(at) {
                    Some((text, false)) if text == self.null => Value::Null,
                    Some((text, _)) => value(text, kind),
                    None => Value::Null,
                })?;
            }
            rows += 1;
        }
        Ok((rows > 0).then(|| builders.into_iter().map(ColumnBuilder::finish).collect()))
    }
}

/// A value of a column whose values were looked at: all of them are of this kind.
fn value(text: &[u8], kind: FieldKind) -> Value<'_> {
    let read = std::str::from_utf8(text).ok();
    let number = match kind {
        FieldKind::Integer { .. } => read.and_then(|text| text.parse().ok()).map(Value::Integer),
        FieldKind::Real { .. } => read.and_then(|text| text.parse().ok()).map(Value::Real),
        _ => None,
    };
    number.unwrap_or(Value::Text(text))
}
