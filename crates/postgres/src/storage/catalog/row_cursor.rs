//! One row of a catalog, as a walk or a look-up stands on it: its numbers and bytes, and who sees it.
//!
//! Invariant: what a cursor says about a row is valid until the next step, as the row's page is pinned until
//! then.

use pgrx::pg_sys::{self, Datum, ItemPointerData, Snapshot, TransactionId};

use super::side_table::STRIPE_COLUMNS;
use crate::host::guarded_run::{self, together};
use crate::host::relation::Open;
use crate::host::{buffer, error, heap_tuple};

/// How a key column is compared with a value.
#[derive(Clone, Copy)]
pub enum Compare {
    Equal,
    AtMost,
    AtLeast,
}

impl Compare {
    pub(super) const fn holds(self, number: u64, value: u64) -> bool {
        match self {
            Self::Equal => number == value,
            Self::AtMost => number <= value,
            Self::AtLeast => number >= value,
        }
    }
}

/// The present row of a look-up. Its page is pinned. Valid until the next step.
pub struct Cursor<'a> {
    pub(super) table: Open<'a>,
    tuple: pg_sys::HeapTuple,
    buffer: pg_sys::Buffer,
}

impl<'a> Cursor<'a> {
    /// On a row of `table`.
    ///
    /// # Safety
    /// The row's page is pinned for as long as this is looked at.
    pub(super) unsafe fn new(table: Open<'a>, tuple: pg_sys::HeapTuple, buffer: pg_sys::Buffer) -> Self {
        Self { table, tuple, buffer }
    }

    /// Whether the row has this storage id and is within limits on the second and further columns.
    pub unsafe fn matches(&self, storage_id: u64, limits: &[(Compare, u64)]) -> bool {
        // SAFETY: keys are among the numbers that every catalog begins with.
        unsafe {
            self.number(1) == storage_id
                && (2..).zip(limits).all(|(at, (compare, value))| compare.holds(self.number(at), *value))
        }
    }

    pub fn tuple(&self) -> pg_sys::HeapTuple {
        self.tuple
    }

    /// The tuple's page.
    pub fn buffer(&self) -> pg_sys::Buffer {
        self.buffer
    }

    /// Where the row is.
    pub fn place(&self) -> ItemPointerData {
        // SAFETY: the page is pinned.
        unsafe { (*self.tuple).t_self }
    }

    /// The value of one of the bigint columns that every catalog begins with, keys and others. The first
    /// column is 1.
    pub unsafe fn number(&self, column: usize) -> u64 {
        // SAFETY: the page is pinned, and values of a tuple never change; none of the columns before is null,
        // and all are as wide, so they lie where they lie.
        unsafe {
            let header = (*self.tuple).t_data;
            let values = header.cast::<u8>().add(usize::from((*header).t_hoff)).cast::<u64>();
            values.add(column - 1).read()
        }
    }

    /// The value of the one-byte column that follows `numbers` bigint columns.
    pub unsafe fn byte_after(&self, numbers: usize) -> i8 {
        // SAFETY: as `number`.
        unsafe {
            let header = (*self.tuple).t_data;
            header.cast::<i8>().add(usize::from((*header).t_hoff) + numbers * size_of::<u64>()).read()
        }
    }

    /// The bytes of a bytea column that is never null, compressed or stored out of line. The first column is 1.
    pub unsafe fn bytes(&self, column: usize) -> &[u8] {
        // SAFETY: as `value`.
        unsafe {
            let stored = self.value(column).cast_mut_ptr::<pg_sys::varlena>();
            if stored.is_null()
                || pgrx::varlena::varatt_is_4b_c(stored)
                || pgrx::varlena::varatt_is_1b_e(stored)
            {
                error::internal("a catalog holds a value that is not stored plainly");
            }
            pgrx::varlena::varlena_to_byte_slice(stored)
        }
    }

    /// The value of a column, or zero if it is null.
    pub unsafe fn value(&self, column: usize) -> Datum {
        let mut values = [Datum::null(); STRIPE_COLUMNS];
        let mut nulls = [true; STRIPE_COLUMNS];
        // SAFETY: no catalog has more columns (checked when it was opened).
        unsafe {
            let desc = self.table.descriptor();
            pg_sys::heap_deform_tuple(self.tuple, desc, values.as_mut_ptr(), nulls.as_mut_ptr());
        }
        match values.get(column - 1).zip(nulls.get(column - 1)) {
            Some((&value, false)) => value,
            _ => Datum::null(),
        }
    }

