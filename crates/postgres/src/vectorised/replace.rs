//! Replacing parts of a finished plan by vectorised nodes.
//!
//! Called by `planner_hook` with every plan for which a columnar scan was considered. The walk goes from the
//! top down. The first subtree that translates as a whole and is worth it becomes a `CustomScan`, which keeps
//! the subtree and gives the same columns. Where a subtree stays, its children are tried. A vectorised node
//! may take rows of some subtrees from the server's executor; these subtrees are tried, too. Invariant: the
//! plan still runs when nothing is replaced, and every reader of a replaced node sees the same target list,
//! costs, rows and parameters.
//!
//! These subtrees are never replaced:
//! - a subtree below Gather, because workers run their own copy;
//! - a subtree that a nested loop or a recursive query restarts for every row;
//! - a subtree that a merge join marks and restores;
//! - a subtree that calls volatile functions, because a subtree that declines is run again from its start.

use pgrx::pg_sys::{self, NodeTag};

use super::node;
use super::plan_parts::is_volatile;
use super::shown;
use super::translate::translate;
use super::translated::{NoValues, Reason, SourceSpec, Translated};
use super::unasked_rows;
use crate::host::tree::{FinishedStatement, Plan};
use crate::options::settings::vectorised_min_rows;
use crate::planner::plan::{note_reason, scanned_rows};

/// Replaces what can be in a whole statement. False where none of it may be.
///
/// # Safety
/// A statement that the planner has just finished, and ours to change.
pub unsafe fn statement(stmt: *mut pg_sys::PlannedStmt) -> bool {
    // SAFETY: the caller's statement, whose list of sub-plans holds plans.
    unsafe {
        // Rows that are locked or changed may be looked at again one by one, together with what they were
        // joined to.
        let reads = matches!((*stmt).commandType, pg_sys::CmdType::CMD_SELECT | pg_sys::CmdType::CMD_INSERT);
        if !reads || !(*stmt).rowMarks.is_null() || (*stmt).hasModifyingCTE {
            return false;
        }
        let statement = FinishedStatement::of(stmt);
        // A sub-plan with side effects could be reached from anywhere.
        if statement.subplans().iter().any(is_volatile) {
            return false;
        }
        tree(&raw mut (*stmt).planTree, statement, None, false);
        // EXISTS, and a reader of a CTE, may stop at any row.
        places((*stmt).subplans).into_iter().for_each(|slot| tree(slot, statement, None, true));
        true
    }
}

/// The places of a list of plans.
///
/// # Safety
/// A list of pointers, or null.
unsafe fn places(list: *mut pg_sys::List) -> Vec<*mut *mut pg_sys::Plan> {
    // SAFETY: the caller's list.
    unsafe {
        let count = if list.is_null() { 0 } else { usize::try_from((*list).length).unwrap_or(0) };
        (0..count).map(|at| (&raw mut (*(*list).elements.add(at)).ptr_value).cast()).collect()
    }
}

/// Replaces what can be in the tree at `slot`. `above` is why an operator above it stays, for EXPLAIN;
/// `partly`: its reader may stop before the last row.
///
/// # Safety
/// A place of a finished plan that is ours to change, which holds a plan or null, and its statement.
unsafe fn tree(
    slot: *mut *mut pg_sys::Plan,
    statement: FinishedStatement<'_>,
    above: Option<&Reason>,
    partly: bool,
) {
    // SAFETY: the caller's place; the plan is only read before anything in it is replaced.
    let Some(plan) = (unsafe { Plan::new(*slot) }) else { return };
    if matches!(plan.tag(), NodeTag::T_Gather | NodeTag::T_GatherMerge) {
        return;
    }
    let reason = match replaceable(plan, statement, partly) {
        Ok(below) => {
            // SAFETY: places and nodes of this plan.
            unsafe {
                for rows in below {
                    if let Some(slot) = place_of(plan.as_ptr(), rows) {
                        tree(slot, statement, None, partly);
                    }
                }
                *slot = replacement(plan.as_ptr());
            }
            return;
        }
        Err(reason) => reason,
    };
    if super::translate::is_columnar(plan) {
        // The reason that keeps the scan itself says more than the reasons that keep the nodes above it.
        if let Some(above) = above {
            // SAFETY: the sub-plans of the caller's statement; the scan is one of ours.
            unsafe {
                let itself = translate(plan, statement, &mut NoValues).err();
                note_reason(plan.as_ptr().cast(), &itself.unwrap_or_else(|| above.clone()).0);
            }
        }
        return;
    }
    let above = if is_operator(plan.tag()) { Some(&reason) } else { above };
    let partly = match plan.tag() {
        NodeTag::T_Limit => true,
        NodeTag::T_Sort | NodeTag::T_Agg => false,
        _ => partly,
    };
    // SAFETY: places of this plan.
    unsafe { trees_below(plan.as_ptr(), statement, above, partly) };
}

