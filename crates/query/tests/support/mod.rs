//! What the tests of this crate share: batches as a source, a host that never interrupts, temporary files in
//! memory. `values` has values one by one, outside of vectors; `evaluator` is the slow reference for
//! expressions.
#![allow(dead_code, unused_imports, clippy::unwrap_used, clippy::panic)]

pub mod evaluator;
mod values;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};
use std::sync::{Arc, Mutex};

use query::*;
use vector::{Dictionary, LogicalType, Values, Vector};

pub use values::{Plain, at, same, value, vector};

/// The same vector as codes, where it can be: distinct values in a dictionary of this id.
pub fn coded(vector: &Vector, id: u64) -> Vector {
    let mut seen: Vec<(String, u32)> = Vec::new();
    let mut codes = Vec::new();
    for row in 0..vector.len() {
        let text = format!("{:?}", value(vector, row));
        match seen.iter().position(|(other, _)| *other == text) {
            Some(at) => codes.push(at as u32),
            None => {
                codes.push(seen.len() as u32);
                seen.push((text, row as u32));
            }
        }
    }
    let mut entries = vector.take(&seen.iter().map(|(_, row)| *row).collect::<Vec<_>>());
    entries.validity = None;
    let dictionary = Arc::new(Dictionary { id, entries });
    Vector {
        logical: vector.logical,
        validity: vector.validity.clone(),
        values: Values::Dictionary { codes, dictionary },
    }
}

/// The same vector as runs.
pub fn runs(vector: &Vector) -> Vector {
    let mut ends: Vec<u32> = Vec::new();
    let mut firsts: Vec<u32> = Vec::new();
    for row in 0..vector.len() {
        let same = row > 0 && format!("{:?}", value(vector, row)) == format!("{:?}", value(vector, row - 1));
        if same {
            *ends.last_mut().unwrap() += 1;
        } else {
            firsts.push(row as u32);
            ends.push(row as u32 + 1);
        }
    }
    Vector {
        logical: vector.logical,
        validity: None,
        values: Values::Runs { ends, values: Box::new(vector.take(&firsts)) },
    }
}

/// Batches, or summaries, one a unit.
pub struct Steps(pub VecDeque<Step>);

impl Steps {
    pub fn batches(batches: &[Batch]) -> Box<dyn Source> {
        Box::new(Self(batches.iter().cloned().map(Step::Batch).collect()))
    }
}

struct One(Option<Step>);

impl Unit for One {
    fn next(&mut self) -> Result<Step> {
        Ok(self.0.take().unwrap_or(Step::Done))
    }
}

impl Source for Steps {
    fn next_unit(&mut self, _host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        Ok(self.0.pop_front().map(|step| Box::new(One(Some(step))) as Box<dyn Unit>))
    }
}

/// Never interrupts.
pub struct Calm;

impl Host for Calm {
    fn check_interrupts(&mut self) -> Result<()> {
        Ok(())
    }
}

type Result<T> = query::Result<T>;

/// Temporary files in memory that count what is written.
#[derive(Default)]
pub struct Memory {
    pub written: Arc<AtomicU64>,
}

struct MemoryFile(Mutex<Vec<u8>>, Arc<AtomicU64>);

impl TempFiles for Memory {
    fn create(&self) -> Result<Box<dyn TempFile>> {
        Ok(Box::new(MemoryFile(Mutex::default(), Arc::clone(&self.written))))
    }
}

impl TempFile for MemoryFile {
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<u64> {
        let file = self.0.get_mut().unwrap();
        self.1.fetch_add(bytes.len() as u64, Atomic::Relaxed);
        let at = file.len() as u64;
        file.extend_from_slice(bytes);
        Ok(at)
    }

    fn read(&mut self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        let file = self.0.get_mut().unwrap();
        let offset = offset as usize;
        let bytes = file.get(offset..offset + out.len()).ok_or(std::io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }
}

/// Settings with room for everything.
pub fn roomy() -> Settings {
    Settings { memory: 1 << 30, threads: 1, temp_files: None }
}

/// The rows of a plan over one source.
pub fn run(plan: &Plan, source: Box<dyn Source>, settings: Settings) -> Result<Vec<Vec<Plain>>> {
    let mut execution = Execution::new(plan, vec![source], settings)?;
    let types = execution.types().to_vec();
    let mut rows = Vec::new();
    while let Some(batch) = execution.next(&mut Calm)? {
        assert_eq!(batch.columns.iter().map(|c| c.logical).collect::<Vec<_>>(), types);
        assert!(batch.columns.iter().all(|column| column.len() == batch.rows));
        rows.extend(rows_of(&[batch]));
    }
    Ok(rows)
}

/// A scan of source 0.
pub fn scan(types: &[LogicalType]) -> Box<Plan> {
    Box::new(Plan::Scan { source: 0, types: types.to_vec() })
}

/// An aggregate without extras.
pub fn aggregate(function: AggregateFunction, argument: Option<usize>, result: LogicalType) -> Aggregate {
    Aggregate {
        function,
        arguments: argument.map(Expression::Column).into_iter().collect(),
        distinct: false,
        filter: None,
        order_by: Vec::new(),
        order: TextOrder::Bytes,
        result,
        host: None,
    }
}

/// Rows as text, sorted.
pub fn shown(rows: &[Vec<Plain>]) -> Vec<String> {
    let mut shown: Vec<String> =
        rows.iter().map(|row| row.iter().map(Plain::show).collect::<Vec<_>>().join("|")).collect();
    shown.sort();
    shown
}

/// The rows of batches, in their order.
pub fn rows_of(batches: &[Batch]) -> Vec<Vec<Plain>> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.rows {
            rows.push(batch.columns.iter().map(|column| value(column, row)).collect());
        }
    }
    rows
}

/// Settings with this much memory, and what is written to temporary files.
pub fn cramped(memory: usize) -> (Settings, Arc<AtomicU64>) {
    let files = Memory::default();
    let written = Arc::clone(&files.written);
    (Settings { memory, threads: 1, temp_files: Some(Arc::new(files)) }, written)
}

/// All rows that a source gives.
pub fn drain(mut source: Box<dyn Source>) -> Vec<Vec<Plain>> {
    let mut rows = Vec::new();
    while let Some(mut unit) = source.next_unit(&mut Calm).unwrap() {
        while let Step::Batch(batch) = unit.next().unwrap() {
            rows.extend(rows_of(&[batch]));
        }
    }
    rows
}
