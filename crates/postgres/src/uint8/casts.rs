//! Casts from and to `engine.uint8`. A fraction is rounded as the server rounds it to a bigint.

use pgrx::pg_sys::{self, Datum, Oid};
use server_bytes::numeric;

use super::call::{Numeric, strict_functions};
use super::{fitting, out_of_range};
use crate::convert::varlena;
use crate::host::error::{self, PgSqlErrorCode};

/// 2^64 as a float, the least one that does not fit.
const END: f64 = 18_446_744_073_709_551_616.0;

/// The value of the type that is equal to a numeric, if there is one.
pub(super) fn whole(value: Numeric) -> Option<u64> {
    // SAFETY: a value of that type.
    let decimal = numeric::decode(&unsafe { varlena::bytes_of(value.0) })?;
    let unit = vector::power_of_ten(decimal.scale)?;
    (decimal.unscaled % unit == 0).then(|| u64::try_from(decimal.unscaled / unit).ok())?
}

/// A numeric, rounded.
fn of_numeric(value: Numeric) -> u64 {
    // SAFETY: a value of that type; the server rounds it half away from zero. An infinite value or NaN stays
    // what it is.
    let rounded = unsafe {
        let round = Oid::from(pg_sys::F_ROUND_NUMERIC_INT4);
        pg_sys::OidFunctionCall2Coll(round, Oid::INVALID, value.0, Datum::from(0))
    };
    if let Some(value) = whole(Numeric(rounded)) {
        return value;
    }
    // SAFETY: a value of that type.
    let odd = unsafe {
        let value = rounded.cast_mut_ptr();
        match (pg_sys::numeric_is_nan(value), pg_sys::numeric_is_inf(value)) {
            (true, _) => "NaN",
            (_, true) => "infinity",
            _ => out_of_range(),
        }
    };
    error::not_supported(format!("cannot convert {odd} to uint8"), "", "")
}

/// A float, rounded to the nearest number, and to an even one where two are as near.
fn of_float(value: f64) -> u64 {
    let rounded = value.round_ties_even();
    match (0.0..END).contains(&rounded) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within the range")]
        true => rounded as u64,
        false => out_of_range(),
    }
}

/// A number of one of the server's integer types.
fn to_integer<T: TryFrom<u64>>(value: u64, name: &str) -> T {
    T::try_from(value).unwrap_or_else(|_| {
        error::raise(
            PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            format!("{name} out of range"),
            "",
            "",
        )
    })
}

strict_functions! {
    fn int2_to_uint8(value: i16) -> u64 { fitting(value.into()) }
    fn int4_to_uint8(value: i32) -> u64 { fitting(value.into()) }
    fn int8_to_uint8(value: i64) -> u64 { fitting(value.into()) }
    fn oid_to_uint8(value: u32) -> u64 { value.into() }
    fn numeric_to_uint8(value: Numeric) -> u64 { of_numeric(value) }
    fn float8_to_uint8(value: f64) -> u64 { of_float(value) }
    fn float4_to_uint8(value: f32) -> u64 { of_float(value.into()) }
    fn uint8_to_int2(value: u64) -> i16 { to_integer(value, "smallint") }
    fn uint8_to_int4(value: u64) -> i32 { to_integer(value, "integer") }
    fn uint8_to_int8(value: u64) -> i64 { to_integer(value, "bigint") }
    fn uint8_to_oid(value: u64) -> u32 { to_integer(value, "OID") }
    fn uint8_to_numeric(value: u64) -> Numeric { Numeric::from(i128::from(value)) }
    fn uint8_to_float8(value: u64) -> f64 { value as f64 }
    fn uint8_to_float4(value: u64) -> f32 { value as f32 }
    /// The 64 bits of a bigint as they are, which casts from and to bit go over.
    fn uint8_of_bits(bits: i64) -> u64 { bits.cast_unsigned() }
    fn uint8_bits(value: u64) -> i64 { value.cast_signed() }
}
