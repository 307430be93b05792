//! The rows of a columnar table, chunk by chunk.
//!
//! The plan node is one of ours that serves vectors (`scan::vectors`); this file makes it a source of the
//! running plan, and counts its time and rows for EXPLAIN.

use std::sync::Arc;

use pgrx::pg_sys;
use query::{
    DerivedColumn, Edge, Host, Members, Ranking, Result, RowFilter, Source, Step, SummaryNeed, Unit,
};
use stripe::scan::DeriveColumn;
use vector::Predicate;

use crate::planner::plan;
use crate::scan::vectors::{self, Piece, VectorScan};
use crate::vectorised::derive::Derived;
use crate::vectorised::documents::Ask;

/// A scan that serves vectors.
pub struct Columnar {
    state: *mut pg_sys::PlanState,
    scan: *mut VectorScan,
}

impl Columnar {
    /// These attributes of the table that an initialised node scans.
    ///
    /// # Safety
    /// As `source::open`.
    pub unsafe fn open(
        state: *mut pg_sys::PlanState,
        attributes: &[usize],
        derived: &Derived,
        threads: bool,
    ) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe {
            let scan = vectors::scan_of(state).ok_or(query::Error::Decline("not a columnar scan"))?;
            let made = |made: &DerivedColumn<Ask>| {
                (made.column, Arc::clone(&made.function) as Arc<dyn DeriveColumn>)
            };
            let made = derived.columns.iter().map(made).collect();
            if !(*scan).request(attributes, &derived.unread, made, threads) {
                return Err(query::Error::Decline("a column that the scan does not read"));
            }
            Ok(Self { state, scan })
        }
    }

    /// Whether EXPLAIN's counts must not depend on values of a join or a sort in rows that the user may not
    /// see.
    unsafe fn hides_rows(&self) -> bool {
        // SAFETY: the node's plan is a scan node of ours.
        unsafe { plan::hides_rows((*(*self.scan).table().custom).ss.ps.plan.cast()) }
    }
}

impl Source for Columnar {
    fn next_unit(&mut self, _host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        // SAFETY: the node is initialised and this is the main thread; instrumentation is null or the node's
        // own.
        let piece = unsafe {
            let instrument = (*self.state).instrument;
            if !instrument.is_null() {
                pg_sys::InstrStartNode(instrument);
            }
            let piece = (*self.scan).next_piece();
            if !instrument.is_null() {
                let rows = match &piece {
                    Ok(Some(Piece::Rows(batch))) => batch.rows as f64,
                    Ok(Some(Piece::Known(summary))) => summary.rows as f64,
                    // Counted when they have been worked on.
                    Ok(Some(Piece::Unit(_)) | None) | Err(_) => 0.0,
                };
                pg_sys::InstrStopNode(instrument, rows);
            }
            piece?
        };
        Ok(piece.map(|piece| match piece {
            Piece::Rows(batch) => Box::new(Some(batch)) as Box<dyn Unit>,
            Piece::Known(summary) => Box::new(Known(Some(summary))),
            Piece::Unit(unit) => Box::new(unit),
        }))
    }

    fn narrow(&mut self, predicate: Predicate) {
        // SAFETY: as above; the scan has not started.
        unsafe {
            if !self.hides_rows() {
                (*self.scan).narrow(predicate);
            }
        }
    }

    fn narrow_members(&mut self, column: usize, members: &Arc<dyn Members>) -> bool {
        // SAFETY: as above.
        unsafe { !self.hides_rows() && (*self.scan).narrow_members(column, members) }
    }

    fn rank(&mut self, column: usize, bound: &Arc<dyn Ranking>) -> bool {
        // SAFETY: as above.
        unsafe { !self.hides_rows() && (*self.scan).rank(column, bound) }
    }

    fn edge(&mut self) -> Result<Option<Edge>> {
        // SAFETY: as `next_unit`.
        unsafe {
            let instrument = (*self.state).instrument;
            if !instrument.is_null() {
                pg_sys::InstrStartNode(instrument);
            }
            let edge = (*self.scan).edge();
            if !instrument.is_null() {
                pg_sys::InstrStopNode(instrument, 0.0);
            }
            Ok(edge)
        }
    }

    fn filter(&mut self, condition: &Arc<dyn RowFilter>) -> bool {
        // SAFETY: as above.
        unsafe { (*self.scan).filter(condition) }
    }

    fn allow_summaries(&mut self, columns: &[SummaryNeed]) {
        // SAFETY: as above.
        unsafe { (*self.scan).allow_summaries(columns) };
    }
}

/// Rows that are known without looking at them.
struct Known(Option<query::Summary>);

impl Unit for Known {
    fn next(&mut self) -> Result<Step> {
        Ok(self.0.take().map_or(Step::Done, Step::Summary))
    }
}
