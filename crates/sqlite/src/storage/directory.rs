//! The directory: which stripes a table has, and which of their rows are dead.
//!
//! A connection keeps it in memory. The *generation* in `t_meta` says whether it still holds: whoever changes
//! shadow tables draws a new one at random, so a number never stands for two states, whatever is rolled back
//! in between.

use std::cell::{Cell, Ref, RefCell};
use std::ops::Range;
use std::rc::Rc;

use stripe::row_bits::{bit, set_bit};

use super::shadow::Shadow;
use crate::api::{Error, Result, Statement, Value, random};
use crate::values::Kind;

/// A stripe, as the directory knows it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its number. Its bytes are found by it.
    pub id: i64,
    /// A random number: what is remembered of a stripe is remembered by this, as ids come again after a
    /// rollback.
    pub stamp: i64,
    /// Rows, dead ones included.
    pub rows: u32,
    /// The least and the greatest row id.
    pub row_ids: (i64, i64),
    /// All its bytes.
    pub bytes: u64,
    /// Where the footer begins. It reaches to the end.
    pub footer: u64,
    /// How the values of each column lie; the row id is the first.
    pub kinds: Vec<Kind>,
    /// Statistics.
    pub summary: Vec<u8>,
    /// Dead rows, a bit each. May be shorter than the stripe.
    pub dead: Vec<u8>,
    /// How many.
    pub dead_rows: u32,
    /// The dead rows are not in `t_stripe` yet.
    changed: bool,
}

impl Entry {
    /// The numbers of its rows. No two stripes share one.
    pub fn row_numbers(&self) -> Range<u64> {
        let first = self.id.cast_unsigned() << 32;
        first..first + u64::from(self.rows)
    }

    /// Whether a row, by its place, is dead.
    pub fn is_dead(&self, row: u32) -> bool {
        bit(&self.dead, row.into())
    }
}

struct Statements {
    generation: Statement,
    load: Statement,
    greatest_in_tail: Statement,
}

/// Made only when something is written: a connection in defensive mode refuses them outside of that.
struct Writes {
    set_generation: Statement,
    set_dead: Statement,
}

/// The state of a table: its stripes and how many rows wait in the tail.
pub struct Directory {
    shadow: Rc<Shadow>,
    /// What the tail's row id is called.
    row_id: String,
    statements: RefCell<Option<Statements>>,
    writes: RefCell<Option<Writes>>,
    /// What the rest belongs to. None: nothing is known.
    generation: Cell<Option<i64>>,
    entries: RefCell<Rc<Vec<Entry>>>,
    tail_rows: Cell<u32>,
    /// The greatest row id, if it is known.
    greatest: Cell<Option<Option<i64>>>,
}

impl Directory {
    /// A directory that has yet to be read. `row_id` is the name of the tail's row id.
    pub fn new(shadow: Rc<Shadow>, row_id: &str) -> Self {
        Self {
            shadow,
            row_id: row_id.into(),
            statements: RefCell::default(),
            writes: RefCell::default(),
            generation: Cell::default(),
            entries: RefCell::default(),
            tail_rows: Cell::new(0),
            greatest: Cell::new(None),
        }
    }

