//! Percentiles: which rows of a group's order they need, and how those are found without sorting.
//!
//! Called by `ordered`. Each row becomes an entry of value and position, and the entries of a group stand
//! side by side. The wanted ranks are selected from the lowest to the highest by quickselect. Each selection
//! works only on the entries above the rank before it. So the work is a small multiple of the rows, however
//! many percentiles of the same values are wanted. Equal values stand in the order they came, as after a
//! sort, so selecting and sorting give the same rows.

use std::cmp::Ordering;

use crate::operators::sort::Key;
use crate::operators::sort::pieces::{self, QUICK, SLOW};
use crate::row_container::{Integers, ValueColumn, float_order};
use crate::{AggregateFunction, Result, interrupt};

/// The rows of a group's order that a percentile lies between, often one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranks {
    /// From 0.
    pub first: u64,
    /// The same or the next.
    pub second: u64,
    /// How far it is from the first to the second.
    pub part: f64,
}

impl Ranks {
    /// The ranks in a group of this many rows, at least one. None for functions that are no percentiles.
    pub fn of(function: AggregateFunction, count: u64) -> Option<Self> {
        match function {
            AggregateFunction::PercentileDisc(fraction) => {
                let rank = ((fraction * count as f64).ceil() as u64).max(1) - 1;
                Some(Self { first: rank, second: rank, part: 0.0 })
            }
            AggregateFunction::PercentileCont(fraction) => {
                let place = fraction * (count - 1) as f64;
                let (first, second) = (place.floor(), place.ceil());
                Some(Self { first: first as u64, second: second as u64, part: place - first })
            }
            _ => None,
        }
    }

    /// The value between those of the two rows.
    pub fn between(&self, lower: f64, upper: f64) -> f64 {
        if self.first == self.second { upper } else { lower + self.part * (upper - lower) }
    }
}

/// Positions of the rows with these ranks: for each group with rows and each function the first and the
/// second. `groups` has the group of each row, `counts` the rows of each group; no value is NULL.
pub fn select(
    key: &Key,
    column: &ValueColumn,
    groups: &[i32],
    counts: &[u64],
    functions: &[AggregateFunction],
) -> Result<Vec<(u32, u32)>> {
    let flip = if key.descending { u32::MAX } else { 0 };
    let wide = if key.descending { -1 } else { 0 };
    let short = |value: i32, row: u32| u64::from((value as u32 ^ 1 << 31) ^ flip) << 32 | u64::from(row);
    let rows =
        Rows { groups, counts, functions, piece: if column.integers().is_some() { QUICK } else { SLOW } };
    let low = |entry: u64| entry as u32;
    match column.integers() {
        Some(Integers::Bool(v)) => rows.select(|row| short(v[row as usize].into(), row), Ord::cmp, low),
        Some(Integers::Int16(v)) => rows.select(|row| short(v[row as usize].into(), row), Ord::cmp, low),
        Some(Integers::Int32(v)) => rows.select(|row| short(v[row as usize], row), Ord::cmp, low),
        Some(Integers::Int64(v)) => {
            rows.select(|row| (v[row as usize] ^ wide, row), Ord::cmp, |entry| entry.1)
        }
        Some(Integers::Int128(v)) => {
            rows.select(|row| (v[row as usize] ^ i128::from(wide), row), Ord::cmp, |entry| entry.1)
        }
        Some(Integers::Float32(v)) => {
            let order = |row| float_order(f64::from(v[row as usize])) ^ wide;
            rows.select(|row| (order(row), row), Ord::cmp, |entry| entry.1)
        }
        Some(Integers::Float64(v)) => {
            rows.select(|row| (float_order(v[row as usize]) ^ wide, row), Ord::cmp, |entry| entry.1)
        }
        None => {
            let order = |a: &u32, b: &u32| {
                let order = column.order(*a as usize, *b as usize, &key.order);
                if key.descending { order.reverse() } else { order }.then(a.cmp(b))
            };
            rows.select(|row| row, order, |row| row)
        }
    }
}

struct Rows<'a> {
    groups: &'a [i32],
    counts: &'a [u64],
    functions: &'a [AggregateFunction],
    /// Rows that are selected in at once.
    piece: usize,
}

impl Rows<'_> {
    fn select<T: Copy>(
        &self,
        entry: impl Fn(u32) -> T,
        order: impl Fn(&T, &T) -> Ordering,
        position: impl Fn(T) -> u32,
    ) -> Result<Vec<(u32, u32)>> {
        let mut entries = self.by_group(entry)?;
        let mut found = Vec::with_capacity(self.counts.len() * self.functions.len());
        let mut ranks = Vec::new();
        let mut rest = entries.as_mut_slice();
        for &count in self.counts.iter().filter(|&&count| count > 0) {
            let (group, after) = rest.split_at_mut(count as usize);
            rest = after;
            let wanted = self.functions.iter().filter_map(|&function| Ranks::of(function, count));
            let wanted: Vec<Ranks> = wanted.collect();
            ranks.clear();
            ranks.extend(wanted.iter().flat_map(|ranks| [ranks.first, ranks.second]));
            ranks.sort_unstable();
            ranks.dedup();
            let mut below = 0;
            for &rank in &ranks {
                if let Some(above) =
                    group.get_mut(below..).filter(|above| rank as usize - below < above.len())
                {
                    pieces::select(above, rank as usize - below, self.piece, &order)?;
                    below = rank as usize + 1;
                }
            }
            let at = |rank: u64| group.get(rank as usize).map_or(0, |&entry| position(entry));
            found.extend(wanted.iter().map(|ranks| (at(ranks.first), at(ranks.second))));
        }
        Ok(found)
    }

    /// The entries of all rows, those of a group side by side.
    fn by_group<T: Copy>(&self, entry: impl Fn(u32) -> T) -> Result<Vec<T>> {
        let rows = 0..self.groups.len() as u32;
        if self.counts.len() <= 1 || rows.is_empty() {
            return Ok(rows.map(entry).collect());
        }
        let mut next = 0;
        let mut places: Vec<usize> = Vec::with_capacity(self.counts.len());
        for &count in self.counts {
            places.push(next);
            next += count as usize;
        }
        let mut entries = vec![entry(0); next];
        for (row, &group) in rows.zip(self.groups) {
            interrupt::check_at(row as usize)?;
            let place = &mut places[group as usize];
            entries[*place] = entry(row);
            *place += 1;
        }
        Ok(entries)
    }
}
