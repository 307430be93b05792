//! Which foreign tables are ours, and of which wrapper.

use std::sync::OnceLock;

use pgrx::pg_sys::{self, Oid};

use super::name_of;
use crate::host::error;
use crate::host::relation::Open;

/// A foreign data wrapper of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapper {
    /// `cstore_fdw`.
    ColumnFile,
    /// `parquet_fdw`.
    Parquet,
}

/// Of each wrapper the address of a callback that no other wrapper has.
static MARKS: OnceLock<[(usize, Wrapper); 2]> = OnceLock::new();

/// Notes by which address of `GetForeignRelSize` each wrapper is known.
pub fn register(marks: [(usize, Wrapper); 2]) {
    let _ = MARKS.set(marks);
    error::register_files(name_of);
}

/// Is this open relation a foreign table over a column file?
pub fn is_column_file(rel: Open) -> bool {
    wrapper_of(rel) == Some(Wrapper::ColumnFile)
}

/// The wrapper of ours that this open relation is a foreign table of.
pub fn wrapper_of(rel: Open) -> Option<Wrapper> {
    if rel.kind() != pg_sys::RELKIND_FOREIGN_TABLE {
        return None;
    }
    // SAFETY: the relation is open; the server keeps the wrapper's routine with it. A wrapper may have none.
    unsafe {
        let server = pg_sys::GetForeignServer(pg_sys::GetForeignServerIdByRelId(rel.oid()));
        let wrapper = pg_sys::GetForeignDataWrapper((*server).fdwid);
        if (*wrapper).fdwhandler == Oid::INVALID {
            return None;
        }
        wrapper_by(pg_sys::GetFdwRoutineForRelation(rel.as_ptr(), false))
    }
}

/// The wrapper of ours that has this routine.
///
/// # Safety
/// A routine that a wrapper's handler made, or null.
pub unsafe fn wrapper_by(routine: *const pg_sys::FdwRoutine) -> Option<Wrapper> {
    // SAFETY: the caller's promise.
    let mark = unsafe { routine.as_ref() }.and_then(|routine| routine.GetForeignRelSize)? as usize;
    MARKS.get()?.iter().find(|(own, _)| *own == mark).map(|(_, wrapper)| *wrapper)
}
