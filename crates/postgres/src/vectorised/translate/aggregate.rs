//! Grouping and aggregates.
//!
//! All of the server's strategies compute the same groups, so all become one operator, and so do the nodes chained for several grouping sets; where sorted grouping left its groups in order
//! and somebody may rely on it, they are sorted afterwards. Columns that depend on the grouped ones (GROUP BY a primary key) are grouped by as well, which changes no group.

use std::sync::Arc;

use pgrx::PgList;
use pgrx::pg_sys::{self, Datum, NodeTag, Oid};
use query::{
    Aggregate, AggregateFunction, Expression, Function, HostAggregate, Plan, Regression, SortKey, TextOrder,
};
use vector::LogicalType;

use super::constants;
use super::expressions::{self, call};
use super::keys::{self, Keys};
use super::scope::{Scope, Sets};
use super::sort::{self, Key};
use super::{Context, Order, Relation, decline, input, kept, percentiles, scan, target_list, targets, types};
use crate::vectorised::server_aggregate::ServerAggregate;
use crate::vectorised::translated::{OutputColumn, Reason};

/// What a node groups by.
struct Grouping {
    plan: *mut pg_sys::Plan,
    /// Grouped columns of the input (from 1), the operator and the collation.
    columns: Vec<(i16, Oid, Oid)>,
    /// Grouping sets, each by columns of the input; None for one grouping by all of them.
    sets: Option<Vec<Vec<i16>>>,
    /// Whether groups come in the order of the rows they are made of.
    sorted: bool,
    /// Groups that the planner expects, before HAVING.
    expected: f64,
}

/// An Agg node.
///
/// # Safety
/// A finished plan node.
pub unsafe fn aggregate(
    context: &mut Context<'_>,
    agg: *mut pg_sys::Agg,
    order: Order,
) -> Result<Relation, Reason> {
    // SAFETY: an Agg has arrays of numCols entries, and so has each of its chain, which stand for further grouping sets over the same input.
    unsafe {
        if (*agg).aggsplit != pg_sys::AggSplit::AGGSPLIT_SIMPLE {
            return decline("partial aggregation");
        }
        let chain = PgList::<pg_sys::Agg>::from_pg((*agg).chain);
        let mut columns: Vec<(i16, Oid, Oid)> = Vec::new();
        let mut sets = Vec::new();
        for node in std::iter::once(agg).chain(chain.iter_ptr()) {
            let own =
                columns_of((*node).numCols, (*node).grpColIdx, (*node).grpOperators, (*node).grpCollations);
            for set in PgList::<pg_sys::List>::from_pg((*node).groupingSets).iter_ptr() {
                // A set is the first columns of its node.
                let length = if set.is_null() { 0 } else { usize::try_from((*set).length).unwrap_or(0) };
                let Some(set) = own.get(..length) else { return decline("grouping set of no column") };
                sets.push(set.iter().map(|(attno, ..)| *attno).collect::<Vec<_>>());
            }
            for column in own {
                if !columns.iter().any(|(attno, ..)| *attno == column.0) {
                    columns.push(column);
                }
            }
        }
        let sorted = (*agg).aggstrategy == pg_sys::AggStrategy::AGG_SORTED && chain.is_empty();
        let sets = (!sets.is_empty()).then_some(sets);
        let (plan, expected) = (&raw mut (*agg).plan, (*agg).numGroups as f64);
        grouped(context, Grouping { plan, columns, sets, sorted, expected }, order)
    }
}

/// A Group node: GROUP BY without aggregates over sorted rows.
///
/// # Safety
/// A finished plan node.
pub unsafe fn group(
    context: &mut Context<'_>,
    group: *mut pg_sys::Group,
    order: Order,
) -> Result<Relation, Reason> {
    // SAFETY: the arrays have numCols entries.
    unsafe {
        let columns =
            columns_of((*group).numCols, (*group).grpColIdx, (*group).grpOperators, (*group).grpCollations);
        let (plan, expected) = (&raw mut (*group).plan, (*group).plan.plan_rows);
        grouped(context, Grouping { plan, columns, sets: None, sorted: true, expected }, order)
    }
}

