//! Options of foreign tables over column files and Parquet files: their names, checks and defaults.
//!
//! The server keeps them (`pg_foreign_table`) and asks the wrapper's validator for every statement that sets
//! some. Names, ranges and defaults are those of cstore_fdw 1.7; `compression_level` and `orderby` are ours.
//!
//! - `wrapper`: which foreign tables are ours
//! - `files`: which files they name

mod files;
mod wrapper;

use std::ffi::{CStr, CString};

use pgrx::pg_guard;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, Oid};

pub use files::{
    NamedFiles, default_folder, file_of, file_or_refusal, files_named_by, files_of, folder_of,
    folder_to_read, folder_to_write, name_of, names_of, unites_by_name,
};
pub use wrapper::{Wrapper, is_column_file, register, wrapper_by, wrapper_of};

use super::definitions::{self, CODECS, Kind, LEVEL_DEFAULT, LEVEL_MAX, LEVEL_MIN};
use super::report::{Refusal, or_raise, text};
use super::server_files::Access;
use super::{Compression, TableOptions, orderby, usable_keys};
use crate::host::fmgr::argument;
use crate::host::tree::{List, Typed};
use files::named_by_user;
use stripe::Layout;

/// What an option takes.
#[derive(Clone, Copy)]
enum Takes {
    /// The name of a file that is read and written.
    File,
    /// Names of files that are read: of one, or an array of them.
    FilesToRead,
    /// What an option of our tables may take.
    As(Kind),
}

/// Options of a foreign table.
static OPTIONS: [(&CStr, Takes); 6] = [
    (c"filename", Takes::File),
    (c"compression", Takes::As(Kind::Choice(&CODECS))),
    (c"compression_level", Takes::As(Kind::Integer { min: LEVEL_MIN, max: LEVEL_MAX })),
    (
        c"stripe_row_count",
        Takes::As(Kind::Integer { min: definitions::ROWS_MIN, max: definitions::STRIPE_ROWS_MAX }),
    ),
    (c"block_row_count", Takes::As(Kind::Integer { min: definitions::ROWS_MIN, max: 100_000 })),
    (c"orderby", Takes::As(Kind::Columns)),
];
/// Options of a foreign table over a Parquet file.
static PARQUET_OPTIONS: [(&CStr, Takes); 2] =
    [(c"filename", Takes::FilesToRead), (UNION_BY_NAME, Takes::As(Kind::Boolean))];
/// Whether columns that only some files have are NULL in the others.
const UNION_BY_NAME: &CStr = c"union_by_name";

/// The options that are set on a foreign table.
struct Set(Vec<(CString, CString)>);

impl Set {
    fn of(table: Oid) -> Self {
        // SAFETY: a catalog look-up; the server raises an ERROR where there is no foreign table.
        unsafe { Self::from_list((*pg_sys::GetForeignTable(table)).options) }
    }

    unsafe fn from_list(list: *mut pg_sys::List) -> Self {
        // SAFETY: a list of options.
        let list = unsafe { List::<Typed<'_, pg_sys::DefElem>>::new(list) };
        let pair = |element: Typed<'_, pg_sys::DefElem>| {
            // SAFETY: options of wrappers have text values.
            let value = unsafe { CStr::from_ptr(pg_sys::defGetString(element.as_ptr())) };
            Some((element.name()?.to_owned(), value.to_owned()))
        };
        Self(list.iter().filter_map(pair).collect())
    }

    fn get(&self, name: &CStr) -> Option<&CStr> {
        self.0.iter().find(|(own, _)| own.as_c_str() == name).map(|(_, value)| value.as_c_str())
    }

    fn is_on(&self, name: &CStr) -> bool {
        self.get(name).and_then(definitions::boolean).unwrap_or(false)
    }

    fn integer(&self, name: &CStr, default: i32) -> i32 {
        self.get(name).and_then(definitions::integer).unwrap_or(default)
    }
}

