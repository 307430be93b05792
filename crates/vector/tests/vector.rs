//! Vectors keep their rows through building, slicing, taking and flattening.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use vector::{
    Bitmap, ByteViews, Dictionary, DisplayScales, LogicalType, NumericInts, Selection, Values, Vector,
    VectorBuilder,
};

fn no_side(_: i128, _: u16, _: u16) -> Box<[u8]> {
    Box::from(*b"side")
}

#[test]
fn bitmap_slice_matches_bit_by_bit() {
    let bits: Bitmap = (0..300).map(|i| i % 3 == 0 || i % 7 == 1).collect();
    for (start, len) in [(0, 300), (1, 64), (63, 2), (64, 64), (65, 200), (299, 1), (250, 100), (300, 5)] {
        let want: Vec<bool> = (start..(start + len).min(300)).map(|i| bits.get(i)).collect();
        assert_eq!(bits.slice(start, len).iter().collect::<Vec<_>>(), want, "{start} {len}");
    }
    assert_eq!(bits.ones().collect::<Vec<_>>(), (0..300).filter(|&i| bits.get(i)).collect::<Vec<_>>());
    assert_eq!(Bitmap::filled(70, true).count_ones(), 70);
}

#[test]
fn byte_views_keep_short_long_and_many_values() {
    let values: Vec<Vec<u8>> = (0..5000usize).map(|i| vec![(i % 251) as u8; i % 2500]).collect();
    let mut views = ByteViews::new();
    for value in &values {
        assert!(views.push(value));
    }
    assert!(views.iter().eq(values.iter().map(Vec::as_slice)), "before sealing");
    let slice = views.slice(1000, 50);
    views.seal();
    assert!(views.iter().eq(values.iter().map(Vec::as_slice)), "after sealing");
    assert!(slice.iter().eq(values[1000..1050].iter().map(Vec::as_slice)), "slice of an open builder");
    let taken = views.take(&[4999, 0, 13]);
    assert_eq!(taken.get(0), values[4999]);
    assert_eq!(taken.get(1), b"");
    assert_eq!(taken.get(2), [13; 13]);
    assert!(ByteViews::from_offsets(&[0, 3, 2], vec![0; 5]).is_none(), "descending offsets");
    assert!(ByteViews::from_offsets(&[0, 6], vec![0; 5]).is_none(), "past the end");
}

#[test]
fn numerics_come_to_one_scale_and_the_rest_goes_aside() {
    let mut builder = VectorBuilder::new(LogicalType::Numeric);
    builder.push_null();
    assert!(builder.push_numeric(15, 1, 1));
    assert!(builder.push_numeric(-2, 0, 1));
    assert!(builder.push_numeric(10i128.pow(37), 0, 1));
    assert!(builder.push_numeric(1, 3, 1));
    assert!(builder.push_numeric_side(b"NaN"));
    assert!(!builder.push_i32(1));
    let vector = builder.finish(&no_side);
    let Values::Numeric(numeric) = &vector.values else { panic!("{vector:?}") };
    assert_eq!(numeric.scale, 3);
    assert_eq!(
        numeric.display,
        DisplayScales::Constant(1),
        "NULL and side rows do not spoil a constant scale"
    );
    assert_eq!(numeric.ints.get(1), 1500);
    assert_eq!(numeric.ints.get(2), -2000);
    assert_eq!(numeric.side_value(3), Some(&b"side"[..]), "10^37 x 1000 does not fit 38 digits");
    assert_eq!(numeric.side_value(5), Some(&b"NaN"[..]));
    assert!(matches!(numeric.ints, NumericInts::Int32(_)), "narrowed after the huge one left");
    assert!(!vector.is_valid(0) && vector.is_valid(5));
    let taken = vector.take(&[5, 3, 1]);
    let Values::Numeric(numeric) = &taken.values else { panic!() };
    assert_eq!(numeric.side_value(0), Some(&b"NaN"[..]));
    assert_eq!(numeric.ints.get(2), 1500);
}

#[test]
fn encoded_vectors_flatten_to_their_rows() {
    let entries = Vector::new(LogicalType::Int32, Values::Int32(vec![7, 8, 9]));
    let dictionary = Arc::new(Dictionary { id: 1, entries });
    let mut coded = Vector::new(
        LogicalType::Int32,
        Values::Dictionary { codes: vec![2, 0, 0, 1], dictionary: Arc::clone(&dictionary) },
    );
    coded.validity = Some([true, false, true, true].into_iter().collect());
    assert_eq!(coded.slice(1, 2).len(), 2);
    let flat = coded.flatten();
    assert_eq!(flat.values, Values::Int32(vec![9, 7, 7, 8]));
    assert_eq!(flat.null_count(), 1);

    let mut values = Vector::new(LogicalType::Int32, Values::Int32(vec![5, 6]));
    values.validity = Some([true, false].into_iter().collect());
    let runs = Vector::new(LogicalType::Int32, Values::Runs { ends: vec![3, 5], values: Box::new(values) });
    assert_eq!(runs.null_count(), 2);
    assert_eq!(runs.take(&[0, 4]).null_count(), 1);
    let mut masked = runs.clone();
    masked.validity = Some([false, true, true, true, true].into_iter().collect());
    assert_eq!(masked.take(&[0, 1]).null_count(), 1, "validity beside the runs counts in take");
    assert_eq!(masked.slice(0, 5).null_count(), 3);
    let flat = runs.flatten();
    assert_eq!((flat.len(), flat.null_count()), (5, 2));

    let one = Vector::new(LogicalType::Int32, Values::Int32(vec![4]));
    let constant = Vector::new(LogicalType::Int32, Values::Constant(Box::new(one), 3));
    assert_eq!(constant.flatten().values, Values::Int32(vec![4; 3]));
}