unsafe fn columns_of(
    count: i32,
    columns: *mut i16,
    operators: *mut Oid,
    collations: *mut Oid,
) -> Vec<(i16, Oid, Oid)> {
    let places = 0..usize::try_from(count).unwrap_or(0);
    // SAFETY: the caller's arrays have `count` entries.
    unsafe { places.map(|at| (*columns.add(at), *operators.add(at), *collations.add(at))).collect() }
}

unsafe fn grouped(context: &mut Context<'_>, grouping: Grouping, order: Order) -> Result<Relation, Reason> {
    // SAFETY: the node has one input; the lists hold what their names say.
    unsafe {
        let plan = grouping.plan;
        let child = (*plan).lefttree;
        let (groups, calls) = mentioned(&grouping)?;
        let in_order = calls.iter().any(|&call| depends_on_order(&*call));
        let ordering = if grouping.sorted && order == Order::Kept {
            sort::ordering(context, child)?
        } else {
            Vec::new()
        };
        let below = input(context, child, if in_order { Order::Kept } else { Order::Any })?.plain();

        let inputs = targets(child);
        let mut keys = Keys::default();
        let mut grouped = Vec::new();
        let mut known = Vec::new();
        for (attno, collation) in groups {
            let at = usize::try_from(attno).unwrap_or(0).wrapping_sub(1);
            let (Some(&node), Some(column)) = (inputs.get(at), below.columns.get(at)) else {
                return decline("grouping by no column");
            };
            let column_type = types::column_of(node);
            if collation.is_none() && grouping.sets.is_none() && is_above_windows(child) {
                // Grouping comes before windows, so this is DISTINCT, and the column is there for the window only: nobody reads it.
                known.push((attno, constants::constant(column_type.type_oid, Datum::null(), true)));
                continue;
            }
            let collation = collation.unwrap_or(column_type.collation);
            keys.push(context, OutputColumn { collation, ..column_type }, column.clone())?;
            grouped.push(attno);
        }
        if keys.exceed_memory(grouping.expected) {
            return decline("more groups by values that only the server compares than there is memory for");
        }
        known.extend(grouped.into_iter().zip(keys.values()));
        let Keys { keys, shown: mut aggregates, .. } = keys;
        let mut numbered = Vec::new();
        for &call in &calls {
            let Ok(number) = usize::try_from((*call).aggno) else {
                return decline("aggregate without a number");
            };
            if numbered.len() <= number {
                numbered.resize(number + 1, None);
            }
            if let Some(place) = numbered.get_mut(number)
                && place.is_none()
            {
                let next = keys.len() + aggregates.len();
                *place = Some(match percentiles::several(context, call, &below.columns, next)? {
                    Some((list, parts)) => {
                        aggregates.extend(parts);
                        list
                    }
                    None => {
                        aggregates.push(one(context, &*call, &below.columns)?);
                        Expression::Column(next)
                    }
                });
            }
        }
        let numbered = numbered
            .into_iter()
            .map(|place| place.unwrap_or(Expression::Column(usize::MAX)))
            .collect::<Vec<_>>();
        let number = Expression::Column(keys.len() + aggregates.len());
        let input = Box::new(below.plan);
        let all = match &grouping.sets {
            None => Plan::Aggregate { input, keys, aggregates, groups: grouping.expected },
            Some(sets) => {
                let sets = sets.iter().map(|set| places(set, &grouping, &known)).collect();
                Plan::GroupingSets { input, keys, sets, aggregates }
            }
        };
        let sets = grouping.sets.as_deref().map(|sets| Sets { number: &number, sets });
        let scope = Scope::Groups { keys: &known, aggregates: &numbered, sets };
        let conditions = expressions::conditions(context, (*plan).qual, scope)?;
        let columns = target_list(context, plan, scope)?;
        let plan = in_order_of(scan::filtered(all, conditions), &ordering, &known, sets)?;
        Ok(Relation { plan, columns })
    }
}

