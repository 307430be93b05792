//! The probing side of a join: one batch of the left input at a time.
//!
//! Each thread has a `Probe`. Heads are looked up for the whole batch. If each key has at most one kept row
//! and there is no further condition, the heads give the answer at once. Columns of the left side are then
//! passed on unchanged when every row matches. Otherwise pairs of rows are listed, up to `PAIRS` at a time.
//! The condition is evaluated on the pairs, and the pairs that survive decide. Invariant: a pair is (position
//! in the batch, head), head 0 standing for the row of NULLs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use vector::{Bitmap, LogicalType, Vector};

use super::Shared;
use super::build::Built;
use super::keys::{Form, KeyColumn};
use super::table::Scratch;
use crate::row_container::nulls;
use crate::{Batch, Emit, Evaluator, JoinKind, Result, Transform};

/// Pairs of one emitted batch.
const PAIRS: usize = 2 * crate::BATCH_ROWS;
/// Kept rows that are looked at before the host is asked whether to go on.
const LOOKED_AT: usize = 16 * PAIRS;

/// One thread's part.
pub struct Probe {
    shared: Arc<Shared>,
    keys: Vec<Evaluator>,
    condition: Option<Evaluator>,
    scratch: Scratch,
    heads: Vec<u32>,
}

impl Probe {
    /// A thread's part of this join.
    pub fn new(shared: &Arc<Shared>) -> Self {
        Self {
            keys: shared.keys.iter().map(Evaluator::new).collect(),
            condition: shared.condition.as_ref().map(Evaluator::new),
            shared: Arc::clone(shared),
            scratch: Scratch::default(),
            heads: Vec::new(),
        }
    }
}

impl Transform for Probe {
    fn push(&mut self, batch: Batch, emit: &mut Emit<'_>) -> Result<()> {
        let keys = self.keys.iter_mut().map(|key| key.evaluate(&batch)).collect::<Result<Vec<_>>>()?;
        let shared = Arc::clone(&self.shared);
        if shared.sink.has_spilled() {
            return shared.spilled.write(&shared, &batch, keys);
        }
        self.probe(&batch, &keys, shared.sink.built()?, emit)
    }
}

impl Probe {
    /// The join's rows for a batch with these keys.
    pub fn probe(
        &mut self,
        batch: &Batch,
        keys: &[Arc<Vector>],
        built: &Built,
        emit: &mut Emit<'_>,
    ) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let found: Vec<&Vector> = keys.iter().filter(|_| shared.keyed).map(AsRef::as_ref).collect();
        if shared.kind == JoinKind::NullAwareAnti {
            if built.nothing {
                return emit(batch.clone());
            }
            if let Some(classes) = &built.classes {
                built.table.find(&found, batch.rows, &mut self.scratch, &mut self.heads)?;
                let left = rows_where(batch.rows, |row| self.heads.get(row) == Some(&0));
                return shared.emit_kept(batch, &classes.impossible(keys, left)?, emit);
            }
            if shared.keyed {
                if built.null_keys {
                    return Ok(());
                }
                built.table.find(&found, batch.rows, &mut self.scratch, &mut self.heads)?;
                let kept = rows_where(batch.rows, |row| {
                    self.heads.get(row) == Some(&0) && keys.iter().all(|key| key.is_valid(row))
                });
                return shared.emit_kept(batch, &kept, emit);
            }
        }
        built.table.find(&found, batch.rows, &mut self.scratch, &mut self.heads)?;
        let paired = self.condition.is_some() || !shared.keyed && !shared.keys.is_empty();
        if paired {
            return self.push_conditional(batch, keys, built, emit);
        }
        if !shared.kind.gives_left() {
            mark_all(built, &self.heads);
            return Ok(());
        }
        let heads = &self.heads;
        let hit =
            |wanted: bool| rows_where(batch.rows, |row| heads.get(row).is_some_and(|&h| (h != 0) == wanted));
        match shared.kind {
            JoinKind::Semi => shared.emit_kept(batch, &hit(true), emit),
            JoinKind::Anti | JoinKind::NullAwareAnti => shared.emit_kept(batch, &hit(false), emit),
            _ => {
                let outer = matches!(shared.kind, JoinKind::Left | JoinKind::Full);
                if built.table.has_duplicates() {
                    let mut pairs = Pairs::new(outer);
                    while pairs.fill(heads, built) {
                        mark(built, &pairs.heads);
                        emit(shared.output(batch, Some(&pairs.rows), &pairs.heads, built))?;
                    }
                    return Ok(());
                }
                mark(built, heads);
                let hits = heads.iter().filter(|&&head| head != 0).count();
                if outer || hits == batch.rows {
                    return emit(shared.output(batch, None, heads, built));
                }
                if hits == 0 {
                    return Ok(());
                }
                let rows = hit(true);
                let heads: Vec<u32> = heads.iter().copied().filter(|&head| head != 0).collect();
                emit(shared.output(batch, Some(&rows), &heads, built))
            }
        }
    }

    /// Pairs whose keys are equal are listed and put to the condition.
    fn push_conditional(
        &mut self,
        batch: &Batch,
        keys: &[Arc<Vector>],
        built: &Built,
        emit: &mut Emit<'_>,
    ) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let emits_pairs =
            matches!(shared.kind, JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full);
        let possible = if shared.keyed { None } else { Possible::new(keys, built)? };
        let decides_left = shared.kind.gives_left() && shared.kind != JoinKind::Inner;
        let mut matched = Bitmap::filled(if decides_left { batch.rows } else { 0 }, false);
        let mut pairs = Pairs { once: !shared.kind.gives_left(), ..Pairs::new(false) };
        while pairs.fill(&self.heads, built) {
            if let Some(possible) = &possible {
                pairs.retain(|row, head| possible.equal(row as usize, head as usize - 1));
            }
            if let Some(condition) = &mut self.condition
                && !pairs.rows.is_empty()
            {
                let selected = condition.select(&shared.candidates(batch, &pairs, built))?;
                if let Some(selected) = selected {
                    pairs.keep(&selected);
                }
            }
            if decides_left {
                pairs.rows.iter().for_each(|&row| matched.set(row as usize, true));
            }
            mark(built, &pairs.heads);
            // An empty batch, too: it gives the host a chance to end a query whose pairs never match.
            emit(match emits_pairs && !pairs.rows.is_empty() {
                true => shared.output(batch, Some(&pairs.rows), &pairs.heads, built),
                false => Batch::default(),
            })?;
        }
        match shared.kind {
            JoinKind::Inner | JoinKind::Right | JoinKind::RightSemi | JoinKind::RightAnti => Ok(()),
            JoinKind::Semi => shared.emit_kept(batch, &rows_where(batch.rows, |row| matched.get(row)), emit),
            JoinKind::Anti | JoinKind::NullAwareAnti => {
                shared.emit_kept(batch, &rows_where(batch.rows, |row| !matched.get(row)), emit)
            }
            JoinKind::Left | JoinKind::Full => {
                let rows = rows_where(batch.rows, |row| !matched.get(row));
                if rows.is_empty() {
                    return Ok(());
                }
                emit(shared.output(batch, Some(&rows), &vec![0; rows.len()], built))
            }
        }
    }
}

