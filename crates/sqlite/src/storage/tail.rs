//! The tail: rows that no stripe has yet, in an ordinary table.
//!
//! The tail is declared as the user has declared the columnar table. So a row that is inserted here gets its
//! affinities, and has its constraints checked, by SQLite itself.

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;

use super::shadow::Shadow;
use crate::api::{Argument, Error, Result, Statement, Value};
use crate::declaration::{Columns, quoted};
use crate::values::{Affinity, Column, ColumnBuilder};

/// Memory of a value without its text, about.
const VALUE_BYTES: usize = 16;

/// Made only when something is written: a connection in defensive mode refuses them outside of that.
struct Writes {
    insert: Statement,
    update: Statement,
    delete: Statement,
    clear: Statement,
}

struct Reads {
    find: Statement,
    read: Statement,
}

/// What was read of the tail, with the generation that it belongs to.
type Known = Option<(i64, Rc<Vec<Column>>)>;

/// The tail of a table.
pub struct Tail {
    shadow: Rc<Shadow>,
    columns: Rc<Columns>,
    writes: RefCell<Option<Writes>>,
    reads: RefCell<Option<Reads>>,
    known: RefCell<Known>,
    /// Memory that its rows take, about, as far as this connection has seen.
    bytes: Cell<usize>,
}

impl Tail {
    /// That of these shadow tables.
    pub fn new(shadow: Rc<Shadow>, columns: Rc<Columns>) -> Self {
        Self {
            shadow,
            columns,
            writes: RefCell::default(),
            reads: RefCell::default(),
            known: RefCell::default(),
            bytes: Cell::new(0),
        }
    }

    /// Memory that its rows take, about, as far as this connection has seen.
    pub const fn bytes(&self) -> usize {
        self.bytes.get()
    }

