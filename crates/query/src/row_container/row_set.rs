//! A set of rows by value: each distinct row gets a number, in the order they are first seen.
//!
//! Grouping (by any number of columns of any type) and DISTINCT use it, if no faster way fits. `TaggedSlots`
//! finds rows by their hashes; the values are in columns. A batch is looked up in rounds. All rows probe for
//! a slot that has half of their hash. Rows that find an empty slot are new and are kept. Candidates are
//! compared with the kept row column by column. Rows that differ from it probe on. A set of single integers,
//! or of pairs of integers without NULLs, has its values in the slots instead (`int_index`). Invariant: slots
//! and columns agree; a table is never more than 3/4 full.

use std::sync::Arc;

use vector::{LogicalType, Vector};

use super::int_index::IntIndex;
use super::{TaggedSlots, ValueColumn, flat, prefetch};
use crate::{BATCH_ROWS, Error, Result, hash, interrupt};

/// Number of a row that was not kept because the set is frozen.
pub const ABSENT: u32 = u32::MAX;

/// The set.
#[derive(Debug)]
pub struct RowSet {
    columns: Vec<ValueColumn>,
    rows: usize,
    /// Instead of hashes and slots.
    ints: Option<IntIndex>,
    /// The same for pairs, as long as none has a NULL.
    pairs: Option<IntIndex<(i64, i64)>>,
    /// Hashes of the rows kept.
    hashes: Vec<u64>,
    /// Numbers by hash, one more than the number of a row.
    slots: TaggedSlots,
    frozen: bool,
    work: Work,
}

/// What a look-up needs, kept for the next.
#[derive(Debug, Default)]
struct Work {
    hashes: Vec<u64>,
    pending: Vec<(u32, u32)>,
    rows: Vec<u32>,
    at: Vec<u32>,
    places: Vec<u32>,
    equal: Vec<bool>,
    fresh: Vec<u32>,
    /// Rows that were kept by the last look-up, of all its rounds.
    kept: Vec<u32>,
}

impl RowSet {
    /// An empty set of rows of these types.
    pub fn new(types: &[LogicalType]) -> Self {
        let is_int = |logical: &LogicalType| {
            use LogicalType as T;
            matches!(logical, T::Int16 | T::Int32 | T::Int64 | T::UInt64 | T::Date | T::Timestamp)
        };
        let ints = types.iter().all(is_int);
        Self {
            columns: types.iter().map(|&logical| ValueColumn::new(logical)).collect(),
            rows: 0,
            ints: (ints && types.len() == 1).then(IntIndex::default),
            pairs: (ints && types.len() == 2).then(IntIndex::default),
            hashes: Vec::new(),
            slots: TaggedSlots::default(),
            frozen: false,
            work: Work::default(),
        }
    }

    /// A set of rows that are there already, all different.
    pub fn adopt(types: &[LogicalType], columns: Vec<ValueColumn>, rows: usize) -> Result<Self> {
        let mut set = Self { columns, rows, ..Self::new(types) };
        if set.columns.iter().any(ValueColumn::has_nulls) {
            set.pairs = None;
        }
        set.index_all()?;
        Ok(set)
    }

    /// Puts all rows kept into the index, which has none of them.
    fn index_all(&mut self) -> Result<()> {
        let rows = self.rows;
        for start in (0..rows).step_by(BATCH_ROWS) {
            interrupt::check()?;
            let some = self.slice(start, BATCH_ROWS.min(rows - start));
            let length = BATCH_ROWS.min(rows - start);
            let (mut known, mut numbers) = (start, vec![0; length]);
            match (&mut self.ints, &mut self.pairs, some.as_slice()) {
                (Some(ints), _, [column]) => {
                    ints.number(column, false, &mut known, &mut numbers, &mut Vec::new())?;
                }
                (_, Some(pairs), [first, second]) => {
                    pairs.number_pairs((first, second), false, &mut known, &mut numbers, &mut Vec::new())?;
                }
                _ => {
                    let mut hashes = Vec::new();
                    hash::hash_rows(&some, length, &mut hashes)?;
                    self.hashes.append(&mut hashes);
                }
            }
        }
        if self.ints.is_none() && self.pairs.is_none() {
            self.reserve(0)?;
        }
        Ok(())
    }

    /// Rows kept.
    pub const fn len(&self) -> usize {
        self.rows
    }

    /// True when it has no row.
    pub const fn is_empty(&self) -> bool {
        self.rows == 0
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
        self.slots.bytes()
            + self.hashes.capacity() * 8
            + self.ints.as_ref().map_or(0, IntIndex::bytes)
            + self.pairs.as_ref().map_or(0, IntIndex::bytes)
            + self.columns.iter().map(ValueColumn::bytes).sum::<usize>()
    }

    /// Positions, in the last look-up, of the rows that were new then.
    pub fn newest(&self) -> &[u32] {
        &self.work.kept
    }

    /// The values of the rows kept.
    pub fn columns(&self) -> &[ValueColumn] {
        &self.columns
    }

    /// Nothing more will be added for now.
    pub fn seal(&mut self) {
        self.columns.iter_mut().for_each(ValueColumn::seal);
    }

    /// Rows `start..start + len` of those kept.
    pub fn slice(&self, start: usize, len: usize) -> Vec<Arc<Vector>> {
        self.columns.iter().map(|column| Arc::new(column.slice(start, len))).collect()
    }

