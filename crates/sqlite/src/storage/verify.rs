//! Holds all that is stored of a table against each other.

use std::collections::HashSet;

use encodings::NoPglz;
use stripe::{StripeReader, verify_chunk, verify_column};

use super::{Entry, Storage};
use crate::api::{Result, Value};

/// Something that is not as it should be.
pub struct Fault {
    /// The stripe. None: the tail, or the table as a whole.
    pub stripe: Option<i64>,
    /// The column's name, or nothing.
    pub column: String,
    /// What is wrong.
    pub problem: String,
}

/// Reads every byte of a table, and compares what is said of rows with the rows.
pub fn faults(storage: &Storage) -> Result<Vec<Fault>> {
    let mut faults = Vec::new();
    let mut ids: HashSet<i64> = HashSet::new();
    for entry in storage.directory.entries().iter() {
        let mut add = |column: &str, problem: String| {
            faults.push(Fault { stripe: Some(entry.id), column: column.into(), problem });
        };
        let reader = match storage.open(entry) {
            Ok(reader) => reader,
            Err(error) => {
                add("", error.message);
                continue;
            }
        };
        for place in 0..entry.kinds.len() {
            let name = storage.columns.at_place(place).map_or("rowid", |column| column.name.as_str());
            of_column(storage, entry, &reader, place, &mut |problem| add(name, problem))?;
        }
        let dead = stripe::row_bits::rows_in(0, &entry.dead, 0..entry.rows.into()).count();
        if dead != entry.dead_rows as usize {
            add("", format!("{dead} rows are marked dead, {} are counted", entry.dead_rows));
        }
        match storage.live_row_ids(entry) {
            Ok(live) => {
                let bounds = entry.row_ids.0..=entry.row_ids.1;
                for id in live {
                    if !bounds.contains(&id) {
                        add("rowid", format!("row {id} lies outside the bounds in the directory"));
                    }
                    if !ids.insert(id) {
                        add("rowid", format!("row {id} is there twice"));
                    }
                }
            }
            Err(error) => add("rowid", error.message),
        }
    }
    let tail = storage.tail.rows(None)?;
    let rows = tail.first().map_or(0, |ids| ids.vector.len());
    let mut add = |problem: String| faults.push(Fault { stripe: None, column: String::new(), problem });
    if rows != storage.directory.tail_rows() as usize {
        add(format!("the tail has {rows} rows, {} are counted", storage.directory.tail_rows()));
    }
    for row in 0..rows {
        if let Some(Value::Integer(id)) = tail.first().map(|ids| ids.get(row)).transpose()?
            && !ids.insert(id)
        {
            add(format!("row {id} is in the tail and in a stripe"));
        }
    }
    Ok(faults)
}

fn of_column(
    storage: &Storage,
    entry: &Entry,
    reader: &StripeReader,
    place: usize,
    add: &mut dyn FnMut(String),
) -> Result<()> {
    let bytes = storage.bytes(entry);
    for chunk in 0..reader.chunk_count() {
        if let Some(finding) = verify_chunk(reader, place, chunk, &bytes, &NoPglz)? {
            add(format!("chunk {chunk}: {}", finding.detail));
        }
    }
    if let Some(finding) = verify_column(reader, place, &entry.summary, &bytes)? {
        add(finding.detail);
    }
    Ok(())
}
