//! Which files a foreign table names, and where those are that have no name of their own.

use std::ffi::{CStr, CString};
use std::path::PathBuf;

use files::FilePath;

use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, Datum, Oid};

use super::super::catalog;
use super::super::report::{Refusal, or_raise, text};
use super::super::server_files::{self, Access};
use super::{Set, UNION_BY_NAME, Wrapper, wrapper_by};

/// Folder of files without a name of their own, below the data directory.
const FOLDER: &str = "cstore_fdw";

/// Where the rows of a foreign table are: the file that its options name, or one below the data directory,
/// which is where a server process works.
///
/// # Errors
/// An ERROR where the table's owner may not name it (any more).
pub fn file_of(table: Oid) -> FilePath {
    or_raise(file_or_refusal(table))
}

/// As `file_of`.
///
/// # Errors
/// Where the table's owner may not name the file.
pub fn file_or_refusal(table: Oid) -> Result<FilePath, Refusal> {
    match Set::of(table).get(c"filename") {
        Some(name) => named_by_owner(table, name, Access::ReadAndWrite),
        None => Ok(default_folder().join(table.to_u32().to_string()).into()),
    }
}

/// Where the rows of a foreign table over Parquet files are: files, folders or patterns.
///
/// # Errors
/// As `file_of`.
pub fn files_of(table: Oid) -> Vec<FilePath> {
    let names = parquet_names(table);
    names.iter().map(|name| or_raise(named_by_owner(table, name, Access::Read))).collect()
}

/// Whether columns that only some files of a foreign table have are NULL in the others.
pub fn unites_by_name(table: Oid) -> bool {
    Set::of(table).is_on(UNION_BY_NAME)
}

/// The name of a table's file, for messages.
pub fn name_of(table: Oid) -> String {
    match Set::of(table).get(c"filename") {
        Some(name) => text(name),
        None => default_folder().join(table.to_u32().to_string()).display().to_string(),
    }
}

/// The names of a table's Parquet files, folders or patterns, for messages.
pub fn names_of(table: Oid) -> Vec<String> {
    parquet_names(table).iter().map(|name| text(name)).collect()
}

fn parquet_names(table: Oid) -> Vec<CString> {
    // The validator has seen to it that it is there.
    Set::of(table).get(c"filename").map_or_else(Vec::new, |value| or_raise(names(value)))
}

/// A file that an option names, if the user may have the server read it, and perhaps write it.
///
/// # Errors
/// Where not, and where it is no absolute path.
pub(super) fn named_by_user(name: &CStr, access: Access) -> Result<FilePath, Refusal> {
    let denied = "permission denied to set the option \"filename\" of a foreign table";
    let path = server_files::named(server_files::current_role(), access, name, denied);
    let path = path.map_err(|refusal| match access {
        Access::Read => refusal,
        _ => refusal.hint("Leave the option out: the file is then kept below the data directory."),
    })?;
    match path.as_path().is_absolute() {
        true => Ok(path),
        false => Err(Refusal::new(
            Code::ERRCODE_INVALID_NAME,
            format!("\"{}\" is no absolute path", path.display()),
        )
        .hint("Begin the option \"filename\" with a slash.")),
    }
}

/// A file that a table's option names. Whoever uses the table has it read and written by the rights of the
/// table's owner.
fn named_by_owner(table: Oid, name: &CStr, access: Access) -> Result<FilePath, Refusal> {
    let (owner, table) = catalog::owner_and_name(table);
    let denied = format!("permission denied for file \"{}\" of foreign table \"{table}\"", text(name));
    server_files::named(owner, access, name, &denied).map_err(|refusal| {
        refusal.hint("What counts are the privileges of the table's owner: ALTER FOREIGN TABLE ... OWNER TO names another.")
    })
}

/// A folder of Parquet files that a statement names.
///
/// # Errors
/// An ERROR unless the user may have the server read it.
pub fn folder_to_read(folder: &CStr) -> FilePath {
    or_raise(named_by_user(folder, Access::Read))
}

/// A folder of column files that a statement names.
///
/// # Errors
/// An ERROR unless the user may name one in an option.
pub fn folder_to_write(folder: &CStr) -> FilePath {
    or_raise(named_by_user(folder, Access::ReadAndWrite))
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

/// The files that a statement names.
pub struct NamedFiles {
    pub wrapper: Wrapper,
    pub files: Vec<FilePath>,
    /// As `unites_by_name`.
    pub unites_by_name: bool,
}

/// The files that a statement names which makes a foreign table of ours, and its wrapper. None for any other,
/// and where it names none.
///
/// # Safety
/// A statement of the server's.
pub unsafe fn files_named_by(create: *const pg_sys::CreateForeignTableStmt) -> Option<NamedFiles> {
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
            Wrapper::ColumnFile => vec![or_raise(named_by_user(value, Access::ReadAndWrite))],
            Wrapper::Parquet => {
                let named = |name: &CString| or_raise(named_by_user(name, Access::Read));
                or_raise(names(value)).iter().map(named).collect()
            }
        };
        Some(NamedFiles { wrapper, files, unites_by_name: set.is_on(UNION_BY_NAME) })
    }
}
