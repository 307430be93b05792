//! Text of the server in UTF-8, which files have, and back: a database may have another encoding.

use std::borrow::Cow;
use std::ffi::{CStr, CString};

use pgrx::pg_sys;

const UTF8: i32 = pg_sys::pg_enc::PG_UTF8 as i32;

/// Is the database's encoding UTF-8?
pub fn is_utf8() -> bool {
    // SAFETY: a plain call.
    unsafe { pg_sys::GetDatabaseEncoding() == UTF8 }
}

/// Text of the server as UTF-8. Bytes that are no text, as a database in SQL_ASCII may have, are replaced.
///
/// # Errors
/// An ERROR of the server's (22P05) for a character that UTF-8 has not.
pub fn to_utf8(text: &CStr) -> Cow<'_, str> {
    if is_utf8() {
        return text.to_string_lossy();
    }
    let length = i32::try_from(text.count_bytes()).unwrap_or(i32::MAX);
    // SAFETY: the server returns the text itself, or a copy, which ends with a zero byte as well.
    let utf8 = unsafe { CStr::from_ptr(pg_sys::pg_server_to_any(text.as_ptr(), length, UTF8)) };
    utf8.to_string_lossy().into_owned().into()
}

/// Text in UTF-8 as the server has it, up to a zero byte.
///
/// # Errors
/// An ERROR of the server's (22P05) for a character that the database's encoding has not.
pub fn from_utf8(text: &str) -> CString {
    let text: Vec<u8> = text.bytes().take_while(|byte| *byte != 0).collect();
    let length = i32::try_from(text.len()).unwrap_or(i32::MAX);
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: as `to_utf8`.
    unsafe { CStr::from_ptr(pg_sys::pg_any_to_server(text.as_ptr(), length, UTF8)).to_owned() }
}
