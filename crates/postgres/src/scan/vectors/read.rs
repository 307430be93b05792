//! Rows of a scan as vectors: stripes as pieces of work, then hot rows, a slotful at a time.
//!
//! Stripes come chunk by chunk through the engine's scan. If a sort wants the first rows only, hot rows come
//! first. All hot rows have to be read anyway, and the bound that they give may spare stripes. Invariant: a
//! vector has the logical type that the column's type has now, whatever the stripe says.

use std::sync::Arc;

use pgrx::pg_sys;
use query::{Batch, Edge, Members, Ranking, RowFilter, Summary, SummaryNeed};
use stripe::scan::{BatchLayout, ChunkUnit, DerivedColumns, Located, Tally, VectorPiece, VectorRequest};
use vector::Predicate;

use super::hot_rows::HotRows;
use crate::convert::ColumnWriter;
use crate::host::error;
use crate::scan::explain::Beside;
use crate::scan::table::{Column, TableScan};

/// What comes next.
pub enum Piece {
    /// Rows.
    Rows(Batch),
    /// Rows that are known without looking at them.
    Known(Summary),
    /// A chunk that any thread can turn into rows.
    Unit(ChunkUnit),
}

/// Where the scan stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing looked up yet.
    Start,
    /// Rows come from stripes.
    Cold,
    /// Rows come from heap pages.
    Hot,
    /// No rows left.
    Done,
}

/// A scan that serves vectors.
pub struct VectorScan {
    pub(super) table: TableScan,
    /// What the caller wants.
    pub(super) request: VectorRequest,
    /// Columns made of others.
    pub(super) derived: DerivedColumns,
    /// Known once the scan starts.
    pub(super) layout: Arc<BatchLayout>,
    /// Hot rows that are being taken.
    pub(super) hot_rows: HotRows,
    /// Hot rows that were looked at to know how early rows can come.
    pending: Option<Batch>,
    phase: Phase,
    /// What units on other threads counted, of all starts.
    tally: Arc<Tally>,
}

impl VectorScan {
    /// Reads the plan.
    ///
    /// # Safety
    /// As `TableScan::begin`.
    pub(super) unsafe fn begin(
        custom: *mut pg_sys::CustomScanState,
        estate: *mut pg_sys::EState,
        eflags: i32,
    ) -> Self {
        // SAFETY: the caller's promise.
        let (table, _) = unsafe { TableScan::begin(custom, estate, eflags) };
        Self {
            table,
            request: VectorRequest::default(),
            derived: Vec::new(),
            layout: Arc::default(),
            hot_rows: HotRows::default(),
            pending: None,
            phase: Phase::Start,
            tally: Arc::default(),
        }
    }

    /// Asks for these attributes (zero-based), before the first row. `threads`: chunks may be worked on
    /// elsewhere. Positions of attributes in `unread` may hold anything; `derived` columns are made of
    /// attributes, named by position, and follow them. False: the scan does not read one of them.
    pub fn request(
        &mut self,
        attributes: &[usize],
        unread: &[usize],
        derived: DerivedColumns,
        threads: bool,
    ) -> bool {
        let place = |&wanted: &usize| self.table.columns.iter().position(|column| column.index == wanted);
        let Some(columns) = attributes.iter().map(place).collect::<Option<Vec<usize>>>() else {
            return false;
        };
        let read = |at: usize| {
            let mut places = columns.iter().enumerate();
            places.any(|(place, &column)| column == at && !unread.contains(&place))
        };
        for (at, column) in self.table.columns.iter_mut().enumerate() {
            column.in_rows = read(at);
            column.in_checks = false;
        }
        let made = |(place, derive)| Some((columns.get::<usize>(place).copied()?, derive));
        let Some(derived) = derived.into_iter().map(made).collect() else { return false };
        self.derived = derived;
        self.pending = None;
        self.request = VectorRequest::new(columns, threads);
        true
    }

