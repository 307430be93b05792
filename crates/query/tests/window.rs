//! Window functions against a definition: which rows are in a row's frame is asked for every pair of rows,
//! and aggregates are those of the aggregate operator over them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering as Atomic;

use proptest::prelude::*;
use query::*;
use support::*;
use vector::LogicalType as T;

/// Partition, order key of one of several types, and one column of each type to compute with. The last one is
/// an offset.
fn types(key: T) -> Vec<T> {
    vec![T::Int32, key, T::Int32, T::Int64, T::Numeric, T::Float64, T::Text, T::Bool, T::Int32, T::Float32]
}

fn any_value(logical: T) -> BoxedStrategy<Plain> {
    let value = match logical {
        T::Int32 | T::Date | T::Int16 => (-2i64..4).prop_map(Plain::Int).boxed(),
        T::Int64 => prop_oneof![-3i64..6, Just(i64::MAX), Just(i64::MIN + 1)].prop_map(Plain::Int).boxed(),
        T::Timestamp => (-3i64..6).prop_map(Plain::Int).boxed(),
        // Sums of these are exact in any order.
        T::Float64 | T::Float32 => {
            prop_oneof![6 => (-8i32..8).prop_map(|v| f64::from(v) / 4.0), 1 => Just(f64::NAN), 1 => Just(-0.0)]
                .prop_map(Plain::Float)
                .boxed()
        }
        T::Numeric => (-300i128..300, 0u16..3).prop_map(|(v, s)| Plain::decimal(v, s)).boxed(),
        T::Text => "[ab]{0,2}".prop_map(Plain::text).boxed(),
        _ => any::<bool>().prop_map(Plain::Bool).boxed(),
    };
    prop_oneof![6 => value, 1 => Just(Plain::Null)].boxed()
}

fn any_key() -> impl Strategy<Value = T> {
    prop_oneof![
        Just(T::Int16),
        Just(T::Int64),
        Just(T::Numeric),
        Just(T::Float64),
        Just(T::Date),
        Just(T::Timestamp),
    ]
}

type Rows = Vec<Vec<Plain>>;

fn any_rows(key: T) -> impl Strategy<Value = Rows> {
    (0usize..40).prop_flat_map(move |rows| {
        let columns: Vec<_> = types(key)
            .into_iter()
            .map(|logical| proptest::collection::vec(any_value(logical), rows))
            .collect();
        columns.prop_map(move |columns| {
            (0..rows).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect()
        })
    })
}

fn any_bound(key: T, units: FrameUnits) -> impl Strategy<Value = FrameBound> {
    let offset = (0u64..4).prop_map(move |offset| match (units, key) {
        (FrameUnits::Range, T::Float64) => FrameOffset::Float(offset as f64 / 2.0),
        (FrameUnits::Range, T::Numeric) => {
            FrameOffset::Decimal { unscaled: i128::from(offset) * 15, scale: 1 }
        }
        (FrameUnits::Range, T::Date | T::Timestamp) => {
            let micros = if key == T::Date { 0 } else { offset as i64 };
            FrameOffset::Interval { months: 0, days: if key == T::Date { offset as i32 } else { 0 }, micros }
        }
        _ => FrameOffset::Count(offset),
    });
    prop_oneof![
        2 => Just(FrameBound::Unbounded),
        2 => Just(FrameBound::CurrentRow),
        3 => offset.clone().prop_map(FrameBound::Preceding),
        3 => offset.prop_map(FrameBound::Following),
    ]
}

fn any_frame(key: T) -> impl Strategy<Value = WindowFrame> {
    let units = prop_oneof![Just(FrameUnits::Rows), Just(FrameUnits::Range), Just(FrameUnits::Groups)];
    let exclusion = prop_oneof![
        4 => Just(FrameExclusion::Nothing),
        1 => Just(FrameExclusion::CurrentRow),
        1 => Just(FrameExclusion::Group),
        1 => Just(FrameExclusion::Ties),
    ];
    (units, exclusion, any::<bool>(), any::<bool>()).prop_flat_map(
        move |(units, exclusion, descending, nulls_first)| {
            (any_bound(key, units), any_bound(key, units)).prop_map(move |(start, end)| WindowFrame {
                units,
                start,
                end,
                exclusion,
                descending,
                nulls_first,
            })
        },
    )
}

