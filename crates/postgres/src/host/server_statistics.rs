//! The cumulative statistics, and what a process has used.

use pgrx::pg_sys;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;

use super::relation::Open;
use crate::compat;

/// Sets in the shared statistics how many live and dead rows a table has. Before that, this backend reports
/// what it has counted and not reported yet. Does nothing if there is no entry.
pub fn set_row_counts(rel: Open, live: i64, dead: i64) {
    /// The first fields of PgStat_EntryRef (utils/pgstat_internal.h).
    #[repr(C)]
    struct EntryRef {
        hash_entry: *mut std::ffi::c_void,
        shared: *mut SharedRelation,
    }
    /// PgStatShared_Relation.
    #[repr(C)]
    struct SharedRelation {
        magic: u32,
        lock: pg_sys::LWLock,
        counts: pg_sys::PgStat_StatTabEntry,
    }
    unsafe extern "C-unwind" {
        fn pgstat_get_entry_ref_locked(
            kind: i32,
            database: pg_sys::Oid,
            object: pg_sys::Oid,
            nowait: bool,
        ) -> *mut EntryRef;
        fn pgstat_unlock_entry(entry: *mut EntryRef);
    }
    /// PGSTAT_KIND_RELATION.
    const RELATION: i32 = 2;
    // SAFETY: calls into the server, guarded so that an ERROR unwinds; between lock and unlock are stores
    // only.
    unsafe {
        let info = (*rel.as_ptr()).pgstat_info;
        if info.is_null() && !(*rel.as_ptr()).pgstat_enabled {
            return;
        }
        let untold = if info.is_null() { (0, 0) } else { compat::pending_rows(&*info) };
        pg_guard_ffi_boundary(|| {
            let database =
                if (*rel.form()).relisshared { pg_sys::Oid::INVALID } else { pg_sys::MyDatabaseId };
            let entry = pgstat_get_entry_ref_locked(RELATION, database, rel.oid(), false);
            if !entry.is_null() {
                let counts = &raw mut (*(*entry).shared).counts;
                compat::set_rows(&mut *counts, live - untold.0, dead - untold.1);
                pgstat_unlock_entry(entry);
            }
        });
        pg_sys::pgstat_force_next_flush();
    }
}

/// The resources that a process has used since some moment, as the server's log shows them.
pub struct Usage([u64; 32]);

mod usage {
    unsafe extern "C-unwind" {
        pub fn pg_rusage_init(usage: *mut u64);
        pub fn pg_rusage_show(usage: *const u64) -> *const std::ffi::c_char;
    }
}

impl Usage {
    /// Begins to count now.
    pub unsafe fn now() -> Self {
        let mut usage = [0; 32];
        // SAFETY: the server's struct is a timeval and a rusage, 160 bytes; neither call raises an ERROR.
        unsafe { usage::pg_rusage_init(usage.as_mut_ptr()) };
        Self(usage)
    }

    /// The usage as text, in the server's words.
    pub unsafe fn show(&self) -> String {
        // SAFETY: as above; a string of the server's that lasts until the next call.
        unsafe {
            std::ffi::CStr::from_ptr(usage::pg_rusage_show(self.0.as_ptr())).to_string_lossy().into_owned()
        }
    }
}

/// Pages that this backend has read from outside its buffers, of tables that others see and of its own.
pub fn pages_read() -> i64 {
    // SAFETY: plain counters of this process.
    unsafe {
        let usage = &raw const pg_sys::pgBufferUsage;
        (*usage).shared_blks_read + (*usage).local_blks_read
    }
}
