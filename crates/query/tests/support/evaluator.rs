//! A slow reference for expressions: one row and one plain value at a time, written without looking at the
//! evaluator.

use query::{Expression, Function};
use vector::{CompareOp, LogicalType, Vector, compare_decimals, compare_floats};

use super::values::{Plain, at, single};

/// The query ends.
#[derive(Debug)]
pub struct Fails;

fn compare(op: CompareOp, a: &Plain, b: &Plain) -> bool {
    let ordering = match (a, b) {
        (Plain::Bool(a), Plain::Bool(b)) => a.cmp(b),
        (Plain::Int(a), Plain::Int(b)) => a.cmp(b),
        (Plain::Float(a), Plain::Float(b)) => compare_floats(*a, *b),
        (Plain::Numeric(a, a_scale, _), Plain::Numeric(b, b_scale, _)) => {
            compare_decimals(*a, *a_scale, *b, *b_scale)
        }
        (Plain::Text(a), Plain::Text(b)) => a.cmp(b),
        _ => panic!("{a:?} against {b:?}"),
    };
    match op {
        CompareOp::Equal => ordering.is_eq(),
        CompareOp::NotEqual => ordering.is_ne(),
        CompareOp::Less => ordering.is_lt(),
        CompareOp::LessOrEqual => ordering.is_le(),
        CompareOp::Greater => ordering.is_gt(),
        CompareOp::GreaterOrEqual => ordering.is_ge(),
    }
}

/// The value of an expression in a row.
pub fn evaluate(expression: &Expression, columns: &[Vector], row: usize) -> Result<Plain, Fails> {
    let value = |part: &Expression| evaluate(part, columns, row);
    Ok(match expression {
        Expression::Column(column) => at(&columns[*column], row),
        Expression::Constant(value) => at(value, 0),
        Expression::Call { function, arguments: parts, result } => {
            let arguments = parts.iter().map(value).collect::<Result<Vec<_>, _>>()?;
            if arguments.contains(&Plain::Null) {
                return Ok(Plain::Null);
            }
            match function {
                Function::Compare(_)
                | Function::Add
                | Function::Subtract
                | Function::Multiply
                | Function::Divide
                | Function::Modulo
                | Function::Negate
                | Function::Absolute
                    if computed_here(*function, &parts_types(parts, columns)) =>
                {
                    call(*function, &arguments, *result)?
                }
                _ => alone(expression, &arguments, columns)?,
            }
        }
        Expression::Host { .. } => unreachable!(),
        Expression::And(parts) | Expression::Or(parts) => {
            let decisive = matches!(expression, Expression::Or(_));
            let mut null = false;
            for part in parts {
                match value(part)? {
                    Plain::Bool(verdict) if verdict == decisive => return Ok(Plain::Bool(decisive)),
                    Plain::Null => null = true,
                    _ => {}
                }
            }
            if null { Plain::Null } else { Plain::Bool(!decisive) }
        }
        Expression::Not(part) => match value(part)? {
            Plain::Bool(verdict) => Plain::Bool(!verdict),
            other => other,
        },
        Expression::IsNull(part) => Plain::Bool(value(part)? == Plain::Null),
        Expression::Case { branches, otherwise, .. } => {
            for (condition, then) in branches {
                if value(condition)? == Plain::Bool(true) {
                    return value(then);
                }
            }
            match otherwise {
                Some(otherwise) => value(otherwise)?,
                None => Plain::Null,
            }
        }
        Expression::Coalesce(parts) => {
            for part in parts {
                let found = value(part)?;
                if found != Plain::Null {
                    return Ok(found);
                }
            }
            Plain::Null
        }
        Expression::In { value: part, entries } => {
            let found = value(part)?;
            if found == Plain::Null {
                return Ok(Plain::Null);
            }
            let entries: Vec<Plain> = (0..entries.len()).map(|row| at(entries, row)).collect();
            let hit = |entry: &&Plain| **entry != Plain::Null && compare(CompareOp::Equal, entry, &found);
            match (entries.iter().find(hit), entries.contains(&Plain::Null)) {
                (Some(_), _) => Plain::Bool(true),
                (None, true) => Plain::Null,
                (None, false) => Plain::Bool(false),
            }
        }
    })
}

fn parts_types(parts: &[Expression], columns: &[Vector]) -> Vec<LogicalType> {
    let types: Vec<LogicalType> = columns.iter().map(|column| column.logical).collect();
    parts.iter().map(|part| part.logical(&types)).collect()
}

