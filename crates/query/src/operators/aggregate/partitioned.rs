//! Aggregation of many groups: the tables that all threads fill. The hash of its keys decides in which table
//! a group is.
//!
//! Called by the sink when a thread's own table has outgrown the nearest caches. A group is in one table
//! only, whichever thread met it. So no tables are merged at the end, any thread can give out the groups of a
//! part, and each table stays small. DuckDB's aggregation and partitioned hash joins do the same.
//!
//! Threads bring groups with their states (`take_table`). Where most rows are groups of their own, threads
//! bring rows instead (`Scatter`). At the end the rows that are left queue beside their table. To empty a
//! queue is a unit of work like any other: one thread puts all rows of a queue into the table. The table
//! stays in that core's cache meanwhile, and no thread waits for another. Exception: rows whose aggregation
//! may end the query are added at once. An error must be known before any group is given out.
//!
//! Invariant: a group has the same table for all threads; tables are locked one at a time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use vector::{LogicalType, Values};

use super::table::Table;
use super::{POISONED, Spec};
use crate::expression::end_to_end;
use crate::row_container::{compacted, nulls};
use crate::{Batch, Evaluator, Result, hash, interrupt};

/// The most parts there are.
const MOST_PARTS: usize = 128;
/// The fewest bytes that a part has.
const LEAST_BYTES: usize = 1 << 20;
/// The fewest parts that are worth the work of dividing rows.
const LEAST_PARTS: usize = 4;
/// Rows gathered before they are divided.
const GATHERED: usize = 1 << 16;

/// The number of parts for this much memory; 0 if dividing is not worth it.
pub fn parts(memory: usize) -> usize {
    let parts = (memory / LEAST_BYTES).clamp(1, MOST_PARTS);
    // The next lower power of two.
    let parts = 1 << parts.ilog2();
    if parts < LEAST_PARTS { 0 } else { parts }
}

/// The tables.
pub struct Partitioned {
    tables: Vec<Mutex<Table>>,
    /// Rows for each of them.
    waiting: Vec<Mutex<Vec<Batch>>>,
    /// Whether any table takes no further groups.
    full: AtomicBool,
    /// Threads begin with different tables.
    turn: AtomicUsize,
}

impl Partitioned {
    /// Tables without groups; all of them together may take `memory` bytes.
    pub fn new(spec: &Spec, parts: usize, memory: usize) -> Result<Self> {
        let tables = (0..parts).map(|_| Ok(Mutex::new(Table::of_partition(spec, memory / parts)?)));
        Ok(Self {
            tables: tables.collect::<Result<_>>()?,
            waiting: (0..parts).map(|_| Mutex::default()).collect(),
            full: AtomicBool::new(false),
            turn: AtomicUsize::new(0),
        })
    }

    /// True when a table takes no further groups. Rows of other groups go to files then; states have to stay
    /// in memory.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// The tables and the rows that wait for them, when no thread has anything left.
    pub fn into_tables(self) -> Result<Vec<(Table, Vec<Batch>)>> {
        let parts = self.tables.into_iter().zip(self.waiting);
        let parts = parts.map(|(table, waiting)| {
            let table = table.into_inner().map_err(|_| POISONED)?;
            Ok((table, waiting.into_inner().map_err(|_| POISONED)?))
        });
        parts.collect()
    }

    /// The rows that belong to each table by their hashes.
    fn divided(&self, hashes: &[u64]) -> (Vec<u32>, Vec<usize>) {
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
        (rows, ends)
    }

