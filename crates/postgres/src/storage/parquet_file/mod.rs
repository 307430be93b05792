//! Parquet files that foreign tables read.
//!
//! Nothing of them is kept in the catalogs: which rows there are, the files alone say. A table names a file,
//! a folder or a pattern, or a list of such. Each scan looks anew which files that are (`of`).
//!
//! - `footer`: footers, which a backend keeps as long as the files are the same
//! - `open`: their bytes

mod footer;
mod open;

use std::rc::Rc;

use files::FilePath;
use files::column::Column;
use files::parquet::{TableColumns, Wanted, files_of, keys_of};
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, Datum};
use vector::{LogicalType, Vector};

use super::column_file::publish;
use crate::convert::{ColumnType, ColumnWriter};
use crate::host::relation::Open;
use crate::host::{encoding, error};
use crate::options::foreign;

pub use footer::KnownFile;
pub use open::Bytes;

/// The files of a foreign table.
///
/// # Errors
/// ERRORs where one cannot be opened or is no Parquet file, and where there is none.
pub fn of(rel: Open) -> Vec<Rc<KnownFile>> {
    let names = foreign::files_of(rel.oid());
    names.iter().flat_map(paths_of).map(|path| known(&path)).collect()
}

/// The files that a name stands for, of which there is one at least.
///
/// # Errors
/// Where there is none, or a folder cannot be read.
pub fn find(name: &FilePath) -> files::Result<Vec<FilePath>> {
    files_of(name, &|| {
        pgrx::check_for_interrupts!();
    })
}

/// As `find`.
///
/// # Errors
/// ERRORs.
pub fn paths_of(name: &FilePath) -> Vec<FilePath> {
    find(name).unwrap_or_else(|problem| fail(name, &problem))
}

/// A file, whose footer was read.
///
/// # Errors
/// As `of`.
pub fn known(path: &FilePath) -> Rc<KnownFile> {
    pgrx::check_for_interrupts!();
    footer::known(path).unwrap_or_else(|problem| fail(path, &problem))
}

/// Raises an ERROR about a Parquet file.
pub fn fail(path: &FilePath, problem: &files::Error) -> ! {
    let code = match problem {
        files::Error::Io(io) => match io.kind() {
            std::io::ErrorKind::NotFound => Code::ERRCODE_UNDEFINED_FILE,
            std::io::ErrorKind::PermissionDenied => Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
            std::io::ErrorKind::StorageFull => Code::ERRCODE_DISK_FULL,
            _ => Code::ERRCODE_IO_ERROR,
        },
        files::Error::Malformed(_) => Code::ERRCODE_DATA_CORRUPTED,
        files::Error::Unsupported(_) => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
    };
    error::raise(code, format!("cannot use Parquet file \"{}\"", path.display()), &format!("{problem}."), "")
}

/// What a foreign table wants of its files.
pub struct WantedColumns<'a> {
    attributes: &'a [pg_sys::FormData_pg_attribute],
    columns: Vec<Option<Column>>,
    /// A column that a file has not is NULL in its rows, if another file has it.
    unites_by_name: bool,
}

impl<'a> WantedColumns<'a> {
    /// Of an open foreign table.
    ///
    /// # Errors
    /// ERRORs where it has text, and the database has another encoding than Parquet.
    pub fn of(rel: Open<'a>) -> Self {
        let attributes = rel.columns();
        let columns = publish::columns_of_others(rel);
        let has_text = columns.iter().flatten().any(|column| {
            let of = column.declared.trim_end_matches("[]");
            column.logical == LogicalType::Text
                || matches!(of, "json" | "jsonb" | "text" | "character varying")
        });
        if has_text && !encoding::is_utf8() {
            error::not_supported(
                format!("cannot read text of Parquet files for foreign table {}", rel.quoted_name()),
                "Their text is UTF-8, and the database has another encoding.",
                "COPY ... FROM reads it, and converts.",
            );
        }
        Self { attributes, columns, unites_by_name: foreign::unites_by_name(rel.oid()) }
    }

