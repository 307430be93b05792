//! A stripe opened for reading.
//!
//! Called by scans, TID fetches and ANALYZE. `StripeHandle` ties the pure reader to the pages of a relation.
//! Each backend caches opened stripes by file, storage id and first row number. All together are bounded in
//! bytes.
//!
//! No file gives a row number twice, and the bytes of a stripe never change. So nothing has to be
//! invalidated. The file is a part of the key because a copy (SET TABLESPACE) has the same storage id. If the
//! copy is rolled back, the table's own file gives the numbers again that were used in the copy.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::ops::Range;
use std::rc::Rc;

use pgrx::pg_sys;
use stripe::{StripeBytes, StripeReader};
use vector::{Error, Result};

use super::kept_block::KeptBlocks;
use super::kept_chunk::KeptChunks;
use crate::host::numbers::NumberMap;
use crate::host::relation::Open;
use crate::host::relation_file;
use crate::storage::column_file::open::TableFile;
use crate::storage::directory::StripeEntry;
use crate::storage::file::pages::{self, BlockRun, Expected};

/// The most bytes that open stripes may take: statistics, and what a column's chunks share (dictionaries).
const BYTES: usize = 64 << 20;
/// If open stripes take too much, they are closed down to this many bytes, so that it is not too much again
/// at once.
const LEFT: usize = BYTES / 4 * 3;
/// Memory is added up again after as many steps as the open stripes have columns. A stripe that is found open
/// counts as this many steps, as readers grow while they are read from.
const FOUND: usize = 8;
/// A stripe that is opened counts as this many steps, and as a few for each of its columns.
const NEW: usize = 64;
const NEW_COLUMN: usize = 4;

/// Reads a stripe's bytes from the pages of a relation.
pub struct Pages<'a> {
    rel: Open<'a>,
    run: BlockRun,
    expected: Expected,
    strategy: pg_sys::BufferAccessStrategy,
}

impl<'a> Pages<'a> {
    /// Pages of `entry` in `rel`.
    pub fn new(rel: Open<'a>, entry: &StripeEntry) -> Self {
        Self { rel, run: entry.run, expected: entry.expected(), strategy: std::ptr::null_mut() }
    }

    /// `new` for a big scan, which has a ring of buffers.
    ///
    /// # Safety
    /// `strategy` is null or stays until the last read.
    pub unsafe fn by(rel: Open<'a>, entry: &StripeEntry, strategy: pg_sys::BufferAccessStrategy) -> Self {
        Self { strategy, ..Self::new(rel, entry) }
    }
}

impl StripeBytes for Pages<'_> {
    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        // SAFETY: the strategy is null or stays, as `by` says.
        unsafe { pages::read_range(self.rel, self.run, self.expected, range, self.strategy, out) }
    }
}

/// A stripe's reader, shared by all code of this backend that needs it.
pub struct StripeHandle {
    /// The pure reader.
    pub reader: StripeReader,
    /// First row number.
    pub first_row: u64,
    /// Its chunks that point look-ups keep.
    pub kept: KeptChunks,
    /// And its row blocks.
    pub blocks: KeptBlocks,
    /// Time of the last use.
    used: Cell<u64>,
}

/// File, storage id, first row number. Of stripes in column files: 0, storage id, place; there a number that
/// was rolled back may come again, and a place does not.
type Key = (u32, u64, u64);

/// The stripes that are open.
#[derive(Default)]
struct Opened {
    stripes: NumberMap<Key, Rc<StripeHandle>>,
    /// Counts the look-ups.
    clock: u64,
    /// Steps until memory is added up again.
    left: usize,
}

impl Opened {
    fn find(&mut self, key: &Key) -> Option<Rc<StripeHandle>> {
        self.clock += 1;
        let found = self.stripes.get(key).inspect(|found| found.used.set(self.clock)).cloned();
        if found.is_some() {
            self.pass(FOUND);
        }
        found
    }

