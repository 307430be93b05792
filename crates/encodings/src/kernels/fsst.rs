//! Expands FSST codes: each code is a symbol of one to eight bytes, and code 255 says that the next byte
//! stands for itself.
//!
//! Called by the fsst encoding, one string at a time. The idea (Boncz, Neumann, Leis, "FSST: Fast Random
//! Access String Compression", PVLDB 2020): always store eight bytes, and advance by the symbol's length.
//! Eight codes are expanded at a time as long as no escape is among them.
//!
//! Invariant: nothing is written outside the output's capacity, whatever the codes are. Lengths in the table
//! are at most 8.

/// The code that announces a byte that stands for itself.
pub const ESCAPE: u8 = 255;

/// Bytes stored for every code.
const SLOT: usize = 8;

/// Symbols by code, ready to be stored eight bytes at a time.
#[derive(Debug, Clone)]
pub struct SymbolTable {
    symbols: [u64; 256],
    lengths: [u8; 256],
    count: u8,
}

impl SymbolTable {
    /// A table of these symbols (code 0 first), each of one to eight bytes. `None` if there are more than
    /// 255, or if a length is wrong.
    pub fn new<'a>(symbols: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut table = Self { symbols: [0; 256], lengths: [0; 256], count: 0 };
        for symbol in symbols {
            if table.count == ESCAPE || symbol.is_empty() {
                return None;
            }
            let mut padded = [0; 8];
            padded.get_mut(..symbol.len())?.copy_from_slice(symbol);
            table.symbols[usize::from(table.count)] = u64::from_le_bytes(padded);
            table.lengths[usize::from(table.count)] = u8::try_from(symbol.len()).ok()?;
            table.count += 1;
        }
        Some(table)
    }
}

/// Appends the string that `codes` stand for to `out`, and never grows `out` past `limit`. It is fast if
/// `out` has space for eight bytes a code and eight more. False if the codes end inside an escape, name no
/// symbol, or go past the limit.
#[inline]
pub fn append(table: &SymbolTable, codes: &[u8], out: &mut Vec<u8>, limit: usize) -> bool {
    if out.capacity() - out.len() < codes.len() * SLOT + SLOT {
        return append_checked(table, codes, out, limit);
    }
    // SAFETY: the length is within the capacity.
    let mut write = unsafe { out.as_mut_ptr().add(out.len()) };
    let mut unknown = false;
    // Stores eight bytes and moves on by `length`, at most eight, for every code once.
    let mut put = |bytes: u64, length: u8| {
        // SAFETY: room for eight bytes a code and eight more was checked, and no code has moved on by more
        // than eight.
        unsafe {
            write.cast::<u64>().write_unaligned(bytes.to_le());
            write = write.add(usize::from(length));
        }
        unknown |= length == 0;
    };
    let symbol = |code: u8| (table.symbols[usize::from(code)], table.lengths[usize::from(code)]);
    let mut rest = codes;
    let whole = loop {
        if let Some((block, after)) = rest.split_first_chunk::<8>()
            && !has_escape(*block)
        {
            for &code in block {
                let (bytes, length) = symbol(code);
                put(bytes, length);
            }
            rest = after;
            continue;
        }
        match rest {
            [] => break true,
            [ESCAPE] => break false,
            [ESCAPE, literal, after @ ..] => {
                put(u64::from(*literal), 1);
                rest = after;
            }
            [code, after @ ..] => {
                let (bytes, length) = symbol(*code);
                put(bytes, length);
                rest = after;
            }
        }
    };
    // SAFETY: both point into the allocation, and all bytes up to `write` were written.
    unsafe {
        let end = write.offset_from(out.as_ptr());
        out.set_len(end.cast_unsigned());
    }
    whole && !unknown && out.len() <= limit
}

