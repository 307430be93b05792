//! The option `orderby` during a load. Rows that come in order pass through. From the first row that does
//! not, all rows are sorted.
//!
//! Used by `set` for rows whose TIDs nobody knows. Values are compared by their columns' default btree
//! operators and collations. The server's tuplesort sorts them, within maintenance_work_mem and then on
//! temporary files. What the server allocates for it is in the memory of the (sub)transaction that the rows
//! belong to.
//!
//! Invariant: rows leave in the order of the keys. Rows with equal keys leave in any order.

use std::cmp::Ordering;
use std::ffi::c_int;

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::{self, Datum, Oid, TupleTableSlot};

use crate::host::relation::Open;
use crate::host::row_sort;
use crate::options::SortKey;
use crate::options::orderby::sort_operator;

mod c {
    use super::{Datum, c_int};
    unsafe extern "C-unwind" {
        pub fn datumCopy(value: Datum, by_value: bool, length: c_int) -> Datum;
    }
}

struct Column {
    /// The column's number, zero-based.
    index: usize,
    operator: Oid,
    collation: Oid,
    nulls_first: bool,
    by_value: bool,
    length: c_int,
    /// Boxed: comparison functions are given its address.
    support: Box<pg_sys::SortSupportData>,
    /// The value of the row before. None for NULL.
    last: Option<Datum>,
    /// The allocated copy that `last` points to, if the value is not in the Datum itself.
    kept: Option<Datum>,
}

impl Column {
    /// Copies `last`, so that it outlives the slot that it came from.
    unsafe fn keep_last(&mut self) {
        if self.by_value {
            return;
        }
        // SAFETY: inside a transaction; `last` is valid still, and a copy is freed when nothing refers to it.
        unsafe {
            let old = pg_sys::MemoryContextSwitchTo(pg_sys::CurTransactionContext);
            let length = self.length;
            let copy = self.last.map(|value| pg_guard_ffi_boundary(|| c::datumCopy(value, false, length)));
            pg_sys::MemoryContextSwitchTo(old);
            if let Some(before) = std::mem::replace(&mut self.kept, copy) {
                pg_sys::pfree(before.cast_mut_ptr());
            }
            self.last = copy;
        }
    }
}

/// Checks or makes the order of the rows of one set.
pub struct Order {
    columns: Vec<Column>,
    /// The columns' `last` values are those of a row.
    started: bool,
    sort: *mut pg_sys::Tuplesortstate,
    descriptor: pg_sys::TupleDesc,
    /// A slot for rows that are put value by value. It exists as long as `sort` does.
    whole: *mut TupleTableSlot,
}

impl Order {
    /// The order that the table's option asks for. None if it asks for none.
    pub fn new(rel: Open, keys: &[SortKey]) -> Option<Self> {
        if keys.is_empty() {
            return None;
        }
        // SAFETY: the keys are columns of it.
        unsafe {
            let old = pg_sys::MemoryContextSwitchTo(pg_sys::CurTransactionContext);
            let columns = keys.iter().filter_map(|key| column(rel, key)).collect::<Vec<_>>();
            let descriptor = pg_sys::CreateTupleDescCopy(rel.descriptor());
            pg_sys::MemoryContextSwitchTo(old);
            (!columns.is_empty()).then_some(Self {
                columns,
                started: false,
                sort: std::ptr::null_mut(),
                descriptor,
                whole: std::ptr::null_mut(),
            })
        }
    }

    /// True from the first row out of order on, until the sort is drained.
    pub const fn is_sorting(&self) -> bool {
        !self.sort.is_null()
    }

