//! A memo of row numbers, addressed directly: for keys whose columns have few values or a small range.
//!
//! Each column turns its values into small codes: integers by their distance from the least one, dictionary codes and texts by the order in which they were first
//! met. The codes of a row, side by side, are a place in an array of row numbers. What is not there yet is asked of the `RowSet` behind and remembered; so the memo may be thrown away at any time, and is when a
//! column needs more bits. Code 0 is NULL. Invariant: a place stands for one combination of values only.

use std::sync::Arc;

use vector::{Bitmap, ByteView, LogicalType, NumericInts, Values, Vector};

use super::flat;
use super::hash;
use super::row_set::{ABSENT, RowSet};
use crate::Result;

/// Distinct texts of one column up to which coding them pays.
const TEXTS: usize = 1 << 14;
/// Places of the memo of short texts in front of their codes.
const VIEWS: usize = 1 << 10;

/// Rows after which a memo that knows less than half of what it is asked is given up.
const WARM: usize = 100_000;

/// The memo.
#[derive(Debug)]
pub struct Front {
    columns: Vec<Coder>,
    /// One more than the number; 0 where it is not known.
    memo: Vec<u32>,
    most_bits: u32,
    codes: Vec<u32>,
    /// Rows asked for, and those that were not known.
    asked: usize,
    unknown: usize,
}

#[derive(Debug)]
struct Coder {
    bits: u32,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Bool,
    /// Code = value - base + 1. `scale` is that of decimals; None before the first value.
    Int {
        base: i64,
        scale: Option<u16>,
    },
    Text(Box<Texts>),
}

#[derive(Debug)]
struct Texts {
    values: RowSet,
    /// Codes of the entries of the dictionary that was met last.
    dictionary: Option<u64>,
    entries: Vec<u32>,
    views: Vec<(ByteView, u32)>,
    numbers: Vec<u32>,
    missed: Vec<u32>,
}

impl Front {
    /// A memo for rows of these types, None where one of them cannot be coded.
    pub fn new(types: &[LogicalType], bytes: usize) -> Option<Self> {
        let coders = types.iter().map(|logical| {
            let kind = match logical {
                LogicalType::Bool => Kind::Bool,
                LogicalType::Int16
                | LogicalType::Int32
                | LogicalType::Int64
                | LogicalType::Date
                | LogicalType::Timestamp
                | LogicalType::Numeric => Kind::Int { base: 0, scale: None },
                LogicalType::Text | LogicalType::Bytes => Kind::Text(Box::new(Texts {
                    values: RowSet::new(&[*logical]),
                    dictionary: None,
                    entries: Vec::new(),
                    views: Vec::new(),
                    numbers: Vec::new(),
                    missed: Vec::new(),
                })),
                _ => return None,
            };
            Some(Coder { bits: if matches!(kind, Kind::Bool) { 2 } else { 0 }, kind })
        });
        let columns = coders.collect::<Option<Vec<_>>>()?;
        let most_bits = (bytes / 4).checked_ilog2()?.min(24);
        (!columns.is_empty()).then_some(Self {
            columns,
            memo: Vec::new(),
            most_bits,
            codes: Vec::new(),
            asked: 0,
            unknown: 0,
        })
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        let texts = self.columns.iter().map(|column| match &column.kind {
            Kind::Text(texts) => texts.values.bytes(),
            _ => 0,
        });
        self.memo.capacity() * 4 + texts.sum::<usize>()
    }

