//! Makes floats from integers and from parts: the loops of ALP and ALP-RD.

use super::dispatch;
use crate::floats::Real;

/// Integers up to this magnitude are exact in a double, and the trick below rounds them right.
pub const MAX_INT: i64 = 1 << 51;

/// Adding this number and subtracting it again rounds a double below 2^51 to an integer, halves to even.
const ROUND: f64 = 6_755_399_441_055_744.0; // 2^52 + 2^51

const TEN: [f64; 19] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18];
const TENTH: [f64; 19] = [
    1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15,
    1e-16, 1e-17, 1e-18,
];

/// Powers of ten to get from float to integer and back.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    up: f64,
    down: f64,
    factor: f64,
    exponent: f64,
}

impl Scale {
    /// value = integer x 10^factor x 10^-exponent.
    pub fn new(exponent: u8, factor: u8) -> Self {
        let pick = |table: &[f64; 19], at: u8| table.get(usize::from(at)).copied().unwrap_or(1.0);
        Self {
            up: pick(&TEN, exponent),
            down: pick(&TENTH, factor),
            factor: pick(&TEN, factor),
            exponent: pick(&TENTH, exponent),
        }
    }
}

/// The float of an integer.
#[inline(always)]
#[allow(clippy::cast_precision_loss)]
pub fn to_float<T: Real>(int: i64, scale: Scale) -> T {
    T::of_double(int as f64 * scale.factor * scale.exponent)
}

/// The integer whose float is this value, bit for bit.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
pub fn to_int<T: Real>(value: T, scale: Scale) -> Option<i64> {
    let scaled = value.double() * scale.up * scale.down;
    // A NaN fails this test, too. A value out of range must not reach the rounding.
    let fits = scaled.abs() < MAX_INT as f64;
    let int = if fits { (scaled + ROUND - ROUND) as i64 } else { 0 };
    (fits && to_float::<T>(int, scale).bits() == value.bits()).then_some(int)
}

dispatch! {
    /// Appends the float of each integer.
    pub(crate) fn to_floats[T: Real](ints: &[i64], scale: Scale, out: &mut Vec<T>) = to_floats_body
}

#[inline(always)]
#[allow(clippy::cast_precision_loss)]
fn to_floats_body<T: Real>(ints: &[i64], scale: Scale, out: &mut Vec<T>) {
    // AVX2 has no conversion of 64-bit integers. Up to 2^51 the bits of integer + ROUND are those of ROUND
    // plus the integer. So an integer addition and a subtraction of doubles do the conversion.
    let small = ints.iter().fold(0u64, |all, &int| all | int.unsigned_abs()) < MAX_INT.cast_unsigned();
    if small {
        let round = ROUND.to_bits().cast_signed();
        out.extend(ints.iter().map(|&int| {
            let double = f64::from_bits((round.wrapping_add(int)).cast_unsigned()) - ROUND;
            T::of_double(double * scale.factor * scale.exponent)
        }));
    } else {
        out.extend(ints.iter().map(|&int| to_float::<T>(int, scale)));
    }
}

dispatch! {
    /// Appends `lefts[code] | right` for each pair, as bits of a float. `lefts` are shifted already. A code
    /// is cut to four bits.
    pub(crate) fn join[T: Real](codes: &[u32], rights: &[i64], lefts: &[u64; 16], out: &mut Vec<T>) = join_body
}

#[inline(always)]
fn join_body<T: Real>(codes: &[u32], rights: &[i64], lefts: &[u64; 16], out: &mut Vec<T>) {
    out.extend(codes.iter().zip(rights).map(|(&code, &right)| {
        let left = lefts.get((code & 15) as usize).copied().unwrap_or(0);
        T::of_bits(left | right.cast_unsigned())
    }));
}
