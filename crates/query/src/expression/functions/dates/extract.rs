//! EXTRACT and date_part: one number of a date or timestamp.

use vector::{Bitmap, DisplayScales, LogicalType, NumericInts, NumericValues, Values};

use super::{DAY, DayTable, days_of, is_infinite_date, timestamps};
use crate::expression::DateField;
use crate::expression::functions::lanes::one;
use crate::expression::functions::{Output, Picked, Value};
use crate::kernels::arithmetic::map;
use crate::{Error, Result};
use vector::calendar::{Day, day_of_week, from_days, iso_week, to_days};

/// Days from 1970-01-01 to 2000-01-01.
const UNIX_DAYS: i64 = 10_957;

/// A field that the day alone tells; None for the others.
fn of_day(field: DateField) -> Option<fn(i64) -> i32> {
    /// Units of this many years, counted from 1 both ways.
    const fn counted(year: i64, years: i64) -> i64 {
        if year > 0 { (year + years - 1) / years } else { -((years - year) / years) }
    }
    /// There is no year 0.
    const fn shown(year: i64) -> i64 {
        if year > 0 { year } else { year - 1 }
    }
    Some(match field {
        DateField::Millennium => |days| counted(from_days(days).year, 1000) as i32,
        DateField::Century => |days| counted(from_days(days).year, 100) as i32,
        DateField::Decade => |days| from_days(days).year.div_euclid(10) as i32,
        DateField::Year => |days| shown(from_days(days).year) as i32,
        DateField::IsoYear => |days| shown(iso_week(days).0) as i32,
        DateField::Quarter => |days| ((from_days(days).month + 2) / 3) as i32,
        DateField::Month => |days| from_days(days).month as i32,
        DateField::Week => |days| iso_week(days).1 as i32,
        DateField::Day => |days| from_days(days).day as i32,
        DateField::DayOfWeek => |days| day_of_week(days) as i32,
        DateField::IsoDayOfWeek => |days| (day_of_week(days - 1) + 1) as i32,
        DateField::DayOfYear => {
            |days| (days - to_days(Day { year: from_days(days).year, month: 1, day: 1 }) + 1) as i32
        }
        _ => return None,
    })
}

/// Computes a field of the time of day.
type OfTime = fn(&[i64]) -> Vec<i32>;

/// A field of the time of day, and the digits it has after the point.
fn of_time(field: DateField) -> Option<(OfTime, u16)> {
    /// Whole units since midnight, or since the hour or minute that has `COUNT` of them.
    fn units<const UNIT: i64, const COUNT: i64>(values: &[i64]) -> Vec<i32> {
        map(values, |value: i64| (value.rem_euclid(DAY) / UNIT % COUNT) as i32)
    }
    Some(match field {
        DateField::Hour => (units::<3_600_000_000, 24>, 0),
        DateField::Minute => (units::<60_000_000, 60>, 0),
        DateField::Second => (units::<1, 60_000_000>, 6),
        DateField::Milliseconds => (units::<1, 60_000_000>, 3),
        DateField::Microseconds => (units::<1, 60_000_000>, 0),
        _ => return None,
    })
}

/// NULL where the date is infinite; an infinite result is declined.
fn validity(
    field: DateField,
    days: &[i32],
    infinite: bool,
    valid: Option<&Bitmap>,
) -> Result<Option<Bitmap>> {
    if !infinite {
        return Ok(None);
    }
    let finite: Bitmap = days.iter().map(|&day| !is_infinite_date(day)).collect();
    let counts = |row: usize| valid.is_none_or(|valid| valid.get(row)) && !finite.get(row);
    if field.is_monotonic() && (0..days.len()).any(counts) {
        return Err(Error::Decline("numeric that is no scaled integer"));
    }
    Ok(Some(finite))
}

