//! What our code asks of an open relation: names, size, persistence.
//!
//! Most functions are one-line stand-ins for header macros of the server that have no binding.

use std::ffi::CStr;

use pgrx::pg_sys::{self, BlockNumber, Oid, Relation};

/// The server's InvalidSubTransactionId.
const NO_SUBTRANSACTION: pg_sys::SubTransactionId = 0;

/// `"schema"."table"` for messages. Only the bare name if the schema is gone.
pub unsafe fn quoted_name(rel: Relation) -> String {
    // SAFETY: callers hold the relation open, so rd_rel is valid; the look-up may raise an ERROR, which
    // unwinds.
    unsafe {
        let name = name(rel);
        let schema = pg_sys::get_namespace_name((*(*rel).rd_rel).relnamespace);
        if schema.is_null() {
            return format!("\"{name}\"");
        }
        format!("\"{}.{name}\"", CStr::from_ptr(schema).to_string_lossy())
    }
}

/// The bare name, as the server's own messages have it.
pub unsafe fn name(rel: Relation) -> String {
    // SAFETY: rel is open.
    unsafe { CStr::from_ptr((*(*rel).rd_rel).relname.data.as_ptr()).to_string_lossy().into_owned() }
}

/// Name of the zero-based column of the table's present row type, dropped columns included.
pub unsafe fn column_name(rel: Relation, column: u32) -> Option<String> {
    // SAFETY: the tuple descriptor lives as long as the open relation; the position is checked against natts.
    unsafe {
        let desc = (*rel).rd_att;
        let natts = u32::try_from((*desc).natts).ok()?;
        if column >= natts {
            return None;
        }
        let attr = (*desc).attrs.as_ptr().add(column as usize);
        Some(CStr::from_ptr((*attr).attname.data.as_ptr()).to_string_lossy().into_owned())
    }
}

/// The table's indexes, in the order in which the server knows them.
pub unsafe fn indexes(rel: Relation) -> Vec<Oid> {
    // SAFETY: rel is open; the list is a copy.
    unsafe {
        let list = pg_sys::RelationGetIndexList(rel);
        let count = if list.is_null() { 0 } else { (*list).length };
        let indexes = (0..count).map(|at| pg_sys::list_nth_oid(list, at)).collect();
        pg_sys::list_free(list);
        indexes
    }
}

/// Opens the table's indexes.
pub unsafe fn open_indexes(rel: Relation, lock: u32) -> Vec<Relation> {
    // SAFETY: rel is open and locked, so its indexes stay.
    unsafe { indexes(rel).into_iter().map(|index| pg_sys::index_open(index, lock as i32)).collect() }
}

/// How many of the table's indexes `is_such` accepts.
pub unsafe fn count_indexes(rel: Relation, is_such: impl Fn(&pg_sys::FormData_pg_index) -> bool) -> usize {
    // SAFETY: the indexes are open while they are looked at.
    unsafe {
        let open = open_indexes(rel, pg_sys::AccessShareLock).into_iter();
        open.filter(|&index| {
            let found = is_such(&*(*index).rd_index);
            pg_sys::index_close(index, pg_sys::NoLock as i32);
            found
        })
        .count()
    }
}

/// Whether the main fork has this block. This backend's own knowledge is asked first, then the file system.
/// The caller holds a lock that keeps others from cutting the file off: a session that does so first tells
/// all backends to forget the length that they know.
pub unsafe fn has_block(rel: Relation, block: BlockNumber) -> bool {
    // SAFETY: rel is open; its storage manager's entry is null or valid.
    unsafe {
        let smgr = (*rel).rd_smgr;
        let known = if smgr.is_null() { 0 } else { (*smgr).smgr_cached_nblocks[0] };
        (known != pg_sys::InvalidBlockNumber && block < known) || block < block_count(rel)
    }
}

/// How many blocks the main fork has now. Asks the file system.
pub unsafe fn block_count(rel: Relation) -> BlockNumber {
    // SAFETY: rel is open.
    unsafe { pg_sys::RelationGetNumberOfBlocksInFork(rel, pg_sys::ForkNumber::MAIN_FORKNUM) }
}

/// A set of these attributes, with numbers shifted as the server does.
pub unsafe fn attributes(numbers: impl Iterator<Item = i16>) -> *mut pg_sys::Bitmapset {
    numbers.fold(std::ptr::null_mut(), |set, number| {
        // SAFETY: the set is null or one of the server's; the number is not below zero once it is shifted.
        unsafe { pg_sys::bms_add_member(set, i32::from(number) - pg_sys::FirstLowInvalidHeapAttributeNumber) }
    })
}

/// Whether a set of attributes, shifted as the server does, has this one. Calling the server's own function
/// would cost more than the look.
pub unsafe fn has_attribute(set: *const pg_sys::Bitmapset, number: i32) -> bool {
    // SAFETY: the set is null or one of the server's, which has as many words as it says.
    unsafe {
        let Ok(bit) = usize::try_from(number - pg_sys::FirstLowInvalidHeapAttributeNumber) else {
            return false;
        };
        if set.is_null() {
            return false;
        }
        let words = (*set).words.as_slice(usize::try_from((*set).nwords).unwrap_or(0));
        let width = pg_sys::BITS_PER_BITMAPWORD as usize;
        words.get(bit / width).is_some_and(|word| word >> (bit % width) & 1 == 1)
    }
}

/// Whether changes of this relation's pages have to be logged now.
pub unsafe fn needs_wal(rel: Relation) -> bool {
    // SAFETY: rel is open; wal_level is a plain global of the server.
    unsafe {
        (*(*rel).rd_rel).relpersistence == pg_sys::RELPERSISTENCE_PERMANENT as std::ffi::c_char
            && (pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32
                || ((*rel).rd_createSubid == NO_SUBTRANSACTION
                    && (*rel).rd_firstRelfilenodeSubid == NO_SUBTRANSACTION))
    }
}

/// Whether the relation is unlogged and this is a standby, where it has no file.
pub unsafe fn has_no_file_here(rel: Relation) -> bool {
    // SAFETY: rel is open.
    unsafe {
        (*(*rel).rd_rel).relpersistence == pg_sys::RELPERSISTENCE_UNLOGGED as std::ffi::c_char
            && pg_sys::RecoveryInProgress()
    }
}

/// Whether the relation is a temporary table (of any session).
pub unsafe fn is_temporary(rel: Relation) -> bool {
    // SAFETY: rel is open.
    unsafe { (*(*rel).rd_rel).relpersistence == pg_sys::RELPERSISTENCE_TEMP as std::ffi::c_char }
}

/// Whether the relation is a temporary table of another session, whose buffers cannot be read here.
pub unsafe fn is_foreign_temporary(rel: Relation) -> bool {
    // SAFETY: rel is open.
    unsafe { is_temporary(rel) && !(*rel).rd_islocaltemp }
}

/// Whether the relation has its storage in this session's local buffers and so needs no extension lock.
pub unsafe fn is_local(rel: Relation) -> bool {
    // SAFETY: rel is open.
    unsafe { (*rel).rd_islocaltemp || (*rel).rd_createSubid != NO_SUBTRANSACTION }
}
