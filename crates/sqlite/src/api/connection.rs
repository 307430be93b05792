//! A connection and its statements.

use std::cell::OnceCell;
use std::ffi::{CStr, CString, c_int};
use std::marker::PhantomData;

use super::value::{Argument, Value};
use super::{Error, Result, raw};

/// The error of a text that has no statement.
const NOTHING: &str = "no statement";

/// A connection to a database, which outlives all that an extension does for it. SQLite's own mutex sees to
/// it that one thread at a time works with it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    db: *mut raw::sqlite3,
}

impl Connection {
    /// # Safety
    /// The connection stays open as long as the result is used.
    pub(super) const unsafe fn new(db: *mut raw::sqlite3) -> Self {
        Self { db }
    }

    pub(super) const fn as_ptr(self) -> *mut raw::sqlite3 {
        self.db
    }

    /// Compiles one statement, which is going to be used often.
    pub fn prepare(self, sql: &str) -> Result<Statement> {
        self.compile(sql).map(|(statement, _)| statement)
    }

    /// Compiles a text of the user's. An error for what has several statements.
    pub fn prepare_only(self, sql: &str) -> Result<Statement> {
        let (statement, length) = self.compile(sql)?;
        let rest = sql.get(length..).unwrap_or_default();
        match self.compile(rest) {
            Err(nothing) if nothing.message == NOTHING => Ok(statement),
            _ => Err(Error::new("one statement is expected")),
        }
    }

    /// Compiles the first statement of a text. How long that is.
    fn compile(self, sql: &str) -> Result<(Statement, usize)> {
        let length = c_int::try_from(sql.len()).map_err(|_| Error::new("a statement past 2 GiB"))?;
        let (mut statement, mut rest) = (std::ptr::null_mut(), std::ptr::null::<std::ffi::c_char>());
        let start = sql.as_ptr().cast();
        // SAFETY: the connection is open, and the text is as long as said.
        let code = unsafe {
            let flags = raw::SQLITE_PREPARE_PERSISTENT;
            raw::prepare_v3(self.db, start, length, flags, &raw mut statement, &raw mut rest)
        };
        match code {
            raw::SQLITE_OK if !statement.is_null() => {
                let end = if rest.is_null() { sql.len() } else { rest as usize - start as usize };
                Ok((Statement { statement, db: self }, end))
            }
            raw::SQLITE_OK => Err(Error::new(NOTHING)),
            _ => Err(self.last_error(code)),
        }
    }

    /// Runs a body whole or not at all, within a transaction or not. The body gives a statement that would
    /// write, as soon as there can be one; it is stepped only where it does nothing.
    pub fn whole<R>(self, body: impl FnOnce(&OnceCell<Statement>) -> Result<R>) -> Result<R> {
        let write = OnceCell::new();
        // SAFETY: the connection is open.
        let is_outermost = unsafe { raw::get_autocommit(self.db) } != 0;
        self.execute("SAVEPOINT colonnade")?;
        let result = body(&write).and_then(|result| self.execute("RELEASE colonnade").map(|()| result));
        if result.is_err() {
            let undone = match is_outermost {
                true => self.execute("ROLLBACK"),
                false => {
                    self.execute("ROLLBACK TO colonnade").and_then(|()| self.execute("RELEASE colonnade"))
                }
            };
            // As long as a connection is interrupted it runs no statement, and not these either. One that
            // would write has SQLite roll back all of the transaction.
            if undone.is_err_and(|error| error.code & 0xff == raw::SQLITE_INTERRUPT) {
                let _ = write.get().map(Statement::step);
            }
        }
        result
    }

    /// Runs one statement to its end.
    pub fn execute(self, sql: &str) -> Result<()> {
        let statement = self.prepare(sql)?;
        while statement.step()? {}
        Ok(())
    }

    /// The first column of the first row, as an integer. None if there is no row.
    pub fn query_integer(self, sql: &str) -> Result<Option<i64>> {
        let statement = self.prepare(sql)?;
        Ok(statement.step()?.then(|| statement.integer(0)))
    }

