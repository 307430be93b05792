//! What EXPLAIN says about the vectorised node: its operators as an indented tree, one line each, and why it fell back.
//!
//! Called by `node`. The scans below are children of the node and show themselves. Scan 1 is the first of them. In formats other than text each operator is a group of a list. Invariant:
//! nothing here runs the plan.

use std::ffi::CString;

use pgrx::pg_sys;
use query::{JoinKind, Plan};

use super::node::State;
use crate::executor;

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
        let figures = if (*es).analyze { state.figures() } else { Vec::new() };
        if (*es).format == pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT {
            for (at, (depth, name)) in lines.iter().enumerate() {
                let figures = figures.get(at).map(|&(rows, nanoseconds)| match (*es).timing {
                    true => format!(" (rows={rows} own time={:.3} ms)", nanoseconds as f64 / 1e6),
                    false => format!(" (rows={rows})"),
                });
                operator_line(es, *depth, &format!("{name}{}", figures.unwrap_or_default()));
            }
        } else {
            pg_sys::ExplainOpenGroup(c"Operators".as_ptr(), c"Operators".as_ptr(), false, es);
            for (at, (depth, name)) in lines.iter().enumerate() {
                pg_sys::ExplainOpenGroup(c"Operator".as_ptr(), std::ptr::null(), true, es);
                text(es, c"Operator", name);
                integer(es, c"Depth", *depth as u64);
                if let Some(&(rows, nanoseconds)) = figures.get(at) {
                    integer(es, c"Rows", rows);
                    if (*es).timing {
                        let milliseconds = nanoseconds as f64 / 1e6;
                        pg_sys::ExplainPropertyFloat(
                            c"Own Time".as_ptr(),
                            c"ms".as_ptr(),
                            milliseconds,
                            3,
                            es,
                        );
                    }
                }
                pg_sys::ExplainCloseGroup(c"Operator".as_ptr(), std::ptr::null(), true, es);
            }
            pg_sys::ExplainCloseGroup(c"Operators".as_ptr(), c"Operators".as_ptr(), false, es);
        }
        if (*es).analyze {
            if state.threads > 1 {
                integer(es, c"Threads", state.threads as u64);
            }
            state.leaves.iter().for_each(|leaf| count_units(leaf.state));
        }
        if let Some(reason) = &state.reason {
            text(es, c"Fell Back", reason);
        }
    }
}

/// One line of the tree in text format; an operator's input stands below it, as plan nodes do.
unsafe fn operator_line(es: *mut pg_sys::ExplainState, depth: usize, line: &str) {
    // SAFETY: EXPLAIN's own buffer; the string is NUL-terminated and copied.
    unsafe {
        let margin = " ".repeat(usize::try_from((*es).indent).unwrap_or(0) * 2);
        let (label, arrow) = if depth == 0 { ("Operators: ", "") } else { ("           ", "->  ") };
        let indent = "   ".repeat(depth.saturating_sub(1));
        let line = CString::new(format!("{margin}{label}{indent}{arrow}{line}\n")).unwrap_or_default();
        pg_sys::appendStringInfoString((*es).str_, line.as_ptr());
    }
}

unsafe fn integer(es: *mut pg_sys::ExplainState, label: &std::ffi::CStr, value: u64) {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    // SAFETY: EXPLAIN's own structs.
    unsafe { pg_sys::ExplainPropertyInteger(label.as_ptr(), std::ptr::null(), value, es) };
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

/// One line an operator, with its depth.
fn describe(plan: &Plan, depth: usize, lines: &mut Vec<(usize, String)>) {
    let name = match plan {
        Plan::Scan { source, .. } => format!("Scan {}", source + 1),
        Plan::Filter { .. } => "Filter".into(),
        Plan::Project { .. } => "Project".into(),
        Plan::Aggregate { keys, .. } if keys.is_empty() => "Aggregate".into(),
        Plan::Aggregate { .. } => "Hash Aggregate".into(),
        Plan::GroupingSets { sets, .. } => format!("Grouping Sets ({})", sets.len()),
        Plan::Repeat { .. } => "Repeat".into(),
        Plan::Join { kind, .. } => format!("Hash Join ({})", kind_name(*kind)),
        Plan::Sort { limit: Some(limit), .. } => format!("Top-N Sort ({limit})"),
        Plan::Sort { .. } => "Sort".into(),
        Plan::DistinctOn { .. } => "Sort, Distinct On".into(),
        Plan::Limit { .. } => "Limit".into(),
        Plan::Append { .. } => "Append".into(),
        Plan::Window { functions, .. } => {
            let names = functions.iter().map(|call| match call.function {
                query::WindowFunction::Aggregate(function) => format!("{function:?}"),
                function => format!("{function:?}"),
            });
            format!("Window ({})", names.collect::<Vec<_>>().join(", "))
        }
    };
    lines.push((depth, name));
    for input in plan.inputs() {
        describe(input, depth + 1, lines);
    }
}

/// The right input is the one that is kept.
fn kind_name(kind: JoinKind) -> String {
    match kind {
        JoinKind::RightSemi => "Right Semi".into(),
        JoinKind::RightAnti => "Right Anti".into(),
        JoinKind::NullAwareAnti => "Null-Aware Anti".into(),
        _ => format!("{kind:?}"),
    }
}

unsafe fn text(es: *mut pg_sys::ExplainState, label: &std::ffi::CStr, value: &str) {
    let value = CString::new(value).unwrap_or_default();
    // SAFETY: EXPLAIN's own structs; every string is NUL-terminated and copied.
    unsafe { pg_sys::ExplainPropertyText(label.as_ptr(), value.as_ptr(), es) };
}
