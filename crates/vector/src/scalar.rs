//! One value outside a vector: constants of predicates, statistics, dictionary look-ups.

/// A single value. Integers of every width, dates and timestamps are `Int`.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// SQL NULL.
    Null,
    /// Truth value.
    Bool(bool),
    /// Integer, date (days) or timestamp (microseconds).
    Int(i64),
    /// Float of either width, widened.
    Float(f64),
    /// Exact decimal: `unscaled` x 10^-`scale`.
    Numeric {
        /// Integer part of the representation.
        unscaled: i128,
        /// Power of ten it is divided by.
        scale: u16,
    },
    /// Text, uuid, fixed or variable bytes.
    Bytes(Box<[u8]>),
}

impl Scalar {
    /// True for SQL NULL.
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}
