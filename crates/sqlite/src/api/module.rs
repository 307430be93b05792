//! Virtual tables: the callbacks that SQLite calls, around the traits that a table of ours implements.
//!
//! No panic leaves a callback: it becomes an error of the statement. SQLite calls with its mutex held, so a
//! table and its cursors are used by one thread at a time. A call may lead to another one on the same table
//! (a statement of ours asks for a shadow table only, but the user's code may run in between), so tables are
//! given as shared references and keep what changes in cells.

use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::rc::Rc;

use super::value::{Argument, Context};
use super::{Connection, Error, IndexInfo, Result, raw};

/// A virtual table as it is connected.
pub trait Table: Sized + 'static {
    /// Goes through its rows.
    type Cursor: Cursor<Table = Self>;

    /// What all tables of this kind share on a connection.
    type Data: 'static;

    /// What SQLite may take for granted of such tables.
    const PROPERTIES: &'static [c_int] = &[];

    /// Makes the table (`create`), or connects to one that is there. Returns with it the CREATE TABLE
    /// statement that says its columns. `arguments` are the module's name, the schema's, the table's, and
    /// what stands between the parentheses.
    fn connect(
        db: Connection,
        data: &Rc<Self::Data>,
        arguments: &[&str],
        create: bool,
    ) -> Result<(String, Self)>;

    /// Chooses how a query's rows are to be found.
    fn best_index(&self, info: &mut IndexInfo<'_>) -> Result<()>;

    /// A cursor that stands nowhere yet.
    fn open(&self) -> Result<Self::Cursor>;
}

/// Goes through rows of a table.
pub trait Cursor: Sized + 'static {
    /// Whose rows.
    type Table;

    /// Begins a search, as `best_index` chose it by number and text.
    fn filter(
        &mut self,
        table: &Self::Table,
        number: c_int,
        text: &str,
        values: &[Argument<'_>],
    ) -> Result<()>;

    /// Goes on to the next row.
    fn next(&mut self, table: &Self::Table) -> Result<()>;

    /// Whether there is no row here.
    fn is_past_end(&self) -> bool;

    /// Gives a column of the row.
    fn column(&mut self, context: &mut Context<'_>, column: usize) -> Result<()>;

    /// The row's id.
    fn row_id(&self) -> Result<i64>;
}

/// What a statement does to one row.
pub enum Change<'a> {
    /// The row goes.
    Delete(i64),
    /// A row comes, with this id or any.
    Insert(Option<i64>, &'a [Argument<'a>]),
    /// A row gets another id and other values.
    Update(i64, i64, &'a [Argument<'a>]),
}

/// A table that keeps rows in shadow tables.
pub trait StoredTable: Table {
    /// Removes all that the table has in the database.
    fn destroy(&self) -> Result<()>;
    /// Gives all that it has the name `name`.
    fn rename(&self, name: &str) -> Result<()>;
    /// Changes one row. The id of a row that came.
    fn change(&self, change: Change<'_>) -> Result<Option<i64>>;
    /// A transaction begins that may change the table.
    fn begin(&self) -> Result<()>;
    /// The transaction is going to be committed: all that is not in shadow tables must go there now.
    fn sync(&self) -> Result<()>;
    /// The transaction was committed.
    fn commit(&self);
    /// The transaction was rolled back.
    fn rollback(&self);
    /// A savepoint begins. What came before must not go when it is rolled back.
    fn savepoint(&self) -> Result<()>;
    /// All since a savepoint was rolled back.
    fn rollback_to(&self);
    /// Whether a table whose name is that of a virtual table, `_` and this, is a shadow table.
    fn is_shadow(suffix: &str) -> bool;
    /// Looks whether all that is stored is whole. What is wrong, if something is.
    fn integrity(&self) -> Result<Option<String>>;
}

#[repr(C)]
struct TableBox<T> {
    base: raw::sqlite3_vtab,
    table: T,
}

#[repr(C)]
struct CursorBox<C> {
    base: raw::sqlite3_vtab_cursor,
    cursor: C,
}

/// Runs a callback's body. A panic becomes an error.
fn caught<R>(body: impl FnOnce() -> Result<R>) -> Result<R> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(panic) => Err(Error::new(format!("internal error of colonnade: {}", panic_text(&*panic)))),
    }
}

