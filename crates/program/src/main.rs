//! The program `colonnade`: looks into column files, checks and prints them, and makes them of Parquet and
//! CSV files and the other way round. It needs no server.
//!
//! - `inspect`, `verify`, `print`, `arrow`, `convert`: the commands
//! - `source`: rows of any of the three formats; `to_parquet`: rows into Parquet
//! - `table`: tables on a terminal
#![forbid(unsafe_code)]

mod arrow;
mod convert;
mod inspect;
mod print;
mod source;
mod table;
mod to_parquet;
mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use files::Error;

/// Column files: stripes of columns in one file, compressed, with statistics and checksums.
#[derive(Parser)]
#[command(name = "colonnade", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the columns of a file: types, sizes, statistics, codecs and encodings.
    Inspect {
        /// A column file, of which all bytes are read, or a Parquet file.
        file: PathBuf,
        /// The same of each stripe or row group, too.
        #[arg(long)]
        stripes: bool,
    },
    /// Hold all that a file says of its values against them. Ends with 1 where something is wrong.
    Verify {
        /// The column file.
        file: PathBuf,
    },
    /// Print rows as CSV.
    Print {
        /// A column file, a Parquet or a CSV file.
        file: PathBuf,
        /// These columns only, with commas between.
        #[arg(long, value_delimiter = ',')]
        columns: Option<Vec<String>>,
        /// Not more rows than these.
        #[arg(long)]
        limit: Option<u64>,
    },
    /// Write rows to stdout as a stream of Arrow, for programs that read such.
    Arrow {
        /// A column file, a Parquet or a CSV file.
        file: PathBuf,
        /// These columns only, with commas between.
        #[arg(long, value_delimiter = ',')]
        columns: Option<Vec<String>>,
        /// Not more rows than these.
        #[arg(long)]
        limit: Option<u64>,
    },
    /// Make a file of another. The name says the format: .parquet, .csv, or any other for a column file.
    Convert {
        /// What is read.
        from: PathBuf,
        /// What is made. It must not be there, or be a column file that rows are added to (--append).
        to: PathBuf,
        /// Add the rows to a column file that is there.
        #[arg(long)]
        append: bool,
        #[command(flatten)]
        how: convert::How,
    },
}

fn main() -> ExitCode {
    let name = |file: &Path| file.display().to_string();
    let (result, files) = match Arguments::parse().command {
        Command::Inspect { file, stripes } => (inspect::run(&file, stripes).map(|()| true), name(&file)),
        Command::Verify { file } => (verify::run(&file), name(&file)),
        Command::Print { file, columns, limit } => {
            (print::run(&file, columns.as_deref(), limit).map(|()| true), name(&file))
        }
        Command::Arrow { file, columns, limit } => {
            (arrow::run(&file, columns.as_deref(), limit).map(|()| true), name(&file))
        }
        Command::Convert { from, to, append, how } => (
            convert::run(&from, &to, append, &how).map(|()| true),
            format!("{} to {}", name(&from), name(&to)),
        ),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // Whoever reads the output has seen enough.
        Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("colonnade: {files}: {error}");
            ExitCode::from(2)
        }
    }
}

/// What a file is, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Column,
    Parquet,
    Csv,
}

impl Format {
    fn of(path: &Path) -> Self {
        match path
            .extension()
            .and_then(|extension| extension.to_str())
            .map(str::to_ascii_lowercase)
            .as_deref()
        {
            Some("parquet" | "pq") => Self::Parquet,
            Some("csv") => Self::Csv,
            _ => Self::Column,
        }
    }
}
