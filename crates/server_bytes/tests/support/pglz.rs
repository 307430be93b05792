//! Compresses to pglz for tests: the longest copy of what the last 4095 bytes hold, found by trying.

/// A stream that stands for `raw`.
pub fn compressed(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut control_at, mut items, mut at) = (0, 8, 0);
    while at < raw.len() {
        if items == 8 {
            (control_at, items) = (out.len(), 0);
            out.push(0);
        }
        let (length, offset) = longest(raw, at);
        if length < 3 {
            out.push(raw[at]);
            at += 1;
        } else {
            out[control_at] |= 1 << items;
            let short = (length - 3).min(15);
            out.push(((offset >> 4) & 0xf0) as u8 | short as u8);
            out.push(offset as u8);
            if short == 15 {
                out.push((length - 18) as u8);
            }
            at += length;
        }
        items += 1;
    }
    out
}

/// Length and offset of the longest copy that may stand for the bytes at `at`.
fn longest(raw: &[u8], at: usize) -> (usize, usize) {
    let most = (raw.len() - at).min(18 + 255);
    let length = |offset: usize| (0..most).take_while(|&i| raw[at + i] == raw[at + i - offset]).count();
    // Trying all would take the square of the length: the nearest places are tried.
    let nearest = 1..=at.min(64);
    nearest.map(|offset| (length(offset), offset)).max_by_key(|&(length, _)| length).unwrap_or((0, 0))
}
