//! Hashes of values and of rows: the only hash function of this crate.
//!
//! Called by everything that finds rows or values by value: tables of groups (`row_container`), tables of
//! joins (`operators/join`), partitions in files, and lists of IN (`expression/in_list`). Rows are hashed
//! column by column. Equal values have equal hashes in every kind of vector:
//! - constants, codes and runs hash as their values;
//! - integers of all widths hash as 64 bits;
//! - floats hash with one zero and one NaN;
//! - decimals of any scale hash without the zeros at their end.
//!
//! So hashes may be compared between batches, sides of a join, threads and spilled partitions. The mixing
//! step is a 64 x 64 bit product folded to 64 bits, as in wyhash.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use vector::{Bitmap, ByteView, ByteViews, NumericInts, NumericValues, Values, Vector};

use crate::{Error, Result};

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const STEP: u64 = 0xd6e8_feb8_6659_fd93;
const TEXT: u64 = 0xa076_1d64_78bd_642f;
/// The hash of NULL.
const NULL: u64 = 0x8ebc_6af0_9c88_c6e3;

/// Folds the product of two numbers.
#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let product = (a as u128) * (b as u128);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Hash of an integer of any width.
#[inline]
pub const fn hash_int(value: i64) -> u64 {
    fold((value as u64) ^ SEED, STEP)
}

/// Other bits of a hash, for spreading rows over parts. The tables of each part use the highest and lowest
/// bits of the hash itself for their places.
#[inline]
pub const fn spread(hash: u64) -> u64 {
    fold(hash ^ TEXT, SEED)
}

/// Hash of two integers, as that of a row.
#[inline]
pub const fn hash_pair(first: i64, second: i64) -> u64 {
    join::<false>(hash_int(first), hash_int(second))
}

/// Bits that are equal for equal floats: -0 has those of 0, and all NaNs have the same.
#[inline]
pub const fn float_bits(value: f64) -> i64 {
    let value = if value.is_nan() { f64::NAN } else { value + 0.0 };
    value.to_bits().cast_signed()
}

/// Hash of a float, by its value.
#[inline]
pub const fn hash_float(value: f64) -> u64 {
    hash_int(float_bits(value))
}

/// A decimal without the zeros at the end of its fraction: equal decimals have the same value and scale then.
#[inline]
pub fn without_zeros(mut value: i128, mut scale: u16) -> (i128, u16) {
    if let Ok(mut narrow) = i64::try_from(value) {
        while scale > 0 && narrow % 10 == 0 && narrow != 0 {
            (narrow, scale) = (narrow / 10, scale - 1);
        }
        return (narrow.into(), if narrow == 0 { 0 } else { scale });
    }
    while scale > 0 && value % 10 == 0 {
        (value, scale) = (value / 10, scale - 1);
    }
    (value, scale)
}

/// Hash of a decimal, by its value.
#[inline]
pub fn hash_decimal(value: i128, scale: u16) -> u64 {
    let (value, scale) = without_zeros(value, scale);
    let whole = match i64::try_from(value) {
        Ok(narrow) => hash_int(narrow),
        Err(_) => hash_wide(value.cast_unsigned()),
    };
    fold(whole ^ u64::from(scale), SEED)
}

/// Hash of a byte string.
#[inline]
pub fn hash_bytes(value: &[u8]) -> u64 {
    if let Some(view) = ByteView::inline(value) {
        return hash_view(view);
    }
    let mut hash = (value.len() as u64) ^ SEED;
    let mut chunks = value.chunks_exact(16);
    for chunk in &mut chunks {
        hash = fold(hash ^ word(chunk), word(chunk.get(8..).unwrap_or(&[])) ^ TEXT);
    }
    let rest = chunks.remainder();
    fold(hash ^ word(rest), word(rest.get(8..).unwrap_or(&[])) ^ STEP)
}

/// The first eight bytes as a number, zero-padded.
#[inline]
pub fn word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => bytes.iter().rev().fold(0, |word, &byte| (word << 8) | u64::from(byte)),
    }
}

/// Hash of 128 bits.
#[inline]
pub const fn hash_wide(bits: u128) -> u64 {
    fold((bits as u64) ^ TEXT, ((bits >> 64) as u64) ^ SEED)
}

/// A hash of a view itself: equal only for equal inline values.
#[inline]
pub fn hash_view(view: ByteView) -> u64 {
    hash_wide(view.inline_key())
}

