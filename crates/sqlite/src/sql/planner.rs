//! What a query's planning knows: columns by number, sources, shared functions; and parts of a plan.
//!
//! Every column of every relation has a number of its own, its id, in all of the query. Bound expressions
//! name columns by id. A `Node` knows in which order its plan gives which ids, so that an expression can be
//! placed on it.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use query::{Expression, HostFunction, Plan, Source};
use stripe::scan::Counters;
use vector::LogicalType;

use super::asked;
use super::host_functions::{Body, RowFunction};
use super::kernels;
use super::names::Scope;
use super::output::{Rows, layout};
use super::typed::{Class, Typed, unsupported};
use crate::api::{Connection, Result, Value};
use crate::engine::run_plan;
use crate::table::Tables;
use crate::values::{Affinity, Collation, Kind, Owned};

/// The number of a column within a query.
pub type Id = usize;

/// A part of a plan, and which columns it gives.
#[derive(Debug)]
pub struct Node {
    /// What is computed.
    pub plan: Plan,
    /// The columns in the plan's order.
    pub ids: Vec<Id>,
    /// Rows expected.
    pub rows: f64,
}

impl Node {
    /// The expression over the plan's columns.
    pub fn place(&self, expression: &Expression) -> Result<Expression> {
        let mut ids = Vec::new();
        ids_of(expression, &mut ids);
        let known: HashMap<Id, usize> =
            self.ids.iter().copied().enumerate().map(|(at, id)| (id, at)).collect();
        if ids.iter().any(|id| !known.contains_key(id)) {
            return Err(unsupported("a column of an outer query in this place"));
        }
        let mut placed = expression.clone();
        placed.move_columns(&|id| known.get(&id).copied());
        Ok(placed)
    }

    /// Only the rows for which all hold.
    pub fn filtered(self, conditions: &[Expression], selectivity: f64) -> Result<Self> {
        let mut placed =
            conditions.iter().map(|condition| self.place(condition)).collect::<Result<Vec<_>>>()?;
        let Some(last) = placed.pop() else { return Ok(self) };
        let condition = if placed.is_empty() {
            last
        } else {
            placed.push(last);
            Expression::And(placed)
        };
        let plan = Plan::Filter { input: Box::new(self.plan), condition };
        Ok(Self { plan, ids: self.ids, rows: (self.rows * selectivity).max(1.0) })
    }

    /// Other columns, computed from these.
    pub fn projected(self, columns: &[(Expression, Id)]) -> Result<Self> {
        let expressions = columns.iter().map(|(value, _)| self.place(value)).collect::<Result<Vec<_>>>()?;
        let ids = columns.iter().map(|(_, id)| *id).collect();
        Ok(Self { plan: Plan::Project { input: Box::new(self.plan), expressions }, ids, rows: self.rows })
    }
}

/// The columns that an expression reads.
pub fn ids_of(expression: &Expression, out: &mut Vec<Id>) {
    if let Expression::Column(id) = expression {
        out.push(*id);
    }
    expression.children().into_iter().for_each(|child| ids_of(child, out));
}

/// What a table's column is known to be like, for estimates.
#[derive(Debug, Clone, Copy)]
pub struct Estimate {
    /// Different values.
    pub distinct: f64,
    /// The least and the greatest number.
    pub bounds: Option<(f64, f64)>,
}

/// A sum of integers and reals, of which it has to be known whether it is a real.
#[derive(Debug, Clone)]
pub struct UnsettledSum {
    /// The column that says so.
    pub flag: Id,
    /// The column of the sum.
    pub sum: Id,
    /// What is summed up.
    pub argument: Expression,
}

/// What a source is called in a query, for people.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// The table.
    pub table: String,
    /// Its columns that are read.
    pub columns: Vec<String>,
    /// What its rows have to pass before they come.
    pub conditions: Vec<String>,
    /// What was read and left out of its stripes. None if it has none.
    pub counters: Option<Rc<Cell<Counters>>>,
}

