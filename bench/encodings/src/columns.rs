//! Real columns: read what bench/encodings.py wrote, encode in stripes of the default size, decode chunk by
//! chunk.
//!
//! DIR/manifest has one line a column: name, kind, rows, file. Kinds: int16, int32, int64, date, timestamp,
//! float32, float64 (little-endian values), bool (a byte a value), numeric:SCALE (16 bytes a value), text and
//! bytes (rows + 1 offsets of 4 bytes, then the bytes).

use std::fs;
use std::hint::black_box;
use std::path::Path;

use encodings::{Chunk, Codec, EncodeOptions, EncodedColumn, NoPglz, SharedColumn, encode_column};
use vector::{Bitmap, ByteViews, DisplayScales, LogicalType, NumericInts, NumericValues, Values, Vector};

use crate::timing::{best, now};

/// Default `stripe_row_limit` and `chunk_group_row_limit`.
const STRIPE_ROWS: usize = 150_000;
const CHUNK_ROWS: usize = 10_000;

/// Measures every column of the folder.
pub fn run(folder: &str, codec: &str) -> Result<(), String> {
    let codec = match codec {
        "none" => Codec::None,
        "lz4" => Codec::Lz4,
        "zstd" => Codec::Zstd,
        other => return Err(format!("codec {other}")),
    };
    let manifest = fs::read_to_string(Path::new(folder).join("manifest")).map_err(|e| e.to_string())?;
    for line in manifest.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[name, kind, rows, file] = fields.as_slice() else {
            return Err(format!("manifest line {line}"));
        };
        let rows: usize = rows.parse().map_err(|_| format!("rows of {line}"))?;
        let bytes = fs::read(Path::new(folder).join(file)).map_err(|e| e.to_string())?;
        let vector = read(kind, rows, bytes)?;
        measure(name, &vector, codec).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

fn measure(name: &str, vector: &Vector, codec: Codec) -> Result<(), String> {
    let text = |error: vector::Error| error.to_string();
    let options = EncodeOptions { chunk_rows: CHUNK_ROWS, codec, level: 3, ..Default::default() };
    let rows = vector.len();
    let stripes: Vec<Vector> =
        (0..rows).step_by(STRIPE_ROWS).map(|start| vector.slice(start, STRIPE_ROWS)).collect();
    let start = now();
    let mut encoded: Vec<EncodedColumn> = Vec::new();
    for stripe in &stripes {
        encoded.push(encode_column(stripe, &options).map_err(text)?);
    }
    let encode = now() - start;
    let stored: usize =
        encoded.iter().map(|c| c.shared.len() + c.chunks.iter().map(|k| k.bytes.len()).sum::<usize>()).sum();
    for (stripe, column) in stripes.iter().zip(&encoded) {
        check(stripe, column)?;
    }
    let decode = |flat: bool| {
        best(5, || {
            for column in &encoded {
                let Ok(shared) = SharedColumn::open(vector.logical, &column.shared, &NoPglz) else { return };
                for chunk in &column.chunks {
                    let opened = Chunk::open(vector.logical, chunk.rows, &chunk.bytes, &shared, &NoPglz);
                    let Ok(decoded) = opened.and_then(|chunk| chunk.decode()) else { return };
                    black_box(if flat { decoded.flatten() } else { decoded });
                }
            }
        })
    };
    let (flat, coded) = (decode(true), decode(false));
    let mut names: Vec<&str> = encoded.iter().flat_map(|c| &c.chunks).map(|c| c.encoding.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    println!("{name}\t{stored}\t{flat:.9}\t{coded:.9}\t{encode:.9}\t{}", names.join(" | "));
    Ok(())
}

/// A figure for a wrong answer would be worth nothing.
fn check(stripe: &Vector, column: &EncodedColumn) -> Result<(), String> {
    let text = |error: vector::Error| error.to_string();
    let shared = SharedColumn::open(stripe.logical, &column.shared, &NoPglz).map_err(text)?;
    let mut first = 0;
    for chunk in &column.chunks {
        let opened = Chunk::open(stripe.logical, chunk.rows, &chunk.bytes, &shared, &NoPglz).map_err(text)?;
        let got = opened.decode().map_err(text)?.flatten();
        let wanted = stripe.slice(first, chunk.rows as usize);
        first += chunk.rows as usize;
        let same = match (&got.values, &wanted.values) {
            // Floats by their bits, decimals whatever their width.
            (Values::Float64(a), Values::Float64(b)) => {
                a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
            }
            (Values::Float32(a), Values::Float32(b)) => {
                a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
            }
            (Values::Numeric(a), Values::Numeric(b)) => {
                a.scale == b.scale && (0..b.len()).all(|i| a.ints.get(i) == b.ints.get(i))
            }
            (a, b) => a == b,
        };
        if !same || got.len() != wanted.len() {
            return Err(format!("rows from {first} on come back changed ({})", chunk.encoding));
        }
    }
    Ok(())
}

fn read(kind: &str, rows: usize, bytes: Vec<u8>) -> Result<Vector, String> {
    fn items<const N: usize, T>(bytes: &[u8], make: impl Fn([u8; N]) -> T) -> Vec<T> {
        bytes.chunks_exact(N).filter_map(|item| item.try_into().ok()).map(make).collect()
    }
    let (logical, values) = match kind.split_once(':').unwrap_or((kind, "")) {
        ("int16", _) => (LogicalType::Int16, Values::Int16(items(&bytes, i16::from_le_bytes))),
        ("int32", _) => (LogicalType::Int32, Values::Int32(items(&bytes, i32::from_le_bytes))),
        ("date", _) => (LogicalType::Date, Values::Int32(items(&bytes, i32::from_le_bytes))),
        ("int64", _) => (LogicalType::Int64, Values::Int64(items(&bytes, i64::from_le_bytes))),
        ("timestamp", _) => (LogicalType::Timestamp, Values::Int64(items(&bytes, i64::from_le_bytes))),
        ("float32", _) => (LogicalType::Float32, Values::Float32(items(&bytes, f32::from_le_bytes))),
        ("float64", _) => (LogicalType::Float64, Values::Float64(items(&bytes, f64::from_le_bytes))),
        ("bool", _) => {
            (LogicalType::Bool, Values::Bool(bytes.iter().map(|&byte| byte != 0).collect::<Bitmap>()))
        }
        ("numeric", scale) => {
            let scale: u16 = scale.parse().map_err(|_| format!("scale of {kind}"))?;
            let ints = NumericInts::Int128(items(&bytes, i128::from_le_bytes)).narrowed();
            let display = DisplayScales::Constant(scale);
            (LogicalType::Numeric, Values::Numeric(NumericValues { ints, scale, display, side: Vec::new() }))
        }
        ("text" | "bytes", _) => {
            let logical = if kind == "text" { LogicalType::Text } else { LogicalType::Bytes };
            let split = (rows + 1) * 4;
            let Some((offsets, data)) = bytes.split_at_checked(split) else {
                return Err("text cut short".to_string());
            };
            let offsets = items(offsets, u32::from_le_bytes);
            let views = ByteViews::from_offsets(&offsets, data.to_vec()).ok_or("offsets of text")?;
            (logical, Values::Bytes(views))
        }
        _ => return Err(format!("kind {kind}")),
    };
    let vector = Vector::new(logical, values);
    if vector.len() == rows { Ok(vector) } else { Err(format!("{} of {rows} rows of {kind}", vector.len())) }
}
