//! The kept side of a join: gathers all rows of the right input, then makes the columns and the table that
//! probing reads.
//!
//! `execution` runs the right pipeline into `BuildSink` before the first batch of the left one. Only the
//! columns wanted above the join or by its condition are kept. If the rows need more memory than the join may
//! use, all rows go to files, spread by the hash of their keys, and `spill` takes over. Invariant: once made,
//! `Built` only changes in the marks of matched rows.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use vector::{Bitmap, LogicalType, Predicate, Values, Vector};

use super::members::KeySet;
use super::narrow::predicate;
use super::null_aware::Classes;
use super::table::Table;
use crate::expression::end_to_end;
use crate::row_container::{BatchFile, Partitions, compacted, nulls};
use crate::{
    Batch, Error, Evaluator, Expression, Result, SharedTempFiles, Sink, SinkLocal, Source, interrupt,
};
use vector::flow::Nothing;

/// The properties of the join that the kept side has to know.
pub struct Spec {
    /// The kept side's keys.
    pub keys: Vec<Expression>,
    /// Whether the table finds rows by the keys (else it gives all of them).
    pub keyed: bool,
    /// Whether a NULL in one of several keys may equal anything. Then rows cannot be spread by their keys,
    /// because rows that may be equal would not come together.
    pub null_aware: bool,
    /// Whether all rows of a key have to be found.
    pub duplicates: bool,
    /// For each key the column of the probing source that it is compared with, if rows without a match are
    /// dropped and it is one.
    pub probed: Vec<Option<usize>>,
    /// Types of the kept side's columns.
    pub types: Vec<LogicalType>,
    /// Columns that are needed.
    pub wanted: Vec<bool>,
    /// Whether rows remember that they matched.
    pub marks: bool,
    /// Bytes that may be held.
    pub memory: usize,
    /// The files for rows beyond that memory.
    pub temp_files: Option<SharedTempFiles>,
}

/// The kept rows.
pub struct Built {
    /// How many.
    pub rows: usize,
    /// Wanted columns; None for the others.
    pub columns: Vec<Option<Arc<Vector>>>,
    /// Their keys, where the table does not hold them all it takes to compare.
    pub keys: Vec<Vector>,
    /// Finds kept rows by their keys.
    pub table: Table,
    /// Finds kept rows that may be equal because of NULLs.
    pub classes: Option<Classes>,
    /// Predicates by which the probing source may leave out rows.
    pub narrowing: Vec<Predicate>,
    /// Columns of the probing source that are compared with a key, and the key's values.
    pub members: Vec<(usize, KeySet)>,
    /// Whether a key was NULL, in these rows or in those that another table holds.
    pub null_keys: bool,
    /// Whether the kept side has no row at all.
    pub nothing: bool,
    /// For each kept row whether it matched, if the join needs it.
    pub matched: Vec<AtomicBool>,
    types: Vec<LogicalType>,
}

/// Rows as threads bring them: wanted columns, then keys.
pub type Part = (usize, Vec<Arc<Vector>>);

/// The shared part.
pub struct BuildSink {
    spec: Spec,
    parts: Mutex<Vec<Part>>,
    bytes: AtomicUsize,
    built: OnceLock<Built>,
    /// Rows go to files. Set once the memory is used up, never taken back.
    spilled: AtomicBool,
    null_keys: AtomicBool,
    files: Mutex<Option<Partitions>>,
}

impl BuildSink {
    /// A sink for the kept side.
    pub fn new(spec: Spec) -> Self {
        Self {
            spec,
            parts: Mutex::default(),
            bytes: AtomicUsize::new(0),
            built: OnceLock::new(),
            spilled: AtomicBool::new(false),
            null_keys: AtomicBool::new(false),
            files: Mutex::default(),
        }
    }

    /// The kept rows, once all were seen; not for a sink that spilled.
    pub fn built(&self) -> Result<&Built> {
        self.built.get().ok_or(Error::Decline("join before its kept side"))
    }

    /// True when the kept rows are in files.
    pub fn has_spilled(&self) -> bool {
        self.spilled.load(Ordering::Acquire)
    }

    /// What it was told.
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The files of the kept rows, by partition.
    pub fn take_files(&self) -> Result<Vec<Option<BatchFile>>> {
        let files = self.files.lock().map_err(|_| POISONED)?.take();
        Ok(files.map_or_else(Vec::new, Partitions::into_slots))
    }

