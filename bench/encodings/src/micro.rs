//! Each encoding on data that suits it, beside a memcpy of the same Arrow bytes in the same run: 150,000
//! values in chunks of 10,000, forced into that encoding.

use std::hint::black_box;

use encodings::{Chunk, Codec, EncodeOptions, EncodingId, NoPglz, SharedColumn, encode_column};
use vector::{LogicalType, Vector, VectorBuilder};

use crate::timing::{best, gigabytes};

const ROWS: usize = 150_000;
const CHUNK_ROWS: usize = 10_000;

/// SplitMix64, so that every run sees the same values.
fn random(row: usize) -> u64 {
    let mut mixed = (row as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

struct Case {
    encoding: EncodingId,
    data: &'static str,
    codec: Codec,
    column: Vector,
    /// Bytes of the plain Arrow array.
    plain: usize,
}

fn ints(encoding: EncodingId, data: &'static str, value: impl Fn(usize) -> i64) -> Case {
    let mut builder = VectorBuilder::new(LogicalType::Int64);
    (0..ROWS).for_each(|row| _ = builder.push_i64(value(row)));
    case(encoding, data, builder, ROWS * 8)
}

fn small_ints(encoding: EncodingId, data: &'static str, value: impl Fn(usize) -> i32) -> Case {
    let mut builder = VectorBuilder::new(LogicalType::Int32);
    (0..ROWS).for_each(|row| _ = builder.push_i32(value(row)));
    case(encoding, data, builder, ROWS * 4)
}

fn floats(encoding: EncodingId, data: &'static str, value: impl Fn(usize) -> f64) -> Case {
    let mut builder = VectorBuilder::new(LogicalType::Float64);
    (0..ROWS).for_each(|row| _ = builder.push_f64(value(row)));
    case(encoding, data, builder, ROWS * 8)
}

fn decimals(encoding: EncodingId, data: &'static str, value: impl Fn(usize) -> i128) -> Case {
    let mut builder = VectorBuilder::new(LogicalType::Numeric);
    (0..ROWS).for_each(|row| _ = builder.push_numeric(value(row), 2, 2));
    case(encoding, data, builder, ROWS * 16)
}

fn texts(encoding: EncodingId, data: &'static str, value: impl Fn(usize) -> String) -> Case {
    let mut builder = VectorBuilder::new(LogicalType::Text);
    let mut bytes = 0;
    for row in 0..ROWS {
        let value = value(row);
        bytes += value.len();
        builder.push_bytes(value.as_bytes());
    }
    case(encoding, data, builder, bytes + ROWS * 4)
}

fn case(encoding: EncodingId, data: &'static str, builder: VectorBuilder, plain: usize) -> Case {
    Case { encoding, data, codec: Codec::None, column: builder.finish(&|_, _, _| Box::default()), plain }
}

const WORDS: [&str; 8] = ["carefully", "final", "deposits", "sleep", "furiously", "above", "the", "ironic"];

fn sentence(row: usize) -> String {
    (0..6).map(|i| WORDS[(random(row * 7 + i) % 8) as usize]).collect::<Vec<_>>().join(" ")
}

fn json(row: usize) -> String {
    let (a, b) = (random(row) % 5, random(row + ROWS) % 50_000);
    format!(
        "{{\"os\": \"os{a}\", \"revenue\": {}.{:02}, \"premium\": {}}}",
        b / 100,
        b % 100,
        row.is_multiple_of(7)
    )
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
fn cases() -> Vec<Case> {
    use EncodingId as E;
    let high = |row: usize| (random(row) >> 11) as f64 / (1u64 << 53) as f64;
    let mut cases = vec![
        ints(E::Plain, "int64, any", |row| random(row) as i64),
        ints(E::Constant, "int64, one value", |_| 7),
        ints(E::Sequence, "int64, counting", |row| row as i64 * 3),
        ints(E::RunLength, "int64, runs of 50", |row| random(row / 50) as i64),
        small_ints(E::BitPacked, "int32, 7 bits", |row| (random(row) % 100) as i32),
        small_ints(E::BitPacked, "int32, 15 bits", |row| (random(row) % 30_000) as i32),
        ints(E::BitPacked, "int64, 20 bits", |row| (random(row) % 1_000_000) as i64),
        ints(E::BitPacked, "int64, 20 bits, outliers", |row| {
            if random(row).is_multiple_of(97) {
                random(row + 5) as i64
            } else {
                (random(row) % 1_000_000) as i64
            }
        }),
        ints(E::Delta, "int64, ascending", |row| row as i64 * 1000 + (random(row) % 1000) as i64),
        ints(E::Periodic, "int64, period 100", |row| (row % 100) as i64 * 17),
        small_ints(E::Levels, "int32, 4 uneven values", |row| {
            (random(row).trailing_zeros() / 2).min(3) as i32
        }),
        ints(E::Dictionary, "int64, 200 values", |row| random((random(row) % 200) as usize) as i64),
        texts(E::Dictionary, "text, 5 values", |row| WORDS[(random(row) % 5) as usize].to_string()),
        texts(E::Dictionary, "text, 5,000 values", |row| format!("/page/{}", random(row) % 5000)),
        floats(E::Plain, "float64, any", |row| f64::from_bits(random(row))),
        floats(E::Alp, "float64, 2 decimals", |row| (random(row) % 100_000) as f64 / 100.0),
        floats(E::AlpRd, "float64, random in 0..1", high),
        decimals(E::Numeric, "numeric(15,2)", |row| i128::from(random(row) % 10_000_000)),
        texts(E::Plain, "text, sentences", sentence),
        texts(E::Fsst, "text, sentences", sentence),
        texts(E::Hex, "text, md5", |row| format!("{:016x}{:016x}", random(row), random(row + ROWS))),
        texts(E::UuidText, "text, uuids", |row| {
            let hex = format!("{:016x}{:016x}", random(row), random(row + ROWS));
            format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
        }),
        texts(E::Digits, "text, numbers", |row| (random(row) % 1_000_000).to_string()),
        texts(E::Template, "text, JSON", json),
    ];
    for codec in [Codec::Lz4, Codec::Zstd] {
        cases.push(Case { codec, ..texts(E::Blocks, "text, sentences", sentence) });
    }
    cases
}

/// Prints one line a case.
pub fn run() -> Result<(), String> {
    println!(
        "{ROWS} values in chunks of {CHUNK_ROWS}; GB/s of plain Arrow bytes; flat: constants, codes and runs expanded; us a row: open a chunk and take one"
    );
    println!(
        "{:<13}{:<26}{:>7}{:>9}{:>9}{:>9}{:>9}{:>8}{:>10}   stored as",
        "encoding", "data", "ratio", "encode", "decode", "flat", "memcpy", "flat/mc", "us a row"
    );
    for case in cases() {
        let data = if case.codec == Codec::None {
            case.data.to_string()
        } else {
            format!("{}, {}", case.data, case.codec.name())
        };
        match measure(&case) {
            Ok(figures) => println!("{:<13}{data:<26}{figures}", case.encoding.name()),
            Err(error) => println!("{:<13}{data:<26}      - {error}", case.encoding.name()),
        }
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss)]
fn measure(case: &Case) -> vector::Result<String> {
    let logical = case.column.logical;
    let options = EncodeOptions {
        chunk_rows: CHUNK_ROWS,
        force: Some(case.encoding),
        codec: case.codec,
        ..Default::default()
    };
    let encoded = encode_column(&case.column, &options)?;
    let used = encoded.chunks.first().map_or(String::new(), |chunk| chunk.encoding.clone());
    let stored = encoded.shared.len() + encoded.chunks.iter().map(|chunk| chunk.bytes.len()).sum::<usize>();
    let encode = best(3, || _ = black_box(encode_column(&case.column, &options)));
    let shared = SharedColumn::open(logical, &encoded.shared, &NoPglz)?;
    let decode = |flat: bool| {
        best(20, || {
            for chunk in &encoded.chunks {
                let opened = Chunk::open(logical, chunk.rows, &chunk.bytes, &shared, &NoPglz);
                let Ok(decoded) = opened.and_then(|chunk| chunk.decode()) else { return };
                black_box(if flat { decoded.flatten() } else { decoded });
            }
        })
    };
    let (coded, flat) = (decode(false), decode(true));
    // A point look-up: open the chunk, take one row.
    let mut row = 0u32;
    let take = best(100, || {
        if let Some(chunk) = encoded.chunks.first()
            && let Ok(opened) = Chunk::open(logical, chunk.rows, &chunk.bytes, &shared, &NoPglz)
        {
            row = (row + 3571) % chunk.rows;
            _ = black_box(opened.take(&[row]));
        }
    });
    // The copy goes chunk by chunk into memory already touched, which is the best that memory allows.
    let source = vec![1u8; case.plain];
    let mut target = vec![0u8; case.plain];
    let piece = case.plain.div_ceil(ROWS / CHUNK_ROWS);
    let copy = best(20, || {
        for (from, to) in source.chunks(piece).zip(target.chunks_mut(piece)) {
            black_box(to).copy_from_slice(black_box(from));
        }
    });
    let speed = |seconds| gigabytes(case.plain, seconds);
    Ok(format!(
        "{:>7.2}{:>9.2}{:>9.2}{:>9.2}{:>9.2}{:>8.2}{:>10.2}   {used}",
        case.plain as f64 / stored.max(1) as f64,
        speed(encode),
        speed(coded),
        speed(flat),
        speed(copy),
        copy / flat,
        take * 1e6
    ))
}
