//! Foreign tables whose columns the Parquet files themselves say: `IMPORT FOREIGN SCHEMA`, and
//! `CREATE FOREIGN TABLE t () ...` without a column.
//!
//! The columns are those of the first file, or of all files with the option `union_by_name`, then the keys of
//! the folders that all files are in, or any with that option (`key=value`). A key whose values are all whole
//! numbers is a bigint, one of dates a date, any other text.

use std::ffi::{CStr, CString};
use std::path::Path;

use files::column::Column;
use files::parquet::{columns, keys_of, read_as};
use files::{Field, FieldKind, FilePath};
use pgrx::pg_guard;
use pgrx::pg_sys::{self, CreateForeignTableStmt, ImportForeignSchemaStmt, List, NodeTag, Oid, PlannedStmt};

use super::imported;
use crate::host::encoding;
use crate::host::error::{self, PgSqlErrorCode as Code};
use crate::options::foreign::{self, NamedFiles, Wrapper};
use crate::storage::parquet_file::{find, known, paths_of};

/// Bytes that a name has room for, and one more.
pub(super) const LONGEST: usize = pg_sys::NAMEDATALEN as usize;

/// A column that files say.
struct Described {
    field: Field,
    /// The column of the server's types, or why there is none.
    column: Result<Column, String>,
    /// The file that says so.
    path: FilePath,
}

impl Described {
    fn of(field: &Field, path: &FilePath) -> Self {
        let column = match (columns(std::slice::from_ref(field)), field.kind) {
            // The server would cut it, and no file has a column of that name.
            (Ok(_), _) if field.name.len() >= LONGEST => Err("its name is too long".into()),
            (Ok(mut all), _) => all.pop().ok_or_else(|| "it is none".into()),
            (Err(_), FieldKind::Other(what)) => Err(format!("it is {what}, which is not read")),
            (Err(problem), _) => Err(problem.to_string()),
        };
        Self { field: field.clone(), column, path: path.clone() }
    }

    /// Has the column be one that reads another file's as well: the wider of both.
    ///
    /// # Errors
    /// An ERROR where neither reads the other.
    fn unite(&mut self, other: Self) {
        let reads = |field: &Field, column: &Column| read_as(field, column).is_ok();
        match (&self.column, &other.column) {
            (Err(_), Err(_)) => {}
            (Ok(own), Ok(_)) if reads(&other.field, own) => {}
            (Ok(_), Ok(wider)) if reads(&self.field, wider) => *self = other,
            _ => {
                let named = |of: &Self| match &of.column {
                    Ok(column) => format!("{} in \"{}\"", column.declared, of.path.display()),
                    Err(_) => format!("not read in \"{}\"", of.path.display()),
                };
                error::raise(
                    Code::ERRCODE_DATATYPE_MISMATCH,
                    format!("column \"{}\" has different types in the files of the table", self.field.name),
                    &format!("It is {}, and {}.", named(self), named(&other)),
                    "Name the columns of the table without it, or name fewer files.",
                )
            }
        }
    }
}

/// The columns of a table over these files, as a statement names them: those of the first file, or of all.
///
/// # Errors
/// ERRORs where a file cannot be read, or values of a column are not.
fn column_list(paths: &[FilePath], unites_by_name: bool) -> String {
    let describing = if unites_by_name { paths } else { paths.get(..1).unwrap_or(paths) };
    let mut all: Vec<Described> = Vec::new();
    for path in describing {
        let before = all.len();
        for field in known(path).footer.fields() {
            let described = Described::of(field, path);
            match all.iter_mut().take(before).find(|known| known.field.name == field.name) {
                Some(known) => known.unite(described),
                None => all.push(described),
            }
        }
    }
    let mut list = Vec::new();
    for Described { field, column, .. } in &all {
        match column {
            Ok(column) => list.push(format!("{} {}", quoted(&column.name), column.declared)),
            Err(why) => pgrx::notice!("column \"{}\" is left out: {why}", field.name),
        }
    }
    let mut keys: Vec<_> = Vec::new();
    for (key, _) in describing.iter().flat_map(|path| keys_of(path.as_path())) {
        if !keys.contains(&key) && !all.iter().any(|described| described.field.name == key) {
            keys.push(key);
        }
    }
    for key in keys {
        let values: Vec<_> = paths.iter().filter_map(|path| value_of(path.as_path(), &key)).collect();
        if unites_by_name || values.len() == paths.len() {
            list.push(format!("{} {}", quoted(&key), type_of(&values)));
        }
    }
    list.join(", ")
}