    /// Calls `judge` with the tuple while its page is locked for reading.
    pub unsafe fn judge<T>(&self, judge: impl FnOnce(pg_sys::HeapTuple, pg_sys::Buffer) -> T) -> T {
        // SAFETY: the tuple's buffer is pinned; hint bits are set under the shared lock.
        unsafe {
            buffer::lock_shared(self.buffer);
            let verdict = judge(self.tuple, self.buffer);
            buffer::unlock(self.buffer);
            verdict
        }
    }

    /// Does what `judge` does, for a function that owns nothing.
    unsafe fn look<R: Copy>(&self, look: impl FnOnce() -> R) -> R {
        let buffer = self.buffer;
        // SAFETY: as `judge`.
        unsafe {
            together(|| {
                guarded_run::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
                let seen = look();
                guarded_run::LockBuffer(buffer, pg_sys::BUFFER_LOCK_UNLOCK as i32);
                seen
            })
        }
    }

    /// Whether the row is visible under `snapshot`, by the server's own rules for this kind of snapshot.
    pub unsafe fn satisfies(&self, snapshot: Snapshot) -> bool {
        let (tuple, buffer) = (self.tuple, self.buffer);
        // SAFETY: see `judge`.
        unsafe { self.look(|| guarded_run::HeapTupleSatisfiesVisibility(tuple, snapshot, buffer)) }
    }

    /// The transaction that has updated or deleted the row. It may still run or may have been rolled back.
    /// None if the row was at most locked.
    pub fn deleter(&self) -> Option<TransactionId> {
        // SAFETY: see `judge`.
        unsafe {
            let header = (*self.tuple).t_data;
            let (bits, by) = self.look(|| ((*header).t_infomask.into(), (*header).t_choice.t_heap.t_xmax));
            match heap_tuple::tells_change(bits) {
                true if bits & pg_sys::HEAP_XMAX_IS_MULTI == 0 => Some(by),
                true => self.judge(|tuple, _| heap_tuple::deleter((*tuple).t_data)),
                false => None,
            }
        }
    }

    /// The transaction that inserted the row (invalid if frozen).
    pub fn inserter(&self) -> TransactionId {
        // SAFETY: header of a live tuple under pin; xmin and the infomask bits do not change but for hints.
        unsafe { heap_tuple::inserter((*self.tuple).t_data) }.unwrap_or(pg_sys::InvalidTransactionId)
    }

    /// The row's hint bits of how its inserter ended. Both bits are set if it is frozen.
    fn inserter_hints(&self) -> u32 {
        // SAFETY: header of a tuple under pin.
        let bits = u32::from(unsafe { (*(*self.tuple).t_data).t_infomask });
        bits & (pg_sys::HEAP_XMIN_COMMITTED | pg_sys::HEAP_XMIN_INVALID)
    }

    /// Whether the row's own bits say that its inserter has committed, or it is frozen.
    pub fn is_known_committed(&self) -> bool {
        self.inserter_hints() & pg_sys::HEAP_XMIN_COMMITTED != 0
    }

    /// Whether the row's own bits say that its inserter was rolled back, and the row is no version in a chain
    /// of its page. Then its index entry leads to nothing else.
    pub(super) fn is_known_rolled_back(&self) -> bool {
        // SAFETY: header of a tuple under pin.
        unsafe {
            let chain = pg_sys::HEAP_HOT_UPDATED | pg_sys::HEAP_ONLY_TUPLE;
            self.inserter_hints() == pg_sys::HEAP_XMIN_INVALID
                && u32::from((*(*self.tuple).t_data).t_infomask2) & chain == 0
        }
    }

    /// Whether the row was inserted by a transaction that was rolled back or died. Nobody ever saw such a
    /// row, and nobody will.
    pub fn was_rolled_back(&self) -> bool {
        // SAFETY: header of a tuple under pin; its hint bits only ever tell the truth. "Running" is asked
        // before "committed", as everywhere in the server.
        unsafe {
            let hints = self.inserter_hints();
            if hints & pg_sys::HEAP_XMIN_COMMITTED != 0 {
                return false;
            }
            let writer = (*(*self.tuple).t_data).t_choice.t_heap.t_xmin;
            hints == pg_sys::HEAP_XMIN_INVALID
                || (!pg_sys::TransactionIdIsInProgress(writer) && !pg_sys::TransactionIdDidCommit(writer))
        }
    }
}
