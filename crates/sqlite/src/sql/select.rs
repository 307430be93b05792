//! SELECT: from the parts of a query to a plan.

use query::{Expression, Plan, SortKey, TextOrder};
use sqlite3_parser::ast::{
    As, Distinctness, Expr, NullsOrder, OneSelect, Operator, ResultColumn, Select, SortOrder, SortedColumn,
    UnaryOperator,
};

use super::aggregates::has_aggregate;
use super::compare::folded;
use super::frame::Frame;
use super::from::Named;
use super::kernels;
use super::names::{Scope, unquoted};
use super::planner::{Id, Node, Planner, ids_of};
use super::typed::{Class, Typed, truth, unsupported};
use crate::api::Result;
use crate::values::{Collation, Owned};

/// A planned query.
pub struct Output {
    /// What is computed.
    pub node: Node,
    /// Its columns, in order.
    pub ids: Vec<Id>,
    /// What they are called.
    pub names: Vec<String>,
}

/// A term of ORDER BY.
pub struct Term {
    value: Typed,
    descending: bool,
    nulls_first: bool,
}

impl<'b> Planner<'b> {
    /// Takes note of the queries that WITH names. How many there are: who is done with them takes them away.
    pub fn name_with(&mut self, select: &'b Select<'b>) -> Result<usize> {
        let Some(with) = &select.with else { return Ok(0) };
        for named in with.ctes {
            let columns: Option<Vec<String>> = named
                .columns
                .map(|columns| columns.iter().map(|column| unquoted(column.col_name.0)).collect());
            let name = unquoted(named.tbl_name.0);
            if with.recursive && super::subqueries::names_table(named.select, &name) {
                return Err(unsupported("WITH RECURSIVE"));
            }
            self.with.push(Named { name, columns, select: named.select, kept: None });
        }
        Ok(with.ctes.len())
    }

    /// A whole query.
    pub fn select(&mut self, select: &'b Select<'b>) -> Result<Output> {
        let named = self.name_with(select)?;
        let output = match &select.body.compounds {
            None => self.core(&select.body.select, Some(select)),
            Some(_) => self.compound(select),
        };
        self.with.truncate(self.with.len() - named);
        output
    }

    /// The conditions of WHERE that all have to hold, in the frame.
    pub fn where_parts(&mut self, condition: &'b Expr<'b>, frame: &mut Frame<'b>) -> Result<()> {
        match condition {
            Expr::Binary(left, Operator::And, right) => {
                self.where_parts(left, frame)?;
                return self.where_parts(right, frame);
            }
            Expr::Parenthesized(parts) => {
                if let [one] = parts.as_slice() {
                    return self.where_parts(one, frame);
                }
            }
            _ => {}
        }
        frame.is_whole_condition = true;
        let bound = match condition {
            Expr::Unary(UnaryOperator::Not, inner) => match bare(inner) {
                Expr::Exists(select) => self.exists(select, true, frame),
                Expr::InSelect { lhs, not, rhs } => self.in_select(lhs, !not, rhs, frame),
                _ => {
                    frame.is_whole_condition = false;
                    self.bind(condition, frame)?.condition()
                }
            },
            Expr::Exists(_) | Expr::InSelect { .. } => self.bind(condition, frame)?.condition(),
            _ => {
                frame.is_whole_condition = false;
                self.bind(condition, frame)?.condition()
            }
        };
        frame.is_whole_condition = false;
        let bound = bound?;
        if bound != truth(true) {
            frame.conjuncts.push(bound);
        }
        Ok(())
    }

    /// One SELECT, with ORDER BY and LIMIT if it has them.
    pub fn core(&mut self, one: &'b OneSelect<'b>, whole: Option<&'b Select<'b>>) -> Result<Output> {
        match one {
            OneSelect::Values(rows) => self.values(rows, whole),
            OneSelect::Select { .. } => {
                self.scopes.push(Scope::default());
                let output = self.core_of(one, whole);
                self.scopes.pop();
                output
            }
        }
    }

