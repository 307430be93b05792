//! Aggregates in an order of their own: percentiles, mode, string_agg.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::sync::Arc;

use query::*;
use support::*;
use vector::LogicalType as T;

#[test]
fn ordered_aggregates() {
    use AggregateFunction as F;
    let types = [T::Int32, T::Float64, T::Text, T::Text];
    let key = |column: usize, descending| SortKey {
        expression: Expression::Column(column),
        descending,
        nulls_first: descending,
        order: TextOrder::Bytes,
    };
    let ordered = |function, arguments: &[usize], key, result| Aggregate {
        arguments: arguments.iter().map(|&at| Expression::Column(at)).collect(),
        order_by: vec![key],
        ..aggregate(function, None, result)
    };
    let aggregates = vec![
        ordered(F::Mode, &[], key(1, false), T::Float64),
        ordered(F::PercentileCont(0.3), &[1], key(1, false), T::Float64),
        ordered(F::PercentileDisc(0.3), &[], key(1, false), T::Float64),
        ordered(F::PercentileDisc(0.0), &[], key(2, true), T::Text),
        ordered(F::StringAgg, &[2, 3], key(1, true), T::Text),
        Aggregate { order_by: Vec::new(), ..ordered(F::StringAgg, &[2, 3], key(1, true), T::Text) },
        aggregate(F::CountRows, None, T::Int64),
    ];
    let rows: Vec<(i64, Option<f64>, Option<&str>)> = vec![
        (1, Some(9.0), Some("d")),
        (2, None, None),
        (1, Some(2.0), Some("b")),
        (1, Some(1.5), Some("a")),
        (3, Some(f64::NAN), Some("long enough to be kept elsewhere")),
        (1, Some(2.0), None),
        (3, Some(7.0), Some("x")),
    ];
    let batches: Vec<Batch> = rows
        .chunks(2)
        .map(|rows| {
            let texts = rows.iter().map(|r| r.2.map_or(Plain::Null, Plain::text)).collect::<Vec<_>>();
            let columns = vec![
                vector(T::Int32, &rows.iter().map(|r| Plain::Int(r.0)).collect::<Vec<_>>()),
                vector(
                    T::Float64,
                    &rows.iter().map(|r| r.1.map_or(Plain::Null, Plain::Float)).collect::<Vec<_>>(),
                ),
                vector(T::Text, &texts),
                vector(T::Text, &vec![Plain::text(", "); rows.len()]),
            ];
            Batch::new(rows.len(), columns.into_iter().map(Arc::new).collect())
        })
        .collect();
    let plan = |keys: Vec<Expression>| Plan::Aggregate {
        input: scan(&types),
        keys,
        aggregates: aggregates.clone(),
        groups: 1.0,
    };
    let expected = [
        "1|2|1.95|2|d|d, b, a|d, b, a|4",
        "2|NULL|NULL|NULL|NULL|NULL|NULL|1",
        "3|7|NaN|7|x|long enough to be kept elsewhere, x|long enough to be kept elsewhere, x|2",
    ];
    let by_key = plan(vec![Expression::Column(0)]);
    for settings in [roomy(), cramped(1).0] {
        assert_eq!(shown(&run(&by_key, Steps::batches(&batches), settings).unwrap()), expected);
    }
    let sink = query::operators::aggregate(&by_key, &Arc::new(cramped(1).0)).unwrap();
    for batch in &batches {
        let mut local = sink.make().unwrap();
        local.push(batch.clone()).unwrap();
        local.finish().unwrap();
    }
    let lines = shown(&drain(sink.complete().unwrap()));
    assert_eq!(lines[0], expected[0]);

    let none = run(&plan(Vec::new()), Steps::batches(&[]), roomy()).unwrap();
    assert_eq!(shown(&none), ["NULL|NULL|NULL|NULL|NULL|NULL|0"]);
    let all = run(&plan(Vec::new()), Steps::batches(&batches[..2]), roomy()).unwrap();
    assert_eq!(shown(&all), ["1.5|1.8|1.5|d|d, b, a|d, b, a|4"]);
}

