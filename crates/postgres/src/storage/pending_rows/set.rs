//! The rows that one command has put into one table and that are not there yet.
//!
//! `table_am::change::insert` fills a set, and `write` writes it. Rows wait in one of two ways:
//! - *Deferred* rows wait until it is clear whether they are few (hot rows) or many (stripes).
//! - *Numbered* rows start out hot. Once there are many, row numbers are reserved, and each further row has
//!   its TID while its stripe is still open.
//!
//! Rows that are written while a subtransaction below the command's own runs belong to that subtransaction,
//! as far as the server is concerned. So the set keeps them until it is known whether that subtransaction
//! commits.
//!
//! Invariant: numbers are handed out in order, and only from a reservation that is in the directory.

use pgrx::pg_sys::{self, SubTransactionId, TupleTableSlot};
use std::sync::Arc;
use stripe::Background;

use super::closed_rows::ClosedRows;
use super::order::Order;
use super::{Key, adjust_total, header, settings, write};
use crate::convert::{ColumnType, ColumnWriter};
use crate::host::error;
use crate::host::relation::Open;
use crate::options::{self, foreign};
use crate::storage::directory::age::Age;
use crate::storage::directory::{self, sort_marks};
use crate::storage::file::tid;

/// A stripe is closed when its values take this many bytes, whatever the number of rows.
pub const STRIPE_BYTES: usize = 64 << 20;
/// The rows left at the end of a load become a stripe of their own if they are at least this many.
const TAIL_ROWS: usize = 1_000;
/// They also do if their values take at least this many bytes.
const TAIL_BYTES: usize = 1 << 20;

/// What becomes of the rows of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Ordinary heap rows, always.
    Hot,
    /// In memory until the command ends; nobody needs their TIDs.
    Deferred,
    /// Hot rows up to the threshold, then rows in stripes whose numbers are known at once.
    Numbered,
}

struct Reservation {
    next: u64,
    end: u64,
}

/// Rows of one command for one table.
pub struct PendingRows {
    key: Key,
    placement: Placement,
    /// The options that the callback got with the first insertion.
    options: i32,
    /// The statement needs slots with what a heap tuple has in its header.
    system_columns: bool,
    columns: Vec<ColumnWriter>,
    rows: usize,
    bytes: usize,
    row_limit: usize,
    threshold_rows: usize,
    threshold_bytes: usize,
    tail_rows: usize,
    order: Option<Order>,
    /// The marks of that order. None if rows are written as they come.
    marks: Arc<[u64]>,
    reservation: Option<Reservation>,
    /// How many hot rows were written since somebody last looked at the table.
    hot_rows: usize,
    /// Stripes were written since somebody last looked, so the rest should be one, too.
    in_stripes: bool,
    /// Stripes were written by this set.
    wrote_stripes: bool,
    /// Which snapshots see its stripes.
    age: Age,
    /// Stripes that were written by a subtransaction which may still abort.
    written_by_children: Vec<(SubTransactionId, ClosedRows)>,
    /// Stripes that are closed but not in the table: they are being written, could not be written, or were
    /// written_by_children and given back.
    unwritten: Vec<ClosedRows>,
    /// A sort was given up half-way and its other rows are lost. So the command must not succeed.
    broken: bool,
}

impl PendingRows {
    /// An empty set.
    pub(super) fn new(rel: Open, key: Key, placement: Placement, options: i32, system_columns: bool) -> Self {
        // SAFETY: the row type is that of an open relation.
        unsafe {
            let table_options = options::table_options(rel);
            // A file has stripes only, however few rows they have.
            let only_stripes = foreign::is_column_file(rel);
            let threshold = |usual| if only_stripes { 0 } else { usual };
            let order = match placement {
                Placement::Deferred => Order::new(rel, &table_options.orderby),
                _ => None,
            };
            let columns = match placement {
                Placement::Hot => Vec::new(),
                _ => ColumnType::of_all(rel.descriptor()).into_iter().map(ColumnWriter::new).collect(),
            };
            Self {
                key,
                placement,
                options,
                system_columns,
                columns,
                rows: 0,
                bytes: 0,
                row_limit: usize::try_from(table_options.stripe_row_limit).unwrap_or(usize::MAX).max(1),
                threshold_rows: threshold(settings::threshold_rows()),
                threshold_bytes: threshold(settings::threshold_bytes()),
                tail_rows: threshold(TAIL_ROWS),
                marks: match &order {
                    Some(_) => sort_marks::of(rel, &table_options.orderby).into(),
                    None => Arc::default(),
                },
                order,
                reservation: None,
                hot_rows: 0,
                in_stripes: false,
                wrote_stripes: false,
                age: Age::New,
                written_by_children: Vec::new(),
                unwritten: Vec::new(),
                broken: false,
            }
        }
    }

