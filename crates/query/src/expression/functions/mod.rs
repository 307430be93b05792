//! The functions' implementations, a folder or file for each kind. `compile` picks one when an expression is
//! compiled; `Compute::compute` runs it over a batch.

mod cast;
mod compare;
mod dates;
mod floats;
mod integers;
mod lanes;
mod numeric;
mod text;

pub(crate) use dates::after_interval;
pub use text::regexp::is_known as is_known_regexp;

use vector::{Bitmap, LogicalType, Values, Vector};

use super::function::Function;
pub(super) use super::node::Output;
pub(super) use super::value::Value;
use crate::{Error, Result};
pub(super) use compare::{by_row, equal_to_any};

/// A function picked for its argument types, with what it may remember (a compiled pattern, say).
pub(super) trait Compute: Send {
    /// Values for `rows` rows. Arguments are flat or constants. At least one is flat, unless `rows` is 1. No
    /// constant is NULL. Rows that are not in `valid` must not fail; their values are ignored.
    fn compute(&mut self, arguments: &[Value], rows: usize, valid: Option<&Bitmap>) -> Result<Output>;
}

/// A function that remembers nothing.
impl<F: FnMut(&[Value], usize, Option<&Bitmap>) -> Result<Output> + Send> Compute for F {
    fn compute(&mut self, arguments: &[Value], rows: usize, valid: Option<&Bitmap>) -> Result<Output> {
        self(arguments, rows, valid)
    }
}

/// A function picked, and what a value costs in simple operations.
pub(super) type Picked = (Box<dyn Compute>, u32);

/// What computes this function of arguments of these types. `constants` are the values of arguments that are
/// constants.
pub(super) fn compile(
    function: Function,
    inputs: &[LogicalType],
    result: LogicalType,
    constants: &[Option<&Vector>],
) -> Result<Picked> {
    use LogicalType::{Date, Float32, Float64, Int16, Int32, Int64, Numeric, Text, Timestamp};
    if constants.iter().flatten().any(|constant| !constant.is_valid(0)) {
        // The result is NULL in every row, so the function is never called.
        let never = |_: &[Value], _: usize, _: Option<&Bitmap>| Err(Error::Decline("function of NULL"));
        return Ok((Box::new(never), 0));
    }
    let number = |at: usize| match constants.get(at)? {
        Some(Vector { values: Values::Int32(values), validity: None, .. }) => values.first().copied(),
        _ => None,
    };
    let text = |at: usize| match constants.get(at)? {
        Some(Vector { values: Values::Bytes(views), validity: None, .. }) => Some(views.get(0).to_vec()),
        _ => None,
    };
    const INTERVAL: LogicalType = LogicalType::FixedBytes(16);
    let picked = match (function, inputs) {
        (Function::Compare(op), [a, b]) if a == b => compare::compile(op, *a),
        (Function::Subtract, [Timestamp, Timestamp]) => Some((Box::new(dates::subtract_timestamps) as _, 4)),
        (Function::Add | Function::Subtract, [Date, Int32 | Date]) => dates::days(function, inputs),
        (Function::Add | Function::Subtract, [from @ (Date | Timestamp), INTERVAL]) => {
            dates::add_interval(*from, function == Function::Subtract)
        }
        (
            Function::Add | Function::Subtract | Function::Multiply | Function::Divide | Function::Modulo,
            [a, b],
        ) if a == b => match a {
            Int16 | Int32 | Int64 => integers::binary(function, *a),
            Float32 | Float64 => floats::binary(function, *a),
            Numeric => numeric::binary(function),
            _ => None,
        },
        (Function::Negate | Function::Absolute, [a]) => match a {
            Int16 | Int32 | Int64 => integers::unary(function, *a),
            Float32 | Float64 => floats::unary(function, *a),
            Numeric => numeric::unary(function),
            _ => None,
        },
        (Function::Cast(to), [from]) => cast::compile(*from, to),
        (Function::NumericLength { precision, scale }, [Numeric]) => {
            numeric::compile_round(numeric::Towards::Nearest, scale.into(), Some(precision))
        }
        (Function::Round, [Numeric]) => numeric::compile_round(numeric::Towards::Nearest, 0, None),
        (Function::Truncate, [Numeric]) => numeric::compile_round(numeric::Towards::Zero, 0, None),
        (Function::Ceiling, [Numeric]) => numeric::compile_round(numeric::Towards::Above, 0, None),
        (Function::Floor, [Numeric]) => numeric::compile_round(numeric::Towards::Below, 0, None),
        (Function::Round | Function::Truncate, [Numeric, Int32]) => {
            let towards =
                if function == Function::Round { numeric::Towards::Nearest } else { numeric::Towards::Zero };
            number(1).and_then(|digits| numeric::compile_round(towards, digits, None))
        }
        (Function::Round | Function::Truncate | Function::Ceiling | Function::Floor, [Float64]) => {
            floats::round(function)
        }
        (Function::Extract(field), [from]) => dates::extract(field, *from),
        (Function::DatePart(field), [from]) => dates::part(field, *from),
        (Function::DateTrunc(field), [Timestamp]) => dates::trunc(field),
        (Function::ToChar, [Timestamp, Text]) => text(1).and_then(|pattern| dates::to_char(&pattern)),
        _ => text::compile(function, inputs, &text),
    };
    let wanted = result_of(function, inputs);
    if wanted.is_some_and(|wanted| wanted != result) {
        return Err(Error::Decline("result of another type"));
    }
    let picked = match inputs {
        [Numeric] | [Numeric, Numeric | Int32] => picked.map(|picked| numeric::around(function, picked)),
        _ => picked,
    };
    picked.ok_or(Error::Decline("function"))
}

/// The type of a function's value, where it is not that of its first argument.
fn result_of(function: Function, inputs: &[LogicalType]) -> Option<LogicalType> {
    use LogicalType::{Bool, Date, FixedBytes, Float64, Int32, Numeric, Text, Timestamp};
    Some(match (function, inputs) {
        (Function::Compare(_) | Function::Like | Function::ILike(_) | Function::StartsWith, _) => Bool,
        (Function::Cast(to), _) => to,
        (Function::Extract(_), _) => Numeric,
        (Function::DatePart(_), _) => Float64,
        (Function::ToChar, _) => Text,
        (Function::Length | Function::OctetLength | Function::Position, _) => Int32,
        (Function::Subtract, [Date, Date]) => Int32,
        (Function::Subtract, [Timestamp, Timestamp]) => FixedBytes(16),
        (Function::Add | Function::Subtract, [_, FixedBytes(_)]) => Timestamp,
        _ => *inputs.first()?,
    })
}
