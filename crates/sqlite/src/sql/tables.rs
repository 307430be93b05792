//! Columnar tables as parts of a plan: which columns are read, and which conditions the scan can answer.

use query::{Expression, Function};
use vector::{CompareOp, Values, Vector};

use super::from::TableRelation;
use super::planner::{Id, Node, Planner, Shown};
use crate::api::{Error, Result};
use crate::engine::TableSource;
use crate::scan::Condition;
use crate::values::Owned;

/// How many rows a condition keeps, about.
fn selectivity(planner: &Planner<'_>, condition: &Expression) -> f64 {
    match condition {
        Expression::And(parts) => parts.iter().map(|part| selectivity(planner, part)).product(),
        Expression::Or(parts) => parts.iter().map(|part| selectivity(planner, part)).sum::<f64>().min(1.0),
        Expression::Not(part) => (1.0 - selectivity(planner, part)).max(0.05),
        Expression::IsNull(_) => 0.05,
        Expression::In { value, entries } => {
            let distinct = distinct_of(planner, value).unwrap_or(20.0);
            (count(entries.len()) / distinct).min(1.0)
        }
        Expression::Call { function: Function::Compare(op), arguments, .. } => match arguments.as_slice() {
            [column, Expression::Constant(value)] => compared(planner, *op, column, value),
            _ => 0.3,
        },
        Expression::Call { .. } => 0.1,
        _ => 0.3,
    }
}

#[allow(clippy::cast_precision_loss)]
const fn count(rows: usize) -> f64 {
    rows as f64
}

fn distinct_of(planner: &Planner<'_>, expression: &Expression) -> Option<f64> {
    match expression {
        Expression::Column(id) => planner.estimates.get(id).map(|estimate| estimate.distinct),
        _ => None,
    }
}

#[allow(clippy::cast_precision_loss)]
fn compared(planner: &Planner<'_>, op: CompareOp, column: &Expression, value: &Vector) -> f64 {
    let distinct = distinct_of(planner, column);
    match op {
        CompareOp::Equal => return 1.0 / distinct.unwrap_or(20.0),
        CompareOp::NotEqual => return 1.0 - 1.0 / distinct.unwrap_or(20.0),
        _ => {}
    }
    let bounds = match column {
        Expression::Column(id) => planner.estimates.get(id).and_then(|estimate| estimate.bounds),
        _ => None,
    };
    let value = match &value.values {
        Values::Int64(values) => values.first().map(|&value| value as f64),
        Values::Float64(values) => values.first().copied(),
        _ => None,
    };
    match (bounds, value) {
        (Some((low, high)), Some(value)) if high > low => {
            let below = ((value - low) / (high - low)).clamp(0.0, 1.0);
            let kept =
                if matches!(op, CompareOp::Less | CompareOp::LessOrEqual) { below } else { 1.0 - below };
            kept.max(0.0005)
        }
        _ => 0.3,
    }
}

