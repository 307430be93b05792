//! PostgreSQL 16 alone.

/// A time that passed, as the server counts it.
pub fn instr_time(passed: std::time::Duration) -> pgrx::pg_sys::instr_time {
    pgrx::pg_sys::instr_time { ticks: i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX) }
}