pub(super) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("panic")
}

/// A text in SQLite's memory, which SQLite frees.
pub(super) fn sqlite_text(text: &str) -> *mut c_char {
    // SAFETY: as many bytes are written as were asked for.
    unsafe {
        let memory: *mut c_char = raw::malloc64(text.len() as u64 + 1).cast();
        if !memory.is_null() {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), memory, text.len());
            *memory.add(text.len()) = 0;
        }
        memory
    }
}

/// Runs the body of a callback on a table, and leaves its error where SQLite looks for it.
unsafe fn of_table<T>(table: *mut raw::sqlite3_vtab, body: impl FnOnce(&T) -> Result<()>) -> c_int {
    // SAFETY: SQLite gives back the pointer that `connect` made.
    let boxed = unsafe { &*table.cast::<TableBox<T>>() };
    match caught(|| body(&boxed.table)) {
        Ok(()) => raw::SQLITE_OK,
        Err(error) => {
            // SAFETY: the text that is there is SQLite's or null.
            unsafe {
                raw::free((*table).message.cast());
                (*table).message =
                    if error.message.is_empty() { null_mut() } else { sqlite_text(&error.message) };
            }
            error.code
        }
    }
}

/// As `of_table`, with a cursor.
unsafe fn of_cursor<T: Table>(
    cursor: *mut raw::sqlite3_vtab_cursor,
    body: impl FnOnce(&T, &mut T::Cursor) -> Result<()>,
) -> c_int {
    // SAFETY: SQLite gives back the pointer that `open` made, and calls nothing else on this cursor before
    // this call ends.
    unsafe {
        let own = &mut (*cursor.cast::<CursorBox<T::Cursor>>()).cursor;
        of_table((*cursor).table, |table| body(table, own))
    }
}

unsafe extern "C" fn create<T: Table>(
    db: *mut raw::sqlite3,
    data: *mut c_void,
    count: c_int,
    arguments: *const *const c_char,
    table: *mut *mut raw::sqlite3_vtab,
    message: *mut *mut c_char,
) -> c_int {
    // SAFETY: as `connect_table`.
    unsafe { connect_table::<T>((db, data), (count, arguments), table, message, true) }
}

unsafe extern "C" fn connect<T: Table>(
    db: *mut raw::sqlite3,
    data: *mut c_void,
    count: c_int,
    arguments: *const *const c_char,
    table: *mut *mut raw::sqlite3_vtab,
    message: *mut *mut c_char,
) -> c_int {
    // SAFETY: as `connect_table`.
    unsafe { connect_table::<T>((db, data), (count, arguments), table, message, false) }
}

unsafe fn connect_table<T: Table>(
    (db, data): (*mut raw::sqlite3, *mut c_void),
    (count, arguments): (c_int, *const *const c_char),
    table: *mut *mut raw::sqlite3_vtab,
    message: *mut *mut c_char,
    create: bool,
) -> c_int {
    let made = caught(|| {
        // SAFETY: SQLite gives an open connection and so many texts.
        let (connection, texts) = unsafe {
            let texts: Vec<String> = (0..usize::try_from(count).unwrap_or(0))
                .map(|at| CStr::from_ptr(*arguments.add(at)).to_string_lossy().into_owned())
                .collect();
            (Connection::new(db), texts)
        };
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        // SAFETY: it is what `register` gave, and stays as long as the module.
        let data = unsafe { &*data.cast::<Rc<T::Data>>() };
        let (declaration, made) = T::connect(connection, data, &texts, create)?;
        let declaration = CString::new(declaration).map_err(|_| Error::new("a declaration with a NUL"))?;
        // SAFETY: this is called while SQLite makes the table.
        match unsafe { raw::declare_vtab(db, declaration.as_ptr()) } {
            raw::SQLITE_OK => {}
            code => return Err(connection.last_error(code)),
        }
        // SAFETY: the same.
        unsafe { T::PROPERTIES.iter().for_each(|&property| _ = raw::vtab_config(db, property, 1)) };
        Ok(made)
    });
    match made {
        Ok(made) => {
            let base = raw::sqlite3_vtab { module: std::ptr::null(), references: 0, message: null_mut() };
            // SAFETY: SQLite wants the pointer there.
            unsafe { *table = Box::into_raw(Box::new(TableBox { base, table: made })).cast() };
            raw::SQLITE_OK
        }
        Err(error) => {
            // SAFETY: SQLite frees the text.
            unsafe { *message = sqlite_text(&error.message) };
            error.code
        }
    }
}

