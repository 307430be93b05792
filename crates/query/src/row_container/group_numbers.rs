//! Numbers for rows by value: what grouping and DISTINCT use.
//!
//! As long as rows can be coded as integers (`key_codes`), numbers are found by code. If there are few
//! possible codes compared with the rows, an array has a place for each code. Otherwise an open-addressing
//! table of integers has the codes. When the codes of all rows change, the array or table is made anew from
//! the values kept. Once a row cannot be coded, all rows are in a `RowSet`. Rows of one column that come as
//! codes of a dictionary are numbered by a memo of its entries. Invariant: numbers never change, and are
//! given in the order in which rows were first seen.

use std::sync::Arc;

use vector::{LogicalType, Values, Vector};

use super::int_index::IntIndex;
use super::key_codes::KeyCodes;
use super::prefetch::{self, prefetch};
use super::row_set::{ABSENT, RowSet};
use super::{ValueColumn, flat, table_of};
use crate::{BATCH_ROWS, Error, Result, interrupt};

/// Places that an array of numbers may always have.
const SMALL: u64 = 1 << 16;
/// Places that the array may have for each row seen, if that is more. A table of as many groups as rows would
/// take half as many bytes.
const SPARSE: u64 = 16;

/// Entries of a dictionary whose numbers are kept.
const MEMO: usize = 1 << 14;

/// Rows and their numbers.
#[derive(Debug)]
pub struct Numbering {
    types: Vec<LogicalType>,
    index: Index,
    /// Rows looked up so far.
    asked: u64,
    /// Bytes that an array of numbers may take.
    memory: usize,
    frozen: bool,
    fresh: Vec<u32>,
    memo: Memo,
    /// All rows of the last look-up were in the memo.
    known: bool,
}

/// Numbers of the entries of the dictionary that was met last, for rows of one column: one more than the
/// number, 0 where not known.
#[derive(Debug, Default)]
struct Memo {
    dictionary: Option<u64>,
    numbers: Vec<u32>,
}

impl Memo {
    /// Numbers rows by their codes; false where one of them is not known.
    fn number(&mut self, column: &Vector, numbers: &mut Vec<u32>) -> bool {
        let Values::Dictionary { codes, dictionary } = &column.values else { return false };
        if self.dictionary != Some(dictionary.id) || column.validity.is_some() {
            return false;
        }
        numbers.clear();
        numbers.extend(codes.iter().map(|&code| self.numbers[code as usize].wrapping_sub(1)));
        !numbers.contains(&ABSENT)
    }

    /// Keeps the numbers that rows got. Numbers never change, so the number kept for an entry stays right.
    fn learn(&mut self, column: &Vector, numbers: &[u32]) {
        let Values::Dictionary { codes, dictionary } = &column.values else { return };
        if column.validity.is_some() || dictionary.entries.len() > MEMO {
            return;
        }
        if self.dictionary != Some(dictionary.id) {
            self.dictionary = Some(dictionary.id);
            self.numbers.clear();
            self.numbers.resize(dictionary.entries.len(), 0);
        }
        for (&code, &number) in codes.iter().zip(numbers) {
            self.numbers[code as usize] = number.wrapping_add(1);
        }
    }
}

#[derive(Debug)]
enum Index {
    Coded(Box<Coded>),
    Set(Box<RowSet>),
}

#[derive(Debug)]
struct Coded {
    coding: KeyCodes,
    columns: Vec<ValueColumn>,
    rows: usize,
    places: Places,
    codes: Vec<u64>,
}

/// Numbers by code.
#[derive(Debug)]
enum Places {
    /// One more than the number; 0 where there is none.
    Array(Vec<u32>),
    Table(IntIndex<u64>),
}

impl Numbering {
    /// An empty numbering of rows of these types. An array of numbers takes at most `memory` bytes.
    pub fn new(types: &[LogicalType], memory: usize) -> Self {
        let index = match KeyCodes::new(types) {
            Some(coding) => Index::Coded(Box::new(Coded {
                coding,
                columns: types.iter().map(|&logical| ValueColumn::new(logical)).collect(),
                rows: 0,
                places: Places::Array(Vec::new()),
                codes: Vec::new(),
            })),
            None => Index::Set(Box::new(RowSet::new(types))),
        };
        Self {
            types: types.to_vec(),
            index,
            asked: 0,
            memory,
            frozen: false,
            fresh: Vec::new(),
            memo: Memo::default(),
            known: false,
        }
    }

