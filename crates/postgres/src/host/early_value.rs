//! Values of expressions without columns, computed before it is known whether a row asks for them.
//!
//! Callers: the scan node, for the conditions that prune, and the vectorised node, for its constants, both at each start. PostgreSQL computes such an expression for the rows that reach it,
//! so one that fails must not end a query of which no row does: what may fail is tried in a subtransaction, and left to those rows if it does. Invariant: sub-plans run outside
//! of that subtransaction, because their half-read state would be used again.

use std::ffi::c_void;

use pgrx::PgList;
use pgrx::pg_sys::{self, Datum, ExprContext, ExprState, Node, NodeTag, Oid, ParamKind, PlanState};

use super::error::PgSqlErrorCode;
use super::{subtransaction, tree};

unsafe extern "C-unwind" {
    fn ExecSetParamPlan(node: *mut c_void, econtext: *mut ExprContext);
}

/// An expression without columns, initialised for a node.
pub struct EarlyValue {
    /// The expression, by whose address it is found.
    pub node: *mut Node,
    state: *mut ExprState,
    never_fails: bool,
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
            Self {
                node,
                state: pg_sys::ExecInitExpr(node.cast(), parent),
                never_fails: never_fails(node),
                parameters: executor_parameters(node),
            }
        }
    }

    /// The value and whether it is NULL; None where computing it is an error of the query's. It lives in the current memory.
    ///
    /// # Safety
    /// `econtext` is the node's.
    pub unsafe fn get(&self, econtext: *mut ExprContext) -> Option<(Datum, bool)> {
        let evaluate = || {
            let mut is_null = false;
            // SAFETY: initialised for this node.
            let datum = unsafe { pg_sys::ExecEvalExpr(self.state, econtext, &raw mut is_null) };
            (datum, is_null)
        };
        // SAFETY: a query is running. A parallel operation can have no subtransactions.
        unsafe {
            if self.never_fails || pg_sys::IsInParallelMode() {
                return Some(evaluate());
            }
            for &parameter in &self.parameters {
                let plan = (*(*econtext).ecxt_param_exec_vals.add(parameter)).execPlan;
                if !plan.is_null() {
                    tree::guarded(|| ExecSetParamPlan(plan, econtext));
                }
            }
            subtransaction::attempt(is_of_query, evaluate).ok()
        }
    }
}

/// True for the errors of a query's own values: not those of the server, of its operators, or of other transactions.
fn is_of_query(code: PgSqlErrorCode) -> bool {
    let class = |code: PgSqlErrorCode| code as isize & 0xfff;
    let others = [
        PgSqlErrorCode::ERRCODE_TRANSACTION_ROLLBACK,
        PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
        PgSqlErrorCode::ERRCODE_OPERATOR_INTERVENTION,
        PgSqlErrorCode::ERRCODE_SYSTEM_ERROR,
        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
    ];
    !others.iter().any(|&other| class(other) == class(code))
}

/// True for parameters, the time, and casts of them that hold every value.
unsafe fn never_fails(node: *mut Node) -> bool {
    use pg_sys as p;
    // SAFETY: casts follow the tags; args are lists of expressions.
    unsafe {
        let widens = |function: Oid| {
            matches!(
                function.to_u32(),
                p::F_NOW
                    | p::F_INT4_INT2
                    | p::F_INT8_INT2
                    | p::F_INT8_INT4
                    | p::F_NUMERIC_INT2
                    | p::F_NUMERIC_INT4
                    | p::F_NUMERIC_INT8
                    | p::F_FLOAT8_INT4
                    | p::F_FLOAT8_FLOAT4
            )
        };
        let all = |list| PgList::<Node>::from_pg(list).iter_ptr().all(|part| never_fails(part));
        match (*node).type_ {
            NodeTag::T_Const | NodeTag::T_Param | NodeTag::T_SQLValueFunction => true,
            NodeTag::T_RelabelType => never_fails((*node.cast::<pg_sys::RelabelType>()).arg.cast()),
            NodeTag::T_FuncExpr => {
                let expr = &*node.cast::<pg_sys::FuncExpr>();
                widens(expr.funcid) && all(expr.args)
            }
            _ => false,
        }
    }
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