unsafe extern "C" fn disconnect<T: Table>(table: *mut raw::sqlite3_vtab) -> c_int {
    // SAFETY: this is the last that SQLite does with the table.
    let boxed = unsafe { Box::from_raw(table.cast::<TableBox<T>>()) };
    let _ = caught(|| {
        drop(boxed);
        Ok(())
    });
    raw::SQLITE_OK
}

unsafe extern "C" fn destroy<T: StoredTable>(table: *mut raw::sqlite3_vtab) -> c_int {
    // SAFETY: where this fails, SQLite keeps the table.
    unsafe {
        match of_table::<T>(table, T::destroy) {
            raw::SQLITE_OK => disconnect::<T>(table),
            code => code,
        }
    }
}

unsafe extern "C" fn best_index<T: Table>(
    table: *mut raw::sqlite3_vtab,
    info: *mut raw::sqlite3_index_info,
) -> c_int {
    // SAFETY: SQLite gives the info for this call.
    unsafe { of_table::<T>(table, |table| table.best_index(&mut IndexInfo::new(info))) }
}

unsafe extern "C" fn open<T: Table>(
    table: *mut raw::sqlite3_vtab,
    cursor: *mut *mut raw::sqlite3_vtab_cursor,
) -> c_int {
    let made = |own: &T| {
        // SQLite says whose cursor it is.
        let base = raw::sqlite3_vtab_cursor { table: null_mut() };
        let boxed = Box::new(CursorBox { base, cursor: own.open()? });
        // SAFETY: SQLite wants the pointer there.
        unsafe { *cursor = Box::into_raw(boxed).cast() };
        Ok(())
    };
    // SAFETY: as `of_table`.
    unsafe { of_table::<T>(table, made) }
}

unsafe extern "C" fn close<T: Table>(cursor: *mut raw::sqlite3_vtab_cursor) -> c_int {
    // SAFETY: this is the last that SQLite does with the cursor.
    let boxed = unsafe { Box::from_raw(cursor.cast::<CursorBox<T::Cursor>>()) };
    let _ = caught(|| {
        drop(boxed);
        Ok(())
    });
    raw::SQLITE_OK
}

unsafe extern "C" fn filter<T: Table>(
    cursor: *mut raw::sqlite3_vtab_cursor,
    number: c_int,
    text: *const c_char,
    count: c_int,
    values: *mut *mut raw::sqlite3_value,
) -> c_int {
    let body = |table: &T, cursor: &mut T::Cursor| {
        // SAFETY: the text is what `best_index` gave, or null, and there are so many values.
        let (text, values) = unsafe {
            let text = if text.is_null() { c"" } else { CStr::from_ptr(text) };
            (text.to_string_lossy(), Argument::list(count, values))
        };
        cursor.filter(table, number, &text, values)
    };
    // SAFETY: as `of_cursor`.
    unsafe { of_cursor::<T>(cursor, body) }
}

unsafe extern "C" fn next<T: Table>(cursor: *mut raw::sqlite3_vtab_cursor) -> c_int {
    // SAFETY: as `of_cursor`.
    unsafe { of_cursor::<T>(cursor, |table, cursor| cursor.next(table)) }
}

unsafe extern "C" fn eof<T: Table>(cursor: *mut raw::sqlite3_vtab_cursor) -> c_int {
    // SAFETY: the pointer is what `open` made.
    let own = unsafe { &(*cursor.cast::<CursorBox<T::Cursor>>()).cursor };
    c_int::from(own.is_past_end())
}

unsafe extern "C" fn column<T: Table>(
    cursor: *mut raw::sqlite3_vtab_cursor,
    context: *mut raw::sqlite3_context,
    column: c_int,
) -> c_int {
    let body = |_: &T, cursor: &mut T::Cursor| {
        // SAFETY: SQLite gives the context for this call.
        let mut context = unsafe { Context::new(context) };
        cursor.column(&mut context, usize::try_from(column).unwrap_or(usize::MAX))
    };
    // SAFETY: as `of_cursor`.
    unsafe { of_cursor::<T>(cursor, body) }
}

