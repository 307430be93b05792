//! The shadow tables of a columnar table: their names, how they are made and removed.
//!
//! ```text
//! t_meta    one row: version of this layout, generation, rows of the tail
//! t_stripe  the directory: one row for each stripe
//! t_bytes   the stripes' bytes, cut into segments; id = stripe * 2^20 + number of the segment
//! t_tail    rows that no stripe has yet, as an ordinary table of the user's columns
//! ```
//! All state is in these, so SQLite's own journal makes changes of it atomic, and a rollback or a crash needs
//! no code of ours.
//!
//! A name has one underscore between the table's and its own part: SQLite looks for the last one when it asks
//! whether a table is a shadow table.

use std::cell::RefCell;

use crate::api::{Connection, Error, Result};
use crate::declaration::{TAIL_ID, quoted};

/// Version of the shadow tables.
const VERSION: i64 = 1;

/// The parts of a name that are a shadow table's.
const SUFFIXES: [&str; 4] = ["meta", "stripe", "bytes", "tail"];

/// Whether a table that is called after a columnar table with this at its end is one of its shadow tables.
pub fn is_shadow(suffix: &str) -> bool {
    SUFFIXES.iter().any(|own| own.eq_ignore_ascii_case(suffix))
}

/// Where the shadow tables of one columnar table are.
pub struct Shadow {
    /// The connection.
    pub db: Connection,
    schema: String,
    name: RefCell<String>,
}

impl Shadow {
    /// Those of the table of this name.
    pub fn new(db: Connection, schema: &str, name: &str) -> Self {
        Self { db, schema: schema.into(), name: RefCell::new(name.into()) }
    }

    /// The schema that the table is in.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// The columnar table's name.
    pub fn name(&self) -> String {
        self.name.borrow().clone()
    }

    /// The name of a shadow table, alone.
    pub fn bare(&self, suffix: &str) -> String {
        format!("{}_{suffix}", self.name.borrow())
    }

    /// The name of a shadow table in SQL.
    pub fn table(&self, suffix: &str) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.bare(suffix)))
    }

    /// Makes all of them. `definitions`: what the user has written between the parentheses.
    pub fn create(&self, definitions: &[&str]) -> Result<()> {
        let table = |suffix| self.table(suffix);
        let definitions = definitions.join(", ");
        // A table has one primary key: the user's, or a column of ours.
        let id = quoted(TAIL_ID);
        let with_id = format!("CREATE TABLE {}({id} INTEGER PRIMARY KEY, {definitions})", table("tail"));
        match self.db.execute(&with_id) {
            Err(error) if error.message.contains("more than one primary key") => {
                self.db.execute(&format!("CREATE TABLE {}({definitions})", table("tail")))?;
            }
            made => made?,
        }
        self.db.execute(&format!(
            "CREATE TABLE {}(id INTEGER PRIMARY KEY, version INTEGER NOT NULL, generation INTEGER NOT NULL, \
             tail_rows INTEGER NOT NULL)",
            table("meta")
        ))?;
        self.db.execute(&format!(
            "CREATE TABLE {}(id INTEGER PRIMARY KEY, stamp INTEGER NOT NULL, rows INTEGER NOT NULL, \
             least_row_id INTEGER NOT NULL, greatest_row_id INTEGER NOT NULL, bytes INTEGER NOT NULL, \
             footer INTEGER NOT NULL, kinds BLOB NOT NULL, summary BLOB NOT NULL, \
             dead_rows INTEGER NOT NULL DEFAULT 0, dead BLOB)",
            table("stripe")
        ))?;
        self.db.execute(&format!(
            "CREATE TABLE {}(id INTEGER PRIMARY KEY, data BLOB NOT NULL)",
            table("bytes")
        ))?;
        self.db.execute(&format!("INSERT INTO {} VALUES (1, {VERSION}, 0, 0)", table("meta")))
    }

    /// Looks whether they are there, and of a version that is known.
    pub fn check(&self) -> Result<()> {
        let sql = format!("SELECT version FROM {}", self.table("meta"));
        match self.db.query_integer(&sql)? {
            Some(VERSION) => Ok(()),
            Some(other) => Err(Error::new(format!(
                "table {} was written by a later version of colonnade (layout {other})",
                self.name()
            ))),
            None => Err(Error::corrupt(format!("{} has no row", self.bare("meta")))),
        }
    }

    /// Removes them.
    pub fn destroy(&self) -> Result<()> {
        SUFFIXES
            .iter()
            .try_for_each(|suffix| self.db.execute(&format!("DROP TABLE IF EXISTS {}", self.table(suffix))))
    }

    /// Calls them after another name of the table.
    pub fn rename(&self, name: &str) -> Result<()> {
        for suffix in SUFFIXES {
            let new = quoted(&format!("{name}_{suffix}"));
            self.db.execute(&format!("ALTER TABLE {} RENAME TO {new}", self.table(suffix)))?;
        }
        *self.name.borrow_mut() = name.into();
        Ok(())
    }
}
