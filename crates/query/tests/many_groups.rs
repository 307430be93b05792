//! Aggregation of many groups by several threads, against a reference: rows are divided into batches and
//! threads at random, with room for all groups, and with little.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use proptest::prelude::*;
use query::*;
use support::{Calm, Memory, Plain, aggregate, scan, shown, value, vector};
use vector::LogicalType as T;

/// More than a thread keeps for itself.
const MANY: u64 = 200_000;

const TYPES: [T; 5] = [T::Int64, T::Text, T::Int32, T::Numeric, T::Int32];

/// Numbers that look random and are the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// A row: keys that come from one number, so that there are as many groups as numbers, then what is
/// aggregated.
fn row(random: &mut Random, groups: u64) -> Vec<Plain> {
    // Some of the rows are in few of the groups.
    let below = if random.below(5) > 0 { groups } else { groups / 50 + 1 };
    let group = random.below(below) as i64;
    let text = if group % 3 == 0 { format!("a longer text of {group}") } else { group.to_string() };
    vec![
        if group == 7 { Plain::Null } else { Plain::Int(group * 1_000_003_000_007) },
        if group == 8 { Plain::Null } else { Plain::text(text) },
        Plain::Int(group % 100_000),
        match random.below(9) {
            0 => Plain::Null,
            some => Plain::decimal(i128::from(random.below(1 << 30)) - (1 << 29), 2 + (some == 5) as u16),
        },
        if random.below(10) == 0 {
            Plain::Null
        } else {
            Plain::Int(random.below(2_000_000) as i64 - 1_000_000)
        },
    ]
}

fn batch(rows: &[Vec<Plain>]) -> Batch {
    let column = |at: usize| rows.iter().map(|row| row[at].clone()).collect::<Vec<_>>();
    let columns = TYPES.iter().enumerate().map(|(at, &logical)| Arc::new(vector(logical, &column(at))));
    Batch::new(rows.len(), columns.collect())
}

/// count(*), count, sum, max of the integer; sum of the decimal, min of the text.
fn aggregates() -> Vec<Aggregate> {
    use AggregateFunction as F;
    vec![
        aggregate(F::CountRows, None, T::Int64),
        aggregate(F::Count, Some(4), T::Int64),
        aggregate(F::Sum, Some(4), T::Int64),
        aggregate(F::Max, Some(4), T::Int32),
        aggregate(F::Sum, Some(3), T::Numeric),
        aggregate(F::Min, Some(1), T::Text),
    ]
}

