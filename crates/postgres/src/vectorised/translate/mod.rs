//! From a subtree of the server's finished plan to a `query::Plan`.
//!
//! Called twice for every vectorised node: by `replace` while planning, to see whether there is a
//! translation, and by the node when it starts. One file translates each kind of node; `expressions` and
//! `functions` what nodes compute, `types` says which types may be looked at. A node that is not understood
//! becomes a source whose rows the server's executor computes; an expression that is not understood declines
//! the node above it.
//!
//! A node's result is its target list as expressions over a `query::Plan`, so that plain columns pass through
//! levels of the plan without an operator of their own.
//! Invariant: the translation gives the rows that the server's executor would give, in an order that serves
//! whoever relies on one (`Order`).

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

use pgrx::PgList;
use pgrx::pg_sys::{self, NodeTag};
use query::{Expression, Plan};
use vector::LogicalType;

pub use scan::is_columnar;

use self::scope::Scope;
use super::translated::{Origin, Origins, Reason, SourceSpec, Translated, Values};

/// Declines with a reason.
fn decline<T>(reason: impl Into<Cow<'static, str>>) -> Result<T, Reason> {
    Err(Reason(reason.into()))
}

/// Whether a node's reader relies on the order of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// It does, or might.
    Kept,
    /// Any order does.
    Any,
}

/// What a node gives.
struct Relation {
    /// What runs.
    plan: Plan,
    /// Each entry of the node's target list, over the columns of `plan`.
    columns: Vec<Expression>,
}

impl Relation {
    /// The plan whose columns are just the target list.
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

/// What one translation gathers.
struct Context<'a> {
    /// The plans of the statement's sub-plans.
    subplans: *mut pg_sys::List,
    values: &'a mut dyn Values,
    sources: Vec<SourceSpec>,
    /// See `Translated`.
    idle: Vec<usize>,
    /// See there.
    alternatives: Vec<Vec<Range<usize>>>,
    /// What a CASE compares, innermost last.
    tests: Vec<Expression>,
    /// Expressions around the one that is translated.
    depth: usize,
    /// Of these, how many are computed for some rows only: what CASE and COALESCE may not come to.
    branches: usize,
    /// And how many are translated twice.
    doubled: usize,
    /// The plan node that is translated.
    plan: *mut pg_sys::Plan,
    origins: Origins,
}

impl Context<'_> {
    /// Where an expression of the node that is translated comes from.
    const fn origin(&self, node: *mut pg_sys::Node) -> Origin {
        Origin { node, plan: self.plan }
    }
}

/// What stands for a function of the server's that a part of the plan calls: what was kept from an earlier
/// start, or else made now.
fn kept<T: Send + Sync + 'static>(
    context: &mut Context<'_>,
    node: *mut pg_sys::Node,
    make: impl FnOnce() -> Option<Arc<T>>,
) -> Option<Arc<T>> {
    let Some(kept) = context.values.kept() else { return make() };
    let known = kept.all().find(|(of, _)| *of == node);
    known.map(|(_, function)| function).or_else(|| kept.make(node, make))
}

