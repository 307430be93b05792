//! A side of a join as a source that leaves out the rows that the join says it does not need, and a host that
//! never interrupts.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use query::{Batch, Host, Members, Result, Source, Unit};
use vector::{CompareOp, Predicate, Scalar, Values, Vector};

pub struct TestHost;

impl Host for TestHost {
    fn check_interrupts(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Batches, without the rows that a join says it does not need.
pub struct Batches {
    batches: VecDeque<Batch>,
    predicates: Vec<Predicate>,
    members: Vec<(usize, Arc<dyn Members>)>,
    /// Rows that came out.
    pub served: Arc<AtomicUsize>,
}

impl Batches {
    pub fn new(batches: VecDeque<Batch>) -> Box<Self> {
        Box::new(Self { batches, predicates: Vec::new(), members: Vec::new(), served: Arc::default() })
    }
}

impl Source for Batches {
    fn next_unit(&mut self, _host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        let Some(mut batch) = self.batches.pop_front() else { return Ok(None) };
        for (column, members) in &self.members {
            if let Some(rows) = members.select(&batch.columns[*column]) {
                batch = batch.take(&rows);
            }
        }
        for predicate in &self.predicates {
            let rows: Vec<u32> =
                (0..batch.rows as u32).filter(|&row| is_true(predicate, &batch, row)).collect();
            batch = batch.take(&rows);
        }
        self.served.fetch_add(batch.rows, Relaxed);
        Ok(Some(Box::new(Some(batch))))
    }

    fn narrow(&mut self, predicate: Predicate) {
        self.predicates.push(predicate);
    }

    fn narrow_members(&mut self, column: usize, members: &Arc<dyn Members>) -> bool {
        self.members.push((column, Arc::clone(members)));
        true
    }
}

pub fn is_true(predicate: &Predicate, batch: &Batch, row: u32) -> bool {
    let value = |column: usize| scalar(&batch.columns[column].take(&[row]).flatten());
    match predicate {
        Predicate::Always(always) => *always,
        Predicate::And(parts) => parts.iter().all(|part| is_true(part, batch, row)),
        Predicate::In { column, values } => {
            values.iter().any(|other| value(*column).compare(other) == Some(Ordering::Equal))
        }
        Predicate::Compare { column, op, value: bound } => match (op, value(*column).compare(bound)) {
            (CompareOp::GreaterOrEqual, Some(order)) => order.is_ge(),
            (CompareOp::LessOrEqual, Some(order)) => order.is_le(),
            (_, None) => false,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

pub fn scalar(one: &Vector) -> Scalar {
    match &one.values {
        _ if !one.is_valid(0) => Scalar::Null,
        Values::Bool(bits) => Scalar::Bool(bits.get(0)),
        Values::Int32(values) => Scalar::Int(values[0].into()),
        Values::Int64(values) => Scalar::Int(values[0]),
        Values::Float64(values) => Scalar::Float(values[0]),
        Values::Bytes(views) => Scalar::Bytes(views.get(0).into()),
        Values::Fixed(fixed) => Scalar::Bytes(fixed.get(0).into()),
        Values::Numeric(numeric) => Scalar::Numeric { unscaled: numeric.ints.get(0), scale: numeric.scale },
        other => panic!("{other:?}"),
    }
}
