//! What footers and segments have in common: magic and version before, a checksum behind.

use std::ops::Range;

use encodings::cursor::{Reader, Writer};
use stripe::{seal, unseal};
use vector::Error as Corrupt;

use super::broken;
use crate::{Error, Result};

/// Begins a part of some version.
pub fn begin(magic: [u8; 4], version: u8) -> Writer {
    let mut out = Writer::new();
    out.bytes(&magic);
    out.u8(version);
    out
}

/// The bytes of a part, with their checksum.
pub fn end(mut out: Writer) -> Vec<u8> {
    seal(out.buffer());
    out.into_bytes()
}

/// What `parse` makes of the version, and of all that lies between it and the checksum of a part. `newest` is
/// the last version that is read, the first is 1.
///
/// # Errors
/// `Malformed` where it is another part or damaged, `Unsupported` for a newer version.
pub fn read<T>(
    sealed: &[u8],
    magic: [u8; 4],
    part: &str,
    newest: u8,
    parse: impl FnOnce(u8, &mut Reader<'_>) -> vector::Result<T>,
) -> Result<T> {
    let version = match sealed.strip_prefix(&magic).and_then(<[u8]>::first) {
        Some(&version) if (1..=newest).contains(&version) => version,
        // A newer version may be sealed in another way.
        Some(version) => {
            let text = format!("the {part} is of version {version}; this build reads up to {newest}");
            return Err(Error::Unsupported(text));
        }
        None => return Err(Error::Malformed(format!("there is no {part} where one is named"))),
    };
    let parsed = || {
        let mut cursor = Reader::new(unseal(sealed, part)?);
        cursor.take(magic.len() + 1)?;
        let parsed = parse(version, &mut cursor)?;
        match cursor.remaining() {
            0 => Ok(parsed),
            surplus => Err(Corrupt::corrupt(format!("{surplus} surplus bytes"))),
        }
    };
    parsed().map_err(|error| broken(part, &error))
}

/// An offset and a length, of bytes before `limit`.
pub fn range(cursor: &mut Reader<'_>, limit: u64) -> vector::Result<Range<u64>> {
    let (start, length) = (cursor.varint()?, cursor.varint()?);
    match start.checked_add(length) {
        Some(end) if end <= limit => Ok(start..end),
        _ => Err(Corrupt::corrupt(format!("{length} bytes at {start} of {limit}"))),
    }
}
