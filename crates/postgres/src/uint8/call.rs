//! From the server's calls to Rust functions of numbers, and back.

use pgrx::pg_sys::{Datum, FunctionCallInfo};
use server_bytes::numeric;
use vector::Decimal;

use crate::convert::varlena;

/// What a function takes from a Datum.
pub trait Argument: Sized {
    /// # Safety
    /// The Datum is a value of the type that the SQL declaration names.
    unsafe fn of(datum: Datum) -> Self;
}

/// What a function gives.
pub trait Outcome {
    /// The Datum of a value.
    fn datum(self) -> Datum;
}

/// A value of the server's `numeric`, as it is passed.
#[derive(Clone, Copy)]
pub struct Numeric(pub Datum);

macro_rules! by_value {
    ($($kind:ty: $from:expr, $to:expr;)*) => {$(
        impl Argument for $kind {
            unsafe fn of(datum: Datum) -> Self {
                ($from)(datum.value() as u64)
            }
        }
        impl Outcome for $kind {
            fn datum(self) -> Datum {
                ($to)(self)
            }
        }
    )*};
}

// A Datum holds a narrow value in its low bytes, and those above are not defined.
by_value! {
    u64: |bits| bits, Datum::from;
    i64: |bits: u64| bits as i64, Datum::from;
    i32: |bits: u64| bits as i32, Datum::from;
    i16: |bits: u64| bits as i16, Datum::from;
    u32: |bits: u64| bits as u32, Datum::from;
    f64: |bits: u64| f64::from_bits(bits), |value: f64| Datum::from(value.to_bits());
    f32: |bits: u64| f32::from_bits(bits as u32), |value: f32| Datum::from(value.to_bits());
    bool: |bits: u64| bits as u8 != 0, Datum::from;
}

impl Argument for Datum {
    unsafe fn of(datum: Datum) -> Self {
        datum
    }
}

impl Outcome for Datum {
    fn datum(self) -> Datum {
        self
    }
}

impl Argument for Numeric {
    unsafe fn of(datum: Datum) -> Self {
        Self(datum)
    }
}

impl Outcome for Numeric {
    fn datum(self) -> Datum {
        self.0
    }
}

impl From<i128> for Numeric {
    /// In the memory that is current.
    fn from(value: i128) -> Self {
        let mut payload = [0; numeric::MAX_ENCODED];
        let len = numeric::encode(Decimal { unscaled: value, scale: 0, display: 0 }, &mut payload);
        Self(varlena::allocate(payload.get(..len).unwrap_or_default()))
    }
}

/// An argument of a strict function.
///
/// # Safety
/// The server's call frame; the SQL declares at least `n + 1` arguments, and is STRICT.
pub unsafe fn argument(call: FunctionCallInfo, n: usize) -> Datum {
    // SAFETY: the caller's promise.
    unsafe { (*call).args.as_slice(n + 1)[n].value }
}

/// SQL functions, which the extension's SQL declares as STRICT under the same names.
macro_rules! strict_functions {
    ($($(#[doc = $doc:literal])* fn $name:ident($($argument:ident: $kind:ty),* $(,)?) -> $result:ty $body:block)*) => {$(
        const _: () = {
            #[unsafe(export_name = concat!("pg_finfo_", stringify!($name)))]
            extern "C" fn info() -> *const pgrx::pg_sys::Pg_finfo_record {
                use pgrx::pg_sys::Pg_finfo_record;
                static RECORD: Pg_finfo_record = Pg_finfo_record { api_version: 1 };
                &RECORD
            }

            $(#[doc = $doc])*
            #[unsafe(export_name = stringify!($name))]
            #[pgrx::pg_guard]
            unsafe extern "C-unwind" fn call(call: pgrx::pg_sys::FunctionCallInfo) -> pgrx::pg_sys::Datum {
                let mut position = 0..;
                $(
                    // SAFETY: the server's call frame, as the SQL declares it.
                    let $argument = unsafe {
                        let datum = $crate::uint8::call::argument(call, position.next().unwrap_or(0));
                        <$kind as $crate::uint8::call::Argument>::of(datum)
                    };
                )*
                let result: $result = $body;
                $crate::uint8::call::Outcome::datum(result)
            }
        };
    )*};
}
pub(super) use strict_functions;
