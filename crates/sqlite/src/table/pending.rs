//! Rows of the running transaction that are in no shadow table yet.
//!
//! Many rows become a stripe without passing through the tail. They wait here until there are enough for one,
//! a savepoint begins, somebody reads the table, or the transaction is committed.

use std::collections::HashSet;
use std::ops::Range;

use crate::api::{Argument, Result, Value};
use crate::values::{Column, ColumnBuilder};

/// Rows that wait.
pub struct Pending {
    columns: Vec<ColumnBuilder>,
    ids: Vec<i64>,
    greatest: Option<i64>,
    /// Each id is greater than the one before.
    ascending: bool,
    /// All ids, once somebody has asked for one while they do not ascend.
    known: Option<HashSet<i64>>,
}

impl Pending {
    /// No rows of these columns.
    pub const fn new(columns: Vec<ColumnBuilder>) -> Self {
        Self { columns, ids: Vec::new(), greatest: None, ascending: true, known: None }
    }

    /// How many rows wait.
    pub const fn rows(&self) -> usize {
        self.ids.len()
    }

    /// Memory that they take, about.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(ColumnBuilder::bytes).sum()
    }

    /// Adds a row: its id, and a value for each stored column.
    pub fn push<'v>(&mut self, id: i64, values: impl Iterator<Item = Argument<'v>>) -> Result<()> {
        let mut columns = self.columns.iter_mut();
        if let Some(ids) = columns.next() {
            ids.push(Value::Integer(id))?;
        }
        for (column, value) in columns.zip(values) {
            column.push_given(value)?;
        }
        self.add_id(id);
        Ok(())
    }

    fn add_id(&mut self, id: i64) {
        self.ascending &= self.ids.last().is_none_or(|&last| last < id);
        self.greatest = self.greatest.max(Some(id));
        self.ids.push(id);
        if let Some(known) = &mut self.known {
            known.insert(id);
        }
    }

    /// Adds some rows of columns that have a value for each stored column. Ids count up from `first`.
    pub fn extend(&mut self, first: i64, columns: &[Column], rows: Range<usize>) -> Result<()> {
        let mut builders = self.columns.iter_mut();
        if let Some(ids) = builders.next() {
            (first..).take(rows.len()).try_for_each(|id| ids.push(Value::Integer(id)))?;
        }
        for (builder, column) in builders.zip(columns) {
            rows.clone().try_for_each(|row| builder.push(column.get(row)?))?;
        }
        (first..).take(rows.len()).for_each(|id| self.add_id(id));
        Ok(())
    }

    /// The greatest id of all.
    pub const fn greatest(&self) -> Option<i64> {
        self.greatest
    }

    /// Whether a row of this id waits.
    pub fn has(&mut self, id: i64) -> bool {
        if self.ascending {
            return self.ids.binary_search(&id).is_ok();
        }
        self.known.get_or_insert_with(|| self.ids.iter().copied().collect()).contains(&id)
    }

    /// The rows: their ids, then each stored column.
    pub fn finish(self) -> Vec<Column> {
        self.columns.into_iter().map(ColumnBuilder::finish).collect()
    }
}
