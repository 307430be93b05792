//! Exact predicate evaluation on decoded vectors. It is the fallback of filtering on encoded data, and its
//! tests compare with it.
//!
//! Equality and order are those of the logical type (`LogicalType`'s table). A decimal in the side lane is in
//! the host's own bytes. A comparison that meets one is `Unsupported`, and the host evaluates that condition
//! itself.

use std::cmp::Ordering;

use vector::{
    Bitmap, CompareOp, Error, NumericValues, Predicate, Result, Scalar, Selection, Values, Vector,
    compare_floats,
};

use super::{int_condition, numeric_condition};
use crate::encoding::Leaf;

/// Narrows `selection` to the rows of `vector` for which `predicate` is TRUE (its column index is ignored).
///
/// Errors: `InvalidInput` if a constant does not fit the vector's type, `Unsupported` if a comparison meets a
/// decimal in the side lane. On an error the selection is untouched.
pub fn filter_vector(vector: &Vector, predicate: &Predicate, selection: &mut Selection) -> Result<()> {
    match predicate {
        Predicate::Always(true) => {}
        Predicate::Always(false) => selection.retain(|_| false),
        Predicate::And(parts) => {
            let mut narrowed = selection.clone();
            for part in parts {
                filter_vector(vector, part, &mut narrowed)?;
            }
            *selection = narrowed;
        }
        Predicate::Or(parts) => {
            let mut passed = Bitmap::filled(vector.len(), false);
            for part in parts {
                let mut kept = selection.clone();
                filter_vector(vector, part, &mut kept)?;
                kept.iter().for_each(|row| passed.set(row as usize, true));
            }
            selection.retain_mask(&passed);
        }
        Predicate::IsNull { .. } => selection.retain(|row| !vector.is_valid(row as usize)),
        Predicate::IsNotNull { .. } => selection.retain(|row| vector.is_valid(row as usize)),
        Predicate::NotIn { values, .. } => {
            let mut among = selection.clone();
            filter_leaf(vector, &Leaf::In(values), &mut among)?;
            let mut passed = Bitmap::filled(vector.len(), true);
            among.iter().for_each(|row| passed.set(row as usize, false));
            selection.retain(|row| vector.is_valid(row as usize) && passed.get(row as usize));
        }
        Predicate::Compare { .. } | Predicate::In { .. } | Predicate::StartsWith { .. } => {
            let Some(leaf) = Leaf::of(predicate) else { return Ok(()) };
            filter_leaf(vector, &leaf, selection)?;
        }
    }
    Ok(())
}

fn filter_leaf(vector: &Vector, leaf: &Leaf<'_>, selection: &mut Selection) -> Result<()> {
    let outer = |row: u32| vector.validity.as_ref().is_none_or(|bits| bits.get(row as usize));
    match &vector.values {
        Values::Constant(value, _) => {
            let passes = value.is_valid(0) && test_values(&value.values, leaf, &[0])?.get(0);
            selection.retain(|row| passes && outer(row));
        }
        // Where most entries have no row here, they are not tested.
        Values::Dictionary { codes, dictionary } if dictionary.entries.len() > selection.len() => {
            let rows: Vec<u32> = selection.iter().filter(|&row| outer(row)).collect();
            let code = |row: &u32| codes.get(*row as usize).copied().unwrap_or(u32::MAX);
            let values = dictionary.entries.take(&rows.iter().map(code).collect::<Vec<_>>()).values;
            let all: Vec<u32> = (0..).take(rows.len()).collect();
            let passed = test_values(&values, leaf, &all)?;
            let kept = rows.into_iter().enumerate().filter(|(at, _)| passed.get(*at));
            *selection = Selection::Rows(kept.map(|(_, row)| row).collect());
        }
        Values::Dictionary { codes, dictionary } => {
            // Entries that no selected row uses are tested, too, so the test must not fail on one.
            let all: Vec<u32> = (0..).take(dictionary.entries.len()).collect();
            let passed = test_values(&dictionary.entries.values, leaf, &all)?;
            let code = |row: u32| codes.get(row as usize).map_or(usize::MAX, |&code| code as usize);
            selection.retain(|row| outer(row) && passed.get(code(row)));
        }
        Values::Runs { ends, values } => {
            let valid: Vec<u32> =
                (0..).take(values.len()).filter(|&run: &u32| values.is_valid(run as usize)).collect();
            let passed = test_values(&values.values, leaf, &valid)?;
            let run = |row: u32| ends.partition_point(|&end| end <= row);
            selection.retain(|row| outer(row) && passed.get(run(row)));
        }
        values => {
            let rows: Vec<u32> = selection.iter().filter(|&row| outer(row)).collect();
            let passed = test_values(values, leaf, &rows)?;
            selection.retain_mask(&passed);
        }
    }
    Ok(())
}

