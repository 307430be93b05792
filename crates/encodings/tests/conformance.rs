//! Every encoding of every type against the conformance suite, over shapes of data that suit it and that do
//! not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use encodings::{Chunk, EncodeOptions, EncodingId, NoPglz, SharedColumn};
use support::{build, check, check_corruption, with_nulls};
use vector::{LogicalType, Vector};

/// A cheap repeatable generator (splitmix64).
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

const LENGTHS: [usize; 7] = [0, 1, 100, 1023, 1024, 1025, 5000];

/// Integer shapes: name and value of row i, before wrapping to the type.
fn int_shapes(len: usize) -> Vec<Vec<i64>> {
    let mut next = random(7);
    let mut make =
        |f: &mut dyn FnMut(i64, u64) -> i64| -> Vec<i64> { (0..len as i64).map(|i| f(i, next())).collect() };
    vec![
        make(&mut |_, _| 42),
        make(&mut |i, _| 1000 + 3 * i),
        make(&mut |i, _| i - 2000),
        make(&mut |i, _| (i64::MAX - 1000).wrapping_add(i)),
        make(&mut |i, _| i % 500 + 1),
        make(&mut |i, _| i / 70),
        make(&mut |_, r| (r % 1000) as i64 - 500),
        make(&mut |_, r| r as i64),
        make(&mut |i, r| i * 100 + (r % 50) as i64),
        make(&mut |i, r| if r % 100 == 0 { i64::MAX - i } else { i % 4 }),
        make(&mut |i, r| if r % 100 == 0 { i64::MIN + i } else { (r % 7) as i64 }),
        make(&mut |i, _| if i % 2 == 0 { i64::MIN } else { i64::MAX }),
        make(&mut |i, _| [1_000_000_007, -5, 77_777_777_777][i as usize % 3]),
        make(&mut |_, r| (r % 300).pow(4) as i64),
        make(&mut |_, r| (r % 3000) as i64 * 86_400 - 7),
        make(&mut |_, r| if r % 2 == 0 { i64::MIN } else { 0 }),
        make(&mut |i, _| [3, 1, 4, 1, 5, 9, 2, 6, 5][i as usize % 9]),
    ]
}

fn int_column(logical: LogicalType, values: &[i64]) -> Vector {
    build(logical, |b| {
        for &v in values {
            match logical {
                LogicalType::Int16 => b.push_i16(v as i16),
                LogicalType::Int32 | LogicalType::Date => b.push_i32(v as i32),
                _ => b.push_i64(v),
            };
        }
    })
}

const INTEGER_ENCODINGS: [EncodingId; 9] = [
    EncodingId::Multiple,
    EncodingId::Periodic,
    EncodingId::Levels,
    EncodingId::Plain,
    EncodingId::Sequence,
    EncodingId::RunLength,
    EncodingId::BitPacked,
    EncodingId::Delta,
    EncodingId::Dictionary,
];

/// No force and every encoding that the column's type may use.
fn forced(column: &Vector) -> Vec<Option<EncodingId>> {
    let ids: &[EncodingId] = match column.logical {
        LogicalType::Text | LogicalType::Bytes | LogicalType::Uuid | LogicalType::FixedBytes(_) => {
            &EncodingId::ALL
        }
        LogicalType::Float32 | LogicalType::Float64 => &[
            EncodingId::Plain,
            EncodingId::Alp,
            EncodingId::AlpRd,
            EncodingId::Dictionary,
            EncodingId::RunLength,
        ],
        _ => &INTEGER_ENCODINGS,
    };
    std::iter::once(None).chain(ids.iter().copied().map(Some)).collect()
}

fn check_all(column: &Vector) {
    for (pattern, column) in with_nulls(column).into_iter().enumerate() {
        if pattern > 0 && ![100, 1025].contains(&column.len()) {
            continue;
        }
        // Forced encodings meet no NULLs and a random pattern; every pattern meets the chooser.
        let full = matches!(column.logical, LogicalType::Int64 | LogicalType::Float64 | LogicalType::Text);
        let all = (pattern == 0 || pattern == 6) && (column.len() == 100 || full && column.len() == 1025);
        for force in if all { forced(&column) } else { vec![None] } {
            check(&column, &EncodeOptions { force, ..EncodeOptions::default() });
        }
    }
    if column.len() == 1025 {
        check(column, &EncodeOptions { chunk_rows: 1000, ..EncodeOptions::default() });
    }
}

