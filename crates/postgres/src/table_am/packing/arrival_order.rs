//! An order for tables without the option `orderby`: by the column that grows as rows arrive.
//!
//! Sessions that insert singly fill heap pages side by side, so in the order of TIDs a number from a
//! sequence, or a time, goes back and forth, and with it whatever depends on it. Sorted by that column the
//! rows compress as if they had been loaded at once, and its bounds tell stripes apart. It is found in a
//! sample: neighbours on heap pages, or rows from the beginning to the end of each stripe, of which all but a
//! few ascend. Where several columns do, the first is taken of those that do so about as often as the best
//! one. So stripes that somebody has loaded in another order keep it. Invariant: a hint for the order of rows
//! and for nothing else.

use pgrx::pg_sys::{self, Datum, ItemPointerData, Oid};

use super::rows::Rows;
use crate::host::relation::Open;
use crate::options::SortKey;

/// Pairs that are looked at, about.
const SAMPLE: usize = 1024;
/// One in so many may not ascend.
const FEW: usize = 8;
/// How much more often another may ascend that comes after it.
const CLOSE: usize = 32;
/// Fewest pairs that tell anything.
const FEWEST: usize = 16;

/// What is known of a column.
struct Column {
    attnum: i16,
    last: Option<i64>,
    ascents: usize,
}

/// The key to sort rows by, which lie in these `runs`, each in an order of its own; None where no column
/// grows.
pub(super) fn key(rel: Open, source: &mut Rows, runs: &[&[ItemPointerData]]) -> Option<SortKey> {
    // SAFETY: the rows stay where they are.
    unsafe {
        let column = |attnum| Column { attnum, last: None, ascents: 0 };
        let mut columns: Vec<_> = numbers(rel).into_iter().map(column).collect();
        if columns.is_empty() {
            return None;
        }
        let slot = pg_sys::table_slot_create(rel.as_ptr(), std::ptr::null_mut());
        let mut pairs = 0;
        for run in runs {
            columns.iter_mut().for_each(|column| column.last = None);
            for (at, &place) in run.iter().enumerate() {
                pgrx::check_for_interrupts!();
                source.fetch(place, slot);
                pairs += usize::from(at > 0);
                for column in &mut columns {
                    let mut null = false;
                    let value = pg_sys::slot_getattr(slot, column.attnum.into(), &raw mut null);
                    let value = (!null).then(|| number(value));
                    column.ascents +=
                        usize::from(column.last.zip(value).is_some_and(|(last, value)| last < value));
                    column.last = value;
                }
            }
        }
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        // The first that ascends about as often as the best one: a number that starts again now and then may
        // have been lucky.
        let best = columns.iter().map(|column| column.ascents).max()?;
        let grows = pairs >= FEWEST && best >= pairs - pairs / FEW;
        let first = columns.iter().find(|column| grows && column.ascents >= best - best / CLOSE)?;
        Some(SortKey { attnum: first.attnum, descending: false, nulls_first: false })
    }
}

/// Samples of rows in heap pages: neighbours, here and there.
pub(super) fn neighbours(rows: &[ItemPointerData]) -> Vec<&[ItemPointerData]> {
    /// Rows of a sample.
    const LENGTH: usize = 9;
    let step = (rows.len() / (SAMPLE / LENGTH)).max(LENGTH);
    rows.chunks(step).map(|part| part.get(..LENGTH).unwrap_or(part)).collect()
}

/// A sample of the rows of one stripe: some from its beginning to its end.
pub(super) fn spread(rows: &[ItemPointerData], stripes: usize) -> Vec<ItemPointerData> {
    let count = (SAMPLE / stripes.max(1)).max(FEWEST);
    rows.iter().copied().step_by((rows.len() / count).max(1)).collect()
}

/// Numbers of the columns of whole numbers, days and times.
pub(super) fn numbers(rel: Open) -> Vec<i16> {
    const KINDS: [Oid; 6] = [
        pg_sys::INT2OID,
        pg_sys::INT4OID,
        pg_sys::INT8OID,
        pg_sys::DATEOID,
        pg_sys::TIMESTAMPOID,
        pg_sys::TIMESTAMPTZOID,
    ];
    let meant = rel
        .columns()
        .iter()
        .filter(|attribute| !attribute.attisdropped && KINDS.contains(&attribute.atttypid));
    meant.map(|attribute| attribute.attnum).collect()
}

/// A value of one of these types: the server widens what is narrower, with its sign.
fn number(value: Datum) -> i64 {
    value.value() as i64
}

#[cfg(test)]
mod tests {
    use super::{SAMPLE, neighbours, spread};
    use crate::storage::file::tid::tid;

    #[test]
    fn samples_are_small_and_from_everywhere() {
        for count in [0, 1, 5, 100, 5_000, 150_000] {
            let rows: Vec<_> = (0..count).map(|block| tid(block, 1)).collect();
            let near = neighbours(&rows);
            assert!(near.iter().all(|run| run.len() <= 9));
            assert!(near.len() <= SAMPLE / 4);
            for stripes in [1, 3, 64] {
                let far = spread(&rows, stripes);
                assert!(far.len() <= rows.len().min(2 * SAMPLE / stripes + 32));
                assert_eq!(far.is_empty(), rows.is_empty());
            }
        }
    }
}