    /// Calls `take` with the number of each table and the table.
    fn each(&self, mut take: impl FnMut(usize, &mut Table) -> Result<()>) -> Result<()> {
        let first = self.turn.fetch_add(self.tables.len() / 2 + 1, Ordering::Relaxed);
        for at in 0..self.tables.len() {
            let at = (first + at) % self.tables.len();
            let mut table = self.tables[at].lock().map_err(|_| POISONED)?;
            take(at, &mut table)?;
            table.close_if_full()?;
            if table.is_full() {
                self.full.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Takes over the groups of a thread's table.
    pub fn take_table(&self, mut table: Table) -> Result<()> {
        table.close();
        let mut hashes = Vec::new();
        table.hashes(&mut hashes)?;
        let (groups, ends) = self.divided(&hashes);
        self.each(|at, part| match &groups[ends[at]..ends[at + 1]] {
            [] => Ok(()),
            groups => part.take_groups(&mut table, groups),
        })
    }
}

/// A thread's rows on their way to the tables.
pub struct Scatter {
    to: Arc<Partitioned>,
    keys: Vec<Evaluator>,
    /// Types of the rows' columns, and which columns are read.
    types: Vec<LogicalType>,
    read: Vec<bool>,
    gathered: Vec<Batch>,
    rows: usize,
    bytes: usize,
    /// Rows for each table, and how much they take.
    divided: Vec<Vec<Batch>>,
    held: usize,
    /// Bytes that all may take before they are brought to the tables.
    memory: usize,
    /// Whether no row can end the query. Rows may then wait until groups are given out.
    certain: bool,
    hashes: Vec<u64>,
}

impl Scatter {
    /// No rows yet.
    pub fn new(spec: &Spec, to: Arc<Partitioned>, memory: usize) -> Self {
        Self {
            keys: spec.keys.iter().map(Evaluator::new).collect(),
            types: spec.input.clone(),
            read: spec.columns_read(),
            gathered: Vec::new(),
            rows: 0,
            bytes: 0,
            divided: vec![Vec::new(); to.tables.len()],
            held: 0,
            to,
            memory,
            certain: spec.is_certain(),
            hashes: Vec::new(),
        }
    }

    /// Memory held, in bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes + self.held
    }

    fn bytes_of(&self, batch: &Batch) -> usize {
        let read = batch.columns.iter().zip(&self.read).filter(|(_, read)| **read);
        read.map(|(column, _)| column.bytes()).sum()
    }

    /// Takes the rows of a batch.
    pub fn push(&mut self, batch: Batch) -> Result<()> {
        self.rows += batch.rows;
        self.bytes += self.bytes_of(&batch);
        self.gathered.push(batch);
        let full = self.bytes() >= self.memory;
        if self.rows >= GATHERED || full {
            self.divide()?;
        }
        if full { self.bring() } else { Ok(()) }
    }

    /// Divides what was gathered.
    fn divide(&mut self) -> Result<()> {
        let (rows, gathered) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.gathered));
        self.bytes = 0;
        if rows == 0 {
            return Ok(());
        }
        let columns = self.types.iter().zip(&self.read).enumerate().map(|(at, (&logical, &read))| {
            // No operator reads this column.
            if !read {
                return Ok(nulls(logical, rows));
            }
            let parts = gathered.iter().filter_map(|batch| batch.columns.get(at));
            let mut column = end_to_end(logical, parts.map(|part| part.as_ref().clone()).collect())?;
            if let Values::Bytes(views) = &mut column.values {
                *views = compacted(views)?;
            }
            Ok(column)
        });
        let columns = columns.map(|column| column.map(Arc::new)).collect::<Result<_>>()?;
        drop(gathered);
        let batch = Batch::new(rows, columns);
        let keys = self.keys.iter_mut().map(|key| key.evaluate(&batch)).collect::<Result<Vec<_>>>()?;
        hash::hash_rows(&keys, rows, &mut self.hashes)?;
        let (rows, ends) = self.to.divided(&self.hashes);
        for (at, ends) in ends.windows(2).enumerate().filter(|(_, ends)| ends[0] < ends[1]) {
            let part = batch.take(&rows[ends[0]..ends[1]]);
            self.held += self.bytes_of(&part);
            self.divided[at].push(part);
        }
        Ok(())
    }

    /// Brings what was divided to the tables.
    fn bring(&mut self) -> Result<()> {
        self.held = 0;
        let divided = &mut self.divided;
        self.to.each(|at, table| {
            divided[at].drain(..).try_for_each(|batch| {
                interrupt::check()?;
                table.push(&batch)
            })
        })
    }

    /// All rows were seen. Rows that were not brought yet queue beside the tables if their aggregation cannot
    /// end the query. Otherwise they go into the tables now.
    pub fn finish(&mut self) -> Result<()> {
        self.divide()?;
        if !self.certain {
            return self.bring();
        }
        for (rows, waiting) in self.divided.iter_mut().zip(&self.to.waiting) {
            waiting.lock().map_err(|_| POISONED)?.append(rows);
        }
        Ok(())
    }
}
