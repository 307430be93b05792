//! Values of expressions without columns, computed before it is known whether a row needs them.
//!
//! Asked at each start by the scan node, for the conditions that prune, and by the vectorised node, for its
//! constants. PostgreSQL computes such an expression for the rows that reach it. So if it fails, it must not
//! end a query in which no row reaches it. An expression that only calls built-in functions is tried
//! (`value_error`). ERRORs of any other expression are raised.
//!
//! Invariant: a sub-plan is never tried, because its half-read state would be used again. Either it has run
//! before, or no ERROR is held back.

use std::cell::Cell;
use std::ffi::c_void;

use pgrx::pg_sys::{self, Datum, ExprContext, ExprState, NodeTag, ParamKind, PlanState};

use super::{calls, value_error};
use crate::host::tree::{self, Node};

unsafe extern "C-unwind" {
    fn ExecSetParamPlan(node: *mut c_void, econtext: *mut ExprContext);
}

/// An expression without columns, initialised for a node.
pub struct EarlyValue {
    /// The expression, by whose address it is found.
    pub node: *mut pg_sys::Node,
    state: *mut ExprState,
    /// None if its ERRORs are raised.
    trial: Option<Trial>,
    /// It has failed. Its state may be half changed, so it is not computed again.
    failed: Cell<bool>,
}

/// What has to be known to try an expression.
struct Trial {
    /// All its parts are computed, whatever the values of other parts are.
    is_whole: bool,
    /// The executor's parameters that it reads. Some are results of sub-plans.
    parameters: Vec<usize>,
}

impl EarlyValue {
    /// Initialises an expression.
    ///
    /// # Safety
    /// A valid expression without columns; `parent` is being initialised or runs, and the current memory
    /// lives as long as it.
    pub unsafe fn new(node: *mut pg_sys::Node, parent: *mut PlanState) -> Self {
        // SAFETY: the caller's expression.
        let trial = unsafe { Node::new(node) }.and_then(Trial::of);
        // SAFETY: the caller's expression, for the node that the caller names.
        let state = unsafe { pg_sys::ExecInitExpr(node.cast(), parent) };
        Self { node, state, trial, failed: Cell::new(false) }
    }

    /// The value and whether it is NULL. None if computing it raised an ERROR that was held back. The value
    /// is in the current memory context.
    ///
    /// # Safety
    /// `econtext` is the node's.
    pub unsafe fn get(&self, econtext: *mut ExprContext) -> Option<(Datum, bool)> {
        if self.failed.get() {
            return None;
        }
        // SAFETY: initialised for this node, and a query is running; what is tried owns nothing, and is the
        // bare function: pgrx's own guard would unwind through that of the trial.
        unsafe {
            let mut is_null = false;
            if let (Some(trial), Some(evaluate)) = (&self.trial, (*self.state).evalfunc)
                && trial.prepare(econtext)
            {
                let value = value_error::released(|| {
                    value_error::attempt(|| {
                        let datum = evaluate(self.state, econtext, &raw mut is_null);
                        (datum, is_null)
                    })
                });
                self.failed.set(value.is_err());
                return value.ok();
            }
            Some((pg_sys::ExecEvalExpr(self.state, econtext, &raw mut is_null), is_null))
        }
    }
}

impl Trial {
    /// What is known of an expression that may be tried; None of one that may not, or cannot fail.
    fn of(node: Node<'_>) -> Option<Self> {
        // Most are parameters, which do not fail.
        let is_bare = matches!(node.tag(), NodeTag::T_Const | NodeTag::T_Param);
        let is_tried = !is_bare && calls::may_hold_back_errors(node);
        is_tried.then(|| Self {
            is_whole: !node.contains(may_leave_parts_out),
            parameters: executor_parameters(node),
        })
    }

    /// Runs the sub-plans that have not run yet. False if it is not known which of them are needed.
    ///
    /// # Safety
    /// The context of the node whose parameters these are.
    unsafe fn prepare(&self, econtext: *mut ExprContext) -> bool {
        // SAFETY: the parameters are the statement's.
        unsafe {
            let plan_of = |&number: &usize| (*(*econtext).ecxt_param_exec_vals.add(number)).execPlan;
            for plan in self.parameters.iter().map(plan_of).filter(|plan| !plan.is_null()) {
                if !self.is_whole {
                    return false;
                }
                tree::guarded(|| ExecSetParamPlan(plan, econtext));
            }
            true
        }
    }
}

/// Whether an expression may leave some of its parts out, because of the values of others.
const fn may_leave_parts_out(tag: NodeTag) -> bool {
    matches!(
        tag,
        NodeTag::T_CaseExpr
            | NodeTag::T_CoalesceExpr
            | NodeTag::T_BoolExpr
            | NodeTag::T_RowCompareExpr
            | NodeTag::T_SubscriptingRef
    )
}

/// The numbers of the executor's parameters in an expression.
fn executor_parameters(node: Node<'_>) -> Vec<usize> {
    unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, data: *mut c_void) -> bool {
        // SAFETY: the server passes valid nodes, or null, and the list below.
        unsafe {
            let Some(part) = Node::new(node) else { return false };
            if let Some(parameter) = part.as_a::<pg_sys::Param>()
                && parameter.paramkind == ParamKind::PARAM_EXEC
            {
                (*data.cast::<Vec<usize>>()).extend(usize::try_from(parameter.paramid).ok());
            }
            tree::walk(node, visit, data)
        }
    }
    let mut found = Vec::new();
    // SAFETY: the list lives as long as the walk.
    unsafe { tree::guarded(|| visit(node.as_ptr(), (&raw mut found).cast())) };
    found
}
