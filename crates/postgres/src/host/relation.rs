//! What our code asks of an open relation: names, size, persistence.
//!
//! Mostly one-line stand-ins for header macros of the server that have no binding. `Open` is what the code
//! above passes on instead of the server's pointer. Callbacks make one of what the server gives them; code
//! that opens a relation itself does so by `with_table`, `with_index` or `Open::of`. Invariant: an `Open` is
//! used only while somebody holds the relation open, so what reads it needs no further promise.

use std::ffi::CStr;
use std::marker::PhantomData;

use pgrx::pg_sys::{self, BlockNumber, Oid, Relation};

use crate::compat;

/// The server's InvalidSubTransactionId.
const NO_SUBTRANSACTION: pg_sys::SubTransactionId = 0;

/// A relation that is open for as long as `'a` lives. It is the server's pointer and costs nothing.
///
/// The server may raise an ERROR in any method that calls it; it unwinds.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Open<'a> {
    rel: Relation,
    life: PhantomData<&'a pg_sys::RelationData>,
}

/// Opens a table, hands it to `work` and closes it. The lock is kept until the transaction ends. After an
/// ERROR the server closes it.
pub fn with_table<T>(id: Oid, lock: u32, work: impl FnOnce(Open) -> T) -> T {
    // SAFETY: the table is open while `work` runs, and nothing of the `Open` outlives it.
    unsafe {
        let table = pg_sys::table_open(id, lock as i32);
        let result = work(Open::of(table));
        pg_sys::table_close(table, pg_sys::NoLock as i32);
        result
    }
}

/// `with_table` for an index.
pub fn with_index<T>(id: Oid, lock: u32, work: impl FnOnce(Open) -> T) -> T {
    // SAFETY: as for `with_table`.
    unsafe {
        let index = pg_sys::index_open(id, lock as i32);
        let result = work(Open::of(index));
        pg_sys::index_close(index, pg_sys::NoLock as i32);
        result
    }
}

impl<'a> Open<'a> {
    /// A relation that the server has given, or that was opened here.
    ///
    /// # Safety
    /// The relation is open in this backend, and stays so for as long as `'a` and every copy of this lives.
    #[inline]
    pub unsafe fn of(rel: Relation) -> Self {
        Self { rel, life: PhantomData }
    }

    /// The server's pointer, for its functions.
    #[inline]
    pub fn as_ptr(self) -> Relation {
        self.rel
    }

    /// Its OID.
    #[inline]
    pub fn oid(self) -> Oid {
        // SAFETY: it is open.
        unsafe { (*self.rel).rd_id }
    }

    /// Its row in `pg_class`. Good until the next call of the server, which may build it anew.
    #[inline]
    pub fn form(self) -> pg_sys::Form_pg_class {
        // SAFETY: it is open.
        unsafe { (*self.rel).rd_rel }
    }

    /// Its `relkind`, one of the server's `RELKIND_*`.
    #[inline]
    pub fn kind(self) -> u8 {
        // SAFETY: it is open.
        unsafe { (*(*self.rel).rd_rel).relkind as u8 }
    }

    /// Its `relpersistence`, one of the server's `RELPERSISTENCE_*`.
    #[inline]
    pub fn persistence(self) -> u8 {
        // SAFETY: it is open.
        unsafe { (*(*self.rel).rd_rel).relpersistence as u8 }
    }

    /// Its access method.
    #[inline]
    pub fn access_method(self) -> Oid {
        // SAFETY: it is open.
        unsafe { (*(*self.rel).rd_rel).relam }
    }

    /// Whether it may have indexes: false only where it has none.
    #[inline]
    pub fn may_have_indexes(self) -> bool {
        // SAFETY: it is open.
        unsafe { (*(*self.rel).rd_rel).relhasindex }
    }

    /// Its row type. An open table keeps it.
    #[inline]
    pub fn descriptor(self) -> pg_sys::TupleDesc {
        // SAFETY: it is open.
        unsafe { (*self.rel).rd_att }
    }

