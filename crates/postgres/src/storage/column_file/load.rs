//! Stripes are added to the file of a foreign table.
//!
//! The first stripe of a transaction takes the table's load lock, which is kept to its end, as two loads may
//! not write to the same place. The lock is one of the table as an object: no query takes it. Then the file
//! is opened for writing, or made.
//!
//! Invariant: the lock is held while `LOADS` has the table. A subtransaction that took it and aborts gives
//! it back, so its load is forgotten.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use files::FilePath;
use files::column::{OwnedFile, Owner};
use pgrx::pg_sys::{self, Oid, SubTransactionId};
use stripe::EncodedStripe;

use super::{BLOCK_BYTES, fail, first_byte, named, open, publish};
use crate::host::error;
use crate::host::relation::Open;
use crate::options::foreign;
use crate::storage::directory::{StripeEntry, entries, old_versions};
use crate::storage::file::metapage::new_storage_id;
use crate::storage::file::pages::BlockRun;

/// A transaction's load of a table.
pub(super) struct Load {
    pub table: Oid,
    pub owner: Owner,
    pub path: FilePath,
    /// The next row number and block.
    next_row: u64,
    next_block: u64,
    /// The subtransaction that holds the lock.
    pub held_by: SubTransactionId,
    /// It has made the file, too.
    pub made_file: bool,
}

/// Bytes that nobody reads any more are given back if they are so many.
const WORTH_GIVING_BACK: u64 = 1 << 20;
/// Part of the table's object that is locked.
const LOCK: u16 = 1;

thread_local! {
    pub(super) static LOADS: RefCell<Vec<Load>> = const { RefCell::new(Vec::new()) };
}

/// Begins a load, unless this transaction has begun one. Waits for the loads of others. A file is made if
/// there is none.
pub(super) fn begin(rel: Open) {
    let table = rel.oid();
    if is_begun(table) {
        return;
    }
    lock(table);
    let known = named::storage_id(table);
    let storage_id =
        open_file(rel, known).unwrap_or_else(|problem| fail(rel, &foreign::file_of(table), &problem));
    if known.is_none() {
        named::insert(table, storage_id);
    }
}

/// As `begin`, of a table whose rows all go. Returns its storage id, and whether its file can be loaded;
/// None: it was never loaded.
pub(super) fn begin_to_empty(rel: Open) -> Option<(u64, bool)> {
    let table = rel.oid();
    lock(table);
    let known = named::storage_id(table)?;
    Some((known, is_begun(table) || open_file(rel, Some(known)).is_ok()))
}

fn is_begun(table: Oid) -> bool {
    LOADS.with_borrow(|loads| loads.iter().any(|load| load.table == table))
}

/// Looks at the file of a table whose load lock is held, or makes it, and notes the load. Returns its storage
/// id.
fn open_file(rel: Open, known: Option<u64>) -> files::Result<u64> {
    let (table, path) = (rel.oid(), foreign::file_of(rel.oid()));
    let owner = open::owner(table, known.unwrap_or_else(new_storage_id));
    let file = match known {
        Some(_) => open::open(&path, owner, true)?,
        None => make(rel, &path, owner)?,
    };
    let length = file.length()?;
    // SAFETY: inside a transaction that writes.
    unsafe { old_versions::prune(owner.storage_id) };
    // Numbers of a load that was rolled back may come again. What is kept of stripes goes by their place.
    let all = entries::all_versions(owner.storage_id);
    let end = all.iter().map(|entry| first_byte(entry) + entry.byte_length).max();
    if let Some(end) = end.filter(|end| *end > length) {
        return Err(files::Error::Malformed(format!("it has {length} bytes and should have {end}")));
    }
    let first = all.iter().map(first_byte).min().unwrap_or(length);
    if first >= WORTH_GIVING_BACK {
        // Where a file system cannot, the room stays taken.
        let _ = file.give_back(first);
    }
    let load = Load {
        table,
        owner,
        path,
        next_row: all.iter().map(StripeEntry::end_row).max().unwrap_or(0),
        next_block: length.div_ceil(BLOCK_BYTES),
        // SAFETY: inside a transaction.
        held_by: unsafe { pg_sys::GetCurrentSubTransactionId() },
        made_file: known.is_none(),
    };
    LOADS.with_borrow_mut(|loads| loads.push(load));
    Ok(owner.storage_id)
}

