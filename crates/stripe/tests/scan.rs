//! The scan beside a plain look at every row: random stripes, predicates and rows that are out, read in each
//! way that a host may, from a store in memory.
#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation)]

mod support;

use std::cell::Cell;
use std::cmp::Ordering;
use std::sync::Arc;

use encodings::NoPglz;
use stripe::scan::{
    BatchLayout, ChunkPlan, Counters, LoadedChunk, Located, ScanClause, ScanColumn, StripeScan, Turns,
    VectorPiece, VectorRequest,
};
use support::store::{CHUNK_ROWS, Memory, Table};
use support::{Random, TYPES, assert_same, predicate};
use vector::flow::{self, Batch, Edge, Extent, Members, Ranking, RowFilter, Step, SummaryNeed, Unit};
use vector::{CompareOp, LogicalType, Predicate, Scalar, Values, Vector};

fn clause(predicate: &Predicate) -> ScanClause {
    let columns = predicate.columns();
    let (predicate, reads) = (predicate.clone(), columns.clone());
    ScanClause { predicate, columns, reads, native: true, exact: true, narrowing: false }
}

/// Positions of the selected rows in their chunk.
fn selected(loaded: &LoadedChunk) -> Vec<u64> {
    loaded.selection.iter().map(|row| loaded.base + u64::from(row)).collect()
}

fn compare(op: CompareOp, column: usize, value: i64) -> Predicate {
    Predicate::Compare { column, op, value: Scalar::Int(value) }
}

fn ints(values: impl IntoIterator<Item = i64>) -> Vector {
    Vector::new(LogicalType::Int64, Values::Int64(values.into_iter().collect()))
}

/// Everything that a scan gives as vectors, units included.
fn all_pieces(
    scan: &mut StripeScan<Memory>,
    request: &VectorRequest,
    layout: &Arc<BatchLayout>,
    counters: &mut Counters,
) -> std::result::Result<Vec<Batch>, Located<flow::Error>> {
    let mut batches = Vec::new();
    while let Some(piece) = scan.next_piece(request, layout, counters)? {
        match piece {
            VectorPiece::Rows(batch) => batches.push(batch),
            VectorPiece::Unit(mut unit) => loop {
                match unit.next().unwrap() {
                    Step::Batch(batch) => batches.push(batch),
                    Step::Done => break,
                    Step::Summary(_) => panic!("a summary that nobody allowed"),
                }
            },
            VectorPiece::Unchecked(loaded) => {
                assert!(loaded.checks.is_empty(), "a clause is left to be checked: {:?}", loaded.checks);
                batches.push(layout.passing(layout.batch(loaded)).unwrap());
            }
            VectorPiece::Known(_) => panic!("a summary that nobody allowed"),
        }
    }
    Ok(batches)
}

#[test]
fn rows_that_pass_come_once_in_order_and_others_do_not() {
    let mut left_out = Counters::default();
    for seed in 0..300 {
        let mut random = Random(seed);
        let types: Vec<_> = (0..3).map(|_| random.pick(&TYPES)).collect();
        let table = Table::random(&mut random, &types);
        let wanted = predicate(&mut random, &table.columns[0], 2);
        let expected = table.passing(&wanted);
        let (mut scan, mut counters) = (table.scan(), Counters::default());
        scan.store().device.is_far.set(seed % 2 == 0);
        scan.start(Arc::new(table.plan(vec![clause(&wanted)]))).unwrap();
        let (mut numbers, mut unchecked) = (Vec::new(), false);
        while let Some(loaded) = scan.next_chunk(false, None, &mut counters).unwrap() {
            unchecked |= !loaded.checks.is_empty();
            numbers.extend(selected(&loaded));
        }
        // A clause that a chunk cannot answer (decimals in the side lane) lets more rows through.
        let exact: Vec<u64> = expected.iter().map(|row| row.2).collect();
        match unchecked {
            true => assert!(exact.iter().all(|row| numbers.contains(row)), "seed {seed}, {wanted:?}"),
            false => assert_eq!(numbers, exact, "seed {seed}, {wanted:?}"),
        }
        assert!(numbers.iter().all(|&row| !table.is_out(row)), "seed {seed}");
        left_out.stripes_pruned += counters.stripes_pruned;
        left_out.chunks_pruned += counters.chunks_pruned;
        left_out.rows_filtered += counters.rows_filtered;
    }
    assert!(left_out.stripes_pruned > 20 && left_out.chunks_pruned > 20 && left_out.rows_filtered > 1000);
}

