//! `x < (SELECT avg(y) FROM t WHERE t.k = outer.k)` as a join with the averages of all groups of `t`.
//!
//! Without rows the aggregate is NULL and so is the comparison, just as a group that is not there joins
//! nothing; count, which would be 0, stays a subquery. A row joins at most one group, so no row is doubled.
//! Values of groups that no outer row asks for are computed, too, so only expressions that cannot fail are
//! taken.

use pgrx::PgList;
use pgrx::pg_sys::{self, Node, NodeTag, Query};
use vector::CompareOp;

use super::{add_subquery, column, conjuncts, looks_far_out, reference, sides, sub_links};
use crate::host::tree;
use crate::planner::operand;
use crate::vectorised::translate::types;

/// An equality between the subquery's rows and the outer row.
struct Link {
    clause: *mut pg_sys::OpExpr,
    /// The subquery's side.
    inner: *mut Node,
    /// The inner side is the left one.
    inner_is_left: bool,
}

/// The conditions that take the place of one that compares with a correlated aggregate; the join is added to
/// the query.
///
/// # Safety
/// A condition of the query, both ours to change.
pub unsafe fn as_join(query: *mut Query, condition: *mut Node) -> Option<Vec<*mut Node>> {
    // SAFETY: casts follow the tags.
    unsafe {
        if (*condition).type_ != NodeTag::T_OpExpr {
            return None;
        }
        let comparison = condition.cast::<pg_sys::OpExpr>();
        let (left, right) = sides(comparison)?;
        let links = sub_links(condition);
        let &[link] = links.as_slice() else { return None };
        let on_right = right == link.cast();
        if !(on_right || left == link.cast())
            || !pg_sys::op_strict((*comparison).opno)
            || (*link).subLinkType != pg_sys::SubLinkType::EXPR_SUBLINK
        {
            return None;
        }
        let subquery = (*link).subselect.cast::<Query>();
        let correlations = understood(subquery)?;

        // From here on everything is changed.
        let target = PgList::<pg_sys::TargetEntry>::from_pg((*subquery).targetList).get_ptr(0)?;
        let mut keys = Vec::new();
        for (at, correlation) in (1..).zip(&correlations) {
            keys.push(group_by(subquery, correlation.inner, at));
        }
        let number = add_subquery(query, subquery);
        (*(*query).jointree).fromlist =
            pg_sys::lappend((*(*query).jointree).fromlist, reference(number).cast());
        let mut conditions = Vec::new();
        for (Link { clause, inner_is_left, .. }, key) in correlations.iter().zip(keys) {
            let (left, right) = sides(*clause)?;
            let outer = if *inner_is_left { right } else { left };
            pg_sys::IncrementVarSublevelsUp(outer, -1, 1);
            let key = column(number, key);
            let (left, right) = if *inner_is_left { (key, outer) } else { (outer, key) };
            (**clause).args = pair(left, right);
            conditions.push(clause.cast());
        }
        let aggregate = column(number, target);
        (*comparison).args = if on_right { pair(left, aggregate) } else { pair(aggregate, right) };
        conditions.push(condition);
        Some(conditions)
    }
}

unsafe fn pair(left: *mut Node, right: *mut Node) -> *mut pg_sys::List {
    // SAFETY: lists of two pointers.
    unsafe { pg_sys::lappend(pg_sys::lappend(std::ptr::null_mut(), left.cast()), right.cast()) }
}

/// The equalities that correlate the subquery, taken out of its WHERE; None, and nothing changed, where it is
/// of another shape.
unsafe fn understood(subquery: *mut Query) -> Option<Vec<Link>> {
    // SAFETY: an analysed query.
    unsafe {
        let query = &*subquery;
        let plain = query.commandType == pg_sys::CmdType::CMD_SELECT
            && query.hasAggs
            && !query.hasWindowFuncs
            && !query.hasTargetSRFs
            && !query.hasSubLinks
            && !query.hasModifyingCTE
            && !query.hasForUpdate
            && query.cteList.is_null()
            && query.groupClause.is_null()
            && query.groupingSets.is_null()
            && query.havingQual.is_null()
            && query.distinctClause.is_null()
            && query.sortClause.is_null()
            && query.limitOffset.is_null()
            && query.limitCount.is_null()
            && query.rowMarks.is_null()
            && query.setOperations.is_null()
            && !query.jointree.is_null();
        let targets = PgList::<pg_sys::TargetEntry>::from_pg(query.targetList);
        if !plain || targets.len() != 1 {
            return None;
        }
        let value = (*targets.get_ptr(0)?).expr.cast::<Node>();
        if !is_null_without_rows(value) || !cannot_fail(value) {
            return None;
        }
        let mut conditions = Vec::new();
        conjuncts((*query.jointree).quals, &mut conditions);
        let (linking, others): (Vec<_>, Vec<_>) =
            conditions.into_iter().partition(|&condition| pg_sys::contain_vars_of_level(condition, 1));
        // The groups of all rows are made, whether an outer row asks for them or not. Plain tables have no ON
        // clauses, and nothing that is computed.
        let tables = PgList::<pg_sys::RangeTblEntry>::from_pg(query.rtable);
        let plain = tables.iter_ptr().all(|table| (*table).rtekind == pg_sys::RTEKind::RTE_RELATION);
        if linking.is_empty() || !plain || !others.iter().all(|&condition| has_verdict(condition)) {
            return None;
        }
        let links = linking.iter().map(|&condition| link(condition)).collect::<Option<Vec<_>>>()?;
        let before = (*query.jointree).quals;
        (*query.jointree).quals = super::all_of(&others);
        let whole = subquery.cast::<Node>();
        if looks_far_out(whole, 1)
            || (1..4).any(|level| pg_sys::contain_aggs_of_level(whole, level))
            || pg_sys::contain_volatile_functions(whole)
        {
            (*query.jointree).quals = before;
            return None;
        }
        Some(links)
    }
}

