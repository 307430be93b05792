//! Subqueries that the server would run once for every outer row, as joins.
//!
//! Called by `planner_hook` on the copy of a query that is planned a second time; the plan that comes of it
//! only counts if it costs less. Two shapes, in WHERE at the top of a query or of one inside it: a comparison
//! with an aggregate over rows that equal the outer row's (`scalar`), and NOT IN where nothing can be NULL
//! (`not_in`). Everything else stays as it is. Invariant: the query keeps its rows, and evaluates nothing
//! that could raise an error on rows it did not look at before.

mod not_in;
mod scalar;

use pgrx::PgList;
use pgrx::pg_sys::{self, Node, NodeTag, Query};

use crate::host::tree;

/// Rewrites what is understood, in the query and in those inside it.
///
/// # Safety
/// An analysed and rewritten query that is ours to change.
pub unsafe fn query(query: *mut Query) {
    // SAFETY: the lists hold what their names say; casts follow the tags.
    unsafe {
        if query.is_null() || (*query).commandType == pg_sys::CmdType::CMD_UTILITY {
            return;
        }
        for entry in PgList::<pg_sys::RangeTblEntry>::from_pg((*query).rtable).iter_ptr() {
            if (*entry).rtekind == pg_sys::RTEKind::RTE_SUBQUERY {
                self::query((*entry).subquery);
            }
        }
        for cte in PgList::<pg_sys::CommonTableExpr>::from_pg((*query).cteList).iter_ptr() {
            self::query((*cte).ctequery.cast());
        }
        if !(*query).hasSubLinks || (*query).jointree.is_null() {
            return;
        }
        let mut conditions = Vec::new();
        conjuncts((*(*query).jointree).quals, &mut conditions);
        for &condition in &conditions {
            for link in sub_links(condition) {
                self::query((*link).subselect.cast());
            }
        }
        let rows_are_plain = (*query).commandType == pg_sys::CmdType::CMD_SELECT
            && (*query).rowMarks.is_null()
            && !(*query).hasForUpdate;
        if !rows_are_plain {
            return;
        }
        let mut changed = Vec::new();
        for condition in conditions {
            match scalar::as_join(query, condition) {
                Some(joined) => changed.extend(joined),
                None => changed.push(not_in::as_not_exists(query, condition).unwrap_or(condition)),
            }
        }
        (*(*query).jointree).quals = all_of(&changed);
    }
}

/// The parts of an AND, in order.
unsafe fn conjuncts(node: *mut Node, found: &mut Vec<*mut Node>) {
    // SAFETY: a condition, a list of them, or null; casts follow the tags.
    unsafe {
        if node.is_null() {
            return;
        }
        let parts = match (*node).type_ {
            NodeTag::T_List => node.cast(),
            NodeTag::T_BoolExpr
                if (*node.cast::<pg_sys::BoolExpr>()).boolop == pg_sys::BoolExprType::AND_EXPR =>
            {
                (*node.cast::<pg_sys::BoolExpr>()).args
            }
            _ => return found.push(node),
        };
        for part in PgList::<Node>::from_pg(parts).iter_ptr() {
            conjuncts(part, found);
        }
    }
}

/// One condition of several; null for none.
unsafe fn all_of(conditions: &[*mut Node]) -> *mut Node {
    // SAFETY: the list takes the conditions as they are.
    unsafe {
        match conditions {
            [] => std::ptr::null_mut(),
            [one] => *one,
            _ => {
                let parts = conditions
                    .iter()
                    .fold(std::ptr::null_mut(), |list, condition| pg_sys::lappend(list, condition.cast()));
                pg_sys::makeBoolExpr(pg_sys::BoolExprType::AND_EXPR, parts, -1).cast()
            }
        }
    }
}

