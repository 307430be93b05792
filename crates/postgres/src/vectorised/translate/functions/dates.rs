//! Arithmetic and parts of dates and timestamps.
//!
//! Timestamps with time zone are left out: what a day or a month is depends on the session's time zone.

use pgrx::pg_sys;
use query::{DateField, Expression, Function};
use vector::LogicalType::{self, Date, FixedBytes, Float64, Int32, Numeric, Text, Timestamp};

use super::super::constants;
use super::super::expressions::{self, call};
use super::super::scope::Scope;
use super::super::{Context, decline};
use super::Known;
use crate::convert::varlena;
use crate::host::tree::List;
use crate::vectorised::translated::Reason;

/// The server's interval: microseconds, days and months.
const INTERVAL: LogicalType = FixedBytes(16);

/// The function of `query` for a function of the server over dates.
pub fn known(oid: u32) -> Option<Known> {
    use Function::{Add, Subtract, ToChar};
    use pg_sys as p;
    let (function, takes, gives): (_, &'static [LogicalType], _) = match oid {
        p::F_DATE_PLI => (Add, &[Date, Int32], Date),
        p::F_DATE_MII => (Subtract, &[Date, Int32], Date),
        p::F_DATE_MI => (Subtract, &[Date, Date], Int32),
        p::F_DATE_PL_INTERVAL => (Add, &[Date, INTERVAL], Timestamp),
        p::F_DATE_MI_INTERVAL => (Subtract, &[Date, INTERVAL], Timestamp),
        p::F_TIMESTAMP_PL_INTERVAL => (Add, &[Timestamp, INTERVAL], Timestamp),
        p::F_TIMESTAMP_MI_INTERVAL => (Subtract, &[Timestamp, INTERVAL], Timestamp),
        p::F_TIMESTAMP_MI => (Subtract, &[Timestamp, Timestamp], INTERVAL),
        p::F_TO_CHAR_TIMESTAMP_TEXT => (ToChar, &[Timestamp, Text], Text),
        _ => return None,
    };
    Some(Known { function, takes, gives })
}

/// EXTRACT, date_part and date_trunc, whose first argument names a field; None for other functions.
pub fn with_field(
    context: &mut Context<'_>,
    oid: u32,
    args: List<'_>,
    scope: Scope<'_>,
) -> Result<Option<Expression>, Reason> {
    use pg_sys as p;
    let (function, gives): (fn(DateField) -> Function, _) = match oid {
        p::F_EXTRACT_TEXT_DATE | p::F_EXTRACT_TEXT_TIMESTAMP => (Function::Extract, Numeric),
        p::F_DATE_PART_TEXT_TIMESTAMP => (Function::DatePart, Float64),
        p::F_DATE_TRUNC_TEXT_TIMESTAMP => (Function::DateTrunc, Timestamp),
        _ => return Ok(None),
    };
    let (Some(name), Some(value)) = (args.get(0), args.get(1)) else {
        return decline("part of nothing");
    };
    let field = match constants::value(context, name)? {
        // SAFETY: the first argument of these functions is a text.
        Some(name) => field(&unsafe { varlena::bytes_of(name) }.to_ascii_lowercase()),
        None => return decline("field that is not known"),
    };
    let Some(field) = field else { return decline("field of a date") };
    let truncates = oid == p::F_DATE_TRUNC_TEXT_TIMESTAMP;
    if truncates && !can_truncate(field) || oid == p::F_EXTRACT_TEXT_DATE && is_within_day(field) {
        return decline("field that this type does not have");
    }
    let value = expressions::expression(context, value, scope)?;
    Ok(Some(call(function(field), vec![value], gives)))
}

/// The field of this name; the server knows more spellings.
fn field(name: &[u8]) -> Option<DateField> {
    use DateField as F;
    Some(match name {
        b"millennium" => F::Millennium,
        b"century" => F::Century,
        b"decade" => F::Decade,
        b"year" => F::Year,
        b"isoyear" => F::IsoYear,
        b"quarter" => F::Quarter,
        b"month" => F::Month,
        b"week" => F::Week,
        b"day" => F::Day,
        b"dow" => F::DayOfWeek,
        b"isodow" => F::IsoDayOfWeek,
        b"doy" => F::DayOfYear,
        b"hour" => F::Hour,
        b"minute" => F::Minute,
        b"second" => F::Second,
        b"milliseconds" => F::Milliseconds,
        b"microseconds" => F::Microseconds,
        b"epoch" => F::Epoch,
        _ => return None,
    })
}

const fn can_truncate(field: DateField) -> bool {
    use DateField as F;
    !matches!(field, F::DayOfWeek | F::IsoDayOfWeek | F::DayOfYear | F::IsoYear | F::Epoch)
}

const fn is_within_day(field: DateField) -> bool {
    use DateField as F;
    matches!(field, F::Hour | F::Minute | F::Second | F::Milliseconds | F::Microseconds)
}
