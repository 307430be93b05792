//! The backend's own pseudo-random numbers, for sampling.

use pgrx::pg_sys;

/// A number below `limit`, each as likely as the others. 0 if `limit` is 0.
pub fn below(limit: u64) -> u64 {
    if limit < 2 {
        return 0;
    }
    // SAFETY: the generator of this backend, which the server seeds when the backend starts.
    unsafe { pg_sys::pg_prng_uint64_range(&raw mut pg_sys::pg_global_prng_state, 0, limit - 1) }
}
