//! What this backend deletes in bulk. A stripe is claimed, which excludes all others, as long as bits of it
//! are in memory only.
//!
//! Called by `table_am::change::cold_change` for each cold row that a statement deletes or updates, and by
//! the hooks around statements. After some rows of one stripe the command tries to exclude others from the
//! stripe, at once or not at all. Then nobody else can hold a lock on one of its rows, so a death is a bit in
//! memory (`mark`). Rows that were dead before are left to the slow way, which knows what to say of them.
//!
//! `write_all` writes the bits and gives the stripes back:
//! - at the end of the statement, before its AFTER triggers
//! - when a statement inside it begins
//! - before this backend waits for anybody
//! - when somebody waits for the stripe
//! - when there are many
//! - before the (sub)transaction commits; a rollback discards the bits
//!
//! Invariants:
//! - A claim belongs to one command of one subtransaction. Its rows carry that xid and command id even if
//!   they are written inside a later subtransaction.
//! - Nobody else sees rows of a claimed stripe change, or locks them.
//! - A claim is forgotten only when everything in it is written.
//! - No borrow of the registry is held across a call into the server.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;

use pgrx::pg_guard;
use pgrx::pg_sys::{
    self, CommandId, ItemPointerData, Oid, SubTransactionId, SubXactEvent, TransactionId, XactEvent,
};

use super::{Entry, MOST_BYTES, SPAN, TID_BYTES, bit, lookup, set_bit, tid_bytes};
use crate::compat;
use crate::host::error;
use crate::host::predicate_locks;
use crate::host::relation::{Open, with_table};
use crate::storage::catalog::indexes::Indexes;
use crate::storage::catalog::side_table::SideTable;
use crate::storage::change::row_proxy;
use crate::storage::change::stripe_lock::{self, Exclusion};
use crate::storage::directory::StripeEntry;
use crate::storage::directory::age;
use crate::storage::file::tid;

/// Rows of a stripe that a command changes one by one before it claims the stripe.
const FIRST: u32 = 16;
/// A claim is given up as too dear if it has to look at more proxies of the stripe than this many for each
/// row changed so far.
const PROXIES_A_ROW: usize = 64;
/// After this many rows it looks whether somebody waits for the stripe.
const LOOK: u32 = 256;
/// How many stripes are claimed at a time. Each takes a lock, and the server has only some thousands. There
/// should be many, because rows in the order of an index may come from all stripes in turn. A backend that
/// gives stripes back changes rows one by one again.
const MOST_CLAIMS: usize = 1000;
/// How many claims are looked at each time for somebody who waits.
const ASKED: usize = 64;
/// If this many rows have successors (16 bytes each), all are written before a further stripe is claimed.
const MOST_MOVED: usize = 300_000;

/// A stripe from which this backend excludes all others.
struct Claim {
    table: Oid,
    entry: StripeEntry,
    subtransaction: SubTransactionId,
    command: CommandId,
    writer: TransactionId,
    exclusion: Exclusion,
    /// Rows that were dead already.
    dead: Vec<u8>,
    /// Rows that this command has killed.
    bits: Vec<u8>,
    count: u32,
    /// The successors of those that have one.
    moved: Vec<(u32, ItemPointerData)>,
}

impl Claim {
    /// The row's place in the stripe, if the claim has it and belongs to this command, which is running.
    fn position(&self, table: Oid, row: u64, command: CommandId) -> Option<u64> {
        // SAFETY: a plain number of the server's.
        let current = unsafe { pg_sys::GetCurrentSubTransactionId() };
        let is_it = self.table == table && self.command == command && self.subtransaction == current;
        (is_it && self.entry.covers(row)).then(|| row - self.entry.first_row)
    }
}

/// How many rows of which stripes the running command has changed one by one.
#[derive(Default)]
struct Tally {
    transaction: u32,
    command: (SubTransactionId, CommandId),
    /// By storage id and first row number: the rows changed so far, and at how many the stripe is claimed.
    stripes: HashMap<(u64, u64), (u32, u32)>,
}

