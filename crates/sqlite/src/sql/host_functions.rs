//! Functions that SQLite defines otherwise than the engine, or that the engine has not, over vectors.
//!
//! They run on any thread and ask SQLite nothing. NULL in any argument gives NULL.

use std::any::Any;
use std::sync::{Arc, LazyLock};

use query::{Expression, HostFunction, Result};
use vector::{Bitmap, LogicalType, Values, Vector, VectorBuilder};

use super::typed::EXACT;
use crate::api::Value;
use crate::values::{Owned, as_real};

/// Computes one value. None is NULL.
pub type Body = fn(&[Value<'_>]) -> Option<Owned>;

/// A function that is computed row by row.
pub struct RowFunction {
    /// Its name.
    pub name: &'static str,
    /// The type of its values.
    pub result: LogicalType,
    /// What it computes.
    pub body: Body,
}

/// What is computed of two reals. A result that is no number is NULL, as SQLite has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// The same of numbers that are held as reals; the third argument says which results are reals. All others
/// are integers, which must be reals without loss.
pub struct NumberOperator(pub RealOperator);

/// What `Settled` ends a query with.
pub const UNSETTLED: &str = "a sum of whole numbers that may be a real";

/// Whether a sum (the first argument) is a real, from whether some value was a fraction (the second). Whole
/// values may all the same have been reals: then the query ends with `UNSETTLED`, to be planned anew.
struct Settled;

/// Whether a sum is a real.
pub fn settled(sum: Expression, any_fraction: Expression) -> Expression {
    static FUNCTION: LazyLock<Arc<Settled>> = LazyLock::new(|| Arc::new(Settled));
    let function: Arc<dyn HostFunction> = Arc::clone(&*FUNCTION) as _;
    Expression::Host { function, arguments: vec![sum, any_fraction], result: LogicalType::Bool }
}

/// Integers as reals, where none loses anything.
struct ExactReal;

/// Integers as reals, to stand beside reals in one column.
pub fn exact_real(integers: Expression) -> Expression {
    static FUNCTION: LazyLock<Arc<ExactReal>> = LazyLock::new(|| Arc::new(ExactReal));
    let function: Arc<dyn HostFunction> = Arc::clone(&*FUNCTION) as _;
    Expression::Host { function, arguments: vec![integers], result: LogicalType::Float64 }
}

/// Which of the reals are not whole numbers that fit an integer: a column of numeric affinity has integers
/// for all others.
pub struct IsFraction;

/// Whether a function is NULL where an argument is: not of all that SQLite computes.
pub fn is_strict(function: &dyn HostFunction) -> bool {
    let function = function.as_any();
    function.is::<RowFunction>() || function.is::<RealOperator>() || function.is::<NumberOperator>()
}

/// The value of a row.
pub fn value_at<'v>(vector: &'v Vector, row: usize) -> Value<'v> {
    let (vector, row) = match &vector.values {
        Values::Constant(one, _) => (one.as_ref(), 0),
        _ => (vector, row),
    };
    if !vector.is_valid(row) {
        return Value::Null;
    }
    match &vector.values {
        Values::Int64(values) => values.get(row).map_or(Value::Null, |&value| Value::Integer(value)),
        Values::Int32(values) => values.get(row).map_or(Value::Null, |&value| Value::Integer(value.into())),
        Values::Float64(values) => values.get(row).map_or(Value::Null, |&value| Value::Real(value)),
        Values::Bytes(views) => Value::Text(views.get(row)),
        Values::Bool(bits) => Value::Integer(bits.get(row).into()),
        _ => Value::Null,
    }
}

