//! Plain tables of SQLite's, and whatever else has rows: read once, and kept as vectors.

use std::rc::Rc;
use std::sync::Arc;

use query::{BATCH_ROWS, Batch, Host, Source, Unit};
use vector::Vector;

use super::from::Relation;
use super::names::Visible;
use super::planner::{Estimate, Node, Planner, Shown};
use crate::api::{Connection, Result, Value};
use crate::declaration::quoted;
use crate::values::{Affinity, Collation, Column, ColumnBuilder, Kind};

/// The statement that made a view. None of a table.
pub fn view_of(db: Connection, schema: &str, name: &str) -> Result<Option<String>> {
    let sql = format!(
        "SELECT sql FROM {}.sqlite_master WHERE name = ?1 COLLATE NOCASE AND type = 'view'",
        quoted(schema)
    );
    let statement = db.prepare(&sql)?;
    statement.bind(1, Value::Text(name.as_bytes()))?;
    Ok(statement.step()?.then(|| statement.text(0)))
}

/// Rows that are in memory.
struct Kept {
    columns: Vec<Arc<Vector>>,
    rows: usize,
    at: usize,
}

impl Source for Kept {
    fn next_unit(&mut self, _host: &mut dyn Host) -> query::Result<Option<Box<dyn Unit>>> {
        if self.at >= self.rows {
            return Ok(None);
        }
        let count = BATCH_ROWS.min(self.rows - self.at);
        let columns = self.columns.iter().map(|column| Arc::new(column.slice(self.at, count))).collect();
        self.at += count;
        Ok(Some(Box::new(Some(Batch::new(count, columns)))))
    }
}

/// Batches that were computed before.
pub struct KeptBatches {
    batches: Rc<Vec<Batch>>,
    next: usize,
}

impl KeptBatches {
    /// All of them.
    pub const fn new(batches: Rc<Vec<Batch>>) -> Self {
        Self { batches, next: 0 }
    }
}

impl Source for KeptBatches {
    fn next_unit(&mut self, _host: &mut dyn Host) -> query::Result<Option<Box<dyn Unit>>> {
        let batch = self.batches.get(self.next).cloned();
        self.next += 1;
        Ok(batch.map(|batch| Box::new(Some(batch)) as Box<dyn Unit>))
    }
}

impl Planner<'_> {
    /// The rows of a table that is not columnar, of which the query names these columns.
    pub fn plain_table(
        &mut self,
        schema: &str,
        table: &str,
        mut visible: Visible,
    ) -> Result<(Relation, Visible)> {
        let place = format!("{}.{}", quoted(schema), quoted(table));
        let mut wanted = Vec::new();
        let info = self.db.prepare(&format!("PRAGMA {}.table_info({})", quoted(schema), quoted(table)))?;
        while info.step()? {
            let (name, declared) = (info.text(1), info.text(2));
            if !self.words.contains("*") && !self.words.contains(&name.to_ascii_lowercase()) {
                visible.columns.push((name, Err("a column that is not named".into())));
                continue;
            }
            let collation = self.db.collation(schema, table, &name).unwrap_or_else(|_| "BINARY".into());
            wanted.push((name.clone(), Affinity::of_type(&declared), collation, visible.columns.len()));
            visible.columns.push((name, Err("a column that is not read".into())));
        }
        drop(info);
        let names: Vec<String> = wanted.iter().map(|(name, ..)| quoted(name)).collect();
        let list = if names.is_empty() { "NULL".into() } else { names.join(", ") };
        let statement = self.db.prepare(&format!("SELECT {list} FROM {place}"))?;
        let mut builders: Vec<ColumnBuilder> =
            wanted.iter().map(|(_, affinity, ..)| ColumnBuilder::new(*affinity)).collect();
        let mut rows = 0;
        while statement.step()? {
            for (at, builder) in builders.iter_mut().enumerate() {
                builder.push(statement.value(at))?;
            }
            rows += 1;
        }
        let columns: Vec<Column> = builders.into_iter().map(ColumnBuilder::finish).collect();
        let mut ids = Vec::new();
        let mut vectors = Vec::new();
        let mut shown = Vec::new();
        for ((name, affinity, collation, at), column) in wanted.into_iter().zip(columns) {
            let Some(collation) = Collation::of_name(&collation).filter(|_| column.kind != Kind::Mixed)
            else {
                let why =
                    format!("column {name} of {table}: several classes of values, blobs, or {collation}");
                if let Some(place) = visible.columns.get_mut(at) {
                    place.1 = Err(why);
                }
                continue;
            };
            let id = self.stored_column(column.kind, affinity, collation, None);
            self.estimates.insert(id, Estimate { distinct: (rows as f64).max(1.0), bounds: None });
            if let Some(place) = visible.columns.get_mut(at) {
                place.1 = Ok(id);
            }
            ids.push(id);
            shown.push(name);
            vectors.push(Arc::new(column.vector));
        }
        let types = vectors.iter().map(|vector| vector.logical).collect();
        let source = Kept { columns: vectors, rows, at: 0 };
        let shown = Shown { table: visible.name.clone(), columns: shown, ..Shown::default() };
        let plan = self.scan(Box::new(source), types, shown);
        Ok((Relation::Node(Node { plan, ids, rows: (rows as f64).max(1.0) }), visible))
    }

    /// One row without columns.
    pub fn one_row(&mut self) -> Node {
        let source = Kept { columns: Vec::new(), rows: 1, at: 0 };
        let plan = self.scan(Box::new(source), Vec::new(), Shown::default());
        Node { plan, ids: Vec::new(), rows: 1.0 }
    }
}
