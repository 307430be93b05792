//! A stripe opened for reading.
//!
//! Callers: scans, TID fetches, ANALYZE. `OpenStripe` ties the pure reader to the pages of a relation; opened stripes and
//! the column chunks that point look-ups use are cached per backend by (storage id, first row number), which is never
//! reused and whose bytes never change, so that nothing has to be invalidated. The cache is bounded in bytes; scans
//! pass their chunks by it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use pgrx::pg_sys::{self, Relation};
use stripe::{OwnedChunk, StripeBytes, StripeReader};
use vector::{Error, Result};

use super::codecs::ServerCodecs;
use super::directory::StripeEntry;
use super::pages::{self, BlockRun, Expected};

/// Chunks kept for point look-ups, in bytes.
const CHUNK_BYTES: usize = 64 << 20;
/// Stripes kept open.
const STRIPES: usize = 4096;

/// Reads a stripe's bytes from the pages of a relation.
pub struct Pages {
    rel: Relation,
    run: BlockRun,
    expected: Expected,
    strategy: pg_sys::BufferAccessStrategy,
}

impl Pages {
    /// Pages of `entry` in `rel`. `strategy` may be null; a big scan passes its ring of buffers.
    pub unsafe fn new(rel: Relation, entry: &StripeEntry, strategy: pg_sys::BufferAccessStrategy) -> Self {
        Self { rel, run: entry.run, expected: entry.expected(), strategy }
    }
}

impl StripeBytes for Pages {
    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        // SAFETY: whoever made this holds the relation open.
        unsafe { pages::read_range(self.rel, self.run, self.expected, range, self.strategy, out) }
    }
}

/// A stripe's reader, shared by everybody in this backend who needs it.
pub struct OpenStripe {
    /// The pure reader.
    pub reader: StripeReader,
    /// First row number.
    pub first_row: u64,
}

type ChunkKey = (u64, u64, u32, u32);

#[derive(Default)]
struct Cache {
    stripes: HashMap<(u64, u64), Rc<OpenStripe>>,
    /// By storage id, first row, column and chunk; with the time of the last use.
    chunks: HashMap<ChunkKey, (Rc<OwnedChunk>, u64)>,
    chunk_bytes: usize,
    clock: u64,
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::new(Cache::default());
}

/// Opens the stripe of a directory entry, or finds it open.
pub unsafe fn open(rel: Relation, entry: &StripeEntry) -> Result<Rc<OpenStripe>> {
    let key = (entry.storage_id, entry.first_row);
    if let Some(found) = CACHE.with(|cache| cache.borrow().stripes.get(&key).cloned()) {
        return Ok(found);
    }
    // SAFETY: rel is open.
    let reader = unsafe { open_anew(rel, entry)? };
    let opened = Rc::new(OpenStripe { reader, first_row: entry.first_row });
    CACHE.with(|cache| {
        let mut cache = cache.borrow_mut();
        if cache.stripes.len() >= STRIPES {
            cache.stripes.clear();
        }
        cache.stripes.insert(key, Rc::clone(&opened));
    });
    Ok(opened)
}

/// Opens the stripe of a directory entry by reading its footer, whether or not it is open already.
pub unsafe fn open_anew(rel: Relation, entry: &StripeEntry) -> Result<StripeReader> {
    // SAFETY: rel is open.
    let pages = unsafe { Pages::new(rel, entry, std::ptr::null_mut()) };
    let end = entry
        .footer_offset
        .checked_add(u64::from(entry.footer_length))
        .filter(|&end| end <= entry.byte_length)
        .ok_or_else(|| Error::corrupt("footer lies outside the stripe"))?;
    let mut footer = Vec::new();
    pages.read(entry.footer_offset..end, &mut footer)?;
    let reader = StripeReader::open(&footer)?;
    if reader.row_count() != entry.row_count {
        return Err(Error::corrupt(format!(
            "stripe holds {} rows, the directory says {}",
            reader.row_count(),
            entry.row_count
        )));
    }
    Ok(reader)
}

/// One column chunk for point look-ups, kept in the backend's cache.
pub unsafe fn cached_chunk(
    rel: Relation,
    entry: &StripeEntry,
    stripe: &OpenStripe,
    column: usize,
    chunk: u32,
) -> Result<Rc<OwnedChunk>> {
    let position = u32::try_from(column).map_err(|_| Error::InvalidInput("too many columns".into()))?;
    let key = (entry.storage_id, entry.first_row, position, chunk);
    let found = CACHE.with(|cache| {
        let mut cache = cache.borrow_mut();
        cache.clock += 1;
        let now = cache.clock;
        cache.chunks.get_mut(&key).map(|(chunk, used)| {
            *used = now;
            Rc::clone(chunk)
        })
    });
    if let Some(found) = found {
        return Ok(found);
    }
    // SAFETY: rel is open.
    let pages = unsafe { Pages::new(rel, entry, std::ptr::null_mut()) };
    let read = Rc::new(stripe.reader.read_chunk(column, chunk, &pages, &ServerCodecs)?);
    CACHE.with(|cache| {
        let mut cache = cache.borrow_mut();
        cache.make_room(read.len());
        let now = cache.clock;
        cache.chunk_bytes += read.len();
        cache.chunks.insert(key, (Rc::clone(&read), now));
    });
    Ok(read)
}

impl Cache {
    /// Drops the chunks used longest ago, half of them at once, until `bytes` more fit.
    fn make_room(&mut self, bytes: usize) {
        while self.chunk_bytes + bytes > CHUNK_BYTES && !self.chunks.is_empty() {
            let mut ages: Vec<u64> = self.chunks.values().map(|(_, used)| *used).collect();
            let middle = ages.len() / 2;
            let (_, &mut median, _) = ages.select_nth_unstable(middle);
            self.chunks.retain(|_, (_, used)| *used > median);
            self.chunk_bytes = self.chunks.values().map(|(chunk, _)| chunk.len()).sum();
        }
    }
}
