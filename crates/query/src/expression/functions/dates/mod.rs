//! Functions of dates and timestamps (without time zone).
//!
//! A date is a number of days, a timestamp one of microseconds, both since 2000-01-01; the extremes are the
//! infinities. A function of the day alone is looked up in a table of the days met (`DayTable`), because the
//! calendar costs some twenty operations a value.

mod extract;
mod interval;
mod to_char;
mod trunc;

use vector::{Bitmap, LogicalType, Values};

pub(super) use extract::{extract, part};
pub(crate) use interval::after_interval;
pub(super) use interval::{add_interval, subtract_timestamps};
pub(super) use to_char::to_char;
pub(super) use trunc::trunc;

use super::lanes::{any_fails, lane, one, two};
use super::{Output, Picked, Value};
use crate::expression::Function;
use crate::kernels::Lane;
use crate::kernels::arithmetic::{extremes, map_checked, zip_checked};
use crate::{Error, Result, SqlError};

/// Microseconds of a day.
pub(super) const DAY: i64 = 86_400_000_000;

/// The first day that the server knows, and the first after its last.
const FIRST_DAY: i32 = -2_451_545;
const END_DAY: i32 = 2_145_031_949;

/// The same for timestamps: in days and in microseconds.
const END_TIMESTAMP_DAY: i32 = 106_751_983;
const FIRST_TIMESTAMP: i64 = -211_813_488_000_000_000;
const END_TIMESTAMP: i64 = 9_223_371_331_200_000_000;

/// True for a timestamp the server knows, infinities aside.
pub(super) const fn is_timestamp(value: i64) -> bool {
    value >= FIRST_TIMESTAMP && value < END_TIMESTAMP
}

pub(super) const fn is_infinite_date(value: i32) -> bool {
    value == i32::MIN || value == i32::MAX
}

pub(super) const fn is_infinite_timestamp(value: i64) -> bool {
    value == i64::MIN || value == i64::MAX
}

/// Sums and differences of dates and days.
pub(super) fn days(function: Function, inputs: &[LogicalType]) -> Option<Picked> {
    use LogicalType::{Date, Int32};
    /// A date moved by some days, and whether that is no date.
    #[inline(always)]
    fn moved(date: i32, days: i64) -> (i32, bool) {
        if is_infinite_date(date) {
            return (date, false);
        }
        let sum = i64::from(date) + days;
        (sum as i32, sum < FIRST_DAY as i64 || sum >= END_DAY as i64)
    }
    fn run(arguments: &[Value], rows: usize, valid: Option<&Bitmap>, sign: i64) -> Result<Output> {
        let (a, b) = two(arguments)?;
        let (a, b) = (lane::<i32>(a)?, lane::<i32>(b)?);
        let f = |date, days: i32| moved(date, i64::from(days) * sign);
        let (values, flag) = zip_checked(a, b, rows, f);
        let fails = |row| matches!((a.get(row), b.get(row)), (Some(a), Some(b)) if f(a, b).1);
        if flag && any_fails(rows, valid, fails) {
            return Err(Error::Sql(SqlError::DateOutOfRange));
        }
        Ok(Values::Int32(values).into())
    }
    Some(match (function, inputs) {
        (Function::Add, [Date, Int32]) => {
            (Box::new(|a: &[Value], rows, valid: Option<&Bitmap>| run(a, rows, valid, 1)), 1)
        }
        (Function::Subtract, [Date, Int32]) => {
            (Box::new(|a: &[Value], rows, valid: Option<&Bitmap>| run(a, rows, valid, -1)), 1)
        }
        (Function::Subtract, [Date, Date]) => (
            Box::new(|arguments: &[Value], rows: usize, valid: Option<&Bitmap>| {
                let (a, b) = two(arguments)?;
                let (a, b) = (lane::<i32>(a)?, lane::<i32>(b)?);
                let infinite = |a, b| is_infinite_date(a) | is_infinite_date(b);
                let (values, flag) =
                    zip_checked(a, b, rows, |a: i32, b: i32| (a.wrapping_sub(b), infinite(a, b)));
                let fails = |row| matches!((a.get(row), b.get(row)), (Some(a), Some(b)) if infinite(a, b));
                if flag && any_fails(rows, valid, fails) {
                    return Err(Error::Decline("difference of infinite dates"));
                }
                Ok(Values::Int32(values).into())
            }),
            1,
        ),
        _ => return None,
    })
}