    /// A set whose rows all become stripes. They are sorted as a whole, or stay in the order in which they
    /// come.
    pub(super) fn for_rewrite(rel: Open, key: Key, sorted: bool, age: Age) -> Self {
        // SAFETY: the order is new, so nothing is sorted by it yet.
        unsafe {
            let mut set = Self::new(rel, key, Placement::Deferred, 0, false);
            set.threshold_rows = 0;
            set.threshold_bytes = 0;
            set.tail_rows = 0;
            set.age = age;
            match &mut set.order {
                Some(order) if sorted => order.start_sorting(),
                _ => (set.order, set.marks) = (None, Arc::default()),
            }
            set
        }
    }

    /// The table and command whose rows these are.
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// What becomes of its rows.
    pub const fn placement(&self) -> Placement {
        self.placement
    }

    /// Memory held by values that are not written yet, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes + self.unwritten.iter().map(ClosedRows::bytes_in_background).sum::<usize>()
    }

    /// True if a row is still to be written, or if one was lost and the command has still to fail.
    pub(super) fn has_rows(&self) -> bool {
        self.rows != 0
            || !self.unwritten.is_empty()
            || self.broken
            || self.order.as_ref().is_some_and(Order::is_sorting)
    }

    /// How many of the next `count` rows go to the heap. Counts them.
    pub fn next_hot(&mut self, count: usize) -> usize {
        match self.placement {
            Placement::Hot => count,
            Placement::Deferred => 0,
            Placement::Numbered => {
                let hot = count.min(self.threshold_rows.saturating_sub(self.hot_rows));
                self.hot_rows += hot;
                hot
            }
        }
    }

    /// Takes rows over. Slots get the table's OID, and their TIDs if the rows are numbered.
    pub unsafe fn push(&mut self, rel: Open, mut slots: &[*mut TupleTableSlot]) {
        // SAFETY: rel and slots are the callback's; all attributes are deconstructed before values are read.
        unsafe {
            self.check_whole(rel);
            self.store_encoded(rel);
            for &slot in slots {
                if usize::try_from((*slot).tts_nvalid).unwrap_or(0) < self.columns.len() {
                    pg_sys::slot_getallattrs(slot);
                }
                (*slot).tts_tableOid = self.key.table;
            }
            if self.placement == Placement::Numbered {
                while !slots.is_empty() {
                    let (now, later) = slots.split_at(self.number(rel, slots));
                    self.append(rel, now);
                    if self.system_columns {
                        now.iter().for_each(|&slot| header::give(slot, self.key.command));
                    }
                    slots = later;
                }
                return;
            }
            self.push_ordered(rel, slots);
        }
    }

    /// Numbers as many of `slots` as the open stripe and the reservation have room for.
    unsafe fn number(&mut self, rel: Open, slots: &[*mut TupleTableSlot]) -> usize {
        // SAFETY: the slots are the callback's, whose command has locked the table for writing.
        unsafe {
            if self.reservation.as_ref().is_none_or(|numbers| numbers.next == numbers.end) {
                self.close_full(rel);
                let count = u32::try_from(self.row_limit).unwrap_or(u32::MAX);
                let next = directory::reserve(rel, count, self.key.command);
                self.reservation = Some(Reservation { next, end: next + u64::from(count) });
            }
            let Some(numbers) = &mut self.reservation else { return 0 };
            let left = usize::try_from(numbers.end - numbers.next).unwrap_or(usize::MAX);
            let count = slots.len().min(left).min(self.row_limit - self.rows);
            for slot in slots.iter().take(count) {
                (**slot).tts_tid = tid::cold_tid(numbers.next);
                numbers.next += 1;
            }
            count
        }
    }

    /// Adds rows to the open stripe as long as they come in order. From the first row that does not, rows are
    /// sorted.
    unsafe fn push_ordered(&mut self, rel: Open, slots: &[*mut TupleTableSlot]) {
        // SAFETY: the slots are deconstructed.
        unsafe {
            let Some(order) = &mut self.order else { return self.append_all(rel, slots) };
            let mut unordered = slots;
            if !order.is_sorting() {
                let (now, later) = slots.split_at(order.in_order(slots));
                self.append_all(rel, now);
                if later.is_empty() {
                    return;
                }
                unordered = later;
                // The rows that already wait in memory are sorted together with these. Otherwise each change
                // of direction would leave a short stripe.
                let waiting = self.take_open();
                let Some(order) = &mut self.order else { return };
                order.start_sorting();
                if let Some(waiting) = waiting {
                    write::for_each_slot(rel, &waiting, |slots| order.put(slots));
                }
            }
            if let Some(order) = &mut self.order {
                order.put(unordered);
            }
        }
    }

    /// Adds rows to the open stripe and to those after it.
    unsafe fn append_all(&mut self, rel: Open, mut slots: &[*mut TupleTableSlot]) {
        // SAFETY: the slots are deconstructed.
        unsafe {
            while !slots.is_empty() {
                let (now, later) = slots.split_at(slots.len().min(self.row_limit - self.rows));
                self.append(rel, now);
                slots = later;
            }
        }
    }

    /// Adds rows that fit into the open stripe, and closes it when it is full.
    unsafe fn append(&mut self, rel: Open, slots: &[*mut TupleTableSlot]) {
        // SAFETY: slots are deconstructed.
        unsafe {
            for (index, column) in self.columns.iter_mut().enumerate() {
                column.push(slots, index);
            }
            self.rows += slots.len();
            let bytes = self.columns.iter().map(ColumnWriter::bytes).sum();
            adjust_total(self.bytes, bytes);
            self.bytes = bytes;
            if self.rows >= self.row_limit || self.bytes >= STRIPE_BYTES {
                self.close_full(rel);
            }
        }
    }

    /// Closes the open stripe, which is full, and has it encoded while more rows come. Stripes before it are
    /// written first: only one is encoded at a time, so that memory stays bounded.
    fn close_full(&mut self, rel: Open) {
        let Some(mut stripe) = self.take_open() else { return };
        stripe.full = true;
        self.unwritten.push(stripe);
        while self.unwritten.len() > 1 {
            self.store_first(rel);
        }
        if let Some(stripe) = self.unwritten.first_mut() {
            stripe.start_encoding(rel);
            adjust_total(0, stripe.bytes_in_background());
            if stripe.encoding.is_none() {
                self.store_first(rel);
            }
        }
    }

    /// Writes the stripe that was being encoded, if it is ready.
    #[inline]
    fn store_encoded(&mut self, rel: Open) {
        let first = self.unwritten.first().and_then(|stripe| stripe.encoding.as_ref());
        if first.is_some_and(Background::is_done) {
            self.store_first(rel)
        }
    }

    fn take_open(&mut self) -> Option<ClosedRows> {
        if self.rows == 0 {
            return None;
        }
        let first_row = match self.placement {
            Placement::Numbered => self.reservation.as_ref().map(|numbers| numbers.next - self.rows as u64),
            _ => None,
        };
        let columns = Arc::new(self.columns.iter_mut().map(ColumnWriter::take).collect());
        let (rows, bytes) = (self.rows, self.bytes);
        let stripe = ClosedRows {
            columns,
            rows,
            bytes,
            first_row,
            full: false,
            marks: Arc::clone(&self.marks),
            encoding: None,
        };
        adjust_total(self.bytes, 0);
        self.rows = 0;
        self.bytes = 0;
        Some(stripe)
    }

    /// Writes the open rows. `full`: a limit was reached, so they become a stripe. A stripe stays in
    /// `unwritten` until it is in the table, because a subtransaction may catch the ERROR of a failed write,
    /// and then this command goes on.
    pub(super) fn close(&mut self, rel: Open, full: bool) {
        if let Some(mut stripe) = self.take_open() {
            stripe.full = full;
            self.unwritten.push(stripe);
        }
        while !self.unwritten.is_empty() {
            self.store_first(rel);
        }
    }

    /// Writes the first unwritten stripe.
    fn store_first(&mut self, rel: Open) {
        // SAFETY: the command that filled the set has locked its table for writing.
        unsafe {
            let Some(stripe) = self.unwritten.first_mut() else { return };
            adjust_total(stripe.bytes_in_background(), 0);
            let many = stripe.full
                || stripe.first_row.is_some()
                || match self.in_stripes {
                    true => stripe.rows >= self.tail_rows || stripe.bytes >= TAIL_BYTES,
                    false => stripe.rows >= self.threshold_rows || stripe.bytes >= self.threshold_bytes,
                };
            if many {
                write::write_stripe(rel, stripe, self.key.command, self.age);
                self.in_stripes = true;
                self.wrote_stripes = true;
            } else {
                // Frozen rows would be seen by older snapshots at once. Beside stripes, which they do not
                // see, they would show half of a load.
                let frozen = pg_sys::TABLE_INSERT_FROZEN as i32;
                let options = if self.wrote_stripes { self.options & !frozen } else { self.options };
                write::write_hot(rel, stripe, self.key.command, options);
            }
            let mut stripe = self.unwritten.remove(0);
            let current = pg_sys::GetCurrentSubTransactionId();
            if current != self.key.subtransaction {
                stripe.full = false;
                self.written_by_children.push((current, stripe));
            }
        }
    }

    fn drain_sort(&mut self, rel: Open) {
        // SAFETY: the sort's slot is deconstructed before it is read.
        unsafe {
            self.check_whole(rel);
            let Some(mut order) = self.order.take() else { return };
            if order.is_sorting() {
                self.broken = true;
                order.drain(|slot| {
                    pg_sys::slot_getallattrs(slot);
                    self.append(rel, &[slot]);
                });
                self.broken = false;
            }
            self.order = Some(order);
        }
    }

    /// Raises an ERROR if rows of this command were lost with a sort.
    fn check_whole(&self, rel: Open) {
        if self.broken {
            let table = rel.quoted_name();
            error::raise(
                error::PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("cannot continue loading table {table}"),
                "An error ended the sorting of its rows, and a subtransaction caught that error.",
                "Let the error end the command that loads the table.",
            );
        }
    }

    /// Writes everything, because somebody is about to look. More rows may follow.
    pub(super) fn flush(&mut self, rel: Open) {
        self.drain_sort(rel);
        self.close(rel, false);

        self.in_stripes = false;
        self.hot_rows = 0;
    }

    /// Writes everything, because the command is over.
    pub(super) fn finish(&mut self, rel: Open) {
        self.drain_sort(rel);
        self.close(rel, false);
    }

    /// Writes the open rows to get their memory back.
    pub(super) fn spill(&mut self, rel: Open) {
        self.close(rel, false)
    }

    /// A subtransaction below this set's has aborted. The stripes that it wrote have to be written again.
    pub(super) fn child_aborted(&mut self, child: SubTransactionId) {
        let (back, kept) =
            std::mem::take(&mut self.written_by_children).into_iter().partition(|(by, _)| *by == child);
        self.written_by_children = kept;
        self.unwritten.extend(Vec::into_iter(back).map(|(_, stripe): (_, ClosedRows)| stripe));
    }

    /// Subtransaction `child` has committed into `parent`. The stripes that it wrote now belong to `parent`.
    pub(super) fn child_committed(&mut self, child: SubTransactionId, parent: SubTransactionId) {
        if parent == self.key.subtransaction {
            self.written_by_children.retain(|(by, _)| *by != child);
        } else {
            self.written_by_children
                .iter_mut()
                .filter(|(by, _)| *by == child)
                .for_each(|(by, _)| *by = parent);
        }
    }

    /// Forgets the sort without touching it, because the transaction's memory is going away.
    pub(super) fn abandon(&mut self) {
        self.order = None;
    }
}

impl Drop for PendingRows {
    fn drop(&mut self) {
        adjust_total(self.bytes(), 0);
    }
}
