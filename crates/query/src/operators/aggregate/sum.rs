//! Exact sums and averages: of integers and of decimals.
//!
//! Each group has a 64-bit sum and a count. Before a batch that could overflow one of the sums, all sums are
//! added to 128-bit sums beside them and start again at zero. A bound says whether a batch could: the
//! greatest magnitude in each batch times its rows, added up. Decimals are summed as integers at the greatest
//! scale met. A sum shows as many digits as the summed value that shows most. This number is kept per group
//! only where batches differ.

use std::sync::Arc;

use vector::{
    Bitmap, Decimal, DisplayScales, LogicalType, NumericInts, NumericValues, Special, Values, Vector,
    unsigned,
};

use super::accumulate::{Accumulator, Groups, MISTYPED, NO_SUMMARY, each_valid, same};
use super::copies;
use super::results::{Specials, decimals, power_of_ten, with_nulls, with_specials, without};
use crate::division::average;
use crate::row_container::flat;
use crate::{AggregateFunction, ColumnSummary, Error, Result};

const WIDE: Error = Error::Decline("numeric outside 128 bits");

#[derive(Debug, Clone, Copy, Default)]
struct State {
    sum: i64,
    count: i64,
}

/// Sums of exact numbers.
pub struct ExactSum {
    /// Sums are bigints: those of smallints and integers, which wrap as the server's do.
    bigint: bool,
    /// Values are `LogicalType::UInt64`.
    unsigned: bool,
    states: Vec<State>,
    /// The 128-bit sums of values before the last time the states were emptied. No entries if that never
    /// happened.
    wide: Vec<i128>,
    /// No state is farther from zero than this.
    bound: u64,
    scale: u16,
    display: Display,
    /// The NaN and infinities that each group met. No entries as long as no group met one.
    specials: Vec<Specials>,
}

/// Digits shown, of the values summed.
enum Display {
    /// No values yet.
    None,
    /// The same for all values.
    All(u16),
    /// The greatest of each group.
    Groups(Vec<u16>),
}

impl ExactSum {
    /// No groups; of values of this type.
    pub const fn new(logical: LogicalType) -> Self {
        let bigint = matches!(logical, LogicalType::Int16 | LogicalType::Int32);
        Self {
            bigint,
            unsigned: matches!(logical, LogicalType::UInt64),
            states: Vec::new(),
            wide: Vec::new(),
            bound: 0,
            scale: 0,
            display: Display::None,
            specials: Vec::new(),
        }
    }

    /// Makes room for `rows` further values of at most this magnitude. False where 64 bits have none.
    fn reserve(&mut self, magnitude: u64, rows: usize) -> bool {
        let Some(more) = magnitude.checked_mul(rows as u64).filter(|&more| more <= i64::MAX as u64) else {
            return false;
        };
        match self.bound.checked_add(more).filter(|&bound| bound <= i64::MAX as u64) {
            Some(bound) => self.bound = bound,
            None => {
                self.empty();
                self.bound = more;
            }
        }
        true
    }

    /// Brings all sums to 128 bits.
    fn empty(&mut self) {
        self.wide.resize(self.states.len(), 0);
        for (wide, state) in self.wide.iter_mut().zip(&mut self.states) {
            *wide += i128::from(std::mem::take(&mut state.sum));
        }
        self.bound = 0;
    }

    fn total(&self, group: usize) -> i128 {
        self.wide.get(group).copied().unwrap_or(0) + self.states.get(group).map_or(0, |s| i128::from(s.sum))
    }

