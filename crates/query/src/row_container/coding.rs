//! Small codes for the values of a row: where keys have few values or a small range, a row becomes one
//! integer.
//!
//! Integers and decimals of one scale are coded by their distance from the least one, dictionary codes and
//! texts by the order in which they were first met. The codes of a row stand side by side. Code 0 is NULL.
//! Invariant: a code stands for one combination of values only, until a column needs more bits; the codes of
//! all rows change then.

use std::sync::Arc;

use vector::{Bitmap, ByteView, LogicalType, NumericInts, Values, Vector};

use super::flat;
use super::row_set::RowSet;
use crate::{Result, hash};

/// Distinct texts of one column up to which coding them pays.
const TEXTS: usize = 1 << 14;
/// Places of the memo of short texts in front of their codes.
const VIEWS: usize = 1 << 10;

/// Bits of a code at most; one less than what integers have, so that sums of them do not overflow.
const MOST_BITS: u32 = 62;

/// Codes for the columns of a row.
#[derive(Debug)]
pub struct Coding {
    columns: Vec<Coder>,
    bits: u32,
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

impl Coding {
    /// Codes for rows of these types, None where one of them cannot be coded.
    pub fn new(types: &[LogicalType]) -> Option<Self> {
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
        (!columns.is_empty()).then_some(Self { columns, bits: 0 })
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        let texts = self.columns.iter().map(|column| match &column.kind {
            Kind::Text(texts) => texts.values.bytes(),
            _ => 0,
        });
        texts.sum()
    }

    /// Bits of a row's code.
    pub const fn bits(&self) -> u32 {
        self.bits
    }

    /// The code of each row; true where rows that came before have other codes now, None where these rows
    /// cannot be coded.
    pub fn encode(
        &mut self,
        columns: &[Arc<Vector>],
        rows: usize,
        codes: &mut Vec<u64>,
    ) -> Result<Option<bool>> {
        codes.clear();
        codes.resize(rows, 0);
        let mut bits = 0;
        let mut changed = false;
        for (coder, column) in self.columns.iter_mut().zip(columns) {
            let before = coder.bits;
            match coder.code(column, codes, bits, MOST_BITS - bits)? {
                None => return Ok(None),
                Some(moved) => changed |= moved || coder.bits != before,
            }
            bits += coder.bits;
            // A column may have more bits than are left for it, from when those before it had fewer.
            if bits > MOST_BITS {
                return Ok(None);
            }
        }
        self.bits = bits;
        Ok(Some(changed))
    }
}

impl Coder {
    /// Adds the code of each row, shifted; true where the codes of values changed, None where they need more
    /// than `room` bits.
    fn code(
        &mut self,
        column: &Arc<Vector>,
        codes: &mut [u64],
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
                add(codes, shift, column.validity.as_ref(), bits.iter().map(|bit| 1 + u64::from(bit)));
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
fn add(codes: &mut [u64], shift: u32, valid: Option<&Bitmap>, values: impl Iterator<Item = u64>) {
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
    codes: &mut [u64],
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
    add(codes, shift, valid, values.iter().map(|&value| (value.into() - base) as u64 + 1));
    Some(moved)
}

impl Texts {
    /// Adds the code of each row; false where there are too many texts.
    fn code(&mut self, column: &Arc<Vector>, codes: &mut [u64], shift: u32) -> Result<bool> {
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
            add(codes, shift, valid, of_rows.iter().map(|&code| entries[code as usize].into()));
            return Ok(true);
        }
        let column = flat(column);
        // Where runs are NULL is known only now.
        let valid = column.validity.as_ref();
        let Values::Bytes(texts) = &column.values else { return Ok(false) };
        if self.views.is_empty() {
            self.views.resize(VIEWS, (ByteView::default(), 0));
        }
        self.numbers.clear();
        let (mut missed, mut found) = (0, Vec::new());
        // Some rows at a time, so that what the first of them miss is there for the others.
        for rows in texts.views().chunks(VIEWS / 4) {
            let first = self.numbers.len();
            self.missed.clear();
            for (row, view) in (first..).zip(rows) {
                let (known, code) = self.views[hash::hash_view(*view) as usize % VIEWS];
                let code = if known == *view && view.place().is_none() { code } else { 0 };
                if code == 0 && valid.is_none_or(|valid| valid.get(row)) {
                    self.missed.push(row as u32);
                }
                self.numbers.push(code);
            }
            if self.missed.is_empty() {
                continue;
            }
            missed += self.missed.len();
            // Where most texts are long or many differ, coding costs more than it saves.
            if missed > VIEWS && missed * 4 > texts.len() {
                return Ok(false);
            }
            let taken = Arc::new(column.take(&self.missed));
            self.values.number(&[taken], self.missed.len(), &mut found)?;
            for (&row, &number) in self.missed.iter().zip(&found) {
                self.numbers[row as usize] = number + 1;
                let view = texts.views()[row as usize];
                if view.place().is_none() {
                    self.views[hash::hash_view(view) as usize % VIEWS] = (view, number + 1);
                }
            }
        }
        add(codes, shift, valid, self.numbers.iter().map(|&number| number.into()));
        Ok(true)
    }
}
