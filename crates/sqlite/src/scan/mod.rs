//! Goes through the rows of a table that a search finds: stripes, chunk by chunk, and then the tail.
//!
//! - `search`: how rows are found, chosen when the query is planned
//! - `condition`: a condition with its value
//! - `rows`: some rows that are being handed out
//! - `sorted`: all rows in the order that the query wants

mod condition;
mod rows;
pub mod search;
mod sorted;

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use encodings::NoPglz;
use stripe::scan::{ChunkPlan, Counters, ScanClause, ScanColumn, StripeScan};

use crate::api::{Argument, Error, Result, Value, raw};
use crate::storage::{Entry, Place, Storage, StripeStore, same_kinds};
use crate::values::{Column, Kind};
pub use condition::Condition;
use rows::Rows;
use search::Search;

/// A scan of stripes whose columns are of the same kinds, with the conditions that it cannot answer.
struct Part {
    scan: StripeScan<StripeStore>,
    /// The places of the scan's columns, and their kinds.
    columns: Vec<(usize, Kind)>,
    unanswered: Vec<Condition>,
}

/// Rows of a table, one after the other.
pub struct RowScan {
    storage: Rc<Storage>,
    search: Search,
    conditions: Vec<Condition>,
    entries: Rc<Vec<Entry>>,
    /// The generation that they belong to.
    generation: Option<i64>,
    /// Keeps them from being removed.
    reading: Option<Rc<()>>,
    /// The first stripe that no part has yet.
    next: usize,
    part: Option<Part>,
    /// The tail as it was when the search began: its rows may become a stripe while the scan goes on.
    tail: Option<Rc<Vec<Column>>>,
    /// It is still to come.
    tail_next: bool,
    rows: Rows,
    /// Only the first of the sorted rows is known yet.
    has_peeked: bool,
    /// So many of the sorted rows are wanted. None: all.
    limit: Option<usize>,
    counters: Counters,
}

impl RowScan {
    /// A scan that stands nowhere.
    pub fn new(storage: Rc<Storage>) -> Self {
        Self {
            storage,
            search: Search::default(),
            conditions: Vec::new(),
            entries: Rc::default(),
            generation: None,
            reading: None,
            next: 0,
            part: None,
            tail: None,
            tail_next: false,
            rows: Rows::default(),
            has_peeked: false,
            limit: None,
            counters: Counters::default(),
        }
    }