/// `inner = outer` by an equality that groups as it compares.
unsafe fn link(condition: *mut Node) -> Option<Link> {
    // SAFETY: a valid condition; the cast follows the tag.
    unsafe {
        if (*condition).type_ != NodeTag::T_OpExpr {
            return None;
        }
        let clause = condition.cast::<pg_sys::OpExpr>();
        let (_, CompareOp::Equal) = operand::comparison((*clause).opno)? else { return None };
        let (left, right) = sides(clause)?;
        let is_inner = |side| {
            pg_sys::contain_vars_of_level(side, 0)
                && !looks_far_out(side, 1)
                && !pg_sys::contain_aggs_of_level(side, 0)
        };
        let is_outer = |side| {
            pg_sys::contain_vars_of_level(side, 1)
                && !pg_sys::contain_vars_of_level(side, 0)
                && !looks_far_out(side, 2)
        };
        let (inner, inner_is_left) =
            match (is_inner(left) && is_outer(right), is_outer(left) && is_inner(right)) {
                (true, _) => (left, true),
                (_, true) => (right, false),
                _ => return None,
            };
        // Values that the operator calls equal must be in one group.
        types::can_equal(types::column_of(inner)).ok()?;
        let collation = (*clause).inputcollid;
        let plain = collation == pg_sys::InvalidOid || types::is_deterministic(collation);
        (plain && cannot_fail(left) && cannot_fail(right) && !pg_sys::contain_volatile_functions(condition))
            .then_some(Link { clause, inner, inner_is_left })
    }
}

/// Groups the subquery by one more expression, which becomes one more column.
unsafe fn group_by(subquery: *mut Query, key: *mut Node, reference: u32) -> *mut pg_sys::TargetEntry {
    // SAFETY: zeroed nodes are valid starts; the server finds the operators of the key's type, which has
    // them: it was compared.
    unsafe {
        let number = if (*subquery).targetList.is_null() { 0 } else { (*(*subquery).targetList).length };
        let target = pg_sys::makeTargetEntry(
            key.cast(),
            i16::try_from(number + 1).unwrap_or(i16::MAX),
            super::copied("key"),
            false,
        );
        (*target).ressortgroupref = reference;
        (*subquery).targetList = pg_sys::lappend((*subquery).targetList, target.cast());
        let clause = pg_sys::palloc0(size_of::<pg_sys::SortGroupClause>()).cast::<pg_sys::SortGroupClause>();
        (*clause).type_ = NodeTag::T_SortGroupClause;
        (*clause).tleSortGroupRef = reference;
        pg_sys::get_sort_group_operators(
            pg_sys::exprType(key),
            false,
            true,
            false,
            &raw mut (*clause).sortop,
            &raw mut (*clause).eqop,
            std::ptr::null_mut(),
            &raw mut (*clause).hashable,
        );
        (*subquery).groupClause = pg_sys::lappend((*subquery).groupClause, clause.cast());
        target
    }
}

/// True where an aggregate query's value is NULL when there are no rows.
unsafe fn is_null_without_rows(node: *mut Node) -> bool {
    // SAFETY: casts follow the tags.
    unsafe {
        match (*node).type_ {
            NodeTag::T_Aggref => {
                use pg_sys as p;
                let aggregate = &*node.cast::<pg_sys::Aggref>();
                !matches!(aggregate.aggfnoid.to_u32(), p::F_COUNT_ | p::F_COUNT_ANY)
                    && is_sum_or_extreme(aggregate)
            }
            NodeTag::T_RelabelType => is_null_without_rows((*node.cast::<pg_sys::RelabelType>()).arg.cast()),
            NodeTag::T_OpExpr => {
                let expr = &*node.cast::<pg_sys::OpExpr>();
                pg_sys::op_strict(expr.opno)
                    && PgList::<Node>::from_pg(expr.args).iter_ptr().any(|arg| is_null_without_rows(arg))
            }
            NodeTag::T_FuncExpr => {
                let expr = &*node.cast::<pg_sys::FuncExpr>();
                pg_sys::func_strict(expr.funcid)
                    && PgList::<Node>::from_pg(expr.args).iter_ptr().any(|arg| is_null_without_rows(arg))
            }
            _ => false,
        }
    }
}

