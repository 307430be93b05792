//! Datums of up to a thousand rows, column by column, made of a chunk's vectors.
//!
//! The row loop copies from them, and `vectors` checks conditions on them that a chunk could not answer.
//! Invariant: while `at < end`, every pointer in `fills`, `checks` and `outputs` has `end` readable places,
//! and what the Datums point at stays valid until the next batch is filled.

use std::ops::Range;

use pgrx::pg_sys::{self, Datum, TupleTableSlot};
use stripe::scan::{ColumnOrigin, LoadedChunk};
use vector::{Selection, Values};

use super::table::{Column, TableScan};
use crate::convert::missing_value;

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
    /// Position of each row; empty when nobody asks.
    pub positions: Vec<u32>,
}

/// A condition of the plan's qual.
pub struct Residual {
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

/// What a reader does with the rows of a batch.
pub struct Use<'a> {
    /// Somebody may ask where a row is.
    pub keep_position: bool,
    /// Attributes that go straight to the result slot, in its order; None where an expression makes the row.
    pub direct: Option<&'a [usize]>,
    /// Conditions checked row by row.
    pub residuals: &'a mut [Residual],
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

impl TableScan {
    /// Turns the next selected rows of a chunk into Datums.
    ///
    /// # Safety
    /// Called under guard while the relation is open.
    pub unsafe fn fill_batch(&mut self, loaded: &mut LoadedChunk, using: &mut Use<'_>) {
        let left = loaded.selection.len() - loaded.done;
        let any_values = loaded.origins.iter().any(|origin| !matches!(origin, ColumnOrigin::Unwanted));
        // Without values there is nothing to bound.
        let count = if any_values || using.keep_position { left.min(ROWS) } else { left };
        let range = loaded.done..loaded.done + count;
        let picked = match &loaded.selection {
            Selection::Rows(rows) => Some(Selection::Rows(rows.get(range.clone()).unwrap_or(&[]).to_vec())),
            Selection::All(_) => None,
        };
        for (column, origin) in self.columns.iter_mut().zip(&loaded.origins) {
            let data = &mut column.data;
            match origin {
                ColumnOrigin::Unwanted => continue,
                ColumnOrigin::Missing => {
                    // SAFETY: the row type lives as long as the open relation.
                    let (value, null) = unsafe { missing_value((*self.rel).rd_att, column.index) };
                    data.resize(count);
                    data.values.fill(value);
                    data.nulls.fill(null);
                }
                ColumnOrigin::Whole(vector) | ColumnOrigin::Taken(vector) => {
                    data.resize(count);
                    column.reader.reset();
                    let (values, nulls) = (data.values.as_mut_slice(), data.nulls.as_mut_slice());
                    match (&picked, origin) {
                        (Some(rows), ColumnOrigin::Whole(_)) => {
                            column.reader.datums(vector, rows, values, nulls)
                        }
                        _ => column.reader.datums_in(vector, range.clone(), values, nulls),
                    };
                }
            }
        }
        let batch = &mut self.batch;
        batch.at = 0;
        batch.end = count;
        batch.base = loaded.base;
        batch.positions.clear();
        if using.keep_position {
            match &picked {
                Some(Selection::Rows(rows)) => batch.positions.extend_from_slice(rows),
                _ => batch.positions.extend(range.clone().filter_map(|row| u32::try_from(row).ok())),
            }
        }
        self.set_steps(loaded, using.residuals, picked.as_ref(), &range);
        self.set_fills(loaded, using.direct);
        // SAFETY: the relation is open.
        unsafe { self.report_rows_read() };
        loaded.done += count;
    }

    /// The conditions to check for each row of this batch, with kept verdicts where a column is
    /// dictionary-coded.
    fn set_steps(
        &mut self,
        loaded: &LoadedChunk,
        residuals: &mut [Residual],
        picked: Option<&Selection>,
        range: &Range<usize>,
    ) {
        let steps = &mut self.batch.steps;
        steps.clear();
        for clause in loaded.checks.iter().filter_map(|&at| self.clauses.get(at)) {
            steps.push(Step::of(clause.qual, true));
        }
        for residual in residuals {
            let mut step = Step::of(residual.state, false);
            let coded = residual.column.and_then(|at| {
                let column = self.columns.get_mut(at)?;
                codes(column, loaded.origins.get(at)?, picked, range)
            });
            if let Some((codes, dictionary, entries)) = coded {
                if residual.dictionary != dictionary || residual.verdicts.len() != entries {
                    residual.dictionary = dictionary;
                    residual.verdicts.clear();
                    residual.verdicts.resize(entries, UNKNOWN);
                }
                step.codes = codes;
                step.verdicts = residual.verdicts.as_mut_ptr();
            }
            steps.push(step);
        }
    }

    /// Where each column's Datums go.
    fn set_fills(&mut self, loaded: &LoadedChunk, direct: Option<&[usize]>) {
        let batch = &mut self.batch;
        batch.checks.clear();
        batch.fills.clear();
        batch.outputs.clear();
        for (column, origin) in self.columns.iter().zip(&loaded.origins) {
            if matches!(origin, ColumnOrigin::Unwanted) {
                continue;
            }
            let fill = Fill {
                values: column.data.values.as_ptr(),
                nulls: column.data.nulls.as_ptr(),
                to: column.index,
            };
            let checked = !batch.steps.is_empty()
                && (column.in_checks
                    || loaded
                        .checks
                        .iter()
                        .filter_map(|&at| self.clauses.get(at))
                        .any(|clause| clause.reads.contains(&column.index)));
            if checked {
                batch.checks.push(fill);
            }
            if column.in_rows && direct.is_none() {
                batch.fills.push(fill);
            }
        }
        for (to, wanted) in direct.unwrap_or_default().iter().enumerate() {
            if let Some(column) = self.columns.iter().find(|column| column.index == *wanted) {
                batch.outputs.push(Fill {
                    values: column.data.values.as_ptr(),
                    nulls: column.data.nulls.as_ptr(),
                    to,
                });
            }
        }
    }
}

/// The dictionary codes of a batch's rows in one column, the dictionary's id and its number of entries; None
/// where the column is not dictionary-coded.
fn codes(
    column: &mut Column,
    origin: &ColumnOrigin,
    picked: Option<&Selection>,
    range: &Range<usize>,
) -> Option<(*const u32, u64, usize)> {
    let (vector, taken) = match origin {
        ColumnOrigin::Whole(vector) => (vector, false),
        ColumnOrigin::Taken(vector) => (vector, true),
        ColumnOrigin::Unwanted | ColumnOrigin::Missing => return None,
    };
    let Values::Dictionary { codes, dictionary } = &vector.values else { return None };
    let code = |row: usize| match vector.is_valid(row) {
        true => codes.get(row).copied().filter(|&code| (code as usize) < dictionary.entries.len()),
        false => None,
    };
    let data = &mut column.data.codes;
    data.clear();
    match picked {
        Some(Selection::Rows(rows)) if !taken => {
            data.extend(rows.iter().map(|&row| code(row as usize).unwrap_or(NO_CODE)));
        }
        _ => data.extend(range.clone().map(|row| code(row).unwrap_or(NO_CODE))),
    }
    Some((data.as_ptr(), dictionary.id, dictionary.entries.len()))
}
