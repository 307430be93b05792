//! Groups of a table's rows by one column, and what is summed up of others in each.
//!
//! The vectorised engine computes them where all columns have a type (`engine`). Otherwise rows are looked at
//! one by one. Both give the same.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use query::{Aggregate, AggregateFunction, Batch, Expression, Plan, TextOrder};
use vector::{LogicalType, Values, Vector};

use super::totals::{Totals, Wanted};
use crate::api::{Connection, Error, Result, Value};
use crate::engine::{ColumnType, TableSource, rows_of};
use crate::scan::search::Search;
use crate::scan::{Condition, RowScan};
use crate::table::TableState;
use crate::values::{Collation, Column, Kind, Owned, whole};

/// What is asked for.
pub struct Question {
    /// The column whose equal values make a group. None: all rows are one.
    pub key: Option<usize>,
    /// The columns that are summed up.
    pub values: Vec<(usize, Wanted)>,
    /// `Group::some` has to be known.
    pub some: bool,
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
    /// Rows in which some column that is summed up is not NULL. None: not known.
    pub some: Option<i64>,
    /// One for each column that is summed up.
    pub totals: Vec<Totals>,
}

impl Question {
    /// All groups. Without a key there is one, even of no row.
    pub fn answer(self, db: Connection, table: &TableState) -> Result<Vec<Group>> {
        for column in self.key.iter().chain(self.values.iter().map(|(column, _)| column)) {
            collation_of(table, *column)?;
        }
        match self.vectorised(db, table)? {
            Some(groups) if !self.some || groups.iter().all(|group| group.some.is_some()) => Ok(groups),
            _ => self.row_by_row(table),
        }
    }

    fn vectorised(&self, db: Connection, table: &TableState) -> Result<Option<Vec<Group>>> {
        let storage = &table.storage;
        let place = |column: usize| storage.columns.place(column);
        let columns: Vec<usize> =
            self.key.iter().copied().chain(self.values.iter().map(|(column, _)| *column)).collect();
        let places: Vec<usize> = columns.iter().map(|&column| place(column)).collect();
        let sums: Vec<usize> =
            self.values.iter().filter(|(_, wanted)| wanted.sum).map(|(column, _)| place(*column)).collect();
        let Some(source) = TableSource::new(storage, &places, &sums, self.conditions.clone())? else {
            return Ok(None);
        };
        let types = source.types().to_vec();
        // Text groups, and is compared, bytewise only; what number it stands for is not the engine's to know.
        let is_bytewise = |column: &usize| collation_of(table, *column) == Ok(Collation::Binary);
        let compared = |at: usize| {
            at < usize::from(self.key.is_some())
                || self.wanted(at).is_some_and(|wanted| wanted.least || wanted.greatest)
        };
        for (at, column) in columns.iter().enumerate() {
            let is_text = types.get(at).is_some_and(|own| own.kind == Kind::Text);
            let sums = self.wanted(at).is_some_and(|wanted| wanted.sum);
            if is_text && (sums || (compared(at) && !is_bytewise(column))) {
                return Ok(None);
            }
        }
        let keys = self.key.iter().map(|_| Expression::Column(0)).collect::<Vec<_>>();
        let (aggregates, layout) = self.aggregates(&types);
        let scan = Plan::Scan { source: 0, types: types.iter().map(|own| own.logical()).collect() };
        let plan = Plan::Aggregate { input: Box::new(scan), keys, aggregates, groups: 1000.0 };
        let Some(batches) = rows_of(db, &plan, source)? else { return Ok(None) };
        let mut groups = Vec::new();
        for batch in &batches {
            self.groups_of(batch, &types, &layout, &mut groups)?;
        }
        Ok(Some(groups))
    }

    /// What is wanted of the column at a position among all.
    fn wanted(&self, at: usize) -> Option<Wanted> {
        let at = at.checked_sub(usize::from(self.key.is_some()))?;
        self.values.get(at).map(|(_, wanted)| *wanted)
    }