#[test]
fn integers() {
    for logical in [LogicalType::Int16, LogicalType::Int32, LogicalType::Int64] {
        for len in LENGTHS {
            for values in int_shapes(len) {
                let column = int_column(logical, &values);
                if len == 5000 {
                    check(&column, &EncodeOptions { chunk_rows: 3000, ..EncodeOptions::default() });
                } else {
                    check_all(&column);
                }
            }
        }
    }
    check_all(&int_column(LogicalType::Date, &[i64::from(i32::MAX), 0, i64::from(i32::MIN)]));
    check_all(&int_column(LogicalType::Timestamp, &[i64::MAX, 0, i64::MIN]));
}

#[test]
fn integers_that_follow_each_other() {
    let first_of = |values: Vec<i64>, null: bool| {
        let mut column = int_column(LogicalType::Int64, &values);
        if null {
            column = with_nulls(&column).remove(3);
        }
        let encoded = check(&column, &EncodeOptions::default());
        let shared = SharedColumn::open(column.logical, &encoded.shared, &NoPglz).unwrap();
        let chunk = &encoded.chunks[0];
        Chunk::open(column.logical, chunk.rows, &chunk.bytes, &shared, &NoPglz).unwrap().consecutive()
    };
    assert_eq!(first_of((-5..900).collect(), false), Some(-5));
    assert_eq!(first_of((-5..900).collect(), true), None);
    assert_eq!(first_of((0..900).map(|i| 2 * i).collect(), false), None);
    assert_eq!(first_of((0..900).map(|i| -i).collect(), false), None);
    assert_eq!(
        first_of((i64::MAX - 100..=i64::MAX).collect(), false),
        None,
        "the next one would wrap around"
    );
    assert_eq!(first_of((0..900).map(|i| i64::wrapping_add(i64::MAX - 5, i)).collect(), false), None);
}

#[test]
fn booleans() {
    for len in LENGTHS {
        for shape in 0..4usize {
            let mut next = random(3);
            check_all(&build(LogicalType::Bool, |b| {
                for i in 0..len {
                    b.push_bool(match shape {
                        0 => true,
                        1 => i % 3 != 0,
                        2 => i > len / 2,
                        _ => next() & 1 == 1,
                    });
                }
            }));
        }
    }
}

fn float_shapes(len: usize) -> Vec<Vec<f64>> {
    let mut next = random(11);
    let mut make =
        |f: &mut dyn FnMut(usize, u64) -> f64| -> Vec<f64> { (0..len).map(|i| f(i, next())).collect() };
    let unit = |r: u64| (r >> 11) as f64 / (1u64 << 53) as f64;
    let strange =
        [0.0, -0.0, f64::NAN, f64::from_bits(0x7ff8_0000_dead_beef), f64::from_bits(0xfff0_0000_0000_0001)];
    vec![
        make(&mut |_, _| 1.5),
        make(&mut |_, r| (r % 100_000) as f64 / 100.0),
        make(&mut |_, r| unit(r) * 999.99),
        make(&mut |i, _| (i / 30) as f64),
        make(&mut |_, r| f64::from_bits(r)),
        make(&mut |i, r| if r % 9 == 0 { strange[i % 5] } else { (r % 5000) as f64 / 1000.0 }),
        make(&mut |i, r| if r % 9 == 0 { strange[i % 5] } else { unit(r) }),
        make(&mut |i, _| strange[i % 5]),
        make(&mut |_, r| {
            [f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, f64::MAX, 5e-324][(r % 5) as usize]
        }),
    ]
}

#[test]
fn floats() {
    for len in LENGTHS {
        for values in float_shapes(len) {
            let doubles = build(LogicalType::Float64, |b| {
                for &v in &values {
                    b.push_f64(v);
                }
            });
            let singles = build(LogicalType::Float32, |b| {
                for &v in &values {
                    b.push_f32(v as f32);
                }
            });
            for column in [doubles, singles] {
                if len == 5000 {
                    check(&column, &EncodeOptions::default());
                } else {
                    check_all(&column);
                }
            }
        }
    }
}