thread_local! {
    static CLAIMS: RefCell<Vec<Claim>> = const { RefCell::new(Vec::new()) };
    static COUNT: Cell<usize> = const { Cell::new(0) };
    /// Which claim `yield_to_waiters` asks about next.
    static NEXT_ASKED: Cell<usize> = const { Cell::new(0) };
    static TALLY: RefCell<Tally> = RefCell::new(Tally::default());
}

/// Registers the transaction callbacks.
///
/// # Safety
/// Once, from `_PG_init`.
pub unsafe fn register() {
    // SAFETY: plain registrations.
    unsafe {
        pg_sys::RegisterXactCallback(Some(transaction_event), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(subtransaction_event), std::ptr::null_mut());
    }
}

/// True if a stripe is claimed, so that deaths may be in memory only. Cheap enough for hot paths.
#[inline]
pub fn any() -> bool {
    COUNT.get() != 0
}

/// What a claim says of a row.
pub enum Probe {
    /// Its stripe is not claimed, or the row was dead before.
    Unknown,
    /// The row is alive and may be marked.
    Alive,
    /// This very command has killed the row, under this transaction id.
    Killed(TransactionId),
}

/// Looks a row up among the claims of a running command.
pub fn probe(table: Oid, row: u64, command: CommandId) -> Probe {
    CLAIMS.with_borrow(|claims| {
        let found = claims.iter().rev().find_map(|claim| Some((claim, claim.position(table, row, command)?)));
        match found {
            Some((claim, at)) if bit(&claim.bits, at) => Probe::Killed(claim.writer),
            Some((claim, at)) if !bit(&claim.dead, at) => Probe::Alive,
            _ => Probe::Unknown,
        }
    })
}

/// Marks a row as dead that `probe` has found alive. `successor` has taken its place.
pub fn mark(rel: Open, row: u64, command: CommandId, successor: Option<ItemPointerData>) {
    // SAFETY: no content lock is held, and `CLAIMS` is not borrowed any more when claims are written.
    unsafe {
        let table = rel.oid();
        let look = CLAIMS.with_borrow_mut(|claims| {
            let mut all = claims.iter_mut().rev();
            let found = all.find_map(|claim| claim.position(table, row, command).map(|at| (claim, at)));
            let Some((claim, at)) = found else { error::internal("a stripe is not claimed any more") };
            if let Some(place) = successor {
                if claim.moved.try_reserve(1).is_err() {
                    error::raise_plain(vector::Error::OutOfMemory { bytes: claim.moved.len() * 24 });
                }
                claim.moved.push((at as u32, place));
            }
            set_bit(&mut claim.bits, at);
            claim.count += 1;
            claim.count % LOOK == 0 && claim.exclusion.has_waiters(table)
        });
        if look {
            write_all();
        }
    }
}

/// Counts a row of a stripe that a command has changed. If it is time to claim the stripe, it returns how
/// many rows were changed since the last time.
pub fn due(entry: &StripeEntry, command: CommandId) -> Option<u32> {
    // SAFETY: plain numbers of the server's.
    let (transaction, subtransaction) =
        unsafe { (compat::local_transaction(), pg_sys::GetCurrentSubTransactionId()) };
    TALLY.with_borrow_mut(|tally| {
        let now = (subtransaction, command);
        if tally.transaction != transaction || tally.command != now {
            *tally = Tally { transaction, command: now, stripes: HashMap::new() };
        }
        let (rows, due) = tally.stripes.entry((entry.storage_id, entry.first_row)).or_insert((0, FIRST));
        *rows += 1;
        if *rows < *due {
            return None;
        }
        // If the claim fails or the stripe is given back, the next claim takes twice as many rows.
        *due = due.saturating_mul(2);
        Some(std::mem::take(rows))
    })
}

fn zeroes(bytes: usize) -> Option<Vec<u8>> {
    let mut bits = Vec::new();
    bits.try_reserve_exact(bytes).ok()?;
    bits.resize(bytes, 0);
    Some(bits)
}