    fn add_narrow<T: Copy>(
        &mut self,
        values: &[T],
        number: impl Fn(T) -> i64 + Copy,
        validity: Option<&Bitmap>,
        groups: Groups<'_>,
        magnitude: u64,
    ) -> Result<()> {
        let rows = values.len();
        if !self.reserve(magnitude, rows) {
            return self.add_wide(|row| number(values[row]).into(), rows, validity, groups, 1);
        }
        match groups {
            Groups::One => {
                let Some(state) = self.states.first_mut() else { return Ok(()) };
                match validity {
                    None => {
                        state.sum += values.iter().map(|&value| number(value)).sum::<i64>();
                        state.count += rows as i64;
                    }
                    Some(validity) => {
                        let mut sum = 0;
                        each_valid(Some(validity), rows, |row| sum += number(values[row]));
                        state.sum += sum;
                        state.count += validity.count_ones() as i64;
                    }
                }
            }
            Groups::Numbers(numbers) => {
                let states = self.states.as_mut_slice();
                match validity {
                    None => {
                        let add = |state: &mut State, value: T| {
                            state.sum += number(value);
                            state.count += 1;
                        };
                        let join = |state: &mut State, other: State| {
                            state.sum += other.sum;
                            state.count += other.count;
                        };
                        copies::each(states, State::default(), (numbers, values), add, join);
                    }
                    Some(validity) => {
                        let numbers = &numbers[..rows];
                        each_valid(Some(validity), rows, |row| {
                            let state = &mut states[numbers[row] as usize];
                            state.sum += number(values[row]);
                            state.count += 1;
                        });
                    }
                }
            }
        }
        Ok(())
    }

    fn add_unsigned(&mut self, values: &[i64], validity: Option<&Bitmap>, groups: Groups<'_>) -> Result<()> {
        let bits = values.iter().fold(0, |bits, &value| bits | unsigned(value));
        match bits.leading_zeros() {
            0 => self.add_wide(|row| unsigned(values[row]).into(), values.len(), validity, groups, 1),
            zeros => {
                let number = |value| unsigned(value).cast_signed();
                self.add_narrow(values, number, validity, groups, u64::MAX.checked_shr(zeros).unwrap_or(0))
            }
        }
    }

    fn add_wide(
        &mut self,
        value: impl Fn(usize) -> i128,
        rows: usize,
        validity: Option<&Bitmap>,
        groups: Groups<'_>,
        factor: i128,
    ) -> Result<()> {
        self.wide.resize(self.states.len(), 0);
        let mut overflow = false;
        each_valid(validity, rows, |row| {
            let group = match groups {
                Groups::One => 0,
                Groups::Numbers(numbers) => numbers[row] as usize,
            };
            let sum = value(row).checked_mul(factor).and_then(|value| self.wide[group].checked_add(value));
            overflow |= sum.is_none();
            self.wide[group] = sum.unwrap_or_default();
            self.states[group].count += 1;
        });
        // Half of the range stays free for the 64-bit sums.
        if overflow || self.wide.iter().any(|sum| sum.unsigned_abs() > i128::MAX as u128 / 2) {
            return Err(WIDE);
        }
        Ok(())
    }

    /// The scale is to be at least this.
    fn raise(&mut self, scale: u16) -> Result<()> {
        if scale > self.scale {
            if self.bound > 0 || !self.wide.is_empty() {
                self.empty();
                let factor = power_of_ten(u32::from(scale - self.scale))?;
                for sum in &mut self.wide {
                    *sum = sum.checked_mul(factor).filter(|v| v.abs() <= i128::MAX / 2).ok_or(WIDE)?;
                }
            }
            self.scale = scale;
        }
        Ok(())
    }

    fn show(&mut self, shown: &DisplayScales, validity: Option<&Bitmap>, rows: usize, groups: Groups<'_>) {
        match (&self.display, shown) {
            (Display::All(all), DisplayScales::Constant(shown)) if all == shown => return,
            (Display::None, DisplayScales::Constant(shown)) => {
                self.display = Display::All(*shown);
                return;
            }
            _ => {}
        }
        let all = match &self.display {
            Display::All(all) => *all,
            _ => 0,
        };
        if !matches!(self.display, Display::Groups(_)) {
            // Groups without values must not show what others do.
            self.display =
                Display::Groups(self.states.iter().map(|s| if s.count > 0 { all } else { 0 }).collect());
        }
        let Display::Groups(display) = &mut self.display else { return };
        display.resize(self.states.len(), 0);
        each_valid(validity, rows, |row| {
            let group = match groups {
                Groups::One => 0,
                Groups::Numbers(numbers) => numbers[row] as usize,
            };
            display[group] = display[group].max(shown.get(row));
        });
    }

