//! One column chunk: vectors to bytes and back, by many encodings of one shape.
//!
//! The stripe writer calls [`encode_column`]. Readers open a [`SharedColumn`] once and each [`Chunk`] on
//! demand. Then they decode it, take single rows, or filter on the encoded data. FORMAT.md describes the
//! bytes, and `encoding.rs` says how an encoding is added.
//!
//! Invariants:
//! - Decoding gives the values that were encoded, bit for bit, with float payloads and display scales. Only
//!   the values of NULL rows may differ.
//! - Bad bytes give `Error::Corrupt`, never a panic.
//! - Memory is bounded by the declared rows and bytes.
#![deny(unsafe_code)]

mod chooser;
mod chunk;
pub mod codec;
mod column;
mod constant;
pub mod cursor;
mod dictionary;
mod encoding;
mod filter;
mod filter_cache;
mod floats;
mod integers;
mod kernels;
mod numerics;
mod options;
mod plain;
mod registry;
mod runs;
mod shared;
mod single;
mod strings;
mod validity;

pub use chunk::Chunk;
pub use column::{EncodedChunk, EncodedColumn, encode_column};
pub use filter::filter_vector;
pub use options::{BlockCodecs, Codec, EncodeOptions, EncodingId, NoPglz, never_cancelled};
pub use shared::SharedColumn;
pub use single::Single;
pub use strings::template::{Path, PathColumn, PathComponent, PathKind};
pub use validity::Validity;