    /// The aggregates of the plan, and where each is among the plan's columns.
    fn aggregates(&self, types: &[ColumnType]) -> (Vec<Aggregate>, Vec<Outputs>) {
        let mut aggregates = Vec::new();
        let first = self.keys();
        let mut add = |function: AggregateFunction, column: Option<usize>, result: LogicalType| {
            aggregates.push(Aggregate {
                function,
                arguments: column.map(Expression::Column).into_iter().collect(),
                distinct: false,
                filter: None,
                order_by: Vec::new(),
                order: TextOrder::Bytes,
                result,
                host: None,
            });
            first + aggregates.len() - 1
        };
        add(AggregateFunction::CountRows, None, LogicalType::Int64);
        let mut outputs = Vec::new();
        for (at, (_, wanted)) in self.values.iter().enumerate() {
            let column = self.keys() + at;
            let Some(own) = types.get(column) else { continue };
            let sum_type =
                if own.logical() == LogicalType::Int64 { LogicalType::Numeric } else { own.logical() };
            let fraction = types.iter().position(|other| other.is_fraction && other.place == own.place);
            let count = add(AggregateFunction::Count, Some(column), LogicalType::Int64);
            let sum_of = match sum_type {
                LogicalType::Float64 => AggregateFunction::PreciseSum,
                _ => AggregateFunction::Sum,
            };
            let sum = wanted.sum.then(|| add(sum_of, Some(column), sum_type));
            let reals = fraction
                .filter(|_| wanted.sum)
                .map(|at| add(AggregateFunction::Sum, Some(at), LogicalType::Numeric));
            let least = wanted.least.then(|| add(AggregateFunction::Min, Some(column), own.logical()));
            let greatest = wanted.greatest.then(|| add(AggregateFunction::Max, Some(column), own.logical()));
            outputs.push(Outputs { kind: own.kind, count, sum, reals, least, greatest });
        }
        (aggregates, outputs)
    }

    fn keys(&self) -> usize {
        usize::from(self.key.is_some())
    }

    fn groups_of(
        &self,
        batch: &Batch,
        types: &[ColumnType],
        outputs: &[Outputs],
        groups: &mut Vec<Group>,
    ) -> Result<()> {
        let column = |at: usize, kind: Kind| -> Result<Column> {
            let vector =
                batch.columns.get(at).ok_or_else(|| Error::new("a column that the engine did not give"))?;
            Ok(Column::new(kind, Vector::clone(vector)))
        };
        let key = match (self.key, types.first()) {
            (Some(_), Some(own)) => Some(column(0, own.kind)?),
            _ => None,
        };
        let rows = column(self.keys(), Kind::Integer)?;
        struct Read {
            count: Column,
            sum: Option<Arc<Vector>>,
            reals: Option<Arc<Vector>>,
            least: Option<Column>,
            greatest: Option<Column>,
        }
        let numbers = |at: Option<usize>| {
            at.and_then(|at| batch.columns.get(at)).map(|vector| Arc::new(Vector::clone(vector).flatten()))
        };
        let read = outputs.iter().map(|own| {
            Ok(Read {
                count: column(own.count, Kind::Integer)?,
                sum: numbers(own.sum),
                reals: numbers(own.reals),
                least: own.least.map(|at| column(at, own.kind)).transpose()?,
                greatest: own.greatest.map(|at| column(at, own.kind)).transpose()?,
            })
        });
        let read = read.collect::<Result<Vec<Read>>>()?;
        for row in 0..batch.rows {
            let mut totals = Vec::with_capacity(read.len());
            for one in &read {
                let (integers, reals) = sum_of(one.sum.as_deref(), one.reals.as_deref(), row);
                let bound = |column: &Option<Column>| -> Result<Option<Owned>> {
                    Ok(match column {
                        Some(column) => Owned::of(column.get(row)?),
                        None => None,
                    })
                };
                let bounds = (bound(&one.least)?, bound(&one.greatest)?);
                totals.push(Totals::known(integer_at(&one.count, row)?, integers, reals, bounds));
            }
            let key = match &key {
                Some(key) => Owned::of(key.get(row)?),
                None => None,
            };
            let rows = integer_at(&rows, row)?;
            let some = totals.iter().any(|one| one.count == rows).then_some(rows);
            groups.push(Group { key, rows, some, totals });
        }
        Ok(())
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
            some: Some(0),
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
                group.some = group.some.map(|before| before + i64::from(some));
            }
            scan.next()?;
        }
        Ok(groups)
    }
}

/// Where the engine gives what is wanted of a column.
struct Outputs {
    kind: Kind,
    count: usize,
    sum: Option<usize>,
    /// How many values were reals.
    reals: Option<usize>,
    least: Option<usize>,
    greatest: Option<usize>,
}

/// The sum in a row: of integers, and of reals where there were some.
#[allow(clippy::cast_possible_truncation)]
fn sum_of(sum: Option<&Vector>, reals: Option<&Vector>, row: usize) -> (i128, Option<f64>) {
    let had_reals = match reals.map(|vector| &vector.values) {
        Some(Values::Numeric(numeric)) => numeric.ints.get(row) != 0,
        _ => true,
    };
    match sum.filter(|vector| vector.is_valid(row)).map(|vector| &vector.values) {
        Some(Values::Numeric(numeric)) => (numeric.ints.get(row), None),
        Some(Values::Float64(values)) => {
            let real = values.get(row).copied().unwrap_or_default();
            match whole(real).filter(|_| !had_reals) {
                Some(integer) => (integer.into(), None),
                None => (0, Some(real)),
            }
        }
        _ => (0, None),
    }
}

fn integer_at(column: &Column, row: usize) -> Result<i64> {
    match column.get(row)? {
        Value::Integer(integer) => Ok(integer),
        _ => Ok(0),
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
