//! Column files that this backend has open for reading.

use std::cell::RefCell;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;

use files::FilePath;
use files::column::{OwnedFile, Owner, Ranges, within};
use pgrx::pg_sys::{self, Oid};
use stripe::StripeBytes;
use vector::Result;

use super::others::OthersFile;
use super::{fail, first_byte, named};
use crate::host::counted_file::{Counted, Recent};
use crate::host::relation::Open;
use crate::options::foreign;
use crate::storage::directory::StripeEntry;

/// Most files that stay open.
const MOST: usize = 32;

/// The file of a foreign table.
#[derive(Debug, Clone)]
pub struct TableFile {
    /// Its name.
    pub path: FilePath,
    /// What its head has to say.
    pub owner: Owner,
}

struct Key {
    path: FilePath,
    /// Device and number of the file that was opened under this name.
    identity: (u64, u64),
}

thread_local! {
    static KEPT: RefCell<Recent<Key, OwnedFile>> = const { RefCell::new(Recent::new(MOST)) };
}

/// Which owner the head of a table's file has to name.
pub(super) fn owner(table: Oid, storage_id: u64) -> Owner {
    // SAFETY: a plain global.
    let database = unsafe { pg_sys::MyDatabaseId }.to_u32();
    Owner { storage_id, database, relation: table.to_u32() }
}

/// Where the rows of a foreign table are.
pub enum Rows {
    /// In a file that it loads.
    Own(TableFile),
    /// In one that it did not write.
    Others(OthersFile),
}

/// The file of a foreign table, which is there. None: the table was never loaded, and so has no rows.
///
/// # Errors
/// ERRORs where it cannot be opened.
pub fn of(rel: Open) -> Option<Rows> {
    let path = foreign::file_of(rel.oid());
    let Some(storage_id) = named::storage_id(rel.oid()) else { return of_others(rel, &path) };
    Some(Rows::Own(own(rel, path, storage_id)))
}

fn own(rel: Open, path: FilePath, storage_id: u64) -> TableFile {
    let file = TableFile { path, owner: owner(rel.oid(), storage_id) };
    // A file that was put in the place of the one that is open.
    let identity = file.path.metadata().map(|found| (found.dev(), found.ino())).ok();
    KEPT.with_borrow_mut(|kept| {
        kept.retain(|known| known.path != file.path || Some(known.identity) == identity)
    });
    match file.get() {
        Ok(_) => file,
        Err(problem) => fail(rel, &file.path, &problem),
    }
}

/// The file of a table that was never loaded, if there is one that somebody else has written.
fn of_others(rel: Open, path: &FilePath) -> Option<Rows> {
    let found = match is_left(rel.oid(), path) {
        Ok(true) => return None,
        Ok(false) => OthersFile::open(path),
        Err(problem) => Err(problem),
    };
    // A first load may have committed meanwhile.
    if let Some(storage_id) = named::storage_id(rel.oid()) {
        return Some(Rows::Own(own(rel, path.clone(), storage_id)));
    }
    match found {
        Ok(file) => Some(Rows::Others(file)),
        Err(files::Error::Io(io)) if io.kind() == std::io::ErrorKind::NotFound => None,
        Err(problem) => fail(rel, path, &problem),
    }
}

/// Whether a table that was never loaded names what a first load of it has made, which runs, or was killed.
///
/// # Errors
/// As those of opening it: `Io` of kind NotFound also where such a load is rolled back meanwhile.
pub(super) fn is_left(table: Oid, path: &FilePath) -> files::Result<bool> {
    match OwnedFile::open(path, false)? {
        Some(file) if owner(table, file.owner().storage_id) == file.owner() => Ok(!file.was_published()?),
        _ => Ok(false),
    }
}

impl TableFile {
    /// The file, open.
    ///
    /// # Errors
    /// Where it cannot be opened, or is another table's.
    pub fn get(&self) -> files::Result<Rc<Counted<OwnedFile>>> {
        let is_it = |key: &Key, file: &OwnedFile| key.path == self.path && file.owner() == self.owner;
        if let Some(file) = KEPT.with_borrow_mut(|kept| kept.find(is_it)) {
            return Ok(file);
        }
        let file = Rc::new(Counted::open(|| open(&self.path, self.owner, false))?);
        let found = self.path.metadata()?;
        let key = Key { path: self.path.clone(), identity: (found.dev(), found.ino()) };
        KEPT.with_borrow_mut(|kept| kept.keep(key, &file));
        Ok(file)
    }

    /// The bytes of a stripe.
    ///
    /// # Errors
    /// As `get`.
    pub fn stripe(&self, entry: &StripeEntry) -> Result<Bytes> {
        let start = first_byte(entry);
        let file = self.get().map_err(|problem| problem_at(&self.path, start, &problem))?;
        let path = self.path.clone();
        Ok(Bytes { file, path, range: start..start.saturating_add(entry.byte_length) })
    }
}

pub(super) fn problem_at(path: &FilePath, at: u64, problem: &files::Error) -> vector::Error {
    let text = format!("file \"{}\", byte {at}: {problem}", path.display());
    match problem {
        files::Error::Io(_) => vector::Error::Host(text),
        _ => vector::Error::corrupt(text),
    }
}

/// Opens a file that has this owner.
pub(super) fn open(path: &FilePath, owner: Owner, to_write: bool) -> files::Result<OwnedFile> {
    match OwnedFile::open(path, to_write)? {
        Some(file) if file.owner() == owner => Ok(file),
        _ => Err(files::Error::Malformed("it is another file than the one that was loaded".into())),
    }
}

/// Bytes of a stripe in a file.
#[derive(Debug)]
pub struct Bytes {
    file: Rc<Counted<OwnedFile>>,
    path: FilePath,
    range: Range<u64>,
}

impl StripeBytes for Bytes {
    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let Range { start, end } = within(&self.range, &range)?;
        self.file.read(start..end, out).map_err(|problem| problem_at(&self.path, start, &problem))
    }
}
