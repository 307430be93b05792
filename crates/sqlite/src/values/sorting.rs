//! Brings rows into an order: of a stripe that is written by its table's `orderby`, or of a query's rows, so
//! that SQLite need not sort them.
//!
//! SQLite sorts rows of a virtual table one by one. Here they are sorted by column: each key column becomes
//! numbers in the order of its values. Rows are moved by counting these numbers where they are few, else by
//! comparing them.
//!
//! Where a query groups by the columns, rows of equal values have to lie side by side only, which the same
//! order does.

use std::cmp::Ordering;
use std::collections::HashMap;

use vector::{Bitmap, Values};

use super::column::Column;
use super::order::Collation;
use crate::api::{Result, Value};

/// A column to order by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderKey {
    /// Where the column lies.
    pub place: usize,
    /// Greatest first.
    pub descending: bool,
}

/// Numbers up to this many times the rows are counted rather than compared.
const COUNTED: u64 = 4;

/// The rows of `columns` (by place) in the order of the keys. Equal rows keep their order.
pub fn permutation(columns: &[Option<Column>], keys: &[OrderKey], rows: usize) -> Result<Vec<u32>> {
    let mut order: Vec<u32> = (0..u32::try_from(rows).unwrap_or(u32::MAX)).collect();
    // The last key first: each sort keeps what the ones before have done among equals.
    for key in keys.iter().rev() {
        if let Some(Some(column)) = columns.get(key.place) {
            let mut ranks = ranks(column, rows)?;
            if key.descending {
                let greatest = ranks.iter().copied().max().unwrap_or(0);
                ranks.iter_mut().for_each(|rank| *rank = greatest - *rank);
            }
            order = sorted(&order, &ranks);
        }
    }
    Ok(order)
}

/// The rows that come first in the order of the keys, at most `limit`, in that order.
pub fn first_rows(
    columns: &[Option<Column>],
    keys: &[OrderKey],
    rows: usize,
    limit: usize,
) -> Result<Vec<u32>> {
    let key = keys.first().and_then(|key| Some((columns.get(key.place)?.as_ref()?, key.descending)));
    let Some((column, descending)) = key.filter(|_| limit > 0 && limit < rows / 4) else {
        let mut order = permutation(columns, keys, rows)?;
        order.truncate(limit);
        return Ok(order);
    };
    // Only rows that the first key puts among the first ones are looked at further.
    let ranks = ranks(column, rows)?;
    let mut sorted = ranks.clone();
    let at = if descending { rows - limit } else { limit - 1 };
    let border = *sorted.select_nth_unstable(at).1;
    let is_near = |rank: u64| if descending { rank >= border } else { rank <= border };
    let near: Vec<u32> =
        ranks.iter().zip(0..).filter(|(rank, _)| is_near(**rank)).map(|(_, row)| row).collect();
    let of_near = |column: &Column| Column::new(column.kind, column.vector.take(&near));
    let columns: Vec<Option<Column>> = columns.iter().map(|column| column.as_ref().map(of_near)).collect();
    let order = permutation(&columns, keys, near.len())?;
    Ok(order.iter().take(limit).filter_map(|&at| near.get(at as usize).copied()).collect())
}

/// The rows of an order, sorted by their ranks. Equal ones stay as they are.
fn sorted(order: &[u32], ranks: &[u64]) -> Vec<u32> {
    let rank = |row: u32| ranks.get(row as usize).copied().unwrap_or(0);
    if order.is_sorted_by_key(|&row| rank(row)) {
        return order.to_vec();
    }
    let greatest = ranks.iter().copied().max().unwrap_or(0);
    if greatest > COUNTED * ranks.len() as u64 + 65_536 {
        let mut pairs: Vec<(u64, u32)> = order.iter().zip(0..).map(|(&row, at)| (rank(row), at)).collect();
        pairs.sort_unstable();
        return pairs.iter().filter_map(|&(_, at)| order.get(at as usize).copied()).collect();
    }
    let mut starts = vec![0u32; usize::try_from(greatest).unwrap_or(0) + 2];
    let mut count = |rank: u64| {
        if let Some(start) = starts.get_mut(usize::try_from(rank).unwrap_or(0) + 1) {
            *start += 1;
        }
    };
    order.iter().for_each(|&row| count(rank(row)));
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    place(order, &mut starts, |row| usize::try_from(rank(row)).unwrap_or(0))
}

/// Puts each row to the next free place of its bucket.
fn place(order: &[u32], starts: &mut [u32], bucket: impl Fn(u32) -> usize) -> Vec<u32> {
    let mut out = vec![0; order.len()];
    for &row in order {
        if let Some(start) = starts.get_mut(bucket(row)) {
            if let Some(slot) = out.get_mut(*start as usize) {
                *slot = row;
            }
            *start += 1;
        }
    }
    out
}

/// For each row a number that is equal, or less, exactly where its value is so. NULL has 0.
fn ranks(column: &Column, rows: usize) -> Result<Vec<u64>> {
    let validity = column.vector.validity.as_ref();
    Ok(match &column.vector.values {
        Values::Int64(values) => of_numbers(values.iter().map(|&value| flipped(value)), validity),
        Values::Float64(values) => of_numbers(values.iter().map(|&value| of_real(value)), validity),
        _ => of_any(column, rows)?,
    })
}

/// Signed order as unsigned order.
const fn flipped(value: i64) -> u64 {
    value.cast_unsigned() ^ (1 << 63)
}