    /// The columns that the search looks at: the row's id, those that are read, those of conditions.
    fn places(&self) -> Vec<usize> {
        let conditions = self.conditions.iter().map(|condition| condition.place);
        let mut places: Vec<usize> =
            std::iter::once(0).chain(self.search.places.iter().copied()).chain(conditions).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    fn start_part(&self, stripes: Range<usize>) -> Result<Part> {
        let entry = self.entries.get(stripes.start);
        let kind =
            |place: usize| entry.and_then(|entry| entry.kinds.get(place)).copied().unwrap_or(Kind::Mixed);
        let columns: Vec<(usize, Kind)> =
            self.places().into_iter().map(|place| (place, kind(place))).collect();
        let (mut clauses, mut unanswered) = (Vec::new(), Vec::new());
        for condition in &self.conditions {
            match condition.predicate(condition.place, kind(condition.place)) {
                Some(predicate) => clauses.push(ScanClause::native(predicate)),
                None => unanswered.push(condition.clone()),
            }
        }
        let wanted = |place: usize| {
            place == 0
                || self.search.places.contains(&place)
                || unanswered.iter().any(|condition| condition.place == place)
        };
        let scanned = columns.iter().map(|&(index, kind)| ScanColumn {
            index,
            logical: kind.logical(),
            wanted: wanted(index),
        });
        let plan = ChunkPlan::new(scanned.collect(), clauses, Vec::new(), Vec::new(), &NoPglz);
        let store = StripeStore::new(Rc::clone(&self.storage), Rc::clone(&self.entries), stripes);
        let mut scan = StripeScan::new(store);
        scan.start(Arc::new(plan))?;
        Ok(Part { scan, columns, unanswered })
    }

    /// Finds the next rows. Afterwards it stands on a row, or past the end.
    fn advance(&mut self) -> Result<()> {
        self.advance_within().map_err(|error| {
            let changed = self.generation != self.storage.directory.generation();
            match changed && error.code == raw::SQLITE_CORRUPT_VTAB {
                // A stripe that the search began with was removed, or rolled back.
                true => Error::coded(raw::SQLITE_ABORT, "the table was changed while the query was open"),
                false => error,
            }
        })
    }

    fn advance_within(&mut self) -> Result<()> {
        while self.rows.is_past_end() {
            if let Some(part) = &mut self.part {
                match part.scan.next_chunk(false, None, &mut self.counters)? {
                    Some(loaded) => {
                        self.rows = Rows::of_chunk(loaded, &part.columns);
                        self.rows.keep(&part.unanswered)?;
                    }
                    None => self.part = None,
                }
            } else if self.next < self.entries.len() {
                let stripes = same_kinds(&self.entries, self.next, &self.places());
                self.next = stripes.end;
                self.part = Some(self.start_part(stripes)?);
            } else if self.tail_next {
                self.tail_next = false;
                if let Some(tail) = &self.tail {
                    self.rows = Rows::of_columns(tail);
                    self.rows.keep(&self.conditions)?;
                }
            } else {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Has the rows of one id, which is looked up.
    fn look_up(&mut self, id: i64) -> Result<()> {
        let found = match self.storage.locate(id)? {
            None => None,
            Some(Place::Tail) => self.storage.tail.find(id)?.map(|columns| Rows::of_columns(&columns)),
            Some(Place::Stripe(at, row)) => match self.entries.get(at) {
                Some(entry) => Some(Rows::of_one(&self.storage, entry, row, &self.places())?),
                None => None,
            },
        };
        self.rows = found.unwrap_or_default();
        self.rows.keep(&self.conditions)
    }

    /// Begins a search with its values, in what the directory knows now.
    pub fn start(&mut self, search: Search, values: &[Argument<'_>]) -> Result<()> {
        let mut conditions = Vec::new();
        for (term, value) in search.terms.iter().zip(values) {
            conditions.extend(Condition::of(term, self.storage.columns.affinity_at(term.place), *value)?);
        }
        self.limit = limit(values.get(search.terms.len()..).unwrap_or_default());
        self.start_with(search, conditions)
    }

    /// The same, with conditions in the place of terms.
    pub fn start_with(&mut self, search: Search, conditions: Vec<Condition>) -> Result<()> {
        self.search = search;
        self.conditions = conditions;
        self.entries = self.storage.directory.entries();
        self.generation = self.storage.directory.generation();
        self.reading = Some(self.storage.reading());
        self.has_peeked = false;
        self.tail = None;
        self.rewind();
        if let Some(id) = self.conditions.iter().find_map(Condition::row_id) {
            (self.next, self.tail_next) = (self.entries.len(), false);
            return self.look_up(id);
        }
        let directory = &self.storage.directory;
        if directory.tail_rows() > 0 {
            self.tail = Some(self.storage.tail.rows(directory.generation())?);
        }
        match self.search.order.is_empty() {
            true => self.advance(),
            false => self.sort(),
        }
    }

    /// Back to before the first row.
    fn rewind(&mut self) {
        self.part = None;
        self.rows = Rows::default();
        (self.next, self.tail_next) = (0, true);
    }

    /// On to the next row.
    pub fn next(&mut self) -> Result<()> {
        if self.has_peeked {
            self.sort_all()?;
        }
        self.rows.step();
        if self.rows.is_past_end() { self.advance() } else { Ok(()) }
    }

    /// Whether there is no row here.
    pub const fn is_past_end(&self) -> bool {
        self.rows.is_past_end()
    }

    /// A column of the row, by its place.
    #[inline]
    pub fn get(&self, place: usize) -> Result<Value<'_>> {
        self.rows.get(place)
    }

    /// The row's id.
    pub fn row_id(&self) -> Result<i64> {
        match self.rows.get(0)? {
            Value::Integer(id) => Ok(id),
            _ => Err(Error::corrupt("a row without an id")),
        }
    }
}

/// The sum of a LIMIT and an OFFSET. None where all rows are wanted: a negative LIMIT says so.
fn limit(values: &[Argument<'_>]) -> Option<usize> {
    let mut sum = 0usize;
    for value in values {
        match value.value() {
            Value::Integer(number) if number >= 0 => sum = sum.saturating_add(usize::try_from(number).ok()?),
            _ => return None,
        }
    }
    (!values.is_empty()).then_some(sum)
}
