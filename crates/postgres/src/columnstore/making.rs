//! One copy of some blocks of a region, in all indexes that are refreshed together.
//!
//! The steps, of which one session at a time goes through them:
//! 1. Under the region page's lock the entries of the chosen blocks become *pending*.
//! 2. Each block is copied if it is all-visible then (`copy`).
//! 3. The copy is written.
//! 4. Under the region page's lock, entries that are still pending come to name the copy if their block was
//!    copied, and none if not.
//!
//! Whoever changes a block in between sets its entry to none, and so step 4 leaves it alone.
//!
//! A worker encodes the copy between steps 2 and 3 (`storage::encoding`), while the session goes through
//! steps 1 and 2 of the next one.
//!
//! A block's rows are taken once for all indexes, so their copies have the same blocks and can be read side
//! by side (`cover`).

use std::sync::Arc;

use pgrx::pg_sys::BlockNumber;
use stripe::{Background, EncodedStripe, StripeOptions};
use vector::Vector;

use super::layout::{self, LISTED, PENDING, REGION_BLOCKS, SLOTS, Slot};
use super::stop::{self, Step};
use super::{access_method, copy, options, regions, space};
use crate::host::memory;
use crate::host::relation::Open;
use crate::storage::encoding;
use crate::storage::file::pages::{self, PageOwner};

/// An index in which blocks of a region are copied.
#[derive(Clone)]
pub struct Target<'a> {
    index: Open<'a>,
    /// Its columns, by their places in the table.
    attributes: Vec<usize>,
    /// Where the region's page is.
    place: BlockNumber,
}

impl<'a> Target<'a> {
    /// The index, with a page for the region.
    ///
    /// # Safety
    /// As `Refresh::step`.
    pub unsafe fn of(index: Open<'a>, region: u32) -> Self {
        let attributes = access_method::attributes(index);
        // SAFETY: the caller's promise.
        Self { index, attributes, place: unsafe { regions::ensure(index, region) } }
    }

    /// Takes a free slot for these blocks, and sets their entries to pending. Returns the slot. Where none is
    /// free, the copy that counts for the fewest blocks gives way. None: all slots are pending.
    unsafe fn choose(&self, blocks: &[u16]) -> Option<u8> {
        let mut slot = None;
        // SAFETY: the caller's promise. The page is locked within `change` only.
        unsafe {
            regions::change(self.index, self.place, |page| {
                let entries = layout::entries_mut(page);
                set_entries(entries, blocks, 0);
                let free = (1..=SLOTS).find(|&slot| !layout::is_named(entries, slot));
                slot = free.or_else(|| give_way(entries));
                set_entries(entries, blocks, slot.map_or(0, |slot| PENDING | slot));
            });
        }
        slot
    }

    /// Has entries that are still pending name the copy, where their block was copied. Returns how many.
    /// Those of other blocks that were looked at come to name none.
    unsafe fn publish(&self, slot: u8, made: &Slot, blocks: &[(u16, u16)], looked_at: &[u16]) -> u64 {
        let mut taken = 0;
        // SAFETY: as `choose`.
        unsafe {
            regions::change(self.index, self.place, |page| {
                layout::set_slot(page, slot, made);
                let entries = layout::entries_mut(page);
                for (at, _) in blocks {
                    let entry = entries.get_mut(usize::from(*at));
                    if let Some(entry) = entry.filter(|entry| **entry == PENDING | slot) {
                        *entry = slot;
                        taken += 1;
                    }
                }
                // The next copy may have the same slot, if writers have set all entries of this one to none.
                for &at in looked_at {
                    if let Some(entry) = entries.get_mut(usize::from(at)).filter(|e| **e == PENDING | slot) {
                        *entry = 0;
                    }
                }
            });
        }
        taken
    }
}

/// Sets the entries of the copy that counts for the fewest blocks to none. Returns its slot.
fn give_way(entries: &mut [u8]) -> Option<u8> {
    let pending = |slot: u8| entries.contains(&(PENDING | slot));
    let counting = layout::counting_slots(entries).filter(|&(slot, _)| !pending(slot));
    let (slot, _) = counting.min_by_key(|&(_, blocks)| blocks)?;
    entries.iter_mut().filter(|entry| **entry == slot).for_each(|entry| *entry = 0);
    Some(slot)
}

fn set_entries(entries: &mut [u8], blocks: &[u16], to: u8) {
    for &at in blocks {
        if let Some(entry) = entries.get_mut(usize::from(at)) {
            *entry = to;
        }
    }
}

/// A copy that was begun: its rows are taken, and its stripes are being encoded.
pub struct Making<'a> {
    heap: Open<'a>,
    /// The blocks that were copied, with the number of their rows.
    blocks: Vec<(u16, u16)>,
    /// These, and those that were not all-visible.
    looked_at: Vec<u16>,
    rows: u32,
    parts: Vec<Part<'a>>,
}

/// What a copy is in one index.
struct Part<'a> {
    target: Target<'a>,
    slot: u8,
    columns: Arc<Vec<Vector>>,
    options: StripeOptions<'static>,
    /// What encodes it, if that is not left to `finish`.
    worker: Option<Background<EncodedStripe>>,
}

