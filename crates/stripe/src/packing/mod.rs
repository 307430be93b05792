//! Which stripes of a table to write anew: the choices, as functions of what is known of the stripes.
//!
//! A host that packs asks in this order, and rewrites what it is told. It reads its directory, locks stripes
//! and writes rows; where a choice needs one of these it is given a closure. docs/internals/packing.md says
//! what a rewrite is. Invariant: each choice leads to an end. A host that follows it again and again, with
//! nobody else changing the table, is told at last that nothing is left.
//!
//! - `joining`: small stripes into full ones, and those with many dead rows into ones without
//! - `overlapping`: stripes that overlap in the table's order into ones that do not
//! - `sort_order`: how far a stripe reaches in that order, by its statistics
//! - `arrival_order`: which column to sort by where the table names none

pub mod arrival_order;
pub mod joining;
pub mod overlapping;
pub mod sort_order;
