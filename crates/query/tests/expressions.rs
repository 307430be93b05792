//! Random expressions over random columns in every encoding, against the slow reference of `common`.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use query::{Batch, CaseRule, DateField, Error, Evaluator, Expression, Function, HostFunction};
use support::evaluator::{Fails, evaluate};
use support::{Plain, at, same, vector};
use vector::{Bitmap, CompareOp, Dictionary, LogicalType, Values, Vector};

const SCHEMA: [LogicalType; 12] = [
    LogicalType::Int32,
    LogicalType::Int32,
    LogicalType::Int64,
    LogicalType::Numeric,
    LogicalType::Numeric,
    LogicalType::Text,
    LogicalType::Text,
    LogicalType::Float64,
    LogicalType::Bool,
    LogicalType::Int16,
    LogicalType::Date,
    LogicalType::Timestamp,
];

/// Values of a type, few and far between, so that they meet each other and their limits.
fn plain(logical: LogicalType) -> BoxedStrategy<Plain> {
    match logical {
        LogicalType::Bool => any::<bool>().prop_map(Plain::Bool).boxed(),
        LogicalType::Int16 => {
            prop_oneof![4 => -4i64..4, 1 => Just(32_767i64), 1 => Just(-32_768i64)].prop_map(Plain::Int).boxed()
        }
        LogicalType::Int32 | LogicalType::Date => {
            prop_oneof![8 => -4i64..40, 1 => Just(i64::from(i32::MAX)), 1 => Just(i64::from(i32::MIN)), 1 => Just(70_000i64)]
                .prop_map(Plain::Int)
                .boxed()
        }
        LogicalType::Int64 | LogicalType::Timestamp => {
            prop_oneof![8 => -4i64..40, 1 => Just(i64::MAX), 1 => Just(i64::MIN), 1 => Just(1i64 << 40)]
                .prop_map(Plain::Int)
                .boxed()
        }
        LogicalType::Float32 | LogicalType::Float64 => {
            let special = prop_oneof![
                Just(f64::NAN), Just(-0.0), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(1e300), Just(1e-300)
            ];
            prop_oneof![8 => (-8i32..8).prop_map(|v| f64::from(v) / 2.0), 2 => special].prop_map(Plain::Float).boxed()
        }
        LogicalType::Numeric => {
            let ints = prop_oneof![8 => -2000i128..2000, 1 => Just(3_000_000_000i128), 1 => Just(10i128.pow(19))];
            (ints, 0u16..4, 0u16..2).prop_map(|(value, scale, more)| Plain::Numeric(value, scale, scale + more)).boxed()
        }
        _ => prop_oneof![
            Just(""), Just("a"), Just("ab"), Just("abc"), Just("twelve bytes"), Just("thirteen bytes"),
            Just("thirteen byteS"), Just("a%b_c"), Just("Straße, Größe, ÄÖÜ"), Just("special packages requests")
        ]
        .prop_map(|text| Plain::Text(text.as_bytes().to_vec()))
        .boxed(),
    }
}

fn nullable(logical: LogicalType) -> BoxedStrategy<Plain> {
    prop_oneof![6 => plain(logical), 1 => Just(Plain::Null)].boxed()
}