    /// The number of each of `rows` rows of these columns, in `numbers`; rows not seen before are kept.
    ///
    /// # Errors
    /// `OutOfMemory`; `Decline` for decimals outside 128 bits, or 4 billion rows.
    pub fn number(&mut self, columns: &[Arc<Vector>], rows: usize, numbers: &mut Vec<u32>) -> Result<()> {
        numbers.clear();
        numbers.resize(rows, ABSENT);
        self.work.kept.clear();
        if self.rows + rows >= (u32::MAX as usize) / 2 {
            return Err(Error::Decline("more groups than are numbered"));
        }
        if let (Some(ints), [column]) = (&mut self.ints, columns) {
            let column = flat(column);
            ints.number(&column, self.frozen, &mut self.rows, numbers, &mut self.work.kept)?;
            return match self.columns.first_mut() {
                Some(kept) => kept.append(&column, &self.work.kept),
                None => Ok(()),
            };
        }
        if let (Some(pairs), [first, second]) = (&mut self.pairs, columns) {
            let (first, second) = (flat(first), flat(second));
            if first.validity.is_none() && second.validity.is_none() {
                let work = &mut self.work.kept;
                pairs.number_pairs((&first, &second), self.frozen, &mut self.rows, numbers, work)?;
                let columns = self.columns.iter_mut().zip([first, second]);
                return columns.into_iter().try_for_each(|(kept, column)| kept.append(&column, work));
            }
            self.pairs = None;
            self.index_all()?;
        }
        let mut hashes = std::mem::take(&mut self.work.hashes);
        let done = hash::hash_rows(columns, rows, &mut hashes)
            .and_then(|()| self.number_hashed(columns, &hashes, numbers));
        self.work.hashes = hashes;
        done
    }

    fn number_hashed(&mut self, columns: &[Arc<Vector>], hashes: &[u64], numbers: &mut [u32]) -> Result<()> {
        let columns: Vec<_> = columns.iter().map(flat).collect();
        self.reserve(if self.frozen { 0 } else { hashes.len() })?;
        let mut work = std::mem::take(&mut self.work);
        work.pending.clear();
        let slots = &self.slots;
        work.pending.extend(hashes.iter().zip(0u32..).map(|(&hash, row)| (row, slots.place(hash) as u32)));
        while !work.pending.is_empty() {
            work.rows.clear();
            work.at.clear();
            work.places.clear();
            work.fresh.clear();
            let far = self.slots.are_far();
            for (at, &(row, place)) in work.pending.iter().enumerate() {
                if far && at % prefetch::ROWS == 0 {
                    let soon = work.pending.iter().skip(at).take(prefetch::ROWS);
                    soon.for_each(|&(_, place)| self.slots.prefetch(place as usize));
                }
                let hash = hashes[row as usize];
                let (number, place) = self.slots.next(hash, place as usize);
                if number != 0 {
                    work.rows.push(row);
                    work.at.push(number - 1);
                    work.places.push(place as u32);
                } else if !self.frozen {
                    numbers[row as usize] = self.rows as u32;
                    self.rows += 1;
                    self.slots.set(place, hash, self.rows as u32);
                    self.hashes.push(hash);
                    work.fresh.push(row);
                }
            }
            for (kept, column) in self.columns.iter_mut().zip(&columns) {
                kept.append(column, &work.fresh)?;
            }
            work.kept.extend_from_slice(&work.fresh);
            work.equal.clear();
            work.equal.resize(work.rows.len(), true);
            for (kept, column) in self.columns.iter().zip(&columns) {
                kept.compare(column, &work.rows, &work.at, &mut work.equal)?;
            }
            work.pending.clear();
            for (i, &row) in work.rows.iter().enumerate() {
                if work.equal[i] {
                    numbers[row as usize] = work.at[i];
                } else {
                    work.pending.push((row, self.slots.after(work.places[i] as usize) as u32));
                }
            }
        }
        self.work = work;
        Ok(())
    }

    /// Makes room for this many further rows.
    fn reserve(&mut self, more: usize) -> Result<()> {
        let wanted = self.rows + more;
        if wanted * 4 <= self.slots.capacity() * 3 && self.slots.capacity() > 0 {
            return Ok(());
        }
        let mut slots = TaggedSlots::new((wanted * 2).max(1_024))?;
        for (&hash, number) in self.hashes.iter().zip(1u32..) {
            interrupt::check_at(number as usize)?;
            slots.add(hash, number);
        }
        self.slots = slots;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use vector::{Bitmap, Values};

    use super::*;

    /// Pairs have their own index until a NULL comes; numbers stay.
    #[test]
    fn pairs_keep_their_numbers_when_a_null_comes() {
        let column = |logical, values: Values| Arc::new(Vector::new(logical, values));
        let mut set = RowSet::new(&[LogicalType::Int64, LogicalType::Int16]);
        let rows = 20_000;
        let first: Vec<i64> = (0..rows).map(|row| (row % 5_000) * 0x1234_5678_9abc).collect();
        let second: Vec<i16> = (0..rows).map(|row| (row % 3) as i16).collect();
        let first = column(LogicalType::Int64, Values::Int64(first));
        let second = column(LogicalType::Int16, Values::Int16(second));
        let mut numbers = Vec::new();
        set.number(&[Arc::clone(&first), Arc::clone(&second)], rows as usize, &mut numbers).unwrap();
        assert!(set.pairs.is_some());
        assert_eq!(set.len(), 15_000);
        assert_eq!((numbers[0], numbers[14_999], numbers[15_000]), (0, 14_999, 0));
        let mut with_null = first.as_ref().clone();
        with_null.validity = Some((0..rows as usize).map(|row| row != 7).collect::<Bitmap>());
        let mut again = Vec::new();
        set.number(&[Arc::new(with_null), second], rows as usize, &mut again).unwrap();
        assert!(set.pairs.is_none());
        assert_eq!(again.iter().zip(&numbers).filter(|(again, before)| again != before).count(), 1);
        assert_eq!((again[7], set.len()), (15_000, 15_001));
    }
}
