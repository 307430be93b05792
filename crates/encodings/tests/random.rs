//! Any column comes back: generated values of every type of numbers, in any mixture, with any chunk size and
//! forced encoding.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use encodings::{Chunk, Codec, EncodeOptions, EncodingId, NoPglz, SharedColumn, encode_column};
use proptest::prelude::*;
use support::{build, check, rows};
use vector::{LogicalType, Vector};

/// Pieces of different character, so that blocks, runs and patches meet.
fn pieces() -> impl Strategy<Value = Vec<i64>> {
    let any = prop_oneof![Just(0i64), Just(i64::MIN), Just(i64::MAX), any::<i64>(), -300i64..300];
    let piece = prop_oneof![
        (any.clone(), 1usize..400).prop_map(|(value, len)| vec![value; len]),
        (any.clone(), -9i64..9, 1usize..400).prop_map(|(first, step, len)| (0..len as i64)
            .map(|i| first.wrapping_add(step.wrapping_mul(i)))
            .collect()),
        proptest::collection::vec(-1000i64..1000, 1..400),
        proptest::collection::vec(any, 1..200),
        (1i64..1_000_000, proptest::collection::vec(0i64..500, 1..300))
            .prop_map(|(factor, values)| values.into_iter().map(|v| v * factor).collect()),
    ];
    proptest::collection::vec(piece, 1..6).prop_map(|pieces| pieces.concat())
}

fn force() -> impl Strategy<Value = Option<EncodingId>> {
    proptest::option::of(proptest::sample::select(EncodingId::ALL.to_vec()))
}

fn nulls(column: Vector, seed: u64, share: u64) -> Vector {
    let bits = (0..column.len() as u64)
        .map(|row| (row.wrapping_add(seed)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 0xff >= share)
        .collect();
    Vector { validity: Some(bits), ..column }
}

fn column(kind: usize, values: &[i64]) -> Vector {
    let logical = [
        LogicalType::Int16,
        LogicalType::Int32,
        LogicalType::Int64,
        LogicalType::Float32,
        LogicalType::Float64,
        LogicalType::Bool,
        LogicalType::Numeric,
        LogicalType::Float64,
        LogicalType::Numeric,
    ][kind];
    build(logical, |b| {
        for (i, &v) in values.iter().enumerate() {
            match kind {
                0 => b.push_i16(v as i16),
                1 => b.push_i32(v as i32),
                2 => b.push_i64(v),
                3 => b.push_f32(f32::from_bits(v as u32)),
                4 => b.push_f64(f64::from_bits(v as u64)),
                5 => b.push_bool(v & 1 == 1),
                6 => b.push_numeric(v.into(), (i / 100 % 3) as u16, 5),
                7 => b.push_f64(v as f64 / 1000.0),
                _ if v % 61 == 0 => b.push_numeric_side(&v.to_le_bytes()),
                _ => b.push_numeric(
                    i128::from(v) * i128::from(v.rotate_left(20)),
                    2,
                    (v & 3).unsigned_abs() as u16 + 2,
                ),
            };
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn any_column_comes_back(
        kind in 0usize..9,
        values in pieces(),
        force in force(),
        chunk_rows in prop_oneof![1usize..50, Just(1024), 500usize..3000],
        share in prop_oneof![Just(0u64), Just(256), 1u64..255],
    ) {
        let column = nulls(column(kind, &values), values[0].unsigned_abs(), share);
        let short = column.slice(0, 40 * chunk_rows);
        check(&short, &EncodeOptions { chunk_rows, force, ..EncodeOptions::default() });
    }

    #[test]
    fn random_bytes_are_no_chunk(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0usize..9, rows in 0u32..3000) {
        let logical = column(kind, &[]).logical;
        let mut chunk = vec![1, 0];
        chunk.extend_from_slice(&bytes);
        let mut section = vec![1, 6, 0];
        section.extend_from_slice(&bytes);
        for shared in [&[][..], &section] {
            let Ok(shared) = SharedColumn::open(logical, shared, &NoPglz) else { continue };
            if let Ok(chunk) = Chunk::open(logical, rows, &chunk, &shared, &NoPglz)
                && let Ok(decoded) = chunk.decode()
            {
                prop_assert_eq!(decoded.len(), rows as usize);
            }
        }
    }
}

#[test]
fn codecs_change_bytes_but_not_values() {
    let values: Vec<i64> = (0..20_000).map(|i: i64| (i % 700).pow(3) % 9999 * 1_000_003).collect();
    let column = column(2, &values);
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd, Codec::Pglz] {
        let options = EncodeOptions { codec, ..EncodeOptions::default() };
        let encoded = encode_column(&column, &options).unwrap();
        let shared = SharedColumn::open(column.logical, &encoded.shared, &NoPglz).unwrap();
        let mut all = Vec::new();
        for chunk in &encoded.chunks {
            let opened = Chunk::open(column.logical, chunk.rows, &chunk.bytes, &shared, &NoPglz).unwrap();
            all.extend(rows(&opened.decode().unwrap()));
        }
        assert!(all == rows(&column), "{codec:?}");
    }
}
