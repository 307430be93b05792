//! Byte strings against the conformance suite: shapes that suit each encoding, shapes that break it half-way,
//! odd values.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use encodings::{Chunk, Codec, EncodeOptions, EncodingId, NoPglz, SharedColumn, encode_column};
use support::jsonb::{Json, jsonb};
use support::{build, check, check_corruption, with_nulls};
use vector::{LogicalType, Vector};

fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

const FORCED: [EncodingId; 8] = [
    EncodingId::Plain,
    EncodingId::Dictionary,
    EncodingId::Hex,
    EncodingId::UuidText,
    EncodingId::Digits,
    EncodingId::Fsst,
    EncodingId::Blocks,
    EncodingId::Template,
];

const WORDS: [&str; 12] = [
    "carefully",
    "final",
    "deposits",
    "haggle",
    "furiously",
    "among",
    "the",
    "regular",
    "requests",
    "é€",
    "",
    "x",
];

fn uuid(r: u64, s: u64, upper: bool) -> String {
    let hex = if upper { format!("{r:016X}{s:016X}") } else { format!("{r:016x}{s:016x}") };
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

fn document(i: usize, r: u64) -> Json {
    let text = |s: &str| Json::Text(s.as_bytes().to_vec());
    let os = ["android", "ios", "windows", "macos", "linux"][i % 5];
    let number = |value: i64, scale: u8| Json::Number(value, scale);
    let mut keys = vec![
        ("os", text(os)),
        ("premium", Json::Bool(i.is_multiple_of(7))),
        ("revenue", number((r % 50_000) as i64, 2)),
        ("version", text(&(12 + i % 8).to_string())),
    ];
    if i % 11 == 3 {
        keys.push((
            "nested",
            Json::Object(vec![("a", Json::Null), ("b", Json::Array(vec![number(i as i64, 0), text("t")]))]),
        ));
    }
    if i % 29 == 5 {
        keys.push(("odd", Json::Raw(vec![0, 0xC0])));
    }
    Json::Object(keys)
}

/// Long runs of one template with everything in it: nesting, repeated elements, NULLs, flags, end offsets
/// past 32 children.
fn deep_document(i: usize, r: u64) -> Json {
    const KEYS: [&str; 40] = [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t",
        "aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh", "ii", "jj", "kk", "ll", "mm", "nn", "oo", "pp", "qq",
        "rr", "ss", "tt",
    ];
    let text = |len: u64| Json::Text(vec![b'a' + (len % 26) as u8; len as usize]);
    let number = |n: u64, scale: u8| Json::Number((n % 1_000_000) as i64 - 500_000, scale);
    let items =
        |n: u64| (0..n).map(|k| number(r.rotate_left(k as u32 * 7), (k % 3) as u8)).collect::<Vec<_>>();
    let pairs = KEYS.iter().enumerate().map(|(k, key)| {
        let value = match k % 8 {
            0 => text(r >> k & 15),
            1 => Json::Bool(r >> k & 1 == 1),
            2 => Json::Null,
            3 => Json::Array(items(k as u64 % 5)),
            4 => Json::Object(vec![
                ("x", text(r >> k & 31)),
                ("y", number(r >> k, 5)),
                ("z", Json::Object(vec![])),
            ]),
            5 => Json::Array(vec![
                text(r >> k & 3),
                Json::Array(vec![text(i as u64 % 5), Json::Null]),
                text(2),
            ]),
            _ => number(r >> k, (k % 7) as u8),
        };
        (*key, value)
    });
    Json::Object(pairs.collect())
}

/// The value of row i, given a random number.
type Shape = Box<dyn Fn(usize, u64) -> Vec<u8>>;

/// Named shapes of byte strings.
fn shapes() -> Vec<(&'static str, Shape)> {
    fn text(f: impl Fn(usize, u64) -> String + 'static) -> Shape {
        Box::new(move |i, r| f(i, r).into_bytes())
    }
    vec![
        ("empty", text(|_, _| String::new())),
        ("few", text(|_, r| WORDS[(r % 7) as usize].into())),
        ("url", text(|i, _| format!("/page/{}", i % 5000))),
        ("unique", text(|i, r| format!("{r}-{i}"))),
        ("md5", text(|_, r| format!("{r:016x}{:016x}", r.rotate_left(17)))),
        ("MD5", text(|_, r| format!("{r:016X}{:016X}", r.rotate_left(17)))),
        ("hex lengths", text(|i, r| format!("{r:016x}")[..2 * (i % 9)].to_string())),
        ("hex broken", text(|i, r| if i % 400 == 399 { "xyz".into() } else { format!("{r:016x}") })),
        ("hex odd", text(|_, r| format!("{r:x}"))),
        ("hex mixed case", text(|i, r| if i % 2 == 0 { format!("{r:016X}") } else { format!("{r:016x}") })),
        ("uuid", text(|_, r| uuid(r, r.rotate_left(9), false))),
        ("UUID", text(|_, r| uuid(r, r.rotate_left(9), true))),
        ("uuid broken", text(|i, r| if i % 300 == 299 { "no".into() } else { uuid(r, r, false) })),
        ("digits", text(|_, r| (r % 100_000).to_string())),
        ("digits padded", text(|i, _| format!("Customer#{i:09}"))),
        ("digits long", text(|_, r| format!("{r:020}{r:020}"))),
        ("digits broken", text(|i, _| if i % 350 == 349 { "007".into() } else { i.to_string() })),
        (
            "prose",
            text(|_, r| {
                (0..r % 9).map(|w| WORDS[(r >> (w * 4) & 15) as usize % 12]).collect::<Vec<_>>().join(" ")
            }),
        ),
        ("blank-padded", text(|i, _| format!("{:20}", ["BR", "US", "DE"][i % 3]))),
        ("bytes", Box::new(|i, r| r.to_le_bytes().repeat(3)[..i % 25].to_vec())),
        ("escapes", Box::new(|_, r| vec![255, (r % 256) as u8, 0, 255])),
        ("long", Box::new(|i, r| if i % 100 == 50 { vec![b'q'; 70_000] } else { r.to_be_bytes().to_vec() })),
        ("json", Box::new(|i, r| jsonb(&document(i, r)))),
        ("json deep", Box::new(|i, r| jsonb(&deep_document(i, r)))),
        (
            "json array",
            Box::new(|i, r| jsonb(&Json::Array(vec![deep_document(i, r), Json::Bool(i % 2 == 0)]))),
        ),
        ("json scalar", Box::new(|i, r| jsonb(&Json::Number((r >> 20) as i64, (i % 6) as u8)))),
        (
            "json and not",
            Box::new(|i, r| if i % 6 == 5 { r.to_le_bytes().to_vec() } else { jsonb(&document(i, r)) }),
        ),
    ]
}

fn column(logical: LogicalType, len: usize, shape: &dyn Fn(usize, u64) -> Vec<u8>) -> Vector {
    let mut next = random(9);
    build(logical, |b| {
        for i in 0..len {
            assert!(b.push_bytes(&shape(i, next())));
        }
    })
}

#[test]
fn every_encoding_of_every_shape() {
    for (_, shape) in shapes() {
        for len in [1usize, 2, 100, 500] {
            let column = column(LogicalType::Bytes, len, shape.as_ref());
            for force in FORCED {
                for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
                    if codec != Codec::None && (force != EncodingId::Blocks || len < 100) {
                        continue;
                    }
                    let options = EncodeOptions {
                        codec,
                        force: Some(force),
                        chunk_rows: 200,
                        ..EncodeOptions::default()
                    };
                    check(&column, &options);
                }
            }
        }
    }
}