/// Whether the rows of a node are those of windows, sorted or not.
unsafe fn is_above_windows(mut plan: *mut pg_sys::Plan) -> bool {
    // SAFETY: a finished plan; sorts have one input.
    unsafe {
        while matches!((*plan).type_, NodeTag::T_Sort | NodeTag::T_IncrementalSort) {
            plan = (*plan).lefttree;
        }
        (*plan).type_ == NodeTag::T_WindowAgg
    }
}

/// The keys of a grouping set by position: its own, and those that are there because they depend on what every set has.
fn places(set: &[i16], grouping: &Grouping, known: &[(i16, Expression)]) -> Vec<usize> {
    let grouped = |attno: &i16| grouping.columns.iter().any(|(column, ..)| column == attno);
    let known = known.iter().enumerate();
    known.filter(|(_, (attno, _))| set.contains(attno) || !grouped(attno)).map(|(at, _)| at).collect()
}

/// Groups brought into the order that the rows they are made of had.
pub fn in_order_of(
    plan: Plan,
    ordering: &[Key],
    known: &[(i16, Expression)],
    sets: Option<Sets<'_>>,
) -> Result<Plan, Reason> {
    let mut order = Vec::new();
    for Key { target, key } in ordering {
        let attno = i16::try_from(target + 1).unwrap_or(0);
        // What is not grouped by only orders rows within a group.
        let Some((_, expression)) = known.iter().find(|(of, _)| *of == attno) else { break };
        if let Some(sets) = sets {
            // The row that sums up groups comes after them.
            let expression = sets.without(&[attno]);
            order.push(SortKey {
                expression,
                descending: false,
                nulls_first: false,
                order: TextOrder::Bytes,
            });
        }
        order.push(keys::over(key, expression.clone()));
    }
    Ok(match order.is_empty() {
        true => plan,
        false => Plan::Sort { input: Box::new(plan), keys: order, limit: None },
    })
}

/// Input columns that are grouped by, with the collation of the grouping where it has its own, and the aggregates, that a node mentions.
type Mentioned = (Vec<(i16, Option<Oid>)>, Vec<*mut pg_sys::Aggref>);

unsafe fn mentioned(grouping: &Grouping) -> Result<Mentioned, Reason> {
    // SAFETY: as in `grouped`.
    unsafe {
        let plan = grouping.plan;
        let inputs = targets((*plan).lefttree);
        let mut groups = Vec::new();
        for &(attno, operator, collation) in &grouping.columns {
            let place = usize::try_from(attno).unwrap_or(0).wrapping_sub(1);
            let Some(&node) = inputs.get(place) else { return decline("grouping by no column") };
            if !types::is_default_equality(types::column_of(node), operator) {
                return decline("grouping by an operator of another class");
            }
            groups.push((attno, Some(collation)));
        }
        let mut calls = Vec::new();
        for list in [(*plan).targetlist, (*plan).qual] {
            let flags = pg_sys::PVC_INCLUDE_AGGREGATES | pg_sys::PVC_RECURSE_PLACEHOLDERS;
            let found = PgList::<pg_sys::Node>::from_pg(pg_sys::pull_var_clause(list.cast(), flags as i32));
            for node in found.iter_ptr() {
                match (*node).type_ {
                    NodeTag::T_Aggref => calls.push(node.cast()),
                    // It names grouped columns without reading them.
                    NodeTag::T_GroupingFunc => {}
                    _ => {
                        let var = &*node.cast::<pg_sys::Var>();
                        if !groups.iter().any(|(attno, _)| *attno == var.varattno) {
                            groups.push((var.varattno, None));
                        }
                    }
                }
            }
        }
        Ok((groups, calls))
    }
}

