//! Where the bytes of a file come from: a local file now, and a store of objects one day.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::{Error, Result};

/// Bytes that can be read anywhere.
pub trait Ranges {
    /// How many there are.
    ///
    /// # Errors
    /// Where they cannot be reached.
    fn length(&self) -> Result<u64>;

    /// Appends exactly these bytes to `out`. They lie before `length`, as it was when the file was opened.
    ///
    /// # Errors
    /// Where they are not there, or cannot be read.
    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()>;
}

/// Bytes of a part of a file, counted from its first, as bytes of the file.
///
/// # Errors
/// `Corrupt` where the part has no such.
pub fn within(part: &Range<u64>, range: &Range<u64>) -> vector::Result<Range<u64>> {
    let start = part.start.checked_add(range.start);
    let end = part.start.checked_add(range.end).filter(|end| *end <= part.end);
    match start.zip(end) {
        Some((start, end)) => Ok(start..end),
        None => Err(vector::Error::corrupt(format!("bytes {range:?} of {part:?}"))),
    }
}

impl<R: Ranges> Ranges for &R {
    fn length(&self) -> Result<u64> {
        R::length(self)
    }

    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        R::read(self, range, out)
    }
}

impl Ranges for File {
    fn length(&self) -> Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let wanted = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        let start = out.len();
        let missing = |_| Error::Malformed(format!("no memory for {wanted} bytes at {}", range.start));
        out.try_reserve_exact(wanted).map_err(missing)?;
        out.resize(start + wanted, 0);
        match self.read_exact_at(out.get_mut(start..).unwrap_or_default(), range.start) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Err(Error::Malformed(format!("the file ends before byte {}", range.end)));
            }
            read => read?,
        }
        Ok(())
    }
}

/// A file that is in memory.
impl Ranges for Vec<u8> {
    fn length(&self) -> Result<u64> {
        Ok(self.len() as u64)
    }

    fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let place = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        let found = place.and_then(|(start, end)| self.get(start..end));
        let missing = || Error::Malformed(format!("the file ends before byte {}", range.end));
        out.extend_from_slice(found.ok_or_else(missing)?);
        Ok(())
    }
}