#[test]
fn vectors_are_the_rows_values_with_and_without_threads() {
    for seed in 0..300 {
        let mut random = Random(seed);
        let types: Vec<_> = (0..3).map(|_| random.pick(&TYPES)).collect();
        let table = Table::random(&mut random, &types);
        let wanted = predicate(&mut random, &table.columns[0], 1);
        let expected = table.passing(&wanted);
        for threads in [false, true] {
            let request = VectorRequest::new(vec![2, 0], threads);
            let (mut scan, mut counters) = (table.scan(), Counters::default());
            scan.store().device.is_far.set(seed % 2 == 0);
            scan.start(Arc::new(table.plan(vec![clause(&wanted)]))).unwrap();
            let layout = table.layout(&request);
            let mut batches = Vec::new();
            let mut checks = false;
            loop {
                match scan.next_piece(&request, &layout, &mut counters).unwrap() {
                    None => break,
                    Some(VectorPiece::Rows(batch)) => batches.push(batch),
                    Some(VectorPiece::Unit(mut unit)) => match unit.next() {
                        Ok(Step::Batch(batch)) => batches.push(batch),
                        Ok(_) => {}
                        Err(flow::Error::Decline(_)) => checks = true,
                        Err(problem) => panic!("seed {seed}: {problem}"),
                    },
                    Some(VectorPiece::Unchecked(loaded)) => match loaded.checks.is_empty() {
                        true => batches.push(layout.batch(loaded)),
                        false => checks = true,
                    },
                    Some(VectorPiece::Known(_)) => panic!("nobody allowed summaries"),
                }
            }
            if checks {
                continue;
            }
            let what = format!("seed {seed}, threads {threads}, {wanted:?}");
            assert_eq!(batches.iter().map(|batch| batch.rows).sum::<usize>(), expected.len(), "{what}");
            for (place, column) in [2, 0].into_iter().enumerate() {
                let got = batches.iter().flat_map(|batch| {
                    (0..batch.rows as u32).map(|row| batch.columns[place].take(&[row])).collect::<Vec<_>>()
                });
                for (got, wanted) in got.zip(table.values(column, &expected)) {
                    assert_same(&got.flatten(), &wanted.flatten(), &what);
                }
            }
        }
    }
}

#[test]
fn a_summary_stands_for_rows_only_where_all_pass_and_none_is_out() {
    let mut table = Table::of(vec![vec![ints(0..200), ints((0..200).map(|i| i * 2))]; 3]);
    // One row of the last stripe.
    table.out.push(table.first_rows[2] + 70..table.first_rows[2] + 71);
    let mut request = VectorRequest::new(vec![1], true);
    let need = SummaryNeed { bounds: true, sum: true, nulls: true };
    request.allow_summaries(&[need]);
    let known = |wanted: Predicate| {
        let (mut scan, mut counters) = (table.scan(), Counters::default());
        scan.start(Arc::new(table.plan(vec![clause(&wanted)]))).unwrap();
        let layout = table.layout(&request);
        let (mut rows, mut sum, mut looked_at) = (0, 0, 0);
        while let Some(piece) = scan.next_piece(&request, &layout, &mut counters).unwrap() {
            match piece {
                VectorPiece::Known(summary) => {
                    rows += summary.rows;
                    let known = summary.columns[0].as_ref().unwrap().sum.unwrap();
                    sum += i64::try_from(known.unscaled).unwrap();
                }
                VectorPiece::Unit(mut unit) => {
                    if let Step::Batch(batch) = unit.next().unwrap() {
                        looked_at += batch.rows;
                        let Values::Int64(values) = batch.columns[0].as_ref().clone().flatten().values else {
                            panic!("another type")
                        };
                        sum += values.iter().sum::<i64>();
                    }
                }
                VectorPiece::Rows(_) | VectorPiece::Unchecked(_) => panic!("not a unit"),
            }
        }
        (rows, looked_at, sum, counters.rows_known)
    };
    // All rows pass: two stripes whole, three chunks of the third; the chunk with the row that is out is
    // read.
    let all: i64 = (0..200).map(|i| i * 2).sum();
    assert_eq!(known(compare(CompareOp::GreaterOrEqual, 0, 0)), (536, 63, all * 3 - 140, 536));
    // Only some rows of the first chunk of each stripe pass.
    let first: i64 = (0..10).map(|i| i * 2).sum();
    assert_eq!(known(compare(CompareOp::Less, 0, 10)), (0, 30, first * 3, 0));
}

