//! Plans that give the same rows with less work. The host applies it to a plan that it has made, before it
//! runs or shows it.
//!
//! Two rules for aggregation. A key that is computed from other keys does not make groups of its own: it is
//! computed of each group. Many sums of one small integer plus a constant are one sum, one count, and
//! arithmetic over each group. Invariant: columns, types, values and errors stay; an operator is added only
//! above the aggregation.

use std::sync::Arc;

use vector::{LogicalType, Values, Vector};

use crate::{Aggregate, AggregateFunction, Expression, Function, Plan};

/// The plan, simpler where a rule applies.
#[must_use]
pub fn simplify(mut plan: Plan) -> Plan {
    visit(&mut plan);
    plan
}

fn visit(plan: &mut Plan) {
    plan.inputs_mut().into_iter().for_each(visit);
    let Plan::Aggregate { input, keys, aggregates, .. } = plan else { return };
    let key_outputs = split_keys(input, keys);
    let outputs = split_sums(&input.types(), key_outputs.0.len(), aggregates);
    if key_outputs.0.len() == keys.len() && outputs.is_none() {
        return;
    }
    let (kept, mut expressions) = key_outputs;
    *keys = kept;
    let keys = keys.len();
    match outputs {
        Some((made, results)) => {
            *aggregates = made;
            expressions.extend(results);
        }
        None => expressions.extend((0..aggregates.len()).map(|at| Expression::Column(keys + at))),
    }
    let below = std::mem::replace(plan, Plan::nothing());
    *plan = Plan::Project { input: Box::new(below), expressions };
}

/// Types whose equal values are the same value.
const fn is_identity(logical: LogicalType) -> bool {
    use LogicalType as T;
    matches!(logical, T::Bool | T::Int16 | T::Int32 | T::Int64 | T::UInt64 | T::Date | T::Timestamp)
}

/// The keys that make groups, and each of all keys computed of their values.
fn split_keys(input: &Plan, keys: &[Expression]) -> (Vec<Expression>, Vec<Expression>) {
    // A key that is a column of a projection is what that computes; it does so for each row, errors and all,
    // whatever happens here.
    let (below, computed) = match input {
        Plan::Project { input, expressions } => (input.types(), Some(expressions)),
        other => (other.types(), None),
    };
    let meanings: Vec<&Expression> = keys
        .iter()
        .map(|key| match (computed, key) {
            (Some(computed), Expression::Column(at)) => computed.get(*at).unwrap_or(key),
            (Some(_), _) => key,
            (None, key) => key,
        })
        .collect();
    let known = |key: &Expression| computed.is_none() || matches!(key, Expression::Column(_));
    let column = |at: usize| match (keys.get(at), meanings.get(at)) {
        (Some(key), Some(Expression::Column(column))) if known(key) => Some(*column),
        _ => None,
    };
    let mut kept = Vec::new();
    let mut places: Vec<Option<usize>> = vec![None; keys.len()];
    let follows = |at: usize| {
        let (Some(key), Some(meaning)) = (keys.get(at), meanings.get(at)) else { return false };
        let mut read = vec![false; below.len()];
        meaning.mark_columns(&mut read);
        let mut columns = (0..below.len()).filter(|&at| read.get(at) == Some(&true)).peekable();
        known(key)
            && column(at).is_none()
            && !meaning.needs_host()
            && (computed.is_some() || !meaning.can_raise(&below))
            && columns.peek().is_some()
            && columns.all(|wanted| {
                below.get(wanted).is_some_and(|logical| is_identity(*logical))
                    && (0..keys.len()).any(|other| column(other) == Some(wanted))
            })
    };
    for (at, key) in keys.iter().enumerate() {
        if !follows(at) {
            if let Some(place) = places.get_mut(at) {
                *place = Some(kept.len());
            }
            kept.push(key.clone());
        }
    }
    let outputs = (0..keys.len()).map(|at| match (places.get(at).copied().flatten(), meanings.get(at)) {
        (None, Some(meaning)) => {
            let mut moved = (*meaning).clone();
            moved.move_columns(&|wanted| {
                (0..keys.len())
                    .find(|&at| column(at) == Some(wanted))
                    .and_then(|at| places.get(at).copied()?)
            });
            moved
        }
        (place, _) => Expression::Column(place.unwrap_or(at)),
    });
    let outputs = outputs.collect();
    (kept, outputs)
}

/// What a sum adds to each value: the column, of 16 bits, and the constant. The additions cannot overflow.
fn shifted(aggregate: &Aggregate, input: &[LogicalType]) -> Option<(usize, i64)> {
    let plain = aggregate.function == AggregateFunction::Sum
        && !aggregate.distinct
        && aggregate.filter.is_none()
        && aggregate.order_by.is_empty()
        && aggregate.result == LogicalType::Int64;
    let column = |expression: &Expression| match expression {
        Expression::Column(at) if input.get(*at) == Some(&LogicalType::Int16) => Some(*at),
        _ => None,
    };
    let [argument] = aggregate.arguments.as_slice() else { return None };
    if !plain {
        return None;
    }
    let Expression::Call { function, arguments, result: LogicalType::Int32 } = argument else {
        return column(argument).map(|at| (at, 0));
    };
    let [left, right] = arguments.as_slice() else { return None };
    let (value, constant, sign) = match (function, left, right) {
        (Function::Add, value, Expression::Constant(constant))
        | (Function::Add, Expression::Constant(constant), value) => (value, constant, 1),
        (Function::Subtract, value, Expression::Constant(constant)) => (value, constant, -1),
        _ => return None,
    };
    let Expression::Call { function: Function::Cast(LogicalType::Int32), arguments, .. } = value else {
        return None;
    };
    let (Values::Int32(constants), true) = (&constant.values, constant.validity.is_none()) else {
        return None;
    };
    let constant = i64::from(*constants.first()?);
    let room = i64::from(i32::MAX) - i64::from(i16::MAX) - 1;
    let at = column(arguments.first()?)?;
    (constant.abs() <= room).then_some((at, sign * constant))
}

