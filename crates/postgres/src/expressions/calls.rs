//! What an expression calls: whether an ERROR of it may be held back.
//!
//! Asked by all code that has `value_error` hold back ERRORs. A function is *tame* if it is built in and runs
//! nothing of a user's: no queries, and no functions that it finds by a type.
//!
//! A user's function that is missed here ends the attempt (`user_functions`), or shows by the context of the
//! ERROR.

use std::ffi::c_void;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, NodeTag, Oid};

use super::{foreign_order, user_functions};
use crate::host::own_type;
use crate::host::tree::{self, Node};

/// Functions that are not marked as what they do. `pg_get_ruledef` (both forms) runs queries.
/// `satisfies_hash_partition` and `pg_get_partition_constraintdef` call functions of partition keys.
const RUNS_QUERIES: [u32; 4] = [1573, 2504, 5028, 3408];

/// True where an expression is tame, so that an ERROR of it may be held back: no sub-plans, and no functions
/// that are not built in, or may run queries, or ask a type for functions that may.
pub fn may_hold_back_errors(node: Node<'_>) -> bool {
    // SAFETY: the walk begins at a valid node, under guard.
    unsafe { !tree::guarded(|| calls_others(node.as_ptr(), std::ptr::null_mut())) }
}

/// Whether a built-in function that gets a value of this type may call a user's function.
fn brings_others(kind: Oid) -> bool {
    // SAFETY: catalog look-ups.
    let (kind, class) = unsafe {
        let element = pg_sys::get_element_type(kind);
        let kind = if element == Oid::INVALID { kind } else { element };
        (kind, pg_sys::get_typtype(kind) as u8)
    };
    let runs_others = match class {
        pg_sys::TYPTYPE_ENUM => false,
        // A literal whose type is not known.
        pg_sys::TYPTYPE_PSEUDO if kind == pg_sys::UNKNOWNOID => false,
        pg_sys::TYPTYPE_COMPOSITE | pg_sys::TYPTYPE_PSEUDO => true,
        _ => kind.to_u32() >= pg_sys::FirstNormalObjectId && !own_type::is_uint8(kind),
    };
    // A built-in type without an order of its own may have one of a user's.
    runs_others || foreign_order::is_of(kind)
}

/// Whether a part of an expression of this kind has a type that functions may be given values of.
pub const fn shows_type(tag: NodeTag) -> bool {
    matches!(
        tag,
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

#[pg_guard]
unsafe extern "C-unwind" fn calls_others(node: *mut pg_sys::Node, data: *mut c_void) -> bool {
    // SAFETY: the server passes valid nodes, or null.
    unsafe {
        let Some(part) = Node::new(node) else { return false };
        let itself = match part.tag() {
            NodeTag::T_SubPlan
            | NodeTag::T_AlternativeSubPlan
            | NodeTag::T_CoerceToDomain
            | NodeTag::T_ConvertRowtypeExpr
            | NodeTag::T_NextValueExpr
            | NodeTag::T_RowExpr => true,
            tag => shows_type(tag) && brings_others(part.type_oid()),
        };
        itself
            || foreign_order::compares(part)
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
