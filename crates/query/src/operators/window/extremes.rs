//! min and max over frames (`slide`). If values are equal but not the same, the last one stays, as on the
//! server.

use std::cmp::Ordering;

use vector::{PhysicalType, Special, Values, Vector, compare_floats, power_of_ten};

use super::input::{ABSENT, Input};
use super::places::Places;
use super::slide::Best;
use super::{Call, Column, Compute};
use crate::row_container::integer_of;
use crate::{AggregateFunction, Error, Result, TextOrder, WindowFrame, interrupt};

const UNKNOWN: Error = Error::Decline("min or max of this type");
const WIDE: Error = Error::Decline("numeric outside 128 bits");

/// The computer of min or max.
pub fn make(
    function: AggregateFunction,
    call: &Call,
    frame: &WindowFrame,
) -> Result<Option<Box<dyn Compute>>> {
    let greatest = match function {
        AggregateFunction::Min => false,
        AggregateFunction::Max => true,
        _ => return Ok(None),
    };
    fn of<V: Value>(greatest: bool, call: &Call, frame: &WindowFrame) -> Box<dyn Compute> {
        let (order, best) = (call.call.order.clone(), Best::<V>::new(frame));
        Box::new(Extremes { greatest, argument: call.first, order, scale: 0, best })
    }
    Ok(Some(match call.types.first().map(|logical| logical.physical()) {
        Some(PhysicalType::Int16 | PhysicalType::Int32 | PhysicalType::Int64) => {
            of::<i64>(greatest, call, frame)
        }
        Some(PhysicalType::Float32 | PhysicalType::Float64) => of::<f64>(greatest, call, frame),
        Some(PhysicalType::Numeric) => of::<i128>(greatest, call, frame),
        Some(PhysicalType::Bytes) => of::<Box<[u8]>>(greatest, call, frame),
        None | Some(PhysicalType::Bool | PhysicalType::Fixed(_)) => return Err(UNKNOWN),
    }))
}

/// What values of some types are compared as.
trait Value: Sized + Send + 'static {
    /// They have scales of their own.
    const DECIMAL: bool = false;

    /// That of a row that is not NULL; decimals at this scale.
    fn of(column: &Vector, row: usize, scale: u16) -> Result<Self>;

    fn order(&self, other: &Self, text: &TextOrder) -> Ordering;
}

impl Value for i64 {
    fn of(column: &Vector, row: usize, _scale: u16) -> Result<Self> {
        Ok(match &column.values {
            Values::Int16(v) => v[row].into(),
            Values::Int32(v) => v[row].into(),
            Values::Int64(v) => v[row],
            _ => return Err(UNKNOWN),
        })
    }

    fn order(&self, other: &Self, _text: &TextOrder) -> Ordering {
        self.cmp(other)
    }
}

impl Value for f64 {
    fn of(column: &Vector, row: usize, _scale: u16) -> Result<Self> {
        Ok(match &column.values {
            Values::Float32(v) => v[row].into(),
            Values::Float64(v) => v[row],
            _ => return Err(UNKNOWN),
        })
    }

    fn order(&self, other: &Self, _text: &TextOrder) -> Ordering {
        compare_floats(*self, *other)
    }
}

impl Value for i128 {
    const DECIMAL: bool = true;

    fn of(column: &Vector, row: usize, scale: u16) -> Result<Self> {
        let Values::Numeric(numeric) = &column.values else { return Err(UNKNOWN) };
        if !numeric.side.is_empty()
            && let Some(bytes) = numeric.side_value(row)
        {
            return Special::of(bytes).map(integer_of).ok_or(WIDE);
        }
        let value = numeric.ints.get(row);
        if numeric.scale == scale {
            return Ok(value);
        }
        let factor = power_of_ten(scale.saturating_sub(numeric.scale));
        factor.and_then(|factor| value.checked_mul(factor)).ok_or(WIDE)
    }

    fn order(&self, other: &Self, _text: &TextOrder) -> Ordering {
        self.cmp(other)
    }
}

impl Value for Box<[u8]> {
    fn of(column: &Vector, row: usize, _scale: u16) -> Result<Self> {
        match &column.values {
            Values::Bytes(v) => Ok(v.get(row).into()),
            _ => Err(UNKNOWN),
        }
    }

    fn order(&self, other: &Self, text: &TextOrder) -> Ordering {
        text.compare(self, other)
    }
}

struct Extremes<V> {
    greatest: bool,
    argument: usize,
    order: TextOrder,
    /// Greatest scale of the values.
    scale: u16,
    best: Best<V>,
}

impl<V: Value> Compute for Extremes<V> {
    fn prepare(&mut self, input: &Input) -> Result<()> {
        if !V::DECIMAL {
            return Ok(());
        }
        let argument = self.argument;
        let mut scale = 0;
        // Values that cannot be compared are declined before there are results.
        let mut is_certain = true;
        input.each_piece(|piece| {
            let column = piece.argument(argument)?;
            if let Values::Numeric(numeric) = &column.values {
                is_certain &= numeric.side.is_empty() && (piece.rows.start == 0 || numeric.scale == scale);
                scale = numeric.scale.max(scale);
            }
            Ok(())
        })?;
        self.scale = scale;
        if is_certain {
            return Ok(());
        }
        input.each_piece(|piece| {
            let column = piece.argument(argument)?;
            (0..column.len()).filter(|&row| column.is_valid(row)).try_for_each(|row| {
                interrupt::check_at(row)?;
                V::of(column, row, scale).map(|_| ())
            })
        })
    }

    fn compute(&mut self, input: &Input, at: &Places) -> Result<Column> {
        let worse = if self.greatest { Ordering::Less } else { Ordering::Greater };
        let (order, scale) = (&self.order, self.scale);
        let replaces = |later: &V, earlier: &V| later.order(earlier, order) != worse;
        let value =
            |column: &Vector, row: usize| column.is_valid(row).then(|| V::of(column, row, scale)).transpose();
        let mut positions = Vec::with_capacity(at.len());
        for place in 0..at.len() {
            let position = match (at.is_repeated(place), positions.last()) {
                (true, Some(&last)) => last,
                _ => {
                    let best = self.best.of(input, self.argument, (at, place), &value, &replaces)?;
                    best.map_or(ABSENT, |(row, _)| *row)
                }
            };
            positions.push(position);
        }
        Ok(Column::Vector(input.take(self.argument, &mut positions)?))
    }
}