/// Takes the load lock of a table. It belongs to the (sub)transaction, not to a cursor that runs in it.
fn lock(table: Oid) {
    struct Owner(pg_sys::ResourceOwner);
    impl Drop for Owner {
        fn drop(&mut self) {
            // SAFETY: the owner of before is there as long as what runs in it.
            unsafe { pg_sys::CurrentResourceOwner = self.0 };
        }
    }
    // SAFETY: plain globals; an ERROR while waiting restores the owner on its way.
    unsafe {
        let _before = Owner(pg_sys::CurrentResourceOwner);
        pg_sys::CurrentResourceOwner = pg_sys::CurTransactionResourceOwner;
        pg_sys::LockDatabaseObject(pg_sys::RelationRelationId, table, LOCK, pg_sys::ExclusiveLock as i32);
    }
}

/// Whether nobody loads this table, not even a prepared transaction, and nobody makes, changes or drops it.
/// From then on nobody does until this transaction ends.
pub fn excludes_others(table: Oid) -> bool {
    // SAFETY: locks to the end of the transaction.
    unsafe {
        let exclusive = pg_sys::AccessExclusiveLock as i32;
        if !pg_sys::ConditionalLockRelationOid(table, exclusive) {
            return false;
        }
        let tag = pg_sys::LOCKTAG {
            locktag_field1: pg_sys::MyDatabaseId.to_u32(),
            locktag_field2: pg_sys::RelationRelationId.to_u32(),
            locktag_field3: table.to_u32(),
            locktag_field4: LOCK,
            locktag_type: pg_sys::LockTagType::LOCKTAG_OBJECT as u8,
            locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
        };
        let got = pg_sys::LockAcquire(&raw const tag, exclusive, false, true);
        got != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL
    }
}

/// Makes the folder of files without a name, and has it on the device with what is above it.
fn make_folder() -> files::Result<()> {
    let folder = foreign::default_folder();
    let above = folder.ancestors().nth(1).unwrap_or(Path::new("."));
    for (made, parent) in [(above, Path::new(".")), (folder.as_path(), above)] {
        match fs::create_dir(made) {
            Ok(()) => fs::File::open(parent)?.sync_all()?,
            Err(problem) if problem.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(problem) => return Err(problem.into()),
        }
    }
    Ok(())
}

/// Makes the file of a table that was never loaded.
fn make(rel: Open, path: &FilePath, owner: Owner) -> files::Result<OwnedFile> {
    let is_own = path.as_path().starts_with(foreign::default_folder());
    if is_own {
        make_folder()?;
    }
    if publish::is_going(path) {
        let text = "it goes when this transaction commits, and the table can be loaded after that";
        return Err(files::Error::Unsupported(text.into()));
    }
    if path.exists()? {
        // What a server that was killed has left of a first load goes, too; nobody else loads the table now.
        if is_own || open::is_left(rel.oid(), path).unwrap_or(false) {
            path.remove()?;
        } else {
            refuse_others(rel, path);
        }
    }
    OwnedFile::create(path, owner)
}

/// Raises an ERROR where a table would change a file that it did not write.
pub(super) fn refuse_others(rel: Open, path: &FilePath) -> ! {
    error::raise(
        error::PgSqlErrorCode::ERRCODE_DUPLICATE_FILE,
        format!("file \"{}\" exists already", path.display()),
        &format!("Foreign table {} did not write it, and so only reads it.", rel.quoted_name()),
        "Name another file by ALTER FOREIGN TABLE ... OPTIONS (SET filename '...'), or move that one.",
    )
}

/// Adds a stripe to the table's file. It counts once it is in the directory.
pub fn put(rel: Open, encoded: EncodedStripe) -> StripeEntry {
    begin(rel);
    let table = rel.oid();
    let blocks = (encoded.bytes.len() as u64).div_ceil(BLOCK_BYTES);
    let place = LOADS.with_borrow_mut(|loads| {
        let load = loads.iter_mut().find(|load| load.table == table)?;
        let (row, block) = (load.next_row, load.next_block);
        load.next_row += u64::from(encoded.row_count);
        load.next_block += blocks;
        Some((load.owner, load.path.clone(), row, block))
    });
    let Some((owner, path, first_row, block)) = place else { error::internal("the load is gone") };
    let (Ok(first_block), Ok(block_count)) = (u32::try_from(block), u32::try_from(blocks)) else {
        fail(rel, &path, &files::Error::Unsupported("a file past 32 TB".into()));
    };
    // Not kept open: a transaction may load more tables than a process may have files.
    let put = open::open(&path, owner, true).and_then(|file| file.put(&encoded.bytes, block * BLOCK_BYTES));
    if let Err(problem) = put {
        fail(rel, &path, &problem);
    }
    StripeEntry::stored(owner.storage_id, first_row, BlockRun { first_block, block_count }, encoded)
}