    fn core_of(&mut self, one: &'b OneSelect<'b>, whole: Option<&'b Select<'b>>) -> Result<Output> {
        let OneSelect::Select { distinctness, columns, from, where_clause, group_by, having, window_clause } =
            one
        else {
            return Err(unsupported("VALUES in this place"));
        };
        let mut frame = Frame::default();
        if let Some(from) = from {
            self.from(from, &mut frame)?;
        }
        let aliases = columns.iter().filter_map(|column| match column {
            ResultColumn::Expr(expression, Some(As::As(name) | As::Elided(name))) => {
                Some((unquoted(name.0), expression))
            }
            _ => None,
        });
        let aliases: Vec<_> = aliases.collect();
        if let Some(scope) = self.scopes.last_mut() {
            scope.aliases = aliases;
        }
        if let Some(condition) = where_clause {
            self.where_parts(condition, &mut frame)?;
        }
        let order = whole.and_then(|whole| whole.order_by).unwrap_or_default();
        let results = columns.iter().filter_map(|column| match column {
            ResultColumn::Expr(expression, _) => Some(expression),
            _ => None,
        });
        let over_rows = results.chain(*having).chain(order.iter().map(|term| &term.expr));
        let is_grouped = group_by.is_some() || over_rows.into_iter().any(has_aggregate);
        if is_grouped {
            frame.groups = Some(self.group_keys(group_by.unwrap_or_default(), columns, &mut frame)?);
        } else if having.is_some() {
            return Err(unsupported("HAVING without groups"));
        }
        let having = match having {
            Some(condition) => {
                let bound = self.bind(condition, &mut frame)?;
                Some(bound.condition()?)
            }
            None => None,
        };
        frame.windows = Some(Vec::new());
        self.windows_named = window_clause.unwrap_or_default();
        let (mut outputs, mut names) = (Vec::new(), Vec::new());
        for column in *columns {
            match column {
                ResultColumn::Expr(expression, alias) => {
                    outputs.push(self.bind(expression, &mut frame)?);
                    names.push(match alias {
                        Some(As::As(name) | As::Elided(name)) => unquoted(name.0),
                        None => name_of(expression),
                    });
                }
                star => {
                    if is_grouped {
                        return Err(unsupported("* with GROUP BY"));
                    }
                    let table = match star {
                        ResultColumn::TableStar(table) => Some(unquoted(table.0)),
                        _ => None,
                    };
                    for (name, column) in self.star(table.as_deref())? {
                        outputs.push(column);
                        names.push(name);
                    }
                }
            }
        }
        let terms = self.order_terms(order, columns, &outputs, &mut frame)?;
        // What the rows before the results have to have.
        let mut needed = Vec::new();
        let read = |typed: &Typed, needed: &mut Vec<Id>| {
            ids_of(&typed.value, needed);
            if let Class::Number(is_real) = &typed.class {
                ids_of(is_real, needed);
            }
        };
        outputs.iter().chain(terms.iter().map(|term| &term.value)).for_each(|typed| read(typed, &mut needed));
        let windows = frame.windows.take().unwrap_or_default();
        windows.iter().for_each(|term| term.ids(&mut needed));
        let mut node = if is_grouped {
            let node = self.grouped(&mut frame)?;
            node.filtered(&having.into_iter().collect::<Vec<_>>(), 0.3)?
        } else {
            self.joined(&mut frame, &needed)?
        };
        node = self.windowed(node, windows)?;
        self.finished(
            node,
            outputs,
            names,
            terms,
            matches!(distinctness, Some(Distinctness::Distinct)),
            whole,
        )
    }

