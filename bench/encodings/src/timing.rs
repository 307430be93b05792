//! CPU time of this thread, and the best of several passes: what other work on the machine disturbs least.

use rustix::time::{ClockId, clock_gettime};

/// CPU seconds this thread has used.
#[allow(clippy::cast_precision_loss)]
pub fn now() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Fewest CPU seconds of one call, over at least `passes` calls and about a quarter of a second.
pub fn best(passes: usize, mut call: impl FnMut()) -> f64 {
    let start = now();
    let mut best = f64::INFINITY;
    let mut count = 0;
    while count < passes || (now() - start < 0.25 && count < 1000) {
        let before = now();
        call();
        best = best.min(now() - before);
        count += 1;
    }
    best
}

/// Gigabytes a second.
#[allow(clippy::cast_precision_loss)]
pub fn gigabytes(bytes: usize, seconds: f64) -> f64 {
    bytes as f64 / seconds.max(1e-9) / 1e9
}
