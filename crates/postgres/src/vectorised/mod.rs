//! Running parts of a plan in vectorised operators (crate `query`) instead of the server's executor.
//!
//! `translated` says what both halves agree on: the finished plan's subtree in terms of `query`, and where
//! its rows come from. `planner_hook` plans, `replace` replaces what `translate` understands; `node` is the
//! executor's node that runs it, `source` where its rows come from, `explain` what it tells. What is kept of
//! a replaced subtree is the subtree itself: it is translated when the node starts, and run by the server's
//! own executor where exact semantics are not implemented.

mod attempt;
mod candidate;
mod cost;
mod decorrelate;
mod derive;
mod documents;
mod explain;
mod host_function;
pub mod node;
mod plan_parts;
pub mod planner_hook;
mod privileges;
pub mod replace;
mod server_aggregate;
mod server_expression;
mod server_key;
mod shown;
mod source;
pub mod translate;
pub mod translated;
pub mod unasked_rows;