    /// The terms of ORDER BY: by number or name of a result, or by an expression.
    pub fn order_terms(
        &mut self,
        order: &'b [SortedColumn<'b>],
        columns: &'b [ResultColumn<'b>],
        outputs: &[Typed],
        frame: &mut Frame<'b>,
    ) -> Result<Vec<Term>> {
        let mut terms = Vec::new();
        for column in order {
            let aliased = |name: &str| {
                let mut at = 0;
                for column in columns {
                    match column {
                        ResultColumn::Expr(_, Some(As::As(own) | As::Elided(own)))
                            if unquoted(own.0).eq_ignore_ascii_case(name) =>
                        {
                            return outputs.get(at);
                        }
                        ResultColumn::Expr(..) => at += 1,
                        // A star has as many columns as the others leave.
                        _ => at += outputs.len() - (columns.len() - 1),
                    }
                }
                None
            };
            let (inner, collation) = match bare(&column.expr) {
                Expr::Collate(inner, name) => (*inner, Collation::of_name(&unquoted(name))),
                other => (other, None),
            };
            let value = match inner {
                number if number.is_integer().is_some() => {
                    let at = number.is_integer().and_then(|number| usize::try_from(number - 1).ok());
                    at.and_then(|at| outputs.get(at)).cloned()
                }
                Expr::Id(name) => aliased(&unquoted(name.0)).cloned(),
                Expr::Name(name) => aliased(&unquoted(name.0)).cloned(),
                _ => None,
            };
            let mut value = match value {
                Some(value) => value,
                None => self.bind(inner, frame)?,
            };
            if let Some(collation) = collation {
                value.collation = (collation, true);
            }
            let (descending, nulls_first) = direction(column);
            terms.push(Term { value, descending, nulls_first });
        }
        Ok(terms)
    }

    /// Results, without equal ones if that is asked for, in order, and as many as are wanted.
    pub fn finished(
        &mut self,
        mut node: Node,
        outputs: Vec<Typed>,
        names: Vec<String>,
        terms: Vec<Term>,
        distinct: bool,
        whole: Option<&'b Select<'b>>,
    ) -> Result<Output> {
        let (limit, offset) = self.limits(whole)?;
        let mut terms = terms;
        let mut outputs = outputs;
        if distinct {
            let (columns, ids) = self.columns_of(&outputs);
            node = node.projected(&columns)?;
            for term in &mut terms {
                let at = outputs.iter().position(|output| output.value == term.value.value);
                let id = at.and_then(|at| ids.get(at)).copied();
                let id =
                    id.ok_or_else(|| unsupported("ORDER BY of DISTINCT by something that is no result"))?;
                term.value = Typed { collation: term.value.collation, ..self.column(id) };
            }
            node = self.without_equal(node, &ids);
            outputs = ids.iter().map(|&id| self.column(id)).collect();
        }
        if !terms.is_empty() {
            let keys = terms.into_iter().map(|term| {
                let expression = folded(term.value.clone().plain(), term.value.collation.0);
                let (descending, nulls_first) = (term.descending, term.nulls_first);
                Ok(SortKey {
                    expression: node.place(&expression)?,
                    descending,
                    nulls_first,
                    order: TextOrder::Bytes,
                })
            });
            let keys = keys.collect::<Result<Vec<_>>>()?;
            let first = limit.map(|limit| limit.saturating_add(offset));
            node.plan = Plan::Sort { input: Box::new(node.plan), keys, limit: first };
        }
        if limit.is_some() || offset > 0 {
            node.plan = Plan::Limit { input: Box::new(node.plan), offset, limit };
        }
        let (columns, ids) = self.columns_of(&outputs);
        let node = node.projected(&columns)?;
        Ok(Output { node, ids, names })
    }

    /// New columns for results, with those that say which numbers are reals.
    fn columns_of(&mut self, outputs: &[Typed]) -> (Vec<(Expression, Id)>, Vec<Id>) {
        let (mut columns, mut ids) = (Vec::new(), Vec::new());
        for output in outputs {
            let output = output.clone().plain();
            let id = self.new_column(&output);
            columns.push((output.value.clone(), id));
            if let Expression::Column(before) = &output.value
                && let Some(known) = self.estimates.get(before).copied()
            {
                self.estimates.insert(id, known);
            }
            match &output.class {
                Class::Number(_) if output.tells_class() => {
                    let is_real = kernels::fraction(Expression::Column(id));
                    self.set_class(id, Class::Number(Box::new(is_real)));
                }
                Class::Number(is_real) => {
                    let flag = self.new_hidden(Class::Truth);
                    columns.push(((**is_real).clone(), flag));
                    self.set_class(id, Class::Number(Box::new(Expression::Column(flag))));
                }
                _ => {}
            }
            ids.push(id);
        }
        (columns, ids)
    }

    /// LIMIT and OFFSET.
    fn limits(&mut self, whole: Option<&'b Select<'b>>) -> Result<(Option<u64>, u64)> {
        let Some(limit) = whole.and_then(|whole| whole.limit) else { return Ok((None, 0)) };
        let mut number = |expression: &'b Expr<'b>| -> Result<i64> {
            let bound = self.bind(expression, &mut Frame::default())?;
            match bound.known() {
                Some(Some(Owned::Integer(number))) => Ok(number),
                _ => Err(unsupported("LIMIT by something else than an integer")),
            }
        };
        let rows = number(&limit.expr)?;
        let offset = limit.offset.as_ref().map_or(Ok(0), &mut number)?;
        Ok((u64::try_from(rows).ok(), u64::try_from(offset).unwrap_or(0)))
    }
}

/// An expression without parentheses around it.
pub fn bare<'b>(expression: &'b Expr<'b>) -> &'b Expr<'b> {
    match expression {
        Expr::Parenthesized(parts) => match parts.as_slice() {
            [one] => bare(one),
            _ => expression,
        },
        other => other,
    }
}

/// Whether the greatest value comes first, and whether NULLs do: NULL is less than all else.
pub fn direction(column: &SortedColumn<'_>) -> (bool, bool) {
    let descending = matches!(column.order, Some(SortOrder::Desc));
    let nulls_first = match &column.nulls {
        Some(NullsOrder::First) => true,
        Some(NullsOrder::Last) => false,
        None => !descending,
    };
    (descending, nulls_first)
}

/// What a result is called that has no name of its own, for queries around it.
fn name_of(expression: &Expr<'_>) -> String {
    match expression {
        Expr::Id(name) => unquoted(name.0),
        Expr::Name(name) | Expr::Qualified(_, name) | Expr::DoublyQualified(_, _, name) => unquoted(name.0),
        other => other.to_string(),
    }
}
