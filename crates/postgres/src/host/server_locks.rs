//! The server's own locks, locks that this session holds, and what processes say about
//! themselves.

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::{self, BlockNumber, TransactionId};

use crate::compat;

mod c {
    use pgrx::pg_sys::LOCKTAG;
    use std::ffi::c_int;
    unsafe extern "C-unwind" {
        pub fn LockHasWaiters(tag: *const LOCKTAG, mode: c_int, session: bool) -> bool;
    }
}

/// Place of AddinShmemInitLock among the server's locks.
pub const SHMEM_INIT_LOCK: usize = 21;

/// Place of ProcArrayLock.
const PROC_ARRAY_LOCK: usize = 4;

/// Place of ReplicationSlotControlLock.
pub(super) const REPLICATION_SLOT_LOCK: usize = 37;

/// One of the server's own locks, by its place.
pub unsafe fn main_lock(place: usize) -> *mut pg_sys::LWLock {
    // SAFETY: the places above are those of the server's list.
    unsafe { &raw mut (*pg_sys::MainLWLockArray.add(place)).lock }
}

/// Declares this process one that does maintenance. A process that waits for it longer than
/// `deadlock_timeout` interrupts it (SIGINT), and one that needs the database for itself ends it, as it would
/// end autovacuum's.
pub unsafe fn declare_maintenance() {
    // SAFETY: as the server sets the flags of its own processes.
    unsafe {
        let lock = main_lock(PROC_ARRAY_LOCK);
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let me = pg_sys::MyProc;
        (*me).statusFlags |= pg_sys::PROC_IS_AUTOVACUUM as u8;
        if let Ok(at) = usize::try_from((*me).pgxactoff) {
            *(*pg_sys::ProcGlobal).statusFlags.add(at) = (*me).statusFlags;
        }
        pg_sys::LWLockRelease(lock);
    }
}

/// A transaction: all snapshots of other sessions that read tables of this database see what was committed
/// before it, standbys' included. The caller asks about transactions that have ended. So each snapshot that
/// does not see one shows it by its xmin.
pub unsafe fn oldest_xmin_of_others() -> TransactionId {
    // SAFETY: the server's array of processes, under the lock that snapshots are taken under; single numbers
    // are read at once.
    unsafe {
        let mut oldest = pg_sys::ReadNextTransactionId();
        let lock = main_lock(PROC_ARRAY_LOCK);
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_SHARED);
        let count = (*pg_sys::ProcGlobal).allProcCount as usize;
        for at in 0..count {
            let process = (*pg_sys::ProcGlobal).allProcs.add(at);
            let (xmin, flags) =
                ((&raw const (*process).xmin).read_volatile(), u32::from((*process).statusFlags));
            let database = (*process).databaseId;
            let elsewhere = database != pg_sys::MyDatabaseId
                && database != pg_sys::Oid::INVALID
                && flags & pg_sys::PROC_AFFECTS_ALL_HORIZONS == 0;
            let ignored = pg_sys::PROC_IN_VACUUM | pg_sys::PROC_IN_LOGICAL_DECODING;
            if process == pg_sys::MyProc || elsewhere || flags & ignored != 0 {
                continue;
            }
            oldest = pg_sys::TransactionIdOlder(oldest, xmin);
        }
        pg_sys::LWLockRelease(lock);
        let (mut slots, mut catalogs) = (pg_sys::InvalidTransactionId, pg_sys::InvalidTransactionId);
        pg_sys::ProcArrayGetReplicationSlotXmin(&raw mut slots, &raw mut catalogs);
        pg_sys::TransactionIdOlder(oldest, slots)
    }
}

/// Whether this session holds just this lock on a table of its database.
pub fn holds_lock(table: pg_sys::Oid, mode: u32) -> bool {
    holds(table, 0, pg_sys::LockTagType::LOCKTAG_RELATION, mode)
}

/// Whether this session holds just this lock on a page of a table of its database.
pub fn holds_page_lock(table: pg_sys::Oid, block: BlockNumber, mode: u32) -> bool {
    holds(table, block, pg_sys::LockTagType::LOCKTAG_PAGE, mode)
}

/// Whether somebody waits for a page lock on a table of this database that this session holds in just this
/// mode.
pub unsafe fn page_lock_has_waiters(table: pg_sys::Oid, block: BlockNumber, mode: u32) -> bool {
    // SAFETY: as above.
    unsafe {
        let tag = lock_tag(table, block, pg_sys::LockTagType::LOCKTAG_PAGE);
        pg_guard_ffi_boundary(|| c::LockHasWaiters(&raw const tag, mode as i32, false))
    }
}

fn holds(table: pg_sys::Oid, block: BlockNumber, kind: pg_sys::LockTagType::Type, mode: u32) -> bool {
    // SAFETY: the callers' promise.
    unsafe {
        let tag = lock_tag(table, block, kind);
        pg_guard_ffi_boundary(|| compat::holds_lock(&tag, mode as i32))
    }
}

/// What the server calls the lock on a table of this database.
pub fn relation_tag(table: pg_sys::Oid) -> pg_sys::LOCKTAG {
    // SAFETY: a plain number of the server's.
    unsafe { lock_tag(table, 0, pg_sys::LockTagType::LOCKTAG_RELATION) }
}

unsafe fn lock_tag(
    table: pg_sys::Oid,
    block: BlockNumber,
    kind: pg_sys::LockTagType::Type,
) -> pg_sys::LOCKTAG {
    pg_sys::LOCKTAG {
        // SAFETY: a plain number of the server's.
        locktag_field1: unsafe { pg_sys::MyDatabaseId }.into(),
        locktag_field2: table.into(),
        locktag_field3: block,
        locktag_field4: 0,
        locktag_type: kind as u8,
        locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
    }
}

/// Takes the lock on a database that a session takes when it connects, if it gets it at once. Holds it to the
/// end of the transaction.
pub unsafe fn lock_database_if_free(database: pg_sys::Oid) -> bool {
    let tag = pg_sys::LOCKTAG {
        // The lock is on a shared object, which belongs to no database.
        locktag_field1: 0,
        locktag_field2: pg_sys::DatabaseRelationId.to_u32(),
        locktag_field3: database.to_u32(),
        locktag_field4: 0,
        locktag_type: pg_sys::LockTagType::LOCKTAG_OBJECT as u8,
        locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
    };
    // SAFETY: in a transaction; the tag names a database.
    unsafe {
        let got = pg_sys::LockAcquire(&raw const tag, pg_sys::RowExclusiveLock as i32, false, true);
        got != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL
    }
}
