//! The block codec that only the server has: pglz.

use encodings::BlockCodecs;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use vector::{Error, Result};

mod c {
    use std::ffi::{c_char, c_int, c_void};
    unsafe extern "C-unwind" {
        pub static PGLZ_strategy_always: *const c_void;
        pub fn pglz_compress(
            source: *const c_char,
            len: c_int,
            dest: *mut c_char,
            strategy: *const c_void,
        ) -> c_int;
        pub fn pglz_decompress(
            source: *const c_char,
            len: c_int,
            dest: *mut c_char,
            raw_len: c_int,
            check_complete: bool,
        ) -> c_int;
    }
}

/// Longest input the server's pglz takes here; its own offsets are ints.
const LIMIT: usize = 1 << 30;

/// The codecs of a PostgreSQL backend.
pub struct ServerCodecs;

impl BlockCodecs for ServerCodecs {
    fn pglz_compress(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        if bytes.is_empty() || bytes.len() > LIMIT {
            return None;
        }
        let length = i32::try_from(bytes.len()).ok()?;
        // The server's bound: input plus four bytes.
        let mut out: Vec<u8> = Vec::new();
        out.try_reserve_exact(bytes.len() + 4).ok()?;
        // SAFETY: dest has the room that the function may use; it calls nothing that raises an ERROR.
        unsafe {
            let written = pg_guard_ffi_boundary(|| {
                c::pglz_compress(
                    bytes.as_ptr().cast(),
                    length,
                    out.as_mut_ptr().cast(),
                    c::PGLZ_strategy_always,
                )
            });
            let written = usize::try_from(written).ok()?;
            if written > out.capacity() {
                return None;
            }
            out.set_len(written);
        }
        (out.len() < bytes.len()).then_some(out)
    }

    fn pglz_decompress(&self, bytes: &[u8], raw_len: usize) -> Result<Vec<u8>> {
        let lengths = i32::try_from(bytes.len()).ok().zip(i32::try_from(raw_len).ok());
        let Some((length, raw)) = lengths.filter(|_| raw_len <= LIMIT) else {
            return Err(Error::corrupt("pglz block is too long"));
        };
        let mut out: Vec<u8> = Vec::new();
        out.try_reserve_exact(raw_len).map_err(|_| Error::OutOfMemory { bytes: raw_len })?;
        // SAFETY: the function bounds-checks both sides and returns -1 for bad input.
        unsafe {
            let got = pg_guard_ffi_boundary(|| {
                c::pglz_decompress(bytes.as_ptr().cast(), length, out.as_mut_ptr().cast(), raw, true)
            });
            if got != raw {
                return Err(Error::corrupt("pglz block is damaged"));
            }
            out.set_len(raw_len);
        }
        Ok(out)
    }
}
