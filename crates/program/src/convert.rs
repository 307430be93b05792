//! Makes a file of another.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use clap::{Args, ValueEnum};
use files::column::{ColumnWriter, WriteOptions};
use files::parquet::Codec as ParquetCodec;
use files::{Error, Result};

use crate::source::Source;
use crate::{Format, print, to_parquet};

/// How a file is written.
#[derive(Args)]
pub struct How {
    /// What compresses blocks of a column file, and pages of a Parquet file.
    #[arg(long, value_enum, default_value_t = Compression::Zstd)]
    compression: Compression,
    /// The level, of zstd in column files.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(i32).range(1..=19))]
    compression_level: i32,
    /// Rows of a stripe.
    #[arg(long, default_value_t = 150_000, value_parser = clap::value_parser!(u32).range(1000..=10_000_000))]
    stripe_row_count: u32,
    /// Rows of a chunk, within which values are looked up and statistics are kept.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1000..=100_000))]
    block_row_count: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Compression {
    None,
    Lz4,
    Zstd,
}

/// Reads all rows of `from` and writes them to `to`.
pub fn run(from: &Path, to: &Path, append: bool, how: &How) -> Result<()> {
    let format = Format::of(to);
    if append && format != Format::Column {
        return Err(Error::Unsupported("rows are added to column files only".into()));
    }
    let source = Source::open(from, None)?;
    if append {
        return to_column_file(source, ColumnWriter::append(to, how.options())?);
    }
    if to.exists() {
        return Err(Error::Unsupported("it is there already".into()));
    }
    let made = match format {
        Format::Column => {
            let writer = ColumnWriter::create(to, source.columns.clone(), how.options())?;
            to_column_file(source, writer)
        }
        Format::Csv => print::write(source, BufWriter::new(File::create_new(to)?), None),
        Format::Parquet => to_parquet::run(source, File::create_new(to)?, how.parquet_codec()),
    };
    if made.is_err() {
        // Nobody is to take half of a file for one.
        let _ = fs::remove_file(to);
    }
    made
}

impl How {
    const fn parquet_codec(&self) -> ParquetCodec {
        match self.compression {
            Compression::None => ParquetCodec::None,
            Compression::Lz4 => ParquetCodec::Lz4,
            Compression::Zstd => ParquetCodec::Zstd,
        }
    }

    const fn options(&self) -> WriteOptions {
        WriteOptions {
            stripe_rows: self.stripe_row_count,
            chunk_rows: self.block_row_count,
            codec: match self.compression {
                Compression::None => files::column::Codec::None,
                Compression::Lz4 => files::column::Codec::Lz4,
                Compression::Zstd => files::column::Codec::Zstd,
            },
            level: self.compression_level,
        }
    }
}

fn to_column_file(mut source: Source, mut writer: ColumnWriter) -> Result<()> {
    let fits = source.columns.len() == writer.columns().len()
        && source.columns.iter().zip(writer.columns()).all(|(one, other)| one.logical == other.logical);
    if !fits {
        return Err(Error::Unsupported(
            "its columns are not those of the file that rows are added to".into(),
        ));
    }
    while let Some(rows) = source.next()? {
        writer.write(rows)?;
    }
    let loaded = writer.finish()?;
    eprintln!("{} rows, {} bytes", loaded.rows, loaded.bytes);
    Ok(())
}