impl HostFunction for RowFunction {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
        let mut builder = VectorBuilder::new(self.result);
        let mut values = Vec::with_capacity(arguments.len());
        for row in 0..rows {
            values.clear();
            values.extend(arguments.iter().map(|vector| value_at(vector, row)));
            let result = if values.contains(&Value::Null) { None } else { (self.body)(&values) };
            let fits = match (&result, self.result) {
                (None, _) => {
                    builder.push_null();
                    true
                }
                (Some(Owned::Integer(value)), LogicalType::Bool) => builder.push_bool(*value != 0),
                (Some(Owned::Integer(value)), _) => builder.push_i64(*value),
                (Some(Owned::Real(value)), _) => builder.push_f64(*value),
                (Some(Owned::Text(bytes) | Owned::Blob(bytes)), _) => builder.push_bytes(bytes),
            };
            if !fits {
                return Err(query::Error::Decline("a value of another type"));
            }
        }
        Ok(builder.finish(&|_, _, _| Box::default()))
    }

    fn needs_host(&self) -> bool {
        false
    }

    fn takes_constants(&self) -> bool {
        true
    }

    fn name(&self) -> &str {
        self.name
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Whether a real is none that a column of numeric affinity makes an integer of. Below 2^52 adding what
/// leaves no room for a fraction changes it, from there to 2^63 all are whole.
#[inline(always)]
fn is_fraction(value: f64) -> bool {
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    let shift = WHOLE.copysign(value);
    let size = value.abs();
    ((size < WHOLE) & ((value + shift) - shift != value)) | (size >= 9_223_372_036_854_775_808.0)
}

/// Reals, or one for all rows.
enum Reals<'v> {
    Each(&'v [f64]),
    One(f64),
}

fn reals(vector: &Vector) -> Option<Reals<'_>> {
    match &vector.values {
        Values::Float64(values) => Some(Reals::Each(values)),
        Values::Constant(one, _) => match &one.values {
            Values::Float64(values) => values.first().map(|&value| Reals::One(value)),
            _ => None,
        },
        _ => None,
    }
}

/// The rows in which both have a value.
fn validity(vectors: &[Arc<Vector>], rows: usize) -> Option<Bitmap> {
    let is_whole = |vector: &Vector| {
        vector.validity.is_none()
            && !matches!(&vector.values, Values::Constant(one, _) if one.validity.is_some())
    };
    if vectors.iter().all(|vector| is_whole(vector)) {
        return None;
    }
    let mut valid = Bitmap::filled(rows, true);
    for row in 0..rows {
        if vectors.iter().any(|vector| value_at(vector, row) == Value::Null) {
            valid.set(row, false);
        }
    }
    Some(valid)
}

fn combined(a: &Reals<'_>, b: &Reals<'_>, rows: usize, of: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    match (a, b) {
        (Reals::Each(a), Reals::Each(b)) => a.iter().zip(*b).map(|(&a, &b)| of(a, b)).collect(),
        (Reals::Each(a), Reals::One(b)) => a.iter().map(|&a| of(a, *b)).collect(),
        (Reals::One(a), Reals::Each(b)) => b.iter().map(|&b| of(*a, b)).collect(),
        (Reals::One(a), Reals::One(b)) => vec![of(*a, *b); rows],
    }
}

impl HostFunction for RealOperator {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
        let mistyped = query::Error::Decline("arithmetic of something else than reals");
        let [a, b] = arguments else { return Err(mistyped) };
        let (Some(left), Some(right)) = (reals(a), reals(b)) else { return Err(mistyped) };
        let values = match self {
            Self::Add => combined(&left, &right, rows, |a, b| a + b),
            Self::Subtract => combined(&left, &right, rows, |a, b| a - b),
            Self::Multiply => combined(&left, &right, rows, |a, b| a * b),
            Self::Divide => combined(&left, &right, rows, |a, b| if b == 0.0 { f64::NAN } else { a / b }),
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

    fn needs_host(&self) -> bool {
        false
    }

    fn takes_constants(&self) -> bool {
        true
    }

    fn name(&self) -> &str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl HostFunction for NumberOperator {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
        let mistyped = query::Error::Decline("arithmetic of something else than numbers");
        let [a, b, is_real] = arguments else { return Err(mistyped) };
        let result = self.0.call(&[Arc::clone(a), Arc::clone(b)], rows)?;
        let (Some(left), Some(right), Values::Float64(values)) = (reals(a), reals(b), &result.values) else {
            return Err(mistyped);
        };
        let at = |values: &Reals<'_>, row: usize| match values {
            Reals::Each(values) => values.get(row).copied().unwrap_or_default(),
            Reals::One(value) => *value,
        };
        // A result that is too great, or of something too great, is looked at more closely.
        let is_great = |row: usize, value: f64| {
            (value.abs() >= EXACT) | (at(&left, row).abs() >= EXACT) | (at(&right, row).abs() >= EXACT)
        };
        for (row, &value) in values.iter().enumerate() {
            if is_great(row, value) && result.is_valid(row) && value_at(is_real, row) == Value::Integer(0) {
                return Err(query::Error::Decline("integers of more than 53 bits beside reals"));
            }
        }
        Ok(result)
    }

