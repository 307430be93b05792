//! Some stripes of a table, as the engine's scan sees them.

use std::ops::Range;
use std::rc::Rc;

use encodings::{BlockCodecs, NoPglz};
use stripe::scan::{RowsOut, Store, StripeInfo};
use stripe::{OpenStripe, StripeReader, row_bits};
use vector::Result;

use super::{Entry, Storage, segments};
use crate::values::Kind;

/// Stripes whose columns are of the same kinds.
pub struct StripeStore {
    storage: Rc<Storage>,
    entries: Rc<Vec<Entry>>,
    /// Which of them.
    part: Range<usize>,
}

impl StripeStore {
    /// The stripes at these positions.
    pub const fn new(storage: Rc<Storage>, entries: Rc<Vec<Entry>>, part: Range<usize>) -> Self {
        Self { storage, entries, part }
    }

    fn entry(&self, at: usize) -> Option<&Entry> {
        self.entries.get(self.part.clone())?.get(at)
    }

    fn expect(&self, at: usize) -> Result<&Entry> {
        self.entry(at)
            .ok_or_else(|| vector::Error::InvalidInput(format!("stripe {at} of {}", self.part.len())))
    }
}

/// The stripes from a position on whose columns at these places are of the same kinds: one scan serves them.
pub fn same_kinds(entries: &[Entry], from: usize, places: &[usize]) -> Range<usize> {
    let kinds = |entry: &Entry| -> Vec<Option<Kind>> {
        places.iter().map(|&place| entry.kinds.get(place).copied()).collect()
    };
    let rest = entries.get(from..).unwrap_or_default();
    let first = rest.first().map(kinds);
    from..from + rest.iter().take_while(|entry| Some(kinds(entry)) == first).count()
}

impl Store for StripeStore {
    type Stripe = Rc<StripeReader>;
    type Bytes<'a> = segments::Bytes<'a>;

    fn stripe(&self, at: usize) -> Option<StripeInfo<'_>> {
        let entry = self.entry(at)?;
        let first_row = entry.row_numbers().start;
        let (row_count, footer) = (entry.rows, entry.footer..entry.bytes);
        Some(StripeInfo { first_row, row_count, summary: &entry.summary, footer })
    }

    fn open(&self, at: usize) -> Result<Self::Stripe> {
        self.storage.open(self.expect(at)?).map_err(|error| error.into_data())
    }

    fn reader(stripe: &Self::Stripe) -> &dyn OpenStripe {
        stripe.as_ref()
    }

    fn bytes(&self, at: usize) -> Result<Self::Bytes<'_>> {
        Ok(self.storage.bytes(self.expect(at)?))
    }

    fn rows_out(&self, rows: Range<u64>, out: &mut RowsOut) {
        let own = |entry: &&Entry| entry.row_numbers().contains(&rows.start);
        let part = self.entries.get(self.part.clone()).unwrap_or_default();
        if let Some(entry) = part.iter().find(own).filter(|entry| entry.dead_rows > 0) {
            let first = entry.row_numbers().start;
            row_bits::rows_in(first, &entry.dead, rows).for_each(|number| out.row(number));
        }
    }

    fn codecs(&self) -> &'static dyn BlockCodecs {
        &NoPglz
    }

    fn number(&self) -> u32 {
        0
    }
}