/// The value as a number for distances; only of types that have some.
fn number(value: &Plain) -> f64 {
    match value {
        Plain::Int(v) => *v as f64,
        Plain::Float(v) => *v,
        Plain::Numeric(v, scale, _) => *v as f64 / 10f64.powi((*scale).into()),
        _ => panic!("{value:?} is no number"),
    }
}

fn distance(offset: FrameOffset) -> f64 {
    match offset {
        FrameOffset::Count(offset) => offset as f64,
        FrameOffset::Float(offset) => offset,
        FrameOffset::Decimal { unscaled, scale } => unscaled as f64 / 10f64.powi(scale.into()),
        FrameOffset::Interval { days, micros, .. } => f64::from(days) + micros as f64,
        FrameOffset::Unknown => panic!("no offset"),
    }
}

/// Where a value is relative to another one moved by an offset, in the frame's order: NULLs and NaN move
/// nowhere.
fn beside(frame: &WindowFrame, value: &Plain, base: &Plain, by: f64) -> std::cmp::Ordering {
    use std::cmp::Ordering as O;
    let nulls = |null| if null == frame.nulls_first { O::Less } else { O::Greater };
    match (value, base) {
        (Plain::Null, Plain::Null) => O::Equal,
        (Plain::Null, _) => nulls(true),
        (_, Plain::Null) => nulls(false),
        _ => {
            let by = if frame.descending { -by } else { by };
            let order = match (value, base) {
                (Plain::Int(value), Plain::Int(base)) => {
                    i128::from(*value).cmp(&(i128::from(*base) + by as i128))
                }
                // In thousandths: as floats 1.6 - 1.5 is more than 0.1.
                (Plain::Numeric(value, scale, _), Plain::Numeric(base, of_base, _)) => {
                    let scaled = |value: &i128, scale: &u16| value * 10i128.pow(3 - u32::from(*scale));
                    scaled(value, scale).cmp(&(scaled(base, of_base) + (by * 1000.0).round() as i128))
                }
                _ => vector::compare_floats(number(value), number(base) + by),
            };
            if frame.descending { order.reverse() } else { order }
        }
    }
}

/// Whether row `j` is in the frame of row `i` of a partition.
fn in_frame(frame: &WindowFrame, rows: &[Vec<Plain>], ordered: bool, i: usize, j: usize) -> bool {
    let peers = |a: usize, b: usize| !ordered || rows[a][1].compare(&rows[b][1]).is_eq();
    let group = |row: usize| (1..=row).filter(|&at| !peers(at - 1, at)).count() as i64;
    let place = |row: usize| match frame.units {
        FrameUnits::Rows => row as i64,
        _ => group(row),
    };
    let with_offset = |bound| matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_));
    let after_start = |bound: FrameBound| match bound {
        FrameBound::Unbounded => true,
        FrameBound::CurrentRow => place(j) >= place(i),
        FrameBound::Preceding(by) if frame.units == FrameUnits::Range => {
            beside(frame, &rows[j][1], &rows[i][1], -distance(by)).is_ge()
        }
        FrameBound::Following(by) if frame.units == FrameUnits::Range => {
            beside(frame, &rows[j][1], &rows[i][1], distance(by)).is_ge()
        }
        FrameBound::Preceding(by) => place(j) >= place(i) - distance(by) as i64,
        FrameBound::Following(by) => place(j) >= place(i) + distance(by) as i64,
    };
    let before_end = |bound: FrameBound| match bound {
        FrameBound::Unbounded => true,
        FrameBound::CurrentRow => place(j) <= place(i),
        FrameBound::Preceding(by) if frame.units == FrameUnits::Range => {
            beside(frame, &rows[j][1], &rows[i][1], -distance(by)).is_le()
        }
        FrameBound::Following(by) if frame.units == FrameUnits::Range => {
            beside(frame, &rows[j][1], &rows[i][1], distance(by)).is_le()
        }
        FrameBound::Preceding(by) => place(j) <= place(i) - distance(by) as i64,
        FrameBound::Following(by) => place(j) <= place(i) + distance(by) as i64,
    };
    assert!(
        ordered || frame.units != FrameUnits::Range || !with_offset(frame.start) && !with_offset(frame.end)
    );
    after_start(frame.start)
        && before_end(frame.end)
        && match frame.exclusion {
            FrameExclusion::Nothing => true,
            FrameExclusion::CurrentRow => i != j,
            FrameExclusion::Group => !peers(i, j),
            FrameExclusion::Ties => i == j || !peers(i, j),
        }
}

