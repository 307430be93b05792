//! Which plans are gathered before their first row is handed out.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use query::*;
use support::*;
use vector::LogicalType as T;

fn column(at: usize) -> Expression {
    Expression::Column(at)
}

fn add(left: Expression, right: Expression, result: T) -> Expression {
    Expression::Call { function: Function::Add, arguments: vec![left, right], result }
}

fn project(input: Plan, expressions: Vec<Expression>) -> Plan {
    Plan::Project { input: Box::new(input), expressions }
}

/// Whether the plan is gathered; what is gathered is the plan as it was.
fn is_gathered(plan: Plan) -> bool {
    let before = format!("{plan:?}");
    match settled(plan) {
        Plan::Limit { input, offset: 0, limit: None } => {
            assert_eq!(format!("{input:?}"), before);
            true
        }
        plan => {
            assert_eq!(format!("{plan:?}"), before);
            false
        }
    }
}

fn groups(keys: Vec<Expression>, types: &[T]) -> Plan {
    let aggregates = vec![aggregate(AggregateFunction::CountRows, None, T::Int64)];
    Plan::Aggregate { input: scan(types), keys, aggregates, groups: 1.0 }
}

fn sort(input: Plan) -> Plan {
    let key =
        SortKey { expression: column(0), descending: false, nulls_first: false, order: TextOrder::Bytes };
    Plan::Sort { input: Box::new(input), keys: vec![key], limit: None }
}

#[test]
fn a_plan_that_cannot_decline_streams() {
    let types = [T::Int64, T::Int64];
    assert!(!is_gathered(*scan(&types)));
    assert!(!is_gathered(project(*scan(&types), vec![column(1)])));
    assert!(!is_gathered(Plan::Filter {
        input: scan(&types),
        condition: Expression::IsNull(Box::new(column(0)))
    }));
    assert!(!is_gathered(groups(vec![column(0)], &types)));
}

#[test]
fn what_may_decline_or_fail_is_gathered() {
    let types = [T::Int64, T::Numeric];
    // Sums overflow, and decimals may be without a scale in common.
    let overflow = project(*scan(&types), vec![add(column(0), column(0), T::Int64)]);
    assert!(is_gathered(overflow.clone()));
    assert!(is_gathered(groups(vec![column(1)], &types)));
    let entries = Arc::new(vector(T::Numeric, &[V::Dec(1, 0)]));
    let condition = Expression::In { value: Box::new(column(1)), entries };
    assert!(is_gathered(Plan::Filter { input: scan(&types), condition }));
    // Wherever it is above the last operator that sees all rows.
    assert!(is_gathered(project(overflow.clone(), vec![column(0)])));
    assert!(is_gathered(project(sort(*scan(&types)), vec![add(column(0), column(0), T::Int64)])));
    // It does not matter below one, or where there is only one row.
    assert!(!is_gathered(sort(overflow)));
    assert!(!is_gathered(groups(Vec::new(), &types)));
}

#[test]
fn only_the_first_input_of_an_append_may_gather() {
    let types = [T::Int64];
    let append = |inputs| Plan::Append { inputs, removed: 0 };
    assert!(!is_gathered(append(vec![*scan(&types), *scan(&types)])));
    assert!(!is_gathered(append(vec![sort(*scan(&types)), *scan(&types)])));
    assert!(is_gathered(append(vec![*scan(&types), sort(*scan(&types))])));
}
