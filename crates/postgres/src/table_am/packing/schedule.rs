//! When a database or a table is looked at next.
//!
//! The launcher asks about databases and the worker about tables. Workers come and go, so the answers are
//! kept in shared memory. A database or a table that is not known is looked at.
//!
//! A look that packs nothing, or fails, doubles the pause before the next one, up to `MOST` naptimes. After a
//! look that found nothing to pack, the pause ends early once enough rows for a stripe were written. After a
//! failure nothing ends it early.
//!
//! Invariant: this is a hint, and all of it may be forgotten. So places are reused, and nobody waits for
//! anybody here.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use pgrx::pg_sys::{self, Oid};

use super::settings;
use crate::host::shared_memory::Shared;

/// How many places there are, and how many of them one key may have.
const PLACES: usize = 2048;
const WAYS: usize = 8;
/// The longest pause, in naptimes.
const MOST: u32 = 16;
/// Stands for a number of rows, and means that no number ends the pause.
const NEVER: u64 = u64::MAX;

/// What is known of one database or table.
struct Place {
    /// Database and table. 0: the place is free.
    key: AtomicU64,
    /// Rows that had been written when it was looked at last, by the server's statistics.
    written: AtomicU64,
    /// Naptimes.
    pause: AtomicU32,
    /// Time of the next look.
    next: AtomicI64,
}

struct Places([Place; PLACES]);

static SHARED: Shared<Places> = Shared::new(c"colonnade packing turns");

/// Asks for the shared memory.
///
/// # Safety
/// Runs once, while the server preloads the library.
pub(super) unsafe fn register() {
    // SAFETY: numbers only.
    unsafe { SHARED.register() }
}

/// A database, or one of its tables.
#[derive(Clone, Copy)]
pub struct Turn(u64);

impl Turn {
    pub fn of_database(database: Oid) -> Self {
        Self(u64::from(database.to_u32()) << 32)
    }

    pub fn of_table(table: Oid) -> Self {
        // SAFETY: a constant of the process.
        let database = unsafe { pg_sys::MyDatabaseId };
        Self(u64::from(database.to_u32()) << 32 | u64::from(table.to_u32()))
    }

    fn places(self) -> &'static [Place] {
        let start = (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % (PLACES / WAYS) * WAYS;
        SHARED.get().and_then(|shared| shared.0.get(start..start + WAYS)).unwrap_or_default()
    }

    fn known(self) -> Option<&'static Place> {
        self.places().iter().find(|place| place.key.load(Ordering::Relaxed) == self.0)
    }

    /// Whether it is to be looked at now, when `written` rows have been written to it and `enough` are worth
    /// a look.
    pub fn is_due(self, written: u64, enough: u64) -> bool {
        self.known().is_none_or(|place| {
            let before = place.written.load(Ordering::Relaxed);
            now() >= place.next.load(Ordering::Relaxed)
                || (before != NEVER && written >= before.saturating_add(enough))
        })
    }

    /// When the next look comes at the latest, in the server's microseconds. None if it comes in the next
    /// round.
    pub fn next(self) -> Option<i64> {
        self.known().map(|place| place.next.load(Ordering::Relaxed)).filter(|&next| next > now())
    }

    /// Whether nothing was written since a look that packed nothing.
    pub fn is_idle(self, written: u64) -> bool {
        self.known().is_some_and(|place| place.written.load(Ordering::Relaxed) == written)
    }

    /// There was something to pack: the next round looks again.
    pub fn was_busy(self) {
        if let Some(place) = self.known() {
            place.key.store(0, Ordering::Relaxed);
        }
    }

    /// There was nothing to pack.
    pub fn was_idle(self, written: u64) {
        self.postpone(written);
    }

    /// It could not be packed.
    pub fn failed(self) {
        self.postpone(NEVER);
    }

    /// The look was noted as failed beforehand, in case it would fail, and found nothing to pack. The pause
    /// becomes that of an idle look.
    pub fn correct_to_idle(self, written: u64) {
        if let Some(place) = self.known() {
            place.written.store(written, Ordering::Relaxed);
        }
    }

    fn postpone(self, written: u64) {
        let (place, pause) = match self.known() {
            Some(place) => (place, place.pause.load(Ordering::Relaxed).saturating_mul(2).clamp(2, MOST)),
            // Takes a free place, or else the one that is due first, which is missed least.
            None => match self.places().iter().min_by_key(|place| match place.key.load(Ordering::Relaxed) {
                0 => i64::MIN,
                _ => place.next.load(Ordering::Relaxed),
            }) {
                Some(place) => (place, 1),
                None => return,
            },
        };
        // Half a naptime less, so that the round at that time finds it due.
        let wait = (settings::naptime() * i64::from(pause) - settings::naptime() / 2) * 1000;
        place.written.store(written, Ordering::Relaxed);
        place.pause.store(pause, Ordering::Relaxed);
        place.next.store(now() + wait, Ordering::Relaxed);
        place.key.store(self.0, Ordering::Relaxed);
    }
}

/// Microseconds.
fn now() -> i64 {
    // SAFETY: reads the clock.
    unsafe { pg_sys::GetCurrentTimestamp() }
}