    /// Number of rows kept.
    pub const fn len(&self) -> usize {
        match &self.index {
            Index::Coded(coded) => coded.rows,
            Index::Set(set) => set.len(),
        }
    }

    /// True when it has no row.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// From now on rows that are not there get the number `ABSENT`.
    pub const fn freeze(&mut self) {
        self.frozen = true;
    }

    /// New rows are kept again.
    pub const fn thaw(&mut self) {
        self.frozen = false;
    }

    /// True when it takes no further rows.
    pub const fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        match &self.index {
            Index::Coded(coded) => {
                let places = match &coded.places {
                    Places::Array(array) => array.capacity() * 4,
                    Places::Table(table) => table.bytes(),
                };
                places
                    + self.memo.numbers.capacity() * 4
                    + coded.coding.bytes()
                    + coded.columns.iter().map(ValueColumn::bytes).sum::<usize>()
            }
            Index::Set(set) => set.bytes(),
        }
    }

    /// Nothing more will be added for now.
    pub fn seal(&mut self) {
        match &mut self.index {
            Index::Coded(coded) => coded.columns.iter_mut().for_each(ValueColumn::seal),
            Index::Set(set) => set.seal(),
        }
    }

    /// Rows `start..start + len` of those kept.
    pub fn slice(&self, start: usize, len: usize) -> Vec<Arc<Vector>> {
        match &self.index {
            Index::Coded(coded) => coded.slice(start, len),
            Index::Set(set) => set.slice(start, len),
        }
    }

    /// The rows at these positions of those kept.
    pub fn take(&self, at: &[u32]) -> Vec<Arc<Vector>> {
        let columns = match &self.index {
            Index::Coded(coded) => &coded.columns,
            Index::Set(set) => set.columns(),
        };
        columns.iter().map(|column| Arc::new(column.take(at))).collect()
    }

    /// Positions, in the last look-up, of the rows that were new then.
    pub fn fresh(&self) -> &[u32] {
        match &self.index {
            Index::Coded(_) => &self.fresh,
            Index::Set(_) if self.known => &[],
            Index::Set(set) => set.newest(),
        }
    }

    /// The number of each of `rows` rows of these columns, in `numbers`; rows not seen before are kept.
    ///
    /// # Errors
    /// `OutOfMemory`; `Decline` for decimals outside 128 bits, or 2 billion rows.
    pub fn number(&mut self, columns: &[Arc<Vector>], rows: usize, numbers: &mut Vec<u32>) -> Result<()> {
        self.asked += rows as u64;
        self.fresh.clear();
        let [column] = columns else { return self.number_rows(columns, rows, numbers) };
        self.known = self.memo.number(column, numbers);
        if !self.known {
            self.number_rows(columns, rows, numbers)?;
            self.memo.learn(column, numbers);
        }
        Ok(())
    }

    fn number_rows(&mut self, columns: &[Arc<Vector>], rows: usize, numbers: &mut Vec<u32>) -> Result<()> {
        if let Index::Coded(coded) = &mut self.index {
            if coded.rows + rows >= (u32::MAX as usize) / 2 {
                return Err(Error::Decline("more groups than are numbered"));
            }
            let most = (self.asked * SPARSE).max(SMALL).min(self.memory as u64 / 4);
            if coded.prepare(columns, rows, most)? {
                numbers.clear();
                numbers.resize(rows, ABSENT);
                coded.number(self.frozen, numbers, &mut self.fresh)?;
                for (kept, column) in coded.columns.iter_mut().zip(columns) {
                    if !self.fresh.is_empty() {
                        kept.append(&flat(column), &self.fresh)?;
                    }
                }
                return Ok(());
            }
            let columns = std::mem::take(&mut coded.columns);
            let kept = coded.rows;
            self.index = Index::Set(Box::new(RowSet::adopt(&self.types, columns, kept)?));
        }
        let Index::Set(set) = &mut self.index else { return Ok(()) };
        if self.frozen {
            set.freeze();
        } else {
            set.thaw();
        }
        set.number(columns, rows, numbers)
    }
}

