//! Which columns a scan of the server's looks at, so that fetching a cold row decodes no others.
//!
//! The access method is handed a slot and not told what the plan will read of it. `hooks` notes here, when a
//! plan starts, what the target list and the conditions of an index, bitmap, sequential or sample scan
//! mention; `cold_rows` and `cold_fetch` ask before they decode. An index-only scan wants no column: it
//! fetches to learn whether the row is visible. A nested loop's inner scan need not read what the loop does
//! not look at (the key), though it is in its target list; nor a sample scan what an aggregation over it does
//! not. What only the condition of a bitmap mentions is read where that has to be looked at again, as its
//! blocks say.
//! Invariant: a note is looked at only for slots with our flag, which are those it was made for; everybody
//! else gets every column. Columns not wanted read as NULL.

use std::cell::RefCell;

use pgrx::pg_sys::{self, TupleTableSlot};

use crate::host::numbers::NumberMap;
use crate::host::{memory, relation};

/// Our own bit in a slot's flags: there is a note about it.
const SLOT_WANTS_SOME: u16 = 1 << 13;

/// When a column is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    Never,
    /// Where the condition that found the row is looked at again.
    Rechecked,
    Always,
}

thread_local! {
    static NOTES: RefCell<NumberMap<usize, Vec<Read>>> = RefCell::new(NumberMap::default());
}

/// Takes the note away together with the slot's memory.
struct Note(usize);

impl Drop for Note {
    fn drop(&mut self) {
        let _ = NOTES.try_with(|notes| notes.borrow_mut().remove(&self.0));
    }
}

/// Whether there is a note about a slot.
///
/// # Safety
/// A live slot.
pub unsafe fn is_noted(slot: *mut TupleTableSlot) -> bool {
    // SAFETY: the caller's promise.
    unsafe { (*slot).tts_flags & SLOT_WANTS_SOME != 0 }
}

/// Notes that of `slot` only the columns in `attributes` (the server's shifted set) will be read, and those
/// in `rechecked` where a condition is looked at again.
///
/// # Safety
/// A slot of a plan that has been initialised and has not run.
pub unsafe fn note(
    slot: *mut TupleTableSlot,
    attributes: *mut pg_sys::Bitmapset,
    rechecked: *mut pg_sys::Bitmapset,
) {
    // SAFETY: the caller's promise; the context that the slot lives in takes the note with it.
    unsafe {
        let read = |attno: i32| {
            if relation::has_attribute(attributes, attno) {
                return Read::Always;
            }
            if relation::has_attribute(rechecked, attno) { Read::Rechecked } else { Read::Never }
        };
        // A whole row.
        if read(0) != Read::Never || is_noted(slot) {
            return;
        }
        let wanted: Vec<Read> = (1..=(*(*slot).tts_tupleDescriptor).natts).map(read).collect();
        let before = pg_sys::MemoryContextSwitchTo((*slot).tts_mcxt);
        memory::leak_into_current_context(Note(slot.addr()));
        pg_sys::MemoryContextSwitchTo(before);
        NOTES.with_borrow_mut(|notes| notes.insert(slot.addr(), wanted));
        (*slot).tts_flags |= SLOT_WANTS_SOME;
    }
}

/// The columns of `slot` that will be read, whether or not a condition is looked at again; None: all.
///
/// # Safety
/// A live slot.
pub(super) unsafe fn of(slot: *mut TupleTableSlot, recheck: bool) -> Option<Vec<bool>> {
    // SAFETY: the caller's promise.
    if !unsafe { is_noted(slot) } {
        return None;
    }
    let wanted = |read: &Read| *read == Read::Always || (recheck && *read == Read::Rechecked);
    NOTES.with_borrow(|notes| notes.get(&slot.addr()).map(|note| note.iter().map(wanted).collect()))
}
