//! Replacing parts of a finished plan by vectorised nodes.
//!
//! Called by `planner_hook` with every plan for which a columnar scan was considered. From the top down, the
//! first subtree that translates as a whole and is worth it becomes a `CustomScan` that keeps the subtree and
//! gives the same columns; where a subtree stays, its children are tried, and so are those below it whose
//! rows the vectorised node takes from the server's executor. Invariant: the plan still runs when nothing is
//! replaced, and every reader of a replaced node sees the same target list, costs, rows and parameters.
//!
//! Not replaced: what runs below Gather (workers run their own copy), what a nested loop or a recursive query
//! restarts for every row, what a merge join marks and restores, and what calls volatile functions, because a
//! subtree that declines is run again from its start.

use pgrx::PgList;
use pgrx::pg_sys::{self, NodeTag, Plan};

use super::node;
use super::read_ahead;
use super::shown;
use super::translate::translate;
use super::translated::{NoValues, Reason, SourceSpec, Translated};
use crate::options::settings::vectorised_min_rows;
use crate::planner::plan::{note_reason, scanned_rows};

/// Replaces what can be in a whole statement. False where none of it may be.
///
/// # Safety
/// A statement that the planner has just finished.
pub unsafe fn statement(stmt: *mut pg_sys::PlannedStmt) -> bool {
    // SAFETY: the caller's promise: the plan is ours to change; the list of sub-plans holds plans.
    unsafe {
        // Rows that are locked or changed may be looked at again one by one, together with what they were
        // joined to.
        let reads = matches!((*stmt).commandType, pg_sys::CmdType::CMD_SELECT | pg_sys::CmdType::CMD_INSERT);
        if !reads || !(*stmt).rowMarks.is_null() || (*stmt).hasModifyingCTE {
            return false;
        }
        let slots = places((*stmt).subplans);
        // A sub-plan with side effects could be reached from anywhere.
        if slots.iter().any(|&slot| is_volatile(*slot)) {
            return false;
        }
        let subplans = (*stmt).subplans;
        tree(&raw mut (*stmt).planTree, subplans, None, false);
        // EXISTS, and whoever reads a CTE, may stop at any row.
        slots.into_iter().for_each(|slot| tree(slot, subplans, None, true));
        true
    }
}

/// The places of a list of plans.
unsafe fn places(list: *mut pg_sys::List) -> Vec<*mut *mut Plan> {
    // SAFETY: a list of pointers, or null.
    unsafe {
        let count = if list.is_null() { 0 } else { usize::try_from((*list).length).unwrap_or(0) };
        (0..count).map(|at| (&raw mut (*(*list).elements.add(at)).ptr_value).cast()).collect()
    }
}

/// Replaces what can be in the tree at `slot`. `above` is why an operator above it stays, for EXPLAIN;
/// `partly`: its reader may stop before the last row.
unsafe fn tree(slot: *mut *mut Plan, subplans: *mut pg_sys::List, above: Option<&Reason>, partly: bool) {
    // SAFETY: a place of a finished plan that holds a plan or null.
    unsafe {
        let plan = *slot;
        if plan.is_null() || matches!((*plan).type_, NodeTag::T_Gather | NodeTag::T_GatherMerge) {
            return;
        }
        let reason = match translate(plan, subplans, &mut NoValues) {
            Ok(_) if is_volatile(plan) => Reason("volatile function".into()),
            Ok(translated) if read_ahead::may_fail(&translated, subplans, partly) => {
                Reason("rows that may not be asked for have expressions that may raise an error".into())
            }
            Ok(translated) if is_worth_it(&translated) => {
                for source in &translated.sources {
                    if let SourceSpec::Rows { plan: below } = source
                        && let Some(slot) = place_of(plan, *below)
                    {
                        tree(slot, subplans, None, partly);
                    }
                }
                *slot = replacement(plan);
                return;
            }
            Ok(_) => Reason("few rows, or none that come as vectors".into()),
            Err(reason) => reason,
        };
        if super::translate::is_columnar(plan) {
            // What keeps the scan itself says more than what keeps those above it.
            if let Some(above) = above {
                let itself = translate(plan, subplans, &mut NoValues).err();
                note_reason(plan.cast(), &itself.unwrap_or_else(|| above.clone()).0);
            }
            return;
        }
        let above = if is_operator(plan) { Some(&reason) } else { above };
        let partly = match (*plan).type_ {
            NodeTag::T_Limit => true,
            NodeTag::T_Sort | NodeTag::T_Agg => false,
            _ => partly,
        };
        for child in children(plan) {
            if is_restarted(plan, child) {
                // What is below the node that is restarted keeps its rows.
                if matches!((**child).type_, NodeTag::T_Material | NodeTag::T_Sort) {
                    children(*child).into_iter().for_each(|below| tree(below, subplans, above, partly));
                }
            } else {
                tree(child, subplans, above, partly);
            }
        }
    }
}

