//! What EXPLAIN says about the vectorised node: its operators as an indented tree with their keys and
//! conditions, and why it fell back.
//!
//! Called by `node`. `operators` walks the plan, `expression` writes what it computes. The scans below are
//! children of the node and show themselves. Scan 1 is the first of them. In formats other than text each
//! operator is a group that holds those of its inputs. With ANALYZE each has its rows; its time, memory and
//! temporary files, too, unless TIMING is off, so that what tests compare is the same everywhere. Invariant:
//! nothing here runs the plan.

mod expression;
mod operators;

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

use self::expression::Words;
use self::operators::{Detail, Operator};
use super::node::{OperatorFigures, State};
use crate::executor;

/// Adds the node's properties.
///
/// # Safety
/// Called under guard by EXPLAIN, with its own structs.
pub unsafe fn explain(
    _custom: *mut pg_sys::CustomScanState,
    state: &State,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: EXPLAIN's own structs; the shape and its sources belong to the plan that it explains.
    unsafe {
        let operators = match &state.shape {
            Some((plan, origins)) => {
                let sources: Vec<_> = state.leaves.iter().map(|leaf| &leaf.spec).collect();
                let words = Words::new(es, ancestors, origins);
                operators::operators(plan, &sources, &words, (*es).verbose)
            }
            None => Vec::new(),
        };
        let figures = if (*es).analyze { state.figures() } else { Vec::new() };
        if (*es).format == pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT {
            for (at, operator) in operators.iter().enumerate() {
                lines(es, operator, figures.get(at), removed(&operators, &figures, at), state.threads);
            }
        } else {
            pg_sys::ExplainOpenGroup(c"Operators".as_ptr(), c"Operators".as_ptr(), false, es);
            group(es, &operators, &figures, 0);
            pg_sys::ExplainCloseGroup(c"Operators".as_ptr(), c"Operators".as_ptr(), false, es);
        }
        if (*es).analyze {
            if state.threads > 1 {
                integer(es, c"Threads", None, state.threads as u64);
            }
            state.leaves.iter().for_each(|leaf| count_units(leaf.state));
        }
        if let Some(reason) = &state.reason {
            text(es, c"Fell Back", reason);
        }
    }
}

/// Rows that a filter left out.
fn removed(operators: &[Operator], figures: &[OperatorFigures], at: usize) -> Option<u64> {
    let filters = operators.get(at)?.filters;
    let (out, input) = (figures.get(at)?, figures.get(at + 1)?);
    filters.then(|| input.rows.saturating_sub(out.rows)).filter(|&rows| rows > 0)
}

/// Kilobytes, as EXPLAIN shows memory.
const fn kilobytes(bytes: u64) -> u64 {
    bytes.div_ceil(1024)
}

/// An operator in text format; its input stands below it, as plan nodes do.
unsafe fn lines(
    es: *mut pg_sys::ExplainState,
    operator: &Operator,
    figures: Option<&OperatorFigures>,
    removed: Option<u64>,
    threads: usize,
) {
    // SAFETY: EXPLAIN's own structs.
    unsafe {
        let margin = " ".repeat(usize::try_from((*es).indent).unwrap_or(0) * 2);
        let depth = operator.depth;
        let (label, arrow) = if depth == 0 { ("Operators: ", "") } else { ("           ", "->  ") };
        let indent = "   ".repeat(depth.saturating_sub(1));
        let mut line = format!("{margin}{label}{indent}{arrow}{}", operator.name);
        if let Some(figures) = figures {
            line.push_str(&format!(" (rows={}", figures.rows));
            if (*es).timing {
                line.push_str(&format!(" own time={:.3} ms", figures.nanoseconds as f64 / 1e6));
                if threads > 1 {
                    line.push_str(" of all threads");
                }
                if figures.memory > 0 {
                    line.push_str(&format!(" memory={}kB", kilobytes(figures.memory)));
                }
                if figures.spilled > 0 {
                    let (spilled, files) = (kilobytes(figures.spilled), figures.files);
                    line.push_str(&format!(" spilled={spilled}kB files={files}"));
                }
            }
            line.push(')');
        }
        append(es, &line);
        let below = " ".repeat(label.len() + indent.len() + arrow.len() + 2);
        for (label, detail) in &operator.details {
            let value = match detail {
                Detail::Text(text) => text.clone(),
                Detail::List(items) => items.join(", "),
                Detail::Number(number) => number.to_string(),
            };
            append(es, &format!("{margin}{below}{}: {value}", label.to_string_lossy()));
        }
        if let Some(rows) = removed {
            append(es, &format!("{margin}{below}Rows Removed by Filter: {rows}"));
        }
    }
}

