//! Functions of decimals some of which are NaN or infinite.
//!
//! Wrapped around the functions of numbers. Those functions compute the rows whose arguments are all numbers.
//! Then the other rows get the server's results. Numbers of the side lane are declined. Rows for which the
//! server raises an error are declined, too, except for a division by zero.

use std::cmp::Ordering;
use std::sync::Arc;

use vector::{Bitmap, CompareOp, DisplayScales, LogicalType, Special, Values, Vector};

use super::{Output, Picked, TOO_WIDE, Value};
use crate::expression::Function;
use crate::expression::functions::Compute;
use crate::expression::functions::compare::holds;
use crate::{Error, Result, SqlError};

/// A function that also takes what is no number, where there is a rule for it.
pub(in crate::expression::functions) fn around(function: Function, (inner, cost): Picked) -> Picked {
    use Function as F;
    match function {
        F::Compare(_)
        | F::Add
        | F::Subtract
        | F::Multiply
        | F::Divide
        | F::Negate
        | F::Absolute
        | F::Round
        | F::Truncate
        | F::Ceiling
        | F::Floor
        | F::NumericLength { .. }
        | F::Cast(LogicalType::Float32 | LogicalType::Float64) => {
            (Box::new(Around { function, inner }), cost)
        }
        _ => (inner, cost),
    }
}

struct Around {
    function: Function,
    inner: Box<dyn Compute>,
}

/// An argument's value in a row.
#[derive(Clone, Copy)]
enum Operand {
    /// Its sign.
    Number(Ordering),
    Special(Special),
}

impl Compute for Around {
    fn compute(&mut self, arguments: &[Value], rows: usize, valid: Option<&Bitmap>) -> Result<Output> {
        let plain = arguments.iter().all(|argument| match &argument.inner().values {
            Values::Numeric(numeric) => numeric.side.is_empty(),
            _ => true,
        });
        if plain {
            return self.inner.compute(arguments, rows, valid);
        }
        let numbers = arguments.iter().map(without_side).collect::<Result<Vec<_>>>()?;
        let mut special: Vec<u32> = Vec::new();
        for argument in arguments {
            let Values::Numeric(numeric) = &argument.inner().values else { continue };
            match argument.constant() {
                Some(_) if !numeric.side.is_empty() => special.extend(0..rows as u32),
                Some(_) => {}
                None => special.extend(numeric.side.iter().map(|(row, _)| *row)),
            }
        }
        special.sort_unstable();
        special.dedup();
        special.retain(|&row| valid.is_none_or(|valid| valid.get(row as usize)));
        let mut plain: Bitmap = (0..rows).map(|row| valid.is_none_or(|valid| valid.get(row))).collect();
        special.iter().for_each(|&row| plain.set(row as usize, false));
        let mut output = self.inner.compute(&numbers, rows, Some(&plain))?;
        match (&mut output.values, self.function) {
            (Values::Bool(bits), Function::Compare(op)) => {
                let rows = bits.len();
                let mut words = bits.words().to_vec();
                for row in special {
                    let (a, b) = (operand(arguments, 0, row), operand(arguments, 1, row));
                    let bit = 1 << (row % 64);
                    if let Some(word) = words.get_mut(row as usize / 64) {
                        *word = if compared(op, a, b) { *word | bit } else { *word & !bit };
                    }
                }
                *bits = Bitmap::from_words(words, rows);
            }
            (Values::Numeric(numeric), function) => {
                for row in special {
                    let (a, b) = (operand(arguments, 0, row), operand(arguments, 1, row));
                    match computed(function, a, b)? {
                        Some(value) => numeric.side.push((row, value.bytes().into())),
                        // The integer is zero, as it was not computed.
                        None => show(&mut numeric.display, rows, row, 0),
                    }
                }
            }
            (Values::Float64(values), Function::Cast(_)) => {
                special.iter().for_each(|&row| values[row as usize] = float(operand(arguments, 0, row)));
            }
            (Values::Float32(values), Function::Cast(_)) => {
                special
                    .iter()
                    .for_each(|&row| values[row as usize] = float(operand(arguments, 0, row)) as f32);
            }
            _ => return Err(TOO_WIDE),
        }
        Ok(output)
    }
}