#[test]
fn sums_that_no_64_bits_hold_are_known() {
    let table = Table::of(vec![vec![ints((0..200).map(|i| i64::MAX - i))]; 2]);
    let mut request = VectorRequest::new(vec![0], true);
    request.allow_summaries(&[SummaryNeed { bounds: false, sum: true, nulls: true }]);
    let (mut scan, mut counters) = (table.scan(), Counters::default());
    scan.start(Arc::new(table.plan(Vec::new()))).unwrap();
    let layout = table.layout(&request);
    let mut total = 0;
    while let Some(piece) = scan.next_piece(&request, &layout, &mut counters).unwrap() {
        let VectorPiece::Known(summary) = piece else { panic!("looked at rows") };
        total += summary.columns[0].as_ref().unwrap().sum.unwrap().unscaled;
    }
    assert_eq!(total, 2 * (0..200).map(|i| i128::from(i64::MAX - i)).sum::<i128>());
}

#[test]
fn only_the_number_of_rows_is_asked_without_a_read() {
    let mut table = Table::of(vec![vec![ints(0..200)]; 2]);
    table.out.push(table.first_rows[1]..table.first_rows[1] + 50);
    table.types.clear();
    let (mut scan, mut counters) = (table.scan(), Counters::default());
    scan.start(Arc::new(table.plan(Vec::new()))).unwrap();
    let request = VectorRequest::new(Vec::new(), true);
    let batches = all_pieces(&mut scan, &request, &table.layout(&request), &mut counters).unwrap();
    assert_eq!(batches.iter().map(|batch| batch.rows).collect::<Vec<_>>(), [200, 150]);
    scan.start(Arc::new(table.plan(Vec::new()))).unwrap();
    let mut rows = Vec::new();
    while let Some(loaded) = scan.next_chunk(true, None, &mut counters).unwrap() {
        rows.push(loaded.selection.len());
    }
    assert_eq!(rows, [200, 150]);
    assert_eq!(scan.store().reads.get(), 0);
}

#[test]
fn nothing_is_read_of_a_chunk_whose_rows_are_all_out() {
    let mut table = Table::of(vec![vec![ints(0..200)]]);
    let first = table.first_rows[0];
    table.out.push(first..first + u64::from(CHUNK_ROWS));
    let (mut scan, mut counters) = (table.scan(), Counters::default());
    scan.start(Arc::new(table.plan(Vec::new()))).unwrap();
    let loaded = scan.next_chunk(false, None, &mut counters).unwrap().unwrap();
    assert_eq!(loaded.base, first + u64::from(CHUNK_ROWS));
    let (mut whole, mut read) = (table.scan(), Counters::default());
    whole.start(Arc::new(table.plan(Vec::new()))).unwrap();
    whole.next_chunk(false, None, &mut read).unwrap();
    assert_eq!(counters.bytes_read, read.bytes_read);
    assert!(counters.bytes_read > 0);
}

/// Wants the greatest values, down to a bound.
struct Greatest(std::sync::Mutex<Option<i64>>);

impl Ranking for Greatest {
    fn edge(&self, extent: Extent<'_>) -> Edge {
        extent.greatest.map_or(Edge::Anywhere, |value| Edge::Value(value.clone()))
    }

    fn compare(&self, a: &Edge, b: &Edge) -> Ordering {
        match (a, b) {
            (Edge::Value(a), Edge::Value(b)) => b.compare(a).unwrap(),
            (Edge::Anywhere, Edge::Anywhere) => Ordering::Equal,
            (Edge::Anywhere, _) => Ordering::Less,
            _ => Ordering::Greater,
        }
    }

    fn is_past(&self, edge: &Edge) -> bool {
        match (edge, *self.0.lock().unwrap()) {
            (Edge::Value(Scalar::Int(value)), Some(bound)) => *value < bound,
            _ => false,
        }
    }
}

