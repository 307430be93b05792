//! Checks a column file.

use std::fs::File;
use std::path::Path;

use files::Result;
use files::column::ColumnFile;

/// Prints what is wrong. True where nothing is.
pub fn run(path: &Path) -> Result<bool> {
    let file = ColumnFile::open(File::open(path)?)?;
    let mut wrong = 0;
    for at in 0..file.stripes().len() {
        let Some(stripe) = file.stripe(at)? else { break };
        for finding in stripe.verify()? {
            println!("{finding}");
            wrong += 1;
        }
    }
    println!("{} rows in {} stripes: {wrong} faults", file.rows(), file.stripes().len());
    Ok(wrong == 0)
}
