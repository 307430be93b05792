//! What is written is read back: every type, every pattern of NULLs, chunks of any size; whole chunks and
//! single rows.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

mod support;

use encodings::{Codec, NoPglz};
use stripe::{EncodedStripe, Layout, StripeBytes, StripeOptions, StripeReader, Summary, write_stripe};
use support::{LAYOUTS, Random, SHAPES, TYPES, any_column, assert_same, cell, column};
use vector::{Error, LogicalType, Vector, VectorBuilder};

fn open(stripe: &EncodedStripe) -> StripeReader {
    let start = stripe.footer_offset as usize;
    StripeReader::open(&stripe.bytes[start..start + stripe.footer_length as usize]).unwrap()
}

fn check(columns: &[Vector], rows: u32, options: &StripeOptions<'_>, random: &mut Random) {
    LAYOUTS
        .into_iter()
        .for_each(|layout| check_layout(columns, rows, &StripeOptions { layout, ..*options }, random));
}

fn check_layout(columns: &[Vector], rows: u32, options: &StripeOptions<'_>, random: &mut Random) {
    let stripe = write_stripe(rows, columns, options).unwrap();
    let reader = open(&stripe);
    assert_eq!(reader.row_count(), rows);
    assert_eq!(reader.column_count(), columns.len());
    assert!(reader.schema().map(|c| c.logical).eq(columns.iter().map(|c| c.logical)));
    assert_eq!(stripe.footer_offset + u64::from(stripe.footer_length), stripe.bytes.len() as u64);
    let summary = Summary::open(&stripe.summary).unwrap();
    assert_eq!((summary.row_count(), summary.column_count()), (rows, columns.len()));
    for (index, column) in columns.iter().enumerate() {
        let what = format!("column {index} {:?}", column.logical);
        let mut seen = 0;
        for chunk in 0..reader.chunk_count() {
            let within = reader.chunk_rows(chunk);
            assert_eq!(within.start, seen);
            seen = within.end;
            let wanted = column.slice(within.start as usize, within.len());
            let owned = reader.read_chunk(index, chunk, &stripe.bytes, &NoPglz).unwrap();
            assert_same(&owned.decode(&NoPglz).unwrap(), &wanted, &what);
            let statistics = reader.statistics(index, chunk, &stripe.bytes).unwrap();
            assert_eq!(statistics.null_count as usize, wanted.null_count(), "{what}");
        }
        assert_eq!(seen, rows, "{what}");
        let whole = reader.column_statistics(index, &stripe.bytes).unwrap();
        assert_eq!((whole.null_count as usize, whole.rows), (column.null_count(), rows), "{what}");
        let (logical, brief) = summary.column(index).unwrap().unwrap();
        assert_eq!((logical, brief.null_count, brief.sum), (column.logical, whole.null_count, whole.sum));
        let mut wanted: Vec<u32> = (0..rows).filter(|_| random.below(7) == 0).collect();
        assert_same(
            &reader.take(index, &wanted, &stripe.bytes, &NoPglz).unwrap(),
            &column.take(&wanted),
            &format!("{what}, taken"),
        );
        for &row in wanted.iter().take(5).filter(|_| reader.layout() == Layout::Blocks) {
            let (number, within) = reader.unit_of(row);
            let block = reader.read_block(number, &stripe.bytes).unwrap();
            assert_eq!(block.rows() as usize, within.len(), "{what}");
            let chunk = reader.open_in_block(&block, index, &stripe.bytes, &NoPglz).unwrap();
            let got = chunk.take(&[row - within.start]).unwrap();
            assert_same(&got, &column.take(&[row]), &format!("{what}, row {row} of its block"));
        }
        wanted.push(rows);
        assert!(matches!(reader.take(index, &wanted, &stripe.bytes, &NoPglz), Err(Error::InvalidInput(_))));
    }
}

#[test]
fn every_type_and_shape() {
    let mut random = Random(1);
    for logical in TYPES {
        for shape in SHAPES {
            for nulls in [0, 20, 100] {
                let columns = [column(&mut random, logical, shape, 2_500, nulls)];
                check(
                    &columns,
                    2_500,
                    &StripeOptions { chunk_rows: 1_100, ..Default::default() },
                    &mut random,
                );
            }
        }
    }
}

#[test]
fn random_schemas_and_chunk_sizes() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let rows = random.pick(&[0usize, 1, 2, 63, 64, 1023, 1024, 1025, 3000]);
        let columns: Vec<Vector> = (0..random.index(9))
            .map(|_| {
                let logical = random.pick(&TYPES);
                any_column(&mut random, logical, rows)
            })
            .collect();
        let options = StripeOptions {
            chunk_rows: random.pick(&[1, 7, 1000, 1024, 10_000]),
            codec: random.pick(&[Codec::None, Codec::Lz4, Codec::Zstd]),
            bloom_columns: &[0, 2, 4],
            ..Default::default()
        };
        check(&columns, rows as u32, &options, &mut random);
    }
}

#[test]
fn a_stripe_without_rows_or_columns() {
    let mut random = Random(5);
    check(&[], 0, &StripeOptions::default(), &mut random);
    check(&[], 17, &StripeOptions::default(), &mut random);
    let columns: Vec<Vector> = TYPES.iter().map(|&logical| any_column(&mut random, logical, 0)).collect();
    check(&columns, 0, &StripeOptions::default(), &mut random);
}

#[test]
fn sixteen_hundred_columns() {
    let mut random = Random(6);
    let columns: Vec<Vector> =
        (0..1600).map(|i| any_column(&mut random, TYPES[i % TYPES.len()], 20)).collect();
    check(&columns, 20, &StripeOptions { chunk_rows: 10, ..Default::default() }, &mut random);
}