/// The groups as the server would make them.
fn expected(rows: &[Vec<Plain>], keys: &[usize]) -> Vec<String> {
    let mut groups: BTreeMap<String, Vec<&Vec<Plain>>> = BTreeMap::new();
    for row in rows {
        let key = keys.iter().map(|&key| row[key].show()).collect::<Vec<_>>().join("|");
        groups.entry(key).or_default().push(row);
    }
    let lines = groups.into_iter().map(|(key, rows)| {
        let ints: Vec<i64> = rows
            .iter()
            .filter_map(|row| if let Plain::Int(value) = row[4] { Some(value) } else { None })
            .collect();
        let decimals = rows
            .iter()
            .filter_map(|row| if let Plain::Numeric(v, s, _) = row[3] { Some((v, s)) } else { None });
        let decimals: Vec<(i128, u16)> = decimals.collect();
        let scale = decimals.iter().map(|(_, scale)| *scale).max();
        let sum = scale.map_or(Plain::Null, |scale| {
            let parts = decimals.iter().map(|(v, own)| v * 10i128.pow(u32::from(scale - own)));
            Plain::decimal(parts.sum(), scale)
        });
        let least = rows.iter().map(|row| &row[1]).min_by(|a, b| a.compare(b)).unwrap();
        let values = [
            Plain::Int(rows.len() as i64),
            Plain::Int(ints.len() as i64),
            if ints.is_empty() { Plain::Null } else { Plain::Int(ints.iter().sum()) },
            ints.iter().max().map_or(Plain::Null, |&max| Plain::Int(max)),
            sum,
            least.clone(),
        ];
        format!("{key}|{}", values.map(|value| value.show()).join("|"))
    });
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn threads_share_the_groups(
        seed in any::<u64>(),
        groups in prop_oneof![Just(200u64), Just(3_000), Just(MANY)],
        keys in proptest::sample::select(vec![vec![0], vec![1], vec![0, 1], vec![0, 2], vec![2, 1, 0]]),
        threads in 1usize..4,
        megabytes in proptest::sample::select(vec![4usize, 24, 1_024]),
    ) {
        let mut random = Random(seed);
        let mut rows: Vec<Vec<Plain>> = (0..60_000).map(|_| row(&mut random, groups)).collect();
        let mut batches = Vec::new();
        let mut at = 0;
        while at < rows.len() {
            let end = (at + 1 + random.below(4_000) as usize).min(rows.len());
            batches.push((random.below(threads as u64) as usize, batch(&rows[at..end])));
            at = end;
        }
        let keyed = keys.iter().map(|&key| Expression::Column(key)).collect();
        let input = scan(&TYPES);
        let plan = Plan::Aggregate { input, keys: keyed, aggregates: aggregates(), groups: 1.0 };
        let files = Memory::default();
        let written = Arc::clone(&files.written);
        let settings = Settings { memory: megabytes << 20, threads, temp_files: Some(Arc::new(files)) };
        let sink = query::operators::aggregate(&plan, &Arc::new(settings)).unwrap();
        // Each thread with its own rows, all at the same time.
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let mut local = sink.make().unwrap();
                let own: Vec<Batch> =
                    batches.iter().filter(|(of, _)| *of == thread).map(|(_, batch)| batch.clone()).collect();
                scope.spawn(move || {
                    own.into_iter().for_each(|batch| assert!(local.push(batch).unwrap()));
                    local.finish().unwrap();
                });
            }
        });
        let mut output = sink.complete().unwrap();
        let mut found = Vec::new();
        let mut units = 0;
        while let Some(mut unit) = output.next_unit(&mut Calm).unwrap() {
            units += 1;
            while let Step::Batch(batch) = unit.next().unwrap() {
                for row in 0..batch.rows {
                    found.push(batch.columns.iter().map(|column| value(column, row)).collect::<Vec<_>>());
                }
            }
        }
        if groups == MANY && megabytes < 1_024 && threads > 1 {
            // As many tables as the memory makes: they were shared.
            prop_assert_eq!(units, if megabytes == 4 { 4 } else { 16 });
            prop_assert_eq!(written.load(Ordering::Relaxed) > 0, megabytes == 4);
        }
        let found = shown(&found);
        let expected = expected(&std::mem::take(&mut rows), &keys);
        prop_assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert_eq!(found, expected);
        }
    }
}

/// Groups whose rows come together go to the shared tables as groups, never as rows: those tables have to see
/// for themselves when they are full.
#[test]
fn groups_in_order_are_spilled() {
    const ROWS: i64 = 400_000;
    let rows: Vec<Vec<Plain>> = (0..ROWS)
        .map(|at| {
            vec![Plain::Int(at / 5), Plain::text("text"), Plain::Int(0), Plain::decimal(1, 0), Plain::Int(1)]
        })
        .collect();
    let plan = Plan::Aggregate {
        input: scan(&TYPES),
        keys: vec![Expression::Column(0)],
        aggregates: aggregates(),
        groups: 1.0,
    };
    let files = Memory::default();
    let written = Arc::clone(&files.written);
    let settings = Settings { memory: 4 << 20, threads: 2, temp_files: Some(Arc::new(files)) };
    let sink = query::operators::aggregate(&plan, &Arc::new(settings)).unwrap();
    let mut local = sink.make().unwrap();
    for rows in rows.chunks(10_000) {
        assert!(local.push(batch(rows)).unwrap());
    }
    local.finish().unwrap();
    let mut output = sink.complete().unwrap();
    let mut groups = 0;
    while let Some(mut unit) = output.next_unit(&mut Calm).unwrap() {
        while let Step::Batch(batch) = unit.next().unwrap() {
            groups += batch.rows as i64;
        }
    }
    assert_eq!(groups, ROWS / 5);
    assert!(written.load(Ordering::Relaxed) > 0, "nothing was written to files");
}

