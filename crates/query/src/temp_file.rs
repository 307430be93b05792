//! Temporary files that operators spill to: the host makes them.

use std::io;
use std::sync::Arc;

use crate::Result;

/// A temporary file: written once from front to back, then read.
pub trait TempFile: Send {
    /// Appends bytes and returns their offset.
    fn append(&mut self, bytes: &[u8]) -> io::Result<u64>;
    /// Fills `out` from `offset`.
    fn read(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()>;
}

/// Makes temporary files, on any thread.
pub trait TempFiles: Send + Sync {
    /// A new empty file, gone when dropped.
    fn create(&self) -> Result<Box<dyn TempFile>>;
}

/// Shared by everything that may spill.
pub type SharedTempFiles = Arc<dyn TempFiles>;