    /// Counts steps. Closes the stripes that were used longest ago if all together take too much.
    fn pass(&mut self, steps: usize) {
        self.left = self.left.saturating_sub(steps);
        if self.left > 0 {
            return;
        }
        self.left = self.stripes.values().map(|stripe| stripe.reader.column_count()).sum::<usize>().max(NEW);
        if self.stripes.values().map(|stripe| stripe.reader.memory()).sum::<usize>() <= BYTES {
            return;
        }
        let mut all: Vec<(u64, Key, usize)> = self
            .stripes
            .iter()
            .map(|(&key, stripe)| (stripe.used.get(), key, stripe.reader.memory()))
            .collect();
        all.sort_unstable_by_key(|&(used, ..)| Reverse(used));
        let mut bytes = 0;
        for (at, (_, key, memory)) in all.into_iter().enumerate() {
            bytes += memory;
            if bytes > LEFT && at > 0 {
                self.stripes.remove(&key);
            }
        }
    }
}

thread_local! {
    static OPENED: RefCell<Opened> = RefCell::new(Opened::default());
}

/// Opens the stripe of a directory entry, or finds it open.
pub fn open(rel: Open, entry: &StripeEntry) -> Result<Rc<StripeHandle>> {
    let file = relation_file::file_number(&relation_file::locator(rel));
    find_or_open((file, entry.storage_id, entry.first_row), entry.first_row, || open_anew(rel, entry))
}

/// Opens the stripe of a column file, or finds it open.
pub fn open_in_file(file: &TableFile, entry: &StripeEntry) -> Result<Rc<StripeHandle>> {
    let key = (0, entry.storage_id, entry.run.first_block.into());
    find_or_open(key, entry.first_row, || open_reader(entry, &file.stripe(entry)?))
}

fn find_or_open(
    key: Key,
    first_row: u64,
    open: impl FnOnce() -> Result<StripeReader>,
) -> Result<Rc<StripeHandle>> {
    if let Some(found) = OPENED.with_borrow_mut(|opened| opened.find(&key)) {
        return Ok(found);
    }
    let reader = open()?;
    let (kept, blocks) = (KeptChunks::default(), KeptBlocks::default());
    OPENED.with_borrow_mut(|all| {
        let used = Cell::new(all.clock);
        let opened = Rc::new(StripeHandle { reader, first_row, kept, blocks, used });
        all.pass(NEW + opened.reader.column_count() * NEW_COLUMN);
        all.stripes.insert(key, Rc::clone(&opened));
        Ok(opened)
    })
}

/// Opens stripes of several relations that have the same rows, side by side. Each begins at this byte of the
/// whole. Nobody else finds it open.
pub fn open_beside(parts: &[(Open, &StripeEntry, u64)]) -> Result<Rc<StripeHandle>> {
    let footers: Vec<_> = parts
        .iter()
        .map(|&(rel, entry, start)| Ok((read_footer(entry, &Pages::new(rel, entry))?, start)))
        .collect::<Result<_>>()?;
    let footers: Vec<_> = footers.iter().map(|(footer, start)| (footer.as_slice(), *start)).collect();
    let (kept, blocks) = (KeptChunks::default(), KeptBlocks::default());
    let first_row = parts.first().map_or(0, |(_, entry, _)| entry.first_row);
    let reader = StripeReader::beside(&footers)?;
    Ok(Rc::new(StripeHandle { reader, first_row, kept, blocks, used: Cell::new(0) }))
}

fn read_footer(entry: &StripeEntry, bytes: &impl StripeBytes) -> Result<Vec<u8>> {
    let end = entry
        .footer_offset
        .checked_add(u64::from(entry.footer_length))
        .filter(|&end| end <= entry.byte_length)
        .ok_or_else(|| Error::corrupt("footer lies outside the stripe"))?;
    let mut footer = Vec::new();
    bytes.read(entry.footer_offset..end, &mut footer)?;
    Ok(footer)
}

/// Opens the stripe of a directory entry by reading its footer, whether or not it is open already.
pub fn open_anew(rel: Open, entry: &StripeEntry) -> Result<StripeReader> {
    open_reader(entry, &Pages::new(rel, entry))
}

fn open_reader(entry: &StripeEntry, bytes: &impl StripeBytes) -> Result<StripeReader> {
    let reader = StripeReader::open(&read_footer(entry, bytes)?)?;
    if reader.row_count() != entry.row_count {
        return Err(Error::corrupt(format!(
            "stripe holds {} rows, the directory says {}",
            reader.row_count(),
            entry.row_count
        )));
    }
    Ok(reader)
}