/// The options in force of a foreign table over a column file.
pub fn table_options(table: Oid) -> TableOptions {
    let set = Set::of(table);
    let rows = |name, default| u32::try_from(set.integer(name, default)).unwrap_or(1);
    let stripe_row_limit = rows(c"stripe_row_count", definitions::STRIPE_ROWS_DEFAULT);
    TableOptions {
        layout: Layout::Columns,
        compression: set
            .get(c"compression")
            .and_then(|name| Compression::from_name(name.to_bytes()))
            .unwrap_or(Compression::None),
        compression_level: set.integer(c"compression_level", LEVEL_DEFAULT),
        stripe_row_limit,
        chunk_group_row_limit: rows(c"block_row_count", definitions::CHUNK_ROWS_DEFAULT)
            .min(stripe_row_limit),
        orderby: set.get(c"orderby").map_or_else(Vec::new, |value| usable_keys(table, value)),
        index_scan: false,
        packing: false,
        packing_rows: 1,
    }
}

crate::sql_function!(pg_finfo_colonnade_cstore_fdw_validator);
crate::sql_function!(pg_finfo_colonnade_parquet_fdw_validator);

/// `engine.cstore_fdw_validator(options text[], catalog oid)`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_cstore_fdw_validator(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame.
    unsafe { check_all(call, &OPTIONS) };
    Datum::from(0usize)
}

/// `engine.parquet_fdw_validator(options text[], catalog oid)`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colonnade_parquet_fdw_validator(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame.
    unsafe {
        let (catalog, set) = check_all(call, &PARQUET_OPTIONS);
        if catalog == pg_sys::ForeignTableRelationId && set.get(c"filename").is_none() {
            let refusal = Refusal::new(
                Code::ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED,
                "a foreign table over a Parquet file needs the option \"filename\"",
            );
            or_raise(Err(refusal.hint("OPTIONS (filename '/path/to/file.parquet')")))
        }
    }
    Datum::from(0usize)
}

/// What a validator does: refuses options that are not of a foreign table's, or not as they have to be.
/// Returns the catalog of the object that has them, and the options.
///
/// # Safety
/// The call frame of a validator: its first argument is an array of texts, as the catalogs have it.
unsafe fn check_all(call: FunctionCallInfo, of_tables: &'static [(&'static CStr, Takes)]) -> (Oid, Set) {
    // SAFETY: the caller's promise.
    unsafe {
        let catalog = argument(call, 1).map_or(Oid::INVALID, |oid| Oid::from(oid.value() as u32));
        let known = if catalog == pg_sys::ForeignTableRelationId { of_tables } else { &[] };
        let set = argument(call, 0)
            .map_or(Set(Vec::new()), |options| Set::from_list(pg_sys::untransformRelOptions(options)));
        for (name, value) in &set.0 {
            or_raise(check(known, name, value));
        }
        (catalog, set)
    }
}

/// Refuses an option that is not among those that are known, or a value that it does not take.
fn check(known: &[(&CStr, Takes)], name: &CStr, value: &CStr) -> Result<(), Refusal> {
    let Some((_, takes)) = known.iter().find(|(own, _)| *own == name) else {
        let names: Vec<_> = known.iter().map(|(own, _)| text(own)).collect();
        let refusal =
            Refusal::new(Code::ERRCODE_FDW_INVALID_OPTION_NAME, format!("invalid option \"{}\"", text(name)));
        return Err(match names.is_empty() {
            true => refusal.hint("There are no valid options in this context."),
            false => refusal.hint(format!("Valid options in this context are: {}.", names.join(", "))),
        });
    };
    let is_taken = match *takes {
        Takes::File => return named_by_user(value, Access::ReadAndWrite).map(|_| ()),
        Takes::FilesToRead => {
            return files::names(value)?
                .iter()
                .try_for_each(|name| named_by_user(name, Access::Read).map(|_| ()));
        }
        Takes::As(Kind::Columns) => return orderby::parse(value).map(|_| ()),
        Takes::As(Kind::Integer { min, max }) => {
            definitions::integer(value).is_some_and(|number| (min..=max).contains(&number))
        }
        Takes::As(Kind::Choice(words)) => words.iter().any(|word| word.as_bytes() == value.to_bytes()),
        Takes::As(Kind::Boolean) => definitions::boolean(value).is_some(),
        Takes::As(Kind::Column) => true,
    };
    if is_taken {
        return Ok(());
    }
    let allowed = if let Takes::As(kind) = takes { kind.allowed() } else { String::new() };
    let message = format!("invalid value for option \"{}\": \"{}\"", text(name), text(value));
    Err(Refusal::new(Code::ERRCODE_INVALID_PARAMETER_VALUE, message).hint(format!("Valid: {allowed}.")))
}