/// A column of `rows` rows in some encoding; the same rows flat beside it.
fn column(logical: LogicalType, rows: usize) -> BoxedStrategy<(Vector, Vector)> {
    let nulls = prop::bool::weighted(0.5);
    let pool = nulls.prop_flat_map(move |nulls| {
        let value = if nulls { nullable(logical) } else { plain(logical) };
        prop::collection::vec(value, 1..6)
    });
    (pool, prop::collection::vec(any::<prop::sample::Index>(), rows), 0..4)
        .prop_map(move |(pool, picks, layout)| {
            let mut picks: Vec<usize> = picks.iter().map(|pick| pick.index(pool.len())).collect();
            let valid = picks.iter().any(|&pick| pool[pick] != Plain::Null);
            if layout == 3 {
                picks.iter_mut().for_each(|pick| *pick = 0);
            }
            if layout == 2 {
                picks.sort_unstable();
            }
            let flat: Vec<Plain> = picks.iter().map(|&pick| pool[pick].clone()).collect();
            let flat = vector(logical, &flat);
            let encoded = match layout {
                1 if valid && logical != LogicalType::Bool => {
                    let entries: Vec<Plain> =
                        pool.iter().filter(|value| **value != Plain::Null).cloned().collect();
                    let place =
                        |pick: usize| pool[..pick].iter().filter(|value| **value != Plain::Null).count();
                    let codes = picks.iter().map(|&pick| match &pool[pick] {
                        Plain::Null => 0,
                        _ => place(pick) as u32,
                    });
                    let entries = vector(logical, &entries);
                    let dictionary = Arc::new(Dictionary { id: Dictionary::next_id(), entries });
                    let values = Values::Dictionary { codes: codes.collect(), dictionary };
                    Vector { logical, validity: flat.validity.clone(), values }
                }
                2 => {
                    let mut ends: Vec<u32> = vec![0; pool.len()];
                    picks.iter().for_each(|&pick| ends[pick] += 1);
                    let mut sum = 0;
                    ends.iter_mut().for_each(|end| {
                        sum += *end;
                        *end = sum;
                    });
                    let values = Box::new(vector(logical, &pool));
                    Vector::new(logical, Values::Runs { ends, values })
                }
                3 => {
                    let one = vector(logical, &pool[..1]);
                    Vector::new(logical, Values::Constant(Box::new(one), rows))
                }
                _ => flat.clone(),
            };
            (encoded, flat)
        })
        .boxed()
}

fn columns() -> BoxedStrategy<(Vec<Vector>, Vec<Vector>)> {
    prop_oneof![Just(0usize), Just(1), 2..10usize, 60..140usize]
        .prop_flat_map(|rows| SCHEMA.map(|logical| column(logical, rows)).to_vec())
        .prop_map(|columns| columns.into_iter().unzip())
        .boxed()
}

fn call(function: Function, arguments: Vec<Expression>, result: LogicalType) -> Expression {
    Expression::Call { function, arguments, result }
}

fn leaf(logical: LogicalType) -> BoxedStrategy<Expression> {
    let columns: Vec<usize> = (0..SCHEMA.len()).filter(|&at| SCHEMA[at] == logical).collect();
    let constant =
        nullable(logical).prop_map(move |value| Expression::Constant(Arc::new(vector(logical, &[value]))));
    if columns.is_empty() {
        return constant.boxed();
    }
    prop_oneof![3 => prop::sample::select(columns).prop_map(Expression::Column), 1 => constant].boxed()
}

fn any_type() -> BoxedStrategy<LogicalType> {
    prop::sample::select(SCHEMA.to_vec()).boxed()
}

fn op() -> impl Strategy<Value = CompareOp> {
    prop_oneof![
        Just(CompareOp::Equal),
        Just(CompareOp::NotEqual),
        Just(CompareOp::Less),
        Just(CompareOp::LessOrEqual),
        Just(CompareOp::Greater),
        Just(CompareOp::GreaterOrEqual)
    ]
}

