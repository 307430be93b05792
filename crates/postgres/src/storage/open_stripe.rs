//! A stripe opened for reading.
//!
//! Callers: scans, TID fetches, ANALYZE. `OpenStripe` ties the pure reader to the pages of a relation; opened stripes
//! are cached per backend by (storage id, first row number), which is never
//! reused and whose bytes never change, so that nothing has to be invalidated.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use pgrx::pg_sys::{self, Relation};
use stripe::{StripeBytes, StripeReader};
use vector::{Error, Result};

use super::directory::StripeEntry;
use super::kept_chunk::KeptChunks;
use super::pages::{self, BlockRun, Expected};
use crate::host::numbers::NumberMap;

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
    /// Its chunks that point look-ups keep.
    pub kept: KeptChunks,
}

thread_local! {
    static STRIPES_OPEN: RefCell<NumberMap<(u64, u64), Rc<OpenStripe>>> = RefCell::new(NumberMap::default());
}

/// Opens the stripe of a directory entry, or finds it open.
pub unsafe fn open(rel: Relation, entry: &StripeEntry) -> Result<Rc<OpenStripe>> {
    let key = (entry.storage_id, entry.first_row);
    if let Some(found) = STRIPES_OPEN.with_borrow(|open| open.get(&key).cloned()) {
        return Ok(found);
    }
    // SAFETY: rel is open.
    let reader = unsafe { open_anew(rel, entry)? };
    let opened = Rc::new(OpenStripe { reader, first_row: entry.first_row, kept: KeptChunks::default() });
    STRIPES_OPEN.with_borrow_mut(|open| {
        if open.len() >= STRIPES {
            open.clear();
        }
        open.insert(key, Rc::clone(&opened));
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