#[test]
fn the_choice_with_nulls() {
    for (name, shape) in shapes() {
        for len in if name.starts_with("json") { vec![200] } else { vec![0usize, 1, 700] } {
            let column = column(LogicalType::Text, len, shape.as_ref());
            for column in with_nulls(&column) {
                for codec in [Codec::None, Codec::Zstd] {
                    check(&column, &EncodeOptions { codec, chunk_rows: 300, ..EncodeOptions::default() });
                }
            }
        }
    }
}

#[test]
fn templates_with_nulls() {
    let column = column(LogicalType::Bytes, 2500, &|i, r| jsonb(&document(i, r)));
    for column in with_nulls(&column) {
        for force in [None, Some(EncodingId::Template)] {
            check(&column, &EncodeOptions { force, chunk_rows: 1000, ..EncodeOptions::default() });
        }
    }
}

/// Single rows, in any order, out of one opened chunk, which remembers what it has found out about all rows.
#[test]
fn documents_are_taken_one_by_one() {
    use encodings::{Chunk, NoPglz, SharedColumn};
    let column = column(LogicalType::Bytes, 1500, &|i, r| jsonb(&document(i, r)));
    for column in with_nulls(&column) {
        let options =
            EncodeOptions { force: Some(EncodingId::Template), chunk_rows: 1500, ..EncodeOptions::default() };
        let encoded = encodings::encode_column(&column, &options).unwrap();
        let shared = SharedColumn::open(column.logical, &encoded.shared, &NoPglz).unwrap();
        let chunk = &encoded.chunks[0];
        let opened = Chunk::open(column.logical, chunk.rows, &chunk.bytes, &shared, &NoPglz).unwrap();
        for at in (0..1500u32).map(|at| at * 7 % 1500) {
            let some = [at, (at + 3).min(1499), (at + 300).min(1499)];
            let taken = opened.take(&some).unwrap();
            for (place, &at) in some.iter().enumerate() {
                assert_eq!(support::row(&taken, place), support::row(&column, at as usize), "row {at}");
            }
        }
    }
}

