//! Expands pglz, the server's block codec, without the server. Any thread decodes column chunks, and only the
//! main thread may call the server.
//!
//! Layout (`common/pg_lzcompress.h` and the header comment of `pg_lzcompress.c`): groups of a control byte
//! and eight items. The bits of the control byte, lowest first, say what each item is:
//! - 0: a literal byte
//! - 1: a copy of earlier output. The first byte has the upper four bits of the offset, and the length - 3.
//!   The second has the lower eight bits of the offset. If the length so far is 18, a third byte is added to
//!   it.
//!
//! Called by the hosts' block codecs.
//!
//! Invariant: every read and copy is checked, and memory is asked for only if a stream of this length can
//! fill it.

use vector::{Error, Result};

/// The most bytes of output that a copy of three bytes stands for.
const MAX_COPY: usize = 18 + 255;

/// The `raw_len` bytes that a stream stands for. Errors: `Corrupt` if the stream is damaged or stands for
/// another number of bytes, and `OutOfMemory`.
pub fn expand(bytes: &[u8], raw_len: usize) -> Result<Vec<u8>> {
    if raw_len / (MAX_COPY / 3) > bytes.len() {
        return Err(damaged());
    }
    let mut out: Vec<u8> = Vec::new();
    out.try_reserve_exact(raw_len).map_err(|_| Error::OutOfMemory { bytes: raw_len })?;
    expanded(bytes, raw_len, out).ok_or_else(damaged)
}

#[cold]
fn damaged() -> Error {
    Error::corrupt("pglz block is damaged or too long")
}

/// The bytes that a stream stands for, put into `out`, which is empty. None if they are not `raw_len` bytes.
fn expanded(bytes: &[u8], raw_len: usize, mut out: Vec<u8>) -> Option<Vec<u8>> {
    let mut rest = bytes.iter().copied();
    while out.len() < raw_len {
        let Some(mut control) = rest.next() else { break };
        for _ in 0..8 {
            if out.len() >= raw_len {
                break;
            }
            let Some(first) = rest.next() else { break };
            if control & 1 == 0 {
                out.push(first);
            } else {
                let offset = usize::from(first & 0xf0) << 4 | usize::from(rest.next()?);
                let mut length = usize::from(first & 0x0f) + 3;
                if length == 18 {
                    length += usize::from(rest.next()?);
                }
                let room = raw_len - out.len();
                copy(&mut out, offset, length.min(room))?;
            }
            control >>= 1;
        }
    }
    (out.len() == raw_len && rest.next().is_none()).then_some(out)
}

/// Appends `length` bytes from `offset` bytes back. If the copy overlaps its source, the bytes in between are
/// repeated.
fn copy(out: &mut Vec<u8>, offset: usize, mut length: usize) -> Option<()> {
    let start = out.len().checked_sub(offset).filter(|_| offset > 0)?;
    while length > 0 {
        let step = (out.len() - start).min(length);
        out.extend_from_within(start..start + step);
        length -= step;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use vector::Error;

    fn expand(bytes: &[u8], raw_len: usize) -> Option<Vec<u8>> {
        match super::expand(bytes, raw_len) {
            Err(Error::Corrupt { .. }) => None,
            other => other.ok(),
        }
    }

    #[test]
    fn literals_copies_and_repeats() {
        assert_eq!(expand(&[0, b'a', b'b', b'c'], 3).as_deref(), Some(b"abc".as_slice()));
        // Three literals, then nine bytes from three back: a repeat.
        assert_eq!(expand(&[8, b'a', b'b', b'c', 6, 3], 12).as_deref(), Some(b"abcabcabcabc".as_slice()));
        // 18 + 82 bytes from one back.
        assert_eq!(expand(&[2, b'x', 15, 1, 82], 101), Some(vec![b'x'; 101]));
    }

    #[test]
    fn damage_is_noticed() {
        assert_eq!(expand(&[0, b'a', b'b'], 3), None, "too short");
        assert_eq!(expand(&[0, b'a', b'b', b'c'], 2), None, "too long");
        assert_eq!(expand(&[1, 6, 3], 9), None, "a copy from before the start");
        assert_eq!(expand(&[2, b'x', 6, 0], 10), None, "a copy from nowhere");
        assert_eq!(expand(&[2, b'x', 6], 10), None, "half a copy");
    }

    #[test]
    fn memory_is_asked_for_only_where_it_can_be_filled() {
        assert_eq!(expand(&[], 0), Some(Vec::new()));
        assert_eq!(expand(&[1, 15, 1, 255], usize::MAX), None);
        assert_eq!(expand(&[], 100), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_expanded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200),
                                             raw_len in 0usize..2000) {
            if let Some(raw) = expand(&bytes, raw_len) {
                prop_assert_eq!(raw.len(), raw_len);
            }
        }

        #[test]
        fn streams_of_literals_stand_for_themselves(raw in proptest::collection::vec(any::<u8>(), 0..100)) {
            let stream: Vec<u8> = raw.chunks(8).flat_map(|group| [&[0], group].concat()).collect();
            prop_assert_eq!(expand(&stream, raw.len()), Some(raw));
        }
    }
}