/// EXTRACT.
pub(in crate::expression::functions) fn extract(field: DateField, from: LogicalType) -> Option<Picked> {
    let numeric = |ints: NumericInts, scale: u16, validity| Output {
        values: Values::Numeric(NumericValues {
            ints,
            scale,
            display: DisplayScales::Constant(scale),
            side: Vec::new(),
        }),
        validity,
        bounds: None,
    };
    if !matches!(from, LogicalType::Date | LogicalType::Timestamp) {
        return None;
    }
    if let Some(f) = of_day(field) {
        let mut table = DayTable::<i32>::default();
        return Some((
            Box::new(move |arguments: &[Value], _rows: usize, valid: Option<&Bitmap>| {
                let (days, infinite) = days_of(one(arguments)?)?;
                let validity = validity(field, &days, infinite, valid)?;
                Ok(numeric(NumericInts::Int32(table.map(&days, f)), 0, validity))
            }),
            8,
        ));
    }
    if from == LogicalType::Date {
        return (field == DateField::Epoch).then(|| -> Picked {
            (
                Box::new(move |arguments: &[Value], _rows: usize, valid: Option<&Bitmap>| {
                    let (days, infinite) = days_of(one(arguments)?)?;
                    let validity = validity(field, &days, infinite, valid)?;
                    let seconds = days.iter().map(|&day| (i64::from(day) + UNIX_DAYS) * (DAY / 1_000_000));
                    Ok(numeric(NumericInts::Int64(seconds.collect()), 0, validity))
                }),
                2,
            )
        });
    }
    Some((
        Box::new(move |arguments: &[Value], _rows: usize, valid: Option<&Bitmap>| {
            let values = timestamps(one(arguments)?)?;
            let infinite = values.iter().any(|&value| super::is_infinite_timestamp(value));
            let days = if infinite { days_of(one(arguments)?)?.0 } else { Vec::new() };
            let validity = validity(field, &days, infinite, valid)?;
            Ok(match of_time(field) {
                Some((units, scale)) => numeric(NumericInts::Int32(units(values)), scale, validity),
                None => {
                    // Past 64 bits the server divides, with four digits after the point.
                    let micros = |&value: &i64| match value.checked_add(UNIX_DAYS * DAY) {
                        Some(micros) if micros < i64::MAX => i128::from(micros),
                        _ => (i128::from(value) + i128::from(UNIX_DAYS * DAY) + 50) / 100 * 100,
                    };
                    let ints: Vec<i128> = values.iter().map(micros).collect();
                    numeric(NumericInts::Int128(ints).narrowed(), 6, validity)
                }
            })
        }),
        6,
    ))
}

/// date_part.
pub(in crate::expression::functions) fn part(field: DateField, from: LogicalType) -> Option<Picked> {
    if from != LogicalType::Timestamp {
        return None;
    }
    let mut table = DayTable::<i32>::default();
    Some((
        Box::new(move |arguments: &[Value], _rows: usize, valid: Option<&Bitmap>| {
            let argument = one(arguments)?;
            let values = timestamps(argument)?;
            let (days, infinite) = days_of(argument)?;
            let validity = match field.is_monotonic() {
                true => None,
                false => validity(field, &days, infinite, valid)?,
            };
            // As the server computes them, to the last bit.
            let mut floats: Vec<f64> = match (of_day(field), of_time(field)) {
                (Some(f), _) => table.map(&days, f).into_iter().map(f64::from).collect(),
                (None, Some((units, scale))) => {
                    let micros = units(values).into_iter();
                    match scale {
                        6 => micros
                            .map(|v| f64::from(v / 1_000_000) + f64::from(v % 1_000_000) / 1_000_000.0)
                            .collect(),
                        3 => micros
                            .map(|v| f64::from(v / 1_000_000) * 1000.0 + f64::from(v % 1_000_000) / 1000.0)
                            .collect(),
                        _ => micros.map(f64::from).collect(),
                    }
                }
                (None, None) => {
                    let shift = UNIX_DAYS * DAY;
                    let seconds = |&value: &i64| match value.checked_add(shift) {
                        Some(micros) => micros as f64 / 1_000_000.0,
                        None => (value as f64 + shift as f64) / 1_000_000.0,
                    };
                    values.iter().map(seconds).collect()
                }
            };
            if infinite && field.is_monotonic() {
                for (float, &day) in floats.iter_mut().zip(&days) {
                    match day {
                        i32::MIN => *float = f64::NEG_INFINITY,
                        i32::MAX => *float = f64::INFINITY,
                        _ => {}
                    }
                }
            }
            Ok(Output { values: Values::Float64(floats), validity, bounds: None })
        }),
        8,
    ))
}
