//! The functions that expressions can call. Strict: NULL in any argument gives NULL and nothing is computed.
//!
//! Each is PostgreSQL's function of that meaning, exactly: values, display scales of numerics, errors. A function that meets a value outside what it implements
//! exactly declines (`Error::Decline`). Types in the comments are `vector::LogicalType`s.

use vector::{CompareOp, LogicalType};

/// Functions of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// Two values of one type (bytewise for text; equality only for Bytes and FixedBytes) -> Bool.
    Compare(CompareOp),
    /// Two of one type among Int16, Int32, Int64, Float32, Float64, Numeric; Date + Int32 -> Date. Checked.
    Add,
    /// As Add; Date - Date -> Int32, Date - Int32 -> Date.
    Subtract,
    /// Two of one numeric type, as Add.
    Multiply,
    /// Two of one numeric type; integers truncate, numerics get the server's result scale.
    Divide,
    /// Remainder with the dividend's sign: integers, Numeric.
    Modulo,
    /// Unary minus, checked.
    Negate,
    /// Absolute value, checked.
    Absolute,
    /// To this type: between numbers as the server casts (rounding floats half to even, numerics half away from zero, range-checked), Date -> Timestamp.
    Cast(LogicalType),
}

impl Function {
    /// True where some values of arguments of these types are an error of the query (`Error::Sql`).
    pub fn can_raise(self, arguments: &[LogicalType]) -> bool {
        match self {
            Self::Compare(_) => false,
            Self::Add | Self::Subtract | Self::Multiply | Self::Negate | Self::Absolute => {
                !arguments.contains(&LogicalType::Numeric)
            }
            Self::Divide | Self::Modulo | Self::Cast(_) => true,
        }
    }

    /// True where some values of arguments of these types are outside what is implemented (`Error::Decline`): numerics may be NaN, infinite or of more than 38 digits.
    pub fn can_decline(self, arguments: &[LogicalType]) -> bool {
        arguments.contains(&LogicalType::Numeric) || self == Self::Cast(LogicalType::Numeric)
    }
}
