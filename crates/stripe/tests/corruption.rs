//! Bad bytes give an error or the same answer: every byte flipped, every truncation, and sections exchanged.
#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation)]

mod support;

use encodings::NoPglz;
use stripe::{
    EncodedStripe, Layout, Prune, StripeOptions, StripeReader, Summary, prune_chunk, prune_stripe,
    write_stripe,
};
use support::{LAYOUTS, Random, TYPES, any_column, assert_same};
use vector::{Error, LogicalType, Predicate, Result, Vector};

fn small_stripe(layout: Layout) -> (Vec<Vector>, EncodedStripe) {
    let mut random = Random(21);
    let columns: Vec<Vector> = TYPES.iter().map(|&logical| any_column(&mut random, logical, 70)).collect();
    let options = StripeOptions { layout, chunk_rows: 40, bloom_columns: &[3, 10], ..Default::default() };
    let stripe = write_stripe(70, &columns, &options).unwrap();
    (columns, stripe)
}

/// Everything a reader can be asked for.
fn read_all(bytes: &[u8], footer_offset: u64) -> Result<Vec<Vector>> {
    let footer = bytes.get(footer_offset as usize..).unwrap_or(&[]);
    let reader = StripeReader::open(footer)?;
    let mut columns = Vec::new();
    for column in 0..reader.column_count() {
        let mut chunks = Vec::new();
        for chunk in 0..reader.chunk_count() {
            prune_chunk(&reader, chunk, &Predicate::IsNull { column }, &bytes)?;
            reader.bloom(column, chunk, &bytes)?;
            chunks.push(reader.read_chunk(column, chunk, &bytes, &NoPglz)?.decode(&NoPglz)?);
        }
        columns.push(vector::concat(reader.logical(column).unwrap_or(LogicalType::Bool), chunks)?);
    }
    Ok(columns)
}

fn error_or_same(bytes: &[u8], footer_offset: u64, columns: &[Vector], what: &str) -> bool {
    match read_all(bytes, footer_offset) {
        Err(Error::Corrupt { .. } | Error::Unsupported(_)) => true,
        Err(other) => panic!("{what}: {other:?}"),
        Ok(got) => {
            assert_eq!(got.len(), columns.len(), "{what}");
            got.iter().zip(columns).for_each(|(got, wanted)| assert_same(got, wanted, what));
            false
        }
    }
}

#[test]
fn every_flipped_byte() {
    LAYOUTS.into_iter().for_each(flip_every_byte);
}

fn flip_every_byte(layout: Layout) {
    let (columns, stripe) = small_stripe(layout);
    assert!(!error_or_same(&stripe.bytes, stripe.footer_offset, &columns, "untouched"));
    let mut bytes = stripe.bytes.clone();
    for place in 0..bytes.len() {
        for mask in [0x01, 0x80, 0xff] {
            bytes[place] ^= mask;
            let what = format!("byte {place} ^ {mask:#x}");
            assert!(error_or_same(&bytes, stripe.footer_offset, &columns, &what), "{what} was not noticed");
            bytes[place] ^= mask;
        }
    }
}

#[test]
fn every_truncation() {
    LAYOUTS.into_iter().for_each(truncate);
}

fn truncate(layout: Layout) {
    let (columns, stripe) = small_stripe(layout);
    for len in 0..stripe.bytes.len() {
        let what = format!("cut to {len} bytes");
        assert!(error_or_same(&stripe.bytes[..len], stripe.footer_offset, &columns, &what), "{what}");
    }
}

#[test]
fn errors_name_column_and_chunk() {
    for layout in LAYOUTS {
        let (_, stripe) = small_stripe(layout);
        let reader = StripeReader::open(&stripe.bytes[stripe.footer_offset as usize..]).unwrap();
        let range = reader.chunk_range(5, 1, &stripe.bytes).unwrap();
        let mut bytes = stripe.bytes.clone();
        bytes[range.start as usize] ^= 1;
        let error = reader.read_chunk(5, 1, &bytes, &NoPglz).unwrap_err();
        let Error::Corrupt { location, .. } = error else { panic!("{error:?}") };
        assert_eq!((location.column, location.chunk), (Some(5), Some(1)));
        // Other chunks are still read, and other columns where each is stored apart.
        reader.read_chunk(5, 0, &bytes, &NoPglz).unwrap();
        assert_eq!(reader.read_chunk(6, 1, &bytes, &NoPglz).is_ok(), layout == Layout::Columns);
    }
}

#[test]
fn a_chunk_in_the_place_of_another_is_noticed() {
    LAYOUTS.into_iter().for_each(exchange_chunks);
}

fn exchange_chunks(layout: Layout) {
    let mut random = Random(22);
    let column = support::column(&mut random, LogicalType::Int64, support::Shape::Small, 80, 0);
    let options = StripeOptions { layout, chunk_rows: 40, ..Default::default() };
    let stripe = write_stripe(80, &[column], &options).unwrap();
    let reader = StripeReader::open(&stripe.bytes[stripe.footer_offset as usize..]).unwrap();
    let (a, b) =
        (reader.chunk_range(0, 0, &stripe.bytes).unwrap(), reader.chunk_range(0, 1, &stripe.bytes).unwrap());
    assert_eq!(a.end - a.start, b.end - b.start, "the test wants chunks of one length");
    let mut bytes = stripe.bytes.clone();
    let first = bytes[a.start as usize..a.end as usize].to_vec();
    bytes.copy_within(b.start as usize..b.end as usize, a.start as usize);
    bytes[b.start as usize..b.end as usize].copy_from_slice(&first);
    assert!(matches!(reader.read_chunk(0, 0, &bytes, &NoPglz), Err(Error::Corrupt { .. })));
}

#[test]
fn summaries_notice_every_flipped_byte() {
    let (columns, stripe) = small_stripe(Layout::Columns);
    let mut bytes = stripe.summary.clone();
    for place in 0..bytes.len() {
        bytes[place] ^= 0x20;
        assert!(Summary::open(&bytes).is_err(), "byte {place}");
        bytes[place] ^= 0x20;
    }
    for len in 0..bytes.len() {
        assert!(Summary::open(&bytes[..len]).is_err());
    }
    let summary = Summary::open(&bytes).unwrap();
    for (column, rows) in columns.iter().enumerate() {
        let wanted = Predicate::IsNotNull { column };
        let none = prune_stripe(&summary, &wanted).unwrap() == Prune::NoRow;
        assert_eq!(none, rows.null_count() == rows.len());
    }
}
