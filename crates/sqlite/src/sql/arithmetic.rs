//! Arithmetic as SQLite computes it: integers stay integers, division by zero is NULL.
//!
//! A result that no integer holds becomes a real in SQLite. Here it ends the query with an error, as the
//! class of a column is known before.

use query::{Expression, Function};
use sqlite3_parser::ast::Operator;
use vector::{CompareOp, LogicalType};

use super::expressions::integer;
use super::kernels;
use super::planner::Planner;
use super::typed::{Class, EXACT, Typed, call, null_of, truth, unsupported};
use crate::api::{Result, Value};
use crate::values::Owned;
use kernels::RealOperator;

impl Planner<'_> {
    /// `+`, `-`, `*`, `/` and `%`.
    pub fn arithmetic(&mut self, operator: Operator, a: Typed, b: Typed) -> Result<Typed> {
        let sign = match operator {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            _ => "%",
        };
        if let Some(known) = self.folded(&format!("?1 {sign} ?2"), &[&a, &b])? {
            return Ok(known);
        }
        let (a, b) = (a.plain(), b.plain());
        if matches!(a.class, Class::Null) || matches!(b.class, Class::Null) {
            return Ok(Typed::null());
        }
        if !a.class.is_number() || !b.class.is_number() {
            return Err(unsupported("arithmetic with text: CAST it to INTEGER or REAL"));
        }
        let limit = match (operator, a.limit, b.limit) {
            (Operator::Add | Operator::Subtract, Some(a), Some(b)) => Some(a + b),
            (Operator::Multiply, Some(a), Some(b)) => Some(a * b),
            _ => None,
        };
        if a.class == Class::Integer && b.class == Class::Integer {
            return Ok(Typed::new(integers(operator, a.value, b.value), Class::Integer).within(limit));
        }
        if operator == Operator::Modulus {
            return Err(unsupported("% with reals: CAST them to INTEGER"));
        }
        let flags = (a.is_real(), b.is_real());
        let real_operator = match operator {
            Operator::Add => RealOperator::Add,
            Operator::Subtract => RealOperator::Subtract,
            Operator::Multiply => RealOperator::Multiply,
            _ => RealOperator::Divide,
        };
        let is_real_for_sure = a.class == Class::Real || b.class == Class::Real;
        if is_real_for_sure {
            let value = kernels::real_arithmetic(real_operator, a.real(), b.real());
            return Ok(Typed::new(value, Class::Real).within(limit));
        }
        // Of two integers the result is an integer, and a quotient is cut.
        let is_real = match flags {
            (flag, other) if other == truth(false) => flag,
            (other, flag) if other == truth(false) => flag,
            (a, b) => Expression::Or(vec![a, b]),
        };
        let is_exact = a.is_exact()
            && b.is_exact()
            && (operator == Operator::Divide || limit.is_some_and(|limit| limit < EXACT));
        let (x, y) = (a.real(), b.real());
        let mut value = match is_exact {
            true => kernels::real_arithmetic(real_operator, x, y),
            false => kernels::number_arithmetic(real_operator, x, y, is_real.clone()),
        };
        if operator == Operator::Divide {
            let cut = call(Function::Truncate, vec![value.clone()], LogicalType::Float64);
            let branches = vec![(is_real.clone(), value)];
            value =
                Expression::Case { branches, otherwise: Some(Box::new(cut)), result: LogicalType::Float64 };
        }
        Ok(Typed::new(value, Class::Number(Box::new(is_real))).within(limit))
    }

    /// `&`, `|`, `<<` and `>>`.
    pub fn bits(&mut self, operator: Operator, a: Typed, b: Typed) -> Result<Typed> {
        let (a, b) = (a.plain(), b.plain());
        let (name, sign, body): (_, _, super::host_functions::Body) = match operator {
            Operator::BitwiseAnd => ("&", "&", |values| of_integers(values, |a, b| a & b)),
            Operator::BitwiseOr => ("|", "|", |values| of_integers(values, |a, b| a | b)),
            Operator::LeftShift => ("<<", "<<", |values| of_integers(values, shifted)),
            _ => (">>", ">>", |values| of_integers(values, |a, by| shifted(a, by.saturating_neg()))),
        };
        if let Some(known) = self.folded(&format!("?1 {sign} ?2"), &[&a, &b])? {
            return Ok(known);
        }
        match (&a.class, &b.class) {
            (Class::Null, _) | (_, Class::Null) => Ok(Typed::null()),
            (Class::Integer, Class::Integer) => {
                let value = self.row_function(name, LogicalType::Int64, body, vec![a.value, b.value]);
                Ok(Typed::new(value, Class::Integer))
            }
            _ => Err(unsupported("bits of other values than integers")),
        }
    }

    /// `~`.
    pub fn bitwise_not(&mut self, a: Typed) -> Result<Typed> {
        let minus_one = Typed::constant(Value::Integer(-1))?;
        match a.class {
            Class::Integer => self.arithmetic(Operator::Subtract, minus_one, a),
            _ => Err(unsupported("bits of other values than integers")),
        }
    }
}

fn of_integers(values: &[Value<'_>], of: fn(i64, i64) -> i64) -> Option<Owned> {
    match values {
        [Value::Integer(a), Value::Integer(b)] => Some(Owned::Integer(of(*a, *b))),
        _ => None,
    }
}

/// Shifted to the left, or to the right by less than nothing.
const fn shifted(value: i64, by: i64) -> i64 {
    match by {
        64.. => 0,
        0..64 => value << by,
        -63..0 => value >> -by,
        _ => value >> 63,
    }
}

fn integers(operator: Operator, a: Expression, b: Expression) -> Expression {
    let binary = |function, a, b| call(function, vec![a, b], LogicalType::Int64);
    match operator {
        Operator::Add => binary(Function::Add, a, b),
        Operator::Subtract => binary(Function::Subtract, a, b),
        Operator::Multiply => binary(Function::Multiply, a, b),
        _ => {
            let function = if operator == Operator::Divide { Function::Divide } else { Function::Modulo };
            if let Expression::Constant(divisor) = &b
                && matches!(&divisor.values, vector::Values::Int64(values) if values.first().is_some_and(|&by| by != 0))
            {
                return binary(function, a, b);
            }
            let by_zero =
                call(Function::Compare(CompareOp::Equal), vec![b.clone(), integer(0)], LogicalType::Bool);
            let branches = vec![(by_zero, null_of(LogicalType::Int64))];
            let quotient = Some(Box::new(binary(function, a, b)));
            Expression::Case { branches, otherwise: quotient, result: LogicalType::Int64 }
        }
    }
}
