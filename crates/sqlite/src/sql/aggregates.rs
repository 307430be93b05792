//! Aggregate functions, and expressions over groups.

use query::{Aggregate, AggregateFunction, Expression};
use sqlite3_parser::ast::{Distinctness, Expr, FunctionTail};
use vector::{CompareOp, LogicalType};

use super::compare::{folded, text_order};
use super::frame::Frame;
use super::kernels;
use super::names::{Meaning, unquoted};
use super::planner::{Id, Planner, UnsettledSum};
use super::typed::{Class, Typed, call, constant, unsupported};
use crate::api::{Result, Value};
use crate::engine::aggregate;
use query::Function;

/// What stands between the parentheses of a call, and after them.
pub struct Call<'b> {
    /// The function's name, lower case.
    pub name: String,
    /// The arguments. None is `*`.
    pub arguments: Option<&'b [Expr<'b>]>,
    /// DISTINCT.
    pub distinct: bool,
    /// It has ORDER BY among its arguments.
    pub is_ordered: bool,
    /// FILTER and OVER.
    pub tail: Option<&'b FunctionTail<'b>>,
}

impl<'b> Call<'b> {
    /// The call of an expression, if it is one.
    pub fn of(expression: &'b Expr<'b>) -> Option<Self> {
        match expression {
            Expr::FunctionCall { name, distinctness, args, order_by, filter_over } => Some(Self {
                name: unquoted(name.0).to_ascii_lowercase(),
                arguments: Some(args.unwrap_or_default()),
                distinct: matches!(distinctness, Some(Distinctness::Distinct)),
                is_ordered: order_by.is_some(),
                tail: filter_over.as_ref(),
            }),
            Expr::FunctionCallStar { name, filter_over } => Some(Self {
                name: unquoted(name.0).to_ascii_lowercase(),
                arguments: None,
                distinct: false,
                is_ordered: false,
                tail: filter_over.as_ref(),
            }),
            _ => None,
        }
    }

    /// Whether it computes one value of many rows.
    pub fn is_aggregate(&self) -> bool {
        let arguments = self.arguments.map_or(0, <[Expr<'_>]>::len);
        match self.name.as_str() {
            "count" | "sum" | "total" | "avg" | "group_concat" | "string_agg" => true,
            "min" | "max" => arguments == 1,
            _ => false,
        }
    }

    /// Whether it has OVER.
    pub fn is_window(&self) -> bool {
        self.tail.is_some_and(|tail| tail.over_clause.is_some())
    }
}

/// The parts of an expression, but for subqueries.
pub fn parts<'b>(expression: &'b Expr<'b>) -> Vec<&'b Expr<'b>> {
    match expression {
        Expr::Between { lhs, start, end, .. } => vec![lhs, start, end],
        Expr::Binary(left, _, right) => vec![left, right],
        Expr::Case { base, when_then_pairs, else_expr } => {
            let pairs = when_then_pairs.iter().flat_map(|(when, then)| [when, then]);
            base.iter().copied().chain(pairs).chain(else_expr.iter().copied()).collect()
        }
        Expr::Cast { expr, .. } | Expr::Collate(expr, _) => vec![expr],
        Expr::IsNull(expr) | Expr::NotNull(expr) | Expr::Unary(_, expr) => vec![expr],
        Expr::FunctionCall { args, filter_over, .. } => {
            let filter = filter_over.as_ref().and_then(|tail| tail.filter_clause);
            args.unwrap_or_default().iter().chain(filter).collect()
        }
        Expr::InList { lhs, rhs, .. } => std::iter::once(*lhs).chain(rhs.unwrap_or_default()).collect(),
        Expr::InSelect { lhs, .. } | Expr::InTable { lhs, .. } => vec![lhs],
        Expr::Like { lhs, rhs, escape, .. } => {
            [*lhs, *rhs].into_iter().chain(escape.iter().copied()).collect()
        }
        Expr::Parenthesized(parts) => parts.iter().collect(),
        _ => Vec::new(),
    }
}

/// Whether an expression, or a part of it, is so.
pub fn any_part<'b>(expression: &'b Expr<'b>, holds: &dyn Fn(&'b Expr<'b>) -> bool) -> bool {
    holds(expression) || parts(expression).into_iter().any(|part| any_part(part, holds))
}

