//! Some rows that are being handed out: of a chunk, of the tail, or a single one.

use stripe::scan::{ColumnOrigin, LoadedChunk};
use vector::Selection;

use super::condition::Condition;
use crate::api::{Error, Result, Value};
use crate::storage::{Entry, Storage};
use crate::values::{Column, Kind};

/// A column of these rows.
struct Held {
    column: Column,
    /// It has all rows of the chunk, of which the selection says which count.
    is_whole: bool,
}

/// Rows, and the one that the cursor stands on.
#[derive(Default)]
pub struct Rows {
    /// By place. None where a column is not read.
    columns: Vec<Option<Held>>,
    /// Which rows of whole columns these are. None: all.
    selection: Option<Vec<u32>>,
    /// Which of the rows count. None: all.
    kept: Option<Vec<u32>>,
    count: usize,
    at: usize,
}

impl Rows {
    /// The rows of a chunk that passed. `columns`: the places of the scan's columns, and their kinds.
    pub fn of_chunk(loaded: LoadedChunk, columns: &[(usize, Kind)]) -> Self {
        let mut held: Vec<Option<Held>> = Vec::new();
        for (origin, &(place, kind)) in loaded.origins.into_iter().zip(columns) {
            held.resize_with(held.len().max(place + 1), || None);
            let (vector, is_whole) = match origin {
                ColumnOrigin::Whole(vector) => (vector, true),
                ColumnOrigin::Taken(vector) => (vector, false),
                ColumnOrigin::Unwanted | ColumnOrigin::Missing => continue,
            };
            let vector = std::sync::Arc::unwrap_or_clone(vector);
            if let Some(slot) = held.get_mut(place) {
                *slot = Some(Held { column: Column::new(kind, vector), is_whole });
            }
        }
        let count = loaded.selection.len();
        let selection = match loaded.selection {
            Selection::All(_) => None,
            Selection::Rows(rows) => Some(rows),
        };
        Self { columns: held, selection, kept: None, count, at: 0 }
    }

    /// All rows of these columns.
    pub fn of_columns(columns: &[Column]) -> Self {
        let count = columns.first().map_or(0, |ids| ids.vector.len());
        let held = |column: &Column| Some(Held { column: column.clone(), is_whole: true });
        Self { columns: columns.iter().map(held).collect(), selection: None, kept: None, count, at: 0 }
    }

    /// Some rows of columns that are by place. None where a column is not read. `true`: the column has all
    /// rows, and `order` says which these are.
    pub fn of_places(columns: Vec<Option<(Column, bool)>>, order: Vec<u32>) -> Self {
        let held = |(column, is_whole)| Held { column, is_whole };
        let columns = columns.into_iter().map(|column| column.map(held)).collect();
        Self { columns, count: order.len(), selection: Some(order), kept: None, at: 0 }
    }

    /// The rows alone, by place.
    pub fn into_columns(self) -> Vec<Option<Column>> {
        let column = |held: Held| {
            let Held { mut column, is_whole } = held;
            for rows in
                [self.selection.as_ref().filter(|_| is_whole), self.kept.as_ref()].into_iter().flatten()
            {
                column.vector = column.vector.take(rows);
            }
            column
        };
        self.columns.into_iter().map(|held| held.map(column)).collect()
    }

    /// One row of a stripe: the columns at these places.
    pub fn of_one(storage: &Storage, entry: &Entry, row: u32, places: &[usize]) -> Result<Self> {
        let mut held: Vec<Option<Held>> = Vec::new();
        for (place, column) in storage.row(entry, row, places)? {
            held.resize_with(held.len().max(place + 1), || None);
            if let Some(slot) = held.get_mut(place) {
                *slot = Some(Held { column, is_whole: true });
            }
        }
        Ok(Self { columns: held, selection: None, kept: None, count: 1, at: 0 })
    }

    /// Keeps the rows that pass all conditions.
    pub fn keep(&mut self, conditions: &[Condition]) -> Result<()> {
        if conditions.is_empty() || self.count == 0 {
            return Ok(());
        }
        let mut kept = Vec::new();
        for row in 0..self.count {
            let mut passes = true;
            for condition in conditions {
                passes = passes && condition.passes(self.value(condition.place, row)?);
            }
            if passes {
                kept.push(u32::try_from(row).unwrap_or(u32::MAX));
            }
        }
        self.count = kept.len();
        self.kept = Some(kept);
        Ok(())
    }

    fn value(&self, place: usize, row: usize) -> Result<Value<'_>> {
        let missing = || Error::new(format!("internal error of colonnade: column {place} was not read"));
        let held = self.columns.get(place).and_then(Option::as_ref).ok_or_else(missing)?;
        let row = match &self.selection {
            Some(selection) if held.is_whole => selection.get(row).map_or(usize::MAX, |&row| row as usize),
            _ => row,
        };
        held.column.get(row)
    }

    /// A column of the row that the cursor stands on.
    #[inline]
    pub fn get(&self, place: usize) -> Result<Value<'_>> {
        let row = match &self.kept {
            Some(kept) => kept.get(self.at).map_or(usize::MAX, |&row| row as usize),
            None => self.at,
        };
        self.value(place, row)
    }

    /// On to the next row.
    pub fn step(&mut self) {
        self.at += 1;
    }

    /// Whether the cursor stands on no row.
    pub const fn is_past_end(&self) -> bool {
        self.at >= self.count
    }
}
