//! Computes the functions of a chunk, on any thread.
//!
//! A step does little, so that the thread that runs the unit can often check whether to go on. A step puts
//! the arguments together, prepares one function, or computes the results of one batch.

use std::collections::VecDeque;
use std::sync::Arc;

use vector::LogicalType;

use super::frames::Frames;
use super::gather::{Chunk, Passed};
use super::input::Input;
use super::places::Places;
use super::{Column, Compute, MISTYPED, Spec};
use crate::expression::nulls;
use crate::operators::aggregate::results::{decimals, with_specials};
use crate::row_container::BatchQueue;
use crate::{Batch, Error, Result, Step, Unit};

/// A chunk that is computed.
pub struct WindowUnit {
    passed: Arc<Passed>,
    /// The chunk as it came, and the arguments' types, until a step needs them.
    chunk: Option<(Chunk, Arc<[LogicalType]>)>,
    input: Option<Input>,
    passing: Option<BatchQueue>,
    computers: Vec<Box<dyn Compute>>,
    /// Functions that are prepared.
    prepared: usize,
    frames: Option<Frames>,
    frames_ready: bool,
    places: Places,
    ready: VecDeque<Batch>,
}

impl WindowUnit {
    /// A unit for a chunk.
    pub fn new(
        chunk: Chunk,
        spec: &Arc<Spec>,
        passed: &Arc<Passed>,
        types: &Arc<[LogicalType]>,
    ) -> Result<Self> {
        let frames = if spec.in_frame { Some(Frames::new(spec)?) } else { None };
        Ok(Self {
            passed: Arc::clone(passed),
            chunk: Some((chunk, Arc::clone(types))),
            input: None,
            passing: None,
            computers: spec.computers()?,
            prepared: 0,
            frames,
            frames_ready: false,
            places: Places::default(),
            ready: VecDeque::new(),
        })
    }

    /// One step before the first result; false when there is none left.
    fn prepare(&mut self) -> Result<bool> {
        if let Some((mut chunk, types)) = self.chunk.take() {
            chunk.partitions.push(chunk.rows as u32);
            self.input = Some(Input::new(chunk.partitions, chunk.peers, chunk.arguments, &types)?);
            self.passing = Some(chunk.passing);
            return Ok(true);
        }
        let input = self.input.as_ref().ok_or(MISTYPED)?;
        if !self.frames_ready {
            if let Some(frames) = &mut self.frames {
                frames.prepare(input)?;
            }
            self.frames_ready = true;
            return Ok(true);
        }
        let Some(computer) = self.computers.get_mut(self.prepared) else { return Ok(false) };
        computer.prepare(input)?;
        self.prepared += 1;
        Ok(true)
    }

    /// The results for a batch.
    fn compute(&mut self, batch: &Batch) -> Result<()> {
        let input = self.input.as_ref().ok_or(MISTYPED)?;
        self.places.next(input, batch.rows, self.frames.as_mut())?;
        let mut passing = batch.columns.iter();
        let mut columns = Vec::with_capacity(self.passed.types.len());
        for (&logical, &wanted) in self.passed.types.iter().zip(&self.passed.wanted) {
            columns.push(match wanted {
                true => Arc::clone(passing.next().ok_or(Error::Decline("column outside its input"))?),
                false => Arc::new(nulls(logical, batch.rows)),
            });
        }
        let passed = Batch::new(batch.rows, columns);
        let results = self.computers.iter_mut().map(|computer| computer.compute(input, &self.places));
        let results = results.collect::<Result<Vec<_>>>()?;
        // Averages of very different magnitude may have no scale in common: fewer at a time then.
        let mut at = 0;
        let mut rows = batch.rows;
        while at < batch.rows {
            let mut piece = passed.slice(at, rows);
            let made = results.iter().try_for_each(|result| {
                let column = match result {
                    Column::Vector(vector) if rows == batch.rows => vector.clone(),
                    Column::Vector(vector) => vector.slice(at, rows),
                    Column::Decimals(values, specials) => {
                        let here = specials.iter().filter(|(row, _)| (at..at + rows).contains(row));
                        let here = here.map(|&(row, special)| (row - at, special));
                        with_specials(decimals(values.get(at..at + rows).unwrap_or_default())?, here)
                    }
                };
                piece.columns.push(Arc::new(column));
                Ok(())
            });
            match made {
                Err(Error::Decline(_)) if rows > 1 => rows = rows.div_ceil(4),
                made => {
                    made?;
                    self.ready.push_back(piece);
                    at += rows;
                    rows = rows.min(batch.rows - at);
                }
            }
        }
        Ok(())
    }
}

impl Unit for WindowUnit {
    fn next(&mut self) -> Result<Step> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Step::Batch(batch));
            }
            if self.prepare()? {
                // If this takes long, the caller checks in between whether to go on.
                if self.input.as_ref().is_some_and(|input| input.rows > LONG) {
                    return Ok(Step::Batch(Batch::default()));
                }
                continue;
            }
            match self.passing.as_mut().map(BatchQueue::read).transpose()?.flatten() {
                Some(batch) => self.compute(&batch)?,
                None => return Ok(Step::Done),
            }
        }
    }
}

/// Rows that take a noticeable time to go through.
const LONG: usize = 1 << 18;
