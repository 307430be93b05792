//! Rows that are collected, put in order and given back in batches. Used by Sort and by ordered aggregates.
//!
//! Rows beyond the memory are sorted and written to a temporary file, a run; at the end the runs are merged
//! (`merge`). As soon as one level has as many runs as one merge takes, they become one run of the next
//! level. So there are never many open files, whatever the number of rows. If only the first rows are wanted,
//! the others are dropped whenever enough rows came. Later batches are first compared with the last row that
//! is wanted.

use std::sync::Arc;

use vector::{LogicalType, Vector};

use super::bound::Bound;
use super::merge::{FAN_IN, Merge};
use super::order::{Key, compare_vectors, holds_wide, order};
use crate::row_container::{BatchFile, ValueColumn, flat};
use crate::{BATCH_ROWS, Batch, Error, Result, SharedTempFiles, interrupt};

/// The rows.
pub struct SortedRows {
    types: Vec<LogicalType>,
    keys: Vec<Key>,
    /// Rows wanted at the end.
    limit: usize,
    room: Room,
    columns: Vec<ValueColumn>,
    rows: usize,
    /// With a limit: the last row that is wanted of those seen.
    last: Option<Batch>,
    /// Rows kept beyond the limit before they are thinned out: few at first, because every row left out from
    /// then on costs next to nothing.
    slack: usize,
    /// The bound that is told of the last row.
    bound: Option<Arc<Bound>>,
    /// The runs in the order in which their rows came. Each has a level: how often its rows were merged. An
    /// older run has the same level or a higher one.
    runs: Vec<(u32, BatchFile)>,
    /// Once sorted: positions in order, and how many rows were given back.
    order: Vec<u32>,
    given: usize,
    merge: Option<Merge>,
}

/// Bytes of a run's page, at least.
const PAGE: usize = 32 << 10;

/// How much rows may take, and where they go then.
#[derive(Clone)]
pub struct Room {
    /// Bytes.
    pub memory: usize,
    /// None: nowhere.
    pub files: Option<SharedTempFiles>,
}

impl SortedRows {
    /// No rows of these types yet.
    pub fn new(types: &[LogicalType], keys: &[Key], limit: Option<usize>, room: &Room) -> Self {
        Self {
            types: types.to_vec(),
            keys: keys.to_vec(),
            limit: limit.unwrap_or(usize::MAX),
            room: room.clone(),
            columns: types.iter().map(|&logical| ValueColumn::new(logical)).collect(),
            rows: 0,
            last: None,
            slack: BATCH_ROWS / 8,
            bound: None,
            runs: Vec::new(),
            order: Vec::new(),
            given: 0,
            merge: None,
        }
    }

    /// The same, of which a source is told how far rows are wanted.
    pub(super) fn with_bound(self, bound: &Arc<Bound>) -> Self {
        Self { bound: Some(Arc::clone(bound)), ..self }
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(ValueColumn::bytes).sum()
    }

    /// Takes rows.
    pub fn push(&mut self, columns: &[Arc<Vector>], rows: usize) -> Result<()> {
        let columns: Vec<_> = columns.iter().map(flat).collect();
        match self.wanted(&columns, rows) {
            Some(wanted) if wanted.is_empty() => return Ok(()),
            wanted => self.append(&columns, rows, wanted.as_deref())?,
        }
        // A source that reads first what can come first stops the sooner, the closer the bound is. Thinning
        // out few rows costs less than what a close bound spares.
        let few = match &self.bound {
            Some(_) if self.limit > BATCH_ROWS => usize::MAX,
            Some(_) if self.last.is_none() => self.limit,
            Some(_) => self.limit + (self.limit / 8).max(1),
            None => usize::MAX,
        };
        if self.rows >= few {
            self.thin()?;
        } else if self.rows >= self.limit.saturating_mul(2).max(self.limit.saturating_add(self.slack)) {
            self.thin()?;
            self.slack = (2 * self.slack).min(8 * BATCH_ROWS);
        }
        // Putting rows in order takes an integer and a position a row, and where byte strings are ranked
        // (`ranks`) the rank and its part of what finds equal ones.
        let ranked =
            self.keys.iter().any(|key| self.columns.get(key.column).is_some_and(ValueColumn::is_ranked));
        if self.bytes() + self.rows * if ranked { 40 } else { 24 } > self.room.memory {
            self.write_run()?;
        }
        Ok(())
    }

