//! A table's rows as vectors for the engine: stripes, chunk by chunk, then the tail.
//!
//! Columns have the types that `ColumnType` says. Where a stripe's column is of another kind, it is made
//! over.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use encodings::NoPglz;
use query::{Batch, Host, Members, Result, RowFilter, Source, Step, Summary, SummaryNeed, Unit};
use stripe::scan::{
    BatchLayout, ChunkPlan, ChunkUnit, Counters, ScanClause, ScanColumn, StripeScan, VectorPiece,
    VectorRequest,
};
use vector::{Predicate, Vector};

use super::column_type::ColumnType;
use crate::api;
use crate::scan::Condition;
use crate::storage::{Entry, Storage, StripeStore, same_kinds};
use crate::values::{Column, Kind};

/// A scan of stripes whose columns are of the same kinds.
struct Part {
    scan: StripeScan<StripeStore>,
    layout: Arc<BatchLayout>,
    /// Some column has to be made over.
    casts: bool,
}

/// Rows of a table, as a source of a plan.
pub struct TableSource {
    storage: Rc<Storage>,
    entries: Rc<Vec<Entry>>,
    /// Keeps them from being removed.
    _reading: Rc<()>,
    tail: Option<Rc<Vec<Column>>>,
    types: Arc<Vec<ColumnType>>,
    conditions: Vec<Condition>,
    request: VectorRequest,
    /// No column of any stripe has to be made over.
    plain: bool,
    next: usize,
    part: Option<Part>,
    counters: Rc<Cell<Counters>>,
}

impl TableSource {
    /// These columns of the rows for which all conditions hold. None if a column has no one type, or a
    /// condition is about one that has none.
    pub fn new(
        storage: &Rc<Storage>,
        places: &[usize],
        conditions: Vec<Condition>,
    ) -> api::Result<Option<Self>> {
        let directory = &storage.directory;
        let tail = storage.tail_columns()?;
        let of_tail = tail.as_ref().map_or(&[][..], |tail| tail.as_slice());
        let mut types = Vec::new();
        for &place in places {
            let Some(found) = ColumnType::of(storage, place, of_tail)? else { return Ok(None) };
            types.push(found);
        }
        let entries = directory.entries();
        let kind = |entry: &Entry, place: usize| entry.kinds.get(place).copied().unwrap_or(Kind::Mixed);
        let answered = |entry: &Entry| {
            let answers = |at: &Condition| at.predicate(at.place, kind(entry, at.place)).is_some();
            conditions.iter().all(answers)
        };
        if !entries.iter().all(answered) {
            return Ok(None);
        }
        let as_it_is = |entry: &Entry, own: &ColumnType| kind(entry, own.place).logical() == own.logical();
        let plain = entries.iter().all(|entry| types.iter().all(|own| as_it_is(entry, own)));
        let places = places_of(&types, &conditions);
        let at = |own: &ColumnType| places.iter().position(|place| *place == own.place);
        let request = VectorRequest::new(types.iter().filter_map(at).collect(), false);
        let (storage, types, reading) = (Rc::clone(storage), Arc::new(types), storage.reading());
        let counters = Rc::default();
        Ok(Some(Self {
            storage,
            entries,
            _reading: reading,
            tail,
            types,
            conditions,
            request,
            plain,
            next: 0,
            part: None,
            counters,
        }))
    }

    /// The types of its columns.
    pub fn types(&self) -> &[ColumnType] {
        &self.types
    }

    /// What its rows have to pass.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// What is read and left out, as long as it goes on.
    pub fn counters(&self) -> Rc<Cell<Counters>> {
        Rc::clone(&self.counters)
    }

    /// The places that a scan looks at: those of the columns, then those of conditions.
    fn places(&self) -> Vec<usize> {
        places_of(&self.types, &self.conditions)
    }

    fn start_part(&self, stripes: Range<usize>) -> Result<Part> {
        let entry = self.entries.get(stripes.start);
        let kind =
            |place: usize| entry.and_then(|entry| entry.kinds.get(place)).copied().unwrap_or(Kind::Mixed);
        let own = |place: usize| self.types.iter().any(|own| own.place == place);
        let column = |index: usize| ScanColumn { index, logical: kind(index).logical(), wanted: own(index) };
        let columns = self.places().into_iter().map(column).collect();
        let clause = |condition: &Condition| {
            condition.predicate(condition.place, kind(condition.place)).map(ScanClause::native)
        };
        let clauses = self.conditions.iter().filter_map(clause).chain(self.request.narrowing()).collect();
        let members = self.request.members().clone();
        let plan = ChunkPlan::new(columns, clauses, Vec::new(), members, &NoPglz);
        let store = StripeStore::new(Rc::clone(&self.storage), Rc::clone(&self.entries), stripes);
        let mut scan = StripeScan::new(store);
        scan.start(Arc::new(plan)).map_err(|located| located.error)?;
        let casts = self.types.iter().any(|own| kind(own.place).logical() != own.logical());
        Ok(Part { scan, layout: Arc::new(self.layout()), casts })
    }