/// True if a byte is 255: its high bit is set, and adding one to its low seven bits carries into the high
/// bit.
#[inline(always)]
const fn has_escape(block: [u8; 8]) -> bool {
    let word = u64::from_le_bytes(block);
    word & 0x8080_8080_8080_8080 & ((word & 0x7f7f_7f7f_7f7f_7f7f) + 0x0101_0101_0101_0101) != 0
}

/// The place of a byte that stands for itself. No value begins there.
pub const NO_PLACE: u32 = u32::MAX;

/// Appends the strings of many values at once, and writes to `places` (one a code) where in `out` each code's
/// bytes begin. It does not look where values end, so only escapes are branches that can be mispredicted. It
/// returns false as `append` does.
pub fn append_run(
    table: &SymbolTable,
    codes: &[u8],
    out: &mut Vec<u8>,
    limit: usize,
    places: &mut [u32],
) -> bool {
    const BLOCK: usize = 8;
    if places.len() < codes.len() || out.len() > limit || u32::try_from(limit).is_err() {
        return false;
    }
    // A block that begins at or below the limit ends inside this room.
    out.reserve(limit - out.len() + (BLOCK + 1) * SLOT);
    let base = out.as_mut_ptr();
    let mut at = out.len();
    let mut least = u8::MAX;
    let put = |at: usize, bytes: u64| {
        // SAFETY: callers make sure that `at` is at most a block of eight slots past `limit`, and room for
        // nine was reserved.
        unsafe { base.add(at).cast::<u64>().write_unaligned(bytes.to_le()) };
    };
    let mut next = 0;
    // Each turn begins at or below the limit and moves on by at most eight slots.
    while at <= limit && next < codes.len() {
        let rest = codes.get(next..).unwrap_or(&[]);
        let slots = places.get_mut(next..).unwrap_or(&mut []);
        if let (Some((block, _)), Some(slots)) =
            (rest.split_first_chunk::<BLOCK>(), slots.first_chunk_mut::<BLOCK>())
            && !has_escape(*block)
        {
            for (&code, slot) in block.iter().zip(slots) {
                let length = table.lengths[usize::from(code)];
                put(at, table.symbols[usize::from(code)]);
                *slot = at as u32;
                at += usize::from(length);
                least = least.min(length);
            }
            next += BLOCK;
            continue;
        }
        match (rest, slots) {
            ([ESCAPE, literal, ..], [slot, inner, ..]) => {
                put(at, u64::from(*literal));
                (*slot, *inner) = (at as u32, NO_PLACE);
                at += 1;
                next += 2;
            }
            ([code, ..], [slot, ..]) if *code != ESCAPE => {
                let length = table.lengths[usize::from(*code)];
                put(at, table.symbols[usize::from(*code)]);
                *slot = at as u32;
                at += usize::from(length);
                least = least.min(length);
                next += 1;
            }
            _ => return false,
        }
    }
    if at > limit || least == 0 {
        return false;
    }
    // SAFETY: `at` is within the limit and so within the reserved room, and every byte before it was written.
    unsafe { out.set_len(at) };
    true
}

