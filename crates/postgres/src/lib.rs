//! The PostgreSQL extension: registers the access method, hooks and settings, and nothing else.

#[cfg(not(panic = "unwind"))]
compile_error!("colonnade must be built with panic = \"unwind\": a panic becomes an ERROR");

pub mod compat;
pub mod convert;
pub mod executor;
pub mod host;
pub mod options;
pub mod planner;
pub mod storage;
pub mod table_am;

use pgrx::pg_guard;

pgrx::pg_module_magic!();

/// Called by the server once per process, when the library is loaded.
#[allow(non_snake_case)]
#[pg_guard]
pub unsafe extern "C-unwind" fn _PG_init() {
    host::guc::register();
    storage::directory::register();
    storage::open_stripes::register();
    planner::register();
    options::register(|| std::ptr::from_ref(table_am::routine()));
    // SAFETY: the server runs this once per process, before any query.
    unsafe { table_am::hooks::install() };
}
