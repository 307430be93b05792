//! The transactions that have locked or updated a tuple, as its xmax and bits tell. Also computes the xmax
//! and bits for one more locker.
//!
//! Called by `row_proxy` and `table_am::change::successor_locks`. The encoding is the server's
//! (htup_details.h, multixact.h): a transaction id with bits that say what it has done, or a MultiXact of
//! several.
//!
//! Invariant: a transaction that has updated the tuple and was not rolled back stays among them.

use pgrx::pg_sys::{self, HeapTupleHeader, MultiXactMember, MultiXactStatus, TransactionId};

use crate::host::error;
use crate::host::heap_tuple::is_locked_only;

/// What a tuple says about the transactions that have locked or updated it.
pub struct Xmax {
    pub xid: TransactionId,
    pub infomask: u16,
    pub infomask2: u16,
}

/// The transactions that the tuple names, running or not.
pub unsafe fn holders(header: HeapTupleHeader) -> Vec<MultiXactMember> {
    // SAFETY: the tuple is the caller's, or its page is locked.
    unsafe {
        let bits = u32::from((*header).t_infomask);
        let xmax = (*header).t_choice.t_heap.t_xmax;
        if bits & pg_sys::HEAP_XMAX_INVALID != 0 {
            return Vec::new();
        }
        if bits & pg_sys::HEAP_XMAX_IS_MULTI != 0 {
            return members(xmax, is_locked_only(bits));
        }
        let strongest = u32::from((*header).t_infomask2) & pg_sys::HEAP_KEYS_UPDATED != 0;
        let status = match (is_locked_only(bits), bits & pg_sys::HEAP_LOCK_MASK) {
            (false, _) if strongest => MultiXactStatus::MultiXactStatusUpdate,
            (false, _) => MultiXactStatus::MultiXactStatusNoKeyUpdate,
            (true, pg_sys::HEAP_XMAX_KEYSHR_LOCK) => MultiXactStatus::MultiXactStatusForKeyShare,
            (true, pg_sys::HEAP_XMAX_SHR_LOCK) => MultiXactStatus::MultiXactStatusForShare,
            (true, _) if strongest => MultiXactStatus::MultiXactStatusForUpdate,
            (true, _) => MultiXactStatus::MultiXactStatusForNoKeyUpdate,
        };
        let mut one = Vec::new();
        reserve(&mut one, 1);
        one.push(MultiXactMember { xid: xmax, status });
        one
    }
}

/// Makes room for this many more members. Raises an ERROR if there is no memory.
fn reserve(members: &mut Vec<MultiXactMember>, count: usize) {
    if members.try_reserve_exact(count).is_err() {
        error::raise_plain(vector::Error::OutOfMemory { bytes: count * size_of::<MultiXactMember>() });
    }
}

fn members(multi: TransactionId, locked_only: bool) -> Vec<MultiXactMember> {
    // SAFETY: the server's array is copied and freed.
    unsafe {
        let mut found: *mut MultiXactMember = std::ptr::null_mut();
        let count = pg_sys::GetMultiXactIdMembers(multi, &raw mut found, false, locked_only);
        let Ok(count @ 1..) = usize::try_from(count) else { return Vec::new() };
        let mut copy = Vec::new();
        reserve(&mut copy, count);
        copy.extend_from_slice(std::slice::from_raw_parts(found, count));
        pg_sys::pfree(found.cast());
        copy
    }
}

