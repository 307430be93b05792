//! What becomes of files at the ends of transactions.
//!
//! Before a commit the file of each table that was loaded is told which stripes count now, and all of it is
//! put on the device. After the commit the head comes to name that. A session that dies in between leaves a
//! head that names less, which the next load makes good. Queries of this server ask the directory instead.
//!
//! A file that a transaction made goes if it is rolled back. The file of a table that was dropped goes after
//! the commit. PREPARE TRANSACTION forgets both: then a file may be left, which
//! `cstore_clean_table_resources` takes away.

use std::cell::RefCell;
use std::ffi::c_void;

use files::FilePath;
use files::column::{Column, ColumnDefault, Owner, Publication, StripePlace};
use pgrx::pg_sys::{self, Oid, SubTransactionId, SubXactEvent, XactEvent};
use pgrx::{PgLogLevel, pg_guard};

use super::load::LOADS;
use super::{fail, first_byte, load, missing, named, open};
use crate::convert::ColumnType;
use crate::host::encoding;
use crate::host::relation::Open;
use crate::options::foreign;
use crate::storage::column_file::open::Rows;
use crate::storage::directory::{self, StripeEntry, entries};

/// A file that is to go.
struct Gone {
    path: FilePath,
    owner: Owner,
    /// The subtransaction that has dropped its table.
    by: SubTransactionId,
}

thread_local! {
    static GONE: RefCell<Vec<Gone>> = const { RefCell::new(Vec::new()) };
    /// What files are to say once this transaction has committed.
    static PUBLISHED: RefCell<Vec<(FilePath, Owner, Publication)>> = const { RefCell::new(Vec::new()) };
}

/// Registers the callbacks. Must be called before the code that flushes rows at pre-commit registers.
///
/// # Safety
/// Once, from `_PG_init`.
pub unsafe fn register() {
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::RegisterXactCallback(Some(transaction_event), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(subtransaction_event), std::ptr::null_mut());
    }
}

/// A foreign table is about to be dropped: its rows go, and its file after the commit.
pub fn before_drop(table: Oid) {
    // Nothing but our own catalog is asked: foreign tables of others come here, too.
    let Some(storage_id) = named::storage_id(table) else { return };
    // SAFETY: DROP holds AccessExclusiveLock.
    unsafe { forget(table, storage_id) }
}

/// Has a table be one that was never loaded, and its file go.
unsafe fn forget(table: Oid, storage_id: u64) {
    // SAFETY: the caller holds AccessExclusiveLock on the table.
    unsafe {
        directory::delete_storage(storage_id);
        named::delete(table);
        let by = pg_sys::GetCurrentSubTransactionId();
        let owner = open::owner(table, storage_id);
        match foreign::file_or_refusal(table) {
            Ok(path) => GONE.with_borrow_mut(|gone| gone.push(Gone { path, owner, by })),
            // The table goes all the same.
            Err(refusal) => refusal.hint("The file stays where it is.").send(PgLogLevel::WARNING),
        }
    }
}

/// Whether a file goes when this transaction commits.
pub(super) fn is_going(path: &FilePath) -> bool {
    GONE.with_borrow(|gone| gone.iter().any(|gone| gone.path == *path))
}

