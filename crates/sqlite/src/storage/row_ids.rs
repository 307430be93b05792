//! From a row's id to its place.
//!
//! Stripes know the least and the greatest of their ids. In most of them ids follow one another, so a place
//! is computed. For the others a table of the stripe's ids is made once, and remembered by the stripe's
//! stamp.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use encodings::NoPglz;
use vector::Values;

use super::{Entry, Storage};
use crate::api::{Error, Result};

/// Most stripes whose ids are remembered.
const REMEMBERED: usize = 64;

/// The ids of a stripe.
enum RowIds {
    /// Each is one more than the one before.
    Consecutive(i64),
    /// Ids with their places, in the order of ids.
    Sorted(Vec<(i64, u32)>),
}

/// What is remembered.
#[derive(Default)]
pub struct KnownRowIds(RefCell<HashMap<i64, Rc<RowIds>>>);

/// Where a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the tail.
    Tail,
    /// In a stripe, by its position in the directory, and there by its place.
    Stripe(usize, u32),
}

impl Storage {
    /// Where the row of this id is. None if there is none that is alive.
    pub fn locate(&self, id: i64) -> Result<Option<Place>> {
        if self.directory.tail_rows() > 0 && self.tail.has(id)? {
            return Ok(Some(Place::Tail));
        }
        self.locate_in_stripes(id)
    }

    /// As `locate`, in stripes only.
    pub fn locate_in_stripes(&self, id: i64) -> Result<Option<Place>> {
        let entries = self.directory.entries();
        for (at, entry) in entries.iter().enumerate().rev() {
            if !(entry.row_ids.0..=entry.row_ids.1).contains(&id) {
                continue;
            }
            let row = match &*self.row_ids(entry)? {
                RowIds::Consecutive(first) => id.checked_sub(*first).and_then(|row| u32::try_from(row).ok()),
                RowIds::Sorted(sorted) => {
                    let found = sorted.binary_search_by_key(&id, |&(id, _)| id).ok();
                    found.and_then(|at| sorted.get(at)).map(|&(_, row)| row)
                }
            };
            if let Some(row) = row.filter(|&row| row < entry.rows && !entry.is_dead(row)) {
                return Ok(Some(Place::Stripe(at, row)));
            }
        }
        Ok(None)
    }

    /// The greatest id of all rows. None if there is no row.
    pub fn greatest_row_id(&self) -> Result<Option<i64>> {
        if let Some(known) = self.directory.greatest() {
            return Ok(known);
        }
        let mut greatest = self.directory.greatest_in_tail()?;
        for entry in self.directory.entries().iter().rev() {
            if greatest.is_none_or(|greatest| greatest < entry.row_ids.1) {
                greatest = greatest.max(self.greatest_alive(entry)?);
            }
        }
        self.directory.set_greatest(greatest);
        Ok(greatest)
    }

    /// The ids of a stripe's rows that are not dead.
    pub fn live_row_ids(&self, entry: &Entry) -> Result<Vec<i64>> {
        let alive = |row: u32| !entry.is_dead(row);
        Ok(match &*self.row_ids(entry)? {
            RowIds::Consecutive(first) => {
                (0..entry.rows).filter(|&row| alive(row)).map(|row| first + i64::from(row)).collect()
            }
            RowIds::Sorted(sorted) => {
                sorted.iter().filter(|&&(_, row)| alive(row)).map(|&(id, _)| id).collect()
            }
        })
    }

    fn greatest_alive(&self, entry: &Entry) -> Result<Option<i64>> {
        if entry.dead_rows == 0 {
            return Ok(Some(entry.row_ids.1));
        }
        Ok(match &*self.row_ids(entry)? {
            RowIds::Consecutive(first) => {
                let last = (0..entry.rows).rev().find(|&row| !entry.is_dead(row));
                last.map(|row| first + i64::from(row))
            }
            RowIds::Sorted(sorted) => {
                sorted.iter().rev().find(|&&(_, row)| !entry.is_dead(row)).map(|&(id, _)| id)
            }
        })
    }

    fn row_ids(&self, entry: &Entry) -> Result<Rc<RowIds>> {
        if let Some(known) = self.known_row_ids.0.borrow().get(&entry.stamp) {
            return Ok(Rc::clone(known));
        }
        let made = Rc::new(self.read_row_ids(entry)?);
        let mut known = self.known_row_ids.0.borrow_mut();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(entry.stamp, Rc::clone(&made));
        Ok(made)
    }

    fn read_row_ids(&self, entry: &Entry) -> Result<RowIds> {
        let reader = self.open(entry)?;
        let mut ids: Vec<i64> = Vec::new();
        for chunk in 0..reader.chunk_count() {
            let stored = reader.read_chunk(0, chunk, &self.bytes(entry), &NoPglz)?;
            match stored.decode(&NoPglz)?.flatten().values {
                Values::Int64(values) => ids.extend_from_slice(&values),
                _ => return Err(Error::corrupt(format!("stripe {} has row ids of another type", entry.id))),
            }
        }
        if ids.len() != entry.rows as usize {
            return Err(Error::corrupt(format!("stripe {} has {} row ids", entry.id, ids.len())));
        }
        let follow = |pair: &[i64]| matches!(pair, [a, b] if a.checked_add(1) == Some(*b));
        if let Some(&first) = ids.first()
            && ids.windows(2).all(follow)
        {
            return Ok(RowIds::Consecutive(first));
        }
        let mut sorted: Vec<(i64, u32)> = ids.into_iter().zip(0..).collect();
        sorted.sort_unstable();
        Ok(RowIds::Sorted(sorted))
    }
}
