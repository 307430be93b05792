//! min and max.
//!
//! If values are equal but not the same (1.0 and 1.00, -0 and 0), the last one stays, as on the server. Text
//! compares bytewise or as the host says.

use std::cmp::Ordering;
use std::sync::Arc;

use vector::{
    Bitmap, ByteViews, Decimal, DisplayScales, LogicalType, NumericInts, NumericValues, Scalar, Values,
    Vector, compare_decimals, compare_floats,
};

use super::accumulate::{Accumulator, Groups, MISTYPED, NO_SUMMARY, each_valid, same};
use super::results::{Specials, decimals, with_nulls, with_specials, without};
use crate::row_container::flat;
use crate::{AggregateFunction, ColumnSummary, Error, Result, TextOrder};

/// The accumulator for values of this type.
pub fn make(greatest: bool, logical: LogicalType, order: &TextOrder) -> Result<Box<dyn Accumulator>> {
    use LogicalType as T;
    Ok(match logical {
        T::Int16 => Box::new(Extreme::<i16>::new(greatest, logical)),
        T::Int32 | T::Date => Box::new(Extreme::<i32>::new(greatest, logical)),
        T::Int64 | T::UInt64 | T::Timestamp => Box::new(Extreme::<i64>::new(greatest, logical)),
        T::Float32 => Box::new(Extreme::<f32>::new(greatest, logical)),
        T::Float64 => Box::new(Extreme::<f64>::new(greatest, logical)),
        T::Numeric => Box::new(NumericExtreme::new(greatest)),
        T::Text | T::Bytes => {
            Box::new(TextExtreme { greatest, logical, order: order.clone(), states: Vec::new(), bytes: 0 })
        }
        T::Bool | T::Uuid | T::FixedBytes(_) => return Err(Error::Decline("min or max of this type")),
    })
}

/// Numbers that compare by themselves.
trait Native: Copy + Default + Send + 'static {
    fn order(self, other: Self) -> Ordering;
    fn values(vector: &Vector) -> Option<&[Self]>;
    fn wrap(values: Vec<Self>) -> Values;
    fn of(scalar: &Scalar) -> Option<Self>;
}

macro_rules! native {
    ($type:ty, $lane:ident, $order:expr, $scalar:ident, $of:expr) => {
        impl Native for $type {
            #[inline]
            fn order(self, other: Self) -> Ordering {
                $order(self, other)
            }
            fn values(vector: &Vector) -> Option<&[Self]> {
                if let Values::$lane(values) = &vector.values { Some(values) } else { None }
            }
            fn wrap(values: Vec<Self>) -> Values {
                Values::$lane(values)
            }
            fn of(scalar: &Scalar) -> Option<Self> {
                if let Scalar::$scalar(value) = scalar { $of(*value) } else { None }
            }
        }
    };
}

native!(i16, Int16, |a: i16, b: i16| a.cmp(&b), Int, |value: i64| value.try_into().ok());
native!(i32, Int32, |a: i32, b: i32| a.cmp(&b), Int, |value: i64| value.try_into().ok());
native!(i64, Int64, |a: i64, b: i64| a.cmp(&b), Int, Some);
native!(f32, Float32, |a: f32, b: f32| compare_floats(a.into(), b.into()), Float, |v: f64| Some(v as f32));
native!(f64, Float64, compare_floats, Float, Some);

struct Extreme<T> {
    greatest: bool,
    logical: LogicalType,
    values: Vec<T>,
    seen: Vec<bool>,
}

impl<T: Native> Extreme<T> {
    const fn new(greatest: bool, logical: LogicalType) -> Self {
        Self { greatest, logical, values: Vec::new(), seen: Vec::new() }
    }

    #[inline]
    fn take(&mut self, group: usize, value: T) {
        let order = value.order(self.values[group]);
        let better = if self.greatest { order != Ordering::Less } else { order != Ordering::Greater };
        if better || !self.seen[group] {
            self.values[group] = value;
            self.seen[group] = true;
        }
    }

