//! Joins by all columns of a key: how many rows the server is to expect of them.
//!
//! Where two tables are joined by several columns, the server multiplies what it expects of each, as if they
//! had nothing to do with each other. Of TPC-H's lines and the offers of parts (`partsupp`), joined by part
//! and supplier, it expects one row of 25,000. But each line is of an offer. A foreign key would tell the
//! server, and most such tables have none. Looked up one by one, such rows cost many times what two scans do.
//!
//! So a unique index whose columns are all joined with columns of one other table counts as the target of a
//! foreign key from there: each row of the other table finds one row at most, and is expected to find it.
//! Too many rows are expected where that is wrong, but no more than the other table has.
//!
//! Called for each table whose columnar scan is offered, before joins are planned. Indexes of one column are
//! left to the server, which gets them right.

use pgrx::pg_sys::{self, AttrNumber, EquivalenceClass, ForeignKeyOptInfo, IndexOptInfo, NodeTag};

use crate::host::tree::{Expression, List, Node, Typed};

/// Tells the planner of a query about the keys of this relation and of those that it is joined with.
///
/// # Safety
/// The planner's own structs, of a base relation, once it knows which columns are equal and before it plans
/// joins.
pub unsafe fn note(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) {
    // SAFETY: the planner's own structs; the array has places for as many relations as it says, some of them
    // empty.
    unsafe {
        if (*rel).reloptkind != pg_sys::RelOptKind::RELOPT_BASEREL {
            return;
        }
        let count = usize::try_from((*root).simple_rel_array_size).unwrap_or(0);
        for other in (0..count).map(|at| *(*root).simple_rel_array.add(at)) {
            if !other.is_null()
                && other != rel
                && (*other).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL
                && (*other).rtekind == pg_sys::RTEKind::RTE_RELATION
            {
                note_key(root, rel, other);
                note_key(root, other, rel);
            }
        }
    }
}

/// Tells of a key of `target` whose columns all are equal to columns of `source`.
unsafe fn note_key(
    root: *mut pg_sys::PlannerInfo,
    source: *mut pg_sys::RelOptInfo,
    target: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the planner's own structs; a zeroed node is a valid start.
    unsafe {
        let (from, to) = ((*source).relid, (*target).relid);
        let known = List::<Typed<'_, ForeignKeyOptInfo>>::new((*root).fkey_list);
        if known.iter().any(|key| key.con_relid == from && key.ref_relid == to && key.nkeys > 1) {
            return;
        }
        let indexes = List::<Typed<'_, IndexOptInfo>>::new((*target).indexlist);
        let found = indexes.iter().filter(is_key).find_map(|index| {
            let columns = std::slice::from_raw_parts(index.indexkeys, index.nkeycolumns as usize);
            columns.iter().map(|&column| joined(root, (from, to), column)).collect::<Option<Vec<_>>>()
        });
        let Some(columns) = found else { return };
        let key = pg_sys::palloc0(size_of::<ForeignKeyOptInfo>()).cast::<ForeignKeyOptInfo>();
        (*key).type_ = NodeTag::T_ForeignKeyOptInfo;
        (*key).con_relid = from;
        (*key).ref_relid = to;
        (*key).nkeys = columns.len() as i32;
        (*key).nmatched_ec = (*key).nkeys;
        for (at, column) in columns.into_iter().enumerate() {
            (*key).conkey[at] = column.source;
            (*key).confkey[at] = column.target;
            (*key).eclass[at] = column.class;
        }
        (*root).fkey_list = pg_sys::lappend((*root).fkey_list, key.cast());
    }
}

/// Whether an index is a key of several columns of its table.
fn is_key(index: &Typed<'_, IndexOptInfo>) -> bool {
    let columns = 2..=pg_sys::INDEX_MAX_KEYS as i32;
    index.unique && index.immediate && index.indpred.is_null() && columns.contains(&index.nkeycolumns)
}

/// A column of a key, and the one that is equal to it.
struct Joined {
    source: AttrNumber,
    target: AttrNumber,
    class: *mut EquivalenceClass,
}

/// The column of `from` that joins make equal to this column of `to`.
unsafe fn joined(root: *mut pg_sys::PlannerInfo, (from, to): (u32, u32), column: i32) -> Option<Joined> {
    let target = AttrNumber::try_from(column).ok().filter(|&column| column > 0)?;
    // SAFETY: the planner's own lists.
    let classes = unsafe { List::<Typed<'_, EquivalenceClass>>::new((*root).eq_classes) };
    // Of a column that is equal to a constant the server makes no condition of the join.
    let classes = classes.iter().filter(|class| !class.ec_has_const && !class.ec_has_volatile);
    classes.into_iter().find_map(|class| {
        // SAFETY: as above.
        let members = unsafe { List::<Typed<'_, pg_sys::EquivalenceMember>>::new(class.ec_members) };
        let equal: Vec<(u32, AttrNumber)> = members.iter().filter_map(|member| column_of(&member)).collect();
        let source = equal.iter().find(|(table, _)| *table == from).filter(|_| equal.contains(&(to, target)));
        source.map(|&(_, source)| Joined { source, target, class: class.as_ptr() })
    })
}

/// The table's number and the column's, if the member of a class is a column.
fn column_of(member: &pg_sys::EquivalenceMember) -> Option<(u32, AttrNumber)> {
    // SAFETY: a member has its expression.
    match unsafe { Node::new(member.em_expr.cast()) }?.expression() {
        Expression::Var(column) if !member.em_is_child => Some((column.varno as u32, column.varattno)),
        _ => None,
    }
}
