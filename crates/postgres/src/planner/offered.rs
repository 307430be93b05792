//! Which columnar scans were offered while a statement is being planned.
//!
//! `path_hook` notes each of them. The vectorised node's planner hook asks when the statement's plan is
//! there. It also keeps nested plannings apart, as the planner may run a function to fold a constant.

use std::cell::Cell;

use super::cost;

/// A summary of the columnar scans that were offered.
#[derive(Clone, Copy, Default)]
pub struct Offered {
    /// The rows of their tables.
    pub rows: f64,
    /// For each table there is a cheapest path that needs no keys from a join. This is the highest of their
    /// costs, by the server's estimate.
    pub least: f64,
    /// A heap table that may be read from copies is joined by a range: the other table's row gives an end.
    pub copies_by_range: bool,
}

thread_local! {
    static OFFERED: Cell<Offered> = const { Cell::new(Offered { rows: 0.0, least: 0.0, copies_by_range: false }) };
}

/// Notes a columnar scan: the rows of its table, and the cost of the cheapest path that needs no keys from a
/// join.
pub fn note(rows: f64, cheapest: f64) {
    let before = OFFERED.get();
    let least = before.least.max(cost::enabled(cheapest));
    OFFERED.set(Offered { rows: before.rows + rows, least, ..before });
}

/// Notes that a heap table which may be read from copies is joined by a range.
pub fn note_copies_by_range() {
    OFFERED.set(Offered { copies_by_range: true, ..OFFERED.get() });
}

/// What was offered in the present planning.
pub fn offered() -> Offered {
    OFFERED.get()
}

/// Keeps the note of the outer planning while another one runs, and restores it afterwards, also after an
/// ERROR.
pub struct OuterPlanning(Offered);

impl OuterPlanning {
    /// Begins an inner planning.
    pub fn begin() -> Self {
        Self(OFFERED.take())
    }
}

impl Drop for OuterPlanning {
    fn drop(&mut self) {
        OFFERED.set(self.0);
    }
}
