//! A short run of every fuzz target: good bytes of every type and shape, mutated from a fixed seed. Longer:
//! set COLONNADE_FUZZ_ROUNDS (mutations per seed file and target).
#![allow(missing_docs, clippy::unwrap_used, clippy::cast_possible_truncation)]

#[path = "../../stripe/tests/support/mod.rs"]
mod support;

use encodings::{Codec, EncodeOptions, EncodingId, encode_column};
use fuzz_targets::{
    TYPES, fuzz_chunk, fuzz_column_footer, fuzz_footer, fuzz_shared, fuzz_stripe, fuzz_summary, type_byte,
};
use stripe::{CHECKSUM_BYTES, StripeOptions, write_stripe};
use support::{Random, SHAPES, any_column, column};
use vector::{LogicalType, Vector, VectorBuilder};

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
    let options = EncodeOptions { chunk_rows: column.len(), ..*options };
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
            for (nulls, codec) in [(0, Codec::None), (25, Codec::Zstd), (25, Codec::Lz4)] {
                let rows = random.pick(&[20usize, 1100]);
                let column = column(&mut random, logical, shape, rows, nulls);
                chunk_seed(&column, &EncodeOptions { codec, ..Default::default() }, &mut seeds);
            }
        }
    }
    for encoding in EncodingId::ALL {
        let options = EncodeOptions { force: Some(encoding), codec: Codec::Zstd, ..Default::default() };
        for kind in 0..5 {
            chunk_seed(&texts(&mut random, kind, 60), &options, &mut seeds);
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
            let options = StripeOptions { chunk_rows: 30, bloom_columns: &[3, 10], ..Default::default() };
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

/// Places of the column footers, found from the entries of the footer (see FORMAT.md).
fn column_footers_of(stripe: &stripe::EncodedStripe) -> (usize, Vec<std::ops::Range<usize>>) {
    const HEAD: usize = 4 + 1 + 4 + 4 + 4 + 8;
    const ENTRY: usize = 1 + 2 + 8 + 8 + 4;
    let footer = &stripe.bytes[stripe.footer_offset as usize..];
    let columns = u32::from_le_bytes(footer[5..9].try_into().unwrap()) as usize;
    let ranges = footer[HEAD..HEAD + columns * ENTRY]
        .chunks(ENTRY)
        .map(|entry| {
            let start = u64::from_le_bytes(entry[11..19].try_into().unwrap()) as usize;
            start..start + u32::from_le_bytes(entry[19..23].try_into().unwrap()) as usize
        })
        .collect();
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
