//! Column chunks for point look-ups, kept per backend.
//!
//! Called by `table_am/cold_rows` for rows fetched by number. A chunk stays in memory as it is stored, and single values are taken out of it; once that was done so often that
//! decoding the whole chunk would have cost about as much, it is decoded and further values are read off. Chunks are known by storage id, first row number, column and chunk
//! number, which are never used again and whose bytes never change, so that nothing has to be invalidated. The cache is bounded in bytes; scans pass their chunks by it.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use pgrx::pg_sys::Relation;
use stripe::OwnedChunk;
use vector::{Error, LogicalType, Result, Vector};

use super::codecs::ServerCodecs;
use super::directory::StripeEntry;
use super::open_stripe::{OpenStripe, Pages};

/// What is kept, in bytes.
const BYTES: usize = 64 << 20;
/// Taking one value costs about what decoding so many of a chunk does: integers and the like, and byte strings.
const NUMBERS: u32 = 512;
const STRINGS: u32 = 64;

/// One column chunk.
pub struct KeptChunk {
    stored: OwnedChunk,
    decoded: OnceCell<Vector>,
    /// Values taken one by one.
    taken: Cell<u32>,
    /// From so many on the chunk is decoded.
    many: u32,
    /// Memory it takes, about.
    bytes: Cell<usize>,
    /// Time of the last use.
    used: Cell<u64>,
}

/// Where a value is.
pub enum Place<'a> {
    /// The only one of its vector.
    Alone(Vector),
    /// In this row of the chunk's vector.
    Among(&'a Vector, usize),
}

type Key = (u64, u64, u32, u32);

#[derive(Default)]
struct Cache {
    chunks: HashMap<Key, Rc<KeptChunk>>,
    bytes: usize,
    clock: u64,
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::new(Cache::default());
}

/// A column chunk of `stripe`, whose directory entry is `entry`.
///
/// # Safety
/// `rel` is open.
pub unsafe fn of(
    rel: Relation,
    entry: &StripeEntry,
    stripe: &OpenStripe,
    column: usize,
    chunk: u32,
) -> Result<Rc<KeptChunk>> {
    let position = u32::try_from(column).map_err(|_| Error::InvalidInput("too many columns".into()))?;
    let key = (entry.storage_id, entry.first_row, position, chunk);
    let found = CACHE.with_borrow_mut(|cache| {
        cache.clock += 1;
        let found = cache.chunks.get(&key)?;
        found.used.set(cache.clock);
        Some(Rc::clone(found))
    });
    if let Some(found) = found {
        return Ok(found);
    }
    // SAFETY: rel is open.
    let pages = unsafe { Pages::new(rel, entry, std::ptr::null_mut()) };
    let stored = stripe.reader.read_chunk(column, chunk, &pages, &ServerCodecs)?;
    let many = match stripe.reader.logical(column) {
        Some(LogicalType::Text | LogicalType::Bytes) => stored.rows() / STRINGS,
        _ => stored.rows() / NUMBERS,
    };
    let bytes = stored.len() + size_of::<KeptChunk>();
    let kept = Rc::new(KeptChunk {
        stored,
        decoded: OnceCell::new(),
        taken: Cell::new(0),
        many,
        bytes: Cell::new(bytes),
        used: Cell::new(0),
    });
    CACHE.with_borrow_mut(|cache| {
        cache.make_room(bytes);
        kept.used.set(cache.clock);
        cache.bytes += bytes;
        cache.chunks.insert(key, Rc::clone(&kept));
    });
    Ok(kept)
}

impl KeptChunk {
    /// The value of a row of the chunk.
    pub fn at(&self, row: u32) -> Result<Place<'_>> {
        if self.decoded.get().is_none() {
            if self.taken.get() < self.many {
                self.taken.set(self.taken.get() + 1);
                return Ok(Place::Alone(self.stored.take(&[row], &ServerCodecs)?));
            }
            let vector = self.stored.decode(&ServerCodecs)?;
            let more = vector.bytes();
            CACHE.with_borrow_mut(|cache| {
                cache.make_room(more);
                self.bytes.set(self.bytes.get() + more);
                cache.recount();
            });
            let _ = self.decoded.set(vector);
        }
        match self.decoded.get() {
            Some(vector) if (row as usize) < vector.len() => Ok(Place::Among(vector, row as usize)),
            _ => Err(Error::InvalidInput(format!("row {row} of a chunk of {}", self.stored.rows()))),
        }
    }
}

impl Cache {
    /// Drops the chunks used longest ago, half of them at once, until `bytes` more fit.
    fn make_room(&mut self, bytes: usize) {
        while self.bytes + bytes > BYTES && !self.chunks.is_empty() {
            let mut ages: Vec<u64> = self.chunks.values().map(|chunk| chunk.used.get()).collect();
            let middle = ages.len() / 2;
            let (_, &mut median, _) = ages.select_nth_unstable(middle);
            self.chunks.retain(|_, chunk| chunk.used.get() > median);
            self.recount();
        }
    }

    fn recount(&mut self) {
        self.bytes = self.chunks.values().map(|chunk| chunk.bytes.get()).sum();
    }
}