    /// The columns of its row type, dropped ones included. The server keeps a row type to the end of the
    /// transaction where it replaces it while the relation is open.
    #[inline]
    pub fn columns(self) -> &'a [pg_sys::FormData_pg_attribute] {
        // SAFETY: it is open, and its row type has as many columns as it says.
        unsafe { compat::attributes((*self.rel).rd_att) }
    }

    /// How many columns its row type has, dropped ones included.
    #[inline]
    pub fn attribute_count(self) -> usize {
        // SAFETY: it is open, and so is its row type.
        unsafe { usize::try_from((*(*self.rel).rd_att).natts).unwrap_or(0) }
    }

    /// Transactions from here on may still matter to somebody who reads the table.
    pub fn oldest_xmin(self) -> pg_sys::TransactionId {
        // SAFETY: it is open.
        unsafe { pg_sys::GetOldestNonRemovableTransactionId(self.rel) }
    }

    /// `"schema"."table"` for messages; falls back to the bare name when the schema is gone.
    pub fn quoted_name(self) -> String {
        // SAFETY: it is open, so rd_rel is valid; the look-up may raise an ERROR, which
        // unwinds.
        unsafe {
            let name = self.name();
            let schema = pg_sys::get_namespace_name((*(*self.rel).rd_rel).relnamespace);
            if schema.is_null() {
                return format!("\"{name}\"");
            }
            format!("\"{}.{name}\"", CStr::from_ptr(schema).to_string_lossy())
        }
    }

    /// The bare name, as the server's own messages have it.
    pub fn name(self) -> String {
        // SAFETY: it is open.
        unsafe { CStr::from_ptr((*(*self.rel).rd_rel).relname.data.as_ptr()).to_string_lossy().into_owned() }
    }

    /// Name of the zero-based column of the table's present row type, dropped columns included.
    pub fn column_name(self, column: u32) -> Option<String> {
        let attribute = self.columns().get(column as usize)?;
        // SAFETY: a column's name ends with a NUL byte.
        let name = unsafe { CStr::from_ptr(attribute.attname.data.as_ptr()) };
        Some(name.to_string_lossy().into_owned())
    }

    /// The table's indexes, in the order in which the server knows them.
    pub fn indexes(self) -> Vec<Oid> {
        // SAFETY: it is open; the list is a copy.
        unsafe {
            let list = pg_sys::RelationGetIndexList(self.rel);
            let count = if list.is_null() { 0 } else { (*list).length };
            let indexes = (0..count).map(|at| pg_sys::list_nth_oid(list, at)).collect();
            pg_sys::list_free(list);
            indexes
        }
    }

    /// Opens the table's indexes.
    ///
    /// # Safety
    /// Each is closed after its last use, or by the server at the end of the transaction.
    pub unsafe fn open_indexes(self, lock: u32) -> Vec<Open<'a>> {
        // SAFETY: the table is open and locked, so its indexes stay.
        unsafe {
            self.indexes().into_iter().map(|index| Open::of(pg_sys::index_open(index, lock as i32))).collect()
        }
    }

    /// How many of the table's indexes are such.
    pub fn count_indexes(self, is_such: impl Fn(&pg_sys::FormData_pg_index) -> bool) -> usize {
        // SAFETY: the indexes are open while they are looked at.
        unsafe {
            let open = self.open_indexes(pg_sys::AccessShareLock).into_iter();
            open.filter(|&index| {
                let found = is_such(&*(*index.rel).rd_index);
                pg_sys::index_close(index.rel, pg_sys::NoLock as i32);
                found
            })
            .count()
        }
    }

    /// Whether the main fork has this block, as far as this backend knows, or else the file system. Under a
    /// lock that keeps others from cutting the file off: who does that tells everybody to forget what they
    /// know of its length first.
    pub fn has_block(self, block: BlockNumber) -> bool {
        // SAFETY: it is open; its storage manager's entry is null or valid.
        unsafe {
            let smgr = (*self.rel).rd_smgr;
            let known = if smgr.is_null() { 0 } else { (*smgr).smgr_cached_nblocks[0] };
            (known != pg_sys::InvalidBlockNumber && block < known) || block < self.block_count()
        }
    }

    /// How many blocks the main fork has now. Asks the file system.
    pub fn block_count(self) -> BlockNumber {
        // SAFETY: it is open.
        unsafe { pg_sys::RelationGetNumberOfBlocksInFork(self.rel, pg_sys::ForkNumber::MAIN_FORKNUM) }
    }

    /// Whether changes of this relation's pages have to be logged now.
    pub fn needs_wal(self) -> bool {
        // SAFETY: it is open; wal_level is a plain global of the server.
        unsafe {
            (*(*self.rel).rd_rel).relpersistence == pg_sys::RELPERSISTENCE_PERMANENT as std::ffi::c_char
                && (pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32
                    || ((*self.rel).rd_createSubid == NO_SUBTRANSACTION
                        && compat::new_file_subtransaction(self.rel) == NO_SUBTRANSACTION))
        }
    }

    /// Whether the relation is an unlogged one on a standby, which has no file there.
    pub fn has_no_file_here(self) -> bool {
        // SAFETY: it is open.
        unsafe {
            (*(*self.rel).rd_rel).relpersistence == pg_sys::RELPERSISTENCE_UNLOGGED as std::ffi::c_char
                && pg_sys::RecoveryInProgress()
        }
    }

    /// Whether the relation is a temporary table (of any session).
    pub fn is_temporary(self) -> bool {
        // SAFETY: it is open.
        unsafe { (*(*self.rel).rd_rel).relpersistence == pg_sys::RELPERSISTENCE_TEMP as std::ffi::c_char }
    }

    /// Whether the relation is a temporary table of another session, whose buffers cannot be read here.
    pub fn is_foreign_temporary(self) -> bool {
        // SAFETY: it is open.
        unsafe { self.is_temporary() && !(*self.rel).rd_islocaltemp }
    }

    /// Whether the relation has its storage in this session's local buffers and so needs no extension lock.
    pub fn is_local(self) -> bool {
        // SAFETY: it is open.
        unsafe { (*self.rel).rd_islocaltemp || (*self.rel).rd_createSubid != NO_SUBTRANSACTION }
    }
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
