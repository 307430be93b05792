//! Checks a column file.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use files::Result;
use files::column::ColumnFile;

/// Prints what is wrong. True where nothing is.
pub fn run(path: &Path) -> Result<bool> {
    let file = ColumnFile::open(File::open(path)?)?;
    let out = &mut std::io::stdout().lock();
    let mut wrong = 0;
    if let Some(at) = file.damaged_place() {
        writeln!(
            out,
            "the place at byte {at} of the head is damaged: loads after load {} may be missing",
            file.loads()
        )?;
        wrong += 1;
    }
    for at in 0..file.stripes().len() {
        let Some(stripe) = file.stripe(at)? else { break };
        for finding in stripe.verify()? {
            writeln!(out, "{finding}")?;
            wrong += 1;
        }
    }
    writeln!(out, "{} rows in {} stripes: {wrong} faults", file.rows(), file.stripes().len())?;
    Ok(wrong == 0)
}
