//! Who has locked or updated a tuple, as its xmax and bits tell, and what they say once one more has locked it.
//!
//! Called by `row_proxy` and `table_am::successor_locks`. The encoding is the server's (htup_details.h, multixact.h): a transaction id with bits that say what it
//! has done, or a MultiXact of several. Invariant: where a transaction that has updated the tuple and not rolled back is among them, it stays.

use pgrx::pg_sys::{self, HeapTupleHeader, MultiXactMember, MultiXactStatus, TransactionId};

/// What a tuple says of who has locked or updated it.
pub struct Xmax {
    pub xid: TransactionId,
    pub infomask: u16,
    pub infomask2: u16,
}

/// Who is named, running or not.
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
        vec![MultiXactMember { xid: xmax, status }]
    }
}

/// Whether bits without HEAP_XMAX_INVALID speak of locks only.
pub fn is_locked_only(bits: u32) -> bool {
    let exclusive = pg_sys::HEAP_XMAX_IS_MULTI | pg_sys::HEAP_LOCK_MASK;
    bits & pg_sys::HEAP_XMAX_LOCK_ONLY != 0 || bits & exclusive == pg_sys::HEAP_XMAX_EXCL_LOCK
}

unsafe fn members(multi: TransactionId, locked_only: bool) -> Vec<MultiXactMember> {
    // SAFETY: the server's array is copied and freed.
    unsafe {
        let mut found: *mut MultiXactMember = std::ptr::null_mut();
        let count = pg_sys::GetMultiXactIdMembers(multi, &raw mut found, false, locked_only);
        let Ok(count @ 1..) = usize::try_from(count) else { return Vec::new() };
        let copy = std::slice::from_raw_parts(found, count).to_vec();
        pg_sys::pfree(found.cast());
        copy
    }
}

/// The tuple's xmax once `locker` has locked it FOR KEY SHARE, too; None where it has done that already, or more.
pub unsafe fn with_key_share(header: HeapTupleHeader, locker: TransactionId) -> Option<Xmax> {
    // SAFETY: the tuple's page is locked exclusively, and `MultiXactIdSetOldestMember` has been called. "Running" is asked before "committed".
    unsafe {
        let bits = u32::from((*header).t_infomask);
        let raw = (*header).t_choice.t_heap.t_xmax;
        let own = MultiXactStatus::MultiXactStatusForKeyShare;
        let named = holders(header);
        if named.iter().any(|member| member.xid == locker) {
            return None;
        }
        let stays = |member: &&MultiXactMember| {
            let updates = member.status >= MultiXactStatus::MultiXactStatusNoKeyUpdate;
            pg_sys::TransactionIdIsInProgress(member.xid)
                || (updates && pg_sys::TransactionIdDidCommit(member.xid))
        };
        let multi = match named.iter().find(stays) {
            None => {
                let lock = pg_sys::HEAP_XMAX_KEYSHR_LOCK | pg_sys::HEAP_XMAX_LOCK_ONLY;
                return Some(Xmax { xid: locker, infomask: lock as u16, infomask2: 0 });
            }
            Some(_) if bits & pg_sys::HEAP_XMAX_IS_MULTI != 0 => pg_sys::MultiXactIdExpand(raw, locker, own),
            Some(one) => pg_sys::MultiXactIdCreate(one.xid, one.status, locker, own),
        };
        let (infomask, infomask2) = hint_bits(&members(multi, false));
        Some(Xmax { xid: multi, infomask, infomask2 })
    }
}

/// What the bits of a tuple say of a MultiXact of these.
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
