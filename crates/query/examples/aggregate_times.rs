//! Times of aggregation and sorting on made-up rows: `cargo run --release -p query --example aggregate_times
//! [MILLIONS]`. Prints milliseconds of processor time for each million rows, the least of three runs, on one
//! thread, without the time it takes to make the rows.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::sync::Arc;

use query::{
    Aggregate, AggregateFunction as F, Batch, Execution, Expression, Host, Plan, Result, Settings, SortKey,
    Source, TextOrder, Unit,
};
use vector::{
    ByteViews, Dictionary, DisplayScales, LogicalType as T, NumericInts, NumericValues, Values, Vector,
};

const ROWS: usize = 10_000;

struct Batches(VecDeque<Batch>);

impl Source for Batches {
    fn next_unit(&mut self, _host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        Ok(self.0.pop_front().map(|batch| Box::new(Some(batch)) as Box<dyn Unit>))
    }
}

struct Calm;

impl Host for Calm {
    fn check_interrupts(&mut self) -> Result<()> {
        Ok(())
    }
}

const TYPES: [T; 8] = [T::Numeric, T::Int64, T::Text, T::Text, T::Int32, T::Int32, T::Text, T::Int64];

/// Columns: amount, bigint, coded text of 12, the same flat, integer of 50,000 and of 1,000,000, coded text
/// of 3, scattered bigint of 1,000,000.
fn rows(millions: usize) -> VecDeque<Batch> {
    let words: ByteViews = (0..12)
        .map(|i| format!("country {i}").into_bytes())
        .collect::<Vec<_>>()
        .iter()
        .map(Vec::as_slice)
        .collect();
    let flags: ByteViews = [b"A".as_slice(), b"N", b"R"].into_iter().collect();
    let (words, flags) =
        (Vector::new(T::Text, Values::Bytes(words)), Vector::new(T::Text, Values::Bytes(flags)));
    let mut state = 88_172_645_463_325_252u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut batches = VecDeque::new();
    for batch in 0..millions * 1_000_000 / ROWS {
        let random: Vec<u64> = (0..ROWS).map(|_| next() >> 11).collect();
        let codes: Vec<u32> = random.iter().map(|r| (r % 12) as u32).collect();
        let amounts = NumericValues {
            ints: NumericInts::Int32(random.iter().map(|r| (r % 1_000_000) as i32).collect()),
            scale: 2,
            display: DisplayScales::Constant(2),
            side: Vec::new(),
        };
        // A dictionary for each 15 batches, as stripes have.
        let coded = |codes: Vec<u32>, entries: &Vector, id: usize| Values::Dictionary {
            codes,
            dictionary: Arc::new(Dictionary { id: id as u64, entries: entries.clone() }),
        };
        let ints = |modulo: u64| Values::Int32(random.iter().map(|r| (r / 7 % modulo) as i32).collect());
        let columns = vec![
            Values::Numeric(amounts),
            Values::Int64(random.iter().map(|r| (r % 100_000_000_000) as i64).collect()),
            coded(codes.clone(), &words, batch / 15),
            words.take(&codes).values,
            ints(50_000),
            ints(1_000_000),
            coded(random.iter().map(|r| (r / 5 % 3) as u32).collect(), &flags, 1_000_000 + batch / 15),
            Values::Int64(
                random.iter().map(|r| ((r % 1_000_000).wrapping_mul(0x9e37_79b9_7f4a_7c15)) as i64).collect(),
            ),
        ];
        let columns = columns.into_iter().zip(TYPES).map(|(v, t)| Arc::new(Vector::new(t, v))).collect();
        batches.push_back(Batch::new(ROWS, columns));
    }
    batches
}

fn aggregate(function: F, argument: Option<usize>, result: T, distinct: bool) -> Aggregate {
    Aggregate {
        function,
        arguments: argument.map(Expression::Column).into_iter().collect(),
        distinct,
        filter: None,
        order_by: Vec::new(),
        order: TextOrder::Bytes,
        result,
        host: None,
    }
}

/// Milliseconds of processor time that this thread has used (Linux): other processes do not count.
fn used() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse::<f64>().ok()).unwrap() / 1e6
}

fn main() {
    let millions = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(10);
    let batches = rows(millions);
    let scan = || Box::new(Plan::Scan { source: 0, types: TYPES.to_vec() });
    let group = |keys: &[usize], aggregates: Vec<Aggregate>| Plan::Aggregate {
        input: scan(),
        keys: keys.iter().map(|&key| Expression::Column(key)).collect(),
        aggregates,
        groups: 100.0,
    };
    let sort = |column: usize, limit| Plan::Sort {
        input: Box::new(Plan::Project {
            input: scan(),
            expressions: vec![Expression::Column(column), Expression::Column(1)],
        }),
        keys: vec![SortKey {
            expression: Expression::Column(0),
            descending: true,
            nulls_first: true,
            order: TextOrder::Bytes,
        }],
        limit,
    };
    let count = || aggregate(F::CountRows, None, T::Int64, false);
    let sum = || aggregate(F::Sum, Some(0), T::Numeric, false);
    let sum_bigint = || aggregate(F::Sum, Some(1), T::Numeric, false);
    let average = || aggregate(F::Avg, Some(0), T::Numeric, false);
    let distinct = |column| aggregate(F::Count, Some(column), T::Int64, true);
    let plans = [
        ("two sums", group(&[], vec![sum(), sum_bigint()])),
        ("12 coded texts: count, sum", group(&[2], vec![count(), sum()])),
        ("12 flat texts: count, sum", group(&[3], vec![count(), sum()])),
        ("50 k integers: count, sum", group(&[4], vec![count(), sum()])),
        ("1 M integers: count, sum", group(&[5], vec![count(), sum()])),
        ("1 M scattered bigints: count, sum", group(&[7], vec![count(), sum()])),
        (
            "3 x 12 codes: 2 sums, 2 averages, count",
            group(&[6, 2], vec![sum(), sum_bigint(), average(), average(), count()]),
        ),
        ("text and integer: count", group(&[2, 4], vec![count()])),
        ("count(distinct 50 k integers)", group(&[], vec![distinct(4)])),
        ("12 texts: count(distinct 50 k integers)", group(&[2], vec![distinct(4)])),
        ("sort by integer", sort(5, None)),
        ("top 10 by integer", sort(5, Some(10))),
    ];
    for (name, plan) in plans {
        let mut best = f64::MAX;
        let mut groups = 0;
        for _ in 0..3 {
            let settings = Settings { memory: 8 << 30, threads: 1, temp_files: None };
            let source: Box<dyn Source> = Box::new(Batches(batches.clone()));
            let Ok(mut execution) = Execution::new(&plan, vec![source], settings) else { break };
            let start = used();
            groups = 0;
            while let Some(batch) = execution.next(&mut Calm).unwrap() {
                groups += batch.rows;
            }
            best = best.min(used() - start);
        }
        println!("{name:45} {:8.2} ms/M rows {groups:9} rows out", best / millions as f64);
    }
}