fn call(function: WindowFunction, arguments: &[usize], result: T) -> WindowCall {
    let arguments = arguments.iter().map(|&at| Expression::Column(at)).collect();
    WindowCall { function, arguments, order: TextOrder::Bytes, result }
}

/// Every function, with every type that it has an implementation of its own for.
fn functions() -> Vec<WindowCall> {
    use AggregateFunction as A;
    use WindowFunction as W;
    let mut all = vec![
        call(W::RowNumber, &[], T::Int64),
        call(W::Rank, &[], T::Int64),
        call(W::DenseRank, &[], T::Int64),
        call(W::PercentRank, &[], T::Float64),
        call(W::CumeDist, &[], T::Float64),
        call(W::Lag, &[6], T::Text),
        call(W::Lead, &[4, 8], T::Numeric),
        call(W::Lag, &[2, 8, 0], T::Int32),
        call(W::FirstValue, &[4], T::Numeric),
        call(W::LastValue, &[6], T::Text),
        call(W::Aggregate(A::CountRows), &[], T::Int64),
        call(W::Aggregate(A::BoolAnd), &[7], T::Bool),
        call(W::Aggregate(A::BoolOr), &[7], T::Bool),
        call(W::Aggregate(A::StringAgg), &[6, 6], T::Text),
    ];
    for (at, logical) in
        [(2, T::Int32), (3, T::Int64), (4, T::Numeric), (5, T::Float64), (6, T::Text), (9, T::Float32)]
    {
        all.push(call(W::Aggregate(A::Count), &[at], T::Int64));
        all.push(call(W::Aggregate(A::Min), &[at], logical));
        all.push(call(W::Aggregate(A::Max), &[at], logical));
        let (sum, mean) = match logical {
            T::Int32 => (T::Int64, T::Numeric),
            T::Int64 | T::Numeric => (T::Numeric, T::Numeric),
            T::Float64 => (T::Float64, T::Float64),
            T::Float32 => (T::Float32, T::Float64),
            _ => continue,
        };
        all.push(call(W::Aggregate(A::Sum), &[at], sum));
        all.push(call(W::Aggregate(A::Avg), &[at], mean));
        // Squares of the greatest integers have no room.
        if logical != T::Int64 && logical != T::Float32 {
            all.push(call(W::Aggregate(A::VarSamp), &[at], mean));
            all.push(call(W::Aggregate(A::StddevPop), &[at], mean));
        }
    }
    all
}