    /// The numbers that are known; rows for which none is are in `missed`. False: the memo is of no use for these values.
    pub fn recall(
        &mut self,
        columns: &[Arc<Vector>],
        rows: usize,
        numbers: &mut Vec<u32>,
        missed: &mut Vec<u32>,
    ) -> Result<bool> {
        if self.asked > WARM && self.unknown * 2 > self.asked {
            return Ok(false);
        }
        self.asked += rows;
        self.codes.clear();
        self.codes.resize(rows, 0);
        let mut bits = 0;
        let mut changed = false;
        for (coder, column) in self.columns.iter_mut().zip(columns) {
            let before = coder.bits;
            match coder.code(column, &mut self.codes, bits, self.most_bits - bits)? {
                None => return Ok(false),
                Some(moved) => changed |= moved || coder.bits != before,
            }
            bits += coder.bits;
        }
        if changed || self.memo.is_empty() {
            self.memo.clear();
            self.memo.resize(1 << bits, 0);
        }
        missed.clear();
        numbers.clear();
        let (memo, mask) = (self.memo.as_slice(), self.memo.len() - 1);
        numbers.extend(self.codes.iter().map(|&code| memo[code as usize & mask].wrapping_sub(1)));
        if numbers.contains(&ABSENT) {
            missed.extend((0u32..).zip(numbers.iter()).filter(|(_, n)| **n == ABSENT).map(|(row, _)| row));
        }
        self.unknown += missed.len();
        Ok(true)
    }

    /// Remembers what was found for the rows that were missed.
    pub fn remember(&mut self, missed: &[u32], found: &[u32], numbers: &mut [u32]) {
        for (&row, &number) in missed.iter().zip(found) {
            numbers[row as usize] = number;
            if number != ABSENT {
                self.memo[self.codes[row as usize] as usize] = number + 1;
            }
        }
    }
}

impl Coder {
    /// Adds the code of each row, shifted; true where the codes of values changed, None where they need more than `room` bits.
    fn code(
        &mut self,
        column: &Arc<Vector>,
        codes: &mut [u32],
        shift: u32,
        room: u32,
    ) -> Result<Option<bool>> {
        match &mut self.kind {
            Kind::Bool => {
                if room < 2 {
                    return Ok(None);
                }
                let column = flat(column);
                let Values::Bool(bits) = &column.values else { return Ok(None) };
                add(codes, shift, column.validity.as_ref(), bits.iter().map(|bit| 1 + u32::from(bit)));
                Ok(Some(false))
            }
            Kind::Int { base, scale } => {
                let column = flat(column);
                let valid = column.validity.as_ref();
                Ok(match &column.values {
                    Values::Int16(v) => ints(v, valid, base, scale, 0, &mut self.bits, codes, shift, room),
                    Values::Int32(v) => ints(v, valid, base, scale, 0, &mut self.bits, codes, shift, room),
                    Values::Int64(v) => ints(v, valid, base, scale, 0, &mut self.bits, codes, shift, room),
                    Values::Numeric(numeric) if numeric.side.is_empty() => {
                        let own = numeric.scale;
                        match &numeric.ints {
                            NumericInts::Int32(v) => {
                                ints(v, valid, base, scale, own, &mut self.bits, codes, shift, room)
                            }
                            NumericInts::Int64(v) => {
                                ints(v, valid, base, scale, own, &mut self.bits, codes, shift, room)
                            }
                            NumericInts::Int128(_) => None,
                        }
                    }
                    _ => None,
                })
            }
            Kind::Text(texts) => {
                let done = texts.code(column, codes, shift)?;
                let most = texts.values.len() + 1;
                if !done || most > TEXTS {
                    return Ok(None);
                }
                self.bits = self.bits.max(most.next_power_of_two().ilog2());
                Ok((self.bits <= room).then_some(false))
            }
        }
    }
}

/// Adds a code for each row that is not NULL.
fn add(codes: &mut [u32], shift: u32, valid: Option<&Bitmap>, values: impl Iterator<Item = u32>) {
    match valid {
        None => codes.iter_mut().zip(values).for_each(|(code, value)| *code |= value << shift),
        Some(valid) => {
            for (row, (code, value)) in codes.iter_mut().zip(values).enumerate() {
                if valid.get(row) {
                    *code |= value << shift;
                }
            }
        }
    }
}

