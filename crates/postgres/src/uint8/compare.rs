//! Comparison of `engine.uint8` with itself and with the server's exact numbers, and its hashes.
//!
//! Comparison with integers is made in 128 bits, and so is that with a `numeric` of so many. The server
//! compares with a larger one. The hash of a number that a bigint has, too, is bigint's: a hash join of both
//! types needs it.

use std::cmp::Ordering;

use pgrx::pg_sys::{self, Datum, Oid, SortSupport};
use server_bytes::numeric;

use super::call::{Numeric, strict_functions};
use crate::convert::varlena;
use crate::host::error::{self, PgSqlErrorCode};

unsafe extern "C" {
    fn hash_bytes_uint32(k: u32) -> u32;
    fn hash_bytes_uint32_extended(k: u32, seed: u64) -> u64;
}

/// A number that is compared with a value of the type.
trait Comparable {
    /// How this number stands to `other`.
    fn against(self, other: u64) -> Ordering;
}

impl Comparable for u64 {
    fn against(self, other: u64) -> Ordering {
        self.cmp(&other)
    }
}

macro_rules! signed {
    ($($kind:ty)*) => {$(
        impl Comparable for $kind {
            fn against(self, other: u64) -> Ordering {
                i128::from(self).cmp(&i128::from(other))
            }
        }
    )*};
}
signed! { i16 i32 i64 }

impl Comparable for Numeric {
    /// An index scan compares in memory that lasts as long as the query, so nothing is left there.
    fn against(self, other: u64) -> Ordering {
        // SAFETY: a value of that type.
        let decimal = unsafe { varlena::with_payload(self.0.cast_mut_ptr(), numeric::decode) };
        let unit = decimal.and_then(|decimal| Some((decimal.unscaled, vector::power_of_ten(decimal.scale)?)));
        if let Some((unscaled, unit)) = unit {
            let floor = unscaled.div_euclid(unit).cmp(&i128::from(other));
            return floor.then_with(|| unscaled.rem_euclid(unit).cmp(&0));
        }
        let other = Self::from(i128::from(other));
        // SAFETY: two values of the type that the server's function compares; the other one is ours to free.
        let verdict = unsafe {
            let compare = Oid::from(pg_sys::F_NUMERIC_CMP);
            let verdict = pg_sys::OidFunctionCall2Coll(compare, Oid::INVALID, self.0, other.0);
            pg_sys::pfree(other.0.cast_mut_ptr());
            verdict
        };
        (verdict.value() as i32).cmp(&0)
    }
}

/// The comparisons of one pair of types, a value of the type on the left or on the right.
macro_rules! comparisons {
    ($($kind:ty: [$eq:ident $ne:ident $lt:ident $le:ident $gt:ident $ge:ident $cmp:ident]
                 [$eq_r:ident $ne_r:ident $lt_r:ident $le_r:ident $gt_r:ident $ge_r:ident $cmp_r:ident];)*) => {$(
        strict_functions! {
            fn $eq(a: u64, b: $kind) -> bool { b.against(a).is_eq() }
            fn $ne(a: u64, b: $kind) -> bool { b.against(a).is_ne() }
            fn $lt(a: u64, b: $kind) -> bool { b.against(a).is_gt() }
            fn $le(a: u64, b: $kind) -> bool { b.against(a).is_ge() }
            fn $gt(a: u64, b: $kind) -> bool { b.against(a).is_lt() }
            fn $ge(a: u64, b: $kind) -> bool { b.against(a).is_le() }
            fn $cmp(a: u64, b: $kind) -> i32 { b.against(a).reverse() as i32 }
            fn $eq_r(a: $kind, b: u64) -> bool { a.against(b).is_eq() }
            fn $ne_r(a: $kind, b: u64) -> bool { a.against(b).is_ne() }
            fn $lt_r(a: $kind, b: u64) -> bool { a.against(b).is_lt() }
            fn $le_r(a: $kind, b: u64) -> bool { a.against(b).is_le() }
            fn $gt_r(a: $kind, b: u64) -> bool { a.against(b).is_gt() }
            fn $ge_r(a: $kind, b: u64) -> bool { a.against(b).is_ge() }
            fn $cmp_r(a: $kind, b: u64) -> i32 { a.against(b) as i32 }
        }
    )*};
}

comparisons! {
    i16: [uint8_eq_int2 uint8_ne_int2 uint8_lt_int2 uint8_le_int2 uint8_gt_int2 uint8_ge_int2 uint8_cmp_int2]
         [int2_eq_uint8 int2_ne_uint8 int2_lt_uint8 int2_le_uint8 int2_gt_uint8 int2_ge_uint8 int2_cmp_uint8];
    i32: [uint8_eq_int4 uint8_ne_int4 uint8_lt_int4 uint8_le_int4 uint8_gt_int4 uint8_ge_int4 uint8_cmp_int4]
         [int4_eq_uint8 int4_ne_uint8 int4_lt_uint8 int4_le_uint8 int4_gt_uint8 int4_ge_uint8 int4_cmp_uint8];
    i64: [uint8_eq_int8 uint8_ne_int8 uint8_lt_int8 uint8_le_int8 uint8_gt_int8 uint8_ge_int8 uint8_cmp_int8]
         [int8_eq_uint8 int8_ne_uint8 int8_lt_uint8 int8_le_uint8 int8_gt_uint8 int8_ge_uint8 int8_cmp_uint8];
    Numeric: [uint8_eq_numeric uint8_ne_numeric uint8_lt_numeric uint8_le_numeric uint8_gt_numeric uint8_ge_numeric
              uint8_cmp_numeric]
             [numeric_eq_uint8 numeric_ne_uint8 numeric_lt_uint8 numeric_le_uint8 numeric_gt_uint8 numeric_ge_uint8
              numeric_cmp_uint8];
}

