//! Places where the code waits for tests, so that others can come in between.

use std::ffi::c_int;

use pgrx::pg_sys;

/// Waits until nobody holds the advisory lock with this key, as the function pg_advisory_lock(bigint) has it.
///
/// # Safety
/// No content lock is held.
pub unsafe fn wait(key: u32) {
    let tag = pg_sys::LOCKTAG {
        // SAFETY: a constant of the backend.
        locktag_field1: unsafe { pg_sys::MyDatabaseId.into() },
        locktag_field2: 0,
        locktag_field3: key,
        locktag_field4: 1,
        locktag_type: pg_sys::LockTagType::LOCKTAG_ADVISORY as u8,
        locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8,
    };
    // SAFETY: a lock of this transaction, given back at once.
    unsafe {
        let mode = pg_sys::ShareLock as c_int;
        pg_sys::LockAcquire(&raw const tag, mode, false, false);
        pg_sys::LockRelease(&raw const tag, mode, false);
    }
}
