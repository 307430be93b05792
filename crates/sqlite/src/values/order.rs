//! The order of values: NULL, then numbers by value, then text, then blobs. Text is compared bytewise, as the
//! collation BINARY does, or by another collation of SQLite's own.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::api::Value;

/// Compares two values that are not NULL as SQLite does with the collation BINARY.
pub fn compare(a: Value<'_>, b: Value<'_>) -> Ordering {
    use Value::{Blob, Integer, Real, Text};
    match (a, b) {
        (Integer(a), Integer(b)) => a.cmp(&b),
        (Real(a), Real(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (Integer(a), Real(b)) => integer_to_real(a, b),
        (Real(a), Integer(b)) => integer_to_real(b, a).reverse(),
        (Text(a), Text(b)) | (Blob(a), Blob(b)) => a.cmp(b),
        _ => class(a).cmp(&class(b)),
    }
}

/// The collations that SQLite brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collation {
    /// Bytewise.
    Binary,
    /// The letters A to Z are equal to a to z.
    NoCase,
    /// Spaces at the end do not count.
    RTrim,
}

impl Collation {
    /// The collation of this name. None for one that a user has made.
    pub fn of_name(name: &str) -> Option<Self> {
        let is = |own: &str| name.eq_ignore_ascii_case(own);
        match () {
            () if is("BINARY") => Some(Self::Binary),
            () if is("NOCASE") => Some(Self::NoCase),
            () if is("RTRIM") => Some(Self::RTrim),
            () => None,
        }
    }

    /// Text that is equal, or less, exactly where the given one is so by the collation, bytewise.
    pub fn folded(self, text: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::Binary => Cow::Borrowed(text),
            Self::NoCase if text.iter().any(u8::is_ascii_uppercase) => Cow::Owned(text.to_ascii_lowercase()),
            Self::NoCase => Cow::Borrowed(text),
            Self::RTrim => {
                let end = text.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
                Cow::Borrowed(text.get(..end).unwrap_or(text))
            }
        }
    }

    /// As `compare`, by this collation.
    pub fn compare(self, a: Value<'_>, b: Value<'_>) -> Ordering {
        match (self, a, b) {
            (Self::Binary, ..) => compare(a, b),
            (_, Value::Text(a), Value::Text(b)) => self.folded(a).cmp(&self.folded(b)),
            _ => compare(a, b),
        }
    }
}

const fn class(value: Value<'_>) -> u8 {
    match value {
        Value::Null => 0,
        Value::Integer(_) | Value::Real(_) => 1,
        Value::Text(_) => 2,
        Value::Blob(_) => 3,
    }
}

/// Compares by value, without rounding the integer.
#[allow(clippy::cast_possible_truncation)]
pub fn integer_to_real(integer: i64, real: f64) -> Ordering {
    if real >= 9_223_372_036_854_775_808.0 {
        return Ordering::Less;
    }
    if real < -9_223_372_036_854_775_808.0 {
        return Ordering::Greater;
    }
    let floor = real.floor();
    match integer.cmp(&(floor as i64)) {
        Ordering::Equal if real > floor => Ordering::Less,
        order => order,
    }
}

#[cfg(test)]
mod tests {
    use super::compare;
    use crate::api::Value::{Blob, Integer, Real, Text};
    use std::cmp::Ordering::{Equal, Greater, Less};

    #[test]
    fn numbers_are_compared_by_value_and_classes_in_order() {
        let great = 9_007_199_254_740_993;
        for (a, b, order) in [
            (Integer(great), Real(9_007_199_254_740_992.0), Greater),
            (Integer(i64::MAX), Real(9_223_372_036_854_775_807.0), Less),
            (Integer(i64::MIN), Real(-9_223_372_036_854_775_808.0), Equal),
            (Integer(-1), Real(-1.5), Greater),
            (Integer(-2), Real(-1.5), Less),
            (Real(f64::INFINITY), Integer(i64::MAX), Greater),
            (Integer(5), Text(b"4"), Less),
            (Text(b"z"), Blob(b""), Less),
            (Text(b"a"), Text(b"ab"), Less),
        ] {
            assert_eq!(compare(a, b), order, "{a:?} {b:?}");
            assert_eq!(compare(b, a), order.reverse(), "{b:?} {a:?}");
        }
    }
}