/// The nodes below a plan whose rows a vectorised node in its place takes from the server's executor.
///
/// # Errors
/// The reason why it stays.
fn replaceable(
    plan: Plan<'_>,
    statement: FinishedStatement<'_>,
    partly: bool,
) -> Result<Vec<*mut pg_sys::Plan>, Reason> {
    let translated = translate(plan, statement, &mut NoValues)?;
    if is_volatile(plan) {
        return Err(Reason("volatile function".into()));
    }
    // SAFETY: the translation of this plan, which has not changed since.
    let (may_fail, is_worth_it) = unsafe {
        let may_fail = unasked_rows::may_fail(&translated, statement, partly);
        (may_fail, !may_fail && is_worth_it(&translated))
    };
    if may_fail {
        return Err(Reason("rows that may not be asked for have expressions that may raise an error".into()));
    }
    if !is_worth_it {
        return Err(Reason("few rows, or none that come as vectors".into()));
    }
    let rows = translated.sources.iter().filter_map(|source| match source {
        SourceSpec::Rows { plan } => Some(*plan),
        SourceSpec::Columnar { .. } => None,
    });
    Ok(rows.collect())
}

/// `tree` of a node's children, but for those that it restarts.
///
/// # Safety
/// As `tree`, a plan instead of its place.
unsafe fn trees_below(
    plan: *mut pg_sys::Plan,
    statement: FinishedStatement<'_>,
    above: Option<&Reason>,
    partly: bool,
) {
    // SAFETY: places of the caller's plan.
    unsafe {
        for child in children(plan) {
            if !is_restarted(plan, child) {
                tree(child, statement, above, partly);
            } else if matches!((**child).type_, NodeTag::T_Material | NodeTag::T_Sort) {
                // The nodes below the restarted node keep their rows.
                children(*child).into_iter().for_each(|below| tree(below, statement, above, partly));
            }
        }
    }
}

/// A node of a kind that would be an operator of ours.
const fn is_operator(tag: NodeTag) -> bool {
    use NodeTag as T;
    matches!(
        tag,
        T::T_Agg
            | T::T_Group
            | T::T_Sort
            | T::T_IncrementalSort
            | T::T_Unique
            | T::T_SetOp
            | T::T_WindowAgg
            | T::T_HashJoin
            | T::T_MergeJoin
            | T::T_NestLoop
    )
}

/// A child that its parent restarts, or marks and restores, again and again.
///
/// # Safety
/// A plan node, and a place of it.
unsafe fn is_restarted(plan: *mut pg_sys::Plan, child: *mut *mut pg_sys::Plan) -> bool {
    // SAFETY: the caller's node.
    unsafe {
        match (*plan).type_ {
            NodeTag::T_NestLoop | NodeTag::T_MergeJoin => child == &raw mut (*plan).righttree,
            NodeTag::T_RecursiveUnion => true,
            _ => false,
        }
    }
}

/// Where a node's inputs hang, in the order of `plan_parts::inputs`.
///
/// # Safety
/// A finished plan node.
unsafe fn children(plan: *mut pg_sys::Plan) -> Vec<*mut *mut pg_sys::Plan> {
    // SAFETY: casts follow the node's tag; lists of plans are lists of pointers.
    unsafe {
        let mut found = vec![&raw mut (*plan).lefttree, &raw mut (*plan).righttree];
        match (*plan).type_ {
            NodeTag::T_Append => found.extend(places((*plan.cast::<pg_sys::Append>()).appendplans)),
            NodeTag::T_MergeAppend => {
                found.extend(places((*plan.cast::<pg_sys::MergeAppend>()).mergeplans));
            }
            NodeTag::T_SubqueryScan => {
                found.push(&raw mut (*plan.cast::<pg_sys::SubqueryScan>()).subplan);
            }
            NodeTag::T_CustomScan => {
                // Ours has its left tree only for EXPLAIN.
                found.clear();
                found.extend(places((*plan.cast::<pg_sys::CustomScan>()).custom_plans));
            }
            _ => {}
        }
        found.retain(|&child| !(*child).is_null());
        found
    }
}

/// The place in `root` that holds `wanted`.
///
/// # Safety
/// A finished plan.
unsafe fn place_of(root: *mut pg_sys::Plan, wanted: *mut pg_sys::Plan) -> Option<*mut *mut pg_sys::Plan> {
    // SAFETY: places of the caller's plan.
    unsafe {
        children(root)
            .into_iter()
            .find_map(|child| if *child == wanted { Some(child) } else { place_of(*child, wanted) })
    }
}

/// A columnar table with enough rows is below, and something that has to see all of them first.
///
/// # Safety
/// The translation of a finished plan, which has not changed since.
unsafe fn is_worth_it(translated: &Translated) -> bool {
    // SAFETY: the caller's translation.
    unsafe { rows_read(translated) >= vectorised_min_rows() && has_breaker(&translated.plan) }
}

