//! A set of rows by value: each distinct row gets a number, in the order they are first seen.
//!
//! The general path of grouping (any number of columns of any type) and of DISTINCT. An open-addressing table holds, for each row kept, half of its hash and its number; the
//! values are in columns. A batch is looked up in rounds: all rows probe for a slot whose half hash is theirs, the new ones are kept, the candidates are compared column by
//! column, and those that differ probe on. A set of single integers has its values in the slots instead (`int_index`), so that looking one up touches one place.
//! Invariant: slots and columns agree; a table is never more than 3/4 full.

use std::sync::Arc;

use vector::{LogicalType, Vector};

use super::int_index::IntIndex;
use super::{ValueColumn, flat, hash};
use crate::{BATCH_ROWS, Error, Result};

/// Number of a row that was not kept because the set is frozen.
pub const ABSENT: u32 = u32::MAX;

/// The set.
#[derive(Debug)]
pub struct RowSet {
    columns: Vec<ValueColumn>,
    rows: usize,
    /// Instead of hashes and slots.
    ints: Option<IntIndex>,
    /// Hashes of the rows kept.
    hashes: Vec<u64>,
    /// High half: the hash's high half; low half: number + 1, 0 where free.
    slots: Vec<u64>,
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
        let ints = matches!(
            types,
            [LogicalType::Int16
                | LogicalType::Int32
                | LogicalType::Int64
                | LogicalType::Date
                | LogicalType::Timestamp]
        );
        Self {
            columns: types.iter().map(|&logical| ValueColumn::new(logical)).collect(),
            rows: 0,
            ints: ints.then(IntIndex::default),
            hashes: Vec::new(),
            slots: Vec::new(),
            frozen: false,
            work: Work::default(),
        }
    }

    /// A set of rows that are there already, all different.
    pub fn adopt(types: &[LogicalType], columns: Vec<ValueColumn>, rows: usize) -> Result<Self> {
        let mut set = Self { columns, rows, ..Self::new(types) };
        for start in (0..rows).step_by(BATCH_ROWS) {
            let some = set.slice(start, BATCH_ROWS.min(rows - start));
            let length = BATCH_ROWS.min(rows - start);
            match (&mut set.ints, some.as_slice()) {
                (Some(ints), [column]) => {
                    let (mut known, mut numbers) = (start, vec![0; length]);
                    ints.number(column, false, &mut known, &mut numbers, &mut Vec::new())?;
                }
                _ => {
                    let mut hashes = Vec::new();
                    hash::hash_rows(&some, length, &mut hashes)?;
                    set.hashes.append(&mut hashes);
                }
            }
        }
        if set.ints.is_none() {
            set.reserve(0)?;
        }
        Ok(set)
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
        self.slots.capacity() * 8
            + self.hashes.capacity() * 8
            + self.ints.as_ref().map_or(0, IntIndex::bytes)
            + self.columns.iter().map(ValueColumn::bytes).sum::<usize>()
    }

    /// Positions, in the last look-up, of the rows that were new then.
    pub fn newest(&self) -> &[u32] {
        &self.work.kept
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
        let mut hashes = std::mem::take(&mut self.work.hashes);
        let done = hash::hash_rows(columns, rows, &mut hashes)
            .and_then(|()| self.number_hashed(columns, &hashes, numbers));
        self.work.hashes = hashes;
        done
    }

    fn number_hashed(&mut self, columns: &[Arc<Vector>], hashes: &[u64], numbers: &mut [u32]) -> Result<()> {
        let columns: Vec<_> = columns.iter().map(flat).collect();
        self.reserve(if self.frozen { 0 } else { hashes.len() })?;
        let mask = self.slots.len() - 1;
        let mut work = std::mem::take(&mut self.work);
        work.pending.clear();
        work.pending
            .extend(hashes.iter().zip(0u32..).map(|(&hash, row)| (row, (hash as usize & mask) as u32)));
        while !work.pending.is_empty() {
            work.rows.clear();
            work.at.clear();
            work.places.clear();
            work.fresh.clear();
            for &(row, place) in &work.pending {
                let hash = hashes[row as usize];
                let mut place = place as usize;
                loop {
                    let slot = self.slots[place];
                    if slot == 0 {
                        if !self.frozen {
                            let number = self.rows as u32;
                            self.rows += 1;
                            self.slots[place] = (hash >> 32 << 32) | u64::from(number + 1);
                            self.hashes.push(hash);
                            numbers[row as usize] = number;
                            work.fresh.push(row);
                        }
                        break;
                    }
                    if slot >> 32 == hash >> 32 {
                        work.rows.push(row);
                        work.at.push((slot as u32) - 1);
                        work.places.push(place as u32);
                        break;
                    }
                    place = (place + 1) & mask;
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
                    work.pending.push((row, ((work.places[i] as usize + 1) & mask) as u32));
                }
            }
        }
        self.work = work;
        Ok(())
    }

    /// Makes room for so many further rows.
    fn reserve(&mut self, more: usize) -> Result<()> {
        let wanted = self.rows + more;
        if wanted * 4 <= self.slots.len() * 3 && !self.slots.is_empty() {
            return Ok(());
        }
        let capacity = (wanted * 2).next_power_of_two().max(1_024);
        let mut slots = Vec::new();
        slots.try_reserve_exact(capacity).map_err(|_| Error::out_of_memory(capacity * 8))?;
        slots.resize(capacity, 0u64);
        let mask = capacity - 1;
        for (&hash, number) in self.hashes.iter().zip(1u64..) {
            let mut place = hash as usize & mask;
            while slots[place] != 0 {
                place = (place + 1) & mask;
            }
            slots[place] = (hash >> 32 << 32) | number;
        }
        self.slots = slots;
        Ok(())
    }
}