/// bigint's hash of a number that it has.
fn halves(value: u64) -> u32 {
    (value as u32) ^ ((value >> 32) as u32)
}

strict_functions! {
    fn uint8_eq(a: u64, b: u64) -> bool { a == b }
    fn uint8_ne(a: u64, b: u64) -> bool { a != b }
    fn uint8_lt(a: u64, b: u64) -> bool { a < b }
    fn uint8_le(a: u64, b: u64) -> bool { a <= b }
    fn uint8_gt(a: u64, b: u64) -> bool { a > b }
    fn uint8_ge(a: u64, b: u64) -> bool { a >= b }
    fn uint8_cmp(a: u64, b: u64) -> i32 { a.cmp(&b) as i32 }
    fn uint8_larger(a: u64, b: u64) -> u64 { a.max(b) }
    fn uint8_smaller(a: u64, b: u64) -> u64 { a.min(b) }

    fn uint8_hash(value: u64) -> u32 {
        // SAFETY: a function of its argument.
        unsafe { hash_bytes_uint32(halves(value)) }
    }
    fn uint8_hash_extended(value: u64, seed: u64) -> u64 {
        // SAFETY: a function of its arguments.
        unsafe { hash_bytes_uint32_extended(halves(value), seed) }
    }
    /// The hash of a numeric beside those of the type: of equal numbers the hashes are equal.
    fn uint8_hash_numeric(value: Numeric) -> u32 {
        match super::casts::whole(value) {
            // SAFETY: a function of its argument.
            Some(value) => unsafe { hash_bytes_uint32(halves(value)) },
            None => numeric_hash(pg_sys::F_HASH_NUMERIC, &[value.0]).value() as u32,
        }
    }
    fn uint8_hash_numeric_extended(value: Numeric, seed: u64) -> u64 {
        match super::casts::whole(value) {
            // SAFETY: a function of its arguments.
            Some(value) => unsafe { hash_bytes_uint32_extended(halves(value), seed) },
            None => numeric_hash(pg_sys::F_HASH_NUMERIC_EXTENDED, &[value.0, Datum::from(seed)]).value() as u64,
        }
    }

    /// The server compares Datums as unsigned numbers itself, which its sorts do without a call.
    fn uint8_sortsupport(support: Datum) -> Datum {
        // SAFETY: the server passes its own record.
        unsafe { (*support.cast_mut_ptr::<pg_sys::SortSupportData>()).comparator = Some(compare_datums) };
        Datum::null()
    }

    fn uint8_in_range(value: u64, base: u64, offset: u64, is_before: bool, is_less: bool) -> bool {
        in_range((value, base), offset.into(), is_before, is_less)
    }
    fn uint8_in_range_int2(value: u64, base: u64, offset: i16, is_before: bool, is_less: bool) -> bool {
        in_range((value, base), offset.into(), is_before, is_less)
    }
    fn uint8_in_range_int4(value: u64, base: u64, offset: i32, is_before: bool, is_less: bool) -> bool {
        in_range((value, base), offset.into(), is_before, is_less)
    }
    fn uint8_in_range_int8(value: u64, base: u64, offset: i64, is_before: bool, is_less: bool) -> bool {
        in_range((value, base), offset.into(), is_before, is_less)
    }
}

/// Whether a value is within `offset` of a base on the side that `is_before` says, as frames of windows ask.
fn in_range((value, base): (u64, u64), offset: i128, is_before: bool, is_less: bool) -> bool {
    if offset < 0 {
        error::raise(
            PgSqlErrorCode::ERRCODE_INVALID_PRECEDING_OR_FOLLOWING_SIZE,
            "invalid preceding or following size in window function",
            "",
            "",
        );
    }
    let (value, base) = (i128::from(value), i128::from(base));
    let border = if is_before { base - offset } else { base + offset };
    if is_less { value <= border } else { value >= border }
}

/// What the server's hash function of numeric gives.
fn numeric_hash(function: u32, arguments: &[Datum]) -> Datum {
    // SAFETY: the function takes a numeric, and the extended one a seed.
    unsafe {
        let function = Oid::from(function);
        match arguments {
            [value, seed] => pg_sys::OidFunctionCall2Coll(function, Oid::INVALID, *value, *seed),
            _ => pg_sys::OidFunctionCall1Coll(function, Oid::INVALID, arguments[0]),
        }
    }
}

unsafe extern "C-unwind" fn compare_datums(a: Datum, b: Datum, support: SortSupport) -> i32 {
    // SAFETY: the server's own comparison of two numbers.
    unsafe { pg_sys::ssup_datum_unsigned_cmp(a, b, support) }
}
