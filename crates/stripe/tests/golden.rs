//! Stripes written by earlier builds stay readable: every file below tests/golden is read and compared with
//! the rows it was written from. COLONNADE_ACCEPT=NAME writes tests/golden/NAME.stripe with this build; a
//! released file is never written again.
//!
//! A file: footer offset (8 bytes), summary length (4 bytes), summary, stripe. Its rows come from `columns`
//! below, which must not change: another set of rows gets another function and another prefix of names.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_possible_wrap)]

mod support;

use std::path::PathBuf;

use encodings::{Codec, NoPglz};
use stripe::{Layout, StripeOptions, StripeReader, Summary, write_stripe};
use support::{TYPES, assert_same};
use vector::{LogicalType, Vector, VectorBuilder};

const ROWS: u32 = 200;
/// The types that there were when the first files were written.
const OLDEST: usize = 15;

/// Numbers of six kinds: one value, few, ascending, runs, small, any.
fn number(kind: usize, row: usize) -> i64 {
    let mixed = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) ^ (row as u64);
    match kind {
        0 => -7,
        1 => (mixed % 4) as i64,
        2 => 1000 + row as i64 * 60,
        3 => (row / 29) as i64 * 1_000_003,
        4 => (mixed % 5000) as i64 - 2500,
        _ => mixed as i64,
    }
}

fn text(kind: usize, row: usize, number: i64) -> String {
    match kind {
        0 => "one and the same".to_string(),
        1 => ["click", "view", "", "a longer word of a dictionary"][number as usize].to_string(),
        2 => format!("/page/{number}"),
        3 => format!("{:016x}{:016x}", number as u64, (number as u64).wrapping_mul(77)),
        4 => format!("{{\"os\": \"linux\", \"id\": {number}, \"ok\": {}}}", row.is_multiple_of(2)),
        _ => {
            let high = number as u64;
            format!("{:08x}-1234-4abc-8def-{:012x}", high >> 32, high & 0xffff_ffff_ffff)
        }
    }
}

/// Every type in every kind, every third column with NULLs.
fn columns(types: &[LogicalType]) -> Vec<Vector> {
    let mut columns = Vec::new();
    for &logical in types {
        for kind in 0..6 {
            let nulls = columns.len().is_multiple_of(3);
            let mut builder = VectorBuilder::new(logical);
            for row in 0..ROWS as usize {
                if nulls && row % 11 == 4 {
                    builder.push_null();
                    continue;
                }
                let number = number(kind, row);
                let float = if kind == 5 { number as f64 / 3e7 } else { number as f64 / 100.0 };
                let pushed = match logical {
                    LogicalType::Bool => builder.push_bool(number % 2 != 0),
                    LogicalType::Int16 => builder.push_i16(number as i16),
                    LogicalType::Int32 | LogicalType::Date => builder.push_i32(number as i32),
                    LogicalType::Int64 | LogicalType::Timestamp | LogicalType::UInt64 => {
                        builder.push_i64(number)
                    }
                    LogicalType::Float32 => builder.push_f32(float as f32),
                    LogicalType::Float64 if row == 50 => builder.push_f64(f64::NAN),
                    LogicalType::Float64 => builder.push_f64(float),
                    LogicalType::Numeric if row == 60 => builder.push_numeric_side(b"NaN"),
                    LogicalType::Numeric if kind == 5 => {
                        builder.push_numeric(i128::from(number) * 1_000_000_007, 4, 4)
                    }
                    LogicalType::Numeric => {
                        builder.push_numeric(i128::from(number), 2, 2 + (kind == 1) as u16)
                    }
                    LogicalType::Text | LogicalType::Bytes => {
                        builder.push_bytes(text(kind, row, number).as_bytes())
                    }
                    LogicalType::Uuid => builder.push_bytes(&i128::from(number).to_be_bytes()),
                    LogicalType::FixedBytes(width) => {
                        let bytes: Vec<u8> =
                            number.to_le_bytes().into_iter().cycle().take(usize::from(width)).collect();
                        builder.push_bytes(&bytes)
                    }
                };
                assert!(pushed);
            }
            columns.push(builder.finish(&|_, _, _| Box::default()));
        }
    }
    columns
}

