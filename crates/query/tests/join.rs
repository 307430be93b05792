//! Every kind of join against nested loops, over every form of key, encoded in every way, in several batches, with NULLs and duplicates.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;
use query::{
    Batch, Error, Execution, Expression, Function, Host, JoinKind, Members, Plan, Result, Settings,
    SharedTempFiles, Source, Unit,
};
use support::Memory;
use vector::{CompareOp, Dictionary, LogicalType, Predicate, Scalar, Values, Vector, VectorBuilder};

struct TestHost;

impl Host for TestHost {
    fn check_interrupts(&mut self) -> Result<()> {
        Ok(())
    }
}

mod support;

/// Batches, without the rows that a join says it does not need.
struct Batches {
    batches: VecDeque<Batch>,
    predicates: Vec<Predicate>,
    members: Vec<(usize, Arc<dyn Members>)>,
}

impl Batches {
    fn new(batches: VecDeque<Batch>) -> Box<Self> {
        Box::new(Self { batches, predicates: Vec::new(), members: Vec::new() })
    }
}

impl Source for Batches {
    fn next_unit(&mut self, _host: &mut dyn Host) -> Result<Option<Box<dyn Unit>>> {
        let Some(mut batch) = self.batches.pop_front() else { return Ok(None) };
        for (column, members) in &self.members {
            if let Some(rows) = members.select(&batch.columns[*column]) {
                batch = batch.take(&rows);
            }
        }
        for predicate in &self.predicates {
            let rows: Vec<u32> =
                (0..batch.rows as u32).filter(|&row| is_true(predicate, &batch, row)).collect();
            batch = batch.take(&rows);
        }
        Ok(Some(Box::new(Some(batch))))
    }

    fn narrow(&mut self, predicate: Predicate) {
        self.predicates.push(predicate);
    }

    fn narrow_members(&mut self, column: usize, members: &Arc<dyn Members>) -> bool {
        self.members.push((column, Arc::clone(members)));
        true
    }
}

