//! `x < (SELECT avg(y) FROM t WHERE t.k = outer.k)` as a join with the averages of all groups of `t`.
//!
//! Without rows the aggregate is NULL, and so is the comparison. In the join such a group is missing, so the
//! outer row joins nothing. Count would be 0 without rows, so it stays a subquery. A row joins at most one
//! group, so no row is doubled. Values of groups that no outer row asks for are computed, too. So only
//! expressions that cannot fail are rewritten.

use pgrx::pg_sys::{self, NodeTag, Query};
use vector::CompareOp;

use super::{add_subquery, all_of, column, conjuncts, is_plain, looks_far_out, pair, reference, sides};
use crate::host::tree::{Expression as E, List, Node, Targets, Typed};
use crate::planner::operand;
use crate::vectorised::translate::types;

/// An equality between the subquery's rows and the outer row.
struct Link {
    clause: *mut pg_sys::OpExpr,
    /// The subquery's side.
    inner: *mut pg_sys::Node,
    /// The other one.
    outer: *mut pg_sys::Node,
    /// The inner side is the left one.
    inner_is_left: bool,
}

/// A comparison with a correlated aggregate that is understood.
struct Comparison {
    expr: *mut pg_sys::OpExpr,
    /// The side that is not the aggregate.
    other: *mut pg_sys::Node,
    /// The aggregate is the right side.
    on_right: bool,
    subquery: *mut Query,
    links: Vec<Link>,
}

/// The conditions that take the place of one that compares with a correlated aggregate; the join is added to
/// the query.
///
/// # Safety
/// A condition of an analysed query, both ours to change.
pub unsafe fn as_join(query: *mut Query, condition: *mut pg_sys::Node) -> Option<Vec<*mut pg_sys::Node>> {
    // SAFETY: the caller's condition, and what is below it.
    unsafe {
        let Comparison { expr, other, on_right, subquery, links } = comparison(Node::new(condition)?)?;

        // From here on everything is changed.
        let target = Targets::new((*subquery).targetList).get(0)?.as_ptr();
        let mut keys = Vec::new();
        for (at, link) in (1..).zip(&links) {
            keys.push(group_by(subquery, link.inner, at));
        }
        let number = add_subquery(query, subquery);
        (*(*query).jointree).fromlist =
            pg_sys::lappend((*(*query).jointree).fromlist, reference(number).cast());
        let mut conditions = Vec::new();
        for (Link { clause, outer, inner_is_left, .. }, key) in links.into_iter().zip(keys) {
            pg_sys::IncrementVarSublevelsUp(outer, -1, 1);
            let key = column(number, key);
            (*clause).args = if inner_is_left { pair(key, outer) } else { pair(outer, key) };
            conditions.push(clause.cast());
        }
        let aggregate = column(number, target);
        (*expr).args = if on_right { pair(other, aggregate) } else { pair(aggregate, other) };
        conditions.push(condition);
        Some(conditions)
    }
}

/// The condition as a comparison of this kind. The equalities that correlate its subquery are taken out of
/// the WHERE of that; None, and nothing changed, where it is no such comparison.
///
/// # Safety
/// A condition of an analysed query that is ours to change.
unsafe fn comparison(condition: Node<'_>) -> Option<Comparison> {
    let expr = condition.as_a::<pg_sys::OpExpr>()?;
    let (left, right) = sides(expr)?;
    let links = super::sub_links(condition);
    let &[link] = links.as_slice() else { return None };
    let on_right = right == link.node();
    // SAFETY: a catalog look-up.
    let is_strict = || unsafe { pg_sys::op_strict(expr.opno) };
    if !(on_right || left == link.node())
        || !is_strict()
        || link.subLinkType != pg_sys::SubLinkType::EXPR_SUBLINK
    {
        return None;
    }
    let other = if on_right { left } else { right };
    let subquery = link.subselect.cast::<Query>();
    // SAFETY: the sub-link's query is analysed, and part of the caller's.
    let links = unsafe { understood(subquery)? };
    Some(Comparison { expr: expr.as_ptr(), other: other.as_ptr(), on_right, subquery, links })
}

/// Whether a query computes aggregates over all of its rows, and does nothing else.
fn is_one_group(query: &Query) -> bool {
    is_plain(query)
        && query.hasAggs
        && !query.hasWindowFuncs
        && !query.hasTargetSRFs
        && !query.hasSubLinks
        && query.cteList.is_null()
        && query.groupClause.is_null()
        && query.havingQual.is_null()
        && query.distinctClause.is_null()
        && query.sortClause.is_null()
        && query.limitOffset.is_null()
        && query.limitCount.is_null()
        && !query.jointree.is_null()
}

/// The equalities that correlate the subquery, taken out of its WHERE; None, and nothing changed, where it is
/// of another shape.
///
/// # Safety
/// An analysed query that is ours to change.
unsafe fn understood(subquery: *mut Query) -> Option<Vec<Link>> {
    // SAFETY: the caller's query; only its WHERE is changed, after what is there was looked at.
    unsafe {
        if !is_one_group(&*subquery) {
            return None;
        }
        let targets = Targets::new((*subquery).targetList);
        if targets.len() != 1 {
            return None;
        }
        let value = targets.get(0)?.expr();
        if !is_null_without_rows(value) || !cannot_fail(value) {
            return None;
        }
        let jointree = (*subquery).jointree;
        let conditions = conjuncts(Node::new((*jointree).quals));
        let (linking, others): (Vec<_>, Vec<_>) =
            conditions.into_iter().partition(|condition| condition.has_columns_of_level(1));
        // The groups of all rows are made, whether an outer row asks for them or not. Plain tables have no ON
        // clauses, and nothing that is computed.
        let tables = List::<Typed<'_, pg_sys::RangeTblEntry>>::new((*subquery).rtable);
        let plain = tables.iter().all(|table| table.rtekind == pg_sys::RTEKind::RTE_RELATION);
        if linking.is_empty() || !plain || !others.iter().all(|&condition| has_verdict(condition)) {
            return None;
        }
        let links = linking.iter().map(|&condition| link(condition)).collect::<Option<Vec<_>>>()?;
        let before = (*jointree).quals;
        let others: Vec<_> = others.into_iter().map(Node::as_ptr).collect();
        (*jointree).quals = all_of(&others);
        if !stands_alone(Node::new(subquery.cast())?) {
            (*jointree).quals = before;
            return None;
        }
        Some(links)
    }
}

