//! Timestamps and intervals: microseconds, days and months, in sixteen bytes as the server stores them.

use vector::{Bitmap, FixedBytes, LogicalType, Values};

use super::{DAY, END_TIMESTAMP_DAY, is_infinite_timestamp, is_timestamp};
use crate::expression::functions::lanes::{WRONG_TYPE, fixed, lane, two};
use crate::expression::functions::{Output, Picked, Value};
use crate::kernels::Lane;
use crate::{Error, Result, SqlError};
use vector::calendar::{from_days, month_length, to_days};

#[derive(Clone, Copy)]
struct Interval {
    micros: i64,
    days: i32,
    months: i32,
}

impl Interval {
    fn of(bytes: &[u8]) -> Option<Self> {
        let (micros, rest) = bytes.split_first_chunk::<8>()?;
        let (days, rest) = rest.split_first_chunk::<4>()?;
        let months = rest.first_chunk::<4>()?;
        Some(Self {
            micros: i64::from_ne_bytes(*micros),
            days: i32::from_ne_bytes(*days),
            months: i32::from_ne_bytes(*months),
        })
    }

    const fn negated(self) -> Self {
        Self {
            micros: self.micros.wrapping_neg(),
            days: self.days.wrapping_neg(),
            months: self.months.wrapping_neg(),
        }
    }
}

/// Months first, where the day is cut to the month's length, then days, then the time. None outside of what a
/// timestamp holds.
fn moved(value: i64, by: Interval) -> Option<i64> {
    if is_infinite_timestamp(value) {
        return Some(value);
    }
    let (mut days, time) = (value.div_euclid(DAY), value.rem_euclid(DAY));
    if by.months != 0 {
        let mut day = from_days(days);
        // The server counts these months in 32 bits.
        let months = i64::from(i32::try_from(day.month + i64::from(by.months)).ok()?) - 1;
        day.year += months.div_euclid(12);
        day.month = months.rem_euclid(12) + 1;
        day.day = day.day.min(month_length(day.year, day.month));
        days = to_days(day);
        // What is between must be a timestamp, too.
        checked(days, time)?;
    }
    if by.days != 0 {
        days += i64::from(by.days);
        checked(days, time)?;
    }
    checked(days, time)?.checked_add(by.micros).filter(|&value| is_timestamp(value))
}

/// A timestamp moved by an interval; None outside of what a timestamp holds.
pub(crate) fn after_interval(value: i64, subtract: bool, months: i32, days: i32, micros: i64) -> Option<i64> {
    let interval = Interval { micros, days, months };
    moved(value, if subtract { interval.negated() } else { interval })
}

fn checked(days: i64, time: i64) -> Option<i64> {
    days.checked_mul(DAY)?.checked_add(time).filter(|&value| is_timestamp(value))
}

/// A date or timestamp and an interval.
pub(in crate::expression::functions) fn add_interval(from: LogicalType, subtract: bool) -> Option<Picked> {
    if !matches!(from, LogicalType::Date | LogicalType::Timestamp) {
        return None;
    }
    Some((
        Box::new(move |arguments: &[Value], rows: usize, valid: Option<&Bitmap>| {
            let (a, b) = two(arguments)?;
            let (intervals, constant) = fixed(b)?;
            let interval = |row: usize| {
                let interval = Interval::of(intervals.get(if constant { 0 } else { row }))?;
                Some(if subtract { interval.negated() } else { interval })
            };
            let start = |row: usize| match &a.inner().values {
                Values::Int64(_) => lane::<i64>(a).ok().and_then(|lane| lane.get(row)),
                _ => match lane::<i32>(a).ok()?.get(row)? {
                    i32::MIN => Some(i64::MIN),
                    i32::MAX => Some(i64::MAX),
                    day if day < END_TIMESTAMP_DAY => Some(i64::from(day) * DAY),
                    _ => None,
                },
            };
            let mut values = Vec::with_capacity(rows);
            for row in 0..rows {
                if valid.is_some_and(|valid| !valid.get(row)) {
                    values.push(0);
                    continue;
                }
                let start = start(row).ok_or(Error::Decline("date past the last timestamp"))?;
                let interval = interval(row).ok_or(WRONG_TYPE)?;
                values.push(moved(start, interval).ok_or(Error::Sql(SqlError::TimestampOutOfRange))?);
            }
            Ok(Values::Int64(values).into())
        }),
        20,
    ))
}

/// Timestamp - timestamp: whole days and the time left.
pub(in crate::expression::functions) fn subtract_timestamps(
    arguments: &[Value],
    rows: usize,
    valid: Option<&Bitmap>,
) -> Result<Output> {
    let (a, b) = two(arguments)?;
    let (a, b): (Lane<'_, i64>, Lane<'_, i64>) = (lane(a)?, lane(b)?);
    let mut bytes = Vec::with_capacity(rows * 16);
    for row in 0..rows {
        let (Some(x), Some(y)) = (a.get(row), b.get(row)) else { break };
        let counts = valid.is_none_or(|valid| valid.get(row));
        if counts && (is_infinite_timestamp(x) || is_infinite_timestamp(y)) {
            return Err(Error::Decline("difference of infinite timestamps"));
        }
        let micros = x.wrapping_sub(y);
        bytes.extend_from_slice(&(micros % DAY).to_ne_bytes());
        bytes.extend_from_slice(&((micros / DAY) as i32).to_ne_bytes());
        bytes.extend_from_slice(&0i32.to_ne_bytes());
    }
    Ok(Values::Fixed(FixedBytes { width: 16, bytes }).into())
}
