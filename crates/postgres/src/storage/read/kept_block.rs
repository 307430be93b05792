//! Row blocks for point look-ups, kept per backend.
//!
//! Called by `table_am::read::cold_fetch` for rows of stripes with row blocks that are fetched by number. A
//! block is read once for all columns. Single values are taken out of it as it is stored. While there is
//! room, a column that is asked for again stays open, and is decoded for all rows of the block once many of
//! its values were taken.
//!
//! A block belongs to its opened stripe, whose bytes never change, so nothing has to be invalidated. The
//! bytes of all blocks together are bounded. `kept_chunk` does the same for stripes that store each column
//! apart.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use encodings::Single;
use stripe::{OpenedChunk, RowBlock};
use vector::{Error, Result, Vector};

use super::kept::{Cache, Keep, Life};
use super::kept_chunk::take_each;
use super::stripe_on_pages::{Pages, StripeHandle};
use crate::host::relation::Open;
use crate::storage::directory::StripeEntry;
use crate::storage::file::codecs::ServerCodecs;

/// The most bytes that are kept.
const BYTES: usize = 32 << 20;
/// A column is decoded for all rows once one in this many rows was taken. Decoding a block of the benchmark's
/// events (130 rows) takes as long as taking 20 to 40 of its rows.
const DECODE_FROM: u32 = 4;

/// One block.
pub struct KeptBlock {
    life: Life,
    block: Arc<RowBlock>,
    /// Memory of the block that is counted.
    counted: Cell<usize>,
    /// Rows that were taken so far.
    taken: Cell<u32>,
    columns: RefCell<Vec<Column>>,
}

/// What is kept of a column of a block.
enum Column {
    /// Nothing: no value of it was taken so far.
    Unread,
    /// Nothing, but values were taken.
    Read,
    Opened(OpenedChunk),
    Decoded(Box<Vector>),
}

/// The blocks of a stripe that are kept, by number.
#[derive(Default)]
pub struct KeptBlocks(RefCell<Vec<Option<Rc<KeptBlock>>>>);

impl Keep for KeptBlock {
    /// Its number.
    type Place = u32;

    fn life(&self) -> &Life {
        &self.life
    }

    fn forget(stripe: &StripeHandle, number: u32) {
        if let Some(place) = stripe.blocks.0.borrow_mut().get_mut(number as usize) {
            *place = None;
        }
    }
}

thread_local! {
    static CACHE: RefCell<Cache<KeptBlock>> = const { RefCell::new(Cache::new(BYTES)) };
}

/// A block of `stripe`, whose directory entry is `entry`.
pub fn of(rel: Open, entry: &StripeEntry, stripe: &Rc<StripeHandle>, number: u32) -> Result<Rc<KeptBlock>> {
    if let Some(Some(found)) = stripe.blocks.0.borrow().get(number as usize) {
        found.life.touch();
        return Ok(Rc::clone(found));
    }
    let block = stripe.reader.read_block(number, &Pages::new(rel, entry))?;
    let memory = block.memory();
    let read = Rc::new(KeptBlock {
        life: Life::new(memory + size_of::<KeptBlock>()),
        counted: Cell::new(memory),
        block: Arc::new(block),
        taken: Cell::new(0),
        columns: RefCell::default(),
    });
    CACHE.with_borrow_mut(|cache| cache.add(&read, stripe, number));
    let mut blocks = stripe.blocks.0.borrow_mut();
    if blocks.len() <= number as usize {
        blocks.resize_with(number as usize + 1, || None);
    }
    if let Some(place) = blocks.get_mut(number as usize) {
        *place = Some(Rc::clone(&read));
    }
    Ok(read)
}

impl KeptBlock {
    /// Notes that so many rows are about to be taken.
    pub fn take(&self, rows: usize) {
        self.taken.set(self.taken.get().saturating_add(u32::try_from(rows).unwrap_or(u32::MAX)));
    }

    /// Hands a column's values of these rows of the block, which ascend, to `use_value`, one after the other.
    /// `room` is for bytes that are not stored as such.
    pub fn each_value(
        &self,
        stripe: &Rc<StripeHandle>,
        pages: &Pages<'_>,
        column: usize,
        rows: &[u32],
        room: &mut Vec<u8>,
        mut use_value: impl FnMut(Single<'_>),
    ) -> Result<()> {
        let count = self.block.rows();
        if let Some(last) = rows.last().filter(|&&last| last >= count) {
            return Err(Error::InvalidInput(format!("row {last} of a block of {count}")));
        }
        let mut columns = self.columns.borrow_mut();
        if columns.is_empty() {
            columns.resize_with(stripe.reader.column_count(), || Column::Unread);
        }
        let outside = || Error::InvalidInput(format!("column {column} of a block"));
        let kept = columns.get_mut(column).ok_or_else(outside)?;
        self.grow(kept, stripe, pages, column)?;
        let located = |problem| stripe.reader.located(&self.block, column, problem);
        match kept {
            Column::Decoded(decoded) => {
                rows.iter().for_each(|&row| use_value(Single::Of(decoded, row as usize)));
                Ok(())
            }
            Column::Opened(opened) => take_each(opened.chunk(), rows, room, use_value).map_err(located),
            Column::Unread | Column::Read => {
                let chunk = stripe.reader.open_in_block(&self.block, column, pages, &ServerCodecs)?;
                if matches!(kept, Column::Unread) {
                    *kept = Column::Read;
                    self.count_block();
                }
                take_each(&chunk, rows, room, use_value).map_err(located)
            }
        }
    }

    /// Counts the block's memory anew: of a wide block another column was read.
    fn count_block(&self) {
        let now = self.block.memory();
        let more = now.cast_signed() - self.counted.replace(now).cast_signed();
        if more != 0 {
            CACHE.with_borrow_mut(|cache| cache.resize(&self.life, more));
        }
    }

    /// Keeps more of a column, if that pays and there is room.
    fn grow(
        &self,
        kept: &mut Column,
        stripe: &Rc<StripeHandle>,
        pages: &Pages<'_>,
        column: usize,
    ) -> Result<()> {
        let often = self.taken.get() > self.block.rows() / DECODE_FROM;
        let pays = match kept {
            Column::Decoded(_) => false,
            Column::Unread | Column::Opened(_) => often,
            Column::Read => true,
        };
        // Many blocks that are read a few times each stay as they are stored.
        if !pays || !CACHE.with_borrow(Cache::is_half_empty) {
            return Ok(());
        }
        let before = if let Column::Opened(opened) = kept { opened.memory() } else { 0 };
        let now = if often {
            let chunk = stripe.reader.open_in_block(&self.block, column, pages, &ServerCodecs)?;
            let decoded = chunk.decode().map_err(|e| stripe.reader.located(&self.block, column, e))?;
            let bytes = decoded.bytes() + size_of::<Vector>();
            *kept = Column::Decoded(Box::new(decoded));
            bytes
        } else {
            let opened = stripe.reader.keep_in_block(&self.block, column, pages, &ServerCodecs)?;
            let bytes = opened.memory();
            *kept = Column::Opened(opened);
            bytes
        };
        let more = now.cast_signed() - before.cast_signed();
        CACHE.with_borrow_mut(|cache| cache.resize(&self.life, more));
        self.count_block();
        Ok(())
    }
}