/// The function's value in row `i` of a partition.
fn expected(call: &WindowCall, frame: &WindowFrame, rows: &[Vec<Plain>], ordered: bool, i: usize) -> Plain {
    use WindowFunction as W;
    let peers = |a: usize, b: usize| !ordered || rows[a][1].compare(&rows[b][1]).is_eq();
    let rank = (0..i).find(|&at| peers(at, i)).unwrap_or(i) + 1;
    let argument = |row: usize, at: usize| match &call.arguments[at] {
        Expression::Column(column) => rows[row][*column].clone(),
        _ => panic!("not a column"),
    };
    let members: Vec<usize> = (0..rows.len()).filter(|&j| in_frame(frame, rows, ordered, i, j)).collect();
    match call.function {
        W::RowNumber => Plain::Int(i as i64 + 1),
        W::Rank => Plain::Int(rank as i64),
        W::DenseRank => Plain::Int((1..=i).filter(|&at| !peers(at - 1, at)).count() as i64 + 1),
        W::PercentRank if rows.len() == 1 => Plain::Float(0.0),
        W::PercentRank => Plain::Float((rank - 1) as f64 / (rows.len() - 1) as f64),
        W::CumeDist => {
            let up_to = (0..rows.len()).filter(|&at| at <= i || peers(at, i)).count();
            Plain::Float(up_to as f64 / rows.len() as f64)
        }
        W::Lag | W::Lead => {
            let offset = match call.arguments.len() {
                1 => Plain::Int(1),
                _ => argument(i, 1),
            };
            let Plain::Int(offset) = offset else { return Plain::Null };
            let target = if call.function == W::Lag { i as i64 - offset } else { i as i64 + offset };
            match usize::try_from(target) {
                Ok(target) if target < rows.len() => argument(target, 0),
                _ if call.arguments.len() == 3 => argument(i, 2),
                _ => Plain::Null,
            }
        }
        W::FirstValue => members.first().map_or(Plain::Null, |&row| argument(row, 0)),
        W::LastValue => members.last().map_or(Plain::Null, |&row| argument(row, 0)),
        W::NthValue => {
            let Plain::Int(n) = argument(i, 1) else { return Plain::Null };
            members.get(n as usize - 1).map_or(Plain::Null, |&row| argument(row, 0))
        }
        W::Ntile => panic!("has a test of its own"),
        W::Aggregate(function) => {
            let columns = members
                .iter()
                .map(|&row| (0..call.arguments.len()).map(|at| argument(row, at)).collect())
                .collect::<Rows>();
            let types: Vec<T> =
                call.arguments.iter().map(|argument| argument.logical(&types(T::Int64))).collect();
            let aggregate = Aggregate {
                function,
                arguments: (0..types.len()).map(Expression::Column).collect(),
                distinct: false,
                filter: None,
                order_by: Vec::new(),
                order: TextOrder::Bytes,
                result: call.result,
                host: None,
            };
            let plan = Plan::Aggregate {
                input: scan(&types),
                keys: Vec::new(),
                aggregates: vec![aggregate],
                groups: 1.0,
            };
            let batch = batch_of(&types, &columns);
            run(&plan, Steps::batches(&[batch]), roomy()).unwrap()[0][0].clone()
        }
    }
}

fn batch_of(types: &[T], rows: &[Vec<Plain>]) -> Batch {
    let columns = types.iter().enumerate().map(|(at, &logical)| {
        let values: Vec<Plain> = rows.iter().map(|row| row[at].clone()).collect();
        Arc::new(vector(logical, &values))
    });
    Batch::new(rows.len(), columns.collect())
}

/// The plan over sorted rows in batches of this size, and what comes out.
fn windows(plan: &Plan, types: &[T], rows: &[Vec<Plain>], size: usize, memory: usize) -> query::Result<Rows> {
    let batches: Vec<Batch> = rows.chunks(size.max(1)).map(|rows| batch_of(types, rows)).collect();
    let settings = Settings { memory, threads: 1, temp_files: Some(Arc::new(Memory::default())) };
    run(plan, Steps::batches(&batches), settings)
}

fn sort(rows: &mut [Vec<Plain>], frame: &WindowFrame, partitioned: bool) {
    rows.sort_by(|a, b| {
        let partition = if partitioned { a[0].compare(&b[0]) } else { std::cmp::Ordering::Equal };
        partition.then_with(|| match (&a[1], &b[1]) {
            (Plain::Null, Plain::Null) => std::cmp::Ordering::Equal,
            (Plain::Null, _) | (_, Plain::Null) => {
                let order = a[1].compare(&b[1]);
                if frame.nulls_first { order.reverse() } else { order }
            }
            (a, b) if frame.descending => b.compare(a),
            (a, b) => a.compare(b),
        })
    });
}

fn partitions(rows: &[Vec<Plain>], partitioned: bool) -> Vec<&[Vec<Plain>]> {
    rows.chunk_by(|a, b| !partitioned || a[0].compare(&b[0]).is_eq()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_function_over_every_frame(
        (key, rows, frame) in any_key().prop_flat_map(|key| (Just(key), any_rows(key), any_frame(key))),
        (partitioned, ordered, size) in (any::<bool>(), any::<bool>(), 1usize..20),
    ) {
        let with_offset = |bound| matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_));
        let ordered = ordered
            || frame.units == FrameUnits::Range && (with_offset(frame.start) || with_offset(frame.end));
        let mut rows = rows;
        sort(&mut rows, &frame, partitioned);
        let types = types(key);
        let plan = Plan::Window {
            input: scan(&types),
            partition: if partitioned { vec![Expression::Column(0)] } else { Vec::new() },
            order: if ordered { vec![Expression::Column(1)] } else { Vec::new() },
            frame,
            functions: functions(),
        };
        // With and without room for the rows.
        for memory in [1 << 30, 1] {
            let found = windows(&plan, &types, &rows, size, memory).unwrap();
            let mut at = 0;
            for partition in partitions(&rows, partitioned) {
                for i in 0..partition.len() {
                    let (passed, results) = found[at].split_at(types.len());
                    let show = |row: &[Plain]| row.iter().map(Plain::show).collect::<Vec<_>>();
                    prop_assert_eq!(show(passed), show(&partition[i]));
                    for (call, found) in functions().iter().zip(results) {
                        let expected = expected(call, &frame, partition, ordered, i);
                        prop_assert_eq!(found.show(), expected.show(), "{:?} in row {}", call, at);
                    }
                    at += 1;
                }
            }
            prop_assert_eq!(at, found.len());
        }
    }
}

