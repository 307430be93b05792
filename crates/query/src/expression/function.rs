//! The functions that expressions can call. Strict: NULL in any argument gives NULL and nothing is computed.
//!
//! Each is PostgreSQL's function of that meaning, exactly: values, display scales of numerics, errors. A
//! function that meets a value outside what it implements exactly declines (`Error::Decline`). Types in the
//! comments are `vector::LogicalType`s. A function of other types is declined when it is compiled, with the
//! first batch. Functions that count characters expect UTF-8. A host with another encoding of more than one
//! byte a character must not use them. Patterns, sets and numbers that are constants are prepared once.

use vector::{CompareOp, LogicalType};

/// A part of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateField {
    /// Thousands of years, from 1.
    Millennium,
    /// Hundreds of years, from 1.
    Century,
    /// The year divided by ten.
    Decade,
    /// Year; 1 BC is -1.
    Year,
    /// Year of the ISO 8601 week.
    IsoYear,
    /// Quarter, 1 to 4.
    Quarter,
    /// Month, 1 to 12.
    Month,
    /// ISO 8601 week.
    Week,
    /// Day of the month.
    Day,
    /// Day of the week, Sunday is 0.
    DayOfWeek,
    /// Day of the week, Monday is 1, Sunday 7.
    IsoDayOfWeek,
    /// Day of the year.
    DayOfYear,
    /// Hour of the day.
    Hour,
    /// Minute of the hour.
    Minute,
    /// Second of the minute with its fraction.
    Second,
    /// The same in milliseconds.
    Milliseconds,
    /// The same in microseconds.
    Microseconds,
    /// Seconds since 1970.
    Epoch,
}

/// How letters change their case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseRule {
    /// The letters of ASCII change, no other does: the C locale.
    Ascii,
    /// By a locale in which ASCII letters change as in ASCII, so not Turkish, Azeri or Lithuanian. Text with
    /// other characters is declined.
    Locale,
}

/// Functions of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// Two values of one type (bytewise for text; equality only for Bytes and FixedBytes) -> Bool.
    Compare(CompareOp),
    /// Two of one type among Int16, Int32, Int64, Float32, Float64, Numeric -> that type, checked. Date +
    /// Int32 -> Date. Date or Timestamp + interval -> Timestamp, where an interval is FixedBytes(16) as the
    /// server stores it: microseconds (i64), days (i32), months (i32), in native byte order.
    Add,
    /// As Add; also Date - Date -> Int32, Timestamp - Timestamp -> FixedBytes(16), an interval.
    Subtract,
    /// Two of one type of number -> that type.
    Multiply,
    /// Two of one type of number -> that type; integers truncate, numerics get the server's result scale.
    Divide,
    /// Remainder with the dividend's sign: two of one type of integer, or Numeric.
    Modulo,
    /// Unary minus of a number, checked.
    Negate,
    /// Absolute value of a number, checked.
    Absolute,
    /// A cast to this type, as the server casts:
    /// - between Int16, Int32, Int64, Float32, Float64 and Numeric. The range is checked. Floats round half
    ///   to even, numerics half away from zero. Numerics get the scale they need.
    /// - Bool -> Int32, Date -> Timestamp, Timestamp -> Date (the day).
    Cast(LogicalType),
    /// Numeric -> Numeric, rounded to this many digits after the point and shown with as many; declined where
    /// more than `precision` digits are needed.
    NumericLength {
        /// Digits in all.
        precision: u16,
        /// Digits after the point.
        scale: u16,
    },
    /// Numeric, or Numeric and Int32 digits after the point -> Numeric, half away from zero; Float64 ->
    /// Float64, half to even.
    Round,
    /// As Round, towards zero.
    Truncate,
    /// Numeric -> Numeric, Float64 -> Float64: up to the next whole number.
    Ceiling,
    /// The same down.
    Floor,
    /// Date (fields from Day on and Epoch) or Timestamp -> Numeric: EXTRACT. NULL for a field of an infinite
    /// date; declines where that would be infinite.
    Extract(DateField),
    /// Timestamp -> Float64: date_part.
    DatePart(DateField),
    /// Timestamp -> Timestamp: date_trunc. Not DayOfWeek, IsoDayOfWeek, DayOfYear, IsoYear, Epoch.
    DateTrunc(DateField),
    /// Timestamp, Text (a constant) -> Text: to_char with the patterns YYYY, MM, DD, HH24, MI, SS and `- / .
    /// , : _` or spaces between; others are declined when the expression is compiled.
    ToChar,
    /// Text, Text (a constant) -> Bool: LIKE with the escape `\`. (The host writes NOT LIKE as Not.) A
    /// pattern that ends with the escape is declined when the expression is compiled.
    Like,
    /// As Like, without regard to case: declines text for which `CaseRule` does not say what that means.
    ILike(CaseRule),
    /// Text, Text -> Bool: whether the first begins with the second.
    StartsWith,
    /// Text -> Int32: characters.
    Length,
    /// Text or Bytes -> Int32: bytes.
    OctetLength,
    /// Text -> Text.
    Lower(CaseRule),
    /// Text -> Text.
    Upper(CaseRule),
    /// Text, Int32 first character (from 1), and Int32 how many, if not all -> Text.
    Substring,
    /// Text, Text looked for -> Int32: character where it begins, from 1; 0 where it does not occur. For
    /// deterministic collations.
    Position,
    /// Text, Text separator, Int32 number of the field (from 1; negative from the end) -> Text. For
    /// deterministic collations.
    SplitPart,
    /// Text, Text looked for, Text put in its place -> Text. For deterministic collations.
    Replace,
    /// Text, Text pattern and Text put in its place (constants) -> Text: regexp_replace without flags, of
    /// patterns that `is_known_regexp` knows; others are declined when the expression is compiled. Declines a
    /// text in which the pattern goes back too often. For deterministic collations.
    RegexpReplace,
    /// Text, and a Text whose characters are removed (without it the space) -> Text: ltrim, rtrim, btrim.
    Trim {
        /// From the start.
        start: bool,
        /// From the end.
        end: bool,
    },
    /// Text, Text -> Text: `||`.
    Concat,
    /// Text, Int32 how many characters (negative: all but) -> Text.
    Left,
    /// Text, Int32 how many characters (negative: all but) -> Text.
    Right,
}

