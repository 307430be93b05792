//! A quick look at one encoding after the other: bytes a value, encode and decode speed, beside memcpy.
//! `cargo run --release -p encodings --example bench`
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap
)]

use std::hint::black_box;
use std::time::Instant;

use encodings::{Chunk, EncodeOptions, NoPglz, SharedColumn, encode_column};
use vector::{LogicalType, Values, Vector, VectorBuilder};

const ROWS: usize = 150_000;

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

fn best(times: usize, mut run: impl FnMut()) -> f64 {
    (0..times)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::MAX, f64::min)
}

fn memcpy(bytes: usize, chunks: usize) -> f64 {
    let source = vec![1u8; bytes / chunks];
    best(20, || {
        for _ in 0..chunks {
            black_box(black_box(&source).to_vec());
        }
    })
}

fn measure(name: &str, width: usize, column: &Vector) {
    // A name on the command line picks what to measure.
    if std::env::args().nth(1).is_some_and(|wanted| !name.contains(&wanted)) {
        return;
    }
    let options = EncodeOptions::default();
    let encoded = encode_column(column, &options).unwrap();
    let bytes: usize = encoded.shared.len() + encoded.chunks.iter().map(|c| c.bytes.len()).sum::<usize>();
    let encode = best(10, || {
        black_box(encode_column(black_box(column), &options).unwrap());
    });
    let shared = SharedColumn::open(column.logical, &encoded.shared, &NoPglz).unwrap();
    let decode = best(20, || {
        for chunk in &encoded.chunks {
            let opened = Chunk::open(column.logical, chunk.rows, &chunk.bytes, &shared, &NoPglz).unwrap();
            black_box(opened.decode().unwrap());
        }
    });
    let point = best(20, || {
        for chunk in &encoded.chunks {
            let opened = Chunk::open(column.logical, chunk.rows, &chunk.bytes, &shared, &NoPglz).unwrap();
            black_box(opened.take(&[chunk.rows / 2]).unwrap());
        }
    });
    let plain = column.len() * width;
    let copy = memcpy(plain, encoded.chunks.len());
    println!(
        "{name:28} {:7.3} B/value  encode {:6.2} ns  decode {:6.2} GB/s ({:4.2} of memcpy {:5.1})  point {:6.2} us  {}",
        bytes as f64 / column.len() as f64,
        encode * 1e9 / column.len() as f64,
        plain as f64 / decode / 1e9,
        copy / decode,
        plain as f64 / copy / 1e9,
        point * 1e6 / encoded.chunks.len() as f64,
        encoded.chunks.get(1).unwrap().encoding,
    );
}

fn ints64(f: impl FnMut(usize) -> i64) -> Vector {
    Vector::new(LogicalType::Int64, Values::Int64((0..ROWS).map(f).collect()))
}

fn ints32(f: impl FnMut(usize) -> i32) -> Vector {
    Vector::new(LogicalType::Int32, Values::Int32((0..ROWS).map(f).collect()))
}

fn main() {
    let mut next = random(1);
    let unit = |r: u64| (r >> 11) as f64 / (1u64 << 53) as f64;
    measure("id", 8, &ints64(|g| g as i64 + 1));
    measure("created_at", 8, &ints64(|g| 757_382_400_000_000 + g as i64 * 30_000_000));
    measure("event_date", 4, &ints32(|g| 8766 + (g / 2880) as i32));
    measure("user_id", 8, &ints64(|g| g as i64 % 50_000 + 1));
    measure("quantity", 4, &ints32(|g| g as i32 % 100 + 1));
    measure("duration_ms", 4, &ints32(|_| (unit(next()) * 30_000.0) as i32 + 50));
    measure("random 17 bits in int8", 8, &ints64(|_| (next() >> 47) as i64));
    measure("random 33 bits in int8", 8, &ints64(|_| (next() >> 31) as i64));
    measure("random 64 bits in int8", 8, &ints64(|_| next() as i64));
    measure("sorted keys, random gaps", 8, &{
        let mut at = 0;
        ints64(|_| {
            at += (next() % 100) as i64;
            at
        })
    });
    measure("few wide values", 8, &ints64(|_| ((next() % 50) as i64).pow(2) * 1_000_000_007));
    measure(
        "price",
        8,
        &Vector::new(
            LogicalType::Float64,
            Values::Float64((0..ROWS).map(|_| unit(next()) * 999.99).collect()),
        ),
    );
    measure(
        "price, 2 decimals",
        8,
        &Vector::new(
            LogicalType::Float64,
            Values::Float64((0..ROWS).map(|_| (unit(next()) * 99_999.0).round() / 100.0).collect()),
        ),
    );
    measure(
        "score",
        4,
        &Vector::new(LogicalType::Float32, Values::Float32((0..ROWS).map(|_| unit(next()) as f32).collect())),
    );
    let mut amount = VectorBuilder::new(LogicalType::Numeric);
    for _ in 0..ROWS {
        amount.push_numeric((unit(next()) * 99_999_900.0) as i128, 4, 4);
    }
    measure("amount", 4, &amount.finish(&|_, _, _| Box::default()));
    measure(
        "is_mobile",
        1,
        &Vector::new(LogicalType::Bool, Values::Bool((0..ROWS).map(|g| g % 3 != 0).collect())),
    );
}
