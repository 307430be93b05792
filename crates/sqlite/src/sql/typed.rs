//! Expressions with the class that their values have.
//!
//! SQLite's expressions have a class from row to row, the engine's have one type. So each gets one class when
//! the query is planned. Numbers that are integers in some rows and reals in others are reals for the engine,
//! with a second expression that says which of them are reals.

use std::sync::Arc;

use query::{Expression, Function};
use vector::{CompareOp, LogicalType, VectorBuilder};

use super::kernels::exact_real;
use crate::api::{Error, Result, Value};
use crate::values::{Affinity, Collation, Owned, as_real};

/// What class the values of an expression have.
#[derive(Debug, Clone, PartialEq)]
pub enum Class {
    /// All are NULL.
    Null,
    /// 1 or 0, as conditions give.
    Truth,
    /// Integers.
    Integer,
    /// Reals.
    Real,
    /// Integers and reals. The expression is true where the value is a real.
    Number(Box<Expression>),
    /// Text.
    Text,
}

impl Class {
    /// The engine's type.
    pub const fn logical(&self) -> LogicalType {
        match self {
            Self::Truth => LogicalType::Bool,
            Self::Null | Self::Integer => LogicalType::Int64,
            Self::Real | Self::Number(_) => LogicalType::Float64,
            Self::Text => LogicalType::Text,
        }
    }

    /// Whether values are numbers.
    pub const fn is_number(&self) -> bool {
        matches!(self, Self::Truth | Self::Integer | Self::Real | Self::Number(_))
    }
}

/// An expression with what SQLite knows of it.
#[derive(Debug, Clone)]
pub struct Typed {
    /// What is computed.
    pub value: Expression,
    /// The class of its values.
    pub class: Class,
    /// A column's affinity, or that of a CAST. None: comparisons change nothing.
    pub affinity: Option<Affinity>,
    /// The collation that comparisons take, and whether COLLATE said so.
    pub collation: (Collation, bool),
    /// No number of it is farther from zero. None: not known.
    pub limit: Option<f64>,
}

/// Integers below this size are reals without loss.
pub const EXACT: f64 = 9_007_199_254_740_992.0;

impl Typed {
    /// An expression without affinity.
    pub const fn new(value: Expression, class: Class) -> Self {
        Self { value, class, affinity: None, collation: (Collation::Binary, false), limit: None }
    }

    /// A constant. An error for a blob.
    pub fn constant(value: Value<'_>) -> Result<Self> {
        let class = match value {
            Value::Null => Class::Null,
            Value::Integer(_) => Class::Integer,
            Value::Real(_) => Class::Real,
            Value::Text(_) => Class::Text,
            Value::Blob(_) => return Err(unsupported("blobs")),
        };
        let limit = match value {
            Value::Integer(integer) => Some(as_real(integer).abs()),
            Value::Real(real) => Some(real.abs()),
            _ => None,
        };
        Ok(Self { limit, ..Self::new(constant(value), class) })
    }

    /// NULL.
    pub fn null() -> Self {
        Self::new(constant(Value::Null), Class::Null)
    }

    /// A condition.
    pub const fn truth(value: Expression) -> Self {
        Self::new(value, Class::Truth)
    }

    /// The value of a constant. The inner None is NULL.
    pub fn known(&self) -> Option<Option<Owned>> {
        let Expression::Constant(vector) = &self.value else { return None };
        if !vector.is_valid(0) {
            return Some(None);
        }
        use vector::Values::{Bool, Bytes, Float64, Int64};
        Some(Some(match &vector.values {
            Int64(values) => Owned::Integer(*values.first()?),
            Float64(values) => Owned::Real(*values.first()?),
            Bytes(views) => Owned::Text(views.get(0).into()),
            Bool(bits) => Owned::Integer(bits.get(0).into()),
            _ => return None,
        }))
    }

    /// The same with truths as integers.
    pub fn plain(self) -> Self {
        match self.class {
            Class::Truth => {
                let as_int32 = call(Function::Cast(LogicalType::Int32), vec![self.value], LogicalType::Int32);
                Self { value: widened(as_int32), class: Class::Integer, limit: Some(1.0), ..self }
            }
            _ => self,
        }
    }

    /// The number as a real. Only for numbers and NULL.
    pub fn real(self) -> Expression {
        let plain = self.plain();
        match plain.class {
            Class::Integer => {
                call(Function::Cast(LogicalType::Float64), vec![plain.value], LogicalType::Float64)
            }
            Class::Null => null_of(LogicalType::Float64),
            _ => plain.value,
        }
    }

    /// Whether the number is a real, as a condition. Only for numbers and NULL.
    pub fn is_real(&self) -> Expression {
        match &self.class {
            Class::Real => truth(true),
            Class::Number(is_real) => (**is_real).clone(),
            _ => truth(false),
        }
    }

