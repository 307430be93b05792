//! What stands behind the file's name: `name=value`, each a text of its own.

use std::path::{Path, PathBuf};

use files::csv::Dialect;
use files::parquet::Codec;

use crate::api::{Argument, Error, Result};
use crate::declaration::{option, shown_option};

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Parquet.
    Parquet,
    /// Comma-separated values.
    Csv,
}

/// Options of an import or an export.
pub struct Transfer {
    /// The format of the file.
    pub format: Format,
    /// How CSV is written.
    pub dialect: Dialect,
    /// The first line of CSV has the names of columns.
    pub has_header: bool,
    /// What stands for NULL in CSV.
    pub null: Vec<u8>,
    /// Columns of the file that are read. None: all.
    pub columns: Option<Vec<String>>,
    /// What Parquet is compressed with.
    pub codec: Codec,
    /// Rows of a row group.
    pub group_rows: usize,
    /// The SQL function that is told how far it is, or `stderr`.
    pub progress: Option<String>,
    /// Options of a table, as CREATE VIRTUAL TABLE has them.
    pub of_table: Vec<String>,
}

/// Which way rows go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From a file.
    Import,
    /// To a file.
    Export,
}

impl Transfer {
    /// What a function is asked: the table or query, the file, and options. `wants`: what to say where they
    /// are missing.
    pub fn asked(way: Way, arguments: &[Argument<'_>], wants: &str) -> Result<(String, PathBuf, Self)> {
        let [what, path, options @ ..] = arguments else { return Err(Error::new(wants)) };
        let text = |argument: &Argument<'_>| String::from_utf8_lossy(argument.text()).into_owned();
        let path = PathBuf::from(text(path));
        let options = Self::parse(way, &path, options)?;
        Ok((text(what), path, options))
    }

    fn parse(way: Way, path: &Path, options: &[Argument<'_>]) -> Result<Self> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        let (mut format, mut delimiter) = match ending.as_deref() {
            Some("parquet" | "pq") => (Some(Format::Parquet), b','),
            Some("csv" | "txt") => (Some(Format::Csv), b','),
            Some("tsv" | "tab") => (Some(Format::Csv), b'\t'),
            _ => (None, b','),
        };
        let mut made = Self {
            format: Format::Csv,
            dialect: Dialect::default(),
            has_header: true,
            null: Vec::new(),
            columns: None,
            codec: Codec::Zstd,
            group_rows: 122_880,
            progress: None,
            of_table: Vec::new(),
        };
        let (mut of_csv, mut of_parquet) = (None, None);
        for given in options {
            let text = String::from_utf8_lossy(given.text()).into_owned();
            // A blank may be the value.
            let bare = text.strip_prefix("delimiter=").map(|value| ("delimiter", value));
            let Some((name, value)) = bare.filter(|(_, value)| value.len() == 1).or_else(|| option(&text))
            else {
                return Err(Error::new(format!("'{text}' is not an option: name=value is expected")));
            };
            let name = name.to_ascii_lowercase();
            match name.as_str() {
                "format" => format = Some(format_of(value)?),
                "delimiter" => delimiter = single("delimiter", value)?,
                "quote" => made.dialect.quote = single("quote", value)?,
                "header" => made.has_header = truth(&name, value)?,
                "null" => made.null = value.into(),
                "columns" if way == Way::Import => {
                    made.columns = Some(value.split(',').map(|name| name.trim().to_owned()).collect());
                }
                "compression" if way == Way::Export => made.codec = codec(value)?,
                "row_group_rows" if way == Way::Export => {
                    made.group_rows = match value.parse() {
                        Ok(rows @ 1..=10_000_000) => rows,
                        _ => return Err(Error::new("row_group_rows must be from 1 to 10000000")),
                    };
                }
                "progress" => made.progress = Some(value.into()),
                _ if way == Way::Import => made.of_table.extend(shown_option(&text)),
                _ => return Err(Error::new(format!("columnar_export has no option '{name}'"))),
            }
            match name.as_str() {
                "delimiter" | "quote" | "header" | "null" => of_csv = Some(name),
                "compression" | "row_group_rows" if way == Way::Export => of_parquet = Some(name),
                _ => {}
            }
        }
        made.format = format.ok_or_else(|| {
            Error::new(format!(
                "the format of {} is not known by its ending: add 'format=csv' or 'format=parquet'",
                path.display()
            ))
        })?;
        made.dialect.delimiter = delimiter;
        let is_special = |byte: &u8| [delimiter, made.dialect.quote, b'\r', b'\n'].contains(byte);
        if delimiter == made.dialect.quote {
            return Err(Error::new("delimiter and quote must differ"));
        }
        if made.null.iter().any(is_special) {
            return Err(Error::new("null must have no delimiter, quote or line end"));
        }
        let other = if made.format == Format::Csv { of_parquet } else { of_csv };
        match other {
            Some(name) => Err(Error::new(format!("'{name}' is an option of the other format"))),
            None => Ok(made),
        }
    }
}

fn format_of(value: &str) -> Result<Format> {
    match value.to_ascii_lowercase().as_str() {
        "csv" => Ok(Format::Csv),
        "parquet" => Ok(Format::Parquet),
        _ => Err(Error::new(format!("format must be csv or parquet, not '{value}'"))),
    }
}

fn codec(value: &str) -> Result<Codec> {
    let found = Codec::ALL.iter().find(|(name, _)| name.eq_ignore_ascii_case(value));
    found.map(|&(_, codec)| codec).ok_or_else(|| {
        let names: Vec<&str> = Codec::ALL.iter().map(|(name, _)| *name).collect();
        Error::new(format!("compression must be one of {}, not '{value}'", names.join(", ")))
    })
}

fn single(name: &str, value: &str) -> Result<u8> {
    match value.as_bytes() {
        [byte] if !matches!(byte, b'\r' | b'\n') => Ok(*byte),
        br"\t" => Ok(b'\t'),
        _ => Err(Error::new(format!("{name} must be one byte, not '{value}'"))),
    }
}

fn truth(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "yes" | "on" | "true" | "1" => Ok(true),
        "no" | "off" | "false" | "0" => Ok(false),
        _ => Err(Error::new(format!("{name} must be yes or no, not '{value}'"))),
    }
}