/// The tuple's xmax once these transactions have locked it FOR KEY SHARE, too. None if they all have such a
/// lock or a stronger one already.
pub unsafe fn with_key_share(header: HeapTupleHeader, lockers: &[TransactionId]) -> Option<Xmax> {
    // SAFETY: the tuple's page is locked exclusively, and `MultiXactIdSetOldestMember` has been called.
    // "Running" is asked before "committed".
    unsafe {
        let mut named = holders(header);
        let new = |locker: &&TransactionId| !named.iter().any(|member| member.xid == **locker);
        let status = MultiXactStatus::MultiXactStatusForKeyShare;
        let mut members = Vec::new();
        reserve(&mut members, lockers.len() + named.len());
        members.extend(lockers.iter().filter(new).map(|&xid| MultiXactMember { xid, status }));
        if members.is_empty() {
            return None;
        }
        named.retain(|member| {
            let updates = member.status >= MultiXactStatus::MultiXactStatusNoKeyUpdate;
            pg_sys::TransactionIdIsInProgress(member.xid)
                || (updates && pg_sys::TransactionIdDidCommit(member.xid))
        });
        members.append(&mut named);
        if let [one] = members[..] {
            let lock = pg_sys::HEAP_XMAX_KEYSHR_LOCK | pg_sys::HEAP_XMAX_LOCK_ONLY;
            return Some(Xmax { xid: one.xid, infomask: lock as u16, infomask2: 0 });
        }
        let (infomask, infomask2) = hint_bits(&members);
        let xid = pg_sys::MultiXactIdCreateFromMembers(members.len() as i32, members.as_mut_ptr());
        Some(Xmax { xid, infomask, infomask2 })
    }
}

/// The bits of a tuple whose xmax is a MultiXact of these members.
fn hint_bits(members: &[MultiXactMember]) -> (u16, u16) {
    use MultiXactStatus::{
        MultiXactStatusForKeyShare, MultiXactStatusForShare, MultiXactStatusForUpdate,
        MultiXactStatusNoKeyUpdate, MultiXactStatusUpdate,
    };
    let any = |with: fn(u32) -> bool| members.iter().any(|member| with(member.status));
    let lock = if any(|status| status > MultiXactStatusForShare) {
        pg_sys::HEAP_XMAX_EXCL_LOCK
    } else if any(|status| status > MultiXactStatusForKeyShare) {
        pg_sys::HEAP_XMAX_SHR_LOCK
    } else {
        pg_sys::HEAP_XMAX_KEYSHR_LOCK
    };
    let updated = any(|status| status >= MultiXactStatusNoKeyUpdate);
    let only = if updated { 0 } else { pg_sys::HEAP_XMAX_LOCK_ONLY };
    let keys = any(|status| status == MultiXactStatusForUpdate || status == MultiXactStatusUpdate);
    let bits = pg_sys::HEAP_XMAX_IS_MULTI | lock | only;
    (bits as u16, if keys { pg_sys::HEAP_KEYS_UPDATED as u16 } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::{MultiXactMember, MultiXactStatus, hint_bits, is_locked_only, pg_sys};

    #[test]
    fn bits_say_what_the_strongest_member_does() {
        let of = |statuses: &[u32]| {
            let members: Vec<_> = statuses
                .iter()
                .map(|&status| MultiXactMember { status, ..MultiXactMember::default() })
                .collect();
            let (bits, bits2) = hint_bits(&members);
            (u32::from(bits) & !pg_sys::HEAP_XMAX_IS_MULTI, u32::from(bits2))
        };
        let only = pg_sys::HEAP_XMAX_LOCK_ONLY;
        let (key_share, share) =
            (MultiXactStatus::MultiXactStatusForKeyShare, MultiXactStatus::MultiXactStatusForShare);
        assert_eq!(of(&[key_share, key_share]), (only | pg_sys::HEAP_XMAX_KEYSHR_LOCK, 0));
        assert_eq!(of(&[key_share, share]), (only | pg_sys::HEAP_XMAX_SHR_LOCK, 0));
        let update = MultiXactStatus::MultiXactStatusNoKeyUpdate;
        assert_eq!(of(&[update, key_share]), (pg_sys::HEAP_XMAX_EXCL_LOCK, 0));
        let strongest = MultiXactStatus::MultiXactStatusForUpdate;
        assert_eq!(
            of(&[key_share, strongest]),
            (only | pg_sys::HEAP_XMAX_EXCL_LOCK, pg_sys::HEAP_KEYS_UPDATED)
        );
        assert!(
            is_locked_only(only | pg_sys::HEAP_XMAX_KEYSHR_LOCK)
                && !is_locked_only(pg_sys::HEAP_XMAX_COMMITTED)
        );
    }
}
