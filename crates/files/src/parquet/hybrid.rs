//! The hybrid of runs and packed bits in which Parquet has levels and codes of a dictionary.
//!
//! Source: the Parquet format, "Run Length Encoding / Bit-Packing Hybrid" (encodings.md of
//! apache/parquet-format). A varint begins each part: a run of one value, or groups of eight values of so
//! many bits each, least bits first.

use bytes::Bytes;

use crate::{Error, Result};

/// Where a reader of such values is.
pub struct Hybrid {
    bytes: Bytes,
    at: usize,
    /// Bits of a value.
    width: u8,
    part: Part,
}

enum Part {
    Run {
        value: u32,
        left: usize,
    },
    /// Values from this one on, counted from the first byte of the groups.
    Packed {
        start: usize,
        next: usize,
        left: usize,
    },
}

impl Hybrid {
    /// Values of so many bits, at most 32.
    pub fn new(bytes: Bytes, width: u8) -> Result<Self> {
        match width {
            0..=32 => Ok(Self { bytes, at: 0, width, part: Part::Run { value: 0, left: 0 } }),
            _ => Err(Error::Malformed(format!("values of {width} bits"))),
        }
    }

    /// Appends the next values.
    pub fn read(&mut self, count: usize, out: &mut Vec<u32>) -> Result<()> {
        out.reserve(count);
        self.walk(count, |values| match values {
            Values::Run { value, count } => out.resize(out.len() + count, value),
            Values::Packed { bytes, first, count, width } => unpack(bytes, first, count, width, out),
        })
    }

    /// Passes over the next values, and says how many of them are this one.
    pub fn count(&mut self, count: usize, wanted: u32) -> Result<usize> {
        let mut found = 0;
        let mut unpacked = Vec::new();
        self.walk(count, |values| match values {
            Values::Run { value, count } => found += if value == wanted { count } else { 0 },
            Values::Packed { bytes, first, count, width } => {
                unpacked.clear();
                unpack(bytes, first, count, width, &mut unpacked);
                found += unpacked.iter().filter(|value| **value == wanted).count();
            }
        })?;
        Ok(found)
    }

