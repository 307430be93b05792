//! What the present transaction has done, counted when it commits.
//!
//! A mover calls `count` while it holds its table's lock. The callback of the commit comes before the lock is
//! given back. A rollback forgets the numbers. Movers run outside subtransactions.
//!
//! The worker and CALL also add up what one round of a table has done, for the round's line in the log.

use std::cell::{Cell, RefCell};

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Oid, XactEvent};

use super::{SHARED, SUMS, Sum, add_sums, end_call, file};
use crate::host::relation::Open;

/// Sums by their numbers.
pub(in crate::table_am::packing) type Done = [u64; SUMS];

/// Heap rows that batches have found and not moved.
#[derive(Clone, Copy, Default)]
pub(in crate::table_am::packing) struct Waiting {
    /// Too few for a stripe.
    pub movable: u64,
    /// Some snapshot does not see them, or may see a version that they replaced.
    pub young: u64,
    /// Somebody has locked them.
    pub locked: u64,
}

thread_local! {
    static PENDING: RefCell<Vec<(Oid, Done)>> = const { RefCell::new(Vec::new()) };
    static ROUND: Cell<Done> = const { Cell::new([0; SUMS]) };
    static WAITING: Cell<Waiting> = const { Cell::new(Waiting { movable: 0, young: 0, locked: 0 }) };
}

/// Asks for the shared memory and registers the callback.
///
/// # Safety
/// Runs once, while the server preloads the library.
pub(in crate::table_am::packing) unsafe fn register() {
    // SAFETY: numbers only; a plain registration.
    unsafe {
        SHARED.register_and(file::begin);
        pg_sys::RegisterXactCallback(Some(transaction_event), std::ptr::null_mut());
    }
}

/// The present transaction has done this to a table on which it holds a lock.
pub(in crate::table_am::packing) fn count(rel: Open, done: &[(Sum, u64)]) {
    let table = rel.oid();
    PENDING.with_borrow_mut(|pending| {
        let at = pending.iter().position(|(known, _)| *known == table).unwrap_or_else(|| {
            pending.push((table, [0; SUMS]));
            pending.len() - 1
        });
        if let Some((_, sums)) = pending.get_mut(at) {
            add(sums, done);
        }
    });
}

fn add(sums: &mut Done, done: &[(Sum, u64)]) {
    for &(sum, value) in done {
        if let Some(to) = sums.get_mut(sum as usize) {
            *to = to.saturating_add(value);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn transaction_event(event: XactEvent::Type, _arg: *mut std::ffi::c_void) {
    if event == XactEvent::XACT_EVENT_COMMIT {
        for (table, done) in PENDING.take() {
            add_sums(table, &done);
            let mut round = ROUND.get();
            round.iter_mut().zip(done).for_each(|(sum, value)| *sum += value);
            ROUND.set(round);
        }
    } else if matches!(event, XactEvent::XACT_EVENT_ABORT | XactEvent::XACT_EVENT_PREPARE) {
        PENDING.take();
        end_call();
    }
}

/// A round of one table begins.
pub(in crate::table_am::packing) fn begin_round() {
    ROUND.set([0; SUMS]);
    WAITING.set(Waiting::default());
}

/// What the round has done and committed.
pub(in crate::table_am::packing) fn end_round() -> Done {
    ROUND.get()
}

/// A batch has found these rows and left them.
pub(in crate::table_am::packing) fn find_waiting(movable: usize, young: u64, locked: u64) {
    let before = WAITING.get();
    WAITING.set(Waiting {
        movable: movable as u64,
        young: before.young + young,
        locked: before.locked + locked,
    });
}

/// What batches of this round have found and left.
pub(in crate::table_am::packing) fn found_waiting() -> Waiting {
    WAITING.get()
}