    /// Kept rows read back from files: a table of their own.
    pub fn built_of(&self, parts: Vec<Part>) -> Result<Built> {
        let mut built = Built::new(&self.spec, parts)?;
        (built.nothing, built.null_keys) = (false, self.null_keys.load(Ordering::Relaxed));
        Ok(built)
    }

    fn write(&self, (rows, columns): &Part) -> Result<()> {
        let files = self.spec.temp_files.as_ref().ok_or(Error::Decline("join without temporary files"))?;
        let keys = columns.get(columns.len() - self.spec.keys.len()..).unwrap_or_default();
        if keys.iter().any(|key| key.null_count() > 0) {
            self.null_keys.store(true, Ordering::Relaxed);
        }
        let mut partitions = self.files.lock().map_err(|_| POISONED)?;
        partitions.get_or_insert_with(|| Partitions::new(0)).write(keys, columns, *rows, files)
    }
}

/// A thread that panicked has ended the query.
pub const POISONED: Error = Error::Decline("a thread panicked");

/// The sink, shared with the join.
pub struct SharedSink(pub Arc<BuildSink>);

impl Sink for SharedSink {
    fn make(&self) -> Result<Box<dyn SinkLocal>> {
        let keys = self.0.spec.keys.iter().map(Evaluator::new).collect();
        Ok(Box::new(Local { shared: Arc::clone(&self.0), keys, parts: Vec::new(), held: 0 }))
    }

    fn complete(&self) -> Result<Box<dyn Source>> {
        let parts = std::mem::take(&mut *self.0.parts.lock().map_err(|_| POISONED)?);
        if self.0.has_spilled() {
            parts.iter().try_for_each(|part| self.0.write(part))?;
            return Ok(Box::new(Nothing));
        }
        let built = Built::new(&self.0.spec, parts)?;
        self.0.built.set(built).map_err(|_| Error::Decline("kept side made twice"))?;
        Ok(Box::new(Nothing))
    }

    fn needs_host(&self) -> bool {
        self.0.spec.keys.iter().any(Expression::needs_host)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> String {
        format!("Build: {:?}", self.0.spec.keys)
    }
}

struct Local {
    shared: Arc<BuildSink>,
    keys: Vec<Evaluator>,
    parts: Vec<Part>,
    /// Bytes of them.
    held: usize,
}

impl SinkLocal for Local {
    fn push(&mut self, batch: Batch) -> Result<bool> {
        let keys = self.keys.iter_mut().map(|key| key.evaluate(&batch)).collect::<Result<Vec<_>>>()?;
        let wanted = batch.columns.iter().zip(&self.shared.spec.wanted);
        let columns = wanted.filter(|(_, wanted)| **wanted).map(|(column, _)| Arc::clone(column));
        let columns: Vec<_> = columns.chain(keys).collect();
        let part = (batch.rows, columns);
        if self.shared.has_spilled() {
            self.spill()?;
            self.shared.write(&part)?;
            return Ok(true);
        }
        let bytes = bytes(&part);
        self.parts.push(part);
        self.held += bytes;
        let held = self.shared.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if held > self.shared.spec.memory {
            let spec = &self.shared.spec;
            if !spec.keyed || spec.null_aware || spec.temp_files.is_none() {
                return Err(Error::Decline("the kept side of a join is larger than the memory it may use"));
            }
            self.shared.spilled.store(true, Ordering::Release);
            self.spill()?;
        }
        Ok(true)
    }