#[test]
fn a_sort_gets_first_what_can_come_first_and_the_rest_is_never_read() {
    let stripes = [3000..3200, 9000..9200, 0..200].map(|values| vec![ints(values)]);
    let table = Table::of(stripes.into());
    let ranking = Arc::new(Greatest(std::sync::Mutex::new(None)));
    let mut request = VectorRequest::new(vec![0], false);
    assert!(request.rank_by(0, &(Arc::clone(&ranking) as Arc<dyn Ranking>)));
    let (mut scan, mut counters) = (table.scan(), Counters::default());
    scan.start(Arc::new(table.plan(Vec::new()))).unwrap();
    scan.rank(request.rank().unwrap(), &mut counters).unwrap();
    assert_eq!(scan.edge(), Some(Edge::Value(Scalar::Int(9199))));
    let layout = table.layout(&request);
    let Some(VectorPiece::Rows(batch)) = scan.next_piece(&request, &layout, &mut counters).unwrap() else {
        panic!("no rows")
    };
    let Values::Int64(values) = batch.columns[0].as_ref().clone().flatten().values else { panic!("a type") };
    assert_eq!((values.first(), values.last()), (Some(&9192), Some(&9199)));
    *ranking.0.lock().unwrap() = Some(9150);
    let rest = all_pieces(&mut scan, &request, &layout, &mut counters).unwrap();
    assert_eq!(rest.iter().map(|batch| batch.rows).sum::<usize>(), 64);
    assert_eq!((counters.stripes_read, counters.stripes_skipped), (1, 2));
    assert_eq!(counters.chunks_skipped, 2);
}

#[test]
fn a_column_that_a_stripe_lacks_has_the_value_that_the_host_knows() {
    let mut table = Table::of(vec![vec![ints(0..100)]]);
    table.types.push(LogicalType::Int64);
    let request = VectorRequest::new(vec![0, 1], false);
    let (mut scan, mut counters) = (table.scan(), Counters::default());
    scan.start(Arc::new(table.plan(Vec::new()))).unwrap();
    let missing = vec![None, Some(Arc::new(ints([42])))];
    let layout = BatchLayout { columns: vec![0, 1], missing, ..Default::default() };
    let batches = all_pieces(&mut scan, &request, &Arc::new(layout), &mut counters).unwrap();
    assert_eq!(batches.len(), 2);
    for batch in batches {
        let Values::Int64(values) = batch.columns[1].as_ref().clone().flatten().values else {
            panic!("type")
        };
        assert_eq!(values, vec![42; batch.rows]);
    }
}

#[test]
fn a_clause_on_a_column_of_another_type_is_left_to_be_checked() {
    let table = Table::of(vec![vec![ints(0..100)]]);
    let plan = |logical| {
        let columns = vec![ScanColumn { index: 0, logical, wanted: true }];
        let clauses = vec![clause(&compare(CompareOp::Less, 0, 10))];
        Arc::new(ChunkPlan::new(columns, clauses, Vec::new(), Vec::new(), &NoPglz))
    };
    for (logical, checks, rows) in [(LogicalType::Int64, vec![], 10), (LogicalType::Date, vec![0], 64)] {
        let (mut scan, mut counters) = (table.scan(), Counters::default());
        scan.start(plan(logical)).unwrap();
        let loaded = scan.next_chunk(false, None, &mut counters).unwrap().unwrap();
        assert_eq!((&loaded.checks, loaded.selection.len()), (&checks, rows));
        scan.start(plan(logical)).unwrap();
        let request = VectorRequest::new(vec![0], true);
        let piece = scan.next_piece(&request, &table.layout(&request), &mut counters).unwrap().unwrap();
        assert_eq!(matches!(piece, VectorPiece::Unchecked(_)), !checks.is_empty());
    }
}

