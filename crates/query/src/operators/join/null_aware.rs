//! `NOT IN` over several columns: finds the left rows that no kept row may equal. A NULL may equal anything.
//!
//! Called by `probe` with the left rows that equal no kept row. A row *knows* the keys that are not NULL in
//! it. Two rows may be equal if they agree in the keys that both know. Kept rows that know the same keys form
//! a class. A class has one table for each choice of keys to compare. A table is made when the first left
//! rows ask for it, and a batch is looked up once in each.
//!
//! Usually there are few classes: without NULLs all rows know all keys. With many classes the tables may need
//! more memory than the join has. Further tables are then made anew for each batch.

use std::sync::{Arc, Mutex};

use vector::Vector;

use super::build::POISONED;
use super::table::{Scratch, Table};
use crate::row_container::flat;
use crate::{Error, Result, interrupt};

/// A bit for each key.
type Keys = u64;

/// Bytes that a table takes for a row beside its keys, about.
const SLOTS: usize = 16;

/// The table of a class, by its number, for some of the keys that it knows.
type Found = ((usize, Keys), Arc<Table>);

/// The kept rows.
pub struct Classes {
    keys: Vec<Vector>,
    /// For each class the keys that its rows know, and the rows.
    classes: Vec<(Keys, Vec<u32>)>,
    tables: Mutex<Tables>,
}

/// The tables made so far.
struct Tables {
    made: Vec<Found>,
    /// Bytes that more of them may take.
    left: usize,
}

impl Classes {
    /// The classes of kept rows with these keys, which are flat. `memory`: bytes that tables may take.
    pub fn new(keys: Vec<Vector>, rows: usize, memory: usize) -> Result<Self> {
        if keys.len() > Keys::BITS as usize {
            return Err(Error::Decline("NOT IN over more than 64 columns"));
        }
        let classes = classes(&keys.iter().collect::<Vec<_>>(), rows)?;
        Ok(Self { keys, classes, tables: Mutex::new(Tables { made: Vec::new(), left: memory }) })
    }

    /// The rows of `left` that no kept row may equal. The caller knows that the rows of `left` equal no kept
    /// row in all keys.
    pub fn impossible(&self, keys: &[Arc<Vector>], left: Vec<u32>) -> Result<Vec<u32>> {
        let all = Keys::MAX >> (Keys::BITS as usize - self.keys.len());
        let complete = self.classes.iter().all(|(known, _)| *known == all);
        if left.is_empty() || complete && keys.iter().all(|key| key.null_count() == 0) {
            return Ok(left);
        }
        let taken: Vec<Vector> = keys.iter().map(|key| flat(key).take(&left)).collect();
        let mut kept = Vec::new();
        for (known, mut rows) in classes(&taken.iter().collect::<Vec<_>>(), left.len())? {
            for (class, (of_class, _)) in self.classes.iter().enumerate() {
                interrupt::check()?;
                let compared = known & of_class;
                if compared == 0 {
                    rows.clear();
                }
                if compared == all || rows.is_empty() {
                    continue;
                }
                let table = self.table(class, compared)?;
                let columns: Vec<Vector> =
                    chosen(&taken, compared).map(|column| column.take(&rows)).collect();
                let mut heads = Vec::new();
                let columns: Vec<&Vector> = columns.iter().collect();
                table.find(&columns, rows.len(), &mut Scratch::default(), &mut heads)?;
                let mut heads = heads.into_iter();
                rows.retain(|_| heads.next() == Some(0));
            }
            kept.extend(rows.iter().filter_map(|&row| left.get(row as usize)));
        }
        kept.sort_unstable();
        Ok(kept)
    }

    /// The table that finds rows of a class by some of the keys that they know.
    fn table(&self, class: usize, compared: Keys) -> Result<Arc<Table>> {
        let rows = self.classes.get(class).map_or(&[][..], |(_, rows)| rows);
        let make = || {
            let columns: Vec<Vector> = chosen(&self.keys, compared).map(|key| key.take(rows)).collect();
            let bytes = columns.iter().map(Vector::bytes).sum::<usize>() + rows.len() * SLOTS;
            Ok((Arc::new(Table::new(&columns, rows.len(), false)?), bytes))
        };
        // The lock is held while a table is made. Otherwise other threads would make the same table.
        let mut tables = self.tables.lock().map_err(|_| POISONED)?;
        if let Some((_, table)) = tables.made.iter().find(|(of, _)| *of == (class, compared)) {
            return Ok(Arc::clone(table));
        }
        if tables.left == 0 {
            drop(tables);
            return make().map(|(table, _)| table);
        }
        let (table, bytes) = make()?;
        tables.left = tables.left.saturating_sub(bytes);
        tables.made.push(((class, compared), Arc::clone(&table)));
        Ok(table)
    }
}

/// The keys of a choice.
fn chosen(keys: &[Vector], compared: Keys) -> impl Iterator<Item = &Vector> {
    keys.iter().enumerate().filter(move |(at, _)| (compared >> at) & 1 == 1).map(|(_, key)| key)
}

/// The rows of flat keys, in classes of rows that know the same keys.
fn classes(keys: &[&Vector], rows: usize) -> Result<Vec<(Keys, Vec<u32>)>> {
    let mut classes: Vec<(Keys, Vec<u32>)> = Vec::new();
    for row in 0..rows {
        interrupt::check_at(row)?;
        let known = keys.iter().enumerate().map(|(at, key)| Keys::from(key.is_valid(row)) << at);
        let known = known.fold(0, |known, key| known | key);
        match classes.iter_mut().find(|(of, _)| *of == known) {
            Some((_, class)) => class.push(row as u32),
            None => classes.push((known, vec![row as u32])),
        }
    }
    Ok(classes)
}
