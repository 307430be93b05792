//! A column of a file.

/// A column of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name. Parts of a struct have the names of all that they are in before theirs, with dots between.
    pub name: String,
    /// What its values are.
    pub kind: FieldKind,
}

/// What the values of a column are, and the vector that they come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// Truth values, in `Bool`.
    Bool,
    /// Integers, in `Int64`.
    Integer {
        /// How wide they are: 16, 32 or 64.
        bits: u8,
    },
    /// Unsigned integers of 64 bits, in `UInt64`.
    Unsigned,
    /// Reals, in `Float64`.
    Real {
        /// How wide they are: 32 or 64.
        bits: u8,
    },
    /// Days since 1970-01-01, in `Int64`.
    Date,
    /// Time since midnight, in `Int64`.
    Time(Unit),
    /// Time since 1970-01-01, in `Int64`.
    Timestamp {
        /// What is counted.
        unit: Unit,
        /// It is an instant, told in UTC, and not what a clock on some wall showed.
        is_instant: bool,
    },
    /// Decimals, in `Numeric`.
    Decimal {
        /// Digits, at most.
        precision: u16,
        /// Digits after the point.
        scale: u16,
    },
    /// Sixteen bytes, in `Uuid`.
    Uuid,
    /// Text that says that it is UTF-8, in `Text`.
    Text,
    /// Bytes, in `Bytes`.
    Bytes,
    /// JSON as text, in `Bytes`: what a file says to be JSON, lists, maps and structs.
    Json,
    /// As `Json`, in the bytes of the server's jsonb. No file says so, but a table may want it.
    Jsonb,
    /// Values that are not read. The text says what they are.
    Other(&'static str),
}

/// What a time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
}

impl FieldKind {
    /// Integers of the width that most have.
    pub const INTEGER: Self = Self::Integer { bits: 64 };
    /// Reals of double precision.
    pub const REAL: Self = Self::Real { bits: 64 };
}

impl Unit {
    /// How many make a second.
    pub const fn per_second(self) -> i64 {
        match self {
            Self::Millis => 1_000,
            Self::Micros => 1_000_000,
            Self::Nanos => 1_000_000_000,
        }
    }
}