    fn needs_host(&self) -> bool {
        false
    }

    fn takes_constants(&self) -> bool {
        true
    }

    fn can_decline(&self) -> bool {
        true
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl HostFunction for Settled {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
        let [sum, any_fraction] = arguments else { return Err(query::Error::Decline("no argument")) };
        let mut bits = Bitmap::filled(rows, false);
        for row in 0..rows {
            match (value_at(sum, row), value_at(any_fraction, row)) {
                (Value::Null, _) => {}
                (_, Value::Integer(1)) => bits.set(row, true),
                _ => return Err(query::Error::Decline(UNSETTLED)),
            }
        }
        Ok(Vector::new(LogicalType::Bool, Values::Bool(bits)))
    }

    fn needs_host(&self) -> bool {
        false
    }

    fn takes_constants(&self) -> bool {
        true
    }

    fn can_decline(&self) -> bool {
        true
    }

    fn name(&self) -> &str {
        "is_real"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl HostFunction for ExactReal {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
        let mut builder = VectorBuilder::new(LogicalType::Float64);
        let Some(argument) = arguments.first() else { return Err(query::Error::Decline("no argument")) };
        for row in 0..rows {
            match value_at(argument, row) {
                Value::Integer(integer) if as_real(integer).abs() < EXACT => {
                    builder.push_f64(as_real(integer));
                }
                Value::Integer(_) => {
                    return Err(query::Error::Decline("integers of more than 53 bits beside reals"));
                }
                _ => builder.push_null(),
            }
        }
        Ok(builder.finish(&|_, _, _| Box::default()))
    }

    fn needs_host(&self) -> bool {
        false
    }

    fn takes_constants(&self) -> bool {
        true
    }

    fn can_decline(&self) -> bool {
        true
    }

    fn name(&self) -> &str {
        "real"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl HostFunction for IsFraction {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
        let mistyped = query::Error::Decline("a fraction of something else than a real");
        let [argument] = arguments else { return Err(mistyped) };
        let bits = match reals(argument).ok_or(mistyped)? {
            Reals::One(value) => Bitmap::filled(rows, is_fraction(value)),
            Reals::Each(values) => {
                let word = |values: &[f64]| {
                    let bits = values.iter().enumerate();
                    bits.fold(0, |word, (at, &value)| word | u64::from(is_fraction(value)) << at)
                };
                Bitmap::from_words(values.chunks(64).map(word).collect(), rows)
            }
        };
        Ok(Vector {
            logical: LogicalType::Bool,
            validity: validity(arguments, rows),
            values: Values::Bool(bits),
        })
    }

    fn needs_host(&self) -> bool {
        false
    }

    fn takes_constants(&self) -> bool {
        true
    }

    fn name(&self) -> &str {
        "is_fraction"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::is_fraction;
    use crate::values::whole;

    #[test]
    fn fractions_are_what_numeric_affinity_keeps() {
        for value in
            [0.0, -0.0, 0.5, -1.5, 7.0, 1e15, 4_503_599_627_370_495.5, 1e18, 9.3e18, -9.3e18, 1e300, 1e-300]
        {
            assert_eq!(is_fraction(value), whole(value).is_none(), "{value}");
        }
    }
}