#[test]
fn participants_that_take_turns_read_each_row_once() {
    struct Counter(Cell<u64>);
    impl Turns for Counter {
        fn take(&self) -> (u64, u64) {
            let turn = self.0.replace(self.0.get() + 1);
            (turn / stripe::scan::PARTS, turn % stripe::scan::PARTS)
        }
    }
    for seed in 0..50 {
        let mut random = Random(seed);
        let table = Table::random(&mut random, &[LogicalType::Int64]);
        let turns = Counter(Cell::new(0));
        let mut participants: Vec<_> = (0..3).map(|_| table.scan()).collect();
        let (mut numbers, mut counters) = (Vec::new(), Counters::default());
        for scan in &mut participants {
            scan.start(Arc::new(table.plan(Vec::new()))).unwrap();
        }
        let mut going = vec![true; participants.len()];
        while going.contains(&true) {
            let at = random.index(participants.len());
            match participants[at].next_chunk(false, Some(&turns), &mut counters).unwrap() {
                Some(loaded) => numbers.extend(selected(&loaded)),
                None => going[at] = false,
            }
        }
        numbers.sort_unstable();
        let all = table.passing(&Predicate::Always(true));
        assert_eq!(numbers, all.iter().map(|row| row.2).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(counters.stripes_read, table.stripes.len() as u64);
    }
}

/// Wants even numbers.
struct Even;

impl Members for Even {
    fn select(&self, column: &Vector) -> Option<Vec<u32>> {
        let Values::Int64(values) = column.clone().flatten().values else { return None };
        Some((0u32..).zip(values).filter(|(_, value)| value % 2 == 0).map(|(row, _)| row).collect())
    }
}

/// TRUE below a number.
struct Below(i64);

impl RowFilter for Below {
    fn columns(&self) -> &[usize] {
        &[0]
    }

    fn select(&self, batch: &Batch) -> flow::Result<Option<Vec<u32>>> {
        let Values::Int64(values) = batch.columns[0].as_ref().clone().flatten().values else {
            return Err(flow::Error::Decline("another type"));
        };
        Ok(Some((0u32..).zip(values).filter(|(_, value)| *value < self.0).map(|(row, _)| row).collect()))
    }
}

#[test]
fn joins_and_filters_above_leave_rows_out_before_other_columns_are_read() {
    let values = || vec![ints((0..200).map(|i| i * 7 % 200)), ints((0..200).map(|i| i + 1000))];
    let table = Table::of(vec![values(); 2]);
    for threads in [false, true] {
        let mut request = VectorRequest::new(vec![0, 1], threads);
        assert!(request.narrow_members(0, &(Arc::new(Even) as Arc<dyn Members>)));
        assert!(request.filter(&(Arc::new(Below(20)) as Arc<dyn RowFilter>)));
        request.narrow(compare(CompareOp::Greater, 0, 3), &|at| Some(at));
        let (mut scan, mut counters) = (table.scan(), Counters::default());
        let column = |index| ScanColumn { index, logical: LogicalType::Int64, wanted: true };
        let columns = vec![column(0), column(1)];
        let (clauses, members) = (request.narrowing().collect(), request.members().clone());
        scan.start(Arc::new(ChunkPlan::new(columns, clauses, Vec::new(), members, &NoPglz))).unwrap();
        let batches = all_pieces(&mut scan, &request, &table.layout(&request), &mut counters).unwrap();
        let mut got: Vec<i64> = Vec::new();
        for batch in batches {
            let Values::Int64(values) = batch.columns[0].as_ref().clone().flatten().values else {
                panic!("another type")
            };
            got.extend(values);
        }
        got.sort_unstable();
        let expected: Vec<i64> = (4..20).step_by(2).flat_map(|value| [value, value]).collect();
        assert_eq!(got, expected, "threads {threads}");
    }
}

#[test]
fn an_error_names_the_stripe_it_was_met_in() {
    let mut table = Table::of(vec![vec![ints((0..200).map(|i| i * i % 977))]; 2]);
    // A value's byte in either layout.
    let data = table.stripes[1].bytes[20];
    table.stripes[1].bytes[20] = !data;
    let (mut scan, mut counters) = (table.scan(), Counters::default());
    scan.start(Arc::new(table.plan(Vec::new()))).unwrap();
    let problem = loop {
        match scan.next_chunk(false, None, &mut counters) {
            Ok(Some(_)) => {}
            Ok(None) => panic!("bad bytes were read"),
            Err(problem) => break problem,
        }
    };
    assert_eq!(problem.first_row, table.first_rows[1]);
    // A unit checks its bytes where it runs, and says which table and stripe they are of.
    let request = VectorRequest::new(vec![0], true);
    scan.start(Arc::new(table.plan(Vec::new()))).unwrap();
    let layout = table.layout(&request);
    let mut failed = None;
    while let Some(piece) = scan.next_piece(&request, &layout, &mut counters).unwrap() {
        let VectorPiece::Unit(mut unit) = piece else { panic!("not a unit") };
        failed = failed.or(unit.next().err());
    }
    let Some(flow::Error::Data(vector::Error::Corrupt { location, .. })) = failed else {
        panic!("{failed:?}")
    };
    assert_eq!(location.stripe, Some((7, table.first_rows[1])));
}

#[test]
fn a_scan_begins_again_where_it_began() {
    let table = Table::of(vec![vec![ints(0..300)]; 2]);
    let (mut scan, mut counters) = (table.scan(), Counters::default());
    scan.start(Arc::new(table.plan(Vec::new()))).unwrap();
    let first = selected(&scan.next_chunk(false, None, &mut counters).unwrap().unwrap());
    scan.next_chunk(false, None, &mut counters).unwrap();
    scan.rewind();
    assert_eq!(selected(&scan.next_chunk(false, None, &mut counters).unwrap().unwrap()), first);
}

/// Stripes that are larger than what is named at a time, and smaller ones.
fn large_table() -> Table {
    let mut random = Random(11);
    let mut stripe = |rows: usize, bytes: u64| {
        let texts = (0..rows).map(|_| (0..bytes).map(|_| random.below(256) as u8).collect::<Vec<u8>>());
        let mut column = vector::ByteViews::default();
        texts.for_each(|text| assert!(column.push(&text)));
        let numbers = ints((0..rows).map(|_| random.below(1 << 40) as i64));
        vec![numbers, Vector::new(LogicalType::Bytes, Values::Bytes(column))]
    };
    Table::of((0..12).map(|at| if at % 3 == 0 { stripe(640, 8000) } else { stripe(640, 100) }).collect())
}

#[test]
fn far_bytes_are_named_before_they_are_asked_for() {
    let table = large_table();
    let total: u64 = table.stripes.iter().map(|stripe| stripe.bytes.len() as u64).sum();
    for threads in [false, true] {
        let request = VectorRequest::new(vec![0, 1], threads);
        let (mut scan, mut counters) = (table.scan(), Counters::default());
        let device = std::rc::Rc::clone(&scan.store().device);
        device.is_far.set(true);
        scan.start(Arc::new(table.plan(Vec::new()))).unwrap();
        all_pieces(&mut scan, &request, &table.layout(&request), &mut counters).unwrap();
        assert!(device.foreseen.get() * 100 >= device.read.get() * 98, "{:?}", device.foreseen);
        assert!(device.named() * 100 <= total * 102, "{} of {total} bytes named", device.named());
        // Three windows of 2 MB, and a chunk of 512 kB past the end of each.
        assert!(device.most_ahead.get() < 8 << 20, "{:?}", device.most_ahead);
    }
}

#[test]
fn bytes_that_nobody_needs_are_not_named() {
    let table = large_table();
    // No number is that large, but bounds do not tell.
    let never = Predicate::In { column: 0, values: vec![Scalar::Int(1), Scalar::Int(1 << 41)] };
    let (mut scan, mut counters) = (table.scan(), Counters::default());
    let device = std::rc::Rc::clone(&scan.store().device);
    device.is_far.set(true);
    scan.start(Arc::new(table.plan(vec![clause(&never)]))).unwrap();
    while scan.next_chunk(false, None, &mut counters).unwrap().is_some() {}
    assert!(device.named() < 2 << 20, "{} bytes named", device.named());
    // One stripe is left: by its bounds no other can have the value.
    let Values::Int64(numbers) = &table.columns[6][0].values else { panic!("numbers") };
    let one = compare(CompareOp::Equal, 0, numbers.get(100).copied().unwrap());
    device.is_far.set(false);
    scan.start(Arc::new(table.plan(vec![clause(&one)]))).unwrap();
    let before = device.named();
    while scan.next_chunk(false, None, &mut counters).unwrap().is_some() {}
    assert_eq!(device.named(), before, "named though everything is near");
}
