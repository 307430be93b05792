//! Shows what is in a column file.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use files::Result;
use files::column::ColumnFile;

/// Prints columns, rows and sizes.
pub fn run(path: &Path, stripes: bool) -> Result<()> {
    let file = ColumnFile::open(File::open(path)?)?;
    let out = &mut std::io::stdout().lock();
    writeln!(
        out,
        "{} rows in {} stripes, {} loads, {} bytes",
        file.rows(),
        file.stripes().len(),
        file.loads(),
        file.length()
    )?;
    let mut sizes = vec![0; file.columns().len()];
    for at in 0..file.stripes().len() {
        let Some(stripe) = file.stripe(at)? else { break };
        for (column, size) in sizes.iter_mut().enumerate() {
            *size += stripe.column_bytes(column)?;
        }
    }
    let width = file.columns().iter().map(|column| column.name.chars().count()).max().unwrap_or(0);
    for (column, bytes) in file.columns().iter().zip(sizes) {
        writeln!(out, "  {:width$}  {:>14} bytes  {}", column.name, bytes, column.declared)?;
    }
    for (number, stripe) in file.stripes().iter().enumerate().filter(|_| stripes) {
        let length = stripe.bytes.end - stripe.bytes.start;
        writeln!(out, "  stripe {number}: {} rows, {length} bytes at {}", stripe.rows, stripe.bytes.start)?;
    }
    Ok(())
}