    /// How many of the rows, from the first on, are in order: none belongs before its predecessor. Remembers
    /// the last of these.
    pub unsafe fn in_order(&mut self, slots: &[*mut TupleTableSlot]) -> usize {
        // SAFETY: the slots are deconstructed and have all columns of the table. What a row before is
        // compared by lives as long as its slot, or is a copy.
        unsafe {
            let mut count = 0;
            for &slot in slots {
                if self.started && !follows(&mut self.columns, slot) {
                    break;
                }
                self.started = true;
                for column in &mut self.columns {
                    let null = *(*slot).tts_isnull.add(column.index);
                    column.last = (!null).then(|| *(*slot).tts_values.add(column.index));
                }
                count += 1;
            }
            if count > 0 {
                self.columns.iter_mut().for_each(|column| column.keep_last());
            }
            count
        }
    }

    /// The slot's values of the keys, NULL being None, as copies in the current memory context.
    pub unsafe fn values(&self, slot: *mut TupleTableSlot) -> Vec<Option<Datum>> {
        let value = |column: &Column| {
            // SAFETY: the slot is deconstructed.
            unsafe {
                let (value, null) =
                    (*(*slot).tts_values.add(column.index), *(*slot).tts_isnull.add(column.index));
                let (by_value, length) = (column.by_value, column.length);
                (!null).then(|| pg_guard_ffi_boundary(|| c::datumCopy(value, by_value, length)))
            }
        };
        self.columns.iter().map(value).collect()
    }

    /// How values of the keys sort against others.
    pub unsafe fn compare(&mut self, values: &[Option<Datum>], others: &[Option<Datum>]) -> Ordering {
        for ((column, value), other) in self.columns.iter_mut().zip(values).zip(others) {
            // SAFETY: values of the columns' types.
            let ordering = unsafe { compare_values(column, *value, *other) }.cmp(&0);
            if ordering.is_ne() {
                return ordering;
            }
        }
        Ordering::Equal
    }

    /// From now on rows are [`put`](Self::put).
    pub unsafe fn start_sorting(&mut self) {
        let key = |column: &Column| row_sort::Key {
            number: column.index as i16 + 1,
            operator: column.operator,
            collation: column.collation,
            nulls_first: column.nulls_first,
        };
        let keys: Vec<_> = self.columns.iter().map(key).collect();
        // SAFETY: the descriptor lives as long as the sort.
        unsafe {
            let old = pg_sys::MemoryContextSwitchTo(pg_sys::CurTransactionContext);
            self.sort = row_sort::begin(self.descriptor, &keys);
            self.whole = pg_sys::MakeSingleTupleTableSlot(self.descriptor, &raw const pg_sys::TTSOpsVirtual);
            pg_sys::MemoryContextSwitchTo(old);
        }
    }

    /// Adds rows to the sort.
    pub unsafe fn put(&mut self, slots: &[*mut TupleTableSlot]) {
        // SAFETY: the sort has been started and copies the rows; the slots are deconstructed.
        unsafe { slots.iter().for_each(|&slot| self.put_one(slot)) }
    }

    unsafe fn put_one(&mut self, slot: *mut TupleTableSlot) {
        // SAFETY: the sort copies the row, which is deconstructed and of its row type.
        unsafe {
            if !may_lack_columns(slot) {
                pg_sys::tuplesort_puttupleslot(self.sort, slot);
                return;
            }
            // The sort copies a heap tuple as it is, and its descriptor has no defaults for columns that were
            // added later. So the sort gets the values instead.
            let whole = self.whole;
            let count = usize::try_from((*self.descriptor).natts).unwrap_or(0);
            std::ptr::copy_nonoverlapping((*slot).tts_values, (*whole).tts_values, count);
            std::ptr::copy_nonoverlapping((*slot).tts_isnull, (*whole).tts_isnull, count);
            pg_sys::ExecStoreVirtualTuple(whole);
            pg_sys::tuplesort_puttupleslot(self.sort, whole);
            pg_sys::ExecClearTuple(whole);
        }
    }

