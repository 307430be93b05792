//! IN: whether a value equals one of a list's entries. Few entries are compared one after the other, many are
//! looked up by type.

use std::collections;

use vector::{Bitmap, LogicalType, NumericInts, NumericValues, Special, Values, Vector};

use super::functions::{by_row, equal_to_any};
use super::value::{Value, nulls, repeated};
use crate::hash::{BuildValueHasher, float_bits, without_zeros};
use crate::int_bits::IntBits;
use crate::kernels::compare::test_each;
use crate::{Error, Result};

/// Lists up to this long are compared entry by entry.
const FEW: usize = 6;

const HUGE: Error = Error::Decline("numeric that is no scaled integer");

type HashSet<T> = collections::HashSet<T, BuildValueHasher>;

/// The entries, ready to be looked up.
pub(super) struct List {
    /// Without NULLs, and without decimals that are no numbers.
    entries: Vector,
    has_null: bool,
    specials: Vec<Special>,
    table: Table,
}

enum Table {
    Few,
    /// Integers of any width.
    Integers(HashSet<i64>),
    /// Integers within a small range.
    Range(IntBits),
    /// Text and bytes.
    Bytes(HashSet<Box<[u8]>>),
    /// Floats, as the bits of their representative.
    Floats(HashSet<i64>),
    /// Decimals without trailing zeros.
    Numerics(HashSet<(i128, u16)>),
}

impl List {
    /// A list of these entries, a flat vector.
    pub fn new(entries: &Vector) -> Result<Self> {
        let entries = entries.clone().flatten();
        let mut rows: Vec<u32> = (0u32..)
            .zip(0..entries.len())
            .filter(|&(_, at)| entries.is_valid(at))
            .map(|(row, _)| row)
            .collect();
        let has_null = rows.len() < entries.len();
        let mut specials = Vec::new();
        if let Values::Numeric(numeric) = &entries.values {
            let of_rows = numeric.specials().ok_or(HUGE)?;
            rows.retain(|row| !of_rows.iter().any(|(at, _)| at == row));
            let valid = of_rows.into_iter().filter(|(at, _)| entries.is_valid(*at as usize));
            specials.extend(valid.map(|(_, special)| special));
        }
        let entries = Vector { validity: None, ..entries.take(&rows) };
        let table = if entries.len() <= FEW { Table::Few } else { Self::table(&entries.values) };
        Ok(Self { entries, has_null, specials, table })
    }

    fn table(values: &Values) -> Table {
        fn integers<T: Copy + Into<i64>>(values: &[T]) -> Table {
            let values = || values.iter().map(|&value| value.into());
            match IntBits::new(values, 1 << 16) {
                Some(set) => Table::Range(set),
                None => Table::Integers(values().collect()),
            }
        }
        match values {
            Values::Int16(values) => integers(values),
            Values::Int32(values) => integers(values),
            Values::Int64(values) => integers(values),
            Values::Float32(values) => Table::Floats(values.iter().map(|&v| float_bits(v.into())).collect()),
            Values::Float64(values) => Table::Floats(values.iter().map(|&v| float_bits(v)).collect()),
            Values::Bytes(views) => Table::Bytes(views.iter().map(Box::from).collect()),
            Values::Fixed(fixed) => Table::Bytes((0..fixed.len()).map(|at| fixed.get(at).into()).collect()),
            Values::Numeric(numeric) => Table::Numerics(
                (0..numeric.len()).map(|at| without_zeros(numeric.ints.get(at), numeric.scale)).collect(),
            ),
            _ => Table::Few,
        }
    }

    /// TRUE, FALSE or NULL for each row of a flat or constant value.
    pub fn test(&self, value: &Value, rows: usize) -> Result<Value> {
        if let Some(one) = value.constant() {
            if !one.is_valid(0) {
                return Ok(nulls(LogicalType::Bool, rows).into());
            }
            let verdict = self.test(&one.clone().into(), 1)?;
            return Ok(repeated(&verdict.vector, rows).into());
        }
        let bits = Bitmap::from_words(self.words(value, rows)?, rows);
        let validity = match (self.has_null, &value.vector.validity) {
            // A value that is not found may equal the NULL.
            (true, valid) => Some(match valid {
                None => bits.clone(),
                Some(valid) => crate::kernels::words::combine(&bits, valid, |bits, valid| bits & valid),
            }),
            (false, valid) => valid.clone(),
        };
        Ok(Vector { logical: LogicalType::Bool, validity, values: Values::Bool(bits) }.into())
    }

    fn words(&self, value: &Value, rows: usize) -> Result<Vec<u64>> {
        if let Values::Numeric(numeric) = &value.vector.values
            && !numeric.side.is_empty()
        {
            // Zeros are in the place of what is no number.
            let numbers = Values::Numeric(NumericValues { side: Vec::new(), ..numeric.clone() });
            let mut words =
                self.words(&Vector { values: numbers, ..value.vector.as_ref().clone() }.into(), rows)?;
            for (row, special) in numeric.specials().ok_or(HUGE)? {
                if let Some(word) = words.get_mut(row as usize / 64) {
                    let bit = 1 << (row % 64);
                    *word = if self.specials.contains(&special) { *word | bit } else { *word & !bit };
                }
            }
            return Ok(words);
        }
        Ok(match (&self.table, &value.vector.values) {
            (Table::Range(set), Values::Int16(values)) => test_each(values, |v| set.contains(v.into())),
            (Table::Range(set), Values::Int32(values)) => test_each(values, |v| set.contains(v.into())),
            (Table::Range(set), Values::Int64(values)) => test_each(values, |v| set.contains(v)),
            (Table::Integers(set), Values::Int16(values)) => test_each(values, |v| set.contains(&v.into())),
            (Table::Integers(set), Values::Int32(values)) => test_each(values, |v| set.contains(&v.into())),
            (Table::Integers(set), Values::Int64(values)) => test_each(values, |v| set.contains(&v)),
            (Table::Floats(set), Values::Float32(values)) => {
                test_each(values, |v| set.contains(&float_bits(v.into())))
            }
            (Table::Floats(set), Values::Float64(values)) => {
                test_each(values, |v| set.contains(&float_bits(v)))
            }
            (Table::Bytes(set), Values::Bytes(views)) => by_row(rows, |row| set.contains(views.get(row))),
            (Table::Bytes(set), Values::Fixed(fixed)) => by_row(rows, |row| set.contains(fixed.get(row))),
            (Table::Numerics(set), Values::Numeric(numeric)) => match &numeric.ints {
                NumericInts::Int32(values) => {
                    test_each(values, |v| set.contains(&without_zeros(v.into(), numeric.scale)))
                }
                NumericInts::Int64(values) => {
                    test_each(values, |v| set.contains(&without_zeros(v.into(), numeric.scale)))
                }
                NumericInts::Int128(values) => {
                    test_each(values, |v| set.contains(&without_zeros(v, numeric.scale)))
                }
            },
            _ => equal_to_any(value, &self.entries, rows)?,
        })
    }
}