unsafe extern "C" fn rowid<T: Table>(cursor: *mut raw::sqlite3_vtab_cursor, row: *mut i64) -> c_int {
    let body = |_: &T, cursor: &mut T::Cursor| {
        let id = cursor.row_id()?;
        // SAFETY: SQLite wants the id there.
        unsafe { *row = id };
        Ok(())
    };
    // SAFETY: as `of_cursor`.
    unsafe { of_cursor::<T>(cursor, body) }
}

unsafe extern "C" fn update<T: StoredTable>(
    table: *mut raw::sqlite3_vtab,
    count: c_int,
    values: *mut *mut raw::sqlite3_value,
    row: *mut i64,
) -> c_int {
    use super::Value::{Integer, Null};
    let body = |table: &T| {
        // SAFETY: there are so many values.
        let values = unsafe { Argument::list(count, values) };
        let old = values.first().map_or(Null, |value| value.value());
        let new = values.get(1).map(|value| value.numeric());
        let columns = values.get(2..).unwrap_or_default();
        let change = match (old, new) {
            (Integer(old), None) => Change::Delete(old),
            (Null, Some(Null)) => Change::Insert(None, columns),
            (Null, Some(Integer(new))) => Change::Insert(Some(new), columns),
            (Integer(old), Some(Integer(new))) => Change::Update(old, new, columns),
            _ => return Err(Error::coded(raw::SQLITE_MISMATCH, "datatype mismatch")),
        };
        if let Some(id) = table.change(change)? {
            // SAFETY: SQLite wants the id there.
            unsafe { *row = id };
        }
        Ok(())
    };
    // SAFETY: as `of_table`.
    unsafe { of_table::<T>(table, body) }
}

unsafe extern "C" fn begin<T: StoredTable>(table: *mut raw::sqlite3_vtab) -> c_int {
    // SAFETY: as `of_table`.
    unsafe { of_table::<T>(table, T::begin) }
}

unsafe extern "C" fn sync<T: StoredTable>(table: *mut raw::sqlite3_vtab) -> c_int {
    // SAFETY: as `of_table`.
    unsafe { of_table::<T>(table, T::sync) }
}

unsafe extern "C" fn commit<T: StoredTable>(table: *mut raw::sqlite3_vtab) -> c_int {
    let body = |table: &T| {
        table.commit();
        Ok(())
    };
    // SAFETY: as `of_table`.
    unsafe { of_table::<T>(table, body) }
}

unsafe extern "C" fn rollback<T: StoredTable>(table: *mut raw::sqlite3_vtab) -> c_int {
    let body = |table: &T| {
        table.rollback();
        Ok(())
    };
    // SAFETY: as `of_table`.
    unsafe { of_table::<T>(table, body) }
}

unsafe extern "C" fn rename<T: StoredTable>(table: *mut raw::sqlite3_vtab, name: *const c_char) -> c_int {
    // SAFETY: SQLite gives a text for this call.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    // SAFETY: as `of_table`.
    unsafe { of_table::<T>(table, |table| table.rename(&name)) }
}

unsafe extern "C" fn savepoint<T: StoredTable>(table: *mut raw::sqlite3_vtab, _number: c_int) -> c_int {
    // SAFETY: as `of_table`.
    unsafe { of_table::<T>(table, T::savepoint) }
}

unsafe extern "C" fn release<T: StoredTable>(_table: *mut raw::sqlite3_vtab, _number: c_int) -> c_int {
    raw::SQLITE_OK
}

unsafe extern "C" fn rollback_to<T: StoredTable>(table: *mut raw::sqlite3_vtab, _number: c_int) -> c_int {
    let body = |table: &T| {
        table.rollback_to();
        Ok(())
    };
    // SAFETY: as `of_table`.
    unsafe { of_table::<T>(table, body) }
}

unsafe extern "C" fn shadow_name<T: StoredTable>(suffix: *const c_char) -> c_int {
    // SAFETY: SQLite gives a text for this call.
    let suffix = unsafe { CStr::from_ptr(suffix) }.to_string_lossy();
    c_int::from(T::is_shadow(&suffix))
}