/// How many rows of columnar tables one start is likely to read. Each start costs something for each
/// partition, also of those that it does not read.
///
/// # Safety
/// As `is_worth_it`.
unsafe fn rows_read(translated: &Translated) -> f64 {
    let of = |sources: &[SourceSpec]| {
        let rows = sources.iter().map(|source| match source {
            // SAFETY: a scan node of ours.
            SourceSpec::Columnar { scan, .. } => unsafe { scanned_rows(*scan) },
            SourceSpec::Rows { .. } => 0.0,
        });
        rows.sum::<f64>()
    };
    let unread = translated.alternatives.iter().map(|inputs| {
        let rows = inputs.iter().map(|input| of(&translated.sources[input.clone()]));
        let (sum, most) = rows.fold((0.0, 0.0), |(sum, most): (f64, f64), rows| (sum + rows, most.max(rows)));
        sum - most
    });
    of(&translated.sources) - unread.sum::<f64>()
}

fn has_breaker(plan: &query::Plan) -> bool {
    use query::Plan as P;
    match plan {
        P::Scan { .. } => false,
        P::Aggregate { .. }
        | P::GroupingSets { .. }
        | P::Sort { .. }
        | P::DistinctOn { .. }
        | P::Join { .. }
        | P::Window { .. } => true,
        P::Filter { input, .. }
        | P::Project { input, .. }
        | P::Repeat { input, .. }
        | P::Limit { input, .. } => has_breaker(input),
        P::Append { inputs, .. } => inputs.iter().any(has_breaker),
    }
}

/// The node that stands for `plan` from now on.
///
/// # Safety
/// A finished plan that is ours to change.
unsafe fn replacement(plan: *mut pg_sys::Plan) -> *mut pg_sys::Plan {
    // SAFETY: a zeroed CustomScan is a valid start; lists are the server's own kinds.
    unsafe {
        let scan = pg_sys::palloc0(size_of::<pg_sys::CustomScan>()).cast::<pg_sys::CustomScan>();
        let new = &raw mut (*scan).scan.plan;
        (*new).type_ = NodeTag::T_CustomScan;
        (*new).startup_cost = (*plan).startup_cost;
        (*new).total_cost = (*plan).total_cost;
        (*new).plan_rows = (*plan).plan_rows;
        (*new).plan_width = (*plan).plan_width;
        (*new).plan_node_id = (*plan).plan_node_id;
        (*new).extParam = (*plan).extParam;
        (*new).allParam = (*plan).allParam;
        // The same sub-plans are not initialised twice, for this node and for what it keeps.
        (*new).initPlan = take_init_plans(plan);
        // For EXPLAIN, which looks there for what the target list mentions; the executor does not.
        (*new).lefttree = match (*plan).type_ {
            NodeTag::T_Append => places((*plan.cast::<pg_sys::Append>()).appendplans)
                .first()
                .map_or(std::ptr::null_mut(), |&first| *first),
            _ => (*plan).lefttree,
        };
        (*new).righttree = (*plan).righttree;
        if let Some(plan) = Plan::new(plan) {
            (*new).targetlist = columns(plan);
            (*scan).custom_scan_tlist = shown::columns(plan);
        }
        (*scan).custom_plans = pg_sys::lappend(std::ptr::null_mut(), plan.cast());
        (*scan).methods = node::scan_methods();
        new
    }
}

/// The target list of the new node: each column as the subtree gives it.
fn columns(plan: Plan<'_>) -> *mut pg_sys::List {
    let mut list = std::ptr::null_mut();
    for target in plan.targets().iter() {
        let expr = target.expr();
        let (kind, typmod, collation) = (expr.type_oid(), expr.typmod(), expr.collation());
        // SAFETY: new nodes in the current memory, and a list of them.
        unsafe {
            let var = pg_sys::makeVar(pg_sys::INDEX_VAR, target.resno, kind, typmod, collation, 0);
            let entry = pg_sys::flatCopyTargetEntry(target.as_ptr());
            (*entry).expr = var.cast();
            list = pg_sys::lappend(list, entry.cast());
        }
    }
    list
}

/// Takes the init plans off a subtree, deepest first, so that one that others depend on comes before them.
///
/// # Safety
/// A finished plan that is ours to change.
unsafe fn take_init_plans(plan: *mut pg_sys::Plan) -> *mut pg_sys::List {
    // SAFETY: nodes of the caller's plan.
    unsafe {
        let mut taken = std::ptr::null_mut();
        for child in children(plan) {
            taken = pg_sys::list_concat(taken, take_init_plans(*child));
        }
        let own = std::mem::replace(&mut (*plan).initPlan, std::ptr::null_mut());
        pg_sys::list_concat(taken, own)
    }
}
