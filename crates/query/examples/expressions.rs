//! How fast expressions are: nanoseconds a row over batches of 10,000. `cargo run --release -p query
//! --example expressions [name]`.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use query::{Batch, DateField, Evaluator, Expression, Function};
use vector::{
    ByteViews, CompareOp, Dictionary, DisplayScales, LogicalType, NumericInts, NumericValues, Values, Vector,
};

const ROWS: usize = 10_000;

fn numeric(ints: NumericInts, scale: u16) -> Vector {
    let display = DisplayScales::Constant(scale);
    Vector::new(
        LogicalType::Numeric,
        Values::Numeric(NumericValues { ints, scale, display, side: Vec::new() }),
    )
}

fn call(function: Function, arguments: Vec<Expression>, result: LogicalType) -> Expression {
    Expression::Call { function, arguments, result }
}

fn constant(vector: Vector) -> Expression {
    Expression::Constant(Arc::new(vector))
}

fn text(value: &str) -> Expression {
    constant(Vector::new(LogicalType::Text, Values::Bytes([value.as_bytes()].into_iter().collect())))
}

fn main() {
    let wanted = std::env::args().nth(1);
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    let mut random = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let words = [
        "carefully",
        "furiously",
        "special",
        "packages",
        "requests",
        "deposits",
        "final",
        "ironic",
        "accounts",
        "sleep",
    ];
    let comments: Vec<String> =
        (0..ROWS).map(|_| (0..6).map(|_| words[random(10) as usize]).collect::<Vec<_>>().join(" ")).collect();
    let types =
        ["PROMO BRUSHED TIN", "STANDARD POLISHED BRASS", "ECONOMY ANODIZED STEEL", "PROMO PLATED COPPER"];
    let views =
        |texts: &[&str]| Values::Bytes(texts.iter().map(|text| text.as_bytes()).collect::<ByteViews>());
    let dictionary = Arc::new(Dictionary {
        id: Dictionary::next_id(),
        entries: Vector::new(LogicalType::Text, views(&types)),
    });
    let codes = (0..ROWS).map(|_| random(4) as u32).collect();
    let columns = vec![
        numeric(NumericInts::Int32((0..ROWS).map(|_| 90_000 + random(10_000_000) as i32).collect()), 2),
        numeric(NumericInts::Int32((0..ROWS).map(|_| random(11) as i32).collect()), 2),
        numeric(NumericInts::Int32((0..ROWS).map(|_| random(9) as i32).collect()), 2),
        Vector::new(
            LogicalType::Date,
            Values::Int32((0..ROWS).map(|_| -2_900 + random(2_500) as i32).collect()),
        ),
        Vector::new(LogicalType::Text, views(&comments.iter().map(String::as_str).collect::<Vec<_>>())),
        Vector::new(LogicalType::Text, Values::Dictionary { codes, dictionary }),
        Vector::new(LogicalType::Int64, Values::Int64((0..ROWS).map(|_| random(1_000_000) as i64).collect())),
        Vector::new(
            LogicalType::Float64,
            Values::Float64((0..ROWS).map(|_| random(1_000_000) as f64).collect()),
        ),
        numeric(NumericInts::Int64((0..ROWS).map(|_| random(10_000_000_000) as i64).collect()), 4),
        Vector::new(
            LogicalType::Timestamp,
            Values::Int64((0..ROWS).map(|_| random(1 << 50) as i64).collect()),
        ),
    ];
    let bytes: usize = comments.iter().map(String::len).sum();
    let batch = Batch::new(ROWS, columns.into_iter().map(Arc::new).collect());
    let column = Expression::Column;
    let one = || constant(numeric(NumericInts::Int32(vec![1]), 0));
    let binary = |function, a, b, result| call(function, vec![a, b], result);
    let compare = |op, a, b| binary(Function::Compare(op), a, b, LogicalType::Bool);
    let date = |day| constant(Vector::new(LogicalType::Date, Values::Int32(vec![day])));
    let price = binary(
        Function::Multiply,
        column(0),
        binary(Function::Subtract, one(), column(1), LogicalType::Numeric),
        LogicalType::Numeric,
    );
    let charge = binary(
        Function::Multiply,
        price.clone(),
        binary(Function::Add, one(), column(2), LogicalType::Numeric),
        LogicalType::Numeric,
    );
    let like = |at, pattern| binary(Function::Like, column(at), text(pattern), LogicalType::Bool);
    let range = |width| {
        Expression::And(vec![
            compare(CompareOp::GreaterOrEqual, column(3), date(-2_000)),
            compare(CompareOp::Less, column(3), date(-2_000 + width)),
            compare(CompareOp::Less, column(0), constant(numeric(NumericInts::Int32(vec![24]), 0))),
        ])
    };
    let cases = vec![
        ("numeric add, 64 bits", binary(Function::Add, column(8), column(8), LogicalType::Numeric)),
        (
            "numeric multiply, 32 to 64 bits",
            binary(Function::Multiply, column(0), column(0), LogicalType::Numeric),
        ),
        (
            "numeric multiply, 64 by 32 bits",
            binary(Function::Multiply, column(8), column(1), LogicalType::Numeric),
        ),
        ("price * (1 - discount)", price.clone()),
        ("price * (1 - discount) * (1 + tax)", charge),
        ("bigint add", binary(Function::Add, column(6), column(6), LogicalType::Int64)),
        ("bigint multiply", binary(Function::Multiply, column(6), column(6), LogicalType::Int64)),
        ("double multiply", binary(Function::Multiply, column(7), column(7), LogicalType::Float64)),
        ("date < constant", compare(CompareOp::Less, column(3), date(-2_000))),
        (
            "numeric < constant",
            compare(CompareOp::Less, column(8), constant(numeric(NumericInts::Int32(vec![5]), 0))),
        ),
        ("double < column", compare(CompareOp::Less, column(7), column(7))),
        ("LIKE '%special%requests%'", like(4, "%special%requests%")),
        ("LIKE '%special%requests%' of absent words", like(4, "%Special%requests%")),
        ("LIKE 'PROMO%' on a dictionary", like(5, "PROMO%")),
        ("text = constant", compare(CompareOp::Equal, column(4), text("PROMO PLATED COPPER"))),
        (
            "extract year of date",
            call(Function::Extract(DateField::Year), vec![column(3)], LogicalType::Numeric),
        ),
        (
            "date_trunc month",
            call(Function::DateTrunc(DateField::Month), vec![column(9)], LogicalType::Timestamp),
        ),
        (
            "CASE WHEN type LIKE 'PROMO%' THEN price * (1 - discount) ELSE 0",
            Expression::Case {
                branches: vec![(like(5, "PROMO%"), price)],
                otherwise: Some(Box::new(constant(numeric(NumericInts::Int32(vec![0]), 0)))),
                result: LogicalType::Numeric,
            },
        ),
        ("WHERE: a fifth of the dates, and a price", range(500)),
        ("WHERE: 1 in 250 dates, and a price", range(10)),
    ];
    for (name, expression) in cases {
        if wanted.as_ref().is_some_and(|wanted| !name.contains(wanted.as_str())) {
            continue;
        }
        let selects = name.starts_with("WHERE");
        let mut evaluator = Evaluator::new(&expression);
        let mut best = f64::INFINITY;
        for _ in 0..200 {
            let start = Instant::now();
            if selects {
                black_box(evaluator.select(black_box(&batch)).unwrap());
            } else {
                black_box(evaluator.evaluate(black_box(&batch)).unwrap());
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
        let nanos = best * 1e9 / ROWS as f64;
        let rate = match name.starts_with("LIKE '%") {
            true => format!("{:.2} GB/s", bytes as f64 / best / 1e9),
            false => format!("{:.0} M rows/s", 1e3 / nanos),
        };
        println!("{nanos:8.3} ns/row  {rate:>16}  {name}");
    }
}
