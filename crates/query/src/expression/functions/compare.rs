//! Comparisons: two values of one type to a boolean, under the type's own equality and order (see
//! `vector::LogicalType`).

use std::cmp::Ordering;

use vector::{Bitmap, ByteView, CompareOp, LogicalType, Values, Vector};

use super::lanes::{Native, Texts, WRONG_TYPE, fixed, lane, two};
use super::numeric::compare as compare_numerics;
use super::{Output, Picked, Value};
use crate::Result;
use crate::kernels::Lane;
use crate::kernels::compare::{test, test_each};

/// What an operator says of an ordering.
#[inline(always)]
pub(super) fn holds(op: CompareOp, ordering: Ordering) -> bool {
    match op {
        CompareOp::Equal => ordering.is_eq(),
        CompareOp::NotEqual => ordering.is_ne(),
        CompareOp::Less => ordering.is_lt(),
        CompareOp::LessOrEqual => ordering.is_le(),
        CompareOp::Greater => ordering.is_gt(),
        CompareOp::GreaterOrEqual => ordering.is_ge(),
    }
}

/// A comparison of this type.
pub(super) fn compile(op: CompareOp, logical: LogicalType) -> Option<Picked> {
    let equality = matches!(op, CompareOp::Equal | CompareOp::NotEqual);
    let cost = match logical {
        LogicalType::Text | LogicalType::Bytes | LogicalType::Uuid | LogicalType::FixedBytes(_) => 4,
        _ => 1,
    };
    match logical {
        LogicalType::Bytes | LogicalType::FixedBytes(_) if !equality => None,
        _ => Some((
            Box::new(move |arguments: &[Value], rows: usize, _: Option<&Bitmap>| {
                let (a, b) = two(arguments)?;
                let words = words(op, a, b, rows)?;
                Ok(Output::from(Values::Bool(Bitmap::from_words(words, rows))))
            }),
            cost,
        )),
    }
}

fn words(op: CompareOp, a: &Value, b: &Value, rows: usize) -> Result<Vec<u64>> {
    match &a.inner().values {
        Values::Int16(_) => integers(op, lane::<i16>(a)?, lane::<i16>(b)?, rows),
        Values::Int32(_) => integers(op, lane::<i32>(a)?, lane::<i32>(b)?, rows),
        Values::Int64(_) => integers(op, lane::<i64>(a)?, lane::<i64>(b)?, rows),
        Values::Float32(_) => floats(op, lane::<f32>(a)?, lane::<f32>(b)?, rows),
        Values::Float64(_) => floats(op, lane::<f64>(a)?, lane::<f64>(b)?, rows),
        Values::Bool(_) => booleans(op, a, b, rows),
        Values::Bytes(_) => texts(op, a, b, rows),
        Values::Fixed(_) => {
            let ((x, one_x), (y, one_y)) = (fixed(a)?, fixed(b)?);
            Ok(by_row(rows, |row| {
                let (x, y) = (x.get(if one_x { 0 } else { row }), y.get(if one_y { 0 } else { row }));
                holds(op, x.cmp(y))
            }))
        }
        Values::Numeric(_) => compare_numerics(op, a, b, rows),
        _ => Err(WRONG_TYPE),
    }
}

/// A bit for each row, asked in order.
pub(in crate::expression) fn by_row(rows: usize, mut f: impl FnMut(usize) -> bool) -> Vec<u64> {
    let word = |start: usize| {
        let bits = (start..rows.min(start + 64)).zip(0u32..);
        bits.fold(0u64, |word, (row, bit)| word | (u64::from(f(row)) << bit))
    };
    (0..rows).step_by(64).map(word).collect()
}

/// Integers of one width.
pub(super) fn integers<T: Copy + Ord>(
    op: CompareOp,
    a: Lane<'_, T>,
    b: Lane<'_, T>,
    rows: usize,
) -> Result<Vec<u64>> {
    Ok(match op {
        CompareOp::Equal => test(a, b, rows, |a, b| a == b),
        CompareOp::NotEqual => test(a, b, rows, |a, b| a != b),
        CompareOp::Less => test(a, b, rows, |a, b| a < b),
        CompareOp::LessOrEqual => test(a, b, rows, |a, b| a <= b),
        CompareOp::Greater => test(a, b, rows, |a, b| a > b),
        CompareOp::GreaterOrEqual => test(a, b, rows, |a, b| a >= b),
    })
}

