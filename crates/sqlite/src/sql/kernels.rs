//! Arithmetic and tests of numbers as SQLite has them, over vectors.

use std::sync::{Arc, LazyLock};

use query::{Error, Expression, HostFunction, Result, is_fraction};
use vector::{Bitmap, LogicalType, Values, Vector, VectorBuilder};

use super::host_functions::{Kernel, value_at};
use super::typed::EXACT;
use crate::api::Value;
use crate::values::as_real;

/// What is computed of two reals. A result that is no number is NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RealOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

/// What `settled` ends a query with.
pub const UNSETTLED: &str = "a sum of whole numbers that may be a real";
/// What integers end a query with that a real does not hold.
const INEXACT: Error = Error::Decline("integers of more than 53 bits beside reals");
const MISTYPED: Error = Error::Decline("numbers of another type than planned");

/// Functions are equal only where they are one, so there is one of each.
type Shared = LazyLock<Arc<dyn HostFunction>>;

const fn strict(name: &'static str, compute: fn(&[Arc<Vector>], usize) -> Result<Vector>) -> Kernel {
    Kernel { name, compute, is_strict: true, can_decline: false }
}

const fn declining(name: &'static str, compute: fn(&[Arc<Vector>], usize) -> Result<Vector>) -> Kernel {
    Kernel { can_decline: true, ..strict(name, compute) }
}

static REAL: [Shared; 4] = [
    LazyLock::new(|| Arc::new(strict("+", |values, rows| reals_of(RealOperator::Add, values, rows)))),
    LazyLock::new(|| Arc::new(strict("-", |values, rows| reals_of(RealOperator::Subtract, values, rows)))),
    LazyLock::new(|| Arc::new(strict("*", |values, rows| reals_of(RealOperator::Multiply, values, rows)))),
    LazyLock::new(|| Arc::new(strict("/", |values, rows| reals_of(RealOperator::Divide, values, rows)))),
];
static NUMBER: [Shared; 4] = [
    LazyLock::new(|| Arc::new(declining("+", |values, rows| numbers_of(RealOperator::Add, values, rows)))),
    LazyLock::new(|| {
        Arc::new(declining("-", |values, rows| numbers_of(RealOperator::Subtract, values, rows)))
    }),
    LazyLock::new(|| {
        Arc::new(declining("*", |values, rows| numbers_of(RealOperator::Multiply, values, rows)))
    }),
    LazyLock::new(|| Arc::new(declining("/", |values, rows| numbers_of(RealOperator::Divide, values, rows)))),
];
static FRACTION: Shared = LazyLock::new(|| Arc::new(strict("is_fraction", fractions)));
static EXACT_REAL: Shared = LazyLock::new(|| Arc::new(declining("real", exact_reals)));
static SETTLED: Shared =
    LazyLock::new(|| Arc::new(Kernel { is_strict: false, ..declining("is_real", are_settled) }));

fn called(function: &Shared, arguments: Vec<Expression>, result: LogicalType) -> Expression {
    Expression::Host { function: Arc::clone(function), arguments, result }
}

/// Arithmetic of reals.
pub fn real_arithmetic(operator: RealOperator, a: Expression, b: Expression) -> Expression {
    called(&REAL[operator as usize], vec![a, b], LogicalType::Float64)
}

/// The same of numbers that are held as reals. `is_real` says which results are reals; all others are
/// integers, which must be reals without loss.
pub fn number_arithmetic(
    operator: RealOperator,
    a: Expression,
    b: Expression,
    is_real: Expression,
) -> Expression {
    called(&NUMBER[operator as usize], vec![a, b, is_real], LogicalType::Float64)
}

/// Which reals no integer has the value of: a column of numeric affinity has integers for all others.
pub fn fraction(reals: Expression) -> Expression {
    called(&FRACTION, vec![reals], LogicalType::Bool)
}

/// Integers as reals, to stand beside reals in one column: each must be one without loss.
pub fn exact_real(integers: Expression) -> Expression {
    called(&EXACT_REAL, vec![integers], LogicalType::Float64)
}

/// Whether a sum is a real, from whether some value was a fraction. Values that are all whole may have been
/// reals all the same: then the query ends with `UNSETTLED`, to be planned anew.
pub fn settled(sum: Expression, any_fraction: Expression) -> Expression {
    called(&SETTLED, vec![sum, any_fraction], LogicalType::Bool)
}

/// Reals, or one for all rows.
enum Reals<'v> {
    Each(&'v [f64]),
    One(f64),
}

impl Reals<'_> {
    fn at(&self, row: usize) -> f64 {
        match self {
            Self::Each(values) => values.get(row).copied().unwrap_or_default(),
            Self::One(value) => *value,
        }
    }
}

fn reals(vector: &Vector) -> Result<Reals<'_>> {
    match &vector.values {
        Values::Float64(values) => Ok(Reals::Each(values)),
        Values::Constant(one, _) => match &one.values {
            Values::Float64(values) => values.first().map(|&value| Reals::One(value)).ok_or(MISTYPED),
            _ => Err(MISTYPED),
        },
        _ => Err(MISTYPED),
    }
}

