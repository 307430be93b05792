//! The order of kept rows: which row comes first, second, ...
//!
//! The first keys of a row are packed into one integer that orders as they do:
//! - a column takes as many bits as the range of its values in these rows needs, with one value more for
//!   NULL;
//! - text gives its first bytes, or its rank where few texts differ (`ranks`);
//! - the bits of a descending key are inverted.
//!
//! Rows are sorted by this integer. Only rows with the same integer are compared by value, in the keys that
//! did not fit. Rows that are equal in all keys stay in the order they came.

use std::cmp::Ordering;
use std::sync::Arc;

use vector::{NumericValues, Special, Values, Vector, compare_decimals, compare_floats};

use super::pieces::{self, QUICK, SLOW};
use super::ranks::ranks;
use crate::row_container::{Integers, ValueColumn, float_order};
use crate::{Result, TextOrder, interrupt};

/// How one column of the rows orders them.
#[derive(Debug, Clone)]
pub struct Key {
    /// Position of the column.
    pub column: usize,
    /// Greatest first.
    pub descending: bool,
    /// NULLs before everything else.
    pub nulls_first: bool,
    /// How text compares.
    pub order: TextOrder,
}

impl Key {
    /// The order of two rows by this key.
    pub fn compare(&self, columns: &[ValueColumn], a: usize, b: usize) -> Ordering {
        let Some(column) = columns.get(self.column) else { return Ordering::Equal };
        let nulls = |null| if null == self.nulls_first { Ordering::Less } else { Ordering::Greater };
        match (column.is_null(a), column.is_null(b)) {
            (true, true) => Ordering::Equal,
            (true, false) => nulls(true),
            (false, true) => nulls(false),
            (false, false) => {
                let order = column.order(a, b, &self.order);
                if self.descending { order.reverse() } else { order }
            }
        }
    }
}

