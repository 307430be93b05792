//! The server's sort of rows.
//!
//! Called by loads and packing, each of which sorts by the option `orderby`. The sort stays within
//! maintenance_work_mem and then writes temporary files.

use pgrx::pg_sys::{self, Oid};

/// A column that rows are sorted by.
pub struct Key {
    /// The column's number in the rows, from 1.
    pub number: i16,
    /// The operator that says which value comes first.
    pub operator: Oid,
    /// The collation that it compares with.
    pub collation: Oid,
    /// NULL comes before all values.
    pub nulls_first: bool,
}

/// Begins a sort of rows of this row type, in the current memory context.
///
/// # Safety
/// Called under guard. The row type outlives the sort; its columns are of the operators' types.
pub unsafe fn begin(desc: pg_sys::TupleDesc, keys: &[Key]) -> *mut pg_sys::Tuplesortstate {
    let mut numbers: Vec<_> = keys.iter().map(|key| key.number).collect();
    let mut operators: Vec<_> = keys.iter().map(|key| key.operator).collect();
    let mut collations: Vec<_> = keys.iter().map(|key| key.collation).collect();
    let mut nulls_first: Vec<_> = keys.iter().map(|key| key.nulls_first).collect();
    // SAFETY: the caller's promise; the arrays are copied by the call.
    unsafe {
        pg_sys::tuplesort_begin_heap(
            desc,
            keys.len() as i32,
            numbers.as_mut_ptr(),
            operators.as_mut_ptr(),
            collations.as_mut_ptr(),
            nulls_first.as_mut_ptr(),
            pg_sys::maintenance_work_mem,
            std::ptr::null_mut(),
            0,
        )
    }
}