/// All groups in turn: each row is of a new group until all were met. Where as many were expected each thread
/// keeps its table, so that no row is divided.
#[test]
fn groups_that_were_expected_are_not_divided() {
    const GROUPS: i64 = 50_000;
    let rows = |first: i64| -> Vec<Vec<Plain>> {
        let group = |at| Plain::Int(at % GROUPS);
        let row =
            |at| vec![group(at), Plain::text("text"), Plain::Int(0), Plain::decimal(1, 0), Plain::Int(1)];
        (first..first + 10_000).map(row).collect()
    };
    // Tables that are divided come in 128 parts, one table in batches of 2,048 groups.
    for (expected, most) in [(60_000.0, 64), (200.0, 128)] {
        let plan = Plan::Aggregate {
            input: scan(&TYPES),
            keys: vec![Expression::Column(0)],
            aggregates: aggregates(),
            groups: expected,
        };
        let settings = Settings { memory: 1 << 30, threads: 2, temp_files: None };
        let sink = query::operators::aggregate(&plan, &Arc::new(settings)).unwrap();
        let mut locals = [sink.make().unwrap(), sink.make().unwrap()];
        for at in 0..20 {
            assert!(locals[at % 2].push(batch(&rows(at as i64 * 10_000))).unwrap());
        }
        locals.into_iter().for_each(|local| local.finish().unwrap());
        let mut output = sink.complete().unwrap();
        let (mut units, mut groups) = (0, 0);
        while let Some(mut unit) = output.next_unit(&mut Calm).unwrap() {
            units += 1;
            while let Step::Batch(batch) = unit.next().unwrap() {
                groups += batch.rows as i64;
                assert!((0..batch.rows).all(|row| value(&batch.columns[1], row).show() == "4"));
            }
        }
        assert_eq!(groups, GROUPS);
        assert!(units <= most && units > most / 3, "{units} units where {expected} groups were expected");
    }
}

/// One thread's part once its rows are divided, with these decimals in the rows that come then, each in a
/// batch of its own.
fn divided(decimals: &[Plain]) -> Result<()> {
    let plan = Plan::Aggregate {
        input: scan(&TYPES),
        keys: vec![Expression::Column(0)],
        aggregates: aggregates(),
        groups: 200.0,
    };
    let settings = Settings { memory: 1 << 30, threads: 2, temp_files: None };
    let sink = query::operators::aggregate(&plan, &Arc::new(settings)).unwrap();
    let mut local = sink.make().unwrap();
    let row = |at: i64, decimal: &Plain| {
        batch(&[vec![Plain::Int(at), Plain::text("text"), Plain::Int(0), decimal.clone(), Plain::Int(1)]])
    };
    for first in (0..40_000).step_by(8_000) {
        let rows: Vec<Vec<Plain>> = (first..first + 8_000)
            .map(|at| {
                vec![Plain::Int(at), Plain::text("text"), Plain::Int(0), Plain::decimal(1, 0), Plain::Int(1)]
            })
            .collect();
        local.push(batch(&rows)).unwrap();
    }
    for (at, decimal) in (100_000..).zip(decimals) {
        local.push(row(at, decimal))?;
    }
    local.finish()
}

/// What cannot be summed is known before a group is given out, though rows of divided groups wait until then.
#[test]
fn declines_before_groups_are_given_out() {
    divided(&[Plain::decimal(7, 2)]).unwrap();
    assert!(matches!(divided(&[Plain::decimal(9 * 10i128.pow(37), 0)]), Err(Error::Decline(_))));
}

/// Decimals that have no scale in common are declined, where rows of several batches are put together.
#[test]
fn declines_decimals_without_a_common_scale() {
    let found = divided(&[Plain::decimal(10i128.pow(30), 0), Plain::decimal(1, 15)]);
    assert!(matches!(found, Err(Error::Decline(_))), "{found:?}");
}
