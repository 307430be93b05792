//! What the engine asks of SQLite while it runs.

use std::cell::Cell;

use query::Error;

use crate::api::{Connection, Statement};

/// Batches between two looks whether the user wants the statement to end.
const BETWEEN: u32 = 8;

/// The connection, as a host of the engine.
pub struct SqliteHost {
    /// Running it has SQLite look at interrupts and call the progress handler, which nothing else does.
    probe: Option<Statement>,
    calls: Cell<u32>,
}

impl SqliteHost {
    /// A host that looks at interrupts of this connection.
    pub fn new(db: Connection) -> Self {
        Self { probe: db.prepare("SELECT 1").ok(), calls: Cell::new(0) }
    }
}

impl query::Host for SqliteHost {
    fn check_interrupts(&mut self) -> query::Result<()> {
        self.calls.set(self.calls.get() + 1);
        if !self.calls.get().is_multiple_of(BETWEEN) {
            return Ok(());
        }
        let Some(probe) = &self.probe else { return Ok(()) };
        match probe.step() {
            Ok(_) => {
                probe.reset();
                Ok(())
            }
            Err(_) => Err(Error::Cancelled),
        }
    }
}