/// What the folders of a file say of a key. None: nothing.
fn value_of(path: &Path, key: &str) -> Option<Option<String>> {
    keys_of(path).into_iter().rev().find(|(own, _)| own == key).map(|(_, value)| value)
}

/// The type that holds these values.
fn type_of(values: &[Option<String>]) -> &'static str {
    let is_number = |value: &str| value.parse::<i64>().is_ok_and(|number| number.to_string() == value);
    let is_date = |value: &str| {
        let fits = |(at, byte): (usize, u8)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        };
        value.len() == 10 && value.bytes().enumerate().all(fits)
    };
    let all = |is_such: &dyn Fn(&str) -> bool| values.iter().flatten().all(|value| is_such(value));
    match () {
        () if values.iter().all(Option::is_none) => "text",
        () if all(&is_number) => "bigint",
        () if all(&is_date) => "date",
        () => "text",
    }
}

/// A name as a statement has it. The server looks at single bytes for that, so UTF-8 will do in any database.
pub(super) fn quoted(name: &str) -> String {
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: a terminated string; the result is copied.
    unsafe { CStr::from_ptr(pg_sys::quote_identifier(name.as_ptr())) }.to_string_lossy().into_owned()
}

/// As `quoted`, of a text.
fn quoted_literal(text: &str) -> String {
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: a terminated string; the result is copied.
    unsafe { CStr::from_ptr(pg_sys::quote_literal_cstr(text.as_ptr())) }.to_string_lossy().into_owned()
}

/// `ImportForeignSchema`: a table of each Parquet file of a folder, and of each folder in it that has some
/// below.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn import(
    statement: *mut ImportForeignSchemaStmt,
    _server: Oid,
) -> *mut List {
    // SAFETY: the server's own statement.
    unsafe { statements(statement, foreign::folder_to_read, tables_in, |files| column_list(files, false)) }
}

/// A table that a folder has: its name, its file or folder, and what its columns are made of.
pub(super) type Found<T> = (String, FilePath, T);

/// The statements that make the tables of a folder, if the user may name its files. `tables` finds them, and
/// `columns` makes their columns.
///
/// # Safety
/// The server's statement.
pub(super) unsafe fn statements<T: Ord>(
    statement: *mut ImportForeignSchemaStmt,
    folder_of: fn(&CStr) -> FilePath,
    tables: fn(Vec<FilePath>) -> Vec<Found<T>>,
    columns: fn(&T) -> String,
) -> *mut List {
    // SAFETY: the caller's promise; strings that the server gets are its memory's.
    unsafe {
        let folder = folder_of(CStr::from_ptr((*statement).remote_schema));
        let server = encoding::to_utf8(CStr::from_ptr((*statement).server_name)).into_owned();
        let mut found = tables(paths_in(&folder));
        found.sort();
        // A file and a folder may have one name, and so may files with other endings.
        found.dedup_by(|(later, path, _), (name, ..)| {
            let same = later == name;
            if same {
                pgrx::notice!("\"{}\" is left out: another file or folder has its name", path.display());
            }
            same
        });
        let mut commands: *mut List = std::ptr::null_mut();
        for (table, path, of) in &found {
            if !pg_sys::IsImportableForeignTable(encoding::from_utf8(table).as_ptr(), statement) {
                continue;
            }
            let command = format!(
                "CREATE FOREIGN TABLE {} ({}) SERVER {} OPTIONS (filename {})",
                quoted(table),
                columns(of),
                quoted(&server),
                quoted_literal(&path.as_path().to_string_lossy())
            );
            let command = encoding::from_utf8(&command);
            commands = pg_sys::lappend(commands, pg_sys::pstrdup(command.as_ptr()).cast());
        }
        commands
    }
}

