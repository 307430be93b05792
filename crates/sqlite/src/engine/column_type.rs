//! The one type that a column has in all of a table, so that the engine can compute with it.
//!
//! The engine's columns have one type each. A column of a table of SQLite may hold other classes from stripe
//! to stripe. Where they go together they become one type; otherwise there is none, and rows are looked at
//! one by one.

use stripe::Summary;
use vector::{LogicalType, Scalar, Values, Vector};

use crate::api::Result;
use crate::storage::{Entry, Storage};
use crate::values::{Affinity, Column, Kind, cast, is_exact};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnType {
    /// Where the column lies in stripes.
    pub place: usize,
    /// How its values lie, in all of the table. Never `Mixed`.
    pub kind: Kind,
}

impl ColumnType {
    /// The type of the column at a place. None if it has none.
    pub fn of(storage: &Storage, place: usize, tail: &[Column]) -> Result<Option<Self>> {
        let affinity = storage.columns.affinity_at(place);
        let entries = storage.directory.entries();
        let stripes = entries.iter().filter_map(|entry| entry.kinds.get(place).copied());
        let kinds = stripes.chain(tail.get(place).map(|column| column.kind));
        let mut merged = Kind::Null;
        for kind in kinds {
            merged = match (merged, kind) {
                (merged, Kind::Null) => merged,
                (Kind::Null, kind) => kind,
                (merged, kind) if merged == kind => kind,
                (Kind::Integer | Kind::Real | Kind::Number, Kind::Integer | Kind::Real | Kind::Number)
                    if affinity == Affinity::Numeric =>
                {
                    Kind::Number
                }
                _ => Kind::Mixed,
            };
        }
        let exact = merged != Kind::Number || are_exact(&entries, place, tail)?;
        Ok((merged != Kind::Mixed && exact).then_some(Self { place, kind: merged }))
    }

    /// The type of its vectors.
    pub const fn logical(self) -> LogicalType {
        self.kind.logical()
    }

    /// The same values in a vector of this type, of a column of another kind in a stripe or in the tail.
    pub fn cast(self, vector: &Vector) -> Vector {
        cast(vector, self.logical())
    }
}

/// Whether all integers of a column are reals without loss, as far as is known.
fn are_exact(entries: &[Entry], place: usize, tail: &[Column]) -> Result<bool> {
    for entry in entries.iter().filter(|entry| entry.kinds.get(place) == Some(&Kind::Integer)) {
        let known = Summary::open(&entry.summary)?.column(place)?.map(|(_, known)| (known.min, known.max));
        let exact = |bound: &Option<stripe::Bound>| matches!(bound, Some(stripe::Bound { value: Scalar::Int(value), .. }) if is_exact(*value));
        if !known.is_some_and(|(least, greatest)| exact(&least) && exact(&greatest)) {
            return Ok(false);
        }
    }
    Ok(match tail.get(place).map(|column| &column.vector.values) {
        Some(Values::Int64(values)) => values.iter().all(|&value| is_exact(value)),
        _ => true,
    })
}
