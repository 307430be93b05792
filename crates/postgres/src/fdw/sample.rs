//! Rows at random places of a foreign table, for ANALYZE.
//!
//! The number of rows is known, so each place is chosen once for all of them, and a chunk is decoded only
//! where it has one. Rows come in their order, from which the server computes correlations.

use std::collections::BTreeSet;
use std::ffi::c_int;

use pgrx::pg_sys::{self, Datum, HeapTuple};
use stripe::{OpenStripe, StripeBytes};
use vector::{Result, Selection};

use crate::convert::{ColumnReader, ColumnType};
use crate::host::random;
use crate::host::relation::Open;
use crate::storage::column_file;
use crate::storage::file::codecs::ServerCodecs;

/// So many different numbers below `all`, ascending; all of them where there are fewer. Floyd's method: each
/// set of numbers is as likely as any other (Bentley and Floyd, CACM 30(9), 1987).
pub fn places(all: u64, wanted: u64) -> Vec<u64> {
    let mut chosen = BTreeSet::new();
    for last in all.saturating_sub(wanted)..all {
        let place = random::below(last + 1);
        if !chosen.insert(place) {
            chosen.insert(last);
        }
    }
    chosen.into_iter().collect()
}

/// Rows that are being gathered, stripe by stripe.
pub struct Sample<'a> {
    rel: Open<'a>,
    rows: *mut HeapTuple,
    taken: usize,
    /// Places that are still to come, counted from the first row of all.
    left: std::vec::IntoIter<u64>,
    /// Rows of the stripes before.
    before: u64,
}

impl<'a> Sample<'a> {
    /// Puts the rows at these places into `rows`.
    ///
    /// # Safety
    /// There is room for so many.
    pub unsafe fn new(rel: Open<'a>, rows: *mut HeapTuple, places: Vec<u64>) -> Self {
        Self { rel, rows, taken: 0, left: places.into_iter(), before: 0 }
    }

    /// How many rows there are now.
    pub fn taken(&self) -> c_int {
        c_int::try_from(self.taken).unwrap_or(0)
    }

    /// Rows of the stripes that were looked at.
    pub const fn before(&self) -> u64 {
        self.before
    }

    /// The places in the next stripe, of so many rows, counted from its first row.
    pub fn places_in_next(&mut self, count: u64) -> Vec<u32> {
        let start = self.before;
        self.before = self.before.saturating_add(count);
        let own = self.left.as_slice();
        let own = own.get(..own.partition_point(|place| *place < self.before)).unwrap_or(&[]);
        let own: Vec<u32> = own.iter().map(|place| (place - start) as u32).collect();
        self.left.by_ref().take(own.len()).for_each(drop);
        own
    }

    /// Copies the rows at these places of that stripe.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn take(
        &mut self,
        stripe: &dyn OpenStripe,
        bytes: &dyn StripeBytes,
        mut places: &[u32],
    ) -> Result<()> {
        // SAFETY: the promise of `new`; datums live until their rows are formed.
        unsafe {
            let descriptor = self.rel.descriptor();
            let kinds = ColumnType::of_all(descriptor);
            for chunk in 0..stripe.chunk_count() {
                let range = stripe.chunk_rows(chunk);
                let (own, later) = places.split_at(places.partition_point(|place| *place < range.end));
                places = later;
                if own.is_empty() {
                    continue;
                }
                pgrx::check_for_interrupts!();
                let own = Selection::Rows(own.iter().map(|place| place - range.start).collect());
                // Their arenas hold what the values point to.
                let mut readers: Vec<_> = kinds.iter().map(|kind| ColumnReader::new(*kind)).collect();
                let mut values = vec![Datum::null(); own.len() * kinds.len()];
                let mut nulls = vec![true; own.len() * kinds.len()];
                let places = values.chunks_exact_mut(own.len()).zip(nulls.chunks_exact_mut(own.len()));
                for ((at, column), (values, nulls)) in readers.iter_mut().enumerate().zip(places) {
                    if column.kind().type_oid == pg_sys::InvalidOid {
                        continue;
                    }
                    if stripe.logical(at).is_some() {
                        let mut chunk = stripe.read_chunk(at, chunk, bytes, &ServerCodecs)?;
                        chunk.verify()?;
                        column.datums(&chunk.decode(&ServerCodecs)?.flatten(), &own, values, nulls);
                    } else {
                        let (value, null) = column_file::missing::value(self.rel, at);
                        values.fill(value);
                        nulls.fill(null);
                    }
                }
                for row in 0..own.len() {
                    let mut of_row: Vec<_> = values.iter().skip(row).step_by(own.len()).copied().collect();
                    let mut null: Vec<_> = nulls.iter().skip(row).step_by(own.len()).copied().collect();
                    let tuple = pg_sys::heap_form_tuple(descriptor, of_row.as_mut_ptr(), null.as_mut_ptr());
                    *self.rows.add(self.taken) = tuple;
                    self.taken += 1;
                }
            }
            Ok(())
        }
    }
}
