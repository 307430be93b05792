//! The bytes of every encoding of numbers, kept for ever: a change by accident fails here, and old files must
//! stay readable.
//!
//! `UPDATE_GOLDEN=1 cargo test -p encodings --test golden` writes missing files; a file that exists is never
//! overwritten, since a format that was released is only ever added to.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::path::PathBuf;

use encodings::{Chunk, EncodeOptions, EncodedColumn, EncodingId, NoPglz, SharedColumn, encode_column};
use support::{build, rows};
use vector::{LogicalType, Vector};

fn noise(i: i64) -> i64 {
    let mut z = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 27)).cast_signed()
}

fn ints(logical: LogicalType, rows: i64, value: impl Fn(i64) -> i64) -> Vector {
    build(logical, |b| {
        for i in 0..rows {
            let value = value(i);
            match logical {
                LogicalType::Int16 => b.push_i16(value as i16),
                LogicalType::Int32 | LogicalType::Date => b.push_i32(value as i32),
                _ => b.push_i64(value),
            };
        }
    })
}

fn doubles(rows: i64, value: impl Fn(i64) -> f64) -> Vector {
    build(LogicalType::Float64, |b| {
        for i in 0..rows {
            b.push_f64(value(i));
        }
    })
}

fn singles(rows: i64, value: impl Fn(i64) -> f32) -> Vector {
    build(LogicalType::Float32, |b| {
        for i in 0..rows {
            b.push_f32(value(i));
        }
    })
}

/// Name, column, forced encoding, and the encoding that must come out.
fn cases() -> Vec<(&'static str, Vector, Option<EncodingId>, &'static str)> {
    use EncodingId as E;
    use LogicalType as L;
    let unit = |i: i64| (noise(i) as u64 >> 11) as f64 / (1u64 << 53) as f64;
    let with_nulls = |mut column: Vector, null: &dyn Fn(usize) -> bool| {
        column.validity = Some((0..column.len()).map(|row| !null(row)).collect());
        column
    };
    vec![
        ("int_plain", ints(L::Int64, 40, noise), Some(E::Plain), "plain"),
        ("int_constant", ints(L::Int16, 2000, |_| -7), None, "constant"),
        ("int_sequence", ints(L::Timestamp, 2000, |i| 9_000_000 - 30 * i), None, "sequence"),
        ("int_run_length", ints(L::Date, 1500, |i| noise(i / 150) % 3000), None, "run_length > plain"),
        ("int_bitpacked", ints(L::Int32, 1500, |i| noise(i) % 1000), None, "bitpacked"),
        (
            "int_bitpacked_patches",
            ints(L::Int64, 1100, |i| if i % 500 == 3 { i64::MIN + i } else { noise(i) & 7 }),
            Some(E::BitPacked),
            "bitpacked",
        ),
        ("int_bitpacked_wide", ints(L::Int64, 300, |i| noise(i) >> 15), None, "bitpacked"),
        ("int_bitpacked_short", ints(L::Int32, 100, |i| noise(i) % 100_000), None, "bitpacked"),
        ("int_delta", ints(L::Int64, 1500, |i| i * 1000 + noise(i) % 9), None, "delta"),
        (
            "int_levels",
            ints(L::Int32, 1500, |i| i64::from((noise(i) >> 8).trailing_zeros().min(9))),
            None,
            "levels",
        ),
        (
            "int_multiple",
            ints(L::Timestamp, 1200, |i| (noise(i) & 0xfff) * 86_400_000_000 + 5),
            None,
            "multiple > bitpacked",
        ),
        ("int_periodic", ints(L::Int32, 1200, |i| noise(i % 7) % 100), None, "periodic > plain"),
        (
            "int_dictionary",
            ints(L::Int64, 1500, |i| noise(noise(i) & 7)),
            Some(E::Dictionary),
            "dictionary > bitpacked",
        ),
        (
            "int_nulls",
            with_nulls(ints(L::Int32, 1000, |i| noise(i) % 9000), &|row| row % 3 == 1),
            None,
            "bitpacked",
        ),
        (
            "int_null_runs",
            with_nulls(ints(L::Int32, 1000, |i| noise(i) % 9000), &|row| row > 200),
            None,
            "run_length > plain",
        ),
        ("int_all_null", with_nulls(ints(L::Int32, 300, |_| 1), &|_| true), None, "null"),
        (
            "bool_plain",
            build(L::Bool, |b| {
                (0..200).for_each(|i| {
                    b.push_bool(noise(i) & 1 == 1);
                })
            }),
            None,
            "plain",
        ),
        (
            "bool_runs",
            build(L::Bool, |b| {
                (0..900).for_each(|i| {
                    b.push_bool(i > 333);
                })
            }),
            None,
            "run_length > plain",
        ),
        ("float_plain", doubles(30, |i| f64::from_bits(noise(i) as u64)), Some(E::Plain), "plain"),
        ("float_constant", doubles(30, |_| -0.0), None, "constant"),
        ("float_runs", singles(600, |i| f32::from_bits(noise(i / 100) as u32)), None, "run_length > plain"),
        (
            "float_alp",
            doubles(1100, |i| if i % 400 == 9 { f64::NAN } else { (noise(i) % 10_000) as f64 / 100.0 }),
            None,
            "alp > bitpacked",
        ),
        ("float_alp_single", singles(500, |i| (noise(i) % 500) as f32 / 10.0), None, "alp > bitpacked"),
        ("float_alp_rd", doubles(1100, |i| unit(i) * 999.99), None, "alp_rd > levels, bitpacked"),
        ("float_alp_rd_single", singles(1100, |i| unit(i) as f32), None, "alp_rd > levels, bitpacked"),
        (
            "float_dictionary",
            doubles(1000, |i| f64::from_bits(noise(noise(i) & 3) as u64)),
            Some(E::Dictionary),
            "dictionary > bitpacked",
        ),
        (
            "numeric",
            build(L::Numeric, |b| {
                (0..500).for_each(|i| {
                    b.push_numeric((noise(i) % 1_000_000).into(), 4, 4);
                })
            }),
            None,
            "numeric > bitpacked",
        ),
        (
            "numeric_scales_and_side",
            build(L::Numeric, |b| {
                (0..60).for_each(|i| {
                    match i % 20 {
                        19 => b.push_numeric_side(b"NaN"),
                        _ => b.push_numeric(i.into(), (i % 3) as u16, 3 + (i % 2) as u16),
                    };
                })
            }),
            None,
            "numeric > bitpacked",
        ),
        (
            "numeric_wide_base",
            build(L::Numeric, |b| {
                (0..200).for_each(|i| {
                    b.push_numeric(10i128.pow(30) + i128::from(noise(i) % 1000), 2, 2);
                })
            }),
            None,
            "numeric > wide > bitpacked",
        ),
        (
            "numeric_wide_halves",
            build(L::Numeric, |b| {
                (0..80).for_each(|i| {
                    b.push_numeric(i128::from(noise(i)) * i128::from(noise(i + 99) >> 8), 2, 2);
                })
            }),
            None,
            "numeric > wide > bitpacked, plain",
        ),
    ]
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.bin"))
}

