//! Arithmetic of smallint, integer and bigint. Wrapping loops raise a flag when a row overflows. Only then
//! the rows that count are checked one by one.

use vector::{Bitmap, LogicalType};

use super::lanes::{Native, any_fails, lane, one, two};
use super::{Output, Picked, Value};
use crate::expression::Function;
use crate::kernels::arithmetic::{map_checked, zip_checked};
use crate::{Result, SqlError};

/// A signed integer with its own overflow error.
trait Integer: Native {
    const OVERFLOW: SqlError;
    fn add(self, other: Self) -> (Self, bool);
    fn subtract(self, other: Self) -> (Self, bool);
    fn multiply(self, other: Self) -> (Self, bool);
    fn divide(self, other: Self) -> std::result::Result<Self, SqlError>;
    fn remainder(self, other: Self) -> std::result::Result<Self, SqlError>;
    fn negate(self) -> (Self, bool);
    fn absolute(self) -> (Self, bool);
}

macro_rules! integer {
    ($($type:ty: $error:ident, $multiply:expr),*) => {$(
        impl Integer for $type {
            const OVERFLOW: SqlError = SqlError::$error;
            #[inline(always)]
            fn add(self, other: Self) -> (Self, bool) {
                // The sign says so: this form becomes vector instructions.
                let sum = self.wrapping_add(other);
                (sum, ((self ^ sum) & (other ^ sum)) < 0)
            }
            #[inline(always)]
            fn subtract(self, other: Self) -> (Self, bool) {
                let difference = self.wrapping_sub(other);
                (difference, ((self ^ other) & (self ^ difference)) < 0)
            }
            #[inline(always)]
            fn multiply(self, other: Self) -> (Self, bool) {
                let multiply: fn(Self, Self) -> (Self, bool) = $multiply;
                multiply(self, other)
            }
            fn divide(self, other: Self) -> std::result::Result<Self, SqlError> {
                if other == 0 {
                    return Err(SqlError::DivisionByZero);
                }
                self.checked_div(other).ok_or(Self::OVERFLOW)
            }
            fn remainder(self, other: Self) -> std::result::Result<Self, SqlError> {
                // The server gives 0 for the least value modulo -1.
                if other == 0 { Err(SqlError::DivisionByZero) } else { Ok(self.wrapping_rem(other)) }
            }
            #[inline(always)]
            fn negate(self) -> (Self, bool) {
                (self.wrapping_neg(), self == Self::MIN)
            }
            #[inline(always)]
            fn absolute(self) -> (Self, bool) {
                (self.wrapping_abs(), self == Self::MIN)
            }
        }
    )*};
}
integer!(
    i16: SmallintOutOfRange, |a, b| {
        let product = i32::from(a) * i32::from(b);
        (product as i16, i32::from(product as i16) != product)
    },
    i32: IntegerOutOfRange, |a, b| {
        let product = i64::from(a) * i64::from(b);
        (product as i32, i64::from(product as i32) != product)
    },
    i64: BigintOutOfRange, i64::overflowing_mul
);

/// A function of two integers of one type.
pub(super) fn binary(function: Function, logical: LogicalType) -> Option<Picked> {
    match logical {
        LogicalType::Int16 => binary_of::<i16>(function),
        LogicalType::Int32 => binary_of::<i32>(function),
        LogicalType::Int64 => binary_of::<i64>(function),
        _ => None,
    }
}

fn binary_of<T: Integer>(function: Function) -> Option<Picked> {
    Some(match function {
        Function::Add => {
            (Box::new(|a: &[Value], rows, valid: Option<&Bitmap>| flagged(a, rows, valid, T::add)), 1)
        }
        Function::Subtract => {
            (Box::new(|a: &[Value], rows, valid: Option<&Bitmap>| flagged(a, rows, valid, T::subtract)), 1)
        }
        Function::Multiply => {
            (Box::new(|a: &[Value], rows, valid: Option<&Bitmap>| flagged(a, rows, valid, T::multiply)), 1)
        }
        Function::Divide => {
            (Box::new(|a: &[Value], rows, valid: Option<&Bitmap>| by_row(a, rows, valid, T::divide)), 8)
        }
        Function::Modulo => {
            (Box::new(|a: &[Value], rows, valid: Option<&Bitmap>| by_row(a, rows, valid, T::remainder)), 8)
        }
        _ => return None,
    })
}

/// A function of one integer.
pub(super) fn unary(function: Function, logical: LogicalType) -> Option<Picked> {
    match logical {
        LogicalType::Int16 => unary_of::<i16>(function),
        LogicalType::Int32 => unary_of::<i32>(function),
        LogicalType::Int64 => unary_of::<i64>(function),
        _ => None,
    }
}

fn unary_of<T: Integer>(function: Function) -> Option<Picked> {
    fn run<T: Integer>(
        arguments: &[Value],
        rows: usize,
        valid: Option<&Bitmap>,
        f: impl Fn(T) -> (T, bool),
    ) -> Result<Output> {
        let a = lane::<T>(one(arguments)?)?;
        let (values, flag) = map_checked(a, rows, &f);
        if flag && any_fails(rows, valid, |row| a.get(row).is_some_and(|a| f(a).1)) {
            return Err(crate::Error::Sql(T::OVERFLOW));
        }
        Ok(T::values(values).into())
    }
    Some(match function {
        Function::Negate => {
            (Box::new(|a: &[Value], rows, valid: Option<&Bitmap>| run(a, rows, valid, T::negate)), 1)
        }
        Function::Absolute => {
            (Box::new(|a: &[Value], rows, valid: Option<&Bitmap>| run(a, rows, valid, T::absolute)), 1)
        }
        _ => return None,
    })
}

fn flagged<T: Integer>(
    arguments: &[Value],
    rows: usize,
    valid: Option<&Bitmap>,
    f: impl Fn(T, T) -> (T, bool),
) -> Result<Output> {
    let (a, b) = two(arguments)?;
    let (a, b) = (lane::<T>(a)?, lane::<T>(b)?);
    let (values, flag) = zip_checked(a, b, rows, &f);
    let fails = |row| matches!((a.get(row), b.get(row)), (Some(a), Some(b)) if f(a, b).1);
    if flag && any_fails(rows, valid, fails) {
        return Err(crate::Error::Sql(T::OVERFLOW));
    }
    Ok(T::values(values).into())
}

/// Row by row, as the division instruction works on one value anyway. The error is that of the first row that
/// has one.
fn by_row<T: Integer>(
    arguments: &[Value],
    rows: usize,
    valid: Option<&Bitmap>,
    f: impl Fn(T, T) -> std::result::Result<T, SqlError>,
) -> Result<Output> {
    let (a, b) = two(arguments)?;
    let (a, b) = (lane::<T>(a)?, lane::<T>(b)?);
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        let (Some(a), Some(b)) = (a.get(row), b.get(row)) else { break };
        values.push(match f(a, b) {
            Ok(value) => value,
            Err(error) if valid.is_none_or(|valid| valid.get(row)) => return Err(crate::Error::Sql(error)),
            Err(_) => T::default(),
        });
    }
    Ok(T::values(values).into())
}
