//! Running parts of a plan in vectorised operators (crate `query`) instead of the server's executor.
//!
//! `translated` says what both halves agree on: the finished plan's subtree in terms of `query`, and where its rows come from.

pub mod translated;
