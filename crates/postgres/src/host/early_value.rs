//! Values of expressions without columns, computed before it is known whether a row asks for them.
//!
//! Callers: the scan node, for the conditions that prune, and the vectorised node, for its constants, both at each start. PostgreSQL computes such an expression for the rows that reach it,
//! so one that fails must not end a query of which no row does. What only calls built-in functions is tried (`value_error`); errors of anything else are raised. Invariant: a sub-plan
//! is never tried, because its half-read state would be used again: it has run before, or nothing is held back.

use std::ffi::c_void;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, ExprContext, ExprState, Node, NodeTag, Oid, ParamKind, PlanState};

use super::{tree, value_error};

/// The languages `internal` and `c` (pg_language.dat).
const INTERNAL: u32 = 12;
const C: u32 = 13;

unsafe extern "C-unwind" {
    fn ExecSetParamPlan(node: *mut c_void, econtext: *mut ExprContext);
}

/// An expression without columns, initialised for a node.
pub struct EarlyValue {
    /// The expression, by whose address it is found.
    pub node: *mut Node,
    state: *mut ExprState,
    /// Its errors may be held back.
    is_tried: bool,
    /// All its parts are computed whatever their values are.
    is_whole: bool,
    /// Parameters of the executor's that it reads, of which some are results of sub-plans.
    parameters: Vec<usize>,
}

impl EarlyValue {
    /// Initialises an expression.
    ///
    /// # Safety
    /// A valid expression without columns; `parent` is being initialised or runs, and the current memory lives as long as it.
    pub unsafe fn new(node: *mut Node, parent: *mut PlanState) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let branches =
                |tag| matches!(tag, NodeTag::T_CaseExpr | NodeTag::T_CoalesceExpr | NodeTag::T_BoolExpr);
            Self {
                node,
                state: pg_sys::ExecInitExpr(node.cast(), parent),
                is_tried: !matches!((*node).type_, NodeTag::T_Const | NodeTag::T_Param) && is_built_in(node),
                is_whole: !tree::contains(node, branches),
                parameters: executor_parameters(node),
            }
        }
    }

    /// The value and whether it is NULL; None where computing it is an error of the query's. It lives in the current memory.
    ///
    /// # Safety
    /// `econtext` is the node's.
    pub unsafe fn get(&self, econtext: *mut ExprContext) -> Option<(Datum, bool)> {
        let plain = || {
            let mut is_null = false;
            // SAFETY: initialised for this node.
            let datum = unsafe { pg_sys::ExecEvalExpr(self.state, econtext, &raw mut is_null) };
            (datum, is_null)
        };
        // SAFETY: a query is running; what is tried owns nothing, and is the bare function: pgrx's own guard would unwind through that of the trial.
        unsafe {
            let plan_of = |&number: &usize| (*(*econtext).ecxt_param_exec_vals.add(number)).execPlan;
            for plan in self.parameters.iter().map(plan_of).filter(|plan| !plan.is_null()) {
                if !self.is_whole {
                    return Some(plain());
                }
                tree::guarded(|| ExecSetParamPlan(plan, econtext));
            }
            let Some(evaluate) = (*self.state).evalfunc.filter(|_| self.is_tried) else {
                return Some(plain());
            };
            value_error::attempt(|| {
                let mut is_null = false;
                let datum = evaluate(self.state, econtext, &raw mut is_null);
                (datum, is_null)
            })
        }
    }
}

/// Whether an expression calls built-in functions only, those that are not written in SQL, for values of built-in types.
unsafe fn is_built_in(node: *mut Node) -> bool {
    #[pg_guard]
    unsafe extern "C-unwind" fn is_other(function: Oid, _data: *mut c_void) -> bool {
        // SAFETY: a catalog look-up; a tuple that was found has the catalog's columns.
        unsafe {
            if function.to_u32() >= pg_sys::FirstNormalObjectId {
                return true;
            }
            let cache = pg_sys::SysCacheIdentifier::PROCOID as i32;
            let tuple = pg_sys::SearchSysCache1(cache, Datum::from(function));
            if tuple.is_null() {
                return true;
            }
            let language = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_proc>()).prolang;
            pg_sys::ReleaseSysCache(tuple);
            !matches!(language.to_u32(), INTERNAL | C)
        }
    }
    #[pg_guard]
    unsafe extern "C-unwind" fn calls_other(node: *mut Node, data: *mut c_void) -> bool {
        // SAFETY: the server passes valid nodes, or null.
        unsafe {
            !node.is_null()
                && (matches!(
                    (*node).type_,
                    NodeTag::T_SubPlan | NodeTag::T_AlternativeSubPlan | NodeTag::T_CoerceToDomain
                ) || (matches!(
                    (*node).type_,
                    NodeTag::T_FuncExpr | NodeTag::T_OpExpr | NodeTag::T_CoerceViaIO
                ) && pg_sys::exprType(node).to_u32() >= pg_sys::FirstNormalObjectId)
                    || pg_sys::check_functions_in_node(node, Some(is_other), data)
                    || tree::walk(node, calls_other, data))
        }
    }
    // SAFETY: the caller passes a valid expression.
    unsafe { !tree::guarded(|| calls_other(node, std::ptr::null_mut())) }
}

/// The numbers of the executor's parameters in an expression.
unsafe fn executor_parameters(node: *mut Node) -> Vec<usize> {
    unsafe extern "C-unwind" fn visit(node: *mut Node, data: *mut c_void) -> bool {
        // SAFETY: the server passes valid nodes, or null, and the list below.
        unsafe {
            if node.is_null() {
                return false;
            }
            if (*node).type_ == NodeTag::T_Param {
                let parameter = &*node.cast::<pg_sys::Param>();
                if parameter.paramkind == ParamKind::PARAM_EXEC {
                    (*data.cast::<Vec<usize>>()).extend(usize::try_from(parameter.paramid).ok());
                }
            }
            tree::walk(node, visit, data)
        }
    }
    let mut found = Vec::new();
    // SAFETY: the list lives as long as the walk.
    unsafe { tree::guarded(|| visit(node, (&raw mut found).cast())) };
    found
}