    fn memory(&self) -> usize {
        self.held
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if self.shared.has_spilled() {
            return self.spill();
        }
        let mut parts = self.shared.parts.lock().map_err(|_| POISONED)?;
        parts.append(&mut self.parts);
        Ok(())
    }
}

impl Local {
    /// Writes what this thread holds.
    fn spill(&mut self) -> Result<()> {
        self.held = 0;
        std::mem::take(&mut self.parts).iter().try_for_each(|part| self.shared.write(part))
    }
}

/// Memory that a part takes.
pub fn bytes((_, columns): &Part) -> usize {
    columns.iter().map(|column| column.bytes()).sum()
}

impl Built {
    fn new(spec: &Spec, mut parts: Vec<Part>) -> Result<Self> {
        let rows = parts.iter().map(|(rows, _)| rows).sum();
        for (_, columns) in &mut parts {
            columns.reverse();
        }
        let mut columns = Vec::with_capacity(spec.types.len());
        for (&logical, &wanted) in spec.types.iter().zip(&spec.wanted) {
            columns.push(match wanted {
                true => Some(Arc::new(next_column(logical, &mut parts)?)),
                false => None,
            });
        }
        let keys = spec.keys.iter().map(|key| next_column(key.logical(&spec.types), &mut parts));
        let mut keys = keys.collect::<Result<Vec<_>>>()?;
        let null_keys = keys.iter().any(|key| key.null_count() > 0);
        let table = Table::new(if spec.keyed { &keys } else { &[] }, rows, spec.duplicates)?;
        let probed = spec.probed.iter().zip(&keys).filter_map(|(column, key)| Some(((*column)?, key)));
        let narrowing = probed.clone().filter_map(|(column, key)| predicate(column, key)).collect();
        let mut members = Vec::new();
        for (column, key) in probed {
            members.extend(KeySet::new(key, keys.len() == 1)?.map(|set| (column, set)));
        }
        let mut classes = None;
        if spec.null_aware {
            classes = Some(Classes::new(std::mem::take(&mut keys), rows, spec.memory)?);
        } else if spec.keyed {
            keys.clear();
        }
        let marks = if spec.marks { rows } else { 0 };
        let matched = (0..marks).map(|_| AtomicBool::new(false)).collect();
        Ok(Self {
            rows,
            columns,
            keys,
            table,
            classes,
            narrowing,
            members,
            null_keys,
            nothing: rows == 0,
            matched,
            types: spec.types.clone(),
        })
    }

    /// Whether a kept row has matched.
    #[inline]
    pub fn is_marked(&self, head: u32) -> bool {
        let flag = self.matched.get((head as usize).wrapping_sub(1));
        flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Column `at` for each head; NULL for zero (`misses` says whether there is one).
    pub fn gather(&self, at: usize, heads: &[u32], rows: &[u32], misses: bool) -> Arc<Vector> {
        let logical = self.types.get(at).copied().unwrap_or(LogicalType::Bool);
        let Some(column) = self.columns.get(at).and_then(Option::as_ref).filter(|_| self.rows > 0) else {
            return Arc::new(nulls(logical, heads.len()));
        };
        if self.rows == 1 && !misses && column.validity.is_none() {
            let values = Values::Constant(Box::new(column.as_ref().clone()), heads.len());
            return Arc::new(Vector::new(logical, values));
        }
        let mut taken = match &column.values {
            // A row without a match carries no text along.
            Values::Bytes(_) if misses => {
                column.take(&heads.iter().map(|head| head.wrapping_sub(1)).collect::<Vec<_>>())
            }
            _ => column.take(rows),
        };
        if misses {
            let mut words = vec![0u64; heads.len().div_ceil(64)];
            for (word, heads) in words.iter_mut().zip(heads.chunks(64)) {
                *word = heads.iter().rev().fold(0, |word, &head| (word << 1) | u64::from(head != 0));
            }
            let hit = Bitmap::from_words(words, heads.len());
            taken.validity = Some(match &taken.validity {
                None => hit,
                Some(validity) => both(validity, &hit),
            });
        }
        Arc::new(taken)
    }
}

/// Bits set in both.
fn both(a: &Bitmap, b: &Bitmap) -> Bitmap {
    let words = a.words().iter().zip(b.words()).map(|(a, b)| a & b).collect();
    Bitmap::from_words(words, a.len())
}

/// Takes the last column of each part and puts them end to end.
fn next_column(logical: LogicalType, parts: &mut [Part]) -> Result<Vector> {
    interrupt::check()?;
    let mut column = Vec::with_capacity(parts.len());
    for (_, columns) in parts {
        let part = columns.pop().ok_or(Error::Decline("columns of the kept side"))?;
        column.push(Arc::try_unwrap(part).unwrap_or_else(|shared| shared.as_ref().clone()));
    }
    let mut joined = end_to_end(logical, column)?;
    joined.validity = joined.validity.take().filter(|validity| validity.count_zeros() > 0);
    if let Values::Bytes(views) = &mut joined.values {
        *views = compacted(views)?;
    }
    Ok(joined)
}
