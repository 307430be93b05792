//! What types the columns of a CSV file have.
//!
//! A column is a number's only if every value comes back from the number as the same number, in the same
//! words: `007` and `+1` are text.

use std::io::Read;

use super::{CsvReader, Record};
use crate::{FieldKind, Result};

/// Digits that a real surely keeps.
const REAL_DIGITS: usize = 15;
/// Integers up to this size are reals without loss.
const EXACT: u64 = 1 << 53;

/// What was seen of a column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Guess {
    has_integers: bool,
    /// Some are no reals.
    has_great_integers: bool,
    has_reals: bool,
    has_infinities: bool,
    has_texts: bool,
}

impl Guess {
    /// Looks at a value that is not NULL.
    pub fn see(&mut self, value: &[u8]) {
        if self.has_texts {
            return;
        }
        match number(value) {
            Some(Number::Integer { is_great }) => {
                self.has_integers = true;
                self.has_great_integers |= is_great;
            }
            Some(Number::Real) => self.has_reals = true,
            Some(Number::Infinity) => self.has_infinities = true,
            None => self.has_texts = true,
        }
    }

    /// What the column's values are. Text where there was none.
    pub const fn kind(self) -> FieldKind {
        match self {
            Self { has_texts: true, .. } => FieldKind::Text,
            Self { has_great_integers: true, has_reals, has_infinities, .. }
                if has_reals || has_infinities =>
            {
                FieldKind::Text
            }
            // The word alone says little.
            Self { has_infinities: true, has_reals: false, has_integers: false, .. } => FieldKind::Text,
            Self { has_reals, has_infinities, .. } if has_reals || has_infinities => FieldKind::REAL,
            Self { has_integers: true, .. } => FieldKind::INTEGER,
            _ => FieldKind::Text,
        }
    }
}

/// What the columns of a file are, of which all records that are left are read. `is_null` says of a field and
/// whether it was quoted that it is no value.
///
/// # Errors
/// As `CsvReader::next`.
pub fn kinds<R: Read>(
    reader: &mut CsvReader<R>,
    columns: usize,
    is_null: impl Fn(&[u8], bool) -> bool,
) -> Result<Vec<FieldKind>> {
    let (mut record, mut all) = (Record::default(), vec![Guess::default(); columns]);
    while reader.next(&mut record)? {
        for (guess, (text, is_quoted)) in all.iter_mut().zip(record.iter()) {
            if !is_null(text, is_quoted) {
                guess.see(text);
            }
        }
    }
    Ok(all.into_iter().map(Guess::kind).collect())
}

enum Number {
    /// An integer of 64 bits.
    Integer {
        /// It is past those that reals keep.
        is_great: bool,
    },
    Real,
    Infinity,
}

/// Whether a text is a number that has no other words.
fn number(text: &[u8]) -> Option<Number> {
    // Most are short and have no sign.
    if text.len() <= 15
        && text.iter().all(u8::is_ascii_digit)
        && (text.len() == 1 || text.first() > Some(&b'0'))
    {
        return Some(Number::Integer { is_great: false });
    }
    let text = std::str::from_utf8(text).ok()?;
    if matches!(text, "inf" | "-inf") {
        return Some(Number::Infinity);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let mut start = digits.bytes();
    let (first, second) = (start.next()?, start.next());
    if !first.is_ascii_digit() || (first == b'0' && second.is_some_and(|byte| byte.is_ascii_digit())) {
        return None;
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let integer = text.parse::<i64>().ok().filter(|_| text != "-0")?;
        return Some(Number::Integer { is_great: integer.unsigned_abs() > EXACT });
    }
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    if !plain || !digits.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let real = text.parse::<f64>().ok().filter(|real| real.is_finite())?;
    let own = significant(digits);
    (own.len() <= REAL_DIGITS || own == significant(&format!("{:e}", real.abs()))).then_some(Number::Real)
}

/// The digits of a number without those that are only places.
fn significant(number: &str) -> String {
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    digits.trim_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::Guess;
    use crate::FieldKind::{self, Text};

    #[test]
    fn a_column_is_what_all_its_values_are() {
        let cases: [(&[&str], _); 24] = [
            (&["1", "-5", "0"], FieldKind::INTEGER),
            (&["9223372036854775807"], FieldKind::INTEGER),
            (&["9223372036854775808"], Text),
            (&["007"], Text),
            (&["+1"], Text),
            (&["-0"], Text),
            (&["1", "2.5"], FieldKind::REAL),
            (&["1e5", "-2.5E-3"], FieldKind::REAL),
            (&["1."], Text),
            (&[".5"], Text),
            (&["1e999"], Text),
            (&["nan"], Text),
            (&["0.00012345678901234567"], FieldKind::REAL),
            (&["0.1234567890123456789"], Text),
            (&["0.42857142857142855", "1e300", "4285.714285714286"], FieldKind::REAL),
            (&["9007199254740993.0"], Text),
            (&["0.30000000000000001"], Text),
            (&["9007199254740993", "0.5"], Text),
            (&["9007199254740993", "5"], FieldKind::INTEGER),
            (&["inf", "-inf", "0.5"], FieldKind::REAL),
            (&["inf"], Text),
            (&["1", "x", "2"], Text),
            (&["2024-01-01"], Text),
            (&[], Text),
        ];
        for (values, kind) in cases {
            let mut guess = Guess::default();
            values.iter().for_each(|value| guess.see(value.as_bytes()));
            assert_eq!(guess.kind(), kind, "{values:?}");
        }
    }
}