/// Dates to timestamps and back.
pub(super) fn cast(to: LogicalType) -> Option<Picked> {
    Some(match to {
        LogicalType::Timestamp => (Box::new(to_timestamps), 1),
        LogicalType::Date => (
            Box::new(|arguments: &[Value], rows: usize, _: Option<&Bitmap>| {
                let day = |value: i64| match value {
                    i64::MIN => i32::MIN,
                    i64::MAX => i32::MAX,
                    value => value.div_euclid(DAY) as i32,
                };
                let (values, _) =
                    map_checked(lane::<i64>(one(arguments)?)?, rows, |value| (day(value), false));
                Ok(Values::Int32(values).into())
            }),
            4,
        ),
        _ => return None,
    })
}

/// The start of each date.
fn to_timestamps(arguments: &[Value], rows: usize, valid: Option<&Bitmap>) -> Result<Output> {
    let a = lane::<i32>(one(arguments)?)?;
    let start = |date: i32| match date {
        i32::MIN => (i64::MIN, false),
        i32::MAX => (i64::MAX, false),
        date => (i64::from(date).wrapping_mul(DAY), date >= END_TIMESTAMP_DAY),
    };
    let (values, flag) = map_checked(a, rows, start);
    if flag && any_fails(rows, valid, |row| a.get(row).is_some_and(|a| start(a).1)) {
        return Err(Error::Decline("date past the last timestamp"));
    }
    Ok(Values::Int64(values).into())
}

/// Days of dates or timestamps; infinite ones are the extremes.
pub(super) fn days_of(argument: &Value) -> Result<(Vec<i32>, bool)> {
    let days = match &argument.inner().values {
        Values::Int32(values) => values.clone(),
        _ => {
            let (days, _) = map_checked(lane::<i64>(argument)?, 1, |value: i64| match value {
                i64::MIN => (i32::MIN, false),
                i64::MAX => (i32::MAX, false),
                value => (value.div_euclid(DAY) as i32, false),
            });
            days
        }
    };
    let infinite = days.iter().any(|&day| is_infinite_date(day));
    Ok((days, infinite))
}

/// Most days a table spans: some 270 years.
const TABLE_DAYS: i64 = 100_000;

/// A function of a day, remembered for all days between the earliest and the latest met.
#[derive(Default)]
pub(super) struct DayTable<T> {
    first: i64,
    known: Vec<T>,
}

impl<T: Copy + Default> DayTable<T> {
    /// `f` of each of these days.
    pub fn map(&mut self, days: &[i32], f: impl Fn(i64) -> T) -> Vec<T> {
        let Some((low, high)) = extremes(days) else { return Vec::new() };
        let (mut low, mut high) = (i64::from(low), i64::from(high));
        if !self.known.is_empty() {
            low = low.min(self.first);
            high = high.max(self.first + self.known.len() as i64 - 1);
        }
        let (span, met) = (high - low + 1, self.known.len() as i64);
        // Worth it where the days to be added are not many more than the rows.
        if span > TABLE_DAYS || span - met > 2 * days.len() as i64 {
            return days.iter().map(|&day| f(day.into())).collect();
        }
        if span > met {
            (self.first, self.known) = (low, (low..=high).map(f).collect());
        }
        let first = self.first;
        days.iter()
            .map(|&day| {
                let at = usize::try_from(i64::from(day) - first).unwrap_or(usize::MAX);
                self.known.get(at).copied().unwrap_or_default()
            })
            .collect()
    }
}

/// The lane's value in each row.
pub(super) fn timestamps(argument: &Value) -> Result<&[i64]> {
    match lane::<i64>(argument)? {
        Lane::Many(values) => Ok(values),
        Lane::One(_) => match &argument.inner().values {
            Values::Int64(values) => Ok(values),
            _ => Err(super::lanes::WRONG_TYPE),
        },
    }
}