/// Which function an aggregate is, and the type its argument is cast to.
pub fn function(oid: u32) -> Option<(AggregateFunction, Option<LogicalType>)> {
    use AggregateFunction as A;
    use pg_sys as p;
    Some(match oid {
        p::F_COUNT_ => (A::CountRows, None),
        p::F_COUNT_ANY => (A::Count, None),
        p::F_SUM_INT2
        | p::F_SUM_INT4
        | p::F_SUM_INT8
        | p::F_SUM_FLOAT4
        | p::F_SUM_FLOAT8
        | p::F_SUM_NUMERIC => (A::Sum, None),
        p::F_AVG_INT2
        | p::F_AVG_INT4
        | p::F_AVG_INT8
        | p::F_AVG_FLOAT4
        | p::F_AVG_FLOAT8
        | p::F_AVG_NUMERIC => (A::Avg, None),
        p::F_MIN_INT2
        | p::F_MIN_INT4
        | p::F_MIN_INT8
        | p::F_MIN_FLOAT4
        | p::F_MIN_FLOAT8
        | p::F_MIN_NUMERIC
        | p::F_MIN_DATE
        | p::F_MIN_TIME
        | p::F_MIN_MONEY
        | p::F_MIN_TIMESTAMP
        | p::F_MIN_TIMESTAMPTZ
        | p::F_MIN_TEXT
        | p::F_MIN_BPCHAR => (A::Min, None),
        p::F_MAX_INT2
        | p::F_MAX_INT4
        | p::F_MAX_INT8
        | p::F_MAX_FLOAT4
        | p::F_MAX_FLOAT8
        | p::F_MAX_NUMERIC
        | p::F_MAX_DATE
        | p::F_MAX_TIME
        | p::F_MAX_MONEY
        | p::F_MAX_TIMESTAMP
        | p::F_MAX_TIMESTAMPTZ
        | p::F_MAX_TEXT
        | p::F_MAX_BPCHAR => (A::Max, None),
        p::F_BOOL_AND | p::F_EVERY => (A::BoolAnd, None),
        p::F_BOOL_OR => (A::BoolOr, None),
        _ => return variance(oid),
    })
}

/// Functions of pairs of floats.
fn regression(oid: u32) -> Option<(AggregateFunction, Option<LogicalType>)> {
    use Regression as R;
    use pg_sys as p;
    let which = match oid {
        p::F_REGR_COUNT => R::Count,
        p::F_REGR_AVGX => R::AverageX,
        p::F_REGR_AVGY => R::AverageY,
        p::F_REGR_SXX => R::SquaresX,
        p::F_REGR_SYY => R::SquaresY,
        p::F_REGR_SXY => R::Products,
        p::F_COVAR_POP => R::CovarPop,
        p::F_COVAR_SAMP => R::CovarSamp,
        p::F_CORR => R::Corr,
        p::F_REGR_R2 => R::R2,
        p::F_REGR_SLOPE => R::Slope,
        p::F_REGR_INTERCEPT => R::Intercept,
        _ => return None,
    };
    Some((AggregateFunction::Regression(which), None))
}

/// The variance family.
fn variance(oid: u32) -> Option<(AggregateFunction, Option<LogicalType>)> {
    use AggregateFunction as A;
    use pg_sys as p;
    let float = Some(LogicalType::Float64);
    Some(match oid {
        p::F_VARIANCE_FLOAT4 | p::F_VAR_SAMP_FLOAT4 => (A::VarSamp, float),
        p::F_VAR_POP_FLOAT4 => (A::VarPop, float),
        p::F_STDDEV_FLOAT4 | p::F_STDDEV_SAMP_FLOAT4 => (A::StddevSamp, float),
        p::F_STDDEV_POP_FLOAT4 => (A::StddevPop, float),
        p::F_VARIANCE_INT2
        | p::F_VARIANCE_INT4
        | p::F_VARIANCE_INT8
        | p::F_VARIANCE_FLOAT8
        | p::F_VARIANCE_NUMERIC
        | p::F_VAR_SAMP_INT2
        | p::F_VAR_SAMP_INT4
        | p::F_VAR_SAMP_INT8
        | p::F_VAR_SAMP_FLOAT8
        | p::F_VAR_SAMP_NUMERIC => (A::VarSamp, None),
        p::F_VAR_POP_INT2
        | p::F_VAR_POP_INT4
        | p::F_VAR_POP_INT8
        | p::F_VAR_POP_FLOAT8
        | p::F_VAR_POP_NUMERIC => (A::VarPop, None),
        p::F_STDDEV_INT2
        | p::F_STDDEV_INT4
        | p::F_STDDEV_INT8
        | p::F_STDDEV_FLOAT8
        | p::F_STDDEV_NUMERIC
        | p::F_STDDEV_SAMP_INT2
        | p::F_STDDEV_SAMP_INT4
        | p::F_STDDEV_SAMP_INT8
        | p::F_STDDEV_SAMP_FLOAT8
        | p::F_STDDEV_SAMP_NUMERIC => (A::StddevSamp, None),
        p::F_STDDEV_POP_INT2
        | p::F_STDDEV_POP_INT4
        | p::F_STDDEV_POP_INT8
        | p::F_STDDEV_POP_FLOAT8
        | p::F_STDDEV_POP_NUMERIC => (A::StddevPop, None),
        _ => return None,
    })
}

