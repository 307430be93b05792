//! The first bytes of a column file, which say what it is and where its newest footer lies.
//!
//! ```text
//! 0      magic "COLONNAD", version u16, identity 16 bytes, checksum u64
//! 1024   place A: generation u64, footer offset u64, footer length u32, end u64, checksum u64
//! 2048   place B
//! 3072   owner: storage id u64, database u32, relation u32, checksum u64; zeros where nobody owns the file
//! ```
//! The end is how many bytes of the file count. Places are written in turn, each within a sector of a device,
//! so that one of the two is whole at any time. The one with the greater generation holds. One that is
//! neither whole nor empty may have been the newer one, so nothing is written over what it may have named.
//!
//! A server that keeps account of the stripes itself owns the file. It alone loads it; anybody may read.

use std::ops::Range;

use encodings::cursor::{Reader, Writer};
use stripe::{seal, unseal};

use super::broken;
use crate::{Error, Result};

/// Length of the head.
pub const HEAD_BYTES: u64 = 4096;
/// What a column file begins with.
pub const MAGIC: [u8; 8] = *b"COLONNAD";
const VERSION: u16 = 1;
const IDENTITY_BYTES: usize = 16;
const FIRST_PART: usize = 8 + 2 + IDENTITY_BYTES + 8;
const PLACE_BYTES: usize = 8 + 8 + 4 + 8 + 8;
/// Where the places are.
const PLACES: [u64; 2] = [1024, 2048];

/// Where the owner is.
const OWNER: usize = 3072;
const OWNER_BYTES: usize = 8 + 4 + 4 + 8;

/// The table of a server that alone loads a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// What the server calls the rows of the file. No two files have the same.
    pub storage_id: u64,
    /// The database's number.
    pub database: u32,
    /// The table's number.
    pub relation: u32,
}

impl Owner {
    /// The owner that a head names.
    ///
    /// # Errors
    /// `Malformed` where it is damaged.
    pub fn read(head: &[u8]) -> Result<Option<Self>> {
        let Some(bytes) = head.get(OWNER..OWNER + OWNER_BYTES) else { return Ok(None) };
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let parse = || {
            let mut cursor = Reader::new(unseal(bytes, "owner")?);
            Ok(Self { storage_id: cursor.u64()?, database: cursor.u32()?, relation: cursor.u32()? })
        };
        parse().map(Some).map_err(|error| broken("head", &error))
    }

    /// Puts it into a head.
    pub fn write(&self, head: &mut [u8]) {
        let mut out = Writer::new();
        out.u64(self.storage_id);
        out.u32(self.database);
        out.u32(self.relation);
        seal(out.buffer());
        head.iter_mut().skip(OWNER).zip(out.into_bytes()).for_each(|(to, from)| *to = from);
    }
}

/// Where a file's newest footer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// How many loads were finished before, and this one.
    pub generation: u64,
    /// First byte of the footer.
    pub footer_offset: u64,
    /// Its length.
    pub footer_length: u32,
    /// How many bytes of the file count.
    pub end: u64,
}

impl Place {
    /// The bytes of the footer.
    pub fn footer(&self) -> Range<u64> {
        self.footer_offset..self.footer_offset.saturating_add(self.footer_length.into())
    }

    /// The sealed bytes, and where they belong.
    pub fn write(&self) -> (u64, Vec<u8>) {
        let mut out = Writer::new();
        out.u64(self.generation);
        out.u64(self.footer_offset);
        out.u32(self.footer_length);
        out.u64(self.end);
        seal(out.buffer());
        let [even, odd] = PLACES;
        (if self.generation.is_multiple_of(2) { even } else { odd }, out.into_bytes())
    }

    /// A place that was written; None where nothing was, or not all of it.
    fn read(head: &[u8], at: u64) -> Option<Self> {
        let at = usize::try_from(at).ok()?;
        let mut cursor = Reader::new(unseal(head.get(at..at + PLACE_BYTES)?, "place").ok()?);
        let place = Self {
            generation: cursor.u64().ok()?,
            footer_offset: cursor.u64().ok()?,
            footer_length: cursor.u32().ok()?,
            end: cursor.u64().ok()?,
        };
        (place.generation > 0 && place.footer_offset >= HEAD_BYTES).then_some(place)
    }
}