    fn statements(&self) -> Result<Ref<'_, Statements>> {
        if self.statements.borrow().is_none() {
            let prepare = |sql: &str, suffix: &str| {
                self.shadow.db.prepare(&sql.replace("{}", &self.shadow.table(suffix)))
            };
            let made = Statements {
                generation: prepare("SELECT generation, tail_rows FROM {}", "meta")?,
                load: prepare(
                    "SELECT id, stamp, rows, least_row_id, greatest_row_id, bytes, footer, dead_rows, kinds, \
                     summary, dead FROM {} ORDER BY id",
                    "stripe",
                )?,
                greatest_in_tail: prepare(&format!("SELECT max({}) FROM {{}}", self.row_id), "tail")?,
            };
            *self.statements.borrow_mut() = Some(made);
        }
        Ref::filter_map(self.statements.borrow(), Option::as_ref).map_err(|_| Error::new("no statements"))
    }

    fn writes(&self) -> Result<Ref<'_, Writes>> {
        if self.writes.borrow().is_none() {
            let prepare = |sql: &str, suffix: &str| {
                self.shadow.db.prepare(&sql.replace("{}", &self.shadow.table(suffix)))
            };
            let made = Writes {
                set_generation: prepare(
                    "UPDATE {} SET generation = ?1, tail_rows = ?2 WHERE id = 1",
                    "meta",
                )?,
                set_dead: prepare("UPDATE {} SET dead_rows = ?2, dead = ?3 WHERE id = ?1", "stripe")?,
            };
            *self.writes.borrow_mut() = Some(made);
        }
        Ref::filter_map(self.writes.borrow(), Option::as_ref).map_err(|_| Error::new("no statements"))
    }

    /// Forgets all that is known, as after a rollback.
    pub fn forget(&self) {
        self.generation.set(None);
        self.greatest.set(None);
    }

    /// Forgets statements.
    pub fn close(&self) {
        self.statements.take();
        self.writes.take();
    }

    /// Reads it again, if somebody has changed it. What this connection has changed must be written before.
    pub fn refresh(&self) -> Result<()> {
        let statements = self.statements()?;
        if !statements.generation.step()? {
            return Err(Error::corrupt(format!("{} has no row", self.shadow.bare("meta"))));
        }
        let (generation, tail_rows) = (statements.generation.integer(0), statements.generation.integer(1));
        statements.generation.reset();
        if self.generation.get() == Some(generation) {
            return Ok(());
        }
        let mut entries = Vec::new();
        let load = &statements.load;
        while load.step()? {
            entries.push(read_entry(load).inspect_err(|_| load.reset())?);
        }
        *self.entries.borrow_mut() = Rc::new(entries);
        self.tail_rows.set(u32::try_from(tail_rows).unwrap_or(u32::MAX));
        self.generation.set(Some(generation));
        self.greatest.set(None);
        Ok(())
    }

    /// The generation that is known, for what is remembered beside the directory.
    pub fn generation(&self) -> Option<i64> {
        self.generation.get()
    }

    /// The stripes, in order.
    pub fn entries(&self) -> Rc<Vec<Entry>> {
        Rc::clone(&self.entries.borrow())
    }

    /// Rows of the tail.
    pub fn tail_rows(&self) -> u32 {
        self.tail_rows.get()
    }

    /// The greatest row id of the tail. None if it has no row.
    pub fn greatest_in_tail(&self) -> Result<Option<i64>> {
        let statements = self.statements()?;
        let greatest = &statements.greatest_in_tail;
        let found = match greatest.step()? {
            true => match greatest.value(0) {
                Value::Integer(id) => Some(id),
                _ => None,
            },
            false => None,
        };
        greatest.reset();
        Ok(found)
    }

    /// The greatest row id, if it is known. `Some(None)`: there is no row.
    pub fn greatest(&self) -> Option<Option<i64>> {
        self.greatest.get()
    }

    /// This is the greatest row id from now on.
    pub fn set_greatest(&self, id: Option<i64>) {
        self.greatest.set(Some(id));
    }

    /// A row of this id goes.
    pub fn lost_row_id(&self, id: i64) {
        if self.greatest.get() == Some(Some(id)) {
            self.greatest.set(None);
        }
    }

    /// A row of this id came.
    pub fn saw_row_id(&self, id: i64) {
        if let Some(greatest) = self.greatest.get() {
            self.greatest.set(Some(greatest.max(Some(id))));
        }
    }

    /// A stripe was written.
    pub fn add(&self, entry: Entry) {
        let mut entries = self.entries.borrow_mut();
        let at = entries.partition_point(|other| other.id < entry.id);
        Rc::make_mut(&mut entries).insert(at, entry);
    }

    /// A stripe was removed.
    pub fn remove(&self, id: i64) {
        Rc::make_mut(&mut self.entries.borrow_mut()).retain(|entry| entry.id != id);
    }

    /// The tail has so many rows more, or fewer.
    pub fn change_tail(&self, by: i64) {
        let rows = i64::from(self.tail_rows.get()) + by;
        self.tail_rows.set(u32::try_from(rows.max(0)).unwrap_or(u32::MAX));
    }

    /// A row of a stripe, both by place, is dead from now on.
    pub fn kill(&self, stripe: usize, row: u32) {
        let mut entries = self.entries.borrow_mut();
        let Some(entry) = Rc::make_mut(&mut entries).get_mut(stripe) else { return };
        let needed = entry.rows.div_ceil(8) as usize;
        entry.dead.resize(needed.max(entry.dead.len()), 0);
        if !entry.is_dead(row) {
            set_bit(&mut entry.dead, row.into());
            entry.dead_rows += 1;
            entry.changed = true;
        }
    }

    /// Writes which rows are dead, and a new generation.
    pub fn write(&self) -> Result<()> {
        let statements = self.writes()?;
        let mut entries = self.entries.borrow_mut();
        if entries.iter().any(|entry| entry.changed) {
            for entry in Rc::make_mut(&mut entries).iter_mut().filter(|entry| entry.changed) {
                let (id, dead_rows) = (Value::Integer(entry.id), Value::Integer(entry.dead_rows.into()));
                statements.set_dead.run(&[id, dead_rows, Value::Blob(&entry.dead)])?;
                entry.changed = false;
            }
        }
        let generation = random();
        let tail_rows = Value::Integer(self.tail_rows.get().into());
        statements.set_generation.run(&[Value::Integer(generation), tail_rows])?;
        self.generation.set(Some(generation));
        Ok(())
    }
}