/// All rows of a foreign table go. Its file keeps their bytes, for older snapshots. A file that cannot be
/// loaded goes.
///
/// # Safety
/// The caller holds AccessExclusiveLock on the table.
pub unsafe fn truncate(rel: Open) {
    // SAFETY: the caller's promise.
    unsafe {
        match load::begin_to_empty(rel) {
            None => {
                if let Some(Rows::Others(file)) = open::of(rel) {
                    load::refuse_others(rel, &file.path);
                }
            }
            Some((storage_id, true)) => directory::delete_storage(storage_id),
            // Places in a file that has become shorter would come twice. So a new one is made.
            Some((storage_id, false)) => forget(rel.oid(), storage_id),
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn transaction_event(event: XactEvent::Type, _arg: *mut c_void) {
    match event {
        XactEvent::XACT_EVENT_PRE_COMMIT | XactEvent::XACT_EVENT_PRE_PREPARE => publish_all(),
        XactEvent::XACT_EVENT_COMMIT => {
            LOADS.take();
            for (path, owner, publication) in PUBLISHED.take() {
                // Where it fails, the next load says all of it once more.
                let _ = open::open(&path, owner, true).and_then(|file| file.name(&publication));
            }
            for Gone { path, owner, .. } in GONE.take() {
                remove(&path, owner);
            }
        }
        XactEvent::XACT_EVENT_PREPARE => {
            LOADS.take();
            PUBLISHED.take();
            GONE.take();
        }
        XactEvent::XACT_EVENT_ABORT => {
            PUBLISHED.take();
            GONE.take();
            for load in LOADS.take().into_iter().filter(|load| load.made_file) {
                remove(&load.path, load.owner);
            }
        }
        _ => {}
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn subtransaction_event(
    event: SubXactEvent::Type,
    own: SubTransactionId,
    parent: SubTransactionId,
    _arg: *mut c_void,
) {
    match event {
        SubXactEvent::SUBXACT_EVENT_COMMIT_SUB => {
            LOADS.with_borrow_mut(|loads| {
                loads.iter_mut().filter(|load| load.held_by == own).for_each(|load| load.held_by = parent);
            });
            GONE.with_borrow_mut(|gone| {
                gone.iter_mut().filter(|gone| gone.by == own).for_each(|gone| gone.by = parent);
            });
        }
        SubXactEvent::SUBXACT_EVENT_ABORT_SUB => {
            GONE.with_borrow_mut(|gone| gone.retain(|gone| gone.by != own));
            let lost: Vec<_> = LOADS.with_borrow_mut(|loads| {
                let (lost, kept) = std::mem::take(loads).into_iter().partition(|load| load.held_by == own);
                *loads = kept;
                lost
            });
            for load in lost.into_iter().filter(|load| load.made_file) {
                remove(&load.path, load.owner);
            }
        }
        _ => {}
    }
}

/// Takes a file away, unless another one is there by now. Sessions that have it open hold no room of it.
fn remove(path: &FilePath, owner: Owner) {
    if let Ok(file) = open::open(path, owner, true) {
        let _ = file.take_away(path);
    }
}

/// Has each file that was loaded written down what counts now.
fn publish_all() {
    let loads = LOADS.with_borrow(|loads| {
        let load = |load: &load::Load| (load.table, load.owner, load.path.clone());
        loads.iter().map(load).collect::<Vec<_>>()
    });
    for (table, owner, path) in loads {
        // SAFETY: the transaction is still in progress, and has locked the table. A table that it has dropped
        // is not there.
        unsafe {
            let rel = pg_sys::try_relation_open(table, pg_sys::NoLock as i32);
            if rel.is_null() {
                continue;
            }
            let table = Open::of(rel);
            let stripes = entries::visible(owner.storage_id, &raw mut pg_sys::SnapshotSelfData);
            let stripes = stripes.iter().map(place).collect();
            let publish = || {
                let file = open::open(&path, owner, true)?;
                file.publish(file.length()?, columns(table), defaults(table), stripes)
            };
            let publication = publish().unwrap_or_else(|problem| fail(table, &path, &problem));
            PUBLISHED.with_borrow_mut(|all| all.push((path, owner, publication)));
            pg_sys::relation_close(rel, pg_sys::NoLock as i32);
        }
    }
}

fn place(entry: &StripeEntry) -> StripePlace {
    let start = first_byte(entry);
    StripePlace {
        bytes: start..start + entry.byte_length,
        footer: entry.footer_offset..entry.footer_offset + u64::from(entry.footer_length),
        rows: entry.row_count,
        summary: entry.summary.as_slice().into(),
        columns: [].into(),
    }
}

/// A column of a table as files name it.
pub fn column(attribute: &pg_sys::FormData_pg_attribute) -> Column {
    // SAFETY: an attribute of an open relation; the server's text is copied.
    unsafe {
        let declared = pg_sys::format_type_with_typemod(attribute.atttypid, attribute.atttypmod);
        let text = |pointer| encoding::to_utf8(std::ffi::CStr::from_ptr(pointer)).into_owned();
        Column {
            number: u32::try_from(attribute.attnum).unwrap_or(0),
            name: text(attribute.attname.data.as_ptr()),
            declared: text(declared),
            logical: ColumnType::of(attribute).logical,
        }
    }
}

/// The columns of a table as the files of others have to name them. None: one that was dropped, or is
/// computed when it is read.
pub fn columns_of_others(rel: Open) -> Vec<Option<Column>> {
    /// Generated columns of this kind, from 18 on.
    const VIRTUAL: u8 = b'v';
    let column_of = |attribute: &pg_sys::FormData_pg_attribute| {
        if attribute.attisdropped || attribute.attgenerated as u8 == VIRTUAL {
            return None;
        }
        let mut column = column(attribute);
        // A type of a user may have the name of one of the server's, whose bytes it does not hold.
        if attribute.atttypid.to_u32() >= pg_sys::FirstGenbkiObjectId && !column.declared.contains('.') {
            // SAFETY: a catalog look-up; the server's text is copied.
            let words = unsafe {
                let flags = pg_sys::FORMAT_TYPE_FORCE_QUALIFY as u16;
                pg_sys::format_type_extended(attribute.atttypid, attribute.atttypmod, flags)
            };
            // SAFETY: a terminated string.
            column.declared = encoding::to_utf8(unsafe { std::ffi::CStr::from_ptr(words) }).into_owned();
        }
        Some(column)
    };
    rel.columns().iter().map(column_of).collect()
}

/// What older rows have in the table's columns, as its file names it.
fn defaults(rel: Open) -> Vec<ColumnDefault> {
    let of_column = |attribute: &pg_sys::FormData_pg_attribute| {
        let number = u32::try_from(attribute.attnum).ok()?;
        missing::stored(rel.oid(), attribute.attnum).map(|bytes| (number, bytes))
    };
    rel.columns().iter().filter(|attribute| !attribute.attisdropped).filter_map(of_column).collect()
}

/// The table's columns as its file names them.
fn columns(rel: Open) -> Vec<Column> {
    rel.columns().iter().filter(|attribute| !attribute.attisdropped).map(column).collect()
}