/// A query that is being planned.
pub struct Planner<'b> {
    /// The connection.
    pub db: Connection,
    /// Its columnar tables.
    pub tables: Rc<Tables>,
    /// The values of parameters, by number from 1 on.
    pub parameters: Vec<Option<Owned>>,
    /// Their names. Empty for those that have none.
    pub parameter_names: Vec<String>,
    /// The windows that the SELECT names.
    pub windows_named: &'b [sqlite3_parser::ast::WindowDef<'b>],
    /// Sums of integers and reals.
    pub sums: Vec<UnsettledSum>,
    /// Each value's class is looked at. Else a sum with a fraction among its values is taken for a real, and
    /// one without ends the query, which is then planned anew.
    pub looks_at_classes: bool,
    /// Some sum may end the query so.
    pub may_be_unsettled: bool,
    /// The words of the query's text, lower case: columns that it does not name are not looked at.
    pub words: HashSet<String>,
    /// How often each word stands in it.
    pub uses: HashMap<String, usize>,
    /// The scopes of names, the innermost last.
    pub scopes: Vec<Scope<'b>>,
    /// The queries that WITH names, the innermost last.
    pub with: Vec<super::from::Named<'b>>,
    /// Estimates of some columns.
    pub estimates: HashMap<Id, Estimate>,
    /// What the query says of each source, for people.
    pub source_names: Vec<Shown>,
    columns: Vec<Typed>,
    sources: Vec<Option<Box<dyn Source>>>,
    shared: HashMap<String, Arc<dyn HostFunction>>,
    /// Memory for a text that views hold: the parser's.
    pub room: &'b bumpalo::Bump,
}

impl<'b> Planner<'b> {
    /// A query of which nothing is known yet.
    pub fn new(
        db: Connection,
        tables: Rc<Tables>,
        parameters: Vec<Option<Owned>>,
        room: &'b bumpalo::Bump,
    ) -> Self {
        Self {
            db,
            tables,
            parameters,
            parameter_names: Vec::new(),
            windows_named: &[],
            sums: Vec::new(),
            looks_at_classes: false,
            may_be_unsettled: false,
            words: HashSet::new(),
            uses: HashMap::new(),
            scopes: Vec::new(),
            with: Vec::new(),
            estimates: HashMap::new(),
            source_names: Vec::new(),
            columns: Vec::new(),
            sources: Vec::new(),
            shared: HashMap::new(),
            room,
        }
    }

    /// A new column of this class.
    pub fn new_column(&mut self, like: &Typed) -> Id {
        let id = self.columns.len();
        self.columns.push(Typed { value: Expression::Column(id), ..like.clone() });
        id
    }

    /// A new column of the engine's, that no name reaches.
    pub fn new_hidden(&mut self, class: Class) -> Id {
        let id = self.columns.len();
        self.columns.push(Typed::new(Expression::Column(id), class));
        id
    }

    /// What a reference to a column is.
    pub fn column(&self, id: Id) -> Typed {
        self.columns.get(id).cloned().unwrap_or_else(Typed::null)
    }

    /// Says which of a column's numbers are reals.
    pub fn set_class(&mut self, id: Id, class: Class) {
        if let Some(column) = self.columns.get_mut(id) {
            column.class = class;
        }
    }

    /// A source of rows, as a plan.
    pub fn scan(&mut self, source: Box<dyn Source>, types: Vec<LogicalType>, name: Shown) -> Plan {
        self.sources.push(Some(source));
        self.source_names.push(name);
        Plan::Scan { source: self.sources.len() - 1, types }
    }

    /// The sources of a plan in order, whose numbers in the plan are changed to theirs, and their names.
    pub fn take_sources(&mut self, plan: &mut Plan) -> (Vec<Box<dyn Source>>, Vec<Shown>) {
        let (mut sources, mut names) = (Vec::new(), Vec::new());
        self.take_into(plan, &mut sources, &mut names);
        (sources, names)
    }

