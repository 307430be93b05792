//! Joins whose kept side is larger than the memory they may use. Both sides go to files by the hash of their
//! keys, then each pair of files is joined by itself.
//!
//! `probe` hands over the left rows, `Join::rest` fetches the join's rows when all were seen. A pair of files
//! whose kept rows are still too many is spread again by other bits of the hash. If all its rows stay
//! together, they have one key and no spreading helps. They are then joined in memory, however much that
//! takes.

use std::sync::{Arc, Mutex};

use vector::Vector;

use super::Shared;
use super::build::{BuildSink, Built, POISONED, Part, bytes};
use super::probe::Probe;
use crate::pipeline::PushQueue;
use crate::row_container::{BatchFile, Partitions};
use crate::{Batch, Emit, Error, JoinKind, Result, Transform};

/// Past this level the hash has no bits left.
const DEEPEST: u32 = 12;

/// The left rows in files.
#[derive(Default)]
pub struct Spilled(Mutex<Option<Partitions>>);

/// The state of joining pair by pair. The join alone owns it, and not the data that its threads share. This
/// state holds the shared data; if that held it in turn, neither it nor the files would ever be dropped.
#[derive(Default)]
pub struct Joining(Mutex<Option<State>>);

/// Two files to join.
struct Pair {
    left: Option<BatchFile>,
    right: Option<BatchFile>,
    level: u32,
}

struct State {
    pairs: Vec<Pair>,
    current: Option<Current>,
}

/// The pair that is being joined.
struct Current {
    left: Option<BatchFile>,
    built: Arc<Built>,
    queue: PushQueue,
    /// The next kept row to look at for one without a match.
    rest: usize,
}

impl Spilled {
    /// Takes left rows, their needed columns and keys.
    pub fn write(&self, shared: &Shared, batch: &Batch, keys: Vec<Arc<Vector>>) -> Result<()> {
        let files = shared.sink.spec().temp_files.as_ref().ok_or(Error::Decline("no temporary files"))?;
        let needed = batch.columns.iter().enumerate().filter(|(at, _)| shared.needs(*at));
        let mut columns: Vec<_> = needed.map(|(_, column)| Arc::clone(column)).collect();
        columns.extend(keys.iter().map(Arc::clone));
        let mut left = self.0.lock().map_err(|_| POISONED)?;
        left.get_or_insert_with(|| Partitions::new(0)).write(&keys, &columns, batch.rows, files)
    }
}

impl Joining {
    /// The next rows of the join; an empty batch now and then.
    pub fn next(&self, shared: &Arc<Shared>) -> Result<Option<Batch>> {
        let mut state = self.0.lock().map_err(|_| POISONED)?;
        let state = match &mut *state {
            Some(state) => state,
            None => {
                let left = shared.spilled.0.lock().map_err(|_| POISONED)?.take();
                let left = left.map_or_else(Vec::new, Partitions::into_slots);
                let pairs = pairs(left, shared.sink.take_files()?, 1);
                state.insert(State { pairs, current: None })
            }
        };
        if let Some(current) = &mut state.current {
            if let Some(batch) = current.next(shared)? {
                return Ok(Some(batch));
            }
            state.current = None;
        }
        let Some(pair) = state.pairs.pop() else { return Ok(None) };
        state.begin(shared, pair)?;
        Ok(Some(Batch::default()))
    }
}

fn pairs(left: Vec<Option<BatchFile>>, right: Vec<Option<BatchFile>>, level: u32) -> Vec<Pair> {
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    let mut pairs = Vec::new();
    loop {
        match (left.next(), right.next()) {
            (None, None) => return pairs,
            (left, right) => {
                let pair = Pair { left: left.flatten(), right: right.flatten(), level };
                if pair.left.is_some() || pair.right.is_some() {
                    pairs.push(pair);
                }
            }
        }
    }
}

