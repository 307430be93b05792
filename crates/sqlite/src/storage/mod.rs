//! Where a table's rows are kept: stripes and a tail, in shadow tables of the user's database.
//!
//! - `shadow`: the shadow tables
//! - `directory`: which stripes there are, and which of their rows are dead
//! - `segments`: the stripes' bytes
//! - `compaction`: when stripes are written anew
//! - `row_ids`: where a row is
//! - `single_rows`: rows one by one
//! - `tail`: rows that no stripe has yet
//! - `verify`: whether all of it is whole
//! - `store`: the stripes as the engine's scan sees them
//!
//! Everywhere the columns of a stripe or of the tail are the row's id and then each column of the table that
//! is not another name of it.

mod compaction;
mod directory;
mod row_ids;
mod segments;
mod shadow;
mod single_rows;
mod store;
mod tail;
mod verify;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use encodings::NoPglz;
use stripe::{StripeBytes, StripeOptions, StripeReader, write_stripe};

pub use directory::{Directory, Entry};
pub use row_ids::Place;
pub use shadow::{Shadow, is_shadow};
pub use store::{StripeStore, same_kinds};
pub use tail::Tail;
pub use verify::{Fault, faults};

use crate::api::{Error, Result, Statement, Value};
use crate::declaration::{Columns, Options};
use crate::values::{Column, Kind, OrderKey, permutation};
use segments::Segments;

/// Most open stripes that a connection remembers of a table.
const OPEN_STRIPES: usize = 256;

/// The rows of one table.
pub struct Storage {
    /// The shadow tables.
    pub shadow: Rc<Shadow>,
    /// The columns.
    pub columns: Rc<Columns>,
    /// The options.
    pub options: Options,
    /// What rows of a stripe are sorted by.
    order: Vec<OrderKey>,
    /// Which stripes there are.
    pub directory: Directory,
    /// Rows that no stripe has.
    pub tail: Tail,
    segments: Segments,
    open: RefCell<HashMap<i64, Rc<StripeReader>>>,
    known_row_ids: row_ids::KnownRowIds,
    kept_chunks: single_rows::KeptChunks,
    insert: RefCell<Option<Statement>>,
    /// Each query that is reading holds another one.
    reading: Rc<()>,
    /// Memory that a row takes, about, once somebody has asked.
    known_row_bytes: Cell<Option<u64>>,
}

impl Storage {
    /// The rows in these shadow tables.
    pub fn new(shadow: Rc<Shadow>, columns: Rc<Columns>, options: Options) -> Result<Self> {
        let id = columns.row_id_name();
        Ok(Self {
            directory: Directory::new(Rc::clone(&shadow), &id),
            tail: Tail::new(Rc::clone(&shadow), Rc::clone(&columns)),
            segments: Segments::new(Rc::clone(&shadow)),
            open: RefCell::default(),
            known_row_ids: row_ids::KnownRowIds::default(),
            kept_chunks: single_rows::KeptChunks::default(),
            insert: RefCell::default(),
            reading: Rc::default(),
            known_row_bytes: Cell::new(None),
            order: columns.order(&options)?,
            shadow,
            columns,
            options,
        })
    }

    /// Forgets statements, as their tables get other names or the schema has changed: SQLite does not compile
    /// them anew while it compiles a statement of the user's.
    pub fn close(&self) {
        self.directory.close();
        self.tail.close();
        self.segments.close();
        self.insert.take();
    }

    /// A stripe, opened or found open.
    pub fn open(&self, entry: &Entry) -> Result<Rc<StripeReader>> {
        if let Some(reader) = self.open.borrow().get(&entry.stamp) {
            return Ok(Rc::clone(reader));
        }
        let mut footer = Vec::new();
        self.segments.of(entry).read(entry.footer..entry.bytes, &mut footer)?;
        let reader = Rc::new(StripeReader::open(&footer)?);
        let types = entry.kinds.iter().map(|kind| Some(kind.logical()));
        let same_columns = types.eq((0..reader.column_count()).map(|column| reader.logical(column)));
        if !same_columns || reader.row_count() != entry.rows {
            return Err(Error::corrupt(format!(
                "stripe {} has other rows or columns than the directory says",
                entry.id
            )));
        }
        let mut open = self.open.borrow_mut();
        if open.len() >= OPEN_STRIPES {
            open.clear();
        }
        open.insert(entry.stamp, Rc::clone(&reader));
        Ok(reader)
    }

    /// The bytes of a stripe.
    pub const fn bytes<'a>(&'a self, entry: &'a Entry) -> segments::Bytes<'a> {
        self.segments.of(entry)
    }