/// One bit for each row of flat values. It is set if the row is in `rows` and its value passes.
pub(crate) fn test_values(values: &Values, leaf: &Leaf<'_>, rows: &[u32]) -> Result<Bitmap> {
    match values {
        Values::Bool(bits) => {
            let value = |scalar: &Scalar| match scalar {
                Scalar::Bool(value) => Some(*value),
                _ => None,
            };
            let test = ordered_test(leaf, value, bool::cmp)?;
            Ok(mark(bits.len(), rows, |row| test.passes(|constant| bits.get(row).cmp(constant))))
        }
        Values::Int16(values) => int_values(values, leaf, rows),
        Values::Int32(values) => int_values(values, leaf, rows),
        Values::Int64(values) => int_values(values, leaf, rows),
        Values::Float32(values) => {
            float_values(values.len(), |row| values.get(row).map_or(0.0, |&v| f64::from(v)), leaf, rows)
        }
        Values::Float64(values) => {
            float_values(values.len(), |row| values.get(row).copied().unwrap_or(0.0), leaf, rows)
        }
        Values::Fixed(fixed) => byte_values(fixed.len(), |row| fixed.get(row), leaf, rows),
        Values::Bytes(views) => byte_values(views.len(), |row| views.get(row), leaf, rows),
        Values::Numeric(numeric) => numeric_values(numeric, leaf, rows),
        Values::Constant(..) | Values::Dictionary { .. } | Values::Runs { .. } => {
            Err(Error::InvalidInput("nested vector".into()))
        }
    }
}

fn mark(len: usize, rows: &[u32], mut passes: impl FnMut(usize) -> bool) -> Bitmap {
    let mut words = vec![0u64; len.div_ceil(64)];
    for &row in rows {
        let row = row as usize;
        if let Some(word) = words.get_mut(row / 64) {
            *word |= u64::from(passes(row)) << (row % 64);
        }
    }
    Bitmap::from_words(words, len)
}

fn int_values<T: Copy + Into<i64>>(values: &[T], leaf: &Leaf<'_>, rows: &[u32]) -> Result<Bitmap> {
    let test = int_condition(leaf)?;
    Ok(mark(values.len(), rows, |row| {
        values.get(row).is_some_and(|&value| test.passes(i128::from(value.into())))
    }))
}

fn numeric_values(numeric: &NumericValues, leaf: &Leaf<'_>, rows: &[u32]) -> Result<Bitmap> {
    if !numeric.side.is_empty() && rows.iter().any(|&row| numeric.side_value(row as usize).is_some()) {
        return Err(Error::Unsupported("comparison of a decimal in the side lane".into()));
    }
    let test = numeric_condition(leaf, numeric.scale)?;
    Ok(mark(numeric.len(), rows, |row| test.passes(numeric.ints.get(row))))
}

fn float_values(len: usize, get: impl Fn(usize) -> f64, leaf: &Leaf<'_>, rows: &[u32]) -> Result<Bitmap> {
    let value = |scalar: &Scalar| match scalar {
        Scalar::Float(value) => Some(*value),
        _ => None,
    };
    let test = ordered_test(leaf, value, |a, b| compare_floats(*a, *b))?;
    Ok(mark(len, rows, |row| test.passes(|constant| compare_floats(get(row), *constant))))
}

