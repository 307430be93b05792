//! Values of parameters and stable expressions, for the translator.
//!
//! Used at each start of the node. Invariant: an expression is initialised once and evaluated at each start, in the node's own context, as the server would
//! evaluate the keys of an index scan.

use pgrx::pg_sys::{self, Datum};

use crate::vectorised::translated::{Kept, Values};

/// Everything is evaluated.
pub struct Live<'a> {
    custom: *mut pg_sys::CustomScanState,
    known: &'a mut Vec<(*mut pg_sys::Node, *mut pg_sys::ExprState)>,
    kept: &'a mut Kept,
}

impl<'a> Live<'a> {
    /// For a node that runs; `known` are the expressions initialised so far, by address, and `kept` the functions called so far.
    pub const fn new(
        custom: *mut pg_sys::CustomScanState,
        known: &'a mut Vec<(*mut pg_sys::Node, *mut pg_sys::ExprState)>,
        kept: &'a mut Kept,
    ) -> Self {
        Self { custom, known, kept }
    }
}

impl Values for Live<'_> {
    unsafe fn value(&mut self, expression: *mut pg_sys::Node) -> Option<(Datum, bool)> {
        // SAFETY: the node is initialised; the expression is part of the kept subtree, which lives as long as the plan.
        unsafe {
            let econtext = (*self.custom).ss.ps.ps_ExprContext;
            let found = self.known.iter().find(|(node, _)| *node == expression).map(|(_, state)| *state);
            let state = match found {
                Some(state) => state,
                None => {
                    let context = (*(*self.custom).ss.ps.state).es_query_cxt;
                    let previous = pg_sys::MemoryContextSwitchTo(context);
                    let state = pg_sys::ExecInitExpr(expression.cast(), self.custom.cast());
                    pg_sys::MemoryContextSwitchTo(previous);
                    self.known.push((expression, state));
                    state
                }
            };
            let previous = pg_sys::MemoryContextSwitchTo((*econtext).ecxt_per_tuple_memory);
            let mut is_null = false;
            let datum = pg_sys::ExecEvalExpr(state, econtext, &raw mut is_null);
            pg_sys::MemoryContextSwitchTo(previous);
            Some((datum, is_null))
        }
    }

    fn kept(&mut self) -> Option<&mut Kept> {
        Some(self.kept)
    }
}
