//! Computes index entries for rows in a slot.
//!
//! Called by `build`, `validate` and `packing`. Holds the executor state for index expressions and the
//! predicate.

use pgrx::pg_sys::{self, Datum, IndexInfo, TupleTableSlot};

use crate::host::relation::Open;

/// The most columns of an index.
const COLUMNS: usize = pg_sys::INDEX_MAX_KEYS as usize;

/// Computes the entries of one index.
pub struct IndexRows {
    estate: *mut pg_sys::EState,
    context: *mut pg_sys::ExprContext,
    predicate: *mut pg_sys::ExprState,
    info: *mut IndexInfo,
    /// The slot that rows have to be in.
    pub slot: *mut TupleTableSlot,
    /// Values of the present entry.
    pub values: [Datum; COLUMNS],
    /// Their NULL flags.
    pub nulls: [bool; COLUMNS],
}

impl IndexRows {
    /// Prepares for the index described by `info` on `rel`.
    pub unsafe fn new(rel: Open, info: *mut IndexInfo) -> Self {
        // SAFETY: a slot of the table, which `finish` drops.
        unsafe { Self::of_slot(pg_sys::table_slot_create(rel.as_ptr(), std::ptr::null_mut()), info) }
    }

    /// As `new`, but for rows in a slot of the caller's. The caller ends it with `release`.
    pub unsafe fn of_slot(slot: *mut TupleTableSlot, info: *mut IndexInfo) -> Self {
        // SAFETY: executor calls as the server's own index builds make them; `release` undoes them.
        unsafe {
            let estate = pg_sys::CreateExecutorState();
            let context = pg_sys::MakePerTupleExprContext(estate);
            (*context).ecxt_scantuple = slot;
            let predicate = if (*info).ii_Predicate.is_null() {
                std::ptr::null_mut()
            } else {
                pg_sys::ExecPrepareQual((*info).ii_Predicate, estate)
            };
            Self {
                estate,
                context,
                predicate,
                info,
                slot,
                values: [Datum::null(); COLUMNS],
                nulls: [false; COLUMNS],
            }
        }
    }

    /// Fills `values` and `nulls` for the row in the slot. False if the index does not want the row.
    pub unsafe fn form(&mut self) -> bool {
        // SAFETY: everything was made by `new`.
        unsafe {
            pg_sys::MemoryContextReset((*self.context).ecxt_per_tuple_memory);
            if !self.predicate.is_null() && !pg_sys::ExecQual(self.predicate, self.context) {
                return false;
            }
            pg_sys::FormIndexDatum(
                self.info,
                self.slot,
                self.estate,
                self.values.as_mut_ptr(),
                self.nulls.as_mut_ptr(),
            );
            true
        }
    }

    /// Releases the slot and the executor state.
    pub unsafe fn finish(self) {
        // SAFETY: the slot was made by `new`.
        unsafe {
            pg_sys::ExecDropSingleTupleTableSlot(self.slot);
            self.release();
        }
    }

    /// Releases the executor state.
    pub unsafe fn release(self) {
        // SAFETY: as above; the info must not keep pointers into the freed state.
        unsafe {
            pg_sys::FreeExecutorState(self.estate);
            (*self.info).ii_ExpressionsState = std::ptr::null_mut();
            (*self.info).ii_PredicateState = std::ptr::null_mut();
        }
    }
}

/// Which columns of the table an index reads, so that only these are decoded.
pub unsafe fn columns_used(rel: Open, info: *mut IndexInfo) -> Vec<bool> {
    // SAFETY: the info's lists are valid expression trees over variable number 1.
    unsafe {
        let count = rel.attribute_count();
        let mut used = vec![false; count];
        let keys = usize::try_from((*info).ii_NumIndexAttrs).unwrap_or(0);
        for &attribute in (*info).ii_IndexAttrNumbers.iter().take(keys) {
            if let Ok(attribute) = usize::try_from(attribute)
                && attribute > 0
                && let Some(entry) = used.get_mut(attribute - 1)
            {
                *entry = true;
            }
        }
        let mut members: *mut pg_sys::Bitmapset = std::ptr::null_mut();
        pg_sys::pull_varattnos((*info).ii_Expressions.cast(), 1, &raw mut members);
        pg_sys::pull_varattnos((*info).ii_Predicate.cast(), 1, &raw mut members);
        let offset = pg_sys::FirstLowInvalidHeapAttributeNumber;
        if pg_sys::bms_is_member(-offset, members) {
            // The index refers to the whole row.
            return vec![true; count];
        }
        for (at, entry) in used.iter_mut().enumerate() {
            if let Ok(number) = i32::try_from(at + 1)
                && pg_sys::bms_is_member(number - offset, members)
            {
                *entry = true;
            }
        }
        used
    }
}
