//! lower and upper.

use vector::Bitmap;

use super::{built, texts};
use crate::Error;
use crate::expression::CaseRule;
use crate::expression::functions::lanes::any_fails;
use crate::expression::functions::{Picked, Value};

/// Text whose case `CaseRule::Locale` does not tell.
pub(super) const OTHER_LETTERS: Error = Error::Decline("case of characters outside ASCII");

/// lower or upper: `change` does it for ASCII and leaves other bytes alone.
pub(super) fn compile(rule: CaseRule, change: fn(&mut [u8])) -> Picked {
    (
        Box::new(move |arguments: &[Value], rows: usize, valid: Option<&Bitmap>| {
            let texts = texts(arguments, 0)?;
            let mut other = false;
            let output = built(rows, |row, out| {
                out.extend_from_slice(texts.get(row));
                other |= rule == CaseRule::Locale && !out.is_ascii();
                change(out);
            });
            if other && any_fails(rows, valid, |row| !texts.get(row).is_ascii()) {
                return Err(OTHER_LETTERS);
            }
            Ok(output)
        }),
        10,
    )
}