/// A node that would be an operator of ours.
unsafe fn is_operator(plan: *mut Plan) -> bool {
    use NodeTag as T;
    // SAFETY: a plan node.
    unsafe {
        matches!(
            (*plan).type_,
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
}

/// A child that its parent restarts, or marks and restores, again and again.
unsafe fn is_restarted(plan: *mut Plan, child: *mut *mut Plan) -> bool {
    // SAFETY: a child of the plan.
    unsafe {
        match (*plan).type_ {
            NodeTag::T_NestLoop | NodeTag::T_MergeJoin => child == &raw mut (*plan).righttree,
            NodeTag::T_RecursiveUnion => true,
            _ => false,
        }
    }
}

/// Where a node's inputs hang.
///
/// # Safety
/// A finished plan node.
pub unsafe fn children(plan: *mut Plan) -> Vec<*mut *mut Plan> {
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
unsafe fn place_of(root: *mut Plan, wanted: *mut Plan) -> Option<*mut *mut Plan> {
    // SAFETY: plans of one tree.
    unsafe {
        children(root)
            .into_iter()
            .find_map(|child| if *child == wanted { Some(child) } else { place_of(*child, wanted) })
    }
}

/// Whether running the subtree twice could be noticed.
unsafe fn is_volatile(plan: *mut Plan) -> bool {
    if plan.is_null() {
        return false;
    }
    // SAFETY: a plan of the server's.
    unsafe {
        matches!((*plan).type_, NodeTag::T_ModifyTable | NodeTag::T_LockRows | NodeTag::T_ForeignScan)
            || expressions(plan).into_iter().any(|part| pg_sys::contain_volatile_functions(part))
            || children(plan).into_iter().any(|child| is_volatile(*child))
    }
}

/// What a node itself computes: expressions or lists of them, some null.
///
/// # Safety
/// A finished plan node.
pub unsafe fn expressions(plan: *mut Plan) -> Vec<*mut pg_sys::Node> {
    // SAFETY: casts follow the node's tag.
    unsafe {
        let mut found: Vec<*mut pg_sys::Node> = vec![(*plan).targetlist.cast(), (*plan).qual.cast()];
        match (*plan).type_ {
            NodeTag::T_FunctionScan => found.push((*plan.cast::<pg_sys::FunctionScan>()).functions.cast()),
            NodeTag::T_TableFuncScan => found.push((*plan.cast::<pg_sys::TableFuncScan>()).tablefunc.cast()),
            NodeTag::T_ValuesScan => found.push((*plan.cast::<pg_sys::ValuesScan>()).values_lists.cast()),
            NodeTag::T_Result => found.push((*plan.cast::<pg_sys::Result>()).resconstantqual),
            NodeTag::T_NestLoop | NodeTag::T_MergeJoin | NodeTag::T_HashJoin => {
                found.push((*plan.cast::<pg_sys::Join>()).joinqual.cast());
                if (*plan).type_ == NodeTag::T_HashJoin {
                    found.push((*plan.cast::<pg_sys::HashJoin>()).hashclauses.cast());
                }
                if (*plan).type_ == NodeTag::T_MergeJoin {
                    found.push((*plan.cast::<pg_sys::MergeJoin>()).mergeclauses.cast());
                }
            }
            NodeTag::T_WindowAgg => {
                let window = plan.cast::<pg_sys::WindowAgg>();
                found.extend([(*window).startOffset, (*window).endOffset, (*window).runCondition.cast()]);
            }
            NodeTag::T_Limit => {
                let limit = plan.cast::<pg_sys::Limit>();
                found.extend([(*limit).limitOffset, (*limit).limitCount]);
            }
            NodeTag::T_SampleScan => found.push((*plan.cast::<pg_sys::SampleScan>()).tablesample.cast()),
            _ => {}
        }
        found
    }
}

/// The subtree that a vectorised node keeps; None for any other node.
///
/// # Safety
/// A finished plan.
pub unsafe fn kept(plan: *mut Plan) -> Option<*mut Plan> {
    // SAFETY: the casts follow tag and methods; the first child of ours is the kept subtree.
    unsafe {
        let scan = plan.cast::<pg_sys::CustomScan>();
        let ours = (*plan).type_ == NodeTag::T_CustomScan && (*scan).methods == node::scan_methods();
        ours.then(|| PgList::<Plan>::from_pg((*scan).custom_plans).get_ptr(0))?
    }
}

/// The subtree that a vectorised node keeps, and its translation; None for any other node.
///
/// # Safety
/// A finished plan, and the sub-plans of its statement.
pub unsafe fn translation(plan: *mut Plan, subplans: *mut pg_sys::List) -> Option<(*mut Plan, Translated)> {
    // SAFETY: the caller's promise.
    unsafe {
        let kept = kept(plan)?;
        Some((kept, translate(kept, subplans, &mut NoValues).ok()?))
    }
}

/// A columnar table with enough rows is below, and something that has to see all of them first.
unsafe fn is_worth_it(translated: &Translated) -> bool {
    // SAFETY: the caller's promise.
    unsafe { rows_read(translated) >= vectorised_min_rows() && has_breaker(&translated.plan) }
}

/// How many rows of columnar tables one start is likely to read. Each start costs something for each
/// partition, also of those that it does not read.
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
unsafe fn replacement(plan: *mut Plan) -> *mut Plan {
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
            NodeTag::T_Append => PgList::<Plan>::from_pg((*plan.cast::<pg_sys::Append>()).appendplans)
                .get_ptr(0)
                .unwrap_or(std::ptr::null_mut()),
            _ => (*plan).lefttree,
        };
        (*new).righttree = (*plan).righttree;
        (*new).targetlist = columns(plan);
        (*scan).custom_scan_tlist = shown::columns(plan);
        (*scan).custom_plans = pg_sys::lappend(std::ptr::null_mut(), plan.cast());
        (*scan).methods = node::scan_methods();
        new
    }
}

/// The target list of the new node: each column as the subtree gives it.
unsafe fn columns(plan: *mut Plan) -> *mut pg_sys::List {
    let mut list = std::ptr::null_mut();
    // SAFETY: a list of target entries.
    unsafe {
        for target in PgList::<pg_sys::TargetEntry>::from_pg((*plan).targetlist).iter_ptr() {
            let expr = (*target).expr.cast::<pg_sys::Node>();
            let var = pg_sys::makeVar(
                pg_sys::INDEX_VAR,
                (*target).resno,
                pg_sys::exprType(expr),
                pg_sys::exprTypmod(expr),
                pg_sys::exprCollation(expr),
                0,
            );
            let entry = pg_sys::flatCopyTargetEntry(target);
            (*entry).expr = var.cast();
            list = pg_sys::lappend(list, entry.cast());
        }
    }
    list
}

/// Takes the init plans off a subtree, deepest first, so that one that others depend on comes before them.
unsafe fn take_init_plans(plan: *mut Plan) -> *mut pg_sys::List {
    // SAFETY: plans of one tree.
    unsafe {
        let mut taken = std::ptr::null_mut();
        for child in children(plan) {
            taken = pg_sys::list_concat(taken, take_init_plans(*child));
        }
        let own = std::mem::replace(&mut (*plan).initPlan, std::ptr::null_mut());
        pg_sys::list_concat(taken, own)
    }
}
