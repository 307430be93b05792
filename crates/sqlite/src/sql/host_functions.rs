//! Functions that SQLite defines otherwise than the engine, or that the engine has not, as the engine calls
//! them.
//!
//! They run on any thread and ask SQLite nothing. `kernels` computes whole vectors, a `RowFunction` one value
//! after the other.

use std::any::Any;
use std::sync::Arc;

use query::{Error, HostFunction, Result};
use vector::{LogicalType, Values, Vector, VectorBuilder};

use crate::api::Value;
use crate::values::Owned;

/// Computes one value. None is NULL.
pub type Body = fn(&[Value<'_>]) -> Option<Owned>;

/// A function that is computed row by row.
pub struct RowFunction {
    /// Its name.
    pub name: &'static str,
    /// The type of its values.
    pub result: LogicalType,
    /// What it computes.
    pub body: Body,
}

/// A function that is computed over whole vectors.
pub struct Kernel {
    /// Its name.
    pub name: &'static str,
    /// What it computes. Arguments are flat, or constants.
    pub compute: fn(&[Arc<Vector>], usize) -> Result<Vector>,
    /// NULL in any argument gives NULL.
    pub is_strict: bool,
    /// Some values end the query with `Error::Decline`.
    pub can_decline: bool,
}

impl HostFunction for Kernel {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
        (self.compute)(arguments, rows)
    }

    fn needs_host(&self) -> bool {
        false
    }

    fn takes_constants(&self) -> bool {
        true
    }

    fn can_decline(&self) -> bool {
        self.can_decline
    }

    fn name(&self) -> &str {
        self.name
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Whether a function is NULL where an argument is: not all are that SQLite computes.
pub fn is_strict(function: &dyn HostFunction) -> bool {
    let function = function.as_any();
    function.is::<RowFunction>() || function.downcast_ref::<Kernel>().is_some_and(|kernel| kernel.is_strict)
}

/// Adds a value, None for NULL, to a vector of this type. Declines a value of another type.
pub fn push(builder: &mut VectorBuilder, value: Option<&Owned>, logical: LogicalType) -> Result<()> {
    let fits = match (value, logical) {
        (None, _) => {
            builder.push_null();
            true
        }
        (Some(Owned::Integer(value)), LogicalType::Bool) => builder.push_bool(*value != 0),
        (Some(Owned::Integer(value)), LogicalType::Int64) => builder.push_i64(*value),
        (Some(Owned::Real(value)), LogicalType::Float64) => builder.push_f64(*value),
        (Some(Owned::Text(text)), LogicalType::Text) => builder.push_bytes(text),
        _ => false,
    };
    if fits {
        Ok(())
    } else {
        Err(Error::Decline("a function that gives values of another class than usual"))
    }
}

/// The value of a row.
pub fn value_at<'v>(vector: &'v Vector, row: usize) -> Value<'v> {
    let (vector, row) = match &vector.values {
        Values::Constant(one, _) => (one.as_ref(), 0),
        _ => (vector, row),
    };
    if !vector.is_valid(row) {
        return Value::Null;
    }
    match &vector.values {
        Values::Int64(values) => values.get(row).map_or(Value::Null, |&value| Value::Integer(value)),
        Values::Int32(values) => values.get(row).map_or(Value::Null, |&value| Value::Integer(value.into())),
        Values::Float64(values) => values.get(row).map_or(Value::Null, |&value| Value::Real(value)),
        Values::Bytes(views) => Value::Text(views.get(row)),
        Values::Bool(bits) => Value::Integer(bits.get(row).into()),
        _ => Value::Null,
    }
}

impl HostFunction for RowFunction {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
        let mut builder = VectorBuilder::new(self.result);
        let mut values = Vec::with_capacity(arguments.len());
        for row in 0..rows {
            values.clear();
            values.extend(arguments.iter().map(|vector| value_at(vector, row)));
            let result = if values.contains(&Value::Null) { None } else { (self.body)(&values) };
            push(&mut builder, result.as_ref(), self.result)?;
        }
        Ok(builder.finish(&|_, _, _| Box::default()))
    }

    fn needs_host(&self) -> bool {
        false
    }

    fn takes_constants(&self) -> bool {
        true
    }

    fn name(&self) -> &str {
        self.name
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