/// The rows in which all have a value. None: all rows.
fn validity(vectors: &[Arc<Vector>], rows: usize) -> Option<Bitmap> {
    let mut valid: Option<Bitmap> = None;
    for vector in vectors {
        let is_null = matches!(&vector.values, Values::Constant(one, _) if !one.is_valid(0));
        if is_null {
            return Some(Bitmap::filled(rows, false));
        }
        let Some(own) = &vector.validity else { continue };
        valid = Some(match valid {
            None => own.clone(),
            Some(before) => {
                let words = before.words().iter().zip(own.words()).map(|(a, b)| a & b);
                Bitmap::from_words(words.collect(), rows)
            }
        });
    }
    valid
}

fn combined(a: &Reals<'_>, b: &Reals<'_>, rows: usize, of: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    match (a, b) {
        (Reals::Each(a), Reals::Each(b)) => a.iter().zip(*b).map(|(&a, &b)| of(a, b)).collect(),
        (Reals::Each(a), Reals::One(b)) => a.iter().map(|&a| of(a, *b)).collect(),
        (Reals::One(a), Reals::Each(b)) => b.iter().map(|&b| of(*a, b)).collect(),
        (Reals::One(a), Reals::One(b)) => vec![of(*a, *b); rows],
    }
}

fn reals_of(operator: RealOperator, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
    let [a, b] = arguments else { return Err(MISTYPED) };
    let (left, right) = (reals(a)?, reals(b)?);
    let values = match operator {
        RealOperator::Add => combined(&left, &right, rows, |a, b| a + b),
        RealOperator::Subtract => combined(&left, &right, rows, |a, b| a - b),
        RealOperator::Multiply => combined(&left, &right, rows, |a, b| a * b),
        RealOperator::Divide => combined(&left, &right, rows, |a, b| if b == 0.0 { f64::NAN } else { a / b }),
    };
    let mut valid = validity(arguments, rows);
    if values.iter().any(|value| value.is_nan()) {
        let bits = valid.get_or_insert_with(|| Bitmap::filled(rows, true));
        for (row, value) in values.iter().enumerate() {
            if value.is_nan() {
                bits.set(row, false);
            }
        }
    }
    Ok(Vector { logical: LogicalType::Float64, validity: valid, values: Values::Float64(values) })
}

fn numbers_of(operator: RealOperator, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
    let [a, b, is_real] = arguments else { return Err(MISTYPED) };
    let result = reals_of(operator, arguments.get(..2).unwrap_or_default(), rows)?;
    let (left, right) = (reals(a)?, reals(b)?);
    let Values::Float64(values) = &result.values else { return Err(MISTYPED) };
    // A result that is too great, or of something too great, is looked at more closely.
    let is_great = |row: usize, value: f64| {
        (value.abs() >= EXACT) | (left.at(row).abs() >= EXACT) | (right.at(row).abs() >= EXACT)
    };
    for (row, &value) in values.iter().enumerate() {
        if is_great(row, value) && result.is_valid(row) && value_at(is_real, row) == Value::Integer(0) {
            return Err(INEXACT);
        }
    }
    Ok(result)
}

fn fractions(arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
    let [argument] = arguments else { return Err(MISTYPED) };
    let bits = match reals(argument)? {
        Reals::One(value) => Bitmap::filled(rows, is_fraction(value)),
        Reals::Each(values) => {
            let word = |values: &[f64]| {
                let bits = values.iter().enumerate();
                bits.fold(0, |word, (at, &value)| word | u64::from(is_fraction(value)) << at)
            };
            Bitmap::from_words(values.chunks(64).map(word).collect(), rows)
        }
    };
    Ok(Vector { logical: LogicalType::Bool, validity: validity(arguments, rows), values: Values::Bool(bits) })
}

fn exact_reals(arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
    let [argument] = arguments else { return Err(MISTYPED) };
    let mut builder = VectorBuilder::new(LogicalType::Float64);
    for row in 0..rows {
        match value_at(argument, row) {
            Value::Integer(integer) if as_real(integer).abs() < EXACT => {
                _ = builder.push_f64(as_real(integer))
            }
            Value::Integer(_) => return Err(INEXACT),
            _ => builder.push_null(),
        }
    }
    Ok(builder.finish(&|_, _, _| Box::default()))
}

fn are_settled(arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
    let [sum, any_fraction] = arguments else { return Err(MISTYPED) };
    let mut bits = Bitmap::filled(rows, false);
    for row in 0..rows {
        match (value_at(sum, row), value_at(any_fraction, row)) {
            (Value::Null, _) => {}
            (_, Value::Integer(1)) => bits.set(row, true),
            _ => return Err(Error::Decline(UNSETTLED)),
        }
    }
    Ok(Vector::new(LogicalType::Bool, Values::Bool(bits)))
}

#[cfg(test)]
mod tests {
    use crate::values::whole;
    use query::is_fraction;

    #[test]
    fn fractions_are_what_numeric_affinity_keeps() {
        for value in
            [0.0, -0.0, 0.5, -1.5, 7.0, 1e15, 4_503_599_627_370_495.5, 1e18, 9.3e18, -9.3e18, 1e300, 1e-300]
        {
            assert_eq!(is_fraction(value), whole(value).is_none(), "{value}");
        }
    }
}
