//! `sum` and `avg` of `engine.uint8`: the sum in 128 bits, which no number of rows exceeds, as `numeric`.
//!
//! The state lives in the aggregate's memory. Workers send it as 24 bytes: the count and the sum, the highest
//! byte first.

use pgrx::pg_sys::{self, Datum, FunctionCallInfo, Oid};

use super::call::Numeric;
use crate::convert::varlena;
use crate::host::error;
use crate::host::fmgr;

crate::sql_function!(pg_finfo_uint8_sum_add);
crate::sql_function!(pg_finfo_uint8_sum_remove);
crate::sql_function!(pg_finfo_uint8_sum_combine);
crate::sql_function!(pg_finfo_uint8_sum_serialize);
crate::sql_function!(pg_finfo_uint8_sum_deserialize);
crate::sql_function!(pg_finfo_uint8_sum);
crate::sql_function!(pg_finfo_uint8_avg);
crate::sql_function!(pg_finfo_uint8_accum);
crate::sql_function!(pg_finfo_uint8_accum_inv);

/// What was added up. The sum is two words, because the server's memory is not aligned for one of 128 bits.
#[derive(Clone, Copy, Default)]
struct State {
    count: u64,
    sum: [u64; 2],
}

impl State {
    const fn sum(self) -> u128 {
        (self.sum[0] as u128) << 64 | self.sum[1] as u128
    }

    const fn set(&mut self, sum: u128) {
        self.sum = [(sum >> 64) as u64, sum as u64];
    }
}

/// The memory of the aggregate that calls.
unsafe fn memory(call: FunctionCallInfo) -> pg_sys::MemoryContext {
    let mut memory = std::ptr::null_mut();
    // SAFETY: the server's call frame.
    if unsafe { pg_sys::AggCheckCallContext(call, &raw mut memory) } == 0 {
        error::internal("aggregate function called in non-aggregate context");
    }
    memory
}

/// The state that is the first argument. It is made where it is NULL.
unsafe fn state<'a>(call: FunctionCallInfo) -> &'a mut State {
    // SAFETY: the server's call frame; a state is of this kind, and lives in the aggregate's memory.
    unsafe {
        let memory = memory(call);
        match fmgr::argument(call, 0) {
            Some(state) => &mut *state.cast_mut_ptr::<State>(),
            None => {
                let place = pg_sys::MemoryContextAlloc(memory, size_of::<State>()).cast::<State>();
                place.write(State::default());
                &mut *place
            }
        }
    }
}

/// Changes the state by the second argument, unless that is NULL.
unsafe fn changed(call: FunctionCallInfo, change: impl FnOnce(&mut State, Datum)) -> Datum {
    // SAFETY: the server's call frame, whose first argument is a state.
    unsafe {
        let state = state(call);
        if let Some(by) = fmgr::argument(call, 1) {
            change(state, by);
        }
        Datum::from(std::ptr::from_mut(state))
    }
}

/// `uint8_sum_add(internal, engine.uint8)`.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn uint8_sum_add(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame, as the SQL declares it.
    unsafe {
        changed(call, |state, value| {
            state.count += 1;
            state.set(state.sum() + value.value() as u128);
        })
    }
}

/// `uint8_sum_remove(internal, engine.uint8)`: a row leaves the frame of a window.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn uint8_sum_remove(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame, as the SQL declares it.
    unsafe {
        changed(call, |state, value| {
            state.count -= 1;
            state.set(state.sum() - value.value() as u128);
        })
    }
}

/// `uint8_sum_combine(internal, internal)`.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn uint8_sum_combine(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame; both are states.
    unsafe {
        changed(call, |state, other| {
            let other = *other.cast_mut_ptr::<State>();
            state.count += other.count;
            state.set(state.sum() + other.sum());
        })
    }
}

/// `uint8_sum_serialize(internal)`.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn uint8_sum_serialize(call: FunctionCallInfo) -> Datum {
    // SAFETY: a strict function of a state.
    let state = unsafe {
        memory(call);
        *super::call::argument(call, 0).cast_mut_ptr::<State>()
    };
    varlena::allocate([state.count, state.sum[0], state.sum[1]].map(u64::to_be_bytes).as_flattened())
}

/// `uint8_sum_deserialize(bytea, internal)`.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn uint8_sum_deserialize(call: FunctionCallInfo) -> Datum {
    // SAFETY: a strict function of a bytea; the server keeps its result as long as it needs it.
    unsafe {
        memory(call);
        let bytes = varlena::bytes_of(super::call::argument(call, 0));
        let words: Vec<u64> =
            bytes.as_chunks().0.iter().map(|&word: &[u8; 8]| u64::from_be_bytes(word)).collect();
        let [count, high, low] = words[..] else { error::internal("a state of another length") };
        let place = pg_sys::palloc(size_of::<State>()).cast::<State>();
        place.write(State { count, sum: [high, low] });
        Datum::from(place)
    }
}

/// A numeric of a count or a sum.
fn number(value: u128) -> Numeric {
    match i128::try_from(value) {
        Ok(value) => Numeric::from(value),
        Err(_) => super::out_of_range(),
    }
}

/// `uint8_sum(internal)`: NULL if there was no value.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn uint8_sum(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame.
    unsafe {
        match *state(call) {
            State { count: 0, .. } => fmgr::return_null(call),
            state => number(state.sum()).0,
        }
    }
}

/// `uint8_avg(internal)`: with as many digits as the average of a bigint.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn uint8_avg(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server's call frame, and its division of two numerics.
    unsafe {
        match *state(call) {
            State { count: 0, .. } => fmgr::return_null(call),
            state => {
                let (sum, count) = (number(state.sum()), number(state.count.into()));
                pg_sys::OidFunctionCall2Coll(Oid::from(pg_sys::F_NUMERIC_DIV), Oid::INVALID, sum.0, count.0)
            }
        }
    }
}

/// Has one of the server's functions over states of numeric see the value as a numeric.
unsafe fn as_numeric(call: FunctionCallInfo, function: unsafe fn(FunctionCallInfo) -> Datum) -> Datum {
    // SAFETY: the server's call frame with two arguments. The server looks at the value again afterwards, for
    // further grouping sets and for DISTINCT.
    unsafe {
        let value = (*call).args.as_slice(2)[1].value;
        if !(*call).args.as_slice(2)[1].isnull {
            (*call).args.as_mut_slice(2)[1].value = Numeric::from(i128::from(value.value() as u64)).0;
        }
        let state = function(call);
        (*call).args.as_mut_slice(2)[1].value = value;
        state
    }
}

/// `uint8_accum(internal, engine.uint8)`: for variances, in the server's state for numeric.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn uint8_accum(call: FunctionCallInfo) -> Datum {
    // SAFETY: as the server calls it.
    unsafe { as_numeric(call, pg_sys::numeric_accum) }
}

/// `uint8_accum_inv(internal, engine.uint8)`: a row leaves the frame of a window.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn uint8_accum_inv(call: FunctionCallInfo) -> Datum {
    // SAFETY: as the server calls it.
    unsafe { as_numeric(call, pg_sys::numeric_accum_inv) }
}
