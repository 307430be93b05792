//! Comparisons, as SQLite makes them: affinities first, then classes, then values.

use query::{Aggregate, AggregateFunction, CaseRule, Expression, Function, TextOrder};
use std::cmp::Ordering;
use std::sync::Arc;
use vector::{CompareOp, LogicalType, VectorBuilder};

use super::expressions::unless_null;
use super::planner::Planner;
use super::typed::{Class, Typed, call, constant, null_of, truth, unsupported};
use crate::api::{Result, Value};
use crate::engine::aggregate;
use crate::values::{Affinity, Collation, Owned, as_real, integer_to_real, whole};

/// The same comparison with its sides exchanged.
const fn flipped(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Less => CompareOp::Greater,
        CompareOp::LessOrEqual => CompareOp::GreaterOrEqual,
        CompareOp::Greater => CompareOp::Less,
        CompareOp::GreaterOrEqual => CompareOp::LessOrEqual,
        other => other,
    }
}

impl Planner<'_> {
    /// A comparison, as a condition.
    pub fn compare(&mut self, op: CompareOp, a: Typed, b: Typed) -> Result<Expression> {
        let (a, b) = self.alike(a.plain(), b.plain())?;
        // Constants stand on the right: there a scan looks for them.
        let is_left = a.known().is_some()
            && b.known().is_none()
            && (a.class == Class::Text) == (b.class == Class::Text);
        let (op, a, b) = if is_left && a.class != Class::Text { (flipped(op), b, a) } else { (op, a, b) };
        if matches!(a.class, Class::Null) || matches!(b.class, Class::Null) {
            return Ok(null_of(LogicalType::Bool));
        }
        match (&a.class, &b.class) {
            (Class::Text, Class::Text) => {
                let collation = collation_of(&a, &b);
                let (left, right) = (folded(a, collation), folded(b, collation));
                Ok(compared(op, left, right))
            }
            // Numbers come before text.
            (Class::Text, _) => {
                Ok(unless_null(&[&a, &b], truth(op.holds(Ordering::Greater)), LogicalType::Bool))
            }
            (_, Class::Text) => {
                Ok(unless_null(&[&a, &b], truth(op.holds(Ordering::Less)), LogicalType::Bool))
            }
            (Class::Integer, Class::Integer) => Ok(compared(op, a.value, b.value)),
            (Class::Integer, _) => self.integer_and_real(op, a, b),
            (_, Class::Integer) => self.integer_and_real(flipped(op), b, a),
            _ => Ok(compared(op, a.value, b.value)),
        }
    }

    /// Both sides after the affinity of one has changed the other.
    fn alike(&self, a: Typed, b: Typed) -> Result<(Typed, Typed)> {
        let numeric = |typed: &Typed| typed.affinity.is_some_and(Affinity::is_numeric);
        let soft = |typed: &Typed| !numeric(typed);
        if numeric(&a) && soft(&b) {
            let b = self.as_number(b)?;
            return Ok((a, b));
        }
        if numeric(&b) && soft(&a) {
            let a = self.as_number(a)?;
            return Ok((a, b));
        }
        if a.affinity == Some(Affinity::Text) && b.affinity.is_none() {
            let b = self.as_text(b)?;
            return Ok((a, b));
        }
        if b.affinity == Some(Affinity::Text) && a.affinity.is_none() {
            let a = self.as_text(a)?;
            return Ok((a, b));
        }
        Ok((a, b))
    }

    /// What numeric affinity makes of text.
    fn as_number(&self, typed: Typed) -> Result<Typed> {
        if typed.class != Class::Text {
            return Ok(typed);
        }
        match typed.known() {
            Some(Some(text)) => self.numeric(text.value()),
            Some(None) => Ok(Typed::null()),
            None => Err(unsupported("a comparison of a column of text with numbers")),
        }
    }

    /// What text affinity makes of numbers.
    fn as_text(&self, typed: Typed) -> Result<Typed> {
        if !typed.class.is_number() {
            return Ok(typed);
        }
        match typed.known() {
            Some(Some(value)) => self.asked("CAST(?1 AS TEXT)", &[value.value()]),
            Some(None) => Ok(Typed::null()),
            None => Err(unsupported("a comparison of computed numbers with a column of text")),
        }
    }

    /// Compares an integer with a real, by value.
    fn integer_and_real(&mut self, op: CompareOp, a: Typed, b: Typed) -> Result<Expression> {
        if let Some(Some(Owned::Real(real))) = b.known() {
            return Ok(against_real(op, a, real));
        }
        if let Some(Some(Owned::Integer(integer))) = a.known()
            && integer_to_real(integer, as_real(integer)).is_eq()
        {
            return Ok(compared(op, constant(Value::Real(as_real(integer))), b.value));
        }
        if a.is_exact() {
            return Ok(compared(op, a.real(), b.value));
        }
        let order = |values: &[Value<'_>]| match values {
            [Value::Integer(a), Value::Real(b)] => Some(Owned::Integer(integer_to_real(*a, *b) as i64)),
            _ => None,
        };
        let order = self.row_function("order", LogicalType::Int64, order, vec![a.value, b.value]);
        Ok(compared(op, order, constant(Value::Integer(0))))
    }

    /// Two expressions of one type that are equal exactly where SQLite takes the values for equal: keys of a
    /// join.
    pub fn equal_keys(&mut self, a: Typed, b: Typed) -> Result<Option<(Expression, Expression)>> {
        let condition = self.compare(CompareOp::Equal, a, b)?;
        Ok(match condition {
            Expression::Call { function: Function::Compare(CompareOp::Equal), arguments, .. } => {
                match <[Expression; 2]>::try_from(arguments) {
                    Ok([a, b]) => Some((a, b)),
                    Err(_) => None,
                }
            }
            _ => None,
        })
    }
}

