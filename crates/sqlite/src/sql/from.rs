//! FROM: tables, views, subqueries and joins as relations.

use std::rc::Rc;

use query::{Batch, Expression};
use sqlite3_parser::ast::{
    As, Expr, FromClause, JoinConstraint, JoinOperator, JoinType, QualifiedName, Select, SelectTable,
};
use vector::{CompareOp, LogicalType};

use super::frame::{Frame, Outer};
use super::names::{Reference, Visible, unquoted};
use super::planner::{Estimate, Id, Node, Planner, Shown};
use super::select::Output;
use super::typed::{Class, Typed, unsupported};
use super::{plain, statistics};
use crate::api::Result;
use crate::engine::{ColumnType, run_plan};
use crate::table::{TableState, schema_of};
use crate::values::{Affinity, Collation};

/// A query that WITH names, and what was known where it stands.
#[derive(Clone)]
pub struct Named<'b> {
    /// Its name.
    pub name: String,
    /// The names of its columns, if they are given.
    pub columns: Option<Vec<String>>,
    /// The query.
    pub select: &'b Select<'b>,
    /// Its rows, once they are kept for further uses.
    pub kept: Option<Kept>,
}

/// The rows of a query that is used more than once.
#[derive(Clone)]
pub struct Kept {
    batches: Rc<Vec<Batch>>,
    names: Vec<String>,
    /// The columns. In batches each is followed by what says which of its numbers are reals, if it has such.
    columns: Vec<Typed>,
    types: Vec<LogicalType>,
    rows: f64,
}

/// More rows than these are not kept: the query runs again.
const MOST_KEPT: f64 = 1e6;

/// A columnar table in FROM. It is read once it is known which columns are needed.
#[derive(Clone)]
pub struct TableRelation {
    /// The table.
    pub state: Rc<TableState>,
    /// Where columns lie, and their ids.
    pub columns: Vec<(usize, Id)>,
    /// Rows.
    pub rows: f64,
    /// Its name in the query.
    pub name: String,
}

/// Rows that are combined with others.
pub enum Relation {
    /// Of a columnar table.
    Table(TableRelation),
    /// Of anything else.
    Node(Node),
}

impl Relation {
    /// All columns that it can give.
    pub fn ids(&self) -> Vec<Id> {
        match self {
            Self::Table(table) => table.columns.iter().map(|(_, id)| *id).collect(),
            Self::Node(node) => node.ids.clone(),
        }
    }
}

impl<'b> Planner<'b> {
    /// The relations of FROM, in the frame, and their names in the innermost scope.
    pub fn from(&mut self, from: &'b FromClause<'b>, frame: &mut Frame<'b>) -> Result<()> {
        let Some(first) = from.select else { return Ok(()) };
        let (relation, visible) = self.relation(first)?;
        frame.relations.push(relation);
        self.show(visible);
        for join in from.joins.iter().flatten() {
            let joins = match join.operator {
                JoinOperator::Comma | JoinOperator::TypedJoin(None) => JoinType::INNER,
                JoinOperator::TypedJoin(Some(joins)) => joins,
            };
            let (relation, mut visible) = self.relation(&join.table)?;
            if joins.contains(JoinType::RIGHT) {
                return Err(unsupported("RIGHT JOIN and FULL JOIN"));
            }
            let mut equal = Vec::new();
            let shared: Vec<String> = match &join.constraint {
                Some(JoinConstraint::Using(names)) => names.iter().map(|name| unquoted(name.0)).collect(),
                _ if joins.contains(JoinType::NATURAL) => self.shared_names(&visible),
                _ => Vec::new(),
            };
            for name in shared {
                let reference = Reference { table: None, schema: None, column: name.clone(), quoted: false };
                let super::names::Meaning::Column(left) = self.resolve(&reference)? else {
                    return Err(unsupported("USING with such a column"));
                };
                let found = visible.columns.iter().position(|(own, _)| own.eq_ignore_ascii_case(&name));
                let Some(at) = found else { return Err(unsupported("USING with such a column")) };
                let right = match visible.columns.get(at) {
                    Some((_, Ok(id))) => *id,
                    Some((_, Err(why))) => return Err(unsupported(why)),
                    None => continue,
                };
                visible.joined.push(at);
                equal.push(self.compare(CompareOp::Equal, self.column(left), self.column(right))?);
            }
            self.show(visible);
            if let Some(JoinConstraint::On(condition)) = &join.constraint {
                self.conjuncts_of(condition, frame, &mut equal)?;
            }
            if joins.contains(JoinType::LEFT) {
                frame.outers.push(Outer { relation, on: equal });
            } else {
                frame.relations.push(relation);
                frame.conjuncts.append(&mut equal);
            }
        }
        Ok(())
    }