/// Percentiles are selected where the rows have room and come from sorted rows where they had to be written:
/// the same rows either way. Several of one column share what is kept.
#[test]
fn percentiles_are_those_of_sorted_rows() {
    use AggregateFunction as F;
    let types = [T::Int32, T::Int32, T::Int64, T::Float32, T::Float64, T::Numeric, T::Text, T::Bool];
    let mut state = 7u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let batches: Vec<Batch> = (0..30)
        .map(|at| {
            // Some outgrow the buffer of a file.
            let rows = if at % 10 == 3 { 2_000 } else { 1 + random(60) as usize };
            let mut column = |logical| {
                let value = |random: &mut dyn FnMut(u64) -> u64| match (logical, random(12)) {
                    (_, 0) => Plain::Null,
                    (T::Float32 | T::Float64, 1) => Plain::Float(f64::NAN),
                    (T::Float32 | T::Float64, n) => Plain::Float((random(40) as f64 - 20.0) * n as f64 / 4.0),
                    (T::Numeric, _) => Plain::decimal(i128::from(random(500)) - 250, 2),
                    (T::Text, n) => {
                        Plain::text(["a", "b", "ba", "z"][random(4) as usize].repeat(2 * n as usize))
                    }
                    (T::Bool, n) => Plain::Bool(n > 5),
                    (T::Int64, n) => Plain::Int((random(90) as i64 - 45) << (3 * n)),
                    _ => Plain::Int(random(300) as i64 - 150),
                };
                vector(logical, &(0..rows).map(|_| value(&mut random)).collect::<Vec<_>>())
            };
            let mut columns: Vec<vector::Vector> = types.into_iter().map(&mut column).collect();
            columns[0] =
                vector(T::Int32, &(0..rows).map(|_| Plain::Int(random(5) as i64)).collect::<Vec<_>>());
            Batch::new(rows, columns.into_iter().map(Arc::new).collect())
        })
        .collect();
    let mut aggregates = Vec::new();
    for (column, &logical) in types.iter().enumerate().skip(1) {
        for (fraction, descending) in [(0.5, false), (0.0, false), (0.77, true), (0.0, true), (0.25, false)] {
            let key = SortKey {
                expression: Expression::Column(column),
                descending,
                nulls_first: descending,
                order: TextOrder::Bytes,
            };
            let ordered =
                |function| Aggregate { order_by: vec![key.clone()], ..aggregate(function, None, logical) };
            aggregates.push(ordered(F::PercentileDisc(fraction)));
            if logical == T::Float64 {
                aggregates.push(ordered(F::PercentileCont(fraction)));
            }
        }
    }
    for keys in [Vec::new(), vec![Expression::Column(0)]] {
        let plan = Plan::Aggregate { input: scan(&types), keys, aggregates: aggregates.clone(), groups: 1.0 };
        let selected = shown(&run(&plan, Steps::batches(&batches), roomy()).unwrap());
        let (settings, written) = cramped(1);
        let sorted = shown(&run(&plan, Steps::batches(&batches), settings).unwrap());
        assert!(written.load(std::sync::atomic::Ordering::Relaxed) > 0, "rows were written");
        assert_eq!(selected, sorted);
        assert!(selected.iter().any(|line| line.contains("NaN")), "some percentile is NaN: {selected:?}");
    }
}

/// The first of the equal values that come most often, also where they are in several batches.
#[test]
fn the_mode_is_the_first_of_its_values() {
    let key = SortKey {
        expression: Expression::Column(0),
        descending: false,
        nulls_first: false,
        order: TextOrder::Bytes,
    };
    let mode = Aggregate { order_by: vec![key], ..aggregate(AggregateFunction::Mode, None, T::Numeric) };
    let plan =
        Plan::Aggregate { input: scan(&[T::Numeric]), keys: Vec::new(), aggregates: vec![mode], groups: 1.0 };
    let shown_mode = |values: &[(i128, u16)]| {
        let values: Vec<Plain> =
            values.iter().map(|&(unscaled, scale)| Plain::decimal(unscaled, scale)).collect();
        let batch = Batch::new(values.len(), vec![Arc::new(vector(T::Numeric, &values))]);
        run(&plan, Steps::batches(&[batch]), roomy()).unwrap()[0][0].show()
    };
    assert_eq!(shown_mode(&[(10, 1), (100, 2), (20, 1), (200, 2), (2000, 3)]), "2.0");
    assert_eq!(shown_mode(&[(100, 2), (10, 1)]), "1.00");
    let mut many = vec![(20, 1)];
    many.resize(5_000, (200, 2));
    many.splice(0..0, vec![(10, 1); 2_500]);
    assert_eq!(shown_mode(&many), "2.0");
}