/// Sums and averages of exact numbers, and extremes, which cannot fail.
fn is_sum_or_extreme(aggregate: &pg_sys::Aggref) -> bool {
    use pg_sys as p;
    let oid = aggregate.aggfnoid.to_u32();
    matches!(
        oid,
        p::F_SUM_INT2
            | p::F_SUM_INT4
            | p::F_SUM_INT8
            | p::F_SUM_NUMERIC
            | p::F_AVG_INT2
            | p::F_AVG_INT4
            | p::F_AVG_INT8
            | p::F_AVG_NUMERIC
    ) || (p::F_MAX_INT8..=p::F_MAX_NUMERIC).contains(&oid)
        || (p::F_MIN_INT8..=p::F_MIN_NUMERIC).contains(&oid)
}

/// Comparisons and NULL tests of what cannot fail, and what AND, OR and NOT make of them.
unsafe fn has_verdict(node: *mut Node) -> bool {
    // SAFETY: casts follow the tags; args are lists of expressions.
    unsafe {
        let all = |list, holds: unsafe fn(*mut Node) -> bool| {
            PgList::<Node>::from_pg(list).iter_ptr().all(|part| holds(part))
        };
        match (*node).type_ {
            NodeTag::T_BoolExpr => all((*node.cast::<pg_sys::BoolExpr>()).args, has_verdict),
            NodeTag::T_NullTest => cannot_fail((*node.cast::<pg_sys::NullTest>()).arg.cast()),
            NodeTag::T_OpExpr if operand::comparison((*node.cast::<pg_sys::OpExpr>()).opno).is_some() => {
                all((*node.cast::<pg_sys::OpExpr>()).args, cannot_fail)
            }
            NodeTag::T_ScalarArrayOpExpr => {
                let expr = &*node.cast::<pg_sys::ScalarArrayOpExpr>();
                operand::comparison(expr.opno).is_some() && all(expr.args, cannot_fail)
            }
            _ => cannot_fail(node),
        }
    }
}

/// Columns, constants, parameters, aggregates and arithmetic of numerics that has a result for every value.
unsafe fn cannot_fail(node: *mut Node) -> bool {
    // SAFETY: casts follow the tags; args are lists of what their names say.
    unsafe {
        let all = |list| PgList::<Node>::from_pg(list).iter_ptr().all(|part| cannot_fail(part));
        match (*node).type_ {
            NodeTag::T_Var | NodeTag::T_Const | NodeTag::T_Param => true,
            // It fails while it is planned, or never.
            _ if is_constant(node) => true,
            NodeTag::T_Aggref => {
                let aggregate = &*node.cast::<pg_sys::Aggref>();
                let args = PgList::<pg_sys::TargetEntry>::from_pg(aggregate.args);
                is_sum_or_extreme(aggregate)
                    && aggregate.aggfilter.is_null()
                    && args.iter_ptr().all(|arg| cannot_fail((*arg).expr.cast()))
            }
            NodeTag::T_RelabelType => cannot_fail((*node.cast::<pg_sys::RelabelType>()).arg.cast()),
            NodeTag::T_OpExpr => {
                let expr = &*node.cast::<pg_sys::OpExpr>();
                is_certain(pg_sys::get_opcode(expr.opno)) && all(expr.args)
            }
            NodeTag::T_FuncExpr => {
                let expr = &*node.cast::<pg_sys::FuncExpr>();
                is_certain(expr.funcid) && all(expr.args)
            }
            _ => false,
        }
    }
}

/// Whether an expression is of constants alone, which the planner computes.
unsafe fn is_constant(node: *mut Node) -> bool {
    // SAFETY: a valid expression.
    unsafe {
        !(0..4).any(|level| pg_sys::contain_vars_of_level(node, level))
            && !pg_sys::contain_agg_clause(node)
            && !pg_sys::contain_mutable_functions(node)
            && !pg_sys::contain_subplans(node)
            && !tree::contains(node, |tag| tag == NodeTag::T_Param)
    }
}

fn is_certain(function: pg_sys::Oid) -> bool {
    use pg_sys as p;
    matches!(
        function.to_u32(),
        p::F_NUMERIC_ADD
            | p::F_NUMERIC_SUB
            | p::F_NUMERIC_MUL
            | p::F_NUMERIC_INT2
            | p::F_NUMERIC_INT4
            | p::F_NUMERIC_INT8
            | p::F_INT8_INT4
            | p::F_INT8_INT2
            | p::F_INT4_INT2
    )
}
