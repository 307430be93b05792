//! What a plan with vectorised nodes costs, to choose between two plans of one query.
//!
//! Called by `planner_hook`. The server's estimate of a replaced subtree stays in the node, for EXPLAIN and
//! for the plan cache; here its operators count for the share of it that they take when they work on vectors.
//! Invariant: a plan without vectorised nodes costs what the server says, disabled paths aside.

use pgrx::pg_sys::{self, NodeTag, Plan};

use super::replace::{children, translation};
use super::translated::SourceSpec;
use crate::options::settings::vectorised_min_rows;
use crate::planner::cost;
use crate::planner::plan::scanned_rows;

/// What vectorised operators take of the server's estimate for theirs.
const OPERATORS: f64 = 0.1;
/// The same for columnar scans, whose rows are not handed out one by one and which threads share.
const SCANS: f64 = 0.3;
/// Starting a vectorised node.
const START: f64 = 5.0;

/// The cost of a statement.
///
/// # Safety
/// A finished statement.
pub unsafe fn statement(stmt: *mut pg_sys::PlannedStmt) -> f64 {
    // SAFETY: the caller's promise; the list holds plans, or null for those that were optimised away.
    unsafe {
        let list = (*stmt).subplans;
        let subplans = pgrx::PgList::<Plan>::from_pg(list);
        let subplans = subplans.iter_ptr().filter(|plan| !plan.is_null());
        let saved = subplans.map(|plan| saving(plan, list)).sum::<f64>();
        cost::enabled((*(*stmt).planTree).total_cost) + risk((*stmt).planTree, list)
            - saving((*stmt).planTree, list)
            - saved
    }
}

/// What nested loops cost beyond the estimate where the server guesses how often they run their inner side.
unsafe fn risk(plan: *mut Plan, subplans: *mut pg_sys::List) -> f64 {
    // SAFETY: a finished plan; a nested loop has both children.
    unsafe {
        if let Some((_, translated)) = translation(plan, subplans) {
            let rows = translated.sources.iter().filter_map(|source| match source {
                SourceSpec::Rows { plan } => Some(*plan),
                SourceSpec::Columnar { .. } => None,
            });
            return rows.map(|plan| risk(plan, subplans)).sum();
        }
        let mut cost = children(plan).into_iter().map(|child| risk(*child, subplans)).sum();
        if (*plan).type_ == NodeTag::T_NestLoop {
            let outer = (*plan).lefttree;
            cost += ((*plan).total_cost - (*outer).total_cost).max(0.0) * (times_guessed(outer) - 1.0);
        }
        cost
    }
}

/// How many times the estimated rows a node may well give. Of how many groups computed values make no
/// statistics know anything: the server says 200, and as many as there are rows is as likely. So the middle
/// counts. (A list of keys that a nested loop looks up is of this kind, and has seldom a key twice.)
unsafe fn times_guessed(plan: *mut Plan) -> f64 {
    // SAFETY: a finished plan.
    unsafe {
        match (*plan).type_ {
            NodeTag::T_Material | NodeTag::T_Sort | NodeTag::T_SubqueryScan => {
                children(plan).first().map_or(1.0, |child| times_guessed(**child))
            }
            NodeTag::T_Agg | NodeTag::T_Unique
                if (*plan).plan_rows > 1.0 && computes_rows((*plan).lefttree) =>
            {
                ((*(*plan).lefttree).plan_rows / (*plan).plan_rows).max(1.0).midpoint(1.0)
            }
            _ => 1.0,
        }
    }
}

/// Whether all rows of a subtree come from functions.
unsafe fn computes_rows(plan: *mut Plan) -> bool {
    // SAFETY: a finished plan.
    unsafe {
        let below = children(plan);
        match (*plan).type_ {
            NodeTag::T_FunctionScan => true,
            NodeTag::T_ProjectSet | NodeTag::T_Result if below.is_empty() => true,
            NodeTag::T_ProjectSet | NodeTag::T_Result | NodeTag::T_Sort | NodeTag::T_SubqueryScan => {
                below.into_iter().all(|child| computes_rows(*child))
            }
            _ => false,
        }
    }
}

/// What vectorised nodes save in a tree.
unsafe fn saving(plan: *mut Plan, subplans: *mut pg_sys::List) -> f64 {
    // SAFETY: a finished plan.
    unsafe {
        let Some((kept, translated)) = translation(plan, subplans) else {
            return children(plan).into_iter().map(|child| saving(*child, subplans)).sum();
        };
        let mut sources = 0.0;
        let mut below = 0.0;
        for source in &translated.sources {
            match source {
                SourceSpec::Columnar { scan, .. } => {
                    let cost = cost::enabled((**scan).scan.plan.total_cost);
                    sources += cost;
                    below += cost * SCANS;
                }
                SourceSpec::Rows { plan } => {
                    let cost = cost::enabled((**plan).total_cost);
                    sources += cost;
                    below += cost - saving(*plan, subplans);
                }
            }
        }
        let all = cost::enabled((*kept).total_cost);
        all - (START + below + (all - sources).max(0.0) * OPERATORS)
    }
}

/// Whether a plan without nested loops could cost less than this one, given what reading one of its tables as
/// a whole costs: at the least that, on vectors, unless it stops early. Of statements with sub-plans that is
/// not known: conditions that contain them raise the costs of scans, and may become joins.
///
/// # Safety
/// As `statement`.
pub unsafe fn may_be_beaten(stmt: *mut pg_sys::PlannedStmt, least: f64) -> bool {
    // SAFETY: as there.
    unsafe {
        !(*stmt).subplans.is_null() || has_limit((*stmt).planTree) || statement(stmt) > START + least * SCANS
    }
}

unsafe fn has_limit(plan: *mut Plan) -> bool {
    // SAFETY: a finished plan.
    unsafe { (*plan).type_ == NodeTag::T_Limit || children(plan).into_iter().any(|child| has_limit(*child)) }
}

/// True where planning again without parallel workers, nested loops and merge joins may leave less to the
/// server's executor.
///
/// # Safety
/// A finished statement.
pub unsafe fn leaves_work(stmt: *mut pg_sys::PlannedStmt) -> bool {
    // SAFETY: as `statement`.
    unsafe {
        let list = (*stmt).subplans;
        let subplans = pgrx::PgList::<Plan>::from_pg(list);
        left((*stmt).planTree, list) || subplans.iter_ptr().any(|plan| !plan.is_null() && left(plan, list))
    }
}

unsafe fn left(plan: *mut Plan, subplans: *mut pg_sys::List) -> bool {
    // SAFETY: a finished plan.
    unsafe {
        if let Some((_, translated)) = translation(plan, subplans) {
            return translated.sources.iter().any(|source| match source {
                SourceSpec::Rows { plan } => left(*plan, subplans),
                SourceSpec::Columnar { .. } => false,
            });
        }
        let itself = match (*plan).type_ {
            NodeTag::T_Gather | NodeTag::T_GatherMerge | NodeTag::T_NestLoop | NodeTag::T_MergeJoin => true,
            NodeTag::T_CustomScan if super::translate::is_columnar(plan) => {
                scanned_rows(plan.cast()) >= vectorised_min_rows()
            }
            _ => false,
        };
        itself || children(plan).into_iter().any(|child| left(*child, subplans))
    }
}
