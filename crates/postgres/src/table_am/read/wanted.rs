//! Which columns a scan of the server's looks at, so that fetching a cold row decodes no others.
//!
//! The access method is handed a slot and not told which columns the plan will read. So `hooks` leaves a note
//! here when a plan starts, and `cold_rows` and `cold_fetch` look at it before they decode. A note names the
//! columns in the target list and the conditions of an index, bitmap, sequential or sample scan. There are
//! four special cases:
//! - An index-only scan wants no column: it fetches a row only to learn whether it is visible.
//! - The inner scan of a nested loop may have columns in its target list that the loop does not look at (the
//!   key). They are not wanted.
//! - Neither are columns of a sample scan that an aggregation over it does not look at.
//! - A column that only the condition of a bitmap mentions is read only for blocks whose condition is
//!   rechecked.
//!
//! Invariant: a note is looked at only for slots with our flag, and these are the slots that it was made for.
//! All other slots get every column. Columns that are not wanted read as NULL.

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
    /// If the condition that found the row is rechecked.
    Rechecked,
    Always,
}

thread_local! {
    static NOTES: RefCell<NumberMap<usize, Vec<Read>>> = RefCell::new(NumberMap::default());
}

/// Removes the note when the slot's memory is freed.
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

/// Notes that only the columns of `slot` in `attributes` (the server's shifted set) will be read, and those
/// in `rechecked` if a condition is rechecked.
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
        // The plan reads the whole row.
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

/// The columns of `slot` that will be read. `recheck`: a condition is rechecked. None: all columns.
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
