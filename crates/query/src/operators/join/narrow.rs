//! Runtime filters: what the kept side says about rows of the other side that cannot match.
//!
//! `Join::prepare` gives them to the source of the probing pipeline, for joins that drop rows without a
//! match. A predicate (a list of values, or bounds) prunes chunks and filters encoded data; `members` is
//! asked row by row, by sources that decode the other columns afterwards. Both may let rows through: the join
//! looks again.

use std::cmp::Ordering;

use vector::{CompareOp, LogicalType, NumericInts, Predicate, Scalar, Values, Vector};

/// Distinct values that are listed one by one.
const LISTED: usize = 64;
/// Rows among which such a list is looked for.
const LOOKED_AT: usize = 4_096;

/// A predicate over column `column` that holds for every value of a flat key vector. None if there is no such
/// predicate.
pub fn predicate(column: usize, key: &Vector) -> Option<Predicate> {
    if let Values::Numeric(numeric) = &key.values
        && !numeric.side.is_empty()
    {
        return None;
    }
    if key.len() <= LOOKED_AT {
        let mut values: Vec<Scalar> = Vec::new();
        for row in (0..key.len()).filter(|&row| key.is_valid(row)) {
            let value = scalar(key, row)?;
            if !values.iter().any(|other| other.compare(&value) == Some(Ordering::Equal)) {
                values.push(value);
            }
            if values.len() > LISTED {
                break;
            }
        }
        match values.len() {
            0 => return Some(Predicate::Always(false)),
            1..=LISTED => return Some(Predicate::In { column, values }),
            _ => {}
        }
    }
    let (low, high) = bounds(key)?;
    Some(Predicate::And(vec![
        Predicate::Compare { column, op: CompareOp::GreaterOrEqual, value: low },
        Predicate::Compare { column, op: CompareOp::LessOrEqual, value: high },
    ]))
}

fn scalar(key: &Vector, row: usize) -> Option<Scalar> {
    Some(match &key.values {
        Values::Bool(bits) => Scalar::Bool(bits.get(row)),
        Values::Int16(values) => Scalar::Int((*values.get(row)?).into()),
        Values::Int32(values) => Scalar::Int((*values.get(row)?).into()),
        Values::Int64(values) => Scalar::Int(*values.get(row)?),
        Values::Float32(values) => Scalar::Float((*values.get(row)?).into()),
        Values::Float64(values) => Scalar::Float(*values.get(row)?),
        Values::Fixed(fixed) => Scalar::Bytes(fixed.get(row).into()),
        Values::Bytes(views) => Scalar::Bytes(views.get(row).into()),
        Values::Numeric(numeric) => Scalar::Numeric { unscaled: numeric.ints.get(row), scale: numeric.scale },
        _ => return None,
    })
}

fn bounds(key: &Vector) -> Option<(Scalar, Scalar)> {
    fn of<T: Copy + Ord>(key: &Vector, values: &[T]) -> Option<(T, T)> {
        match &key.validity {
            None => Some((*values.iter().min()?, *values.iter().max()?)),
            Some(validity) => {
                let valid = || validity.ones().filter_map(|row| values.get(row).copied());
                Some((valid().min()?, valid().max()?))
            }
        }
    }
    fn ints<T: Copy + Ord + Into<i64>>(key: &Vector, values: &[T]) -> Option<(Scalar, Scalar)> {
        of(key, values).map(|(low, high)| (Scalar::Int(low.into()), Scalar::Int(high.into())))
    }
    match &key.values {
        Values::Int16(values) => ints(key, values),
        Values::Int32(values) => ints(key, values),
        Values::Int64(values) => ints(key, values),
        Values::Numeric(numeric) => {
            let (low, high) = match &numeric.ints {
                NumericInts::Int32(values) => of(key, values).map(|(a, b)| (a.into(), b.into()))?,
                NumericInts::Int64(values) => of(key, values).map(|(a, b)| (a.into(), b.into()))?,
                NumericInts::Int128(values) => of(key, values)?,
            };
            let scaled = |unscaled| Scalar::Numeric { unscaled, scale: numeric.scale };
            Some((scaled(low), scaled(high)))
        }
        Values::Bytes(views) if key.logical == LogicalType::Text => {
            let valid = || (0..views.len()).filter(|&row| key.is_valid(row)).map(|row| views.get(row));
            let (low, high) = (valid().min()?, valid().max()?);
            Some((Scalar::Bytes(low.into()), Scalar::Bytes(high.into())))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_listed_and_many_are_bounded() {
        let few = Vector::new(LogicalType::Int32, Values::Int32(vec![7, 3, 7]));
        let listed = Predicate::In { column: 2, values: vec![Scalar::Int(7), Scalar::Int(3)] };
        assert_eq!(predicate(2, &few), Some(listed));
        let mut many = Vector::new(LogicalType::Int64, Values::Int64((0..1000).collect()));
        let bounded = |low, high| {
            Predicate::And(vec![
                Predicate::Compare { column: 0, op: CompareOp::GreaterOrEqual, value: Scalar::Int(low) },
                Predicate::Compare { column: 0, op: CompareOp::LessOrEqual, value: Scalar::Int(high) },
            ])
        };
        assert_eq!(predicate(0, &many), Some(bounded(0, 999)));
        many.validity = Some((0..1000).map(|row| (100..900).contains(&row)).collect());
        assert_eq!(predicate(0, &many), Some(bounded(100, 899)), "values of NULL rows do not count");
        many.validity = Some((0..1000).map(|_| false).collect());
        assert_eq!(predicate(0, &many), Some(Predicate::Always(false)));
        let floats = Vector::new(LogicalType::Float64, Values::Float64((0..5000).map(f64::from).collect()));
        assert_eq!(predicate(0, &floats), None);
    }
}