impl State {
    /// Makes a pair the current one, or spreads it further.
    fn begin(&mut self, shared: &Arc<Shared>, pair: Pair) -> Result<()> {
        let Pair { left, mut right, level } = pair;
        // Without rows of this side a pair gives none.
        let needs_right = matches!(
            shared.kind,
            JoinKind::Inner | JoinKind::Semi | JoinKind::RightSemi | JoinKind::RightAnti
        );
        let needs_left = !matches!(shared.kind, JoinKind::Right | JoinKind::Full | JoinKind::RightAnti);
        if needs_right && right.is_none() || needs_left && left.is_none() {
            return Ok(());
        }
        let spec = shared.sink.spec();
        let mut parts: Vec<Part> = Vec::new();
        let mut held = 0;
        while let Some(file) = &mut right
            && let Some(batch) = file.read()?
        {
            parts.push((batch.rows, batch.columns));
            held += parts.last().map_or(0, bytes);
            if held > spec.memory && level < DEEPEST {
                let rows = file.rows();
                let right = spread(&shared.sink, parts, file, spec.keys.len(), level)?;
                // All rows in one place again: more levels would not change that.
                let stuck = right.iter().flatten().any(|child| child.rows() == rows);
                let left = match left {
                    Some(mut file) => spread(&shared.sink, Vec::new(), &mut file, spec.keys.len(), level)?,
                    None => Vec::new(),
                };
                self.pairs.extend(pairs(left, right, if stuck { DEEPEST } else { level + 1 }));
                return Ok(());
            }
        }
        let built = Arc::new(shared.sink.built_of(parts)?);
        let transform =
            PairProbe { shared: Arc::clone(shared), probe: Probe::new(shared), built: Arc::clone(&built) };
        let queue = PushQueue::new(vec![Box::new(transform)]);
        self.current = Some(Current { left, built, queue, rest: 0 });
        Ok(())
    }
}

/// Spreads the rows that were read from a file and the rest of the file.
fn spread(
    sink: &BuildSink,
    read: Vec<Part>,
    file: &mut BatchFile,
    keys: usize,
    level: u32,
) -> Result<Vec<Option<BatchFile>>> {
    let files = sink.spec().temp_files.as_ref().ok_or(Error::Decline("no temporary files"))?;
    let mut partitions = Partitions::new(level);
    let mut write = |(rows, columns): Part| {
        let keys = columns.get(columns.len().saturating_sub(keys)..).unwrap_or_default();
        partitions.write(keys, &columns, rows, files)
    };
    read.into_iter().try_for_each(&mut write)?;
    while let Some(batch) = file.read()? {
        write((batch.rows, batch.columns))?;
    }
    Ok(partitions.into_slots())
}

impl Current {
    fn next(&mut self, shared: &Shared) -> Result<Option<Batch>> {
        if let Some(batch) = self.queue.next(&mut || Ok(()))? {
            return Ok(Some(batch));
        }
        if let Some(file) = &mut self.left {
            match file.read()? {
                Some(batch) => {
                    self.queue.put(batch, 0);
                    return Ok(Some(Batch::default()));
                }
                None => self.left = None,
            }
        }
        let (batch, next) = shared.kept_rows(self.rest, &self.built);
        self.rest = next;
        Ok(batch)
    }
}

/// Probes the table of a pair with left rows from a file.
struct PairProbe {
    shared: Arc<Shared>,
    probe: Probe,
    built: Arc<Built>,
}

impl Transform for PairProbe {
    fn push(&mut self, batch: Batch, emit: &mut Emit<'_>) -> Result<()> {
        let rows = batch.rows;
        let mut read = batch.columns.into_iter();
        let columns = self.shared.types.iter().take(self.shared.width).enumerate();
        let columns = columns.map(|(at, &logical)| match self.shared.needs(at) {
            true => read.next().ok_or(Error::Decline("columns of a spilled join")),
            false => Ok(self.shared.absent(logical, rows)),
        });
        let left = Batch::new(rows, columns.collect::<Result<Vec<_>>>()?);
        let keys: Vec<Arc<Vector>> = read.collect();
        self.probe.probe(&left, &keys, &self.built, emit)
    }
}