/// A frame of the whole partition.
const WHOLE: WindowFrame = WindowFrame {
    units: FrameUnits::Rows,
    start: FrameBound::Unbounded,
    end: FrameBound::Unbounded,
    exclusion: FrameExclusion::Nothing,
    descending: false,
    nulls_first: false,
};

fn single(function: WindowFunction, arguments: &[usize], result: T, frame: WindowFrame) -> Plan {
    Plan::Window {
        input: scan(&[T::Int32, T::Int32, T::Int64]),
        partition: vec![Expression::Column(0)],
        order: vec![Expression::Column(2)],
        frame,
        functions: vec![call(function, arguments, result)],
    }
}

#[test]
fn buckets_of_nearly_one_size() {
    let rows = |counts: &[Option<i64>]| -> Rows {
        let value = |count: &Option<i64>| count.map_or(Plain::Null, Plain::Int);
        (0..).zip(counts).map(|(at, count)| vec![Plain::Int(1), value(count), Plain::Int(at)]).collect()
    };
    let types = [T::Int32, T::Int32, T::Int64];
    let plan = single(WindowFunction::Ntile, &[1], T::Int32, WHOLE);
    let buckets = |counts: &[Option<i64>]| {
        let found = windows(&plan, &types, &rows(counts), 3, 1 << 20).map(|rows| shown_last(&rows));
        found.map(|found| found.join(" "))
    };
    assert_eq!(buckets(&[Some(3); 8]).unwrap(), "1 1 1 2 2 2 3 3");
    assert_eq!(buckets(&[Some(4); 4]).unwrap(), "1 2 3 4");
    assert_eq!(buckets(&[Some(9); 4]).unwrap(), "1 2 3 4");
    assert_eq!(buckets(&[Some(1); 3]).unwrap(), "1 1 1");
    // The first row that says how many decides, over as many rows as the partition has.
    let mixed = [None, None, Some(2), Some(5), None, Some(-1)];
    assert_eq!(buckets(&mixed).unwrap(), "NULL NULL 1 1 1 2");
    assert!(matches!(buckets(&[Some(0)]), Err(Error::Decline(_))));
}

fn shown_last(rows: &Rows) -> Vec<String> {
    rows.iter().map(|row| row.last().unwrap().show()).collect()
}

/// Sums of negative zeros are one, averages are not; frames that lack an offset and values whose sum may
/// overflow are left to the server.
#[test]
fn sums_of_odd_floats_and_frames_without_offset() {
    let types = [T::Int32, T::Float64, T::Int64];
    let plan = |function, frame| {
        let Plan::Window { partition, order, functions, .. } =
            single(WindowFunction::Aggregate(function), &[1], T::Float64, frame)
        else {
            panic!("a window")
        };
        Plan::Window { input: scan(&types), partition, order, frame, functions }
    };
    let last = |plan: &Plan, values: &[f64]| {
        let row = |(at, &value): (i64, &f64)| vec![Plain::Int(1), Plain::Float(value), Plain::Int(at)];
        let rows: Rows = (0..).zip(values).map(row).collect();
        windows(plan, &types, &rows, 4, 1 << 20).map(|rows| match rows.last().and_then(|row| row.last()) {
            Some(Plain::Float(value)) => *value,
            other => panic!("{other:?}"),
        })
    };
    let to_row = WindowFrame { end: FrameBound::CurrentRow, ..WHOLE };
    for frame in [WHOLE, to_row] {
        let (sum, average) = (plan(AggregateFunction::Sum, frame), plan(AggregateFunction::Avg, frame));
        assert!(last(&sum, &[-0.0, -0.0]).unwrap().is_sign_negative());
        assert!(last(&average, &[-0.0, -0.0]).unwrap().is_sign_positive());
        assert!(matches!(last(&sum, &[1e308, 1e308, f64::NAN]), Err(Error::Decline(_))));
        assert_eq!(last(&sum, &[1.0, f64::INFINITY]).unwrap(), f64::INFINITY);
    }
    let unknown =
        WindowFrame { units: FrameUnits::Range, end: FrameBound::Following(FrameOffset::Unknown), ..WHOLE };
    assert!(matches!(last(&plan(AggregateFunction::Sum, unknown), &[1.0]), Err(Error::Decline(_))));
}

