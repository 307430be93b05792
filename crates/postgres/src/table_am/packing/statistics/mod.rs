//! What packing has done to each table, and why it does no more now.
//!
//! The figures are in shared memory, for up to `TABLES` tables of all databases. If more tables are packed,
//! the one whose figures changed longest ago loses them.
//! - `pending`: counts what batches do, once they have committed
//! - `report`: shows the figures
//! - `file`: keeps them over a restart
//! - `calls`: what each CALL is doing now
//!
//! The worker notes what its rounds find.
//!
//! Invariants: a relation or database that is created has no figures, whatever had its OID before. Nobody
//! calls the server while `held` is set.

mod calls;
mod file;
mod pending;
mod report;
mod shown;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pgrx::pg_sys::{self, Oid};

use crate::host::shared_memory::Shared;

pub(super) use calls::{begin_call, end_call, tell};
pub(super) use pending::{Done, begin_round, count, end_round, find_waiting, found_waiting, register};

/// Tables at most.
const TABLES: usize = 2048;
/// Bytes of an error's message, and words that hold them.
const TEXT: usize = 240;
const TEXT_WORDS: usize = TEXT / 8;
/// Sums of what batches have done.
pub(super) const SUMS: usize = 13;

/// What is added up once a batch has committed.
#[derive(Clone, Copy)]
pub(super) enum Sum {
    RowsPacked,
    StripesWritten,
    PackedBytesBefore,
    PackedBytesAfter,
    RowsRewritten,
    StripesReplaced,
    StripesRewritten,
    RewrittenBytesBefore,
    RewrittenBytesAfter,
    StripesTakenOut,
    StripesMoved,
    Vacuums,
    BytesCutOff,
}

/// Other numbers of a table, after the sums.
#[derive(Clone, Copy)]
pub(super) enum Number {
    Rounds = SUMS as isize,
    Calls,
    Errors,
    /// Times are the server's, in microseconds; 0: never.
    LastLook,
    LastRound,
    LastCall,
    LastError,
    /// An `Outcome`.
    Outcome,
    /// Heap rows that the last look found and left.
    Waiting,
    /// Those of the waiting rows that are younger than the oldest snapshot, or locked.
    Young,
    Locked,
    /// When a number of this table changed last, and since when it is counted.
    Changed,
    Since,
}

const WORDS: usize = Number::Since as usize + 1 + TEXT_WORDS;

/// What came of the last look at a table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was packed, or there was nothing to pack.
    Done = 1,
    TableLocked,
    Obstacle,
    Failed,
}

struct Tables {
    /// 1 while a process reads or changes the rest.
    held: AtomicU32,
    /// Database and table; 0: free.
    keys: [AtomicU64; TABLES],
    words: [[AtomicU64; WORDS]; TABLES],
    calls: [[AtomicU64; calls::CALL_WORDS]; calls::CALLS],
}

static SHARED: Shared<Tables> = Shared::new(c"colonnade packing statistics");

