//! A subtree of the server's finished plan in the terms of `query`: what `translate` makes and the node runs.
//!
//! It is made twice for every vectorised node. While planning no value is known: the translation only shows
//! that everything below is understood. When the node starts, it has the values that parameters and stable
//! expressions have then. Invariant: pointers into the plan tree live as long as the plan.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use pgrx::pg_sys::{self, Datum, Oid};
use query::{Expression, HostFunction};
use vector::Vector;

use crate::host::tree::{Node, Typed};

/// A plan subtree in our terms.
#[derive(Debug)]
pub struct Translated {
    /// The plan to run; its scans name sources by their position below.
    pub plan: query::Plan,
    /// Where rows come from.
    pub sources: Vec<SourceSpec>,
    /// The positions of sources that have no rows for the current values and must not be asked.
    pub idle: Vec<usize>,
    /// The sources of partitions, of each partitioned table of which one is likely to be left by values that
    /// are not known yet.
    pub alternatives: Vec<Vec<Range<usize>>>,
    /// The server's view of each column of the plan: one for each entry of the subtree's target list.
    pub columns: Vec<OutputColumn>,
    /// The server's expressions that its constants and calls of server functions came from.
    pub origins: Origins,
}

/// An expression of the server's plan.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// The expression.
    pub node: *mut pg_sys::Node,
    /// The plan node that it is part of.
    pub plan: *mut pg_sys::Plan,
}

/// For EXPLAIN: where the parts of a translation come from that only the server can show in its words. These
/// parts are calls of its functions, constants, and what stands for values that are not known yet. A part is
/// known by its address, which stays its own because the part is kept here.
#[derive(Default)]
pub struct Origins {
    values: Vec<(Arc<Vector>, Origin)>,
    functions: Vec<(Arc<dyn HostFunction>, Origin)>,
}

impl Origins {
    /// Notes the expression of the server's that a translation came from.
    pub fn note(&mut self, made: &Expression, origin: Origin) {
        match made {
            Expression::Constant(value) => self.note_value(value, origin),
            // Two NULLs stand for a condition on a list that is not known yet.
            Expression::Coalesce(parts) => {
                if let [Expression::Constant(first), Expression::Constant(_)] = parts.as_slice() {
                    self.note_value(first, origin);
                }
            }
            Expression::Host { function, .. } => self.functions.push((Arc::clone(function), origin)),
            _ => {}
        }
    }

    /// Notes the expression that a constant came from.
    pub fn note_value(&mut self, value: &Arc<Vector>, origin: Origin) {
        self.values.push((Arc::clone(value), origin));
    }

    /// The outermost expression that gave a constant.
    pub fn of_value(&self, value: &Arc<Vector>) -> Option<Origin> {
        self.values.iter().rev().find(|(known, _)| Arc::ptr_eq(known, value)).map(|(_, origin)| *origin)
    }

    /// The expression that a call of one of the server's functions came from.
    pub fn of_function(&self, function: &Arc<dyn HostFunction>) -> Option<Origin> {
        self.functions.iter().rev().find(|(known, _)| known == function).map(|(_, origin)| *origin)
    }
}

impl fmt::Debug for Origins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origins").finish_non_exhaustive()
    }
}

/// Where the rows of a `query::Plan::Scan` come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceSpec {
    /// Rows of a columnar table that pass the node's native clauses (`custom_exprs`); its `qual` is in the
    /// `query::Plan`, the source may use it to prune.
    Columnar {
        /// The scan node.
        scan: *mut pg_sys::CustomScan,
        /// Zero-based attribute of each column.
        attributes: Vec<usize>,
    },
    /// Rows of any other plan node: all its target columns.
    Rows {
        /// The node.
        plan: *mut pg_sys::Plan,
    },
}

impl SourceSpec {
    /// The plan node that has to be initialised for it.
    pub const fn node(&self) -> *mut pg_sys::Plan {
        match self {
            Self::Columnar { scan, .. } => (*scan).cast(),
            Self::Rows { plan } => *plan,
        }
    }
}

/// The server's type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputColumn {
    /// Type.
    pub type_oid: Oid,
    /// Its modifier.
    pub typmod: i32,
    /// Its collation.
    pub collation: Oid,
}

/// Why something is not translated, for EXPLAIN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason(pub Cow<'static, str>);

/// An input of an Append that is part of the plan for as long as the statement runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remaining {
    /// Its place among all inputs.
    pub place: usize,
    /// True if the input has no rows for the current values, which change from one start of the node to the
    /// next. The input stays in its place so that every start has the same operators.
    pub idle: bool,
}

/// The values of parameters and stable expressions. Asked only about parts of the plan that is translated.
pub trait Values {
    /// The value of an expression without columns and whether it is NULL; None where no value is known yet.
    ///
    /// # Errors
    /// Computing it fails, which is an error of the query if a row asks for it.
    fn value(&mut self, expression: Node<'_>) -> Result<Option<(Datum, bool)>, Reason>;

    /// The inputs of an Append or MergeAppend of `inputs` inputs that the current values leave. The values
    /// may say which partitions can have rows. All inputs are left unless a statement runs.
    fn remaining(
        &mut self,
        inputs: usize,
        _partitions: Typed<'_, pg_sys::PartitionPruneInfo>,
    ) -> Result<Vec<Remaining>, Reason> {
        Ok((0..inputs).map(|place| Remaining { place, idle: false }).collect())
    }

    /// The server's functions that are kept from one start of the node to the next, by the part of the plan
    /// that calls them. None if nothing is kept.
    fn kept(&mut self) -> Option<&mut Kept> {
        None
    }
}

/// The server's functions, by the part of the plan that calls them. Everything else of the server's that a
/// translation makes is gone at the next translation.
pub struct Kept {
    memory: pg_sys::MemoryContext,
    functions: Vec<(*mut pg_sys::Node, Arc<dyn Any + Send + Sync>)>,
}

impl Kept {
    /// None yet; they live in this memory.
    pub const fn new(memory: pg_sys::MemoryContext) -> Self {
        Self { memory, functions: Vec::new() }
    }

    /// Those of one kind.
    pub fn all<T: Send + Sync + 'static>(&self) -> impl Iterator<Item = (*mut pg_sys::Node, Arc<T>)> {
        self.functions.iter().filter_map(|(of, one)| Some((*of, Arc::clone(one).downcast().ok()?)))
    }

    /// Makes one.
    pub fn make<T: Send + Sync + 'static>(
        &mut self,
        of: *mut pg_sys::Node,
        make: impl FnOnce() -> Option<Arc<T>>,
    ) -> Option<Arc<T>> {
        // SAFETY: the memory lives as long as the node.
        let previous = unsafe { pg_sys::MemoryContextSwitchTo(self.memory) };
        let made = make();
        // SAFETY: what was current.
        unsafe { pg_sys::MemoryContextSwitchTo(previous) };
        let made = made?;
        self.functions.push((of, Arc::clone(&made) as _));
        Some(made)
    }
}

/// No values. Used while planning, only to see whether there is a translation.
#[derive(Debug)]
pub struct NoValues;

impl Values for NoValues {
    fn value(&mut self, _expression: Node<'_>) -> Result<Option<(Datum, bool)>, Reason> {
        Ok(None)
    }
}