    /// The extreme of a vector's rows.
    fn of(&self, values: &[T], validity: Option<&Bitmap>) -> Option<T> {
        let wanted = if self.greatest { Ordering::Less } else { Ordering::Greater };
        if validity.is_none() {
            return values.iter().copied().reduce(|a, b| if b.order(a) == wanted { a } else { b });
        }
        let mut found = None;
        each_valid(validity, values.len(), |row| {
            let value = values[row];
            found = Some(match found {
                Some(best) if value.order(best) == wanted => best,
                _ => value,
            });
        });
        found
    }
}

impl<T: Native> Accumulator for Extreme<T> {
    fn grow(&mut self, groups: usize) {
        self.values.resize(groups, T::default());
        self.seen.resize(groups, false);
    }

    fn update(&mut self, arguments: &[Arc<Vector>], _rows: usize, groups: Groups<'_>) -> Result<()> {
        let argument = arguments.first().ok_or(MISTYPED)?;
        // A batch's codes stand for entries that may all be there: looking at the entries instead is not
        // exact.
        let argument = flat(argument);
        let values = T::values(&argument).ok_or(MISTYPED)?;
        let validity = argument.validity.as_ref();
        match groups {
            Groups::One => {
                if let Some(value) = self.of(values, validity) {
                    self.take(0, value);
                }
            }
            Groups::Numbers(numbers) => {
                let numbers = &numbers[..values.len()];
                each_valid(validity, values.len(), |row| self.take(numbers[row] as usize, values[row]));
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: &mut dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        for (&from, &group) in from.iter().zip(to) {
            if other.seen[from as usize] {
                self.take(group as usize, other.values[from as usize]);
            }
        }
        Ok(())
    }

    fn summary(&mut self, rows: u64, column: Option<&ColumnSummary>) -> Result<()> {
        let column = column.ok_or(NO_SUMMARY)?;
        if rows > column.nulls {
            let (least, greatest) = column.bounds.as_ref().ok_or(NO_SUMMARY)?;
            let bound = if self.greatest { greatest } else { least };
            self.take(0, T::of(bound).ok_or(NO_SUMMARY)?);
        }
        Ok(())
    }

    fn finish(&mut self, _: AggregateFunction, start: usize, len: usize) -> Result<Vector> {
        let values = T::wrap(self.values[start..start + len].to_vec());
        Ok(with_nulls(self.logical, values, self.seen[start..start + len].iter().copied()))
    }

    fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<T>() + self.seen.capacity()
    }
}

struct NumericExtreme {
    greatest: bool,
    /// Used as long as all values had one scale, showed the same number of digits, and fit.
    narrow: Option<Narrow>,
    /// Otherwise.
    wide: Vec<Option<Decimal>>,
    /// The NaN and infinities that each group met. No entries as long as no group met one.
    specials: Vec<Specials>,
}

struct Narrow {
    extreme: Extreme<i64>,
    /// None before the first value.
    shape: Option<(u16, u16)>,
}

impl Narrow {
    /// Takes rows; false, and nothing is taken, where they are not of its shape.
    fn update(&mut self, argument: &Vector, numeric: &NumericValues, groups: Groups<'_>) -> bool {
        let DisplayScales::Constant(display) = numeric.display else { return false };
        if *self.shape.get_or_insert((numeric.scale, display)) != (numeric.scale, display) {
            return false;
        }
        match &numeric.ints {
            NumericInts::Int32(values) => self.take(argument, values, groups),
            NumericInts::Int64(values) => self.take(argument, values, groups),
            NumericInts::Int128(_) => return false,
        }
        true
    }

    fn take<T: Copy + Into<i64>>(&mut self, argument: &Vector, values: &[T], groups: Groups<'_>) {
        let extreme = &mut self.extreme;
        each_valid(argument.validity.as_ref(), values.len(), |row| {
            let group = match groups {
                Groups::One => 0,
                Groups::Numbers(numbers) => numbers[row] as usize,
            };
            extreme.take(group, values[row].into());
        });
    }

    fn state(&self, group: usize) -> Option<Decimal> {
        let (scale, display) = self.shape.filter(|_| self.extreme.seen[group])?;
        Some(Decimal { unscaled: self.extreme.values[group].into(), scale, display })
    }
}

impl NumericExtreme {
    const fn new(greatest: bool) -> Self {
        let narrow = Narrow { extreme: Extreme::new(greatest, LogicalType::Int64), shape: None };
        Self { greatest, narrow: Some(narrow), wide: Vec::new(), specials: Vec::new() }
    }

