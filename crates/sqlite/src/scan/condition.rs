//! A term with its value: asked of single values, or turned into a predicate for the columns of one kind.

use std::cmp::Ordering;

use vector::{CompareOp, Predicate, Scalar};

use super::search::Term;
use crate::api::{Argument, Operator, Result, Value};
use crate::values::{Affinity, Collation, Kind, Owned, as_real, integer_to_real};

/// What has to hold of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Where the column lies.
    pub place: usize,
    /// How text compares. What text is compared with is folded.
    collation: Collation,
    /// Values of another class than the constant's may be compared otherwise than said here.
    of_class_only: bool,
    test: Test,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    /// No value passes.
    Never,
    Null,
    NotNull,
    Compare(CompareOp, Owned),
    In(Vec<Owned>),
}

/// The value that SQLite compares a column of this affinity with. None if it is not known how SQLite
/// compares.
fn compared<'a>(term: &Term, affinity: Affinity, given: Argument<'a>) -> Option<Value<'a>> {
    let known = term.is_literal || given.is_parameter();
    let value = match (affinity, given.value()) {
        (Affinity::Numeric | Affinity::Real, _) => given.numeric(),
        // A CAST looks like a literal. One to a number makes numbers of the column's text.
        (Affinity::Text, Value::Integer(_) | Value::Real(_)) => return None,
        (_, other) if known => other,
        (_, Value::Text(text)) if term.operator == Operator::Equal => Value::Text(text),
        _ => return None,
    };
    // A collation may take other text for equal, or order it otherwise.
    (term.is_binary || !matches!(value, Value::Text(_))).then_some(value)
}

impl Condition {
    /// The condition of a term with its value. None if it says nothing that the engine can use.
    pub fn of(term: &Term, affinity: Affinity, given: Argument<'_>) -> Result<Option<Self>> {
        let collation = Collation::Binary;
        let made = |test| {
            Some(Self { place: term.place, collation, of_class_only: affinity == Affinity::Blob, test })
        };
        let op = match term.operator {
            Operator::IsNull => return Ok(made(Test::Null)),
            Operator::IsNotNull => return Ok(made(Test::NotNull)),
            Operator::Limit | Operator::Offset => return Ok(None),
            Operator::Equal => CompareOp::Equal,
            Operator::Less => CompareOp::Less,
            Operator::LessEqual => CompareOp::LessOrEqual,
            Operator::Greater => CompareOp::Greater,
            Operator::GreaterEqual => CompareOp::GreaterOrEqual,
        };
        if term.is_list {
            let mut values = Vec::new();
            let mut unknown = false;
            given.for_each_in(|value| match compared(term, affinity, value) {
                Some(value) => values.extend(Owned::of(value)),
                None => unknown = true,
            })?;
            return Ok(if unknown { None } else { made(Test::In(values)) });
        }
        let Some(value) = compared(term, affinity, given) else { return Ok(None) };
        Ok(made(match Owned::of(value) {
            None => Test::Never,
            Some(value) => Test::Compare(op, value),
        }))
    }

    /// As SQL, of the column of this name.
    pub fn shown(&self, column: &str) -> String {
        match &self.test {
            Test::Never => "0".into(),
            Test::Null => format!("{column} IS NULL"),
            Test::NotNull => format!("{column} IS NOT NULL"),
            Test::Compare(op, value) => {
                let sign = match op {
                    CompareOp::Equal => "=",
                    CompareOp::NotEqual => "<>",
                    CompareOp::Less => "<",
                    CompareOp::LessOrEqual => "<=",
                    CompareOp::Greater => ">",
                    CompareOp::GreaterOrEqual => ">=",
                };
                format!("{column} {sign} {}", value.shown())
            }
            Test::In(values) => {
                let values: Vec<String> = values.iter().map(Owned::shown).collect();
                format!("{column} IN ({})", values.join(", "))
            }
        }
    }

