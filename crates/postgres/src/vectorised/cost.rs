//! What a plan with vectorised nodes costs, to choose between two plans of one query.
//!
//! Called by `planner_hook`. The server's estimate of a replaced subtree stays in the node, for EXPLAIN and
//! for the plan cache. The costs here count only the share of the estimate that the operators take when they
//! work on vectors. Invariant: a plan without vectorised nodes costs what the server says, disabled paths
//! aside.

use pgrx::pg_sys::{self, NodeTag};

use super::plan_parts::{Replaced, inputs};
use super::translated::SourceSpec;
use crate::host::tree::{FinishedStatement, Plan, PlanNode};
use crate::options::settings::vectorised_min_rows;
use crate::planner::cost;
use crate::planner::plan::scanned_rows;

/// The share of the server's estimate that vectorised operators take for the same work.
const OPERATORS: f64 = 0.1;
/// The share for columnar scans. They do not hand out rows one by one, and threads share them.
const SCANS: f64 = 0.3;
/// Starting a vectorised node.
const START: f64 = 5.0;
/// Looking a key up in an index for each row of a nested loop, at least. Where rows of neighbouring keys lie
/// near each other the server charges about 1, as it counts pages. In memory a look-up takes 3 microseconds,
/// and scans of ours are priced as if a unit were one (`planner::cost`). 200 keys among 150,000 rows took
/// 0.63 ms by look-ups and 0.55 on vectors, and 5,000 keys 13.9 and 1.8. TPC-H's question 21 took 993 and 242.
const LOOKUP: f64 = 3.0;

/// The plan of a finished statement, and the statement.
type Statement<'a> = (Plan<'a>, FinishedStatement<'a>);

/// The parts of a statement that are looked at.
///
/// # Safety
/// A finished statement that nobody changes for `'a`.
unsafe fn parts_of<'a>(stmt: *mut pg_sys::PlannedStmt) -> Option<Statement<'a>> {
    // SAFETY: the caller's statement.
    unsafe { Some((Plan::new((*stmt).planTree)?, FinishedStatement::of(stmt))) }
}

/// The cost of a statement.
///
/// # Safety
/// A finished statement.
pub unsafe fn statement(stmt: *mut pg_sys::PlannedStmt) -> f64 {
    // SAFETY: the caller's statement.
    unsafe { parts_of(stmt) }.map_or(0.0, cost_of)
}

fn cost_of((plan, statement): Statement<'_>) -> f64 {
    let saved = statement.subplans().iter().map(|plan| saving(plan, statement)).sum::<f64>();
    cost::enabled(plan.total_cost) + risk(plan, statement) - saving(plan, statement) - saved
}

/// The costs of nested loops beyond the estimate: where the server guesses how often they run their inner
/// side, and where it takes a look-up for less than it is.
fn risk(plan: Plan<'_>, statement: FinishedStatement<'_>) -> f64 {
    if let Some(replaced) = Replaced::of(plan, statement) {
        return replaced.server_rows().map(|plan| risk(plan, statement)).sum();
    }
    let mut cost = inputs(plan).into_iter().map(|input| risk(input, statement)).sum();
    if let PlanNode::NestLoop(_) = plan.kind() {
        let outer = plan.input();
        cost += (plan.total_cost - outer.total_cost).max(0.0) * (times_guessed(outer) - 1.0);
        let looked_up = plan.inner().filter(|inner| looks_up(*inner));
        cost += looked_up.map_or(0.0, |inner| (LOOKUP - inner.total_cost).max(0.0) * outer.plan_rows);
    }
    cost
}

/// Whether a plan looks rows up in an index.
fn looks_up(plan: Plan<'_>) -> bool {
    matches!(plan.tag(), NodeTag::T_IndexScan | NodeTag::T_IndexOnlyScan)
}

