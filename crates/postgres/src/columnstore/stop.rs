//! Where the code stops for tests, so that others can come in between.

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};

use crate::host::test_stop;

static STOP_AT: GucSetting<i32> = GucSetting::<i32>::new(0);

/// A place to stop at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A scan has looked at the visibility map, and will look at the index's map.
    Looked = 1,
    /// The blocks of a copy are chosen, and none is read.
    Chosen = 2,
    /// The copy is written, and does not count yet.
    Written = 3,
    /// A scan knows where it reads what, and has read nothing.
    Judged = 4,
}

/// Defines the setting.
pub fn register() {
    GucRegistry::define_int_guc(
        c"colonnade.columnstore_stop_at",
        c"Step after which a columnstore index waits for a shared advisory lock on 55436, for tests.",
        c"1: a scan has read the visibility map, 2: blocks are chosen, 3: their copy is written, 4: a scan has judged all blocks; 0: it does not wait.",
        &STOP_AT,
        0,
        4,
        GucContext::Suset,
        GucFlags::NO_SHOW_ALL | GucFlags::SUPERUSER_ONLY,
    );
}

/// Waits here if the session asks for it.
///
/// # Safety
/// No content lock is held.
pub unsafe fn after(step: Step) {
    if STOP_AT.get() == step as i32 {
        // SAFETY: the caller's promise.
        unsafe { test_stop::wait(55_436) };
    }
}
