//! INSERT, UPDATE and DELETE of one row.
//!
//! A row that comes waits in memory (`pending`), or goes to the tail where a CHECK has to be looked at. A row
//! that goes is deleted from the tail, or marked dead in its stripe. An update is both.
//!
//! Invariant: a change that fails has changed nothing, because SQLite goes on after it with OR IGNORE and
//! OR FAIL.

use super::TableState;
use crate::api::{Argument, Error, OnConflict, Result, Value, random, raw};
use crate::declaration::ColumnDefinition;
use crate::storage::Place;
use crate::values::Column;

impl TableState {
    pub(super) fn insert(&self, given: Option<i64>, values: &[Argument<'_>]) -> Result<i64> {
        let storage = &self.storage;
        let given = self.chosen_id(given, values)?;
        let greatest = storage.greatest_row_id()?.max(self.pending.borrow().greatest());
        let id = match given {
            Some(id) => id,
            None => match greatest {
                None => 1,
                Some(i64::MAX) => self.any_free_id()?,
                Some(greatest) => greatest + 1,
            },
        };
        self.refuse_nulls(values)?;
        let replaced = match given {
            Some(id) if greatest.is_some_and(|greatest| id <= greatest) => {
                self.settle(&[id])?;
                self.conflict(id)?
            }
            _ => None,
        };
        match self.checks_in_tail {
            true => {
                if replaced == Some(Place::Tail) {
                    storage.tail.update_given(id, id, values)?;
                } else {
                    storage.tail.insert_given(id, values)?;
                    storage.directory.change_tail(1);
                    self.kill(replaced);
                }
                self.dirty.set(true);
            }
            false => {
                self.remove(id, replaced)?;
                self.push(id, values)?;
            }
        }
        storage.directory.saw_row_id(id);
        self.flush_full()?;
        Ok(id)
    }

    /// Inserts rows whose values are columns, under the ids after all others. False, and nothing is done,
    /// where SQLite has to look at them: for a constraint, an affinity, or an id among the values. The
    /// running statement has inserted a row before, so SQLite knows that this table is being written.
    pub fn append(&self, columns: &[Column]) -> Result<bool> {
        let own = &self.storage.columns.0;
        let as_it_is = |(column, own): (&Column, &ColumnDefinition)| own.affinity.keeps(column.kind);
        let may_be_null =
            |&at: &usize| columns.get(at).is_some_and(|column| column.vector.validity.is_none());
        let simple = !self.checks_in_tail && self.row_id.is_none() && columns.len() == own.len();
        if !simple || !columns.iter().zip(own).all(as_it_is) || !self.not_null.iter().all(may_be_null) {
            return Ok(false);
        }
        self.expect_whole()?;
        let greatest = self.storage.greatest_row_id()?.max(self.pending.borrow().greatest());
        let rows = columns.first().map_or(0, |column| column.vector.len());
        if rows == 0 {
            return Ok(true);
        }
        let first = greatest.map_or(Some(1), |greatest| greatest.checked_add(1));
        let last = first.and_then(|first| first.checked_add(i64::try_from(rows).ok()?));
        let Some((first, last)) = first.zip(last) else { return Ok(false) };
        let mut done = 0;
        while done < rows {
            let part = done..rows.min(done + self.room());
            let id = first.saturating_add(i64::try_from(done).unwrap_or(i64::MAX));
            self.dirty.set(true);
            self.pending.borrow_mut().extend(id, columns, part.clone())?;
            done = part.end;
            self.flush_full()?;
        }
        self.storage.directory.saw_row_id(last - 1);
        Ok(true)
    }

    pub(super) fn delete(&self, id: i64) -> Result<()> {
        self.settle(&[id])?;
        let place = self.storage.locate(id)?;
        self.remove(id, place)
    }

    pub(super) fn update(&self, old: i64, given: i64, values: &[Argument<'_>]) -> Result<()> {
        let storage = &self.storage;
        // Another name of the row's id says what the id becomes, unless the id itself was set.
        let alias = self.row_id.and_then(|alias| values.get(alias));
        let new = match given == old {
            true if alias.is_some_and(|value| value.value() == Value::Null) => {
                return Err(Error::coded(raw::SQLITE_MISMATCH, "datatype mismatch"));
            }
            true => self.chosen_id(None, values)?.unwrap_or(old),
            false => given,
        };
        self.refuse_nulls(values)?;
        self.settle(&[old, new])?;
        let Some(place) = storage.locate(old)? else { return Ok(()) };
        let replaced = if new == old { None } else { self.conflict(new)? };
        match self.checks_in_tail {
            true if place == Place::Tail => {
                if replaced == Some(Place::Tail) {
                    // The tail itself would refuse two rows of one id; constraints are looked at first.
                    storage.tail.update_given(old, old, values)?;
                }
                self.remove(new, replaced)?;
                storage.tail.update_given(old, new, values)?;
                storage.directory.lost_row_id(old);
                self.dirty.set(true);
            }
            true => {
                if replaced == Some(Place::Tail) {
                    storage.tail.update_given(new, new, values)?;
                } else {
                    storage.tail.insert_given(new, values)?;
                    storage.directory.change_tail(1);
                    self.kill(replaced);
                }
                self.remove(old, Some(place))?;
                self.dirty.set(true);
            }
            false => {
                self.remove(new, replaced)?;
                self.remove(old, Some(place))?;
                self.push(new, values)?;
            }
        }
        storage.directory.saw_row_id(new);
        self.flush_full()
    }

    /// An id that no row has, drawn at random as SQLite does once the greatest one is taken.
    fn any_free_id(&self) -> Result<i64> {
        for _ in 0..100 {
            let id = random() & (i64::MAX >> 1);
            self.settle(&[id])?;
            if id > 0 && self.storage.locate(id)?.is_none() {
                return Ok(id);
            }
        }
        Err(Error::coded(raw::SQLITE_FULL, "database or disk is full"))
    }

    /// The id that a row gets by its own column or by itself. None: any.
    fn chosen_id(&self, given: Option<i64>, values: &[Argument<'_>]) -> Result<Option<i64>> {
        let Some(alias) = self.row_id else { return Ok(given) };
        let Some(value) = values.get(alias) else { return Ok(given) };
        match crate::values::Affinity::Numeric.apply(*value) {
            Value::Integer(id) => Ok(Some(id)),
            Value::Null => Ok(given),
            _ => Err(Error::coded(raw::SQLITE_MISMATCH, "datatype mismatch")),
        }
    }

    fn refuse_nulls(&self, values: &[Argument<'_>]) -> Result<()> {
        let is_null =
            |column: &&usize| values.get(**column).is_some_and(|value| value.value() == Value::Null);
        let Some(column) = self.not_null.iter().find(is_null) else { return Ok(()) };
        let name = self.storage.columns.0.get(*column).map_or("", |column| column.name.as_str());
        let text = format!("NOT NULL constraint failed: {}.{name}", self.storage.shadow.name());
        Err(Error::coded(raw::SQLITE_CONSTRAINT_NOTNULL, text))
    }

    /// A row that is in the way of a new one with this id, which the statement wants to be replaced. An error
    /// if there is one and the statement does not.
    fn conflict(&self, id: i64) -> Result<Option<Place>> {
        let place = self.storage.locate(id)?;
        if place.is_none() || self.storage.shadow.db.on_conflict() == OnConflict::Replace {
            return Ok(place);
        }
        let columns = &self.storage.columns;
        let (name, code) = match self.row_id.and_then(|alias| columns.0.get(alias)) {
            Some(alias) => (alias.name.as_str(), raw::SQLITE_CONSTRAINT_PRIMARYKEY),
            None => ("rowid", raw::SQLITE_CONSTRAINT_ROWID),
        };
        Err(Error::coded(code, format!("UNIQUE constraint failed: {}.{name}", self.storage.shadow.name())))
    }

    /// Has none of these rows wait in memory, so that each has a place. Places hold until the next flush.
    fn settle(&self, ids: &[i64]) -> Result<()> {
        let waits = |id: &i64| self.pending.borrow_mut().has(*id);
        if ids.iter().any(waits) { self.flush() } else { Ok(()) }
    }

    fn remove(&self, id: i64, place: Option<Place>) -> Result<()> {
        self.storage.directory.lost_row_id(id);
        if place == Some(Place::Tail) {
            self.storage.tail.delete(id)?;
            self.storage.directory.change_tail(-1);
            self.dirty.set(true);
        }
        self.kill(place);
        Ok(())
    }

    /// Marks a row dead, if it is in a stripe.
    fn kill(&self, place: Option<Place>) {
        if let Some(Place::Stripe(stripe, row)) = place {
            self.storage.directory.kill(stripe, row);
            self.dirty.set(true);
        }
    }

    fn push(&self, id: i64, values: &[Argument<'_>]) -> Result<()> {
        let columns = &self.storage.columns.0;
        let stored = values.iter().zip(columns).filter(|(_, column)| !column.is_row_id);
        let stored = stored.map(|(value, _)| *value);
        self.dirty.set(true);
        self.pending.borrow_mut().push(id, stored)
    }
}
