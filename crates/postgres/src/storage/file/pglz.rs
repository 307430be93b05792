//! Expands pglz, the server's block codec, without the server. Any thread decodes column chunks, and only the
//! main thread may call the server.
//!
//! Used by `codecs`. The stream consists of groups: a control byte and eight items. The bits of the control
//! byte, lowest first, say what each item is:
//! - 0: a literal byte
//! - 1: a copy of earlier output. The first byte has 4 bits of the offset and the length - 3, the second the
//!   other 8 bits of the offset. If the length so far is 18, a third byte is added to it.
//!
//! Invariant: every read and copy is checked, so that damaged bytes give None.

/// The `raw_len` bytes that a stream stands for. None if it is damaged, or if memory is short.
pub fn expand(bytes: &[u8], raw_len: usize) -> Option<Vec<u8>> {
    let mut out: Vec<u8> = Vec::new();
    out.try_reserve_exact(raw_len).ok()?;
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
    use super::expand;

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
}
