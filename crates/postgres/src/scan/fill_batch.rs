//! Makes the Datums of a batch from the vectors of a chunk.
//!
//! Called by both readers: `rows` for what it hands out, `vectors` for rows that it has to check one by one.

use std::ops::Range;

use stripe::scan::{ColumnOrigin, LoadedChunk};
use vector::{Selection, Values};

use super::clauses::Clause;
use super::datums::{self, Fill, RowCheck, Step};
use super::table::{Column, TableScan};

/// What a reader does with the rows of a batch.
pub struct Use<'a> {
    /// Whether rows are handed out. If not, only what conditions read is made.
    pub hands_out: bool,
    /// Whether the server may ask for a row's position.
    pub keep_position: bool,
    /// Attributes that go straight to the result slot, in its order; None where an expression makes the row.
    pub direct: Option<&'a [usize]>,
    /// Conditions checked row by row.
    pub row_checks: &'a mut [RowCheck],
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
        let count = if any_values || using.keep_position { left.min(datums::ROWS) } else { left };
        let range = loaded.done..loaded.done + count;
        let picked = match &loaded.selection {
            Selection::Rows(rows) => Some(Selection::Rows(rows.get(range.clone()).unwrap_or(&[]).to_vec())),
            Selection::All(_) => None,
        };
        for (column, origin) in self.columns.iter_mut().zip(&loaded.origins) {
            if !using.hands_out && !is_checked(&self.clauses, loaded, column) {
                continue;
            }
            let data = &mut column.data;
            match origin {
                ColumnOrigin::Unwanted => continue,
                ColumnOrigin::Missing => {
                    let (value, null) = column.missing;
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
        self.set_steps(loaded, using.row_checks, picked.as_ref(), &range);
        self.set_fills(loaded, using);
        // SAFETY: the relation is open.
        unsafe { self.report_rows_read() };
        loaded.done += count;
    }

    /// The conditions to check for each row of this batch, with kept verdicts where a column is
    /// dictionary-coded.
    fn set_steps(
        &mut self,
        loaded: &LoadedChunk,
        row_checks: &mut [RowCheck],
        picked: Option<&Selection>,
        range: &Range<usize>,
    ) {
        let steps = &mut self.batch.steps;
        steps.clear();
        for clause in loaded.checks.iter().filter_map(|&at| self.clauses.get(at)) {
            steps.push(Step::of(clause.qual, true));
        }
        for check in row_checks {
            let mut step = Step::of(check.state, false);
            let coded = check.column.and_then(|at| {
                let column = self.columns.get_mut(at)?;
                codes(column, loaded.origins.get(at)?, picked, range)
            });
            if let Some((codes, dictionary, entries)) = coded {
                if check.dictionary != dictionary || check.verdicts.len() != entries {
                    check.dictionary = dictionary;
                    check.verdicts.clear();
                    check.verdicts.resize(entries, datums::UNKNOWN);
                }
                step.codes = codes;
                step.verdicts = check.verdicts.as_mut_ptr();
            }
            steps.push(step);
        }
    }

    /// Where each column's Datums go.
    fn set_fills(&mut self, loaded: &LoadedChunk, using: &Use<'_>) {
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
            if !batch.steps.is_empty() && is_checked(&self.clauses, loaded, column) {
                batch.checks.push(fill);
            }
            if using.hands_out && column.in_rows && using.direct.is_none() {
                batch.fills.push(fill);
            }
        }
        for (to, wanted) in using.direct.unwrap_or_default().iter().enumerate() {
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

/// Whether a condition that is checked row by row reads a column.
fn is_checked(clauses: &[Clause], loaded: &LoadedChunk, column: &Column) -> bool {
    let mut checked = loaded.checks.iter().filter_map(|&at| clauses.get(at));
    column.in_checks || checked.any(|clause| clause.reads.contains(&column.index))
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
            data.extend(rows.iter().map(|&row| code(row as usize).unwrap_or(datums::NO_CODE)));
        }
        _ => data.extend(range.clone().map(|row| code(row).unwrap_or(datums::NO_CODE))),
    }
    Some((data.as_ptr(), dictionary.id, dictionary.entries.len()))
}