#[test]
fn flattening_gives_the_rows_that_taking_gives() {
    let mut columns = Vec::new();
    for logical in [LogicalType::Text, LogicalType::Int64, LogicalType::Float32, LogicalType::Bool] {
        let mut builder = VectorBuilder::new(logical);
        for row in 0..4u8 {
            let pushed = match logical {
                LogicalType::Text => builder.push_bytes(&vec![b'a' + row; usize::from(row) * 9]),
                LogicalType::Int64 => builder.push_i64(i64::from(row) - 2),
                LogicalType::Float32 => builder.push_f32(f32::from(row)),
                _ => builder.push_bool(row > 1),
            };
            assert!(pushed);
        }
        builder.push_null();
        columns.push(builder.finish(&no_side));
    }
    for column in columns {
        let logical = column.logical;
        let constant = Vector::new(logical, Values::Constant(Box::new(column.slice(3, 1)), 70));
        // The third run is empty.
        let ends = vec![1, 40, 40, 66, 70];
        let mut runs = Vector::new(logical, Values::Runs { ends, values: Box::new(column) });
        let rows: Vec<u32> = (0..70).collect();
        for vector in [&constant, &runs] {
            assert_eq!(vector.clone().flatten(), vector.take(&rows).flatten(), "{logical:?}");
        }
        runs.validity = Some((0..70).map(|row| row % 5 != 0).collect());
        assert_eq!(runs.clone().flatten(), runs.take(&rows).flatten(), "{logical:?}");
        assert_eq!(runs.flatten().null_count(), 14 + 4);
    }
}

#[test]
fn views_into_a_buffer_equal_pushed_values_at_every_place_and_length() {
    let data: Vec<u8> = (0..60u8).map(|i| i.wrapping_mul(37) | 1).collect();
    for start in 0..=data.len() {
        for end in start..=data.len() {
            let offsets = [u32::try_from(start).unwrap(), u32::try_from(end).unwrap()];
            let views = ByteViews::from_offsets(&offsets, data.clone()).unwrap();
            assert_eq!(views.get(0), &data[start..end], "{start}..{end}");
            let pushed: ByteViews = [&data[start..end]].into_iter().collect();
            // Short views must be equal bit for bit, padding included: kernels compare them whole.
            if end - start <= vector::INLINE_BYTES {
                assert_eq!(views.views(), pushed.views(), "{start}..{end}");
            }
            assert_eq!((pushed.get(0), pushed.len()), (&data[start..end], 1));
        }
    }
    assert!(ByteViews::from_offsets(&[3, 2], data.clone()).is_none());
    assert!(ByteViews::from_offsets(&[0, 61], data.clone()).is_none());
    assert_eq!(ByteViews::view_at(&data, 50, 20).len(), 0);
    assert_eq!(ByteViews::view_at(&data, 4000, 3).len(), 0);
}

#[test]
fn parts_of_values_share_their_buffers() {
    let values: Vec<Vec<u8>> = (0..200usize).map(|i| (0..i as u8).collect()).collect();
    let mut views: ByteViews = values.iter().map(Vec::as_slice).collect();
    for open in [false, true] {
        if open {
            views.push(b"a long value in an open buffer");
        }
        for (start, end) in [(0, 300), (0, 5), (3, 40), (17, 17), (30, 20), (190, 500)] {
            let parts = views.parts(|_, _| start..end);
            let want = views.iter().map(|value| {
                let end = end.min(value.len());
                &value[start.min(end)..end]
            });
            assert!(parts.iter().eq(want), "{start}..{end}");
        }
    }
}

#[test]
fn selections_keep_what_passes() {
    let mut rows = Selection::All(300);
    rows.retain(|_| true);
    assert_eq!(rows, Selection::All(300), "nothing was left out");
    let third: Bitmap = (0..300).map(|row| row % 3 == 0).collect();
    let mut masked = rows.clone();
    masked.retain_mask(&third);
    rows.retain(|row| row % 3 == 0);
    assert_eq!(rows, Selection::Rows((0..100).map(|at| at * 3).collect()));
    assert_eq!(masked, rows);
    let last: Bitmap = (0..300).map(|row| row >= 297).collect();
    masked.retain_mask(&last);
    rows.retain(|row| row >= 297);
    assert_eq!(rows, Selection::Rows(vec![297]));
    assert_eq!(masked, rows);
    rows.retain(|_| false);
    assert!(rows.is_empty());
    let mut none = Selection::All(0);
    none.retain_mask(&Bitmap::new());
    assert_eq!(none, Selection::All(0));
    let mut no_row = Selection::All(5);
    no_row.retain(|_| false);
    assert_eq!(no_row, Selection::Rows(Vec::new()));
}