fn byte_values<'v>(
    len: usize,
    get: impl Fn(usize) -> &'v [u8],
    leaf: &Leaf<'_>,
    rows: &[u32],
) -> Result<Bitmap> {
    if let Leaf::StartsWith(prefix) = leaf {
        return Ok(mark(len, rows, |row| get(row).starts_with(prefix)));
    }
    let test = ordered_test(
        leaf,
        |scalar| match scalar {
            Scalar::Bytes(bytes) => Some(bytes.as_ref()),
            _ => None,
        },
        |a: &&[u8], b: &&[u8]| a.cmp(b),
    )?;
    Ok(mark(len, rows, |row| test.passes(|constant| get(row).cmp(constant))))
}

enum OrderedTest<T> {
    Compare(CompareOp, T),
    /// Sorted.
    In(Vec<T>),
}

impl<T> OrderedTest<T> {
    /// `order` compares the value with a constant.
    #[inline]
    fn passes(&self, order: impl Fn(&T) -> Ordering) -> bool {
        match self {
            Self::Compare(op, constant) => op.holds(order(constant)),
            Self::In(constants) => constants.binary_search_by(|constant| order(constant).reverse()).is_ok(),
        }
    }
}

fn ordered_test<'p, T>(
    leaf: &Leaf<'p>,
    get: impl Fn(&'p Scalar) -> Option<T>,
    order: impl Fn(&T, &T) -> Ordering,
) -> Result<OrderedTest<T>> {
    let constant = |scalar: &'p Scalar| {
        get(scalar).ok_or_else(|| Error::InvalidInput(format!("constant {scalar:?} of another type")))
    };
    match leaf {
        Leaf::Compare(op, value) => Ok(OrderedTest::Compare(*op, constant(value)?)),
        Leaf::In(values) => {
            let mut values = values.iter().map(constant).collect::<Result<Vec<_>>>()?;
            values.sort_unstable_by(order);
            Ok(OrderedTest::In(values))
        }
        Leaf::StartsWith(_) => Err(Error::InvalidInput("prefix of a value that is not bytes".into())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use vector::{CompareOp, Dictionary, LogicalType};

    use super::*;

    #[test]
    fn a_dictionary_with_more_entries_than_rows_filters_as_flat_values_do() {
        let entries =
            Vector::new(LogicalType::Int64, Values::Int64((0..500).map(|at| at * 7 % 500).collect()));
        let dictionary = Arc::new(Dictionary { id: Dictionary::next_id(), entries });
        let codes: Vec<u32> = (0..40).map(|row| row * 37 % 500).collect();
        let validity = (0..40).map(|row| row % 5 != 2).collect::<Bitmap>();
        let values = Values::Dictionary { codes, dictionary };
        let coded = Vector { logical: LogicalType::Int64, validity: Some(validity), values };
        let flat = coded.clone().flatten();
        let list = || (100..300).map(Scalar::Int).collect::<Vec<_>>();
        for predicate in [
            Predicate::Compare { column: 0, op: CompareOp::Less, value: Scalar::Int(250) },
            Predicate::Compare { column: 0, op: CompareOp::Equal, value: Scalar::Int(-1) },
            Predicate::In { column: 0, values: list() },
            Predicate::NotIn { column: 0, values: list() },
        ] {
            for selection in [Selection::All(40), Selection::Rows((0..40).step_by(3).collect())] {
                let (mut one, mut other) = (selection.clone(), selection);
                filter_vector(&coded, &predicate, &mut one).unwrap();
                filter_vector(&flat, &predicate, &mut other).unwrap();
                assert_eq!(one.iter().collect::<Vec<_>>(), other.iter().collect::<Vec<_>>(), "{predicate:?}");
            }
        }
    }
}
