//! Subqueries in expressions.
//!
//! One that knows nothing of the query around it is computed when the query is planned, or joined. One that
//! does becomes a join: its conditions that name columns of both sides are the join's (Kim, "On optimizing an
//! SQL-like nested query", 1982; Dayal 1987). An aggregate is then grouped by the columns that the join
//! needs.

use query::Expression;
use sqlite3_parser::ast::{Expr, OneSelect, ResultColumn, Select};
use vector::{CompareOp, LogicalType};

use super::aggregates::has_aggregate;
use super::expressions::{branches, negated};
use super::frame::{Frame, Keeps, Outer, Semi};
use super::from::Relation;
use super::joins::{own_ids, split};
use super::names::Scope;
use super::planner::{Id, Planner};
use super::statement::never_texts;
use super::typed::{Class, Typed, truth, unsupported};
use crate::api::Result;
use crate::declaration::quoted;
use crate::values::Owned;

/// The conditions of a subquery that name columns of the query around it.
struct Ties {
    /// Equalities, the outer side first.
    keys: Vec<(Expression, Expression)>,
    /// All others.
    others: Vec<Expression>,
}

impl<'b> Planner<'b> {
    /// Takes the conditions out of a frame that name columns of the query around it.
    fn ties(&self, frame: &mut Frame<'b>) -> Result<Ties> {
        let mut own: Vec<Id> = frame.relations.iter().flat_map(Relation::ids).collect();
        own.extend(frame.outers.iter().flat_map(|outer| outer.relation.ids()));
        let is_own = |id: &Id| own.contains(id);
        let mut ties = Ties { keys: Vec::new(), others: Vec::new() };
        let mut kept = Vec::new();
        for condition in split(std::mem::take(&mut frame.conjuncts)) {
            let ids = own_ids(&condition);
            if ids.iter().all(is_own) {
                kept.push(condition);
                continue;
            }
            if let Expression::Call {
                function: query::Function::Compare(CompareOp::Equal), arguments, ..
            } = &condition
                && let [a, b] = arguments.as_slice()
            {
                let (left, right) = (own_ids(a), own_ids(b));
                let is_inner = |ids: &[Id]| !ids.is_empty() && ids.iter().all(is_own);
                let is_outer = |ids: &[Id]| !ids.iter().any(is_own);
                if is_inner(&right) && is_outer(&left) {
                    ties.keys.push((a.clone(), b.clone()));
                    continue;
                }
                if is_inner(&left) && is_outer(&right) {
                    ties.keys.push((b.clone(), a.clone()));
                    continue;
                }
            }
            ties.others.push(condition);
        }
        frame.conjuncts = kept;
        let foreign = |condition: &Expression| own_ids(condition).iter().any(|id| !own.contains(id));
        if frame.outers.iter().flat_map(|outer| &outer.on).any(foreign) {
            return Err(unsupported("a LEFT JOIN of a subquery by columns of the query around it"));
        }
        Ok(ties)
    }

    /// EXISTS, or its opposite.
    pub fn exists(&mut self, select: &'b Select<'b>, not: bool, frame: &mut Frame<'b>) -> Result<Expression> {
        let is_whole = frame.is_whole_condition;
        let (mut inner, columns) = self.enter(select, "EXISTS")?;
        self.leave(select);
        // One row, whatever there is.
        let is_aggregate = |column: &'b ResultColumn<'b>| match column {
            ResultColumn::Expr(result, _) => has_aggregate(result),
            _ => false,
        };
        if columns.iter().any(is_aggregate) {
            return Err(unsupported("EXISTS of an aggregate"));
        }
        let ties = self.ties(&mut inner)?;
        if ties.keys.is_empty() && ties.others.is_empty() {
            let node = self.joined(&mut inner, &[])?;
            let found = !self.run(node, &[], Some(1))?.is_empty();
            return Ok(truth(found != not));
        }
        if !is_whole {
            return Err(unsupported("EXISTS with columns of the query around it, within another expression"));
        }
        let keeps = if not { Keeps::Unmatched } else { Keeps::Matched };
        self.tie(inner, ties, keeps, frame)?;
        Ok(truth(true))
    }