    fn add_numerics(
        &mut self,
        numeric: &NumericValues,
        validity: Option<&Bitmap>,
        groups: Groups<'_>,
    ) -> Result<()> {
        let numbers;
        let validity = match numeric.side.is_empty() {
            true => validity,
            false => {
                let specials = numeric.specials().ok_or(WIDE)?;
                self.specials.resize(self.states.len(), Specials::default());
                for &(row, special) in &specials {
                    let row = row as usize;
                    if validity.is_none_or(|validity| validity.get(row)) {
                        let group = match groups {
                            Groups::One => 0,
                            Groups::Numbers(numbers) => numbers[row] as usize,
                        };
                        self.specials[group].meet(special);
                        self.states[group].count += 1;
                    }
                }
                numbers = without(validity, &specials, numeric.len());
                Some(&numbers)
            }
        };
        self.raise(numeric.scale)?;
        self.show(&numeric.display, validity, numeric.len(), groups);
        let factor = power_of_ten(u32::from(self.scale - numeric.scale))?;
        match &numeric.ints {
            NumericInts::Int32(values) if factor == 1 => {
                self.add_narrow(values, i64::from, validity, groups, 1 << 31)
            }
            NumericInts::Int64(values) if factor == 1 => {
                self.add_narrow(values, |value| value, validity, groups, magnitude(values))
            }
            ints => self.add_wide(|row| ints.get(row), numeric.len(), validity, groups, factor),
        }
    }

    /// What the sums and averages of groups are that are no numbers.
    fn special(&self, groups: std::ops::Range<usize>) -> impl Iterator<Item = (usize, Special)> {
        let specials = self.specials.get(groups.start..groups.end.min(self.specials.len())).unwrap_or(&[]);
        specials.iter().enumerate().filter_map(|(at, specials)| Some((at, specials.sum()?)))
    }

    fn value(&self, group: usize) -> Option<(Decimal, i64)> {
        let count = self.states.get(group).map_or(0, |state| state.count);
        let display = match &self.display {
            Display::None => 0,
            Display::All(display) => *display,
            Display::Groups(display) => display.get(group).copied().unwrap_or(0),
        };
        (count > 0).then(|| (Decimal { unscaled: self.total(group), scale: self.scale, display }, count))
    }
}

/// A bound on the magnitude of all values: all ones up to the highest bit set in any of them.
fn magnitude(values: &[i64]) -> u64 {
    let bits = values.iter().fold(0, |bits, &value| bits | (value ^ (value >> 63)) as u64);
    // The most negative value of `bits` bits is one larger in magnitude.
    match bits {
        0 => 1,
        bits => (u64::MAX >> bits.leading_zeros()) + 1,
    }
}

impl Accumulator for ExactSum {
    fn also(&mut self, function: AggregateFunction) -> bool {
        matches!(function, AggregateFunction::Sum | AggregateFunction::Avg | AggregateFunction::Count)
    }

    fn grow(&mut self, groups: usize) {
        self.states.resize(groups, State::default());
        if !self.wide.is_empty() {
            self.wide.resize(groups, 0);
        }
        if let Display::Groups(display) = &mut self.display {
            display.resize(groups, 0);
        }
        if !self.specials.is_empty() {
            self.specials.resize(groups, Specials::default());
        }
    }

    fn update(&mut self, arguments: &[Arc<Vector>], rows: usize, groups: Groups<'_>) -> Result<()> {
        let argument = arguments.first().ok_or(MISTYPED)?;
        let argument = flat(argument);
        let validity = argument.validity.as_ref();
        if validity.is_some_and(|validity| validity.count_ones() == 0) || rows == 0 {
            return Ok(());
        }
        match &argument.values {
            Values::Int16(values) => self.add_narrow(values, i64::from, validity, groups, 1 << 15),
            Values::Int32(values) => self.add_narrow(values, i64::from, validity, groups, 1 << 31),
            Values::Int64(values) if self.unsigned => self.add_unsigned(values, validity, groups),
            Values::Int64(values) => {
                self.add_narrow(values, |value| value, validity, groups, magnitude(values))
            }
            Values::Numeric(numeric) => self.add_numerics(numeric, validity, groups),
            _ => Err(MISTYPED),
        }
    }