/// A function of another kind, over arguments of its own types.
fn other_function(logical: LogicalType, depth: u32) -> BoxedStrategy<Expression> {
    use LogicalType::{Bool, Date, Float64, Int16, Int32, Int64, Numeric, Text, Timestamp};
    let known: Vec<(Function, Vec<LogicalType>)> = match logical {
        Bool => vec![(Function::StartsWith, vec![Text, Text])],
        Int16 => vec![(Function::Cast(Int16), vec![Int32]), (Function::Cast(Int16), vec![Numeric])],
        Int32 => vec![
            (Function::Length, vec![Text]),
            (Function::OctetLength, vec![Text]),
            (Function::Position, vec![Text, Text]),
            (Function::Cast(Int32), vec![Float64]),
            (Function::Cast(Int32), vec![Bool]),
            (Function::Subtract, vec![Date, Date]),
        ],
        Int64 => vec![(Function::Cast(Int64), vec![Int32]), (Function::Cast(Int64), vec![Numeric])],
        Float64 => vec![
            (Function::Cast(Float64), vec![Numeric]),
            (Function::Cast(Float64), vec![Int64]),
            (Function::DatePart(DateField::Hour), vec![Timestamp]),
            (Function::Round, vec![Float64]),
        ],
        Numeric => vec![
            (Function::Cast(Numeric), vec![Int32]),
            (Function::Divide, vec![Numeric, Numeric]),
            (Function::Round, vec![Numeric]),
            (Function::Floor, vec![Numeric]),
            (Function::NumericLength { precision: 6, scale: 2 }, vec![Numeric]),
            (Function::Extract(DateField::Year), vec![Date]),
            (Function::Extract(DateField::Week), vec![Timestamp]),
            (Function::Extract(DateField::Second), vec![Timestamp]),
        ],
        Text => vec![
            (Function::Concat, vec![Text, Text]),
            (Function::Upper(CaseRule::Ascii), vec![Text]),
            (Function::Lower(CaseRule::Locale), vec![Text]),
            (Function::Substring, vec![Text, Int32]),
            (Function::Substring, vec![Text, Int32, Int32]),
            (Function::Left, vec![Text, Int32]),
            (Function::Right, vec![Text, Int32]),
            (Function::Replace, vec![Text, Text, Text]),
            (Function::SplitPart, vec![Text, Text, Int32]),
            (Function::Trim { start: true, end: true }, vec![Text, Text]),
        ],
        Date => vec![(Function::Add, vec![Date, Int32]), (Function::Cast(Date), vec![Timestamp])],
        Timestamp => vec![
            (Function::DateTrunc(DateField::Month), vec![Timestamp]),
            (Function::DateTrunc(DateField::Minute), vec![Timestamp]),
            (Function::Cast(Timestamp), vec![Date]),
        ],
        _ => return leaf(logical),
    };
    let calls = prop::sample::select(known).prop_flat_map(move |(function, types)| {
        let arguments: Vec<_> = types.iter().map(|&logical| expression(logical, depth - 1)).collect();
        arguments.prop_map(move |arguments| call(function, arguments, logical))
    });
    if logical != Bool {
        return calls.boxed();
    }
    let patterns = prop::sample::select(vec![
        "%a%",
        "a%",
        "%c",
        "_b%",
        "%special%requests%",
        "twelve bytes",
        "%ö_e%",
        "t%s",
    ]);
    let like = (patterns, expression(Text, depth - 1)).prop_map(|(pattern, text)| {
        let pattern = vector(Text, &[Plain::Text(pattern.as_bytes().to_vec())]);
        call(Function::Like, vec![text, Expression::Constant(Arc::new(pattern))], Bool)
    });
    prop_oneof![calls, like].boxed()
}

/// Divisions that only rows reach for which they are defined: what has to see fewer rows than there are. Of
/// type Bool or Int16.
fn guarded(logical: LogicalType) -> BoxedStrategy<Expression> {
    use LogicalType::{Bool, Int16};
    let zero = || Expression::Constant(Arc::new(vector(Int16, &[Plain::Int(0)])));
    let parts = (leaf(Int16), leaf(Int16), op(), any::<bool>());
    let guard = move |(a, b, op, reversed): (Expression, Expression, CompareOp, bool)| {
        let is_zero = call(Function::Compare(CompareOp::Equal), vec![a.clone(), zero()], Bool);
        let is_not = call(Function::Compare(CompareOp::NotEqual), vec![a.clone(), zero()], Bool);
        let rest = call(Function::Modulo, vec![b.clone(), a], Int16);
        let verdict = call(Function::Compare(op), vec![rest.clone(), b.clone()], Bool);
        match (logical == Bool, reversed) {
            (true, false) => Expression::And(vec![is_not, verdict]),
            (true, true) => Expression::Or(vec![is_zero, verdict]),
            (false, false) => Expression::Case {
                branches: vec![(is_not, rest)],
                otherwise: Some(Box::new(b)),
                result: Int16,
            },
            (false, true) => {
                let null = Expression::Constant(Arc::new(vector(Int16, &[Plain::Null])));
                let known = Expression::Case {
                    branches: vec![(is_zero, b)],
                    otherwise: Some(Box::new(null)),
                    result: Int16,
                };
                Expression::Coalesce(vec![known, rest])
            }
        }
    };
    parts.prop_map(guard).boxed()
}

