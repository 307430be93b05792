//! Foreign tables over column files that are there already, and say which columns they have: `IMPORT FOREIGN
//! SCHEMA`, and `CREATE FOREIGN TABLE t () ...` without a column (`described`).
//!
//! A type in a file is text that somebody else wrote, and becomes part of a statement. So only names of types
//! that are read from such files are taken (`is_type`).

use std::io::Read;

use files::FilePath;
use files::column::MAGIC;
use pgrx::pg_guard;
use pgrx::pg_sys::{ImportForeignSchemaStmt, List, Oid};

use super::described::{Found, LONGEST, quoted, statements};
use crate::options::foreign;
use crate::storage::column_file::fail_at;
use crate::storage::column_file::others::OthersFile;

/// Names of types, without what is in parentheses.
const TYPES: [&str; 18] = [
    "bigint",
    "boolean",
    "bytea",
    "character",
    "character varying",
    "date",
    "double precision",
    "engine.uint8",
    "integer",
    "json",
    "numeric",
    "real",
    "smallint",
    "text",
    "time without time zone",
    "timestamp with time zone",
    "timestamp without time zone",
    "uuid",
];

/// Whether a text is the name of such a type.
fn is_type(declared: &str) -> bool {
    let (name, modifier) = match declared.split_once('(') {
        None => (declared.to_owned(), ""),
        Some((before, rest)) => match rest.split_once(')') {
            None => return false,
            Some((modifier, after)) => (format!("{before}{after}"), modifier),
        },
    };
    let is_number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b',' | b'-');
    TYPES.contains(&name.as_str()) && modifier.bytes().all(is_number)
}

/// The columns of a table over this file, as a statement names them.
///
/// # Errors
/// ERRORs where the file cannot be read.
pub(super) fn column_list(path: &FilePath) -> String {
    let file = OthersFile::open(path).unwrap_or_else(|problem| fail_at(path, &problem));
    let mut list = Vec::new();
    for column in &file.columns {
        let left_out = |why: &str| pgrx::notice!("column \"{}\" is left out: {why}", column.name);
        if !is_type(&column.declared) {
            left_out(&format!(
                "it is {}, which is read only by the table that wrote the file",
                column.declared
            ));
        } else if column.name.len() >= LONGEST {
            // The server would cut it, and no file has a column of that name.
            left_out("its name is too long");
        } else {
            list.push(format!("{} {}", quoted(&column.name), column.declared));
        }
    }
    list.join(", ")
}

/// `ImportForeignSchema`: a table of each column file of a folder.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn import(
    statement: *mut ImportForeignSchemaStmt,
    _server: Oid,
) -> *mut List {
    // SAFETY: the server's own statement.
    unsafe { statements(statement, foreign::folder_to_write, tables_in, column_list) }
}

/// The column files among these, each by its name without the ending.
fn tables_in(paths: Vec<FilePath>) -> Vec<Found<FilePath>> {
    let mut found = Vec::new();
    for path in paths {
        pgrx::check_for_interrupts!();
        let name = path.as_path().file_stem().and_then(|name| name.to_str()).map(str::to_owned);
        if let Some(name) = name.filter(|name| !name.starts_with('.') && is_column_file(&path)) {
            found.push((name, path.clone(), path));
        }
    }
    found
}

/// Whether a file begins as column files do.
fn is_column_file(path: &FilePath) -> bool {
    let mut start = [0; MAGIC.len()];
    path.is_file()
        && path.open(false).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == MAGIC
}

#[cfg(test)]
mod tests {
    use super::is_type;

    #[test]
    fn only_names_of_types_are_taken() {
        for name in [
            "integer",
            "numeric(15,2)",
            "numeric(3,-2)",
            "timestamp(3) without time zone",
            "uuid",
            "character(10)",
        ] {
            assert!(is_type(name), "{name}");
        }
        for name in [
            "",
            "mood",
            "int",
            "integer, b text",
            "numeric(1) CHECK (true)",
            "text DEFAULT f()",
            "numeric(15",
            "text(1;)",
            "integer[]",
        ] {
            assert!(!is_type(name), "{name}");
        }
    }
}
