//! When a database or a table is looked at next.
//!
//! Asked by the launcher about databases and by the worker about tables, whose processes come and go: so it
//! is kept in shared memory. A look that packs nothing, or fails, makes the pause before the next one twice
//! as long, up to `MOST` naptimes. After one that found nothing to pack, as many rows written as are worth a
//! stripe end the pause; after a failure nothing does. What is not known is looked at. Invariant: a hint; it
//! is right to forget all of it, so places are reused, and nobody waits for anybody here.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use pgrx::pg_sys::{self, Oid};

use super::settings;
use crate::host::shared_memory::Shared;

/// Places, and how many of them one key may have.
const PLACES: usize = 2048;
const WAYS: usize = 8;
/// The longest pause, in naptimes.
const MOST: u32 = 16;
/// Instead of a number of rows: no number ends the pause.
const NEVER: u64 = u64::MAX;

/// What is known of one database or table.
struct Place {
    /// Database and table; 0: nothing is.
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
pub(super) struct Turn(u64);

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

    /// Time of the next look at the latest, in the server's microseconds; None where it is in the next round.
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

    /// What was noted as failed beforehand, in case it would, was idle: the pause is that one.
    pub fn was_idle_after_all(self, written: u64) {
        if let Some(place) = self.known() {
            place.written.store(written, Ordering::Relaxed);
        }
    }

    fn postpone(self, written: u64) {
        let (place, pause) = match self.known() {
            Some(place) => (place, place.pause.load(Ordering::Relaxed).saturating_mul(2).clamp(2, MOST)),
            // The one that is due first is free, or the one that is missed least.
            None => match self.places().iter().min_by_key(|place| match place.key.load(Ordering::Relaxed) {
                0 => i64::MIN,
                _ => place.next.load(Ordering::Relaxed),
            }) {
                Some(place) => (place, 1),
                None => return,
            },
        };
        // A little less, so that the round at that time finds it due.
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
