//! Single rows of stripes.
//!
//! A value can be taken out of an encoded chunk without decoding the others, but reading the chunk and
//! comparing its checksum costs more than that. So chunks that single rows were taken from are kept open for
//! a while.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use encodings::NoPglz;
use stripe::OpenedChunk;

use super::{Entry, Storage};
use crate::api::{Error, Result};
use crate::values::{Column, Kind};

/// Most bytes of chunks that are kept.
const KEPT: usize = 32 << 20;

/// The chunks that are kept, by stamp of the stripe, column and number. All go once they are too many: which
/// ones are asked for again is not known.
#[derive(Default)]
pub struct KeptChunks {
    chunks: RefCell<HashMap<(i64, usize, u32), Rc<OpenedChunk>>>,
    bytes: Cell<usize>,
}

impl Storage {
    /// One row of a stripe: the columns at these places, each a column of one row.
    pub fn row(&self, entry: &Entry, row: u32, places: &[usize]) -> Result<Vec<(usize, Column)>> {
        let reader = self.open(entry)?;
        let (chunk, rows) = reader.unit_of(row);
        let within = row.checked_sub(rows.start).ok_or_else(|| Error::corrupt("a row outside its chunk"))?;
        let column = |&place: &usize| {
            let kind = entry.kinds.get(place).copied().unwrap_or(Kind::Mixed);
            let opened = self.kept_chunk(entry, place, chunk)?;
            Ok((place, Column::new(kind, opened.chunk().take(&[within])?)))
        };
        places.iter().map(column).collect()
    }

    fn kept_chunk(&self, entry: &Entry, place: usize, chunk: u32) -> Result<Rc<OpenedChunk>> {
        let kept = &self.kept_chunks;
        let key = (entry.stamp, place, chunk);
        if let Some(known) = kept.chunks.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let stored = self.open(entry)?.read_chunk(place, chunk, &self.bytes(entry), &NoPglz)?;
        let bytes = stored.len();
        let opened = Rc::new(OpenedChunk::of(&Arc::new(stored), &NoPglz)?);
        let bytes = bytes + opened.memory();
        let mut chunks = kept.chunks.borrow_mut();
        if kept.bytes.get() + bytes > KEPT {
            chunks.clear();
            kept.bytes.set(0);
        }
        kept.bytes.set(kept.bytes.get() + bytes);
        chunks.insert(key, Rc::clone(&opened));
        Ok(opened)
    }
}
