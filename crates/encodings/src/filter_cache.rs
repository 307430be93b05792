//! The conditions that were tested last on the entries of a dictionary, and which entries passed.
//!
//! `shared` keeps them for the chunks of one column of a stripe, because a scan asks each chunk the same.
//! Invariant: the conditions before the latest take at most `BYTES`.

use std::mem::size_of;
use std::sync::Arc;

use vector::{Bitmap, Predicate, Scalar};

use crate::encoding::Leaf;

/// How many conditions are remembered. A query has few on one column.
const CONDITIONS: usize = 8;
/// The most bytes of all conditions except the latest. A list of values can be as long as a table.
const BYTES: usize = 16 << 10;

/// The conditions, the latest last.
#[derive(Default)]
pub struct FilterCache(Vec<Condition>);

struct Condition {
    predicate: Predicate,
    passed: Arc<Bitmap>,
    bytes: usize,
}

impl FilterCache {
    /// One bit an entry, if this condition is remembered.
    pub fn find(&self, leaf: Leaf<'_>) -> Option<Arc<Bitmap>> {
        let same = |known: &&Condition| Leaf::of(&known.predicate) == Some(leaf);
        self.0.iter().find(same).map(|known| Arc::clone(&known.passed))
    }

    /// Remembers a condition, in the place of those that were tested first.
    pub fn remember(&mut self, leaf: Leaf<'_>, passed: Arc<Bitmap>) {
        let bytes = size_of::<Condition>() + bytes(leaf) + passed.len() / 8;
        let mut kept = 0;
        let fits = |known: &&Condition| {
            kept += known.bytes;
            kept <= BYTES
        };
        let count = self.0.iter().rev().take(CONDITIONS - 1).take_while(fits).count();
        self.0.drain(..self.0.len() - count);
        self.0.push(Condition { predicate: leaf.to_predicate(), passed, bytes });
    }

    /// Memory held, in bytes.
    pub fn memory(&self) -> usize {
        self.0.iter().map(|known| known.bytes).sum()
    }
}

/// What a copy of a condition takes beside the `Predicate`.
fn bytes(leaf: Leaf<'_>) -> usize {
    let of = |value: &Scalar| match value {
        Scalar::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    match leaf {
        Leaf::Compare(_, value) => of(value),
        Leaf::In(values) => values.iter().map(|value| size_of::<Scalar>() + of(value)).sum(),
        Leaf::StartsWith(prefix) => prefix.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vector::CompareOp;

    fn list(first: i64, count: i64) -> Vec<Scalar> {
        (first..first + count).map(Scalar::Int).collect()
    }

    #[test]
    fn remembers_the_latest_conditions() {
        let mut tested = FilterCache::default();
        let values = list(0, 20);
        for value in &values {
            tested.remember(Leaf::Compare(CompareOp::Equal, value), Arc::new(Bitmap::filled(4, true)));
        }
        let found =
            values.iter().filter(|value| tested.find(Leaf::Compare(CompareOp::Equal, value)).is_some());
        assert_eq!(found.cloned().collect::<Vec<_>>(), list(12, 8));
        assert!(tested.find(Leaf::Compare(CompareOp::Less, &Scalar::Int(19))).is_none());
    }

    #[test]
    fn long_lists_do_not_add_up() {
        let mut tested = FilterCache::default();
        for first in 0..50 {
            let values = list(first, 100_000);
            tested.remember(Leaf::In(&values), Arc::new(Bitmap::filled(4, true)));
            assert!(tested.find(Leaf::In(&values)).is_some());
            let one = 100_000 * size_of::<Scalar>();
            assert!((one..one + BYTES + 1000).contains(&tested.memory()), "{}", tested.memory());
        }
        tested.remember(Leaf::StartsWith(b"a"), Arc::new(Bitmap::filled(4, true)));
        assert!(tested.memory() < 1000);
    }
}
