//! Translates a subtree of the server's finished plan to a `query::Plan`.
//!
//! Called twice for every vectorised node: by `replace` while planning, to see whether there is a
//! translation, and by the node when it starts. One file translates each kind of node. `expressions` and
//! `functions` translate what nodes compute, and `types` says which types `query` may look at. A node that is
//! not understood becomes a source whose rows the server's executor computes. An expression that is not
//! understood declines the node above it.
//!
//! A node's result is its target list as expressions over a `query::Plan`, so that plain columns pass through
//! levels of the plan without an operator of their own. Invariant: the translation gives the rows that the
//! server's executor would give. If a reader relies on their order, it gives them in that order (`Order`).

mod aggregate;
mod append;
mod constants;
mod distinct;
mod documents;
mod expressions;
mod functions;
mod grouping;
mod join;
mod keys;
mod padding;
mod percentiles;
mod scan;
mod scope;
mod sort;
mod subplan;
pub mod types;
mod window;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use pgrx::pg_sys;
use query::{Expression, Plan};
use vector::LogicalType;

pub use scan::is_columnar;

use self::scope::Scope;
use super::translated::{Origin, Origins, Reason, SourceSpec, Translated, Values};
use crate::host::tree::{self, Node, PlanNode};

/// Declines with a reason.
fn decline<T>(reason: impl Into<Cow<'static, str>>) -> Result<T, Reason> {
    Err(Reason(reason.into()))
}

/// Whether a node's reader relies on the order of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The reader relies on it, or might.
    Kept,
    /// Any order does.
    Any,
}

/// The translation of a node.
struct Relation {
    /// The plan that runs.
    plan: Plan,
    /// Each entry of the node's target list, over the columns of `plan`.
    columns: Vec<Expression>,
}

impl Relation {
    /// A plan whose columns are exactly the target list.
    fn materialise(self) -> Plan {
        let width = self.plan.types().len();
        let plain =
            |(at, column): (usize, &Expression)| matches!(column, Expression::Column(of) if *of == at);
        match width == self.columns.len() && self.columns.iter().enumerate().all(plain) {
            true => self.plan,
            false => Plan::Project { input: Box::new(self.plan), expressions: self.columns },
        }
    }

    /// The same with every column a plain one, so that nothing is computed twice above it.
    fn plain(self) -> Self {
        if self.columns.iter().all(|column| matches!(column, Expression::Column(_))) {
            return self;
        }
        let columns = (0..self.columns.len()).map(Expression::Column).collect();
        Self { plan: self.materialise(), columns }
    }

    fn types(&self) -> Vec<LogicalType> {
        let below = self.plan.types();
        self.columns.iter().map(|column| column.logical(&below)).collect()
    }
}

/// The state of one translation.
struct Context<'a> {
    /// The statement.
    statement: tree::FinishedStatement<'a>,
    values: &'a mut dyn Values,
    sources: Vec<SourceSpec>,
    /// See `Translated`.
    idle: Vec<usize>,
    /// See there.
    alternatives: Vec<Vec<Range<usize>>>,
    /// The values that the CASEs around compare, innermost last.
    tests: Vec<Expression>,
    /// Expressions around the one that is translated.
    depth: usize,
    /// How many of these are computed for some rows only, because CASE or COALESCE may not come to them.
    branches: usize,
    /// And how many are translated twice.
    doubled: usize,
    /// The plan node that is translated, for `origin`.
    plan: *mut pg_sys::Plan,
    origins: Origins,
}

impl Context<'_> {
    /// Where an expression of the node that is translated comes from.
    const fn origin(&self, node: Node<'_>) -> Origin {
        Origin { node: node.as_ptr(), plan: self.plan }
    }
}

/// The value that stands for a function of the server's that a part of the plan calls. It is the one kept
/// from an earlier start, or else it is made now.
fn kept<T: Send + Sync + 'static>(
    context: &mut Context<'_>,
    node: Node<'_>,
    make: impl FnOnce() -> Option<Arc<T>>,
) -> Option<Arc<T>> {
    let node = node.as_ptr();
    let Some(kept) = context.values.kept() else { return make() };
    let known = kept.all().find(|(of, _)| *of == node);
    known.map(|(_, function)| function).or_else(|| kept.make(node, make))
}

