//! Files of others that this backend has open for reading.
//!
//! They stay open to the end of the transaction, but for those that were not asked for lately. An idle
//! session is to hold no room of files that were replaced.

use std::cell::RefCell;
use std::ffi::c_void;
use std::fs::File;
use std::rc::Rc;

use files::FilePath;
use pgrx::pg_guard;
use pgrx::pg_sys::{self, XactEvent};

use crate::host::counted_file::{Counted, Recent};

/// Most files that stay open.
const MOST: usize = 16;

thread_local! {
    static KEPT: RefCell<Recent<FilePath, File>> = const { RefCell::new(Recent::new(MOST)) };
}

/// Has all files closed at the ends of transactions.
///
/// # Safety
/// Once, from `_PG_init`.
pub unsafe fn register() {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::RegisterXactCallback(Some(transaction_event), std::ptr::null_mut()) };
}

#[pg_guard]
unsafe extern "C-unwind" fn transaction_event(event: XactEvent::Type, _arg: *mut c_void) {
    if matches!(
        event,
        XactEvent::XACT_EVENT_COMMIT | XactEvent::XACT_EVENT_ABORT | XactEvent::XACT_EVENT_PREPARE
    ) {
        KEPT.with_borrow_mut(|kept| kept.retain(|_| false));
    }
}

/// Opens a file anew, and keeps it open.
///
/// # Errors
/// Where it cannot be opened.
pub fn open_anew(path: &FilePath) -> files::Result<Rc<Counted<File>>> {
    let file = Rc::new(Counted::open(|| path.open(false).map_err(files::Error::from))?);
    KEPT.with_borrow_mut(|kept| {
        kept.retain(|known| known != path);
        kept.keep(path.clone(), &file);
    });
    Ok(file)
}

/// A file: the one that is open, or else what has the name now, if that is still the same.
///
/// # Errors
/// As `open_anew`, those of `is_same`, and `Io` where it is another file by now.
pub fn open(
    path: &FilePath,
    is_same: impl Fn(&File) -> files::Result<bool>,
) -> files::Result<Rc<Counted<File>>> {
    if let Some(file) = KEPT.with_borrow_mut(|kept| kept.find(|known, _| known == path))
        && is_same(&file)?
    {
        return Ok(file);
    }
    // What is open may be what was replaced since.
    let file = open_anew(path)?;
    match is_same(&file)? {
        true => Ok(file),
        false => Err(std::io::Error::other("another file was put in its place").into()),
    }
}
