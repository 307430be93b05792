//! Memory for Datums that point at something. Blocks are filled from front to back, and used again after a
//! reset.
//!
//! Owned by `to_datum`. Invariant: an address that was handed out stays valid until `reset`, and is 8-byte
//! aligned.

/// Bytes of the first block: enough for the values of one row. Arenas of single rows are made and dropped
/// with each look-up.
const FIRST_BYTES: usize = 512;
/// Bytes of an ordinary block. The blocks before it double in size. A larger value gets a block of its own.
const BLOCK_BYTES: usize = 64 * 1024;
/// Memory kept for the next batch, in bytes.
const KEPT_BYTES: usize = 1 << 20;

/// A bump allocator.
#[derive(Default)]
pub struct Arena {
    blocks: Vec<Box<[u64]>>,
    /// The block that is being filled, and how many of its words are used.
    current: usize,
    used: usize,
    /// Bytes of all blocks.
    held: usize,
}

impl Arena {
    /// An arena without memory.
    pub const fn new() -> Self {
        Self { blocks: Vec::new(), current: 0, used: 0, held: 0 }
    }

    /// Space for `bytes` bytes, 8-byte aligned. It is initialised, but with unspecified (old) values.
    #[inline]
    pub fn allocate(&mut self, bytes: usize) -> *mut u8 {
        let words = bytes.div_ceil(8);
        loop {
            match self.blocks.get_mut(self.current) {
                Some(block) => {
                    if let Some(room) = block.get_mut(self.used..self.used + words) {
                        self.used += words;
                        return room.as_mut_ptr().cast();
                    }
                    self.current += 1;
                    self.used = 0;
                }
                None => {
                    let bytes = (FIRST_BYTES << self.blocks.len().min(16)).min(BLOCK_BYTES);
                    let block = vec![0u64; words.max(bytes / 8)].into_boxed_slice();
                    self.held += block.len() * 8;
                    self.blocks.push(block);
                }
            }
        }
    }

    /// Takes all space back. Keeps a bounded amount of memory for later.
    #[inline]
    pub fn reset(&mut self) {
        self.current = 0;
        self.used = 0;
        if self.held > KEPT_BYTES {
            let mut kept = 0;
            self.blocks.retain(|block| {
                kept += block.len() * 8;
                kept <= KEPT_BYTES
            });
            self.held = self.blocks.iter().map(|block| block.len() * 8).sum();
        }
    }
}
