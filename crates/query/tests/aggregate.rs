//! Aggregation against a reference that goes row by row.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use query::*;
use support::*;
use vector::LogicalType as T;
use vector::{Decimal, Scalar};

const TYPES: [T; 8] = [T::Int16, T::Int32, T::Int64, T::Float64, T::Numeric, T::Text, T::Bool, T::Date];

fn any_value(logical: T) -> BoxedStrategy<Plain> {
    let value = match logical {
        T::Int16 => (-3i64..3).prop_map(Plain::Int).boxed(),
        T::Int32 | T::Date => prop_oneof![(-3i64..3), Just(i64::from(i32::MAX)), Just(-2_000_000_000)]
            .prop_map(Plain::Int)
            .boxed(),
        T::Int64 => prop_oneof![(0i64..20), Just(i64::MAX), Just(i64::MIN)].prop_map(Plain::Int).boxed(),
        T::Float64 => prop_oneof![
            (-4i32..4).prop_map(|v| Plain::Float(f64::from(v) / 2.0)),
            Just(Plain::Float(f64::NAN))
        ]
        .boxed(),
        T::Numeric => {
            let small = (-30i128..30, 0u16..3).prop_map(|(v, s)| Plain::decimal(v, s));
            let large = (0i128..4).prop_map(|v| Plain::decimal(v * 10i128.pow(20), 2));
            prop_oneof![5 => small, 1 => large].boxed()
        }
        T::Text => prop_oneof!["[ab]{0,2}", "a long text past the view[ab]"].prop_map(Plain::text).boxed(),
        _ => any::<bool>().prop_map(Plain::Bool).boxed(),
    };
    prop_oneof![6 => value, 1 => Just(Plain::Null)].boxed()
}

/// Batches as lists of columns, with how each column is held.
fn any_batches() -> impl Strategy<Value = Vec<Batch>> {
    let column =
        |logical: T| move |rows: usize| (proptest::collection::vec(any_value(logical), rows), 0u8..4);
    let batch = (1usize..40)
        .prop_flat_map(move |rows| TYPES.iter().map(|&logical| column(logical)(rows)).collect::<Vec<_>>());
    proptest::collection::vec(batch, 0..5).prop_map(|batches| {
        let made = batches.into_iter().enumerate().map(|(number, columns)| {
            let rows = columns[0].0.len();
            let columns =
                columns.into_iter().zip(TYPES).enumerate().map(|(at, ((values, form), logical))| {
                    let flat = vector(logical, &values);
                    Arc::new(match form {
                        0 => coded(&flat, (number * 100 + at) as u64),
                        1 => runs(&flat),
                        _ => flat,
                    })
                });
            Batch::new(rows, columns.collect())
        });
        made.collect()
    })
}

