//! Distinct byte strings of a column, numbered in order of first appearance.
//!
//! Called by the string dictionary. It uses an open-addressing table of entry numbers with 32 bits of each
//! entry's hash. So a probe touches the bytes of an entry only if it is almost surely the right one. Numbers
//! follow first appearance, so a column that repeats its values in turn gets codes that count.
//!
//! It gives up as soon as the column has too many distinct values, so that a column of keys costs only a
//! fraction of a pass.

/// The share of distinct values is judged for the first time after this many rows, and then at every
/// doubling.
const FIRST_CHECK: usize = 16 << 10;

/// The limits at which to give up.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most entries.
    pub entries: usize,
    /// Most bytes of all entries together.
    pub bytes: usize,
    /// Largest share of distinct values among the rows seen, at each check.
    pub share: f64,
}

/// A column as codes and entries.
#[derive(Debug)]
pub struct Interned {
    /// A code for each row: a position in `first_rows`.
    pub codes: Vec<u32>,
    /// For each entry the row where it first appeared.
    pub first_rows: Vec<u32>,
    /// Bytes of all entries.
    pub bytes: usize,
}

/// Interns `rows` values. `value` gives the value of a row. `None` if a limit is reached.
pub fn intern<'v>(rows: usize, value: impl Fn(usize) -> &'v [u8], limits: &Limits) -> Option<Interned> {
    let get = value;
    let mut table = Table::with_bits(10);
    let mut interned = Interned { codes: Vec::with_capacity(rows), first_rows: Vec::new(), bytes: 0 };
    let mut next_check = FIRST_CHECK;
    let mut last: (&[u8], u32) = (&[], u32::MAX);
    for row in 0..rows {
        let value = get(row);
        if last.1 != u32::MAX && last.0 == value {
            interned.codes.push(last.1);
            continue;
        }
        if row >= next_check {
            next_check *= 2;
            if interned.first_rows.len() as f64 > row as f64 * limits.share {
                return None;
            }
        }
        let hash = hash(value);
        let same =
            |code: u32| interned.first_rows.get(code as usize).is_some_and(|&row| get(row as usize) == value);
        let code = match table.find(hash, same) {
            Ok(code) => code,
            Err(slot) => {
                let code = u32::try_from(interned.first_rows.len()).ok()?;
                interned.first_rows.push(u32::try_from(row).ok()?);
                interned.bytes += value.len();
                if interned.first_rows.len() > limits.entries || interned.bytes > limits.bytes {
                    return None;
                }
                table.insert(slot, hash, code);
                code
            }
        };
        last = (value, code);
        interned.codes.push(code);
    }
    (interned.first_rows.len() as f64 <= (rows as f64 * limits.share).max(1.0)).then_some(interned)
}

/// A hash of all bytes of the value that is good enough for tables (multiply and fold, as wyhash does).
#[inline]
pub fn hash(value: &[u8]) -> u64 {
    const K0: u64 = 0x9E37_79B9_7F4A_7C15;
    const K1: u64 = 0xD6E8_FEB8_6659_FD93;
    let mix = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        (product as u64) ^ ((product >> 64) as u64)
    };
    let first8 = |bytes: &[u8]| bytes.first_chunk::<8>().map_or(0, |b| u64::from_le_bytes(*b));
    let last8 = |bytes: &[u8]| bytes.last_chunk::<8>().map_or(0, |b| u64::from_le_bytes(*b));
    let (a, b) = match value.len() {
        8.. => {
            let mut state = K0 ^ value.len() as u64;
            let mut rest = value;
            while rest.len() > 16 {
                state = mix(first8(rest) ^ K1, first8(rest.get(8..).unwrap_or(&[])) ^ state);
                rest = rest.get(16..).unwrap_or(&[]);
            }
            // The last 16 bytes may overlap bytes that were mixed before.
            let tail = value.get(value.len().saturating_sub(16)..).unwrap_or(value);
            (first8(tail) ^ state, last8(value))
        }
        4.. => {
            let low = value.first_chunk::<4>().map_or(0, |b| u32::from_le_bytes(*b));
            let high = value.last_chunk::<4>().map_or(0, |b| u32::from_le_bytes(*b));
            (u64::from(low), u64::from(high))
        }
        _ => {
            let at = |place: usize| u64::from(value.get(place).copied().unwrap_or(0));
            (at(0) | at(1) << 8 | at(2) << 16, 0)
        }
    };
    mix(a ^ K1, b ^ K0 ^ (value.len() as u64) << 56)
}

