//! A short run of every fuzz target: good bytes of every type and shape, mutated from a fixed seed. Longer:
//! set COLONNADE_FUZZ_ROUNDS (mutations per seed file and target).
#![allow(missing_docs, clippy::unwrap_used, clippy::cast_possible_truncation)]

#[path = "../../server_bytes/tests/support/mod.rs"]
mod server_values;
#[path = "../../stripe/tests/support/mod.rs"]
mod support;

use encodings::{BlockCodecs, Codec, EncodeOptions, EncodingId, encode_column};
use fuzz_targets::{
    TYPES, fuzz_array, fuzz_chunk, fuzz_column_file, fuzz_column_footer, fuzz_footer, fuzz_jsonb,
    fuzz_numeric, fuzz_parquet, fuzz_pglz, fuzz_shared, fuzz_stripe, fuzz_summary, type_byte,
};
use server_values::jsonb::{Json, jsonb};
use server_values::{arrays, pglz};
use stripe::{CHECKSUM_BYTES, Layout, StripeOptions, write_stripe};
use support::{Random, SHAPES, any_column, column};
use vector::{LogicalType, Vector, VectorBuilder};

/// Makes blocks of pglz as the server would.
struct Pglz;

impl BlockCodecs for Pglz {
    fn pglz_compress(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        Some(pglz::compressed(bytes)).filter(|stream| stream.len() < bytes.len())
    }

    fn pglz_decompress(&self, bytes: &[u8], raw_len: usize) -> vector::Result<Vec<u8>> {
        server_bytes::pglz::expand(bytes, raw_len)
    }
}

