//! Decides which plans may give rows to the reader before all rows are computed, and changes the others.
//!
//! Applied by the host to a finished plan, after `simplify`. If a plan declines, the host can run the query
//! itself, but only before it has handed out a row. Some operators (breakers) see all rows before they give
//! one. Operators above the last breaker run while earlier rows are with the reader, so they must not
//! decline. If one of them might, `settled` puts an operator on top that gathers all rows. Invariant: an
//! operator is added on top or none is; rows and their order stay.

use vector::LogicalType;

use crate::{Expression, Plan};

/// The plan, gathered where its last part may decline.
#[must_use]
pub fn settled(plan: Plan) -> Plan {
    match is_certain(&plan) {
        true => plan,
        false => Plan::Limit { input: Box::new(plan), offset: 0, limit: None },
    }
}

/// True when nothing declines between the last breaker and the reader.
fn is_certain(plan: &Plan) -> bool {
    match plan {
        Plan::Scan { .. } | Plan::Sort { .. } | Plan::DistinctOn { .. } | Plan::Limit { .. } => true,
        // A single group is given out after all work is done. Of several groups, the later ones may come from
        // files: their results may be computed when the reader already has the first.
        Plan::Aggregate { keys, .. } if keys.is_empty() => true,
        Plan::Aggregate { input, keys, aggregates, .. }
        | Plan::GroupingSets { input, keys, aggregates, .. } => {
            let types = input.types();
            keys.iter().all(|key| key.logical(&types) != LogicalType::Numeric && is_safe(key, &types))
                && aggregates.iter().all(|aggregate| aggregate.is_certain(&types))
        }
        Plan::Filter { input, condition: expression } | Plan::Repeat { input, count: expression } => {
            let types = input.types();
            is_safe(expression, &types) && is_certain(input)
        }
        Plan::Project { input, expressions } => {
            let types = input.types();
            expressions.iter().all(|expression| is_safe(expression, &types)) && is_certain(input)
        }
        Plan::Join { left, right, keys, condition, .. } => {
            let (of_left, of_right) = (left.types(), right.types());
            let both = [of_left.as_slice(), of_right.as_slice()].concat();
            keys.iter().all(|(left, right)| {
                is_safe(left, &of_left)
                    && is_safe(right, &of_right)
                    && left.logical(&of_left) != LogicalType::Numeric
            }) && condition.iter().all(|condition| is_safe(condition, &both))
                && is_certain(left)
        }
        Plan::Window { input, partition, order, frame, functions } => {
            let types = input.types();
            let arguments = functions.iter().flat_map(|call| &call.arguments);
            frame.is_certain()
                && functions.iter().all(|call| call.is_certain(&types))
                && partition.iter().chain(order).all(|key| key.logical(&types) != LogicalType::Numeric)
                && arguments.chain(partition).chain(order).all(|part| is_safe(part, &types))
                && is_certain(input)
        }
        // A later input gathers its rows when the reader already has rows of the earlier inputs.
        Plan::Append { inputs, .. } => inputs.iter().all(is_certain) && !inputs.iter().skip(1).any(gathers),
    }
}

/// True where an operator has to see rows before it gives any.
fn gathers(plan: &Plan) -> bool {
    match plan {
        Plan::Scan { .. } => false,
        Plan::Filter { input, .. }
        | Plan::Project { input, .. }
        | Plan::Repeat { input, .. }
        | Plan::Window { input, .. } => gathers(input),
        Plan::Append { inputs, .. } => inputs.iter().any(gathers),
        Plan::Aggregate { .. }
        | Plan::GroupingSets { .. }
        | Plan::Sort { .. }
        | Plan::DistinctOn { .. }
        | Plan::Limit { .. }
        | Plan::Join { .. } => true,
    }
}

/// True for an expression that has a value for every row. Errors of host functions do not count.
fn is_safe(expression: &Expression, input: &[LogicalType]) -> bool {
    let itself = match expression {
        Expression::Call { function, arguments, .. } => {
            let types = arguments.iter().map(|part| part.logical(input)).collect::<Vec<_>>();
            !function.can_raise(&types) && !function.can_decline(&types)
        }
        // An error of a host function is the query's error. Decimals of several calls may have no common
        // scale.
        Expression::Host { result, .. } => *result != LogicalType::Numeric && !expression.can_decline(input),
        Expression::In { value, .. } => value.logical(input) != LogicalType::Numeric,
        _ => true,
    };
    itself && expression.children().into_iter().all(|part| is_safe(part, input))
}
