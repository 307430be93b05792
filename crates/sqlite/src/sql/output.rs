//! The engine's rows as SQLite's values.

use query::Batch;
use vector::Vector;

use super::typed::{Class, Typed};
use crate::api::{Error, Result, Value};
use crate::values::{Column, Kind, Owned, whole};

/// A column of a result as it lies in batches.
pub struct OutputColumn {
    class: Class,
    at: usize,
}

/// Where the columns of a result lie in batches: each column of numbers is followed by what says which are
/// reals.
pub fn layout(columns: &[Typed]) -> Vec<OutputColumn> {
    let mut at = 0;
    let mut layout = Vec::new();
    for column in columns {
        layout.push(OutputColumn { class: column.class.clone(), at });
        at += 1 + usize::from(matches!(column.class, Class::Number(_)));
    }
    layout
}

/// A batch whose values are read one by one.
pub struct Rows {
    columns: Vec<(Column, Option<Column>)>,
    /// How many there are.
    pub rows: usize,
}

impl Rows {
    /// The rows of a batch.
    pub fn new(batch: &Batch, layout: &[OutputColumn]) -> Result<Self> {
        let vector = |at: usize| {
            batch.columns.get(at).ok_or_else(|| Error::new("a column that the engine did not give"))
        };
        let columns = layout.iter().map(|column| {
            let values = Column::new(kind_of(&column.class), Vector::clone(vector(column.at)?));
            let flags = match column.class {
                Class::Number(_) => Some(truths(vector(column.at + 1)?)),
                _ => None,
            };
            Ok((if column.class == Class::Truth { truths(vector(column.at)?) } else { values }, flags))
        });
        Ok(Self { columns: columns.collect::<Result<Vec<_>>>()?, rows: batch.rows })
    }

    /// The values of a row. None is NULL.
    pub fn row(&self, row: usize) -> Result<Vec<Option<Owned>>> {
        (0..self.columns.len()).map(|column| Ok(Owned::of(self.get(row, column)?))).collect()
    }

    /// A value.
    pub fn get(&self, row: usize, column: usize) -> Result<Value<'_>> {
        let Some((values, flags)) = self.columns.get(column) else { return Ok(Value::Null) };
        Ok(match (values.get(row)?, flags) {
            (Value::Real(real), Some(flags)) if flags.get(row)? != Value::Integer(1) => {
                whole(real).map_or(Value::Real(real), Value::Integer)
            }
            (value, _) => value,
        })
    }
}

/// Truths as integers.
fn truths(vector: &Vector) -> Column {
    let flat = vector.clone().flatten();
    let values = match &flat.values {
        vector::Values::Bool(bits) => bits.iter().map(i64::from).collect(),
        vector::Values::Int64(values) => values.clone(),
        _ => vec![0; flat.len()],
    };
    let logical = vector::LogicalType::Int64;
    let vector = Vector { logical, validity: flat.validity, values: vector::Values::Int64(values) };
    Column::new(Kind::Integer, vector)
}

/// How the engine has values of a class.
const fn kind_of(class: &Class) -> Kind {
    match class {
        Class::Null | Class::Integer | Class::Truth => Kind::Integer,
        Class::Real | Class::Number(_) => Kind::Real,
        Class::Text => Kind::Text,
    }
}
