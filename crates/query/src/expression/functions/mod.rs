//! The functions' implementations, a folder or file for each kind. `compile` picks one when an expression is compiled; `Compute::compute` runs it over a batch.

mod compare;
mod floats;
mod integers;
mod lanes;
mod numeric;

use vector::{Bitmap, LogicalType, Vector};

use super::function::Function;
pub(super) use super::node::Output;
pub(super) use super::value::Value;
use crate::{Error, Result};
pub(super) use compare::equal_to_any;

/// A function picked for its argument types, with what it may remember (a compiled pattern, say).
pub(super) trait Compute: Send {
    /// Values for `rows` rows. Arguments are flat or constants (at least one is flat, or all are and `rows` is 1), none of the constants NULL; rows that are not in `valid` count for nothing: they must
    /// not fail.
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

/// What computes this function of arguments of these types. `constants` are the values of arguments that are constants.
pub(super) fn compile(
    function: Function,
    inputs: &[LogicalType],
    result: LogicalType,
    _constants: &[Option<&Vector>],
) -> Result<Picked> {
    use LogicalType::{Date, Float32, Float64, Int16, Int32, Int64, Numeric};
    let picked = match (function, inputs) {
        (Function::Compare(op), [a, b]) if a == b => compare::compile(op, *a),
        (
            Function::Add | Function::Subtract | Function::Multiply | Function::Divide | Function::Modulo,
            [a, b],
        ) if a == b => match a {
            Int16 | Int32 | Int64 => integers::binary(function, *a),
            Float32 | Float64 => floats::binary(function, *a),
            Numeric => numeric::binary(function),
            Date if function == Function::Subtract && result == Int32 => None,
            _ => None,
        },
        (Function::Negate | Function::Absolute, [a]) => match a {
            Int16 | Int32 | Int64 => integers::unary(function, *a),
            Float32 | Float64 => floats::unary(function, *a),
            Numeric => numeric::unary(function),
            _ => None,
        },
        _ => None,
    };
    picked.ok_or(Error::Decline("function"))
}