fn is_true(predicate: &Predicate, batch: &Batch, row: u32) -> bool {
    let value = |column: usize| scalar(&batch.columns[column].take(&[row]).flatten());
    match predicate {
        Predicate::Always(always) => *always,
        Predicate::And(parts) => parts.iter().all(|part| is_true(part, batch, row)),
        Predicate::In { column, values } => {
            values.iter().any(|other| value(*column).compare(other) == Some(Ordering::Equal))
        }
        Predicate::Compare { column, op, value: bound } => match (op, value(*column).compare(bound)) {
            (CompareOp::GreaterOrEqual, Some(order)) => order.is_ge(),
            (CompareOp::LessOrEqual, Some(order)) => order.is_le(),
            (_, None) => false,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn scalar(one: &Vector) -> Scalar {
    match &one.values {
        _ if !one.is_valid(0) => Scalar::Null,
        Values::Bool(bits) => Scalar::Bool(bits.get(0)),
        Values::Int32(values) => Scalar::Int(values[0].into()),
        Values::Int64(values) => Scalar::Int(values[0]),
        Values::Float64(values) => Scalar::Float(values[0]),
        Values::Bytes(views) => Scalar::Bytes(views.get(0).into()),
        Values::Fixed(fixed) => Scalar::Bytes(fixed.get(0).into()),
        Values::Numeric(numeric) => Scalar::Numeric { unscaled: numeric.ints.get(0), scale: numeric.scale },
        other => panic!("{other:?}"),
    }
}

/// A key's type. Values are small numbers, given to each side in the way that is most different and still equal.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Key {
    Small,
    Sparse,
    Whole,
    Text,
    Numeric,
    Huge,
    Float,
    Uuid,
    Odd,
    Bool,
}

const KEYS: [Key; 10] = [
    Key::Small,
    Key::Sparse,
    Key::Whole,
    Key::Text,
    Key::Numeric,
    Key::Huge,
    Key::Float,
    Key::Uuid,
    Key::Odd,
    Key::Bool,
];

impl Key {
    fn logical(self) -> LogicalType {
        match self {
            Self::Small => LogicalType::Int32,
            Self::Sparse | Self::Whole => LogicalType::Int64,
            Self::Text => LogicalType::Text,
            Self::Numeric | Self::Huge => LogicalType::Numeric,
            Self::Float => LogicalType::Float64,
            Self::Uuid => LogicalType::Uuid,
            Self::Odd => LogicalType::FixedBytes(11),
            Self::Bool => LogicalType::Bool,
        }
    }

    /// What tells values apart: left 5 as a numeric has a digit more than the right side has.
    fn model(self, value: u8, left: bool) -> u8 {
        match self {
            Self::Numeric if left && value == 5 => 105,
            Self::Bool => value % 2,
            _ => value,
        }
    }

    fn push(self, builder: &mut VectorBuilder, value: u8, left: bool) {
        let number = i64::from(value);
        let pushed = match self {
            Self::Small => builder.push_i32(i32::from(value) * 3 - 7),
            Self::Sparse => builder.push_i64((number - 3) * 1_000_000_000_007),
            Self::Whole => builder.push_i64(match value {
                0 => i64::MIN,
                1 => i64::MAX,
                _ => number,
            }),
            Self::Text => builder.push_bytes(match value {
                0 => b"",
                1 => b"twelve bytes",
                2 => b"a text of more than twelve bytes",
                3 => b"a text of more than twelve byteS",
                4 => b"x",
                5 => b"x\0",
                _ => b"another long text that is kept outside of its view",
            }),
            Self::Numeric if left && value == 5 => builder.push_numeric(5_005, 3, 3),
            Self::Numeric if left => builder.push_numeric(i128::from(value) * 10, 1, 4),
            Self::Numeric => builder.push_numeric(i128::from(value) * 100, 2, 2),
            Self::Huge => builder.push_numeric(i128::from(value) * 10i128.pow(30), 0, 0),
            Self::Float => builder.push_f64(match (value, left) {
                (0, true) => -0.0,
                (0, false) => 0.0,
                (1, true) => f64::NAN,
                (1, false) => f64::from_bits(0xfff8_0000_0000_1234),
                _ => f64::from(value) / 3.0,
            }),
            Self::Uuid => builder.push_bytes(&[value; 16]),
            Self::Odd => builder.push_bytes(&[value; 11]),
            Self::Bool => builder.push_bool(value % 2 == 1),
        };
        assert!(pushed);
    }
}

#[derive(Debug, Clone)]
struct Row {
    keys: [Option<u8>; 2],
    flag: Option<bool>,
}

#[derive(Debug, Clone, Copy)]
enum Encoding {
    Flat,
    Dictionary,
    Runs,
}

/// The batches of one side: two keys, a flag, and a text naming the row.
fn batches(rows: &[Row], types: [Key; 2], left: bool, cut: usize, encoding: Encoding) -> VecDeque<Batch> {
    let mut made = VecDeque::new();
    for (number, chunk) in rows.chunks(cut).enumerate() {
        let mut columns = Vec::new();
        for (at, key) in types.into_iter().enumerate() {
            let column = column(key.logical(), chunk, |builder, row| {
                row.keys[at].map(|value| key.push(builder, value, left))
            });
            columns.push(Arc::new(encoded(column, encoding, number * 2 + at)));
        }
        columns.push(Arc::new(column(LogicalType::Bool, chunk, |builder, row| {
            row.flag.map(|flag| assert!(builder.push_bool(flag)))
        })));
        let mut names = VectorBuilder::new(LogicalType::Text);
        for at in 0..chunk.len() {
            let side = if left { "left" } else { "right" };
            assert!(names.push_bytes(format!("row of the {side} side {}", number * cut + at).as_bytes()));
        }
        columns.push(Arc::new(names.finish(&|_, _, _| Box::default())));
        made.push_back(Batch::new(chunk.len(), columns));
    }
    made
}

fn column(
    logical: LogicalType,
    rows: &[Row],
    push: impl Fn(&mut VectorBuilder, &Row) -> Option<()>,
) -> Vector {
    let mut builder = VectorBuilder::new(logical);
    for row in rows {
        if push(&mut builder, row).is_none() {
            builder.push_null();
        }
    }
    builder.finish(&|_, _, _| Box::default())
}

fn encoded(column: Vector, encoding: Encoding, id: usize) -> Vector {
    let rows = column.len();
    match encoding {
        Encoding::Flat => column,
        Encoding::Dictionary => {
            // Each value twice, used in turn: codes say nothing about equality by themselves.
            let mut codes: Vec<u32> = (0..rows as u32).collect();
            codes.iter_mut().skip(1).step_by(2).for_each(|code| *code += rows as u32);
            let mut entries = column.clone();
            entries.validity = None;
            let twice: Vec<u32> = (0..rows as u32).chain(0..rows as u32).collect();
            let dictionary = Arc::new(Dictionary { id: 100 + id as u64, entries: entries.take(&twice) });
            let mut coded = Vector::new(column.logical, Values::Dictionary { codes, dictionary });
            coded.validity = column.validity;
            coded
        }
        Encoding::Runs => {
            let ends = (1..=rows as u32).collect();
            Vector::new(column.logical, Values::Runs { ends, values: Box::new(column) })
        }
    }
}

/// A batch's rows as text: the flag and the name of each side.
fn shown(batch: &Batch, columns: &[usize]) -> Vec<String> {
    let flat: Vec<Vector> = columns.iter().map(|&at| batch.columns[at].as_ref().clone().flatten()).collect();
    assert!(batch.columns.iter().all(|column| column.len() == batch.rows));
    (0..batch.rows)
        .map(|row| {
            let cells = flat.iter().map(|column| match &column.values {
                _ if !column.is_valid(row) => "-".to_owned(),
                Values::Bool(bits) => bits.get(row).to_string(),
                Values::Bytes(views) => String::from_utf8(views.get(row).to_vec()).unwrap(),
                other => panic!("{other:?}"),
            });
            cells.collect::<Vec<_>>().join("|")
        })
        .collect()
}

#[derive(Debug, Clone)]
struct Case {
    left: Vec<Row>,
    right: Vec<Row>,
    types: [Key; 2],
    keys: usize,
    condition: Option<u8>,
    cuts: (usize, usize),
    encodings: (Encoding, Encoding),
}

fn equal(case: &Case, left: &Row, right: &Row) -> Option<bool> {
    let mut equal = Some(true);
    for at in 0..case.keys {
        match (left.keys[at], right.keys[at]) {
            (Some(a), Some(b)) => {
                if case.types[at].model(a, true) != case.types[at].model(b, false) {
                    return Some(false);
                }
            }
            _ => equal = None,
        }
    }
    equal
}

fn expected(case: &Case, kind: JoinKind) -> Vec<String> {
    let holds = |left: &Row, right: &Row| match case.condition {
        None => true,
        Some(0) => left.flag == Some(true),
        Some(1) => right.flag == Some(true),
        Some(_) => left.flag.is_some() && left.flag == right.flag,
    };
    let flag = |row: &Row| row.flag.map_or("-".to_owned(), |flag| flag.to_string());
    let left_text = |at: usize| format!("{}|row of the left side {at}", flag(&case.left[at]));
    let right_text = |at: usize| format!("{}|row of the right side {at}", flag(&case.right[at]));
    let mut rows = Vec::new();
    let mut right_matched = vec![false; case.right.len()];
    for (at, left) in case.left.iter().enumerate() {
        let (mut matched, mut possible) = (false, false);
        for (other, right) in case.right.iter().enumerate() {
            if !holds(left, right) {
                continue;
            }
            let equal = equal(case, left, right);
            possible |= equal != Some(false);
            if equal == Some(true) {
                matched = true;
                right_matched[other] = true;
                if matches!(kind, JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full) {
                    rows.push(format!("{}|{}", left_text(at), right_text(other)));
                }
            }
        }
        match kind {
            JoinKind::Semi if matched => rows.push(left_text(at)),
            JoinKind::Anti if !matched => rows.push(left_text(at)),
            JoinKind::NullAwareAnti if !possible => rows.push(left_text(at)),
            JoinKind::Left | JoinKind::Full if !matched => rows.push(format!("{}|-|-", left_text(at))),
            _ => {}
        }
    }
    if matches!(kind, JoinKind::Right | JoinKind::Full) {
        for (other, _) in right_matched.iter().enumerate().filter(|(_, matched)| !**matched) {
            rows.push(format!("-|-|{}", right_text(other)));
        }
    }
    rows.sort();
    rows
}

fn plan_of(case: &Case, kind: JoinKind) -> Plan {
    let scan = |source| Plan::Scan {
        source,
        types: vec![case.types[0].logical(), case.types[1].logical(), LogicalType::Bool, LogicalType::Text],
    };
    let keys = (0..case.keys).map(|at| (Expression::Column(at), Expression::Column(at)));
    let condition = case.condition.map(|condition| match condition {
        0 => Expression::Column(2),
        1 => Expression::Column(6),
        _ => Expression::Call {
            function: Function::Compare(CompareOp::Equal),
            arguments: vec![Expression::Column(6), Expression::Column(2)],
            result: LogicalType::Bool,
        },
    });
    Plan::Join { kind, left: Box::new(scan(0)), right: Box::new(scan(1)), keys: keys.collect(), condition }
}

fn run(plan: &Plan, case: &Case, settings: Settings) -> Result<Vec<Batch>> {
    let left = batches(&case.left, case.types, true, case.cuts.0, case.encodings.0);
    let right = batches(&case.right, case.types, false, case.cuts.1, case.encodings.1);
    let sources: Vec<Box<dyn Source>> = vec![Batches::new(left), Batches::new(right)];
    let mut execution = Execution::new(plan, sources, settings)?;
    let mut batches = Vec::new();
    while let Some(batch) = execution.next(&mut TestHost)? {
        assert!(batch.rows > 0 && batch.columns.len() == plan.types().len());
        for (column, logical) in batch.columns.iter().zip(plan.types()) {
            assert_eq!(column.logical, logical);
        }
        batches.push(batch);
    }
    Ok(batches)
}

const KINDS: [JoinKind; 7] = [
    JoinKind::Inner,
    JoinKind::Left,
    JoinKind::Right,
    JoinKind::Full,
    JoinKind::Semi,
    JoinKind::Anti,
    JoinKind::NullAwareAnti,
];

fn settings() -> Settings {
    Settings { memory: 1 << 30, threads: 1, temp_files: None }
}

fn check(case: &Case) {
    for kind in KINDS {
        let plan = plan_of(case, kind);
        let columns: &[usize] = if plan.types().len() == 4 { &[2, 3] } else { &[2, 3, 6, 7] };
        let got = run(&plan, case, settings()).unwrap();
        let mut rows: Vec<String> = got.iter().flat_map(|batch| shown(batch, columns)).collect();
        rows.sort();
        assert_eq!(rows, expected(case, kind), "{kind:?} {case:?}");

        // Kept rows that do not fit go to files, where they can be spread by keys.
        let memory = Memory::default();
        let files: SharedTempFiles = Arc::new(memory);
        let threads = 1 + case.left.len() % 3;
        let tiny = Settings { memory: case.cuts.0 * 50, threads, temp_files: Some(files) };
        match run(&plan, case, tiny) {
            Err(Error::Decline(_)) if case.keys == 0 => {}
            Err(Error::Decline(_)) if kind == JoinKind::NullAwareAnti => {
                assert!(case.keys > 1 || case.condition.is_some());
            }
            got => {
                let got = got.unwrap();
                let mut rows: Vec<String> = got.iter().flat_map(|batch| shown(batch, columns)).collect();
                rows.sort();
                assert_eq!(rows, expected(case, kind), "spilled {kind:?} {case:?}");
            }
        }

        // The same with only the last columns wanted.
        let narrow: Vec<usize> = columns.iter().copied().skip(1).step_by(2).collect();
        let project = Plan::Project {
            input: Box::new(plan),
            expressions: narrow.iter().map(|&at| Expression::Column(at)).collect(),
        };
        let got = run(&project, case, Settings { threads: 3, ..settings() }).unwrap();
        let all: Vec<usize> = (0..narrow.len()).collect();
        let mut rows: Vec<String> = got.iter().flat_map(|batch| shown(batch, &all)).collect();
        rows.sort();
        let mut names: Vec<String> = expected(case, kind)
            .iter()
            .map(|row| row.split('|').skip(1).step_by(2).collect::<Vec<_>>().join("|"))
            .collect();
        names.sort();
        assert_eq!(rows, names, "projected {kind:?} {case:?}");
    }
}

fn rows(max: usize, nulls: bool) -> impl Strategy<Value = Vec<Row>> {
    let value = move || {
        (0u8..7, 0u8..if nulls { 6 } else { 1 }).prop_map(move |(value, null)| (null != 5).then_some(value))
    };
    let flag = prop_oneof![Just(None), Just(Some(true)), Just(Some(false))];
    prop::collection::vec(
        (value(), value(), flag).prop_map(|(a, b, flag)| Row { keys: [a, b], flag }),
        0..max,
    )
}

fn encoding() -> impl Strategy<Value = Encoding> {
    prop_oneof![Just(Encoding::Flat), Just(Encoding::Dictionary), Just(Encoding::Runs)]
}

fn case() -> impl Strategy<Value = Case> {
    let key = || prop::sample::select(KEYS.to_vec());
    (
        (any::<bool>(), any::<bool>()).prop_flat_map(|(a, b)| (rows(20, a), rows(12, b))),
        [key(), key()],
        0usize..3,
        prop::option::of(0u8..3),
        (1usize..20, 1usize..12),
        (encoding(), encoding()),
    )
        .prop_map(|((left, right), types, keys, condition, cuts, encodings)| Case {
            left,
            right,
            types,
            keys,
            condition,
            cuts,
            encodings,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_kind_gives_the_rows_of_nested_loops(case in case()) {
        check(&case);
    }
}

/// Many rows with many duplicates: pairs come in several batches, chains are cut in the middle.
#[test]
fn many_pairs() {
    for key in [Key::Small, Key::Sparse, Key::Text] {
        let row =
            |at: usize| Row { keys: [(at % 9 != 8).then_some((at % 3) as u8), None], flag: Some(at % 7 > 1) };
        let case = Case {
            left: (0..70).map(row).collect(),
            right: (0..700).map(row).collect(),
            types: [key, Key::Bool],
            keys: 1,
            condition: None,
            cuts: (50, 300),
            encodings: (Encoding::Flat, Encoding::Flat),
        };
        check(&case);
        check(&Case { condition: Some(1), ..case.clone() });
        check(&Case { keys: 0, ..case });
    }
}

#[test]
fn a_kept_side_beyond_memory_is_declined() {
    let row = Row { keys: [Some(1), None], flag: None };
    let case = Case {
        left: vec![row.clone()],
        right: vec![row; 1000],
        types: [Key::Text, Key::Bool],
        keys: 1,
        condition: None,
        cuts: (1, 1),
        encodings: (Encoding::Flat, Encoding::Flat),
    };
    let settings = Settings { memory: 10_000, threads: 1, temp_files: None };
    let got = run(&plan_of(&case, JoinKind::Inner), &case, settings);
    assert!(matches!(got, Err(query::Error::Decline(_))), "{got:?}");
}

/// Files are spread again where a pair is too large, and joined as they are where that does not help.
#[test]
fn large_kept_sides_are_spread_again_and_again() {
    for (left, right) in [(300, 5000), (5000, 300)] {
        // Of 40 keys one has a third of all rows.
        let row = |at: usize| Row {
            keys: [
                Some(if at.is_multiple_of(3) { 2 } else { (at % 7) as u8 }),
                (at % 11 != 5).then_some((at / 7 % 6) as u8),
            ],
            flag: (at % 13 > 2).then_some(at.is_multiple_of(2)),
        };
        let case = Case {
            left: (0..left).map(row).collect(),
            right: (0..right).map(row).collect(),
            types: [Key::Numeric, Key::Text],
            keys: 2,
            condition: Some(2),
            cuts: (70, 50),
            encodings: (Encoding::Flat, Encoding::Dictionary),
        };
        for kind in [JoinKind::Anti, JoinKind::Full] {
            let files = Memory::default();
            let written = Arc::clone(&files.written);
            let settings = Settings { memory: 3_000, threads: 2, temp_files: Some(Arc::new(files)) };
            let plan = plan_of(&case, kind);
            let columns: &[usize] = if plan.types().len() == 4 { &[2, 3] } else { &[2, 3, 6, 7] };
            let got = run(&plan, &case, settings).unwrap();
            let mut rows: Vec<String> = got.iter().flat_map(|batch| shown(batch, columns)).collect();
            rows.sort();
            assert!(rows == expected(&case, kind), "{kind:?}");
            assert!(written.load(std::sync::atomic::Ordering::Relaxed) > 100_000, "{written:?}");
        }
    }
}

#[test]
fn appended_parts_keep_their_own_rest() {
    let rows: Vec<Row> = (0..10u8).map(|at| Row { keys: [Some(at % 7), None], flag: None }).collect();
    let case = Case {
        left: rows[..3].to_vec(),
        right: rows,
        types: [Key::Small, Key::Text],
        keys: 1,
        condition: None,
        cuts: (2, 4),
        encodings: (Encoding::Flat, Encoding::Dictionary),
    };
    let full = plan_of(&case, JoinKind::Full);
    let inner = plan_of(&case, JoinKind::Inner);
    let shift = |plan: Plan| match plan {
        Plan::Join { kind, keys, condition, left, right } => {
            let moved = |side: Plan| match side {
                Plan::Scan { source, types } => Plan::Scan { source: source + 2, types },
                other => other,
            };
            Plan::Join { kind, keys, condition, left: Box::new(moved(*left)), right: Box::new(moved(*right)) }
        }
        other => other,
    };
    let plan = Plan::Append { inputs: vec![full, shift(inner)] };
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    for _ in 0..2 {
        let left = batches(&case.left, case.types, true, case.cuts.0, case.encodings.0);
        let right = batches(&case.right, case.types, false, case.cuts.1, case.encodings.1);
        sources.push(Batches::new(left));
        sources.push(Batches::new(right));
    }
    let mut execution = Execution::new(&plan, sources, settings()).unwrap();
    let mut got = Vec::new();
    while let Some(batch) = execution.next(&mut TestHost).unwrap() {
        got.extend(shown(&batch, &[2, 3, 6, 7]));
    }
    got.sort();
    let mut wanted = expected(&case, JoinKind::Full);
    wanted.extend(expected(&case, JoinKind::Inner));
    wanted.sort();
    assert_eq!(got, wanted);
}
