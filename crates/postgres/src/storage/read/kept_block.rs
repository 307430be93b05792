//! Row blocks for point look-ups, kept per backend.
//!
//! Called by `table_am::read::cold_fetch` for rows of stripes with row blocks that are fetched by number. A
//! block is read once for all columns. Single values are taken out of it as it is stored. Once that was done
//! often enough, and there is room, a column is decoded for all rows of the block.
//!
//! A block belongs to its opened stripe, whose bytes never change, so nothing has to be invalidated. The
//! bytes of all blocks together are bounded: if they are too many, all blocks are dropped. `kept_chunk` does
//! the same for stripes that store each column apart.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};

use encodings::Single;
use stripe::RowBlock;
use vector::{Error, Result, Vector};

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
    block: RowBlock,
    /// Rows that were taken so far.
    taken: Cell<u32>,
    /// Columns that were decoded. Empty until the first is.
    decoded: OnceCell<Vec<OnceCell<Vector>>>,
}

/// The blocks of a stripe that are kept, by number.
#[derive(Default)]
pub struct KeptBlocks(RefCell<Vec<Option<Rc<KeptBlock>>>>);

#[derive(Default)]
struct Cache {
    bytes: usize,
    stripes: Vec<Weak<StripeHandle>>,
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::new(Cache::default());
}

/// A block of `stripe`, whose directory entry is `entry`.
pub fn of(rel: Open, entry: &StripeEntry, stripe: &Rc<StripeHandle>, number: u32) -> Result<Rc<KeptBlock>> {
    // Blocks grow as their columns are decoded, so this is looked at whether or not one is added.
    CACHE.with_borrow_mut(Cache::stay_small);
    let kept = &stripe.blocks.0;
    if let Some(Some(found)) = kept.borrow().get(number as usize) {
        return Ok(Rc::clone(found));
    }
    let block = stripe.reader.read_block(number, &Pages::new(rel, entry))?;
    let mut kept = kept.borrow_mut();
    CACHE.with_borrow_mut(|cache| {
        cache.bytes += block.memory() + size_of::<KeptBlock>();
        if kept.is_empty() {
            cache.stripes.push(Rc::downgrade(stripe));
        }
    });
    let read = Rc::new(KeptBlock { block, taken: Cell::new(0), decoded: OnceCell::new() });
    if kept.len() <= number as usize {
        kept.resize_with(number as usize + 1, || None);
    }
    if let Some(place) = kept.get_mut(number as usize) {
        *place = Some(Rc::clone(&read));
    }
    Ok(read)
}

impl Cache {
    /// Whether columns may be decoded. They take ten times as much as blocks, so many blocks that are read a
    /// few times each stay as they are stored.
    const fn has_room(&self) -> bool {
        self.bytes < BYTES / 2
    }

    /// Drops all blocks if there are too many.
    fn stay_small(&mut self) {
        if self.bytes > BYTES {
            for stripe in self.stripes.drain(..).filter_map(|stripe| stripe.upgrade()) {
                stripe.blocks.0.borrow_mut().clear();
            }
            self.bytes = 0;
        }
    }
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
        let known = self.decoded.get().and_then(|columns| columns.get(column)?.get());
        let often = || self.taken.get() > count / DECODE_FROM && CACHE.with_borrow(Cache::has_room);
        let decoded = match known {
            None if often() => Some(self.decode(stripe, pages, column)?),
            known => known,
        };
        if let Some(decoded) = decoded {
            rows.iter().for_each(|&row| use_value(Single::Of(decoded, row as usize)));
            return Ok(());
        }
        let chunk = stripe.reader.open_in_block(&self.block, column, pages, &ServerCodecs)?;
        take_each(&chunk, rows, room, use_value)
            .map_err(|problem| stripe.reader.located(&self.block, column, problem))
    }

    #[cold]
    fn decode(&self, stripe: &Rc<StripeHandle>, pages: &Pages<'_>, column: usize) -> Result<&Vector> {
        let columns = self.decoded.get_or_init(|| {
            let mut columns = Vec::new();
            columns.resize_with(stripe.reader.column_count(), OnceCell::new);
            columns
        });
        let place = columns.get(column).ok_or_else(|| Error::InvalidInput(format!("column {column}")))?;
        let chunk = stripe.reader.open_in_block(&self.block, column, pages, &ServerCodecs)?;
        let decoded = chunk.decode().map_err(|e| stripe.reader.located(&self.block, column, e))?;
        CACHE.with_borrow_mut(|cache| cache.bytes += decoded.bytes());
        Ok(place.get_or_init(|| decoded))
    }
}
