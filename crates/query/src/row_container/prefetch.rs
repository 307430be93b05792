//! Asking for memory before it is needed.
//!
//! Called by code that looks up keys in large tables: it asks for the places of some rows, then looks the
//! rows up. So a processor waits for many places at once. It does so even where it would guess a branch on
//! the result wrong and begin again.
#![allow(unsafe_code)]

/// Rows whose places are asked for at once.
pub const ROWS: usize = 64;
/// Bytes that a table may have without it: what stays in the caches near the processor.
pub const NEAR: usize = 256 << 10;

/// Brings what is at a place, if it is one, nearer.
#[inline(always)]
pub fn prefetch<T>(from: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(place) = from.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint about a valid address; it reads nothing that the program sees. SSE is part of
        // x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, at);
}
