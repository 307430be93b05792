//! Tells how far an import or an export is.
//!
//! A function of SQL is told, which every host can make, or standard error. The function gets the rows so far
//! and which share of the file that is, NULL where it is not known. An error of it ends the work.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::api::{Connection, Result, Statement, Value};
use crate::declaration::quoted;

/// Nobody is told more often than this.
const PAUSE: Duration = Duration::from_millis(200);

/// Who is told.
enum Listener {
    Nobody,
    Function(Statement),
    Stderr(String),
}

/// Tells how far something is.
pub struct Progress {
    listener: Listener,
    told: Instant,
}

impl Progress {
    /// Tells the function of this name. `what` is going on.
    pub fn new(db: Connection, name: Option<&str>, what: &str) -> Result<Self> {
        let listener = match name {
            None => Listener::Nobody,
            Some("stderr") => Listener::Stderr(what.into()),
            Some(name) => Listener::Function(db.prepare(&format!("SELECT {}(?1, ?2)", quoted(name)))?),
        };
        Ok(Self { listener, told: Instant::now() })
    }

    /// So many rows are done, which are this share of all.
    pub fn at(&mut self, rows: u64, share: Option<f64>) -> Result<()> {
        if self.told.elapsed() < PAUSE {
            return Ok(());
        }
        self.told = Instant::now();
        self.tell(rows, share)
    }

    /// All is done.
    pub fn end(&mut self, rows: u64) -> Result<()> {
        self.tell(rows, Some(1.0))
    }

    fn tell(&self, rows: u64, share: Option<f64>) -> Result<()> {
        match &self.listener {
            Listener::Nobody => Ok(()),
            Listener::Function(told) => {
                let rows = Value::Integer(rows.cast_signed());
                told.run(&[rows, share.map_or(Value::Null, Value::Real)])
            }
            Listener::Stderr(what) => {
                let share = share.map(|share| format!(", {:.0} %", share * 100.0)).unwrap_or_default();
                // Nobody may be listening.
                let _ = writeln!(std::io::stderr(), "{what}: {rows} rows{share}");
                Ok(())
            }
        }
    }
}
