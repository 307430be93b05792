//! From the server's expressions to `query::Expression`.
//!
//! Called for target lists, conditions, keys and arguments. The walk owns structure (boolean logic, NULL
//! tests, CASE, IN). `functions` knows what functions and operators mean, `scope` knows what columns stand
//! for, and `constants` translates expressions without columns. Invariant: an expression is translated only
//! where `query` gives the server's value, NULL or error for every row.

use pgrx::pg_sys::{self, NodeTag};
use query::{Expression, Function};
use vector::{CompareOp, LogicalType};

use super::constants::{self, boolean, constant, integer, is_certain, is_value};
use super::scope::Scope;
use super::{Context, decline, functions, kept, types};
use crate::host::tree::{Expression as E, List, Node, Typed};
use crate::vectorised::server_expression::{self, ServerExpression};
use crate::vectorised::translated::Reason;

/// Most arguments of GREATEST and LEAST: each one doubles the expression.
const MOST_COMPARED: usize = 4;
/// Most levels of what is translated twice, in one another.
const MOST_DOUBLED: usize = 6;
/// Most parts of an expression that is to be written several times.
const SMALL: usize = 64;
/// Most levels of an expression that `query` computes, in frames of some kilobytes on the stack of a thread.
/// What is below is left to the server.
const DEEPEST: usize = 200;
/// An expression with more levels is not translated at all. A walk over the whole expression takes some of
/// the server's stack for each level, as the server's own walks do.
const MOST_LEVELS: usize = 500;

/// A call of one of `query`'s functions.
pub fn call(function: Function, arguments: Vec<Expression>, result: LogicalType) -> Expression {
    Expression::Call { function, arguments, result }
}

/// A list of expressions, each translated.
pub fn all(context: &mut Context<'_>, list: List<'_>, scope: Scope<'_>) -> Result<Vec<Expression>, Reason> {
    list.iter().map(|part| expression(context, part, scope)).collect()
}

/// The conditions of a node, in the server's order. Several conditions become one if none of them calls a
/// function of the server. Such a function may see only rows for which all conditions before it are TRUE, not
/// NULL, because row security may be among these.
pub fn conditions<'a>(
    context: &mut Context<'_>,
    conditions: impl IntoIterator<Item = Node<'a>>,
    scope: Scope<'_>,
) -> Result<Vec<Expression>, Reason> {
    let parts = conditions.into_iter().map(|part| expression(context, part, scope));
    let mut stages: Vec<Vec<Expression>> = Vec::new();
    for part in parts.collect::<Result<Vec<_>, _>>()? {
        match stages.last_mut() {
            Some(stage) if !part.needs_host() => stage.push(part),
            _ => stages.push(vec![part]),
        }
    }
    let together = |mut parts: Vec<Expression>| match parts.len() {
        1 => parts.pop(),
        _ => Some(Expression::And(parts)),
    };
    Ok(stages.into_iter().filter_map(together).collect())
}

/// The translation of one expression of a finished plan. What `query` does not know is left to the server's
/// interpreter, row by row.
pub fn expression(context: &mut Context<'_>, node: Node<'_>, scope: Scope<'_>) -> Result<Expression, Reason> {
    if context.depth == 0 && node.is_deeper(MOST_LEVELS) {
        return decline("expression of too many levels");
    }
    context.depth += 1;
    let made = translated(context, node, scope);
    context.depth -= 1;
    let made = made?;
    let origin = context.origin(node);
    context.origins.note(&made, origin);
    Ok(made)
}

fn translated(context: &mut Context<'_>, node: Node<'_>, scope: Scope<'_>) -> Result<Expression, Reason> {
    let (tests, branches, doubled) = (context.tests.len(), context.branches, context.doubled);
    let made = match context.depth > DEEPEST {
        true => decline("expression of too many levels"),
        false => own(context, node, scope),
    };
    made.or_else(|reason| {
        context.tests.truncate(tests);
        (context.branches, context.doubled) = (branches, doubled);
        left_to_server(context, node, scope).map_err(|_| reason)
    })
}