/// Length of the shared section (4 bytes), the section, and the bytes of the only chunk.
fn file(encoded: &EncodedColumn) -> Vec<u8> {
    assert_eq!(encoded.chunks.len(), 1);
    let mut bytes = u32::try_from(encoded.shared.len()).unwrap().to_le_bytes().to_vec();
    bytes.extend_from_slice(&encoded.shared);
    bytes.extend_from_slice(&encoded.chunks[0].bytes);
    bytes
}

#[test]
fn bytes_stay_what_they_were() {
    let mut surprises = Vec::new();
    for (name, column, force, encoding) in cases() {
        let encoded = encode_column(&column, &EncodeOptions { force, ..EncodeOptions::default() }).unwrap();
        if encoded.chunks[0].encoding != encoding {
            surprises.push(format!("{name}: {} instead of {encoding}", encoded.chunks[0].encoding));
            continue;
        }
        let bytes = file(&encoded);
        let path = path(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() && !path.exists() {
            std::fs::write(&path, &bytes).unwrap();
        }
        let kept = std::fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        if bytes != kept {
            surprises.push(format!("{name}: the bytes changed"));
        }
    }
    assert!(surprises.is_empty(), "{surprises:#?}");
}

#[test]
fn kept_bytes_are_read() {
    for (name, column, _, _) in cases() {
        let kept = std::fs::read(path(name)).unwrap();
        let (length, rest) = kept.split_first_chunk::<4>().unwrap();
        let (shared, chunk) = rest.split_at(u32::from_le_bytes(*length) as usize);
        let shared = SharedColumn::open(column.logical, shared, &NoPglz).unwrap();
        let chunk = Chunk::open(column.logical, column.len() as u32, chunk, &shared, &NoPglz).unwrap();
        assert!(rows(&chunk.decode().unwrap()) == rows(&column), "{name}");
    }
}