/// Aggregates whose result may depend on the order in which rows come, where the query does not say it: they see the input's own.
fn depends_on_order(call: &pg_sys::Aggref) -> bool {
    let oid = call.aggfnoid.to_u32();
    let any = function(oid).is_some() || regression(oid).is_some() || call.aggkind as u8 != b'n';
    call.aggorder.is_null() && call.aggdistinct.is_null() && !any
}

/// One aggregate over the input's columns. What `query` does not know is left to the server's functions.
unsafe fn one(
    context: &mut Context<'_>,
    expr: &pg_sys::Aggref,
    columns: &[Expression],
) -> Result<Aggregate, Reason> {
    // SAFETY: an aggregate of a finished plan.
    unsafe {
        let name = || super::functions::name_of(expr.aggfnoid);
        let own = match known(context, expr) {
            Ok(Some((function, cast))) => computed(context, expr, columns, (function, cast, None)),
            Ok(None) => decline(format!("aggregate {}", name())),
            Err(reason) => Err(reason),
        };
        own.or_else(|reason| {
            let node = std::ptr::from_ref(expr).cast_mut();
            match kept(context, node.cast(), || ServerAggregate::new(node, name())) {
                Some(host) => computed(context, expr, columns, (AggregateFunction::Host, None, Some(host)))
                    .map_err(|_| reason),
                None => Err(reason),
            }
        })
    }
}

/// What computes an aggregate: the function, the type its arguments are cast to, and the server's functions where it is theirs.
type By = (AggregateFunction, Option<LogicalType>, Option<Arc<ServerAggregate>>);

