//! Planning: puts `Custom Scan (Colonnade)` among the server's paths.
//!
//! `hooks` adds the path to each table of ours, `cost` prices it, `index_paths` prices its rivals, `plan`
//! turns the chosen path into a plan node. `template` and its helpers (`operand`, `constant`, `like`,
//! `resolve`) translate WHERE clauses and are used again by `executor`, because a plan carries its clauses as
//! the server's own expressions: it can be copied, cached and shown like any other.

pub mod constant;
pub mod cost;
pub mod hooks;
pub mod index_paths;
pub mod like;
pub mod offered;
pub mod operand;
pub mod plan;
pub mod resolve;
pub mod template;

/// Registers hooks and node methods. Called once per process by `_PG_init`.
///
/// # Safety
/// Runs while the library is loaded.
pub unsafe fn register() {
    // SAFETY: the library is being loaded.
    unsafe { hooks::install() };
}