/// -0 = 0, NaN = NaN and above everything else.
fn floats<T: Native + PartialOrd>(
    op: CompareOp,
    a: Lane<'_, T>,
    b: Lane<'_, T>,
    rows: usize,
) -> Result<Vec<u64>> {
    #[allow(clippy::eq_op)]
    #[inline(always)]
    fn is_nan<T: Copy + PartialOrd>(a: T) -> bool {
        a != a
    }
    #[inline(always)]
    fn equal<T: Copy + PartialOrd>(a: T, b: T) -> bool {
        (a == b) | (is_nan(a) & is_nan(b))
    }
    #[inline(always)]
    fn less<T: Copy + PartialOrd>(a: T, b: T) -> bool {
        (a < b) | (!is_nan(a) & is_nan(b))
    }
    Ok(match op {
        CompareOp::Equal => test(a, b, rows, equal),
        CompareOp::NotEqual => test(a, b, rows, |a, b| !equal(a, b)),
        CompareOp::Less => test(a, b, rows, less),
        CompareOp::LessOrEqual => test(a, b, rows, |a, b| !less(b, a)),
        CompareOp::Greater => test(a, b, rows, |a, b| less(b, a)),
        CompareOp::GreaterOrEqual => test(a, b, rows, |a, b| !less(a, b)),
    })
}

fn booleans(op: CompareOp, a: &Value, b: &Value, rows: usize) -> Result<Vec<u64>> {
    fn bits(value: &Value, rows: usize) -> Result<Vec<u64>> {
        let Values::Bool(bits) = &value.inner().values else { return Err(WRONG_TYPE) };
        Ok(match value.constant() {
            Some(_) => vec![if bits.get(0) { u64::MAX } else { 0 }; rows.div_ceil(64)],
            None => bits.words().to_vec(),
        })
    }
    let (a, b) = (bits(a, rows)?, bits(b, rows)?);
    let pairs = a.into_iter().zip(b);
    Ok(match op {
        CompareOp::Equal => pairs.map(|(a, b)| !(a ^ b)).collect(),
        CompareOp::NotEqual => pairs.map(|(a, b)| a ^ b).collect(),
        CompareOp::Less => pairs.map(|(a, b)| !a & b).collect(),
        CompareOp::LessOrEqual => pairs.map(|(a, b)| !a | b).collect(),
        CompareOp::Greater => pairs.map(|(a, b)| a & !b).collect(),
        CompareOp::GreaterOrEqual => pairs.map(|(a, b)| a | !b).collect(),
    })
}

fn texts(op: CompareOp, a: &Value, b: &Value, rows: usize) -> Result<Vec<u64>> {
    let (x, y) = (Texts::of(a)?, Texts::of(b)?);
    let equality = match op {
        CompareOp::Equal => Some(true),
        CompareOp::NotEqual => Some(false),
        _ => None,
    };
    Ok(match (x, y, equality) {
        (Texts::Many(views), Texts::One(value), Some(wanted))
        | (Texts::One(value), Texts::Many(views), Some(wanted)) => {
            match ByteView::inline(value) {
                // A short value is its view.
                Some(view) => test_each(views.views(), |other: ByteView| (other == view) == wanted),
                None => {
                    let (len, prefix) = (value.len(), value.first_chunk::<4>().copied().unwrap_or_default());
                    let same = |(row, view): (usize, &ByteView)| {
                        view.len() == len && view.prefix() == prefix && views.get(row) == value
                    };
                    let mut verdicts = views.views().iter().enumerate().map(|pair| same(pair) == wanted);
                    by_row(rows, |_| verdicts.next().unwrap_or(false))
                }
            }
        }
        (Texts::Many(x), Texts::Many(y), Some(wanted)) => by_row(rows, |row| {
            let same = match (x.views().get(row), y.views().get(row)) {
                (Some(a), Some(b)) => {
                    a.len() == b.len() && a.prefix() == b.prefix() && x.get(row) == y.get(row)
                }
                _ => false,
            };
            same == wanted
        }),
        _ => by_row(rows, |row| holds(op, x.get(row).cmp(y.get(row)))),
    })
}

/// Rows whose value equals one of the entries, which are few and none of them NULL.
pub(in crate::expression) fn equal_to_any(value: &Value, entries: &Vector, rows: usize) -> Result<Vec<u64>> {
    let mut found = vec![0u64; rows.div_ceil(64)];
    for entry in 0..entries.len() {
        let one: Value = crate::expression::value::repeated(&entries.slice(entry, 1), rows).into();
        for (word, more) in found.iter_mut().zip(words(CompareOp::Equal, value, &one, rows)?) {
            *word |= more;
        }
    }
    Ok(found)
}
