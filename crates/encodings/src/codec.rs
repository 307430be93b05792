//! Block codecs: general-purpose compression of bytes that encodings could not make smaller.
//!
//! A *frame* is one run of bytes: codec tag, then for `none` the bytes themselves, else raw length (varint)
//! and the compressed bytes. A frame is decompressed as a whole, so code that wants random access keeps
//! frames small ([`BLOCK_BYTES`]). A codec is used only if it saves at least one byte in [`MIN_GAIN`].

use std::borrow::Cow;
use std::cell::RefCell;

use vector::{Error, Result};

use crate::cursor::{Reader, Writer};
use crate::options::{BlockCodecs, Codec, EncodeOptions};

/// Size of a block that is decompressed to read one value of it.
pub const BLOCK_BYTES: usize = 16 << 10;

/// A codec must save one byte in this many.
const MIN_GAIN: usize = 8;

/// Shorter inputs are not worth a codec's own overhead.
const MIN_BYTES: usize = 64;

/// No compressor here shrinks by more than this factor, so a larger claim is corrupt. Only zstd can, for
/// constant input: `max_raw` allows it more.
const MAX_RATIO: usize = 1 << 16;

/// Compresses with the codec of `options`. `None` if it does not pay.
pub fn compress(bytes: &[u8], options: &EncodeOptions<'_>) -> Result<Option<Vec<u8>>> {
    if bytes.len() < MIN_BYTES {
        return Ok(None);
    }
    if options.codec != Codec::None {
        (options.check)()?;
    }
    let compressed = match options.codec {
        Codec::None => return Ok(None),
        Codec::Pglz => match options.codecs.pglz_compress(bytes) {
            Some(compressed) => compressed,
            None => return Ok(None),
        },
        Codec::Lz4 => lz4_flex::block::compress(bytes),
        Codec::Zstd => zstd_compress(bytes, options.level)
            .map_err(|error| Error::InvalidInput(format!("zstd: {error}")))?,
    };
    Ok((compressed.len() + bytes.len() / MIN_GAIN <= bytes.len()).then_some(compressed))
}

thread_local! {
    // Making a context takes longer than compressing a small block. So each thread keeps one of each kind.
    static COMPRESSOR: RefCell<Option<(i32, zstd::bulk::Compressor<'static>)>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

fn zstd_compress(bytes: &[u8], level: i32) -> std::io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|kept| {
        let mut compressor = match kept.take() {
            Some((kept_level, compressor)) if kept_level == level => compressor,
            _ => zstd::bulk::Compressor::new(level)?,
        };
        // The context is dropped on an error, so that no half-used one is kept.
        let compressed = compressor.compress(bytes)?;
        *kept = Some((level, compressor));
        Ok(compressed)
    })
}

fn zstd_decompress(bytes: &[u8], raw_len: usize) -> std::io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let mut decompressor = match kept.take() {
            Some(decompressor) => decompressor,
            None => zstd::bulk::Decompressor::new()?,
        };
        let raw = decompressor.decompress(bytes, raw_len)?;
        *kept = Some(decompressor);
        Ok(raw)
    })
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
        Codec::Zstd => zstd_decompress(bytes, raw_len).map_err(|error| wrong(error.to_string()))?,
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::NoPglz;

    #[test]
    fn frames_come_back_and_bad_ones_are_refused() {
        let text: Vec<u8> = (0..5000u32).flat_map(|i| (i % 97).to_le_bytes()).collect();
        for (codec, level) in
            [(Codec::None, 0), (Codec::Lz4, 0), (Codec::Zstd, 3), (Codec::Zstd, 9), (Codec::Zstd, 3)]
        {
            let options = EncodeOptions { codec, level, ..EncodeOptions::default() };
            let mut out = Writer::new();
            write_frame(&text, &options, &mut out).unwrap();
            let bytes = out.into_bytes();
            assert_eq!(codec == Codec::None, bytes.len() > text.len(), "{codec:?} compresses");
            assert_eq!(read_frame(&mut Reader::new(&bytes), &NoPglz).unwrap(), text.as_slice());
            if codec != Codec::None {
                for cut in [1, 3, 10, bytes.len() - 1] {
                    let short = bytes.get(..cut).unwrap();
                    assert!(matches!(
                        read_frame(&mut Reader::new(short), &NoPglz),
                        Err(Error::Corrupt { .. })
                    ));
                }
                // A good frame after a bad one: the kept context was not harmed.
                assert_eq!(read_frame(&mut Reader::new(&bytes), &NoPglz).unwrap(), text.as_slice());
                let payload = compress(&text, &options).unwrap().unwrap();
                for wrong in [0, text.len() - 1, text.len() + 1, usize::MAX] {
                    assert!(
                        decompress(codec, &payload, wrong, &NoPglz).is_err(),
                        "{codec:?} of {wrong} bytes"
                    );
                }
            }
        }
    }
}
