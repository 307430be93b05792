//! The set of values that the kept side has of a key. The probing source asks it row by row before it decodes
//! the other columns.
//!
//! `build` makes a set for each key that is a column of that source, `Join::prepare` hands them over.
//! Integers whose range is not too wide are bits. Other keys ask the join's own table, or a table of their
//! own if the join has several keys. Invariant: a row that matches is never left out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vector::{Bitmap, Values, Vector};

use super::build::BuildSink;
use super::table::{Scratch, Table};
use crate::int_bits::IntBits;
use crate::{Members, Result};

/// A set of bits has at most this many bits for each kept row, or at most `SMALL`.
const SPARSE: u64 = 256;
/// Bits that a set may always have.
const SMALL: u64 = 1 << 23;
/// Kept rows for which one of several keys gets a table of its own: more take longer to put there than they
/// may save.
const TABLED: usize = 1 << 17;

/// The values of one key.
pub enum KeySet {
    /// Integers, a bit each.
    Bits(IntBits),
    /// A table of this key alone.
    Own(Table),
    /// What the join's table has, whose only key it is.
    Joined,
}

impl KeySet {
    /// The values of a flat key vector; `only` when the join has no other key. None where it would cost more
    /// than it may save.
    pub fn new(key: &Vector, only: bool) -> Result<Option<Self>> {
        let bits = match &key.values {
            Values::Int16(values) => bits(values, key.validity.as_ref()),
            Values::Int32(values) => bits(values, key.validity.as_ref()),
            Values::Int64(values) => bits(values, key.validity.as_ref()),
            _ => None,
        };
        Ok(match bits {
            Some(bits) => Some(bits),
            None if only => Some(Self::Joined),
            None if key.len() <= TABLED => {
                Some(Self::Own(Table::new(std::slice::from_ref(key), key.len(), false)?))
            }
            None => None,
        })
    }

    /// Rows of a column whose value is in the set, ascending.
    fn rows(&self, column: &Vector, joined: &Table) -> Option<Vec<u32>> {
        let table = match self {
            Self::Bits(set) => match &column.values {
                Values::Int16(values) => return Some(set.rows(values, column.validity.as_ref())),
                Values::Int32(values) => return Some(set.rows(values, column.validity.as_ref())),
                Values::Int64(values) => return Some(set.rows(values, column.validity.as_ref())),
                _ => return self.rows(&flat(column)?, joined),
            },
            Self::Own(table) => table,
            Self::Joined => joined,
        };
        let mut heads = Vec::new();
        table.find(&[column], column.len(), &mut Scratch::default(), &mut heads).ok()?;
        let mut rows = Vec::with_capacity(heads.len());
        rows.extend((0u32..).zip(&heads).filter(|(_, head)| **head != 0).map(|(row, _)| row));
        Some(rows)
    }
}

/// The column flat; None where it is so already.
fn flat(column: &Vector) -> Option<Vector> {
    let encoded =
        matches!(column.values, Values::Constant(..) | Values::Dictionary { .. } | Values::Runs { .. });
    encoded.then(|| column.clone().flatten())
}

fn bits<T: Copy + Into<i64>>(values: &[T], validity: Option<&Bitmap>) -> Option<KeySet> {
    let most = (values.len() as u64).saturating_mul(SPARSE).max(SMALL);
    let set = match validity {
        None => IntBits::new(|| values.iter().map(|&value| value.into()), most),
        Some(valid) => {
            let known = || valid.ones().filter_map(|row| values.get(row)).map(|&value| value.into());
            IntBits::new(known, most)
        }
    };
    set.map(KeySet::Bits)
}

/// Asks one of the sets of a sink, and stops asking where nearly every row passes.
pub struct KeyMembers {
    sink: Arc<BuildSink>,
    /// Which of `Built::members`.
    of: usize,
    seen: AtomicU64,
    passed: AtomicU64,
}

/// Rows after which the source decides whether asking pays.
const TRIED: u64 = 50_000;

impl KeyMembers {
    /// Members of what this sink has gathered.
    pub const fn new(sink: Arc<BuildSink>, of: usize) -> Self {
        Self { sink, of, seen: AtomicU64::new(0), passed: AtomicU64::new(0) }
    }

    /// Rows that pass, unless nearly all have: `asked` of the set and its join's table.
    fn ask(&self, rows: usize, asked: impl Fn(&KeySet, &Table) -> Option<Vec<u32>>) -> Option<Vec<u32>> {
        let (seen, passed) = (self.seen.load(Ordering::Relaxed), self.passed.load(Ordering::Relaxed));
        if seen > TRIED && passed > seen / 4 * 3 {
            return None;
        }
        let built = self.sink.built().ok()?;
        let (_, set) = built.members.get(self.of)?;
        let found = asked(set, &built.table)?;
        self.seen.fetch_add(rows as u64, Ordering::Relaxed);
        self.passed.fetch_add(found.len() as u64, Ordering::Relaxed);
        Some(found)
    }
}

impl Members for KeyMembers {
    fn select(&self, column: &Vector) -> Option<Vec<u32>> {
        let rows = self.ask(column.len(), |set, joined| set.rows(column, joined))?;
        (rows.len() < column.len()).then_some(rows)
    }

    fn select_consecutive(&self, first: i64, rows: u32) -> Option<Vec<u32>> {
        self.ask(rows as usize, |set, _| match set {
            KeySet::Bits(set) => Some(set.consecutive_rows(first, rows)),
            KeySet::Own(_) | KeySet::Joined => None,
        })
    }
}
