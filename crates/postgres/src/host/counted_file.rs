//! Files that are open beside those of the server.
//!
//! The server counts them (`Counted`): it closes one of its own where a process has too many. A query may
//! read more files than a process may have open. So scans hold no file: they ask for one whenever they read,
//! and the files that were asked for last stay open (`Recent`).

use std::ops::Deref;
use std::rc::Rc;

use pgrx::pg_sys;

/// A file that is open, or what has one.
#[derive(Debug)]
pub struct Counted<T>(T);

impl<T> Counted<T> {
    /// Opens one file.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn open<E>(open: impl FnOnce() -> Result<T, E>) -> Result<Self, E> {
        // SAFETY: plain counters of the server's; it may close files of its own.
        unsafe {
            if !pg_sys::AcquireExternalFD() {
                pg_sys::ReserveExternalFD();
            }
        }
        open().map(Self).inspect_err(|_| {
            // SAFETY: as counted above.
            unsafe { pg_sys::ReleaseExternalFD() }
        })
    }
}

impl<T> Deref for Counted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        // SAFETY: as counted when it was opened.
        unsafe { pg_sys::ReleaseExternalFD() }
    }
}

/// The files that were asked for last, each with what it is known by.
pub struct Recent<K, T> {
    /// Most files that stay open.
    most: usize,
    /// What was asked for last is last.
    files: Vec<(K, Rc<Counted<T>>)>,
}

impl<K, T> Recent<K, T> {
    /// None so far, and never more than `most`.
    pub const fn new(most: usize) -> Self {
        Self { most, files: Vec::new() }
    }

    /// A file that is open.
    pub fn find(&mut self, is: impl Fn(&K, &T) -> bool) -> Option<Rc<Counted<T>>> {
        let at = self.files.iter().position(|(key, file)| is(key, file))?;
        let known = self.files.remove(at);
        let file = Rc::clone(&known.1);
        self.files.push(known);
        Some(file)
    }

    /// Keeps a file open, perhaps in the place of the one that was asked for longest ago.
    pub fn keep(&mut self, key: K, file: &Rc<Counted<T>>) {
        if self.files.len() >= self.most {
            self.files.remove(0);
        }
        self.files.push((key, Rc::clone(file)));
    }

    /// Closes files, but for those that are in use elsewhere.
    pub fn retain(&mut self, is_kept: impl Fn(&K) -> bool) {
        self.files.retain(|(key, _)| is_kept(key));
    }
}
