//! A cursor of SQLite's on a columnar table: a scan, before which all that waits is written.

use std::ffi::c_int;
use std::rc::Rc;

use super::{Columnar, TableState};
use crate::api::{Argument, Context, Cursor, Result};
use crate::scan::RowScan;
use crate::scan::search::Search;

/// A cursor.
pub struct ColumnarCursor {
    state: Rc<TableState>,
    /// Where each column lies.
    places: Vec<usize>,
    scan: RowScan,
}

impl ColumnarCursor {
    /// A cursor that stands nowhere.
    pub fn new(state: &Rc<TableState>) -> Self {
        let columns = &state.storage.columns;
        let places = (0..columns.0.len()).map(|column| columns.place(column)).collect();
        Self { state: Rc::clone(state), places, scan: RowScan::new(Rc::clone(&state.storage)) }
    }
}

impl Cursor for ColumnarCursor {
    type Table = Columnar;

    fn filter(
        &mut self,
        _table: &Columnar,
        _number: c_int,
        text: &str,
        values: &[Argument<'_>],
    ) -> Result<()> {
        self.state.settle_for_reading()?;
        self.scan.start(Search::from_text(text)?, values)
    }

    fn next(&mut self, _table: &Columnar) -> Result<()> {
        self.scan.next()
    }

    fn is_past_end(&self) -> bool {
        self.scan.is_past_end()
    }

    fn column(&mut self, context: &mut Context<'_>, column: usize) -> Result<()> {
        let place = self.places.get(column).copied().unwrap_or(usize::MAX);
        context.set(self.scan.get(place)?);
        Ok(())
    }

    fn row_id(&self) -> Result<i64> {
        self.scan.row_id()
    }
}
