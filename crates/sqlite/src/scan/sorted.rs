//! All rows of a search, in the order that the query wants.
//!
//! The first row is found without sorting: `min` and `max` ask for no other.

use vector::concat;

use super::RowScan;
use super::order::{first, permutation};
use super::rows::Rows;
use super::search::Search;
use crate::api::Result;
use crate::declaration::Columns;
use crate::values::{Affinity, Column, ColumnBuilder};

/// All rows, by place.
pub struct Unsorted {
    columns: Vec<Option<Column>>,
    rows: usize,
}

impl RowScan {
    /// Reads all rows, and stands on the one that comes first.
    pub(super) fn sort(&mut self) -> Result<()> {
        let mut parts: Vec<Vec<Option<Column>>> = Vec::new();
        self.advance()?;
        while !self.rows.is_past_end() {
            parts.push(std::mem::take(&mut self.rows).into_columns());
            self.advance()?;
        }
        let unsorted = Unsorted::of(parts, &self.storage.columns)?;
        let only = match self.search.order.as_slice() {
            [key] if !self.search.once => unsorted.first(key.place, key.descending)?,
            _ => None,
        };
        match only {
            Some(row) => {
                self.rows = Rows::of_places(unsorted.take(&[row]));
                self.unsorted = Some(unsorted);
            }
            None => self.rows = unsorted.sorted(&self.search)?,
        }
        Ok(())
    }
}

impl Unsorted {
    fn of(parts: Vec<Vec<Option<Column>>>, definitions: &Columns) -> Result<Self> {
        let width = parts.iter().map(Vec::len).max().unwrap_or(0);
        let mut by_place: Vec<Vec<Column>> = Vec::new();
        by_place.resize_with(width, Vec::new);
        for part in parts {
            for (column, own) in part.into_iter().zip(&mut by_place) {
                own.extend(column);
            }
        }
        let column = |(place, parts)| joined(parts, definitions.affinity_at(place));
        let columns = by_place.into_iter().enumerate().map(column).collect::<Result<Vec<_>>>()?;
        let rows = columns.iter().flatten().map(|column| column.vector.len()).max().unwrap_or(0);
        Ok(Self { columns, rows })
    }

    fn first(&self, place: usize, descending: bool) -> Result<Option<u32>> {
        match self.columns.get(place) {
            Some(Some(column)) => {
                Ok(first(column, descending, self.rows)?.and_then(|row| u32::try_from(row).ok()))
            }
            _ => Ok(None),
        }
    }

    fn take(&self, rows: &[u32]) -> Vec<Option<Column>> {
        let take = |column: &Column| Column::new(column.kind, column.vector.take(rows));
        self.columns.iter().map(|column| column.as_ref().map(take)).collect()
    }

    /// The rows in order.
    pub fn sorted(self, search: &Search) -> Result<Rows> {
        let mut order = permutation(&self.columns, &search.order, self.rows)?;
        if search.once {
            let same = |a: u32, b: u32| -> Result<bool> {
                for column in search.order.iter().filter_map(|key| self.columns.get(key.place)?.as_ref()) {
                    if column.get(a as usize)? != column.get(b as usize)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            };
            let mut kept: Vec<u32> = Vec::new();
            for &row in &order {
                if kept.last().is_none_or(|&last| !same(last, row).unwrap_or(false)) {
                    kept.push(row);
                }
            }
            order = kept;
        }
        Ok(Rows::of_places(self.take(&order)))
    }
}

/// Columns end to end. Of several kinds they become one of any.
fn joined(parts: Vec<Column>, affinity: Affinity) -> Result<Option<Column>> {
    let Some(kind) = parts.first().map(|part| part.kind) else { return Ok(None) };
    if parts.iter().all(|part| part.kind == kind) {
        let vectors = parts.into_iter().map(|part| part.vector).collect();
        return Ok(Some(Column::new(kind, concat(kind.logical(), vectors)?)));
    }
    let mut builder = ColumnBuilder::new(affinity);
    for part in &parts {
        for row in 0..part.vector.len() {
            builder.push(part.get(row)?)?;
        }
    }
    Ok(Some(builder.finish()))
}
