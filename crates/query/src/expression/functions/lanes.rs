//! Arguments as typed lanes.

use vector::{Bitmap, ByteViews, FixedBytes, NumericValues, Values};

use super::Value;
use crate::kernels::Lane;
use crate::{Error, Result};

/// An argument is not of the type the function was picked for.
pub(super) const WRONG_TYPE: Error = Error::Decline("argument of another type");

/// A type whose values lie in a slice.
pub(super) trait Native: Copy + Default + Send + 'static {
    /// The slice, where the values are of this type.
    fn slice(values: &Values) -> Option<&[Self]>;
    /// Values of this type.
    fn values(values: Vec<Self>) -> Values;
}

macro_rules! native {
    ($($type:ty: $variant:ident),*) => {$(
        impl Native for $type {
            fn slice(values: &Values) -> Option<&[Self]> {
                match values {
                    Values::$variant(values) => Some(values),
                    _ => None,
                }
            }
            fn values(values: Vec<Self>) -> Values {
                Values::$variant(values)
            }
        }
    )*};
}
native!(i16: Int16, i32: Int32, i64: Int64, f32: Float32, f64: Float64);

/// The argument's values.
pub(super) fn lane<T: Native>(argument: &Value) -> Result<Lane<'_, T>> {
    let values = T::slice(&argument.inner().values).ok_or(WRONG_TYPE)?;
    match argument.constant() {
        None => Ok(Lane::Many(values)),
        Some(_) => Ok(Lane::One(*values.first().ok_or(WRONG_TYPE)?)),
    }
}

/// The only argument.
pub(super) fn one(arguments: &[Value]) -> Result<&Value> {
    match arguments {
        [a] => Ok(a),
        _ => Err(Error::Decline("number of arguments")),
    }
}

/// The only two arguments.
pub(super) fn two(arguments: &[Value]) -> Result<(&Value, &Value)> {
    match arguments {
        [a, b] => Ok((a, b)),
        _ => Err(Error::Decline("number of arguments")),
    }
}

/// Byte strings row by row.
#[derive(Clone, Copy)]
pub(super) enum Texts<'a> {
    /// The same in every row.
    One(&'a [u8]),
    /// Row by row.
    Many(&'a ByteViews),
}

impl<'a> Texts<'a> {
    /// Of an argument.
    pub fn of(argument: &'a Value) -> Result<Self> {
        let Values::Bytes(views) = &argument.inner().values else { return Err(WRONG_TYPE) };
        Ok(if argument.constant().is_some() { Self::One(views.get(0)) } else { Self::Many(views) })
    }

    /// The value of a row.
    #[inline]
    pub fn get(&self, row: usize) -> &'a [u8] {
        match self {
            Self::One(value) => value,
            Self::Many(views) => views.get(row),
        }
    }
}

/// The argument's values of a fixed width, and whether there is one for all rows.
pub(super) fn fixed(argument: &Value) -> Result<(&FixedBytes, bool)> {
    let Values::Fixed(values) = &argument.inner().values else { return Err(WRONG_TYPE) };
    Ok((values, argument.constant().is_some()))
}

/// The argument's decimals, all of them scaled integers.
pub(super) fn decimals(argument: &Value) -> Result<&NumericValues> {
    match &argument.inner().values {
        Values::Numeric(values) if values.side.is_empty() => Ok(values),
        Values::Numeric(_) => Err(Error::Decline("numeric that is no scaled integer")),
        _ => Err(WRONG_TYPE),
    }
}

/// True where a row that counts fails, in a lane that said some row does. `fails` tells of a row.
pub(super) fn any_fails(rows: usize, valid: Option<&Bitmap>, mut fails: impl FnMut(usize) -> bool) -> bool {
    (0..rows).any(|row| valid.is_none_or(|valid| valid.get(row)) && fails(row))
}
