//! What only the server can write of a vectorised plan: names of columns, constants, calls of its functions.
//!
//! Called by `query::explain`. The server itself writes constants and calls, from the node of its plan that
//! they were translated from (`Origins`). So parameters, casts and literals read as they do elsewhere in
//! EXPLAIN.

use std::sync::Arc;

use pgrx::PgList;
use pgrx::pg_sys;
use query::HostFunction;
use query::explain::Spelling;
use vector::Vector;

use crate::compat;
use crate::vectorised::translated::{Origin, Origins, SourceSpec};

/// The server's words.
pub struct Words<'a> {
    es: *mut pg_sys::ExplainState,
    ancestors: *mut pg_sys::List,
    origins: &'a Origins,
    sources: Vec<&'a SourceSpec>,
}

impl<'a> Words<'a> {
    /// Of a statement that is being explained.
    ///
    /// # Safety
    /// EXPLAIN's own structs; the origins and the sources are of its plan.
    pub const unsafe fn new(
        es: *mut pg_sys::ExplainState,
        ancestors: *mut pg_sys::List,
        origins: &'a Origins,
        sources: Vec<&'a SourceSpec>,
    ) -> Self {
        Self { es, ancestors, origins, sources }
    }

    /// A node of the server's plan as the server shows it.
    fn of(&self, origin: Origin) -> String {
        // SAFETY: `new`'s promise; the text is a string of its own.
        unsafe {
            let es = self.es;
            let prefix = (*es).verbose || compat::shown_tables(&*es) > 1;
            let context = pg_sys::set_deparse_context_plan((*es).deparse_cxt, origin.plan, self.ancestors);
            let text = pg_sys::deparse_expression(origin.node, context, prefix, false);
            std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

impl Spelling for Words<'_> {
    fn columns(&self, source: usize) -> Vec<String> {
        let Some(source) = self.sources.get(source) else { return Vec::new() };
        // SAFETY: `new`'s promise; a Var of a scanned table, and the entries of a target list, are what the
        // server shows.
        unsafe {
            match source {
                SourceSpec::Columnar { scan, attributes } => {
                    let column = |&attribute: &usize| {
                        let var = pg_sys::makeVar(
                            (**scan).scan.scanrelid.cast_signed(),
                            i16::try_from(attribute + 1).unwrap_or(0),
                            pg_sys::InvalidOid,
                            -1,
                            pg_sys::InvalidOid,
                            0,
                        );
                        self.of(Origin { node: var.cast(), plan: source.node() })
                    };
                    attributes.iter().map(column).collect()
                }
                SourceSpec::Rows { plan } => {
                    let targets = PgList::<pg_sys::TargetEntry>::from_pg((**plan).targetlist);
                    let targets = targets.iter_ptr().map(|target| (*target).expr.cast());
                    targets.map(|node| self.of(Origin { node, plan: *plan })).collect()
                }
            }
        }
    }

    fn constant(&self, value: &Arc<Vector>) -> Option<String> {
        self.origins.of_value(value).map(|origin| self.of(origin))
    }

    fn function(&self, function: &Arc<dyn HostFunction>) -> Option<String> {
        self.origins.of_function(function).map(|origin| self.of(origin))
    }
}