    /// Summaries are welcome where these things are known.
    pub fn allow_summaries(&mut self, needs: &[SummaryNeed]) {
        self.request.allow_summaries(needs);
    }

    /// Rows whose value in this column of the batch is not among `members` need not come. False: they come.
    pub fn narrow_members(&mut self, column: usize, members: &Arc<dyn Members>) -> bool {
        self.request.narrow_members(column, members)
    }

    /// Rows past what `ranking` wants need not come, and those that can come first are wanted first. False:
    /// it is not asked.
    pub fn rank(&mut self, column: usize, ranking: &Arc<dyn Ranking>) -> bool {
        self.request.rank_by(column, ranking)
    }

    /// Rows for which this is not TRUE do not come. False: they come.
    pub fn filter(&mut self, condition: &Arc<dyn RowFilter>) -> bool {
        self.request.filter(condition)
    }

    /// Rows for which this is not TRUE need not come. Columns are positions in the batch.
    pub fn narrow(&mut self, predicate: Predicate) {
        let table = &self.table;
        self.request.narrow(predicate, &|at| table.columns.get(at).map(|column| table.place(column.index)));
    }

    /// The scan of the table.
    pub const fn table(&self) -> &TableScan {
        &self.table
    }

    /// What EXPLAIN shows beside the table's own counters.
    pub(super) fn beside(&self) -> Beside<'_> {
        Beside { tally: &self.tally, is_ranked: self.request.rank().is_some() }
    }

    /// Rows that units made since this was asked last.
    pub fn take_unit_rows(&self) -> u64 {
        self.tally.take_rows()
    }

    /// The next rows; None at the end.
    ///
    /// # Errors
    /// Those of conditions.
    ///
    /// # Safety
    /// Called under guard, on the main thread, while the node is initialised.
    pub unsafe fn next_piece(&mut self) -> query::Result<Option<Piece>> {
        // SAFETY: the caller's promise.
        unsafe {
            loop {
                if let Some(batch) = self.pending.take() {
                    return Ok(Some(Piece::Rows(self.layout.passing(batch)?)));
                }
                match self.phase {
                    Phase::Start => self.start(),
                    Phase::Cold => {
                        let piece = self.cold_piece();
                        self.table.report_rows_read();
                        match piece? {
                            Some(piece) => return Ok(Some(piece)),
                            None => self.phase = self.after(Phase::Cold),
                        }
                    }
                    Phase::Hot => match self.hot_batch() {
                        Some(batch) => return Ok(Some(Piece::Rows(self.layout.passing(batch)?))),
                        None => self.phase = self.after(Phase::Hot),
                    },
                    Phase::Done => return Ok(None),
                }
            }
        }
    }

    /// Begins, or begins again.
    unsafe fn start(&mut self) {
        let (derived, members) = (self.derived.clone(), self.request.members().clone());
        // SAFETY: the caller's promise, that of `next_piece`.
        unsafe { self.table.start(self.request.narrowing(), derived, members, std::ptr::null_mut()) };
        self.layout = match self.layout() {
            Ok(layout) => Arc::new(layout),
            Err(problem) => error::raise_plain(problem),
        };
        self.phase = Phase::Cold;
        if let (Some(rank), Some(stripes)) = (self.request.rank(), &mut self.table.stripes) {
            if let Err(problem) = stripes.rank(rank, &mut self.table.counters) {
                self.table.raise(problem);
            }
            self.phase = Phase::Hot;
        }
    }

    /// What comes when the rows of a phase are used up.
    const fn after(&self, phase: Phase) -> Phase {
        match (phase, self.request.rank().is_some()) {
            (Phase::Cold, false) => Phase::Hot,
            (Phase::Hot, true) => Phase::Cold,
            _ => Phase::Done,
        }
    }

    /// Hot rows are used up.
    pub(super) const fn end_hot(&mut self) {
        self.phase = self.after(Phase::Hot);
    }

    /// How early, in the order of its rank, the first row still to come can be; None where none is left.
    ///
    /// # Safety
    /// As `next_piece`.
    pub unsafe fn edge(&mut self) -> Option<Edge> {
        if self.phase == Phase::Start {
            // SAFETY: the caller's promise.
            unsafe { self.start() };
        }
        while self.phase == Phase::Hot && self.pending.is_none() {
            // SAFETY: the caller's promise.
            match unsafe { self.hot_batch() } {
                Some(batch) => self.pending = (batch.rows > 0).then_some(batch),
                None => self.phase = self.after(Phase::Hot),
            }
        }
        match self.phase {
            _ if self.pending.is_some() => Some(Edge::Anywhere),
            Phase::Start | Phase::Hot => Some(Edge::Anywhere),
            Phase::Cold => self.table.stripes.as_ref().and_then(|stripes| stripes.edge()),
            Phase::Done => None,
        }
    }

    /// The next rows of stripes.
    unsafe fn cold_piece(&mut self) -> query::Result<Option<Piece>> {
        loop {
            let Some(stripes) = &mut self.table.stripes else { return Ok(None) };
            let piece = stripes.next_piece(&self.request, &self.layout, &mut self.table.counters);
            let loaded = match piece {
                Ok(Some(VectorPiece::Unchecked(loaded))) => loaded,
                Ok(Some(VectorPiece::Rows(batch))) => return Ok(Some(Piece::Rows(batch))),
                Ok(Some(VectorPiece::Known(summary))) => return Ok(Some(Piece::Known(summary))),
                Ok(Some(VectorPiece::Unit(unit))) => return Ok(Some(Piece::Unit(unit))),
                Ok(None) => return Ok(None),
                Err(Located { first_row, error: query::Error::Data(problem) }) => {
                    self.table.raise(Located::new(first_row, problem))
                }
                Err(Located { error, .. }) => return Err(error),
            };
            // SAFETY: the caller's promise.
            let batch = unsafe { self.checked(loaded) };
            let batch = self.layout.passing(batch)?;
            if batch.rows > 0 {
                return Ok(Some(Piece::Rows(batch)));
            }
        }
    }

    /// How chunks of this scan become batches.
    fn layout(&self) -> vector::Result<BatchLayout> {
        let wanted = self.request.columns();
        let missing = |(at, column): (usize, &Column)| {
            wanted.contains(&at).then(|| {
                let mut writer = ColumnWriter::new(*column.reader.kind());
                let (value, null) = column.missing;
                // SAFETY: the value is of the column's type.
                unsafe { writer.push_value(value, null) };
                Arc::new(writer.take())
            })
        };
        let missing: Vec<_> = self.table.columns.iter().enumerate().map(missing).collect();
        let mut missing_derived = Vec::with_capacity(self.derived.len());
        for (at, derive) in &self.derived {
            if let Some(value) = missing.get(*at).and_then(Option::as_ref) {
                missing_derived.push(Arc::new(derive.of_vector(value.as_ref().clone())?));
            }
        }
        Ok(BatchLayout {
            columns: wanted.to_vec(),
            missing,
            missing_derived,
            conditions: self.request.conditions().to_vec(),
            tally: Arc::clone(&self.tally),
        })
    }

    /// Goes back to before the first row; parameters may have changed.
    ///
    /// # Safety
    /// Called under guard between rows.
    pub(super) unsafe fn restart(&mut self) {
        if self.phase == Phase::Start {
            return;
        }
        self.pending = None;
        self.hot_rows.forget();
        // SAFETY: the caller's promise.
        unsafe { self.table.restart() };
        self.phase = Phase::Start;
    }

    /// Gives back what the server holds for us.
    ///
    /// # Safety
    /// Called once, when the node ends without an ERROR.
    pub(super) unsafe fn close(&mut self) {
        // SAFETY: the caller's promise.
        unsafe { self.table.close() };
    }
}
