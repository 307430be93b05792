//! Worker threads: the same rows as without them, and nothing left behind by errors, cancelling, panics or
//! early ends.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use query::{
    Aggregate, AggregateFunction, Batch, Error, Execution, Expression, Host, JoinKind, Plan, Result,
    Settings, SortKey, Source, Step, TextOrder, Unit,
};
use vector::{LogicalType, Values, Vector};

/// Tests count the threads of the process, so they run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Worker threads that there are now.
fn workers() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| name.starts_with("colonnade ")).count()
}

/// Worker threads that do not go away: the kernel lists a thread that was joined for a moment longer.
fn workers_left() -> usize {
    let end = Instant::now() + Duration::from_secs(1);
    while workers() > 0 && Instant::now() < end {
        std::thread::yield_now();
    }
    workers()
}

/// A host whose user cancels at a given time.
#[derive(Default)]
struct Patient {
    cancel: Option<Instant>,
    starts: usize,
}

impl Host for Patient {
    fn check_interrupts(&mut self) -> Result<()> {
        match self.cancel {
            Some(time) if Instant::now() >= time => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }

    fn before_threads(&mut self) {
        self.starts += 1;
    }

    fn after_threads(&mut self) {
        self.starts += 10;
    }
}

/// What a unit does.
#[derive(Clone, Copy, PartialEq)]
enum Act {
    Rows,
    Fail,
    Panic,
    Sleep,
}

/// Units of one batch each with the numbers from `number * rows` on.
struct Numbers {
    units: std::ops::Range<usize>,
    rows: usize,
    act: fn(usize) -> Act,
    ordered: bool,
    asked: Arc<AtomicUsize>,
}

struct NumberUnit {
    number: usize,
    rows: usize,
    act: Act,
    given: bool,
}

impl Source for Numbers {
    fn next_unit(&mut self, _host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        let Some(number) = self.units.next() else { return Ok(None) };
        self.asked.fetch_add(1, Ordering::Relaxed);
        let unit = NumberUnit { number, rows: self.rows, act: (self.act)(number), given: false };
        Ok(Some(Box::new(unit)))
    }

