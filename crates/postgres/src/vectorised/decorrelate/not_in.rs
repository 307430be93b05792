//! `x NOT IN (SELECT y ...)` as `NOT EXISTS (SELECT ... WHERE y = x)`, which the server makes an anti join;
//! the same of several columns.
//!
//! They only differ where an `x` or a `y` is NULL, so all have to be columns that are declared NOT NULL, of
//! tables that no outer join can fill up with NULLs.

use pgrx::PgList;
use pgrx::pg_sys::{self, Node, NodeTag, Query};
use vector::CompareOp;

use super::{add_subquery, column, looks_far_out, reference, sides};
use crate::planner::operand;

/// The condition that takes the place of a NOT IN.
///
/// # Safety
/// A condition of the query, both ours to change.
pub unsafe fn as_not_exists(query: *mut Query, condition: *mut Node) -> Option<*mut Node> {
    // SAFETY: casts follow the tags; zeroed nodes are valid starts.
    unsafe {
        if (*condition).type_ != NodeTag::T_BoolExpr {
            return None;
        }
        let not = condition.cast::<pg_sys::BoolExpr>();
        let inside = PgList::<Node>::from_pg((*not).args).get_ptr(0)?;
        if (*not).boolop != pg_sys::BoolExprType::NOT_EXPR || (*inside).type_ != NodeTag::T_SubLink {
            return None;
        }
        let link = inside.cast::<pg_sys::SubLink>();
        let test = (*link).testexpr;
        if (*link).subLinkType != pg_sys::SubLinkType::ANY_SUBLINK || test.is_null() {
            return None;
        }
        let mut comparisons = Vec::new();
        super::conjuncts(test, &mut comparisons);
        let subquery = (*link).subselect.cast::<Query>();
        let targets = PgList::<pg_sys::TargetEntry>::from_pg((*subquery).targetList);
        let plain = targets.len() == comparisons.len()
            && (*subquery).commandType == pg_sys::CmdType::CMD_SELECT
            && (*subquery).setOperations.is_null()
            && (*subquery).groupingSets.is_null()
            && (*subquery).rowMarks.is_null()
            && !(*subquery).hasForUpdate
            && !(*subquery).hasModifyingCTE
            && !looks_far_out(subquery.cast(), 1)
            && !pg_sys::contain_volatile_functions(subquery.cast());
        let compared =
            comparisons.iter().map(|&test| compared(test, &targets)).collect::<Option<Vec<_>>>()?;
        let never_null = compared.iter().all(|&(_, outer, target)| {
            is_never_null(query, outer) && is_never_null(subquery, (*target).expr.cast())
        });
        if !plain || !never_null {
            return None;
        }
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
        for (comparison, outer, target) in compared {
            let value = column(number, target);
            pg_sys::IncrementVarSublevelsUp(outer, 1, 0);
            (*comparison).args =
                pg_sys::lappend(pg_sys::lappend(std::ptr::null_mut(), outer.cast()), value.cast());
            if (*exists).targetList.is_null() {
                let value = pg_sys::copyObjectImpl(value.cast()).cast();
                let entry = pg_sys::makeTargetEntry(value, 1, super::copied("c1"), false);
                (*exists).targetList = pg_sys::lappend(std::ptr::null_mut(), entry.cast());
            }
        }
        (*from).quals = super::all_of(&comparisons);
        (*link).subLinkType = pg_sys::SubLinkType::EXISTS_SUBLINK;
        (*link).testexpr = std::ptr::null_mut();
        (*link).operName = std::ptr::null_mut();
        (*link).subselect = exists.cast();
        Some(condition)
    }
}

/// A comparison for equality with a column of the subquery: itself, what is compared, and the column.
unsafe fn compared(
    test: *mut Node,
    targets: &PgList<pg_sys::TargetEntry>,
) -> Option<(*mut pg_sys::OpExpr, *mut Node, *mut pg_sys::TargetEntry)> {
    // SAFETY: casts follow the tags.
    unsafe {
        if (*test).type_ != NodeTag::T_OpExpr {
            return None;
        }
        let comparison = test.cast::<pg_sys::OpExpr>();
        let (_, CompareOp::Equal) = operand::comparison((*comparison).opno)? else { return None };
        let (outer, parameter) = sides(comparison)?;
        if (*parameter).type_ != NodeTag::T_Param {
            return None;
        }
        let number = (*parameter.cast::<pg_sys::Param>()).paramid;
        let target = targets.get_ptr(usize::try_from(number - 1).ok()?)?;
        Some((comparison, outer, target))
    }
}

/// A column of a table of this query that is declared NOT NULL, where FROM has no outer join.
unsafe fn is_never_null(query: *mut Query, node: *mut Node) -> bool {
    // SAFETY: casts follow the tags; the table is locked by whoever analysed the query.
    unsafe {
        let mut node = node;
        while (*node).type_ == NodeTag::T_RelabelType {
            node = (*node.cast::<pg_sys::RelabelType>()).arg.cast();
        }
        if (*node).type_ != NodeTag::T_Var || (*query).jointree.is_null() {
            return false;
        }
        let var = &*node.cast::<pg_sys::Var>();
        let from = PgList::<Node>::from_pg((*(*query).jointree).fromlist);
        if var.varlevelsup != 0 || var.varattno <= 0 || !from.iter_ptr().all(|item| joins_inner(item)) {
            return false;
        }
        let entries = PgList::<pg_sys::RangeTblEntry>::from_pg((*query).rtable);
        let position = usize::try_from(var.varno - 1).unwrap_or(usize::MAX);
        let Some(entry) = entries.get_ptr(position) else { return false };
        let declared = [pg_sys::RELKIND_RELATION, pg_sys::RELKIND_PARTITIONED_TABLE];
        if (*entry).rtekind != pg_sys::RTEKind::RTE_RELATION || !declared.contains(&((*entry).relkind as u8))
        {
            return false;
        }
        let relation = pg_sys::table_open((*entry).relid, pg_sys::NoLock as i32);
        let descriptor = (*relation).rd_att;
        let attribute = usize::try_from(var.varattno - 1).unwrap_or(usize::MAX);
        let columns = (*descriptor).attrs.as_slice(usize::try_from((*descriptor).natts).unwrap_or(0));
        let found = columns.get(attribute).is_some_and(|column| column.attnotnull);
        // Children of a table that is not partitioned need not have what it declares.
        let children = (*entry).inh
            && (*entry).relkind as u8 == pg_sys::RELKIND_RELATION
            && (*(*relation).rd_rel).relhassubclass;
        pg_sys::table_close(relation, pg_sys::NoLock as i32);
        found && !children
    }
}

unsafe fn joins_inner(item: *mut Node) -> bool {
    // SAFETY: casts follow the tags.
    unsafe {
        match (*item).type_ {
            NodeTag::T_RangeTblRef => true,
            NodeTag::T_JoinExpr => {
                let join = &*item.cast::<pg_sys::JoinExpr>();
                join.jointype == pg_sys::JoinType::JOIN_INNER
                    && joins_inner(join.larg)
                    && joins_inner(join.rarg)
            }
            _ => false,
        }
    }
}
