//! What a caller decides about encoding: chunk size, block codec and a forced encoding. Also the stable ids
//! of codecs and encodings.

use vector::{Error, Result};

/// Which encoding a node uses. The number is stored in files: never renumber, only add.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum EncodingId {
    /// The values as they are.
    Plain = 0,
    /// One value for all rows.
    Constant = 1,
    /// First value and a step.
    Sequence = 2,
    /// Runs of equal values.
    RunLength = 3,
    /// Frame of reference and bit-packing in blocks of 1,024, with patches.
    BitPacked = 4,
    /// Differences of neighbours, bit-packed with patches, restarted every 1,024 values.
    Delta = 5,
    /// Codes into the column's shared dictionary.
    Dictionary = 6,
    /// Floats as decimal integers with exceptions (ALP).
    Alp = 7,
    /// Floats as dictionary-coded high bits and packed low bits (ALP-RD).
    AlpRd = 8,
    /// Exact decimals: integers, scales and side lane.
    Numeric = 9,
    /// 128-bit integers as high and low halves.
    Wide = 10,
    /// Small codes as one bitmap a level, each over the rows the level before left open.
    Levels = 11,
    /// A pattern that repeats with a fixed period.
    Periodic = 12,
    /// A base and multiples of one factor.
    Multiple = 13,
    /// FSST text.
    Fsst = 20,
    /// Hexadecimal text as bytes.
    Hex = 21,
    /// Canonical uuid text as sixteen bytes.
    UuidText = 22,
    /// Byte strings as templates with holes (shredded JSON).
    Template = 23,
    /// Decimal digits as integers.
    Digits = 24,
    /// Byte strings in blocks that a block codec compressed.
    Blocks = 25,
    /// A whole node compressed by a block codec.
    Compressed = 40,
}

impl EncodingId {
    /// Every encoding, in order of id.
    pub const ALL: [Self; 21] = [
        Self::Plain,
        Self::Constant,
        Self::Sequence,
        Self::RunLength,
        Self::BitPacked,
        Self::Delta,
        Self::Dictionary,
        Self::Alp,
        Self::AlpRd,
        Self::Numeric,
        Self::Wide,
        Self::Levels,
        Self::Periodic,
        Self::Multiple,
        Self::Fsst,
        Self::Hex,
        Self::UuidText,
        Self::Template,
        Self::Digits,
        Self::Blocks,
        Self::Compressed,
    ];

    /// The stored tag.
    pub const fn tag(self) -> u8 {
        self as u8
    }

    /// The encoding with this stored tag. `Unsupported` if this build knows none.
    pub fn from_tag(tag: u8) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|id| id.tag() == tag)
            .ok_or_else(|| Error::Unsupported(format!("encoding {tag}")))
    }

    /// Its name in EXPLAIN, benchmarks and settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Constant => "constant",
            Self::Sequence => "sequence",
            Self::RunLength => "run_length",
            Self::BitPacked => "bitpacked",
            Self::Delta => "delta",
            Self::Dictionary => "dictionary",
            Self::Alp => "alp",
            Self::AlpRd => "alp_rd",
            Self::Numeric => "numeric",
            Self::Wide => "wide",
            Self::Levels => "levels",
            Self::Periodic => "periodic",
            Self::Multiple => "multiple",
            Self::Fsst => "fsst",
            Self::Hex => "hex",
            Self::UuidText => "uuid_text",
            Self::Template => "template",
            Self::Digits => "digits",
            Self::Blocks => "blocks",
            Self::Compressed => "compressed",
        }
    }

    /// The encoding of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|id| id.name() == name)
    }
}

/// A general-purpose compressor applied to bytes that no encoding could make small. The number is stored in
/// files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Codec {
    /// None.
    #[default]
    None = 0,
    /// PostgreSQL's own codec. The host does the work.
    Pglz = 1,
    /// LZ4 block format.
    Lz4 = 2,
    /// Zstandard frames.
    Zstd = 3,
}

impl Codec {
    /// The stored tag.
    pub const fn tag(self) -> u8 {
        self as u8
    }

    /// The codec with this stored tag.
    pub fn from_tag(tag: u8) -> Result<Self> {
        match tag {
            0 => Ok(Self::None),
            1 => Ok(Self::Pglz),
            2 => Ok(Self::Lz4),
            3 => Ok(Self::Zstd),
            _ => Err(Error::Unsupported(format!("block codec {tag}"))),
        }
    }

    /// Its name in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Pglz => "pglz",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// Compressors that only the host has. Called from any thread.
pub trait BlockCodecs: Send + Sync {
    /// Compresses with pglz. `None` if the bytes do not get smaller, or if there is no pglz.
    fn pglz_compress(&self, bytes: &[u8]) -> Option<Vec<u8>>;
    /// Restores exactly `raw_len` bytes. `Corrupt` if the bytes are no pglz stream of that length.
    fn pglz_decompress(&self, bytes: &[u8], raw_len: usize) -> Result<Vec<u8>>;
}

/// A host that writes no pglz. It reads what other hosts have written.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPglz;

impl BlockCodecs for NoPglz {
    fn pglz_compress(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn pglz_decompress(&self, bytes: &[u8], raw_len: usize) -> Result<Vec<u8>> {
        server_bytes::pglz::expand(bytes, raw_len)
    }
}

/// How to encode a column.
#[derive(Clone, Copy)]
pub struct EncodeOptions<'a> {
    /// Rows of a chunk, at least 1.
    pub chunk_rows: usize,
    /// The block codec to try if encodings leave something to gain.
    pub codec: Codec,
    /// The codec's level (zstd only).
    pub level: i32,
    /// The encoding to use wherever it can hold the values, for tests and experiments.
    pub force: Option<EncodingId>,
    /// The host's codecs.
    pub codecs: &'a dyn BlockCodecs,
    /// Called every few milliseconds. Its error ends the encoding, so a host can let its user cancel.
    pub check: &'a dyn Fn() -> Result<()>,
}

impl Default for EncodeOptions<'_> {
    fn default() -> Self {
        let check = &never_cancelled;
        Self { chunk_rows: 10_000, codec: Codec::None, level: 3, force: None, codecs: &NoPglz, check }
    }
}

/// The `check` of a caller that cannot be cancelled.
pub fn never_cancelled() -> Result<()> {
    Ok(())
}

impl std::fmt::Debug for EncodeOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EncodeOptions")
            .field("chunk_rows", &self.chunk_rows)
            .field("codec", &self.codec)
            .field("level", &self.level)
            .field("force", &self.force)
            .finish_non_exhaustive()
    }
}
