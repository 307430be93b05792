//! Hashes of rows, computed column by column.
//!
//! Equal values have equal hashes whatever vector they come in: constants, codes and runs hash as their
//! values, integers of all widths as 64 bits, floats with one zero and one NaN, decimals without the zeros at
//! their end, whatever their scale. So hashes may be compared between batches, sides of a join, threads and
//! spilled partitions. The mixing step is a 64 x 64 bit product folded to 64 bits, as in wyhash.

use std::sync::Arc;

use vector::{Bitmap, ByteView, ByteViews, NumericInts, NumericValues, Values, Vector};

use crate::{Error, Result};

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const STEP: u64 = 0xd6e8_feb8_6659_fd93;
const TEXT: u64 = 0xa076_1d64_78bd_642f;
/// What NULL hashes as.
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

/// Other bits of a hash, for spreading rows over parts: tables in which the rows of one part are looked up
/// have the highest and lowest bits of the hash itself for their places.
#[inline]
pub const fn spread(hash: u64) -> u64 {
    fold(hash ^ TEXT, SEED)
}

/// Hash of two integers, as that of a row.
#[inline]
pub const fn hash_pair(first: i64, second: i64) -> u64 {
    join::<false>(hash_int(first), hash_int(second))
}

/// Hash of a float: -0 as 0, one NaN.
#[inline]
pub fn hash_float(value: f64) -> u64 {
    let value = if value == 0.0 { 0.0 } else { value };
    hash_int(if value.is_nan() { f64::NAN } else { value }.to_bits() as i64)
}

/// Hash of a decimal, by its value.
#[inline]
pub fn hash_decimal(mut value: i128, mut scale: u16) -> u64 {
    if let Ok(mut narrow) = i64::try_from(value) {
        while scale > 0 && narrow % 10 == 0 && narrow != 0 {
            (narrow, scale) = (narrow / 10, scale - 1);
        }
        let scale = if narrow == 0 { 0 } else { scale };
        return fold(hash_int(narrow) ^ u64::from(scale), SEED);
    }
    while scale > 0 && value % 10 == 0 {
        (value, scale) = (value / 10, scale - 1);
    }
    let whole = match i64::try_from(value) {
        Ok(narrow) => hash_int(narrow),
        Err(_) => fold((value as u64) ^ SEED, ((value >> 64) as u64) ^ STEP),
    };
    fold(whole ^ u64::from(scale), SEED)
}

/// Hash of a byte string.
#[inline]
pub fn hash_bytes(value: &[u8]) -> u64 {
    if let Some(view) = ByteView::inline(value) {
        return hash_inline(view);
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
fn word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => bytes.iter().rev().fold(0, |word, &byte| (word << 8) | u64::from(byte)),
    }
}

/// A hash of a view itself: equal only for equal inline values.
#[inline]
pub fn hash_view(view: ByteView) -> u64 {
    hash_inline(view)
}

#[inline]
fn hash_inline(view: ByteView) -> u64 {
    let bits = view.inline_key();
    fold((bits as u64) ^ TEXT, ((bits >> 64) as u64) ^ SEED)
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

#[inline]
fn each<const FIRST: bool>(hashes: &mut [u64], valid: Option<&Bitmap>, values: impl Iterator<Item = u64>) {
    match valid {
        None => hashes.iter_mut().zip(values).for_each(|(hash, value)| *hash = join::<FIRST>(*hash, value)),
        Some(valid) => {
            for (row, (hash, value)) in hashes.iter_mut().zip(values).enumerate() {
                *hash = join::<FIRST>(*hash, if valid.get(row) { value } else { NULL });
            }
        }
    }
}

fn hash_views<const FIRST: bool>(views: &ByteViews, hashes: &mut [u64], valid: Option<&Bitmap>) {
    let values = views.views().iter().enumerate().map(|(row, view)| match view.place() {
        None => hash_inline(*view),
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