    /// Rows of stripes and tail that are not dead.
    pub fn live_rows(&self) -> i64 {
        let entries = self.directory.entries();
        let stripes: i64 =
            entries.iter().map(|entry| i64::from(entry.rows) - i64::from(entry.dead_rows)).sum();
        stripes + i64::from(self.directory.tail_rows())
    }

    /// The columns of the tail. None if it has no rows.
    pub fn tail_columns(&self) -> Result<Option<Rc<Vec<Column>>>> {
        match self.directory.tail_rows() {
            0 => Ok(None),
            _ => self.tail.rows(self.directory.generation()).map(Some),
        }
    }

    /// As long as somebody holds what this gives, no stripe goes.
    pub fn reading(&self) -> Rc<()> {
        Rc::clone(&self.reading)
    }

    fn is_being_read(&self) -> bool {
        Rc::strong_count(&self.reading) > 1
    }

    /// Whether rows of a stripe are sorted.
    pub const fn is_sorted(&self) -> bool {
        !self.order.is_empty()
    }

    /// Writes rows as stripes, after all others.
    pub fn write(&self, columns: Vec<Column>) -> Result<()> {
        let id = self.directory.entries().last().map_or(1, |entry| entry.id + 1);
        self.write_as(id, columns, self.options.stripe_rows as usize)
    }

    /// Writes rows as the stripe of this number. More than `full` rows go on in stripes of the next numbers,
    /// which are free then.
    fn write_as(&self, id: i64, columns: Vec<Column>, full: usize) -> Result<()> {
        let rows = columns.first().map_or(0, |ids| ids.vector.len());
        if !self.is_sorted() && rows <= full {
            return self.write_rows(id, columns);
        }
        let columns: Vec<Option<Column>> = columns.into_iter().map(Some).collect();
        let order = permutation(&columns, &self.order, rows)?;
        (id..).zip(order.chunks(full)).try_for_each(|(id, rows)| {
            let taken = |column: &Column| Column::new(column.kind, column.vector.take(rows));
            self.write_rows(id, columns.iter().flatten().map(taken).collect())
        })
    }

    fn write_rows(&self, id: i64, columns: Vec<Column>) -> Result<()> {
        let kinds: Vec<Kind> = columns.iter().map(|column| column.kind).collect();
        let rows = columns.first().map_or(0, |ids| ids.vector.len());
        let ids = columns.first().ok_or_else(|| Error::new("a stripe of no column"))?;
        let (mut least, mut greatest) = (i64::MAX, i64::MIN);
        for row in 0..rows {
            if let Value::Integer(id) = ids.get(row)? {
                (least, greatest) = (least.min(id), greatest.max(id));
            }
        }
        let vectors: Vec<_> = columns.into_iter().map(|column| column.vector).collect();
        let rows = u32::try_from(rows).map_err(|_| Error::new("a stripe past 2^32 rows"))?;
        let options = StripeOptions {
            chunk_rows: self.options.chunk_rows,
            codec: self.options.codec,
            level: self.options.level,
            codecs: &NoPglz,
            ..StripeOptions::default()
        };
        let written = write_stripe(rows, &vectors, &options)?;
        let entry = Entry::new(id, &written, kinds, (least, greatest));
        self.segments.write(id, &written.bytes)?;
        self.insert(&entry)?;
        self.directory.add(entry);
        Ok(())
    }

    fn insert(&self, entry: &Entry) -> Result<()> {
        let mut insert = self.insert.borrow_mut();
        if insert.is_none() {
            let columns = "id, stamp, rows, least_row_id, greatest_row_id, bytes, footer, kinds, summary";
            let places = "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9";
            let table = self.shadow.table("stripe");
            *insert =
                Some(self.shadow.db.prepare(&format!("INSERT INTO {table}({columns}) VALUES ({places})"))?);
        }
        let kinds: Vec<u8> = entry.kinds.iter().map(|kind| kind.tag()).collect();
        let place = |bytes: u64| Value::Integer(bytes.cast_signed());
        match insert.as_ref() {
            Some(insert) => insert.run(&[
                Value::Integer(entry.id),
                Value::Integer(entry.stamp),
                Value::Integer(entry.rows.into()),
                Value::Integer(entry.row_ids.0),
                Value::Integer(entry.row_ids.1),
                place(entry.bytes),
                place(entry.footer),
                Value::Blob(&kinds),
                Value::Blob(&entry.summary),
            ]),
            None => Err(Error::new("no statement")),
        }
    }
}
