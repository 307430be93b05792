//! What a table is made of, and whether it is whole: `columnar_info`, `columnar_stripes`, `columnar_verify`.

use std::rc::Rc;

use encodings::NoPglz;

use super::row_function::{Answer, RowFunction};
use crate::api::{Argument, Connection, Error, Result, Value};
use crate::storage::{Entry, Fault, Storage, faults};
use crate::table::{TableState, Tables};
use crate::values::{Kind, Owned};

const TABLE: &[(&str, &str)] = &[("tab", "table")];

/// All of them.
pub static FUNCTIONS: [RowFunction; 3] = [
    RowFunction {
        name: c"columnar_info",
        columns: &[
            "name",
            "declared",
            "stripes",
            "rows",
            "nulls",
            "bytes",
            "plain_bytes",
            "ratio",
            "kinds",
            "encodings",
        ],
        arguments: TABLE,
        optional: 0,
        compute: info,
    },
    RowFunction {
        name: c"columnar_stripes",
        columns: &["stripe", "rows", "dead_rows", "least_rowid", "greatest_rowid", "bytes"],
        arguments: TABLE,
        optional: 0,
        compute: stripes,
    },
    RowFunction {
        name: c"columnar_verify",
        columns: &["stripe", "name", "problem"],
        arguments: TABLE,
        optional: 0,
        compute: verify,
    },
];

fn integer(value: impl TryInto<i64>) -> Option<Owned> {
    Owned::of(Value::Integer(value.try_into().unwrap_or(i64::MAX)))
}

fn text(text: &str) -> Option<Owned> {
    Owned::of(Value::Text(text.as_bytes()))
}

fn named(tables: &Rc<Tables>, db: Connection, given: &[Argument<'_>]) -> Result<Rc<TableState>> {
    let table = given.first().ok_or_else(|| Error::new("wrong number of arguments"))?;
    tables.find(db, *table)
}

/// What a stripe lies in the directory as.
fn stripes(_: &RowFunction, tables: &Rc<Tables>, db: Connection, given: &[Argument<'_>]) -> Result<Answer> {
    let table = named(tables, db, given)?;
    let row = |entry: &Entry| {
        let (least, greatest) = entry.row_ids;
        vec![
            integer(entry.id),
            integer(entry.rows),
            integer(entry.dead_rows),
            integer(least),
            integer(greatest),
            integer(entry.bytes),
        ]
    };
    Ok(Answer::Rows(table.storage.directory.entries().iter().map(row).collect()))
}

/// What is known of a column in all stripes.
#[derive(Default)]
struct About {
    rows: u64,
    nulls: u64,
    bytes: u64,
    plain: u64,
    kinds: Vec<&'static str>,
    encodings: Vec<String>,
}

/// A row for each column, the row's id first.
fn info(_: &RowFunction, tables: &Rc<Tables>, db: Connection, given: &[Argument<'_>]) -> Result<Answer> {
    let table = named(tables, db, given)?;
    let storage = &table.storage;
    let entries = storage.directory.entries();
    let columns = &storage.columns.0;
    let mut rows = Vec::new();
    let places = 1 + columns.iter().filter(|column| !column.is_row_id).count();
    for place in 0..places {
        let mut about = About::default();
        for entry in entries.iter() {
            about.add(storage, entry, place)?;
        }
        let column = storage.columns.at_place(place);
        let alias = columns.iter().find(|column| column.is_row_id).filter(|_| place == 0);
        let name = column.or(alias).map_or("rowid", |column| column.name.as_str());
        let declared = column.or(alias).map_or("INTEGER", |column| column.declared.as_str());
        #[allow(clippy::cast_precision_loss)]
        let ratio = if about.bytes > 0 {
            Owned::of(Value::Real(about.plain as f64 / about.bytes as f64))
        } else {
            None
        };
        rows.push(vec![
            text(name),
            text(declared),
            integer(entries.len()),
            integer(about.rows),
            integer(about.nulls),
            integer(about.bytes),
            integer(about.plain),
            ratio,
            text(&about.kinds.join(", ")),
            text(&about.encodings.join(", ")),
        ]);
    }
    Ok(Answer::Rows(rows))
}

impl About {
    fn add(&mut self, storage: &Storage, entry: &Entry, place: usize) -> Result<()> {
        let (reader, bytes) = (storage.open(entry)?, storage.bytes(entry));
        let kind = entry.kinds.get(place).copied().unwrap_or(Kind::Mixed);
        if !self.kinds.contains(&kind.name()) {
            self.kinds.push(kind.name());
        }
        self.rows += u64::from(entry.rows);
        self.nulls += u64::from(reader.column_statistics(place, &bytes)?.null_count);
        let shared = reader.shared_range(place, &bytes)?;
        self.bytes += shared.end - shared.start;
        for chunk in 0..reader.chunk_count() {
            let range = reader.chunk_range(place, chunk, &bytes)?;
            self.bytes += range.end - range.start;
            let stored = reader.read_chunk(place, chunk, &bytes, &NoPglz)?;
            self.plain += stored.decode(&NoPglz)?.bytes() as u64;
            let encoding = stored.open(&NoPglz)?.encoding();
            if !self.encodings.contains(&encoding) {
                self.encodings.push(encoding);
            }
        }
        Ok(())
    }
}

/// A row for each fault.
fn verify(_: &RowFunction, tables: &Rc<Tables>, db: Connection, given: &[Argument<'_>]) -> Result<Answer> {
    let table = named(tables, db, given)?;
    let faults = faults(&table.storage)?;
    let row = |fault: Fault| vec![fault.stripe.and_then(integer), text(&fault.column), text(&fault.problem)];
    Ok(Answer::Rows(faults.into_iter().map(row).collect()))
}