/// A hasher for the standard library's sets and maps, for values that no user can choose so that they
/// collide. The first word written hashes as `hash_int` of it.
#[derive(Debug, Default)]
pub struct ValueHasher(u64);

/// Makes hashers for a set or map.
pub type BuildValueHasher = BuildHasherDefault<ValueHasher>;

impl Hasher for ValueHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.write_u64(hash_bytes(bytes));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = fold(self.0.rotate_left(29) ^ value ^ SEED, STEP);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    #[inline]
    fn write_i64(&mut self, value: i64) {
        self.write_u64(value.cast_unsigned());
    }

    #[inline]
    fn write_u16(&mut self, value: u16) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_i128(&mut self, value: i128) {
        self.write_u64(hash_wide(value.cast_unsigned()));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Brings a column's hash into that of a row, which the first column's starts.
#[inline]
const fn join<const FIRST: bool>(row: u64, column: u64) -> u64 {
    if FIRST { column } else { fold(row.rotate_left(29) ^ column, STEP) }
}

/// Hashes of `rows` rows of these columns (of that length). Without columns all rows hash alike.
///
/// # Errors
/// `Decline` for decimals in a side lane.
pub fn hash_rows(columns: &[Arc<Vector>], rows: usize, hashes: &mut Vec<u64>) -> Result<()> {
    hashes.clear();
    hashes.resize(rows, 0);
    for (at, column) in columns.iter().enumerate() {
        if at == 0 {
            hash_column::<true>(column, hashes)?;
        } else {
            hash_column::<false>(column, hashes)?;
        }
    }
    Ok(())
}

fn hash_column<const FIRST: bool>(column: &Vector, hashes: &mut [u64]) -> Result<()> {
    let valid = column.validity.as_ref();
    match &column.values {
        Values::Bool(bits) => each::<FIRST>(hashes, valid, bits.iter().map(|bit| hash_int(i64::from(bit)))),
        Values::Int16(v) => each::<FIRST>(hashes, valid, v.iter().map(|&v| hash_int(i64::from(v)))),
        Values::Int32(v) => each::<FIRST>(hashes, valid, v.iter().map(|&v| hash_int(i64::from(v)))),
        Values::Int64(v) => each::<FIRST>(hashes, valid, v.iter().map(|&v| hash_int(v))),
        Values::Float32(v) => each::<FIRST>(hashes, valid, v.iter().map(|&v| hash_float(f64::from(v)))),
        Values::Float64(v) => each::<FIRST>(hashes, valid, v.iter().map(|&v| hash_float(v))),
        Values::Fixed(fixed) => {
            each::<FIRST>(hashes, valid, fixed.bytes.chunks_exact(fixed.width.max(1)).map(hash_bytes));
        }
        Values::Bytes(views) => hash_views::<FIRST>(views, hashes, valid),
        Values::Numeric(numeric) => hash_numerics::<FIRST>(numeric, hashes, valid)?,
        Values::Constant(value, _) => {
            let mut one = [0];
            hash_column::<true>(value, &mut one)?;
            let [one] = one;
            each::<FIRST>(hashes, valid, std::iter::repeat(one));
        }
        Values::Dictionary { codes, dictionary } if dictionary.entries.len() <= codes.len() => {
            let mut entries = vec![0; dictionary.entries.len()];
            hash_column::<true>(&dictionary.entries, &mut entries)?;
            let codes = codes.iter().map(|&code| entries.get(code as usize).copied().unwrap_or(NULL));
            each::<FIRST>(hashes, valid, codes);
        }
        Values::Dictionary { .. } | Values::Runs { .. } => {
            hash_column::<FIRST>(&column.clone().flatten(), hashes)?;
        }
    }
    Ok(())
}

/// Brings a column's hashes, `values`, into those of rows; NULL where `valid` says so.
#[inline]
pub fn each<const FIRST: bool>(
    hashes: &mut [u64],
    valid: Option<&Bitmap>,
    values: impl Iterator<Item = u64>,
) {
    match valid {
        None => hashes.iter_mut().zip(values).for_each(|(hash, value)| *hash = join::<FIRST>(*hash, value)),
        Some(valid) => {
            for (row, (hash, value)) in hashes.iter_mut().zip(values).enumerate() {
                *hash = join::<FIRST>(*hash, if valid.get(row) { value } else { NULL });
            }
        }
    }
}

/// Brings the hashes of byte strings into those of rows.
pub fn hash_views<const FIRST: bool>(views: &ByteViews, hashes: &mut [u64], valid: Option<&Bitmap>) {
    let values = views.views().iter().enumerate().map(|(row, view)| match view.place() {
        None => hash_view(*view),
        Some(_) => hash_bytes(views.get(row)),
    });
    each::<FIRST>(hashes, valid, values);
}

fn hash_numerics<const FIRST: bool>(
    numeric: &NumericValues,
    hashes: &mut [u64],
    valid: Option<&Bitmap>,
) -> Result<()> {
    let scale = numeric.scale;
    if !numeric.side.is_empty() {
        let specials = numeric.specials().ok_or(Error::Decline("numeric outside 128 bits"))?;
        let mut values: Vec<u64> =
            (0..numeric.len()).map(|row| hash_decimal(numeric.ints.get(row), scale)).collect();
        for (row, special) in specials {
            if let Some(value) = values.get_mut(row as usize) {
                *value = hash_int(i64::MIN + special as i64);
            }
        }
        each::<FIRST>(hashes, valid, values.into_iter());
        return Ok(());
    }
    match &numeric.ints {
        NumericInts::Int32(v) => {
            each::<FIRST>(hashes, valid, v.iter().map(|&v| hash_decimal(i128::from(v), scale)));
        }
        NumericInts::Int64(v) => {
            each::<FIRST>(hashes, valid, v.iter().map(|&v| hash_decimal(i128::from(v), scale)));
        }
        NumericInts::Int128(v) => each::<FIRST>(hashes, valid, v.iter().map(|&v| hash_decimal(v, scale))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use vector::{Dictionary, DisplayScales, LogicalType};

    fn hashes(column: Vector) -> Vec<u64> {
        let rows = column.len();
        let mut hashes = Vec::new();
        hash_rows(&[Arc::new(column)], rows, &mut hashes).unwrap();
        hashes
    }

    fn decimals(ints: NumericInts, scale: u16) -> Vector {
        let display = DisplayScales::Constant(scale);
        Vector::new(
            LogicalType::Numeric,
            Values::Numeric(NumericValues { ints, scale, display, side: Vec::new() }),
        )
    }

    #[test]
    fn equal_values_hash_alike_in_every_form() {
        let words: ByteViews =
            [b"short".as_slice(), b"a text longer than a view holds", b"short"].into_iter().collect();
        let plain = hashes(Vector::new(LogicalType::Text, Values::Bytes(words.clone())));
        assert_eq!(plain.first(), plain.get(2));
        let entries = Vector::new(LogicalType::Text, Values::Bytes(words.take(&[1, 0])));
        let dictionary = Arc::new(Dictionary { id: 1, entries: entries.clone() });
        let coded = Values::Dictionary { codes: vec![1, 0, 1], dictionary };
        assert_eq!(hashes(Vector::new(LogicalType::Text, coded)), plain);
        let runs = Values::Runs { ends: vec![2, 3], values: Box::new(entries) };
        assert_eq!(hashes(Vector::new(LogicalType::Text, runs))[1..], [plain[1], plain[0]]);
        assert_eq!(hash_int(7), hashes(Vector::new(LogicalType::Int16, Values::Int16(vec![7])))[0]);
    }

    #[test]
    fn decimals_and_floats_hash_by_value() {
        let narrow = hashes(decimals(NumericInts::Int32(vec![150, 0, -7]), 2));
        let wide =
            hashes(decimals(NumericInts::Int128(vec![15 * 10i128.pow(20), 0, -7 * 10i128.pow(19)]), 21));
        assert_eq!(narrow, wide);
        assert_ne!(hash_decimal(15, 1), hash_decimal(15, 2));
        assert_eq!(hash_float(-0.0), hash_float(0.0));
        assert_eq!(hash_float(f64::NAN), hash_float(-f64::NAN));
    }

    #[test]
    fn nulls_hash_alike_and_long_texts_differ_anywhere() {
        let mut column = Vector::new(LogicalType::Int64, Values::Int64(vec![1, 2]));
        column.validity = Some(Bitmap::filled(2, false));
        let both = hashes(column);
        assert_eq!(both[0], both[1]);
        let text = vec![b'x'; 45];
        for at in 0..45 {
            let mut other = text.clone();
            other[at] = b'y';
            assert_ne!(hash_bytes(&text), hash_bytes(&other), "{at}");
        }
    }
}