#[test]
fn decimals() {
    for len in [0, 1, 2, 1023, 1025] {
        for shape in 0..8usize {
            let mut next = random(5);
            check_all(&build(LogicalType::Numeric, |b| {
                for i in 0..len {
                    let r = next();
                    match shape {
                        0 => b.push_numeric((r % 100_000_000) as i128, 4, 4),
                        1 => b.push_numeric(r as i128, (i % 5) as u16, (i % 7) as u16 + 4),
                        2 => b.push_numeric(i128::from(r) * i128::from(r >> 4) - i as i128, 3, 3),
                        3 => b.push_numeric(-10i128.pow(30) + i as i128, 2, 2),
                        4 if i % 50 == 3 => b.push_numeric_side(b"NaN"),
                        4 => b.push_numeric(i as i128, 1, 1),
                        5 => {
                            b.push_numeric(if i == 7 { 10i128.pow(37) } else { i as i128 }, (i % 4) as u16, 4)
                        }
                        6 => b.push_numeric_side(format!("side {}", i % 3).as_bytes()),
                        _ => b.push_numeric(125, 2, 2),
                    };
                }
            }));
        }
    }
}

#[test]
fn byte_strings() {
    for len in [0, 1, 2, 1023, 1025] {
        for shape in 0..5usize {
            for logical in
                [LogicalType::Text, LogicalType::Bytes, LogicalType::Uuid, LogicalType::FixedBytes(3)]
            {
                let mut next = random(9);
                check_all(&build(logical, |b| {
                    for i in 0..len {
                        let r = next();
                        let value: Vec<u8> = match shape {
                            0 => b"constant".to_vec(),
                            1 => format!("value {}", r % 20).into_bytes(),
                            2 => vec![b'x'; i % 40],
                            3 => r.to_le_bytes().to_vec(),
                            _ => format!("a longer text, number {i}, with {r} at its end").into_bytes(),
                        };
                        match logical {
                            LogicalType::Uuid | LogicalType::FixedBytes(_) => {
                                let width = if logical == LogicalType::Uuid { 16 } else { 3 };
                                let mut fixed = value;
                                fixed.resize(width, 0);
                                assert!(b.push_bytes(&fixed));
                            }
                            _ => assert!(b.push_bytes(&value)),
                        }
                    }
                }));
            }
        }
    }
}

#[test]
fn corrupt_bytes_never_panic() {
    let len = 40;
    for values in int_shapes(len) {
        for force in INTEGER_ENCODINGS {
            let options = EncodeOptions { force: Some(force), ..EncodeOptions::default() };
            check_corruption(&int_column(LogicalType::Int32, &values), &options);
        }
        let nulls = &with_nulls(&int_column(LogicalType::Int64, &values))[6];
        check_corruption(nulls, &EncodeOptions::default());
    }
    for values in float_shapes(len) {
        for force in [
            Some(EncodingId::RunLength),
            Some(EncodingId::Alp),
            Some(EncodingId::AlpRd),
            Some(EncodingId::Dictionary),
        ] {
            let options = EncodeOptions { force, ..EncodeOptions::default() };
            check_corruption(
                &build(LogicalType::Float64, |b| {
                    values.iter().for_each(|&v| {
                        b.push_f64(v);
                    })
                }),
                &options,
            );
        }
    }
    for shape in 0..4 {
        let column = build(LogicalType::Numeric, |b| {
            for i in 0..len {
                match shape {
                    0 if i % 9 == 3 => b.push_numeric_side(b"NaN"),
                    0 => b.push_numeric(i as i128, (i % 3) as u16, 5 + (i % 2) as u16),
                    1 => b.push_numeric(10i128.pow(i as u32 % 30), 0, 0),
                    2 => b.push_numeric(10i128.pow(30) + i as i128, 0, 0),
                    _ => b.push_numeric(i as i128 % 3, 2, 2),
                };
            }
        });
        check_corruption(&column, &EncodeOptions::default());
    }
    let text = build(LogicalType::Text, |b| {
        (0..len).for_each(|i| {
            b.push_bytes(format!("text number {}", i % 11).as_bytes());
        })
    });
    check_corruption(&text, &EncodeOptions::default());
}