    /// Runs what may insert into tables of ours, and has `last_insert_rowid()` be as before.
    pub fn keeping_last_id<R>(self, body: impl FnOnce() -> R) -> R {
        // SAFETY: the connection is open.
        let before = unsafe { raw::last_insert_rowid(self.db) };
        let result = body();
        // SAFETY: the same.
        unsafe { raw::set_last_insert_rowid(self.db, before) };
        result
    }

    /// What a call that returned `code` has to say.
    pub fn last_error(self, code: c_int) -> Error {
        // SAFETY: the connection is open. The text is copied before anything else is called.
        unsafe {
            let extended = raw::extended_errcode(self.db);
            let text = CStr::from_ptr(raw::errmsg(self.db)).to_string_lossy().into_owned();
            Error::coded(if extended & 0xff == code & 0xff { extended } else { code }, text)
        }
    }

    /// What the statement that is running wants where a constraint fails.
    pub fn on_conflict(self) -> OnConflict {
        // SAFETY: asked within `update`, as SQLite wants it.
        match unsafe { raw::vtab_on_conflict(self.db) } {
            raw::SQLITE_IGNORE => OnConflict::Ignore,
            raw::SQLITE_REPLACE => OnConflict::Replace,
            _ => OnConflict::Fail,
        }
    }

    /// The collation of a column of an ordinary table.
    pub fn collation(self, schema: &str, table: &str, column: &str) -> Result<String> {
        let text = |name: &str| CString::new(name).map_err(|_| Error::new("a name with a NUL"));
        let (schema, table, column) = (text(schema)?, text(table)?, text(column)?);
        let mut collation = std::ptr::null();
        let nothing = std::ptr::null_mut();
        // SAFETY: the names end with a NUL. The text that comes back is copied at once.
        unsafe {
            let code = raw::table_column_metadata(
                self.db,
                schema.as_ptr(),
                table.as_ptr(),
                column.as_ptr(),
                std::ptr::null_mut(),
                &raw mut collation,
                nothing,
                nothing,
                nothing,
            );
            match code {
                raw::SQLITE_OK if !collation.is_null() => {
                    Ok(CStr::from_ptr(collation).to_string_lossy().into_owned())
                }
                raw::SQLITE_OK => Ok("BINARY".into()),
                code => Err(self.last_error(code)),
            }
        }
    }
}

/// What a statement wants where a row breaks a constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// The row is left out.
    Ignore,
    /// The rows in its way are removed.
    Replace,
    /// The statement fails. How much of it stays is SQLite's business (ABORT, FAIL, ROLLBACK).
    Fail,
}

/// Random bits that no other connection is going to draw.
pub fn random() -> i64 {
    let mut bytes = [0u8; 8];
    // SAFETY: there is room for eight bytes.
    unsafe { raw::randomness(8, bytes.as_mut_ptr().cast()) };
    i64::from_le_bytes(bytes)
}

/// A compiled statement.
pub struct Statement {
    statement: *mut raw::sqlite3_stmt,
    db: Connection,
}

impl Statement {
    /// Gives parameter `index`, from 1 on, a value. SQLite copies bytes.
    pub fn bind(&self, index: usize, value: Value<'_>) -> Result<()> {
        let index = parameter(index);
        let (statement, copy) = (self.statement, raw::SQLITE_TRANSIENT);
        // SAFETY: the statement is ours, and bytes are copied before these return.
        let code = unsafe {
            match value {
                Value::Null => raw::bind_null(statement, index),
                Value::Integer(value) => raw::bind_int64(statement, index, value),
                Value::Real(value) => raw::bind_double(statement, index, value),
                Value::Text(text) => {
                    let (start, length) = (text.as_ptr().cast(), text.len() as u64);
                    raw::bind_text64(statement, index, start, length, copy, raw::SQLITE_UTF8)
                }
                Value::Blob(blob) => {
                    // A null pointer would make it NULL.
                    let start = blob.as_ptr().cast();
                    raw::bind_blob64(statement, index, start, blob.len() as u64, copy)
                }
            }
        };
        self.checked(code)
    }

    /// How many columns its rows have. None for what gives no rows.
    pub fn column_count(&self) -> usize {
        // SAFETY: the statement is ours.
        usize::try_from(unsafe { raw::column_count(self.statement) }).unwrap_or(0)
    }

