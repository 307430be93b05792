//! What types the columns of a CSV file have.
//!
//! A column is a number's only if every value comes back from the number as the same number, in the same
//! words: `007` and `+1` are text.

use crate::FieldKind;

/// Digits that a real surely keeps.
const REAL_DIGITS: usize = 17;

/// What was seen of a column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Guess {
    has_integers: bool,
    has_reals: bool,
    has_texts: bool,
}

impl Guess {
    /// Looks at a value that is not NULL.
    pub fn see(&mut self, value: &[u8]) {
        if self.has_texts {
            return;
        }
        match number(value) {
            Some(FieldKind::Integer) => self.has_integers = true,
            Some(_) => self.has_reals = true,
            None => self.has_texts = true,
        }
    }

    /// What the column's values are. Text where there was none.
    pub const fn kind(self) -> FieldKind {
        match self {
            Self { has_texts: true, .. } => FieldKind::Text,
            Self { has_reals: true, .. } => FieldKind::Real,
            Self { has_integers: true, .. } => FieldKind::Integer,
            _ => FieldKind::Text,
        }
    }
}

/// Whether a text is a number: an integer of 64 bits, or a real.
fn number(text: &[u8]) -> Option<FieldKind> {
    // Most are short and have no sign.
    if text.len() <= 18
        && text.iter().all(u8::is_ascii_digit)
        && (text.len() == 1 || text.first() > Some(&b'0'))
    {
        return Some(FieldKind::Integer);
    }
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let mut start = digits.bytes();
    let (first, second) = (start.next()?, start.next());
    if !first.is_ascii_digit() || (first == b'0' && second.is_some_and(|byte| byte.is_ascii_digit())) {
        return None;
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return (text != "-0" && text.parse::<i64>().is_ok()).then_some(FieldKind::Integer);
    }
    let mantissa = digits.split(['e', 'E']).next().unwrap_or_default().trim_start_matches(['0', '.']);
    let significant = mantissa.bytes().filter(u8::is_ascii_digit).count();
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let ends = digits.ends_with(|c: char| c.is_ascii_digit());
    let is_real =
        plain && ends && significant <= REAL_DIGITS && text.parse::<f64>().is_ok_and(f64::is_finite);
    is_real.then_some(FieldKind::Real)
}

#[cfg(test)]
mod tests {
    use super::Guess;
    use crate::FieldKind::{Integer, Real, Text};

    #[test]
    fn a_column_is_what_all_its_values_are() {
        let cases: [(&[&str], _); 17] = [
            (&["1", "-5", "0"], Integer),
            (&["9223372036854775807"], Integer),
            (&["9223372036854775808"], Text),
            (&["007"], Text),
            (&["+1"], Text),
            (&["-0"], Text),
            (&["1", "2.5"], Real),
            (&["1e5", "-2.5E-3"], Real),
            (&["1."], Text),
            (&[".5"], Text),
            (&["1e999"], Text),
            (&["nan"], Text),
            (&["0.00012345678901234567"], Real),
            (&["0.1234567890123456789"], Text),
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
