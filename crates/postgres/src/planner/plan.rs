//! Makes the plan node from the chosen path.
//!
//! Called by the server when it builds the plan. Clauses that the node answers natively go to `custom_exprs`.
//! The others stay in the plan's qual and are checked row by row. `custom_private` holds:
//! - how many rows the table has, as the planner knows it
//! - a list of integers that says for each clause of the qual whether it may help to prune
//! - whether the scan hides rows from what is above it (`hides_rows`), and the columnstore indexes that it
//!   reads (`indexes_of`)
//! - perhaps the reason that `note_reason` notes
//!
//! Nothing else is stored: columns, predicates and parameters are read from the finished plan when the node
//! starts.
//!
//! Invariants: `custom_private` begins with a node, never with an empty list. Other extensions (Citus)
//! recognise their own scans by the tag of its first member, and look at that of every scan.
//! A clause that row security wants evaluated late is neither native nor pruning, unless the server would
//! promote it.

use std::sync::OnceLock;

use pgrx::PgList;
use pgrx::pg_guard;
use pgrx::pg_sys::{self, NodeTag};

use super::template;
use crate::host::custom_node::Methods;
use crate::host::tree::{List, Typed};

/// Name of the node in EXPLAIN and among registered nodes.
pub const NAME: &std::ffi::CStr = c"Colonnade";

/// The path's callbacks.
pub fn path_methods() -> *const pg_sys::CustomPathMethods {
    static METHODS: OnceLock<Methods<pg_sys::CustomPathMethods>> = OnceLock::new();
    &raw const METHODS
        .get_or_init(|| {
            Methods(pg_sys::CustomPathMethods {
                CustomName: NAME.as_ptr(),
                PlanCustomPath: Some(plan_custom_path),
                ReparameterizeCustomPathByChild: None,
            })
        })
        .0
}

#[pg_guard]
unsafe extern "C-unwind" fn plan_custom_path(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    best_path: *mut pg_sys::CustomPath,
    tlist: *mut pg_sys::List,
    clauses: *mut pg_sys::List,
    _custom_plans: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: the planner passes valid nodes; a zeroed CustomScan is a valid start.
    unsafe {
        let mut native: *mut pg_sys::List = std::ptr::null_mut();
        let mut rest: *mut pg_sys::List = std::ptr::null_mut();
        let mut prunes: *mut pg_sys::List = std::ptr::null_mut();
        for restriction in List::<Typed<'_, pg_sys::RestrictInfo>>::new(clauses).iter() {
            if restriction.pseudoconstant {
                continue;
            }
            let clause = restriction.clause().as_ptr();
            let template = template::translate(clause, (*rel).relid);
            let promotable = pg_sys::restriction_is_securely_promotable(restriction.as_ptr(), rel);
            if promotable && template.is_exact() {
                native = pg_sys::lappend(native, clause.cast());
            } else {
                rest = pg_sys::lappend(rest, clause.cast());
                prunes = pg_sys::lappend_int(prunes, i32::from(promotable && template.is_useful()));
            }
        }
        let scan = pg_sys::palloc0(size_of::<pg_sys::CustomScan>()).cast::<pg_sys::CustomScan>();
        (*scan).scan.plan.type_ = NodeTag::T_CustomScan;
        (*scan).scan.plan.targetlist = tlist;
        (*scan).scan.plan.qual = rest;
        (*scan).scan.scanrelid = (*rel).relid;
        (*scan).flags = (*best_path).flags;
        (*scan).custom_exprs = native;
        let private = pg_sys::lappend(std::ptr::null_mut(), float_node((*rel).tuples).cast());
        let private = pg_sys::lappend(private, prunes.cast());
        let mut hides = pg_sys::lappend_int(std::ptr::null_mut(), i32::from(is_guarded(root, rel)));
        for index in PgList::<pg_sys::Oid>::from_pg((*best_path).custom_private).iter_oid() {
            hides = pg_sys::lappend_int(hides, index.to_u32().cast_signed());
        }
        (*scan).custom_private = pg_sys::lappend(private, hides.cast());
        (*scan).methods = pg_sys::GetCustomScanMethods(NAME.as_ptr(), false);
        (&raw mut (*scan).scan.plan)
    }
}

/// A number as a node of the server's plans.
fn float_node(number: f64) -> *mut pg_sys::Float {
    let text = std::ffi::CString::new(number.to_string()).unwrap_or_default();
    // SAFETY: the server copies the text.
    unsafe { pg_sys::makeFloat(pg_sys::pstrdup(text.as_ptr())) }
}