/// Fewer aggregates, and the aggregates' results computed from them and `keys` columns before them. None
/// where it is no gain.
fn split_sums(
    input: &[LogicalType],
    keys: usize,
    aggregates: &[Aggregate],
) -> Option<(Vec<Aggregate>, Vec<Expression>)> {
    let found: Vec<_> = aggregates.iter().map(|aggregate| shifted(aggregate, input)).collect();
    let mut made: Vec<Aggregate> = Vec::new();
    let mut sums: Vec<(usize, usize)> = Vec::new();
    let mut results = Vec::with_capacity(aggregates.len());
    for (aggregate, shifted) in aggregates.iter().zip(&found) {
        let Some((column, constant)) = *shifted else {
            results.push(Expression::Column(keys + made.len()));
            made.push(aggregate.clone());
            continue;
        };
        let at = match sums.iter().find(|(known, _)| *known == column) {
            Some((_, at)) => *at,
            None => {
                let of = |function| Aggregate {
                    function,
                    arguments: vec![Expression::Column(column)],
                    ..aggregate.clone()
                };
                sums.push((column, made.len()));
                made.extend([of(AggregateFunction::Sum), of(AggregateFunction::Count)]);
                made.len() - 2
            }
        };
        let call = |function, arguments| Expression::Call { function, arguments, result: LogicalType::Int64 };
        let constant = Vector::new(LogicalType::Int64, Values::Int64(vec![constant]));
        let constant = Expression::Constant(Arc::new(constant));
        let count = Expression::Column(keys + at + 1);
        let more = call(Function::Multiply, vec![count, constant]);
        results.push(call(Function::Add, vec![Expression::Column(keys + at), more]));
    }
    (made.len() < aggregates.len()).then_some((made, results))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::TextOrder;

    fn int32(value: i32) -> Expression {
        Expression::Constant(Arc::new(Vector::new(LogicalType::Int32, Values::Int32(vec![value]))))
    }

    fn call(function: Function, arguments: Vec<Expression>, result: LogicalType) -> Expression {
        Expression::Call { function, arguments, result }
    }

    fn sum(argument: Expression) -> Aggregate {
        Aggregate {
            function: AggregateFunction::Sum,
            arguments: vec![argument],
            distinct: false,
            filter: None,
            order_by: Vec::new(),
            order: TextOrder::Bytes,
            result: LogicalType::Int64,
            host: None,
        }
    }

    fn scan(types: &[LogicalType]) -> Box<Plan> {
        Box::new(Plan::Scan { source: 0, types: types.to_vec() })
    }

    fn aggregate(input: Box<Plan>, keys: Vec<Expression>, aggregates: Vec<Aggregate>) -> Plan {
        Plan::Aggregate { input, keys, aggregates, groups: 1.0 }
    }

    #[test]
    fn sums_of_a_column_and_constants_are_one_sum() {
        let wide =
            || call(Function::Cast(LogicalType::Int32), vec![Expression::Column(1)], LogicalType::Int32);
        let plus = |by: i32| sum(call(Function::Add, vec![wide(), int32(by)], LogicalType::Int32));
        let types = [LogicalType::Int64, LogicalType::Int16];
        let plan = |list| aggregate(scan(&types), vec![Expression::Column(0)], list);
        let Plan::Project { input, expressions } = simplify(plan(vec![plus(1), plus(2), plus(-3)])) else {
            panic!("no projection")
        };
        assert_eq!(expressions.len(), 4);
        assert_eq!(format!("{:?}", expressions.last().unwrap()), "Add[$1, Multiply[$2, Int64([-3])]]");
        assert_eq!(input.types(), [LogicalType::Int64; 3]);
        // Two would be no fewer; and these could overflow, which is an error of the query.
        assert!(matches!(simplify(plan(vec![plus(1), plus(2)])), Plan::Aggregate { .. }));
        let large = plan(vec![plus(i32::MAX), plus(i32::MAX - 1), plus(i32::MIN)]);
        assert!(matches!(simplify(large), Plan::Aggregate { .. }));
    }

    #[test]
    fn keys_of_other_keys_make_no_groups() {
        let minus =
            |by: i32| call(Function::Subtract, vec![Expression::Column(0), int32(by)], LogicalType::Int32);
        let types = [LogicalType::Int32, LogicalType::Float64];
        let all = vec![minus(1), Expression::Column(0), minus(2)];
        let below = Box::new(Plan::Project { input: scan(&types), expressions: all.clone() });
        let columns = (0..3).map(Expression::Column).collect::<Vec<_>>();
        let Plan::Project { input, expressions } = simplify(aggregate(below, columns, vec![])) else {
            panic!("no projection")
        };
        assert_eq!(format!("{expressions:?}"), "[Subtract[$0, Int32([1])], $0, Subtract[$0, Int32([2])]]");
        assert_eq!(input.types(), [LogicalType::Int32]);
        // Without a projection that computes it for each row an error would be missed; and equal floats may
        // differ.
        assert!(matches!(simplify(aggregate(scan(&types), all, vec![])), Plan::Aggregate { .. }));
        let of_float = call(Function::Negate, vec![Expression::Column(1)], LogicalType::Float64);
        let keys = vec![Expression::Column(1), of_float];
        assert!(matches!(simplify(aggregate(scan(&types), keys, vec![])), Plan::Aggregate { .. }));
    }
}
