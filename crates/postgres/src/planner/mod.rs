//! Planning: puts `Custom Scan (Colonnade)` among the server's paths.
//!
//! - `path_hook`: adds the path to each table of ours; `columnstore_path`: to heap tables with such an index
//! - `cost`: prices it; `index_paths`: prices index and bitmap paths beside it
//! - `plan`: turns the chosen path into a plan node
//! - `template` and its helpers (`operand`, `constant`, `like`, `resolve`): translate WHERE clauses
//! - `offered`: what columnar scans a statement was offered; `not_covered`: what EXPLAIN says where none was
//! - `ranges`, `whole_keys`: where the server guesses how many rows a join has
//!
//! `scan` translates the clauses again, because a plan has them as the server's own expressions. So a
//! plan can be copied, cached and shown like any other.

pub mod columnstore_path;
pub mod constant;
pub mod cost;
pub mod index_paths;
pub mod like;
pub mod not_covered;
pub mod offered;
pub mod operand;
pub mod path_hook;
pub mod plan;
pub mod ranges;
pub mod resolve;
pub mod template;
pub mod whole_keys;

/// Registers hooks and node methods. Called once per process by `_PG_init`.
///
/// # Safety
/// Runs while the library is loaded.
pub unsafe fn register() {
    // SAFETY: the library is being loaded.
    unsafe {
        path_hook::install();
        not_covered::install();
    }
}
