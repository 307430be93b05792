//! Joins: every kind against nested loops, over every form of key, encoded in every way, in several batches,
//! with NULLs and duplicates.
//!
//! `keys` makes the two sides, `source` serves them, `model` says what a join gives, `check` compares;
//! `kinds`, `spill` and `nested` hold the tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

mod check;
mod keys;
mod kinds;
mod model;
mod nested;
mod source;
mod spill;
#[path = "../support/mod.rs"]
mod support;
