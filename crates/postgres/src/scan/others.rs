//! The stripes of a column file that its table did not write, as stripes that the engine's scan reads.
//!
//! Made at the first row by `table`. Invariant: the relation stays open as long as the store is used.

use std::rc::Rc;

use files::column::{StripePlace, TableColumns, TableStripe};
use pgrx::pg_sys::Relation;
use stripe::scan::StripeInfo;
use vector::{Error, Result};

use super::last::Last;
use crate::host::relation::Open;
use crate::storage::column_file::fail;
use crate::storage::column_file::others::{Bytes, OthersFile};

/// The stripes of a file.
pub struct Others {
    rel: Relation,
    file: Rc<OthersFile>,
    columns: TableColumns,
    /// The number of each stripe's first row, and its summary by the table's columns.
    known: Vec<(u64, Vec<u8>)>,
    last: Last<TableStripe>,
}

impl Others {
    /// Those of a foreign table.
    ///
    /// # Errors
    /// ERRORs where the file has not the table's columns.
    ///
    /// # Safety
    /// The relation stays open as long as this is used.
    pub unsafe fn of(rel: Relation, file: OthersFile) -> Self {
        // SAFETY: the caller's promise.
        let table = unsafe { Open::of(rel) };
        let columns = file.columns_of(table);
        let mut first_row = 0u64;
        let known = |stripe: &StripePlace| {
            let summary = columns.summary(stripe).unwrap_or_else(|problem| fail(table, &file.path, &problem));
            let first = first_row;
            first_row = first_row.saturating_add(stripe.rows.into());
            (first, summary)
        };
        let known = file.stripes.iter().map(known).collect();
        Self { rel, file: Rc::new(file), columns, known, last: Last::default() }
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn stripe(&self, at: usize) -> Option<StripeInfo<'_>> {
        let ((first_row, summary), stripe) = (self.known.get(at)?, self.file.stripes.get(at)?);
        let footer = stripe.footer.clone();
        Some(StripeInfo { first_row: *first_row, row_count: stripe.rows, summary, footer })
    }

    fn place(&self, at: usize) -> Result<&StripePlace> {
        self.file.stripes.get(at).ok_or_else(|| Error::InvalidInput(format!("no stripe at {at}")))
    }

    pub(super) fn open(&self, at: usize) -> Result<Rc<TableStripe>> {
        self.last.or_open(at, || TableStripe::open(self.place(at)?, &self.columns, &self.bytes(at)?))
    }

    pub(super) fn bytes(&self, at: usize) -> Result<Bytes> {
        Ok(Bytes { file: Rc::clone(&self.file), range: self.place(at)?.bytes.clone() })
    }

    pub(super) fn number(&self) -> u32 {
        // SAFETY: the promise of `of`.
        unsafe { (*self.rel).rd_id.to_u32() }
    }
}
