//! The keys by which operators tell values apart and order them. They are the values themselves where `types`
//! knows their equality or order. Otherwise they are numbers that the server's functions gave the values.
//!
//! Called by every node that groups, joins, sorts or makes distinct. Equal values that are shown differently
//! ('24:00' and '1 day') have one number, so a group shows the value of its first row, as on the server.
//! Invariant: numbers of one type and collation are comparable throughout a node, and made on its main
//! thread.

use std::sync::Arc;

use pgrx::pg_sys::{self, Oid};
use query::{Aggregate, AggregateFunction, Expression, Plan, SortKey, TextOrder};

use super::{Context, Relation, constants, types};
use crate::vectorised::node::operator_memory;
use crate::vectorised::server_key::{Key, Numbers, Use, bytes_of};
use crate::vectorised::translated::{OutputColumn, Reason};

/// Values of this type and collation by number.
fn numbers(context: &mut Context<'_>, column: OutputColumn) -> Option<Arc<Numbers>> {
    let (base, _) = types::base_of(column);
    // Whether the columns of a row without a type can be compared is known only from the rows.
    if base == pg_sys::RECORDOID {
        return None;
    }
    // SAFETY: while a plan is translated; the memory then current is that of the query where the node runs.
    let made = || unsafe { Numbers::new(base, column.collation) };
    let Some(kept) = context.values.kept() else { return made() };
    let known = kept.all().find(|(_, numbers): &(_, Arc<Numbers>)| numbers.are_of(base, column.collation));
    known.map(|(_, numbers)| numbers).or_else(|| kept.make(std::ptr::null_mut(), made))
}

fn number(numbers: Arc<Numbers>, for_use: Use, value: Expression) -> Expression {
    let key = Key { numbers, for_use };
    let result = key.logical();
    Expression::Host { function: Arc::new(key), arguments: vec![value], result }
}

/// True for a number that stands for a value.
pub fn is_number(key: &Expression) -> bool {
    matches!(key, Expression::Host { function, .. } if function.as_any().is::<Key>())
}

/// What tells values of this type apart under the default equality of the type.
pub fn equality(
    context: &mut Context<'_>,
    column: OutputColumn,
    value: Expression,
) -> Result<Expression, Reason> {
    let Err(reason) = types::can_equal(column) else { return Ok(value) };
    match numbers(context, column) {
        Some(numbers) if numbers.have_equality() => Ok(number(numbers, Use::Equality, value)),
        _ => Err(reason),
    }
}

/// What orders values of this type as its default operator class does.
pub fn order(
    context: &mut Context<'_>,
    column: OutputColumn,
    value: Expression,
) -> Result<(Expression, TextOrder), Reason> {
    let reason = match types::order(column) {
        Ok(order) => return Ok((value, order)),
        Err(reason) => reason,
    };
    match numbers(context, column) {
        Some(numbers) if numbers.have_order() => {
            let order = numbers.order();
            Ok((number(numbers, Use::Order, value), order))
        }
        _ => Err(reason),
    }
}

/// The same order of another value of the same type.
pub fn over(key: &SortKey, value: Expression) -> SortKey {
    let expression = match &key.expression {
        Expression::Host { function, result, .. } if is_number(&key.expression) => {
            Expression::Host { function: Arc::clone(function), arguments: vec![value], result: *result }
        }
        _ => value,
    };
    SortKey { expression, ..key.clone() }
}

/// An input with one more column for each key that is a number, so that it is made before rows are compared,
/// and the keys over it.
pub fn below(relation: &mut Relation, keys: Vec<Expression>) -> Vec<Expression> {
    let width = relation.plan.types().len();
    let mut columns: Vec<_> = (0..width).map(Expression::Column).collect();
    let keys = keys.into_iter().map(|key| match is_number(&key) {
        true => {
            columns.push(key);
            Expression::Column(columns.len() - 1)
        }
        false => key,
    });
    let keys = keys.collect();
    if columns.len() > width {
        let input = std::mem::replace(&mut relation.plan, Plan::nothing());
        relation.plan = Plan::Project { input: Box::new(input), expressions: columns };
    }
    keys
}

/// The value of this type that a group's first row has.
pub fn first(type_oid: Oid, value: Expression) -> Aggregate {
    Aggregate {
        function: AggregateFunction::First,
        arguments: vec![value],
        distinct: false,
        filter: None,
        order_by: Vec::new(),
        order: TextOrder::Bytes,
        result: types::logical(type_oid),
        host: None,
    }
}

/// What a grouping groups by.
#[derive(Default)]
pub struct Keys {
    /// The keys of the plan.
    pub keys: Vec<Expression>,
    /// Aggregates, the first ones of the plan, that show values whose keys are numbers.
    pub shown: Vec<Aggregate>,
    /// For each key which of these, and the type it has.
    by: Vec<Option<(usize, Oid)>>,
}

impl Keys {
    /// Groups by a value of this type, too.
    pub fn push(
        &mut self,
        context: &mut Context<'_>,
        column: OutputColumn,
        value: Expression,
    ) -> Result<(), Reason> {
        let key = equality(context, column, value.clone())?;
        self.by.push(is_number(&key).then_some((self.shown.len(), column.type_oid)));
        if is_number(&key) {
            self.shown.push(first(column.type_oid, value));
        }
        self.keys.push(key);
        Ok(())
    }

    /// Whether there is no memory for the values of so many groups that only the server compares. The query
    /// would then be run twice.
    pub fn exceed_memory(&self, groups: f64) -> bool {
        let bytes: f64 = self.by.iter().flatten().map(|&(_, type_oid)| bytes_of(type_oid)).sum();
        groups * bytes > operator_memory() as f64
    }

    /// The columns of the grouping that show the keys' values. A key is NULL in rows of grouping sets without
    /// it, and so is its value there.
    pub fn values(&self) -> Vec<Expression> {
        let value = |(at, by): (usize, &Option<(usize, Oid)>)| match *by {
            None => Expression::Column(at),
            Some((shown, type_oid)) => Expression::Case {
                branches: vec![(
                    Expression::IsNull(Box::new(Expression::Column(at))),
                    constants::null(type_oid),
                )],
                otherwise: Some(Box::new(Expression::Column(self.keys.len() + shown))),
                result: types::logical(type_oid),
            },
        };
        self.by.iter().enumerate().map(value).collect()
    }

    /// Columns of the grouping before those of its own aggregates.
    pub fn width(&self) -> usize {
        self.keys.len() + self.shown.len()
    }
}
