//! The server's `numeric`.
//!
//! Layout (the header comment of `utils/adt/numeric.c`), behind the length word:
//! - A 16-bit header. Its two highest bits tell the forms apart. In the short form (10) the header holds the
//!   sign, six bits of display scale and seven bits of weight. In the long form (00 positive, 01 negative) it
//!   holds 14 bits of display scale, and 16 bits of weight follow. 11 stands for NaN and the infinities.
//! - The base-10000 digits, 16 bits each, the most significant first. The first one is worth 10000^weight.
//!   The server stores no zero digit at either end.
//!
//! The server uses the short form whenever it can.
//!
//! | file | owns |
//! | --- | --- |
//! | `decimal.rs` | numerics <-> decimals of up to 38 digits |
//! | `parse.rs` | numbers of JSON -> numerics |
//! | `small.rs` | numerics with their length word <-> 64-bit integers |
//! | `text.rs` | numerics as text, and whether two are the same value |
//!
//! Called by the hosts' conversions, by `jsonb` and by the template encoding of `encodings`.
//!
//! Invariant: [`Parts::read`] is the only reader of the header.

mod decimal;
mod parse;
pub mod small;
mod text;

pub use decimal::{MAX_ENCODED, decode, encode, to_side};
pub use parse::append;
pub use text::{is_same, write_text};

use vector::Special;

use crate::words::u16_at;

/// Base of the stored digits.
const BASE: u64 = 10_000;
/// Decimal digits in one stored digit.
const DIGIT_WIDTH: u16 = 4;
/// The powers of ten by which decimals and the border of a stored digit may be apart.
const POWERS: [u64; DIGIT_WIDTH as usize] = [1, 10, 100, 1000];

const SIGN_MASK: u16 = 0xC000;
const NEGATIVE: u16 = 0x4000;
const SHORT: u16 = 0x8000;
const SPECIAL: u16 = 0xC000;
const SHORT_NEGATIVE: u16 = 0x2000;
const SHORT_SCALE_SHIFT: u32 = 7;
const SHORT_SCALE_MAX: u16 = 0x3F;
const SHORT_WEIGHT_BITS: u16 = 0x7F;
const SHORT_WEIGHT_SIGN: u16 = 0x40;
const LONG_SCALE_MASK: u16 = 0x3FFF;

/// A numeric that is neither NaN nor infinite.
struct Parts<'a> {
    is_short: bool,
    negative: bool,
    weight: i32,
    display: u16,
    digits: &'a [u8],
}

impl<'a> Parts<'a> {
    /// The parts of a numeric without its length word. None for damaged bytes, NaN and infinities.
    #[inline]
    fn read(payload: &'a [u8]) -> Option<Self> {
        let header = u16_at(payload, 0)?;
        match header & SIGN_MASK {
            SPECIAL => None,
            SHORT => {
                // Seven bits of weight in two's complement.
                let bits = header & SHORT_WEIGHT_BITS;
                let weight = i32::from(bits) - i32::from(bits & SHORT_WEIGHT_SIGN) * 2;
                Some(Self {
                    is_short: true,
                    negative: header & SHORT_NEGATIVE != 0,
                    weight,
                    display: (header >> SHORT_SCALE_SHIFT) & SHORT_SCALE_MAX,
                    digits: payload.get(2..)?,
                })
            }
            sign => Some(Self {
                is_short: false,
                negative: sign == NEGATIVE,
                weight: i32::from(u16_at(payload, 2)?.cast_signed()),
                display: header & LONG_SCALE_MASK,
                digits: payload.get(4..)?,
            }),
        }
    }
}

impl<'a> Parts<'a> {
    /// The digits. None if the server would not store them so: half a digit, or a zero digit at an end.
    #[inline]
    fn chunks(&self) -> Option<&'a [[u8; 2]]> {
        let (chunks, rest) = self.digits.as_chunks::<2>();
        let is_zero = |end: Option<&[u8; 2]>| end == Some(&[0, 0]);
        (rest.is_empty() && !is_zero(chunks.first()) && !is_zero(chunks.last())).then_some(chunks)
    }
}

/// Whether a server may be given these bytes as a numeric: a number of whole digits, or one of the special
/// values. They may be in a form that the server itself would not write.
pub fn is_sound(payload: &[u8]) -> bool {
    match Parts::read(payload) {
        Some(Parts { digits, .. }) => {
            let (chunks, rest) = digits.as_chunks::<2>();
            rest.is_empty() && chunks.iter().all(|chunk| digit(*chunk).is_some())
        }
        None => Special::of(payload).is_some(),
    }
}

/// A stored digit. None if it is not a digit of base 10000.
#[inline]
fn digit(chunk: [u8; 2]) -> Option<u64> {
    let digit = u64::from(u16::from_le_bytes(chunk));
    (digit < BASE).then_some(digit)
}

/// The most digits that [`narrow`] takes. Any more may not fit 64 bits.
const NARROW: usize = 4;

/// The number that up to [`NARROW`] digits make.
#[inline]
fn narrow(chunks: &[[u8; 2]]) -> Option<u64> {
    let mut number = 0u64;
    for chunk in chunks {
        number = number * BASE + digit(*chunk)?;
    }
    Some(number)
}

/// Whether the server writes the short form for this display scale and weight.
#[inline]
fn fits_short(display: u16, weight: i32) -> bool {
    display <= SHORT_SCALE_MAX && (-64..=63).contains(&weight)
}
