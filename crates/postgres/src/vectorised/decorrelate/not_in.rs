//! `x NOT IN (SELECT y ...)` as `NOT EXISTS (SELECT ... WHERE y = x)`, which the server makes an anti join;
//! the same of several columns.
//!
//! They only differ where an `x` or a `y` is NULL. So every `x` and `y` has to be a column that is declared
//! NOT NULL. Its table must be one that no outer join can fill up with NULLs.

use pgrx::pg_sys::{self, NodeTag, Query};
use vector::CompareOp;

use super::{add_subquery, column, conjuncts, is_plain, looks_far_out, pair, reference, sides};
use crate::compat;
use crate::host::relation::with_table;
use crate::host::tree::{Expression as E, List, Node, Targets, Typed};
use crate::planner::operand;

/// The condition that takes the place of a NOT IN.
///
/// # Safety
/// A condition of an analysed query, whose tables are locked, both ours to change.
pub unsafe fn as_not_exists(query: *mut Query, condition: *mut pg_sys::Node) -> Option<*mut pg_sys::Node> {
    // SAFETY: the caller's condition, which is changed once everything was looked at; zeroed nodes are valid
    // starts.
    unsafe {
        let link = not_in(Node::new(condition)?)?;
        let subquery = link.subselect.cast::<Query>();
        let tests = conjuncts(link.test());
        let comparisons = comparisons(query, subquery, &tests)?;
        let link = link.as_ptr();

        let exists = pg_sys::palloc0(size_of::<Query>()).cast::<Query>();
        (*exists).type_ = NodeTag::T_Query;
        (*exists).commandType = pg_sys::CmdType::CMD_SELECT;
        (*exists).canSetTag = true;
        let from = pg_sys::palloc0(size_of::<pg_sys::FromExpr>()).cast::<pg_sys::FromExpr>();
        (*from).type_ = NodeTag::T_FromExpr;
        (*exists).jointree = from;
        // What it names of the queries around it, which can only be CTEs, is one level further out now.
        pg_sys::IncrementVarSublevelsUp(subquery.cast(), 1, 1);
        let number = add_subquery(exists, subquery);
        (*from).fromlist = pg_sys::lappend(std::ptr::null_mut(), reference(number).cast());
        let mut conditions = Vec::new();
        for Comparison { expr, outer, target } in comparisons {
            let value = column(number, target);
            pg_sys::IncrementVarSublevelsUp(outer, 1, 0);
            (*expr).args = pair(outer, value);
            conditions.push(expr.cast());
            if (*exists).targetList.is_null() {
                let value = pg_sys::copyObjectImpl(value.cast()).cast();
                let entry = pg_sys::makeTargetEntry(value, 1, super::copied("c1"), false);
                (*exists).targetList = pg_sys::lappend(std::ptr::null_mut(), entry.cast());
            }
        }
        (*from).quals = super::all_of(&conditions);
        (*link).subLinkType = pg_sys::SubLinkType::EXISTS_SUBLINK;
        (*link).testexpr = std::ptr::null_mut();
        (*link).operName = std::ptr::null_mut();
        (*link).subselect = exists.cast();
        Some(condition)
    }
}

