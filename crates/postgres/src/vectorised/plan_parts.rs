//! The parts of a finished plan, for code that walks through one: a node's inputs, the expressions it
//! computes, and the subtree that a vectorised node stands for.
//!
//! Called by `replace` before it changes anything, and by `planner_hook`, `cost`, `privileges` and
//! `unasked_rows` for finished plans. Invariant: a vectorised node's inputs are the subtree that it keeps.

use pgrx::pg_sys::NodeTag;

use super::node;
use super::translate::translate;
use super::translated::{NoValues, SourceSpec, Translated};
use crate::host::tree::{FinishedStatement, Node, Plan, PlanNode};

/// A node's inputs.
pub fn inputs(plan: Plan<'_>) -> Vec<Plan<'_>> {
    let mut found: Vec<_> = plan.outer().into_iter().chain(plan.inner()).collect();
    match plan.kind() {
        PlanNode::Append(append) => found.extend(append.inputs().iter()),
        PlanNode::MergeAppend(append) => found.extend(append.inputs().iter()),
        PlanNode::SubqueryScan(scan) => found.push(scan.subquery()),
        // Ours has its left tree only for EXPLAIN.
        PlanNode::CustomScan(scan) => found = scan.children().iter().collect(),
        _ => {}
    }
    found
}

/// Whether running the subtree twice could be noticed.
pub fn is_volatile(plan: Plan<'_>) -> bool {
    matches!(plan.tag(), NodeTag::T_ModifyTable | NodeTag::T_LockRows | NodeTag::T_ForeignScan)
        || plan.targets().is_volatile()
        || computed(plan).into_iter().any(Node::is_volatile)
        || inputs(plan).into_iter().any(is_volatile)
}

/// The expressions, and lists of expressions, that a node computes beside its target list.
pub fn computed(plan: Plan<'_>) -> Vec<Node<'_>> {
    let mut found: Vec<Option<Node<'_>>> = vec![plan.conditions().node()];
    match plan.kind() {
        PlanNode::FunctionScan(scan) => found.push(scan.functions().node()),
        PlanNode::TableFuncScan(scan) => found.push(scan.function()),
        PlanNode::ValuesScan(scan) => found.push(scan.rows().node()),
        PlanNode::Result(result) => found.push(result.condition()),
        PlanNode::NestLoop(join) => found.push(join.join().conditions().node()),
        PlanNode::HashJoin(join) => {
            found.extend([join.join().conditions().node(), join.hash_clauses().node()]);
        }
        PlanNode::MergeJoin(join) => {
            found.extend([join.join().conditions().node(), join.merge_clauses().node()]);
        }
        PlanNode::WindowAgg(window) => {
            found.extend([window.start_offset(), window.end_offset(), window.run_condition().node()]);
        }
        PlanNode::Limit(limit) => found.extend([limit.offset(), limit.count()]),
        PlanNode::SampleScan(scan) => found.push(scan.sample()),
        _ => {}
    }
    found.into_iter().flatten().collect()
}

/// The subtree that a vectorised node keeps; None for any other node.
pub fn kept(plan: Plan<'_>) -> Option<Plan<'_>> {
    match plan.kind() {
        PlanNode::CustomScan(scan) if scan.methods == node::scan_methods() => scan.children().get(0),
        _ => None,
    }
}

/// The subtree that a vectorised node keeps, and its translation.
pub struct Replaced<'a> {
    /// The subtree.
    pub subtree: Plan<'a>,
    /// What the node makes of it.
    pub translated: Translated,
}

impl<'a> Replaced<'a> {
    /// A node's, given its statement; None where it is not a vectorised one.
    pub fn of(plan: Plan<'a>, statement: FinishedStatement<'_>) -> Option<Self> {
        let subtree = kept(plan)?;
        Some(Self { subtree, translated: translate(subtree, statement, &mut NoValues).ok()? })
    }

    /// Where the node's rows come from, and the plan node that gives them.
    pub fn sources(&self) -> impl Iterator<Item = (&SourceSpec, Plan<'a>)> {
        let sources = self.translated.sources.iter();
        // SAFETY: a node of the subtree.
        sources.filter_map(|source| Some((source, unsafe { Plan::new(source.node()) }?)))
    }

    /// The nodes whose rows it takes from the server's executor.
    pub fn server_rows(&self) -> impl Iterator<Item = Plan<'a>> {
        self.sources().filter(|(source, _)| matches!(source, SourceSpec::Rows { .. })).map(|(_, plan)| plan)
    }
}
