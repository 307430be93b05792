//! Arithmetic of `engine.uint8`. Beside a signed integer the result is of the type, too.
//!
//! It is made in 128 bits, where no operation on two numbers of 64 bits overflows.

use super::call::strict_functions;
use super::{fitting, out_of_range};
use crate::host::error::{self, PgSqlErrorCode};

/// A divisor that is not 0.
fn divisor(value: i128) -> i128 {
    if value == 0 {
        error::raise(PgSqlErrorCode::ERRCODE_DIVISION_BY_ZERO, "division by zero", "", "");
    }
    value
}

macro_rules! operations {
    ($($left:ty, $right:ty: $add:ident $subtract:ident $multiply:ident $divide:ident $modulo:ident;)*) => {
        strict_functions! {$(
            fn $add(a: $left, b: $right) -> u64 { fitting(i128::from(a) + i128::from(b)) }
            fn $subtract(a: $left, b: $right) -> u64 { fitting(i128::from(a) - i128::from(b)) }
            fn $multiply(a: $left, b: $right) -> u64 {
                fitting(i128::from(a).checked_mul(i128::from(b)).unwrap_or(-1))
            }
            fn $divide(a: $left, b: $right) -> u64 { fitting(i128::from(a) / divisor(b.into())) }
            fn $modulo(a: $left, b: $right) -> u64 { fitting(i128::from(a) % divisor(b.into())) }
        )*}
    };
}

operations! {
    u64, u64: uint8_add uint8_sub uint8_mul uint8_div uint8_mod;
    u64, i16: uint8_add_int2 uint8_sub_int2 uint8_mul_int2 uint8_div_int2 uint8_mod_int2;
    u64, i32: uint8_add_int4 uint8_sub_int4 uint8_mul_int4 uint8_div_int4 uint8_mod_int4;
    u64, i64: uint8_add_int8 uint8_sub_int8 uint8_mul_int8 uint8_div_int8 uint8_mod_int8;
    i16, u64: int2_add_uint8 int2_sub_uint8 int2_mul_uint8 int2_div_uint8 int2_mod_uint8;
    i32, u64: int4_add_uint8 int4_sub_uint8 int4_mul_uint8 int4_div_uint8 int4_mod_uint8;
    i64, u64: int8_add_uint8 int8_sub_uint8 int8_mul_uint8 int8_div_uint8 int8_mod_uint8;
}

/// Bits that are shifted by as many as there are, or more, are gone, as those of a longer number would be.
fn shifted(shift: i32, by: impl FnOnce(u32) -> Option<u64>) -> u64 {
    match u32::try_from(shift) {
        Ok(shift) => by(shift).unwrap_or(0),
        Err(_) => out_of_range(),
    }
}

strict_functions! {
    fn uint8_plus(value: u64) -> u64 { value }
    fn uint8_minus(value: u64) -> u64 { fitting(-i128::from(value)) }
    fn uint8_and(a: u64, b: u64) -> u64 { a & b }
    fn uint8_or(a: u64, b: u64) -> u64 { a | b }
    fn uint8_xor(a: u64, b: u64) -> u64 { a ^ b }
    fn uint8_not(value: u64) -> u64 { !value }
    fn uint8_shift_left(value: u64, shift: i32) -> u64 { shifted(shift, |shift| value.checked_shl(shift)) }
    fn uint8_shift_right(value: u64, shift: i32) -> u64 { shifted(shift, |shift| value.checked_shr(shift)) }
    /// The distance of two values, for indexes of ranges.
    fn uint8_distance(a: u64, b: u64) -> f64 { (i128::from(a) - i128::from(b)) as f64 }
    /// The same for BRIN, which passes any Datums.
    fn uint8_brin_distance(a: u64, b: u64) -> f64 { (i128::from(b) - i128::from(a)) as f64 }
}
