//! What a backend keeps from one look-up of single rows to the next, bounded in bytes.
//!
//! `kept_chunk` and `kept_block` each have such a cache. What is kept belongs to an opened stripe, which
//! finds it by its place. The cache knows all of them, and takes those away that were used longest ago.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use super::stripe_on_pages::StripeHandle;

/// When something was used, and how much memory it takes.
pub struct Life {
    /// Time of the last use.
    used: Cell<u64>,
    /// About how much memory it takes.
    bytes: Cell<usize>,
    /// Whether it is still in the cache.
    kept: Cell<bool>,
}

impl Life {
    /// Of something that is used now.
    pub fn new(bytes: usize) -> Self {
        Self { used: Cell::new(now()), bytes: Cell::new(bytes), kept: Cell::new(true) }
    }

    /// Notes a use.
    pub fn touch(&self) {
        self.used.set(now());
    }
}

thread_local! {
    /// Counts the look-ups.
    static CLOCK: Cell<u64> = const { Cell::new(0) };
}

fn now() -> u64 {
    let now = CLOCK.get() + 1;
    CLOCK.set(now);
    now
}

/// What a cache keeps.
pub trait Keep {
    /// Where a stripe has it.
    type Place: Copy;

    fn life(&self) -> &Life;

    /// Has the stripe forget it.
    fn forget(stripe: &StripeHandle, place: Self::Place);
}

struct Keeper<T: Keep> {
    item: Rc<T>,
    stripe: Weak<StripeHandle>,
    place: T::Place,
}

/// All that is kept.
pub struct Cache<T: Keep> {
    limit: usize,
    bytes: usize,
    keepers: Vec<Keeper<T>>,
}

impl<T: Keep> Cache<T> {
    /// Keeps at most `limit` bytes.
    pub const fn new(limit: usize) -> Self {
        Self { limit, bytes: 0, keepers: Vec::new() }
    }

    /// Whether half of the memory is free.
    pub const fn is_half_empty(&self) -> bool {
        self.bytes < self.limit / 2
    }

    /// Adds what the stripe has at a place from now on.
    pub fn add(&mut self, item: &Rc<T>, stripe: &Rc<StripeHandle>, place: T::Place) {
        let bytes = item.life().bytes.get();
        self.make_room(bytes);
        self.bytes += bytes;
        self.keepers.push(Keeper { item: Rc::clone(item), stripe: Rc::downgrade(stripe), place });
    }

    /// Notes that something takes so many bytes more, or less.
    pub fn resize(&mut self, life: &Life, more: isize) {
        self.make_room(usize::try_from(more).unwrap_or(0));
        life.bytes.set(life.bytes.get().saturating_add_signed(more));
        if life.kept.get() {
            self.bytes = self.bytes.saturating_add_signed(more);
        }
    }

    /// Drops things until `bytes` more fit: those whose stripe was closed, which nobody finds again, and
    /// those that were used longest ago, half of them at once.
    fn make_room(&mut self, bytes: usize) {
        while self.bytes + bytes > self.limit && !self.keepers.is_empty() {
            let mut ages: Vec<u64> =
                self.keepers.iter().map(|keeper| keeper.item.life().used.get()).collect();
            let middle = ages.len() / 2;
            let (_, &mut median, _) = ages.select_nth_unstable(middle);
            self.keepers.retain(|Keeper { item, stripe, place }| {
                let life = item.life();
                life.kept.set(life.used.get() > median && stripe.strong_count() > 0);
                if !life.kept.get()
                    && let Some(stripe) = stripe.upgrade()
                {
                    T::forget(&stripe, *place);
                }
                life.kept.get()
            });
            self.bytes = self.keepers.iter().map(|keeper| keeper.item.life().bytes.get()).sum();
        }
    }
}