impl Function {
    /// True where some values of arguments of these types are an error of the query (`Error::Sql`).
    pub fn can_raise(self, arguments: &[LogicalType]) -> bool {
        use LogicalType::{Bool, Date, Float32, Float64, Int16, Int32, Int64, Numeric, Timestamp, UInt64};
        match self {
            Self::Add | Self::Subtract | Self::Multiply => !arguments.contains(&Numeric),
            Self::Negate | Self::Absolute => !matches!(arguments, [Numeric | Float32 | Float64]),
            Self::Divide | Self::Modulo | Self::Substring => true,
            Self::Cast(to) => !matches!(
                (arguments, to),
                (_, Numeric)
                    | ([Bool | Int16], Int32 | Int64)
                    | ([Int32], Int64)
                    | ([Int16 | Int32 | Int64 | UInt64], Float32 | Float64)
                    | ([Float32], Float64)
                    | ([Numeric], Float32 | Float64)
                    | ([Timestamp], Date)
            ),
            Self::DateTrunc(_) => true,
            _ => false,
        }
    }

    /// True where some values of arguments of these types are outside what is implemented (`Error::Decline`):
    /// numerics may be NaN, infinite or of more than 38 digits.
    pub fn can_decline(self, arguments: &[LogicalType]) -> bool {
        use LogicalType::{Date, Float32, Float64, Numeric, Timestamp};
        let floats = || matches!(arguments, [Float32 | Float64]);
        arguments.contains(&Numeric)
            || match self {
                Self::Cast(to) => to == Numeric && floats() || (to == Timestamp && arguments == [Date]),
                // Differences of infinite dates and timestamps.
                Self::Subtract => matches!(arguments, [Date, Date] | [Timestamp, Timestamp]),
                Self::Add => matches!(arguments, [Date, LogicalType::FixedBytes(_)]),
                Self::Extract(field) => field.is_monotonic(),
                Self::ILike(rule) | Self::Lower(rule) | Self::Upper(rule) => rule == CaseRule::Locale,
                Self::SplitPart | Self::RegexpReplace => true,
                _ => false,
            }
    }
}

impl DateField {
    /// True where a later date never has a lower value: then it is infinite for an infinite date, else NULL.
    pub const fn is_monotonic(self) -> bool {
        matches!(
            self,
            Self::Millennium | Self::Century | Self::Decade | Self::Year | Self::IsoYear | Self::Epoch
        )
    }
}