#[allow(clippy::too_many_arguments)]
fn ints<T: Copy + Into<i64> + Ord>(
    values: &[T],
    valid: Option<&Bitmap>,
    base: &mut i64,
    scale: &mut Option<u16>,
    own: u16,
    bits: &mut u32,
    codes: &mut [u32],
    shift: u32,
    room: u32,
) -> Option<bool> {
    // Values of NULL rows count, too: they are mostly zeros or neighbours, and the answer stays right.
    let (Some(&least), Some(&greatest)) = (values.iter().min(), values.iter().max()) else {
        return Some(false);
    };
    let (least, greatest): (i64, i64) = (least.into(), greatest.into());
    let mut moved = false;
    match scale {
        None => {
            (*scale, *base) = (Some(own), least);
            moved = true;
        }
        Some(scale) if *scale != own => return None,
        Some(_) => {}
    }
    let fits = |base: i64, value: i64, bits: u32| {
        value >= base && value.checked_sub(base).is_some_and(|code| code < (1i64 << bits) - 1)
    };
    if !fits(*base, least, *bits) || !fits(*base, greatest, *bits) {
        let span_end = base.checked_add((1i64 << *bits) - 2)?;
        let low = least.min(*base);
        let high = greatest.max(if moved { low } else { span_end });
        let span = high.checked_sub(low)?.checked_add(2)?;
        let needed = 64 - (span as u64).leading_zeros();
        if needed > room {
            return None;
        }
        // Where values went below the base, the spare room goes there, too.
        *base = if low < *base && !moved { high.saturating_sub((1i64 << needed) - 2) } else { low };
        *bits = needed;
        moved = true;
    }
    let base = *base;
    add(codes, shift, valid, values.iter().map(|&value| (value.into() - base) as u32 + 1));
    Some(moved)
}

impl Texts {
    /// Adds the code of each row; false where there are too many texts.
    fn code(&mut self, column: &Arc<Vector>, codes: &mut [u32], shift: u32) -> Result<bool> {
        let valid = column.validity.as_ref();
        if let Values::Dictionary { codes: of_rows, dictionary } = &column.values {
            if dictionary.entries.len() > TEXTS {
                return Ok(false);
            }
            if self.dictionary != Some(dictionary.id) {
                let entries = Arc::new(dictionary.entries.clone());
                self.values.number(&[entries], dictionary.entries.len(), &mut self.entries)?;
                self.entries.iter_mut().for_each(|number| *number += 1);
                self.dictionary = Some(dictionary.id);
            }
            let entries = self.entries.as_slice();
            add(codes, shift, valid, of_rows.iter().map(|&code| entries[code as usize]));
            return Ok(true);
        }
        let column = flat(column);
        let Values::Bytes(texts) = &column.values else { return Ok(false) };
        if self.views.is_empty() {
            self.views.resize(VIEWS, (ByteView::default(), 0));
        }
        self.numbers.clear();
        self.missed.clear();
        for (row, view) in texts.views().iter().enumerate() {
            let place = hash::hash_view(*view) as usize % VIEWS;
            let (known, code) = self.views[place];
            let code = if known == *view && view.place().is_none() { code } else { 0 };
            if code == 0 && valid.is_none_or(|valid| valid.get(row)) {
                self.missed.push(row as u32);
            }
            self.numbers.push(code);
        }
        if !self.missed.is_empty() {
            // Where most texts are long or many differ, coding costs more than it saves.
            if self.missed.len() > VIEWS && self.missed.len() * 4 > texts.len() {
                return Ok(false);
            }
            let taken = Arc::new(column.take(&self.missed));
            let mut found = Vec::new();
            self.values.number(&[taken], self.missed.len(), &mut found)?;
            for (&row, &number) in self.missed.iter().zip(&found) {
                self.numbers[row as usize] = number + 1;
                let view = texts.views()[row as usize];
                if view.place().is_none() {
                    self.views[hash::hash_view(view) as usize % VIEWS] = (view, number + 1);
                }
            }
        }
        add(codes, shift, column.validity.as_ref(), self.numbers.iter().copied());
        Ok(true)
    }
}
