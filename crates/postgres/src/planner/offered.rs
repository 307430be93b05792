//! What columnar scans were offered while a statement is being planned.
//!
//! `hooks` notes each of them; the vectorised node's planner hook asks when the statement's plan is there,
//! and keeps the plannings apart that nest: a function may be run to fold a constant.

use std::cell::Cell;

use super::cost;

/// What columnar scans were offered.
#[derive(Clone, Copy, Default)]
pub struct Offered {
    /// Rows of their tables.
    pub rows: f64,
    /// The most that reading one of the tables costs at the least, by the server's estimate, where no join
    /// hands keys to it.
    pub least: f64,
}

thread_local! {
    static OFFERED: Cell<Offered> = const { Cell::new(Offered { rows: 0.0, least: 0.0 }) };
}

/// Notes a columnar scan: the rows of its table, and the cost of the cheapest path that needs no keys from a
/// join.
pub fn note(rows: f64, cheapest: f64) {
    let before = OFFERED.get();
    OFFERED.set(Offered { rows: before.rows + rows, least: before.least.max(cost::enabled(cheapest)) });
}

/// What was offered in the planning at hand.
pub fn offered() -> Offered {
    OFFERED.get()
}

/// Keeps the note of the planning outside while another one runs; restores it also when that ends with an
/// ERROR.
pub struct Nested(Offered);

impl Nested {
    /// Begins a planning.
    pub fn begin() -> Self {
        Self(OFFERED.take())
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        OFFERED.set(self.0);
    }
}