/// The order of reals as that of numbers. Both zeros are equal.
fn of_real(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Numbers less the least of them, plus one: the smaller, the sooner they can be counted.
fn of_numbers(numbers: impl Iterator<Item = u64> + Clone, validity: Option<&Bitmap>) -> Vec<u64> {
    let is_valid = |row: usize| validity.is_none_or(|validity| validity.get(row));
    let valid = numbers.clone().enumerate().filter(|(row, _)| is_valid(*row)).map(|(_, number)| number);
    let least = valid.min().unwrap_or(0);
    let rank = |(row, number): (usize, u64)| match is_valid(row) {
        true => (number - least).saturating_add(1),
        false => 0,
    };
    numbers.enumerate().map(rank).collect()
}

/// Ranks of any values: distinct ones are found first, and only they are compared.
fn of_any(column: &Column, rows: usize) -> Result<Vec<u64>> {
    let mut known: HashMap<Key<'_>, u32> = HashMap::new();
    let mut distinct: Vec<Value<'_>> = Vec::new();
    let mut numbers = Vec::with_capacity(rows);
    for row in 0..rows {
        let value = column.get(row)?;
        let new = u32::try_from(distinct.len()).unwrap_or(u32::MAX);
        let number = *known.entry(Key::of(value)).or_insert(new);
        if number == new {
            distinct.push(value);
        }
        numbers.push(number);
    }
    let mut order: Vec<u32> = (0..u32::try_from(distinct.len()).unwrap_or(u32::MAX)).collect();
    let value = |number: &u32| distinct.get(*number as usize).copied().unwrap_or(Value::Null);
    let compare = |a: &u32, b: &u32| match (value(a), value(b)) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        (a, b) => Collation::Binary.compare(a, b),
    };
    order.sort_by(compare);
    let mut ranks = vec![0u64; distinct.len()];
    let mut rank = 0;
    for (at, number) in order.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| order.get(before));
        rank += u64::from(before.is_some_and(|before| compare(before, number).is_lt()));
        if let Some(slot) = ranks.get_mut(*number as usize) {
            *slot = rank;
        }
    }
    Ok(numbers.iter().map(|&number| ranks.get(number as usize).copied().unwrap_or(0)).collect())
}

/// Values that are the same, to be found again. Equal numbers of two classes are two keys.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Null,
    Integer(i64),
    Real(u64),
    Text(&'a [u8]),
    Blob(&'a [u8]),
}

impl<'a> Key<'a> {
    const fn of(value: Value<'a>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Integer(integer) => Self::Integer(integer),
            Value::Real(real) => Self::Real(real.to_bits()),
            Value::Text(text) => Self::Text(text),
            Value::Blob(blob) => Self::Blob(blob),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OrderKey, first_rows, permutation};
    use crate::api::Value::{self, Blob, Integer, Null, Real, Text};
    use crate::values::{Affinity, Collation, Column, ColumnBuilder};
    use std::cmp::Ordering;

    fn column(values: &[Value<'_>], affinity: Affinity) -> Column {
        let mut builder = ColumnBuilder::new(affinity);
        values.iter().for_each(|&value| builder.push(value).unwrap());
        builder.finish()
    }

    fn compare(a: Value<'_>, b: Value<'_>) -> Ordering {
        match (a == Null, b == Null) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            _ => Collation::Binary.compare(a, b),
        }
    }

    #[test]
    fn rows_come_in_order_and_equal_ones_stay() {
        let integers = [
            Integer(3),
            Null,
            Integer(-5),
            Integer(i64::MAX),
            Integer(3),
            Integer(i64::MIN),
            Null,
            Integer(0),
        ];
        let reals = [
            Real(0.5),
            Real(-0.0),
            Real(f64::INFINITY),
            Null,
            Real(0.0),
            Real(-1e300),
            Real(1e-300),
            Real(0.5),
        ];
        let mixed = [Text(b"b"), Integer(1), Real(1.0), Blob(b"a"), Null, Real(0.5), Text(b"a"), Text(b"b")];
        let all = [&integers, &reals, &mixed];
        let columns: Vec<Option<Column>> =
            all.iter().map(|values| Some(column(values.as_slice(), Affinity::Blob))).collect();
        for first_key in 0..3 {
            for second_key in 0..3 {
                for descending in [false, true] {
                    let keys = [
                        OrderKey { place: first_key, descending },
                        OrderKey { place: second_key, descending: !descending },
                    ];
                    let mut expected: Vec<u32> = (0..8).collect();
                    expected.sort_by(|&a, &b| {
                        let by = |key: usize, descending: bool| {
                            let order = compare(all[key][a as usize], all[key][b as usize]);
                            if descending { order.reverse() } else { order }
                        };
                        by(first_key, descending).then(by(second_key, !descending))
                    });
                    assert_eq!(
                        permutation(&columns, &keys, 8).unwrap(),
                        expected,
                        "{first_key} {second_key} {descending}"
                    );
                }
            }
            for descending in [false, true] {
                let keys = [OrderKey { place: first_key, descending }];
                let all = permutation(&columns, &keys, 8).unwrap();
                for limit in 0..10 {
                    let expected = &all[..limit.min(8)];
                    assert_eq!(
                        first_rows(&columns, &keys, 8, limit).unwrap(),
                        expected,
                        "{first_key} {limit}"
                    );
                }
            }
        }
    }
}
