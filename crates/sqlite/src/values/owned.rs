//! A value that is not NULL and outlives the call that gave it.

use crate::api::Value;

/// A value that outlives the call that gave it.
#[derive(Debug, Clone, PartialEq)]
pub enum Owned {
    /// An integer.
    Integer(i64),
    /// A real.
    Real(f64),
    /// Text.
    Text(Box<[u8]>),
    /// A blob.
    Blob(Box<[u8]>),
}

impl Owned {
    /// A copy of a value. None for NULL.
    pub fn of(value: Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Null => return None,
            Value::Integer(integer) => Self::Integer(integer),
            Value::Real(real) => Self::Real(real),
            Value::Text(text) => Self::Text(text.into()),
            Value::Blob(blob) => Self::Blob(blob.into()),
        })
    }

    /// The value.
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Integer(integer) => Value::Integer(*integer),
            Self::Real(real) => Value::Real(*real),
            Self::Text(text) => Value::Text(text),
            Self::Blob(blob) => Value::Blob(blob),
        }
    }
    /// As a literal of SQL.
    pub fn shown(&self) -> String {
        match self {
            Self::Integer(integer) => integer.to_string(),
            Self::Real(real) => format!("{real:?}"),
            Self::Text(text) => format!("'{}'", String::from_utf8_lossy(text).replace('\'', "''")),
            Self::Blob(blob) => {
                format!("x'{}'", blob.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
            }
        }
    }
}