    fn state(&self, group: usize) -> Option<Decimal> {
        self.narrow.as_ref().map_or_else(|| self.wide[group], |narrow| narrow.state(group))
    }

    /// From now on values of any shape are taken.
    fn widen(&mut self) {
        if let Some(narrow) = self.narrow.take() {
            self.wide = (0..narrow.extreme.values.len()).map(|group| narrow.state(group)).collect();
        }
    }

    #[inline]
    fn take(&mut self, group: usize, value: Decimal) {
        let state = &mut self.wide[group];
        let wanted = if self.greatest { Ordering::Less } else { Ordering::Greater };
        let stays = state.is_some_and(|state| {
            let order = if value.scale == state.scale {
                value.unscaled.cmp(&state.unscaled)
            } else {
                compare_decimals(value.unscaled, value.scale, state.unscaled, state.scale)
            };
            order == wanted
        });
        if !stays {
            *state = Some(value);
        }
    }
}

fn decimal(numeric: &NumericValues, row: usize) -> Decimal {
    Decimal { unscaled: numeric.ints.get(row), scale: numeric.scale, display: numeric.display.get(row) }
}

impl Accumulator for NumericExtreme {
    fn grow(&mut self, groups: usize) {
        match &mut self.narrow {
            Some(narrow) => narrow.extreme.grow(groups),
            None => self.wide.resize(groups, None),
        }
        if !self.specials.is_empty() {
            self.specials.resize(groups, Specials::default());
        }
    }

    fn update(&mut self, arguments: &[Arc<Vector>], rows: usize, groups: Groups<'_>) -> Result<()> {
        let argument = flat(arguments.first().ok_or(MISTYPED)?);
        let Values::Numeric(numeric) = &argument.values else { return Err(MISTYPED) };
        let mut validity = argument.validity.clone();
        if !numeric.side.is_empty() {
            let specials = numeric.specials().ok_or(Error::Decline("numeric outside 128 bits"))?;
            self.widen();
            self.specials.resize(self.wide.len(), Specials::default());
            for &(row, special) in &specials {
                let row = row as usize;
                if argument.is_valid(row) {
                    let group = match groups {
                        Groups::One => 0,
                        Groups::Numbers(numbers) => numbers[row] as usize,
                    };
                    self.specials[group].meet(special);
                }
            }
            validity = Some(without(validity.as_ref(), &specials, rows));
        }
        if let Some(narrow) = &mut self.narrow
            && narrow.update(&argument, numeric, groups)
        {
            return Ok(());
        }
        self.widen();
        each_valid(validity.as_ref(), rows, |row| {
            let group = match groups {
                Groups::One => 0,
                Groups::Numbers(numbers) => numbers[row] as usize,
            };
            self.take(group, decimal(numeric, row));
        });
        Ok(())
    }

    fn merge(&mut self, other: &mut dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        if !other.specials.is_empty() {
            self.widen();
            self.specials.resize(self.wide.len(), Specials::default());
            for (&from, &group) in from.iter().zip(to) {
                let seen = other.specials.get(from as usize).copied().unwrap_or_default();
                self.specials[group as usize].merge(seen);
            }
        }
        if let (Some(narrow), Some(other)) = (&mut self.narrow, &mut other.narrow)
            && (narrow.shape.is_none() || other.shape.is_none() || narrow.shape == other.shape)
        {
            narrow.shape = narrow.shape.or(other.shape);
            return narrow.extreme.merge(&mut other.extreme, from, to);
        }
        self.widen();
        for (&from, &group) in from.iter().zip(to) {
            if let Some(value) = other.state(from as usize) {
                self.take(group as usize, value);
            }
        }
        Ok(())
    }

    fn summary(&mut self, rows: u64, column: Option<&ColumnSummary>) -> Result<()> {
        let column = column.ok_or(NO_SUMMARY)?;
        if rows > column.nulls {
            let (least, greatest) = column.bounds.as_ref().ok_or(NO_SUMMARY)?;
            let Scalar::Numeric { unscaled, scale } = *(if self.greatest { greatest } else { least }) else {
                return Err(NO_SUMMARY);
            };
            // Bounds are known only where all values show as many digits.
            self.widen();
            self.take(0, Decimal { unscaled, scale, display: scale });
        }
        Ok(())
    }