fn rounds(default: usize) -> usize {
    std::env::var("COLONNADE_FUZZ_ROUNDS").ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// One to four changes: a byte, a bit, a run, a cut, a piece moved.
fn mutate(random: &mut Random, seed: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(3) {
        let place = random.index(bytes.len());
        match random.below(8) {
            0 if !bytes.is_empty() => bytes[place] = random.next() as u8,
            1 if !bytes.is_empty() => bytes[place] ^= 1 << random.below(8),
            2 if !bytes.is_empty() => bytes[place] = random.pick(&[0, 1, 0x7f, 0x80, 0xff]),
            3 => bytes.truncate(place),
            4 => {
                let end = (place + random.index(9)).min(bytes.len());
                bytes[place..end].fill(random.pick(&[0, 0xff]));
            }
            5 => {
                let end = (place + random.index(40)).min(bytes.len());
                let piece = bytes[place..end].to_vec();
                let to = random.index(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
            // Most headers are in the first bytes.
            6 if !bytes.is_empty() => {
                let place = random.index(bytes.len().min(24));
                bytes[place] = random.next() as u8;
            }
            _ if !bytes.is_empty() => bytes[place] = bytes[place].wrapping_add(1),
            _ => {}
        }
    }
    bytes
}

fn run(seeds: &[Vec<u8>], rounds: usize, target: fn(&[u8])) {
    let mut random = Random(99);
    for (number, seed) in seeds.iter().enumerate() {
        target(seed);
        for round in 0..rounds {
            let input = mutate(&mut random, seed);
            let outcome = std::panic::catch_unwind(|| target(&input));
            assert!(outcome.is_ok(), "seed {number}, round {round}, input {input:02x?}");
        }
    }
}

/// A chunk with its shared section, as `fuzz_chunk` wants them.
fn chunk_seed(column: &Vector, options: &EncodeOptions<'_>, seeds: &mut Vec<Vec<u8>>) {
    let options = EncodeOptions { chunk_rows: column.len(), codecs: &Pglz, ..*options };
    let encoded = encode_column(column, &options).unwrap();
    let Ok(shared_length) = u16::try_from(encoded.shared.len()) else { return };
    let mut seed = vec![type_byte(column.logical)];
    seed.extend_from_slice(&(column.len() as u16).to_le_bytes());
    seed.extend_from_slice(&shared_length.to_le_bytes());
    seed.extend_from_slice(&encoded.shared);
    seed.extend_from_slice(&encoded.chunks[0].bytes);
    seeds.push(seed);
}

/// Text that each string encoding likes: JSON, uuids, md5, digits, sentences.
fn texts(random: &mut Random, kind: u64, rows: usize) -> Vector {
    let mut builder = VectorBuilder::new(LogicalType::Text);
    for row in 0..rows {
        let (a, b) = (random.next(), random.next());
        let value = match kind {
            0 => format!(
                "{{\"os\": \"os{}\", \"revenue\": {}.{:02}, \"premium\": {}}}",
                a % 5,
                b % 500,
                a % 100,
                row % 7 == 0
            ),
            1 => format!(
                "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                a >> 32,
                a & 0xffff,
                b >> 48,
                b & 0xffff,
                b >> 16
            ),
            2 => format!("{a:016x}{b:016x}"),
            3 => (a % 1_000_000).to_string(),
            _ => (0..a % 9)
                .map(|i| ["carefully", "final", "deposits", "the"][(b >> i) as usize % 4])
                .collect::<Vec<_>>()
                .join(" "),
        };
        assert!(builder.push_bytes(value.as_bytes()));
    }
    builder.finish(&|_, _, _| Box::default())
}

/// Chunks of every type, shape and encoding.
fn chunk_seeds() -> Vec<Vec<u8>> {
    let mut random = Random(31);
    let mut seeds = Vec::new();
    for logical in TYPES {
        for shape in SHAPES {
            for (nulls, codec) in [(0, Codec::None), (25, Codec::Zstd), (25, Codec::Lz4), (25, Codec::Pglz)] {
                let rows = random.pick(&[20usize, 1100]);
                let column = column(&mut random, logical, shape, rows, nulls);
                chunk_seed(&column, &EncodeOptions { codec, ..Default::default() }, &mut seeds);
            }
        }
    }
    for encoding in EncodingId::ALL {
        let options = EncodeOptions { force: Some(encoding), codec: Codec::Zstd, ..Default::default() };
        for kind in 0..5 {
            let texts = texts(&mut random, kind, 60);
            for codec in [Codec::Zstd, Codec::Pglz] {
                chunk_seed(&texts, &EncodeOptions { codec, ..options }, &mut seeds);
            }
        }
        for logical in
            [LogicalType::Int32, LogicalType::Float64, LogicalType::Numeric, LogicalType::Timestamp]
        {
            let shape = random.pick(&SHAPES);
            chunk_seed(&column(&mut random, logical, shape, 90, 10), &options, &mut seeds);
        }
    }
    seeds
}

fn stripes() -> Vec<stripe::EncodedStripe> {
    (0..6)
        .map(|seed| {
            let mut random = Random(seed + 40);
            let columns: Vec<Vector> =
                TYPES.iter().map(|&logical| any_column(&mut random, logical, 50)).collect();
            let codec = if seed % 2 == 0 { Codec::None } else { Codec::Pglz };
            let options = StripeOptions {
                layout: if seed % 3 == 0 { Layout::Blocks } else { Layout::Columns },
                chunk_rows: 30,
                codec,
                codecs: &Pglz,
                bloom_columns: &[3, 10],
                ..Default::default()
            };
            write_stripe(50, &columns, &options).unwrap()
        })
        .collect()
}

#[test]
fn chunks() {
    run(&chunk_seeds(), rounds(40), fuzz_chunk);
}

#[test]
fn shared_sections() {
    let seeds: Vec<Vec<u8>> = chunk_seeds()
        .into_iter()
        .map(|seed| {
            let length = usize::from(u16::from_le_bytes([seed[3], seed[4]]));
            [&seed[..1], &seed[5..5 + length]].concat()
        })
        .filter(|seed| seed.len() > 1)
        .collect();
    run(&seeds, rounds(100), fuzz_shared);
}

#[test]
fn footers() {
    let seeds: Vec<Vec<u8>> = stripes()
        .iter()
        .map(|s| s.bytes[s.footer_offset as usize..s.bytes.len() - CHECKSUM_BYTES].to_vec())
        .collect();
    run(&seeds, rounds(3000), fuzz_footer);
}

#[test]
fn column_footers() {
    let mut random = Random(50);
    for stripe in stripes() {
        let (_, ranges) = column_footers_of(&stripe);
        for range in ranges {
            for _ in 0..rounds(60) {
                let mut bytes = stripe.bytes.clone();
                let body = range.start..range.end - CHECKSUM_BYTES;
                let mutated = mutate(&mut random, &bytes[body.clone()]);
                let length = mutated.len().min(body.len());
                bytes[body.start..body.start + length].copy_from_slice(&mutated[..length]);
                let mut input = Vec::new();
                for place in [range.start, range.end, stripe.footer_offset as usize] {
                    input.extend_from_slice(&(place as u32).to_le_bytes());
                }
                input.extend_from_slice(&bytes);
                let outcome = std::panic::catch_unwind(|| fuzz_column_footer(&input));
                assert!(outcome.is_ok(), "{range:?}: {:02x?}", &bytes[body]);
            }
        }
    }
}

/// Places of the column footers and of the block index, found from the footer (see FORMAT.md).
fn column_footers_of(stripe: &stripe::EncodedStripe) -> (usize, Vec<std::ops::Range<usize>>) {
    const HEAD: usize = 4 + 1 + 4 + 4 + 4 + 8;
    const ENTRY: usize = 1 + 2 + 8 + 8 + 4;
    let footer = &stripe.bytes[stripe.footer_offset as usize..];
    let columns = u32::from_le_bytes(footer[5..9].try_into().unwrap()) as usize;
    let range = |at: usize| {
        let start = u64::from_le_bytes(footer[at..at + 8].try_into().unwrap()) as usize;
        start..start + u32::from_le_bytes(footer[at + 8..at + 12].try_into().unwrap()) as usize
    };
    let index = (footer[4] == 2).then(|| range(HEAD + 4));
    let entries = if index.is_some() { HEAD + 4 + 8 + 4 } else { HEAD };
    let ranges = (0..columns).map(|column| range(entries + column * ENTRY + 11)).chain(index).collect();
    (columns, ranges)
}

#[test]
fn whole_stripes() {
    let seeds: Vec<Vec<u8>> =
        stripes().iter().map(|s| [&(s.footer_offset as u32).to_le_bytes()[..], &s.bytes].concat()).collect();
    run(&seeds, rounds(300), fuzz_stripe);
}

#[test]
fn summaries() {
    let seeds: Vec<Vec<u8>> =
        stripes().iter().map(|s| s.summary[..s.summary.len() - CHECKSUM_BYTES].to_vec()).collect();
    run(&seeds, rounds(3000), fuzz_summary);
}

#[test]
fn blocks_of_pglz() {
    let mut random = Random(60);
    let seeds: Vec<Vec<u8>> = (0..40)
        .map(|_| {
            let mut raw = Vec::new();
            for _ in 0..random.below(40) {
                let piece: Vec<u8> = (0..=random.below(9)).map(|_| random.next() as u8).collect();
                raw.extend_from_slice(&piece.repeat(1 + random.index(60)));
            }
            [&(raw.len() as u16).to_le_bytes()[..], &pglz::compressed(&raw)].concat()
        })
        .collect();
    run(&seeds, rounds(300), fuzz_pglz);
}

#[test]
fn numerics() {
    let mut random = Random(61);
    let seeds: Vec<Vec<u8>> = (0..120)
        .map(|_| {
            let unscaled = i128::from(random.next().cast_signed()) * i128::from(random.below(1 << 40) + 1);
            let unscaled = unscaled >> random.below(120);
            let scale = random.pick(&[0, 2, 6, 9, 30, 70]);
            let payload = server_bytes::numeric::to_side(unscaled, scale, scale + random.pick(&[0, 0, 3]));
            [&(((payload.len() + 4) << 2) as u32).to_le_bytes()[..], &payload].concat()
        })
        .collect();
    run(&seeds, rounds(400), fuzz_numeric);
}

/// A document of up to `depth` levels.
fn any_json(random: &mut Random, depth: u64) -> Json {
    const KEYS: [&str; 5] = ["a", "b", "os", "name", "revenue"];
    match random.below(if depth == 0 { 5 } else { 9 }) {
        0 => Json::Null,
        1 => Json::Bool(random.below(2) == 0),
        2 | 3 => {
            Json::Number(random.next().cast_signed() >> random.pick(&[10, 40, 60]), random.pick(&[0, 2, 9]))
        }
        4 => Json::Text(KEYS[random.index(KEYS.len())].as_bytes().to_vec()),
        5 | 6 => Json::Array((0..random.below(5)).map(|_| any_json(random, depth - 1)).collect()),
        _ => Json::Object(
            KEYS.iter().take(random.index(6)).map(|key| (*key, any_json(random, depth - 1))).collect(),
        ),
    }
}

#[test]
fn documents() {
    let mut random = Random(62);
    let seeds: Vec<Vec<u8>> = (0..60)
        .map(|_| {
            let (value, other) = (jsonb(&any_json(&mut random, 4)), jsonb(&any_json(&mut random, 3)));
            let other = if random.below(2) == 0 { value.clone() } else { other };
            let mut seed = vec![1];
            seed.extend_from_slice(&(other.len() as u16).to_le_bytes());
            seed.push(b'a');
            seed.extend_from_slice(&other);
            seed.extend_from_slice(&value);
            seed
        })
        .collect();
    run(&seeds, rounds(200), fuzz_jsonb);
}

#[test]
fn arrays_of_all_layouts() {
    let mut random = Random(63);
    let mut seeds = Vec::new();
    for layout in 0..4u8 {
        for _ in 0..15 {
            let width = (layout > 0).then_some(1 << layout);
            let elements: Vec<Option<Vec<u8>>> = (0..random.below(12))
                .map(|_| {
                    let length = width.unwrap_or(random.index(9));
                    (random.below(5) > 0).then(|| (0..length).map(|_| random.below(3) as u8).collect())
                })
                .collect();
            let wanted = elements.iter().flatten().next().cloned().unwrap_or_default();
            let head = [layout, wanted.len() as u8];
            seeds.push([&head[..], &wanted, &arrays::array(&elements, width)].concat());
        }
    }
    run(&seeds, rounds(300), fuzz_array);
}

#[test]
fn column_files() {
    use files::column::{Column, ColumnWriter, WriteOptions};
    let path = std::env::temp_dir().join(format!("colonnade-fuzz-{}.col", std::process::id()));
    let rows = |random: &mut Random| -> Vec<Vector> {
        TYPES.iter().map(|&logical| any_column(random, logical, 70)).collect()
    };
    let seeds: Vec<Vec<u8>> = (0..4)
        .map(|seed| {
            let mut random = Random(seed + 70);
            let column = |(number, logical): (u32, LogicalType)| {
                let declared = format!("type {number}");
                Column { number, name: format!("c{number}"), declared, logical }
            };
            let columns = (1..).zip(TYPES).map(column).collect();
            let options = WriteOptions { stripe_rows: 60, chunk_rows: 30, ..Default::default() };
            let mut writer = ColumnWriter::create(&path, columns, options).unwrap();
            for _ in 0..seed {
                writer.write(rows(&mut random)).unwrap();
                writer.finish().unwrap();
                writer = ColumnWriter::append(&path, options).unwrap();
            }
            writer.write(rows(&mut random)).unwrap();
            writer.finish().unwrap();
            let bytes = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            bytes
        })
        .collect();
    run(&seeds, rounds(1000), fuzz_column_file);
}

#[test]
fn parquet_files() {
    use files::parquet::{Codec, ParquetWriter};
    use files::{Field, FieldKind, Unit};
    let kinds = [
        (LogicalType::Bool, FieldKind::Bool),
        (LogicalType::Int64, FieldKind::Integer { bits: 16 }),
        (LogicalType::Int64, FieldKind::INTEGER),
        (LogicalType::UInt64, FieldKind::Unsigned),
        (LogicalType::Float64, FieldKind::REAL),
        (LogicalType::Int64, FieldKind::Time(Unit::Micros)),
        (LogicalType::Uuid, FieldKind::Uuid),
        (LogicalType::Text, FieldKind::Text),
        (LogicalType::Bytes, FieldKind::Bytes),
    ];
    let mut seeds: Vec<Vec<u8>> = [Codec::None, Codec::Snappy, Codec::None]
        .into_iter()
        .zip(80..)
        .map(|(codec, seed)| {
            let mut random = Random(seed);
            let field = |(at, (_, kind)): (usize, &(LogicalType, FieldKind))| Field {
                name: format!("c{at}"),
                kind: *kind,
            };
            let fields: Vec<_> = kinds.iter().enumerate().map(field).collect();
            let mut writer = ParquetWriter::new(Vec::new(), &fields, codec).unwrap();
            for _ in 0..2 {
                let column = |(logical, kind): &(LogicalType, FieldKind)| match kind {
                    FieldKind::Text => texts(&mut random, seed, 60),
                    FieldKind::Integer { bits: 16 } | FieldKind::Time(_) => {
                        let values = (0..60).map(|_| random.below(20_000) as i64).collect();
                        Vector::new(*logical, vector::Values::Int64(values))
                    }
                    _ => any_column(&mut random, *logical, 60),
                };
                writer.write(&kinds.iter().map(column).collect::<Vec<_>>()).unwrap();
            }
            writer.finish().unwrap()
        })
        .collect();
    // Rows of several pages, of which a good part of the file is indexes and filters.
    let fields = [("a", FieldKind::Integer { bits: 16 }), ("b", FieldKind::Text)];
    let fields = fields.map(|(name, kind)| Field { name: name.into(), kind });
    let mut writer = ParquetWriter::new(Vec::new(), &fields, Codec::None).unwrap();
    writer.set_filters(vec![true, true]);
    let integers = vector::Values::Int64((0..20_000).map(|row| row / 7_000).collect());
    let mut texts = vector::VectorBuilder::new(LogicalType::Text);
    (0..20_000).for_each(|row| match row % 9_000 {
        8_000.. => texts.push_null(),
        _ => assert!(texts.push_bytes(b"some text")),
    });
    writer
        .write(&[Vector::new(LogicalType::Int64, integers), texts.finish(&|_, _, _| Box::default())])
        .unwrap();
    seeds.push(writer.finish().unwrap());
    run(&seeds, rounds(1000), fuzz_parquet);
}
