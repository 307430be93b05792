//! The validity node: which rows of a chunk are NULL.
//!
//! The bytes begin with the kind:
//! - 0: no row is NULL
//! - 1: every row is NULL
//! - 2: a bitmap follows (64-bit words, 1 = not NULL)
//! - 3: runs follow: validity of the first run (0 or 1), number of runs (varint), length of each run except
//!   the last (varints)
//!
//! The smaller of 2 and 3 is written.

use vector::{Bitmap, Error, Result};

use crate::cursor::{Reader, Writer};

const NONE_NULL: u8 = 0;
const ALL_NULL: u8 = 1;
const BITMAP: u8 = 2;
const RUNS: u8 = 3;

/// Validity of a chunk's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Validity {
    /// No row is NULL.
    AllValid,
    /// Every row is NULL, and there is no values node.
    AllNull,
    /// One bit a row, 1 = not NULL.
    Some(Bitmap),
}

/// Writes the validity of a chunk. Returns what a reader will see.
pub fn write(validity: Option<&Bitmap>, rows: usize, out: &mut Writer) -> Validity {
    let ones = validity.map_or(rows, Bitmap::count_ones);
    let Some(bits) = validity.filter(|_| ones < rows) else {
        out.u8(NONE_NULL);
        return Validity::AllValid;
    };
    if ones == 0 {
        out.u8(ALL_NULL);
        return Validity::AllNull;
    }
    let mut runs = Writer::new();
    let limit = bits.words().len() * 8;
    let fits = write_runs(bits, limit, &mut runs);
    if fits {
        out.u8(RUNS);
        out.bytes(runs.as_slice());
    } else {
        out.u8(BITMAP);
        bits.words().iter().for_each(|&word| out.u64(word));
    }
    Validity::Some(bits.clone())
}

/// Writes runs. False as soon as they take `limit` bytes.
fn write_runs(bits: &Bitmap, limit: usize, out: &mut Writer) -> bool {
    let mut lengths = Writer::new();
    let (mut count, mut length) = (1usize, 0usize);
    let first = bits.get(0);
    let mut current = first;
    for bit in bits.iter() {
        if bit != current {
            lengths.count(length);
            (count, length, current) = (count + 1, 0, bit);
            if lengths.len() >= limit {
                return false;
            }
        }
        length += 1;
    }
    out.u8(u8::from(first));
    out.count(count);
    out.bytes(lengths.as_slice());
    out.len() < limit
}

/// Reads the validity of a chunk of `rows` rows.
pub fn read(reader: &mut Reader<'_>, rows: usize) -> Result<Validity> {
    match reader.u8()? {
        NONE_NULL => Ok(Validity::AllValid),
        ALL_NULL => Ok(Validity::AllNull),
        BITMAP => {
            let bytes = reader.take(rows.div_ceil(64) * 8)?;
            let (words, _) = bytes.as_chunks::<8>();
            let words = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
            Ok(Validity::Some(Bitmap::from_words(words, rows)))
        }
        RUNS => read_runs(reader, rows).map(Validity::Some),
        kind => Err(Error::corrupt(format!("validity kind {kind}"))),
    }
}

fn read_runs(reader: &mut Reader<'_>, rows: usize) -> Result<Bitmap> {
    let mut current = match reader.u8()? {
        0 => false,
        1 => true,
        bit => return Err(Error::corrupt(format!("validity of the first run is {bit}"))),
    };
    let count = reader.count(rows, "validity runs")?;
    let mut words = vec![0u64; rows.div_ceil(64)];
    let mut at = 0;
    for run in 0..count {
        let length = if run + 1 == count { rows - at } else { reader.count(rows - at, "validity run")? };
        if current {
            fill(&mut words, at, at + length);
        }
        at += length;
        current = !current;
    }
    if at != rows {
        return Err(Error::corrupt(format!("validity of {at} rows instead of {rows}")));
    }
    Ok(Bitmap::from_words(words, rows))
}

/// Sets bits `start..end`.
pub(crate) fn fill(words: &mut [u64], start: usize, end: usize) {
    if start >= end {
        return;
    }
    let (first, last) = (start / 64, (end - 1) / 64);
    let (head, tail) = (u64::MAX << (start % 64), u64::MAX >> (63 - (end - 1) % 64));
    let Some(span) = words.get_mut(first..=last) else { return };
    match span {
        [only] => *only |= head & tail,
        [start, middle @ .., end] => {
            *start |= head;
            *end |= tail;
            middle.fill(u64::MAX);
        }
        [] => {}
    }
}