/// An expression of this type.
fn expression(logical: LogicalType, depth: u32) -> BoxedStrategy<Expression> {
    if depth == 0 {
        return leaf(logical);
    }
    let condition = move || expression(LogicalType::Bool, depth - 1);
    let same_type = move || expression(logical, depth - 1);
    let case = (prop::collection::vec((condition(), same_type()), 1..3), prop::option::of(same_type()))
        .prop_map(move |(branches, otherwise)| Expression::Case {
            branches,
            otherwise: otherwise.map(Box::new),
            result: logical,
        });
    let coalesce = prop::collection::vec(same_type(), 1..4).prop_map(Expression::Coalesce);
    let own = match logical {
        LogicalType::Bool => {
            let compare = (any_type(), op()).prop_flat_map(move |(logical, op)| {
                let side = move || expression(logical, depth - 1);
                (side(), side())
                    .prop_map(move |(a, b)| call(Function::Compare(op), vec![a, b], LogicalType::Bool))
            });
            let list = any_type().prop_flat_map(move |logical| {
                let entries = prop::collection::vec(nullable(logical), 0..10);
                (expression(logical, depth - 1), entries).prop_map(move |(value, entries)| Expression::In {
                    value: Box::new(value),
                    entries: Arc::new(vector(logical, &entries)),
                })
            });
            let is_null = any_type().prop_flat_map(move |logical| {
                expression(logical, depth - 1).prop_map(|part| Expression::IsNull(Box::new(part)))
            });
            let parts = move || prop::collection::vec(condition(), 1..4);
            prop_oneof![
                6 => compare,
                2 => list,
                1 => is_null,
                2 => parts().prop_map(Expression::And),
                2 => parts().prop_map(Expression::Or),
                1 => condition().prop_map(|part| Expression::Not(Box::new(part))),
            ]
            .boxed()
        }
        LogicalType::Int16
        | LogicalType::Int32
        | LogicalType::Int64
        | LogicalType::Numeric
        | LogicalType::Float64 => {
            let mut functions = vec![Function::Add, Function::Subtract, Function::Multiply];
            if logical != LogicalType::Numeric {
                functions.push(Function::Divide);
            }
            if logical != LogicalType::Float64 {
                functions.push(Function::Modulo);
            }
            let binary = (prop::sample::select(functions), same_type(), same_type())
                .prop_map(move |(function, a, b)| call(function, vec![a, b], logical));
            let unary = (prop::sample::select(vec![Function::Negate, Function::Absolute]), same_type())
                .prop_map(move |(function, a)| call(function, vec![a], logical));
            prop_oneof![4 => binary, 1 => unary].boxed()
        }
        _ => leaf(logical),
    };
    if matches!(logical, LogicalType::Bool | LogicalType::Int16) {
        return prop_oneof![6 => own, 3 => other_function(logical, depth), 2 => guarded(logical), 1 => case, 1 => coalesce, 1 => leaf(logical)]
            .boxed();
    }
    prop_oneof![6 => own, 3 => other_function(logical, depth), 1 => case, 1 => coalesce, 1 => leaf(logical)]
        .boxed()
}

fn typed_expression() -> BoxedStrategy<(LogicalType, Expression)> {
    any_type().prop_flat_map(|logical| (Just(logical), expression(logical, 3))).boxed()
}