/// More rows than any stripe has.
const MOST_ROWS: u32 = 1 << 26;

fn read_entry(row: &Statement) -> Result<Entry> {
    let bad = |what: &str| Error::corrupt(format!("a stripe's {what} in the directory"));
    let number = |column: usize, what: &str| u64::try_from(row.integer(column)).map_err(|_| bad(what));
    let rows = |column: usize, what: &str| u32::try_from(row.integer(column)).map_err(|_| bad(what));
    let blob = |column: usize| match row.value(column) {
        Value::Blob(bytes) => bytes.to_vec(),
        _ => Vec::new(),
    };
    let entry = Entry {
        id: row.integer(0),
        stamp: row.integer(1),
        rows: rows(2, "rows")?,
        row_ids: (row.integer(3), row.integer(4)),
        bytes: number(5, "bytes")?,
        footer: number(6, "footer")?,
        dead_rows: rows(7, "dead rows")?,
        kinds: blob(8).into_iter().map(Kind::from_tag).collect::<Result<_>>()?,
        summary: blob(9),
        dead: blob(10),
        changed: false,
    };
    let rows = entry.dead_rows <= entry.rows && entry.rows <= MOST_ROWS;
    match (0..1 << 31).contains(&entry.id) && entry.footer <= entry.bytes && rows {
        true => Ok(entry),
        false => Err(bad("place")),
    }
}

impl Entry {
    /// A stripe that was just written, without dead rows.
    pub fn new(id: i64, written: &stripe::EncodedStripe, kinds: Vec<Kind>, row_ids: (i64, i64)) -> Self {
        Self {
            id,
            stamp: random(),
            rows: written.row_count,
            row_ids,
            bytes: written.bytes.len() as u64,
            footer: written.footer_offset,
            kinds,
            summary: written.summary.clone(),
            dead: Vec::new(),
            dead_rows: 0,
            changed: false,
        }
    }
}
