//! A packed sequence of bits, least significant bit of word 0 first: validity (1 = not NULL) and booleans.

/// Packed bits. Bits past `len` in the last word are always zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// No bits.
    pub const fn new() -> Self {
        Self { words: Vec::new(), len: 0 }
    }

    /// `len` bits, all equal to `value`.
    pub fn filled(len: usize, value: bool) -> Self {
        let mut bitmap = Self { words: vec![if value { u64::MAX } else { 0 }; len.div_ceil(64)], len };
        bitmap.clear_tail();
        bitmap
    }

    /// Takes over packed words. Missing words read as zero, surplus words and bits are dropped.
    pub fn from_words(mut words: Vec<u64>, len: usize) -> Self {
        words.resize(len.div_ceil(64), 0);
        let mut bitmap = Self { words, len };
        bitmap.clear_tail();
        bitmap
    }

    fn clear_tail(&mut self) {
        if !self.len.is_multiple_of(64)
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1u64 << (self.len % 64)) - 1;
        }
    }

    /// Number of bits.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True when there is no bit at all.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The packed words. The last one is padded with zeros.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The bit at `index`; false past the end.
    #[inline]
    pub fn get(&self, index: usize) -> bool {
        self.words.get(index / 64).is_some_and(|word| (word >> (index % 64)) & 1 == 1)
    }

    /// Sets the bit at `index`; ignored past the end.
    #[inline]
    pub fn set(&mut self, index: usize, value: bool) {
        if index < self.len
            && let Some(word) = self.words.get_mut(index / 64)
        {
            let mask = 1u64 << (index % 64);
            if value { *word |= mask } else { *word &= !mask }
        }
    }

    /// Appends one bit.
    #[inline]
    pub fn push(&mut self, value: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        if value && let Some(last) = self.words.last_mut() {
            *last |= 1u64 << (self.len % 64);
        }
        self.len += 1;
    }

    /// Number of one bits.
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Number of zero bits.
    pub fn count_zeros(&self) -> usize {
        self.len - self.count_ones()
    }

    /// Bits `start..start + len`, clipped to what is there.
    #[must_use]
    pub fn slice(&self, start: usize, len: usize) -> Self {
        let len = len.min(self.len.saturating_sub(start));
        let (first, shift) = (start / 64, start % 64);
        let word = |i: usize| self.words.get(i).copied().unwrap_or(0);
        let words = (0..len.div_ceil(64))
            .map(|i| match shift {
                0 => word(first + i),
                _ => (word(first + i) >> shift) | (word(first + i + 1) << (64 - shift)),
            })
            .collect();
        Self::from_words(words, len)
    }

    /// The bits at `positions`, in that order.
    #[must_use]
    pub fn take(&self, positions: &[u32]) -> Self {
        positions.iter().map(|&position| self.get(position as usize)).collect()
    }

    /// All bits in order.
    pub fn iter(&self) -> impl Iterator<Item = bool> + '_ {
        (0..self.len).map(|i| self.get(i))
    }

    /// The first one bit at `from` or after it.
    #[inline]
    pub fn next_one(&self, from: usize) -> Option<usize> {
        let mut at = from / 64;
        let mut word = self.words.get(at)? & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            word = *self.words.get(at)?;
        }
        Some(at * 64 + word.trailing_zeros() as usize)
    }

    /// Positions of the one bits, ascending.
    pub fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    i * 64 + bit
                })
            })
        })
    }

    /// The positions of the one bits in a list. This is faster than collecting `ones`, because the length is
    /// known before.
    #[allow(clippy::cast_possible_truncation)] // bitmaps have one bit for a row of a chunk or a batch
    pub fn positions(&self) -> Vec<u32> {
        let mut positions = Vec::with_capacity(self.count_ones());
        for (at, &word) in self.words.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                positions.push(at as u32 * 64 + rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
        positions
    }
}

impl FromIterator<bool> for Bitmap {
    fn from_iter<I: IntoIterator<Item = bool>>(bits: I) -> Self {
        let mut bitmap = Self::new();
        for bit in bits {
            bitmap.push(bit);
        }
        bitmap
    }
}
