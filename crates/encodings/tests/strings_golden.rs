//! Bytes that earlier builds wrote stay readable, and change only on purpose: every file below
//! tests/golden_strings/ is read and compared with the values it was made from, and (where no library of
//! others decides the bytes) encoded again and compared byte by byte. COLONNADE_ACCEPT=NAME writes the file
//! NAME with this build; a released file is never written again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::PathBuf;

use encodings::{
    Chunk, Codec, EncodeOptions, EncodedColumn, EncodingId, NoPglz, SharedColumn, encode_column,
};
use support::{build, check, check_corruption, rows};
use vector::{LogicalType, Vector};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join("golden_strings").join(name)
}

/// Pieces with their length (four bytes) before them.
fn pieces(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (piece, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        pieces.push(piece.to_vec());
        rest = after;
    }
    pieces
}

fn joined(column: &EncodedColumn) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in std::iter::once(&column.shared).chain(column.chunks.iter().map(|chunk| &chunk.bytes)) {
        out.extend_from_slice(&(piece.len() as u32).to_le_bytes());
        out.extend_from_slice(piece);
    }
    out
}

fn text(value: impl Fn(u64) -> String) -> Vector {
    build(LogicalType::Text, |b| (0..60u64).for_each(|i| assert!(b.push_bytes(value(i).as_bytes()))))
}

/// jsonb values as PostgreSQL 15 stored them: documents of one shape, scalars, arrays, nesting, over 32 keys,
/// odd numerics.
fn server_values() -> Vector {
    let values = pieces(&std::fs::read(golden("jsonb-postgresql-15.values")).unwrap());
    assert!(values.len() > 150);
    build(LogicalType::Bytes, |b| values.iter().for_each(|value| assert!(b.push_bytes(value))))
}

/// Name, values, encoding, codec, and whether the bytes are ours alone.
fn cases() -> Vec<(&'static str, Vector, EncodingId, Codec, bool)> {
    use EncodingId::{Blocks, Dictionary, Digits, Fsst, Hex, Plain, Template, UuidText};
    let mixed = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let prose = |i: u64| {
        let words = ["carefully", "final", "deposits", "sleep", "among the", "requests"];
        (0..i % 7).map(|w| words[(mixed(i) >> (w * 5)) as usize % 6]).collect::<Vec<_>>().join(" ")
    };
    let uuid = |i: u64| {
        let hex = format!("{:016x}{:016x}", mixed(i), mixed(i + 100));
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    };
    vec![
        ("strings-1-plain", text(prose), Plain, Codec::None, true),
        // Entries in the order of first appearance, as before 0.2; then by their bytes.
        ("strings-1-dictionary", text(|i| format!("value {}", mixed(i) % 7)), Dictionary, Codec::None, false),
        ("strings-2-dictionary", text(|i| format!("value {}", mixed(i) % 7)), Dictionary, Codec::None, true),
        ("strings-1-hex", text(|i| format!("{:016x}", mixed(i))), Hex, Codec::None, true),
        (
            "strings-1-hex-lengths",
            text(|i| format!("{:016X}", mixed(i))[..2 * (i as usize % 9)].into()),
            Hex,
            Codec::None,
            true,
        ),
        ("strings-1-uuid-text", text(uuid), UuidText, Codec::None, true),
        (
            "strings-1-digits",
            text(|i| format!("Order#{:06}", mixed(i) % 1_000_000)),
            Digits,
            Codec::None,
            true,
        ),
        ("strings-1-fsst", text(prose), Fsst, Codec::None, false),
        ("strings-1-blocks-lz4", text(prose), Blocks, Codec::Lz4, false),
        ("strings-1-blocks-zstd", text(prose), Blocks, Codec::Zstd, false),
        ("strings-1-template", server_values(), Template, Codec::None, false),
        ("strings-2-template", server_values(), Template, Codec::None, true),
    ]
}