/// The right to read and change the figures, held for a moment.
struct Held(&'static Tables);

impl Held {
    fn get() -> Option<Self> {
        let tables = SHARED.get()?;
        // Waits by spinning: the holder copies only some hundred bytes. A holder cannot disappear before
        // that, as a process that is killed takes all others and this memory along.
        let mut tries = 0_u32;
        while tables.held.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            tries += 1;
            if tries.is_multiple_of(64) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        Some(Self(tables))
    }

    fn find(&self, key: u64) -> Option<&'static [AtomicU64; WORDS]> {
        let at = self.0.keys.iter().position(|known| known.load(Ordering::Relaxed) == key)?;
        self.0.words.get(at)
    }

    /// The words of a table. If it has none, it takes free ones, or those of the table whose figures changed
    /// longest ago.
    fn find_or_take(&self, key: u64) -> Option<&'static [AtomicU64; WORDS]> {
        self.find(key).or_else(|| {
            let places = self.0.keys.iter().zip(&self.0.words);
            let (taken, words) = places.min_by_key(|(key, words)| match key.load(Ordering::Relaxed) {
                0 => 0,
                _ => get(words, Number::Changed as usize).max(1),
            })?;
            words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            set(words, Number::Since as usize, now());
            taken.store(key, Ordering::Relaxed);
            Some(words)
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.held.store(0, Ordering::Release);
    }
}

fn get(words: &[AtomicU64; WORDS], at: usize) -> u64 {
    words.get(at).map_or(0, |word| word.load(Ordering::Relaxed))
}

fn set(words: &[AtomicU64; WORDS], at: usize, value: u64) {
    if let Some(word) = words.get(at) {
        word.store(value, Ordering::Relaxed);
    }
}

fn add(words: &[AtomicU64; WORDS], at: usize, value: u64) {
    set(words, at, get(words, at).saturating_add(value));
}

fn now() -> u64 {
    // SAFETY: reads the clock.
    u64::try_from(unsafe { pg_sys::GetCurrentTimestamp() }).unwrap_or(0)
}

fn key(table: Oid) -> u64 {
    // SAFETY: a constant of the process.
    let database = unsafe { pg_sys::MyDatabaseId };
    u64::from(database.to_u32()) << 32 | u64::from(table.to_u32())
}

/// Figures of one table, as they were at one moment.
pub(super) struct Figures {
    numbers: [u64; WORDS],
    /// Message of the last error.
    pub error: String,
}

impl Figures {
    pub fn sum(&self, sum: Sum) -> u64 {
        self.numbers.get(sum as usize).copied().unwrap_or(0)
    }

    pub fn number(&self, number: Number) -> u64 {
        self.numbers.get(number as usize).copied().unwrap_or(0)
    }
}

/// A text in words, cut where there is no more room.
fn words_of(text: &str) -> [u64; TEXT_WORDS] {
    let mut end = text.len().min(TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut words = [0; TEXT_WORDS];
    for (word, bytes) in words.iter_mut().zip(text.as_bytes().get(..end).unwrap_or_default().chunks(8)) {
        *word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    }
    words
}

/// The text that these words hold.
fn text_of(words: &[u64]) -> String {
    let bytes: Vec<u8> =
        words.iter().flat_map(|word| word.to_le_bytes()).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What is known of a table of this database.
pub(super) fn figures(table: Oid) -> Option<Figures> {
    let held = Held::get()?;
    let words = held.find(key(table))?;
    let mut numbers = [0; WORDS];
    numbers.iter_mut().zip(words).for_each(|(number, word)| *number = word.load(Ordering::Relaxed));
    drop(held);
    let text = numbers.get(WORDS - TEXT_WORDS..).unwrap_or_default();
    Some(Figures { numbers, error: text_of(text) })
}

/// Adds what a committed transaction has done. The caller holds a lock on the table, so that nobody drops it
/// meanwhile.
fn add_sums(table: Oid, sums: &[u64; SUMS]) {
    if let Some(held) = Held::get()
        && let Some(words) = held.find_or_take(key(table))
    {
        sums.iter().enumerate().for_each(|(at, &sum)| add(words, at, sum));
        set(words, Number::Changed as usize, now());
    }
}

/// Changes the numbers of a table of this database.
fn change(table: Oid, change: impl FnOnce(&[AtomicU64; WORDS])) {
    let time = now();
    if let Some(held) = Held::get()
        && let Some(words) = held.find_or_take(key(table))
    {
        change(words);
        set(words, Number::Changed as usize, time);
    }
}

/// A look of the worker at a table has ended.
pub(super) fn looked_at(table: Oid, outcome: Outcome, has_done: bool) {
    let (time, waiting) = (now(), found_waiting());
    change(table, |words| {
        set(words, Number::LastLook as usize, time);
        set(words, Number::Outcome as usize, outcome as u64);
        set(words, Number::Waiting as usize, waiting.movable + waiting.young + waiting.locked);
        set(words, Number::Young as usize, waiting.young);
        set(words, Number::Locked as usize, waiting.locked);
        if has_done {
            add(words, Number::Rounds as usize, 1);
            set(words, Number::LastRound as usize, time);
        }
    });
}

/// A user's CALL has ended.
pub(super) fn was_called(table: Oid) {
    let time = now();
    change(table, |words| {
        add(words, Number::Calls as usize, 1);
        set(words, Number::LastCall as usize, time);
    });
}

/// An ERROR has ended a transaction of the worker's.
pub(super) fn failed(table: Oid, message: &str) {
    let text = words_of(message);
    let time = now();
    change(table, |words| {
        add(words, Number::Errors as usize, 1);
        set(words, Number::LastError as usize, time);
        text.iter().enumerate().for_each(|(at, &word)| set(words, WORDS - TEXT_WORDS + at, word));
    });
}

/// Begins to count anew: for one table of this database, or all that are known of it.
fn reset(table: Option<Oid>) {
    let Some(held) = Held::get() else { return };
    let (wanted, time) = (key(table.unwrap_or(Oid::INVALID)), now());
    for (known, words) in held.0.keys.iter().zip(&held.0.words) {
        let known = known.load(Ordering::Relaxed);
        if known != 0 && (known == wanted || (table.is_none() && known >> 32 == wanted >> 32)) {
            words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            set(words, Number::Since as usize, time);
            set(words, Number::Changed as usize, time);
        }
    }
}

/// A relation is being created. Forgets the figures of a relation that had its OID before.
pub(super) fn relation_created(table: Oid) {
    let Some(held) = Held::get() else { return };
    let wanted = key(table);
    held.0
        .keys
        .iter()
        .filter(|known| known.load(Ordering::Relaxed) == wanted)
        .for_each(|known| known.store(0, Ordering::Relaxed));
}

/// A database is being created. Forgets the figures of a database that had its OID before.
pub(super) fn database_created(database: Oid) {
    let Some(held) = Held::get() else { return };
    held.0
        .keys
        .iter()
        .filter(|known| known.load(Ordering::Relaxed) >> 32 == u64::from(database.to_u32()))
        .for_each(|known| known.store(0, Ordering::Relaxed));
}