impl Coded {
    fn slice(&self, start: usize, len: usize) -> Vec<Arc<Vector>> {
        self.columns.iter().map(|column| Arc::new(column.slice(start, len))).collect()
    }

    /// Codes these rows, and sees to it that there is a place for each code; arrays have `most` places.
    /// False: these rows cannot be coded.
    fn prepare(&mut self, columns: &[Arc<Vector>], rows: usize, most: u64) -> Result<bool> {
        let Some(changed) = self.coding.encode(columns, rows, &mut self.codes)? else { return Ok(false) };
        let array = 1u64 << self.coding.bits() <= most;
        let fits = match &self.places {
            Places::Array(places) => array && !places.is_empty(),
            Places::Table(_) => !array,
        };
        if fits && !changed { Ok(true) } else { self.rebuild(array) }
    }

    /// Numbers the rows that `codes` are of; new ones are appended to `fresh`.
    fn number(&mut self, frozen: bool, numbers: &mut [u32], fresh: &mut Vec<u32>) -> Result<()> {
        match &mut self.places {
            Places::Array(array) => {
                let mask = array.len() - 1;
                let far = size_of_val(array.as_slice()) > prefetch::NEAR;
                for (row, (&code, number)) in self.codes.iter().zip(numbers).enumerate() {
                    if far && row % prefetch::ROWS == 0 {
                        let codes = self.codes.iter().skip(row).take(prefetch::ROWS);
                        codes.for_each(|&code| prefetch(array, code as usize & mask));
                    }
                    let place = &mut array[code as usize & mask];
                    if *place == 0 && !frozen {
                        fresh.push(row as u32);
                        self.rows += 1;
                        *place = self.rows as u32;
                    }
                    *number = place.wrapping_sub(1);
                }
                Ok(())
            }
            Places::Table(table) => table.number_codes(&self.codes, frozen, &mut self.rows, numbers, fresh),
        }
    }