#[test]
fn the_nth_value_of_a_frame() {
    let rows: Rows = (0..6).map(|at| vec![Plain::Int(1), Plain::Int(at / 2 + 1), Plain::Int(at)]).collect();
    let types = [T::Int32, T::Int32, T::Int64];
    let frame = WindowFrame { start: FrameBound::Preceding(FrameOffset::Count(2)), ..WHOLE };
    let plan = single(WindowFunction::NthValue, &[2, 1], T::Int64, frame);
    let found = shown_last(&windows(&plan, &types, &rows, 4, 1 << 20).unwrap());
    assert_eq!(found.join(" "), "0 0 1 2 4 5");
    let plan = single(
        WindowFunction::NthValue,
        &[2, 0],
        T::Int64,
        WindowFrame { exclusion: FrameExclusion::CurrentRow, ..frame },
    );
    let found = shown_last(&windows(&plan, &types, &rows, 4, 1 << 20).unwrap());
    assert_eq!(found.join(" "), "1 0 0 1 2 3");
    let zero: Rows = vec![vec![Plain::Int(1), Plain::Int(0), Plain::Int(0)]];
    let plan = single(WindowFunction::NthValue, &[2, 1], T::Int64, WHOLE);
    assert!(matches!(windows(&plan, &types, &zero, 4, 1 << 20), Err(Error::Decline(_))));
}

/// Partitions of many sizes, so that chunks end in the middle of batches and some outgrow the memory.
#[test]
fn many_rows_in_chunks() {
    let mut rows: Rows = Vec::new();
    for partition in 0..60i64 {
        let size = [1, 5, 3_000, 40_000, 2_047][partition as usize % 5];
        rows.extend((0..size).map(|row| vec![Plain::Int(partition), Plain::Int(row % 7), Plain::Int(row)]));
    }
    let types = [T::Int32, T::Int32, T::Int64];
    let to_row = WindowFrame { end: FrameBound::CurrentRow, ..WHOLE };
    let plan = Plan::Window {
        input: scan(&types),
        partition: vec![Expression::Column(0)],
        order: vec![Expression::Column(2)],
        frame: to_row,
        functions: vec![
            call(WindowFunction::RowNumber, &[], T::Int64),
            call(WindowFunction::Aggregate(AggregateFunction::Sum), &[1], T::Int64),
            call(WindowFunction::Aggregate(AggregateFunction::Max), &[2], T::Int64),
        ],
    };
    let batches: Vec<Batch> = rows.chunks(2_000).map(|rows| batch_of(&types, rows)).collect();
    for (memory, threads) in [(1 << 30, 1), (1 << 18, 1), (1 << 18, 4)] {
        let files = Memory::default();
        let written = Arc::clone(&files.written);
        let settings = Settings { memory, threads, temp_files: Some(Arc::new(files)) };
        let found = run(&plan, Steps::batches(&batches), settings).unwrap();
        assert_eq!(written.load(Atomic::Relaxed) > 0, memory < 1 << 20);
        assert_eq!(found.len(), rows.len());
        let (mut number, mut sum, mut last) = (0, 0, -1);
        for (found, row) in found.iter().zip(&rows) {
            let [Plain::Int(partition), Plain::Int(value), Plain::Int(key)] = row.as_slice() else {
                panic!()
            };
            if *partition != last {
                (number, sum, last) = (0, 0, *partition);
            }
            number += 1;
            sum += value;
            let expected = [*partition, *value, *key, number, sum, *key].map(|value| value.to_string());
            assert_eq!(found.iter().map(Plain::show).collect::<Vec<_>>(), expected);
        }
    }
}