/// How many times the estimated rows a node may well give. No statistics say how many groups computed values
/// make. The server then estimates 200 groups, but one group for each row is as likely. So this takes the
/// middle. (A list of keys that a nested loop looks up is such a case, and it seldom has a key twice.)
fn times_guessed(plan: Plan<'_>) -> f64 {
    match plan.tag() {
        NodeTag::T_Material | NodeTag::T_Sort | NodeTag::T_SubqueryScan => {
            inputs(plan).first().map_or(1.0, |&input| times_guessed(input))
        }
        NodeTag::T_Agg | NodeTag::T_Unique if plan.plan_rows > 1.0 && computes_rows(plan.input()) => {
            (plan.input().plan_rows / plan.plan_rows).max(1.0).midpoint(1.0)
        }
        _ => 1.0,
    }
}

/// Whether all rows of a subtree come from functions.
fn computes_rows(plan: Plan<'_>) -> bool {
    let below = inputs(plan);
    match plan.tag() {
        NodeTag::T_FunctionScan => true,
        NodeTag::T_ProjectSet | NodeTag::T_Result if below.is_empty() => true,
        NodeTag::T_ProjectSet | NodeTag::T_Result | NodeTag::T_Sort | NodeTag::T_SubqueryScan => {
            below.into_iter().all(computes_rows)
        }
        _ => false,
    }
}

/// The costs that vectorised nodes save in a tree.
fn saving(plan: Plan<'_>, statement: FinishedStatement<'_>) -> f64 {
    let Some(replaced) = Replaced::of(plan, statement) else {
        return inputs(plan).into_iter().map(|input| saving(input, statement)).sum();
    };
    let mut sources = 0.0;
    let mut below = 0.0;
    for (source, node) in replaced.sources() {
        let cost = cost::enabled(node.total_cost);
        sources += cost;
        below += match source {
            SourceSpec::Columnar { .. } => cost * SCANS,
            SourceSpec::Rows { .. } => cost - saving(node, statement),
        };
    }
    let all = cost::enabled(replaced.subtree.total_cost);
    all - (START + below + (all - sources).max(0.0) * OPERATORS)
}

/// Whether a plan without nested loops could cost less than this one. `least` is the cost of reading one of
/// its tables as a whole. A plan without nested loops costs at least as much on vectors, unless it stops
/// early. Statements with sub-plans always count as beatable: conditions that contain sub-plans raise the
/// costs of scans, and may become joins.
///
/// # Safety
/// As `statement`.
pub unsafe fn may_be_beaten(stmt: *mut pg_sys::PlannedStmt, least: f64) -> bool {
    // SAFETY: the caller's statement.
    unsafe { parts_of(stmt) }.is_some_and(|(plan, statement)| {
        !statement.subplans().is_empty()
            || has_limit(plan)
            || cost_of((plan, statement)) > START + least * SCANS
    })
}

fn has_limit(plan: Plan<'_>) -> bool {
    plan.tag() == NodeTag::T_Limit || inputs(plan).into_iter().any(has_limit)
}

/// True where planning again without parallel workers, nested loops and merge joins may leave less to the
/// server's executor.
///
/// # Safety
/// As `statement`.
pub unsafe fn leaves_work(stmt: *mut pg_sys::PlannedStmt) -> bool {
    // SAFETY: the caller's statement.
    unsafe { parts_of(stmt) }.is_some_and(|(plan, statement)| {
        left(plan, statement) || statement.subplans().iter().any(|plan| left(plan, statement))
    })
}

fn left(plan: Plan<'_>, statement: FinishedStatement<'_>) -> bool {
    if let Some(replaced) = Replaced::of(plan, statement) {
        return replaced.server_rows().any(|plan| left(plan, statement));
    }
    let itself = match plan.tag() {
        NodeTag::T_Gather | NodeTag::T_GatherMerge | NodeTag::T_NestLoop | NodeTag::T_MergeJoin => true,
        NodeTag::T_CustomScan if super::translate::is_columnar(plan) => {
            // SAFETY: a scan node of ours.
            unsafe { scanned_rows(plan.as_ptr().cast()) >= vectorised_min_rows() }
        }
        _ => false,
    };
    itself || inputs(plan).into_iter().any(|input| left(input, statement))
}
