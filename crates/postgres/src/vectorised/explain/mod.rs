//! What EXPLAIN says about the vectorised node: its operators as an indented tree with their keys and
//! conditions, and why it fell back.
//!
//! Called by `node`. `query::explain` makes the tree, `words` writes what only the server can, and this file
//! hands all to EXPLAIN. The scans below are children of the node and show themselves. Scan 1 is the first of
//! them. In formats other than text each operator is a group that holds those of its inputs. With ANALYZE
//! each has its rows; its time, memory and temporary files, too, unless TIMING is off, so that what tests
//! compare is the same everywhere. Invariant: nothing here runs the plan.

mod words;

use std::ffi::{CStr, CString};

use pgrx::pg_sys;
use query::explain::{self, Operator, Options, Property, Value, kilobytes};

use self::words::Words;
use super::node::State;
use crate::scan::vectors;

/// Adds the node's properties.
///
/// # Safety
/// Called under guard by EXPLAIN, with its own structs.
pub unsafe fn explain(
    custom: *mut pg_sys::CustomScanState,
    state: &State,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: EXPLAIN's own structs; the shape and its sources belong to the plan that it explains.
    unsafe {
        let figures = if (*es).analyze { state.figures() } else { Vec::new() };
        // The InitPlans that the translated nodes had are now the node's own. The list is the server's, which
        // goes on with it: what it shows later looks there for the parameters of a nested loop.
        let ancestors = pg_sys::lcons((*custom).ss.ps.plan.cast(), pg_sys::list_copy(ancestors));
        let operator = state.shape.as_ref().map(|(plan, origins)| {
            let sources = state.leaves.iter().map(|leaf| &leaf.spec).collect();
            let words = Words::new(es, ancestors, origins, sources);
            let options = Options { verbose: (*es).verbose, figures: &figures, with_work: (*es).timing };
            explain::operators(plan, &words, options)
        });
        if (*es).format == pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT {
            let margin = " ".repeat(usize::try_from((*es).indent).unwrap_or(0) * 2);
            let lines = operator.map(|operator| explain::lines(&operator, "Operators: ", state.threads));
            lines.iter().flatten().for_each(|line| append(es, &format!("{margin}{line}")));
        } else {
            groups(es, operator.as_slice());
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

unsafe fn append(es: *mut pg_sys::ExplainState, line: &str) {
    let line = CString::new(format!("{line}\n")).unwrap_or_default();
    // SAFETY: EXPLAIN's own buffer; the string is NUL-terminated and copied.
    unsafe { pg_sys::appendStringInfoString((*es).str_, line.as_ptr()) };
}

/// Operators in formats other than text, each with its inputs.
unsafe fn groups(es: *mut pg_sys::ExplainState, operators: &[Operator]) {
    // SAFETY: EXPLAIN's own structs; strings are NUL-terminated and copied.
    unsafe {
        pg_sys::ExplainOpenGroup(c"Operators".as_ptr(), c"Operators".as_ptr(), false, es);
        for operator in operators {
            pg_sys::ExplainOpenGroup(c"Operator".as_ptr(), std::ptr::null(), true, es);
            text(es, c"Operator", &operator.title);
            operator.properties.iter().for_each(|own| property(es, own));
            let measured = operator.measured.iter().flat_map(|measured| measured.properties());
            measured.for_each(|own| property(es, &own));
            if !operator.inputs.is_empty() {
                groups(es, &operator.inputs);
            }
            pg_sys::ExplainCloseGroup(c"Operator".as_ptr(), std::ptr::null(), true, es);
        }
        pg_sys::ExplainCloseGroup(c"Operators".as_ptr(), c"Operators".as_ptr(), false, es);
    }
}

/// A property in formats other than text.
unsafe fn property(es: *mut pg_sys::ExplainState, property: &Property) {
    let label = CString::new(property.label).unwrap_or_default();
    // SAFETY: EXPLAIN's own structs; strings are NUL-terminated and copied, or in the current memory.
    unsafe {
        match &property.value {
            Value::Text(value) => text(es, &label, value),
            Value::Count(count) => integer(es, &label, None, *count),
            Value::Bytes(bytes) => integer(es, &label, Some(c"kB"), kilobytes(*bytes)),
            Value::Milliseconds(time) => {
                pg_sys::ExplainPropertyFloat(label.as_ptr(), c"ms".as_ptr(), *time, 3, es);
            }
            Value::List(items) => {
                let mut list: *mut pg_sys::List = std::ptr::null_mut();
                for item in items {
                    let item = CString::new(item.as_str()).unwrap_or_default();
                    list = pg_sys::lappend(list, pg_sys::pstrdup(item.as_ptr()).cast());
                }
                pg_sys::ExplainPropertyList(label.as_ptr(), list, es);
            }
        }
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
        let Some(found) = vectors::scan_of(scan) else { return };
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
