//! A query with what was done for it: `columnar_explain`.

use std::sync::Arc;

use query::Profile;
use query::explain::{Options, Property, Spelling, Value, add_figures, lines, operators};

use super::planner::Shown;
use super::{Prepared, Query};
use crate::api::Result;
use crate::engine::Running;

impl Query<'_> {
    /// Runs it to its end: the operators with what they did, a line each.
    pub fn explain(&self) -> Result<Vec<String>> {
        self.with_plan(|prepared| {
            let Prepared { plan, sources, source_names, .. } = prepared;
            let profile = Profile::of(&plan);
            let limits = self.tables.limits();
            let mut running = Running::new(self.db, &plan, sources, limits, Some(Arc::clone(&profile)))?;
            while running.next()?.is_some() {}
            drop(running);
            let mut figures = Vec::new();
            add_figures(&mut figures, &profile);
            let options = Options { verbose: false, figures: &figures, with_work: true };
            let root = operators(&plan, &Names(source_names), options);
            Ok(lines(&root, "", limits.threads))
        })
    }
}

/// What the query says of its sources.
struct Names(Vec<Shown>);

impl Spelling for Names {
    fn columns(&self, source: usize) -> Vec<String> {
        match self.0.get(source) {
            Some(Shown { table, columns, .. }) => {
                columns.iter().map(|column| format!("{table}.{column}")).collect()
            }
            None => Vec::new(),
        }
    }
    /// Which table it is, and what was read and left out of it.
    fn source(&self, source: usize) -> Option<(String, Vec<Property>)> {
        let Shown { table, conditions, counters, .. } = self.0.get(source)?;
        let mut properties = Vec::new();
        let mut add = |label, text| properties.push(Property::new(label, Value::Text(text)));
        if !conditions.is_empty() {
            add("Conditions", conditions.join(" AND "));
        }
        if let Some(counters) = counters.as_ref().map(|counters| counters.get()) {
            let pair = |read: u64, pruned: u64| format!("read {read}, pruned {pruned}");
            add("Stripes", pair(counters.stripes_read, counters.stripes_pruned));
            add("Chunks", pair(counters.chunks_read, counters.chunks_pruned));
            if counters.rows_known > 0 {
                add("Rows from statistics", counters.rows_known.to_string());
            }
            add("Bytes", format!("read {}", Value::Bytes(counters.bytes_read)));
        }
        Some((format!("Scan {table}"), properties))
    }
}
