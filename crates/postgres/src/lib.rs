//! The PostgreSQL extension: registers the access method, hooks and settings, and nothing else.

#[cfg(not(panic = "unwind"))]
compile_error!("colonnade must be built with panic = \"unwind\": a panic becomes an ERROR");

pgrx::pg_module_magic!();
