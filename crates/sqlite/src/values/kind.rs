//! How the values of one column lie in one stripe.
//!
//! SQLite's columns hold values of any storage class. A stripe holds values of one type in each column. Most
//! stripes need no more than that: a column's *kind* says which. Where classes are mixed, each value becomes
//! bytes with its class before them.
//!
//! | kind | type in the stripe | values |
//! | --- | --- | --- |
//! | `Null` | `Int64` | none: all rows are NULL |
//! | `Integer` | `Int64` | integers |
//! | `Real` | `Float64` | reals |
//! | `Number` | `Float64` | integers up to 2^53 and reals that are not whole: columns of numeric affinity make integers of whole reals, so the value tells its class |
//! | `Text` | `Text` | text |
//! | `Mixed` | `Bytes` | any: a byte for the class, then eight bytes of a number (little-endian), or the bytes |
//!
//! NULLs are in the validity of each.

use vector::LogicalType;

use crate::api::{Error, Result, Value};

/// How the values of one column lie in one stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No values.
    Null,
    /// Integers.
    Integer,
    /// Reals.
    Real,
    /// Integers and reals, of a column of numeric affinity.
    Number,
    /// Text.
    Text,
    /// Any.
    Mixed,
}

impl Kind {
    /// The type in the stripe.
    pub const fn logical(self) -> LogicalType {
        match self {
            Self::Null | Self::Integer => LogicalType::Int64,
            Self::Real | Self::Number => LogicalType::Float64,
            Self::Text => LogicalType::Text,
            Self::Mixed => LogicalType::Bytes,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Integer => "integer",
            Self::Real => "real",
            Self::Number => "number",
            Self::Text => "text",
            Self::Mixed => "mixed",
        }
    }

    /// The byte that stands for it in the directory: stable for ever.
    pub const fn tag(self) -> u8 {
        match self {
            Self::Null => b'0',
            Self::Integer => b'i',
            Self::Real => b'r',
            Self::Number => b'n',
            Self::Text => b't',
            Self::Mixed => b'm',
        }
    }

    /// The kind of a stored byte.
    pub fn from_tag(tag: u8) -> Result<Self> {
        Ok(match tag {
            b'0' => Self::Null,
            b'i' => Self::Integer,
            b'r' => Self::Real,
            b'n' => Self::Number,
            b't' => Self::Text,
            b'm' => Self::Mixed,
            other => return Err(Error::corrupt(format!("a column of kind {other}"))),
        })
    }
}

const INTEGER: u8 = 1;
const REAL: u8 = 2;
const TEXT: u8 = 3;
const BLOB: u8 = 4;

/// Appends a value that is not NULL, as a `Mixed` column holds it.
pub fn put_mixed(value: Value<'_>, out: &mut Vec<u8>) {
    out.clear();
    match value {
        Value::Null => {}
        Value::Integer(integer) => {
            out.push(INTEGER);
            out.extend_from_slice(&integer.to_le_bytes());
        }
        Value::Real(real) => {
            out.push(REAL);
            out.extend_from_slice(&real.to_le_bytes());
        }
        Value::Text(text) => {
            out.push(TEXT);
            out.extend_from_slice(text);
        }
        Value::Blob(blob) => {
            out.push(BLOB);
            out.extend_from_slice(blob);
        }
    }
}

/// The value that `put_mixed` has written.
pub fn get_mixed(bytes: &[u8]) -> Result<Value<'_>> {
    let bad = || Error::corrupt("a mixed column holds a value of no class");
    let (&class, rest) = bytes.split_first().ok_or_else(bad)?;
    let number = || rest.try_into().map_err(|_| bad());
    Ok(match class {
        INTEGER => Value::Integer(i64::from_le_bytes(number()?)),
        REAL => Value::Real(f64::from_le_bytes(number()?)),
        TEXT => Value::Text(rest),
        BLOB => Value::Blob(rest),
        _ => return Err(bad()),
    })
}
