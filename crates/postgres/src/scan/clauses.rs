//! The conditions of a scan, as predicates that are known now.
//!
//! `table` builds them once from the plan: native clauses (`custom_exprs`), and those of the qual that may
//! prune. They are resolved at each start, when parameters and stable expressions have values. Invariant: a
//! native clause whose predicate is weaker than the clause is also checked row by row
//! (`ScanClause::needs_check`). Clauses of the qual are always checked row by row.

use pgrx::PgList;
use pgrx::pg_sys::{self, NodeTag};
use stripe::scan::ScanClause;
use vector::Predicate;

use crate::expressions::early_value::EarlyValue;
use crate::host::tree::Node;
use crate::planner::resolve::{self, Value};
use crate::planner::template::{self, Template};

/// One condition.
pub struct Clause {
    /// The server's expression.
    pub node: *mut pg_sys::Node,
    /// True if only the scan checks the clause.
    pub native: bool,
    /// The expression ready to run on the scan slot (native clauses only).
    pub qual: *mut pg_sys::ExprState,
    /// TRUE at least where the clause is.
    pub predicate: Predicate,
    /// Zero-based attributes that the predicate reads.
    pub columns: Vec<usize>,
    /// Zero-based attributes that the expression reads.
    pub reads: Vec<usize>,
    /// The predicate says all that the clause says.
    pub exact: bool,
    template: Template,
    /// The expressions inside the template that are not constants.
    values: Vec<EarlyValue>,
}

impl Clause {
    /// What the scan of stripes asks of it.
    pub fn for_scan(&self) -> ScanClause {
        ScanClause {
            predicate: self.predicate.clone(),
            columns: self.columns.clone(),
            reads: self.reads.clone(),
            native: self.native,
            exact: self.exact,
            narrowing: false,
        }
    }
}

/// The clauses of a node's plan.
///
/// # Safety
/// The node is being initialised; its expression context exists, and the current memory lives as long as the
/// node.
pub unsafe fn build(custom: *mut pg_sys::CustomScanState) -> Vec<Clause> {
    // SAFETY: the caller's promise; the lists hold expressions, the hints integers.
    unsafe {
        let parent: *mut pg_sys::PlanState = custom.cast();
        let plan = (*parent).plan.cast::<pg_sys::CustomScan>();
        let relid = (*plan).scan.scanrelid;
        let mut clauses = Vec::new();
        for node in PgList::<pg_sys::Node>::from_pg((*plan).custom_exprs).iter_ptr() {
            let single = pg_sys::lappend(std::ptr::null_mut(), node.cast());
            let qual = pg_sys::ExecInitQual(single, parent);
            clauses.push(clause(node, relid, Some(qual), parent));
        }
        let hints = crate::planner::plan::pruning_clauses(plan);
        let rest = PgList::<pg_sys::Node>::from_pg((*plan).scan.plan.qual);
        for (at, node) in (0..).zip(rest.iter_ptr()) {
            let prunes =
                hints.is_some_and(|hints| at < (*hints).length && pg_sys::list_nth_int(hints, at) != 0);
            if prunes {
                clauses.push(clause(node, relid, None, parent));
            }
        }
        clauses
    }
}

unsafe fn clause(
    node: *mut pg_sys::Node,
    relid: u32,
    qual: Option<*mut pg_sys::ExprState>,
    parent: *mut pg_sys::PlanState,
) -> Clause {
    // SAFETY: a valid expression; each value node is part of it.
    unsafe {
        let template = template::translate(node, relid);
        let mut values = Vec::new();
        gather(&template, &mut |value| {
            if (*value).type_ != NodeTag::T_Const {
                values.push(EarlyValue::new(value, parent));
            }
        });
        Clause {
            node,
            native: qual.is_some(),
            qual: qual.unwrap_or(std::ptr::null_mut()),
            predicate: Predicate::Always(true),
            columns: Vec::new(),
            reads: reads(node, relid),
            exact: false,
            template,
            values,
        }
    }
}

/// Zero-based attributes that an expression reads.
unsafe fn reads(node: *mut pg_sys::Node, relid: u32) -> Vec<usize> {
    let mut found = Vec::new();
    // SAFETY: a valid expression.
    unsafe {
        let mut set: *mut pg_sys::Bitmapset = std::ptr::null_mut();
        pg_sys::pull_varattnos(node, relid, &raw mut set);
        let mut member = pg_sys::bms_next_member(set, -1);
        while member >= 0 {
            found.extend(usize::try_from(member + pg_sys::FirstLowInvalidHeapAttributeNumber - 1).ok());
            member = pg_sys::bms_next_member(set, member);
        }
    }
    found
}

/// Calls `found` with each value expression of a template.
fn gather(template: &Template, found: &mut dyn FnMut(*mut pg_sys::Node)) {
    match template {
        Template::And(parts) | Template::Or(parts) => parts.iter().for_each(|part| gather(part, found)),
        Template::Compare { value, .. } => found(*value),
        Template::Elements { array, .. } => found(*array),
        Template::Like { pattern, .. } => found(*pattern),
        Template::StartsWith { prefix, .. } => found(*prefix),
        Template::Unknown | Template::Known(_) | Template::Null { .. } | Template::Truth { .. } => {}
    }
}

/// The predicates of clauses with constants alone, which are known without running anything.
pub fn known_now(clauses: &[Clause]) -> Vec<Predicate> {
    let resolved = clauses.iter().map(|clause| {
        let mut constant = |node: *mut pg_sys::Node| {
            // SAFETY: a valid expression of the plan.
            let known = unsafe { Node::new(node) }.and_then(Node::as_a::<pg_sys::Const>);
            known.map_or(Value::Unknown, |value| Value::of_const(&value))
        };
        // SAFETY: as above; constants outlive the call.
        unsafe { resolve::resolve(&clause.template, &mut constant).predicate }
    });
    resolved.filter(|predicate| *predicate != Predicate::Always(true)).collect()
}

/// Resolves every clause with the values that parameters and stable expressions have now.
///
/// # Safety
/// `econtext` is the node's.
pub unsafe fn resolve_all(clauses: &mut [Clause], econtext: *mut pg_sys::ExprContext) {
    // SAFETY: values live in the per-tuple memory, which nobody resets before they are copied into the
    // predicates.
    unsafe {
        let previous = pg_sys::MemoryContextSwitchTo((*econtext).ecxt_per_tuple_memory);
        for clause in clauses {
            let values = &clause.values;
            let resolved = resolve::resolve(&clause.template, &mut |node| {
                if let Some(value) = Node::new(node).and_then(Node::as_a::<pg_sys::Const>) {
                    return Value::of_const(&value);
                }
                // One that fails says nothing: the server's own check of the rows that get there raises its
                // error.
                match values.iter().find(|known| known.node == node).and_then(|known| known.get(econtext)) {
                    None => Value::Unknown,
                    Some((_, true)) => Value::Null,
                    Some((datum, false)) => Value::Datum(datum),
                }
            });
            clause.columns = resolved.predicate.columns();
            clause.predicate = resolved.predicate;
            clause.exact = resolved.exact;
        }
        pg_sys::MemoryContextSwitchTo(previous);
    }
}
