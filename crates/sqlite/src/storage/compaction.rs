//! Writes stripes anew where that pays: those of which much is dead, and small ones side by side.
//!
//! It is part of the transaction that made it pay, and happens while no query of this connection has the
//! table open: an open query reads the stripes that it began with. (Queries of other connections have a
//! snapshot.) A stripe that is made of others takes the number of the first of them, so rows keep their
//! order.

use std::ops::Range;

use encodings::NoPglz;
use vector::concat;

use super::{Entry, Storage};
use crate::api::Result;
use crate::values::{Column, Kind};

/// A stripe with fewer living rows than this share of a full one is small.
const SMALL: u64 = 4;
/// Small stripes become one once they make this share of a full one. So each row is moved once or twice.
const WORTH: u64 = 2;
/// Or once there are so many side by side.
const MANY: usize = 16;

/// Memory that the rows of a joined stripe may take.
const MOST_BYTES: u64 = 128 << 20;

/// What decides about a stripe.
#[derive(Debug, Clone, Copy)]
struct Size {
    rows: u64,
    dead: u64,
}

impl Size {
    const fn live(self) -> u64 {
        self.rows - self.dead
    }

    /// Half of it is dead: to write the living costs no more rows than were deleted.
    const fn is_worn(self) -> bool {
        self.dead * 2 >= self.rows
    }
}

/// Which stripes, by position, become one each. `full`: rows of a full stripe.
fn joins(sizes: &[Size], full: u64) -> Vec<Range<usize>> {
    let is_candidate = |size: &Size| size.is_worn() || size.live() < full / SMALL;
    let mut joins = Vec::new();
    let mut start = 0;
    while let Some(rest) = sizes.get(start..).filter(|rest| !rest.is_empty()) {
        let mut live = 0;
        let fits = |size: &&Size| {
            let is_first = live == 0;
            live += size.live();
            is_candidate(size) && (live <= full || is_first)
        };
        let together = start..start + rest.iter().take_while(fits).count();
        let members = sizes.get(together.clone()).unwrap_or_default();
        let live: u64 = members.iter().map(|size| size.live()).sum();
        if members.len() > 1 && (live >= full / WORTH || members.len() >= MANY) {
            joins.push(together.clone());
        } else {
            let is_worn = |at: &usize| sizes.get(*at).is_some_and(|size| size.is_worn());
            joins.extend(together.clone().filter(is_worn).map(|at| at..at + 1));
        }
        start = together.end.max(start + 1);
    }
    joins
}

impl Storage {
    /// Removes stripes of which every row is dead, and writes stripes anew where that pays. Nothing while a
    /// query has the table open.
    pub fn tidy(&self) -> Result<()> {
        if self.is_being_read() {
            return Ok(());
        }
        let entries = self.directory.entries();
        for entry in entries.iter().filter(|entry| entry.dead_rows >= entry.rows) {
            self.remove(entry)?;
        }
        let entries = self.directory.entries();
        let size = |entry: &Entry| Size { rows: entry.rows.into(), dead: entry.dead_rows.into() };
        let sizes: Vec<Size> = entries.iter().map(size).collect();
        let full = self.options.stripe_rows.into();
        let Some(first) = joins(&sizes, full).first().and_then(|first| entries.get(first.start)) else {
            return Ok(());
        };
        // Rows may be so long that fewer make a full stripe.
        let full = full.min(MOST_BYTES / self.row_bytes(first)?);
        for together in joins(&sizes, full) {
            self.join(entries.get(together).unwrap_or_default())?;
        }
        Ok(())
    }

    /// Memory that a row takes, about: as much as those of this stripe's first chunk. It is looked at once.
    fn row_bytes(&self, entry: &Entry) -> Result<u64> {
        if let Some(known) = self.known_row_bytes.get() {
            return Ok(known);
        }
        let reader = self.open(entry)?;
        let (mut bytes, mut rows) = (0, 1);
        for place in 0..entry.kinds.len() {
            let chunk = reader.read_chunk(place, 0, &self.bytes(entry), &NoPglz)?.decode(&NoPglz)?.flatten();
            bytes += chunk.bytes() as u64;
            rows = chunk.len().max(1) as u64;
        }
        let known = (bytes / rows).max(1);
        self.known_row_bytes.set(Some(known));
        Ok(known)
    }

