//! Values as SQLite knows them, and how they go to and fro.

use std::ffi::c_int;
use std::marker::PhantomData;

use super::raw;
use super::{Error, Result};

/// One value in one of SQLite's five storage classes. Text is bytes: SQLite keeps what it is given, which may
/// hold NULs and need not be UTF-8.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// A 64-bit integer.
    Integer(i64),
    /// A double float. SQLite knows no NaN.
    Real(f64),
    /// Text.
    Text(&'a [u8]),
    /// A blob.
    Blob(&'a [u8]),
}

/// A value of SQLite's, as long as SQLite promises that it stays.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Argument<'a> {
    value: *mut raw::sqlite3_value,
    _life: PhantomData<&'a ()>,
}

impl<'a> Argument<'a> {
    /// # Safety
    /// The value is a protected one and stays as long as `'a`.
    pub(super) const unsafe fn new(value: *mut raw::sqlite3_value) -> Self {
        Self { value, _life: PhantomData }
    }

    /// # Safety
    /// As `new`, for all of `count` values. The array stays as long, too.
    pub(super) unsafe fn list(count: c_int, values: *mut *mut raw::sqlite3_value) -> &'a [Self] {
        match usize::try_from(count) {
            // SAFETY: there are so many, by the caller's promise. An argument is nothing but such a pointer.
            Ok(count) if count > 0 && !values.is_null() => unsafe {
                std::slice::from_raw_parts(values.cast(), count)
            },
            _ => &[],
        }
    }

    pub(super) const fn as_ptr(self) -> *mut raw::sqlite3_value {
        self.value
    }

    /// The value.
    pub fn value(self) -> Value<'a> {
        // SAFETY: the value stays as long as `'a`, and so do bytes in it that nobody converts. `value_text`
        // of a text changes at most its encoding, before its bytes are asked for.
        unsafe {
            match raw::value_type(self.value) {
                raw::SQLITE_INTEGER => Value::Integer(raw::value_int64(self.value)),
                raw::SQLITE_FLOAT => Value::Real(raw::value_double(self.value)),
                raw::SQLITE_TEXT => Value::Text(self.text()),
                raw::SQLITE_BLOB => {
                    let start = raw::value_blob(self.value).cast();
                    Value::Blob(bytes(start, raw::value_bytes(self.value)))
                }
                _ => Value::Null,
            }
        }
    }

    /// The class of the value.
    #[inline]
    pub fn class(self) -> Class {
        // SAFETY: as `value`.
        match unsafe { raw::value_type(self.value) } {
            raw::SQLITE_INTEGER => Class::Integer,
            raw::SQLITE_FLOAT => Class::Real,
            raw::SQLITE_TEXT => Class::Text,
            raw::SQLITE_BLOB => Class::Blob,
            _ => Class::Null,
        }
    }

    /// An integer's value.
    #[inline]
    pub fn integer(self) -> i64 {
        // SAFETY: as `value`.
        unsafe { raw::value_int64(self.value) }
    }

    /// A real's value.
    #[inline]
    pub fn real(self) -> f64 {
        // SAFETY: as `value`.
        unsafe { raw::value_double(self.value) }
    }

    /// The value, after text that looks like a number has become one, as SQLite does for a column of numeric
    /// affinity.
    pub fn numeric(self) -> Value<'a> {
        match self.value() {
            Value::Text(_) => {
                // SAFETY: as `value`.
                unsafe { raw::value_numeric_type(self.value) };
                self.value()
            }
            other => other,
        }
    }

    /// The value as text, in SQLite's own words for numbers.
    pub fn text(self) -> &'a [u8] {
        // SAFETY: as `value`.
        unsafe {
            let start = raw::value_text(self.value);
            bytes(start, raw::value_bytes(self.value))
        }
    }

    /// Whether the query gives it as a parameter.
    pub fn is_parameter(self) -> bool {
        // SAFETY: as `value`.
        raw::is_since(3_028_000) && unsafe { raw::value_frombind(self.value) != 0 }
    }

    /// The values of a list, where a constraint said that it wants the whole list of IN.
    pub fn for_each_in(self, mut each: impl FnMut(Argument<'_>)) -> Result<()> {
        let mut value = std::ptr::null_mut();
        // SAFETY: SQLite says where this is no list. Each value stays until the next one is asked for.
        unsafe {
            let mut code = raw::vtab_in_first(self.value, &raw mut value);
            while code == raw::SQLITE_OK && !value.is_null() {
                each(Argument::new(value));
                code = raw::vtab_in_next(self.value, &raw mut value);
            }
            match code {
                raw::SQLITE_OK | raw::SQLITE_DONE => Ok(()),
                code => Err(Error::coded(code, "the list of IN cannot be read")),
            }
        }
    }
}

/// The class of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// NULL.
    Null,
    /// An integer.
    Integer,
    /// A real.
    Real,
    /// Text.
    Text,
    /// A blob.
    Blob,
}

/// The bytes that begin at a pointer, which SQLite gives as null if there are none.
unsafe fn bytes<'a>(start: *const u8, length: c_int) -> &'a [u8] {
    match usize::try_from(length) {
        Ok(length) if length > 0 && !start.is_null() => {
            // SAFETY: SQLite says that so many bytes are there.
            unsafe { std::slice::from_raw_parts(start, length) }
        }
        _ => &[],
    }
}

/// Where the result of a function or of a column goes.
pub struct Context<'a> {
    context: *mut raw::sqlite3_context,
    _life: PhantomData<&'a mut ()>,
}

impl Context<'_> {
    /// # Safety
    /// The context is SQLite's, for the call that is running.
    pub(super) const unsafe fn new(context: *mut raw::sqlite3_context) -> Self {
        Self { context, _life: PhantomData }
    }

    /// The connection that calls.
    pub fn connection(&self) -> super::Connection {
        // SAFETY: the context is valid.
        unsafe { super::Connection::new(raw::context_db_handle(self.context)) }
    }

    /// Says what the result is. SQLite copies bytes.
    pub fn set(&mut self, value: Value<'_>) {
        let copy = raw::SQLITE_TRANSIENT;
        // SAFETY: the context is valid, and bytes are copied before these return.
        unsafe {
            match value {
                Value::Null => raw::result_null(self.context),
                Value::Integer(value) => raw::result_int64(self.context, value),
                Value::Real(value) => raw::result_double(self.context, value),
                Value::Text(text) => {
                    let (start, length) = (text.as_ptr().cast(), text.len() as u64);
                    raw::result_text64(self.context, start, length, copy, raw::SQLITE_UTF8);
                }
                Value::Blob(blob) => {
                    raw::result_blob64(self.context, blob.as_ptr().cast(), blob.len() as u64, copy);
                }
            }
        }
    }

    /// Ends the statement with an error.
    pub fn fail(&mut self, error: &Error) {
        let length = c_int::try_from(error.message.len()).unwrap_or(c_int::MAX);
        // SAFETY: as `set`.
        unsafe {
            if !error.message.is_empty() {
                raw::result_error(self.context, error.message.as_ptr().cast(), length);
            }
            raw::result_error_code(self.context, error.code);
        }
    }
}