/// Claims a stripe whose lock this transaction shares, if others can be excluded at once. Gives up if many
/// more proxies had to be looked at than the `changed` rows so far.
pub unsafe fn claim(rel: Open, entry: &StripeEntry, changed: u32, command: CommandId) {
    // SAFETY: with all others excluded, who has locked or changed a row of the stripe has ended or is this
    // transaction.
    unsafe {
        let bytes = (entry.row_count as usize).div_ceil(8);
        let Some((mut dead, bits)) = zeroes(bytes).zip(zeroes(bytes)) else { return };
        let is_much = CLAIMS.with_borrow(|claims| {
            claims.len() >= MOST_CLAIMS
                || claims.iter().map(|claim| claim.moved.len()).sum::<usize>() >= MOST_MOVED
        });
        if is_much {
            write_all();
        }
        let Some(exclusion) = stripe_lock::exclude(rel, entry) else { return };
        let rows = entry.first_row..entry.end_row();
        let mut kill = |row: u64| set_bit(&mut dead, row - entry.first_row);
        if !row_proxy::for_each_dead(entry.storage_id, &rows, changed as usize * PROXIES_A_ROW, &mut kill) {
            exclusion.end(rel);
            return;
        }
        lookup::for_each_dead(entry.storage_id, &rows, |row, _| kill(row));
        let claim = Claim {
            table: rel.oid(),
            entry: entry.clone(),
            subtransaction: pg_sys::GetCurrentSubTransactionId(),
            command,
            writer: pg_sys::GetCurrentTransactionId(),
            exclusion,
            dead,
            bits,
            count: 0,
            moved: Vec::new(),
        };
        CLAIMS.with_borrow_mut(|claims| {
            claims.push(claim);
            COUNT.set(claims.len());
        });
    }
}

/// The command of this backend that has killed the row and has not written this yet.
pub fn marked_by(storage_id: u64, row: u64) -> Option<CommandId> {
    if !any() {
        return None;
    }
    CLAIMS.with_borrow(|claims| {
        let is_dead = |claim: &&Claim| {
            let entry = &claim.entry;
            entry.storage_id == storage_id && entry.covers(row) && bit(&claim.bits, row - entry.first_row)
        };
        claims.iter().find(is_dead).map(|claim| claim.command)
    })
}

/// Gives claimed stripes back if somebody waits for one. Called by scans, because they may go on for long
/// without finding a row to change.
pub unsafe fn yield_to_waiters() {
    if !any() {
        return;
    }
    // If there are many claims, each call looks at the next ones.
    let claimed = CLAIMS.with_borrow(|claims| {
        let first = NEXT_ASKED.get() % claims.len();
        NEXT_ASKED.set(first + ASKED);
        let those = claims.iter().cycle().skip(first).take(ASKED.min(claims.len()));
        those.map(|claim| (claim.table, claim.exclusion)).collect::<Vec<_>>()
    });
    // SAFETY: the locks are held; no content lock is.
    unsafe {
        if claimed.iter().any(|(table, exclusion)| exclusion.has_waiters(*table)) {
            write_all();
        }
    }
}

/// Writes the bits in memory and gives all claimed stripes back. Must not be called while a content lock is
/// held.
pub unsafe fn write_all() {
    while let Some(claim) = CLAIMS.with_borrow_mut(|claims| claims.last_mut().map(|claim| &raw mut *claim)) {
        // SAFETY: claims are only made by this backend's statements, none of which runs before the claim is
        // popped: it stays where it is while it is written. An ERROR leaves it to the next try, or to the
        // rollback.
        unsafe {
            with_table((*claim).table, pg_sys::RowExclusiveLock, |rel| {
                (*claim).write(rel);
                stripe_lock::note_change(&(*claim).entry);
                (*claim).exclusion.end(rel);
            });
        }
        let gone = CLAIMS.with_borrow_mut(|claims| {
            let gone = claims.pop();
            COUNT.set(claims.len());
            gone
        });
        drop(gone);
    }
}

