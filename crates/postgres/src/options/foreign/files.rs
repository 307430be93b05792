//! Which files a foreign table names, and where those are that have no name of their own.

use std::ffi::{CStr, CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, Datum, Oid};

use super::super::catalog;
use super::super::report::{Refusal, or_raise};
use super::{OPTIONS, PARQUET_OPTIONS, Set, Wrapper, check, wrapper_by};

/// Folder of files without a name of their own, below the data directory.
const FOLDER: &str = "cstore_fdw";

/// Where the rows of a foreign table are: the file that its options name, or one below the data directory,
/// which is where a server process works.
pub fn file_of(table: Oid) -> PathBuf {
    match Set::of(table).get(c"filename") {
        Some(name) => path(name),
        None => default_folder().join(table.to_u32().to_string()),
    }
}

/// Where the rows of a foreign table over Parquet files are: files, folders or patterns.
pub fn files_of(table: Oid) -> Vec<PathBuf> {
    let set = Set::of(table);
    // The validator has seen to it that it is there.
    let names = set.get(c"filename").map_or_else(Vec::new, |value| or_raise(names(value)));
    names.iter().map(|name| path(name)).collect()
}

/// A name of a file.
pub fn path(name: &CStr) -> PathBuf {
    PathBuf::from(OsString::from_vec(name.to_bytes().to_vec()))
}

/// The names in an option: one, or those of an array, as `'{/a,/b}'`.
pub(super) fn names(value: &CStr) -> Result<Vec<CString>, Refusal> {
    if !value.to_bytes().starts_with(b"{") {
        return Ok(vec![value.to_owned()]);
    }
    // SAFETY: the input function raises an ERROR where the text is no array.
    let names = unsafe { text_array(value) };
    match names.is_empty() {
        true => {
            Err(Refusal::new(Code::ERRCODE_INVALID_PARAMETER_VALUE, "the option \"filename\" names no file"))
        }
        false => Ok(names),
    }
}

/// The texts of an array, as its input function reads them.
///
/// # Safety
/// The server raises an ERROR where there are none.
unsafe fn text_array(value: &CStr) -> Vec<CString> {
    // SAFETY: the caller's promise.
    unsafe {
        let (input, text) = (Oid::from(pg_sys::F_ARRAY_IN), value.as_ptr().cast_mut());
        let array = pg_sys::OidInputFunctionCall(input, text, pg_sys::TEXTOID, -1);
        let string =
            |element: Datum| CStr::from_ptr(pg_sys::text_to_cstring(element.cast_mut_ptr())).to_owned();
        catalog::elements_of(array).into_iter().map(string).collect()
    }
}

/// Where files of this database are that have no name of their own.
pub fn default_folder() -> PathBuf {
    // SAFETY: a plain global.
    folder_of(unsafe { pg_sys::MyDatabaseId })
}

/// Where such files of a database are.
pub fn folder_of(database: Oid) -> PathBuf {
    PathBuf::from(FOLDER).join(database.to_u32().to_string())
}

/// The files that a statement names which makes a foreign table of ours, and its wrapper. None for any other,
/// and where it names none.
///
/// # Safety
/// A statement of the server's.
pub unsafe fn files_named_by(
    create: *const pg_sys::CreateForeignTableStmt,
) -> Option<(Wrapper, Vec<PathBuf>)> {
    // SAFETY: the caller's promise; catalog look-ups.
    unsafe {
        let server = pg_sys::GetForeignServerByName((*create).servername, true);
        let wrapper = server.as_ref().map(|server| pg_sys::GetForeignDataWrapper(server.fdwid));
        let handler = wrapper.map_or(Oid::INVALID, |wrapper| (*wrapper).fdwhandler);
        if handler == Oid::INVALID {
            return None;
        }
        let wrapper = wrapper_by(pg_sys::GetFdwRoutine(handler))?;
        let set = Set::from_list((*create).options);
        let value = set.get(c"filename")?;
        let files = match wrapper {
            Wrapper::ColumnFile => {
                or_raise(check(&OPTIONS, c"filename", value));
                vec![path(value)]
            }
            Wrapper::Parquet => {
                or_raise(check(&PARQUET_OPTIONS, c"filename", value));
                or_raise(names(value)).iter().map(|name| path(name)).collect()
            }
        };
        Some((wrapper, files))
    }
}