/// Rows for which this holds, ascending.
fn rows_where(rows: usize, holds: impl Fn(usize) -> bool) -> Vec<u32> {
    let mut kept = Vec::with_capacity(rows);
    kept.extend((0u32..).zip(0..rows).filter(|&(_, row)| holds(row)).map(|(row, _)| row));
    kept
}

/// Marks all kept rows of the keys that were found. The first row of a key is marked last, so that it stands
/// for the others.
fn mark_all(built: &Built, heads: &[u32]) {
    for &head in heads {
        if head == 0 || built.is_marked(head) {
            continue;
        }
        let mut other = built.table.next(head);
        while other != 0 {
            mark(built, &[other]);
            other = built.table.next(other);
        }
        mark(built, &[head]);
    }
}

/// Remembers that these kept rows matched, if the join needs it.
fn mark(built: &Built, heads: &[u32]) {
    if built.matched.is_empty() {
        return;
    }
    for &head in heads {
        if let Some(flag) = built.matched.get((head as usize).wrapping_sub(1))
            && !flag.load(Ordering::Relaxed)
        {
            flag.store(true, Ordering::Relaxed);
        }
    }
}

/// Pairs of rows, listed piece by piece.
struct Pairs {
    rows: Vec<u32>,
    heads: Vec<u32>,
    /// Rows without a match are paired with the row of NULLs.
    outer: bool,
    /// Kept rows that matched before are left out: one match is enough.
    once: bool,
    at: usize,
    /// The head to go on with in row `at`; None at its start.
    within: Option<u32>,
}

impl Pairs {
    const fn new(outer: bool) -> Self {
        Self { rows: Vec::new(), heads: Vec::new(), outer, once: false, at: 0, within: None }
    }

    /// Lists the next pairs, none now and then; false when there are no more.
    fn fill(&mut self, heads: &[u32], built: &Built) -> bool {
        self.rows.clear();
        self.heads.clear();
        let mut looked_at = 0;
        while let Some(&first) = heads.get(self.at) {
            let row = u32::try_from(self.at).unwrap_or(u32::MAX);
            let mut head = self.within.take().unwrap_or(first);
            if head == 0 && self.outer {
                self.rows.push(row);
                self.heads.push(0);
            }
            while head != 0 {
                if self.rows.len() >= PAIRS || looked_at >= LOOKED_AT {
                    self.within = Some(head);
                    return true;
                }
                if !(self.once && built.is_marked(head)) {
                    self.rows.push(row);
                    self.heads.push(head);
                }
                head = built.table.next(head);
                looked_at += 1;
            }
            self.at += 1;
            if self.rows.len() >= PAIRS {
                return true;
            }
        }
        !self.rows.is_empty()
    }

