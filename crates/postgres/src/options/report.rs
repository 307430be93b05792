//! Errors of the options: collected as plain values, raised in one place.

use pgrx::pg_sys::errcodes::PgSqlErrorCode;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, function_name};
use std::ffi::CStr;

/// Why an option cannot be set, with what the user should know.
pub struct Refusal {
    code: PgSqlErrorCode,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
}

impl Refusal {
    /// A refusal without detail and hint.
    pub fn new(code: PgSqlErrorCode, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), detail: None, hint: None }
    }

    /// Adds the DETAIL line.
    pub fn detail(mut self, text: impl Into<String>) -> Refusal {
        self.detail = Some(text.into());
        self
    }

    /// Adds the HINT line.
    pub fn hint(mut self, text: impl Into<String>) -> Refusal {
        self.hint = Some(text.into());
        self
    }

    /// Sends it to the client at `level`. Does not return if that is ERROR.
    pub fn send(self, level: PgLogLevel) {
        let mut report = ErrorReport::new(self.code, self.message, function_name!());
        if let Some(detail) = self.detail {
            report = report.set_detail(detail);
        }
        if let Some(hint) = self.hint {
            report = report.set_hint(hint);
        }
        report.report(level);
    }

    /// Raises it as an ERROR.
    pub fn raise(self) -> ! {
        self.send(PgLogLevel::ERROR);
        unreachable!("an ERROR does not return")
    }
}

/// Text of the server for a message.
pub fn text(bytes: &CStr) -> String {
    bytes.to_string_lossy().into_owned()
}

/// Takes the value or raises the refusal.
pub fn or_raise<T>(result: Result<T, Refusal>) -> T {
    match result {
        Ok(value) => value,
        Err(refusal) => refusal.raise(),
    }
}
