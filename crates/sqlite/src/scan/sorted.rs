//! All rows of a search, in the order that the query wants.
//!
//! The first row is found without sorting: `min` and `max` ask for no other.

use super::RowScan;
use super::rows::Rows;
use crate::api::Result;
use crate::values::{Column, first_rows, permutation};

impl RowScan {
    /// Reads the rows, and stands on the one that comes first. With one key and no LIMIT the others are left
    /// for `sort_all`.
    pub(super) fn sort(&mut self) -> Result<()> {
        let peeks = self.limit.is_none() && self.search.order.len() == 1;
        self.gather(if peeks { Some(1) } else { self.limit })?;
        self.has_peeked = peeks;
        Ok(())
    }

    /// Reads all rows after the first one was found, and stands on that one again.
    pub(super) fn sort_all(&mut self) -> Result<()> {
        self.has_peeked = false;
        self.rewind();
        self.gather(None)
    }

    /// Brings all rows into order, or the first `most`.
    fn gather(&mut self, most: Option<usize>) -> Result<()> {
        let mut parts: Vec<Vec<Option<Column>>> = Vec::new();
        self.advance()?;
        while !self.rows.is_past_end() {
            let columns = std::mem::take(&mut self.rows).into_columns();
            // Of a chunk no more rows are kept than are wanted of all.
            parts.push(match most {
                Some(most) if rows_of(&columns) > most => {
                    let first = first_rows(&columns, &self.search.order, rows_of(&columns), most)?;
                    taken(&columns, &first)
                }
                _ => columns,
            });
            self.advance()?;
        }
        let columns = self.joined(parts)?;
        let rows = rows_of(&columns);
        let order = match most {
            Some(most) => first_rows(&columns, &self.search.order, rows, most)?,
            None => permutation(&columns, &self.search.order, rows)?,
        };
        // Columns that are read are brought into the order; ids only when one is asked for.
        let held = |(place, column): (usize, &Option<Column>)| {
            let column = column.as_ref()?;
            Some(match self.search.places.contains(&place) {
                true => (Column::new(column.kind, column.vector.take(&order)), false),
                false => (column.clone(), true),
            })
        };
        let columns = columns.iter().enumerate().map(held).collect();
        self.rows = Rows::of_places(columns, order);
        Ok(())
    }

    /// The columns of all parts end to end, by place.
    fn joined(&self, parts: Vec<Vec<Option<Column>>>) -> Result<Vec<Option<Column>>> {
        let width = parts.iter().map(Vec::len).max().unwrap_or(0);
        let mut by_place: Vec<Vec<Column>> = Vec::new();
        by_place.resize_with(width, Vec::new);
        for part in parts {
            for (column, own) in part.into_iter().zip(&mut by_place) {
                own.extend(column);
            }
        }
        let definitions = &self.storage.columns;
        let column = |(place, parts): (usize, Vec<Column>)| match parts.is_empty() {
            true => Ok(None),
            false => Column::joined(parts, definitions.affinity_at(place)).map(Some),
        };
        by_place.into_iter().enumerate().map(column).collect()
    }
}

fn rows_of(columns: &[Option<Column>]) -> usize {
    columns.iter().flatten().map(|column| column.vector.len()).max().unwrap_or(0)
}

fn taken(columns: &[Option<Column>], rows: &[u32]) -> Vec<Option<Column>> {
    let take = |column: &Column| Column::new(column.kind, column.vector.take(rows));
    columns.iter().map(|column| column.as_ref().map(take)).collect()
}
