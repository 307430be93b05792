//! Values of parameters and stable expressions, for the translator.
//!
//! Used at each start of the node. Invariant: an expression is initialised once and evaluated at each start,
//! in the node's own context, as the server would evaluate the keys of an index scan.

use pgrx::pg_sys::{self, Datum};

use super::pruning::{self, Pruning};
use crate::expressions::early_value::EarlyValue;
use crate::host::identity::Identity;
use crate::host::tree::{Node, Typed};
use crate::vectorised::translated::{Kept, Reason, Remaining, Values};

/// Everything is evaluated.
pub struct Live<'a> {
    custom: *mut pg_sys::CustomScanState,
    known: &'a mut Vec<EarlyValue>,
    kept: &'a mut Kept,
    pruning: &'a mut Vec<Pruning>,
    fetching: Identity,
}

impl<'a> Live<'a> {
    /// For a node that runs; `known` are the expressions initialised so far, by address, `kept` the functions
    /// called so far, and `pruning` what was found out about partitions. Values are computed as the user who
    /// fetches; the rest is done as the current one, who began.
    ///
    /// # Safety
    /// The node is initialised and starts. What is asked for is part of the kept subtree, which lives as long
    /// as the node.
    pub const unsafe fn new(
        custom: *mut pg_sys::CustomScanState,
        known: &'a mut Vec<EarlyValue>,
        kept: &'a mut Kept,
        pruning: &'a mut Vec<Pruning>,
        fetching: Identity,
    ) -> Self {
        Self { custom, known, kept, pruning, fetching }
    }
}

impl Values for Live<'_> {
    fn value(&mut self, expression: Node<'_>) -> Result<Option<(Datum, bool)>, Reason> {
        let expression = expression.as_ptr();
        // SAFETY: as `new` was promised; the value is computed in memory that is reset at each start.
        unsafe {
            let econtext = (*self.custom).ss.ps.ps_ExprContext;
            let at = match self.known.iter().position(|known| known.node == expression) {
                Some(at) => at,
                None => {
                    let context = (*(*self.custom).ss.ps.state).es_query_cxt;
                    let previous = pg_sys::MemoryContextSwitchTo(context);
                    self.known.push(EarlyValue::new(expression, self.custom.cast()));
                    pg_sys::MemoryContextSwitchTo(previous);
                    self.known.len() - 1
                }
            };
            let previous = pg_sys::MemoryContextSwitchTo((*econtext).ecxt_per_tuple_memory);
            let value = self.known.get(at).and_then(|known| self.fetching.during(|| known.get(econtext)));
            pg_sys::MemoryContextSwitchTo(previous);
            value.map(Some).ok_or(Reason("value that fails".into()))
        }
    }

    fn remaining(
        &mut self,
        inputs: usize,
        partitions: Typed<'_, pg_sys::PartitionPruneInfo>,
    ) -> Result<Vec<Remaining>, Reason> {
        // SAFETY: as `new` was promised.
        self.fetching.during(|| unsafe { pruning::now(self.pruning, self.custom, inputs, partitions) })
    }

    fn kept(&mut self) -> Option<&mut Kept> {
        Some(self.kept)
    }
}
