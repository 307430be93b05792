//! What an expression calls: whether an ERROR of it may be held back.
//!
//! Asked by all code that has `value_error` hold back ERRORs. A function is *tame* if it is built in and runs
//! nothing of a user's: no queries, and no functions that it finds by a type.
//!
//! A user's function that is missed here ends the attempt (`user_functions`), or shows by the context of the
//! ERROR.

use std::ffi::c_void;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Node, NodeTag, Oid};

use super::{foreign_order, user_functions};
use crate::host::tree;

/// Functions that are not marked as what they do. `pg_get_ruledef` (both forms) runs queries.
/// `satisfies_hash_partition` and `pg_get_partition_constraintdef` call functions of partition keys.
const RUNS_QUERIES: [u32; 4] = [1573, 2504, 5028, 3408];

/// Whether an expression is tame, so that an ERROR of it may be held back. It has no sub-plans, and calls
/// only built-in functions that neither run queries nor find functions by a type that may run some.
///
/// # Safety
/// A valid expression.
pub unsafe fn may_hold_back_errors(node: *mut Node) -> bool {
    // SAFETY: the caller's promise.
    unsafe { !tree::guarded(|| calls_others(node, std::ptr::null_mut())) }
}

/// Whether a built-in function that gets a value of this type may call a user's function.
unsafe fn brings_others(kind: Oid) -> bool {
    // SAFETY: catalog look-ups, in a walk that is guarded.
    unsafe {
        let element = pg_sys::get_element_type(kind);
        let kind = if element == Oid::INVALID { kind } else { element };
        let class = pg_sys::get_typtype(kind) as u8;
        let runs_others = match class {
            pg_sys::TYPTYPE_ENUM => false,
            // A literal whose type is not known.
            pg_sys::TYPTYPE_PSEUDO if kind == pg_sys::UNKNOWNOID => false,
            pg_sys::TYPTYPE_COMPOSITE | pg_sys::TYPTYPE_PSEUDO => true,
            _ => kind.to_u32() >= pg_sys::FirstNormalObjectId,
        };
        // A built-in type without an order of its own may have one of a user's.
        runs_others || foreign_order::is_of(kind)
    }
}

/// Whether functions may get values of the type of this part of an expression.
///
/// # Safety
/// A valid node.
pub unsafe fn shows_type(node: *mut Node) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        matches!(
            (*node).type_,
            NodeTag::T_Var
                | NodeTag::T_Const
                | NodeTag::T_Param
                | NodeTag::T_Aggref
                | NodeTag::T_FuncExpr
                | NodeTag::T_OpExpr
                | NodeTag::T_CoerceViaIO
                | NodeTag::T_ArrayCoerceExpr
                | NodeTag::T_ArrayExpr
                | NodeTag::T_SubscriptingRef
                | NodeTag::T_FieldSelect
                | NodeTag::T_CaseTestExpr
                | NodeTag::T_MinMaxExpr
                | NodeTag::T_RelabelType
        )
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn calls_others(node: *mut Node, data: *mut c_void) -> bool {
    // SAFETY: the server passes valid nodes, or null.
    unsafe {
        if node.is_null() {
            return false;
        }
        let itself = match (*node).type_ {
            NodeTag::T_SubPlan
            | NodeTag::T_AlternativeSubPlan
            | NodeTag::T_CoerceToDomain
            | NodeTag::T_ConvertRowtypeExpr
            | NodeTag::T_NextValueExpr
            | NodeTag::T_RowExpr => true,
            _ => shows_type(node) && brings_others(pg_sys::exprType(node)),
        };
        itself
            || foreign_order::compares(node)
            || pg_sys::check_functions_in_node(node, Some(is_other), data)
            || tree::walk(node, calls_others, data)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn is_other(function: Oid, _data: *mut c_void) -> bool {
    // SAFETY: catalog look-ups.
    unsafe {
        !user_functions::is_built_in(function)
            || RUNS_QUERIES.contains(&function.to_u32())
            || pg_sys::func_parallel(function) as u8 != pg_sys::PROPARALLEL_SAFE
    }
}
