//! What EXPLAIN says about the vectorised node: its operators as an indented tree, one line each, and why it fell back.
//!
//! Called by `node`. The scans below are children of the node and show themselves. In formats other than text each operator is an element of a list. Invariant:
//! nothing here runs the plan.

use std::ffi::CString;

use pgrx::pg_sys;
use query::Plan;

use super::node::State;

/// Adds the node's properties.
///
/// # Safety
/// Called under guard by EXPLAIN, with its own structs.
pub unsafe fn explain(
    _custom: *mut pg_sys::CustomScanState,
    state: &State,
    _ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    let mut lines = Vec::new();
    if let Some(plan) = &state.shape {
        describe(plan, 0, &mut lines);
    }
    // SAFETY: EXPLAIN's own structs; every string is NUL-terminated and copied.
    unsafe {
        if (*es).format == pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT {
            for (depth, line) in &lines {
                // An operator's input stands below it, as plan nodes do.
                let arrow = if *depth == 0 { "" } else { "->  " };
                let indent = "   ".repeat(depth.saturating_sub(1));
                let label = if *depth == 0 { "Operators: " } else { "           " };
                let margin = " ".repeat(usize::try_from((*es).indent).unwrap_or(0) * 2);
                let line = format!("{margin}{label}{indent}{arrow}{line}\n");
                let line = CString::new(line).unwrap_or_default();
                pg_sys::appendStringInfoString((*es).str_, line.as_ptr());
            }
        } else {
            let mut list: *mut pg_sys::List = std::ptr::null_mut();
            for (_, line) in &lines {
                let line = CString::new(line.as_str()).unwrap_or_default();
                list = pg_sys::lappend(list, pg_sys::pstrdup(line.as_ptr()).cast());
            }
            pg_sys::ExplainPropertyList(c"Operators".as_ptr(), list, es);
        }
        if let Some(reason) = &state.reason {
            text(es, c"Fell Back", reason);
        }
    }
}

/// One line an operator, with its depth.
fn describe(plan: &Plan, depth: usize, lines: &mut Vec<(usize, String)>) {
    let (line, inputs): (String, Vec<&Plan>) = match plan {
        Plan::Scan { source, .. } => (format!("Scan {}", source + 1), Vec::new()),
        Plan::Filter { input, .. } => ("Filter".into(), vec![input]),
        Plan::Project { input, .. } => ("Project".into(), vec![input]),
        Plan::Aggregate { input, keys, .. } => {
            (if keys.is_empty() { "Aggregate" } else { "Hash Aggregate" }.into(), vec![input])
        }
        Plan::Join { kind, left, right, .. } => (format!("Hash Join ({kind:?})"), vec![left, right]),
        Plan::Sort { input, limit, .. } => {
            (if limit.is_some() { "Top-N Sort" } else { "Sort" }.into(), vec![input])
        }
        Plan::Limit { input, .. } => ("Limit".into(), vec![input]),
        Plan::Append { inputs } => ("Append".into(), inputs.iter().collect()),
        Plan::Window { input, .. } => ("Window".into(), vec![input]),
    };
    lines.push((depth, line));
    for input in inputs {
        describe(input, depth + 1, lines);
    }
}

unsafe fn text(es: *mut pg_sys::ExplainState, label: &std::ffi::CStr, value: &str) {
    let value = CString::new(value).unwrap_or_default();
    // SAFETY: EXPLAIN's own structs; every string is NUL-terminated and copied.
    unsafe { pg_sys::ExplainPropertyText(label.as_ptr(), value.as_ptr(), es) };
}