fn batch(columns: &[Vector]) -> Batch {
    Batch::new(columns[0].len(), columns.iter().cloned().map(Arc::new).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn evaluation_agrees_with_the_reference((logical, expression) in typed_expression(), (encoded, flat) in columns()) {
        let batch = batch(&encoded);
        let wanted: Result<Vec<Plain>, _> = (0..batch.rows).map(|row| evaluate(&expression, &flat, row)).collect();
        let mut evaluator = Evaluator::new(&expression);
        // Twice: the second time with what it remembers.
        for _ in 0..2 {
            match (&wanted, evaluator.evaluate(&batch)) {
                (Ok(wanted), Ok(found)) => {
                    prop_assert_eq!(found.logical, logical);
                    prop_assert_eq!(found.len(), batch.rows);
                    for (row, wanted) in wanted.iter().enumerate() {
                        let found = at(&found, row);
                        prop_assert!(same(&found, wanted), "row {}: {:?}, not {:?}", row, found, wanted);
                    }
                }
                (Err(_), Err(_)) => {}
                // Products of many digits, or one that only another row's scale makes too long.
                (Ok(_), Err(Error::Decline("numeric of more than 38 digits"))) => {}
                (wanted, found) => prop_assert!(false, "{:?}, not {:?}", found, wanted),
            }
        }
    }

    #[test]
    fn selection_agrees_with_the_reference(condition in expression(LogicalType::Bool, 3), (encoded, flat) in columns()) {
        let batch = batch(&encoded);
        // A filter ends its conjunction at the first part that is not TRUE.
        let parts = match &condition {
            Expression::And(parts) => parts.clone(),
            _ => vec![condition.clone()],
        };
        let verdict = |row| parts.iter().try_fold(true, |so_far, part| {
            Ok::<_, Fails>(so_far && evaluate(part, &flat, row)? == Plain::Bool(true))
        });
        let wanted: Result<Vec<bool>, _> = (0..batch.rows).map(verdict).collect();
        match (wanted, Evaluator::new(&condition).select(&batch)) {
            (Ok(wanted), Ok(found)) => {
                let wanted: Vec<u32> = (0u32..).zip(&wanted).filter(|(_, wanted)| **wanted).map(|(row, _)| row).collect();
                match found {
                    None => prop_assert_eq!(wanted.len(), batch.rows),
                    Some(found) => prop_assert_eq!(found, wanted),
                }
            }
            (Err(_), Err(_)) => {}
            (Ok(_), Err(Error::Decline("numeric of more than 38 digits"))) => {}
            (wanted, found) => prop_assert!(false, "{:?}, not {:?}", found, wanted),
        }
    }
}

#[test]
fn the_reference_takes_decimals_of_more_digits_than_a_column_has() {
    let decimal = || Expression::Constant(Arc::new(vector(LogicalType::Numeric, &[Plain::decimal(3, 20)])));
    let product = call(Function::Multiply, vec![decimal(), decimal()], LogicalType::Numeric);
    let float = call(Function::Cast(LogicalType::Float64), vec![product], LogicalType::Float64);
    let found = evaluate(&float, &[], 0).ok();
    assert!(found.as_ref().is_none_or(|found| *found == Plain::Float(9e-40)), "{found:?}");
}

#[test]
fn a_dictionary_entry_that_no_row_has_raises_nothing() {
    let entries = vector(LogicalType::Int32, &[Plain::Int(0), Plain::Int(5)]);
    let dictionary = Arc::new(Dictionary { id: Dictionary::next_id(), entries });
    let values = |codes: Vec<u32>| Values::Dictionary { codes, dictionary: Arc::clone(&dictionary) };
    let divide = call(
        Function::Divide,
        vec![
            Expression::Constant(Arc::new(vector(LogicalType::Int32, &[Plain::Int(10)]))),
            Expression::Column(0),
        ],
        LogicalType::Int32,
    );
    let mut evaluator = Evaluator::new(&divide);
    let without = Vector::new(LogicalType::Int32, values(vec![1, 1, 1]));
    let found = evaluator.evaluate(&batch(&[without])).unwrap();
    assert_eq!((0..3).map(|row| at(&found, row)).collect::<Vec<_>>(), vec![Plain::Int(2); 3]);
    let null = Vector {
        validity: Some(Bitmap::from_words(vec![0b110], 3)),
        ..Vector::new(LogicalType::Int32, values(vec![0, 1, 1]))
    };
    let found = evaluator.evaluate(&batch(&[null])).unwrap();
    assert_eq!(at(&found, 0), Plain::Null);
    let with = Vector::new(LogicalType::Int32, values(vec![1, 0, 1]));
    assert!(matches!(evaluator.evaluate(&batch(&[with])), Err(Error::Sql(_))));
}

/// Doubles an integer, fails for 13, and counts what it is asked.
struct Doubling(AtomicUsize);

impl HostFunction for Doubling {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> query::Result<Vector> {
        let Values::Int32(values) = &arguments[0].values else { panic!() };
        let valid = |row: &usize| arguments[0].is_valid(*row);
        self.0.fetch_add((0..rows).filter(valid).count(), Ordering::Relaxed);
        if (0..rows).filter(valid).any(|row| values[row] == 13) {
            return Err(Error::Cancelled);
        }
        let doubled = Values::Int32(values.iter().map(|value| value.wrapping_mul(2)).collect());
        Ok(Vector { logical: LogicalType::Int32, validity: arguments[0].validity.clone(), values: doubled })
    }
    fn needs_host(&self) -> bool {
        true
    }
    fn name(&self) -> &str {
        "doubling"
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

#[test]
fn a_host_function_sees_each_entry_that_occurs_once() {
    let entries = vector(LogicalType::Int32, &[1, 13, 3, 4].map(Plain::Int));
    let dictionary = Arc::new(Dictionary { id: Dictionary::next_id(), entries });
    let column = |codes: Vec<u32>, valid: u64| Vector {
        logical: LogicalType::Int32,
        validity: Some(Bitmap::from_words(vec![valid], codes.len())),
        values: Values::Dictionary { codes, dictionary: Arc::clone(&dictionary) },
    };
    let function = Arc::new(Doubling(AtomicUsize::new(0)));
    let called = Expression::Host {
        function: Arc::clone(&function) as Arc<dyn HostFunction>,
        arguments: vec![Expression::Column(0)],
        result: LogicalType::Int32,
    };
    let minus_one = Expression::Constant(Arc::new(vector(LogicalType::Int32, &[Plain::Int(-1)])));
    let mut evaluator = Evaluator::new(&Expression::Coalesce(vec![called, minus_one]));
    let mut values = |codes: Vec<u32>, valid| {
        let found = evaluator.evaluate(&batch(&[column(codes, valid)])).unwrap();
        (0..found.len()).map(|row| at(&found, row)).collect::<Vec<_>>()
    };
    // Code 1 stands in a NULL row: its entry is not asked for.
    assert_eq!(values(vec![0, 1, 0, 2, 0], 0b11101), [2, -1, 2, 6, 2].map(Plain::Int));
    assert_eq!(function.0.load(Ordering::Relaxed), 2);
    assert_eq!(values(vec![2, 3, 0, 1], 0b0111), [6, 8, 2, -1].map(Plain::Int));
    assert_eq!(function.0.load(Ordering::Relaxed), 3);
    assert_eq!(values(vec![1, 1], 0), [-1, -1].map(Plain::Int));
    assert_eq!(function.0.load(Ordering::Relaxed), 3);
}

/// Says of its argument whether it came as a constant.
struct IsConstant {
    takes_constants: bool,
}

impl HostFunction for IsConstant {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> query::Result<Vector> {
        let is_constant = matches!(arguments[0].values, Values::Constant(..));
        Ok(vector(LogicalType::Int32, &vec![Plain::Int(is_constant.into()); rows]))
    }
    fn needs_host(&self) -> bool {
        true
    }
    fn takes_constants(&self) -> bool {
        self.takes_constants
    }
    fn name(&self) -> &str {
        "is constant"
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// A large constant, as the array of `> ALL (array)`, is not copied for each row.
#[test]
fn a_host_function_that_takes_constants_gets_them() {
    for takes_constants in [false, true] {
        let called = Expression::Host {
            function: Arc::new(IsConstant { takes_constants }),
            arguments: vec![Expression::Constant(Arc::new(vector(LogicalType::Int32, &[Plain::Int(7)])))],
            result: LogicalType::Int32,
        };
        let column = vector(LogicalType::Int32, &[Plain::Int(1), Plain::Int(2)]);
        let found = Evaluator::new(&called).evaluate(&batch(&[column])).unwrap();
        assert_eq!(at(&found, 1), Plain::Int(takes_constants.into()));
    }
}
