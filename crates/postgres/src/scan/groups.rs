//! The row groups of Parquet files as stripes that the engine's scan reads.
//!
//! Made at the first row by `table`. Invariant: the relation stays open as long as the store is used.

use std::rc::Rc;

use files::parquet::{RowGroup, TableColumns};
use pgrx::pg_sys::Relation;
use stripe::scan::StripeInfo;
use vector::{Error, Result};

use super::last::Last;
use crate::host::relation::Open;
use crate::storage::parquet_file::{self, Bytes, KnownFile, WantedColumns};

/// The row groups of a foreign table's files.
pub struct Groups {
    rel: Relation,
    files: Vec<(Rc<KnownFile>, TableColumns)>,
    groups: Vec<Group>,
    last: Last<RowGroup>,
}

struct Group {
    /// Its file among those of the table, and its number there.
    file: usize,
    number: usize,
    first_row: u64,
    rows: u32,
    summary: Vec<u8>,
}

impl Groups {
    /// Those of a foreign table.
    ///
    /// # Errors
    /// ERRORs where a file cannot be read, or has not the table's columns.
    ///
    /// # Safety
    /// The relation stays open as long as this is used.
    pub unsafe fn of(rel: Relation) -> Self {
        // SAFETY: the caller's promise.
        let table = unsafe { Open::of(rel) };
        let wanted = WantedColumns::of(table);
        let files = wanted.in_files(parquet_file::of(table));
        let (mut groups, mut first_row) = (Vec::new(), 0u64);
        for (at, (file, columns)) in files.iter().enumerate() {
            for (number, rows) in file.footer.group_rows().enumerate() {
                let summary = file.footer.summary(number, columns);
                let summary = summary.unwrap_or_else(|problem| parquet_file::fail(&file.path, &problem));
                let counted = u32::try_from(rows).unwrap_or(u32::MAX);
                groups.push(Group { file: at, number, first_row, rows: counted, summary });
                first_row = first_row.saturating_add(rows);
            }
        }
        Self { rel, files, groups, last: Last::default() }
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.groups.len()
    }

    /// How many files they are in.
    pub const fn files(&self) -> usize {
        self.files.len()
    }

    pub(super) fn stripe(&self, at: usize) -> Option<StripeInfo<'_>> {
        let Group { first_row, rows, summary, .. } = self.groups.get(at)?;
        Some(StripeInfo { first_row: *first_row, row_count: *rows, summary, footer: 0..0 })
    }

    /// A row group, and the file that it is in.
    fn at(&self, at: usize) -> Result<(&Group, &(Rc<KnownFile>, TableColumns))> {
        let found = self.groups.get(at).and_then(|group| Some((group, self.files.get(group.file)?)));
        found.ok_or_else(|| Error::InvalidInput(format!("no row group at {at}")))
    }

    pub(super) fn open(&self, at: usize) -> Result<Rc<RowGroup>> {
        self.last.or_open(at, || {
            let (group, (file, columns)) = self.at(at)?;
            file.group(group.number, columns)
        })
    }

    pub(super) fn bytes(&self, at: usize) -> Result<Bytes> {
        self.at(at).map(|(_, (file, _))| Bytes(Rc::clone(file)))
    }

    pub(super) fn number(&self) -> u32 {
        // SAFETY: the promise of `of`.
        unsafe { (*self.rel).rd_id.to_u32() }
    }
}
