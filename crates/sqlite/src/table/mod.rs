//! The virtual table `columnar`: what SQLite calls for each of its verbs.
//!
//! - `tables`: finds a table by its name, for functions
//! - `pending`: rows of the running transaction that are in no shadow table yet
//! - `cursor`: reading
//! - `change`: INSERT, UPDATE and DELETE of one row
//! - `flush`: writing what waits; when rows of the tail become a stripe

mod change;
mod cursor;
mod flush;
mod pending;
mod tables;

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::rc::Rc;

use crate::api::{Change, Connection, Error, IndexInfo, Result, StoredTable, Table, raw};
use crate::declaration::{Columns, Declaration, Options};
use crate::scan::search;
use crate::storage::{Fault, Shadow, Storage, faults, is_shadow};
use cursor::ColumnarCursor;
use pending::Pending;
pub use tables::{Tables, find_schema, parts_of, resolve, schema_of};

/// What a connection knows of a columnar table.
pub struct TableState {
    /// Its rows.
    pub storage: Rc<Storage>,
    /// Definitions of columns and constraints, as the user has written them.
    pub definitions: Vec<String>,
    /// All that stands between the parentheses.
    parts: Vec<String>,
    /// It got another name in the running transaction.
    was_renamed: Cell<bool>,
    /// A row's constraints are checked by SQLite in the tail, which every row goes through.
    checks_in_tail: bool,
    /// Another name of the row's id.
    row_id: Option<usize>,
    /// Columns that refuse NULL.
    not_null: Vec<usize>,
    pending: RefCell<Pending>,
    /// Something in memory has to be written to shadow tables.
    dirty: Cell<bool>,
    /// A write has begun, or has failed in the middle. In that case nothing is right before a rollback.
    writing: Cell<bool>,
    /// `flush` is running.
    flushing: Cell<bool>,
}

/// A connected columnar table.
///
/// SQLite connects a table anew whenever the schema may have changed, also while open statements use what was
/// connected before. Both are one table with one state, which `Tables` keeps.
pub struct Columnar {
    state: Rc<TableState>,
    tables: Rc<Tables>,
}

impl Table for Columnar {
    type Cursor = ColumnarCursor;
    type Data = Tables;

    // Whoever may read a schema may use the table: it reads nothing but what is in it.
    const PROPERTIES: &'static [c_int] = &[raw::SQLITE_VTAB_CONSTRAINT_SUPPORT, raw::SQLITE_VTAB_INNOCUOUS];

    fn connect(
        db: Connection,
        data: &Rc<Tables>,
        arguments: &[&str],
        create: bool,
    ) -> Result<(String, Self)> {
        let [_, schema, name, parts @ ..] = arguments else {
            return Err(Error::new("columnar requires at least one column"));
        };
        let known = if create { None } else { data.connected(schema, name, parts) };
        let state = match known {
            Some(known) => {
                known.storage.close();
                known
            }
            None => {
                let Declaration { options, definitions } = Declaration::parse(parts)?;
                let shadow = Rc::new(Shadow::new(db, schema, name));
                if create {
                    shadow.create(&definitions)?;
                }
                shadow.check()?;
                let columns = Rc::new(Columns::read(db, schema, &shadow.bare("tail"))?);
                let state = Rc::new(TableState::new(shadow, columns, options, &definitions, parts)?);
                data.add(&state);
                state
            }
        };
        Ok((state.storage.columns.declaration(), Self { state, tables: Rc::clone(data) }))
    }

    fn best_index(&self, info: &mut IndexInfo<'_>) -> Result<()> {
        search::choose(&self.state.storage, info)
    }

    fn open(&self) -> Result<ColumnarCursor> {
        Ok(ColumnarCursor::new(&self.state))
    }
}

