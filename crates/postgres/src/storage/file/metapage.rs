//! Block 0: the storage id and the counter of row numbers.
//!
//! Called by every write path (`ensure`, `reserve_rows`), and by every reader that needs the storage id. The
//! page is a legal, full, empty heap page (see `page_header`).
//!
//! The page travels with the file: copies, swaps and SET TABLESPACE keep the storage id. A new file
//! (TRUNCATE, a reset unlogged table) has none until something is written to it. Then it gets one that was
//! never used before: 63 random bits. So it needs no sequence, works in a read-only transaction on a
//! temporary table, and cannot be reused after a restore.
//!
//! Invariant: the counter only grows, is not transactional, and is logged before a number is handed out.

use pgrx::pg_sys::{self, Buffer, TransactionId};

use super::page_header::{self, Header, Parsed};
use super::pages;
use crate::host::relation::Open;
use crate::host::relation_file;
use crate::host::{buffer, error};

/// The limit of row numbers follows from that of virtual block numbers: block 2^31 + row / 256 has to stay
/// below the invalid block.
const ROW_LIMIT: u64 = ((1 << 31) - 2) * 256;

/// What the relation cache keeps for us. It is freed with the cache's entry, and valid for one file only.
#[repr(C)]
struct Cached {
    file_number: u32,
    storage_id: u64,
}

fn cached(rel: Open) -> Option<u64> {
    // Indexes keep something else there.
    debug_assert!(rel.kind() != pg_sys::RELKIND_INDEX);
    // SAFETY: for tables of our access method rd_amcache is null or what `remember` put there, and other
    // tables have nothing there.
    unsafe {
        let cache = (*rel.as_ptr()).rd_amcache.cast::<Cached>();
        (!cache.is_null() && (*cache).file_number == relation_file::file_number(&relation_file::locator(rel)))
            .then(|| (*cache).storage_id)
    }
}

fn remember(rel: Open, storage_id: u64) {
    // SAFETY: the server frees rd_amcache, one chunk in CacheMemoryContext, when it rebuilds the entry.
    unsafe {
        if (*rel.as_ptr()).rd_amcache.is_null() {
            (*rel.as_ptr()).rd_amcache =
                pg_sys::MemoryContextAllocZero(pg_sys::CacheMemoryContext, size_of::<Cached>());
        }
        let cache = (*rel.as_ptr()).rd_amcache.cast::<Cached>();
        (*cache).file_number = relation_file::file_number(&relation_file::locator(rel));
        (*cache).storage_id = storage_id;
    }
}

/// Forgets the cached storage id, because the file was emptied in place.
pub fn forget(rel: Open) {
    // SAFETY: see `remember`.
    unsafe {
        if !(*rel.as_ptr()).rd_amcache.is_null() {
            pg_sys::pfree((*rel.as_ptr()).rd_amcache);
            (*rel.as_ptr()).rd_amcache = std::ptr::null_mut();
        }
    }
}

/// What block 0 says.
#[derive(Debug, Clone, Copy)]
struct Meta {
    storage_id: u64,
    next_row: u64,
    swept: u64,
    swept_before: u32,
}

impl Meta {
    fn header(self) -> Header {
        let Self { storage_id, next_row, swept, swept_before } = self;
        Header::Meta { storage_id, next_row, swept, swept_before }
    }
}

/// The storage id and the next row number, read from block 0. None as long as the relation has no metapage.
pub fn read(rel: Open) -> Option<(u64, u64)> {
    read_meta(rel).map(|meta| (meta.storage_id, meta.next_row))
}

/// The fingerprint of the row numbers that were dead when the indexes were last swept.
pub fn swept(rel: Open) -> u64 {
    read_meta(rel).map_or(0, |meta| meta.swept)
}

/// A transaction: rows of stripes that died before it were dead when the indexes were last swept. Invalid if
/// it is not known.
pub fn swept_before(rel: Open) -> TransactionId {
    TransactionId::from(read_meta(rel).map_or(0, |meta| meta.swept_before))
}

/// Remembers which row numbers were dead when the indexes were swept. They are given by their fingerprint,
/// and by the oldest transaction that was running.
pub fn set_swept(rel: Open, dead: u64, oldest_xmin: TransactionId) {
    change(rel, |meta| {
        meta.swept = dead;
        meta.swept_before = oldest_xmin.into_inner();
    });
}

/// Changes block 0 under its exclusive lock and logs it. Returns what it was before.
fn change(rel: Open, edit: impl FnOnce(&mut Meta)) -> Meta {
    // SAFETY: `edit` may raise an ERROR before anything is changed.
    unsafe {
        let buf = buffer::read(rel, 0, std::ptr::null_mut());
        buffer::lock_exclusive(buf);
        let Some(before) = look(rel, buf) else { error::corrupt(rel, None, "Block 0 is not a metapage.") };
        let mut after = before;
        edit(&mut after);
        pages::rewrite_logged(rel, buf, &after.header());
        buffer::unlock_release(buf);
        before
    }
}