    fn remove(&self, entry: &Entry) -> Result<()> {
        let stripe = self.shadow.table("stripe");
        self.shadow.db.execute(&format!("DELETE FROM {stripe} WHERE id = {}", entry.id))?;
        self.segments.remove(entry.id)?;
        self.directory.remove(entry.id);
        Ok(())
    }

    /// Writes the living rows of these stripes as one.
    fn join(&self, entries: &[Entry]) -> Result<()> {
        let Some(first) = entries.first() else { return Ok(()) };
        let mut parts: Vec<Vec<Column>> = Vec::new();
        for entry in entries {
            parts.resize_with(parts.len().max(entry.kinds.len()), Vec::new);
            for (part, column) in parts.iter_mut().zip(self.living(entry)?) {
                part.push(column);
            }
        }
        let column = |(place, parts)| Column::joined(parts, self.columns.affinity_at(place));
        let columns = parts.into_iter().enumerate().map(column).collect::<Result<_>>()?;
        for entry in entries {
            self.remove(entry)?;
        }
        self.write_as(first.id, columns, usize::MAX)
    }

    /// The columns of a stripe, without dead rows.
    fn living(&self, entry: &Entry) -> Result<Vec<Column>> {
        let reader = self.open(entry)?;
        let alive: Vec<u32> = (0..entry.rows).filter(|&row| !entry.is_dead(row)).collect();
        let column = |(place, &kind): (usize, &Kind)| {
            let chunk = |chunk| reader.read_chunk(place, chunk, &self.bytes(entry), &NoPglz)?.decode(&NoPglz);
            let chunks = (0..reader.chunk_count()).map(chunk).collect::<vector::Result<_>>()?;
            let whole = concat(reader.logical(place).unwrap_or(kind.logical()), chunks)?;
            Ok(Column::new(kind, if entry.dead_rows == 0 { whole } else { whole.take(&alive) }))
        };
        entry.kinds.iter().enumerate().map(column).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Size, joins};

    fn sizes(all: &[(u64, u64)]) -> Vec<Size> {
        all.iter().map(|&(rows, dead)| Size { rows, dead }).collect()
    }

    #[test]
    fn worn_stripes_and_small_neighbours_are_found() {
        let found = |all: &[(u64, u64)]| -> Vec<(usize, usize)> {
            joins(&sizes(all), 1000).into_iter().map(|range| (range.start, range.end)).collect()
        };
        assert!(found(&[]).is_empty());
        assert!(found(&[(1000, 499), (1000, 0), (200, 0)]).is_empty());
        // Half of one is dead.
        assert_eq!(found(&[(1000, 0), (1000, 500), (1000, 0)]), [(1, 2)]);
        // Two that are worn fit into one, three do not.
        assert_eq!(found(&[(1000, 500), (1000, 500), (1000, 500)]), [(0, 2), (2, 3)]);
        // Small ones wait until they are half a stripe.
        assert!(found(&[(1000, 0), (100, 0), (200, 0), (100, 0), (1000, 0), (200, 0)]).is_empty());
        assert_eq!(found(&[(1000, 0), (100, 0), (200, 0), (200, 0), (1000, 0)]), [(1, 4)]);
        // A worn one does not drag along small ones that are not worth it.
        assert_eq!(found(&[(100, 0), (200, 150), (100, 0)]), [(1, 2)]);
        assert_eq!(found(&[(20, 0); 16]), [(0, 16)]);
        assert!(found(&[(20, 0); 15]).is_empty());
    }

    #[test]
    fn rows_are_moved_few_times() {
        let full = 131_072;
        let (mut stripes, mut moved) = (Vec::new(), 0);
        for _ in 0..1_000 {
            stripes.push(Size { rows: full / 8, dead: 0 });
            for join in joins(&stripes, full).into_iter().rev() {
                let rows: u64 = stripes[join.clone()].iter().map(|size| size.live()).sum();
                moved += rows;
                stripes.splice(join, [Size { rows, dead: 0 }]);
            }
        }
        assert!(stripes.len() < 260, "{} stripes", stripes.len());
        assert!(moved <= 1_000 * (full / 8), "{moved} rows moved");
    }
}
