//! Shows what is in a column file or a Parquet file: its columns, and for each of them type, size,
//! statistics, codec and encodings.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use files::column::{Column, ColumnFile};
use files::parquet::ParquetFile;
use files::{About, Error, Result};

use crate::Format;
use crate::table::{self, Side};

/// Prints what is known of the whole file and, if asked for, of each of its stripes or row groups.
pub fn run(path: &Path, stripes: bool) -> Result<()> {
    let file = File::open(path)?;
    let out = &mut std::io::stdout().lock();
    match Format::of(path) {
        Format::Parquet => of_parquet(&file, stripes, out),
        Format::Column | Format::Csv => of_column_file(&ColumnFile::open(file)?, stripes, out),
    }
}

fn of_column_file(file: &ColumnFile<File>, stripes: bool, out: &mut impl Write) -> Result<()> {
    let (count, columns) = (file.stripes().len(), file.columns());
    writeln!(
        out,
        "{} rows in {count} stripes, {} loads, {} bytes",
        file.rows(),
        file.loads(),
        file.length()
    )?;
    if let Some(owner) = file.owner() {
        writeln!(
            out,
            "loaded by a foreign table of PostgreSQL: OID {}, database {}",
            owner.relation, owner.database
        )?;
    }
    let about = |at| {
        let Some(stripe) = file.stripe(at)? else { return Ok(Vec::new()) };
        (0..columns.len()).map(|column| stripe.about(column)).collect::<Result<_>>()
    };
    let parts = (0..count).map(about).collect::<Result<Vec<_>>>()?;
    print(columns, &parts, out)?;
    for (number, (stripe, part)) in file.stripes().iter().zip(&parts).enumerate().filter(|_| stripes) {
        let length = stripe.bytes.end - stripe.bytes.start;
        writeln!(out, "stripe {number}: {} rows, {length} bytes at {}", stripe.rows, stripe.bytes.start)?;
        print_columns(columns, part, 2, out)?;
    }
    Ok(())
}

fn of_parquet(file: &File, stripes: bool, out: &mut impl Write) -> Result<()> {
    let parquet = ParquetFile::open(file)?;
    let (groups, columns) = (parquet.group_rows().len(), parquet.columns());
    let (rows, length) = (parquet.group_rows().sum::<u64>(), file.metadata()?.len());
    let writer = parquet.writer().map(|writer| format!(", written by {}", table::name(writer)));
    writeln!(out, "{rows} rows in {groups} row groups, {length} bytes{}", writer.unwrap_or_default())?;
    let missing = || Error::Malformed("a row group has other columns than the file".into());
    let about = |group| {
        let all = (0..columns.len()).map(|column| parquet.about(group, column).ok_or_else(missing));
        all.collect::<Result<Vec<_>>>()
    };
    let parts = (0..groups).map(about).collect::<Result<Vec<_>>>()?;
    print(&columns, &parts, out)?;
    for (number, (rows, part)) in parquet.group_rows().zip(&parts).enumerate().filter(|_| stripes) {
        let length = part.iter().map(|column| column.bytes).sum::<u64>();
        writeln!(out, "row group {number}: {rows} rows, {length} bytes")?;
        print_columns(&columns, part, 2, out)?;
    }
    Ok(())
}

/// What is known of all parts together, each of which has something of every column.
fn print(columns: &[Column], parts: &[Vec<About>], out: &mut impl Write) -> Result<()> {
    let mut all = vec![About::default(); columns.len()];
    for part in parts {
        all.iter_mut().zip(part).for_each(|(all, about)| all.add(about));
    }
    print_columns(columns, &all, 0, out)?;
    for (column, about) in columns.iter().zip(&all) {
        let name = table::name(&column.name);
        if about.older > 0 {
            writeln!(out, "column {name}: {} rows are older than it, and NULL", about.older)?;
        }
        if about.aside > 0 {
            writeln!(
                out,
                "column {name}: {} values are NaN, infinite or past 128 bits, and not in min and max",
                about.aside
            )?;
        }
    }
    Ok(())
}

fn print_columns(columns: &[Column], about: &[About], blanks: usize, out: &mut impl Write) -> Result<()> {
    let heads = [
        ("column", Side::Left),
        ("type", Side::Left),
        ("bytes", Side::Right),
        ("a row", Side::Right),
        ("NULLs", Side::Right),
        ("distinct", Side::Right),
        ("min", Side::Left),
        ("max", Side::Left),
        ("codec", Side::Left),
        ("chunks of each encoding", Side::Left),
    ];
    let rows: Vec<_> = columns.iter().zip(about).map(|(column, about)| cells(column, about)).collect();
    table::print(out, blanks, heads, &rows)
}

fn cells(column: &Column, about: &About) -> [String; 10] {
    let unknown = || "?".to_owned();
    let a_row = match about.rows {
        0 => String::new(),
        rows => format!("{:.2}", about.bytes as f64 / rows as f64),
    };
    let nulls = if about.uncounted == 0 { about.nulls.to_string() } else { unknown() };
    let has_values = about.nulls + about.aside < about.rows;
    let distinct = match about.distinct {
        // Of several parts together there are at least as many as in the one that has most.
        Some(distinct @ 1..) if about.parts > 1 => format!("{distinct}+"),
        Some(distinct) => distinct.to_string(),
        None if has_values => unknown(),
        None => "0".into(),
    };
    let bound = |text: Option<String>| match text {
        Some(text) => table::value(&text),
        None if has_values => unknown(),
        None => String::new(),
    };
    let encodings = about.encodings.iter().map(|(name, chunks)| format!("{chunks}x {name}"));
    [
        table::name(&column.name),
        table::name(&column.declared),
        about.bytes.to_string(),
        a_row,
        nulls,
        distinct,
        bound(about.min(column)),
        bound(about.max(column)),
        if about.codecs.is_empty() { "none".into() } else { about.codecs.join(", ") },
        encodings.collect::<Vec<_>>().join("; "),
    ]
}
