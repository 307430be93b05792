//! How much of a table a scan would read from copies, for the planner.
//!
//! Some regions are looked at, spread evenly over the table, so planning takes as long for a table of any
//! size. What is found is a guess: a scan judges all blocks anew (`cover`).

use pgrx::pg_sys::{self, Oid};

use super::layout::{REGION_BLOCKS, SLOTS};
use super::{regions, visibility};
use crate::host::relation::{Open, with_index};

/// Most regions that are looked at. Each takes about a microsecond.
const MOST_REGIONS: u32 = 64;

/// Shares of a table's blocks, and what the copies take.
pub struct Shares {
    /// Clean blocks.
    pub clean: f64,
    /// Checked blocks.
    pub checked: f64,
    /// Pages of the indexes.
    pub pages: f64,
}

/// What a scan that reads these indexes side by side would find.
///
/// # Safety
/// The heap is open, and the indexes are its own columnstore indexes, locked.
pub unsafe fn shares(indexes: impl Iterator<Item = Oid>, heap: Open) -> Shares {
    let blocks = heap.block_count();
    let count = blocks.div_ceil(REGION_BLOCKS);
    let step = count.div_ceil(MOST_REGIONS).max(1) as usize;
    let looked_at: Vec<u32> = (0..count).step_by(step).collect();
    let mut copied = vec![vec![true; REGION_BLOCKS as usize]; looked_at.len()];
    let mut pages = 0.0;
    for index in indexes {
        with_index(index, pg_sys::NoLock, |index| {
            pages += f64::from(index.block_count());
            for (&region, all) in looked_at.iter().zip(&mut copied) {
                let own = entries(index, region);
                all.truncate(own.len());
                all.iter_mut().zip(own).for_each(|(all, own)| *all &= own);
            }
        });
    }
    let (mut all, mut clean, mut covered) = (0_u32, 0_u32, 0_u32);
    for (&region, copied) in looked_at.iter().zip(&copied) {
        // SAFETY: the caller's promise.
        let visible = unsafe { visibility::visible(heap, region, blocks) };
        all += visible.len() as u32;
        covered += copied.iter().take(visible.len()).copied().map(u32::from).sum::<u32>();
        let both = visible.iter().zip(copied).map(|(&visible, &copied)| visible & copied);
        clean += both.map(u32::from).sum::<u32>();
    }
    let share = |blocks: u32| f64::from(blocks) / f64::from(all.max(1));
    Shares { clean: share(clean), checked: share(covered - clean), pages }
}

/// Which blocks of a region have a copy that counts.
fn entries(index: Open, region: u32) -> Vec<bool> {
    // An index that is unlogged, or was truncated with its table, may have no page yet.
    let known = if index.block_count() == 0 { None } else { regions::load(index, region) };
    let has_copy = |entry: &u8| (1..=SLOTS).contains(entry);
    known.map_or_else(Vec::new, |known| known.entries().iter().map(has_copy).collect())
}