/// Whether an expression computes something of many rows.
pub fn has_aggregate<'b>(expression: &'b Expr<'b>) -> bool {
    any_part(expression, &|part| Call::of(part).is_some_and(|call| call.is_aggregate() && !call.is_window()))
}

impl<'b> Planner<'b> {
    /// Whether a part of an expression has a value for groups only, or is no column by itself.
    fn is_over_groups(&self, part: &'b Expr<'b>) -> bool {
        let name = match part {
            Expr::Id(name) => name.0,
            Expr::Name(name) => name.0,
            Expr::Subquery(_) | Expr::Exists(_) | Expr::InSelect { .. } => return true,
            _ => return Call::of(part).is_some_and(|call| call.is_aggregate() || call.is_window()),
        };
        match self.resolve(&super::expressions::reference(None, None, name)) {
            Ok(Meaning::Alias(expression)) => any_part(expression, &|part| self.is_over_groups(part)),
            _ => false,
        }
    }

    /// A part of an expression over groups that is a key of theirs. None: its parts have to be looked at.
    pub fn bind_group_part(
        &mut self,
        expression: &'b Expr<'b>,
        frame: &mut Frame<'b>,
    ) -> Result<Option<Typed>> {
        if any_part(expression, &|part| self.is_over_groups(part)) {
            return Ok(None);
        }
        let groups = frame.groups.take();
        let bound = self.bind(expression, frame);
        frame.groups = groups;
        let bound = bound?;
        let keys = frame.groups.iter().flat_map(|groups| groups.keys.iter().chain(&groups.texts));
        if let Some((_, id)) = keys.into_iter().find(|(key, _)| *key == bound.value) {
            let id = *id;
            return Ok(Some(Typed { value: Expression::Column(id), class: self.column(id).class, ..bound }));
        }
        let mut ids = Vec::new();
        super::planner::ids_of(&bound.value, &mut ids);
        let own = |id: &Id| {
            frame.relations.iter().any(|relation| relation.ids().contains(id))
                || frame.outers.iter().any(|outer| outer.relation.ids().contains(id))
        };
        match (ids.iter().any(own), parts(expression).is_empty()) {
            (false, _) => Ok(Some(bound)),
            (true, false) => Ok(None),
            (true, true) => {
                Err(unsupported(&format!("{expression}, which is neither grouped nor aggregated")))
            }
        }
    }

    /// A call: of an aggregate, a window function or a scalar function.
    pub fn call(&mut self, expression: &'b Expr<'b>, frame: &mut Frame<'b>) -> Result<Typed> {
        let Some(call) = Call::of(expression) else { return Err(unsupported("this call")) };
        if call.is_window() {
            return self.window_call(&call, frame);
        }
        if call.is_aggregate() {
            return self.aggregate_call(&call, frame);
        }
        if call.tail.is_some() || call.distinct || call.is_ordered {
            return Err(unsupported(&format!("DISTINCT, ORDER BY and FILTER of {}", call.name)));
        }
        let mut arguments = Vec::new();
        for argument in call.arguments.unwrap_or_default() {
            arguments.push(self.bind(argument, frame)?);
        }
        self.scalar_call(&call.name, arguments)
    }

    fn aggregate_call(&mut self, call: &Call<'b>, frame: &mut Frame<'b>) -> Result<Typed> {
        let Some(mut groups) = frame.groups.take() else {
            return Err(unsupported(&format!("the aggregate {} in this place", call.name)));
        };
        // Arguments are over rows.
        let result = self.aggregate_of(call, frame, &mut groups.aggregates);
        frame.groups = Some(groups);
        result
    }