fn compare_keys(a: &[Plain], b: &[Plain]) -> Ordering {
    a.iter().zip(b).map(|(a, b)| a.compare(b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

struct Key(Vec<Plain>);
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Key {}
impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_keys(&self.0, &other.0)
    }
}

/// Result type of a function over a column.
fn result_type(function: AggregateFunction, logical: T) -> Option<T> {
    use AggregateFunction as F;
    Some(match (function, logical) {
        (F::CountRows | F::Count, _) => T::Int64,
        (F::Sum, T::Int16 | T::Int32) => T::Int64,
        (F::Sum | F::Avg, T::Int16 | T::Int32 | T::Int64 | T::Numeric) => T::Numeric,
        (F::Sum | F::Avg, T::Float64) => T::Float64,
        (F::Min | F::Max, T::Bool) => return None,
        (F::Min | F::Max, logical) => logical,
        (F::BoolAnd | F::BoolOr, T::Bool) => T::Bool,
        _ => return None,
    })
}

fn reference(function: AggregateFunction, logical: T, values: &[Plain]) -> Plain {
    use AggregateFunction as F;
    let valid: Vec<&Plain> = values.iter().filter(|value| !matches!(value, Plain::Null)).collect();
    match function {
        F::CountRows => return Plain::Int(values.len() as i64),
        F::Count => return Plain::Int(valid.len() as i64),
        _ if valid.is_empty() => return Plain::Null,
        _ => {}
    }
    match function {
        F::Min => {
            valid.into_iter().cloned().reduce(|a, b| if a.compare(&b).is_lt() { a } else { b }).unwrap()
        }
        F::Max => {
            valid.into_iter().cloned().reduce(|a, b| if a.compare(&b).is_gt() { a } else { b }).unwrap()
        }
        F::BoolAnd => Plain::Bool(valid.iter().all(|value| matches!(value, Plain::Bool(true)))),
        F::BoolOr => Plain::Bool(valid.iter().any(|value| matches!(value, Plain::Bool(true)))),
        F::Sum | F::Avg if logical == T::Float64 => {
            let sum: f64 = valid.iter().map(|v| if let Plain::Float(v) = v { *v } else { panic!() }).sum();
            Plain::Float(if function == F::Avg { sum / valid.len() as f64 } else { sum })
        }
        F::Sum | F::Avg => {
            let parts: Vec<(i128, u16)> = valid
                .iter()
                .map(|value| match value {
                    Plain::Int(v) => (i128::from(*v), 0),
                    Plain::Numeric(v, scale, _) => (*v, *scale),
                    _ => panic!(),
                })
                .collect();
            let scale = parts.iter().map(|part| part.1).max().unwrap();
            let sum: i128 = parts.iter().map(|(v, s)| v * 10i128.pow(u32::from(scale - s))).sum();
            if function == F::Sum {
                return if matches!(logical, T::Int16 | T::Int32) {
                    Plain::Int(sum as i64)
                } else {
                    Plain::decimal(sum, scale)
                };
            }
            average(sum, scale, valid.len() as i128)
        }
        _ => panic!(),
    }
}

/// Division as the server's, digit by digit of base 10,000.
fn average(sum: i128, scale: u16, count: i128) -> Plain {
    let (weight, first) = base_10000(sum.unsigned_abs(), scale);
    let (count_weight, count_first) = base_10000(count as u128, 0);
    let quotient = weight - count_weight - i32::from(first <= count_first);
    let shown = (16 - quotient * 4).max(i32::from(scale)).max(0) as u16;
    let scaled = sum * 10i128.pow(u32::from(shown - scale));
    let (whole, rest) = (scaled / count, scaled % count);
    let away = i128::from(rest.abs() * 2 >= count) * scaled.signum();
    Plain::decimal(whole + away, shown)
}

fn base_10000(value: u128, scale: u16) -> (i32, u128) {
    // Pad the decimals to whole digits of base 10,000.
    let pad = (4 - scale % 4) % 4;
    let mut digits = Vec::new();
    let mut rest = value * 10u128.pow(u32::from(pad));
    while rest > 0 {
        digits.push(rest % 10_000);
        rest /= 10_000;
    }
    let fraction = i32::from((scale + pad) / 4);
    match digits.last() {
        Some(first) => (digits.len() as i32 - 1 - fraction, *first),
        None => (0, 0),
    }
}

fn all_aggregates() -> Vec<(Aggregate, Option<usize>)> {
    use AggregateFunction as F;
    let mut all = vec![(aggregate(F::CountRows, None, T::Int64), None)];
    for function in [F::Count, F::Sum, F::Avg, F::Min, F::Max, F::BoolAnd, F::BoolOr] {
        for (at, logical) in TYPES.into_iter().enumerate() {
            if let Some(result) = result_type(function, logical)
                && (function != F::Sum && function != F::Avg || logical != T::Date)
            {
                all.push((aggregate(function, Some(at), result), Some(at)));
            }
        }
    }
    for (function, column) in [(F::Count, 5), (F::Sum, 4), (F::Avg, 1), (F::Count, 3), (F::Max, 2)] {
        let result = result_type(function, TYPES[column]).unwrap();
        let plain = aggregate(function, Some(column), result);
        all.push((Aggregate { distinct: true, ..plain.clone() }, Some(column)));
        let filter = Some(Expression::Column(6));
        all.push((Aggregate { filter: filter.clone(), ..plain.clone() }, Some(column)));
        all.push((Aggregate { filter, distinct: true, ..plain }, Some(column)));
    }
    all
}

fn expected(rows: &[Vec<Plain>], keys: &[usize]) -> Vec<String> {
    let mut groups: BTreeMap<Key, Vec<&Vec<Plain>>> = BTreeMap::new();
    for row in rows {
        let key = Key(keys.iter().map(|&key| row[key].clone()).collect());
        groups.entry(key).or_default().push(row);
    }
    if keys.is_empty() && groups.is_empty() {
        groups.insert(Key(Vec::new()), Vec::new());
    }
    let lines: Vec<Vec<Plain>> = groups
        .values()
        .map(|rows| {
            let first = rows.first();
            let mut line: Vec<Plain> =
                keys.iter().map(|&key| first.map_or(Plain::Null, |first| first[key].clone())).collect();

            for (aggregate, argument) in all_aggregates() {
                let counted = rows
                    .iter()
                    .filter(|row| aggregate.filter.is_none() || matches!(row[6], Plain::Bool(true)));
                let mut values: Vec<Plain> =
                    counted.map(|row| argument.map_or(Plain::Int(1), |at| row[at].clone())).collect();
                if aggregate.distinct {
                    let mut kept: Vec<Plain> = Vec::new();
                    for value in values {
                        if !kept.iter().any(|other| other.compare(&value).is_eq()) {
                            kept.push(value);
                        }
                    }
                    values = kept;
                }
                let logical = argument.map_or(T::Int64, |at| TYPES[at]);
                line.push(reference(aggregate.function, logical, &values));
            }
            line
        })
        .collect();
    shown(&lines)
}

fn plan(keys: &[usize]) -> Plan {
    Plan::Aggregate {
        input: scan(&TYPES),
        keys: keys.iter().map(|&key| Expression::Column(key)).collect(),
        aggregates: all_aggregates().into_iter().map(|(aggregate, _)| aggregate).collect(),
        groups: 10.0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn groups_are_the_references(
        batches in any_batches(),
        keys in proptest::sample::subsequence((0..TYPES.len()).collect::<Vec<_>>(), 0..4),
    ) {
        let rows = run(&plan(&keys), Steps::batches(&batches), roomy()).unwrap();
        prop_assert_eq!(shown(&rows), expected(&rows_of(&batches), &keys));
        let rows = run(&plan(&keys), Steps::batches(&batches), cramped(1).0).unwrap();
        prop_assert_eq!(shown(&rows), expected(&rows_of(&batches), &keys));
    }

    #[test]
    fn locals_merge(
        batches in any_batches(),
        keys in proptest::sample::subsequence((0..TYPES.len()).collect::<Vec<_>>(), 0..3),
    ) {
        let plan = plan(&keys);
        let sink = query::operators::aggregate(&plan, &Arc::new(roomy())).unwrap();
        let mut locals: Vec<_> = (0..3).map(|_| sink.make().unwrap()).collect();
        // In thirds, so that the order in which groups are first seen is that of the rows.
        let third = batches.len().div_ceil(3).max(1);
        for (at, batch) in batches.iter().enumerate() {
            assert!(locals[at / third].push(batch.clone()).unwrap());
        }
        for local in locals {
            local.finish().unwrap();
        }
        let rows = drain(sink.complete().unwrap());
        prop_assert_eq!(shown(&rows), expected(&rows_of(&batches), &keys));
    }
}

#[test]
fn many_groups_and_distinct_values_spill() {
    use AggregateFunction as F;
    let types = [T::Int64, T::Text, T::Int32];
    let distinct = |column| Aggregate { distinct: true, ..aggregate(F::Count, Some(column), T::Int64) };
    let batches: Vec<Batch> = (0..40i64)
        .map(|number| {
            let rows: Vec<i64> = (0..1_000).map(|row| number * 1_000 + row).collect();
            let keys: Vec<Plain> =
                rows.iter().map(|row| Plain::Int(row * 7_919 % 5_000 * 1_000_003)).collect();
            let texts: Vec<Plain> =
                rows.iter().map(|row| Plain::text(format!("text number {}", row % 9_000))).collect();
            let ints: Vec<Plain> = rows.iter().map(|row| Plain::Int(row % 3)).collect();
            Batch::new(
                1_000,
                vec![
                    Arc::new(vector(T::Int64, &keys)),
                    Arc::new(vector(T::Text, &texts)),
                    Arc::new(vector(T::Int32, &ints)),
                ],
            )
        })
        .collect();
    let aggregates = || {
        vec![
            aggregate(F::CountRows, None, T::Int64),
            aggregate(F::Sum, Some(2), T::Int64),
            distinct(1),
            aggregate(F::Max, Some(1), T::Text),
        ]
    };
    for keys in [vec![0], vec![], vec![0, 2], vec![1]] {
        let keys = keys.into_iter().map(Expression::Column).collect();
        let plan = Plan::Aggregate { input: scan(&types), keys, aggregates: aggregates(), groups: 1.0 };
        let expected = shown(&run(&plan, Steps::batches(&batches), roomy()).unwrap());
        for memory in [1, 100_000] {
            let (settings, written) = cramped(memory);
            let rows = run(&plan, Steps::batches(&batches), settings).unwrap();
            assert_eq!(shown(&rows), expected);
            assert!(written.load(std::sync::atomic::Ordering::Relaxed) > 100_000);

            // Three threads, each with some of the rows of every group.
            let (settings, _) = cramped(memory);
            let sink = query::operators::aggregate(&plan, &Arc::new(settings)).unwrap();
            let mut locals: Vec<_> = (0..3).map(|_| sink.make().unwrap()).collect();
            for (at, batch) in batches.iter().enumerate() {
                locals[at % 3].push(batch.clone()).unwrap();
            }
            locals.into_iter().for_each(|local| local.finish().unwrap());
            assert_eq!(shown(&drain(sink.complete().unwrap())), expected);
        }
        let settings = Settings { memory: 1, threads: 1, temp_files: None };
        assert!(matches!(run(&plan, Steps::batches(&batches), settings), Err(Error::Decline(_))));
    }
}

#[test]
fn summaries_stand_for_rows() {
    use AggregateFunction as F;
    let types = [T::Int32, T::Numeric, T::Text];
    let aggregates = vec![
        aggregate(F::CountRows, None, T::Int64),
        aggregate(F::Count, Some(2), T::Int64),
        aggregate(F::Sum, Some(0), T::Int64),
        aggregate(F::Avg, Some(1), T::Numeric),
        aggregate(F::Min, Some(0), T::Int32),
        aggregate(F::Max, Some(2), T::Text),
        aggregate(F::Min, Some(1), T::Numeric),
        aggregate(F::Max, Some(1), T::Numeric),
    ];
    let plan = Plan::Aggregate { input: scan(&types), keys: Vec::new(), aggregates, groups: 1.0 };
    let sink = query::operators::aggregate(&plan, &Arc::new(roomy())).unwrap();
    let need = |bounds, sum| SummaryNeed { bounds, sum, nulls: true };
    assert_eq!(sink.wants_summary(), Some(vec![need(true, true), need(true, true), need(true, false)]));
    let column = |bounds, sum| Some(ColumnSummary { nulls: 1, bounds, sum });
    let text = |text: &str| Scalar::Bytes(text.as_bytes().into());
    let decimal = |unscaled| Scalar::Numeric { unscaled, scale: 2 };
    let summary = Summary {
        rows: 3,
        columns: vec![
            column(
                Some((Scalar::Int(-5), Scalar::Int(9))),
                Some(Decimal { unscaled: 4, scale: 0, display: 0 }),
            ),
            column(Some((decimal(-200), decimal(300))), Some(Decimal { unscaled: 5, scale: 1, display: 2 })),
            column(Some((text("a"), text("y"))), None),
        ],
    };
    let batch = Batch::new(
        1,
        vec![
            Arc::new(vector(T::Int32, &[Plain::Int(1)])),
            Arc::new(vector(T::Numeric, &[Plain::decimal(15, 1)])),
            Arc::new(vector(T::Text, &[Plain::text("z")])),
        ],
    );
    let empty = Summary { rows: 0, columns: vec![None, None, None] };
    for steps in [
        vec![Step::Summary(summary.clone()), Step::Batch(batch.clone())],
        vec![Step::Batch(batch), Step::Summary(summary)],
    ] {
        let rows = run(&plan, Box::new(Steps(steps.into())), roomy()).unwrap();
        assert_eq!(shown(&rows), ["4|3|5|0.66666666666666666667|-5|z|-2.00|3.00"]);
    }
    assert!(run(&plan, Box::new(Steps(vec![Step::Summary(empty)].into())), roomy()).is_err());
}

#[test]
fn rows_without_columns_and_wide_sums() {
    use AggregateFunction as F;
    let plan = |types: &[T], aggregates| Plan::Aggregate {
        input: scan(types),
        keys: Vec::new(),
        aggregates,
        groups: 1.0,
    };
    let counted = plan(&[], vec![aggregate(F::CountRows, None, T::Int64)]);
    let rows = run(&counted, Steps::batches(&[Batch::new(7, vec![]), Batch::new(5, vec![])]), roomy());
    assert_eq!(shown(&rows.unwrap()), ["12"]);

    let sum = plan(&[T::Numeric], vec![aggregate(F::Sum, Some(0), T::Numeric)]);
    let huge = vector(T::Numeric, &[Plain::decimal(10i128.pow(38) - 1, 0)]);
    let batches = vec![Batch::new(1, vec![Arc::new(huge)]); 3];
    assert!(matches!(run(&sum, Steps::batches(&batches), roomy()), Err(Error::Decline(_))));

    // The server fails at the step that overflows, whatever comes then; infinities do not overflow.
    let floats = |logical, values: &[f64]| {
        let sum = plan(&[logical], vec![aggregate(F::Sum, Some(0), logical)]);
        let values: Vec<Plain> = values.iter().copied().map(Plain::Float).collect();
        let batch = Batch::new(values.len(), vec![Arc::new(vector(logical, &values))]);
        run(&sum, Steps::batches(&[batch]), roomy()).map(|rows| shown(&rows).join(" "))
    };
    for logical in [T::Float64, T::Float32] {
        let large = if logical == T::Float64 { 1e308 } else { 3e38 };
        for last in [large, -large, f64::NAN] {
            assert!(matches!(floats(logical, &[large, large, last]), Err(Error::Decline(_))), "{last}");
        }
        let infinite = f64::INFINITY;
        assert_eq!(floats(logical, &[1.0, infinite]).unwrap(), floats(logical, &[infinite]).unwrap());
        assert_eq!(floats(logical, &[infinite, 1.0, -infinite]).unwrap(), "NaN");
    }
}

/// Results of PostgreSQL 15 for `var_samp, var_pop, stddev_samp, stddev_pop`.
#[test]
fn variances_are_the_servers() {
    use AggregateFunction as F;
    let ints = |values: &[i64]| vector(T::Int32, &values.iter().map(|&v| Plain::Int(v)).collect::<Vec<_>>());
    let decimals = |values: &[(i128, u16)]| {
        vector(T::Numeric, &values.iter().map(|&(v, s)| Plain::decimal(v, s)).collect::<Vec<_>>())
    };
    let floats =
        |values: &[f64]| vector(T::Float64, &values.iter().map(|&v| Plain::Float(v)).collect::<Vec<_>>());
    for (column, result, expected) in [
        (
            ints(&[1, 2, 3, 4]),
            T::Numeric,
            "1.6666666666666667|1.2500000000000000|1.2909944487358056|1.1180339887498948",
        ),
        (
            decimals(&[(15, 1), (225, 2), (-3125, 3), (400, 0)]),
            T::Numeric,
            "39963.993489583333|29972.995117187500|199.909963457511|173.127106823823",
        ),
        (ints(&[5, 5]), T::Numeric, "0|0|0|0"),
        (
            decimals(&[(1, 5), (3, 5)]),
            T::Numeric,
            "0.0000000002000000000000000000|0.0000000001000000000000000000|0.0000141421356237309504880169|0.0000100000000000000000000000",
        ),
        (
            ints(&[1_000_000, 2, 70_000_000]),
            T::Numeric,
            "1610333286000001.3333|1073555524000000.8889|40128958.1973|32765157.1643",
        ),
        (decimals(&[(750, 2)]), T::Numeric, "NULL|0|NULL|0"),
        (
            floats(&[1.0, 2.0, 3.0, 4.0]),
            T::Float64,
            "1.6666666666666667|1.25|1.2909944487358056|1.118033988749895",
        ),
        (floats(&[1.0, f64::INFINITY]), T::Float64, "NaN|NaN|NaN|NaN"),
    ] {
        let functions = [F::VarSamp, F::VarPop, F::StddevSamp, F::StddevPop];
        let plan = Plan::Aggregate {
            input: scan(&[column.logical]),
            keys: Vec::new(),
            aggregates: functions.into_iter().map(|f| aggregate(f, Some(0), result)).collect(),
            groups: 1.0,
        };
        let column = Arc::new(column);
        let whole = [Batch::new(column.len(), vec![Arc::clone(&column)])];
        let rows = run(&plan, Steps::batches(&whole), roomy()).unwrap();
        let line: Vec<String> = rows[0].iter().map(Plain::show).collect();
        assert_eq!(line.join("|"), expected);

        // One row a thread.
        let sink = query::operators::aggregate(&plan, &Arc::new(roomy())).unwrap();
        for row in 0..column.len() {
            let mut local = sink.make().unwrap();
            local.push(Batch::new(1, vec![Arc::new(column.slice(row, 1))])).unwrap();
            local.finish().unwrap();
        }
        let line: Vec<String> = drain(sink.complete().unwrap())[0].iter().map(Plain::show).collect();
        if result == T::Numeric {
            assert_eq!(line.join("|"), expected);
        }
    }
}

/// Aggregates of equal arguments are computed from one state: each still gives what it gives alone.
#[test]
fn aggregates_of_the_same_values() {
    use AggregateFunction as F;
    for (logical, values) in [
        (T::Int32, vec![Plain::Int(4), Plain::Null, Plain::Int(-7), Plain::Int(2_000_000_000)]),
        (T::Int64, vec![Plain::Int(4), Plain::Null, Plain::Int(-7), Plain::Int(1 << 40)]),
        (T::Numeric, vec![Plain::decimal(450, 2), Plain::Null, Plain::decimal(-7, 0)]),
        (T::Float32, vec![Plain::Float(0.1), Plain::Null, Plain::Float(-7.5), Plain::Float(0.3)]),
        (T::Float64, vec![Plain::Float(0.1), Plain::Null, Plain::Float(-7.5), Plain::Float(0.3)]),
    ] {
        let column = Arc::new(vector(logical, &values));
        let batches = [Batch::new(values.len(), vec![column])];
        let results = match logical {
            T::Float32 => [T::Float32, T::Float64],
            T::Float64 => [T::Float64; 2],
            T::Int32 => [T::Int64, T::Numeric],
            _ => [T::Numeric; 2],
        };
        let deviation = if results[1] == T::Float64 { T::Float64 } else { T::Numeric };
        let all = [
            aggregate(F::Avg, Some(0), results[1]),
            aggregate(F::Sum, Some(0), results[0]),
            aggregate(F::Count, Some(0), T::Int64),
            aggregate(F::StddevPop, Some(0), deviation),
            aggregate(F::VarSamp, Some(0), deviation),
            aggregate(F::Avg, Some(0), results[1]),
            Aggregate { distinct: true, ..aggregate(F::Sum, Some(0), results[0]) },
            Aggregate { distinct: true, ..aggregate(F::Avg, Some(0), results[1]) },
        ];
        let answer = |aggregates: Vec<Aggregate>| {
            let plan = Plan::Aggregate { input: scan(&[logical]), keys: Vec::new(), aggregates, groups: 1.0 };
            let rows = run(&plan, Steps::batches(&batches), roomy()).unwrap();
            rows[0].iter().map(Plain::show).collect::<Vec<_>>()
        };
        let alone: Vec<_> = all.iter().flat_map(|one| answer(vec![one.clone()])).collect();
        assert_eq!(answer(all.to_vec()), alone, "{logical:?}");
        assert_eq!(answer(all.iter().rev().cloned().collect()), alone.into_iter().rev().collect::<Vec<_>>());
    }
}

/// The server's sum of negative zeros is one, its average is not.
#[test]
fn sums_of_negative_zeros() {
    use AggregateFunction as F;
    let functions = [F::Sum, F::Avg];
    let plan = Plan::Aggregate {
        input: scan(&[T::Float64]),
        keys: Vec::new(),
        aggregates: functions.into_iter().map(|f| aggregate(f, Some(0), T::Float64)).collect(),
        groups: 1.0,
    };
    for rows in [1, 20] {
        let batch = Batch::new(rows, vec![Arc::new(vector(T::Float64, &vec![Plain::Float(-0.0); rows]))]);
        let answer = run(&plan, Steps::batches(&[batch]), roomy()).unwrap();
        let negative = answer[0].iter().map(|value| matches!(value, Plain::Float(v) if v.is_sign_negative()));
        assert_eq!(negative.collect::<Vec<_>>(), [true, false], "{rows}");
    }
}
