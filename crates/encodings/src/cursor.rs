//! The only way stored bytes are read and written: a bounds-checked reader and its mirror image, the writer.
//!
//! Everything is little-endian. `varint` is LEB128 (seven bits a byte, low bits first, at most ten bytes).
//! `zigzag` maps small negative numbers to small varints.
//!
//! Invariant: a reader never looks outside its slice, and a short or overlong item is `Error::Corrupt`. So no
//! caller has to index stored bytes.

use vector::{Error, Result};

/// Reads items off the front of a byte slice.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader over these bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes not read yet.
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// All bytes not read yet. Leaves the reader empty.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// The next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let Some((head, tail)) = self.rest.split_at_checked(len) else {
            return Err(Error::corrupt(format!("{len} bytes wanted, {} left", self.rest.len())));
        };
        self.rest = tail;
        Ok(head)
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((head, tail)) = self.rest.split_first_chunk::<N>() else {
            return Err(Error::corrupt(format!("{N} bytes wanted, {} left", self.rest.len())));
        };
        self.rest = tail;
        Ok(*head)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Two bytes.
    #[inline]
    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// An unsigned LEB128 number.
    #[inline]
    pub fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Error::corrupt("varint longer than 64 bits"))
    }

    /// A signed number stored as zigzag varint.
    #[inline]
    pub fn zigzag(&mut self) -> Result<i64> {
        self.varint().map(unzigzag)
    }

    /// A varint that must fit `usize` and not exceed `limit`. `what` names it in the error.
    #[inline]
    pub fn count(&mut self, limit: usize, what: &str) -> Result<usize> {
        let value = self.varint()?;
        match usize::try_from(value) {
            Ok(value) if value <= limit => Ok(value),
            _ => Err(Error::corrupt(format!("{what}: {value} is over the limit of {limit}"))),
        }
    }

    /// A child that was written with its length before it.
    #[inline]
    pub fn child(&mut self) -> Result<Reader<'a>> {
        let len = self.count(self.rest.len(), "child length")?;
        self.take(len).map(Reader::new)
    }
}

/// Signed to unsigned so that small magnitudes stay small.
#[inline]
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// The inverse of `zigzag`.
#[inline]
pub const fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ (value & 1).cast_signed().wrapping_neg()
}

/// Appends items to a byte vector.
#[derive(Debug, Default, Clone)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty writer.
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Bytes written so far.
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True when nothing was written.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What was written.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// What was written, taken over.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Drops everything past `len`. An encoder takes an attempt back with this.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// Raw bytes.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The underlying vector, for kernels that append in bulk.
    pub const fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Two bytes.
    #[inline]
    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    /// Four bytes.
    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    /// Eight bytes.
    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// An unsigned LEB128 number.
    #[inline]
    pub fn varint(&mut self, mut value: u64) {
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            if value == 0 {
                self.bytes.push(low & 0x7f);
                return;
            }
            self.bytes.push(low | 0x80);
        }
    }

    /// A count or length as varint.
    #[inline]
    pub fn count(&mut self, value: usize) {
        self.varint(value as u64);
    }

    /// A signed number as zigzag varint.
    #[inline]
    pub fn zigzag(&mut self, value: i64) {
        self.varint(zigzag(value));
    }

    /// A child with its length before it, so that a reader can skip it.
    pub fn child(&mut self, child: &[u8]) {
        self.count(child.len());
        self.bytes(child);
    }
}
