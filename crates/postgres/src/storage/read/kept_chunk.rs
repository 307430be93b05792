//! Column chunks for point look-ups, kept per backend.
//!
//! Called by `table_am::read::cold_fetch` for rows that are fetched by number, in stripes that store each
//! column apart (`kept_block` serves the others). A chunk stays in memory as it is stored, opened, and single
//! values are taken out of it. Once that was done so often that decoding the whole chunk would have cost
//! about as much, it is decoded, and further values are read from it.
//!
//! A chunk belongs to its opened stripe, whose bytes never change, so nothing has to be invalidated. The
//! bytes of all chunks together are bounded. Scans do not use this cache.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use encodings::{Chunk, Single};
use stripe::{OpenedChunk, OwnedChunk};
use vector::{Error, LogicalType, Result, Vector};

use super::kept::{Cache, Keep, Life};
use super::stripe_on_pages::{Pages, StripeHandle};
use crate::host::relation::Open;
use crate::storage::directory::StripeEntry;
use crate::storage::file::codecs::ServerCodecs;

/// The most bytes that are kept.
const BYTES: usize = 64 << 20;
/// Taking one value costs about as much as decoding this many values of a chunk. The first is for integers
/// and the like, the second for byte strings.
const NUMBERS: u32 = 128;
const STRINGS: u32 = 64;
/// Up to this many values are taken one by one if that needs no vector.
const FEW: usize = 4;

/// One column chunk. The fields that reading a decoded value needs come first and side by side. Rows that an
/// index names are in many chunks, and fetching them waits for memory.
#[repr(C)]
pub struct KeptChunk {
    life: Life,
    rows: u32,
    /// The chunk is decoded once this many values were taken one by one.
    many: u32,
    decoded: OnceCell<Vector>,
    /// None before the first value is taken, and once the chunk is decoded.
    opened: RefCell<Option<OpenedChunk>>,
    stored: Arc<OwnedChunk>,
    /// Values taken one by one.
    taken: Cell<u32>,
}

impl Keep for KeptChunk {
    /// Column, and number of the chunk.
    type Place = (usize, u32);

    fn life(&self) -> &Life {
        &self.life
    }

    fn forget(stripe: &StripeHandle, (column, number): Self::Place) {
        stripe.kept.set(column, number, None);
    }
}

/// The chunks of a stripe that are kept, by column and number.
#[derive(Default)]
pub struct KeptChunks(RefCell<Vec<Vec<Option<Rc<KeptChunk>>>>>);

impl KeptChunks {
    fn get(&self, column: usize, chunk: u32) -> Option<Rc<KeptChunk>> {
        self.0.borrow().get(column)?.get(chunk as usize)?.clone()
    }

    fn set(&self, column: usize, chunk: u32, kept: Option<Rc<KeptChunk>>) {
        fn place<T: Default>(list: &mut Vec<T>, at: usize) -> &mut T {
            if list.len() <= at {
                list.resize_with(at + 1, T::default);
            }
            &mut list[at]
        }
        *place(place(&mut self.0.borrow_mut(), column), chunk as usize) = kept;
    }
}

thread_local! {
    static CACHE: RefCell<Cache<KeptChunk>> = const { RefCell::new(Cache::new(BYTES)) };
}

/// A column chunk of `stripe`, whose directory entry is `entry`. Its number is one of
/// `StripeReader::unit_of`.
pub fn of(
    rel: Open,
    entry: &StripeEntry,
    stripe: &Rc<StripeHandle>,
    column: usize,
    chunk: u32,
) -> Result<Rc<KeptChunk>> {
    if let Some(found) = stripe.kept.get(column, chunk) {
        found.life.touch();
        return Ok(found);
    }
    let pages = Pages::new(rel, entry);
    let stored = stripe.reader.read_chunk(column, chunk, &pages, &ServerCodecs)?;
    let many = match stripe.reader.logical(column) {
        Some(LogicalType::Text | LogicalType::Bytes) => stored.rows() / STRINGS,
        _ => stored.rows() / NUMBERS,
    };
    // An opened chunk keeps up to one number for each row: where texts begin, or which shape documents have.
    let bytes = stored.len() + size_of::<KeptChunk>() + stored.rows() as usize * size_of::<u32>();
    let kept = Rc::new(KeptChunk {
        life: Life::new(bytes),
        rows: stored.rows(),
        many,
        decoded: OnceCell::new(),
        opened: RefCell::new(None),
        stored: Arc::new(stored),
        taken: Cell::new(0),
    });
    CACHE.with_borrow_mut(|cache| cache.add(&kept, stripe, (column, chunk)));
    stripe.kept.set(column, chunk, Some(Rc::clone(&kept)));
    Ok(kept)
}

impl KeptChunk {
    /// Hands the values of these rows of the chunk, which ascend, to `use_value`, one after the other. `room`
    /// is for bytes that are not stored as such.
    #[inline]
    pub fn each_value(
        &self,
        rows: &[u32],
        room: &mut Vec<u8>,
        mut use_value: impl FnMut(Single<'_>),
    ) -> Result<()> {
        let decoded = match self.decoded.get() {
            Some(decoded) => decoded,
            None if self.pays(rows.len()) => self.decode()?,
            None => return self.take_each(rows, room, use_value),
        };
        if let Some(last) = rows.last().filter(|&&last| last >= self.rows) {
            return Err(Error::InvalidInput(format!("row {last} of a chunk of {}", self.rows)));
        }
        rows.iter().for_each(|&row| use_value(Single::Of(decoded, row as usize)));
        Ok(())
    }

    /// Does what `each_value` does, from the chunk as it is stored.
    #[inline(never)]
    fn take_each(&self, rows: &[u32], room: &mut Vec<u8>, use_value: impl FnMut(Single<'_>)) -> Result<()> {
        self.with_opened(|opened| take_each(opened, rows, room, use_value))
    }

    /// Whether taking `more` values, after those taken before, costs about as much as decoding the chunk.
    fn pays(&self, more: usize) -> bool {
        let taken = self.taken.get().saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
        self.taken.set(taken);
        taken > self.many
    }

    #[cold]
    fn decode(&self) -> Result<&Vector> {
        let vector = self.stored.decode(&ServerCodecs)?;
        self.opened.take();
        let more = vector.bytes().cast_signed();
        CACHE.with_borrow_mut(|cache| cache.resize(&self.life, more));
        Ok(self.decoded.get_or_init(|| vector))
    }

    fn with_opened<T>(&self, read: impl FnOnce(&Chunk<'_>) -> Result<T>) -> Result<T> {
        let mut opened = self.opened.borrow_mut();
        let opened = match &mut *opened {
            Some(opened) => opened,
            none => none.insert(OpenedChunk::of(&self.stored, &ServerCodecs)?),
        };
        read(opened.chunk()).map_err(|problem| self.stored.located(problem))
    }
}

/// Hands the values of these rows of a chunk, which ascend, to `use_value`, without decoding the chunk.
pub(super) fn take_each(
    opened: &Chunk<'_>,
    rows: &[u32],
    room: &mut Vec<u8>,
    mut use_value: impl FnMut(Single<'_>),
) -> Result<()> {
    let mut rest = rows;
    while let [row, others @ ..] = rest
        && rows.len() <= FEW
        && let Some(value) = opened.single(*row, room)?
    {
        use_value(value);
        rest = others;
    }
    if !rest.is_empty() {
        let taken = opened.take(rest)?;
        (0..rest.len()).for_each(|at| use_value(Single::Of(&taken, at)));
    }
    Ok(())
}