impl TableState {
    fn new(
        shadow: Rc<Shadow>,
        columns: Rc<Columns>,
        options: Options,
        definitions: &[&str],
        parts: &[&str],
    ) -> Result<Self> {
        let row_id = columns.row_id();
        let refuses =
            |column: &usize| columns.0.get(*column).is_some_and(|own| own.not_null && !own.is_row_id);
        let not_null = (0..columns.0.len()).filter(refuses).collect();
        let storage = Rc::new(Storage::new(shadow, columns, options)?);
        let pending = RefCell::new(Pending::new(storage.tail.builders()));
        let checks_in_tail = definitions.iter().any(|definition| has_check(definition));
        let (dirty, writing, flushing) = (Cell::new(false), Cell::new(false), Cell::new(false));
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Ok(Self {
            storage,
            definitions: owned(definitions),
            parts: owned(parts),
            was_renamed: Cell::new(false),
            checks_in_tail,
            row_id,
            not_null,
            pending,
            dirty,
            writing,
            flushing,
        })
    }

    fn drop_pending(&self) {
        *self.pending.borrow_mut() = Pending::new(self.storage.tail.builders());
        self.dirty.set(false);
        self.writing.set(false);
        self.storage.directory.forget();
    }
}

impl Columnar {
    /// What this transaction has made of the table is undone.
    fn undo(&self) {
        self.state.drop_pending();
        if self.state.was_renamed.take() {
            // Its name is not the one in the database any more.
            self.tables.remove(&self.state);
        }
    }
}

impl StoredTable for Columnar {
    fn destroy(&self) -> Result<()> {
        self.state.storage.close();
        self.state.storage.shadow.destroy()?;
        self.tables.remove(&self.state);
        Ok(())
    }

    fn rename(&self, name: &str) -> Result<()> {
        self.state.flush()?;
        self.state.storage.close();
        self.state.storage.directory.forget();
        self.state.was_renamed.set(true);
        self.state.storage.shadow.rename(name)
    }

    fn change(&self, change: Change<'_>) -> Result<Option<i64>> {
        let state = &self.state;
        state.expect_whole()?;
        if state.storage.directory.generation().is_none() {
            state.storage.directory.refresh()?;
        }
        match change {
            Change::Delete(id) => state.delete(id).map(|()| None),
            Change::Insert(id, values) => state.insert(id, values).map(Some),
            Change::Update(old, new, values) => {
                let db = state.storage.shadow.db;
                db.keeping_last_id(|| state.update(old, new, values)).map(|()| None)
            }
        }
    }

    fn begin(&self) -> Result<()> {
        self.state.storage.directory.refresh()
    }

    fn sync(&self) -> Result<()> {
        self.state.flush()
    }

    fn commit(&self) {
        self.state.was_renamed.set(false);
    }

    fn rollback(&self) {
        self.undo();
    }

    fn savepoint(&self) -> Result<()> {
        // A statement of `flush` may be a savepoint of its own.
        if self.state.flushing.get() { Ok(()) } else { self.state.flush() }
    }

    fn rollback_to(&self) {
        if !self.state.flushing.get() {
            self.undo();
        }
    }

    fn is_shadow(suffix: &str) -> bool {
        is_shadow(suffix)
    }

    fn integrity(&self) -> Result<Option<String>> {
        let storage = &self.state.storage;
        let found = self.state.settle_for_reading().and_then(|()| faults(storage));
        let faults = match found {
            Err(error) if error.code == raw::SQLITE_CORRUPT_VTAB => {
                return Ok(Some(format!("in {}: {}", storage.shadow.name(), error.message)));
            }
            found => found?,
        };
        let told = |fault: &Fault| match fault.stripe {
            Some(stripe) => format!("stripe {stripe}, {}: {}", fault.column, fault.problem),
            None => fault.problem.clone(),
        };
        let told: Vec<String> = faults.iter().take(5).map(told).collect();
        Ok((!told.is_empty()).then(|| format!("in {}: {}", storage.shadow.name(), told.join("; "))))
    }
}

/// Whether a definition may have a CHECK constraint. Saying so without one costs time, nothing else.
fn has_check(definition: &str) -> bool {
    definition.to_ascii_uppercase().contains("CHECK")
}