/// The translation of a subtree of a finished plan, given its statement. The addresses in it
/// are those of the plan's nodes.
///
/// # Errors
/// The reason why there is none.
pub fn translate(
    plan: tree::Plan<'_>,
    statement: tree::FinishedStatement<'_>,
    values: &mut dyn Values,
) -> Result<Translated, Reason> {
    let mut context = Context {
        statement,
        values,
        sources: Vec::new(),
        idle: Vec::new(),
        alternatives: Vec::new(),
        tests: Vec::new(),
        depth: 0,
        branches: 0,
        doubled: 0,
        plan: plan.as_ptr(),
        origins: Origins::default(),
    };
    let relation = operator(&mut context, plan, Order::Kept)?;
    let columns = targets(plan).into_iter().map(types::column_of).collect::<Vec<_>>();
    let found = relation.types();
    for (column, logical) in columns.iter().zip(&found) {
        if types::logical(column.type_oid) != *logical {
            return decline("a column changes its representation");
        }
    }
    Ok(Translated {
        plan: query::settled(query::simplify(relation.materialise())),
        sources: context.sources,
        idle: context.idle,
        alternatives: context.alternatives,
        columns,
        origins: context.origins,
    })
}

/// The expressions of a node's target list.
fn targets(plan: tree::Plan<'_>) -> Vec<Node<'_>> {
    plan.targets().iter().map(|target| target.expr()).collect()
}

/// A node's target list over what its scope gives.
fn target_list(
    context: &mut Context<'_>,
    plan: tree::Plan<'_>,
    scope: Scope<'_>,
) -> Result<Vec<Expression>, Reason> {
    let targets = plan.targets().iter();
    targets.map(|target| expressions::expression(context, target.expr(), scope)).collect()
}

/// The input of an operator: another operator of ours, or else a source of rows.
fn input(context: &mut Context<'_>, plan: tree::Plan<'_>, order: Order) -> Result<Relation, Reason> {
    let (sources, tests) = (context.sources.len(), context.tests.len());
    operator(context, plan, order).or_else(|_| {
        context.sources.truncate(sources);
        context.idle.retain(|&source| source < sources);
        context.alternatives.retain(|inputs| inputs.iter().all(|input| input.end <= sources));
        context.tests.truncate(tests);
        rows(context, plan)
    })
}

/// A node that an operator of ours replaces.
fn operator(context: &mut Context<'_>, plan: tree::Plan<'_>, order: Order) -> Result<Relation, Reason> {
    let above = std::mem::replace(&mut context.plan, plan.as_ptr());
    let relation = match plan.kind() {
        PlanNode::Agg(agg) => grouping::aggregate(context, agg, order),
        PlanNode::Group(group) => grouping::group(context, group, order),
        PlanNode::Unique(unique) => distinct::unique(context, unique, order),
        PlanNode::SetOp(operation) => distinct::set_operation(context, operation, order),
        PlanNode::Sort(sort) | PlanNode::IncrementalSort(sort) => sort::sort(context, sort, order),
        PlanNode::Limit(limit) => sort::limit(context, limit),
        PlanNode::HashJoin(join) => join::hash_join(context, join),
        PlanNode::MergeJoin(join) => join::merge_join(context, join, order),
        PlanNode::NestLoop(join) => join::nested_loop(context, join, order),
        PlanNode::WindowAgg(window) => window::window(context, window),
        PlanNode::Append(append) => append::append(context, append, order),
        PlanNode::MergeAppend(append) => append::merge_append(context, append, order),
        PlanNode::SubqueryScan(scan) => scan::subquery(context, scan, order),
        // Its rows are its input's; what it is for, restarting, the node does by itself.
        PlanNode::Material(_) => input(context, plan.input(), order),
        PlanNode::Result(result) => scan::result(context, result, order),
        PlanNode::CustomScan(scan) if scan::is_columnar(plan) => scan::columnar(context, scan),
        _ => decline("node without a vectorised counterpart"),
    };
    context.plan = above;
    relation
}

/// The rows of a node that stays the server's.
fn rows(context: &mut Context<'_>, plan: tree::Plan<'_>) -> Result<Relation, Reason> {
    let types: Vec<_> =
        plan.targets().iter().map(|target| types::logical(target.expr().type_oid())).collect();
    let source = context.sources.len();
    context.sources.push(SourceSpec::Rows { plan: plan.as_ptr() });
    let columns = (0..types.len()).map(Expression::Column).collect();
    Ok(Relation { plan: Plan::Scan { source, types }, columns })
}