#[test]
fn one_path_is_read_without_its_documents() {
    use encodings::{Chunk, NoPglz, PathColumn, PathComponent, PathKind, SharedColumn};
    use vector::Values;
    let mut next = random(4);
    let numbers: Vec<u64> = (0..500).map(|_| next()).collect();
    let documents: Vec<Json> = numbers.iter().enumerate().map(|(i, &r)| document(i, r)).collect();
    let column = build(LogicalType::Bytes, |b| {
        documents.iter().for_each(|document| assert!(b.push_bytes(&jsonb(document))));
    });
    let options =
        EncodeOptions { force: Some(EncodingId::Template), chunk_rows: 200, ..EncodeOptions::default() };
    let encoded = encodings::encode_column(&column, &options).unwrap();
    let shared = SharedColumn::open(column.logical, &encoded.shared, &NoPglz).unwrap();
    let paths = shared.paths(&NoPglz).unwrap();
    let number_of = |names: &[&str], element: bool, kind: PathKind| {
        let mut want: Vec<PathComponent> =
            names.iter().map(|name| PathComponent::Key(name.as_bytes().to_vec())).collect();
        want.extend(element.then_some(PathComponent::Element));
        paths.iter().position(|path| path.components == want && path.kind == kind).unwrap()
    };
    let read = |path: usize| {
        let (mut rows, mut values): (Vec<u32>, Vec<Values>) = (Vec::new(), Vec::new());
        for (chunk, start) in encoded.chunks.iter().zip((0u32..).step_by(200)) {
            let opened = Chunk::open(column.logical, chunk.rows, &chunk.bytes, &shared, &NoPglz).unwrap();
            let PathColumn { rows: own, columns } = opened.path(path).unwrap().unwrap();
            rows.extend(own.iter().map(|row| row + start));
            values.extend(columns.into_iter().take(1).map(|column| column.flatten().values));
            assert!(opened.path(paths.len()).is_err());
        }
        (rows, values)
    };
    let (rows, values) = read(number_of(&["revenue"], false, PathKind::Number));
    assert_eq!(rows, (0..500).collect::<Vec<u32>>());
    let revenue: Vec<i64> = values
        .into_iter()
        .flat_map(|values| match values {
            Values::Int64(values) => values,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(revenue, numbers.iter().map(|r| (r % 50_000) as i64).collect::<Vec<_>>());
    // Every eleventh document has an array in an object; its text elements are the path's values.
    let (rows, _) = read(number_of(&["nested", "b"], true, PathKind::Text));
    assert_eq!(rows, (0..500).filter(|row| row % 11 == 3).collect::<Vec<u32>>());
    assert!(SharedColumn::open(LogicalType::Text, &[], &NoPglz).unwrap().paths(&NoPglz).unwrap().is_empty());
}

/// The encoding that the chooser takes for the first chunk of a shape, and bytes a row.
fn chosen(name: &str, codec: Codec) -> (String, f64) {
    let (_, shape) = shapes().into_iter().find(|(n, _)| *n == name).unwrap();
    let len = 60_000;
    let logical = if name == "json" { LogicalType::Bytes } else { LogicalType::Text };
    let column = column(logical, len, shape.as_ref());
    let encoded =
        encodings::encode_column(&column, &EncodeOptions { codec, ..EncodeOptions::default() }).unwrap();
    let bytes = encoded.shared.len() + encoded.chunks.iter().map(|chunk| chunk.bytes.len()).sum::<usize>();
    (encoded.chunks[0].encoding.clone(), bytes as f64 / len as f64)
}

#[test]
fn the_choice_suits_the_shape() {
    let cases = [
        ("few", "dictionary", 1.1),
        ("url", "dictionary", 4.0),
        ("md5", "hex", 16.1),
        ("uuid", "uuid_text", 16.1),
        ("digits padded", "digits", 4.1),
        ("prose", "fsst", 22.0),
        ("blank-padded", "dictionary", 1.1),
        ("json", "template", 12.0),
    ];
    for (name, want, limit) in cases {
        let (encoding, bytes) = chosen(name, Codec::None);
        assert!(encoding.starts_with(want), "{name}: {encoding}");
        assert!(bytes <= limit, "{name}: {bytes} bytes a row");
    }
    let (encoding, _) = chosen("prose", Codec::Zstd);
    assert!(encoding.starts_with("blocks") || encoding.starts_with("fsst"), "{encoding}");
}

#[test]
fn corrupt_bytes_never_panic() {
    for (name, shape) in shapes() {
        if ["long", "json deep", "json array"].contains(&name) {
            continue;
        }
        for force in FORCED {
            let codec = if force == EncodingId::Blocks { Codec::Lz4 } else { Codec::None };
            let options = EncodeOptions { force: Some(force), codec, ..EncodeOptions::default() };
            check_corruption(&column(LogicalType::Bytes, 20, shape.as_ref()), &options);
        }
    }
}

#[test]
fn corrupt_symbol_tables_and_templates_shared_by_chunks() {
    for (shape, force) in [("prose", EncodingId::Fsst), ("json", EncodingId::Template)] {
        let (_, make) = shapes().into_iter().find(|(n, _)| *n == shape).unwrap();
        let options = EncodeOptions { force: Some(force), chunk_rows: 30, ..EncodeOptions::default() };
        check_corruption(&column(LogicalType::Bytes, 40, make.as_ref()), &options);
    }
}

#[test]
fn one_huge_value() {
    let column = build(LogicalType::Bytes, |b| {
        assert!(b.push_bytes(b"small"));
        assert!(b.push_bytes(&vec![7u8; 40 << 20]));
        assert!(b.push_bytes(b""));
    });
    for codec in [Codec::None, Codec::Lz4] {
        let encoded =
            encodings::encode_column(&column, &EncodeOptions { codec, ..EncodeOptions::default() }).unwrap();
        let shared =
            encodings::SharedColumn::open(column.logical, &encoded.shared, &encodings::NoPglz).unwrap();
        let bytes = &encoded.chunks[0].bytes;
        let chunk = encodings::Chunk::open(column.logical, 3, bytes, &shared, &encodings::NoPglz).unwrap();
        assert!(chunk.decode().unwrap().flatten().values == column.values);
        assert_eq!(support::rows(&chunk.take(&[2]).unwrap()), vec![Some(vec![])]);
    }
}

#[test]
fn a_dictionary_is_decoded_once_many_values_were_asked_alone() {
    let texts: Vec<String> = (0..4000).map(|row| format!("entry {} of some", row % 160)).collect();
    let column = build(LogicalType::Text, |builder| {
        texts.iter().for_each(|text| assert!(builder.push_bytes(text.as_bytes())));
    });
    let options = EncodeOptions { force: Some(EncodingId::Dictionary), ..Default::default() };
    let encoded = encode_column(&column, &options).unwrap();
    let shared = SharedColumn::open(LogicalType::Text, &encoded.shared, &NoPglz).unwrap();
    let chunk = &encoded.chunks[0];
    let opened = Chunk::open(LogicalType::Text, chunk.rows, &chunk.bytes, &shared, &NoPglz).unwrap();
    let mut room = Vec::new();
    let known: Vec<bool> = (0..12).map(|row| opened.single(row, &mut room).unwrap().is_some()).collect();
    // 160 entries: from the tenth value on, each stands for sixteen.
    assert_eq!(known, (1..=12).map(|taken| taken >= 10).collect::<Vec<_>>());
}