    fn take_into(&mut self, plan: &mut Plan, out: &mut Vec<Box<dyn Source>>, names: &mut Vec<Shown>) {
        if let Plan::Scan { source, .. } = plan {
            if let Some(taken) = self.sources.get_mut(*source).and_then(Option::take) {
                out.push(taken);
                names.push(self.source_names.get(*source).cloned().unwrap_or_default());
            }
            *source = out.len().saturating_sub(1);
        }
        for input in plan.inputs_mut() {
            self.take_into(input, out, names);
        }
    }

    /// A column of a table, whose values lie so.
    pub fn stored_column(
        &mut self,
        kind: Kind,
        affinity: Affinity,
        collation: Collation,
        limit: Option<f64>,
    ) -> Id {
        let id = self.new_hidden(Class::Null);
        let value = Expression::Column(id);
        let class = match kind {
            Kind::Null => Class::Null,
            Kind::Real => Class::Real,
            Kind::Text => Class::Text,
            Kind::Number => Class::Number(Box::new(kernels::fraction(value.clone()))),
            Kind::Integer | Kind::Mixed => Class::Integer,
        };
        let typed = Typed { value, class, affinity: Some(affinity), collation: (collation, false), limit };
        if let Some(column) = self.columns.get_mut(id) {
            *column = typed;
        }
        id
    }

    /// Results as columns of a plan, as `output::layout` has them.
    pub fn flat(&mut self, columns: &[Typed]) -> Vec<(Expression, Id)> {
        let mut flat = Vec::new();
        for column in columns {
            flat.push((column.value.clone(), self.new_hidden(Class::Null)));
            if let Class::Number(is_real) = &column.class {
                flat.push(((**is_real).clone(), self.new_hidden(Class::Truth)));
            }
        }
        flat
    }

    /// The rows of a part of the query, computed now: values of its columns.
    pub fn run(
        &mut self,
        node: Node,
        columns: &[Typed],
        most: Option<usize>,
    ) -> Result<Vec<Vec<Option<Owned>>>> {
        let flat = self.flat(columns);
        let mut plan = node.projected(&flat)?.plan;
        if let Some(most) = most {
            plan = Plan::Limit { input: Box::new(plan), offset: 0, limit: Some(most as u64) };
        }
        let (sources, _) = self.take_sources(&mut plan);
        let (mut rows, layout) = (Vec::new(), layout(columns));
        for batch in run_plan(self.db, &plan, sources, self.tables.limits())? {
            let read = Rows::new(&batch, &layout)?;
            for row in 0..read.rows {
                rows.push(read.row(row)?);
            }
        }
        Ok(rows)
    }

    fn shared(&mut self, key: String, make: impl FnOnce() -> Arc<dyn HostFunction>) -> Arc<dyn HostFunction> {
        Arc::clone(self.shared.entry(key).or_insert_with(make))
    }

    /// A function that is computed row by row.
    pub fn row_function(
        &mut self,
        name: &'static str,
        result: LogicalType,
        body: Body,
        arguments: Vec<Expression>,
    ) -> Expression {
        let function = self.shared(name.into(), || Arc::new(RowFunction { name, result, body }));
        Expression::Host { function, arguments, result }
    }

    /// A function that SQLite computes.
    pub fn asked_function(
        &mut self,
        db: Connection,
        name: &str,
        text: &str,
        result: LogicalType,
    ) -> Result<Arc<dyn HostFunction>> {
        if let Some(known) = self.shared.get(text) {
            return Ok(Arc::clone(known));
        }
        let function = asked::function(db, name, text, result)?;
        self.shared.insert(text.into(), Arc::clone(&function));
        Ok(function)
    }

    /// What a column of numeric affinity makes of a text.
    pub fn numeric(&self, text: Value<'_>) -> Result<Typed> {
        let statement = self.db.prepare("SELECT ?1")?;
        statement.bind(1, text)?;
        match statement.step()? {
            true => Typed::constant(statement.argument(0).argument.numeric()),
            false => Ok(Typed::null()),
        }
    }
}
