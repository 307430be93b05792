//! `engine.uint8` as text and in binary form.
//!
//! What is understood is what the server understands of a bigint since version 16: digits in one of four
//! bases, with single underscores between them, and blanks around.

use std::ffi::{CStr, CString, c_char, c_int};

use pgrx::pg_sys::{self, Datum, FunctionCallInfo};

use crate::compat;
use crate::convert::varlena;
use crate::host::error::{self, PgSqlErrorCode};
use crate::host::fmgr;

/// What is wrong with a text.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    Syntax,
    Range,
}

/// The number that a text is.
fn parse(text: &[u8]) -> Result<u64, Fault> {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0B;
    let start = text.iter().position(|byte| !is_blank(byte)).ok_or(Fault::Syntax)?;
    let end = text.iter().rposition(|byte| !is_blank(byte)).map_or(text.len(), |last| last + 1);
    let text = text.get(start..end).unwrap_or_default();
    let (is_negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (base, digits) = match text {
        [b'0', b'x' | b'X', rest @ ..] => (16, rest),
        [b'0', b'o' | b'O', rest @ ..] => (8, rest),
        [b'0', b'b' | b'B', rest @ ..] => (2, rest),
        _ => (10, text),
    };
    // After a prefix an underscore may stand before the first digit.
    let digits = match digits {
        [b'_', rest @ ..] if base != 10 => rest,
        _ => digits,
    };
    let mut value = Some(0_u64);
    let mut after_digit = false;
    for &byte in digits {
        if byte == b'_' && after_digit {
            after_digit = false;
            continue;
        }
        let digit = char::from(byte).to_digit(base).ok_or(Fault::Syntax)?;
        value = value.and_then(|value| value.checked_mul(base.into())?.checked_add(digit.into()));
        after_digit = true;
    }
    match value {
        _ if !after_digit => Err(Fault::Syntax),
        Some(value) if value == 0 || !is_negative => Ok(value),
        _ => Err(Fault::Range),
    }
}

crate::sql_function!(pg_finfo_uint8_in);
crate::sql_function!(pg_finfo_uint8_out);
crate::sql_function!(pg_finfo_uint8_recv);
crate::sql_function!(pg_finfo_uint8_send);

/// `uint8_in(cstring)`.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn uint8_in(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; the argument is a terminated string.
    unsafe {
        let text = CStr::from_ptr(super::call::argument(call, 0).cast_mut_ptr());
        match parse(text.to_bytes()) {
            Ok(value) => Datum::from(value),
            Err(fault) => {
                let text = text.to_string_lossy();
                let (code, message) = match fault {
                    Fault::Syntax => (
                        PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION,
                        format!("invalid input syntax for type uint8: \"{text}\""),
                    ),
                    Fault::Range => (
                        PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                        format!("value \"{text}\" is out of range for type uint8"),
                    ),
                };
                let told = CString::new(message.clone()).unwrap_or_default();
                if !compat::note_error(call, code, &told) {
                    error::raise(code, message, "", "")
                }
                fmgr::return_null(call)
            }
        }
    }
}

/// `uint8_out(engine.uint8)`.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn uint8_out(call: FunctionCallInfo) -> Datum {
    const MOST_DIGITS: usize = 20;
    unsafe extern "C-unwind" {
        // Bare, as it raises nothing and is called for each value that is shown.
        fn pg_ulltoa_n(value: u64, digits: *mut c_char) -> c_int;
    }
    let mut text = [0 as c_char; MOST_DIGITS];
    // SAFETY: the server's call frame; no number of 64 bits has more digits; the memory has room for the text
    // and the zero at its end.
    unsafe {
        let value = super::call::argument(call, 0).value() as u64;
        let len = pg_ulltoa_n(value, text.as_mut_ptr()) as usize;
        let place = pg_sys::palloc(len + 1).cast::<c_char>();
        std::ptr::copy_nonoverlapping(text.as_ptr(), place, len);
        *place.add(len) = 0;
        Datum::from(place)
    }
}

/// `uint8_recv(internal)`: eight bytes, the highest first.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn uint8_recv(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; the argument is a buffer of the server's.
    unsafe { Datum::from(pg_sys::pq_getmsgint64(super::call::argument(call, 0).cast_mut_ptr()) as u64) }
}

/// `uint8_send(engine.uint8)`.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn uint8_send(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame.
    let value = unsafe { super::call::argument(call, 0) }.value() as u64;
    varlena::allocate(&value.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::{Fault, parse};

    #[test]
    fn texts_are_numbers_as_the_servers_own_are() {
        for (text, value) in [
            ("0", 0),
            (" \t18446744073709551615\n", u64::MAX),
            ("+5", 5),
            ("-0", 0),
            ("007", 7),
            ("1_000_000", 1_000_000),
            ("0xFFFF_FFFF_FFFF_FFFF", u64::MAX),
            ("0x_ff", 255),
            ("0o17", 15),
            ("0B101", 5),
        ] {
            assert_eq!(parse(text.as_bytes()), Ok(value), "{text}");
        }
        for text in [
            "", " ", "-", "+", "x", "5 6", "1__0", "1_", "_1", "0x", "0x_", "0b2", "1.0", "1e3", "--1", "+-1",
        ] {
            assert_eq!(parse(text.as_bytes()), Err(Fault::Syntax), "{text}");
        }
        for text in ["18446744073709551616", "-1", "99999999999999999999999", "0x1_0000_0000_0000_0000"] {
            assert_eq!(parse(text.as_bytes()), Err(Fault::Range), "{text}");
        }
        // Syntax comes before range.
        assert_eq!(parse(b"99999999999999999999999x"), Err(Fault::Syntax));
    }
}
