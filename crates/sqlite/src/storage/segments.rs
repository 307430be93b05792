//! The bytes of stripes, cut into segments that are blobs of `t_bytes`.
//!
//! SQLite keeps a long blob as a chain of pages, which has to be followed from its beginning. So stripes are
//! cut. Measured (research): segments of 64 KiB read at the speed of much longer ones.
//!
//! Segments never change, and the stamp of a stripe never comes again, so what was read is remembered.

use std::cell::{Cell, Ref, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use stripe::StripeBytes;

use super::directory::Entry;
use super::shadow::Shadow;
use crate::api::{Error, Result, Statement, Value};

/// Bytes of a segment.
const SEGMENT: u64 = 64 << 10;
/// Most bytes that a connection remembers of a table.
const REMEMBERED: usize = 32 << 20;
/// Segments of one stripe have ids from its own times this on.
const OF_STRIPE: i64 = 1 << 20;

struct Statements {
    read: Statement,
    write: Statement,
}

/// A segment that was read, and when it was asked for last.
struct Remembered {
    data: Rc<Vec<u8>>,
    asked: Cell<u64>,
}

/// The segments of a table.
pub struct Segments {
    shadow: Rc<Shadow>,
    statements: RefCell<Option<Statements>>,
    remembered: RefCell<HashMap<(i64, u64), Remembered>>,
    bytes: Cell<usize>,
    clock: Cell<u64>,
}

impl Segments {
    /// Those in these shadow tables.
    pub fn new(shadow: Rc<Shadow>) -> Self {
        let (bytes, clock) = (Cell::new(0), Cell::new(0));
        Self { shadow, statements: RefCell::default(), remembered: RefCell::default(), bytes, clock }
    }

    fn statements(&self) -> Result<Ref<'_, Statements>> {
        if self.statements.borrow().is_none() {
            let (db, table) = (self.shadow.db, self.shadow.table("bytes"));
            let read = db.prepare(&format!("SELECT data FROM {table} WHERE id = ?1"))?;
            let write = db.prepare(&format!("INSERT INTO {table} VALUES (?1, ?2)"))?;
            *self.statements.borrow_mut() = Some(Statements { read, write });
        }
        Ref::filter_map(self.statements.borrow(), Option::as_ref).map_err(|_| Error::new("no statements"))
    }

    /// Forgets statements.
    pub fn close(&self) {
        self.statements.take();
    }

    /// Writes all bytes of a stripe.
    pub fn write(&self, stripe: i64, bytes: &[u8]) -> Result<()> {
        let statements = self.statements()?;
        for (number, segment) in (0i64..).zip(bytes.chunks(SEGMENT as usize)) {
            statements.write.run(&[Value::Integer(stripe * OF_STRIPE + number), Value::Blob(segment)])?;
        }
        Ok(())
    }

    /// Removes all bytes of a stripe.
    pub fn remove(&self, stripe: i64) -> Result<()> {
        let (first, end) = (stripe * OF_STRIPE, (stripe + 1) * OF_STRIPE);
        let table = self.shadow.table("bytes");
        self.shadow.db.execute(&format!("DELETE FROM {table} WHERE id >= {first} AND id < {end}"))
    }

    fn segment(&self, entry: &Entry, number: u64) -> Result<Rc<Vec<u8>>> {
        self.clock.set(self.clock.get() + 1);
        let key = (entry.stamp, number);
        if let Some(known) = self.remembered.borrow().get(&key) {
            known.asked.set(self.clock.get());
            return Ok(Rc::clone(&known.data));
        }
        let statements = self.statements()?;
        let read = &statements.read;
        read.bind(1, Value::Integer(entry.id * OF_STRIPE + number.cast_signed()))?;
        let data = match read.step()? {
            true => match read.value(0) {
                Value::Blob(data) => Some(Rc::new(data.to_vec())),
                _ => None,
            },
            false => None,
        };
        read.reset();
        let data = data.ok_or_else(|| {
            Error::corrupt(format!(
                "stripe {} lacks its segment {number} in {}",
                entry.id,
                self.shadow.bare("bytes")
            ))
        })?;
        self.remember(key, &data);
        Ok(data)
    }

    fn remember(&self, key: (i64, u64), data: &Rc<Vec<u8>>) {
        let mut remembered = self.remembered.borrow_mut();
        if self.bytes.get() + data.len() > REMEMBERED {
            // What was asked for last in the later half stays.
            let mut asked: Vec<u64> = remembered.values().map(|one| one.asked.get()).collect();
            let middle = asked.len() / 2;
            let border = asked
                .get_mut(..)
                .map_or(0, |all| if all.is_empty() { 0 } else { *all.select_nth_unstable(middle).1 });
            remembered.retain(|_, one| one.asked.get() > border);
            self.bytes.set(remembered.values().map(|one| one.data.len()).sum());
        }
        self.bytes.set(self.bytes.get() + data.len());
        remembered.insert(key, Remembered { data: Rc::clone(data), asked: Cell::new(self.clock.get()) });
    }

    /// The bytes of one stripe.
    pub const fn of<'a>(&'a self, entry: &'a Entry) -> Bytes<'a> {
        Bytes { segments: self, entry }
    }
}

/// The bytes of one stripe.
pub struct Bytes<'a> {
    segments: &'a Segments,
    entry: &'a Entry,
}

impl StripeBytes for Bytes<'_> {
    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> vector::Result<()> {
        if range.end > self.entry.bytes || range.start > range.end {
            return Err(vector::Error::corrupt(format!(
                "bytes {range:?} of a stripe of {}",
                self.entry.bytes
            )));
        }
        let mut at = range.start;
        while at < range.end {
            let number = at / SEGMENT;
            let segment = self.segments.segment(self.entry, number).map_err(crate::api::Error::into_data)?;
            let start = number * SEGMENT;
            let end = range.end.min(start + SEGMENT);
            let within = |place: u64| usize::try_from(place - start).unwrap_or(usize::MAX);
            let part = segment.get(within(at)..within(end)).ok_or_else(|| {
                vector::Error::corrupt(format!("segment {number} has {} bytes", segment.len()))
            })?;
            out.extend_from_slice(part);
            at = end;
        }
        Ok(())
    }
}