    /// The files of a table, each with where the columns are in it. Those that it does not have, its folders
    /// may tell (`key=value`).
    ///
    /// # Errors
    /// ERRORs where a file has not all of them, or others by these names, and where a folder's value is none
    /// of its column's type.
    pub fn in_files(&self, files: Vec<Rc<KnownFile>>) -> Vec<(Rc<KnownFile>, TableColumns)> {
        if self.unites_by_name {
            self.look_for_all(&files);
        }
        let columns: Vec<_> = files.iter().map(|file| self.in_file(file, &files)).collect();
        files.into_iter().zip(columns).collect()
    }

    /// Raises an ERROR where a column is not in all files, or in none of them if they are united.
    fn look_for_all(&self, files: &[Rc<KnownFile>]) {
        let has = |file: &KnownFile, name: &str| {
            file.footer.has(name) || keys_of(file.path.as_path()).iter().any(|(key, _)| key == name)
        };
        for Column { name, .. } in self.columns.iter().flatten() {
            let is_somewhere = files.iter().any(|file| has(file, name));
            if self.unites_by_name && is_somewhere {
                continue;
            }
            let Some(without) = files.iter().find(|file| !has(file, name)) else { continue };
            let (detail, hint) = match is_somewhere {
                false if files.len() > 1 => {
                    (format!("it has no column \"{name}\", nor has any other file of the table."), "")
                }
                false => (format!("it has no column \"{name}\"."), ""),
                true => (
                    format!("it has no column \"{name}\", which other files of the table have."),
                    "The option union_by_name 'true' of the foreign table makes it NULL there.",
                ),
            };
            let message = format!("cannot use Parquet file \"{}\"", without.path.display());
            error::raise(Code::ERRCODE_FEATURE_NOT_SUPPORTED, message, &detail, hint)
        }
    }

    /// Where the columns are in one of the files.
    fn in_file<'w>(&'w self, file: &KnownFile, files: &[Rc<KnownFile>]) -> TableColumns {
        let keys = keys_of(file.path.as_path());
        let wanted = |(attribute, column): (&'a pg_sys::FormData_pg_attribute, &'w Option<Column>)| {
            let column = column.as_ref()?;
            // The innermost folder counts.
            let key = keys.iter().rev().find(|(key, _)| *key == column.name);
            // A column that is nowhere was refused.
            let is_null = self.unites_by_name && !file.footer.has(&column.name);
            let value = key.map_or(is_null.then_some(None), |(_, value)| Some(value.as_deref()));
            // SAFETY: an attribute of an open relation.
            let otherwise = value.map(|value| unsafe { value_of(attribute, value) });
            Some(Wanted { column, otherwise })
        };
        let wanted = self.attributes.iter().zip(&self.columns).map(wanted).collect();
        file.footer.table(wanted).unwrap_or_else(|problem| {
            // What is lacking is told with what other files have.
            self.look_for_all(files);
            fail(&file.path, &problem)
        })
    }
}

/// The value of a column that this text stands for, as a vector of one row. None: NULL.
unsafe fn value_of(attribute: &pg_sys::FormData_pg_attribute, text: Option<&str>) -> Vector {
    // SAFETY: the caller's promise; the input function of a type reads text, and may raise an ERROR.
    unsafe {
        let mut writer = ColumnWriter::new(ColumnType::of(attribute));
        match text {
            None => writer.push_value(Datum::null(), true),
            Some(text) => {
                let text = encoding::from_utf8(text);
                let (mut input, mut parameter) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
                pg_sys::getTypeInputInfo(attribute.atttypid, &raw mut input, &raw mut parameter);
                let text = text.as_ptr().cast_mut();
                let value = pg_sys::OidInputFunctionCall(input, text, parameter, attribute.atttypmod);
                writer.push_value(value, false);
            }
        }
        writer.take()
    }
}