unsafe extern "C" fn integrity<T: StoredTable>(
    table: *mut raw::sqlite3_vtab,
    _schema: *const c_char,
    _name: *const c_char,
    _flags: c_int,
    message: *mut *mut c_char,
) -> c_int {
    let body = |table: &T| {
        if let Some(wrong) = table.integrity()? {
            // SAFETY: SQLite frees the text.
            unsafe { *message = sqlite_text(&wrong) };
        }
        Ok(())
    };
    // SAFETY: as `of_table`.
    unsafe { of_table::<T>(table, body) }
}

/// The callbacks of a kind of table.
struct Module<T>(PhantomData<T>);

impl<T: Table> Module<T> {
    /// Rows are computed, from arguments: the table is there without being made.
    const COMPUTED: raw::sqlite3_module = raw::sqlite3_module {
        version: 0,
        create: None,
        connect: Some(connect::<T>),
        best_index: Some(best_index::<T>),
        disconnect: Some(disconnect::<T>),
        destroy: None,
        open: Some(open::<T>),
        close: Some(close::<T>),
        filter: Some(filter::<T>),
        next: Some(next::<T>),
        eof: Some(eof::<T>),
        column: Some(column::<T>),
        rowid: Some(rowid::<T>),
        update: None,
        begin: None,
        sync: None,
        commit: None,
        rollback: None,
        find_function: std::ptr::null(),
        rename: None,
        savepoint: None,
        release: None,
        rollback_to: None,
        shadow_name: None,
        integrity: None,
    };
}

impl<T: Table> Module<T> {
    /// Rows are computed, and the table is there without being made, or made with arguments of its own.
    const NAMED: raw::sqlite3_module =
        raw::sqlite3_module { create: Some(connect::<T>), destroy: Some(disconnect::<T>), ..Self::COMPUTED };
}

impl<T: StoredTable> Module<T> {
    /// Rows are stored.
    const STORED: raw::sqlite3_module = raw::sqlite3_module {
        version: 4,
        create: Some(create::<T>),
        destroy: Some(destroy::<T>),
        update: Some(update::<T>),
        begin: Some(begin::<T>),
        sync: Some(sync::<T>),
        commit: Some(commit::<T>),
        rollback: Some(rollback::<T>),
        rename: Some(rename::<T>),
        savepoint: Some(savepoint::<T>),
        release: Some(release::<T>),
        rollback_to: Some(rollback_to::<T>),
        shadow_name: Some(shadow_name::<T>),
        integrity: Some(integrity::<T>),
        ..Self::COMPUTED
    };
}

/// Lets go of what `register` gave.
pub(super) unsafe extern "C" fn drop_data<D>(data: *mut c_void) {
    // SAFETY: SQLite calls this once, at the end.
    drop(unsafe { Box::from_raw(data.cast::<D>()) });
}

impl Connection {
    /// Makes a kind of stored table known: `CREATE VIRTUAL TABLE ... USING name(...)`.
    pub fn register_stored<T: StoredTable>(self, name: &CStr, data: &Rc<T::Data>) -> Result<()> {
        self.register::<T>(name, data, const { &Module::<T>::STORED })
    }

    /// Makes a kind of computed table known: `SELECT ... FROM name(...)`.
    pub fn register_computed<T: Table>(self, name: &CStr, data: &Rc<T::Data>) -> Result<()> {
        self.register::<T>(name, data, const { &Module::<T>::COMPUTED })
    }

    /// Makes a kind of computed table known that may also be made: `CREATE VIRTUAL TABLE ... USING
    /// name(...)`.
    pub fn register_named<T: Table>(self, name: &CStr, data: &Rc<T::Data>) -> Result<()> {
        self.register::<T>(name, data, const { &Module::<T>::NAMED })
    }

    fn register<T: Table>(
        self,
        name: &CStr,
        data: &Rc<T::Data>,
        module: &'static raw::sqlite3_module,
    ) -> Result<()> {
        let data = Box::into_raw(Box::new(Rc::clone(data))).cast();
        let destroy = Some(drop_data::<Rc<T::Data>> as unsafe extern "C" fn(*mut c_void));
        // SAFETY: the module is there as long as the library. SQLite lets go of the data, also where this
        // fails.
        match unsafe { raw::create_module_v2(self.as_ptr(), name.as_ptr(), module, data, destroy) } {
            raw::SQLITE_OK => Ok(()),
            code => Err(self.last_error(code)),
        }
    }
}