/// An expression that the server evaluates.
fn left_to_server(context: &mut Context<'_>, node: Node<'_>, scope: Scope<'_>) -> Result<Expression, Reason> {
    let Some(parts) = server_expression::parts(node) else {
        return decline("expression that cannot be evaluated by itself");
    };
    if parts.iter().any(|&part| is_of_sub_plan(part)) && (context.branches > 0 || has_branches(node)) {
        return decline("sub-plan that not every row asks for");
    }
    let arguments = parts.iter().map(|&part| own(context, part, scope));
    let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
    // SAFETY: `kept` calls this in a memory that lives as long as what it keeps.
    let make = || Some(unsafe { ServerExpression::new(node, &parts) });
    let Some(function) = kept(context, node, make) else { return decline("expression") };
    Ok(Expression::Host { function, arguments, result: types::logical(node.type_oid()) })
}

/// An expression in terms of `query`.
fn own(context: &mut Context<'_>, node: Node<'_>, scope: Scope<'_>) -> Result<Expression, Reason> {
    match node.expression() {
        E::Const(value) => Ok(constants::of_const(value)),
        E::Var(column) => match scope.column(&column) {
            Some(column) => Ok(column),
            None => decline("column that is not one of the input's"),
        },
        E::Aggref(call) => aggregate(&call, scope),
        E::WindowFunc(call) => window_function(call, scope),
        E::GroupingFunc(call) => grouping(call, scope),
        E::CaseTestExpr(_) => match context.tests.last() {
            Some(test) => Ok(test.clone()),
            None => decline("value of a CASE outside one"),
        },
        // The server runs it when a row asks for its value, if one does, and it may fail.
        E::Param(_) if context.branches > 0 && is_of_sub_plan(node) => {
            decline("sub-plan that not every row asks for")
        }
        _ if is_value(node) && is_certain(node) => known(context, node),
        E::RelabelType(relabel) => relabelled(context, relabel, scope),
        E::OpExpr(call) => operator(context, call, scope),
        E::FuncExpr(call) if call.funcretset => decline("set-returning function"),
        E::FuncExpr(call) => {
            functions::function(context, node, call.funcid, call.inputcollid, call.args(), scope)
        }
        E::DistinctExpr(sides) => distinct(context, sides, scope),
        E::NullIfExpr(sides) => null_if(context, sides, scope),
        E::ScalarArrayOpExpr(test) => functions::array(context, test, scope),
        E::BoolExpr(expr) => boolean_logic(context, expr, scope),
        E::NullTest(test) => null_test(context, test, scope),
        E::BooleanTest(test) => boolean_test(context, test, scope),
        E::CaseExpr(expr) => case(context, expr, scope),
        E::CoalesceExpr(expr) => coalesce(context, expr, scope),
        E::MinMaxExpr(expr) => extreme(context, expr, scope),
        _ => decline(format!("expression {}", kind_of(node))),
    }
}

/// The server's name of a kind of expression.
fn kind_of(node: Node<'_>) -> String {
    format!("{:?}", node.tag()).trim_start_matches("T_").to_string()
}

/// An expression without columns: its value, or NULL while that is not known.
fn known(context: &mut Context<'_>, node: Node<'_>) -> Result<Expression, Reason> {
    match context.values.value(node)? {
        // SAFETY: a value of the expression's type.
        Some((value, is_null)) => Ok(unsafe { constant(node.type_oid(), value, is_null) }),
        None => Ok(constants::null(node.type_oid())),
    }
}

/// `GROUPING`
fn grouping(call: Typed<'_, pg_sys::GroupingFunc>, scope: Scope<'_>) -> Result<Expression, Reason> {
    match scope {
        Scope::Groups { sets: Some(sets), .. } => {
            let columns = call.columns().iter().filter_map(|column| column.try_into().ok());
            Ok(sets.grouping(&columns.collect::<Vec<_>>()))
        }
        Scope::Groups { sets: None, .. } => Ok(integer(0)),
        _ => decline("GROUPING outside its node"),
    }
}

/// A cast that only says that a value is of another type.
fn relabelled(
    context: &mut Context<'_>,
    relabel: Typed<'_, pg_sys::RelabelType>,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    match types::logical(relabel.arg().type_oid()) == types::logical(relabel.resulttype) {
        true => expression(context, relabel.arg(), scope),
        false => decline("cast that changes a value's representation"),
    }
}

/// A comparison, or else a call of the operator's function.
fn operator(
    context: &mut Context<'_>,
    call: Typed<'_, pg_sys::OpExpr>,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    match functions::comparison(context, call, scope) {
        Ok(Some(comparison)) => Ok(comparison),
        // The server's own function may still be called.
        Ok(None) | Err(_) => {
            let function = match call.opfuncid {
                // SAFETY: a catalog look-up.
                pg_sys::InvalidOid => unsafe { pg_sys::get_opcode(call.opno) },
                function => function,
            };
            functions::function(context, call.node(), function, call.inputcollid, call.args(), scope)
        }
    }
}