/// How many rows the table has that a scan node of ours reads, as the planner saw it.
///
/// # Safety
/// A plan node made here.
pub unsafe fn scanned_rows(scan: *mut pg_sys::CustomScan) -> f64 {
    // SAFETY: the first entry is the number's node, whose text is the server's.
    unsafe {
        let Some(number) = PgList::<pg_sys::Float>::from_pg((*scan).custom_private).get_ptr(0) else {
            return 0.0;
        };
        std::ffi::CStr::from_ptr((*number).fval)
            .to_str()
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0.0)
    }
}

/// Which clauses of the qual may prune: an integer for each. None if there is no clause.
///
/// # Safety
/// A plan node made here.
pub unsafe fn pruning_clauses(scan: *mut pg_sys::CustomScan) -> Option<*mut pg_sys::List> {
    // SAFETY: the second entry is a list of integers, or an empty one, which is null.
    unsafe {
        PgList::<pg_sys::List>::from_pg((*scan).custom_private).get_ptr(1).filter(|list| !list.is_null())
    }
}

/// Whether conditions of row security or of a security barrier view decide which rows nodes above the scan
/// may see.
///
/// # Safety
/// The planner's own structs.
unsafe fn is_guarded(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: the planner's own structs; its arrays have places for as many relations as it says, some of
    // them empty.
    unsafe {
        let level = (*root).qual_security_level;
        let conditions = List::<Typed<'_, pg_sys::RestrictInfo>>::new((*rel).baserestrictinfo);
        if conditions.iter().any(|condition| condition.security_level < level) {
            return true;
        }
        let mut inner = root;
        while let outer = (*inner).parent_root
            && !outer.is_null()
        {
            for at in 1..usize::try_from((*outer).simple_rel_array_size).unwrap_or(0) {
                let rel = *(*outer).simple_rel_array.add(at);
                if !rel.is_null() && (*rel).subroot == inner {
                    let entry = *(*outer).simple_rte_array.add(at);
                    if !entry.is_null() && (*entry).security_barrier {
                        return true;
                    }
                }
            }
            inner = outer;
        }
        false
    }
}

/// Whether a scan node of ours reads rows that only its own conditions may look at. Then its work must not
/// depend on values from other nodes.
///
/// # Safety
/// A plan node made here.
pub unsafe fn hides_rows(scan: *mut pg_sys::CustomScan) -> bool {
    // SAFETY: the third entry is a list of integers.
    unsafe {
        let hides = PgList::<pg_sys::List>::from_pg((*scan).custom_private).get_ptr(2);
        hides.is_none_or(|hides| pg_sys::list_nth_int(hides, 0) != 0)
    }
}

/// The columnstore indexes that a scan node of ours reads. None of them: the table has stripes of its own.
///
/// # Safety
/// A plan node made here.
pub unsafe fn indexes_of(scan: *mut pg_sys::CustomScan) -> Vec<pg_sys::Oid> {
    // SAFETY: the third entry is a list of integers.
    unsafe {
        let list = PgList::<pg_sys::List>::from_pg((*scan).custom_private).get_ptr(2);
        let list = PgList::<i32>::from_pg(list.unwrap_or(std::ptr::null_mut()));
        list.iter_int().skip(1).map(|index| pg_sys::Oid::from(index.cast_unsigned())).collect()
    }
}

/// Notes at a scan node why the operators above it are the server's. Its private list has the reason fourth.
///
/// # Safety
/// A plan node made here.
pub unsafe fn note_reason(scan: *mut pg_sys::CustomScan, reason: &str) {
    let text = std::ffi::CString::new(reason).unwrap_or_default();
    // SAFETY: the server copies the text.
    unsafe {
        if reason_noted(scan).is_none() {
            let text = pg_sys::makeString(pg_sys::pstrdup(text.as_ptr()));
            (*scan).custom_private = pg_sys::lappend((*scan).custom_private, text.cast());
        }
    }
}

/// The reason that `note_reason` noted.
///
/// # Safety
/// A plan node made here; the text lives as long as it.
pub unsafe fn reason_noted(scan: *mut pg_sys::CustomScan) -> Option<*const std::ffi::c_char> {
    // SAFETY: the fourth entry is a string of the server's.
    unsafe {
        let text = PgList::<pg_sys::String>::from_pg((*scan).custom_private).get_ptr(3)?;
        Some((*text).sval.cast_const())
    }
}