fn compared(op: CompareOp, a: Expression, b: Expression) -> Expression {
    call(Function::Compare(op), vec![a, b], LogicalType::Bool)
}

/// An integer against a constant.
#[allow(clippy::cast_possible_truncation)]
fn against_real(op: CompareOp, a: Typed, real: f64) -> Expression {
    if let Some(integer) = whole(real) {
        return compared(op, a.value, constant(Value::Integer(integer)));
    }
    let all = |holds: bool| unless_null(&[&a], truth(holds), LogicalType::Bool);
    match op {
        CompareOp::Equal => all(false),
        CompareOp::NotEqual => all(true),
        // Past all integers.
        _ if integer_to_real(i64::MAX, real).is_lt() => all(op.holds(Ordering::Less)),
        _ if integer_to_real(i64::MIN, real).is_gt() => all(op.holds(Ordering::Greater)),
        _ => {
            let below = constant(Value::Integer(real.floor() as i64));
            let upward = op.holds(Ordering::Greater);
            compared(if upward { CompareOp::Greater } else { CompareOp::LessOrEqual }, a.value, below)
        }
    }
}

/// The collation of a comparison: one that COLLATE names, the left one first, or that of the left column.
fn collation_of(a: &Typed, b: &Typed) -> Collation {
    if a.collation.1 {
        return a.collation.0;
    }
    if b.collation.1 {
        return b.collation.0;
    }
    match a.affinity {
        Some(_) => a.collation.0,
        None => b.collation.0,
    }
}

/// Text whose bytes are equal, and ordered, as the collation says.
pub fn folded(typed: Typed, collation: Collation) -> Expression {
    match collation {
        Collation::Binary => typed.value,
        Collation::NoCase => call(Function::Lower(CaseRule::Ascii), vec![typed.value], LogicalType::Text),
        Collation::RTrim => {
            call(Function::Trim { start: false, end: true }, vec![typed.value], LogicalType::Text)
        }
    }
}

/// How text compares by a collation. Equal texts compare bytewise, so that answers are the same each time.
pub fn text_order(collation: Collation) -> TextOrder {
    match collation {
        Collation::Binary => TextOrder::Bytes,
        other => TextOrder::Host(Arc::new(move |a, b| {
            other.folded(a).cmp(&other.folded(b)).then_with(|| a.cmp(b))
        })),
    }
}

/// Which of texts that are equal by a collation stands for them: the bytewise least. None where they are
/// equal bytes.
pub fn least_text(typed: &Typed, value: Expression) -> Option<Aggregate> {
    let differ = typed.class == Class::Text && typed.collation.0 != Collation::Binary;
    differ.then(|| aggregate(AggregateFunction::Min, vec![value], LogicalType::Text))
}

/// Equalities of which one has to hold. Those of one expression with constants become a list.
pub fn as_list(equals: Vec<Expression>) -> Expression {
    let mut value: Option<Expression> = None;
    let mut builder: Option<VectorBuilder> = None;
    for equal in &equals {
        let Expression::Call { arguments, .. } = equal else { return any(equals) };
        let [left, Expression::Constant(right)] = arguments.as_slice() else { return any(equals) };
        if matches!(left, Expression::Constant(_)) || value.as_ref().is_some_and(|value| value != left) {
            return any(equals);
        }
        value = Some(left.clone());
        let entries = builder.get_or_insert_with(|| VectorBuilder::new(right.logical));
        let fits = match &right.values {
            vector::Values::Int64(values) => values.first().is_some_and(|&value| entries.push_i64(value)),
            vector::Values::Float64(values) => values.first().is_some_and(|&value| entries.push_f64(value)),
            vector::Values::Bytes(views) => entries.push_bytes(views.get(0)),
            _ => false,
        };
        if !fits || !right.is_valid(0) {
            return any(equals);
        }
    }
    let (Some(value), Some(builder)) = (value, builder) else { return any(equals) };
    let entries = Arc::new(builder.finish(&|_, _, _| Box::default()));
    Expression::In { value: Box::new(value), entries }
}

fn any(mut conditions: Vec<Expression>) -> Expression {
    match conditions.len() {
        1 => conditions.remove(0),
        _ => Expression::Or(conditions),
    }
}