impl Planner<'_> {
    /// How many rows conditions keep, about.
    pub fn selectivity(&self, conditions: &[Expression]) -> f64 {
        conditions.iter().map(|condition| selectivity(self, condition)).product::<f64>().max(1e-9)
    }

    /// Different values of an expression, about.
    pub fn distinct(&self, expression: &Expression, rows: f64) -> f64 {
        distinct_of(self, expression).unwrap_or(rows).max(1.0)
    }

    /// The rows of a columnar table for which all conditions hold, with the columns of `needed`.
    pub fn read(
        &mut self,
        table: &TableRelation,
        needed: &[Id],
        conditions: Vec<Expression>,
    ) -> Result<Node> {
        let share = self.selectivity(&conditions);
        let place_of = |id: Id| table.columns.iter().find(|(_, own)| *own == id).map(|(place, _)| *place);
        let (mut native, mut rest) = (Vec::new(), Vec::new());
        for condition in conditions {
            match native_condition(&condition, &place_of) {
                Some(found) => native.push((found, condition)),
                None => rest.push(condition),
            }
        }
        let mut wanted: Vec<(usize, Id)> =
            table.columns.iter().copied().filter(|(_, id)| needed.contains(id)).collect();
        let mut ids_in_rest = Vec::new();
        rest.iter().for_each(|condition| super::planner::ids_of(condition, &mut ids_in_rest));
        for &(place, id) in &table.columns {
            if ids_in_rest.contains(&id) && !wanted.contains(&(place, id)) {
                wanted.push((place, id));
            }
        }
        if wanted.is_empty() {
            wanted.extend(table.columns.first());
        }
        let places: Vec<usize> = wanted.iter().map(|(place, _)| *place).collect();
        let storage = &table.state.storage;
        let known = native.iter().map(|(condition, _)| condition.clone()).collect();
        let source = match TableSource::new(storage, &places, known)? {
            Some(source) => source,
            None => {
                rest.extend(native.into_iter().map(|(_, condition)| condition));
                let mut ids = Vec::new();
                rest.iter().for_each(|condition| super::planner::ids_of(condition, &mut ids));
                for &(place, id) in &table.columns {
                    if ids.contains(&id) && !wanted.contains(&(place, id)) {
                        wanted.push((place, id));
                    }
                }
                let places: Vec<usize> = wanted.iter().map(|(place, _)| *place).collect();
                let source = TableSource::new(storage, &places, Vec::new())?;
                source.ok_or_else(|| Error::new("a column that has no one class any more"))?
            }
        };
        let types = source.types().iter().map(|own| own.logical()).collect();
        let ids: Vec<Id> = wanted.iter().map(|(_, id)| *id).collect();
        let row_id = storage.columns.row_id().and_then(|alias| storage.columns.0.get(alias));
        let name_at = |place: usize| {
            storage.columns.at_place(place).or(row_id).map_or("rowid", |column| column.name.as_str())
        };
        let shown = Shown {
            table: table.name.clone(),
            columns: wanted.iter().map(|&(place, _)| name_at(place).to_owned()).collect(),
            conditions: source.conditions().iter().map(|own| own.shown(name_at(own.place))).collect(),
            counters: Some(source.counters()),
        };
        let plan = self.scan(Box::new(source), types, shown);
        let node = Node { plan, ids, rows: (table.rows * share).max(1.0) };
        node.filtered(&rest, 1.0)
    }
}

/// The condition that a scan can answer on its own, if it is one.
fn native_condition(condition: &Expression, place_of: &dyn Fn(Id) -> Option<usize>) -> Option<Condition> {
    match condition {
        Expression::Call { function: Function::Compare(op), arguments, .. } if *op != CompareOp::NotEqual => {
            match arguments.as_slice() {
                [Expression::Column(id), Expression::Constant(value)] => {
                    Some(Condition::comparing(place_of(*id)?, *op, owned(value, 0)?))
                }
                _ => None,
            }
        }
        Expression::In { value, entries } => {
            let Expression::Column(id) = value.as_ref() else { return None };
            let values = (0..entries.len()).map(|row| owned(entries, row)).collect::<Option<Vec<_>>>()?;
            Some(Condition::one_of(place_of(*id)?, values))
        }
        Expression::IsNull(value) => match value.as_ref() {
            Expression::Column(id) => Some(Condition::null(place_of(*id)?, true)),
            _ => None,
        },
        Expression::Not(inner) => match inner.as_ref() {
            Expression::IsNull(value) => match value.as_ref() {
                Expression::Column(id) => Some(Condition::null(place_of(*id)?, false)),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

fn owned(vector: &Vector, row: usize) -> Option<Owned> {
    if !vector.is_valid(row) {
        return None;
    }
    match &vector.values {
        Values::Int64(values) => values.get(row).map(|&value| Owned::Integer(value)),
        Values::Float64(values) => values.get(row).map(|&value| Owned::Real(value)),
        Values::Bytes(views) => Some(Owned::Text(views.get(row).into())),
        _ => None,
    }
}
