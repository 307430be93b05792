//! VACUUM.
//!
//! The steps, in this order:
//! 1. Heap's own vacuum treats the hot rows. Its truncation is always off, whatever the caller or a reloption
//!    says: trailing stripe pages look empty to it and would be cut off.
//! 2. The directory's pages are pruned of rows of replaced stripes (`old_versions`).
//! 3. Index entries of row numbers that are dead to everybody are removed, even if the rows are still in
//!    their stripes.
//! 4. Proxies that nobody needs are removed.
//! 5. Stripe pages that have lost their visibility bits get them back.
//! 6. Stripe pages that belong to nobody are freed.
//! 7. The end of the file is cut off (`storage::space::truncate`).
//! 8. The row counts in `pg_class` and in the server's statistics are corrected, as heap knows only a part of
//!    the rows (`vacuum_counts`).
//!
//! Invariant: an index entry is removed in two cases only. No version of any directory row has its number, or
//! its row is dead to every snapshot. Snapshots of standbys are included, once a conflict horizon is logged
//! (protocol point 8).

use std::ffi::c_void;

use pgrx::pg_guard;
use pgrx::pg_sys::{
    self, BufferAccessStrategy, IndexBulkDeleteResult, IndexVacuumInfo, ItemPointer, Relation, VacuumParams,
};
use stripe::RowNumbers;

use super::vacuum_counts::{Counts, Hidden};
use crate::compat;
use crate::host::heap_am::heap_guarded;
use crate::host::relation::Open;
use crate::host::wal;
use crate::storage::change::row_proxy;
use crate::storage::change::row_proxy::DeadToAll;
use crate::storage::directory::{self, old_versions};
use crate::storage::file::{metapage, tid};
use crate::storage::space::{free, restore_bits, truncate};

/// `relation_vacuum`.
#[pg_guard]
pub unsafe extern "C-unwind" fn relation_vacuum(
    rel: Relation,
    params: *mut VacuumParams,
    strategy: BufferAccessStrategy,
) {
    // SAFETY: as the server calls it, with ShareUpdateExclusiveLock in a transaction of its own.
    unsafe {
        let rel = Open::of(rel);
        let mut counts = Counts::before(rel);
        let mut own = *params;
        own.truncate = pg_sys::VacOptValue::VACOPTVALUE_DISABLED;
        let hidden = Hidden::of(rel);
        heap_guarded!(relation_vacuum(rel.as_ptr(), &raw mut own, strategy));
        drop(hidden);
        counts.take_back(rel);
        if let Some(storage_id) = metapage::storage_id(rel) {
            old_versions::prune(storage_id);
        }
        if (*params).index_cleanup != pg_sys::VacOptValue::VACOPTVALUE_DISABLED {
            sweep_indexes(rel, &mut counts, strategy);
        }
        if let Some(storage_id) = metapage::storage_id(rel) {
            row_proxy::remove_unused(rel, storage_id, strategy);
        }
        restore_bits::restore(rel, strategy);
        let freed = free::reclaim(rel, strategy);
        if freed > 0 {
            pgrx::debug1!("freed {freed} stripe pages that belonged to nobody");
        }
        let cut = (*params).truncate == pg_sys::VacOptValue::VACOPTVALUE_ENABLED && truncate::tail(rel) > 0;
        counts.correct(rel, cut, strategy);
    }
}

/// Row numbers whose index entries may go, for the callback of the index pass.
struct Dead {
    numbers: RowNumbers,
    /// Rows that are in use and dead to everybody.
    rows: DeadToAll,
}

impl Dead {
    fn has(&self, row: u64) -> bool {
        self.numbers.is_gone(row) || self.rows.contains(row)
    }

    /// A number that tells one set of dead row numbers from another. 0 for the empty set. The count would not
    /// do. The numbers of a stripe that is just being written look dead until its directory row is there, and
    /// later other numbers may be as many.
    fn fingerprint(&self) -> u64 {
        let hash = self.numbers.gone().fold(0, |hash, (from, until)| mix(mix(hash ^ from) ^ until));
        // The sum does not depend on the order of the rows.
        self.rows.iter().fold(hash, |hash, row| hash.wrapping_add(mix(row)))
    }
}

/// A bijection that spreads every bit (the finaliser of SplitMix64).
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

unsafe extern "C-unwind" fn is_dead(tid: ItemPointer, state: *mut c_void) -> bool {
    // SAFETY: the state outlives the pass; nothing here allocates or raises an ERROR.
    unsafe { tid::row_of(*tid).is_some_and(|row| (*state.cast::<Dead>()).has(row)) }
}