    /// The rows of a subquery, tied to those around it.
    fn tie(&mut self, mut inner: Frame<'b>, ties: Ties, keeps: Keeps, frame: &mut Frame<'b>) -> Result<()> {
        let mut needed = Vec::new();
        ties.keys.iter().for_each(|(_, key)| needed.extend(own_ids(key)));
        ties.others.iter().for_each(|condition| needed.extend(own_ids(condition)));
        let node = self.joined(&mut inner, &needed)?;
        frame.semis.push(Semi { node, select: None, keys: ties.keys, others: ties.others, keeps });
        Ok(())
    }

    /// The relations and conditions of a subquery without groups, LIMIT and UNION. Its scope, and what WITH
    /// names in it, stay until `leave`. `what` is it, in an error.
    fn enter(&mut self, select: &'b Select<'b>, what: &str) -> Result<(Frame<'b>, &'b [ResultColumn<'b>])> {
        let refused = || unsupported(&format!("{what} with GROUP BY, LIMIT, UNION or VALUES"));
        let OneSelect::Select { columns, from, where_clause, group_by: None, having: None, .. } =
            &select.body.select
        else {
            return Err(refused());
        };
        if select.body.compounds.is_some() || select.limit.is_some() {
            return Err(refused());
        }
        self.name_with(select)?;
        self.scopes.push(Scope::default());
        let mut frame = Frame::default();
        if let Some(from) = from {
            self.from(from, &mut frame)?;
        }
        if let Some(condition) = where_clause {
            self.where_parts(condition, &mut frame)?;
        }
        Ok((frame, columns))
    }

    /// The end of a subquery that was entered.
    fn leave(&mut self, select: &'b Select<'b>) {
        self.scopes.pop();
        let named = select.with.as_ref().map_or(0, |with| with.ctes.len());
        self.with.truncate(self.with.len() - named);
    }

    /// `value IN (SELECT ...)`.
    pub fn in_select(
        &mut self,
        lhs: &'b Expr<'b>,
        not: bool,
        select: &'b Select<'b>,
        frame: &mut Frame<'b>,
    ) -> Result<Expression> {
        let is_whole = std::mem::replace(&mut frame.is_whole_condition, false);
        let value = self.bind(lhs, frame)?;
        if !self.is_tied(select) {
            let output = self.alone(select)?;
            let [id] = output.ids.as_slice() else { return Err(unsupported("IN with several columns")) };
            let column = Typed { affinity: None, ..self.column(*id) };
            if is_whole && let Some((outer, inner)) = self.equal_keys(value.clone(), column.clone())? {
                let node = output.node;
                let (outer, inner) =
                    if own_ids(&inner).contains(id) { (outer, inner) } else { (inner, outer) };
                let keeps = if not { Keeps::NotIn } else { Keeps::Matched };
                let keys = vec![(outer, inner)];
                frame.semis.push(Semi { node, select: Some(select), keys, others: Vec::new(), keeps });
                return Ok(truth(true));
            }
            let rows = self.run(output.node, std::slice::from_ref(&column), None)?;
            let mut parts = Vec::new();
            for row in rows {
                let value = row.into_iter().next().flatten();
                parts.push(Typed::constant(value.as_ref().map_or(crate::api::Value::Null, Owned::value))?);
            }
            return Ok(self.one_of(value, parts, not)?.value);
        }
        if !is_whole || not {
            return Err(unsupported(
                "NOT IN, or IN within another expression, with columns of the query around it",
            ));
        }
        // As EXISTS with one more equality.
        let (mut inner, columns) = self.enter(select, "IN with columns of the query around it")?;
        let result = match columns {
            [ResultColumn::Expr(result, _)] if !has_aggregate(result) => self.bind(result, &mut inner)?,
            _ => {
                return Err(unsupported(
                    "IN of an aggregate, or of several columns, tied to the query around it",
                ));
            }
        };
        self.leave(select);
        let equal = self.compare(CompareOp::Equal, value, Typed { affinity: None, ..result })?;
        inner.conjuncts.push(equal);
        let ties = self.ties(&mut inner)?;
        self.tie(inner, ties, Keeps::Matched, frame)?;
        Ok(truth(true))
    }

    /// Whether a subquery names columns of the query around it: SQLite cannot compile it then by itself, with
    /// what WITH names.
    fn is_tied(&self, select: &'b Select<'b>) -> bool {
        let named = self.with.iter().map(|named| {
            let columns = named.columns.as_ref().map_or(String::new(), |columns| {
                let columns: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
                format!("({})", columns.join(", "))
            });
            format!("{}{columns} AS ({})", quoted(&named.name), shown(named.select))
        });
        let named: Vec<String> = named.collect();
        let with = if named.is_empty() { String::new() } else { format!("WITH {} ", named.join(", ")) };
        let text = format!("{with}SELECT 1 FROM ({})", shown(select));
        self.db.prepare(&never_texts(&text)).is_err()
    }

    /// `(SELECT ...)` as a value.
    pub fn scalar_subquery(&mut self, select: &'b Select<'b>, frame: &mut Frame<'b>) -> Result<Typed> {
        if !self.is_tied(select) {
            let output = self.alone(select)?;
            let [id] = output.ids.as_slice() else {
                return Err(unsupported("a subquery of several columns"));
            };
            let column = self.column(*id);
            let rows = self.run(output.node, std::slice::from_ref(&column), Some(1))?;
            let value = rows.into_iter().next().and_then(|row| row.into_iter().next().flatten());
            let known = Typed::constant(value.as_ref().map_or(crate::api::Value::Null, Owned::value))?;
            return Ok(Typed { affinity: column.affinity, collation: column.collation, ..known });
        }
        if frame.groups.is_some() {
            return Err(unsupported("a subquery with columns of the query around it, over groups"));
        }
        self.tied_value(select, frame)
    }

    /// An aggregate of the rows that belong to each row around it.
    fn tied_value(&mut self, select: &'b Select<'b>, frame: &mut Frame<'b>) -> Result<Typed> {
        let (mut inner, columns) = self.enter(select, "a subquery with columns of the query around it")?;
        let result = match columns {
            [ResultColumn::Expr(result, _)] if has_aggregate(result) => result,
            _ => {
                return Err(unsupported(
                    "a subquery of several columns, or without an aggregate, tied to the query around it",
                ));
            }
        };
        let ties = self.ties(&mut inner)?;
        if !ties.others.is_empty() || ties.keys.is_empty() {
            return Err(unsupported(
                "a subquery that is tied to the query around it by something else than equality",
            ));
        }
        self.reduce(&ties, &mut inner, frame)?;
        let mut groups = super::frame::Groups::default();
        for (_, key) in &ties.keys {
            // Only the join looks at it, which has compared the classes before.
            let id = self.new_hidden(Class::Null);
            groups.keys.push((key.clone(), id));
        }
        inner.groups = Some(groups);
        let value = self.bind(result, &mut inner)?;
        self.leave(select);
        let keys: Vec<Id> = inner.groups.iter().flat_map(|groups| &groups.keys).map(|(_, id)| *id).collect();
        let empty = self.of_no_rows(&value, &inner)?;
        let node = self.grouped(&mut inner)?;
        let given = self.new_column(&value);
        let mut outputs = vec![(value.value.clone(), given)];
        if let Class::Number(is_real) = &value.class {
            let flag = self.new_hidden(Class::Truth);
            outputs.push(((**is_real).clone(), flag));
            self.set_class(given, Class::Number(Box::new(Expression::Column(flag))));
        }
        outputs.extend(keys.iter().map(|&id| (Expression::Column(id), id)));
        let node = node.projected(&outputs)?;
        let on = ties.keys.iter().zip(&keys).map(|((outer, _), &id)| {
            super::typed::call(
                query::Function::Compare(CompareOp::Equal),
                vec![outer.clone(), Expression::Column(id)],
                LogicalType::Bool,
            )
        });
        let on = on.collect();
        frame.outers.push(Outer { relation: Relation::Node(node), on });
        let column = self.column(given);
        match empty {
            None => Ok(column),
            Some(zero) => {
                let found = negated(
                    Expression::IsNull(Box::new(Expression::Column(keys.first().copied().unwrap_or(given)))),
                    true,
                );
                branches(vec![found.value], vec![column, zero])
            }
        }
    }

    /// Leaves out rows of a subquery that belong to no row around it, as far as that is known by now: only
    /// the keys of one table around it matter, and of these only the ones that pass its conditions ("magic
    /// sets", Bancilhon et al. 1986).
    fn reduce(&mut self, ties: &Ties, inner: &mut Frame<'b>, frame: &Frame<'b>) -> Result<()> {
        let keys: Vec<Id> = ties.keys.iter().flat_map(|(outer, _)| own_ids(outer)).collect();
        let about = |ids: &[Id], own: &[Id]| !ids.is_empty() && ids.iter().all(|id| own.contains(id));
        for relation in &frame.relations {
            let Relation::Table(table) = relation else { continue };
            let own = relation.ids();
            if !about(&keys, &own) {
                continue;
            }
            let conditions = split(frame.conjuncts.clone());
            let conditions: Vec<Expression> =
                conditions.into_iter().filter(|condition| about(&own_ids(condition), &own)).collect();
            let mut needed = keys.clone();
            let semis: Vec<_> = frame
                .semis
                .iter()
                .filter(|semi| semi.keeps == Keeps::Matched && semi.others.is_empty())
                .filter_map(|semi| match (semi.keys.as_slice(), semi.select) {
                    ([(outer, key)], Some(select)) if about(&own_ids(outer), &own) => {
                        Some((outer.clone(), key.clone(), select))
                    }
                    _ => None,
                })
                .collect();
            if conditions.is_empty() && semis.is_empty() {
                return Ok(());
            }
            semis.iter().for_each(|(outer, ..)| needed.extend(own_ids(outer)));
            let table = table.clone();
            let mut node = self.read(&table, &needed, conditions)?;
            for (outer, mut key, select) in semis {
                let output = self.select(select)?;
                let Some(&id) = output.ids.first() else { continue };
                key.move_columns(&|_| Some(id));
                let (keys, others, keeps) = (vec![(outer, key)], Vec::new(), Keeps::Matched);
                node = self.with_semi(node, Semi { node: output.node, select: None, keys, others, keeps })?;
            }
            let keys = ties.keys.iter().map(|(outer, inner)| (inner.clone(), outer.clone())).collect();
            inner.semis.push(Semi { node, select: None, keys, others: Vec::new(), keeps: Keeps::Matched });
            return Ok(());
        }
        Ok(())
    }

    /// What the value is where there are no rows: counts are zero there. None: it is NULL.
    fn of_no_rows(&self, value: &Typed, frame: &Frame<'b>) -> Result<Option<Typed>> {
        let counts = |id: &Id| {
            frame.groups.iter().flat_map(|groups| &groups.aggregates).any(|(aggregate, own)| {
                own == id
                    && matches!(
                        aggregate.function,
                        query::AggregateFunction::Count | query::AggregateFunction::CountRows
                    )
            })
        };
        match &value.value {
            Expression::Column(id) if counts(id) => Ok(Some(Typed::constant(crate::api::Value::Integer(0))?)),
            // `avg` divides by a count, and is NULL without rows all the same.
            other if own_ids(other).iter().any(counts) && !matches!(other, Expression::Host { .. }) => {
                Err(unsupported("a count within an expression, with columns of the query around it"))
            }
            _ => Ok(None),
        }
    }
}

/// The text of a query.
fn shown(select: &Select<'_>) -> String {
    struct Text<'s, 'b>(&'s Select<'b>);
    impl std::fmt::Display for Text<'_, '_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            sqlite3_parser::ast::fmt::ToTokens::to_fmt(self.0, f)
        }
    }
    Text(select).to_string()
}

/// Whether FROM of a query, or of a part of it, names a table.
pub fn names_table(select: &Select<'_>, name: &str) -> bool {
    let mut words = std::collections::HashSet::new();
    super::statement::words(&shown(select), &mut words);
    words.contains(&name.to_lowercase())
}
