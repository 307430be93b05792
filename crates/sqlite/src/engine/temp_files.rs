//! Files for rows that do not fit memory.
//!
//! They have no name, so nothing is left of them whatever becomes of the process. A file that is not needed
//! any more is emptied and used again: operators with little memory make thousands of them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use query::{Error, Result, TempFile, TempFiles};

/// The files of one query.
#[derive(Default)]
pub struct Directory {
    free: Arc<Mutex<Vec<File>>>,
}

/// Where files may be, the best place first. Those that SQLite itself looks at, in its order
/// (https://www.sqlite.org/tempfiles.html), without the current directory.
fn places() -> impl Iterator<Item = PathBuf> {
    let told = ["SQLITE_TMPDIR", "TMPDIR"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    told.chain(["/var/tmp", "/usr/tmp", "/tmp"].map(PathBuf::from))
}

impl TempFiles for Directory {
    fn create(&self) -> Result<Box<dyn TempFile>> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let file = match free {
            Some(file) => file,
            None => {
                let mut made = places().map(tempfile::tempfile_in);
                let made = made.find_map(io::Result::ok);
                made.ok_or_else(|| {
                    Error::Data(vector::Error::Host(
                        "no temporary file can be made in SQLITE_TMPDIR, TMPDIR, /var/tmp or /tmp".into(),
                    ))
                })?
            }
        };
        Ok(Box::new(SpillFile { file: Some(file), length: 0, free: Arc::clone(&self.free) }))
    }
}

/// A file that lives as long as this.
struct SpillFile {
    /// Taken when this is dropped.
    file: Option<File>,
    length: u64,
    free: Arc<Mutex<Vec<File>>>,
}

impl TempFile for SpillFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let at = self.length;
        self.length += bytes.len() as u64;
        self.file.as_ref().ok_or(io::ErrorKind::NotFound)?.write_all_at(bytes, at)?;
        Ok(at)
    }

    fn read(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.as_ref().ok_or(io::ErrorKind::NotFound)?.read_exact_at(out, offset)
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        if let Some(file) = self.file.take().filter(|file| file.set_len(0).is_ok()) {
            self.free.lock().unwrap_or_else(PoisonError::into_inner).push(file);
        }
    }
}