/// The types in a file of this name: files with row blocks are younger than all sixteen.
fn types(name: &str) -> &'static [LogicalType] {
    &TYPES[..if name.starts_with("blocks") { 16 } else { OLDEST }]
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join("golden")
}

fn write(name: &str) {
    let codec = match name.rsplit('-').next() {
        Some("lz4") => Codec::Lz4,
        Some("zstd") => Codec::Zstd,
        _ => Codec::None,
    };
    let layout = if name.starts_with("blocks") { Layout::Blocks } else { Layout::Columns };
    let options =
        StripeOptions { layout, chunk_rows: 128, codec, bloom_columns: &[20, 62], ..Default::default() };
    let stripe = write_stripe(ROWS, &columns(types(name)), &options).unwrap();
    let mut bytes = stripe.footer_offset.to_le_bytes().to_vec();
    bytes.extend_from_slice(&(stripe.summary.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&stripe.summary);
    bytes.extend_from_slice(&stripe.bytes);
    std::fs::create_dir_all(folder()).unwrap();
    std::fs::write(folder().join(format!("{name}.stripe")), bytes).unwrap();
}

#[test]
fn stripes_of_earlier_builds() {
    if let Ok(name) = std::env::var("COLONNADE_ACCEPT") {
        write(&name);
    }
    let mut layouts = [0; 2];
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let wanted = columns(types(path.file_stem().unwrap().to_str().unwrap()));
        let bytes = std::fs::read(&path).unwrap();
        let (offset, rest) = bytes.split_first_chunk::<8>().unwrap();
        let (length, rest) = rest.split_first_chunk::<4>().unwrap();
        let (summary, stripe) = rest.split_at(u32::from_le_bytes(*length) as usize);
        let reader = StripeReader::open(&stripe[u64::from_le_bytes(*offset) as usize..]).unwrap();
        let summary = Summary::open(summary).unwrap();
        assert_eq!((reader.row_count(), reader.column_count()), (ROWS, wanted.len()));
        for (index, column) in wanted.iter().enumerate() {
            let what = format!("{}, column {index} {:?}", path.display(), column.logical);
            for chunk in 0..reader.chunk_count() {
                let within = reader.chunk_rows(chunk);
                let got = reader.read_chunk(index, chunk, &stripe, &NoPglz).unwrap().decode(&NoPglz).unwrap();
                assert_same(&got, &column.slice(within.start as usize, within.len()), &what);
                assert_eq!(
                    reader.bloom(index, chunk, &stripe).unwrap().is_some(),
                    [20, 62].contains(&index),
                    "{what}"
                );
            }
            if reader.layout() == Layout::Blocks {
                check_rows_alone(&reader, index, column, &stripe, &what);
            }
            let (logical, statistics) = summary.column(index).unwrap().unwrap();
            assert_eq!(
                (logical, statistics.null_count as usize),
                (column.logical, column.null_count()),
                "{what}"
            );
        }
        layouts[usize::from(reader.layout() == Layout::Blocks)] += 1;
    }
    assert!(layouts.iter().all(|&files| files > 0), "files of each layout: {layouts:?}");
}

/// Each row from its block alone.
fn check_rows_alone(reader: &StripeReader, index: usize, column: &Vector, stripe: &&[u8], what: &str) {
    for row in 0..ROWS {
        let (number, within) = reader.unit_of(row);
        let block = reader.read_block(number, stripe).unwrap();
        let chunk = reader.open_in_block(&block, index, stripe, &NoPglz).unwrap();
        let got = chunk.take(&[row - within.start]).unwrap();
        assert_same(&got, &column.slice(row as usize, 1), what);
    }
}