fn read_meta(rel: Open) -> Option<Meta> {
    // SAFETY: the page is looked at under pin and shared lock.
    unsafe {
        // A file whose storage id is cached has a block 0.
        if cached(rel).is_none() && rel.block_count() == 0 {
            return None;
        }
        let buf = buffer::read(rel, 0, std::ptr::null_mut());
        buffer::lock_shared(buf);
        let found = look(rel, buf);
        buffer::unlock_release(buf);
        found
    }
}

/// Raises an ERROR if block 1 is written: then block 0 cannot be one that a crash left unwritten.
fn check_unwritten(rel: Open) {
    // SAFETY: blocks are locked in ascending order.
    unsafe {
        if rel.block_count() <= 1 {
            return;
        }
        let next = buffer::read(rel, 1, std::ptr::null_mut());
        buffer::lock_shared(next);
        let written = !pg_sys::PageIsNew(buffer::page(next));
        buffer::unlock_release(next);
        if written {
            error::corrupt(rel, None, "Block 0 is empty.");
        }
    }
}

/// Reads the header of a locked block 0. None: the page is still zero, as a crash can leave it.
unsafe fn look(rel: Open, buf: Buffer) -> Option<Meta> {
    // SAFETY: pin and content lock are held by the caller.
    unsafe {
        let page = buffer::page(buf);
        if pg_sys::PageIsNew(page) {
            check_unwritten(rel);
            return None;
        }
        match page_header::parse(buffer::bytes(page)) {
            Parsed::Ours(Header::Meta { storage_id, next_row, swept, swept_before }) => {
                Some(Meta { storage_id, next_row, swept, swept_before })
            }
            Parsed::Broken(what) => error::corrupt(rel, None, &format!("Block 0: {what}.")),
            _ => error::corrupt(rel, None, "Block 0 is not a metapage."),
        }
    }
}

/// The storage id from the relation cache, without looking at the file.
pub fn known_storage_id(rel: Open) -> Option<u64> {
    cached(rel)
}

/// The relation's storage id, or None while nothing was ever written to its file.
pub fn storage_id(rel: Open) -> Option<u64> {
    if let Some(id) = cached(rel) {
        return Some(id);
    }
    let (id, _) = read(rel)?;
    remember(rel, id);
    Some(id)
}

/// An id that was never used before.
pub fn new_storage_id() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: fills exactly the bytes it is given.
    let ok = unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) };
    if !ok {
        error::internal("could not get random bytes for a storage id");
    }
    (u64::from_le_bytes(bytes) >> 1).max(1)
}

/// The relation's storage id. Makes the metapage first if there is none. Must be called before anything else
/// is written to the relation, or heap would take block 0 for itself.
///
/// # Safety
/// `rel` is locked with at least RowExclusiveLock.
pub unsafe fn ensure(rel: Open) -> u64 {
    // SAFETY: the lock is promised. The extension lock decides between two creators.
    unsafe {
        if let Some(id) = storage_id(rel) {
            return id;
        }
        let needs_lock = !rel.is_local();
        if needs_lock {
            pg_sys::LockRelationForExtension(rel.as_ptr(), pg_sys::ExclusiveLock as i32);
        }
        let buf = if rel.block_count() == 0 {
            buffer::extend_locked(rel)
        } else {
            let buf = buffer::read(rel, 0, std::ptr::null_mut());
            buffer::lock_exclusive(buf);
            buf
        };
        if pg_sys::BufferGetBlockNumber(buf) != 0 {
            error::internal("the first block of a relation is not block 0");
        }
        let id = match look(rel, buf) {
            Some(meta) => meta.storage_id,
            None => {
                let id = new_storage_id();
                let header = Meta { storage_id: id, next_row: 0, swept: 0, swept_before: 0 }.header();
                let mut vmbuffer: Buffer = 0;
                pages::format_new(rel, buf, Some(&mut vmbuffer), &header, &[], rel.needs_wal());
                pg_sys::ReleaseBuffer(vmbuffer);
                id
            }
        };
        buffer::unlock_release(buf);
        if needs_lock {
            pg_sys::UnlockRelationForExtension(rel.as_ptr(), pg_sys::ExclusiveLock as i32);
        }
        remember(rel, id);
        id
    }
}

/// Takes `count` row numbers off the counter and returns the first. The numbers are lost if the transaction
/// ends without using them. If index entries may be made for them before their stripe is in the directory,
/// use `directory::reserve`: it does both under one lock.
pub unsafe fn reserve_rows(rel: Open, count: u64) -> u64 {
    // SAFETY: block 0 is changed and logged under its exclusive lock.
    unsafe {
        ensure(rel);
        change(rel, |meta| {
            let first = meta.next_row;
            let Some(next) = first.checked_add(count).filter(|&next| next <= ROW_LIMIT) else {
                error::raise(
                    error::PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                    format!("table {} has used up its row numbers", rel.quoted_name()),
                    &format!("{first} of {ROW_LIMIT} row numbers are used, {count} more were asked for."),
                    "Rewrite the table with engine.colcompress_merge, which numbers its rows anew, or partition it.",
                )
            };
            meta.next_row = next;
        })
        .next_row
    }
}
