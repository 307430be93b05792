//! Aggregates whose result is a function of sums over the frame: counts, sums, averages and variances of exact numbers, and of booleans.
//!
//! Sums from the chunk's first row up to each row are computed once; those of a frame are differences, whatever its shape. They wrap, and no frame's own sum can be too large: what could overflow
//! is declined before. Digits shown are the greatest of the frame's values, from a tree of maxima where values differ in them.

use vector::{DisplayScales, LogicalType, NumericInts, Special, Values, Vector};

use super::places::Places;
use super::{Call, Column, Compute, Input, MISTYPED};
use crate::operators::aggregate::results::{Decimal, Specials, average, with_nulls};
use crate::operators::aggregate::variance;
use crate::{AggregateFunction, Error, Result, interrupt};

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
pub fn make(function: AggregateFunction, call: &Call) -> Result<Option<Box<dyn Compute>>> {
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
    Ok(Some(Box::new(Sums {
        kind,
        argument,
        counts: None,
        sums: Prefix::None,
        squares: Vec::new(),
        specials: Vec::new(),
        scale: 0,
        display: Display::All(0),
    })))
}

/// Sums up to each row: entry i is that of the rows before row i.
enum Prefix {
    None,
    Narrow(Vec<i64>),
    Wide(Vec<i128>),
}

/// Digits shown.
enum Display {
    All(u16),
    Values(Maxima),
}

struct Sums {
    kind: Kind,
    argument: Option<usize>,
    /// Values that are not NULL; None where all are.
    counts: Option<Vec<u32>>,
    sums: Prefix,
    squares: Vec<i128>,
    /// How many values up to each row are each of `SPECIALS`; empty where none is.
    specials: Vec<[u32; 3]>,
    scale: u16,
    display: Display,
}

const SPECIALS: [Special; 3] = [Special::Nan, Special::Infinity, Special::NegativeInfinity];

/// What a frame's values add up to.
#[derive(Default)]
struct Total {
    count: i64,
    sum: i128,
    squares: i128,
    display: u16,
    specials: Specials,
}

/// Running sums of some values.
fn prefix<S: Copy + Default>(rows: usize, add: impl Fn(S, usize) -> S) -> Result<Vec<S>> {
    let mut sums = Vec::new();
    let too_large = |_| Error::out_of_memory((rows + 1) * size_of::<S>());
    sums.try_reserve_exact(rows + 1).map_err(too_large)?;
    let mut sum = S::default();
    sums.push(sum);
    for start in (0..rows).step_by(interrupt::OFTEN) {
        interrupt::check()?;
        for row in start..rows.min(start + interrupt::OFTEN) {
            sum = add(sum, row);
            sums.push(sum);
        }
    }
    Ok(sums)
}

impl Sums {
    /// Sums of the argument's values.
    fn add<T: Copy + Into<i128>>(&mut self, argument: &Vector, values: &[T]) -> Result<()> {
        let valid = argument.validity.as_ref();
        let value = |row: usize| match valid.is_none_or(|valid| valid.get(row)) {
            true => values[row].into(),
            false => 0,
        };
        let rows = values.len();
        let greatest = (0..rows).map(|row| value(row).unsigned_abs()).max().unwrap_or(0);
        let bound = |of: u128| of.checked_mul(rows as u128).filter(|&all| all <= i128::MAX as u128);
        let all = bound(greatest).ok_or(WIDE)?;
        if matches!(self.kind, Kind::Variance(_)) {
            greatest.checked_mul(greatest).and_then(bound).ok_or(WIDE)?;
            self.squares = prefix(rows, |sum: i128, row| sum + value(row) * value(row))?;
        }
        self.sums = match all <= i64::MAX as u128 {
            true => Prefix::Narrow(prefix(rows, |sum: i64, row| sum + value(row) as i64)?),
            false => Prefix::Wide(prefix(rows, |sum: i128, row| sum + value(row))?),
        };
        Ok(())
    }

    fn total(&self, at: &Places, place: usize) -> Total {
        let mut total = Total::default();
        for (start, end) in at.parts(place) {
            if start == end {
                continue;
            }
            let (from, to) = (start as usize, end as usize);
            total.count += match &self.counts {
                None => i64::from(end - start),
                Some(counts) => i64::from(counts[to] - counts[from]),
            };
            total.sum += match &self.sums {
                Prefix::None => 0,
                Prefix::Narrow(sums) => i128::from(sums[to] - sums[from]),
                Prefix::Wide(sums) => sums[to] - sums[from],
            };
            if let (Some(to), Some(from)) = (self.squares.get(to), self.squares.get(from)) {
                total.squares += to - from;
            }
            if let (Some(to), Some(from)) = (self.specials.get(to), self.specials.get(from)) {
                let met = SPECIALS.iter().zip(to.iter().zip(from)).filter(|(_, (to, from))| to > from);
                met.for_each(|(special, _)| total.specials.meet(*special));
            }
            total.display = total.display.max(match &self.display {
                Display::All(display) => *display,
                Display::Values(maxima) => maxima.of(from, to),
            });
        }
        total
    }

