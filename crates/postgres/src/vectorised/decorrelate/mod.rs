//! Subqueries that the server would run once for every outer row, as joins.
//!
//! Called by `planner_hook` on the copy of a query that is planned a second time. The resulting plan is taken
//! only if it costs less. Two shapes are rewritten, in WHERE at the top of a query or of one inside it:
//! - a comparison with an aggregate over rows that equal the outer row's (`scalar`);
//! - NOT IN where nothing can be NULL (`not_in`).
//!
//! Everything else stays as it is. Invariant: the query keeps its rows, and evaluates nothing that could
//! raise an error on rows it did not look at before.

mod not_in;
mod scalar;

use pgrx::pg_sys::{self, NodeTag, Query};

use crate::host::tree::{self, Expression as E, List, Node, Targets, Typed};

/// Rewrites what is understood, in the query and in those inside it.
///
/// # Safety
/// An analysed and rewritten query that is ours to change.
pub unsafe fn query(query: *mut Query) {
    // SAFETY: the lists hold what their names say; what is read of a part is read before that is changed.
    unsafe {
        if query.is_null() || (*query).commandType == pg_sys::CmdType::CMD_UTILITY {
            return;
        }
        for entry in List::<Typed<'_, pg_sys::RangeTblEntry>>::new((*query).rtable).iter() {
            if entry.rtekind == pg_sys::RTEKind::RTE_SUBQUERY {
                self::query(entry.subquery);
            }
        }
        for cte in List::<Typed<'_, pg_sys::CommonTableExpr>>::new((*query).cteList).iter() {
            self::query(cte.ctequery.cast());
        }
        if !(*query).hasSubLinks || (*query).jointree.is_null() {
            return;
        }
        let conditions = conjuncts(Node::new((*(*query).jointree).quals));
        for link in conditions.iter().flat_map(|&condition| sub_links(condition)) {
            self::query(link.subselect.cast());
        }
        let rows_are_plain = (*query).commandType == pg_sys::CmdType::CMD_SELECT
            && (*query).rowMarks.is_null()
            && !(*query).hasForUpdate;
        if !rows_are_plain {
            return;
        }
        let mut changed = Vec::new();
        for condition in conditions.into_iter().map(Node::as_ptr) {
            match scalar::as_join(query, condition) {
                Some(joined) => changed.extend(joined),
                None => changed.push(not_in::as_not_exists(query, condition).unwrap_or(condition)),
            }
        }
        (*(*query).jointree).quals = all_of(&changed);
    }
}

/// Whether a query's rows are computed once, by one SELECT, and are not locked.
fn is_plain(query: &Query) -> bool {
    query.commandType == pg_sys::CmdType::CMD_SELECT
        && query.setOperations.is_null()
        && query.groupingSets.is_null()
        && query.rowMarks.is_null()
        && !query.hasForUpdate
        && !query.hasModifyingCTE
}

/// The parts of an AND, in order; of a list, or of no condition at all, too.
fn conjuncts(node: Option<Node<'_>>) -> Vec<Node<'_>> {
    fn add<'a>(node: Node<'a>, found: &mut Vec<Node<'a>>) {
        let parts = match node.expression() {
            E::BoolExpr(expr) if expr.boolop == pg_sys::BoolExprType::AND_EXPR => Some(expr.args()),
            _ => node.as_list(),
        };
        match parts {
            Some(parts) => parts.iter().for_each(|part| add(part, found)),
            None => found.push(node),
        }
    }
    let mut found = Vec::new();
    node.into_iter().for_each(|node| add(node, &mut found));
    found
}

/// One condition of several; null for none.
fn all_of(conditions: &[*mut pg_sys::Node]) -> *mut pg_sys::Node {
    match conditions {
        [] => std::ptr::null_mut(),
        [one] => *one,
        // SAFETY: new nodes, which take the conditions as they are.
        _ => unsafe {
            let parts = conditions
                .iter()
                .fold(std::ptr::null_mut(), |list, condition| pg_sys::lappend(list, condition.cast()));
            pg_sys::makeBoolExpr(pg_sys::BoolExprType::AND_EXPR, parts, -1).cast()
        },
    }
}

/// A list of two.
fn pair(left: *mut pg_sys::Node, right: *mut pg_sys::Node) -> *mut pg_sys::List {
    // SAFETY: a new list, which takes both as they are.
    unsafe { pg_sys::lappend(pg_sys::lappend(std::ptr::null_mut(), left.cast()), right.cast()) }
}

/// The sub-links of an expression, those inside sub-links not counted.
fn sub_links(node: Node<'_>) -> Vec<Typed<'_, pg_sys::SubLink>> {
    unsafe extern "C-unwind" fn walk(node: *mut pg_sys::Node, found: *mut std::ffi::c_void) -> bool {
        // SAFETY: the server passes valid nodes, or null, and our own list.
        unsafe {
            let Some(part) = Node::new(node) else { return false };
            if let Some(link) = part.as_a::<pg_sys::SubLink>() {
                (*found.cast::<Vec<Typed<'_, pg_sys::SubLink>>>()).push(link);
                return false;
            }
            tree::walk(node, walk, found)
        }
    }
    let mut found = Vec::new();
    // SAFETY: the walk begins at a valid node, under guard, and the list lives as long as it.
    unsafe { tree::guarded(|| walk(node.as_ptr(), (&raw mut found).cast())) };
    found
}

/// A range-table entry for a subquery in FROM, whose columns are called `c1`, `c2`...
///
/// # Safety
/// Analysed queries, the first of which is ours to change.
unsafe fn add_subquery(query: *mut Query, subquery: *mut Query) -> i32 {
    // SAFETY: zeroed nodes are valid starts; lists grow by what they hold.
    unsafe {
        let mut names = std::ptr::null_mut();
        for number in 1..=Targets::new((*subquery).targetList).len() {
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
fn reference(number: i32) -> *mut pg_sys::Node {
    // SAFETY: a zeroed node is a valid start.
    unsafe {
        let reference = pg_sys::palloc0(size_of::<pg_sys::RangeTblRef>()).cast::<pg_sys::RangeTblRef>();
        (*reference).type_ = NodeTag::T_RangeTblRef;
        (*reference).rtindex = number;
        reference.cast()
    }
}

/// A column of an entry of the range table.
///
/// # Safety
/// A target entry of an analysed query.
unsafe fn column(number: i32, target: *mut pg_sys::TargetEntry) -> *mut pg_sys::Node {
    // SAFETY: the caller's entry.
    unsafe {
        let expr = (*target).expr.cast::<pg_sys::Node>();
        let (kind, typmod) = (pg_sys::exprType(expr), pg_sys::exprTypmod(expr));
        pg_sys::makeVar(number, (*target).resno, kind, typmod, pg_sys::exprCollation(expr), 0).cast()
    }
}

fn copied(text: &str) -> *mut std::ffi::c_char {
    let text = std::ffi::CString::new(text).unwrap_or_default();
    // SAFETY: a string that ends with a zero byte.
    unsafe { pg_sys::pstrdup(text.as_ptr()) }
}

/// The two arguments of an operator.
fn sides(expr: Typed<'_, pg_sys::OpExpr>) -> Option<(Node<'_>, Node<'_>)> {
    let args = expr.args();
    (args.len() == 2).then(|| args.get(0).zip(args.get(1)))?
}

/// True for columns of queries further out than the next one. Queries are seldom nested that deep; a query
/// that is stays as it is.
fn looks_far_out(node: Node<'_>, from: i32) -> bool {
    (from..from + 16).any(|level| node.has_columns_of_level(level))
}
