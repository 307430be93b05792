//! Builds dictionaries of integers and floats, for few distinct values that are too far apart for packing.

use vector::{NumericInts, Result, Values, Vector};

use super::CodeEncoder;
use crate::cursor::Writer;
use crate::encoding::{ColumnEncoder, Encoding, Estimate, Sample};
use crate::integers;
use crate::options::{EncodeOptions, EncodingId};

/// The most entries that are worth a dictionary.
const MAX_ENTRIES: usize = 1 << 16;

/// How many rows an entry must have on average.
const MIN_ROWS_PER_ENTRY: usize = 4;

/// The encoding, for every type whose values have 64 bits at most.
pub(crate) struct NumberDictionary;

/// The bits of each value. They are equal exactly if the values are the same. `None` for types without such
/// bits.
fn keys(column: &Vector) -> Option<Vec<u64>> {
    let signed = |value: i64| value.cast_unsigned();
    Some(match &column.values {
        Values::Int16(values) => values.iter().map(|&v| signed(v.into())).collect(),
        Values::Int32(values) => values.iter().map(|&v| signed(v.into())).collect(),
        Values::Int64(values) => values.iter().map(|&v| signed(v)).collect(),
        Values::Float32(values) => values.iter().map(|&v| v.to_bits().into()).collect(),
        Values::Float64(values) => values.iter().map(|&v| v.to_bits()).collect(),
        Values::Numeric(numeric)
            if numeric.side.is_empty() && matches!(numeric.display, vector::DisplayScales::Constant(_)) =>
        {
            match &numeric.ints {
                NumericInts::Int32(values) => values.iter().map(|&v| signed(v.into())).collect(),
                NumericInts::Int64(values) => values.iter().map(|&v| signed(v)).collect(),
                NumericInts::Int128(_) => return None,
            }
        }
        _ => return None,
    })
}

/// Codes in the order of first appearance, and the row where each entry appears first. `None` for more than
/// `limit` entries.
fn number(keys: &[u64], limit: usize) -> Option<(Vec<u32>, Vec<u32>)> {
    const EMPTY: u32 = u32::MAX;
    let mut table: Vec<(u64, u32)> = vec![(0, EMPTY); 1024];
    let (mut codes, mut firsts) = (Vec::with_capacity(keys.len()), Vec::new());
    for (row, &key) in (0u32..).zip(keys) {
        let code = loop {
            let slots = table.len() - 1;
            let mut at = place(key, slots);
            let found = loop {
                match table.get_mut(at & slots) {
                    Some((held, code)) if *code != EMPTY => {
                        if *held == key {
                            break Some(*code);
                        }
                        at += 1;
                    }
                    Some(free) => {
                        if firsts.len() * 2 > slots {
                            break None;
                        }
                        if firsts.len() >= limit {
                            return None;
                        }
                        let code = u32::try_from(firsts.len()).ok()?;
                        *free = (key, code);
                        firsts.push(row);
                        break Some(code);
                    }
                    None => return None,
                }
            };
            if let Some(code) = found {
                break code;
            }
            table = grown(&table, EMPTY);
        };
        codes.push(code);
    }
    Some((codes, firsts))
}

#[allow(clippy::cast_possible_truncation)]
const fn place(key: u64, slots: usize) -> usize {
    let hash = (key ^ (key >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((hash >> 20) as usize) & slots
}

fn grown(table: &[(u64, u32)], empty: u32) -> Vec<(u64, u32)> {
    let mut larger = vec![(0, empty); table.len() * 4];
    let slots = larger.len() - 1;
    for &(key, code) in table.iter().filter(|(_, code)| *code != empty) {
        let mut at = place(key, slots);
        while let Some(slot) = larger.get_mut(at & slots) {
            if slot.1 == empty {
                *slot = (key, code);
                break;
            }
            at += 1;
        }
    }
    larger
}

impl Encoding for NumberDictionary {
    fn id(&self) -> EncodingId {
        EncodingId::Dictionary
    }

    fn estimate(&self, sample: &Sample<'_>, _: &EncodeOptions<'_>) -> Option<Estimate> {
        let keys = keys(&sample.rows)?;
        let (codes, firsts) = number(&keys, keys.len() / MIN_ROWS_PER_ENTRY)?;
        // The number of values seen once tells how many were not seen at all (Chao's estimator).
        let mut counts = vec![0u32; firsts.len()];
        for &code in &codes {
            if let Some(count) = counts.get_mut(code as usize) {
                *count += 1;
            }
        }
        let seen = |times| counts.iter().filter(|&&count| count == times).count() as f64;
        let (once, twice) = (seen(1), seen(2).max(1.0));
        let entries = (firsts.len() as f64 + once * once / (2.0 * twice)).min(sample.column.len() as f64);
        let codes: Vec<i64> = codes.into_iter().map(i64::from).collect();
        let mut out = Writer::new();
        integers::write_node(&codes, integers::CHILD_DEPTH, None, &mut out);
        let bytes = out.len() as f64 * sample.factor() + entries * 8.0;
        Some(Estimate { bytes, penalty: 1.1 })
    }

    fn begin<'c>(
        &self,
        column: &'c Vector,
        options: &EncodeOptions<'c>,
    ) -> Result<Option<Box<dyn ColumnEncoder + 'c>>> {
        let forced = options.force == Some(EncodingId::Dictionary);
        let limit = if forced { usize::MAX } else { MAX_ENTRIES.min(column.len() / MIN_ROWS_PER_ENTRY + 1) };
        let Some((codes, firsts)) = keys(column).and_then(|keys| number(&keys, limit)) else {
            return Ok(None);
        };
        let entries = Vector { validity: None, ..column.take(&firsts) };
        Ok(Some(Box::new(CodeEncoder { codes, entries, options: *options })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_follow_first_appearance() {
        let found = number(&[7, 7, u64::MAX, 0, 7, 0], 10);
        assert_eq!(found, Some((vec![0, 0, 1, 2, 0, 2], vec![0, 2, 3])));
        assert_eq!(number(&[1, 2, 3], 2), None, "one entry too many");
        let many: Vec<u64> = (0..10_000).map(|i| i << 20).collect();
        let (codes, firsts) = number(&many, usize::MAX).unwrap_or_default();
        assert!(codes.iter().copied().eq(0..10_000) && firsts == codes);
    }
}