    fn is_ordered(&self) -> bool {
        self.ordered
    }
}

impl Unit for NumberUnit {
    fn next(&mut self) -> Result<Step> {
        match self.act {
            _ if self.given => return Ok(Step::Done),
            Act::Rows => {}
            Act::Fail => return Err(Error::Sql(query::SqlError::DivisionByZero)),
            // The host catches what panics on its own thread.
            Act::Panic if std::thread::current().name().is_some_and(|name| name.starts_with("colonnade")) => {
                panic!("a unit that panics")
            }
            Act::Panic => std::thread::sleep(Duration::from_millis(2)),
            Act::Sleep => std::thread::sleep(Duration::from_millis(2)),
        }
        self.given = true;
        let first = (self.number * self.rows) as i64;
        let values = (first..first + self.rows as i64).collect();
        let column = Vector::new(LogicalType::Int64, Values::Int64(values));
        Ok(Step::Batch(Batch::new(self.rows, vec![Arc::new(column)])))
    }
}

fn numbers(units: usize, act: fn(usize) -> Act) -> Numbers {
    Numbers { units: 0..units, rows: 100, act, ordered: false, asked: Arc::default() }
}

fn scan(source: usize) -> Box<Plan> {
    Box::new(Plan::Scan { source, types: vec![LogicalType::Int64] })
}

fn sum(input: Box<Plan>) -> Plan {
    let aggregate = Aggregate {
        function: AggregateFunction::CountRows,
        arguments: Vec::new(),
        distinct: false,
        filter: None,
        order_by: Vec::new(),
        order: TextOrder::Bytes,
        result: LogicalType::Int64,
        host: None,
    };
    Plan::Aggregate { input, keys: Vec::new(), aggregates: vec![aggregate], groups: 1.0 }
}

fn join(kind: JoinKind, left: Box<Plan>, right: Box<Plan>) -> Box<Plan> {
    let keys = vec![(Expression::Column(0), Expression::Column(0))];
    Box::new(Plan::Join { kind, left, right, keys, condition: None })
}

fn settings(threads: usize) -> Settings {
    Settings { memory: 1 << 30, threads, temp_files: None }
}

fn rows(plan: &Plan, sources: Vec<Numbers>, threads: usize, host: &mut Patient) -> Result<Vec<Option<i64>>> {
    let sources = sources.into_iter().map(|source| Box::new(source) as Box<dyn Source>).collect();
    let mut execution = Execution::new(plan, sources, settings(threads))?;
    let mut rows = Vec::new();
    while let Some(batch) = execution.next(host)? {
        let column = batch.columns[0].as_ref().clone().flatten();
        let Values::Int64(values) = &column.values else { panic!("{column:?}") };
        rows.extend(values.iter().enumerate().map(|(row, &value)| column.is_valid(row).then_some(value)));
    }
    drop(execution);
    assert_eq!(workers_left(), 0, "threads end with the execution");
    Ok(rows)
}

fn all(_: usize) -> Act {
    Act::Rows
}

#[test]
fn threads_give_the_same_rows() {
    let _alone = alone();
    let plans: [(Plan, usize, Vec<i64>); 4] = [
        (*scan(0), 1, (0..5000).collect()),
        (*join(JoinKind::Semi, scan(0), scan(1)), 2, (0..3000).collect()),
        (
            Plan::Append { inputs: vec![*scan(0), *join(JoinKind::Full, scan(1), scan(2))], removed: 0 },
            3,
            (0..5000).chain(0..3000).chain(0..4000).collect(),
        ),
        (sum(join(JoinKind::Inner, scan(0), scan(1))), 2, vec![3000]),
    ];
    for (plan, sources, mut expected) in plans {
        for threads in 1..=4 {
            let units = [50, 30, 40];
            let sources = (0..sources).map(|at| numbers(units[at], all)).collect();
            let mut host = Patient::default();
            let mut got = rows(&plan, sources, threads, &mut host).unwrap();
            if threads > 1 {
                assert_eq!(host.starts, 11, "threads were started once, between the host's calls");
            }
            // The rows of a full join's right side without a match are NULL in the left column.
            if matches!(plan, Plan::Append { .. }) {
                expected = (0..5000).chain(0..3000).collect();
                assert_eq!(got.iter().filter(|row| row.is_none()).count(), 1000);
                got.retain(Option::is_some);
            }
            let mut got: Vec<i64> = got.into_iter().flatten().collect();
            got.sort_unstable();
            expected.sort_unstable();
            assert!(got == expected, "{threads} threads: {} rows, {} expected", got.len(), expected.len());
        }
    }
}

#[test]
fn an_ordered_source_keeps_its_order() {
    let _alone = alone();
    let limit = Plan::Limit { input: scan(0), offset: 150, limit: Some(2000) };
    for (plan, expected) in [(*scan(0), (0..5000).collect()), (limit, (150..2150).collect::<Vec<i64>>())] {
        let source = Numbers { ordered: true, ..numbers(50, all) };
        let got = rows(&plan, vec![source], 4, &mut Patient::default()).unwrap();
        assert_eq!(got.into_iter().flatten().collect::<Vec<_>>(), expected);
    }
    // Sorted by threads, handed out in order.
    let key = SortKey {
        expression: Expression::Column(0),
        descending: true,
        nulls_first: false,
        order: TextOrder::Bytes,
    };
    let sort = Plan::Sort { input: scan(0), keys: vec![key], limit: None };
    let plan = Plan::Limit { input: Box::new(sort), offset: 0, limit: Some(4000) };
    let got = rows(&plan, vec![numbers(50, all)], 4, &mut Patient::default()).unwrap();
    assert_eq!(got.into_iter().flatten().collect::<Vec<_>>(), (1000..5000).rev().collect::<Vec<i64>>());
}

#[test]
fn an_error_of_a_worker_ends_the_query() {
    let _alone = alone();
    let act = |number| if number == 37 { Act::Fail } else { Act::Rows };
    for plan in [*scan(0), sum(scan(0)), *join(JoinKind::Inner, scan(1), scan(0))] {
        let asked = Arc::new(AtomicUsize::new(0));
        let failing = Numbers { asked: Arc::clone(&asked), ..numbers(1_000_000, act) };
        let got = rows(&plan, vec![failing, numbers(10, all)], 3, &mut Patient::default());
        assert_eq!(got.unwrap_err(), Error::Sql(query::SqlError::DivisionByZero));
        assert_eq!(workers_left(), 0);
        assert!(asked.load(Ordering::Relaxed) < 1_000_000, "all units were asked for");
    }
}

#[test]
fn a_panic_of_a_worker_is_an_error() {
    let _alone = alone();
    let act = |number| if number > 20 { Act::Panic } else { Act::Sleep };
    for plan in [*scan(0), sum(scan(0))] {
        let got = rows(&plan, vec![numbers(1000, act)], 4, &mut Patient::default());
        let Err(Error::Data(vector::Error::Host(text))) = got else { panic!("{got:?}") };
        assert_eq!(text, "a worker thread panicked: a unit that panics");
        assert_eq!(workers_left(), 0);
    }
}

#[test]
fn cancelling_stops_everything_soon() {
    let _alone = alone();
    let sleepy = |_| Act::Sleep;
    let endless_pairs = Plan::Join {
        kind: JoinKind::Inner,
        left: scan(0),
        right: scan(1),
        keys: Vec::new(),
        condition: Some(Expression::Constant(Arc::new(falsehood()))),
    };
    let appended = Plan::Append { inputs: vec![endless_pairs.clone()], removed: 0 };
    for plan in [
        *scan(0),
        sum(scan(0)),
        appended.clone(),
        sum(Box::new(appended)),
        endless_pairs.clone(),
        sum(Box::new(endless_pairs)),
    ] {
        for threads in [1, 3] {
            let cancel = Instant::now() + Duration::from_millis(60);
            let mut host = Patient { cancel: Some(cancel), ..Patient::default() };
            let kept = Numbers { rows: 10_000, ..numbers(20, all) };
            // A unit of pairs takes seconds.
            let left = Numbers { rows: 10_000, ..numbers(1_000_000, sleepy) };
            let got = rows(&plan, vec![left, kept], threads, &mut host);
            assert_eq!(got.unwrap_err(), Error::Cancelled);
            assert_eq!(workers_left(), 0);
            let late = Instant::now().saturating_duration_since(cancel);
            assert!(late < Duration::from_millis(1000), "{late:?} late");
        }
    }
}

fn falsehood() -> Vector {
    Vector::new(LogicalType::Bool, Values::Bool([false].into_iter().collect()))
}

#[test]
fn a_limit_ends_an_endless_source() {
    let _alone = alone();
    let plan = sum(Box::new(Plan::Limit { input: scan(0), offset: 0, limit: Some(12_345) }));
    let got = rows(&plan, vec![numbers(usize::MAX >> 20, all)], 4, &mut Patient::default()).unwrap();
    assert_eq!(got, [Some(12_345)]);
}

#[test]
fn workers_wait_for_a_host_that_takes_no_rows() {
    let _alone = alone();
    let asked = Arc::new(AtomicUsize::new(0));
    let source = Numbers { asked: Arc::clone(&asked), ..numbers(1_000_000, all) };
    let mut execution = Execution::new(&scan(0), vec![Box::new(source)], settings(3)).unwrap();
    for _ in 0..20 {
        execution.next(&mut Patient::default()).unwrap().unwrap();
    }
    std::thread::sleep(Duration::from_millis(20));
    assert!(asked.load(Ordering::Relaxed) < 200, "{asked:?}");
    // A join that makes many rows of each: the workers are in the middle of a unit when they have to wait.
    let cross = Plan::Join {
        kind: JoinKind::Inner,
        left: scan(0),
        right: scan(1),
        keys: Vec::new(),
        condition: None,
    };
    let kept = Numbers { rows: 10_000, ..numbers(5, all) };
    let sources: Vec<Box<dyn Source>> = vec![Box::new(numbers(100, all)), Box::new(kept)];
    let mut crossing = Execution::new(&cross, sources, settings(3)).unwrap();
    for _ in 0..100 {
        crossing.next(&mut Patient::default()).unwrap().unwrap();
    }
    assert_eq!(workers(), 4);
    drop(execution);
    drop(crossing);
    assert_eq!(workers_left(), 0);
}

#[test]
fn a_thousand_executions_leave_nothing() {
    let _alone = alone();
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    static MADE: AtomicUsize = AtomicUsize::new(0);
    struct Counted(Box<dyn Unit>);
    impl Unit for Counted {
        fn next(&mut self) -> Result<Step> {
            self.0.next()
        }
    }
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    struct Counting(Numbers);
    impl Source for Counting {
        fn next_unit(&mut self, host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
            let Some(unit) = self.0.next_unit(host)? else { return Ok(None) };
            MADE.fetch_add(1, Ordering::Relaxed);
            Ok(Some(Box::new(Counted(unit))))
        }
    }
    let failing = |number| if number == 7 { Act::Fail } else { Act::Rows };
    let loops = if cfg!(miri) { 3 } else { 1000 };
    for turn in 0..loops {
        let act = if turn % 3 == 0 { failing } else { all };
        let source = Box::new(Counting(Numbers { rows: 10, ..numbers(12, act) }));
        let mut execution = Execution::new(&sum(scan(0)), vec![source], settings(3)).unwrap();
        let first = execution.next(&mut Patient::default());
        assert_eq!(first.is_err(), turn % 3 == 0);
        if turn % 2 == 0 {
            assert!(execution.next(&mut Patient::default()).unwrap().is_none());
        }
        drop(execution);
    }
    assert_eq!(workers_left(), 0);
    assert_eq!(MADE.load(Ordering::Relaxed), DROPPED.load(Ordering::Relaxed));
}