    /// The parts of a condition of ON that all have to hold.
    fn conjuncts_of(
        &mut self,
        condition: &'b Expr<'b>,
        frame: &mut Frame<'b>,
        out: &mut Vec<Expression>,
    ) -> Result<()> {
        if let Expr::Binary(left, sqlite3_parser::ast::Operator::And, right) = condition {
            self.conjuncts_of(left, frame, out)?;
            return self.conjuncts_of(right, frame, out);
        }
        if let Expr::Parenthesized(parts) = condition
            && let [one] = parts.as_slice()
        {
            return self.conjuncts_of(one, frame, out);
        }
        out.push(self.bind(condition, frame)?.condition()?);
        Ok(())
    }

    fn show(&mut self, visible: Visible) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.relations.push(visible);
        }
    }

    fn shared_names(&self, visible: &Visible) -> Vec<String> {
        let Some(scope) = self.scopes.last() else { return Vec::new() };
        let known = |name: &&(String, std::result::Result<Id, String>)| {
            let mut all = scope.relations.iter().flat_map(|relation| &relation.columns);
            all.any(|(own, _)| own.eq_ignore_ascii_case(&name.0))
        };
        visible.columns.iter().filter(known).map(|(name, _)| name.clone()).collect()
    }

    fn relation(&mut self, table: &'b SelectTable<'b>) -> Result<(Relation, Visible)> {
        match table {
            SelectTable::Table(name, alias, _) => self.named(name, alias.as_ref()),
            SelectTable::Select(select, alias) => {
                let name = alias.as_ref().map_or(String::new(), alias_of);
                self.derived(select, name, None)
            }
            SelectTable::TableCall(..) => Err(unsupported("table-valued functions in FROM")),
            SelectTable::Sub(..) => Err(unsupported("joins in parentheses")),
        }
    }

    /// A query that sees nothing of the one around it.
    pub fn alone(&mut self, select: &'b Select<'b>) -> Result<Output> {
        let around = std::mem::take(&mut self.scopes);
        let output = self.select(select);
        self.scopes = around;
        output
    }

    /// A query in FROM.
    fn derived(
        &mut self,
        select: &'b Select<'b>,
        name: String,
        columns: Option<&[String]>,
    ) -> Result<(Relation, Visible)> {
        Ok(shown_as(self.alone(select)?, name, columns))
    }

    /// Runs a query that is used more than once.
    fn keep(&mut self, output: Output) -> Result<Kept> {
        let columns: Vec<Typed> = output.ids.iter().map(|&id| self.column(id)).collect();
        let flat = self.flat(&columns);
        let mut plan = output.node.projected(&flat)?.plan;
        let types = plan.types();
        let (sources, _) = self.take_sources(&mut plan);
        let batches = run_plan(self.db, &plan, sources, self.tables.limits())?;
        let rows = batches.iter().map(|batch| batch.rows).sum::<usize>();
        let rows = as_count(i64::try_from(rows).unwrap_or(i64::MAX));
        Ok(Kept { batches: Rc::new(batches), names: output.names, columns, types, rows })
    }

    /// The rows that were kept, with columns of their own.
    fn again(&mut self, kept: &Kept, name: String, columns: Option<&[String]>) -> (Relation, Visible) {
        let (mut places, mut ids) = (Vec::new(), Vec::new());
        for column in &kept.columns {
            let id = self.new_column(column);
            places.push(id);
            ids.push(id);
            if let Class::Number(_) = column.class {
                let flag = self.new_hidden(Class::Truth);
                places.push(flag);
                self.set_class(id, Class::Number(Box::new(Expression::Column(flag))));
            }
        }
        let source = plain::KeptBatches::new(Rc::clone(&kept.batches));
        let shown = Shown { table: name.clone(), columns: kept.names.clone(), ..Shown::default() };
        let plan = self.scan(Box::new(source), kept.types.clone(), shown);
        let node = Node { plan, ids: places, rows: kept.rows };
        shown_as(Output { node, ids, names: kept.names.clone() }, name, columns)
    }

    fn named(&mut self, name: &QualifiedName<'b>, alias: Option<&As<'b>>) -> Result<(Relation, Visible)> {
        let bare = unquoted(name.name.0);
        let schema = name.db_name.as_ref().map(|schema| unquoted(schema.0));
        let shown = alias.map_or_else(|| bare.clone(), alias_of);
        if schema.is_none()
            && let Some(at) = self.with.iter().rposition(|own| own.name.eq_ignore_ascii_case(&bare))
            && let Some(found) = self.with.get(at).cloned()
        {
            if let Some(kept) = &found.kept {
                return Ok(self.again(kept, shown, found.columns.as_deref()));
            }
            // It does not see itself, nor what WITH names after it.
            let rest = self.with.split_off(at);
            let output = self.alone(found.select);
            self.with.extend(rest);
            let output = output?;
            let uses = self.uses.get(&bare.to_lowercase()).copied().unwrap_or(0);
            // One of them is the name itself.
            if uses > 2 && output.node.rows <= MOST_KEPT {
                let kept = self.keep(output)?;
                let relation = self.again(&kept, shown, found.columns.as_deref());
                if let Some(named) = self.with.get_mut(at) {
                    named.kept = Some(kept);
                }
                return Ok(relation);
            }
            return Ok(shown_as(output, shown, found.columns.as_deref()));
        }
        if bare.to_ascii_lowercase().starts_with("sqlite_") {
            return Err(unsupported("SQLite's own tables"));
        }
        let schema = match schema {
            Some(schema) => schema,
            None => schema_of(self.db, &bare)?,
        };
        if let Some(view) = plain::view_of(self.db, &schema, &bare)? {
            let (select, columns) = super::statement::parse_view(self.room, &view)?;
            super::statement::words(&view, &mut self.words);
            let with = std::mem::take(&mut self.with);
            let derived = self.derived(select, shown, columns.as_deref());
            self.with = with;
            return derived;
        }
        let named =
            Visible { name: shown, schema: alias.is_none().then(|| schema.clone()), ..Visible::default() };
        match self.tables.columnar(self.db, &schema, &bare)? {
            Some(state) => self.columnar(state, named),
            None => self.plain_table(&schema, &bare, named),
        }
    }

    fn columnar(&mut self, state: Rc<TableState>, mut visible: Visible) -> Result<(Relation, Visible)> {
        let storage = Rc::clone(&state.storage);
        let tail = storage.tail_columns()?;
        let tail = tail.as_ref().map_or(&[][..], |tail| tail.as_slice());
        let rows = as_count(storage.live_rows());
        let mut columns = Vec::new();
        let row_id = self.new_column(&Typed {
            affinity: Some(Affinity::Numeric),
            ..Typed::new(super::expressions::integer(0), Class::Integer)
        });
        self.estimates.insert(row_id, Estimate { distinct: rows, bounds: None });
        columns.push((0, row_id));
        visible.row_id = Some(row_id);
        for (at, definition) in storage.columns.0.iter().enumerate() {
            let place = storage.columns.place(at);
            let name = definition.name.clone();
            if !self.words.contains("*") && !self.words.contains(&name.to_ascii_lowercase()) {
                visible.columns.push((name, Err("a column that is not named".into())));
                continue;
            }
            if place == 0 {
                visible.columns.push((name, Ok(row_id)));
                continue;
            }
            let Some(own) = ColumnType::of(&storage, place, tail)? else {
                let why = format!(
                    "column {name} of {} holds values of several classes, or blobs",
                    storage.shadow.name()
                );
                visible.columns.push((name, Err(why)));
                continue;
            };
            let Some(collation) = Collation::of_name(&definition.collation) else {
                let why = format!("column {name}, whose collation is {}", definition.collation);
                visible.columns.push((name, Err(why)));
                continue;
            };
            let known = statistics::estimate(&storage, place, tail)?;
            let limit = known.bounds.map(|(low, high)| low.abs().max(high.abs()));
            let id = self.stored_column(own.kind, definition.affinity, collation, limit);
            self.estimates.insert(id, known);
            columns.push((place, id));
            visible.columns.push((name, Ok(id)));
        }
        let name = visible.name.clone();
        Ok((Relation::Table(TableRelation { state, columns, rows, name }), visible))
    }
}

/// A query's results as a relation.
fn shown_as(output: Output, name: String, columns: Option<&[String]>) -> (Relation, Visible) {
    let mut visible = Visible { name, ..Visible::default() };
    for (at, (own, id)) in output.names.iter().zip(&output.ids).enumerate() {
        let name = columns.and_then(|columns| columns.get(at)).unwrap_or(own);
        visible.columns.push((name.clone(), Ok(*id)));
    }
    (Relation::Node(output.node), visible)
}

fn alias_of(alias: &As<'_>) -> String {
    match alias {
        As::As(name) | As::Elided(name) => unquoted(name.0),
    }
}

#[allow(clippy::cast_precision_loss)]
fn as_count(rows: i64) -> f64 {
    (rows as f64).max(1.0)
}