impl Claim {
    unsafe fn write(&mut self, rel: Open) {
        if self.count == 0 {
            return;
        }
        self.moved.sort_unstable_by_key(|(at, _)| *at);
        // SAFETY: relations are closed in every path that returns, and by the server's abort otherwise.
        unsafe {
            let table = SideTable::DeleteBitmap.open(pg_sys::RowExclusiveLock);
            let indexes = Indexes::open(SideTable::DeleteBitmap, Open::of(table));
            let mut stamps = Vec::new();
            let mut rest = &self.moved[..];
            let mut at = 0;
            while let Some((from, to)) = self.next_part(at) {
                let end = rest.partition_point(|(row, _)| (*row as usize) < to * 8);
                let (own, later) = rest.split_at(end);
                rest = later;
                let successors = self.successors(from..to, own);
                let entry = Entry {
                    first_row: self.entry.first_row + from as u64 * 8,
                    bits: &self.bits[from..to],
                    successors: &successors,
                };
                let tuple = super::form(Open::of(table), self.entry.storage_id, &entry);
                let keys =
                    [self.entry.storage_id, entry.first_row].map(|key| pg_sys::Datum::from(key as i64));
                indexes.insert(tuple, &keys, self.command, 0);
                if pg_sys::GetCurrentTransactionId() != self.writer {
                    stamps.push(((*tuple).t_self, self.writer));
                }
                pg_sys::pfree(tuple.cast());
                at = to;
            }
            age::set_inserters(Open::of(table), stamps);
            indexes.close();
            pg_sys::table_close(table, pg_sys::NoLock as i32);
            // This must come after the rows are written: see `row_proxy::visibility`.
            if pg_sys::XactIsoLevel == pg_sys::XACT_SERIALIZABLE as i32 {
                for row in super::rows_in(self.entry.first_row, &self.bits, 0..u64::MAX) {
                    let mut at = tid::cold_tid(row);
                    predicate_locks::serializable_write_row(rel, &raw mut at, tid::block_of(at));
                }
            }
        }
    }

    /// Which bytes, from `at` on, go into the next row of the catalog.
    fn next_part(&self, at: usize) -> Option<(usize, usize)> {
        let from = at + self.bits.get(at..)?.iter().position(|&byte| byte != 0)?;
        let mut size = 0;
        let mut to = from;
        for (at, byte) in self.bits.iter().enumerate().skip(from).take(SPAN as usize / 8) {
            let successors = if self.moved.is_empty() { 0 } else { byte.count_ones() as usize * TID_BYTES };
            size += 1 + successors;
            if size > MOST_BYTES {
                break;
            }
            if *byte != 0 {
                to = at + 1;
            }
        }
        Some((from, to))
    }

    /// A TID for each bit that is set in some bytes. `moved` are the successors; other rows get their own
    /// TID.
    fn successors(&self, bytes: std::ops::Range<usize>, moved: &[(u32, ItemPointerData)]) -> Vec<u8> {
        let mut found = Vec::new();
        if moved.is_empty() {
            return found;
        }
        let mut moved = moved.iter().peekable();
        let first = self.entry.first_row;
        let rows = first + bytes.start as u64 * 8..first + bytes.end as u64 * 8;
        for row in super::rows_in(first, &self.bits, rows) {
            let place = moved.next_if(|(at, _)| u64::from(*at) == row - first);
            found.extend_from_slice(&tid_bytes(place.map_or(tid::cold_tid(row), |(_, place)| *place)));
        }
        found
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn transaction_event(event: XactEvent::Type, _arg: *mut c_void) {
    match event {
        // SAFETY: the transaction is still in progress.
        XactEvent::XACT_EVENT_PRE_COMMIT | XactEvent::XACT_EVENT_PRE_PREPARE => unsafe { write_all() },
        XactEvent::XACT_EVENT_ABORT | XactEvent::XACT_EVENT_PARALLEL_ABORT => discard(|_| true),
        _ => {}
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn subtransaction_event(
    event: SubXactEvent::Type,
    own: SubTransactionId,
    _parent: SubTransactionId,
    _arg: *mut c_void,
) {
    match event {
        // SAFETY: the subtransaction is still in progress.
        SubXactEvent::SUBXACT_EVENT_PRE_COMMIT_SUB => unsafe { write_all() },
        SubXactEvent::SUBXACT_EVENT_ABORT_SUB => {
            discard(|claim| claim.subtransaction == own);
            stripe_lock::forget();
            row_proxy::forget();
        }
        _ => {}
    }
}

/// Drops claims. The server's abort releases their locks.
fn discard(which: impl Fn(&Claim) -> bool) {
    if any() {
        let gone: Vec<Claim> = CLAIMS.with_borrow_mut(|claims| {
            let gone = claims.extract_if(.., |claim| which(claim)).collect();
            COUNT.set(claims.len());
            gone
        });
        drop(gone);
    }
}
