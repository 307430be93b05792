//! The types that all parts of Colonnade share: logical types, vectors, predicates and errors.
//!
//! `encodings`, `stripe`, `query` and the hosts exchange values of these types; `flow` has those of a
//! running query. This crate knows no page, snapshot or server type, and it does no I/O.
//!
//! Invariant: nothing here depends on another crate of the workspace, so all dependencies between crates lead
//! here (ARCHITECTURE.md, section 1).
#![forbid(unsafe_code)]

mod bitmap;
mod builder;
mod byte_views;
pub mod calendar;
mod concat;
mod error;
mod expand;
pub mod flow;
mod numeric;
mod order;
mod predicate;
mod resolved;
mod scalar;
mod selection;
mod types;
mod vector;

pub use bitmap::Bitmap;
pub use builder::VectorBuilder;
pub use byte_views::{ByteView, ByteViews, INLINE_BYTES};
pub use concat::{concat, concat_coded};
pub use error::{Error, Location, Result};
pub use numeric::{Decimal, DisplayScales, NumericInts, NumericValues, Special, power_of_ten, rescaled};
pub use order::{compare_decimals, compare_floats};
pub use predicate::{CompareOp, Predicate};
pub use resolved::Resolved;
pub use scalar::Scalar;
pub use selection::Selection;
pub use types::{LogicalType, PhysicalType, held, unsigned};
pub use vector::{Dictionary, FixedBytes, Values, Vector};
