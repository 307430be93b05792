//! A file that is written, in either format, from rows that come one by one.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufWriter;

use files::csv::CsvWriter;

use super::groups::{Groups, Kinds, Written};
use super::options::{Format, Transfer};
use crate::api::{Error, Result, Value};

/// Bytes that are written at once.
const BLOCK: usize = 1 << 18;

/// A file that is being written.
pub enum Target {
    /// CSV, and room for a value as text.
    Csv(CsvWriter<BufWriter<File>>, String),
    /// Parquet.
    Parquet(Box<Groups>),
}

impl Target {
    /// Begins to write columns of these names. `kinds`: what is known of them from before.
    pub fn new(file: File, names: &[String], options: &Transfer, kinds: Kinds) -> Result<Self> {
        match options.format {
            Format::Csv => {
                let out = BufWriter::with_capacity(BLOCK, file);
                let mut writer = CsvWriter::new(out, options.dialect, options.null.clone());
                if options.has_header {
                    names.iter().for_each(|name| writer.field(name.as_bytes()));
                    writer.end()?;
                }
                Ok(Self::Csv(writer, String::new()))
            }
            Format::Parquet => Ok(Self::Parquet(Box::new(Groups::new(file, names, options, kinds)))),
        }
    }

    /// Writes a row.
    pub fn row<'v>(&mut self, values: impl Iterator<Item = Value<'v>>) -> Written<()> {
        match self {
            Self::Csv(writer, room) => {
                for value in values {
                    room.clear();
                    match value {
                        Value::Null => {
                            writer.null();
                            continue;
                        }
                        Value::Text(text) => {
                            writer.field(text);
                            continue;
                        }
                        Value::Integer(integer) => _ = write!(room, "{integer}"),
                        // The shortest text that is this number.
                        Value::Real(real) => _ = write!(room, "{real:?}"),
                        Value::Blob(blob) => blob.iter().for_each(|byte| _ = write!(room, "{byte:02x}")),
                    }
                    writer.field(room.as_bytes());
                }
                Ok(writer.end()?)
            }
            Self::Parquet(groups) => groups.row(values),
        }
    }

    /// Ends the file, and gives it back.
    pub fn finish(self) -> Written<File> {
        let out = match self {
            Self::Csv(writer, _) => writer.finish()?,
            Self::Parquet(groups) => groups.finish()?,
        };
        let file = out.into_inner().map_err(|error| files::Error::Io(error.into_error()));
        Ok(file.map_err(Error::from)?)
    }
}
