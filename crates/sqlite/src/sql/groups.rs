//! GROUP BY: keys, and the plan of a SELECT's groups.

use query::{AggregateFunction, Expression, Plan};
use sqlite3_parser::ast::{Expr, ResultColumn};
use vector::LogicalType;

use super::compare::{folded, least_text};
use super::frame::{Frame, Groups};
use super::kernels;
use super::planner::{Estimate, Id, Node, Planner, ids_of};
use super::select::bare;
use super::typed::{Class, unsupported};
use crate::api::Result;
use crate::engine::aggregate;

/// With more rows in each group than these, sums are taken for what they are in all likelihood.
const ROWS_OF_A_GROUP: f64 = 100.0;

impl<'b> Planner<'b> {
    /// The keys of GROUP BY, with what has to be computed beside them.
    pub fn group_keys(
        &mut self,
        group_by: &'b [Expr<'b>],
        columns: &'b [ResultColumn<'b>],
        frame: &mut Frame<'b>,
    ) -> Result<Groups> {
        let mut keys: Vec<(Expression, Id)> = Vec::new();
        let (mut aggregates, mut texts) = (Vec::new(), Vec::new());
        for expression in group_by {
            let expression = match bare(expression).is_integer() {
                Some(number) => usize::try_from(number - 1)
                    .ok()
                    .and_then(|at| columns.get(at))
                    .and_then(|column| match column {
                        ResultColumn::Expr(expression, _) => Some(expression),
                        _ => None,
                    })
                    .ok_or_else(|| unsupported("GROUP BY with this number"))?,
                None => expression,
            };
            let bound = self.bind(expression, frame)?;
            let key = folded(bound.clone(), bound.collation.0);
            if keys.iter().any(|(known, _)| *known == key) {
                continue;
            }
            let id = self.new_column(&bound);
            if let Some(least) = least_text(&bound, bound.value.clone()) {
                keys.push((key, self.new_hidden(Class::Text)));
                aggregates.push((least, id));
                texts.push((bound.value, id));
                continue;
            }
            let tells = bound.tells_class();
            if let Class::Number(is_real) = bound.class {
                let is_real = match *is_real {
                    _ if tells => kernels::fraction(Expression::Column(id)),
                    // 1 and 1.0 are one group: either may stand for it.
                    given => {
                        let flag = self.new_hidden(Class::Truth);
                        let any = aggregate(AggregateFunction::BoolAnd, vec![given], LogicalType::Bool);
                        aggregates.push((any, flag));
                        Expression::Column(flag)
                    }
                };
                self.set_class(id, Class::Number(Box::new(is_real)));
            }
            keys.push((key, id));
        }
        Ok(Groups { keys, texts, aggregates })
    }

    /// The groups of a frame's rows.
    pub fn grouped(&mut self, frame: &mut Frame<'b>) -> Result<Node> {
        let Groups { keys, aggregates, .. } = frame.groups.take().unwrap_or_default();
        let mut needed = Vec::new();
        keys.iter().for_each(|(key, _)| ids_of(key, &mut needed));
        for (own, _) in &aggregates {
            own.arguments.iter().chain(&own.filter).for_each(|part| ids_of(part, &mut needed));
        }
        let node = self.joined(frame, &needed)?;
        let mut groups = 1.0;
        for (key, id) in &keys {
            let distinct = self.distinct(key, node.rows / 10.0);
            groups *= distinct;
            let known = Estimate { distinct, bounds: None };
            self.estimates.insert(*id, known);
        }
        let groups = f64::min(groups, node.rows).max(1.0);
        let placed = keys.iter().map(|(key, _)| node.place(key)).collect::<Result<Vec<_>>>()?;
        let mut ids: Vec<Id> = keys.iter().map(|(_, id)| *id).collect();
        let mut computed = Vec::new();
        // Where a group has many rows, some value is a fraction if any is a real.
        let is_settled_later = !self.looks_at_classes && node.rows > ROWS_OF_A_GROUP * groups;
        let mut settled = Vec::new();
        for (mut own, mut id) in aggregates {
            if let Some(sum) = self.sums.iter().find(|sum| sum.flag == id && is_settled_later).cloned() {
                id = self.new_hidden(Class::Truth);
                own.function = AggregateFunction::AnyFraction;
                own.arguments = vec![sum.argument];
                settled
                    .push((kernels::settled(Expression::Column(sum.sum), Expression::Column(id)), sum.flag));
            }
            own.arguments =
                own.arguments.iter().map(|argument| node.place(argument)).collect::<Result<Vec<_>>>()?;
            own.filter = own.filter.as_ref().map(|filter| node.place(filter)).transpose()?;
            computed.push(own);
            ids.push(id);
        }
        let plan = Plan::Aggregate { input: Box::new(node.plan), keys: placed, aggregates: computed, groups };
        let node = Node { plan, ids, rows: groups };
        if settled.is_empty() {
            return Ok(node);
        }
        self.may_be_unsettled = true;
        settled.extend(node.ids.iter().map(|&id| (Expression::Column(id), id)));
        node.projected(&settled)
    }
}
