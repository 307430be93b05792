//! The place of a file that is written: the file is made beside it, and takes the place when it is whole.

use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};

use crate::api::{Error, Result, random, raw};

/// The place of a file that is going to be written.
pub struct Place {
    path: PathBuf,
    /// The file that is written. None where the place is no ordinary file, and is written to itself.
    beside: Option<PathBuf>,
    /// The file that has the place.
    before: Option<Metadata>,
}

impl Place {
    /// The place of a file.
    pub fn new(path: &Path) -> Self {
        // A link stays, and what it names is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.into());
        let before = path.metadata().ok();
        let is_special = before.as_ref().is_some_and(|before| !before.is_file());
        let beside = || {
            let mut name = path.file_name().unwrap_or_default().to_os_string();
            name.push(format!(".{:016x}", random()));
            path.with_file_name(name)
        };
        let beside = (!is_special).then(beside);
        Self { path, beside, before }
    }

    fn named(&self, error: &std::io::Error) -> Error {
        Error::coded(raw::SQLITE_CANTOPEN, format!("{}: {error}", self.path.display()))
    }

    /// Opens the file, empty. Whoever may read the one before may read this one, and nobody else.
    pub fn create(&self) -> Result<File> {
        let made = File::create(self.beside.as_ref().unwrap_or(&self.path));
        let file = made.map_err(|error| self.named(&error))?;
        if let (Some(before), Some(_)) = (&self.before, &self.beside) {
            file.set_permissions(before.permissions()).map_err(|error| self.named(&error))?;
        }
        Ok(file)
    }

    /// The file is whole, and takes its place.
    pub fn keep(mut self, file: &File) -> Result<()> {
        let Some(beside) = self.beside.take() else { return Ok(()) };
        file.sync_all().and_then(|()| std::fs::rename(&beside, &self.path)).map_err(|error| {
            let _ = std::fs::remove_file(&beside);
            self.named(&error)
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            let _ = std::fs::remove_file(beside);
        }
    }
}
