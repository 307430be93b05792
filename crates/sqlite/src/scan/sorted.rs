//! All rows of a search, in the order that the query wants.
//!
//! The first row is found without sorting: `min` and `max` ask for no other.

use vector::concat;

use super::RowScan;
use super::order::{first, first_rows, permutation};
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
            [key] if self.limit.is_none() => unsorted.first(key.place, key.descending)?,
            _ => None,
        };
        match only {
            Some(row) => {
                self.rows = unsorted.rows_in(vec![row], &self.search);
                self.unsorted = Some(unsorted);
            }
            None => self.rows = unsorted.sorted(&self.search, self.limit)?,
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

    /// Some of the rows, in this order. Columns that are read are brought into it; ids only when one is asked
    /// for.
    fn rows_in(&self, order: Vec<u32>, search: &Search) -> Rows {
        let held = |(place, column): (usize, &Option<Column>)| {
            let column = column.as_ref()?;
            Some(match search.places.contains(&place) {
                true => (Column::new(column.kind, column.vector.take(&order)), false),
                false => (column.clone(), true),
            })
        };
        let columns = self.columns.iter().enumerate().map(held).collect();
        Rows::of_places(columns, order)
    }

    /// The rows in order.
    pub fn sorted(self, search: &Search, limit: Option<usize>) -> Result<Rows> {
        let order = match limit {
            Some(limit) => first_rows(&self.columns, &search.order, self.rows, limit)?,
            None => permutation(&self.columns, &search.order, self.rows)?,
        };
        Ok(self.rows_in(order, search))
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