    fn keep(&mut self, selected: &[u32]) {
        let pick = |values: &[u32]| {
            selected.iter().map(|&at| values.get(at as usize).copied().unwrap_or(0)).collect::<Vec<_>>()
        };
        (self.rows, self.heads) = (pick(&self.rows), pick(&self.heads));
    }

    fn retain(&mut self, keep: impl Fn(u32, u32) -> bool) {
        let selected = (0u32..).zip(self.rows.iter().zip(&self.heads));
        let selected: Vec<u32> =
            selected.filter(|(_, (row, head))| keep(**row, **head)).map(|(at, _)| at).collect();
        self.keep(&selected);
    }
}

/// Compares keys the way NOT IN does: a NULL may be equal.
struct Possible {
    keys: Vec<(KeyColumn, KeyColumn)>,
}

impl Possible {
    fn new(keys: &[Arc<Vector>], built: &Built) -> Result<Option<Self>> {
        if keys.is_empty() {
            return Ok(None);
        }
        let pairs = keys.iter().zip(&built.keys).map(|(key, kept)| {
            let form = Form::of(kept);
            Ok((KeyColumn::new(key, form)?, KeyColumn::new(kept, form)?))
        });
        Ok(Some(Self { keys: pairs.collect::<Result<Vec<_>>>()? }))
    }

    fn equal(&self, row: usize, other: usize) -> bool {
        self.keys.iter().all(|(key, kept)| {
            !key.is_valid(row)
                || !kept.is_valid(other)
                || (key.can_match(row) && key.equals(row, kept, other))
        })
    }
}

impl Shared {
    /// Emits these rows of the batch, the left side's columns only.
    fn emit_kept(&self, batch: &Batch, kept: &[u32], emit: &mut Emit<'_>) -> Result<()> {
        if kept.is_empty() {
            return Ok(());
        }
        if kept.len() == batch.rows {
            return emit(batch.clone());
        }
        let columns = batch.columns.iter().enumerate().map(|(at, column)| match self.wanted.get(at) {
            Some(true) => Arc::new(column.take(kept)),
            _ => self.absent(column.logical, kept.len()),
        });
        emit(Batch::new(kept.len(), columns.collect()))
    }

    /// The join's columns for pairs; all rows of the batch in order without `rows`.
    pub fn output(&self, batch: &Batch, rows: Option<&[u32]>, heads: &[u32], built: &Built) -> Batch {
        self.gather(batch, rows, heads, built, &self.wanted)
    }

    fn candidates(&self, batch: &Batch, pairs: &Pairs, built: &Built) -> Batch {
        self.gather(batch, Some(&pairs.rows), &pairs.heads, built, &self.condition_columns)
    }

    fn gather(
        &self,
        batch: &Batch,
        rows: Option<&[u32]>,
        heads: &[u32],
        built: &Built,
        wanted: &[bool],
    ) -> Batch {
        let misses = heads.contains(&0);
        let positions: Vec<u32> = heads.iter().map(|head| head.saturating_sub(1)).collect();
        let left = self.width;
        let mut columns = Vec::with_capacity(self.types.len());
        for (at, &logical) in self.types.iter().enumerate() {
            columns.push(match (wanted.get(at), batch.columns.get(at), rows) {
                (Some(true), Some(column), None) => Arc::clone(column),
                (Some(true), Some(column), Some(rows)) => Arc::new(column.take(rows)),
                (Some(true), None, _) => built.gather(at - left, heads, &positions, misses),
                _ => self.absent(logical, heads.len()),
            });
        }
        Batch::new(heads.len(), columns)
    }

    /// Whether a column is read above the join or by its condition.
    pub fn needs(&self, column: usize) -> bool {
        [&self.wanted, &self.condition_columns].into_iter().any(|flags| flags.get(column) == Some(&true))
    }

    /// Stands for a column that no operator reads.
    pub fn absent(&self, logical: LogicalType, rows: usize) -> Arc<Vector> {
        Arc::new(nulls(logical, rows))
    }

    /// Kept rows that come out when all left ones were seen, from `start` on, at most a batch of them, and
    /// where to go on.
    pub fn kept_rows(&self, start: usize, built: &Built) -> (Option<Batch>, usize) {
        let wanted = self.kind == JoinKind::RightSemi;
        let mut heads: Vec<u32> = Vec::new();
        let mut at = start;
        while heads.len() < crate::BATCH_ROWS
            && let Some(flag) = built.matched.get(at)
        {
            at += 1;
            if flag.load(Ordering::Relaxed) == wanted {
                heads.push(u32::try_from(at).unwrap_or(0));
            }
        }
        if heads.is_empty() {
            return (None, at);
        }
        let columns =
            self.types.iter().take(self.width).map(|&logical| Arc::new(nulls(logical, heads.len())));
        let absent = Batch::new(heads.len(), columns.collect());
        let mut batch = self.output(&absent, None, &heads, built);
        if !self.kind.gives_left() {
            batch.columns.drain(..self.width);
        }
        (Some(batch), at)
    }
}