unsafe fn append(es: *mut pg_sys::ExplainState, line: &str) {
    let line = CString::new(format!("{line}\n")).unwrap_or_default();
    // SAFETY: EXPLAIN's own buffer; the string is NUL-terminated and copied.
    unsafe { pg_sys::appendStringInfoString((*es).str_, line.as_ptr()) };
}

/// The operator at this position in the other formats, with those below it; where the next one is that is not
/// below it.
unsafe fn group(
    es: *mut pg_sys::ExplainState,
    operators: &[Operator],
    all: &[OperatorFigures],
    at: usize,
) -> usize {
    let Some(operator) = operators.get(at) else { return at + 1 };
    let (figures, removed) = (all.get(at), removed(operators, all, at));
    // SAFETY: EXPLAIN's own structs; strings are NUL-terminated and copied, or in the current memory.
    unsafe {
        pg_sys::ExplainOpenGroup(c"Operator".as_ptr(), std::ptr::null(), true, es);
        text(es, c"Operator", &operator.name);
        for (label, detail) in &operator.details {
            match detail {
                Detail::Text(value) => text(es, label, value),
                Detail::Number(number) => integer(es, label, None, *number as u64),
                Detail::List(items) => {
                    let mut list: *mut pg_sys::List = std::ptr::null_mut();
                    for item in items {
                        let item = CString::new(item.as_str()).unwrap_or_default();
                        list = pg_sys::lappend(list, pg_sys::pstrdup(item.as_ptr()).cast());
                    }
                    pg_sys::ExplainPropertyList(label.as_ptr(), list, es);
                }
            }
        }
        if let Some(figures) = figures {
            integer(es, c"Rows", None, figures.rows);
            if let Some(rows) = removed {
                integer(es, c"Rows Removed by Filter", None, rows);
            }
            if (*es).timing {
                let (label, unit) = (c"Own Time", c"ms");
                let milliseconds = figures.nanoseconds as f64 / 1e6;
                pg_sys::ExplainPropertyFloat(label.as_ptr(), unit.as_ptr(), milliseconds, 3, es);
                integer(es, c"Peak Memory Usage", Some(c"kB"), kilobytes(figures.memory));
                integer(es, c"Disk Usage", Some(c"kB"), kilobytes(figures.spilled));
                integer(es, c"Spill Files", None, figures.files);
            }
        }
        let mut next = at + 1;
        let is_below = |next: usize| operators.get(next).is_some_and(|other| other.depth > operator.depth);
        if is_below(next) {
            pg_sys::ExplainOpenGroup(c"Operators".as_ptr(), c"Operators".as_ptr(), false, es);
            while is_below(next) {
                next = group(es, operators, all, next);
            }
            pg_sys::ExplainCloseGroup(c"Operators".as_ptr(), c"Operators".as_ptr(), false, es);
        }
        pg_sys::ExplainCloseGroup(c"Operator".as_ptr(), std::ptr::null(), true, es);
        next
    }
}

unsafe fn integer(es: *mut pg_sys::ExplainState, label: &CStr, unit: Option<&CStr>, value: u64) {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    let unit = unit.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: EXPLAIN's own structs; every string is NUL-terminated and copied.
    unsafe { pg_sys::ExplainPropertyInteger(label.as_ptr(), unit, value, es) };
}

/// Adds the rows that other threads made of a scan's chunks to what the scan shows.
unsafe fn count_units(scan: *mut pg_sys::PlanState) {
    // SAFETY: an initialised node; instrumentation is null or its own.
    unsafe {
        let Some(found) = executor::scan_of(scan) else { return };
        if let Some(instrument) = (*scan).instrument.as_mut() {
            instrument.ntuples += (*found).take_unit_rows() as f64;
        }
    }
}

unsafe fn text(es: *mut pg_sys::ExplainState, label: &CStr, value: &str) {
    let value = CString::new(value).unwrap_or_default();
    // SAFETY: EXPLAIN's own structs; every string is NUL-terminated and copied.
    unsafe { pg_sys::ExplainPropertyText(label.as_ptr(), value.as_ptr(), es) };
}
