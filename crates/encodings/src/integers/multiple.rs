//! Multiples: values that are a base plus a multiple of one factor are stored as the multipliers. So bits
//! that say nothing are not stored, as those of decimals with fewer digits than their scale, or of timestamps
//! of whole seconds or days.
//! Payload: base (zigzag), factor (varint, at least 2), integer node of the multipliers.

use vector::{Bitmap, Error, Result, Selection};

use super::{IntNode, Lane};
use crate::cursor::{Reader, Writer};
use crate::filter::IntCondition;
use crate::kernels::fill;
use crate::options::EncodingId;

/// How many values are looked at before all are.
const SAMPLE: usize = 32;

/// The smallest value, and the greatest common divisor of all differences from it. `None` if that is 1.
pub(super) fn factor(values: &[i64]) -> Option<(i64, u64)> {
    let low = crate::kernels::scan::limits(values, *values.first()?).0;
    let fold = |start: u64, values: &mut dyn Iterator<Item = &i64>| {
        let mut divisor = start;
        for value in values {
            let difference = value.wrapping_sub(low).cast_unsigned();
            if divisor == 0 || !difference.is_multiple_of(divisor) {
                divisor = gcd(divisor, difference);
                if divisor == 1 {
                    break;
                }
            }
        }
        divisor
    };
    let some = fold(0, &mut values.iter().step_by((values.len() / SAMPLE).max(1)));
    if some == 1 {
        return None;
    }
    let all = fold(some, &mut values.iter());
    (all > 1).then_some((low, all))
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The multipliers.
pub(super) fn divided(values: &[i64], base: i64, factor: u64) -> Vec<i64> {
    values.iter().map(|value| (value.wrapping_sub(base).cast_unsigned() / factor).cast_signed()).collect()
}

/// Appends everything except the multipliers' node.
pub(super) fn write_head(base: i64, factor: u64, out: &mut Writer) {
    out.u8(EncodingId::Multiple.tag());
    out.zigzag(base);
    out.varint(factor);
}

/// A node of multiples over its bytes.
#[derive(Debug)]
pub(super) struct Multiple<'a> {
    base: i64,
    factor: i64,
    multipliers: Box<IntNode<'a>>,
}

impl<'a> Multiple<'a> {
    pub(super) fn open(reader: &mut Reader<'a>, rows: usize, depth: u8) -> Result<Self> {
        let depth = depth.checked_sub(1).ok_or_else(|| Error::corrupt("nodes nested too deep"))?;
        let base = reader.zigzag()?;
        let factor = reader.varint()?;
        if factor < 2 {
            return Err(Error::corrupt(format!("multiples of {factor}")));
        }
        let multipliers = Box::new(IntNode::open(reader, rows, depth)?);
        Ok(Self { base, factor: factor.cast_signed(), multipliers })
    }

    pub(super) fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::Multiple.name());
        out.push_str(" > ");
        self.multipliers.describe(out);
    }

    const fn value(&self, multiplier: i64) -> i64 {
        self.base.wrapping_add(self.factor.wrapping_mul(multiplier))
    }

    pub(super) fn decode_into<T: Lane>(&self, out: &mut Vec<T>) -> Result<()> {
        let start = out.len();
        self.multipliers.decode_into(out)?;
        if let Some(values) = out.get_mut(start..) {
            fill::scale(values, T::wrap(self.factor), T::wrap(self.base));
        }
        Ok(())
    }

    pub(super) fn get(&self, row: usize) -> Result<i64> {
        Ok(self.value(self.multipliers.get(row)?))
    }

    pub(super) fn take_into<T: Lane>(&self, rows: &[u32], out: &mut Vec<T>) -> Result<()> {
        let start = out.len();
        self.multipliers.take_into(rows, out)?;
        if let Some(values) = out.get_mut(start..) {
            fill::scale(values, T::wrap(self.factor), T::wrap(self.base));
        }
        Ok(())
    }

    /// Tests the multipliers instead of the values: they are unsigned, grow with the values and never wrap.
    pub(super) fn test(&self, test: &IntCondition, selection: &Selection) -> Result<Option<Bitmap>> {
        let (base, factor) = (i128::from(self.base), i128::from(self.factor.cast_unsigned()));
        let above = |value: i128| value.saturating_sub(base);
        // With a factor of 2^63 or more there are only the multipliers 0 and 1. So all multipliers fit the
        // signed domain.
        let translated = match test {
            IntCondition::Never => IntCondition::Never,
            IntCondition::Range { low, high, outside } => {
                let low = above(*low).max(-1);
                let low = low.div_euclid(factor) + i128::from(low.rem_euclid(factor) != 0);
                let high = above(*high).div_euclid(factor);
                match (low <= high, outside) {
                    (true, _) => IntCondition::Range { low, high, outside: *outside },
                    (false, true) => IntCondition::ALWAYS,
                    (false, false) => IntCondition::Never,
                }
            }
            IntCondition::Set(_) => return Ok(None),
        };
        self.multipliers.test(&translated, selection).map(Some)
    }
}