    /// A column lies between two values, as `BETWEEN` says: both ends count. The bounds are literals, so the
    /// column's affinity holds.
    pub fn between(
        place: usize,
        affinity: Affinity,
        collation: Collation,
        (low, high): (Argument<'_>, Argument<'_>),
    ) -> [Self; 2] {
        let bound = |op, given: Argument<'_>| {
            let value = match (affinity, given.value()) {
                (Affinity::Numeric | Affinity::Real, _) => given.numeric(),
                (Affinity::Text, Value::Integer(_) | Value::Real(_)) => Value::Text(given.text()),
                (_, other) => other,
            };
            let folded = match value {
                Value::Text(text) => Some(Owned::Text(collation.folded(text).into())),
                other => Owned::of(other),
            };
            Self {
                place,
                collation,
                of_class_only: false,
                test: folded.map_or(Test::Never, |value| Test::Compare(op, value)),
            }
        };
        [bound(CompareOp::GreaterOrEqual, low), bound(CompareOp::LessOrEqual, high)]
    }

    /// A column compares so with a constant, after affinities; text bytewise.
    pub const fn comparing(place: usize, op: CompareOp, value: Owned) -> Self {
        Self::of_test(place, Test::Compare(op, value))
    }

    /// A column is equal to one of these.
    pub const fn one_of(place: usize, values: Vec<Owned>) -> Self {
        Self::of_test(place, Test::In(values))
    }

    /// A column is NULL, or is not.
    pub const fn null(place: usize, is_null: bool) -> Self {
        Self::of_test(place, if is_null { Test::Null } else { Test::NotNull })
    }

    const fn of_test(place: usize, test: Test) -> Self {
        Self { place, collation: Collation::Binary, of_class_only: false, test }
    }

    /// The id that rows must have, if the condition names one.
    pub fn row_id(&self) -> Option<i64> {
        match &self.test {
            Test::Compare(CompareOp::Equal, Owned::Integer(id)) if self.place == 0 => Some(*id),
            _ => None,
        }
    }

    /// Whether a value passes.
    pub fn passes(&self, value: Value<'_>) -> bool {
        if self.of_class_only && value != Value::Null && !self.is_of_class(value) {
            return true;
        }
        match (&self.test, value) {
            (Test::Null, value) => value == Value::Null,
            (_, Value::Null) | (Test::Never, _) => false,
            (Test::NotNull, _) => true,
            (Test::Compare(op, constant), value) => op.holds(self.collation.compare(value, constant.value())),
            (Test::In(values), value) => {
                values.iter().any(|one| self.collation.compare(value, one.value()) == Ordering::Equal)
            }
        }
    }

    /// Whether what a value is compared with has its class. Numbers are one.
    fn is_of_class(&self, value: Value<'_>) -> bool {
        let same = |constant: &Owned| {
            let number = |value: Value<'_>| matches!(value, Value::Integer(_) | Value::Real(_));
            let constant = constant.value();
            (number(value) && number(constant))
                || std::mem::discriminant(&value) == std::mem::discriminant(&constant)
        };
        match &self.test {
            Test::Never | Test::Null | Test::NotNull => true,
            Test::Compare(_, constant) => same(constant),
            Test::In(constants) => constants.iter().all(same),
        }
    }

    /// The predicate that says the same of column `column` of a stripe, where values are of this kind. None
    /// if values have to be looked at one by one.
    pub fn predicate(&self, column: usize, kind: Kind) -> Option<Predicate> {
        if kind == Kind::Text && self.collation != Collation::Binary {
            return None;
        }
        let example = match kind {
            Kind::Integer | Kind::Real | Kind::Number => Some(Value::Integer(0)),
            Kind::Text => Some(Value::Text(b"")),
            Kind::Null | Kind::Mixed => None,
        };
        if self.of_class_only && example.is_some_and(|example| !self.is_of_class(example)) {
            return Some(Predicate::Always(true));
        }
        Some(match &self.test {
            Test::Never => Predicate::Always(false),
            Test::Null => Predicate::IsNull { column },
            Test::NotNull => Predicate::IsNotNull { column },
            Test::Compare(..) | Test::In(_) if kind == Kind::Null => Predicate::Always(false),
            Test::Compare(op, value) => comparison(column, kind, *op, value)?,
            Test::In(values) => {
                let scalars: Option<Vec<Option<Scalar>>> =
                    values.iter().map(|value| equal(kind, value)).collect();
                let values: Vec<Scalar> = scalars?.into_iter().flatten().collect();
                match values.is_empty() {
                    true => Predicate::Always(false),
                    false => Predicate::In { column, values },
                }
            }
        })
    }
}

/// The value of this kind that equals another one. `Some(None)`: no value of the kind does. None: not known.
fn equal(kind: Kind, value: &Owned) -> Option<Option<Scalar>> {
    Some(match (kind, value) {
        (Kind::Mixed | Kind::Null, _) => return None,
        (Kind::Integer, Owned::Integer(integer)) => Some(Scalar::Int(*integer)),
        (Kind::Integer, Owned::Real(real)) => exact_integer(*real).map(Scalar::Int),
        (Kind::Real | Kind::Number, Owned::Real(real)) => Some(Scalar::Float(*real)),
        (Kind::Real | Kind::Number, Owned::Integer(integer)) => {
            let real = as_real(*integer);
            integer_to_real(*integer, real).is_eq().then_some(Scalar::Float(real))
        }
        (Kind::Text, Owned::Text(text)) => Some(Scalar::Bytes(text.clone())),
        _ => None,
    })
}

#[allow(clippy::cast_possible_truncation)]
fn exact_integer(real: f64) -> Option<i64> {
    let integer = real as i64;
    integer_to_real(integer, real).is_eq().then_some(integer)
}

