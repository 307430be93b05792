//! Block codecs where there is no server: pglz is read, and not written.

use encodings::BlockCodecs;
use vector::Result;

/// Reads what any host has written.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileCodecs;

impl BlockCodecs for FileCodecs {
    fn pglz_compress(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn pglz_decompress(&self, bytes: &[u8], raw_len: usize) -> Result<Vec<u8>> {
        server_bytes::pglz::expand(bytes, raw_len)
    }
}
