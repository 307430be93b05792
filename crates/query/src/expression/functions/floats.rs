//! Arithmetic of single and double floats. A result is an error if it is infinite though no operand was, or
//! zero though no operand was. Division by zero is an error, but NaN / 0 is NaN.

use vector::{Bitmap, LogicalType};

use super::lanes::{Native, any_fails, lane, one, two};
use super::{Output, Picked, Value};
use crate::expression::Function;
use crate::kernels::arithmetic::{map_checked, zip_checked};
use crate::{Error, Result, SqlError};

/// A float with the server's checks: the result, and whether it is an error.
trait Float: Native {
    fn add(self, other: Self) -> (Self, bool);
    fn subtract(self, other: Self) -> (Self, bool);
    fn multiply(self, other: Self) -> (Self, bool);
    fn divide(self, other: Self) -> (Self, bool);
    fn negate(self) -> Self;
    fn absolute(self) -> Self;
    fn is_zero(self) -> bool;
    fn is_infinite(self) -> bool;
}

macro_rules! float {
    ($($type:ty),*) => {$(
        impl Float for $type {
            #[inline(always)]
            fn add(self, other: Self) -> (Self, bool) {
                let result = self + other;
                (result, (result.abs() == Self::INFINITY) & (self.abs() != Self::INFINITY) & (other.abs() != Self::INFINITY))
            }
            #[inline(always)]
            fn subtract(self, other: Self) -> (Self, bool) {
                self.add(-other)
            }
            #[inline(always)]
            fn multiply(self, other: Self) -> (Self, bool) {
                let result = self * other;
                let (a, b, size) = (self.abs(), other.abs(), result.abs());
                let overflow = (size == Self::INFINITY) & (a != Self::INFINITY) & (b != Self::INFINITY);
                (result, overflow | ((size == 0.0) & (a != 0.0) & (b != 0.0)))
            }
            #[inline(always)]
            fn divide(self, other: Self) -> (Self, bool) {
                let result = self / other;
                let (a, b, size) = (self.abs(), other.abs(), result.abs());
                let by_zero = (b == 0.0) & (self == self);
                let overflow = (size == Self::INFINITY) & (a != Self::INFINITY);
                (result, by_zero | overflow | ((size == 0.0) & (a != 0.0) & (b != Self::INFINITY)))
            }
            #[inline(always)]
            fn negate(self) -> Self {
                -self
            }
            #[inline(always)]
            fn absolute(self) -> Self {
                self.abs()
            }
            fn is_zero(self) -> bool {
                self == 0.0
            }
            fn is_infinite(self) -> bool {
                self.is_infinite()
            }
        }
    )*};
}
float!(f32, f64);

/// A function of two floats of one type.
pub(super) fn binary(function: Function, logical: LogicalType) -> Option<Picked> {
    match logical {
        LogicalType::Float32 => binary_of::<f32>(function),
        LogicalType::Float64 => binary_of::<f64>(function),
        _ => None,
    }
}

fn binary_of<T: Float>(function: Function) -> Option<Picked> {
    fn run<T: Float>(
        arguments: &[Value],
        rows: usize,
        valid: Option<&Bitmap>,
        f: impl Fn(T, T) -> (T, bool),
        divides: bool,
    ) -> Result<Output> {
        let (a, b) = two(arguments)?;
        let (a, b) = (lane::<T>(a)?, lane::<T>(b)?);
        let (values, flag) = zip_checked(a, b, rows, &f);
        let mut error = None;
        if flag {
            any_fails(rows, valid, |row| {
                let (Some(a), Some(b)) = (a.get(row), b.get(row)) else { return false };
                let (result, bad) = f(a, b);
                if bad {
                    error = Some(match (divides && b.is_zero(), result.is_infinite()) {
                        (true, _) => SqlError::DivisionByZero,
                        (false, true) => SqlError::FloatOverflow,
                        (false, false) => SqlError::FloatUnderflow,
                    });
                }
                bad
            });
        }
        match error {
            Some(error) => Err(Error::Sql(error)),
            None => Ok(T::values(values).into()),
        }
    }
    Some(match function {
        Function::Add => {
            (Box::new(|a: &[Value], rows, valid: Option<&Bitmap>| run(a, rows, valid, T::add, false)), 1)
        }
        Function::Subtract => {
            (Box::new(|a: &[Value], rows, valid: Option<&Bitmap>| run(a, rows, valid, T::subtract, false)), 1)
        }
        Function::Multiply => {
            (Box::new(|a: &[Value], rows, valid: Option<&Bitmap>| run(a, rows, valid, T::multiply, false)), 1)
        }
        Function::Divide => {
            (Box::new(|a: &[Value], rows, valid: Option<&Bitmap>| run(a, rows, valid, T::divide, true)), 4)
        }
        _ => return None,
    })
}

/// A function of one float.
pub(super) fn unary(function: Function, logical: LogicalType) -> Option<Picked> {
    match logical {
        LogicalType::Float32 => unary_of::<f32>(function),
        LogicalType::Float64 => unary_of::<f64>(function),
        _ => None,
    }
}

fn unary_of<T: Float>(function: Function) -> Option<Picked> {
    fn run<T: Float>(arguments: &[Value], rows: usize, f: impl Fn(T) -> T) -> Result<Output> {
        let (values, _) = map_checked(lane::<T>(one(arguments)?)?, rows, |a| (f(a), false));
        Ok(T::values(values).into())
    }
    Some(match function {
        Function::Negate => (Box::new(|a: &[Value], rows, _: Option<&Bitmap>| run(a, rows, T::negate)), 1),
        Function::Absolute => {
            (Box::new(|a: &[Value], rows, _: Option<&Bitmap>| run(a, rows, T::absolute)), 1)
        }
        _ => return None,
    })
}

/// To a whole number.
pub(super) fn round(function: Function) -> Option<Picked> {
    let f: fn(f64) -> f64 = match function {
        Function::Round => f64::round_ties_even,
        Function::Truncate => f64::trunc,
        Function::Ceiling => f64::ceil,
        Function::Floor => f64::floor,
        _ => return None,
    };
    Some((
        Box::new(move |arguments: &[Value], rows: usize, _: Option<&Bitmap>| {
            let (values, _) = map_checked(lane::<f64>(one(arguments)?)?, rows, |a| (f(a), false));
            Ok(Output::from(vector::Values::Float64(values)))
        }),
        2,
    ))
}