/// Whether a query mentions nothing of the queries around it, and can be computed once.
fn stands_alone(query: Node<'_>) -> bool {
    !looks_far_out(query, 1)
        && !(1..4).any(|level| query.has_aggregates_of_level(level))
        && !query.is_volatile()
}

/// `inner = outer` by an equality that groups as it compares.
fn link(condition: Node<'_>) -> Option<Link> {
    let clause = condition.as_a::<pg_sys::OpExpr>()?;
    let (_, CompareOp::Equal) = operand::comparison(clause.opno)? else { return None };
    let (left, right) = sides(clause)?;
    let is_inner = |side: Node<'_>| {
        side.has_columns_of_level(0) && !looks_far_out(side, 1) && !side.has_aggregates_of_level(0)
    };
    let is_outer = |side: Node<'_>| {
        side.has_columns_of_level(1) && !side.has_columns_of_level(0) && !looks_far_out(side, 2)
    };
    let (inner, outer, inner_is_left) =
        match (is_inner(left) && is_outer(right), is_outer(left) && is_inner(right)) {
            (true, _) => (left, right, true),
            (_, true) => (right, left, false),
            _ => return None,
        };
    // Values that the operator calls equal must be in one group.
    types::can_equal(types::column_of(inner)).ok()?;
    let collation = clause.inputcollid;
    let plain = collation == pg_sys::InvalidOid || types::is_deterministic(collation);
    (plain && cannot_fail(left) && cannot_fail(right) && !condition.is_volatile()).then(|| Link {
        clause: clause.as_ptr(),
        inner: inner.as_ptr(),
        outer: outer.as_ptr(),
        inner_is_left,
    })
}

/// Groups the subquery by one more expression, which becomes one more column.
///
/// # Safety
/// An analysed query that is ours to change, and an expression over its rows.
unsafe fn group_by(subquery: *mut Query, key: *mut pg_sys::Node, reference: u32) -> *mut pg_sys::TargetEntry {
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
fn is_null_without_rows(node: Node<'_>) -> bool {
    use pg_sys as p;
    match node.expression() {
        E::Aggref(aggregate) => {
            !matches!(aggregate.aggfnoid.to_u32(), p::F_COUNT_ | p::F_COUNT_ANY)
                && is_sum_or_extreme(&aggregate)
        }
        E::RelabelType(relabel) => is_null_without_rows(relabel.arg()),
        // SAFETY: a catalog look-up.
        E::OpExpr(expr) if unsafe { pg_sys::op_strict(expr.opno) } => {
            expr.args().iter().any(is_null_without_rows)
        }
        // SAFETY: a catalog look-up.
        E::FuncExpr(expr) if unsafe { pg_sys::func_strict(expr.funcid) } => {
            expr.args().iter().any(is_null_without_rows)
        }
        _ => false,
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
fn has_verdict(node: Node<'_>) -> bool {
    let compares = |operator| operand::comparison(operator).is_some();
    match node.expression() {
        E::BoolExpr(expr) => expr.args().iter().all(has_verdict),
        E::NullTest(test) => cannot_fail(test.arg()),
        E::OpExpr(expr) if compares(expr.opno) => expr.args().iter().all(cannot_fail),
        E::ScalarArrayOpExpr(expr) => compares(expr.opno) && expr.args().iter().all(cannot_fail),
        _ => cannot_fail(node),
    }
}

/// Columns, constants, parameters, aggregates and arithmetic of numerics that has a result for every value.
fn cannot_fail(node: Node<'_>) -> bool {
    let all = |list: List<'_>| list.iter().all(cannot_fail);
    match node.expression() {
        E::Var(_) | E::Const(_) | E::Param(_) => true,
        // A constant expression fails while the query is planned, or never.
        _ if is_constant(node) => true,
        E::Aggref(aggregate) => {
            is_sum_or_extreme(&aggregate)
                && aggregate.filter().is_none()
                && aggregate.args().iter().all(|arg| cannot_fail(arg.expr()))
        }
        E::RelabelType(relabel) => cannot_fail(relabel.arg()),
        // SAFETY: a catalog look-up.
        E::OpExpr(expr) => is_certain(unsafe { pg_sys::get_opcode(expr.opno) }) && all(expr.args()),
        E::FuncExpr(expr) => is_certain(expr.funcid) && all(expr.args()),
        _ => false,
    }
}

/// Whether an expression is of constants alone, which the planner computes.
fn is_constant(node: Node<'_>) -> bool {
    !(0..4).any(|level| node.has_columns_of_level(level))
        && !node.has_aggregates()
        && !node.is_mutable()
        && !node.has_sub_plans()
        && !node.contains(|tag| tag == NodeTag::T_Param)
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
