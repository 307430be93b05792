//! Column chunks for point look-ups, kept per backend.
//!
//! Called by `table_am/cold_fetch` for rows fetched by number. A chunk stays in memory as it is stored, opened, and single values are taken out of it; once that was done so often that
//! decoding the whole chunk would have cost about as much, it is decoded and further values are read off. Chunks are known by storage id, first row number, column and chunk
//! number, which are never used again and whose bytes never change, so that nothing has to be invalidated. The cache is bounded in bytes; scans pass their chunks by it.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use encodings::Chunk;
use pgrx::pg_sys::Relation;
use stripe::OwnedChunk;
use vector::{Error, LogicalType, Result, Vector};

use super::codecs::ServerCodecs;
use super::directory::StripeEntry;
use super::open_stripe::{OpenStripe, Pages};
use crate::host::numbers::NumberMap;

/// What is kept, in bytes.
const BYTES: usize = 64 << 20;
/// Taking one value costs about what decoding so many of a chunk does: integers and the like, and byte strings.
const NUMBERS: u32 = 128;
const STRINGS: u32 = 64;

/// One column chunk.
pub struct KeptChunk {
    /// Reads `stored`: dropped before it. Gone once the chunk is decoded.
    opened: RefCell<Option<Chunk<'static>>>,
    stored: Box<OwnedChunk>,
    decoded: OnceCell<Vector>,
    /// Values taken one by one.
    taken: Cell<u32>,
    /// From so many on the chunk is decoded.
    many: u32,
    /// Memory it takes, about.
    bytes: Cell<usize>,
    /// Time of the last use.
    used: Cell<u64>,
    /// Whether it is still in the cache.
    kept: Cell<bool>,
}

/// Where values are.
pub enum Place<'a> {
    /// Alone in a vector.
    Alone(Vector),
    /// In their rows of the chunk's vector.
    Among(&'a Vector),
}

type Key = (u64, u64, u32, u32);

#[derive(Default)]
struct Cache {
    chunks: NumberMap<Key, Rc<KeptChunk>>,
    bytes: usize,
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::new(Cache::default());
    /// Counts the look-ups.
    static CLOCK: Cell<u64> = const { Cell::new(0) };
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
    CLOCK.set(CLOCK.get() + 1);
    if let Some(found) = CACHE.with_borrow(|cache| cache.chunks.get(&key).cloned()) {
        found.touch();
        return Ok(found);
    }
    // SAFETY: rel is open.
    let pages = unsafe { Pages::new(rel, entry, std::ptr::null_mut()) };
    let stored = stripe.reader.read_chunk(column, chunk, &pages, &ServerCodecs)?;
    let many = match stripe.reader.logical(column) {
        Some(LogicalType::Text | LogicalType::Bytes) => stored.rows() / STRINGS,
        _ => stored.rows() / NUMBERS,
    };
    // Opened, a chunk keeps up to a number for each row: where texts begin, what shape documents have.
    let bytes = stored.len() + size_of::<KeptChunk>() + stored.rows() as usize * size_of::<u32>();
    let kept = Rc::new(KeptChunk {
        opened: RefCell::new(None),
        stored: Box::new(stored),
        decoded: OnceCell::new(),
        taken: Cell::new(0),
        many,
        bytes: Cell::new(bytes),
        used: Cell::new(CLOCK.get()),
        kept: Cell::new(true),
    });
    CACHE.with_borrow_mut(|cache| {
        cache.make_room(bytes);
        cache.bytes += bytes;
        cache.chunks.insert(key, Rc::clone(&kept));
    });
    Ok(kept)
}

impl KeptChunk {
    /// Notes that it is used, by somebody who has kept it from the last time.
    pub fn touch(&self) {
        self.used.set(CLOCK.get());
    }

    /// The values of these rows of the chunk, which ascend.
    pub fn take(&self, rows: &[u32]) -> Result<Place<'_>> {
        let decoded = match self.decoded.get() {
            Some(decoded) => decoded,
            None => {
                let taken = self.taken.get().saturating_add(u32::try_from(rows.len()).unwrap_or(u32::MAX));
                if taken <= self.many {
                    self.taken.set(taken);
                    return self
                        .alone(rows)
                        .map(Place::Alone)
                        .map_err(|problem| self.stored.located(problem));
                }
                let vector = self.stored.decode(&ServerCodecs)?;
                self.opened.take();
                let more = vector.bytes();
                CACHE.with_borrow_mut(|cache| {
                    cache.make_room(more);
                    self.bytes.set(self.bytes.get() + more);
                    if self.kept.get() {
                        cache.bytes += more;
                    }
                });
                self.decoded.get_or_init(|| vector)
            }
        };
        match rows.last() {
            Some(&last) if last as usize >= decoded.len() => {
                Err(Error::InvalidInput(format!("row {last} of a chunk of {}", self.stored.rows())))
            }
            _ => Ok(Place::Among(decoded)),
        }
    }

    fn alone(&self, rows: &[u32]) -> Result<Vector> {
        let mut opened = self.opened.borrow_mut();
        if let Some(opened) = opened.as_ref() {
            return opened.take(rows);
        }
        // SAFETY: the box is neither moved out of nor changed, and what borrows from it is dropped first.
        let stored: &'static OwnedChunk = unsafe { &*std::ptr::from_ref(self.stored.as_ref()) };
        opened.insert(stored.open(&ServerCodecs)?).take(rows)
    }
}

impl Cache {
    /// Drops the chunks used longest ago, half of them at once, until `bytes` more fit.
    fn make_room(&mut self, bytes: usize) {
        while self.bytes + bytes > BYTES && !self.chunks.is_empty() {
            let mut ages: Vec<u64> = self.chunks.values().map(|chunk| chunk.used.get()).collect();
            let middle = ages.len() / 2;
            let (_, &mut median, _) = ages.select_nth_unstable(middle);
            self.chunks.retain(|_, chunk| {
                chunk.kept.set(chunk.used.get() > median);
                chunk.kept.get()
            });
            self.bytes = self.chunks.values().map(|chunk| chunk.bytes.get()).sum();
        }
    }
}