    fn decimal(&self, total: &Total) -> Result<Option<Decimal>> {
        if total.count == 0 {
            return Ok(None);
        }
        let sum = Decimal { unscaled: total.sum, scale: self.scale, display: total.display };
        match self.kind {
            Kind::Average => average(sum, total.count).map(Some),
            Kind::Variance(kind) => {
                variance::exact(kind, total.count, total.sum, total.squares, self.scale, total.display)
            }
            _ => Ok(Some(sum)),
        }
    }
}

impl Compute for Sums {
    fn prepare(&mut self, input: &Input) -> Result<()> {
        let Some(argument) = self.argument else { return Ok(()) };
        let argument = input.argument(argument)?;
        let valid = argument.validity.as_ref();
        let counts =
            valid.map(|valid| prefix(input.rows, |count: u32, row| count + u32::from(valid.get(row))));
        self.counts = counts.transpose()?;
        match (&self.kind, &argument.values) {
            (Kind::Count, _) => Ok(()),
            (_, Values::Bool(bits)) => {
                let set = |row| bits.get(row) && argument.is_valid(row);
                self.sums = Prefix::Narrow(prefix(input.rows, |sum, row| sum + i64::from(set(row)))?);
                Ok(())
            }
            (_, Values::Int16(values)) => self.add(argument, values),
            (_, Values::Int32(values)) => self.add(argument, values),
            (_, Values::Int64(values)) => self.add(argument, values),
            (_, Values::Numeric(numeric)) => {
                if !numeric.side.is_empty() {
                    let specials = numeric.specials().ok_or(WIDE)?;
                    if matches!(self.kind, Kind::Variance(_)) {
                        return Err(Error::Decline("variance of what is no number"));
                    }
                    let mut met = vec![None; input.rows];
                    for (row, special) in
                        specials.into_iter().filter(|(row, _)| argument.is_valid(*row as usize))
                    {
                        met[row as usize] = Some(special);
                    }
                    self.specials = prefix(input.rows, |counts: [u32; 3], row| {
                        let met = SPECIALS.map(|special| u32::from(met[row] == Some(special)));
                        std::array::from_fn(|at| counts[at] + met[at])
                    })?;
                }
                self.scale = numeric.scale;
                self.display = match &numeric.display {
                    DisplayScales::Constant(display) => Display::All(*display),
                    DisplayScales::PerValue(display) => {
                        let shown = display.iter().enumerate();
                        let shown = shown.map(|(row, &d)| if argument.is_valid(row) { d } else { 0 });
                        Display::Values(Maxima::new(shown))
                    }
                };
                match &numeric.ints {
                    NumericInts::Int32(values) => self.add(argument, values),
                    NumericInts::Int64(values) => self.add(argument, values),
                    NumericInts::Int128(values) => self.add(argument, values),
                }
            }
            _ => Err(MISTYPED),
        }
    }

    fn compute(&mut self, _input: &Input, at: &Places) -> Result<Column> {
        if matches!(self.kind, Kind::Sum | Kind::Average | Kind::Variance(_)) {
            let mut results: Vec<Option<Decimal>> = Vec::with_capacity(at.len());
            let (mut specials, mut special) = (Vec::new(), None);
            for place in 0..at.len() {
                let result = match (at.is_repeated(place), results.last()) {
                    (true, Some(last)) => *last,
                    _ => {
                        let total = self.total(at, place);
                        special = total.specials.sum();
                        self.decimal(&total)?
                    }
                };
                results.push(result);
                specials.extend(special.map(|special| (place, special)));
            }
            return Ok(Column::Decimals(results, specials));
        }
        let totals = (0..at.len()).map(|place| self.total(at, place));
        let integers = |values| Values::Int64(values);
        Ok(Column::Vector(match self.kind {
            Kind::Count => Vector::new(LogicalType::Int64, integers(totals.map(|t| t.count).collect())),
            Kind::Integer => {
                let (values, seen): (Vec<_>, Vec<_>) = totals.map(|t| (t.sum as i64, t.count > 0)).unzip();
                with_nulls(LogicalType::Int64, integers(values), seen.into_iter())
            }
            _ => {
                let all = matches!(self.kind, Kind::BoolAnd);
                let least = |t: &Total| if all { t.count } else { 1 };
                let (values, seen): (Vec<_>, Vec<_>) =
                    totals.map(|t| (t.sum >= least(&t).into(), t.count > 0)).unzip();
                with_nulls(LogicalType::Bool, Values::Bool(values.into_iter().collect()), seen.into_iter())
            }
        }))
    }
}

/// Greatest values of ranges: a binary tree in an array, leaves in its second half.
struct Maxima {
    nodes: Vec<u16>,
}

impl Maxima {
    fn new(values: impl ExactSizeIterator<Item = u16>) -> Self {
        let leaves = values.len();
        let mut nodes = vec![0; leaves];
        nodes.extend(values);
        for at in (1..leaves).rev() {
            nodes[at] = nodes[2 * at].max(nodes[2 * at + 1]);
        }
        Self { nodes }
    }

    /// Of values `from..to`.
    fn of(&self, from: usize, to: usize) -> u16 {
        let leaves = self.nodes.len() / 2;
        let (mut from, mut to) = (from + leaves, to + leaves);
        let mut most = 0;
        while from < to {
            if from % 2 == 1 {
                most = most.max(self.nodes[from]);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                most = most.max(self.nodes[to]);
            }
            from /= 2;
            to /= 2;
        }
        most
    }
}
