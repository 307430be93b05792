//! Queries side by side: UNION, INTERSECT, EXCEPT and VALUES; rows without equal ones.

use query::{Aggregate, AggregateFunction, Expression, Plan};
use sqlite3_parser::ast::{CompoundOperator, Expr, Select};
use vector::LogicalType;

use super::compare::{folded, least_text};
use super::frame::Frame;
use super::names::{Scope, Visible};
use super::planner::{Id, Node, Planner};
use super::select::Output;
use super::typed::{Class, Typed, null_of, truth, united, unsupported};
use crate::api::Result;
use crate::engine::aggregate;

/// Each row once: keys, a text for each that a collation has folded, and the columns that have both.
struct Distinct {
    keys: Vec<Expression>,
    aggregates: Vec<Aggregate>,
    ids: Vec<Id>,
}

impl<'b> Planner<'b> {
    /// UNION, UNION ALL, INTERSECT and EXCEPT, from left to right.
    pub fn compound(&mut self, select: &'b Select<'b>) -> Result<Output> {
        let mut left = self.core(&select.body.select, None)?;
        for compound in select.body.compounds.iter().flatten() {
            let right = self.core(&compound.select, None)?;
            left = self.combined(left, right, compound.operator)?;
        }
        let outputs: Vec<Typed> = left.ids.iter().map(|&id| self.column(id)).collect();
        // ORDER BY names results.
        let mut scope = Scope::default();
        let columns = left.names.iter().zip(&left.ids).map(|(name, id)| (name.clone(), Ok(*id)));
        scope.relations.push(Visible { columns: columns.collect(), ..Visible::default() });
        self.scopes.push(scope);
        let terms =
            self.order_terms(select.order_by.unwrap_or_default(), &[], &outputs, &mut Frame::default());
        self.scopes.pop();
        let terms = terms?;
        let names = left.names;
        self.finished(left.node, outputs, names, terms, false, Some(select))
    }

    fn combined(&mut self, left: Output, right: Output, operator: CompoundOperator) -> Result<Output> {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let mut ids = Vec::new();
        for (&a, &b) in left.ids.iter().zip(&right.ids) {
            let own = [self.column(a), self.column(b)];
            let [first_like, second_like] = own.clone();
            // The left query's collation, if it has one.
            let has_one = first_like.affinity.is_some() || first_like.collation.1;
            let collation = if has_one { first_like.collation } else { second_like.collation };
            let (class, values, flags) = united(own.to_vec())?;
            let id = self.new_column(&Typed { class: class.clone(), collation, limit: None, ..first_like });
            let mut add = |id: Id, pair: Vec<Expression>| {
                if let Ok([a, b]) = <[Expression; 2]>::try_from(pair) {
                    first.push((a, id));
                    second.push((b, id));
                }
            };
            add(id, values);
            if let Some(flags) = flags {
                if matches!(operator, CompoundOperator::Intersect | CompoundOperator::Except) {
                    return Err(unsupported("INTERSECT and EXCEPT of integers and reals in one column"));
                }
                let flag = self.new_hidden(Class::Truth);
                add(flag, flags);
                self.set_class(id, Class::Number(Box::new(Expression::Column(flag))));
            }
            ids.push(id);
        }
        let is_set = matches!(operator, CompoundOperator::Except | CompoundOperator::Intersect);
        let side = self.new_hidden(Class::Truth);
        if is_set {
            first.push((truth(true), side));
            second.push((truth(false), side));
        }
        let rows = left.node.rows + right.node.rows;
        let (a, b) = (left.node.projected(&first)?, right.node.projected(&second)?);
        let columns = a.ids.clone();
        let plan = Plan::Append { inputs: vec![a.plan, b.plan], removed: 0 };
        let mut node = Node { plan, ids: columns, rows };
        if operator == CompoundOperator::Union {
            node = self.without_equal(node, &ids);
        }
        if is_set {
            // Each row once, with the sides that it came from.
            let of = Expression::Column(node.ids.len() - 1);
            let from = |function| aggregate(function, vec![of.clone()], LogicalType::Bool);
            let Distinct { keys, mut aggregates, ids: columns } = self.distinct_rows(&node.ids, &ids);
            // They show what the left query has.
            aggregates.iter_mut().for_each(|text| text.filter = Some(of.clone()));
            aggregates.extend([from(AggregateFunction::BoolOr), from(AggregateFunction::BoolAnd)]);
            let (some, every) = (self.new_hidden(Class::Truth), self.new_hidden(Class::Truth));
            node.ids = columns;
            node.ids.extend([some, every]);
            node.plan = Plan::Aggregate { input: Box::new(node.plan), keys, aggregates, groups: rows };
            let (some, every) = (Expression::Column(some), Expression::Column(every));
            let wanted = match operator {
                CompoundOperator::Except => vec![every],
                _ => vec![some, Expression::Not(Box::new(every))],
            };
            node = node.filtered(&wanted, 0.5)?;
        }
        Ok(Output { node, ids, names: left.names })
    }

