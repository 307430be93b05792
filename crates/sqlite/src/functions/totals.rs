//! What is summed up of one column over some rows, as SQLite's own aggregate functions do.

use crate::api::{Error, Result, Value};
use crate::values::{Collation, Owned, as_real};

/// Sums up values one by one.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// Values that are not NULL.
    pub count: i64,
    /// The sum of integers, exactly.
    integers: i128,
    /// The sum of reals, and of the rounding errors made on the way (see `query`'s precise sums).
    reals: f64,
    errors: f64,
    /// Some value was not an integer.
    has_real: bool,
    /// The least value.
    pub least: Option<Owned>,
    /// The greatest value.
    pub greatest: Option<Owned>,
}

/// What of a column is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// The sum, or the average.
    pub sum: bool,
    /// The least value.
    pub least: bool,
    /// The greatest value.
    pub greatest: bool,
}

impl Totals {
    /// What an engine has summed up. `reals`: where some value was not an integer, or all sums are reals.
    pub fn known(count: i64, integers: i128, reals: Option<f64>) -> Self {
        let (has_real, reals) = (reals.is_some(), reals.unwrap_or_default());
        Self { count, integers, reals, has_real, ..Self::default() }
    }

    /// Takes a value.
    pub fn add(&mut self, value: Value<'_>, wanted: Wanted, collation: Collation) {
        if value == Value::Null {
            return;
        }
        self.count += 1;
        if wanted.sum {
            match number(value) {
                Value::Integer(integer) => self.integers += i128::from(integer),
                Value::Real(real) => {
                    let sum = self.reals + real;
                    let part = sum - self.reals;
                    self.errors += (self.reals - (sum - part)) + (real - part);
                    self.reals = sum;
                    self.has_real = true;
                }
                _ => self.has_real = true,
            }
        }
        let is_past = |known: &Option<Owned>, less: bool| {
            known.as_ref().is_none_or(|known| {
                let order = collation.compare(value, known.value());
                if less { order.is_lt() } else { order.is_gt() }
            })
        };
        if wanted.least && is_past(&self.least, true) {
            self.least = Owned::of(value);
        }
        if wanted.greatest && is_past(&self.greatest, false) {
            self.greatest = Owned::of(value);
        }
    }

    /// The sum, NULL of no value: an integer of integers, else a real. `integer overflow` as SQLite's `sum`.
    pub fn sum(&self) -> Result<Value<'static>> {
        Ok(match (self.count, self.has_real) {
            (0, _) => Value::Null,
            (_, true) => Value::Real(self.real_sum()),
            (_, false) => {
                Value::Integer(i64::try_from(self.integers).map_err(|_| Error::new("integer overflow"))?)
            }
        })
    }

    /// The average, a real. NULL of no value.
    pub fn average(&self) -> Value<'static> {
        match self.count {
            0 => Value::Null,
            count => Value::Real(self.real_sum() / as_real(count)),
        }
    }

    /// The greatest value less the least, as SQLite subtracts. NULL where one is.
    pub fn difference(greatest: &Self, least: &Self) -> Value<'static> {
        let (Some(greatest), Some(least)) = (&greatest.greatest, &least.least) else { return Value::Null };
        match (number(greatest.value()), number(least.value())) {
            (Value::Integer(a), Value::Integer(b)) => match a.checked_sub(b) {
                Some(difference) => Value::Integer(difference),
                None => Value::Real(as_real(a) - as_real(b)),
            },
            (a, b) => Value::Real(real_of(a) - real_of(b)),
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn real_sum(&self) -> f64 {
        let reals = if self.errors.is_finite() { self.reals + self.errors } else { self.reals };
        reals + self.integers as f64
    }
}

/// What SQLite's `sum` takes a value for: text that is a number is one, other text counts as what number it
/// begins with.
fn number(value: Value<'_>) -> Value<'_> {
    let text = match value {
        Value::Text(text) | Value::Blob(text) => text,
        other => return other,
    };
    let text = String::from_utf8_lossy(text);
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    if matches!(value, Value::Text(_))
        && let Ok(integer) = trimmed.parse::<i64>()
    {
        return Value::Integer(integer);
    }
    Value::Real(real_prefix(text.trim_start_matches(|c: char| c.is_ascii_whitespace())))
}

const fn real_of(value: Value<'_>) -> f64 {
    match value {
        Value::Integer(integer) => as_real(integer),
        Value::Real(real) => real,
        _ => 0.0,
    }
}

/// The real that a text begins with. 0 if it begins with none.
fn real_prefix(text: &str) -> f64 {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        from + bytes
            .get(from..)
            .map_or(0, |rest| rest.iter().take_while(|byte| byte.is_ascii_digit()).count())
    };
    let sign = |at: usize| usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
    let start = sign(0);
    let mut end = digits(start);
    let mut any = end > start;
    if bytes.get(end) == Some(&b'.') {
        let past = digits(end + 1);
        any |= past > end + 1;
        end = past;
    }
    if !any {
        return 0.0;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let first = end + 1 + sign(end + 1);
        let past = digits(first);
        if past > first {
            end = past;
        }
    }
    text.get(..end).and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::{Totals, Wanted, real_prefix};
    use crate::api::Value;
    use crate::values::Collation;

    #[test]
    #[allow(clippy::float_cmp)]
    fn reals_are_read_as_far_as_they_go() {
        for (text, real) in [
            ("", 0.0),
            ("x", 0.0),
            ("5", 5.0),
            ("-5.5abc", -5.5),
            (".5", 0.5),
            (".", 0.0),
            ("5.", 5.0),
            ("1e3x", 1000.0),
            ("1e", 1.0),
            ("1e+", 1.0),
            ("+2", 2.0),
        ] {
            assert_eq!(real_prefix(text), real, "{text}");
        }
    }

    #[test]
    fn sums_are_integers_as_long_as_all_values_are() {
        let wanted = Wanted { sum: true, least: true, greatest: true };
        let mut totals = Totals::default();
        let mut add = |value| totals.add(value, wanted, Collation::NoCase);
        add(Value::Integer(1 << 60));
        add(Value::Null);
        add(Value::Text(b" 7 "));
        assert_eq!(totals.sum(), Ok(Value::Integer((1 << 60) + 7)));
        totals.add(Value::Text(b"7x"), wanted, Collation::NoCase);
        assert!(matches!(totals.sum(), Ok(Value::Real(_))));
        assert_eq!(totals.count, 3);
        let mut great = Totals::default();
        great.add(Value::Integer(i64::MAX), wanted, Collation::Binary);
        great.add(Value::Integer(1), wanted, Collation::Binary);
        assert_eq!(great.sum().unwrap_err().message, "integer overflow");
    }
}