/// The order of two rows by the given keys.
pub fn compare(keys: &[Key], columns: &[ValueColumn], a: usize, b: usize) -> Ordering {
    keys.iter().map(|key| key.compare(columns, a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Whether a flat vector holds decimals outside 128 bits, which only a kept column (`ValueColumn`) tells of,
/// by declining: they have no place in `compare_vectors`.
pub fn holds_wide(vector: &Vector) -> bool {
    match &vector.values {
        Values::Numeric(values) => values.side.iter().any(|(_, bytes)| Special::of(bytes).is_none()),
        _ => false,
    }
}

/// The order of two rows of flat vectors without decimals outside 128 bits (`holds_wide`).
pub fn compare_vectors(
    keys: &[Key],
    (a, a_row): (&[Arc<Vector>], usize),
    (b, b_row): (&[Arc<Vector>], usize),
) -> Ordering {
    for key in keys {
        let (Some(a), Some(b)) = (a.get(key.column), b.get(key.column)) else { continue };
        let nulls = |null| if null == key.nulls_first { Ordering::Less } else { Ordering::Greater };
        let order = match (a.is_valid(a_row), b.is_valid(b_row)) {
            (false, false) => Ordering::Equal,
            (false, true) => nulls(true),
            (true, false) => nulls(false),
            (true, true) => {
                let order = value_order(a, a_row, b, b_row, &key.order);
                if key.descending { order.reverse() } else { order }
            }
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// The order of two values that are not NULL, of flat vectors of one type.
fn value_order(a: &Vector, i: usize, b: &Vector, j: usize, text: &TextOrder) -> Ordering {
    match (&a.values, &b.values) {
        (Values::Bool(a), Values::Bool(b)) => a.get(i).cmp(&b.get(j)),
        (Values::Int16(a), Values::Int16(b)) => a[i].cmp(&b[j]),
        (Values::Int32(a), Values::Int32(b)) => a[i].cmp(&b[j]),
        (Values::Int64(a), Values::Int64(b)) => a[i].cmp(&b[j]),
        (Values::Float32(a), Values::Float32(b)) => compare_floats(a[i].into(), b[j].into()),
        (Values::Float64(a), Values::Float64(b)) => compare_floats(a[i], b[j]),
        (Values::Fixed(a), Values::Fixed(b)) => a.get(i).cmp(b.get(j)),
        (Values::Bytes(a), Values::Bytes(b)) => text.compare(a.get(i), b.get(j)),
        (Values::Numeric(a), Values::Numeric(b)) => {
            if a.side.is_empty() && b.side.is_empty() {
                return compare_decimals(a.ints.get(i), a.scale, b.ints.get(j), b.scale);
            }
            // What is no number, and where it is among numbers.
            let rank = |of: &NumericValues, row| {
                let special = of.side_value(row).and_then(Special::of);
                special.map_or(
                    1,
                    |special| if special == Special::NegativeInfinity { 0 } else { 1 + special as u8 },
                )
            };
            let (of_a, of_b) = (rank(a, i), rank(b, j));
            let numbers = || compare_decimals(a.ints.get(i), a.scale, b.ints.get(j), b.scale);
            of_a.cmp(&of_b).then_with(|| if of_a == 1 { numbers() } else { Ordering::Equal })
        }
        _ => Ordering::Equal,
    }
}

/// The first keys of all rows, packed.
struct Packed {
    values: Vec<u128>,
    /// Bits used, from the lowest.
    bits: u32,
    /// Keys that are in there wholly: rows that agree need to be compared only from this one on.
    whole: usize,
}

/// The positions of all `rows` rows in order; only the first `wanted` need to be right.
pub fn order(keys: &[Key], columns: &[ValueColumn], rows: usize, wanted: usize) -> Result<Vec<u32>> {
    let packed = pack(keys, columns, rows, wanted)?;
    let rest = keys.get(packed.whole..).unwrap_or(&[]);
    if packed.bits <= 32 && wanted >= rows {
        let entries = packed.values.iter().zip(0u64..).map(|(&value, row)| (value as u64) << 32 | row);
        return by_digits(entries.collect(), packed.bits, rest, columns);
    }
    if packed.bits <= 64 {
        let narrow = packed.values.iter().map(|&value| value as u64);
        sorted(narrow.zip(0u32..).collect(), rest, columns, wanted)
    } else {
        sorted(packed.values.into_iter().zip(0u32..).collect(), rest, columns, wanted)
    }
}

/// Bits that one pass of `by_digits` sorts by.
const DIGIT: u32 = 11;

/// The positions in the low halves of the entries, in the order of the high halves. Only the lowest `bits` of
/// the high halves are used. The sort goes pass by pass from the lowest digit; each pass keeps the order of
/// the one before.
fn by_digits(mut entries: Vec<u64>, bits: u32, rest: &[Key], columns: &[ValueColumn]) -> Result<Vec<u32>> {
    let mut other = vec![0; entries.len()];
    for shift in (32..32 + bits).step_by(DIGIT as usize) {
        let digit = |entry: u64| (entry >> shift) as usize & ((1 << DIGIT) - 1);
        let mut places = [0usize; 1 << DIGIT];
        entries.iter().for_each(|&entry| places[digit(entry)] += 1);
        let mut next = 0;
        for place in &mut places {
            next += std::mem::replace(place, next);
        }
        for some in entries.chunks(interrupt::OFTEN) {
            interrupt::check()?;
            for &entry in some {
                let place = &mut places[digit(entry)];
                other[*place] = entry;
                *place += 1;
            }
        }
        std::mem::swap(&mut entries, &mut other);
    }
    drop(other);
    if !rest.is_empty() {
        let by_value = |a: &u64, b: &u64| {
            compare(rest, columns, *a as u32 as usize, *b as u32 as usize).then_with(|| a.cmp(b))
        };
        for equal in entries.chunk_by_mut(|a, b| a >> 32 == b >> 32).filter(|equal| equal.len() > 1) {
            pieces::sort(equal, equal.len(), SLOW, &by_value)?;
        }
    }
    Ok(entries.into_iter().map(|entry| entry as u32).collect())
}

fn sorted<K: Ord + Copy>(
    mut entries: Vec<(K, u32)>,
    rest: &[Key],
    columns: &[ValueColumn],
    wanted: usize,
) -> Result<Vec<u32>> {
    let by_value = |a: &(K, u32), b: &(K, u32)| {
        a.0.cmp(&b.0)
            .then_with(|| compare(rest, columns, a.1 as usize, b.1 as usize))
            .then_with(|| a.1.cmp(&b.1))
    };
    if rest.is_empty() {
        pieces::sort(&mut entries, wanted, QUICK, &Ord::cmp)?;
    } else {
        pieces::sort(&mut entries, wanted, SLOW, &by_value)?;
    }
    entries.truncate(wanted);
    Ok(entries.into_iter().map(|(_, row)| row).collect())
}

fn pack(keys: &[Key], columns: &[ValueColumn], rows: usize, wanted: usize) -> Result<Packed> {
    let mut packed = Packed { values: vec![0; rows], bits: 0, whole: 0 };
    for key in keys {
        let Some(column) = columns.get(key.column) else { break };
        let room = 128 - packed.bits;
        let whole = match column.integers() {
            Some(Integers::Bool(values)) => packed.integers(key, column, room, |at| i128::from(values[at])),
            Some(Integers::Int16(values)) => packed.integers(key, column, room, |at| i128::from(values[at])),
            Some(Integers::Int32(values)) => packed.integers(key, column, room, |at| i128::from(values[at])),
            Some(Integers::Int64(values)) => packed.integers(key, column, room, |at| i128::from(values[at])),
            Some(Integers::Int128(values)) => packed.integers(key, column, room, |at| values[at]),
            Some(Integers::Float32(values)) => {
                packed.integers(key, column, room, |at| i128::from(float_order(values[at].into())))
            }
            Some(Integers::Float64(values)) => {
                packed.integers(key, column, room, |at| i128::from(float_order(values[at])))
            }
            None => packed.texts(key, column, room, wanted),
        };
        if !whole? {
            break;
        }
        packed.whole += 1;
    }
    Ok(packed)
}

impl Packed {
    /// Appends a column of integers. False where it did not fit and was left out.
    fn integers(
        &mut self,
        key: &Key,
        column: &ValueColumn,
        room: u32,
        value: impl Fn(usize) -> i128,
    ) -> Result<bool> {
        let nulls = column.has_nulls();
        let (mut least, mut greatest) = (i128::MAX, i128::MIN);
        for at in 0..self.values.len() {
            if !nulls || !column.is_null(at) {
                let value = value(at);
                (least, greatest) = (least.min(value), greatest.max(value));
            }
        }
        if least > greatest {
            (least, greatest) = (0, 0);
        }
        // One code below and one above the values are for NULLs.
        let Some(range) = greatest.checked_sub(least).and_then(|range| range.checked_add(2)) else {
            return Ok(false);
        };
        let first = u128::from(nulls && key.nulls_first);
        let last = range as u128 - 2 + first + u128::from(nulls && !key.nulls_first);
        let bits = u128::BITS - last.leading_zeros();
        if bits > room {
            return Ok(false);
        }
        let null = if key.nulls_first { 0 } else { last };
        for (at, packed) in self.values.iter_mut().enumerate() {
            interrupt::check_at(at)?;
            let code = if nulls && column.is_null(at) {
                null
            } else {
                let value = value(at);
                first + if key.descending { greatest - value } else { value - least } as u128
            };
            *packed = packed.checked_shl(bits).unwrap_or(0) | code;
        }
        self.bits += bits;
        Ok(true)
    }

    /// Appends a column of byte strings: whole strings, ranks, or else only the first bytes, if these tell
    /// strings apart. True if the column is appended as a whole.
    fn texts(&mut self, key: &Key, column: &ValueColumn, room: u32, wanted: usize) -> Result<bool> {
        let bytewise = matches!(key.order, TextOrder::Bytes);
        let longest = || (0..self.values.len()).map(|at| column.bytes_at(at).len()).max().unwrap_or(0);
        let fits = bytewise && column.is_text() && 8 * longest() < room as usize;
        // Where a few rows are wanted, most need no more than one comparison.
        if !fits
            && wanted >= self.values.len()
            && let Some(ranks) = ranks(column, &key.order)?
            && self.integers(key, column, room, |at| ranks[at].into())?
        {
            return Ok(true);
        }
        if bytewise { self.prefixes(key, column, room) } else { Ok(false) }
    }

    /// Appends the first bytes of a column of byte strings. True when that is all of them.
    fn prefixes(&mut self, key: &Key, column: &ValueColumn, room: u32) -> Result<bool> {
        let nulls = column.has_nulls();
        let longest = (0..self.values.len()).map(|at| column.bytes_at(at).len()).max().unwrap_or(0);
        // A bit for NULL; shorter texts come first because they are padded with zeros, which no text holds.
        let taken = longest.min((room.saturating_sub(1) / 8) as usize);
        let whole = taken == longest && column.is_text();
        let bits = 8 * taken as u32 + 1;
        if bits > room {
            return Ok(false);
        }
        let mask = if taken == 16 { u128::MAX } else { (1u128 << (8 * taken)) - 1 };
        for (at, packed) in self.values.iter_mut().enumerate() {
            interrupt::check_at(at)?;
            let code = if nulls && column.is_null(at) {
                if key.nulls_first { 0 } else { 1 << (8 * taken) }
            } else {
                let value = column.bytes_at(at);
                let mut padded = [0; 16];
                let length = value.len().min(taken);
                padded[..length].copy_from_slice(&value[..length]);
                let code = u128::from_be_bytes(padded).checked_shr(128 - 8 * taken as u32).unwrap_or(0);
                let code = if key.descending { !code & mask } else { code };
                code | if nulls && key.nulls_first { 1 << (8 * taken) } else { 0 }
            };
            *packed = packed.checked_shl(bits).unwrap_or(0) | code;
        }
        self.bits += bits;
        Ok(whole)
    }
}