    fn layout(&self) -> BatchLayout {
        BatchLayout {
            columns: self.request.columns().to_vec(),
            conditions: self.request.conditions().to_vec(),
            ..BatchLayout::default()
        }
    }

    /// The rows of the tail that count.
    fn tail_batch(&self, tail: &[Column]) -> Result<Batch> {
        let rows = tail.first().map_or(0, |ids| ids.vector.len());
        let mut kept = Vec::new();
        for row in 0..rows {
            let mut passes = true;
            for condition in &self.conditions {
                let value = match tail.get(condition.place) {
                    Some(column) => column.get(row).map_err(api::Error::into_data)?,
                    None => api::Value::Null,
                };
                passes = passes && condition.passes(value);
            }
            if passes {
                kept.push(u32::try_from(row).unwrap_or(u32::MAX));
            }
        }
        let column = |own: &ColumnType| {
            let whole = tail.get(own.place).map(|column| own.cast(&column.vector));
            whole.map(|whole| Arc::new(if kept.len() == rows { whole } else { whole.take(&kept) }))
        };
        let columns = self.types.iter().filter_map(column).collect();
        self.layout().passing(Batch::new(kept.len(), columns))
    }
}

/// The places of columns and conditions, each once.
fn places_of(types: &[ColumnType], conditions: &[Condition]) -> Vec<usize> {
    let mut places = Vec::new();
    for place in types.iter().map(|own| own.place).chain(conditions.iter().map(|condition| condition.place)) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

fn cast(types: &[ColumnType], batch: Batch) -> Batch {
    let as_it_is = |column: &Vector, own: &ColumnType| column.logical == own.logical();
    let columns = batch.columns.iter().zip(types).map(|(column, own)| match as_it_is(column, own) {
        true => Arc::clone(column),
        false => Arc::new(own.cast(column)),
    });
    Batch::new(batch.rows, columns.collect())
}

/// Rows that are known without looking at them.
struct Known(Option<Summary>);

impl Unit for Known {
    fn next(&mut self) -> Result<Step> {
        Ok(self.0.take().map_or(Step::Done, Step::Summary))
    }
}

/// A chunk whose columns are made over.
struct Casting {
    unit: ChunkUnit,
    types: Arc<Vec<ColumnType>>,
}

impl Unit for Casting {
    fn next(&mut self) -> Result<Step> {
        Ok(match self.unit.next()? {
            Step::Batch(batch) => Step::Batch(cast(&self.types, batch)),
            other => other,
        })
    }
}

impl Source for TableSource {
    fn next_unit(&mut self, _host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        loop {
            if let Some(part) = &mut self.part {
                let mut counters = self.counters.get();
                let piece = part.scan.next_piece(&self.request, &part.layout, &mut counters);
                self.counters.set(counters);
                match piece.map_err(|located| located.error)? {
                    None => self.part = None,
                    Some(VectorPiece::Rows(batch)) if part.casts => {
                        return Ok(Some(Box::new(Some(cast(&self.types, batch)))));
                    }
                    Some(VectorPiece::Rows(batch)) => return Ok(Some(Box::new(Some(batch)))),
                    Some(VectorPiece::Known(summary)) => return Ok(Some(Box::new(Known(Some(summary))))),
                    Some(VectorPiece::Unit(unit)) if part.casts => {
                        return Ok(Some(Box::new(Casting { unit, types: Arc::clone(&self.types) })));
                    }
                    Some(VectorPiece::Unit(unit)) => return Ok(Some(Box::new(unit))),
                    Some(VectorPiece::Unchecked(_)) => {
                        return Err(vector::Error::corrupt(
                            "a stripe of other types than the directory says",
                        )
                        .into());
                    }
                }
            } else if self.next < self.entries.len() {
                let stripes = same_kinds(&self.entries, self.next, &self.places());
                self.next = stripes.end;
                self.part = Some(self.start_part(stripes)?);
            } else if let Some(tail) = self.tail.take() {
                return Ok(Some(Box::new(Some(self.tail_batch(&tail)?))));
            } else {
                return Ok(None);
            }
        }
    }

    fn narrow(&mut self, predicate: Predicate) {
        if self.plain {
            let places = self.places();
            self.request.narrow(predicate, &|at| places.get(at).copied());
        }
    }

    fn narrow_members(&mut self, column: usize, members: &Arc<dyn Members>) -> bool {
        self.plain && self.request.narrow_members(column, members)
    }

    fn filter(&mut self, condition: &Arc<dyn RowFilter>) -> bool {
        self.plain && self.request.filter(condition)
    }

    fn allow_summaries(&mut self, columns: &[SummaryNeed]) {
        if self.plain {
            self.request.allow_summaries(columns);
        }
    }
}