/// The translation of a plan subtree.
///
/// # Errors
/// The reason why there is none.
///
/// # Safety
/// `plan` is a finished plan of the server that outlives the result, as do `subplans`, the sub-plans of its
/// statement.
pub unsafe fn translate(
    plan: *mut pg_sys::Plan,
    subplans: *mut pg_sys::List,
    values: &mut dyn Values,
) -> Result<Translated, Reason> {
    let mut context = Context {
        subplans,
        values,
        sources: Vec::new(),
        idle: Vec::new(),
        alternatives: Vec::new(),
        tests: Vec::new(),
        depth: 0,
        branches: 0,
        doubled: 0,
        plan,
        origins: Origins::default(),
    };
    // SAFETY: the caller's promise.
    unsafe {
        let relation = operator(&mut context, plan, Order::Kept)?;
        let columns = targets(plan).iter().map(|&target| types::column_of(target)).collect::<Vec<_>>();
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
}

/// The expressions of a node's target list.
unsafe fn targets(plan: *mut pg_sys::Plan) -> Vec<*mut pg_sys::Node> {
    // SAFETY: a list of target entries.
    unsafe {
        let list = PgList::<pg_sys::TargetEntry>::from_pg((*plan).targetlist);
        list.iter_ptr().map(|target| (*target).expr.cast()).collect()
    }
}

/// A node's target list over what its scope gives.
unsafe fn target_list(
    context: &mut Context<'_>,
    plan: *mut pg_sys::Plan,
    scope: Scope<'_>,
) -> Result<Vec<Expression>, Reason> {
    // SAFETY: the caller passes a plan node; its targets are expressions.
    unsafe {
        let targets = targets(plan).into_iter();
        targets.map(|target| expressions::expression(context, target, scope)).collect()
    }
}

/// The input of an operator: another operator of ours, or else a source of rows.
unsafe fn input(
    context: &mut Context<'_>,
    plan: *mut pg_sys::Plan,
    order: Order,
) -> Result<Relation, Reason> {
    let (sources, tests) = (context.sources.len(), context.tests.len());
    // SAFETY: the caller passes a plan node.
    unsafe {
        operator(context, plan, order).or_else(|_| {
            context.sources.truncate(sources);
            context.idle.retain(|&source| source < sources);
            context.alternatives.retain(|inputs| inputs.iter().all(|input| input.end <= sources));
            context.tests.truncate(tests);
            rows(context, plan)
        })
    }
}

/// A node that an operator of ours replaces.
unsafe fn operator(
    context: &mut Context<'_>,
    plan: *mut pg_sys::Plan,
    order: Order,
) -> Result<Relation, Reason> {
    let above = std::mem::replace(&mut context.plan, plan);
    // SAFETY: casts follow the node's tag.
    let relation = unsafe {
        match (*plan).type_ {
            NodeTag::T_Agg => grouping::aggregate(context, plan.cast(), order),
            NodeTag::T_Group => grouping::group(context, plan.cast(), order),
            NodeTag::T_Unique => distinct::unique(context, plan.cast(), order),
            NodeTag::T_SetOp => distinct::set_operation(context, plan.cast(), order),
            NodeTag::T_Sort | NodeTag::T_IncrementalSort => sort::sort(context, plan.cast(), order),
            NodeTag::T_Limit => sort::limit(context, plan.cast()),
            NodeTag::T_HashJoin => join::hash_join(context, plan.cast()),
            NodeTag::T_MergeJoin => join::merge_join(context, plan.cast(), order),
            NodeTag::T_NestLoop => join::nested_loop(context, plan.cast(), order),
            NodeTag::T_WindowAgg => window::window(context, plan.cast()),
            NodeTag::T_Append => append::append(context, plan.cast(), order),
            NodeTag::T_MergeAppend => append::merge_append(context, plan.cast(), order),
            NodeTag::T_SubqueryScan => scan::subquery(context, plan.cast(), order),
            // Its rows are its input's; what it is for, restarting, the node does by itself.
            NodeTag::T_Material => input(context, (*plan).lefttree, order),
            NodeTag::T_Result => scan::result(context, plan.cast(), order),
            NodeTag::T_CustomScan if scan::is_columnar(plan) => scan::columnar(context, plan.cast()),
            _ => decline("node without a vectorised counterpart"),
        }
    };
    context.plan = above;
    relation
}

/// The rows of a node that stays the server's.
unsafe fn rows(context: &mut Context<'_>, plan: *mut pg_sys::Plan) -> Result<Relation, Reason> {
    // SAFETY: a plan node with its target list.
    unsafe {
        let columns = targets(plan);
        let types: Vec<_> = columns.iter().map(|&target| types::logical(pg_sys::exprType(target))).collect();
        let source = context.sources.len();
        context.sources.push(SourceSpec::Rows { plan });
        let columns = (0..types.len()).map(Expression::Column).collect();
        Ok(Relation { plan: Plan::Scan { source, types }, columns })
    }
}
