//! Aggregates whose result is a function of sums over the frame: counts, sums, averages and variances of
//! exact numbers, and of booleans.
//!
//! Both ends of a frame only move forward. Each end adds up the values that it passes, and the difference of
//! both is the frame's sum. Sums that could overflow on the way are declined before. A sum shows as many
//! digits as the frame's value that shows most (`slide` finds it where values differ).

use vector::{Decimal, DisplayScales, LogicalType, NumericInts, Special, Values, Vector};

use super::input::{Input, Reader};
use super::places::Places;
use super::slide::Best;
use super::{Call, Column, Compute, MISTYPED};
use crate::division::average;
use crate::operators::aggregate::results::{Specials, power_of_ten, with_nulls};
use crate::operators::aggregate::variance;
use crate::{AggregateFunction, Error, Result, WindowFrame, interrupt};

const WIDE: Error = Error::Decline("numeric outside 128 bits");

#[derive(Debug, Clone, Copy)]
enum Kind {
    Count,
    BoolAnd,
    BoolOr,
    /// A sum as a bigint, which wraps as the server's does.
    Integer,
    Sum,
    Average,
    Variance(variance::Kind),
}

/// The computer of an aggregate of this family.
pub fn make(
    function: AggregateFunction,
    call: &Call,
    frame: &WindowFrame,
) -> Result<Option<Box<dyn Compute>>> {
    use AggregateFunction as F;
    use LogicalType as T;
    let kind = match (function, call.types.first()) {
        (F::CountRows, None) | (F::Count, Some(_)) => Kind::Count,
        (F::BoolAnd, Some(T::Bool)) => Kind::BoolAnd,
        (F::BoolOr, Some(T::Bool)) => Kind::BoolOr,
        (F::Sum, Some(T::Int16 | T::Int32)) => Kind::Integer,
        (F::Sum, Some(T::Int64 | T::Numeric)) => Kind::Sum,
        (F::Avg, Some(T::Int16 | T::Int32 | T::Int64 | T::Numeric)) => Kind::Average,
        (_, Some(T::Int16 | T::Int32 | T::Int64 | T::Numeric)) => match variance::Kind::of(function) {
            Some(kind) => Kind::Variance(kind),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let argument = (!call.types.is_empty()).then_some(call.first);
    let summed = Summed { kind, argument, scale: 0 };
    let best = Best::new(frame);
    Ok(Some(Box::new(Sums { summed, ends: Default::default(), shown: Shown::All(0), best })))
}

/// The values to add up.
struct Summed {
    kind: Kind,
    argument: Option<usize>,
    /// Greatest scale of the values.
    scale: u16,
}

/// Digits that values show.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    All(u16),
    Differ,
}

struct Sums {
    summed: Summed,
    /// Where frames begin and end, and where the rows that they leave out begin and end. Also the current
    /// row, if a frame keeps it among these.
    ends: [End; 6],
    shown: Shown,
    best: Best<u16>,
}

const SPECIALS: [Special; 3] = [Special::Nan, Special::Infinity, Special::NegativeInfinity];

/// The sum of values.
#[derive(Default, Clone, Copy)]
struct Total {
    sum: i128,
    squares: i128,
    count: u32,
    /// How many are each of `SPECIALS`.
    specials: [u32; 3],
}

impl Total {
    /// With or without those that add up to another total.
    fn add(&mut self, other: &Self, with: bool) {
        let sign = if with { 1 } else { -1 };
        self.sum += sign * other.sum;
        self.squares += sign * other.squares;
        let count =
            |to: &mut u32, by: u32| *to = if with { to.wrapping_add(by) } else { to.wrapping_sub(by) };
        count(&mut self.count, other.count);
        self.specials.iter_mut().zip(other.specials).for_each(|(to, by)| count(to, by));
    }
}

/// An end of frames: the total of all rows of the chunk before it.
#[derive(Default)]
struct End {
    row: usize,
    total: Total,
    reader: Reader,
}

impl End {
    /// The totals of the rows before each of these, which only go forward.
    fn totals(&mut self, input: &Input, of: &Summed, rows: &[u32]) -> Result<Vec<Total>> {
        let mut totals = Vec::with_capacity(rows.len());
        let Some(argument) = of.argument else { return Err(MISTYPED) };
        while let Some(&next) = rows.get(totals.len()) {
            if next as usize <= self.row {
                totals.push(self.total);
                continue;
            }
            let piece = self.reader.piece(input, self.row)?;
            let (column, first, end) = (piece.argument(argument)?, piece.rows.start, piece.rows.end);
            let (row, total) = (&mut self.row, &mut self.total);
            let valid = column.validity.as_ref();
            let squares = matches!(of.kind, Kind::Variance(_));
            macro_rules! walk {
                ($value:expr, $special:expr) => {{
                    let (value, special) = ($value, $special);
                    for &to in &rows[totals.len()..] {
                        while *row < end.min(to as usize) {
                            interrupt::check_at(*row)?;
                            let at = *row - first;
                            if valid.is_none_or(|valid| valid.get(at)) {
                                let value: i128 = value(at);
                                total.count += 1;
                                total.sum += value;
                                if squares {
                                    total.squares += value * value;
                                }
                                special(at, total);
                            }
                            *row += 1;
                        }
                        if to as usize > end {
                            break;
                        }
                        totals.push(*total);
                    }
                }};
            }
            let none = |_: usize, _: &mut Total| {};
            match (of.kind, &column.values) {
                (Kind::Count, _) => walk!(|_| 0, none),
                (_, Values::Bool(bits)) => walk!(|at| bits.get(at).into(), none),
                (_, Values::Int16(values)) => walk!(|at: usize| values[at].into(), none),
                (_, Values::Int32(values)) => walk!(|at: usize| values[at].into(), none),
                (_, Values::Int64(values)) => walk!(|at: usize| values[at].into(), none),
                (_, Values::Numeric(numeric)) => {
                    let factor = power_of_ten(u32::from(of.scale.saturating_sub(numeric.scale)))?;
                    match &numeric.ints {
                        _ if !numeric.side.is_empty() => {
                            walk!(|at| numeric.ints.get(at) * factor, |at, total: &mut Total| {
                                let special = numeric.side_value(at).and_then(Special::of);
                                let counts = SPECIALS.iter().zip(&mut total.specials);
                                counts.for_each(|(of, count)| *count += u32::from(special == Some(*of)));
                            });
                        }
                        NumericInts::Int32(values) => {
                            walk!(|at: usize| i128::from(values[at]) * factor, none);
                        }
                        NumericInts::Int64(values) => {
                            walk!(|at: usize| i128::from(values[at]) * factor, none);
                        }
                        NumericInts::Int128(values) => walk!(|at: usize| values[at] * factor, none),
                    }
                }
                _ => return Err(MISTYPED),
            }
        }
        Ok(totals)
    }
}

/// The greatest magnitude of values that are not NULL.
fn greatest<T: Copy + Into<i128>>(column: &Vector, values: &[T]) -> Result<u128> {
    let mut greatest = 0;
    for (row, &value) in values.iter().enumerate() {
        interrupt::check_at(row)?;
        if column.is_valid(row) {
            greatest = greatest.max(value.into().unsigned_abs());
        }
    }
    Ok(greatest)
}

impl Sums {
    /// The totals of the frames of a range.
    fn totals(&mut self, input: &Input, at: &Places) -> Result<Vec<Total>> {
        if self.summed.argument.is_none() {
            let rows = |place| at.parts(place).iter().map(|(start, end)| end - start).sum();
            return Ok((0..at.len()).map(|place| Total { count: rows(place), ..Total::default() }).collect());
        }
        let Self { summed, ends: [start, end, hole, hole_end, row, row_end], .. } = self;
        let mut totals = end.totals(input, summed, &at.frame_end)?;
        let mut add = |end: &mut End, rows: &[u32], with: bool| {
            let others = end.totals(input, summed, rows)?;
            totals.iter_mut().zip(&others).for_each(|(total, other)| total.add(other, with));
            Ok::<_, Error>(())
        };
        add(start, &at.frame_start, false)?;
        if let Some(holes) = &at.holes {
            add(hole, &holes.start, true)?;
            add(hole_end, &holes.end, false)?;
            if holes.keep_row {
                let rows: Vec<u32> = at.rows.clone().map(|row| row as u32).collect();
                let kept = |(place, row): (usize, &u32)| {
                    let (start, end) = at.parts(place)[1];
                    row + u32::from(start < end)
                };
                add(row_end, &rows.iter().enumerate().map(kept).collect::<Vec<_>>(), true)?;
                add(row, &rows, false)?;
            }
        }
        Ok(totals)
    }

    /// Digits that the sum of the frame at a place shows.
    fn display(&mut self, input: &Input, at: &Places, place: usize) -> Result<u16> {
        let argument = match (self.shown, self.summed.argument) {
            (Shown::All(display), _) => return Ok(display),
            (Shown::Differ, argument) => argument.ok_or(MISTYPED)?,
        };
        let value = |column: &Vector, row: usize| match &column.values {
            Values::Numeric(numeric) => Ok(column.is_valid(row).then(|| numeric.display.get(row))),
            _ => Err(MISTYPED),
        };
        let best = self.best.of(input, argument, (at, place), &value, &|later, earlier| later >= earlier)?;
        Ok(best.map_or(0, |(_, display)| *display))
    }

    fn decimal(&self, total: &Total, display: u16) -> Result<Option<Decimal>> {
        if total.count == 0 {
            return Ok(None);
        }
        let (count, scale) = (i64::from(total.count), self.summed.scale);
        let sum = Decimal { unscaled: total.sum, scale, display };
        match self.summed.kind {
            Kind::Average => average(sum, count).map(Some),
            Kind::Variance(kind) => variance::exact(kind, count, total.sum, total.squares, scale, display),
            _ => Ok(Some(sum)),
        }
    }
}

impl Compute for Sums {
    fn prepare(&mut self, input: &Input) -> Result<()> {
        let Summed { kind, argument: Some(argument), .. } = self.summed else { return Ok(()) };
        let squares = matches!(kind, Kind::Variance(_));
        if !squares && !matches!(kind, Kind::Sum | Kind::Average) {
            return Ok(());
        }
        // Greatest values of each scale.
        let mut most: Vec<(u16, u128)> = Vec::new();
        let mut shown = None;
        input.each_piece(|piece| {
            let column = piece.argument(argument)?;
            let (scale, greatest) = match &column.values {
                Values::Int16(values) => (0, greatest(column, values)?),
                Values::Int32(values) => (0, greatest(column, values)?),
                Values::Int64(values) => (0, greatest(column, values)?),
                Values::Numeric(numeric) => {
                    if !numeric.specials().ok_or(WIDE)?.is_empty() && squares {
                        return Err(Error::Decline("variance of what is no number"));
                    }
                    let here = match numeric.display {
                        DisplayScales::Constant(display) => Shown::All(display),
                        DisplayScales::PerValue(_) => Shown::Differ,
                    };
                    shown = Some(if shown.is_none_or(|shown| shown == here) { here } else { Shown::Differ });
                    let greatest = match &numeric.ints {
                        NumericInts::Int32(values) => greatest(column, values)?,
                        NumericInts::Int64(values) => greatest(column, values)?,
                        NumericInts::Int128(values) => greatest(column, values)?,
                    };
                    (numeric.scale, greatest)
                }
                _ => return Err(MISTYPED),
            };
            match most.iter_mut().find(|(of, _)| *of == scale) {
                Some((_, most)) => *most = greatest.max(*most),
                None => most.push((scale, greatest)),
            }
            Ok(())
        })?;
        self.shown = shown.unwrap_or(Shown::All(0));
        self.summed.scale = most.iter().map(|(scale, _)| *scale).max().unwrap_or(0);
        for (scale, greatest) in most {
            let factor = power_of_ten(u32::from(self.summed.scale - scale))?.unsigned_abs();
            let greatest = greatest.checked_mul(factor);
            let largest =
                if squares { greatest.and_then(|value| value.checked_mul(value)) } else { greatest };
            let all = largest.and_then(|value| value.checked_mul(input.rows as u128));
            all.filter(|&all| all <= i128::MAX as u128).ok_or(WIDE)?;
        }
        Ok(())
    }

    fn compute(&mut self, input: &Input, at: &Places) -> Result<Column> {
        let totals = self.totals(input, at)?;
        if matches!(self.summed.kind, Kind::Sum | Kind::Average | Kind::Variance(_)) {
            let mut results: Vec<Option<Decimal>> = Vec::with_capacity(at.len());
            let (mut specials, mut special) = (Vec::new(), None);
            for (place, total) in totals.iter().enumerate() {
                let result = match (at.is_repeated(place), results.last()) {
                    (true, Some(last)) => *last,
                    _ => {
                        let mut met = Specials::default();
                        let counts = SPECIALS.iter().zip(total.specials);
                        counts.filter(|(_, count)| *count > 0).for_each(|(special, _)| met.meet(*special));
                        special = met.sum();
                        let display = self.display(input, at, place)?;
                        self.decimal(total, display)?
                    }
                };
                results.push(result);
                specials.extend(special.map(|special| (place, special)));
            }
            return Ok(Column::Decimals(results, specials));
        }
        let totals = totals.iter();
        Ok(Column::Vector(match self.summed.kind {
            Kind::Count => {
                let counts = totals.map(|total| total.count.into()).collect();
                Vector::new(LogicalType::Int64, Values::Int64(counts))
            }
            Kind::Integer => {
                let (values, seen): (Vec<_>, Vec<_>) = totals.map(|t| (t.sum as i64, t.count > 0)).unzip();
                with_nulls(LogicalType::Int64, Values::Int64(values), seen.into_iter())
            }
            kind => {
                let all = matches!(kind, Kind::BoolAnd);
                let least = |total: &Total| if all { total.count.into() } else { 1 };
                let (values, seen): (Vec<_>, Vec<_>) =
                    totals.map(|total| (total.sum >= least(total), total.count > 0)).unzip();
                with_nulls(LogicalType::Bool, Values::Bool(values.into_iter().collect()), seen.into_iter())
            }
        }))
    }
}
