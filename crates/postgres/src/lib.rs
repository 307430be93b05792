//! The PostgreSQL extension: registers the access method, hooks and settings, and nothing else.

#[cfg(not(panic = "unwind"))]
compile_error!("colonnade must be built with panic = \"unwind\": a panic becomes an ERROR");

pub mod columnstore;
pub mod compat;
pub mod convert;
pub mod expressions;
pub mod fdw;
pub mod host;
pub mod options;
pub mod planner;
pub mod scan;
pub mod storage;
pub mod table_am;
mod transfer;
mod uint8;
pub mod vectorised;
pub mod verify;

use pgrx::pg_guard;

pgrx::pg_module_magic!();

/// Called by the server once, when it preloads the library at its start. Processes that it forks have the
/// library then. A session that loads it later gets an ERROR that says to preload it: hooks that saw only a
/// part of a session could keep no promise.
///
/// If several of our functions are in one hook, the one that was installed last runs first. So they run in
/// this order, and others' after them:
/// - ProcessUtility: `transfer` (COPY of Parquet), `fdw::statements` (looks at foreign tables before and
///   after), `table_am::utility_hook` (before and after a VACUUM, after who publishes), `options` (takes our
///   options out of a statement), `storage::pending_rows` (ends its stripes);
/// - planner: `vectorised` (looks at the plan that the others make), `options::hidden`;
/// - ExplainOneQuery: `planner::not_covered` (adds a line behind the plan);
/// - set_rel_pathlist: `table_am::read::bitmap_paths` (takes paths out), then the others', `planner` (adds
///   ours);
/// - object_access: `table_am::hooks`, `options`; ExecutorFinish: `table_am::statements::slot_creation`,
///   `storage::pending_rows`.
#[allow(non_snake_case)]
#[pg_guard]
pub unsafe extern "C-unwind" fn _PG_init() {
    // SAFETY: the server's own flag.
    if !unsafe { pgrx::pg_sys::process_shared_preload_libraries_in_progress } {
        host::error::raise(
            host::error::PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "colonnade must be loaded through shared_preload_libraries",
            "",
            "Set shared_preload_libraries = 'colonnade' and restart the server.",
        );
    }
    // SAFETY: the postmaster has one thread.
    unsafe { host::backtraces::switch_off() };
    // SAFETY: the server runs this once per process, on its one thread.
    unsafe {
        options::settings::register();
        storage::pending_rows::register_settings();
        storage::encoding::register_settings();
        table_am::packing::register_settings();
        columnstore::register();
        options::settings::reserve_prefix();
    }
    storage::directory::register();
    // SAFETY: the server runs this once per process.
    unsafe {
        storage::column_file::publish::register();
        storage::open_files::register();
    }
    storage::pending_rows::register();
    fdw::register();
    planner::register();
    scan::register();
    vectorised::node::register();
    options::register(
        |method| std::ptr::from_ref(table_am::routine(method)),
        table_am::packing::tell_of_unsorted,
    );
    // SAFETY: the server runs this once per process, before any query.
    unsafe {
        storage::catalog::generation::install();
        storage::change::delete_bitmap::register();
        table_am::read::row_versions::register();
        table_am::hooks::install(columnstore::after_statement);
        fdw::install();
        transfer::install();
        table_am::packing::register_workers();
        expressions::user_functions::install();
        vectorised::planner_hook::install();
    }
}
