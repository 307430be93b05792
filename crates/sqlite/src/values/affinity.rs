//! Type affinity, as SQLite's documents define it (https://www.sqlite.org/datatype3.html): what a value
//! becomes in a column whose declared type reads so.

use super::kind::Kind;
use crate::api::{Argument, Value};

/// What a column prefers its values to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Affinity {
    /// Numbers become text.
    Text,
    /// Text that looks like a number becomes one; a whole real becomes an integer. INTEGER affinity does the
    /// same to what is stored.
    Numeric,
    /// As `Numeric`, and integers become reals.
    Real,
    /// Values stay as they are.
    Blob,
}

impl Affinity {
    /// The affinity of a declared type, by the five rules of SQLite's documents.
    pub fn of_type(declared: &str) -> Self {
        let upper = declared.to_ascii_uppercase();
        let has = |part: &str| upper.contains(part);
        if has("INT") {
            Self::Numeric
        } else if has("CHAR") || has("CLOB") || has("TEXT") {
            Self::Text
        } else if upper.is_empty() || has("BLOB") {
            Self::Blob
        } else if has("REAL") || has("FLOA") || has("DOUB") {
            Self::Real
        } else {
            Self::Numeric
        }
    }

    /// The value that a column of this affinity stores where it is given this one.
    pub fn apply(self, given: Argument<'_>) -> Value<'_> {
        match self {
            Self::Blob => given.value(),
            Self::Text => match given.value() {
                Value::Integer(_) | Value::Real(_) => Value::Text(given.text()),
                other => other,
            },
            Self::Numeric => match given.numeric() {
                Value::Real(real) => whole(real).map_or(Value::Real(real), Value::Integer),
                other => other,
            },
            Self::Real => match given.numeric() {
                Value::Integer(integer) => Value::Real(as_real(integer)),
                other => other,
            },
        }
    }

    /// Whether it leaves all values of this kind as they are.
    pub const fn keeps(self, kind: Kind) -> bool {
        match (self, kind) {
            (_, Kind::Null) | (Self::Blob, _) => true,
            (Self::Text, kind) => matches!(kind, Kind::Text),
            (Self::Numeric, kind) => matches!(kind, Kind::Integer | Kind::Number),
            (Self::Real, kind) => matches!(kind, Kind::Real),
        }
    }

    /// Whether a comparison with this column makes a number of text on the other side.
    pub const fn is_numeric(self) -> bool {
        matches!(self, Self::Numeric | Self::Real)
    }
}

/// The nearest real, as SQLite converts.
#[allow(clippy::cast_precision_loss)]
pub const fn as_real(integer: i64) -> f64 {
    integer as f64
}

/// The integer that a whole real becomes in a column of numeric affinity: not the two extreme ones.
#[allow(clippy::cast_possible_truncation, clippy::float_cmp)]
pub fn whole(real: f64) -> Option<i64> {
    let integer = real as i64;
    (as_real(integer) == real && integer > i64::MIN && integer < i64::MAX).then_some(integer)
}

#[cfg(test)]
mod tests {
    use super::{Affinity, whole};

    #[test]
    fn declared_types_have_the_documented_affinities() {
        for (declared, affinity) in [
            ("INTEGER", Affinity::Numeric),
            ("bigint", Affinity::Numeric),
            ("CHARINT", Affinity::Numeric),
            ("VARCHAR(255)", Affinity::Text),
            ("clob", Affinity::Text),
            ("", Affinity::Blob),
            ("BLOB", Affinity::Blob),
            ("DOUBLE PRECISION", Affinity::Real),
            ("FLOATING POINT", Affinity::Numeric),
            ("DECIMAL(10,5)", Affinity::Numeric),
            ("DATETIME", Affinity::Numeric),
        ] {
            assert_eq!(Affinity::of_type(declared), affinity, "{declared}");
        }
    }

    #[test]
    fn whole_reals_are_integers_but_for_the_extremes() {
        assert_eq!(whole(-0.0), Some(0));
        assert_eq!(whole(1e15), Some(1_000_000_000_000_000));
        assert_eq!(whole(0.5), None);
        assert_eq!(whole(9_223_372_036_854_775_808.0), None);
        assert_eq!(whole(-9_223_372_036_854_775_808.0), None);
        assert_eq!(whole(f64::INFINITY), None);
    }
}
