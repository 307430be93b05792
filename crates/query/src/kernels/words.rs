//! Bits word by word: combining bitmaps, and turning them into row positions. Called by logic and selection.

use vector::Bitmap;

/// Positions of the one bits of `len` bits, ascending.
pub(crate) fn positions(words: &[u64], len: usize) -> Vec<u32> {
    let count: usize = words.iter().map(|word| word.count_ones() as usize).sum();
    let mut rows = Vec::with_capacity(count.min(len));
    for (&word, base) in words.iter().zip((0u32..).step_by(64)) {
        if word == u64::MAX {
            rows.extend(base..base + 64);
            continue;
        }
        let mut rest = word;
        while rest != 0 {
            rows.push(base + rest.trailing_zeros());
            rest &= rest - 1;
        }
    }
    rows
}

/// `f` of the words of both.
pub(crate) fn combine(a: &Bitmap, b: &Bitmap, f: impl Fn(u64, u64) -> u64) -> Bitmap {
    let words = a.words().iter().zip(b.words()).map(|(&a, &b)| f(a, b)).collect();
    Bitmap::from_words(words, a.len())
}

/// Both, where None stands for all ones.
pub(crate) fn both(a: Option<&Bitmap>, b: Option<&Bitmap>) -> Option<Bitmap> {
    match (a, b) {
        (None, None) => None,
        (Some(a), None) => Some(a.clone()),
        (None, Some(b)) => Some(b.clone()),
        (Some(a), Some(b)) => Some(combine(a, b, |a, b| a & b)),
    }
}

/// The bits turned over.
pub(crate) fn not(a: &Bitmap) -> Bitmap {
    Bitmap::from_words(a.words().iter().map(|word| !word).collect(), a.len())
}
