//! Stripes opened for reading.
//!
//! - `stripe_on_pages`: ties the pure reader of a stripe to the pages of a relation; open stripes are kept
//! - `pages_ahead`: reads pages before a scan asks for them, where they come from a device
//! - `kept_chunk`, `kept_block`: values of single rows, and what is kept for the next look-up, in either
//!   layout; `kept` bounds it

mod kept;
pub mod kept_block;
pub mod kept_chunk;
pub mod pages_ahead;
pub mod stripe_on_pages;