/// The argument with zeros, which its integers are there, in the place of what is no number.
fn without_side(argument: &Value) -> Result<Value> {
    let Values::Numeric(numeric) = &argument.inner().values else { return Ok(argument.clone()) };
    if numeric.side.is_empty() {
        return Ok(argument.clone());
    }
    numeric.specials().ok_or(TOO_WIDE)?;
    let mut numbers = numeric.clone();
    numbers.side = Vec::new();
    let inner = argument.inner();
    let mut vector = Vector { values: Values::Numeric(numbers), ..inner.clone() };
    if let (Some(_), Values::Constant(_, rows)) = (argument.constant(), &argument.vector.values) {
        vector = super::super::super::value::repeated(&vector, *rows);
    }
    Ok(Value { vector: Arc::new(vector), bounds: None })
}

/// What an argument is in a row; a missing one is like the first.
fn operand(arguments: &[Value], at: usize, row: u32) -> Operand {
    let Some(argument) = arguments.get(at) else { return Operand::Number(Ordering::Equal) };
    let Values::Numeric(numeric) = &argument.inner().values else { return Operand::Number(Ordering::Equal) };
    let row = if argument.constant().is_some() { 0 } else { row as usize };
    match numeric.side_value(row).and_then(Special::of) {
        Some(special) => Operand::Special(special),
        None => Operand::Number(numeric.ints.get(row).cmp(&0)),
    }
}

fn compared(op: CompareOp, a: Operand, b: Operand) -> bool {
    let rank = |operand| match operand {
        Operand::Special(Special::NegativeInfinity) => 0,
        Operand::Number(_) => 1,
        Operand::Special(Special::Infinity) => 2,
        Operand::Special(Special::Nan) => 3,
    };
    holds(op, rank(a).cmp(&rank(b)))
}

/// Sets how many digits a row shows.
fn show(display: &mut DisplayScales, rows: usize, row: u32, digits: u16) {
    if let DisplayScales::Constant(all) = *display {
        *display = DisplayScales::PerValue(vec![all; rows]);
    }
    if let DisplayScales::PerValue(scales) = display
        && let Some(scale) = scales.get_mut(row as usize)
    {
        *scale = digits;
    }
}

/// What is no number as a float.
fn float(operand: Operand) -> f64 {
    match operand {
        Operand::Special(Special::Infinity) => f64::INFINITY,
        Operand::Special(Special::NegativeInfinity) => f64::NEG_INFINITY,
        _ => f64::NAN,
    }
}

/// The result where one value at least is no number; None for zero.
fn computed(function: Function, a: Operand, b: Operand) -> Result<Option<Special>> {
    use Operand::Special as S;
    // The sign; None for NaN.
    let sign = |operand| match operand {
        S(Special::Nan) => None,
        S(Special::Infinity) => Some(Ordering::Greater),
        S(Special::NegativeInfinity) => Some(Ordering::Less),
        Operand::Number(sign) => Some(sign),
    };
    let infinity = |sign: Ordering| match sign {
        Ordering::Greater => Special::Infinity,
        Ordering::Less => Special::NegativeInfinity,
        Ordering::Equal => Special::Nan,
    };
    let (Some(of_a), Some(of_b)) = (sign(a), sign(b)) else { return Ok(Some(Special::Nan)) };
    // With the sign of a, or the other one where b is negative.
    let signed = infinity(if of_b.is_lt() { of_a.reverse() } else { of_a });
    Ok(Some(match (function, a, b) {
        (Function::Negate, S(_), _) => infinity(of_a.reverse()),
        (Function::Absolute, S(_), _) => Special::Infinity,
        (Function::Round | Function::Truncate | Function::Ceiling | Function::Floor, S(a), _) => a,
        (Function::Add, S(a), S(b)) if a != b => Special::Nan,
        (Function::Subtract, S(a), S(b)) if a == b => Special::Nan,
        (Function::Add | Function::Subtract, S(_), _) => infinity(of_a),
        (Function::Add, _, S(_)) => infinity(of_b),
        (Function::Subtract, _, S(_)) => infinity(of_b.reverse()),
        // Nothing times zero but NaN.
        (Function::Multiply, ..) if of_b.is_eq() => Special::Nan,
        (Function::Multiply, ..) => signed,
        (Function::Divide, S(_), S(_)) => Special::Nan,
        (Function::Divide, S(_), _) if of_b.is_eq() => return Err(Error::Sql(SqlError::DivisionByZero)),
        (Function::Divide, S(_), _) => signed,
        (Function::Divide, _, S(_)) => return Ok(None),
        _ => return Err(TOO_WIDE),
    }))
}