    /// Makes the places anew for the codes that rows have now; the codes of the batch at hand stay. False: it
    /// cannot be done.
    fn rebuild(&mut self, array: bool) -> Result<bool> {
        let places = 1usize << self.coding.bits();
        self.places =
            if array { Places::Array(table_of(places)?) } else { Places::Table(IntIndex::default()) };
        self.columns.iter_mut().for_each(ValueColumn::seal);
        let batch = std::mem::take(&mut self.codes);
        let kept = std::mem::take(&mut self.rows);
        for start in (0..kept).step_by(BATCH_ROWS) {
            interrupt::check()?;
            let rows = BATCH_ROWS.min(kept - start);
            if self.coding.encode(&self.slice(start, rows), rows, &mut self.codes)? != Some(false) {
                self.rows = kept;
                return Ok(false);
            }
            self.number(false, &mut vec![0; rows], &mut Vec::new())?;
        }
        self.codes = batch;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::HashMap;

    use vector::{Dictionary, VectorBuilder};

    use super::*;

    fn column(values: &[Option<String>], form: u64, id: u64) -> Arc<Vector> {
        let mut builder = VectorBuilder::new(LogicalType::Text);
        for value in values {
            match value {
                Some(value) => assert!(builder.push_bytes(value.as_bytes())),
                None => builder.push_null(),
            }
        }
        let flat = builder.finish(&|_, _, _| Box::default());
        match form {
            0 => return Arc::new(flat),
            1 => {
                let ends = (1..=values.len() as u32).collect();
                let runs = Values::Runs { ends, values: Box::new(flat) };
                return Arc::new(Vector::new(LogicalType::Text, runs));
            }
            _ => {}
        }
        let codes = (0..values.len() as u32).collect();
        let entries = Vector { validity: None, ..flat.clone() };
        let dictionary = Arc::new(Dictionary { id, entries });
        Arc::new(Vector { values: Values::Dictionary { codes, dictionary }, ..flat })
    }

    /// A column that needs more bits later leaves no room for one that had enough before.
    #[test]
    fn codes_that_outgrow_an_integer_are_given_up() {
        let mut numbering = Numbering::new(&[LogicalType::Int64, LogicalType::Int64], 1 << 20);
        let ints = |values: Vec<i64>| Arc::new(Vector::new(LogicalType::Int64, Values::Int64(values)));
        let mut numbers = Vec::new();
        numbering.number(&[ints(vec![0, 1]), ints(vec![0, 1 << 57])], 2, &mut numbers).unwrap();
        assert_eq!(numbers, [0, 1]);
        numbering.number(&[ints(vec![1 << 20, 1, 0]), ints(vec![0, 1 << 57, 0])], 3, &mut numbers).unwrap();
        assert_eq!(numbers, [2, 1, 0]);
    }

    /// Texts and integers in all forms get the numbers of their first appearance, whatever the places are.
    #[test]
    fn numbers_are_those_of_first_appearance() {
        let mut state = 42u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for round in 0..300u64 {
            // Every other time the texts alone.
            let alone = round % 2 == 1;
            let types = &[LogicalType::Text, LogicalType::Int32][..2 - usize::from(alone)];
            let mut numbering = Numbering::new(types, if round % 3 == 0 { 0 } else { 1 << 20 });
            let mut known: HashMap<(Option<String>, i32), u32> = HashMap::new();
            for batch in 0..8u64 {
                let rows = 1 + random(30) as usize;
                let texts: Vec<Option<String>> = (0..rows)
                    .map(|_| match random(9) {
                        0 => None,
                        1 => Some(String::new()),
                        2 => Some(format!("a text that is long {}", random(5))),
                        _ => Some(random(1 + 20 * batch).to_string()),
                    })
                    .collect();
                let ints: Vec<i32> =
                    (0..rows).map(|_| random(3 << (3 * batch)) as i32 - (2 << (2 * batch))).collect();
                let ints = if alone { vec![0; rows] } else { ints };
                let columns = [
                    column(&texts, random(3), round * 10 + batch),
                    Arc::new(Vector::new(LogicalType::Int32, Values::Int32(ints.clone()))),
                ];
                let mut numbers = Vec::new();
                numbering.number(&columns[..types.len()], rows, &mut numbers).unwrap();
                for ((text, int), number) in texts.into_iter().zip(ints).zip(numbers) {
                    let next = known.len() as u32;
                    let key = (text, int);
                    assert_eq!(*known.entry(key.clone()).or_insert(next), number, "{round} {batch} {key:?}");
                }
            }
            assert_eq!(numbering.len(), known.len());
        }
    }

    /// Batches of one dictionary are numbered by its entries; those that no row has get no number.
    #[test]
    fn entries_of_a_dictionary_are_remembered() {
        let words: Vec<Option<String>> = ["a", "b", "c", "d"].map(|word| Some(word.to_owned())).to_vec();
        let whole = column(&words, 2, 9);
        let mut numbering = Numbering::new(&[LogicalType::Text], 1 << 20);
        let mut number = |rows: &[u32], freeze: bool| {
            if freeze {
                numbering.freeze();
            }
            let mut numbers = Vec::new();
            numbering.number(&[Arc::new(whole.take(rows))], rows.len(), &mut numbers).unwrap();
            (numbers, numbering.fresh().to_vec(), numbering.len())
        };
        assert_eq!(number(&[2, 0, 2], false), (vec![0, 1, 0], vec![0, 1], 2));
        assert_eq!(number(&[0, 2], false), (vec![1, 0], vec![], 2));
        assert_eq!(number(&[3, 2], false), (vec![2, 0], vec![0], 3));
        assert_eq!(number(&[1, 2], true), (vec![ABSENT, 0], vec![], 3));
        assert_eq!(number(&[1, 3], true), (vec![ABSENT, 2], vec![], 3));
    }

    /// Flat texts are coded also where the first batch brings more rows than the memo has places.
    #[test]
    fn long_batches_of_few_texts_are_coded() {
        let words: Vec<Option<String>> = (0..5_000).map(|row| Some(format!("word {}", row % 40))).collect();
        let mut numbering = Numbering::new(&[LogicalType::Text], 1 << 20);
        let mut numbers = Vec::new();
        numbering.number(&[column(&words, 0, 0)], words.len(), &mut numbers).unwrap();
        assert!(numbers.iter().zip(0..).all(|(&number, row)| number == row % 40));
        assert!(matches!(numbering.index, Index::Coded(_)));
    }
}
