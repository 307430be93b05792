//! Stripes opened for reading.
//!
//! - `stripe_on_pages`: ties the pure reader of a stripe to the pages of a relation; open stripes are kept
//! - `kept_chunk`: values of single rows, and decoded chunks that are kept for the next look-up

pub mod kept_chunk;
pub mod stripe_on_pages;
