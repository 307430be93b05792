//! Errors as SQLite tells them: a code and a text.

use std::ffi::c_int;

use super::raw;

/// Result with SQLite's kind of error.
pub type Result<T> = std::result::Result<T, Error>;

/// What SQLite's user gets to see.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// An (extended) result code.
    pub code: c_int,
    /// What happened. Empty where SQLite's own text for the code is best.
    pub message: String,
}

impl Error {
    /// A plain error with this text.
    pub fn new(message: impl Into<String>) -> Self {
        Self { code: raw::SQLITE_ERROR, message: message.into() }
    }

    /// An error with a code of its own.
    pub fn coded(code: c_int, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Stored bytes are not what was written.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::coded(raw::SQLITE_CORRUPT_VTAB, message)
    }

    /// The same error for the engine, which gives it back.
    pub fn into_data(self) -> vector::Error {
        match self.code {
            raw::SQLITE_CORRUPT_VTAB => vector::Error::corrupt(self.message),
            code => vector::Error::FromHost { code, message: self.message },
        }
    }
}

impl From<vector::Error> for Error {
    fn from(error: vector::Error) -> Self {
        let code = match &error {
            vector::Error::FromHost { code, .. } => *code,
            vector::Error::Corrupt { .. } => raw::SQLITE_CORRUPT_VTAB,
            vector::Error::OutOfMemory { .. } => raw::SQLITE_NOMEM,
            _ => raw::SQLITE_ERROR,
        };
        Self::coded(code, error.to_string())
    }
}

impl From<files::Error> for Error {
    fn from(error: files::Error) -> Self {
        let code = match &error {
            // With SQLITE_IOERR the transaction would be rolled back.
            files::Error::Io(_) => raw::SQLITE_CANTOPEN,
            _ => raw::SQLITE_ERROR,
        };
        Self::coded(code, error.to_string())
    }
}

impl From<stripe::scan::Located> for Error {
    fn from(located: stripe::scan::Located) -> Self {
        located.error.into()
    }
}