/// The sub-link of `NOT (... = ANY (SELECT ...))`.
fn not_in(condition: Node<'_>) -> Option<Typed<'_, pg_sys::SubLink>> {
    let not = condition.as_a::<pg_sys::BoolExpr>()?;
    let inside = not.args().get(0)?;
    if not.boolop != pg_sys::BoolExprType::NOT_EXPR {
        return None;
    }
    let link = inside.as_a::<pg_sys::SubLink>()?;
    (link.subLinkType == pg_sys::SubLinkType::ANY_SUBLINK && link.test().is_some()).then_some(link)
}

/// A comparison for equality with a column of the subquery.
struct Comparison {
    expr: *mut pg_sys::OpExpr,
    /// What is compared.
    outer: *mut pg_sys::Node,
    /// The column.
    target: *mut pg_sys::TargetEntry,
}

/// What the tests compare, where neither side can be NULL and the subquery does not depend on the row.
///
/// # Safety
/// Analysed queries whose tables are locked, and tests that compare with columns of the subquery.
unsafe fn comparisons(
    query: *mut Query,
    subquery: *mut Query,
    tests: &[Node<'_>],
) -> Option<Vec<Comparison>> {
    // SAFETY: the caller's queries, which are only read here.
    unsafe {
        let targets = Targets::new((*subquery).targetList);
        let whole = Node::new(subquery.cast())?;
        let plain = targets.len() == tests.len()
            && is_plain(&*subquery)
            && !looks_far_out(whole, 1)
            && !whole.is_volatile();
        let compared = tests.iter().map(|&test| compared(test, targets)).collect::<Option<Vec<_>>>()?;
        let never_null = compared
            .iter()
            .all(|&(_, outer, target)| is_never_null(query, outer) && is_never_null(subquery, target.expr()));
        let comparison = |(expr, outer, target): Compared<'_>| Comparison {
            expr: expr.as_ptr(),
            outer: outer.as_ptr(),
            target: target.as_ptr(),
        };
        (plain && never_null).then(|| compared.into_iter().map(comparison).collect())
    }
}

/// A comparison, what is compared, and the column of the subquery.
type Compared<'a> = (Typed<'a, pg_sys::OpExpr>, Node<'a>, Typed<'a, pg_sys::TargetEntry>);

fn compared<'a>(test: Node<'a>, targets: Targets<'a>) -> Option<Compared<'a>> {
    let comparison = test.as_a::<pg_sys::OpExpr>()?;
    let (_, CompareOp::Equal) = operand::comparison(comparison.opno)? else { return None };
    let (outer, parameter) = sides(comparison)?;
    let number = parameter.as_a::<pg_sys::Param>()?.paramid;
    let target = targets.get(usize::try_from(number - 1).ok()?)?;
    Some((comparison, outer, target))
}

/// A column of a table of this query that is declared NOT NULL, where FROM has no outer join.
///
/// # Safety
/// An analysed query whose tables are locked.
unsafe fn is_never_null(query: *mut Query, node: Node<'_>) -> bool {
    let mut node = node;
    while let E::RelabelType(relabel) = node.expression() {
        node = relabel.arg();
    }
    let Some(var) = node.as_a::<pg_sys::Var>() else { return false };
    // SAFETY: the caller's query.
    let (from, entries) = unsafe {
        let Some(jointree) = (*query).jointree.as_ref() else { return false };
        let from = List::<Node<'_>>::new(jointree.fromlist);
        (from, List::<Typed<'_, pg_sys::RangeTblEntry>>::new((*query).rtable))
    };
    if var.varlevelsup != 0 || var.varattno <= 0 || !from.iter().all(joins_inner) {
        return false;
    }
    let position = usize::try_from(var.varno - 1).unwrap_or(usize::MAX);
    // SAFETY: the caller has locked the table.
    entries.get(position).is_some_and(|entry| unsafe { declares_not_null(entry, var.varattno) })
}

/// Whether a table says of a column, by its number, that no row has NULL there.
///
/// # Safety
/// The table is locked.
unsafe fn declares_not_null(entry: Typed<'_, pg_sys::RangeTblEntry>, attno: i16) -> bool {
    let declared = [pg_sys::RELKIND_RELATION, pg_sys::RELKIND_PARTITIONED_TABLE];
    if entry.rtekind != pg_sys::RTEKind::RTE_RELATION || !declared.contains(&(entry.relkind as u8)) {
        return false;
    }
    // SAFETY: the caller's table, which is open while it is looked at.
    unsafe {
        with_table(entry.relid, pg_sys::NoLock, |table| {
            let column = usize::try_from(attno - 1).unwrap_or(usize::MAX);
            // Children of a table that is not partitioned need not have what it declares.
            let children = entry.inh
                && entry.relkind as u8 == pg_sys::RELKIND_RELATION
                && (*table.form()).relhassubclass;
            compat::has_no_null((*table.as_ptr()).rd_att, column) && !children
        })
    }
}

fn joins_inner(item: Node<'_>) -> bool {
    if let Some(join) = item.as_a::<pg_sys::JoinExpr>() {
        return join.jointype == pg_sys::JoinType::JOIN_INNER
            && joins_inner(join.left())
            && joins_inner(join.right());
    }
    item.tag() == NodeTag::T_RangeTblRef
}
