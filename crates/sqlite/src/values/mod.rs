//! What SQLite's values are, and how they lie in stripes.
//!
//! - `affinity`: what a value becomes in a column
//! - `order`: how values compare
//! - `sorting`: rows in an order
//! - `owned`: values that stay
//! - `kind`, `column`: how the values of a column lie in a stripe

mod affinity;
mod column;
mod kind;
mod order;
mod owned;
mod sorting;

pub use affinity::{Affinity, as_real, whole};
pub use column::{Column, ColumnBuilder, cast, is_exact};
pub use kind::Kind;
pub use order::{Collation, integer_to_real};
pub use owned::Owned;
pub use sorting::{OrderKey, first_rows, permutation};
