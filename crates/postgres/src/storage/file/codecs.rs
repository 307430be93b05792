//! The block codec that only the server has: pglz. Compressing calls the server, so only the main thread may
//! do it. Any thread may expand.

use encodings::BlockCodecs;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use server_bytes::pglz;
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
    }
}

/// The longest input that is given to the server's pglz. Its own offsets are ints.
const LIMIT: usize = 1 << 30;

/// The codecs of a PostgreSQL backend.
pub struct ServerCodecs;

impl BlockCodecs for ServerCodecs {
    fn pglz_compress(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        if bytes.is_empty() || bytes.len() > LIMIT {
            return None;
        }
        let length = i32::try_from(bytes.len()).ok()?;
        // The server's bound for the output is the input plus four bytes.
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
        if raw_len > LIMIT {
            return Err(Error::corrupt("pglz block is damaged or too long"));
        }
        pglz::expand(bytes, raw_len)
    }
}