/// The sub-links of an expression, those inside sub-links not counted.
unsafe fn sub_links(node: *mut Node) -> Vec<*mut pg_sys::SubLink> {
    unsafe extern "C-unwind" fn walk(node: *mut Node, found: *mut std::ffi::c_void) -> bool {
        // SAFETY: the server passes valid nodes, or null, and our own list.
        unsafe {
            if node.is_null() {
                return false;
            }
            if (*node).type_ == NodeTag::T_SubLink {
                (*found.cast::<Vec<*mut pg_sys::SubLink>>()).push(node.cast());
                return false;
            }
            tree::walk(node, walk, found)
        }
    }
    let mut found: Vec<*mut pg_sys::SubLink> = Vec::new();
    // SAFETY: a valid expression.
    unsafe { tree::guarded(|| walk(node, (&raw mut found).cast())) };
    found
}

/// A range-table entry for a subquery in FROM, whose columns are called `c1`, `c2`...
unsafe fn add_subquery(query: *mut Query, subquery: *mut Query) -> i32 {
    // SAFETY: zeroed nodes are valid starts; lists grow by what they hold.
    unsafe {
        let mut names = std::ptr::null_mut();
        for (number, _) in
            (1..).zip(PgList::<pg_sys::TargetEntry>::from_pg((*subquery).targetList).iter_ptr())
        {
            names = pg_sys::lappend(names, pg_sys::makeString(copied(&format!("c{number}"))).cast());
        }
        let entry = pg_sys::palloc0(size_of::<pg_sys::RangeTblEntry>()).cast::<pg_sys::RangeTblEntry>();
        (*entry).type_ = NodeTag::T_RangeTblEntry;
        (*entry).rtekind = pg_sys::RTEKind::RTE_SUBQUERY;
        (*entry).subquery = subquery;
        let name = copied("decorrelated");
        (*entry).alias = pg_sys::makeAlias(name, std::ptr::null_mut());
        (*entry).eref = pg_sys::makeAlias(name, names);
        (*entry).inFromCl = true;
        (*query).rtable = pg_sys::lappend((*query).rtable, entry.cast());
        (*(*query).rtable).length
    }
}

/// A reference to an entry of the range table, for FROM.
unsafe fn reference(number: i32) -> *mut Node {
    // SAFETY: a zeroed node is a valid start.
    unsafe {
        let reference = pg_sys::palloc0(size_of::<pg_sys::RangeTblRef>()).cast::<pg_sys::RangeTblRef>();
        (*reference).type_ = NodeTag::T_RangeTblRef;
        (*reference).rtindex = number;
        reference.cast()
    }
}

/// A column of an entry of the range table.
unsafe fn column(number: i32, target: *mut pg_sys::TargetEntry) -> *mut Node {
    // SAFETY: a valid target entry.
    unsafe {
        let expr = (*target).expr.cast::<Node>();
        let (kind, typmod) = (pg_sys::exprType(expr), pg_sys::exprTypmod(expr));
        pg_sys::makeVar(number, (*target).resno, kind, typmod, pg_sys::exprCollation(expr), 0).cast()
    }
}

unsafe fn copied(text: &str) -> *mut std::ffi::c_char {
    let text = std::ffi::CString::new(text).unwrap_or_default();
    // SAFETY: a string that ends with a zero byte.
    unsafe { pg_sys::pstrdup(text.as_ptr()) }
}

/// The two arguments of an operator.
unsafe fn sides(expr: *mut pg_sys::OpExpr) -> Option<(*mut Node, *mut Node)> {
    // SAFETY: args is a list of expressions.
    let args = unsafe { PgList::<Node>::from_pg((*expr).args) };
    (args.len() == 2).then(|| args.get_ptr(0).zip(args.get_ptr(1)))?
}

/// True for columns of queries further out than the next one.
unsafe fn looks_far_out(node: *mut Node, from: i32) -> bool {
    // SAFETY: a valid expression or query. Queries are not nested deeper than this in practice; those that
    // are stay as they are.
    unsafe { (from..from + 16).any(|level| pg_sys::contain_vars_of_level(node, level)) }
}
