//! Between the server's Datums and vectors: which vector a column's type gets, values in, values out.
//!
//! `type_map` decides once per column; `from_datum` fills vector builders from slots (the write path),
//! `to_datum` turns vectors back into Datums (scans and fetches), `missing` supplies what a stripe is too old
//! to have.
//! Invariant: a value comes back byte for byte as the server would store it after detoasting, for every type.

mod arena;
mod from_datum;
mod missing;
mod to_datum;
mod type_map;
pub mod varlena;

pub use from_datum::ColumnWriter;
pub use missing::missing_value;
pub use to_datum::ColumnReader;
pub use type_map::{ColumnType, Shape};