/// Entry numbers by hash; never more than half full.
#[derive(Debug)]
struct Table {
    /// 32 bits of the hash, which also choose the slot, and the entry number + 1 (0 = free).
    slots: Vec<(u32, u32)>,
    mask: usize,
    used: usize,
}

/// The 32 bits of a hash that a table uses.
const fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl Table {
    fn with_bits(bits: u32) -> Self {
        let len = 1usize << bits;
        Self { slots: vec![(0, 0); len], mask: len - 1, used: 0 }
    }

    /// The entry with this hash for which `same` holds, or the free slot where it belongs.
    #[inline]
    fn find(&self, hash: u64, same: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let tag = tag(hash);
        let mut slot = tag as usize & self.mask;
        loop {
            match self.slots.get(slot) {
                Some(&(_, 0)) | None => return Err(slot),
                Some(&(found, entry)) if found == tag && same(entry - 1) => return Ok(entry - 1),
                Some(_) => slot = (slot + 1) & self.mask,
            }
        }
    }

    fn insert(&mut self, slot: usize, hash: u64, code: u32) {
        if let Some(place) = self.slots.get_mut(slot) {
            *place = (tag(hash), code + 1);
            self.used += 1;
        }
        if self.used * 2 > self.slots.len() {
            self.grow();
        }
    }

    fn grow(&mut self) {
        let len = self.slots.len() * 2;
        let old = std::mem::replace(&mut self.slots, vec![(0, 0); len]);
        self.mask = len - 1;
        for (tag, entry) in old.into_iter().filter(|&(_, entry)| entry != 0) {
            let mut slot = tag as usize & self.mask;
            while self.slots.get(slot).is_some_and(|&(_, taken)| taken != 0) {
                slot = (slot + 1) & self.mask;
            }
            if let Some(place) = self.slots.get_mut(slot) {
                *place = (tag, entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use vector::ByteViews;

    fn all(views: &ByteViews, limits: &Limits) -> Option<Interned> {
        intern(views.len(), |row| views.get(row), limits)
    }

    const ALL: Limits = Limits { entries: usize::MAX, bytes: usize::MAX, share: 1.0 };

    #[test]
    fn codes_lead_back_to_every_value() {
        let values: Vec<String> =
            (0..50_000).map(|i| format!("{}-{}", "x".repeat(i % 23), i * 7 % 9001)).collect();
        let views: ByteViews = values.iter().map(|v| v.as_bytes()).collect();
        let interned = all(&views, &ALL).unwrap();
        let distinct: std::collections::BTreeSet<&String> = values.iter().collect();
        assert_eq!(interned.first_rows.len(), distinct.len());
        for (row, &code) in interned.codes.iter().enumerate() {
            let first = interned.first_rows[code as usize] as usize;
            assert_eq!(values[first], values[row]);
            assert!(first <= row);
        }
        assert!(interned.first_rows.is_sorted());
        assert_eq!(interned.bytes, distinct.iter().map(|v| v.len()).sum::<usize>());
    }

    #[test]
    fn limits_end_the_attempt() {
        let values: Vec<String> = (0..40_000).map(|i| i.to_string()).collect();
        let views: ByteViews = values.iter().map(|v| v.as_bytes()).collect();
        assert!(all(&views, &Limits { entries: 39_999, ..ALL }).is_none());
        assert!(all(&views, &Limits { bytes: 10_000, ..ALL }).is_none());
        assert!(all(&views, &Limits { share: 0.5, ..ALL }).is_none());
        assert!(all(&views, &ALL).is_some());
    }

    #[test]
    fn hashes_see_every_byte() {
        for len in 0..70usize {
            let value: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let base = hash(&value);
            for place in 0..len {
                let mut changed = value.clone();
                changed[place] ^= 0x40;
                assert_ne!(hash(&changed), base, "{len} {place}");
            }
            let mut longer = value.clone();
            longer.push(0);
            assert_ne!(hash(&longer), base);
        }
    }
}
