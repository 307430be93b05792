//! A subtree of the server's finished plan in the terms of `query`: what `translate` makes and the node runs.
//!
//! Made twice for every vectorised node: while planning, with no value known, only to see that everything below is understood; and when
//! the node starts, with the values that parameters and stable expressions have then. Invariant: pointers into the plan tree live as long as the plan.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use pgrx::pg_sys::{self, Datum, Oid};

/// A plan subtree in our terms.
#[derive(Debug)]
pub struct Translated {
    /// What to compute; its scans name sources by their position below.
    pub plan: query::Plan,
    /// Where rows come from.
    pub sources: Vec<SourceSpec>,
    /// What the server sees of each column of the plan: one for each entry of the subtree's target list.
    pub columns: Vec<OutputColumn>,
}

/// Where the rows of a `query::Plan::Scan` come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceSpec {
    /// Rows of a columnar table that pass the node's native clauses (`custom_exprs`); its `qual` is in the `query::Plan`, the source may use it to
    /// prune.
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

/// Values of what is not a column: parameters and stable expressions.
pub trait Values {
    /// The value of an expression without columns and whether it is NULL; None where no value is known yet.
    ///
    /// # Safety
    /// The expression is part of the plan that is translated.
    unsafe fn value(&mut self, expression: *mut pg_sys::Node) -> Option<(Datum, bool)>;

    /// What is kept from one start of the node to the next: functions of the server's, by the part of the plan that calls them. None where nothing is.
    fn kept(&mut self) -> Option<&mut Kept> {
        None
    }
}

/// Functions of the server's, by the part of the plan that calls them.
pub type Kept = Vec<(*mut pg_sys::Node, Arc<dyn Any + Send + Sync>)>;

/// While planning: nothing is known, the translation only shows whether there is one.
#[derive(Debug)]
pub struct NoValues;

impl Values for NoValues {
    unsafe fn value(&mut self, _expression: *mut pg_sys::Node) -> Option<(Datum, bool)> {
        None
    }
}
