//! What becomes of the pages that packed rows have left.
//!
//! Called by the worker after it has packed a table. VACUUM empties such pages, and hot rows and stripes come
//! to fill them again. But autovacuum waits until a fifth of all rows is dead, and counts the rows of
//! stripes, too. So more is done here:
//! - A table is vacuumed if a tenth of its file is dead rows, or stripes that nobody sees.
//! - If a tenth is empty afterwards, stripes at the end of the file are moved to the empty pages (`compact`),
//!   and the end is cut off.
//!
//! Nothing else will fill the empty pages of a table that nobody writes to. So there a smaller part is
//! enough. The last hot rows become a stripe first, as they may lie at the end. If no run of empty pages is
//! long enough for a stripe at the end, the longest run is made longer.
//!
//! Invariant: the pages that are freed are in proportion to what is read.

use std::time::Instant;

use pgrx::pg_sys;

use super::process::report;
use super::statistics::{self, Sum};
use super::worker::{self, Table, on_table};
use super::{compact, settings, vacuum};
use crate::compat;
use crate::host::buffer::PAGE_BYTES;
use crate::host::relation::Open;
use crate::storage::directory::entries;
use crate::storage::file::{hot_runs, metapage};
use crate::storage::space::{dead_blocks, emptied_pages, truncate};

/// Freeing pages is worth while if they are at least `FEWEST`, and one in `PART` of the file's pages. In a
/// table that nobody writes to, one in `IDLE_PART` is enough.
const PART: u32 = 10;
const IDLE_PART: u32 = 32;
const FEWEST: u32 = 64;
/// Stripes are moved twice if one in this many pages is empty.
const TWO_MOVES_PART: u32 = 16;
/// Stripes that are moved before others have their turn.
const STRIPES: usize = 64;

/// How many pages of a file could be freed: those without live stripes or live hot rows.
#[derive(Default)]
pub(super) struct Room {
    blocks: u32,
    /// One page in this many is worth freeing.
    part: u32,
    /// Whether nobody writes.
    idle: bool,
    /// Empty pages, by the free space map.
    spare: u32,
    /// Pages with rows, some of which may be dead.
    unclean: u32,
    /// Pages of stripes that nobody sees.
    dead: u32,
    /// Dead hot rows, by the server's statistics.
    dead_rows: u64,
}

impl Room {
    /// Looks at every page of a table that belongs to no stripe, but only in the maps.
    ///
    /// # Safety
    /// `rel` is locked with ShareUpdateExclusiveLock.
    pub unsafe fn of(rel: Open, idle: bool) -> Self {
        // SAFETY: the lock is promised.
        unsafe {
            let Some(storage_id) = metapage::storage_id(rel) else { return Self::default() };
            let oldest = rel.oldest_xmin();
            let blocks = rel.block_count();
            let part = if idle { IDLE_PART } else { PART };
            let dead = entries::dead_pages(storage_id, oldest);
            let mut room = Self { blocks, part, idle, dead, ..Self::default() };
            let counts = pg_sys::pgstat_fetch_stat_tabentry(rel.oid());
            if !counts.is_null() {
                room.dead_rows = u64::try_from(compat::dead_rows(&*counts)).unwrap_or(0);
            }
            let runs: Vec<_> = entries::all_versions(storage_id).into_iter().map(|entry| entry.run).collect();
            // Adds stripes whose rows have left the directory's pages already: the server prunes these when
            // it needs the room.
            room.dead = room.dead.saturating_add(dead_blocks::dead_blocks(rel, runs.iter().copied()));
            let mut vmbuffer: pg_sys::Buffer = 0;
            for span in hot_runs::hot_spans(runs, blocks) {
                for block in span.start..span.end {
                    pgrx::check_for_interrupts!();
                    if emptied_pages::seems_empty(rel, block) {
                        room.spare += 1;
                    } else if pg_sys::visibilitymap_get_status(rel.as_ptr(), block, &raw mut vmbuffer) == 0 {
                        room.unclean += 1;
                    }
                }
            }
            if vmbuffer != 0 {
                pg_sys::ReleaseBuffer(vmbuffer);
            }
            room
        }
    }

    fn is_worth(&self, pages: u32) -> bool {
        pages >= FEWEST.max(self.blocks / self.part.max(1))
    }