/// The predicate for a comparison. Values of another class are all less or all greater.
#[allow(clippy::cast_possible_truncation)]
fn comparison(column: usize, kind: Kind, op: CompareOp, value: &Owned) -> Option<Predicate> {
    let compare = |op, value| Some(Predicate::Compare { column, op, value });
    if op == CompareOp::Equal {
        let value = equal(kind, value)?;
        return value.map_or(Some(Predicate::Always(false)), |value| compare(op, value));
    }
    let upward = matches!(op, CompareOp::Greater | CompareOp::GreaterOrEqual);
    // `all`: every value that is not NULL passes.
    let all_or_none =
        |all: bool| Some(if all { Predicate::IsNotNull { column } } else { Predicate::Always(false) });
    match (kind, value) {
        (Kind::Mixed | Kind::Null, _) => None,
        (Kind::Integer, Owned::Integer(integer)) => compare(op, Scalar::Int(*integer)),
        (Kind::Integer, Owned::Real(real)) => {
            if let Some(integer) = exact_integer(*real) {
                return compare(op, Scalar::Int(integer));
            }
            // Between two integers, or outside all of them.
            if integer_to_real(i64::MAX, *real).is_lt() {
                return all_or_none(!upward);
            }
            if integer_to_real(i64::MIN, *real).is_gt() {
                return all_or_none(upward);
            }
            let below = real.floor() as i64;
            compare(if upward { CompareOp::Greater } else { CompareOp::LessOrEqual }, Scalar::Int(below))
        }
        (Kind::Real | Kind::Number, Owned::Real(real)) => compare(op, Scalar::Float(*real)),
        (Kind::Real | Kind::Number, Owned::Integer(integer)) => {
            let real = as_real(*integer);
            // No real lies between the integer and the one that it was rounded to.
            let op = match (integer_to_real(*integer, real), upward) {
                (Ordering::Equal, _) => op,
                (Ordering::Less, true) => CompareOp::GreaterOrEqual,
                (Ordering::Less, false) => CompareOp::Less,
                (Ordering::Greater, true) => CompareOp::Greater,
                (Ordering::Greater, false) => CompareOp::LessOrEqual,
            };
            compare(op, Scalar::Float(real))
        }
        (Kind::Text, Owned::Text(text)) => compare(op, Scalar::Bytes(text.clone())),
        (Kind::Integer | Kind::Real | Kind::Number, _) => all_or_none(!upward),
        (Kind::Text, Owned::Blob(_)) => all_or_none(!upward),
        (Kind::Text, _) => all_or_none(upward),
    }
}

#[cfg(test)]
mod tests {
    use super::{Condition, Owned, Test};
    use crate::api::Value;
    use crate::values::Kind;
    use vector::{CompareOp, Predicate, Scalar};

    /// Whether a number passes a predicate about it.
    fn passes(predicate: &Predicate, value: f64, integer: Option<i64>) -> bool {
        match predicate {
            Predicate::Always(all) => *all,
            Predicate::IsNotNull { .. } => true,
            Predicate::Compare { op, value: Scalar::Int(bound), .. } => op.holds(integer.unwrap().cmp(bound)),
            Predicate::Compare { op, value: Scalar::Float(bound), .. } => {
                op.holds(value.partial_cmp(bound).unwrap())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn predicates_say_what_single_values_are_asked() {
        let integers = [
            i64::MIN,
            -9_007_199_254_740_993,
            -2,
            -1,
            0,
            1,
            2,
            9_007_199_254_740_993,
            i64::MAX - 1,
            i64::MAX,
        ];
        let reals = [
            f64::NEG_INFINITY,
            -9.3e18,
            -9_223_372_036_854_775_808.0,
            -9_007_199_254_740_992.0,
            -1.5,
            -1.0,
            0.0,
            0.5,
            2.0,
            9_007_199_254_740_992.0,
            9_007_199_254_740_994.0,
            9_223_372_036_854_775_808.0,
            f64::INFINITY,
        ];
        let mut constants: Vec<Owned> = integers.iter().map(|&integer| Owned::Integer(integer)).collect();
        constants.extend(reals.iter().map(|&real| Owned::Real(real)));
        constants.extend([Owned::Text((*b"5").into()), Owned::Blob((*b"5").into())]);
        for constant in &constants {
            for op in [
                CompareOp::Equal,
                CompareOp::Less,
                CompareOp::LessOrEqual,
                CompareOp::Greater,
                CompareOp::GreaterOrEqual,
            ] {
                let condition = Condition {
                    place: 1,
                    collation: super::Collation::Binary,
                    of_class_only: false,
                    test: Test::Compare(op, constant.clone()),
                };
                let about = format!("{op:?} {constant:?}");
                let predicate = condition.predicate(1, Kind::Integer).unwrap();
                for &integer in &integers {
                    let expected = condition.passes(Value::Integer(integer));
                    assert_eq!(passes(&predicate, 0.0, Some(integer)), expected, "{integer} {about}");
                }
                let predicate = condition.predicate(1, Kind::Real).unwrap();
                for &real in &reals {
                    assert_eq!(
                        passes(&predicate, real, None),
                        condition.passes(Value::Real(real)),
                        "{real} {about}"
                    );
                }
            }
        }
    }
}
