//! Replication slots.

use pgrx::pg_sys;

use super::server_locks::{REPLICATION_SLOT_LOCK, main_lock};
use crate::compat;

/// A logical replication slot of this database whose output plugin does not go by publications.
#[derive(Clone, PartialEq, Eq)]
pub struct DecodingSlot {
    /// Its name.
    pub name: String,
    /// Its output plugin; empty while the slot is being made.
    pub plugin: String,
}

/// The logical replication slots of this database whose output plugins do not go by publications, at most
/// `limit` of them. A slot without a plugin yet is among them. An invalidated slot, which nobody can read any
/// more, is not. This only looks at shared memory.
pub fn decoding_slots(limit: usize) -> Vec<DecodingSlot> {
    // SAFETY: the server's array of slots, under the lock that keeps slots from coming and going.
    unsafe {
        if pg_sys::wal_level < pg_sys::WalLevel::WAL_LEVEL_LOGICAL as i32 {
            return Vec::new();
        }
        let count = usize::try_from(pg_sys::max_replication_slots).unwrap_or(0);
        let first =
            (&raw mut (*pg_sys::ReplicationSlotCtl).replication_slots).cast::<pg_sys::ReplicationSlot>();
        let text = |name: &pg_sys::NameData| {
            let bytes = name.data.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0);
            String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
        };
        let lock = main_lock(REPLICATION_SLOT_LOCK);
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_SHARED);
        let slots = (0..count).map(|at| first.add(at)).filter_map(|slot| {
            let data = &(*slot).data;
            if !(*slot).in_use || data.database != pg_sys::MyDatabaseId || compat::is_invalid(data) {
                return None;
            }
            let plugin = text(&data.plugin);
            (plugin != "pgoutput").then(|| DecodingSlot { name: text(&data.name), plugin })
        });
        let found = slots.take(limit).collect();
        pg_sys::LWLockRelease(lock);
        found
    }
}
