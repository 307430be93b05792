//! The columnar tables of a connection, by name: functions are given names.

use std::cell::{Cell, RefCell};
use std::num::NonZero;
use std::rc::{Rc, Weak};
use std::thread::available_parallelism;

use super::TableState;
use crate::api::{Argument, Connection, Error, Result, Value};
use crate::declaration::quoted;
use crate::engine::Limits;

/// All tables that SQLite has connected, and what holds for all queries of the connection.
pub struct Tables {
    known: RefCell<Vec<Weak<TableState>>>,
    limits: Cell<Limits>,
}

/// More threads than these have to be asked for.
const MOST_THREADS: usize = 8;
/// Bytes that an operator may hold, unless the user says otherwise.
const MEMORY: usize = 1 << 30;

impl Default for Tables {
    fn default() -> Self {
        let threads = available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
        let limits = Cell::new(Limits { memory: MEMORY, threads });
        Self { known: RefCell::default(), limits }
    }
}

impl Tables {
    /// What a query may take.
    pub fn limits(&self) -> Limits {
        self.limits.get()
    }

    /// Says what a query may take.
    pub fn set_limits(&self, limits: Limits) {
        self.limits.set(limits);
    }

    /// A table was connected. What was called so before is another one, or is declared otherwise.
    pub(super) fn add(&self, table: &Rc<TableState>) {
        let shadow = &table.storage.shadow;
        let before = self.known(shadow.schema(), &shadow.name());
        before.iter().for_each(|before| self.remove(before));
        let mut known = self.known.borrow_mut();
        known.retain(|known| known.strong_count() > 0);
        known.push(Rc::downgrade(table));
    }

    /// A table is not there any more, or not under the name that it knows.
    pub(super) fn remove(&self, table: &Rc<TableState>) {
        self.known.borrow_mut().retain(|known| !std::ptr::eq(known.as_ptr(), Rc::as_ptr(table)));
    }

    /// The table of this name that was connected before, if it was declared with the same words. Whatever
    /// else it knows belongs to a generation of the stored rows.
    pub(super) fn connected(&self, schema: &str, name: &str, parts: &[&str]) -> Option<Rc<TableState>> {
        self.known(schema, name).filter(|known| known.parts == parts)
    }

    /// The table that a function names: `table`, or `schema.table`. What waits of it is written, and it is as
    /// it is now.
    pub fn find(&self, db: Connection, reference: Argument<'_>) -> Result<Rc<TableState>> {
        let Value::Text(text) = reference.value() else { return Err(invalid()) };
        let text = std::str::from_utf8(text).map_err(|_| invalid())?;
        let (schema, name) = resolve(db, text)?;
        let table = self.columnar(db, &schema, &name)?;
        table.ok_or_else(|| Error::new(format!("{text} is not a columnar table")))
    }

    /// The columnar table of this name, as `find` has it. None if the table is not columnar.
    pub fn columnar(&self, db: Connection, schema: &str, name: &str) -> Result<Option<Rc<TableState>>> {
        // SQLite connects a table when a statement first names it.
        drop(db.prepare(&format!("SELECT 1 FROM {}.{}", quoted(schema), quoted(name)))?);
        let Some(table) = self.known(schema, name) else { return Ok(None) };
        table.settle_for_reading()?;
        Ok(Some(table))
    }

    /// The columnar table of this name, if SQLite has connected it. Its waiting rows are not written.
    pub fn known(&self, schema: &str, name: &str) -> Option<Rc<TableState>> {
        let known = self.known.borrow();
        known.iter().filter_map(Weak::upgrade).find(|table| {
            let shadow = &table.storage.shadow;
            shadow.schema().eq_ignore_ascii_case(schema) && shadow.name().eq_ignore_ascii_case(name)
        })
    }
}

/// The parts of `table`, or of `schema.table`.
pub fn parts_of(text: &str) -> Result<(Option<&str>, &str)> {
    let (schema, name) = match text.split_once('.') {
        Some((schema, name)) => (Some(schema), name),
        None => (None, text),
    };
    match name.is_empty() || name.contains('.') || schema.is_some_and(str::is_empty) {
        true => Err(invalid()),
        false => Ok((schema, name)),
    }
}

fn invalid() -> Error {
    Error::new("invalid table reference: 'table' or 'schema.table' is expected")
}

/// The schema and the name of a table that is named as `table` or `schema.table`.
pub fn resolve(db: Connection, text: &str) -> Result<(String, String)> {
    match parts_of(text)? {
        (Some(schema), name) => Ok((schema.into(), name.into())),
        (None, name) => Ok((schema_of(db, name)?, name.into())),
    }
}

/// The schema of a table that is named alone. An error if there is none.
pub fn schema_of(db: Connection, name: &str) -> Result<String> {
    find_schema(db, name)?.ok_or_else(|| Error::new(format!("no such table: {name}")))
}

/// The schema of a table that is named alone: where SQLite would find it, in temp, main, and then the
/// attached databases. None if there is none.
pub fn find_schema(db: Connection, name: &str) -> Result<Option<String>> {
    let databases = db.prepare("PRAGMA database_list")?;
    let mut schemas = vec!["temp".to_owned()];
    while databases.step()? {
        schemas.extend(Some(databases.text(1)).filter(|schema| schema != "temp"));
    }
    for schema in schemas {
        let sql = format!(
            "SELECT 1 FROM {}.sqlite_master WHERE name = ?1 COLLATE NOCASE AND type IN ('table', 'view')",
            quoted(&schema)
        );
        let found = db.prepare(&sql)?;
        found.bind(1, Value::Text(name.as_bytes()))?;
        if found.step()? {
            return Ok(Some(schema));
        }
    }
    Ok(None)
}

impl TableState {
    /// The column that a function names by name or by number, from 0 on.
    pub fn column(&self, named: Argument<'_>) -> Result<usize> {
        let columns = &self.storage.columns.0;
        let table = self.storage.shadow.name();
        let missing = |name: &str| Error::new(format!("no such column: {table}.{name}"));
        match named.value() {
            Value::Integer(number) => match usize::try_from(number) {
                Ok(number) if number < columns.len() => Ok(number),
                Ok(_) => Err(missing(&number.to_string())),
                Err(_) => Err(Error::new("column index must be non-negative")),
            },
            Value::Text(name) => {
                let name = String::from_utf8_lossy(name);
                let found = columns.iter().position(|column| column.name.eq_ignore_ascii_case(&name));
                found.ok_or_else(|| missing(&name))
            }
            _ => Err(Error::new("a column is named by its name or its number")),
        }
    }
}
