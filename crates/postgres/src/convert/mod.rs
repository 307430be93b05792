//! Conversion between the server's Datums and vectors.
//!
//! - `type_map`: decides once per column which vector its type gets
//! - `from_datum`: fills vector builders from slots (the write path)
//! - `to_datum`: turns vectors back into Datums (scans and fetches); `arena` is its memory
//! - `missing`: values of columns that are younger than a stripe
//! - `varlena`: bytes of values with a length word (crate `server_bytes` has those of numerics)
//!
//! Invariant: a value comes back byte for byte as the server would store it after detoasting, for every type.

mod arena;
mod from_datum;
mod missing;
mod to_datum;
mod type_map;
pub mod varlena;

pub use arena::Arena;
pub use from_datum::ColumnWriter;
pub use missing::missing_value;
pub use to_datum::{ColumnReader, single_datum};
pub use type_map::{ColumnType, Shape, is_plain};
