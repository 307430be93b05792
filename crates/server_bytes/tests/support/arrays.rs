//! Makes arrays of one dimension for tests, by the layout in `utils/array.h`.

/// The bytes of an array without its length word; elements of `width` bytes, or with a length word of their
/// own.
pub fn array(elements: &[Option<Vec<u8>>], width: Option<usize>) -> Vec<u8> {
    // The length word is there until the end, as all offsets count from it.
    let mut out = vec![0; 4];
    let word = |out: &mut Vec<u8>, value: usize| out.extend_from_slice(&(value as u32).to_le_bytes());
    let has_nulls = elements.iter().any(Option::is_none);
    word(&mut out, usize::from(!elements.is_empty()));
    let offset_at = out.len();
    word(&mut out, 0);
    word(&mut out, 23);
    if !elements.is_empty() {
        word(&mut out, elements.len());
        word(&mut out, 1);
    }
    if has_nulls {
        let bits = out.len();
        out.resize(bits + elements.len().div_ceil(8), 0);
        for (at, _) in elements.iter().enumerate().filter(|(_, element)| element.is_some()) {
            out[bits + at / 8] |= 1 << (at % 8);
        }
    }
    pad(&mut out, 8);
    if has_nulls {
        let offset = out.len() as u32;
        out[offset_at..offset_at + 4].copy_from_slice(&offset.to_le_bytes());
    }
    for element in elements.iter().flatten() {
        match width {
            Some(width) => pad(&mut out, width),
            None => {
                pad(&mut out, 4);
                word(&mut out, (element.len() + 4) << 2);
            }
        }
        out.extend_from_slice(element);
    }
    out.split_off(4)
}

fn pad(out: &mut Vec<u8>, border: usize) {
    out.resize(out.len().next_multiple_of(border), 0);
}
