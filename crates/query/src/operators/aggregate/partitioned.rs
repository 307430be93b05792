//! Many groups: tables that all threads fill, one for each part of the groups by the hash of their keys.
//!
//! Called by the sink when a thread's own table has outgrown the nearest caches. A group is in one table only, whichever thread met it, so nothing is left to be put together in the end, each
//! part's groups are given out by any thread, and each table stays small. Threads bring groups with their states (`take_table`), or, where most rows are groups of their own, rows: those
//! are gathered first (`Scatter`), so that a table is asked for many at a time and stays in the cache meanwhile. The way is that of partitioned hash joins, and of DuckDB's aggregation.
//! Invariant: a group has the same table for all threads; tables are locked one at a time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use vector::{LogicalType, concat};

use super::table::Table;
use super::{POISONED, Spec};
use crate::row_container::{hash, nulls};
use crate::{Batch, Evaluator, Result};

/// Parts at most,
const MOST_PARTS: usize = 64;
/// bytes that each of them has at least,
const LEAST_BYTES: usize = 1 << 20;
/// and how many they have to be to be worth it.
const LEAST_PARTS: usize = 4;
/// Rows gathered before they go to the tables.
const GATHERED: usize = 1 << 20;

/// How many parts so much memory makes; 0: too few.
pub fn parts(memory: usize) -> usize {
    let parts = (memory / LEAST_BYTES).clamp(1, MOST_PARTS);
    // The next lower power of two.
    let parts = 1 << parts.ilog2();
    if parts < LEAST_PARTS { 0 } else { parts }
}

/// The tables.
pub struct Partitioned {
    tables: Vec<Mutex<Table>>,
    /// A table takes no further groups.
    full: AtomicBool,
    /// Threads begin with different tables.
    turn: AtomicUsize,
}

impl Partitioned {
    /// Tables without groups; all of them together may take so many bytes.
    pub fn new(spec: &Spec, parts: usize, memory: usize) -> Result<Self> {
        let tables = (0..parts).map(|_| Ok(Mutex::new(Table::of_partition(spec, memory / parts)?)));
        Ok(Self {
            tables: tables.collect::<Result<_>>()?,
            full: AtomicBool::new(false),
            turn: AtomicUsize::new(0),
        })
    }

    /// True when a table takes no further groups, which rows go to files of then; states have to stay in memory.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// The tables, when no thread has anything left for them.
    pub fn into_tables(self) -> Result<Vec<Table>> {
        self.tables.into_iter().map(|table| table.into_inner().map_err(|_| POISONED)).collect()
    }

    /// Calls `take` with each table and the rows whose hash belongs there.
    fn each(&self, hashes: &[u64], mut take: impl FnMut(&mut Table, &[u32]) -> Result<()>) -> Result<()> {
        let bits = self.tables.len().ilog2();
        let part = |hash: u64| (hash::spread(hash) >> (u64::BITS - bits)) as usize;
        let mut ends = vec![0; self.tables.len() + 1];
        hashes.iter().for_each(|&hash| ends[part(hash) + 1] += 1);
        (1..ends.len()).for_each(|at| ends[at] += ends[at - 1]);
        let mut next = ends.clone();
        let mut rows = vec![0; hashes.len()];
        for (&hash, row) in hashes.iter().zip(0u32..) {
            let next = &mut next[part(hash)];
            rows[*next] = row;
            *next += 1;
        }
        let first = self.turn.fetch_add(self.tables.len() / 2 + 1, Ordering::Relaxed);
        for at in 0..self.tables.len() {
            let at = (first + at) % self.tables.len();
            let rows = &rows[ends[at]..ends[at + 1]];
            if !rows.is_empty() {
                let mut table = self.tables[at].lock().map_err(|_| POISONED)?;
                take(&mut table, rows)?;
                table.close_if_full()?;
                if table.is_full() {
                    self.full.store(true, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    /// Takes over the groups of a thread's table.
    pub fn take_table(&self, mut table: Table) -> Result<()> {
        table.close();
        let mut hashes = Vec::new();
        table.hashes(&mut hashes)?;
        self.each(&hashes, |part, groups| part.take_groups(&mut table, groups))
    }
}

/// A thread's rows on their way to the tables.
pub struct Scatter {
    to: Arc<Partitioned>,
    keys: Vec<Evaluator>,
    /// Types of the rows' columns, and those of them that are read.
    types: Vec<LogicalType>,
    read: Vec<bool>,
    gathered: Vec<Batch>,
    rows: usize,
    bytes: usize,
    /// Bytes to gather at most.
    memory: usize,
    hashes: Vec<u64>,
}

impl Scatter {
    /// No rows yet.
    pub fn new(spec: &Spec, to: Arc<Partitioned>, memory: usize) -> Self {
        Self {
            to,
            keys: spec.keys.iter().map(Evaluator::new).collect(),
            types: spec.input.clone(),
            read: spec.columns_read(),
            gathered: Vec::new(),
            rows: 0,
            bytes: 0,
            memory,
            hashes: Vec::new(),
        }
    }

    /// Takes the rows of a batch.
    pub fn push(&mut self, batch: Batch) -> Result<()> {
        self.rows += batch.rows;
        let read = batch.columns.iter().zip(&self.read).filter(|(_, read)| **read);
        self.bytes += read.map(|(column, _)| column.bytes()).sum::<usize>();
        self.gathered.push(batch);
        if self.rows >= GATHERED || self.bytes >= self.memory { self.flush() } else { Ok(()) }
    }

    /// Brings what was gathered to the tables.
    pub fn flush(&mut self) -> Result<()> {
        let (rows, gathered) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.gathered));
        self.bytes = 0;
        let columns = self.types.iter().zip(&self.read).enumerate().map(|(at, (&logical, &read))| {
            // Nobody reads it.
            if !read {
                return Ok(nulls(logical, rows));
            }
            let parts = gathered.iter().filter_map(|batch| batch.columns.get(at));
            Ok(concat(logical, parts.map(|part| part.as_ref().clone()).collect())?)
        });
        let columns = columns.map(|column| column.map(Arc::new)).collect::<Result<_>>()?;
        drop(gathered);
        let batch = Batch::new(rows, columns);
        let keys = self.keys.iter_mut().map(|key| key.evaluate(&batch)).collect::<Result<Vec<_>>>()?;
        hash::hash_rows(&keys, rows, &mut self.hashes)?;
        self.to.each(&self.hashes, |table, rows| table.push(&batch.take(rows)))
    }
}
