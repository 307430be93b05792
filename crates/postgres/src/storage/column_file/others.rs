//! Column files that a foreign table names and did not write: the program's, another table's, another
//! server's. Their rows are those that the file says it has. They are read only.
//!
//! Whatever the file says, no value of it can harm the server: only types are read whose values are checked
//! when they are decoded (`convert::is_plain`), and text has to be UTF-8.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use std::sync::Arc;

use files::FilePath;
use files::column::{Column, ColumnFile, Ranges, StripePlace, TableColumns, within};
use pgrx::pg_sys;
use stripe::StripeBytes;
use vector::{LogicalType, Result, Vector};

use super::open::problem_at;
use super::{BLOCK_BYTES, fail, publish};
use crate::convert::is_plain;
use crate::host::relation::Open;
use crate::host::{encoding, error};
use crate::storage::open_files;

/// A column file, as it was when it was opened. Loads that come later do not change what is read.
pub struct OthersFile {
    /// Its name.
    pub path: FilePath,
    /// Device and number of what had the name.
    identity: (u64, u64),
    /// Its columns.
    pub columns: Vec<Column>,
    /// What rows have that are older than a column, in the columns' order.
    defaults: Vec<Option<Arc<Vector>>>,
    /// Its stripes.
    pub stripes: Vec<StripePlace>,
}

fn identity(found: &fs::Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

impl OthersFile {
    /// Reads what a file says of itself.
    ///
    /// # Errors
    /// As `ColumnFile::open`.
    pub fn open(path: &FilePath) -> files::Result<Self> {
        let found = path.metadata()?;
        if !found.is_file() {
            // A pipe would be waited for.
            return Err(files::Error::Malformed("it is no file, or not a plain one".into()));
        }
        let file = open_files::open_anew(path)?;
        let open = ColumnFile::open(&**file)?;
        if let Some(at) = open.damaged_place() {
            return Err(files::Error::Malformed(format!(
                "the place at byte {at} of the head is damaged, and a later load than {} may have been finished",
                open.loads()
            )));
        }
        let (columns, defaults) = (open.columns().to_vec(), open.defaults().to_vec());
        let stripes = open.stripes().to_vec();
        Ok(Self { path: path.clone(), identity: identity(&file.metadata()?), columns, defaults, stripes })
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.stripes.iter().map(|stripe| u64::from(stripe.rows)).sum()
    }

    /// How many pages of the server's size they take.
    pub fn pages(&self) -> pg_sys::BlockNumber {
        let bytes: u64 = self.stripes.iter().map(|stripe| stripe.bytes.end - stripe.bytes.start).sum();
        u32::try_from(bytes.div_ceil(BLOCK_BYTES)).unwrap_or(u32::MAX)
    }

    /// Where the columns of a table are.
    ///
    /// # Errors
    /// ERRORs where it has not all of them, and where one is of a type that is not read.
    pub fn columns_of(&self, rel: Open) -> TableColumns {
        let wanted = publish::columns_of_others(rel);
        for (attribute, column) in rel.columns().iter().zip(&wanted) {
            let Some(column) = column else { continue };
            let problem = match column.logical {
                // Text of JSON is looked at.
                LogicalType::Bytes if attribute.atttypid == pg_sys::JSONOID && encoding::is_utf8() => {
                    continue;
                }
                logical if !is_plain(attribute.atttypid) && logical != LogicalType::UInt64 => {
                    format!(
                        "type {} is read only from files that the table itself has written",
                        column.declared
                    )
                }
                LogicalType::Text if !encoding::is_utf8() => {
                    "its text is to be UTF-8, and the database has another encoding".into()
                }
                _ => continue,
            };
            error::not_supported(
                format!("cannot read column \"{}\" of foreign table {}", column.name, rel.quoted_name()),
                &format!("It names a file that it did not write, and {problem}."),
                "",
            )
        }
        let found = TableColumns::find(&self.columns, &self.defaults, &wanted);
        found.unwrap_or_else(|problem| fail(rel, &self.path, &problem))
    }
}

/// The bytes of a stripe.
pub struct Bytes {
    pub file: Rc<OthersFile>,
    pub range: Range<u64>,
}

impl StripeBytes for Bytes {
    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let Range { start, end } = within(&self.range, &range)?;
        let mut read = || {
            let is_same = |file: &File| Ok(identity(&file.metadata()?) == self.file.identity);
            open_files::open(&self.file.path, is_same)?.read(start..end, out)
        };
        read().map_err(|problem| problem_at(&self.file.path, start, &problem))
    }
}