    fn merge(&mut self, other: &mut dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        self.raise(other.scale)?;
        other.raise(self.scale)?;
        let shown = match (&self.display, &other.display) {
            (_, Display::None) => None,
            (Display::All(a), Display::All(b)) if a == b => None,
            (Display::None, Display::All(b)) => {
                self.display = Display::All(*b);
                None
            }
            (_, Display::All(b)) => Some(DisplayScales::Constant(*b)),
            (_, Display::Groups(b)) => {
                Some(DisplayScales::PerValue(from.iter().map(|&from| b[from as usize]).collect()))
            }
        };
        if let Some(shown) = shown {
            let valid: Bitmap = from.iter().map(|&from| other.states[from as usize].count > 0).collect();
            self.show(&shown, Some(&valid), to.len(), Groups::Numbers(to));
        }
        if !other.specials.is_empty() {
            self.specials.resize(self.states.len(), Specials::default());
            for (&from, &group) in from.iter().zip(to) {
                let seen = other.specials.get(from as usize).copied().unwrap_or_default();
                self.specials[group as usize].merge(seen);
            }
        }
        let bound = self.bound.checked_add(other.bound).filter(|&bound| bound <= i64::MAX as u64);
        if let (Some(bound), true, true) = (bound, self.wide.is_empty(), other.wide.is_empty()) {
            self.bound = bound;
            for (&from, &group) in from.iter().zip(to) {
                let (state, from) = (&mut self.states[group as usize], other.states[from as usize]);
                state.sum += from.sum;
                state.count += from.count;
            }
            return Ok(());
        }
        self.wide.resize(self.states.len(), 0);
        for (&from, &group) in from.iter().zip(to) {
            let group = group as usize;
            let sum = self.wide[group].checked_add(other.total(from as usize));
            // Half of the range stays free for the 64-bit sums.
            self.wide[group] = sum.filter(|sum| sum.unsigned_abs() <= i128::MAX as u128 / 2).ok_or(WIDE)?;
            self.states[group].count += other.states[from as usize].count;
        }
        Ok(())
    }

    fn summary(&mut self, rows: u64, column: Option<&ColumnSummary>) -> Result<()> {
        let column = column.ok_or(NO_SUMMARY)?;
        let count = rows.saturating_sub(column.nulls);
        if count == 0 {
            return Ok(());
        }
        let sum = column.sum.ok_or(NO_SUMMARY)?;
        self.raise(sum.scale)?;
        self.show(&DisplayScales::Constant(sum.display), None, 1, Groups::One);
        let factor = power_of_ten(u32::from(self.scale - sum.scale))?;
        self.add_wide(|_| sum.unscaled, 1, None, Groups::One, factor)?;
        if let Some(state) = self.states.first_mut() {
            state.count += i64::try_from(count).map_err(|_| NO_SUMMARY)? - 1;
        }
        Ok(())
    }

    fn finish(&mut self, function: AggregateFunction, start: usize, len: usize) -> Result<Vector> {
        let groups = start..start + len;
        match function {
            AggregateFunction::Count => {
                let counts = self.states[groups].iter().map(|state| state.count);
                Ok(Vector::new(LogicalType::Int64, Values::Int64(counts.collect())))
            }
            AggregateFunction::Sum if self.bigint => {
                let values = groups.clone().map(|group| self.total(group) as i64).collect();
                let seen = groups.map(|group| self.states[group].count > 0);
                Ok(with_nulls(LogicalType::Int64, Values::Int64(values), seen))
            }
            AggregateFunction::Sum => {
                let sums = groups.clone().map(|group| self.value(group).map(|(sum, _)| sum));
                Ok(with_specials(decimals(&sums.collect::<Vec<_>>())?, self.special(groups)))
            }
            AggregateFunction::Avg => {
                let averages = groups.clone().map(|group| match self.value(group) {
                    Some((sum, count)) => average(sum, count).map(Some),
                    None => Ok(None),
                });
                let averages = decimals(&averages.collect::<Result<Vec<_>>>()?)?;
                Ok(with_specials(averages, self.special(groups)))
            }
            _ => Err(MISTYPED),
        }
    }

    fn bytes(&self) -> usize {
        let display = if let Display::Groups(display) = &self.display { display.capacity() * 2 } else { 0 };
        self.states.capacity() * 16 + self.wide.capacity() * 16 + self.specials.capacity() + display
    }
}
