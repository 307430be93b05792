//! Sending batches through transforms.
//!
//! `push` sends one batch through all of them, for a thread that runs a unit into a sink. `PushQueue` is for
//! callers that pull rows: rows that a push gives wait in it until the caller asks.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Transform;
use crate::{Batch, Result};

/// Sends a batch through transforms into `end`. An empty batch goes there at once: a transform that works
/// long without rows emits it, so that the host can check whether to go on.
pub fn push(
    transforms: &mut [Box<dyn Transform>],
    batch: Batch,
    end: &mut dyn FnMut(Batch) -> Result<()>,
) -> Result<()> {
    if batch.rows == 0 {
        return end(batch);
    }
    match transforms.split_first_mut() {
        Some((first, rest)) => first.push(batch, &mut |batch| push(rest, batch, end)),
        None => end(batch),
    }
}

/// Rows pushed at once to begin with, and at most.
const FIRST: usize = 64;
const MOST: usize = 16 * crate::BATCH_ROWS;
/// Batches that one push should not give more of.
const MANY: usize = 16;
/// Time that one push should not take more of.
const LONG: Duration = Duration::from_millis(20);

/// Transforms, and the rows that they gave and the caller has not taken yet. A batch is pushed in pieces. The
/// pieces are small where each row becomes many (a join), so that few rows wait.
pub struct PushQueue {
    transforms: Vec<Box<dyn Transform>>,
    /// A batch, where it goes on and which transform it goes to.
    pending: Option<(Batch, usize, usize)>,
    piece: usize,
    ready: VecDeque<Batch>,
}

impl PushQueue {
    /// A queue behind these transforms.
    pub const fn new(transforms: Vec<Box<dyn Transform>>) -> Self {
        Self { transforms, pending: None, piece: FIRST, ready: VecDeque::new() }
    }

    /// Puts in a batch, for transform `first` and those after it. Only when `next` has given None.
    pub fn put(&mut self, batch: Batch, first: usize) {
        self.pending = Some((batch, 0, first));
    }

    /// The next rows; None when another batch is needed. `check` is called now and then. After a long time
    /// without a row an empty batch comes, so that the caller's own caller can check whether to go on.
    pub fn next(&mut self, check: &mut dyn FnMut() -> Result<()>) -> Result<Option<Batch>> {
        let called = Instant::now();
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            let Some((batch, at, first)) = self.pending.take() else { return Ok(None) };
            check()?;
            let piece = batch.slice(at, self.piece);
            if at + piece.rows < batch.rows {
                self.pending = Some((batch, at + piece.rows, first));
            }
            let started = Instant::now();
            let ready = &mut self.ready;
            push(self.transforms.get_mut(first..).unwrap_or_default(), piece, &mut |batch| {
                if batch.rows > 0 {
                    ready.push_back(batch);
                }
                check()
            })?;
            let elapsed = started.elapsed();
            let slow = elapsed > LONG;
            // Many quick pieces take long, too.
            let long = called.elapsed() > LONG;
            self.piece = match self.ready.len() {
                _ if slow => (self.piece / 4).max(1),
                0..=2 if elapsed < LONG / 8 => (self.piece * 4).min(MOST),
                0..=MANY => self.piece,
                _ => (self.piece / 4).max(1),
            };
            if long && self.ready.is_empty() {
                return Ok(Some(Batch::default()));
            }
        }
    }
}