    /// The name of a column.
    pub fn column_name(&self, column: usize) -> String {
        // SAFETY: the statement is ours. The text is copied at once.
        unsafe { owned_text(raw::column_name(self.statement, place(column))) }
    }

    /// The greatest number of its parameters.
    pub fn parameter_count(&self) -> usize {
        // SAFETY: the statement is ours.
        usize::try_from(unsafe { raw::bind_parameter_count(self.statement) }).unwrap_or(0)
    }

    /// The name of parameter `index`, from 1 on, with its first sign. Empty for one without a name.
    pub fn parameter_name(&self, index: usize) -> String {
        // SAFETY: the statement is ours. The text is copied at once.
        unsafe { owned_text(raw::bind_parameter_name(self.statement, parameter(index))) }
    }

    /// Whether it changes nothing.
    pub fn is_readonly(&self) -> bool {
        // SAFETY: the statement is ours.
        unsafe { raw::stmt_readonly(self.statement) != 0 }
    }

    /// Gives parameter `index` a value that SQLite has.
    pub fn bind_argument(&self, index: usize, argument: Argument<'_>) -> Result<()> {
        // SAFETY: the statement is ours and the value valid. SQLite copies it.
        self.checked(unsafe { raw::bind_value(self.statement, parameter(index), argument.as_ptr()) })
    }

    /// Goes on to the next row. False at the end; the statement may then be bound and stepped anew.
    pub fn step(&self) -> Result<bool> {
        // SAFETY: the statement is ours.
        match unsafe { raw::step(self.statement) } {
            raw::SQLITE_ROW => Ok(true),
            raw::SQLITE_DONE => {
                self.reset();
                Ok(false)
            }
            code => {
                let error = self.db.last_error(code);
                self.reset();
                Err(error)
            }
        }
    }

    /// Runs it with these parameters, to its end.
    pub fn run(&self, parameters: &[Value<'_>]) -> Result<()> {
        for (at, &value) in parameters.iter().enumerate() {
            self.bind(at + 1, value)?;
        }
        while self.step()? {}
        Ok(())
    }

    /// Back to before the first row. Parameters keep their values.
    pub fn reset(&self) {
        // SAFETY: the statement is ours. The code that comes back is that of the last step, which was seen.
        unsafe { raw::reset(self.statement) };
    }

    /// A column of the row. It stays until the next step.
    pub fn argument(&self, column: usize) -> Row<'_> {
        // SAFETY: the statement is on a row. Such a value is not protected, but nobody else has this
        // statement, and the connection's mutex is held as long as SQLite runs our code.
        unsafe {
            Row {
                argument: Argument::new(raw::column_value(self.statement, place(column))),
                _row: PhantomData,
            }
        }
    }

    /// A column of the row.
    pub fn value(&self, column: usize) -> Value<'_> {
        self.argument(column).argument.value()
    }

    /// A column of the row, as an integer.
    pub fn integer(&self, column: usize) -> i64 {
        // SAFETY: as `argument`.
        unsafe { raw::column_int64(self.statement, place(column)) }
    }

    /// A column of the row, as text.
    pub fn text(&self, column: usize) -> String {
        String::from_utf8_lossy(self.argument(column).argument.text()).into_owned()
    }

    fn checked(&self, code: c_int) -> Result<()> {
        match code {
            raw::SQLITE_OK => Ok(()),
            code => Err(self.db.last_error(code)),
        }
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        // SAFETY: the statement is ours, and this is the last use.
        unsafe { raw::finalize(self.statement) };
    }
}

/// A value of a row that a statement stands on.
pub struct Row<'s> {
    /// The value.
    pub argument: Argument<'s>,
    _row: PhantomData<&'s Statement>,
}

/// A copy of a text of SQLite's. Empty where there is none.
unsafe fn owned_text(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: it ends with a NUL and stays for this call, by the caller's promise.
    unsafe { CStr::from_ptr(text).to_string_lossy().into_owned() }
}

fn parameter(index: usize) -> c_int {
    c_int::try_from(index).unwrap_or(0)
}

fn place(column: usize) -> c_int {
    c_int::try_from(column).unwrap_or(-1)
}