fn null_test(
    context: &mut Context<'_>,
    test: Typed<'_, pg_sys::NullTest>,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    if test.argisrow {
        return decline("NULL test of a row");
    }
    let is_null = Expression::IsNull(Box::new(expression(context, test.arg(), scope)?));
    Ok(match test.nulltesttype {
        pg_sys::NullTestType::IS_NULL => is_null,
        _ => Expression::Not(Box::new(is_null)),
    })
}

fn coalesce(
    context: &mut Context<'_>,
    expr: Typed<'_, pg_sys::CoalesceExpr>,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    let mut parts = Vec::new();
    for (at, part) in expr.args().iter().enumerate() {
        parts.push(match at {
            0 => expression(context, part, scope)?,
            _ => branch(context, part, scope)?,
        });
    }
    Ok(Expression::Coalesce(parts))
}

/// An expression that is computed for some rows only.
fn branch(context: &mut Context<'_>, node: Node<'_>, scope: Scope<'_>) -> Result<Expression, Reason> {
    for_some_rows(context, |context| expression(context, node, scope))
}

/// Runs `translate` for an expression that is computed for some rows only.
pub fn for_some_rows<T>(
    context: &mut Context<'_>,
    translate: impl FnOnce(&mut Context<'_>) -> Result<T, Reason>,
) -> Result<T, Reason> {
    context.branches += 1;
    let made = translate(context);
    context.branches -= 1;
    made
}

/// Whether a part of an expression is the value of a sub-plan, which may fail.
fn is_of_sub_plan(part: Node<'_>) -> bool {
    matches!(part.expression(), E::Param(param) if param.paramkind == pg_sys::ParamKind::PARAM_EXEC)
}

/// Whether parts of an expression are computed for some rows only.
fn has_branches(node: Node<'_>) -> bool {
    node.contains(|tag| matches!(tag, NodeTag::T_CaseExpr | NodeTag::T_CoalesceExpr))
}

/// Whether an expression may be written several times. Expressions inside one another would double with each
/// level.
fn is_small(expression: &Expression) -> bool {
    fn rest(expression: &Expression, left: usize) -> Option<usize> {
        let left = left.checked_sub(1)?;
        expression.children().into_iter().try_fold(left, |left, child| rest(child, left))
    }
    rest(expression, SMALL).is_some()
}

fn aggregate(expr: &pg_sys::Aggref, scope: Scope<'_>) -> Result<Expression, Reason> {
    let Scope::Groups { aggregates, .. } = scope else { return decline("aggregate outside its node") };
    match usize::try_from(expr.aggno).ok().and_then(|number| aggregates.get(number)) {
        Some(aggregate) => Ok(aggregate.clone()),
        None => decline("aggregate without a number"),
    }
}

fn window_function(call: Typed<'_, pg_sys::WindowFunc>, scope: Scope<'_>) -> Result<Expression, Reason> {
    let Scope::Windows { functions, .. } = scope else { return decline("window function outside its node") };
    match functions.iter().find(|(function, _)| call.node().equals(function.node())) {
        Some((_, result)) => Ok(result.clone()),
        None => decline("window function of another node"),
    }
}

fn boolean_logic(
    context: &mut Context<'_>,
    expr: Typed<'_, pg_sys::BoolExpr>,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    let mut parts = all(context, expr.args(), scope)?;
    match expr.boolop {
        pg_sys::BoolExprType::AND_EXPR => Ok(Expression::And(parts)),
        pg_sys::BoolExprType::OR_EXPR => Ok(Expression::Or(parts)),
        _ => match parts.pop() {
            Some(part) => Ok(Expression::Not(Box::new(part))),
            None => decline("NOT of nothing"),
        },
    }
}

fn boolean_test(
    context: &mut Context<'_>,
    test: Typed<'_, pg_sys::BooleanTest>,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    use pg_sys::BoolTestType as B;
    let value = expression(context, test.arg(), scope)?;
    let or = |value, other| Expression::Coalesce(vec![value, boolean(other)]);
    let not = |value| Expression::Not(Box::new(value));
    Ok(match test.booltesttype {
        B::IS_TRUE => or(value, false),
        B::IS_NOT_TRUE => not(or(value, false)),
        B::IS_FALSE => not(or(value, true)),
        B::IS_NOT_FALSE => or(value, true),
        B::IS_UNKNOWN => Expression::IsNull(Box::new(value)),
        _ => not(Expression::IsNull(Box::new(value))),
    })
}

/// The two sides of a comparison and their equality.
fn equality(
    context: &mut Context<'_>,
    expr: Typed<'_, pg_sys::OpExpr>,
    scope: Scope<'_>,
) -> Result<(Expression, Expression, Expression), Reason> {
    if context.doubled == MOST_DOUBLED {
        return decline("NULLIF or IS DISTINCT FROM of many levels");
    }
    context.doubled += 1;
    let sides = all(context, expr.args(), scope);
    let equal = functions::comparison(context, expr, scope);
    context.doubled -= 1;
    match (sides?.as_slice(), equal?) {
        ([left, right], Some(equal)) if is_small(left) && is_small(right) => {
            Ok((left.clone(), right.clone(), equal))
        }
        _ => decline("equality"),
    }
}

/// `a IS DISTINCT FROM b`; the node names the operator `=`.
fn distinct(
    context: &mut Context<'_>,
    expr: Typed<'_, pg_sys::OpExpr>,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    let (left, right, equal) = equality(context, expr, scope)?;
    let null = |side| Expression::IsNull(Box::new(side));
    let not = |value| Expression::Not(Box::new(value));
    Ok(Expression::Case {
        branches: vec![(null(left), not(null(right.clone()))), (null(right), boolean(true))],
        otherwise: Some(Box::new(not(equal))),
        result: LogicalType::Bool,
    })
}

/// `NULLIF(a, b)`
fn null_if(
    context: &mut Context<'_>,
    expr: Typed<'_, pg_sys::OpExpr>,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    let (left, _, equal) = equality(context, expr, scope)?;
    let null = constants::null(expr.opresulttype);
    let Expression::Constant(nothing) = &null else { return decline("NULL") };
    let result = nothing.logical;
    Ok(Expression::Case { branches: vec![(equal, null)], otherwise: Some(Box::new(left)), result })
}

fn case(
    context: &mut Context<'_>,
    expr: Typed<'_, pg_sys::CaseExpr>,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    let result = types::logical(expr.casetype);
    let otherwise = match expr.otherwise() {
        None => None,
        Some(otherwise) => Some(Box::new(branch(context, otherwise, scope)?)),
    };
    let mut branches = Vec::new();
    let test = match expr.arg() {
        None => None,
        Some(test) => Some(expression(context, test, scope)?),
    };
    if test.as_ref().is_some_and(|test| !is_small(test)) {
        return decline("CASE of a large expression");
    }
    for (at, when) in expr.branches().iter().enumerate() {
        // Only the condition sees this CASE's value.
        let depth = context.tests.len();
        context.tests.extend(test.clone());
        // All rows come to the first one.
        let condition = match at {
            0 => expression(context, when.condition(), scope),
            _ => branch(context, when.condition(), scope),
        };
        context.tests.truncate(depth);
        branches.push((condition?, branch(context, when.result(), scope)?));
    }
    Ok(Expression::Case { branches, otherwise, result })
}

/// `GREATEST` and `LEAST`, which leave NULLs out.
fn extreme(
    context: &mut Context<'_>,
    expr: Typed<'_, pg_sys::MinMaxExpr>,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    let parts = all(context, expr.args(), scope)?;
    let column = crate::vectorised::translated::OutputColumn {
        type_oid: expr.minmaxtype,
        typmod: -1,
        collation: expr.inputcollid,
    };
    if parts.len() > MOST_COMPARED
        || !parts.iter().all(is_small)
        || !matches!(types::order(column)?, query::TextOrder::Bytes)
    {
        return decline("GREATEST or LEAST of many or of collated values");
    }
    let op = match expr.op {
        pg_sys::MinMaxOp::IS_GREATEST => CompareOp::Greater,
        _ => CompareOp::Less,
    };
    let result = types::logical(expr.minmaxtype);
    let best = parts.into_iter().reduce(|best, next| {
        let null = |value: &Expression| Expression::IsNull(Box::new(value.clone()));
        let better = call(Function::Compare(op), vec![next.clone(), best.clone()], LogicalType::Bool);
        Expression::Case {
            branches: vec![(null(&next), best.clone()), (null(&best), next.clone()), (better, next)],
            otherwise: Some(Box::new(best)),
            result,
        }
    });
    match best {
        Some(best) => Ok(best),
        None => decline("GREATEST of nothing"),
    }
}