/// The first byte of a place that is neither whole nor empty.
pub fn damaged_place(head: &[u8]) -> Option<u64> {
    let is_empty = |at: u64| {
        let bytes = head.iter().skip(usize::try_from(at).unwrap_or(usize::MAX)).take(PLACE_BYTES);
        bytes.into_iter().all(|byte| *byte == 0)
    };
    PLACES.into_iter().find(|&at| !is_empty(at) && Place::read(head, at).is_none())
}

/// The head of a new file.
pub fn new(identity: [u8; IDENTITY_BYTES]) -> Vec<u8> {
    let mut out = Writer::new();
    out.bytes(&MAGIC);
    out.u16(VERSION);
    out.bytes(&identity);
    seal(out.buffer());
    let mut head = out.into_bytes();
    head.resize(HEAD_BYTES as usize, 0);
    head
}

/// Finds the newest footer.
///
/// # Errors
/// `Malformed` where this is no column file, or none that was finished. `Unsupported` for a newer version.
pub fn read(head: &[u8]) -> Result<Place> {
    newest(head)?.ok_or_else(|| Error::Malformed("no load of it was ever finished".into()))
}

/// As `read`; None where no load was ever finished.
///
/// # Errors
/// As `read`.
pub fn newest(head: &[u8]) -> Result<Option<Place>> {
    let mut cursor = Reader::new(head);
    if cursor.array::<8>().ok() != Some(MAGIC) {
        return Err(Error::Malformed("it is no column file".into()));
    }
    let version = cursor.u16().map_err(|error| broken("head", &error))?;
    if version != VERSION {
        return Err(Error::Unsupported(format!(
            "it is a column file of version {version}; this build reads 1"
        )));
    }
    unseal(head.get(..FIRST_PART).unwrap_or(head), "head").map_err(|error| broken("head", &error))?;
    let places = PLACES.into_iter().filter_map(|at| Place::read(head, at));
    Ok(places.max_by_key(|place| place.generation))
}

#[cfg(test)]
mod tests {
    use super::{HEAD_BYTES, Owner, Place, new, read};

    fn put(head: &mut [u8], place: Place) {
        let (at, bytes) = place.write();
        head[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
    }

    #[test]
    fn one_place_holds_while_the_other_is_written() {
        let mut head = new([7; 16]);
        assert!(read(&head).unwrap_err().to_string().contains("ever finished"));
        let place = |generation| Place {
            generation,
            footer_offset: HEAD_BYTES + generation,
            footer_length: 9,
            end: 5000,
        };
        for generation in 1..6 {
            put(&mut head, place(generation));
            assert_eq!(read(&head).unwrap(), place(generation));
            // Half of the next one.
            let (at, bytes) = place(generation + 1).write();
            for written in 0..bytes.len() {
                let mut torn = head.clone();
                torn[at as usize..at as usize + written].copy_from_slice(&bytes[..written]);
                let found = read(&torn).unwrap();
                assert!(found == place(generation) || found == place(generation + 1));
            }
        }
    }

    #[test]
    fn an_owner_is_read_as_it_was_written() {
        let mut head = new([7; 16]);
        assert_eq!(Owner::read(&head).unwrap(), None);
        let owner = Owner { storage_id: u64::MAX, database: 5, relation: 16_384 };
        owner.write(&mut head);
        assert_eq!(Owner::read(&head).unwrap(), Some(owner));
        head[3075] ^= 4;
        assert!(Owner::read(&head).unwrap_err().to_string().contains("checksum"));
    }

    #[test]
    fn other_files_are_told_from_damaged_ones() {
        assert!(read(b"PAR1").unwrap_err().to_string().contains("no column file"));
        assert!(read(b"").is_err());
        let mut head = new([1; 16]);
        head[8] = 2;
        assert!(read(&head).unwrap_err().to_string().contains("version 2"));
        let mut head = new([1; 16]);
        head[12] ^= 1;
        assert!(read(&head).unwrap_err().to_string().contains("checksum"));
    }
}