/// Dates and quotients of decimals are left to `functions.rs`, comparisons are not.
fn computed_here(function: Function, types: &[LogicalType]) -> bool {
    let quotient = function == Function::Divide && types.contains(&LogicalType::Numeric);
    matches!(function, Function::Compare(_)) || !(quotient || types.contains(&LogicalType::Date))
}

/// The function of one row of flat columns: `functions.rs` compares that with the server.
fn alone(expression: &Expression, arguments: &[Plain], columns: &[Vector]) -> Result<Plain, Fails> {
    let Expression::Call { function, arguments: parts, result } = expression else { unreachable!() };
    let types: Vec<LogicalType> = columns.iter().map(|column| column.logical).collect();
    let values: Vec<Vector> =
        parts.iter().zip(arguments).map(|(part, value)| single(part.logical(&types), value)).collect();
    let argument = |(at, part): (usize, &Expression)| match part {
        Expression::Constant(_) => part.clone(),
        _ => Expression::Column(at),
    };
    let arguments = parts.iter().enumerate().map(argument).collect();
    let call = Expression::Call { function: *function, arguments, result: *result };
    let batch = query::Batch::new(1, values.into_iter().map(std::sync::Arc::new).collect());
    query::Evaluator::new(&call).evaluate(&batch).map(|found| at(&found, 0)).map_err(|_| Fails)
}

fn in_type(value: i128, logical: LogicalType) -> Result<Plain, Fails> {
    let (low, high) = match logical {
        LogicalType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        LogicalType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
    };
    if value < low || value > high { Err(Fails) } else { Ok(Plain::Int(value as i64)) }
}

fn call(function: Function, arguments: &[Plain], result: LogicalType) -> Result<Plain, Fails> {
    use Plain::{Float, Int, Numeric};
    Ok(match (function, arguments) {
        (Function::Compare(op), [a, b]) => Plain::Bool(compare(op, a, b)),
        (_, [Int(a), Int(b)]) => {
            let (a, b) = (i128::from(*a), i128::from(*b));
            let value = match function {
                Function::Add => a + b,
                Function::Subtract => a - b,
                Function::Multiply => a * b,
                Function::Divide | Function::Modulo if b == 0 => return Err(Fails),
                Function::Divide => a / b,
                Function::Modulo => a % b,
                _ => panic!("{function:?}"),
            };
            in_type(value, result)?
        }
        (Function::Negate, [Int(a)]) => in_type(-i128::from(*a), result)?,
        (Function::Absolute, [Int(a)]) => in_type(i128::from(*a).abs(), result)?,
        (Function::Negate, [Float(a)]) => Float(-a),
        (Function::Absolute, [Float(a)]) => Float(a.abs()),
        (_, [Float(a), Float(b)]) => {
            let value = match function {
                Function::Add => a + b,
                Function::Subtract => a - b,
                Function::Multiply => a * b,
                Function::Divide if *b == 0.0 && !a.is_nan() => return Err(Fails),
                Function::Divide => a / b,
                _ => panic!("{function:?}"),
            };
            let infinite = a.is_infinite() || b.is_infinite() && function != Function::Divide;
            if value.is_infinite() && !infinite {
                return Err(Fails);
            }
            let vanishes = match function {
                Function::Multiply => *a != 0.0 && *b != 0.0,
                Function::Divide => *a != 0.0 && !b.is_infinite(),
                _ => false,
            };
            if value == 0.0 && vanishes {
                return Err(Fails);
            }
            Float(value)
        }
        (Function::Negate, [Numeric(a, scale, display)]) => Numeric(-a, *scale, *display),
        (Function::Absolute, [Numeric(a, scale, display)]) => Numeric(a.abs(), *scale, *display),
        (Function::Multiply, [Numeric(a, a_scale, a_display), Numeric(b, b_scale, b_display)]) => {
            Numeric(a.checked_mul(*b).ok_or(Fails)?, a_scale + b_scale, a_display + b_display)
        }
        (_, [Numeric(a, a_scale, a_display), Numeric(b, b_scale, b_display)]) => {
            let scale = *a_scale.max(b_scale);
            let up = |value: i128, own: u16| {
                10i128.checked_pow(u32::from(scale - own)).and_then(|p| value.checked_mul(p))
            };
            let (a, b) = up(*a, *a_scale).zip(up(*b, *b_scale)).ok_or(Fails)?;
            let value = match function {
                Function::Add => a.checked_add(b),
                Function::Subtract => a.checked_sub(b),
                Function::Modulo => a.checked_rem(b),
                _ => panic!("{function:?}"),
            };
            Numeric(value.ok_or(Fails)?, scale, *a_display.max(b_display))
        }
        _ => panic!("{function:?} of {arguments:?}"),
    })
}
