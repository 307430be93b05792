//! Times joins of 6 million rows with 1.5 million and with 100, over several kinds of keys: `cargo run
//! --release -p query --example join_timing [name] [threads] [MiB]`. `join_timing.py` beside it times DuckDB
//! on the same rows.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use query::{
    Batch, Execution, Expression, Host, JoinKind, Plan, Result, Settings, Source, TempFile, TempFiles, Unit,
};
use vector::{ByteViews, LogicalType, Values, Vector};

const PROBE: u64 = 6_000_000;
const CHUNK: u64 = 10_000;

struct NoHost;

impl Host for NoHost {
    fn check_interrupts(&mut self) -> Result<()> {
        Ok(())
    }
}

struct Batches(VecDeque<Batch>);

impl Source for Batches {
    fn next_unit(&mut self, _host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        Ok(self.0.pop_front().map(|batch| Box::new(Some(batch)) as Box<dyn Unit>))
    }
}

/// Temporary files in the system's place for them.
struct Files;

struct OneFile(std::fs::File, u64);

impl TempFiles for Files {
    fn create(&self) -> Result<Box<dyn TempFile>> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("join_timing.{}.{number}", std::process::id()));
        let file = std::fs::File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        Ok(Box::new(OneFile(file, 0)))
    }
}

impl TempFile for OneFile {
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<u64> {
        self.0.write_all_at(bytes, self.1)?;
        self.1 += bytes.len() as u64;
        Ok(self.1 - bytes.len() as u64)
    }

    fn read(&mut self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.0.read_exact_at(out, offset)
    }
}

/// The key of row `row` among `distinct` ones, in an order that jumps about.
fn scattered(row: u64, distinct: u64) -> u64 {
    (row.wrapping_mul(2_654_435_761) ^ (row >> 7)) % distinct
}

fn integer(key: u64) -> i64 {
    i64::try_from(key + 1).unwrap()
}

fn sparse(key: u64) -> i64 {
    (key + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).cast_signed()
}

fn column(name: &str, keys: impl Iterator<Item = u64>) -> Vector {
    let integers = |values| Vector::new(LogicalType::Int64, Values::Int64(values));
    match name {
        "text" | "long" => {
            let texts: Vec<String> =
                keys.map(|key| {
                    if name == "text" { format!("key{key:08}") } else { format!("a longer key {key:08}") }
                })
                .collect();
            let views: ByteViews = texts.iter().map(String::as_bytes).collect();
            Vector::new(LogicalType::Text, Values::Bytes(views))
        }
        "sparse" => integers(keys.map(sparse).collect()),
        _ => integers(keys.map(integer).collect()),
    }
}

fn batches(name: &str, rows: u64, distinct: u64, mix: bool) -> VecDeque<Batch> {
    let starts = (0..rows).step_by(usize::try_from(CHUNK).unwrap());
    starts
        .map(|start| {
            let rows = start..(start + CHUNK).min(rows);
            let keys = rows.clone().map(|row| if mix { scattered(row, distinct) } else { row % distinct });
            let key = column(name, keys);
            let payload: Vec<i64> = rows.map(|row| i64::try_from(row).unwrap()).collect();
            let payload = Vector::new(LogicalType::Int64, Values::Int64(payload));
            Batch::new(key.len(), vec![Arc::new(key), Arc::new(payload)])
        })
        .collect()
}

/// CPU time of all threads so far, in milliseconds.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * 10.0
}

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let threads = std::env::args().nth(2).and_then(|threads| threads.parse().ok()).unwrap_or(1);
    let memory: usize = std::env::args().nth(3).and_then(|memory| memory.parse().ok()).unwrap_or(2048);
    let cases = [
        ("dense", 1_500_000, 1_500_000, JoinKind::Inner),
        ("dense", 100, 1_500_000, JoinKind::Inner),
        ("dense", 100, 100, JoinKind::Inner),
        ("dense", 1_500_000, 1_500_000, JoinKind::Semi),
        ("sparse", 1_500_000, 1_500_000, JoinKind::Inner),
        ("sparse", 100, 100, JoinKind::Inner),
        ("text", 1_500_000, 1_500_000, JoinKind::Inner),
        ("text", 100, 100, JoinKind::Inner),
        ("long", 1_500_000, 1_500_000, JoinKind::Inner),
    ];
    for (name, build, distinct, kind) in cases.into_iter().filter(|case| case.0.starts_with(&wanted)) {
        let logical = if matches!(name, "text" | "long") { LogicalType::Text } else { LogicalType::Int64 };
        let scan = |source| Box::new(Plan::Scan { source, types: vec![logical, LogicalType::Int64] });
        let join = Plan::Join {
            kind,
            left: scan(0),
            right: scan(1),
            keys: vec![(Expression::Column(0), Expression::Column(0))],
            condition: None,
        };
        let last = if kind == JoinKind::Semi { 1 } else { 3 };
        let expressions = vec![Expression::Column(1), Expression::Column(last)];
        let plan = Plan::Project { input: Box::new(join), expressions };
        let probe = batches(name, PROBE, distinct, true);
        let kept = batches(name, build, build, false);
        let (mut best, mut cpu_best) = (f64::INFINITY, f64::INFINITY);
        let mut answer = (0, 0);
        for _ in 0..3 {
            let sources: Vec<Box<dyn Source>> =
                vec![Box::new(Batches(probe.clone())), Box::new(Batches(kept.clone()))];
            let (started, cpu_started) = (Instant::now(), cpu());
            let settings = Settings { memory: memory << 20, threads, temp_files: Some(Arc::new(Files)) };
            let mut execution = Execution::new(&plan, sources, settings).unwrap();
            answer = (0, 0);
            while let Some(batch) = execution.next(&mut NoHost).unwrap() {
                answer.0 += batch.rows;
                for column in &batch.columns {
                    if let Values::Int64(values) = &column.values {
                        answer.1 += values.iter().sum::<i64>();
                    }
                }
            }
            best = best.min(started.elapsed().as_secs_f64() * 1000.0);
            cpu_best = cpu_best.min(cpu() - cpu_started);
        }
        println!(
            "{name:7} {kind:?} {PROBE} x {build} ({distinct} keys): {best:6.0} ms, CPU {cpu_best:6.0} ms  {} rows, sum {}",
            answer.0, answer.1
        );
    }
}
