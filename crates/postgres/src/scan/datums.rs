//! Datums of up to a thousand rows, column by column.
//!
//! `fill_batch` makes them of a chunk's vectors. The row loop copies from them, and `vectors` checks
//! conditions on them that a chunk could not answer.
//! Invariant: while `at < end`, every pointer in `fills`, `checks` and `outputs` has `end` readable places,
//! and what the Datums point at stays valid until the next batch is filled.

use pgrx::pg_sys::{self, Datum, TupleTableSlot};

/// Rows of a batch with columns.
pub const ROWS: usize = 1024;
/// No dictionary code: NULL, or not dictionary-coded.
pub const NO_CODE: u32 = u32::MAX;

/// A column's Datums and where one of them goes.
#[derive(Clone, Copy)]
pub struct Fill {
    /// First value.
    pub values: *const Datum,
    /// First NULL flag.
    pub nulls: *const bool,
    /// Position in the slot's arrays.
    pub to: usize,
}

/// A condition checked row by row.
#[derive(Clone, Copy)]
pub struct Step {
    /// The expression.
    pub state: *mut pg_sys::ExprState,
    /// Dictionary code of each row of the batch, or null when the verdict is not cached.
    pub codes: *const u32,
    /// Verdict by code.
    pub verdicts: *mut u8,
    /// The clause is native: it counts among the rows the node filters itself.
    pub native: bool,
}

impl Step {
    /// A condition without kept verdicts.
    pub const fn of(state: *mut pg_sys::ExprState, native: bool) -> Self {
        Self { state, codes: std::ptr::null(), verdicts: std::ptr::null_mut(), native }
    }
}

/// Verdict not known yet. The others: 1 passes, 2 fails.
pub const UNKNOWN: u8 = 0;
/// The row passes.
pub const PASSES: u8 = 1;
/// The row fails.
pub const FAILS: u8 = 2;

/// Datums of one column.
#[derive(Default)]
pub struct ColumnData {
    /// Values; zero where NULL.
    pub values: Vec<Datum>,
    /// NULL flags.
    pub nulls: Vec<bool>,
    /// Dictionary codes, where a cached condition wants them.
    pub codes: Vec<u32>,
}

impl ColumnData {
    /// Makes room for `rows` rows.
    pub fn resize(&mut self, rows: usize) {
        self.values.resize(rows, Datum::null());
        self.nulls.resize(rows, true);
    }
}

/// The rows that come next.
#[derive(Default)]
pub struct Batch {
    /// Next row.
    pub at: usize,
    /// One past the last row.
    pub end: usize,
    /// Columns that conditions need, into the scan slot.
    pub checks: Vec<Fill>,
    /// Columns that an expression above the conditions needs, into the scan slot.
    pub fills: Vec<Fill>,
    /// Columns that go straight to the result slot.
    pub outputs: Vec<Fill>,
    /// Conditions, in order.
    pub steps: Vec<Step>,
    /// Row number that positions count from.
    pub base: u64,
    /// Position of each row; empty if positions are not needed.
    pub positions: Vec<u32>,
}

/// A condition of the plan's qual.
pub struct RowCheck {
    /// Ready to run on the scan slot.
    pub state: *mut pg_sys::ExprState,
    /// Position in `TableScan::columns` of the only column it reads, where verdicts may be kept by dictionary
    /// code.
    pub column: Option<usize>,
    /// The dictionary that `verdicts` belong to.
    pub dictionary: u64,
    /// Verdict by code.
    pub verdicts: Vec<u8>,
}

/// Copies the Datums of one row of a batch into a slot.
///
/// # Safety
/// The batch has that row; targets are within the slot's columns.
#[inline]
pub unsafe fn fill(slot: *mut TupleTableSlot, fills: &[Fill], at: usize) {
    // SAFETY: the caller's promise and the invariant of the file.
    unsafe {
        for fill in fills {
            *(*slot).tts_values.add(fill.to) = *fill.values.add(at);
            *(*slot).tts_isnull.add(fill.to) = *fill.nulls.add(at);
        }
    }
}
