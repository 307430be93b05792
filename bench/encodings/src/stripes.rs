//! What stripes cost beside their encodings: opening narrow and wide ones, pruning a large table's directory,
//! statistics.

use std::hint::black_box;

use stripe::{
    Sketch, StripeOptions, StripeReader, Summary, collect, prune_chunk, prune_stripe, write_stripe,
};
use vector::{CompareOp, LogicalType, Predicate, Scalar, Vector, VectorBuilder};

use crate::timing::best;

/// Stripes of a table of 100 million rows.
const STRIPES: usize = 670;

fn column(logical: LogicalType, rows: usize, start: i64) -> Vector {
    let mut builder = VectorBuilder::new(logical);
    for row in 0..rows {
        let value = start + i64::try_from(row).unwrap_or(0) * 7919 % 100_003;
        match logical {
            LogicalType::Int64 => builder.push_i64(value),
            LogicalType::Float64 => builder.push_f64(f64::from(i32::try_from(value).unwrap_or(0)) / 7.0),
            LogicalType::Numeric => builder.push_numeric(i128::from(value), 2, 2),
            LogicalType::Uuid => {
                builder.push_bytes(&i128::from(value).wrapping_mul(0x1234_5678_9abc_def1).to_be_bytes())
            }
            _ => builder.push_bytes(format!("/page/{value}").as_bytes()),
        };
    }
    builder.finish(&|_, _, _| Box::default())
}

const TYPES: [LogicalType; 5] =
    [LogicalType::Int64, LogicalType::Text, LogicalType::Numeric, LogicalType::Float64, LogicalType::Uuid];

fn columns(count: usize, rows: usize, start: i64) -> Vec<Vector> {
    TYPES.into_iter().cycle().take(count).map(|logical| column(logical, rows, start)).collect()
}

fn at_least(value: i64) -> Predicate {
    Predicate::Compare { column: 0, op: CompareOp::GreaterOrEqual, value: Scalar::Int(value) }
}

/// Prints a line a figure.
pub fn run() -> Result<(), String> {
    println!("\nstripes, microseconds of CPU time");
    measure().map_err(|error| error.to_string())
}

#[allow(clippy::cast_precision_loss)]
fn measure() -> vector::Result<()> {
    for (count, rows) in [(17, 30_000u32), (1600, 1000)] {
        let stripe = write_stripe(rows, &columns(count, rows as usize, 0), &StripeOptions::default())?;
        let place = usize::try_from(stripe.footer_offset).unwrap_or(0);
        let footer = stripe.bytes.get(place..).unwrap_or(&[]);
        let open = best(100, || _ = black_box(StripeReader::open(footer)));
        let prune = best(100, || {
            let Ok(reader) = StripeReader::open(footer) else { return };
            for chunk in 0..reader.chunk_count() {
                _ = black_box(prune_chunk(&reader, chunk, &at_least(50_000), &stripe.bytes));
            }
        });
        println!(
            "open, {count} columns: {:.1}; open and prune its chunks on one column: {:.1}",
            open * 1e6,
            prune * 1e6
        );
        println!(
            "  footer {} bytes, summary {} bytes ({:.1} a column)",
            stripe.footer_length,
            stripe.summary.len(),
            stripe.summary.len() as f64 / count as f64
        );
    }
    let mut summaries = Vec::new();
    for number in 0..STRIPES {
        let start = i64::try_from(number).unwrap_or(0) * 1000;
        summaries.push(write_stripe(50, &columns(17, 50, start), &StripeOptions::default())?.summary);
    }
    let wanted = Predicate::And(vec![
        at_least(300_000),
        Predicate::Compare {
            column: 1,
            op: CompareOp::Equal,
            value: Scalar::Bytes(b"/page/300100".as_slice().into()),
        },
    ]);
    let prune = best(50, || {
        for bytes in &summaries {
            _ = black_box(Summary::open(bytes).and_then(|summary| prune_stripe(&summary, &wanted)));
        }
    });
    println!("prune {STRIPES} stripes of 17 columns by two columns: {:.1}", prune * 1e6);
    for logical in TYPES {
        let rows = 150_000;
        let column = column(logical, rows, 0);
        let seconds = best(10, || {
            let mut sketch = Sketch::new();
            for start in (0..rows).step_by(10_000) {
                _ = black_box(collect(&column, start..start + 10_000, &mut sketch));
            }
        });
        println!("statistics of {logical:?}: {:.2} ns a value", seconds * 1e9 / rows as f64);
    }
    Ok(())
}