#[test]
fn values_of_megabytes_make_smaller_chunks() {
    let mut random = Random(7);
    let mut builder = VectorBuilder::new(LogicalType::Bytes);
    for row in 0..40usize {
        let filler = random.next() as u8;
        assert!(builder.push_bytes(&vec![filler; if row % 2 == 0 { (3 << 20) + row } else { row }]));
    }
    let big = builder.finish(&|_, _, _| Box::default());
    let small = column(&mut random, LogicalType::Int32, support::Shape::Wild, 40, 0);
    let stripe = write_stripe(40, &[big.clone(), small.clone()], &StripeOptions::default()).unwrap();
    let reader = open(&stripe);
    assert!(reader.chunk_count() > 1);
    check(&[big, small], 40, &StripeOptions::default(), &mut random);
}

#[test]
fn callers_mistakes_are_errors() {
    let mut random = Random(8);
    let columns = [any_column(&mut random, LogicalType::Int32, 10)];
    assert!(matches!(write_stripe(11, &columns, &StripeOptions::default()), Err(Error::InvalidInput(_))));
    let no_rows = StripeOptions { chunk_rows: 0, ..Default::default() };
    assert!(matches!(write_stripe(10, &columns, &no_rows), Err(Error::InvalidInput(_))));
    for layout in LAYOUTS {
        ask_for_what_is_not_there(&columns, layout);
    }
}

fn ask_for_what_is_not_there(columns: &[Vector], layout: Layout) {
    let stripe = write_stripe(10, columns, &StripeOptions { layout, ..Default::default() }).unwrap();
    let reader = open(&stripe);
    assert!(matches!(reader.read_block(1, &stripe.bytes), Err(Error::InvalidInput(_))));
    assert!(matches!(reader.read_chunk(1, 0, &stripe.bytes, &NoPglz), Err(Error::InvalidInput(_))));
    assert!(matches!(reader.read_chunk(0, 1, &stripe.bytes, &NoPglz), Err(Error::InvalidInput(_))));
    assert!(matches!(reader.take(0, &[3, 2], &stripe.bytes, &NoPglz), Err(Error::InvalidInput(_))));
}

#[test]
fn encoded_vectors_are_stored_as_their_rows() {
    let mut random = Random(9);
    let flat = column(&mut random, LogicalType::Text, support::Shape::Few, 100, 10);
    let constant = Vector::new(LogicalType::Text, vector::Values::Constant(Box::new(flat.slice(3, 1)), 100));
    let stripe = write_stripe(100, std::slice::from_ref(&constant), &StripeOptions::default()).unwrap();
    let got = open(&stripe).read_chunk(0, 0, &stripe.bytes, &NoPglz).unwrap().decode(&NoPglz).unwrap();
    assert_eq!(cell(&got.flatten(), 99), cell(&flat, 3));
}

#[test]
fn writing_ends_where_the_caller_says() {
    let mut random = Random(10);
    let columns = [
        any_column(&mut random, LogicalType::Int32, 1_000),
        any_column(&mut random, LogicalType::Text, 1_000),
    ];
    let asked = std::cell::Cell::new(0usize);
    let count = || {
        asked.set(asked.get() + 1);
        Ok(())
    };
    let options = StripeOptions { chunk_rows: 100, ..Default::default() };
    write_stripe(1_000, &columns, &StripeOptions { check: &count, ..options }).unwrap();
    let times = asked.get();
    assert!(times >= 20, "asked {times} times for 20 chunks");
    for limit in 0..times {
        asked.set(0);
        let refuse = || {
            count()?;
            if asked.get() > limit { Err(Error::Host("stop".into())) } else { Ok(()) }
        };
        let ended = write_stripe(1_000, &columns, &StripeOptions { check: &refuse, ..options });
        assert!(matches!(ended, Err(Error::Host(_))), "after {limit}");
        assert_eq!(asked.get(), limit + 1, "nothing goes on after the refusal");
    }
}

/// Counts the bytes that are read.
struct Counted<'a>(&'a [u8], std::cell::Cell<u64>);

impl StripeBytes for Counted<'_> {
    fn read(&self, range: std::ops::Range<u64>, out: &mut Vec<u8>) -> vector::Result<()> {
        self.1.set(self.1.get() + range.end - range.start);
        self.0.read(range, out)
    }
}

#[test]
fn small_columns_beside_large_values_are_read_alone() {
    let mut random = Random(11);
    let rows = 60;
    let mut large = VectorBuilder::new(LogicalType::Bytes);
    let mut small = VectorBuilder::new(LogicalType::Int64);
    for row in 0..rows {
        let value: Vec<u8> = (0..60_000).map(|_| random.below(256) as u8).collect();
        assert!(large.push_bytes(&value));
        assert!(small.push_i64(i64::from(row * row % 17)));
    }
    let none = |_, _, _| Box::from([]);
    let columns = [large.finish(&none), small.finish(&none)];
    check(&columns, rows, &StripeOptions::default(), &mut random);
    let stripe =
        write_stripe(rows, &columns, &StripeOptions { layout: Layout::Blocks, ..Default::default() });
    let stripe = stripe.unwrap();
    let reader = open(&stripe);
    let bytes = Counted(&stripe.bytes, 0.into());
    let chunk = reader.read_chunk(1, 0, &bytes, &NoPglz).unwrap();
    assert_same(&chunk.decode(&NoPglz).unwrap(), &columns[1], "the small column");
    assert!(bytes.1.get() < stripe.bytes.len() as u64 / 100, "{} bytes", bytes.1.get());
    assert!(reader.chunk_range(1, 0, &bytes).unwrap().is_empty());
}
