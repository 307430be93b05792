//! A stripe that is whole gives no finding, whatever its values; statistics and filters that lie are found
//! although every checksum is right.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use encodings::NoPglz;
use stripe::{
    Bound, Broken, ColumnStatistics, Finding, Layout, StripeOptions, StripeReader, verify_chunk,
    verify_column, write_stripe, write_summary,
};
use support::{LAYOUTS, Random, TYPES, any_column};
use vector::{LogicalType, Scalar, Values, Vector};

fn findings(reader: &StripeReader, summary: &[u8], bytes: &[u8]) -> Vec<Finding> {
    let mut found = Vec::new();
    for column in 0..reader.column_count() {
        for chunk in 0..reader.chunk_count() {
            found.extend(verify_chunk(reader, column, chunk, &bytes, &NoPglz).unwrap());
        }
        found.extend(verify_column(reader, column, summary, &bytes).unwrap());
    }
    found
}

#[test]
fn whole_stripes_of_any_values_pass() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let rows = [1, 70, 2500][seed as usize % 3];
        let columns: Vec<Vector> =
            TYPES.iter().map(|&logical| any_column(&mut random, logical, rows)).collect();
        let blooms: Vec<usize> = (0..columns.len()).collect();
        let layout = random.pick(&LAYOUTS);
        let options =
            StripeOptions { layout, chunk_rows: 1000, bloom_columns: &blooms, ..Default::default() };
        let stripe = write_stripe(u32::try_from(rows).unwrap(), &columns, &options).unwrap();
        let footer = stripe.bytes.get(usize::try_from(stripe.footer_offset).unwrap()..).unwrap();
        let reader = StripeReader::open(footer).unwrap();
        assert_eq!(findings(&reader, &stripe.summary, &stripe.bytes), Vec::new(), "seed {seed}");
    }
}

#[test]
fn flipped_bytes_are_findings() {
    LAYOUTS.into_iter().for_each(flip_bytes);
}

fn flip_bytes(layout: Layout) {
    let mut random = Random(5);
    let columns: Vec<Vector> = TYPES.iter().map(|&logical| any_column(&mut random, logical, 70)).collect();
    let options = StripeOptions { layout, chunk_rows: 40, bloom_columns: &[3], ..Default::default() };
    let stripe = write_stripe(70, &columns, &options).unwrap();
    let footer_at = usize::try_from(stripe.footer_offset).unwrap();
    let mut bytes = stripe.bytes.clone();
    for place in (0..footer_at).step_by(7) {
        bytes[place] ^= 0x10;
        let reader = StripeReader::open(&bytes[footer_at..]).unwrap();
        let found = findings(&reader, &stripe.summary, &bytes);
        assert!(found.iter().any(|finding| finding.broken == Broken::Bytes), "byte {place}: {found:?}");
        bytes[place] ^= 0x10;
    }
}

#[test]
fn summaries_that_lie_are_findings() {
    let ints = Vector::new(LogicalType::Int64, Values::Int64(vec![4, 9, 7]));
    let stripe = write_stripe(3, std::slice::from_ref(&ints), &StripeOptions::default()).unwrap();
    let reader = StripeReader::open(&stripe.bytes[usize::try_from(stripe.footer_offset).unwrap()..]).unwrap();
    let bytes = stripe.bytes.as_slice();
    let truth = reader.column_statistics(0, &bytes).unwrap().clone();
    let bound = |value, exact| Some(Bound { value: Scalar::Int(value), exact });
    let lies: [fn(ColumnStatistics) -> ColumnStatistics; 6] = [
        |s| ColumnStatistics { null_count: 1, ..s },
        |s| ColumnStatistics { sum: Some(21), ..s },
        |s| ColumnStatistics { min: Some(Bound { value: Scalar::Int(5), exact: false }), ..s },
        |s| ColumnStatistics { min: Some(Bound { value: Scalar::Int(3), exact: true }), ..s },
        |s| ColumnStatistics { max: Some(Bound { value: Scalar::Int(8), exact: true }), ..s },
        |s| ColumnStatistics { max: Some(Bound { value: Scalar::Int(10), exact: true }), ..s },
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        let summary = write_summary(3, &[(ints.logical, lie(truth.clone()))]).unwrap();
        let found = verify_column(&reader, 0, &summary, &bytes).unwrap();
        assert!(found.is_some_and(|finding| finding.broken == Broken::Statistics), "lie {number}");
    }
    let vague = ColumnStatistics { min: bound(-9, false), max: None, sum: None, ..truth };
    let summary = write_summary(3, &[(ints.logical, vague)]).unwrap();
    assert_eq!(verify_column(&reader, 0, &summary, &bytes).unwrap(), None);
    let summary = write_summary(4, &[(ints.logical, ColumnStatistics::unknown(4, 0))]).unwrap();
    assert!(verify_column(&reader, 0, &summary, &bytes).unwrap().is_some());
}