    fn aggregate_of(
        &mut self,
        call: &Call<'b>,
        frame: &mut Frame<'b>,
        aggregates: &mut Vec<(Aggregate, Id)>,
    ) -> Result<Typed> {
        if call.is_ordered {
            return Err(unsupported(&format!("ORDER BY within {}", call.name)));
        }
        let filter = match call.tail.and_then(|tail| tail.filter_clause) {
            Some(filter) => Some(self.bind(filter, frame)?.condition()?),
            None => None,
        };
        let mut arguments = Vec::new();
        for argument in call.arguments.unwrap_or_default() {
            arguments.push(self.bind(argument, frame)?.plain());
        }
        let mut add = |planner: &mut Self, mut wanted: Aggregate, class: Class| {
            wanted.distinct = call.distinct;
            wanted.filter = filter.clone();
            let known = aggregates.iter().find(|(own, _)| is_same(own, &wanted));
            let id = known.map(|(_, id)| *id).unwrap_or_else(|| {
                let id = planner.new_hidden(class.clone());
                aggregates.push((wanted, id));
                id
            });
            Expression::Column(id)
        };
        use AggregateFunction as F;
        let integer = LogicalType::Int64;
        let Some(argument) = arguments.first().cloned() else {
            let rows = add(self, aggregate(F::CountRows, Vec::new(), integer), Class::Integer);
            return Ok(Typed::new(rows, Class::Integer));
        };
        let logical = argument.class.logical();
        let is_text = argument.class == Class::Text;
        match call.name.as_str() {
            "count" => {
                let counted = if is_text && call.distinct {
                    folded(argument.clone(), argument.collation.0)
                } else {
                    argument.value
                };
                let count = add(self, aggregate(F::Count, vec![counted], integer), Class::Integer);
                Ok(Typed::new(count, Class::Integer))
            }
            _ if matches!(argument.class, Class::Null) => match call.name.as_str() {
                "total" => Typed::constant(Value::Real(0.0)),
                _ => Ok(Typed::null()),
            },
            "sum" | "total" | "avg" if is_text => Err(unsupported(&format!("{} of text", call.name))),
            "sum" => self.sum(argument, &mut add),
            "total" => {
                let sum = self.sum(argument, &mut add)?.real();
                let value = Expression::Coalesce(vec![sum, constant(Value::Real(0.0))]);
                Ok(Typed::new(value, Class::Real))
            }
            "avg" => {
                let count =
                    add(self, aggregate(F::Count, vec![argument.value.clone()], integer), Class::Integer);
                let sum = self.sum_as_real(argument, &mut add);
                let count = Typed::new(count, Class::Integer).real();
                let value = kernels::real_arithmetic(kernels::RealOperator::Divide, sum, count);
                Ok(Typed::new(value, Class::Real))
            }
            "min" | "max" => {
                let function = if call.name == "min" { F::Min } else { F::Max };
                if !argument.tells_class() {
                    return self.extreme_of_both(function, argument.clone(), &mut add);
                }
                let order = text_order(argument.collation.0);
                let wanted =
                    Aggregate { order, ..aggregate(function, vec![argument.value.clone()], logical) };
                let best = add(self, wanted, argument.class.clone());
                let class = match &argument.class {
                    // What a column of numeric affinity has tells its class.
                    Class::Number(_) => Class::Number(Box::new(kernels::fraction(best.clone()))),
                    class => class.clone(),
                };
                Ok(Typed::new(best, class).within(argument.limit))
            }
            "group_concat" | "string_agg" => {
                if !is_text {
                    return Err(unsupported("group_concat of numbers: CAST them to TEXT"));
                }
                let between = match arguments.get(1) {
                    Some(between) if between.class == Class::Text => between.value.clone(),
                    None => constant(Value::Text(b",")),
                    Some(_) => return Err(unsupported("group_concat with a separator that is no text")),
                };
                if call.distinct {
                    return Err(unsupported("group_concat(DISTINCT ...)"));
                }
                let wanted = aggregate(F::StringAgg, vec![argument.value, between], LogicalType::Text);
                Ok(Typed::new(add(self, wanted, Class::Text), Class::Text))
            }
            other => Err(unsupported(&format!("the aggregate {other}"))),
        }
    }