fn append_checked(table: &SymbolTable, codes: &[u8], out: &mut Vec<u8>, limit: usize) -> bool {
    let mut codes = codes.iter();
    while let Some(&code) = codes.next() {
        if code == ESCAPE {
            let Some(&literal) = codes.next() else { return false };
            out.push(literal);
        } else {
            let bytes = table.symbols[usize::from(code)].to_le_bytes();
            let symbol = bytes.get(..usize::from(table.lengths[usize::from(code)])).unwrap_or(&[]);
            if symbol.is_empty() {
                return false;
            }
            out.extend_from_slice(symbol);
        }
        if out.len() > limit {
            return false;
        }
    }
    out.len() <= limit
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn table() -> SymbolTable {
        SymbolTable::new([b"a".as_slice(), b"the ", b"12345678", b"xy"]).unwrap()
    }

    #[test]
    fn fast_and_checked_paths_agree_on_any_codes() {
        let table = table();
        let mut seed = 7u64;
        for round in 0..2000 {
            let len = round % 40;
            let codes: Vec<u8> = (0..len)
                .map(|_| {
                    seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    match (seed >> 33) % 12 {
                        0 => ESCAPE,
                        1 if round % 5 == 0 => 9,
                        n => (n % 4) as u8,
                    }
                })
                .collect();
            let mut slow = b"head".to_vec();
            let slow_ok = append_checked(&table, &codes, &mut slow, 1 << 20);
            let mut fast = b"head".to_vec();
            fast.reserve(codes.len() * 8 + 8);
            let fast_ok = append(&table, &codes, &mut fast, 1 << 20);
            assert_eq!(slow_ok, fast_ok, "{codes:?}");
            if slow_ok {
                assert_eq!(slow, fast);
            }
        }
    }

    #[test]
    fn runs_agree_with_single_values() {
        let table = table();
        let mut seed = 3u64;
        for round in 0..3000 {
            let mut codes: Vec<u8> = Vec::new();
            let (mut starts, mut wanted, mut ends) = (vec![0], Vec::new(), vec![0]);
            let mut good = true;
            for _ in 0..round % 9 {
                let from = codes.len();
                for _ in 0..round % 23 {
                    seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    match (seed >> 33) % 30 {
                        0 => codes.extend([ESCAPE, (seed >> 40) as u8]),
                        1 if round % 7 == 0 => codes.push(9),
                        n => codes.push((n % 4) as u8),
                    }
                }
                good &= append_checked(&table, &codes[from..], &mut wanted, 1 << 20);
                starts.push(codes.len());
                ends.push(wanted.len());
            }
            let mut places = vec![7; codes.len()];
            let mut out = Vec::new();
            assert_eq!(append_run(&table, &codes, &mut out, 1 << 20, &mut places), good, "{codes:?}");
            if good {
                assert_eq!(out, wanted);
                let place = |&start: &usize| places.get(start).map_or(out.len(), |&place| place as usize);
                assert_eq!(starts.iter().map(place).collect::<Vec<_>>(), ends);
                let mut limited = Vec::new();
                assert!(append_run(&table, &codes, &mut limited, wanted.len(), &mut places));
                if !wanted.is_empty() {
                    limited.clear();
                    assert!(!append_run(&table, &codes, &mut limited, wanted.len() - 1, &mut places));
                }
            }
        }
        assert!(
            !append_run(&table, &[0, ESCAPE], &mut Vec::new(), 100, &mut [0; 2]),
            "ends inside an escape"
        );
        assert!(!append_run(&table, &[0, 0], &mut Vec::new(), 100, &mut [0; 1]), "a place for each code");
        let mut places = [0; 2];
        assert!(append_run(&table, &[ESCAPE, 0], &mut Vec::new(), 100, &mut places));
        assert_eq!(places, [0, NO_PLACE]);
    }

    #[test]
    fn limits_and_broken_codes_are_noticed() {
        let table = table();
        let mut out = Vec::with_capacity(1000);
        assert!(!append(&table, &[2; 20], &mut out, 159));
        out.clear();
        assert!(append(&table, &[2; 20], &mut out, 160));
        out.clear();
        assert!(!append(&table, &[0, 0, 0, 0, 0, 0, 0, ESCAPE], &mut out, 100), "ends inside an escape");
        out.clear();
        assert!(!append(&table, &[4], &mut out, 100), "no such symbol");
    }

    #[test]
    fn tables_of_wrong_shape_are_refused() {
        assert!(SymbolTable::new([b"".as_slice()]).is_none());
        assert!(SymbolTable::new([b"123456789".as_slice()]).is_none());
        assert!(SymbolTable::new(std::iter::repeat_n(b"x".as_slice(), 256)).is_none());
        assert!(SymbolTable::new(std::iter::repeat_n(b"x".as_slice(), 255)).is_some());
    }
}
