//! Small codes for the values of a row: where keys have few values or a small range, a row becomes one
//! integer.
//!
//! Integers and decimals of one scale are coded by their distance from the least one, dictionary codes and
//! texts by the order in which they were first met. The codes of a row stand side by side. Code 0 is NULL.
//! Invariant: a code stands for one combination of values only, until a column needs more bits. Then the
//! codes of all rows change.

use std::sync::Arc;

use vector::{Bitmap, ByteView, LogicalType, NumericInts, Values, Vector};

use super::flat;
use super::int_codes::{IntCodes, add_codes};
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
pub struct KeyCodes {
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
    Int(Ints),
    Text(Box<Texts>),
}

#[derive(Debug, Default)]
struct Ints {
    codes: IntCodes,
    /// That of decimals, 0 of integers; None before the first value.
    scale: Option<u16>,
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

impl KeyCodes {
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
                | LogicalType::UInt64
                | LogicalType::Numeric => Kind::Int(Ints::default()),
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
                add_codes(codes, shift, column.validity.as_ref(), bits.iter().map(|bit| 1 + u64::from(bit)));
                Ok(Some(false))
            }
            Kind::Int(ints) => {
                let column = flat(column);
                let valid = column.validity.as_ref();
                let moved = match &column.values {
                    Values::Int16(v) => ints.code(v, 0, valid, codes, shift, room),
                    Values::Int32(v) => ints.code(v, 0, valid, codes, shift, room),
                    Values::Int64(v) => ints.code(v, 0, valid, codes, shift, room),
                    Values::Numeric(numeric) if numeric.side.is_empty() => match &numeric.ints {
                        NumericInts::Int32(v) => ints.code(v, numeric.scale, valid, codes, shift, room),
                        NumericInts::Int64(v) => ints.code(v, numeric.scale, valid, codes, shift, room),
                        NumericInts::Int128(_) => None,
                    },
                    _ => None,
                };
                self.bits = ints.codes.bits();
                Ok(moved)
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

impl Ints {
    /// Adds the code of each row, as `Coder::code` does.
    fn code<T: Copy + Into<i64> + Ord>(
        &mut self,
        values: &[T],
        scale: u16,
        valid: Option<&Bitmap>,
        codes: &mut [u64],
        shift: u32,
        room: u32,
    ) -> Option<bool> {
        // Values of NULL rows count, too: they are mostly zeros or neighbours, and the answer stays right.
        let (Some(&least), Some(&greatest)) = (values.iter().min(), values.iter().max()) else {
            return Some(false);
        };
        if *self.scale.get_or_insert(scale) != scale {
            return None;
        }
        let moved = self.codes.cover(least.into(), greatest.into(), room)?;
        self.codes.add(values, valid, shift, codes);
        Some(moved)
    }
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
            add_codes(codes, shift, valid, of_rows.iter().map(|&code| entries[code as usize].into()));
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
        // Some rows at a time, so that texts missed by the first rows are known for later ones.
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
        add_codes(codes, shift, valid, self.numbers.iter().map(|&number| number.into()));
        Ok(true)
    }
}