    /// The value as a condition: whether it is a number that is not zero.
    pub fn condition(self) -> Result<Expression> {
        let not_zero = |value: Expression, zero: Value<'_>| {
            call(Function::Compare(CompareOp::NotEqual), vec![value, constant(zero)], LogicalType::Bool)
        };
        Ok(match self.class {
            Class::Truth => self.value,
            Class::Null => null_of(LogicalType::Bool),
            Class::Integer => not_zero(self.value, Value::Integer(0)),
            Class::Real | Class::Number(_) => not_zero(self.value, Value::Real(0.0)),
            Class::Text => return Err(unsupported("text as a condition")),
        })
    }

    /// Whether a number's value tells its class, as in a column of numeric affinity, which has no whole
    /// reals.
    pub fn tells_class(&self) -> bool {
        match &self.class {
            Class::Number(is_real) => match is_real.as_ref() {
                Expression::Host { arguments, .. } => arguments.first() == Some(&self.value),
                _ => false,
            },
            _ => true,
        }
    }

    /// Whether all its integers are reals without loss, as far as is known.
    pub fn is_exact(&self) -> bool {
        self.limit.is_some_and(|limit| limit < EXACT)
    }

    /// With another limit.
    pub fn within(self, limit: Option<f64>) -> Self {
        Self { limit, ..self }
    }

    /// With another affinity.
    pub fn with_affinity(self, affinity: Option<Affinity>) -> Self {
        Self { affinity, ..self }
    }
}

/// A call of the engine's.
pub const fn call(function: Function, arguments: Vec<Expression>, result: LogicalType) -> Expression {
    Expression::Call { function, arguments, result }
}

/// An Int32 as Int64.
pub fn widened(value: Expression) -> Expression {
    call(Function::Cast(LogicalType::Int64), vec![value], LogicalType::Int64)
}

/// A constant of any class but blob.
pub fn constant(value: Value<'_>) -> Expression {
    let logical = match value {
        Value::Null | Value::Integer(_) => LogicalType::Int64,
        Value::Real(_) => LogicalType::Float64,
        Value::Text(_) => LogicalType::Text,
        Value::Blob(_) => LogicalType::Bytes,
    };
    let mut builder = VectorBuilder::new(logical);
    match value {
        Value::Null => builder.push_null(),
        Value::Integer(integer) => _ = builder.push_i64(integer),
        Value::Real(real) => _ = builder.push_f64(real),
        Value::Text(bytes) | Value::Blob(bytes) => _ = builder.push_bytes(bytes),
    }
    finished(builder)
}

/// A truth.
pub fn truth(value: bool) -> Expression {
    let mut builder = VectorBuilder::new(LogicalType::Bool);
    builder.push_bool(value);
    finished(builder)
}

/// A constant of 32 bits, as some functions of the engine's want it.
pub fn int32(value: i32) -> Expression {
    let mut builder = VectorBuilder::new(LogicalType::Int32);
    builder.push_i32(value);
    finished(builder)
}

/// NULL of a type.
pub fn null_of(logical: LogicalType) -> Expression {
    let mut builder = VectorBuilder::new(logical);
    builder.push_null();
    finished(builder)
}

fn finished(builder: VectorBuilder) -> Expression {
    Expression::Constant(Arc::new(builder.finish(&|_, _, _| Box::default())))
}

/// Values that are to be one column, as rows of a CASE or of a UNION have it: one class for all, and each as
/// an expression of that class' type. Where some are integers and others reals, the second expressions say
/// which are reals.
pub fn united(parts: Vec<Typed>) -> Result<(Class, Vec<Expression>, Option<Vec<Expression>>)> {
    let parts: Vec<Typed> = parts.into_iter().map(Typed::plain).collect();
    let mut class = Class::Null;
    for part in &parts {
        class = match (class, &part.class) {
            (class, Class::Null) => class,
            (Class::Null, other) => other.clone(),
            (Class::Integer, Class::Integer) => Class::Integer,
            (Class::Real, Class::Real) => Class::Real,
            (Class::Text, Class::Text) => Class::Text,
            (own, other) if own.is_number() && other.is_number() => Class::Number(Box::new(truth(true))),
            _ => return Err(unsupported("values of several classes (text and numbers) in one column")),
        };
    }
    let flags = match class {
        Class::Number(_) => Some(parts.iter().map(Typed::is_real).collect()),
        _ => None,
    };
    let logical = class.logical();
    let value = |part: Typed| match (&class, &part.class) {
        (_, Class::Null) => null_of(logical),
        (Class::Number(_), Class::Integer) if !part.is_exact() => exact_real(part.value),
        (Class::Number(_), _) => part.real(),
        _ => part.value,
    };
    let values = parts.into_iter().map(value).collect();
    Ok((class, values, flags))
}

/// How errors begin that name what the engine cannot do.
pub const REFUSAL: &str = "columnar_query cannot do this: ";

/// What the engine cannot do as SQLite does it.
pub fn unsupported(what: &str) -> Error {
    Error::new(format!("{REFUSAL}{what}"))
}