    /// How many blocks stay in use if the stripes at the end of the file are moved to empty pages. None if
    /// that is not worth while.
    pub fn to_keep(&self) -> Option<u32> {
        self.is_worth(self.spare).then(|| self.blocks - self.spare)
    }

    /// Whether so much is empty that stripes are moved twice for it.
    fn is_worth_two_moves(&self) -> bool {
        self.dead == 0 && self.spare >= FEWEST.max(self.blocks / TWO_MOVES_PART)
    }

    fn wants_vacuum(&self, fewest: usize) -> bool {
        self.is_worth(self.dead)
            // A few dead stripes may be all that lies behind the empty pages. So may line pointers of dead
            // rows, which the server's VACUUM leaves if they are few.
            || ((self.dead > 0 || (self.idle && self.unclean > 0)) && self.is_worth(self.spare))
            || (self.is_worth(self.unclean) && self.dead_rows >= fewest as u64)
    }
}

/// Tidies up a table, and returns whether there was something to do. None after an ERROR.
pub(super) unsafe fn table(table: &Table) -> Option<bool> {
    // SAFETY: each step has transactions of its own.
    unsafe {
        let look = || on_table(table, |rel| Room::of(rel, table.idle)).map(Option::unwrap_or_default);
        let mut room = look()?;
        let mut busy = false;
        if room.wants_vacuum(table.fewest) {
            vacuum_with_directory(table)?;
            let before = std::mem::replace(&mut room, look()?);
            // If an old snapshot still sees all of it, nothing was done. The next try comes after a pause
            // that grows.
            busy = room.spare > before.spare || room.dead < before.dead || room.unclean < before.unclean;
        }
        if room.to_keep().is_none() {
            return Some(busy);
        }
        if table.idle && worker::pack(table, 1, 2)? > 0 {
            vacuum_with_directory(table)?;
            busy = true;
            room = look()?;
        }
        let began = Instant::now();
        while let Some(keep) = room.to_keep() {
            let is_longer = move_stripes(table, keep)? > 0
                || (table.idle
                    && room.is_worth_two_moves()
                    && on_table(table, |rel| compact::widen(rel))? == Some(true));
            if is_longer && look()?.wants_vacuum(table.fewest) {
                vacuum_with_directory(table)?;
            }
            let cut = on_table(table, |rel| cut_off(rel))?;
            busy |= is_longer || cut.unwrap_or(0) > 0;
            if !is_longer || !settings::is_on() || began.elapsed() > worker::LONGEST {
                break;
            }
            room = look()?;
        }
        Some(busy)
    }
}

/// Cuts off the empty pages at the end of the table's file, if its owner allows it; returns how many.
unsafe fn cut_off(rel: Open) -> u32 {
    if !truncate::is_allowed(rel) {
        return 0;
    }
    // SAFETY: `on_table` has locked the table with ShareUpdateExclusiveLock.
    let cut = unsafe { truncate::tail(rel) };
    if cut > 0 {
        statistics::count(rel, &[(Sum::BytesCutOff, u64::from(cut) * PAGE_BYTES as u64)])
    }
    cut
}

/// Moves stripes that end beyond block `keep` to empty pages before them, and returns how many. None after an
/// ERROR.
unsafe fn move_stripes(table: &Table, keep: u32) -> Option<usize> {
    let mut moved = 0;
    // SAFETY: each step is a transaction of its own.
    unsafe {
        while moved < STRIPES && settings::is_on() {
            let step = |rel: Open| {
                report(&format!("moving stripes of {}: {moved}", rel.quoted_name()));
                compact::step(rel, keep)
            };
            if on_table(table, step)? != Some(true) {
                break;
            }
            moved += 1;
        }
    }
    Some(moved)
}

/// VACUUM of the table, after that of the directory, so that pages of stripes that nobody sees become free.
unsafe fn vacuum_with_directory(table: &Table) -> Option<()> {
    // SAFETY: each step is a transaction of its own.
    unsafe {
        let Some(directory) = on_table(table, |_| entries::catalog())? else { return Some(()) };
        report(&format!("vacuuming {}", table.name));
        let done = vacuum::of(&format!("packing of table {}", table.name), &[directory, table.oid]);
        done.map_err(|message| statistics::failed(table.oid, &message)).ok()?;
        on_table(table, |rel| statistics::count(rel, &[(Sum::Vacuums, 1)])).map(|_| ())
    }
}