/// What is in a folder.
fn paths_in(folder: &FilePath) -> Vec<FilePath> {
    let entries = folder.entries().unwrap_or_else(|problem| {
        error::raise(
            Code::ERRCODE_FDW_SCHEMA_NOT_FOUND,
            format!("cannot read folder \"{}\"", folder.display()),
            &format!("{problem}."),
            "IMPORT FOREIGN SCHEMA takes a folder of the server, in double quotes.",
        )
    });
    entries.into_iter().map(|(name, _)| folder.join(name)).collect()
}

/// The tables that a folder has: the name of each, its file or folder, and its files. They are files that end
/// in `.parquet`, and folders with such.
fn tables_in(paths: Vec<FilePath>) -> Vec<Found<Vec<FilePath>>> {
    let mut found = Vec::new();
    for path in paths {
        pgrx::check_for_interrupts!();
        let is_folder = path.is_dir();
        let named = path.as_path();
        let name = if is_folder { named.file_name() } else { named.file_stem() };
        let Some(name) = name.and_then(|name| name.to_str()) else { continue };
        let files = match is_folder {
            // Folders of keys are parts of a table.
            true if name.starts_with(['.', '_']) || name.contains('=') => continue,
            true => find(&path).unwrap_or_default(),
            false if named.extension().is_some_and(|ending| ending == "parquet") && path.is_file() => {
                vec![path.clone()]
            }
            false => continue,
        };
        if !files.is_empty() {
            found.push((name.to_owned(), path, files));
        }
    }
    found
}

/// `CREATE FOREIGN TABLE` without a column: the statement with those of its files. Null: nothing to change.
///
/// # Safety
/// A statement as the server hands it to a hook.
pub(super) unsafe fn with_columns(statement: *mut PlannedStmt) -> *mut PlannedStmt {
    // SAFETY: the server's own statement, which is copied before it is changed; casts follow the tags.
    unsafe {
        let create = (*statement).utilityStmt.cast::<CreateForeignTableStmt>();
        let base = &(*create).base;
        if !base.tableElts.is_null() || !base.inhRelations.is_null() || !base.partbound.is_null() {
            return std::ptr::null_mut();
        }
        let no_lock = pg_sys::NoLock as i32;
        let exists = || {
            let found = pg_sys::RangeVarGetRelidExtended(
                base.relation,
                no_lock,
                pg_sys::RVROption::RVR_MISSING_OK,
                None,
                std::ptr::null_mut(),
            );
            found != pg_sys::InvalidOid
        };
        if base.if_not_exists && exists() {
            return std::ptr::null_mut();
        }
        let list = match foreign::files_named_by(create) {
            None => return std::ptr::null_mut(),
            Some(NamedFiles { wrapper: Wrapper::Parquet, files, unites_by_name }) => {
                let paths: Vec<_> = files.iter().flat_map(paths_of).collect();
                column_list(&paths, unites_by_name)
            }
            // A file that the table is to write has no columns yet.
            Some(NamedFiles { files, .. }) => {
                match files.first().filter(|name| name.exists().unwrap_or(true)) {
                    None => return std::ptr::null_mut(),
                    Some(name) => imported::column_list(name),
                }
            }
        };
        let text = format!("CREATE FOREIGN TABLE t ({list}) SERVER s");
        let text = encoding::from_utf8(&text);
        let parsed = pg_sys::raw_parser(text.as_ptr(), pg_sys::RawParseMode::RAW_PARSE_DEFAULT);
        let parsed = pg_sys::list_nth(parsed, 0).cast::<pg_sys::RawStmt>();
        let described = (*parsed).stmt.cast::<CreateForeignTableStmt>();
        debug_assert!((*described).base.type_ == NodeTag::T_CreateForeignTableStmt);
        let copy = pg_sys::copyObjectImpl(statement.cast()).cast::<PlannedStmt>();
        let own = (*copy).utilityStmt.cast::<CreateForeignTableStmt>();
        (*own).base.tableElts = (*described).base.tableElts;
        copy
    }
}