    /// Hands all rows out in order and ends the sort.
    pub unsafe fn drain(&mut self, mut each: impl FnMut(*mut TupleTableSlot)) {
        // SAFETY: the slot's row is valid until the next one is fetched. The state is forgotten first: if an
        // ERROR ends the transaction, its memory goes with it.
        unsafe {
            let sort = std::mem::replace(&mut self.sort, std::ptr::null_mut());
            self.started = false;
            let slot =
                pg_sys::MakeSingleTupleTableSlot(self.descriptor, &raw const pg_sys::TTSOpsMinimalTuple);
            pg_sys::tuplesort_performsort(sort);
            let mut count = 0u64;
            while pg_sys::tuplesort_gettupleslot(sort, true, false, slot, std::ptr::null_mut()) {
                each(slot);
                count += 1;
                if count.is_multiple_of(1024) {
                    pgrx::check_for_interrupts!();
                }
            }
            pg_sys::ExecDropSingleTupleTableSlot(slot);
            pg_sys::ExecDropSingleTupleTableSlot(self.whole);
            pg_sys::tuplesort_end(sort);
        }
    }
}

/// True when a tuple in the slot can be older than some of its columns.
unsafe fn may_lack_columns(slot: *mut TupleTableSlot) -> bool {
    // SAFETY: every slot has a descriptor; its constraints are null or valid.
    unsafe {
        let constraints = (*(*slot).tts_tupleDescriptor).constr;
        !constraints.is_null() && !(*constraints).missing.is_null()
    }
}

fn column(rel: Open, key: &SortKey) -> Option<Column> {
    // SAFETY: the attribute number is checked against the table's columns; look-ups may raise an ERROR.
    unsafe {
        let index = usize::try_from(key.attnum - 1).ok()?;
        let attribute = rel.columns().get(index)?;
        let operator = sort_operator(attribute.atttypid, key);
        let mut support = Box::new(pg_sys::SortSupportData {
            ssup_cxt: pg_sys::CurTransactionContext,
            ssup_collation: attribute.attcollation,
            ssup_nulls_first: key.nulls_first,
            ssup_attno: key.attnum,
            ..Default::default()
        });
        pg_sys::PrepareSortSupportFromOrderingOp(operator, &raw mut *support);
        Some(Column {
            index,
            operator,
            collation: attribute.attcollation,
            nulls_first: key.nulls_first,
            by_value: attribute.attbyval,
            length: c_int::from(attribute.attlen),
            support,
            last: None,
            kept: None,
        })
    }
}

/// True if the slot's row does not belong before the row that came before it.
unsafe fn follows(columns: &mut [Column], slot: *mut TupleTableSlot) -> bool {
    for column in columns {
        // SAFETY: the caller's.
        let ordering = unsafe { compare(column, slot) };
        if ordering != 0 {
            return ordering > 0;
        }
    }
    true
}

/// How the slot's value sorts against the last one.
unsafe fn compare(column: &mut Column, slot: *mut TupleTableSlot) -> c_int {
    // SAFETY: the slot is deconstructed.
    unsafe {
        let is_null = *(*slot).tts_isnull.add(column.index);
        let value = (!is_null).then(|| *(*slot).tts_values.add(column.index));
        compare_values(column, value, column.last)
    }
}

/// How `value` sorts against `other`: below zero before it, above zero after it. None stands for NULL.
unsafe fn compare_values(column: &mut Column, value: Option<Datum>, other: Option<Datum>) -> c_int {
    let null_first = if column.nulls_first { -1 } else { 1 };
    match (value, other) {
        (None, None) => 0,
        (None, Some(_)) => null_first,
        (Some(_), None) => -null_first,
        (Some(value), Some(other)) => {
            let support = &raw mut *column.support;
            // SAFETY: the comparison function is the one the server chose for the type.
            unsafe {
                let Some(comparator) = (*support).comparator else { return 0 };
                let ordering = pg_guard_ffi_boundary(|| comparator(value, other, support));
                if (*support).ssup_reverse { -ordering.signum() } else { ordering }
            }
        }
    }
}