/// Takes the entries of dead row numbers out of every index. The metapage remembers which numbers were dead
/// the last time. If no others have died since, nothing is done.
unsafe fn sweep_indexes(rel: Open, counts: &mut Counts, strategy: BufferAccessStrategy) {
    // SAFETY: the indexes are opened and closed here.
    unsafe {
        let Some((numbers, storage_id)) = directory::numbers_in_use(rel).zip(metapage::storage_id(rel))
        else {
            return;
        };
        let horizon = rel.oldest_xmin();
        let mut dead = Dead { numbers, rows: DeadToAll::of(storage_id, horizon) };
        if dead.fingerprint() == metapage::swept(rel) {
            return;
        }
        // Rows of the directory that its index has lost still count until they are pruned. Pruning ends
        // queries of standbys that see them.
        let forgotten = old_versions::holding_pages(storage_id, |entry| {
            dead.numbers.is_gone(entry.first_row) || dead.numbers.is_gone(entry.end_row().saturating_sub(1))
        });
        dead.numbers.add(forgotten.iter().map(|entry| (entry.first_row, entry.end_row())));
        let fingerprint = dead.fingerprint();
        if fingerprint == metapage::swept(rel) {
            return;
        }
        if dead.rows.newest != pg_sys::InvalidTransactionId && rel.needs_wal() {
            wal::log_conflict_horizon(rel, dead.rows.newest);
        }
        delete_entries(rel, &mut dead, counts, strategy);
        metapage::set_swept(rel, fingerprint, horizon);
    }
}

/// Deletes the entries of these row numbers, index by index.
unsafe fn delete_entries(rel: Open, dead: &mut Dead, counts: &mut Counts, strategy: BufferAccessStrategy) {
    // SAFETY: the indexes are opened and closed here; `dead` outlives the passes over them.
    unsafe {
        let mut count = 0;
        let mut indexes: *mut Relation = std::ptr::null_mut();
        pg_sys::vac_open_indexes(
            rel.as_ptr(),
            pg_sys::RowExclusiveLock as i32,
            &raw mut count,
            &raw mut indexes,
        );
        for at in 0..usize::try_from(count).unwrap_or(0) {
            let mut info = IndexVacuumInfo {
                index: *indexes.add(at),
                estimated_count: true,
                message_level: pg_sys::DEBUG2 as i32,
                num_heap_tuples: f64::from((*rel.form()).reltuples),
                strategy,
                ..IndexVacuumInfo::default()
            };
            compat::set_vacuumed_table(&mut info, rel.as_ptr());
            let state = std::ptr::from_mut(dead).cast();
            let none: *mut IndexBulkDeleteResult = std::ptr::null_mut();
            let result = pg_sys::index_bulk_delete(&raw mut info, none, Some(is_dead), state);
            let result = pg_sys::index_vacuum_cleanup(&raw mut info, result);
            if !result.is_null() {
                counts.swept((*info.index).rd_id, (*result).num_index_tuples, (*result).estimated_count);
            }
        }
        pg_sys::vac_close_indexes(count, indexes, pg_sys::NoLock as i32);
    }
}

#[cfg(test)]
mod tests {
    use super::{Dead, DeadToAll, RowNumbers};

    fn dead(counter: u64, in_use: &[(u64, u64)]) -> Dead {
        let numbers = RowNumbers::new(counter, in_use.to_vec());
        Dead { numbers, rows: DeadToAll::default() }
    }

    #[test]
    fn as_many_dead_numbers_are_not_the_same_numbers() {
        let all = [&[(1000, 3000)][..], &[(0, 1000), (2000, 3000)], &[(0, 2000)]];
        let [first, second, third] = all.map(|in_use| dead(3000, in_use));
        assert!(first.has(0) && second.has(1500) && third.has(2999));
        let prints = [first, second, third].map(|dead| dead.fingerprint());
        assert!(prints[0] != prints[1] && prints[1] != prints[2] && prints[0] != prints[2]);
    }

    #[test]
    fn live_numbers_leave_no_trace() {
        let print = |counter, in_use: &[(u64, u64)]| dead(counter, in_use).fingerprint();
        let gone = print(3000, &[(1000, 3000)]);
        assert_eq!(print(9000, &[(1000, 3000), (3000, 9000)]), gone);
        assert_eq!(print(3000, &[(1000, 2000), (2000, 3000), (1500, 1600)]), gone);
        assert_eq!(print(3000, &[(1000, 4000)]), gone);
        assert_eq!(print(3000, &[(0, 3000)]), 0);
        assert_eq!(print(0, &[]), 0);
    }
}