/// Begins a copy of as many of these blocks as fit. Returns it and the blocks that are left. None: in one of
/// the indexes no slot is free.
///
/// # Safety
/// As `Refresh::step`.
pub unsafe fn begin<'a, 'b>(
    targets: &[Target<'a>],
    heap: Open<'a>,
    region: u32,
    blocks: &'b [u16],
) -> Option<(Making<'a>, &'b [u16])> {
    // SAFETY: the caller's promise. Where another index has no free slot, entries stay pending. Nobody reads
    // such a block from a copy, and the next refresh chooses it anew.
    unsafe {
        let slots: Option<Vec<u8>> = targets.iter().map(|target| target.choose(blocks)).collect();
        let slots = slots?;
        stop::after(Step::Chosen);
        let attributes = all_attributes(targets);
        let copied = copy::copy(heap, &attributes, region * REGION_BLOCKS, blocks, copy::Take::AllVisible);
        let chunk_rows = chunk_rows(targets, &copied);
        let parts = targets.iter().zip(slots).map(|(target, slot)| {
            let columns = own_columns(target, &attributes, &copied);
            let options = StripeOptions { chunk_rows, ..options::stripe_options(target.index) };
            let worker = encoding::start(copied.rows as usize, copied.bytes, &columns, &options);
            Part { target: target.clone(), slot, columns, options, worker }
        });
        let parts = parts.collect();
        let (looked_at, left) = blocks.split_at_checked(copied.looked_at).unwrap_or((blocks, &[]));
        let looked_at = looked_at.to_vec();
        Some((Making { heap, blocks: copied.blocks, looked_at, rows: copied.rows, parts }, left))
    }
}

impl Making<'_> {
    /// Writes the copy, and has it count. Returns for how many blocks it does in all indexes.
    ///
    /// # Safety
    /// As `begin`, with the same locks held since.
    pub unsafe fn finish(self) -> u64 {
        let Self { heap, blocks, looked_at, rows, parts } = self;
        // SAFETY: the caller's promise.
        unsafe {
            let made: Vec<(Target<'_>, u8, Slot)> = parts
                .into_iter()
                .map(|Part { target, slot, columns, options, worker }| {
                    let encoded = encoding::finish(worker, rows, &columns, options);
                    let made = write(target.index, heap, &blocks, encoded);
                    (target, slot, made)
                })
                .collect();
            stop::after(Step::Written);
            let taken =
                made.iter().map(|(target, slot, made)| target.publish(*slot, made, &blocks, &looked_at));
            taken.min().unwrap_or(0)
        }
    }
}

/// The columns of all, each once: those of one index in its order.
fn all_attributes(targets: &[Target<'_>]) -> Vec<usize> {
    if let [one] = targets {
        return one.attributes.clone();
    }
    let mut all: Vec<usize> = targets.iter().flat_map(|target| target.attributes.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The columns of an index among those that were copied, and the places of the rows.
fn own_columns(target: &Target<'_>, attributes: &[usize], copied: &copy::Copied) -> Arc<Vec<Vector>> {
    if target.attributes == attributes {
        return Arc::clone(&copied.columns);
    }
    let place = |attribute: &usize| attributes.binary_search(attribute).ok();
    let own = target.attributes.iter().filter_map(|attribute| copied.columns.get(place(attribute)?));
    Arc::new(own.chain(copied.columns.last()).cloned().collect())
}

/// Rows of a chunk: the same in all indexes, or their copies could not be read side by side.
fn chunk_rows(targets: &[Target<'_>], copied: &copy::Copied) -> u32 {
    let wanted = targets.iter().map(|target| options::stripe_options(target.index).chunk_rows).min();
    stripe::fit_chunk_rows(&copied.columns, wanted.unwrap_or(1))
}

/// Writes a copy where nobody reads any more, or behind the others of the file.
unsafe fn write(index: Open, heap: Open, blocks: &[(u16, u16)], encoded: EncodedStripe) -> Slot {
    // SAFETY: the caller's promise: nobody else makes copies in this index.
    unsafe {
        let copy = regions::take_copy_number(index);
        let mut slot = Slot {
            copy,
            rows: encoded.row_count,
            footer_length: encoded.footer_length,
            footer_offset: encoded.footer_offset,
            stripe_bytes: encoded.bytes.len() as u64,
            summary_bytes: encoded.summary.len() as u32,
            blocks: blocks.len() as u32,
            ..Slot::default()
        };
        let mut bytes = encoded.bytes;
        memory::expect(bytes.len() + encoded.summary.len());
        bytes.extend_from_slice(&encoded.summary);
        bytes.reserve(blocks.len() * LISTED);
        for (block, rows) in blocks {
            bytes.extend_from_slice(&block.to_le_bytes());
            bytes.extend_from_slice(&rows.to_le_bytes());
        }
        let owner = PageOwner::current(regions::storage_id(index), slot.first_row());
        let run = match space::take(index, heap, pages::pages_of(bytes.len())) {
            Some(first_block) => pages::overwrite_run(index, first_block, &bytes, owner),
            None => pages::append_run(index, &bytes, owner, pages::FileOf::Index),
        };
        (slot.first_block, slot.block_count) = (run.first_block, run.block_count);
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::{PENDING, SLOTS, give_way};

    #[test]
    fn the_copy_of_the_fewest_blocks_gives_way() {
        let mut entries: Vec<u8> = (1..=SLOTS).flat_map(|slot| [slot; 3]).collect();
        if let Some(entry) = entries.get_mut(20) {
            *entry = 1;
        }
        assert_eq!(give_way(&mut entries), Some(7));
        assert_eq!(entries.iter().filter(|entry| **entry == 0).count(), 2);
        let mut pending: Vec<u8> = (1..=SLOTS).map(|slot| PENDING | slot).collect();
        assert_eq!(give_way(&mut pending), None);
    }
}