    /// Whether the next values are all of a run of this one. Then they are passed over.
    pub fn is_run(&mut self, count: usize, wanted: u32) -> Result<bool> {
        if matches!(self.part, Part::Run { left: 0, .. }) && count > 0 {
            self.next_part()?;
        }
        match &mut self.part {
            Part::Run { value, left } if *value == wanted && *left >= count => {
                *left -= count;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Passes over the next values.
    pub fn skip(&mut self, count: usize) -> Result<()> {
        self.walk(count, |_| {})
    }

    fn walk(&mut self, mut count: usize, mut each: impl FnMut(Values<'_>)) -> Result<()> {
        while count > 0 {
            let taken = match &mut self.part {
                Part::Run { left: 0, .. } | Part::Packed { left: 0, .. } => {
                    self.next_part()?;
                    continue;
                }
                Part::Run { value, left } => {
                    let taken = count.min(*left);
                    *left -= taken;
                    each(Values::Run { value: *value, count: taken });
                    taken
                }
                Part::Packed { start, next, left } => {
                    let taken = count.min(*left);
                    let bytes = self.bytes.get(*start..).unwrap_or(&[]);
                    each(Values::Packed { bytes, first: *next, count: taken, width: self.width });
                    *next += taken;
                    *left -= taken;
                    taken
                }
            };
            count -= taken;
        }
        Ok(())
    }

    fn next_part(&mut self) -> Result<()> {
        let ended = || Error::Malformed("values end before their page".into());
        let header = self.varint().ok_or_else(ended)?;
        let count = usize::try_from(header >> 1).map_err(|_| ended())?;
        if header & 1 == 0 {
            let width = usize::from(self.width.div_ceil(8));
            let bytes = self.bytes.get(self.at..self.at + width).ok_or_else(ended)?;
            let value = bytes.iter().rev().fold(0u32, |value, byte| value << 8 | u32::from(*byte));
            self.at += width;
            self.part = Part::Run { value, left: count };
        } else {
            // The last group may be cut off behind the last value that counts.
            let rest = self.bytes.len().saturating_sub(self.at);
            let whole = count.checked_mul(usize::from(self.width)).ok_or_else(ended)?;
            let left = match whole <= rest {
                true => count.checked_mul(8).ok_or_else(ended)?,
                false => rest * 8 / usize::from(self.width.max(1)),
            };
            if left == 0 && count > 0 {
                return Err(ended());
            }
            self.part = Part::Packed { start: self.at, next: 0, left };
            self.at += whole.min(rest);
        }
        Ok(())
    }

    fn varint(&mut self) -> Option<u64> {
        let (value, length) = varint(self.bytes.get(self.at..)?)?;
        self.at += length;
        Some(value)
    }
}

/// A varint of at most 35 bits, and its length.
pub fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

enum Values<'a> {
    Run { value: u32, count: usize },
    Packed { bytes: &'a [u8], first: usize, count: usize, width: u8 },
}

/// Appends packed values. Those past the end of the bytes are zero.
fn unpack(bytes: &[u8], first: usize, count: usize, width: u8, out: &mut Vec<u32>) {
    let width = usize::from(width);
    let mask = (1u64 << width) - 1;
    let load = |at: usize| match bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => {
            let rest = bytes.get(at..).unwrap_or(&[]);
            rest.iter().take(8).rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
        }
    };
    // A word has several values, where they are narrow.
    let each = (57 / width.max(1)).clamp(1, 64);
    let mut next = first;
    let end = first + count;
    while next < end {
        let bit = next * width;
        let mut word = load(bit / 8) >> (bit % 8);
        let here = each.min(end - next);
        out.extend((0..here).map(|_| {
            let value = word & mask;
            word >>= width;
            // The mask leaves 32 bits at most.
            value as u32
        }));
        next += here;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One run after the other: values below 2^width, each so many times.
    fn encoded(parts: &[(bool, Vec<u32>)], width: u8) -> Vec<u8> {
        let mut out = Vec::new();
        let varint = |mut value: usize, out: &mut Vec<u8>| {
            while value >= 0x80 {
                out.push(value as u8 | 0x80);
                value >>= 7;
            }
            out.push(value as u8);
        };
        for (packed, values) in parts {
            if *packed {
                varint(values.len().div_ceil(8) << 1 | 1, &mut out);
                let mut bits = vec![0u8; values.len().div_ceil(8) * usize::from(width)];
                for (at, value) in values.iter().enumerate() {
                    for bit in 0..usize::from(width) {
                        let place = at * usize::from(width) + bit;
                        bits[place / 8] |= (((value >> bit) & 1) as u8) << (place % 8);
                    }
                }
                out.extend(bits);
            } else {
                varint(values.len() << 1, &mut out);
                out.extend(&values[0].to_le_bytes()[..usize::from(width.div_ceil(8))]);
            }
        }
        out
    }

    #[test]
    fn values_of_every_width_come_back() {
        for width in 0..=32u8 {
            let most = ((1u64 << width) - 1) as u32;
            let packed: Vec<u32> = (0..48u32).map(|at| at.wrapping_mul(0x9e37_79b9) & most).collect();
            let parts = [(true, packed.clone()), (false, vec![most; 100]), (true, packed[..8].to_vec())];
            let all: Vec<u32> = parts.iter().flat_map(|(_, values)| values.clone()).collect();
            let bytes = Bytes::from(encoded(&parts, width));
            for step in [1, 3, 7, 8, 64, 200] {
                let mut reader = Hybrid::new(bytes.clone(), width).unwrap();
                let (mut got, mut at) = (Vec::new(), 0);
                while at < all.len() {
                    let count = step.min(all.len() - at);
                    match at / step % 3 {
                        0 | 1 => reader.read(count, &mut got).unwrap(),
                        _ => {
                            reader.skip(count).unwrap();
                            got.extend(&all[at..at + count]);
                        }
                    }
                    at += count;
                }
                assert_eq!(got, all, "width {width}, steps of {step}");
                // The last group ends with its bytes.
                assert!(width == 0 || reader.skip(1).is_err());
            }
            let mut reader = Hybrid::new(bytes, width).unwrap();
            let wanted = all.iter().filter(|value| **value == most).count();
            assert_eq!(reader.count(all.len(), most).unwrap(), wanted);
        }
        assert!(Hybrid::new(Bytes::new(), 33).is_err());
    }

    #[test]
    fn what_is_cut_off_is_an_error() {
        assert!(Hybrid::new(Bytes::new(), 3).unwrap().skip(1).is_err());
        assert!(Hybrid::new(vec![2u8].into(), 3).unwrap().skip(1).is_err());
        // Four of eight values are there.
        let mut reader = Hybrid::new(vec![3u8, 0x21, 0x43].into(), 4).unwrap();
        let mut got = Vec::new();
        reader.read(4, &mut got).unwrap();
        assert_eq!(got, [1, 2, 3, 4]);
        assert!(reader.skip(1).is_err());
        assert!(Hybrid::new(vec![0xff; 9].into(), 4).unwrap().skip(1).is_err());
    }
}
