//! Block codecs: general-purpose compression of bytes that encodings could not make smaller.
//!
//! A *frame* is one run of bytes: codec tag, then for `none` the bytes themselves, else raw length (varint) and the
//! compressed bytes. A frame is decompressed as a whole, so whoever wants random access keeps frames small ([`BLOCK_BYTES`]).
//! A codec is used only where it saves at least one byte in [`MIN_GAIN`].

use std::borrow::Cow;

use vector::{Error, Result};

use crate::cursor::{Reader, Writer};
use crate::options::{BlockCodecs, Codec, EncodeOptions};

/// Size of a block that is decompressed to read one value of it.
pub const BLOCK_BYTES: usize = 16 << 10;

/// A codec must save one byte in so many.
const MIN_GAIN: usize = 8;

/// Shorter inputs are not worth a codec's own overhead.
const MIN_BYTES: usize = 64;

/// No compressor used here expands by more than this, so a larger claim is corrupt (zstd can, of constant input: it is allowed more by `max_raw`).
const MAX_RATIO: usize = 1 << 16;

/// Compresses with the codec of `options`; `None` when it does not pay.
pub fn compress(bytes: &[u8], options: &EncodeOptions<'_>) -> Result<Option<Vec<u8>>> {
    if bytes.len() < MIN_BYTES {
        return Ok(None);
    }
    let compressed = match options.codec {
        Codec::None => return Ok(None),
        Codec::Pglz => match options.codecs.pglz_compress(bytes) {
            Some(compressed) => compressed,
            None => return Ok(None),
        },
        Codec::Lz4 => lz4_flex::block::compress(bytes),
        Codec::Zstd => zstd::bulk::compress(bytes, options.level)
            .map_err(|error| Error::InvalidInput(format!("zstd: {error}")))?,
    };
    Ok((compressed.len() + bytes.len() / MIN_GAIN <= bytes.len()).then_some(compressed))
}

/// Restores exactly `raw_len` bytes.
pub fn decompress(codec: Codec, bytes: &[u8], raw_len: usize, codecs: &dyn BlockCodecs) -> Result<Vec<u8>> {
    if raw_len / MAX_RATIO > bytes.len() {
        return Err(Error::corrupt(format!("{} compressed bytes claim to hold {raw_len}", bytes.len())));
    }
    let wrong = |detail: String| Error::corrupt(format!("{}: {detail}", codec.name()));
    let raw = match codec {
        Codec::None => bytes.to_vec(),
        Codec::Pglz => codecs.pglz_decompress(bytes, raw_len)?,
        Codec::Lz4 => {
            lz4_flex::block::decompress(bytes, raw_len).map_err(|error| wrong(error.to_string()))?
        }
        Codec::Zstd => zstd::bulk::decompress(bytes, raw_len).map_err(|error| wrong(error.to_string()))?,
    };
    if raw.len() == raw_len {
        Ok(raw)
    } else {
        Err(wrong(format!("{} bytes instead of {raw_len}", raw.len())))
    }
}

/// Appends one frame, compressed if that pays.
pub fn write_frame(bytes: &[u8], options: &EncodeOptions<'_>, out: &mut Writer) -> Result<()> {
    match compress(bytes, options)? {
        Some(compressed) => {
            out.u8(options.codec.tag());
            out.count(bytes.len());
            out.bytes(&compressed);
        }
        None => {
            out.u8(Codec::None.tag());
            out.bytes(bytes);
        }
    }
    Ok(())
}

/// Reads a frame that fills the rest of the reader.
pub fn read_frame<'a>(reader: &mut Reader<'a>, codecs: &dyn BlockCodecs) -> Result<Cow<'a, [u8]>> {
    match Codec::from_tag(reader.u8()?)? {
        Codec::None => Ok(Cow::Borrowed(reader.rest())),
        codec => {
            let raw_len = reader.count(u32::MAX as usize, "raw length")?;
            decompress(codec, reader.rest(), raw_len, codecs).map(Cow::Owned)
        }
    }
}
