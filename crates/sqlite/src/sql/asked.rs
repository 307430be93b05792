//! Functions that SQLite computes itself, row by row, for queries of the engine's: dates and times, and
//! whatever else depends on SQLite's version.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use query::{Error, Expression, HostFunction, Result};
use vector::{LogicalType, Vector, VectorBuilder};

use super::host_functions::{push, value_at};
use super::planner::Planner;
use super::typed::{Class, Typed, unsupported};
use crate::api::{Connection, Pinned, Statement, Value};
use crate::values::Owned;

/// Results that are remembered, by their arguments' bytes: columns have few different days.
const REMEMBERED: usize = 10_000;

/// A function of SQLite's.
struct Asked {
    name: String,
    result: LogicalType,
    own: Pinned<Own>,
}

struct Own {
    statement: Statement,
    known: RefCell<HashMap<Vec<u8>, Option<Owned>>>,
}

/// The class of what a function gives. None of one that is not known, or that gives several.
pub fn class_of(name: &str) -> Option<Class> {
    Some(match name {
        "date" | "time" | "datetime" | "strftime" | "timediff" | "printf" | "format" | "hex" | "quote"
        | "typeof" | "soundex" | "char" | "unhex" => Class::Text,
        "julianday" | "round" | "sqrt" | "exp" | "ln" | "log" | "log10" | "log2" | "pow" | "power"
        | "sin" | "cos" | "tan" | "asin" | "acos" | "atan" | "atan2" | "sinh" | "cosh" | "tanh"
        | "degrees" | "radians" | "pi" => Class::Real,
        "unixepoch" | "json_valid" | "json_array_length" => Class::Integer,
        _ => return None,
    })
}

impl Planner<'_> {
    /// A function of SQLite's that the engine has not.
    pub fn by_name(&mut self, name: &str, arguments: &[Typed]) -> crate::api::Result<Typed> {
        let Some(class) = class_of(name) else {
            return Err(unsupported(&format!("the function {name}")));
        };
        let mut values = Vec::new();
        for argument in arguments {
            values.push(match &argument.class {
                Class::Number(_) if class == Class::Real => argument.clone().real(),
                Class::Number(_) => {
                    return Err(unsupported(&format!("{name} of values that are integers or reals")));
                }
                _ => argument.value.clone(),
            });
        }
        let places: Vec<String> = (1..=arguments.len()).map(|at| format!("?{at}")).collect();
        let text = format!("SELECT {name}({})", places.join(", "));
        let result = class.logical();
        let function = self.asked_function(self.db, name, &text, result)?;
        Ok(Typed::new(Expression::Host { function, arguments: values, result }, class))
    }
}

/// The function of a statement.
pub fn function(
    db: Connection,
    name: &str,
    text: &str,
    result: LogicalType,
) -> crate::api::Result<Arc<dyn HostFunction>> {
    let own = Own { statement: db.prepare(text)?, known: RefCell::default() };
    Ok(Arc::new(Asked { name: name.into(), result, own: Pinned::new(own) }))
}

impl Own {
    fn value(&self, values: &[Value<'_>], key: &mut Vec<u8>) -> crate::api::Result<Option<Owned>> {
        key.clear();
        for value in values {
            let (class, bytes): (u8, &[u8]) = match value {
                Value::Null => (0, &[]),
                Value::Integer(integer) => (1, &integer.to_le_bytes()),
                Value::Real(real) => (2, &real.to_le_bytes()),
                Value::Text(text) => (3, text),
                Value::Blob(blob) => (4, blob),
            };
            key.push(class);
            key.extend_from_slice(&bytes.len().to_le_bytes());
            key.extend_from_slice(bytes);
        }
        if let Some(known) = self.known.borrow().get(key) {
            return Ok(known.clone());
        }
        for (at, &value) in values.iter().enumerate() {
            self.statement.bind(at + 1, value)?;
        }
        let result = match self.statement.step()? {
            true => Owned::of(self.statement.value(0)),
            false => None,
        };
        self.statement.reset();
        let mut known = self.known.borrow_mut();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(key.clone(), result.clone());
        Ok(result)
    }
}

impl HostFunction for Asked {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
        let Some(own) = self.own.get() else { return Err(Error::Decline("SQLite on another thread")) };
        let mut builder = VectorBuilder::new(self.result);
        let (mut values, mut key) = (Vec::with_capacity(arguments.len()), Vec::new());
        for row in 0..rows {
            values.clear();
            values.extend(arguments.iter().map(|vector| value_at(vector, row)));
            let result = own.value(&values, &mut key).map_err(crate::api::Error::into_data)?;
            push(&mut builder, result.as_ref(), self.result)?;
        }
        Ok(builder.finish(&|_, _, _| Box::default()))
    }

    fn needs_host(&self) -> bool {
        true
    }

    fn takes_constants(&self) -> bool {
        true
    }

    fn can_decline(&self) -> bool {
        true
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