    fn add_bytes(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes);
    }

    /// The names of the id and of the stored columns, in SQL. Another name of the row's id is given as the
    /// id.
    fn names(&self) -> Vec<String> {
        let stored = self.columns.0.iter().filter(|column| !column.is_row_id);
        std::iter::once(self.columns.row_id_name()).chain(stored.map(|column| quoted(&column.name))).collect()
    }

    fn writes(&self) -> Result<Ref<'_, Writes>> {
        if self.writes.borrow().is_none() {
            let (db, table, id) = (self.shadow.db, self.shadow.table("tail"), self.columns.row_id_name());
            let names = self.names();
            let places: Vec<String> = (1..=names.len()).map(|at| format!("?{at}")).collect();
            let set = names.iter().zip(&places).map(|(name, place)| format!("{name} = {place}"));
            let (set, old) = (set.collect::<Vec<_>>().join(", "), names.len() + 1);
            let (names, places) = (names.join(", "), places.join(", "));
            let made = Writes {
                insert: db.prepare(&format!("INSERT INTO {table}({names}) VALUES ({places})"))?,
                update: db.prepare(&format!("UPDATE {table} SET {set} WHERE {id} = ?{old}"))?,
                delete: db.prepare(&format!("DELETE FROM {table} WHERE {id} = ?1"))?,
                clear: db.prepare(&format!("DELETE FROM {table}"))?,
            };
            *self.writes.borrow_mut() = Some(made);
        }
        Ref::filter_map(self.writes.borrow(), Option::as_ref).map_err(|_| Error::new("no statements"))
    }

    fn reads(&self) -> Result<Ref<'_, Reads>> {
        if self.reads.borrow().is_none() {
            let (db, table, id) = (self.shadow.db, self.shadow.table("tail"), self.columns.row_id_name());
            let names = self.names().join(", ");
            let made = Reads {
                find: db.prepare(&format!("SELECT {names} FROM {table} WHERE {id} = ?1"))?,
                read: db.prepare(&format!("SELECT {names} FROM {table} ORDER BY {id}"))?,
            };
            *self.reads.borrow_mut() = Some(made);
        }
        Ref::filter_map(self.reads.borrow(), Option::as_ref).map_err(|_| Error::new("no statements"))
    }

    /// Forgets statements.
    pub fn close(&self) {
        self.writes.take();
        self.reads.take();
    }

    /// Inserts a row as SQLite gives it. SQLite applies affinities and checks constraints.
    pub fn insert_given(&self, id: i64, values: &[Argument<'_>]) -> Result<()> {
        let statements = self.writes()?;
        self.bind_given(&statements.insert, id, values)?;
        while statements.insert.step()? {}
        Ok(())
    }

    /// Gives the row `old` another id and other values, as `insert_given` does.
    pub fn update_given(&self, old: i64, id: i64, values: &[Argument<'_>]) -> Result<()> {
        let statements = self.writes()?;
        let bound = self.bind_given(&statements.update, id, values)?;
        statements.update.bind(bound + 1, Value::Integer(old))?;
        while statements.update.step()? {}
        Ok(())
    }

    /// Binds a row's id and values. How many that are.
    fn bind_given(&self, statement: &Statement, id: i64, values: &[Argument<'_>]) -> Result<usize> {
        statement.bind(1, Value::Integer(id))?;
        let mut bound = 1;
        for (value, _) in values.iter().zip(&self.columns.0).filter(|(_, column)| !column.is_row_id) {
            bound += 1;
            self.add_bytes(match value.value() {
                Value::Text(bytes) | Value::Blob(bytes) => bytes.len() + VALUE_BYTES,
                _ => VALUE_BYTES,
            });
            statement.bind_argument(bound, *value)?;
        }
        Ok(bound)
    }

    /// Inserts all rows of these columns, the ids first.
    pub fn insert_all(&self, columns: &[Column]) -> Result<()> {
        let statements = self.writes()?;
        self.add_bytes(columns.iter().map(|column| column.vector.bytes()).sum());
        for row in 0..columns.first().map_or(0, |ids| ids.vector.len()) {
            for (at, column) in columns.iter().enumerate() {
                statements.insert.bind(at + 1, column.get(row)?)?;
            }
            while statements.insert.step()? {}
        }
        Ok(())
    }

    /// Whether it has a row of this id.
    pub fn has(&self, id: i64) -> Result<bool> {
        let statements = self.reads()?;
        statements.find.bind(1, Value::Integer(id))?;
        let found = statements.find.step()?;
        statements.find.reset();
        Ok(found)
    }

    /// The row of this id, as columns of one row. None if there is none.
    pub fn find(&self, id: i64) -> Result<Option<Vec<Column>>> {
        let statements = self.reads()?;
        statements.find.bind(1, Value::Integer(id))?;
        let columns = self.collect(&statements.find)?;
        Ok(columns.first().is_some_and(|ids| !ids.vector.is_empty()).then_some(columns))
    }

    /// Deletes the row of this id.
    pub fn delete(&self, id: i64) -> Result<()> {
        self.writes()?.delete.run(&[Value::Integer(id)])
    }

    /// Deletes all rows.
    pub fn clear(&self) -> Result<()> {
        self.bytes.set(0);
        self.writes()?.clear.run(&[])
    }

    /// All rows, in the order of their ids: the ids first, then each stored column. They are remembered as
    /// long as the generation is this one.
    pub fn rows(&self, generation: Option<i64>) -> Result<Rc<Vec<Column>>> {
        if let (Some(now), Some((then, rows))) = (generation, &*self.known.borrow())
            && now == *then
        {
            return Ok(Rc::clone(rows));
        }
        let rows = Rc::new(self.collect(&self.reads()?.read)?);
        self.bytes.set(rows.iter().map(|column| column.vector.bytes()).sum());
        *self.known.borrow_mut() = generation.map(|now| (now, Rc::clone(&rows)));
        Ok(rows)
    }

    /// The rest of a statement's rows as columns.
    fn collect(&self, statement: &Statement) -> Result<Vec<Column>> {
        let mut builders = self.builders();
        while statement.step()? {
            for (at, builder) in builders.iter_mut().enumerate() {
                builder.push(statement.value(at)).inspect_err(|_| statement.reset())?;
            }
        }
        Ok(builders.into_iter().map(ColumnBuilder::finish).collect())
    }

    /// Empty columns: the ids, then each stored column.
    pub fn builders(&self) -> Vec<ColumnBuilder> {
        let stored = self.columns.0.iter().filter(|column| !column.is_row_id);
        let affinities = std::iter::once(Affinity::Numeric).chain(stored.map(|column| column.affinity));
        affinities.map(ColumnBuilder::new).collect()
    }
}
