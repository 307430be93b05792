//! Which tables have a columnstore index: asked of each heap table in each statement that is planned.
//!
//! Answers are kept by table, until the server says that something of the table has changed.

use std::cell::{Cell, RefCell};

use pgrx::pg_sys::{self, Datum, Oid};

use super::access_method;
use crate::host::numbers::NumberMap;
use crate::host::relation::Open;

/// If more answers are kept than these, all are forgotten.
const MOST_KEPT: usize = 10_000;

thread_local! {
    static KNOWN: RefCell<NumberMap<u32, bool>> = RefCell::default();
    static WATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Whether a table has a columnstore index, valid or not.
pub fn has_index(table: Open) -> bool {
    if !table.may_have_indexes() {
        return false;
    }
    let key = table.oid().to_u32();
    if let Some(known) = KNOWN.with_borrow(|known| known.get(&key).copied()) {
        return known;
    }
    // Nothing is borrowed while the server is called. Whoever changes the table's indexes tells everybody
    // after it was locked here, so an answer that is kept is of now.
    if !WATCHING.replace(true) {
        // SAFETY: registered once per backend.
        unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(changed), Datum::from(0usize)) };
    }
    let ours = access_method::oid();
    let found = ours != Oid::INVALID
        && table.indexes().into_iter().any(|index| access_method::method_of(index) == ours);
    KNOWN.with_borrow_mut(|known| {
        if known.len() >= MOST_KEPT {
            known.clear();
        }
        known.insert(key, found);
    });
    found
}

/// The server's call. An invalid OID means any relation.
unsafe extern "C-unwind" fn changed(_argument: Datum, relation: Oid) {
    let _ = KNOWN.try_with(|known| {
        if let Ok(mut known) = known.try_borrow_mut() {
            match relation == Oid::INVALID {
                true => known.clear(),
                false => {
                    known.remove(&relation.to_u32());
                }
            }
        }
    });
}
