//! date_trunc of timestamps.

use vector::{Bitmap, Values};

use super::{DAY, DayTable, days_of, is_infinite_timestamp, is_timestamp, timestamps};
use crate::expression::DateField;
use crate::expression::functions::lanes::{any_fails, one};
use crate::expression::functions::{Picked, Value};
use crate::kernels::arithmetic::map;
use crate::{Error, SqlError};
use vector::calendar::{Day, from_days, to_days};

/// The first day of the year, century, ... that a day is in.
fn first_day(field: DateField) -> Option<fn(i64) -> i64> {
    const fn january(year: i64) -> i64 {
        to_days(Day { year, month: 1, day: 1 })
    }
    /// A unit of n years begins with a year that is 1 modulo n.
    const fn counted(year: i64, years: i64) -> i64 {
        january((year - 1).div_euclid(years) * years + 1)
    }
    Some(match field {
        DateField::Millennium => |days| counted(from_days(days).year, 1000),
        DateField::Century => |days| counted(from_days(days).year, 100),
        DateField::Decade => |days| january(from_days(days).year.div_euclid(10) * 10),
        DateField::Year => |days| january(from_days(days).year),
        DateField::Quarter => |days| {
            let Day { year, month, .. } = from_days(days);
            to_days(Day { year, month: (month - 1) / 3 * 3 + 1, day: 1 })
        },
        DateField::Month => |days| to_days(Day { day: 1, ..from_days(days) }),
        DateField::Week => |days| days - (days + 5).rem_euclid(7),
        DateField::Day => |days| days,
        _ => return None,
    })
}

/// Truncates timestamps to a unit of the time of day.
type Truncate = fn(&[i64]) -> Vec<i64>;

/// date_trunc to this field.
pub(in crate::expression::functions) fn trunc(field: DateField) -> Option<Picked> {
    // A loop for each unit: division by a constant is a multiplication.
    fn to_unit<const UNIT: i64>(values: &[i64]) -> Vec<i64> {
        map(values, |value: i64| value.wrapping_sub(value.rem_euclid(UNIT)))
    }
    let unit: Option<Truncate> = match field {
        DateField::Hour => Some(to_unit::<3_600_000_000>),
        DateField::Minute => Some(to_unit::<60_000_000>),
        DateField::Second => Some(to_unit::<1_000_000>),
        DateField::Milliseconds => Some(to_unit::<1_000>),
        DateField::Microseconds => Some(<[i64]>::to_vec),
        _ => None,
    };
    let first = first_day(field);
    if unit.is_none() && first.is_none() {
        return None;
    }
    let mut table = DayTable::<i64>::default();
    Some((
        Box::new(move |arguments: &[Value], rows: usize, valid: Option<&Bitmap>| {
            let argument = one(arguments)?;
            let values = timestamps(argument)?;
            let mut starts: Vec<i64> = match (unit, first) {
                (Some(unit), _) => unit(values),
                (None, Some(first)) => {
                    let (days, _) = days_of(argument)?;
                    table.map(&days, move |day| first(day).saturating_mul(DAY))
                }
                (None, None) => return Err(Error::Decline("date field")),
            };
            let mut outside = false;
            for (start, &value) in starts.iter_mut().zip(values) {
                if is_infinite_timestamp(value) {
                    *start = value;
                } else {
                    outside |= !is_timestamp(*start);
                }
            }
            let fails = |row: usize| {
                starts.get(row).is_some_and(|&start| !is_infinite_timestamp(start) && !is_timestamp(start))
            };
            if outside && any_fails(rows, valid, fails) {
                return Err(Error::Sql(SqlError::TimestampOutOfRange));
            }
            Ok(Values::Int64(starts).into())
        }),
        8,
    ))
}
