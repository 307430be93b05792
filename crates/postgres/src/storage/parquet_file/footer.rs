//! Footers of Parquet files that this backend has read.
//!
//! A footer is kept as long as its file is the same: its device, number, length and time. All of them go at
//! once where they take much memory, as a query may read more files than are worth to be kept.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;

use files::FilePath;
use files::parquet::{ParquetFile, RowGroup, TableColumns};
use vector::{Error, Result};

use crate::storage::open_files;

/// Most memory of the footers that are kept, in bytes.
const MOST: usize = 64 << 20;

/// A Parquet file whose footer was read.
pub struct KnownFile {
    /// Its name.
    pub path: FilePath,
    pub(super) identity: Identity,
    /// Its footer.
    pub footer: ParquetFile,
}

/// What changes when a file is written or replaced: device, number, length, and when it was written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity(u64, u64, u64, i64, i64);

impl Identity {
    pub fn of(found: &Metadata) -> Self {
        Self(found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec())
    }
}

#[derive(Default)]
struct Kept {
    files: HashMap<FilePath, Rc<KnownFile>>,
    memory: usize,
}

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::default();
}

/// Reads the footer of a file, or finds it known.
///
/// # Errors
/// Where it cannot be opened, or is no Parquet file.
pub(super) fn known(path: &FilePath) -> files::Result<Rc<KnownFile>> {
    let found = path.metadata()?;
    if !found.is_file() {
        // A pipe would be waited for.
        return Err(files::Error::Malformed("it is no file, or not a plain one".into()));
    }
    let identity = Identity::of(&found);
    let kept = KEPT.with_borrow(|kept| kept.files.get(path).cloned());
    if let Some(kept) = kept.filter(|known| known.identity == identity) {
        return Ok(kept);
    }
    let file = open_files::open_anew(path)?;
    let identity = Identity::of(&file.metadata()?);
    let footer = ParquetFile::open(&**file)?;
    let memory = footer.memory();
    let known = Rc::new(KnownFile { path: path.clone(), identity, footer });
    KEPT.with_borrow_mut(|kept| {
        if kept.memory.saturating_add(memory) > MOST {
            *kept = Kept::default();
        }
        kept.memory += memory;
        if let Some(before) = kept.files.insert(path.clone(), Rc::clone(&known)) {
            kept.memory = kept.memory.saturating_sub(before.footer.memory());
        }
    });
    Ok(known)
}

impl KnownFile {
    /// Bytes of the file.
    pub const fn length(&self) -> u64 {
        self.identity.2
    }

    /// Opens a row group.
    ///
    /// # Errors
    /// `Corrupt` where the footer is.
    pub fn group(&self, number: usize, columns: &TableColumns) -> Result<RowGroup> {
        let name = self.path.display().to_string();
        RowGroup::open(&self.footer, &name, number, columns).map_err(|problem| self.located(&problem))
    }

    /// An error that says in which file.
    pub(super) fn located(&self, problem: &files::Error) -> Error {
        let text = format!("file \"{}\": {problem}", self.path.display());
        if let files::Error::Io(_) = problem { Error::Host(text) } else { Error::corrupt(text) }
    }
}