    /// VALUES.
    pub fn values(
        &mut self,
        rows: &'b [sqlite3_parser::Vec<'b, Expr<'b>>],
        whole: Option<&'b Select<'b>>,
    ) -> Result<Output> {
        let mut inputs: Vec<Vec<Typed>> = Vec::new();
        for row in rows {
            let mut frame = Frame::default();
            let bound = row.iter().map(|value| self.bind(value, &mut frame)).collect::<Result<Vec<_>>>()?;
            inputs.push(bound);
        }
        let width = inputs.first().map_or(0, Vec::len);
        let (mut plans, mut ids, mut visible) = (Vec::new(), Vec::new(), Vec::new());
        let mut columns: Vec<Vec<Expression>> = Vec::new();
        for at in 0..width {
            let column = inputs.iter().map(|row| row.get(at).cloned().unwrap_or_else(Typed::null)).collect();
            let (class, values, flags) = united(column)?;
            let id = self.new_hidden(class);
            visible.push(id);
            ids.push(id);
            columns.push(values);
            if let Some(flags) = flags {
                let flag = self.new_hidden(Class::Truth);
                self.set_class(id, Class::Number(Box::new(Expression::Column(flag))));
                ids.push(flag);
                columns.push(flags);
            }
        }
        for row in 0..inputs.len() {
            let one = self.one_row();
            let values = columns.iter().zip(&ids).map(|(column, &id)| {
                (column.get(row).cloned().unwrap_or_else(|| null_of(LogicalType::Int64)), id)
            });
            plans.push(one.projected(&values.collect::<Vec<_>>())?.plan);
        }
        let node = Node { plan: Plan::Append { inputs: plans, removed: 0 }, ids, rows: 1.0 };
        let outputs: Vec<Typed> = visible.iter().map(|&id| self.column(id)).collect();
        let names = (1..=visible.len()).map(|at| format!("column{at}")).collect();
        self.finished(node, outputs, names, Vec::new(), false, whole)
    }

    /// Each row once. Rows are equal where these columns are; others say which numbers are reals.
    pub fn without_equal(&mut self, node: Node, columns: &[Id]) -> Node {
        let Distinct { keys, mut aggregates, mut ids } = self.distinct_rows(&node.ids, columns);
        let placed = node.ids.iter().copied().enumerate();
        for (at, flag) in placed.filter(|(_, id)| !columns.contains(id)) {
            let of = vec![Expression::Column(at)];
            aggregates.push(aggregate(AggregateFunction::BoolAnd, of, LogicalType::Bool));
            ids.push(flag);
        }
        let rows = (node.rows / 2.0).max(1.0);
        let plan = Plan::Aggregate { input: Box::new(node.plan), keys, aggregates, groups: rows };
        Node { plan, ids, rows }
    }

    /// What makes rows with these columns the same, by the columns' collations.
    fn distinct_rows(&mut self, row: &[Id], columns: &[Id]) -> Distinct {
        let (mut keys, mut of_keys) = (Vec::new(), Vec::new());
        let (mut aggregates, mut of_aggregates) = (Vec::new(), Vec::new());
        for (at, &id) in row.iter().enumerate().filter(|(_, id)| columns.contains(id)) {
            let (known, value) = (self.column(id), Expression::Column(at));
            let least = least_text(&known, value.clone());
            let collation = known.collation.0;
            keys.push(folded(Typed { value, ..known }, collation));
            of_keys.push(if least.is_some() { self.new_hidden(Class::Text) } else { id });
            of_aggregates.extend(least.is_some().then_some(id));
            aggregates.extend(least);
        }
        of_keys.extend(of_aggregates);
        Distinct { keys, aggregates, ids: of_keys }
    }
}
