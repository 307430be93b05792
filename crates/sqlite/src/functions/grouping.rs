//! Groups of a table's rows by one column, and what is summed up of others in each.
//!
//! Rows are looked at one by one. The vectorised engine computes the sum and the count of all rows, where the
//! column has a type (`engine`); groups that it can compute never come here (`groups`). Both give the same.

use std::collections::HashMap;
use std::rc::Rc;

use query::{AggregateFunction, Expression, Plan};
use vector::{LogicalType, Values, Vector};

use super::totals::{Totals, Wanted};
use crate::api::{Connection, Error, Result, Value};
use crate::engine::{TableSource, aggregate, rows_of};
use crate::scan::search::Search;
use crate::scan::{Condition, RowScan};
use crate::table::TableState;
use crate::values::{Collation, Kind, Owned, whole};

/// What is asked for.
pub struct Question {
    /// The column whose equal values make a group. None: all rows are one.
    pub key: Option<usize>,
    /// The columns that are summed up.
    pub values: Vec<(usize, Wanted)>,
    /// What has to hold of rows.
    pub conditions: Vec<Condition>,
}

/// A group.
#[derive(Debug, Clone)]
pub struct Group {
    /// Its key. None is NULL.
    pub key: Option<Owned>,
    /// Its rows.
    pub rows: i64,
    /// Rows in which some column that is summed up is not NULL.
    pub some: i64,
    /// One for each column that is summed up.
    pub totals: Vec<Totals>,
}

impl Question {
    /// All groups. Without a key there is one, even of no row.
    pub fn answer(self, db: Connection, table: &TableState) -> Result<Vec<Group>> {
        for column in self.key.iter().chain(self.values.iter().map(|(column, _)| column)) {
            collation_of(table, *column)?;
        }
        match self.total(db, table)? {
            Some(totals) => {
                Ok(vec![Group { key: None, rows: totals.count, some: totals.count, totals: vec![totals] }])
            }
            None => self.row_by_row(table),
        }
    }

    /// The sum and the count of one column, by the engine. None where more is asked for, or it cannot.
    fn total(&self, db: Connection, table: &TableState) -> Result<Option<Totals>> {
        let (None, [(column, Wanted { sum, least: false, greatest: false })]) =
            (self.key, self.values.as_slice())
        else {
            return Ok(None);
        };
        let storage = &table.storage;
        let place = storage.columns.place(*column);
        let Some(source) = TableSource::new(storage, &[place], self.conditions.clone())? else {
            return Ok(None);
        };
        let Some(own) = source.types().first().copied() else { return Ok(None) };
        // What number a text stands for is not the engine's to know.
        if own.kind == Kind::Text && *sum {
            return Ok(None);
        }
        let of = |function, result| aggregate(function, vec![Expression::Column(0)], result);
        let mut aggregates = vec![of(AggregateFunction::Count, LogicalType::Int64)];
        if *sum {
            aggregates.extend(match own.logical() {
                LogicalType::Float64 => vec![
                    of(AggregateFunction::PreciseSum, LogicalType::Float64),
                    of(AggregateFunction::AnyFraction, LogicalType::Bool),
                ],
                _ => vec![of(AggregateFunction::Sum, LogicalType::Numeric)],
            });
        }
        let scan = Box::new(Plan::Scan { source: 0, types: vec![own.logical()] });
        let plan = Plan::Aggregate { input: scan, keys: Vec::new(), aggregates, groups: 1.0 };
        let Some(batches) = rows_of(db, &plan, source)? else { return Ok(None) };
        let column = |at: usize| batches.first().and_then(|batch| batch.columns.get(at));
        let flat = |at: usize| column(at).map(|column| Vector::clone(column).flatten().values);
        let count = match flat(0) {
            Some(Values::Int64(counts)) => counts.first().copied().unwrap_or_default(),
            _ => 0,
        };
        let is_real = own.kind == Kind::Real
            || matches!(flat(2), Some(Values::Bool(fractions)) if fractions.iter().any(|fraction| fraction));
        let (integers, reals) = match flat(1) {
            Some(Values::Numeric(numeric)) if count > 0 => (numeric.ints.get(0), None),
            Some(Values::Float64(sums)) => {
                let real = sums.first().copied().unwrap_or_default();
                match whole(real).filter(|_| !is_real) {
                    Some(integer) => (integer.into(), None),
                    None => (0, Some(real)),
                }
            }
            _ => (0, None),
        };
        Ok(Some(Totals::known(count, integers, reals)))
    }

    fn row_by_row(self, table: &TableState) -> Result<Vec<Group>> {
        let storage = &table.storage;
        let place = |column: usize| storage.columns.place(column);
        let key = match self.key {
            Some(key) => Some((place(key), collation_of(table, key)?)),
            None => None,
        };
        let values = self
            .values
            .iter()
            .map(|&(column, wanted)| Ok((place(column), wanted, collation_of(table, column)?)));
        let values = values.collect::<Result<Vec<_>>>()?;
        let mut places: Vec<usize> =
            key.iter().map(|(place, _)| *place).chain(values.iter().map(|one| one.0)).collect();
        places.sort_unstable();
        places.dedup();
        let mut groups: Vec<Group> = Vec::new();
        let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
        let new = |key: Option<Owned>| Group {
            key,
            rows: 0,
            some: 0,
            totals: vec![Totals::default(); values.len()],
        };
        if key.is_none() {
            groups.push(new(None));
        }
        let mut scan = RowScan::new(Rc::clone(storage));
        scan.start_with(Search { places, ..Search::default() }, self.conditions)?;
        let mut folded = Vec::new();
        while !scan.is_past_end() {
            let at = match key {
                None => 0,
                Some((place, collation)) => {
                    let value = scan.get(place)?;
                    fold(value, collation, &mut folded);
                    match known.get(&folded) {
                        Some(&at) => at,
                        None => {
                            groups.push(new(Owned::of(value)));
                            known.insert(folded.clone(), groups.len() - 1);
                            groups.len() - 1
                        }
                    }
                }
            };
            if let Some(group) = groups.get_mut(at) {
                group.rows += 1;
                let mut some = false;
                for (totals, &(place, wanted, collation)) in group.totals.iter_mut().zip(&values) {
                    let value = scan.get(place)?;
                    some |= value != Value::Null;
                    totals.add(value, wanted, collation);
                }
                group.some += i64::from(some);
            }
            scan.next()?;
        }
        Ok(groups)
    }
}

/// The collation of a column. An error for one that a user has made.
pub fn collation_of(table: &TableState, column: usize) -> Result<Collation> {
    let name = table.storage.columns.0.get(column).map_or("BINARY", |column| column.collation.as_str());
    Collation::of_name(name).ok_or_else(|| {
        Error::new(format!("columnar functions know the collations BINARY, NOCASE and RTRIM, not {name}"))
    })
}

/// Bytes that are equal exactly where values are in one group.
fn fold(value: Value<'_>, collation: Collation, out: &mut Vec<u8>) {
    out.clear();
    let mut put = |class: u8, bytes: &[u8]| {
        out.push(class);
        out.extend_from_slice(bytes);
    };
    match value {
        Value::Null => put(0, &[]),
        Value::Integer(integer) => put(1, &integer.to_le_bytes()),
        Value::Real(real) => match whole(real) {
            Some(integer) => put(1, &integer.to_le_bytes()),
            None => put(2, &real.to_le_bytes()),
        },
        Value::Text(text) => put(3, &collation.folded(text)),
        Value::Blob(blob) => put(4, blob),
    }
}