    /// `min` or `max` of integers and reals, of which no value tells its class: that of each, and the better.
    fn extreme_of_both(
        &mut self,
        function: AggregateFunction,
        argument: Typed,
        add: &mut dyn FnMut(&mut Self, Aggregate, Class) -> Expression,
    ) -> Result<Typed> {
        let is_real = argument.is_real();
        let result = LogicalType::Float64;
        let mut best_where = |planner: &mut Self, condition: Expression| {
            let branches = vec![(condition, argument.value.clone())];
            let value = Expression::Case { branches, otherwise: None, result };
            add(planner, aggregate(function, vec![value], result), Class::Real)
        };
        let real = best_where(self, is_real.clone());
        let integer = best_where(self, Expression::Not(Box::new(is_real)));
        let op = if function == AggregateFunction::Min { CompareOp::Less } else { CompareOp::Greater };
        let better = call(Function::Compare(op), vec![real.clone(), integer.clone()], LogicalType::Bool);
        let none = Expression::IsNull(Box::new(integer.clone()));
        let takes_real = Expression::Coalesce(vec![better, none]);
        let branches = vec![(takes_real.clone(), real)];
        let value = Expression::Case { branches, otherwise: Some(Box::new(integer)), result };
        Ok(Typed::new(value, Class::Number(Box::new(takes_real))))
    }

    fn sum(
        &mut self,
        argument: Typed,
        add: &mut dyn FnMut(&mut Self, Aggregate, Class) -> Expression,
    ) -> Result<Typed> {
        use AggregateFunction::{AnyFraction, BoolOr, PreciseSum, Sum};
        Ok(match argument.class.clone() {
            Class::Integer => {
                let exact =
                    add(self, aggregate(Sum, vec![argument.value], LogicalType::Numeric), Class::Null);
                let narrow = call(Function::Cast(LogicalType::Int64), vec![exact], LogicalType::Int64);
                Typed::new(narrow, Class::Integer)
            }
            Class::Number(ref is_real) => {
                let sum = add(
                    self,
                    aggregate(PreciseSum, vec![argument.value.clone()], LogicalType::Float64),
                    Class::Real,
                );
                if argument.tells_class() {
                    let wanted = aggregate(AnyFraction, vec![argument.value], LogicalType::Bool);
                    let some = add(self, wanted, Class::Truth);
                    return Ok(Typed::new(sum, Class::Number(Box::new(some))));
                }
                // Of rows that count: a NULL has no class.
                let counted = Expression::And(vec![
                    (**is_real).clone(),
                    Expression::Not(Box::new(Expression::IsNull(Box::new(argument.value.clone())))),
                ]);
                let some = add(self, aggregate(BoolOr, vec![counted], LogicalType::Bool), Class::Truth);
                if let (Expression::Column(flag), Expression::Column(sum)) = (&some, &sum) {
                    self.sums.push(UnsettledSum { flag: *flag, sum: *sum, argument: argument.value });
                }
                Typed::new(sum, Class::Number(Box::new(some)))
            }
            class => {
                let sum =
                    add(self, aggregate(PreciseSum, vec![argument.value], LogicalType::Float64), Class::Real);
                debug_assert_eq!(class, Class::Real);
                Typed::new(sum, Class::Real)
            }
        })
    }

    fn sum_as_real(
        &mut self,
        argument: Typed,
        add: &mut dyn FnMut(&mut Self, Aggregate, Class) -> Expression,
    ) -> Expression {
        use AggregateFunction::{PreciseSum, Sum};
        match argument.class {
            Class::Integer => {
                let exact =
                    add(self, aggregate(Sum, vec![argument.value], LogicalType::Numeric), Class::Null);
                call(Function::Cast(LogicalType::Float64), vec![exact], LogicalType::Float64)
            }
            _ => add(self, aggregate(PreciseSum, vec![argument.value], LogicalType::Float64), Class::Real),
        }
    }
}

fn is_same(a: &Aggregate, b: &Aggregate) -> bool {
    a.function == b.function
        && a.arguments == b.arguments
        && a.distinct == b.distinct
        && a.filter == b.filter
        && a.result == b.result
}
