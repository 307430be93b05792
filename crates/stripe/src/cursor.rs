//! How a stripe's own bytes are read and written: checksums that seal each piece, and wide varints. It adds
//! to the one bounds-checked reader of `encodings::cursor`.

use encodings::cursor::Reader;
use vector::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

/// Length of a checksum in bytes.
pub const CHECKSUM_BYTES: usize = 8;

/// The checksum of every piece of a stripe: 64-bit XXH3, seed 0.
#[inline]
pub fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// Whether a checksum is the one that was stored. A build for fuzzing (`--cfg fuzzing`) takes any, or nothing
/// behind checksums would be reached.
pub const fn is_right(found: u64, stored: u64) -> bool {
    cfg!(fuzzing) || found == stored
}

/// Splits off and verifies the checksum at the end of a self-contained piece. `what` names the piece in the
/// error.
pub fn unseal<'a>(sealed: &'a [u8], what: &str) -> Result<&'a [u8]> {
    let Some((body, stored)) = sealed.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(Error::corrupt(format!("{what} of {} bytes is too short", sealed.len())));
    };
    if is_right(checksum(body), u64::from_le_bytes(*stored)) {
        Ok(body)
    } else {
        Err(Error::corrupt(format!("{what} does not match its checksum")))
    }
}

/// Appends the checksum of everything written so far.
pub fn seal(bytes: &mut Vec<u8>) {
    let sum = checksum(bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
}

/// What stripes store beyond the items of `encodings::cursor`: numbers of other widths, all varints.
pub trait ReadMore<'a> {
    /// An unsigned varint of up to 128 bits.
    fn varint128(&mut self) -> Result<u128>;
    /// A signed varint (zigzag) of up to 128 bits.
    fn signed(&mut self) -> Result<i128>;
    /// An unsigned varint that fits 32 bits.
    fn varint32(&mut self) -> Result<u32>;
    /// An unsigned varint that fits 16 bits.
    fn varint16(&mut self) -> Result<u16>;
    /// A length, then that many bytes.
    fn sized(&mut self) -> Result<&'a [u8]>;
    /// Fails unless everything was read.
    fn finish(&self, what: &str) -> Result<()>;
}

impl<'a> ReadMore<'a> for Reader<'a> {
    fn varint128(&mut self) -> Result<u128> {
        let mut value = 0u128;
        let mut shift = 0u32;
        loop {
            let byte = self.u8()?;
            let bits = u128::from(byte & 0x7f);
            if shift >= 128 || (bits << shift) >> shift != bits {
                return Err(Error::corrupt("varint of more than 128 bits"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    fn signed(&mut self) -> Result<i128> {
        let raw = self.varint128()?;
        Ok((raw >> 1).cast_signed() ^ -((raw & 1).cast_signed()))
    }

    fn varint32(&mut self) -> Result<u32> {
        u32::try_from(self.varint()?).map_err(|_| Error::corrupt("varint of more than 32 bits"))
    }

    fn varint16(&mut self) -> Result<u16> {
        u16::try_from(self.varint()?).map_err(|_| Error::corrupt("varint of more than 16 bits"))
    }

    fn sized(&mut self) -> Result<&'a [u8]> {
        Ok(self.child()?.rest())
    }

    fn finish(&self, what: &str) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            surplus => Err(Error::corrupt(format!("{surplus} surplus bytes after {what}"))),
        }
    }
}

/// The mirror image of `ReadMore`.
pub trait Put {
    /// Appends an unsigned varint.
    fn put_varint(&mut self, value: u128);
    /// Appends a signed varint (zigzag).
    fn put_signed(&mut self, value: i128);
    /// Appends a length, then the bytes.
    fn put_sized(&mut self, bytes: &[u8]);
}

impl Put for Vec<u8> {
    fn put_varint(&mut self, mut value: u128) {
        loop {
            let low = value.to_le_bytes()[0] & 0x7f;
            value >>= 7;
            if value == 0 {
                return self.push(low);
            }
            self.push(low | 0x80);
        }
    }

    fn put_signed(&mut self, value: i128) {
        self.put_varint(((value << 1) ^ (value >> 127)).cast_unsigned());
    }

    fn put_sized(&mut self, bytes: &[u8]) {
        self.put_varint(bytes.len() as u128);
        self.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn varints_round_trip_at_their_edges() {
        for value in [0, 1, 127, 128, 300, u128::from(u64::MAX), u128::MAX] {
            let mut bytes = Vec::new();
            bytes.put_varint(value);
            let mut cursor = Reader::new(&bytes);
            assert_eq!(cursor.varint128().unwrap(), value);
            cursor.finish("varint").unwrap();
        }
        for value in [0, -1, 1, i128::from(i64::MIN), i128::MIN, i128::MAX] {
            let mut bytes = Vec::new();
            bytes.put_signed(value);
            assert_eq!(Reader::new(&bytes).signed().unwrap(), value);
        }
    }

    #[test]
    fn varints_too_long_are_errors() {
        assert!(Reader::new(&[0x80; 40]).varint128().is_err());
        let mut past: Vec<u8> = vec![0xff; 18];
        past.push(0x04);
        assert!(Reader::new(&past).varint128().is_err());
        assert!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x7f]).varint32().is_err());
        assert!(Reader::new(&[0x80]).varint().is_err());
    }

    #[test]
    fn seals_notice_any_change() {
        let mut bytes = b"some bytes".to_vec();
        seal(&mut bytes);
        assert_eq!(unseal(&bytes, "piece").unwrap(), b"some bytes");
        for i in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[i] ^= 0x10;
            assert!(unseal(&bad, "piece").is_err());
        }
        assert!(unseal(&[1, 2], "piece").is_err());
    }
}
