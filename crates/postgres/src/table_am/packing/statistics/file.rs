//! Keeps the figures over a restart.
//!
//! It works as the server does with its own figures. A file is written when the server stops in good order.
//! It is read when the server starts, and removed at once, so that neither a crash nor a backup brings old
//! figures back. A file that cannot be read is ignored.
//!
//! Invariant: nothing here ends the server's start or stop.

use std::ffi::c_int;
use std::fs;
use std::sync::atomic::Ordering;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum};

use super::{SHARED, Tables, WORDS};

/// Where the server keeps its own.
const NAME: &str = "pg_stat/colonnade_packing.stat";
/// The kind of the file. It changes when the meaning of the words changes.
const KIND: u64 = 0x436f_6c50_6163_0001;

/// Called after the process that starts all others has made the memory. Reads the file, and has it written
/// when the server stops.
pub(in crate::table_am::packing) unsafe fn begin() {
    // SAFETY: as the server calls start-up hooks. Other processes are forked afterwards.
    unsafe {
        if pg_sys::IsUnderPostmaster {
            return;
        }
        let Some(tables) = SHARED.get() else { return };
        pg_sys::on_shmem_exit(Some(at_exit), Datum::from(0));
        if let Ok(bytes) = fs::read(NAME) {
            load(tables, &bytes);
            // If the file stays, the next start after a crash may read it again. There is no other harm.
            drop(fs::remove_file(NAME));
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn at_exit(code: c_int, _argument: Datum) {
    if code != 0 {
        return;
    }
    let Some(tables) = SHARED.get() else { return };
    let written = format!("{NAME}.tmp");
    let done = fs::write(&written, save(tables)).and_then(|()| fs::rename(&written, NAME));
    if let Err(problem) = done {
        pgrx::log!("could not write file \"{NAME}\": {problem}");
    }
}

fn save(tables: &Tables) -> Vec<u8> {
    let mut all = vec![KIND, WORDS as u64];
    for (key, words) in tables.keys.iter().zip(&tables.words) {
        let key = key.load(Ordering::Relaxed);
        if key != 0 {
            all.push(key);
            all.extend(words.iter().map(|word| word.load(Ordering::Relaxed)));
        }
    }
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn load(tables: &Tables, bytes: &[u8]) {
    let (words, rest) = bytes.as_chunks::<8>();
    let all: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let Some((&[kind, length], places)) = all.split_first_chunk::<2>() else { return };
    if kind != KIND || length != WORDS as u64 || !rest.is_empty() || places.len() % (WORDS + 1) != 0 {
        return;
    }
    let kept = tables.keys.iter().zip(&tables.words).zip(places.chunks_exact(WORDS + 1));
    for ((key, words), place) in kept {
        if let Some((&table, values)) = place.split_first() {
            words.iter().zip(values).for_each(|(word, &value)| word.store(value, Ordering::Relaxed));
            key.store(table, Ordering::Relaxed);
        }
    }
}
