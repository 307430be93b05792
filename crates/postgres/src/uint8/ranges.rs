//! The canonical form of ranges of `engine.uint8`: the lower bound belongs to it, the upper one does not.

use pgrx::pg_sys::{self, Datum, FunctionCallInfo, RangeBound};

use crate::compat;
use crate::host::error::PgSqlErrorCode;
use crate::host::fmgr;

crate::sql_function!(pg_finfo_uint8_range_canonical);

/// The bound one further up. None if there is no number there.
fn next(bound: RangeBound) -> Option<RangeBound> {
    let value = (bound.val.value() as u64).checked_add(1)?;
    Some(RangeBound { val: Datum::from(value), inclusive: !bound.inclusive, ..bound })
}

/// `uint8_range_canonical(engine.uint8range)`.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn uint8_range_canonical(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; the argument is a range of the type, and the bounds are ours.
    unsafe {
        let range = pg_sys::pg_detoast_datum(super::call::argument(call, 0).cast_mut_ptr());
        let range: *const pg_sys::RangeType = range.cast();
        let cache = pg_sys::range_get_typcache(call, (*range).rangetypid);
        let (mut lower, mut upper, mut is_empty) = (RangeBound::default(), RangeBound::default(), false);
        pg_sys::range_deserialize(cache, range, &raw mut lower, &raw mut upper, &raw mut is_empty);
        if is_empty {
            return Datum::from(range.cast_mut());
        }
        let moved = |bound: RangeBound, moves: bool| match moves && !bound.infinite {
            true => next(bound),
            false => Some(bound),
        };
        let (Some(mut lower), Some(mut upper)) =
            (moved(lower, !lower.inclusive), moved(upper, upper.inclusive))
        else {
            let code = PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE;
            if !compat::note_error(call, code, c"uint8 out of range") {
                super::out_of_range()
            }
            return fmgr::return_null(call);
        };
        Datum::from(compat::range_of(call, cache, &mut lower, &mut upper))
    }
}
