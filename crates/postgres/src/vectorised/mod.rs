//! Running parts of a plan in vectorised operators (crate `query`) instead of the server's executor.
//!
//! The main files:
//! - `planner_hook` plans;
//! - `replace` replaces the subtrees that `translate` understands;
//! - `translated` is what planner and executor agree on: the finished plan's subtree in terms of `query`, and
//!   where its rows come from;
//! - `node` is the executor's node that runs the translation;
//! - `source` is where its rows come from;
//! - `explain` is what EXPLAIN shows of it.
//!
//! The node keeps the replaced subtree itself. The subtree is translated when the node starts. Where exact
//! semantics are not implemented, the server's own executor runs it.

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