#[test]
fn earlier_bytes_are_read_and_written() {
    let accept = std::env::var("COLONNADE_ACCEPT").unwrap_or_default();
    for (name, column, force, codec, ours) in cases() {
        let options = EncodeOptions { force: Some(force), codec, chunk_rows: 40, ..EncodeOptions::default() };
        let encoded = check(&column, &options);
        assert!(
            encoded.chunks[0].encoding.starts_with(force.name()),
            "{name}: {}",
            encoded.chunks[0].encoding
        );
        let path = golden(&format!("{name}.bin"));
        if accept == name || accept == "strings-1" {
            std::fs::write(&path, joined(&encoded)).unwrap();
        }
        let stored = std::fs::read(&path).unwrap();
        assert!(!ours || stored == joined(&encoded), "{name}: the bytes changed");
        let pieces = pieces(&stored);
        let shared = SharedColumn::open(column.logical, &pieces[0], &NoPglz).unwrap();
        let mut start = 0;
        for bytes in &pieces[1..] {
            let want = column.slice(start, 40);
            let chunk = Chunk::open(column.logical, want.len() as u32, bytes, &shared, &NoPglz).unwrap();
            assert!(rows(&chunk.decode().unwrap()) == rows(&want), "{name}: {start}");
            assert_eq!(chunk.codecs().unwrap().contains(&codec), codec != Codec::None, "{name}: {start}");
            start += want.len();
        }
        assert_eq!(start, column.len(), "{name}");
    }
}

#[test]
fn what_the_server_stores_is_shredded() {
    let column = server_values();
    let options = EncodeOptions { force: Some(EncodingId::Template), ..EncodeOptions::default() };
    let encoded = encode_column(&column, &options).unwrap();
    let bytes: usize = encoded.chunks.iter().map(|chunk| chunk.bytes.len()).sum();
    let plain: usize = rows(&column).iter().flatten().map(Vec::len).sum();
    // Kept whole, the values would take more than half of their bytes.
    assert!(bytes * 6 < plain, "{bytes} of {plain}");
}

#[test]
fn bad_bytes_of_server_values() {
    let column = server_values().slice(100, 12);
    let options = EncodeOptions { force: Some(EncodingId::Template), ..EncodeOptions::default() };
    check_corruption(&column, &options);
}

mod properties {
    use super::*;
    use proptest::prelude::*;
    use support::jsonb::{Json, jsonb};

    const KEYS: [&str; 6] = ["a", "b", "key", "longer key", "z", "é"];

    fn json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(()).prop_map(|()| Json::Null),
            any::<bool>().prop_map(Json::Bool),
            (-9_000_000_000_000_000i64..9_000_000_000_000_000, 0u8..20).prop_map(|(n, s)| Json::Number(n, s)),
            (-2000i64..2000, 0u8..3).prop_map(|(n, s)| Json::Number(n, s)),
            proptest::collection::vec(any::<u8>(), 0..20).prop_map(Json::Text),
            proptest::collection::vec(any::<u8>(), 2..9).prop_map(Json::Raw),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Json::Array),
                (proptest::collection::vec(inner, 0..6), 0usize..6).prop_map(|(values, first)| {
                    let key = |k: usize| KEYS[(first + k) % KEYS.len()];
                    Json::Object(values.into_iter().enumerate().map(|(k, v)| (key(k), v)).collect())
                }),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_documents_come_back(documents in proptest::collection::vec(json(), 1..30), repeat in 1usize..4) {
            let values: Vec<Vec<u8>> = documents.iter().map(jsonb).collect();
            let column = build(LogicalType::Bytes, |b| {
                for _ in 0..repeat {
                    values.iter().for_each(|value| assert!(b.push_bytes(value)));
                }
            });
            let options = EncodeOptions { force: Some(EncodingId::Template), chunk_rows: 16, ..EncodeOptions::default() };
            check(&column, &options);
        }

        #[test]
        fn any_strings_come_back(
            values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..60),
            force in proptest::sample::select(EncodingId::ALL.to_vec()),
        ) {
            let column = build(LogicalType::Bytes, |b| values.iter().for_each(|value| assert!(b.push_bytes(value))));
            check(&column, &EncodeOptions { force: Some(force), codec: Codec::Lz4, chunk_rows: 25, ..EncodeOptions::default() });
        }

        #[test]
        fn any_digits_and_hex_come_back(
            values in proptest::collection::vec("[a-c]{0,2}[0-9a-f]{0,24}", 1..60),
            force in proptest::sample::select(vec![EncodingId::Digits, EncodingId::Hex, EncodingId::Fsst]),
        ) {
            let column = build(LogicalType::Text, |b| values.iter().for_each(|value| assert!(b.push_bytes(value.as_bytes()))));
            check(&column, &EncodeOptions { force: Some(force), chunk_rows: 7, ..EncodeOptions::default() });
        }
    }
}