    fn finish(&mut self, _: AggregateFunction, start: usize, len: usize) -> Result<Vector> {
        let mut states = (start..start + len).map(|group| self.state(group)).collect::<Vec<_>>();
        let mut specials = Vec::new();
        for (at, (state, met)) in states.iter_mut().zip(self.specials.iter().skip(start)).enumerate() {
            if let Some(special) = met.extreme(self.greatest, state.is_some()) {
                *state = Some(Decimal { unscaled: 0, scale: 0, display: 0 });
                specials.push((at, special));
            }
        }
        Ok(with_specials(decimals(&states)?, specials.into_iter()))
    }

    fn bytes(&self) -> usize {
        self.narrow.as_ref().map_or(0, |narrow| narrow.extreme.bytes())
            + self.wide.capacity() * size_of::<Option<Decimal>>()
            + self.specials.capacity()
    }
}

struct TextExtreme {
    greatest: bool,
    logical: LogicalType,
    order: TextOrder,
    states: Vec<Option<Box<[u8]>>>,
    bytes: usize,
}

impl TextExtreme {
    fn better(&self, value: &[u8], state: &[u8]) -> bool {
        self.order.compare(value, state) == if self.greatest { Ordering::Greater } else { Ordering::Less }
    }

    #[inline]
    fn take(&mut self, group: usize, value: &[u8]) {
        let better = match &self.states[group] {
            None => true,
            Some(state) => self.better(value, state),
        };
        if better {
            self.bytes += value.len();
            if let Some(state) = self.states[group].replace(value.into()) {
                self.bytes -= state.len();
            }
        }
    }

    fn best<'a>(&self, values: impl Iterator<Item = &'a [u8]>) -> Option<&'a [u8]> {
        values.reduce(|best, value| if self.better(value, best) { value } else { best })
    }
}

impl Accumulator for TextExtreme {
    fn grow(&mut self, groups: usize) {
        self.states.resize(groups, None);
    }

    fn update(&mut self, arguments: &[Arc<Vector>], rows: usize, groups: Groups<'_>) -> Result<()> {
        let argument = arguments.first().ok_or(MISTYPED)?;
        if let (Groups::One, Values::Dictionary { codes, dictionary }) = (groups, &argument.values) {
            let Values::Bytes(entries) = &dictionary.entries.values else { return Err(MISTYPED) };
            let mut there = vec![false; entries.len()];
            each_valid(argument.validity.as_ref(), rows, |row| there[codes[row] as usize] = true);
            let met = there.iter().enumerate().filter(|(_, there)| **there).map(|(at, _)| entries.get(at));
            if let Some(best) = self.best(met) {
                self.take(0, best);
            }
            return Ok(());
        }
        let argument = flat(argument);
        let Values::Bytes(views) = &argument.values else { return Err(MISTYPED) };
        each_valid(argument.validity.as_ref(), rows, |row| {
            let group = match groups {
                Groups::One => 0,
                Groups::Numbers(numbers) => numbers[row] as usize,
            };
            self.take(group, views.get(row));
        });
        Ok(())
    }

    fn merge(&mut self, other: &mut dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        for (&from, &group) in from.iter().zip(to) {
            if let Some(value) = &other.states[from as usize] {
                self.take(group as usize, value);
            }
        }
        Ok(())
    }

    fn summary(&mut self, rows: u64, column: Option<&ColumnSummary>) -> Result<()> {
        let column = column.ok_or(NO_SUMMARY)?;
        if rows > column.nulls {
            let (least, greatest) = column.bounds.as_ref().ok_or(NO_SUMMARY)?;
            let Scalar::Bytes(bound) = (if self.greatest { greatest } else { least }) else {
                return Err(NO_SUMMARY);
            };
            self.take(0, bound);
        }
        Ok(())
    }

    fn finish(&mut self, _: AggregateFunction, start: usize, len: usize) -> Result<Vector> {
        let states = &self.states[start..start + len];
        let views: ByteViews = states.iter().map(|state| state.as_deref().unwrap_or(&[])).collect();
        Ok(with_nulls(self.logical, Values::Bytes(views), states.iter().map(Option::is_some)))
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * 16 + self.bytes
    }
}
