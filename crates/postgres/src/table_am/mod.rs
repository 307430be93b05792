//! The access method `colcompress`: a heap with stripes.
//!
//! One file per verb. The routine starts as a copy of heap's, so that hot rows are PostgreSQL's own business; each
//! verb replaces the callbacks that must know about cold rows. Callbacks that hand hot rows through do nothing that
//! could need unwinding on that path, and leave everything else to guarded functions.

use std::sync::OnceLock;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, TableAmRoutine};

mod insert;
mod merge;
pub mod tid;

struct Routine(TableAmRoutine);
// SAFETY: the routine is written once and only read afterwards; a backend has one thread that calls it.
unsafe impl Send for Routine {}
// SAFETY: as above.
unsafe impl Sync for Routine {}

/// Heap's own routine.
pub fn heap() -> &'static TableAmRoutine {
    static HEAP: OnceLock<&'static TableAmRoutine> = OnceLock::new();
    // SAFETY: the server returns the address of a constant.
    HEAP.get_or_init(|| unsafe { &*pg_sys::GetHeapamTableAmRoutine() })
}

/// The routine of `colcompress`. The relation cache keeps the pointer for the life of the backend.
pub fn routine() -> &'static TableAmRoutine {
    static ROUTINE: OnceLock<Routine> = OnceLock::new();
    &ROUTINE
        .get_or_init(|| {
            let mut routine = *heap();
            routine.tuple_insert = Some(insert::tuple_insert);
            routine.multi_insert = Some(insert::multi_insert);
            routine.tuple_insert_speculative = Some(insert::tuple_insert_speculative);
            routine.finish_bulk_insert = Some(insert::finish_bulk_insert);
            Routine(routine)
        })
        .0
}

crate::sql_function!(pg_finfo_colcompress_handler);

/// `engine.colcompress_handler(internal)`.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn colcompress_handler(_fcinfo: FunctionCallInfo) -> Datum {
    Datum::from(std::ptr::from_ref(routine()) as usize)
}
