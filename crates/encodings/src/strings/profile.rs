//! What a column of byte strings looks like: how many values it repeats, and how long they are.
//!
//! Called by `estimate` of the string encodings. So the costly ones (training a symbol table, running a block
//! codec) are only tried on text that is not better in a dictionary. Distinct values are estimated from rows
//! picked all over the column. A sample of contiguous runs would see no repetition in a column that counts
//! through 5,000 values.

use vector::Values;

use super::intern::hash;
use crate::encoding::Sample;

/// Rows looked at.
const PROBES: usize = 2048;

/// If values are long, at most this many bytes of sampled values are looked at, and of one value.
const LEAD_BYTES: usize = 1 << 20;
const LONG_VALUE: usize = 64 << 10;

/// When a value is only counted, this many bytes at either end tell it from others.
const END_BYTES: usize = 256;

/// Chunks with more bytes are left plain, because the other encodings would need several times their memory.
pub const MAX_CHUNK_BYTES: usize = 1 << 28;

/// The first rows of a sample, about a megabyte of them. A very long value is cut.
#[derive(Debug)]
pub struct Lead<'s> {
    /// The values.
    pub values: Vec<&'s [u8]>,
    /// Their bytes.
    pub bytes: usize,
    /// How many bytes of the column there are for each byte of these.
    pub factor: f64,
}

/// The lead of a sample of byte strings. `None` for other values, or if there is none.
pub fn lead<'s>(sample: &'s Sample<'_>) -> Option<Lead<'s>> {
    let (Values::Bytes(column), Values::Bytes(views)) = (&sample.column.values, &sample.rows.values) else {
        return None;
    };
    let (mut values, mut bytes, mut uncut) = (Vec::new(), 0, 0usize);
    for value in views.iter() {
        if bytes > LEAD_BYTES {
            break;
        }
        let lead = value.get(..value.len().min(LONG_VALUE)).unwrap_or(value);
        bytes += lead.len();
        uncut += value.len();
        values.push(lead);
    }
    if bytes == 0 {
        return None;
    }
    let rows = column.len() as f64 / values.len() as f64;
    Some(Lead { values, bytes, factor: rows * uncut as f64 / bytes as f64 })
}

/// A judgement of a column.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// Rows of the column.
    pub rows: usize,
    /// Distinct values expected in the column.
    pub distinct: f64,
    /// Share of the rows looked at whose value was seen once.
    pub unique: f64,
    /// Average length of a value in bytes.
    pub length: f64,
}

impl Profile {
    /// True if text compression is worth trying. (A few frequent values among many rare ones make the number
    /// of distinct values look small.)
    pub fn is_free_text(&self) -> bool {
        self.length >= 4.0 && (self.distinct * 4.0 > self.rows as f64 || self.unique > 0.5)
    }
}

/// The profile of a sampled column. `None` if it holds no byte strings of variable width, or no bytes at all.
pub fn of(sample: &Sample<'_>) -> Option<Profile> {
    let Values::Bytes(views) = &sample.column.values else { return None };
    let Values::Bytes(sampled) = &sample.rows.values else { return None };
    let length = sampled.total_bytes() as f64 / sampled.len().max(1) as f64;
    if sampled.total_bytes() == 0 {
        return None;
    }
    let (distinct, unique) = probe(views.len(), |row| views.get(row));
    Some(Profile { rows: views.len(), distinct, unique, length })
}

/// Expected number of distinct values among `rows` rows. `value` gives the value of a row.
pub fn distinct<'v>(rows: usize, value: impl Fn(usize) -> &'v [u8]) -> f64 {
    probe(rows, value).0
}

/// Expected number of distinct values, and the share of the rows looked at whose value was seen once.
fn probe<'v>(rows: usize, value: impl Fn(usize) -> &'v [u8]) -> (f64, f64) {
    let probes = rows.min(PROBES);
    let mut seen: Vec<u64> = (0..probes)
        .map(|probe| {
            // Looks at one row of each stretch. Its place is chosen so that no period of the column coincides
            // with it.
            let (start, end) = (probe * rows / probes, (probe + 1) * rows / probes);
            let spread = (probe as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
            let value = value(start + spread as usize % (end - start).max(1));
            match (value.first_chunk::<END_BYTES>(), value.last_chunk::<END_BYTES>()) {
                (Some(first), Some(last)) => hash(first) ^ hash(last).rotate_left(32) ^ value.len() as u64,
                _ => hash(value),
            }
        })
        .collect();
    seen.sort_unstable();
    let mut singles = 0usize;
    let mut found = 0usize;
    for same in seen.chunk_by(|a, b| a == b) {
        found += 1;
        singles += usize::from(same.len() == 1);
    }
    let unique = singles as f64 / probes.max(1) as f64;
    if probes == rows || singles == 0 {
        return (found as f64, unique);
    }
    // The number of values seen once tells how many were not seen (Haas, Stokes: the "Duj1" estimator).
    let (n, d, f1, all) = (probes as f64, found as f64, singles as f64, rows as f64);
    ((d / (1.0 - f1 / n + f1 / all)).min(all), unique)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use vector::ByteViews;

    fn guess(views: &ByteViews) -> f64 {
        distinct(views.len(), |row| views.get(row))
    }

    fn column(rows: usize, value: impl Fn(usize) -> String) -> ByteViews {
        let values: Vec<String> = (0..rows).map(value).collect();
        values.iter().map(|v| v.as_bytes()).collect()
    }

    #[test]
    fn repetition_is_seen_through_any_period() {
        for (distinct_values, low, high) in
            [(5usize, 4.0, 6.0), (1000, 800.0, 1300.0), (5000, 3000.0, 9000.0)]
        {
            let views = column(150_000, |row| format!("/page/{}", row % distinct_values));
            let guess = guess(&views);
            assert!(guess > low && guess < high, "{distinct_values}: {guess}");
        }
        let views = column(150_000, |row| format!("{row}"));
        assert!(guess(&views) > 100_000.0);
    }
}