    /// Rows that come before the last one wanted so far, None where all may, or where only appending tells.
    fn wanted(&self, columns: &[Arc<Vector>], rows: usize) -> Option<Vec<u32>> {
        let last = self.last.as_ref()?;
        let mut keys = self.keys.iter().filter_map(|key| columns.get(key.column));
        if keys.any(|column| holds_wide(column)) {
            return None;
        }
        let before =
            |&row: &u32| compare_vectors(&self.keys, (columns, row as usize), (&last.columns, 0)).is_lt();
        Some((0..rows as u32).filter(before).collect())
    }

    fn append(&mut self, columns: &[Arc<Vector>], rows: usize, wanted: Option<&[u32]>) -> Result<()> {
        self.rows += wanted.map_or(rows, <[u32]>::len);
        if u32::try_from(self.rows).is_err() {
            return Err(Error::Decline("more than 4 billion rows to sort"));
        }
        for (kept, column) in self.columns.iter_mut().zip(columns) {
            match wanted {
                None => kept.append_all(column)?,
                Some(wanted) => kept.append(column, wanted)?,
            }
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.columns = self.types.iter().map(|&logical| ValueColumn::new(logical)).collect();
        self.rows = 0;
    }

    /// Leaves only the wanted number of rows.
    fn thin(&mut self) -> Result<()> {
        let mut kept = order(&self.keys, &self.columns, self.rows, self.limit)?;
        if let Some(&last) = kept.last() {
            let columns: Vec<_> = self.columns.iter().map(|column| Arc::new(column.take(&[last]))).collect();
            let first = self.keys.first().and_then(|key| columns.get(key.column));
            if let (Some(bound), Some(first)) = (&self.bound, first) {
                bound.lower(first);
            }
            self.last = Some(Batch::new(1, columns));
        }
        // In the order they came, so that equal rows stay in it.
        kept.sort_unstable();
        let columns = self.columns.iter().map(|column| Arc::new(column.take(&kept))).collect::<Vec<_>>();
        self.clear();
        self.append(&columns, kept.len(), None)
    }

    /// Sorts what is in memory into a file.
    fn write_run(&mut self) -> Result<()> {
        let Some(files) = &self.room.files else {
            return Err(Error::Decline("rows to sort past the memory, and no temporary files"));
        };
        let mut run = BatchFile::new(&self.types, files)?;
        self.columns.iter_mut().for_each(ValueColumn::seal);
        // A merge holds a page of each run.
        let page = (self.room.memory / (2 * FAN_IN)).max(PAGE) * self.rows / self.bytes().max(1);
        let page = page.clamp(1, BATCH_ROWS);
        for positions in order(&self.keys, &self.columns, self.rows, self.limit)?.chunks(page) {
            let columns = self.columns.iter().map(|column| Arc::new(column.take(positions)));
            run.write(&columns.collect::<Vec<_>>(), positions.len())?;
        }
        run.rest()?;
        self.runs.push((0, run));
        self.clear();
        self.merge_runs()
    }

    /// Merges the last runs while there are enough of one level.
    fn merge_runs(&mut self) -> Result<()> {
        while let Some(&(level, _)) = self.runs.last()
            && let Some(files) = &self.room.files
        {
            let first = self.runs.partition_point(|(other, _)| *other > level);
            if self.runs.len() - first < FAN_IN {
                break;
            }
            let runs = self.runs.split_off(first).into_iter().map(|(_, run)| run).collect();
            let run = Merge::into_run(&self.types, &self.keys, runs, files)?;
            self.runs.push((level + 1, run));
        }
        Ok(())
    }

    /// The columns of all rows as they came, unless some are in files.
    pub fn in_memory(&self) -> Option<&[ValueColumn]> {
        self.runs.is_empty().then_some(&self.columns)
    }

    /// The rows, in no order, batch by batch; none is asked for again.
    pub fn drain(&mut self, mut take: impl FnMut(Batch) -> Result<()>) -> Result<()> {
        for (_, mut run) in self.runs.drain(..) {
            while let Some(batch) = run.read()? {
                take(batch)?;
            }
        }
        self.columns.iter_mut().for_each(ValueColumn::seal);
        for start in (0..self.rows).step_by(BATCH_ROWS) {
            interrupt::check()?;
            let rows = BATCH_ROWS.min(self.rows - start);
            let columns = self.columns.iter().map(|column| Arc::new(column.slice(start, rows)));
            take(Batch::new(rows, columns.collect()))?;
        }
        Ok(())
    }

    /// Takes over another thread's rows.
    pub fn merge(&mut self, mut other: Self) -> Result<()> {
        // Their order among each other says nothing: those that were merged more often come first.
        self.runs.append(&mut other.runs);
        self.runs.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
        self.merge_runs()?;
        other.drain(|batch| self.push(&batch.columns, batch.rows))
    }

    /// All rows are there: puts them in order.
    pub fn sort(&mut self) -> Result<()> {
        if let (false, Some(files)) = (self.runs.is_empty(), self.room.files.clone()) {
            if self.rows > 0 {
                self.write_run()?;
            }
            let runs = std::mem::take(&mut self.runs).into_iter().map(|(_, run)| run).collect();
            self.merge = Some(Merge::new(&self.types, &self.keys, runs, &files)?);
            return Ok(());
        }
        self.columns.iter_mut().for_each(ValueColumn::seal);
        self.order = order(&self.keys, &self.columns, self.rows, self.limit)?;
        Ok(())
    }

    /// The next rows in order.
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        let left = self.limit - self.given;
        if left == 0 {
            return Ok(None);
        }
        if let Some(merge) = &mut self.merge {
            let Some(batch) = merge.next_batch()? else { return Ok(None) };
            let rows = batch.rows.min(left);
            self.given += rows;
            return Ok(Some(batch.slice(0, rows)));
        }
        let end = self.order.len().min(self.given + BATCH_ROWS);
        let positions = self.order.get(self.given..end).unwrap_or(&[]);
        if positions.is_empty() {
            return Ok(None);
        }
        let columns = self.columns.iter().map(|column| Arc::new(column.take(positions))).collect();
        self.given = end;
        Ok(Some(Batch::new(positions.len(), columns)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicUsize, Ordering};

    use vector::Values;

    use super::*;
    use crate::{TempFile, TempFiles, TextOrder};

    /// How many files there are, and were at most.
    #[derive(Default)]
    struct Files(Arc<[AtomicUsize; 2]>);

    struct File {
        bytes: Vec<u8>,
        count: Arc<[AtomicUsize; 2]>,
    }

    impl TempFiles for Files {
        fn create(&self) -> Result<Box<dyn TempFile>> {
            let now = self.0[0].fetch_add(1, Ordering::Relaxed) + 1;
            self.0[1].fetch_max(now, Ordering::Relaxed);
            Ok(Box::new(File { bytes: Vec::new(), count: Arc::clone(&self.0) }))
        }
    }

    impl TempFile for File {
        fn append(&mut self, bytes: &[u8]) -> std::io::Result<u64> {
            self.bytes.extend_from_slice(bytes);
            Ok((self.bytes.len() - bytes.len()) as u64)
        }
        fn read(&mut self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
            out.copy_from_slice(&self.bytes[offset as usize..offset as usize + out.len()]);
            Ok(())
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            self.count[0].fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// However many runs there are, few files are open, none of them holds a buffer, and equal rows stay in
    /// the order they came.
    #[test]
    fn many_runs_take_few_files() {
        let count = Arc::<[AtomicUsize; 2]>::default();
        let files: SharedTempFiles = Arc::new(Files(Arc::clone(&count)));
        let key = Key { column: 0, descending: false, nulls_first: false, order: TextOrder::Bytes };
        let types = [LogicalType::Int64, LogicalType::Int64];
        let room = Room { memory: 1_000, files: Some(files) };
        let mut rows = SortedRows::new(&types, &[key], None, &room);
        let column = |values: Vec<i64>| Arc::new(Vector::new(LogicalType::Int64, Values::Int64(values)));
        for batch in 0..1_500i64 {
            let numbers = batch * 50..batch * 50 + 50;
            let keys = numbers.clone().map(|number| number * 7_919 % 997).collect();
            rows.push(&[column(keys), column(numbers.collect())], 50).unwrap();
            assert!(rows.runs.iter().all(|(_, run)| run.buffered() == 0));
        }
        rows.sort().unwrap();
        let mut found = Vec::new();
        while let Some(batch) = rows.next_batch().unwrap() {
            let (Values::Int64(keys), Values::Int64(numbers)) =
                (&batch.columns[0].values, &batch.columns[1].values)
            else {
                return;
            };
            found.extend(keys.iter().copied().zip(numbers.iter().copied()));
        }
        let mut expected: Vec<_> = (0..75_000i64).map(|number| (number * 7_919 % 997, number)).collect();
        expected.sort_unstable();
        assert!(found == expected);
        let most = count[1].load(Ordering::Relaxed);
        assert!(most > FAN_IN && most <= 4 * FAN_IN, "{most} files at once");
    }
}