/// One aggregate, computed by this.
///
/// # Safety
/// An aggregate of a finished plan.
pub unsafe fn computed(
    context: &mut Context<'_>,
    expr: &pg_sys::Aggref,
    columns: &[Expression],
    (function, cast, host): By,
) -> Result<Aggregate, Reason> {
    let scope = Scope::Inputs { outer: columns, inner: &[] };
    // SAFETY: args is a list of target entries, aggfilter an expression or null.
    unsafe {
        let args = PgList::<pg_sys::TargetEntry>::from_pg(expr.args);
        let mut arguments = Vec::new();
        for arg in args.iter_ptr().filter(|arg| !(**arg).resjunk) {
            let value = expressions::expression(context, (*arg).expr.cast(), scope)?;
            arguments.push(match cast {
                Some(to) => call(Function::Cast(to), vec![value], to),
                None => value,
            });
        }
        let first = args.iter_ptr().find(|arg| !(**arg).resjunk);
        let first = first.map(|arg| types::column_of((*arg).expr.cast()));
        let distinct = !expr.aggdistinct.is_null();
        let in_order = host.is_some() || matches!(function, AggregateFunction::StringAgg);
        if distinct && !in_order {
            let (Some(column), [_]) = (first, arguments.as_slice()) else {
                return decline("DISTINCT of several arguments");
            };
            let collation =
                if column.collation == Oid::INVALID { column.collation } else { expr.inputcollid };
            let column = OutputColumn { collation, ..column };
            if let Err(reason) = types::can_equal(column) {
                // Numbers that stand for values can only be counted.
                if function != AggregateFunction::Count {
                    return Err(reason);
                }
                arguments = vec![keys::equality(context, column, arguments.remove(0))?];
            }
        }
        let order = match (function, first) {
            (AggregateFunction::Min | AggregateFunction::Max, Some(column)) => {
                types::order(OutputColumn { collation: expr.inputcollid, ..column })?
            }
            _ => TextOrder::Bytes,
        };
        let order_by = match function {
            AggregateFunction::PercentileDisc(_)
            | AggregateFunction::PercentileCont(_)
            | AggregateFunction::Mode => {
                let keys = order_by(context, expr, scope)?;
                // The result is one of the keys.
                if keys.iter().any(|key| keys::is_number(&key.expression)) {
                    return decline("percentile of a type without an order of its own");
                }
                keys
            }
            _ if in_order => order_by(context, expr, scope)?,
            _ => Vec::new(),
        };
        let filter = match expr.aggfilter.is_null() {
            true => None,
            false => Some(expressions::expression(context, expr.aggfilter.cast(), scope)?),
        };
        let result = types::logical(expr.aggtype);
        let host = host.map(|host| host as Arc<dyn HostAggregate>);
        Ok(Aggregate { function, arguments, distinct, filter, order_by, order, result, host })
    }
}

/// Which aggregate it is; those with direct arguments included.
unsafe fn known(
    context: &mut Context<'_>,
    expr: &pg_sys::Aggref,
) -> Result<Option<(AggregateFunction, Option<LogicalType>)>, Reason> {
    let oid = expr.aggfnoid.to_u32();
    let fraction = match oid {
        pg_sys::F_PERCENTILE_DISC_FLOAT8_ANYELEMENT => AggregateFunction::PercentileDisc,
        pg_sys::F_PERCENTILE_CONT_FLOAT8_FLOAT8 => AggregateFunction::PercentileCont,
        pg_sys::F_MODE => return Ok(Some((AggregateFunction::Mode, None))),
        pg_sys::F_STRING_AGG_TEXT_TEXT => return Ok(Some((AggregateFunction::StringAgg, None))),
        _ => return Ok(function(oid).or_else(|| regression(oid))),
    };
    // SAFETY: the direct argument is an expression of type float8.
    unsafe {
        Ok(match percentiles::direct(context, expr)? {
            Some(value) => {
                Some((fraction(percentiles::checked(f64::from_bits(value.value() as u64))?), None))
            }
            None => Some((fraction(0.5), None)),
        })
    }
}

/// The order an aggregate takes its values in.
unsafe fn order_by(
    context: &mut Context<'_>,
    expr: &pg_sys::Aggref,
    scope: Scope<'_>,
) -> Result<Vec<SortKey>, Reason> {
    // SAFETY: both are lists of clauses over args; values that differ are told apart in the order asked for, then in that of what else they have.
    unsafe {
        let list = if expr.aggdistinct.is_null() { expr.aggorder } else { expr.aggdistinct };
        let clauses = PgList::<pg_sys::SortGroupClause>::from_pg(list);
        clauses
            .iter_ptr()
            .map(|clause| {
                let target = pg_sys::get_sortgroupclause_tle(clause, expr.args);
                let node = (*target).expr.cast::<pg_sys::Node>();
                let column = types::column_of(node);
                if !expr.aggdistinct.is_null() && !types::is_default_equality(column, (*clause).eqop) {
                    return decline("DISTINCT by an operator of another class");
                }
                let value = expressions::expression(context, node, scope)?;
                let key = sort::sort_key(context, value, column, (*clause).sortop, (*clause).nulls_first)?;
                if !expr.aggdistinct.is_null() && !keys::is_number(&key.expression) {
                    types::can_equal(column)?;
                }
                Ok(key)
            })
            .collect()
    }
}
