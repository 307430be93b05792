//! From the server's expressions to `query::Expression`.
//!
//! Called for target lists, conditions, keys and arguments. The walk owns structure (boolean logic, NULL
//! tests, CASE, IN); `functions` knows what functions and operators mean, `scope` what columns stand for, and
//! `constants` what has no columns. Invariant: an expression is translated only where `query` gives the
//! server's value, NULL or error for every row.

use pgrx::PgList;
use pgrx::pg_sys::{self, Datum, NodeTag};
use query::{Expression, Function};
use vector::{CompareOp, LogicalType};

use super::constants::{boolean, constant, integer, is_certain, is_value};
use super::scope::Scope;
use super::{Context, decline, functions, kept, types};
use crate::host::tree;
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
/// Most levels of an expression of which anything is translated: a look at the whole takes some of the
/// server's stack for each, as the server's own does.
const MOST_LEVELS: usize = 500;

/// A call of one of `query`'s functions.
pub fn call(function: Function, arguments: Vec<Expression>, result: LogicalType) -> Expression {
    Expression::Call { function, arguments, result }
}

/// A list of expressions, each translated.
///
/// # Safety
/// A list of valid expressions.
pub unsafe fn all(
    context: &mut Context<'_>,
    list: *mut pg_sys::List,
    scope: Scope<'_>,
) -> Result<Vec<Expression>, Reason> {
    // SAFETY: the caller's promise.
    unsafe {
        let list = PgList::<pg_sys::Node>::from_pg(list);
        list.iter_ptr().map(|part| expression(context, part, scope)).collect()
    }
}

/// The conditions of a node, in the server's order. Several become one where no function of the server's is
/// called: such a function sees only rows for which all conditions before it are TRUE, not NULL, because row
/// security may be among them.
///
/// # Safety
/// A list of valid boolean expressions.
pub unsafe fn conditions(
    context: &mut Context<'_>,
    list: *mut pg_sys::List,
    scope: Scope<'_>,
) -> Result<Vec<Expression>, Reason> {
    let mut stages: Vec<Vec<Expression>> = Vec::new();
    // SAFETY: the caller's promise.
    for part in unsafe { all(context, list, scope)? } {
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

/// The translation of one expression. What `query` does not know is left to the server's interpreter, row by
/// row.
///
/// # Safety
/// `node` is a valid expression of a finished plan.
pub unsafe fn expression(
    context: &mut Context<'_>,
    node: *mut pg_sys::Node,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    // SAFETY: the caller's promise.
    if context.depth == 0 && unsafe { tree::is_deeper(node, MOST_LEVELS) } {
        return decline("expression of too many levels");
    }
    context.depth += 1;
    // SAFETY: the caller's promise.
    let made = unsafe { translated(context, node, scope) };
    context.depth -= 1;
    let made = made?;
    let origin = context.origin(node);
    context.origins.note(&made, origin);
    Ok(made)
}

unsafe fn translated(
    context: &mut Context<'_>,
    node: *mut pg_sys::Node,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    if node.is_null() {
        return decline("empty expression");
    }
    let (tests, branches, doubled) = (context.tests.len(), context.branches, context.doubled);
    // SAFETY: the caller's promise.
    unsafe {
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
}

/// An expression that the server evaluates.
unsafe fn left_to_server(
    context: &mut Context<'_>,
    node: *mut pg_sys::Node,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    // SAFETY: the caller's expression, and parts of it.
    unsafe {
        let Some(parts) = server_expression::parts(node) else {
            return decline("expression that cannot be evaluated by itself");
        };
        if parts.iter().any(|&part| is_of_sub_plan(part)) && (context.branches > 0 || has_branches(node)) {
            return decline("sub-plan that not every row asks for");
        }
        let arguments = parts.iter().map(|&part| own(context, part, scope));
        let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
        let function = kept(context, node, || Some(ServerExpression::new(node, &parts)));
        let Some(function) = function else { return decline("expression") };
        Ok(Expression::Host { function, arguments, result: types::logical(pg_sys::exprType(node)) })
    }
}

/// An expression in terms of `query`.
unsafe fn own(
    context: &mut Context<'_>,
    node: *mut pg_sys::Node,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    // SAFETY: each cast follows the node's tag.
    unsafe {
        match (*node).type_ {
            NodeTag::T_Const => {
                let value = &*node.cast::<pg_sys::Const>();
                Ok(constant(value.consttype, value.constvalue, value.constisnull))
            }
            NodeTag::T_Var => match scope.column(&*node.cast()) {
                Some(column) => Ok(column),
                None => decline("column that is not one of the input's"),
            },
            NodeTag::T_Aggref => aggregate(&*node.cast(), scope),
            NodeTag::T_WindowFunc => window_function(node, scope),
            NodeTag::T_GroupingFunc => match scope {
                Scope::Groups { sets: Some(sets), .. } => {
                    let columns = (*node.cast::<pg_sys::GroupingFunc>()).cols;
                    let places = 0..usize::try_from((*columns).length).unwrap_or(0);
                    let columns = places.map(|at| (*(*columns).elements.add(at)).int_value);
                    Ok(sets
                        .grouping(&columns.filter_map(|column| column.try_into().ok()).collect::<Vec<_>>()))
                }
                Scope::Groups { sets: None, .. } => Ok(integer(0)),
                _ => decline("GROUPING outside its node"),
            },
            NodeTag::T_CaseTestExpr => match context.tests.last() {
                Some(test) => Ok(test.clone()),
                None => decline("value of a CASE outside one"),
            },
            // The server runs it when a row asks for its value, if one does, and it may fail.
            NodeTag::T_Param if context.branches > 0 && is_of_sub_plan(node) => {
                decline("sub-plan that not every row asks for")
            }
            _ if is_value(node) && is_certain(node) => {
                let (datum, is_null) = context.values.value(node)?.unwrap_or((Datum::null(), true));
                Ok(constant(pg_sys::exprType(node), datum, is_null))
            }
            NodeTag::T_RelabelType => {
                let relabel = &*node.cast::<pg_sys::RelabelType>();
                let same = types::logical(pg_sys::exprType(relabel.arg.cast()))
                    == types::logical(relabel.resulttype);
                match same {
                    true => expression(context, relabel.arg.cast(), scope),
                    false => decline("cast that changes a value's representation"),
                }
            }
            NodeTag::T_OpExpr => {
                let expr = &*node.cast::<pg_sys::OpExpr>();
                match functions::comparison(context, expr, scope) {
                    Ok(Some(comparison)) => Ok(comparison),
                    // The server's own function may still be called.
                    Ok(None) | Err(_) => {
                        let function = match expr.opfuncid {
                            pg_sys::InvalidOid => pg_sys::get_opcode(expr.opno),
                            function => function,
                        };
                        functions::function(context, node, function, expr.inputcollid, expr.args, scope)
                    }
                }
            }
            NodeTag::T_FuncExpr => {
                let expr = &*node.cast::<pg_sys::FuncExpr>();
                match expr.funcretset {
                    true => decline("set-returning function"),
                    false => {
                        functions::function(context, node, expr.funcid, expr.inputcollid, expr.args, scope)
                    }
                }
            }
            NodeTag::T_DistinctExpr => distinct(context, &*node.cast(), scope),
            NodeTag::T_NullIfExpr => null_if(context, &*node.cast(), scope),
            NodeTag::T_ScalarArrayOpExpr => functions::array(context, &*node.cast(), scope),
            NodeTag::T_BoolExpr => boolean_logic(context, &*node.cast(), scope),
            NodeTag::T_NullTest => {
                let test = &*node.cast::<pg_sys::NullTest>();
                if test.argisrow {
                    return decline("NULL test of a row");
                }
                let is_null = Expression::IsNull(Box::new(expression(context, test.arg.cast(), scope)?));
                Ok(match test.nulltesttype {
                    pg_sys::NullTestType::IS_NULL => is_null,
                    _ => Expression::Not(Box::new(is_null)),
                })
            }
            NodeTag::T_BooleanTest => boolean_test(context, &*node.cast(), scope),
            NodeTag::T_CaseExpr => case(context, &*node.cast(), scope),
            NodeTag::T_CoalesceExpr => {
                let args = PgList::<pg_sys::Node>::from_pg((*node.cast::<pg_sys::CoalesceExpr>()).args);
                let mut parts = Vec::new();
                for (at, part) in args.iter_ptr().enumerate() {
                    parts.push(match at {
                        0 => expression(context, part, scope)?,
                        _ => branch(context, part, scope)?,
                    });
                }
                Ok(Expression::Coalesce(parts))
            }
            NodeTag::T_MinMaxExpr => extreme(context, &*node.cast(), scope),
            tag => decline(format!("expression {}", format!("{tag:?}").trim_start_matches("T_"))),
        }
    }
}

/// An expression that is computed for some rows only.
unsafe fn branch(
    context: &mut Context<'_>,
    node: *mut pg_sys::Node,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    // SAFETY: the caller passes a valid expression.
    for_some_rows(context, |context| unsafe { expression(context, node, scope) })
}

/// What `translate` makes is computed for some rows only.
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
unsafe fn is_of_sub_plan(part: *mut pg_sys::Node) -> bool {
    // SAFETY: the cast follows the tag.
    unsafe {
        (*part).type_ == NodeTag::T_Param
            && (*part.cast::<pg_sys::Param>()).paramkind == pg_sys::ParamKind::PARAM_EXEC
    }
}

/// Whether parts of an expression are computed for some rows only.
unsafe fn has_branches(node: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller passes a valid expression.
    unsafe { tree::contains(node, |tag| matches!(tag, NodeTag::T_CaseExpr | NodeTag::T_CoalesceExpr)) }
}

/// Whether an expression may be written several times: those in one another would double with each level.
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

unsafe fn window_function(node: *mut pg_sys::Node, scope: Scope<'_>) -> Result<Expression, Reason> {
    let Scope::Windows { functions, .. } = scope else { return decline("window function outside its node") };
    // SAFETY: two expressions of one plan.
    let same = |other: *mut pg_sys::WindowFunc| unsafe { pg_sys::equal(node.cast(), other.cast()) };
    match functions.iter().find(|(function, _)| same(*function)) {
        Some((_, result)) => Ok(result.clone()),
        None => decline("window function of another node"),
    }
}

unsafe fn boolean_logic(
    context: &mut Context<'_>,
    expr: &pg_sys::BoolExpr,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    // SAFETY: args is a list of boolean expressions.
    let mut parts = unsafe { all(context, expr.args, scope)? };
    match expr.boolop {
        pg_sys::BoolExprType::AND_EXPR => Ok(Expression::And(parts)),
        pg_sys::BoolExprType::OR_EXPR => Ok(Expression::Or(parts)),
        _ => match parts.pop() {
            Some(part) => Ok(Expression::Not(Box::new(part))),
            None => decline("NOT of nothing"),
        },
    }
}

unsafe fn boolean_test(
    context: &mut Context<'_>,
    test: &pg_sys::BooleanTest,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    use pg_sys::BoolTestType as B;
    // SAFETY: arg is a boolean expression.
    let value = unsafe { expression(context, test.arg.cast(), scope)? };
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
unsafe fn equality(
    context: &mut Context<'_>,
    expr: &pg_sys::OpExpr,
    scope: Scope<'_>,
) -> Result<(Expression, Expression, Expression), Reason> {
    if context.doubled == MOST_DOUBLED {
        return decline("NULLIF or IS DISTINCT FROM of many levels");
    }
    context.doubled += 1;
    // SAFETY: args is a list of expressions.
    let sides = unsafe { all(context, expr.args, scope) };
    // SAFETY: as above.
    let equal = unsafe { functions::comparison(context, expr, scope) };
    context.doubled -= 1;
    match (sides?.as_slice(), equal?) {
        ([left, right], Some(equal)) if is_small(left) && is_small(right) => {
            Ok((left.clone(), right.clone(), equal))
        }
        _ => decline("equality"),
    }
}

/// `a IS DISTINCT FROM b`; the node names the operator `=`.
unsafe fn distinct(
    context: &mut Context<'_>,
    expr: &pg_sys::OpExpr,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    // SAFETY: as above.
    let (left, right, equal) = unsafe { equality(context, expr, scope)? };
    let null = |side| Expression::IsNull(Box::new(side));
    let not = |value| Expression::Not(Box::new(value));
    Ok(Expression::Case {
        branches: vec![(null(left), not(null(right.clone()))), (null(right), boolean(true))],
        otherwise: Some(Box::new(not(equal))),
        result: LogicalType::Bool,
    })
}

/// `NULLIF(a, b)`
unsafe fn null_if(
    context: &mut Context<'_>,
    expr: &pg_sys::OpExpr,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    // SAFETY: as above; a NULL of the type that the expression has.
    unsafe {
        let (left, _, equal) = equality(context, expr, scope)?;
        let null = constant(expr.opresulttype, Datum::null(), true);
        let Expression::Constant(nothing) = &null else { return decline("NULL") };
        let result = nothing.logical;
        Ok(Expression::Case { branches: vec![(equal, null)], otherwise: Some(Box::new(left)), result })
    }
}

unsafe fn case(
    context: &mut Context<'_>,
    expr: &pg_sys::CaseExpr,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    // SAFETY: the parts are expressions, the list one of CaseWhen.
    unsafe {
        let result = types::logical(expr.casetype);
        let otherwise = match expr.defresult.is_null() {
            true => None,
            false => Some(Box::new(branch(context, expr.defresult.cast(), scope)?)),
        };
        let mut branches = Vec::new();
        let test = match expr.arg.is_null() {
            true => None,
            false => Some(expression(context, expr.arg.cast(), scope)?),
        };
        if test.as_ref().is_some_and(|test| !is_small(test)) {
            return decline("CASE of a large expression");
        }
        for (at, when) in PgList::<pg_sys::CaseWhen>::from_pg(expr.args).iter_ptr().enumerate() {
            // Only the condition sees this CASE's value.
            let depth = context.tests.len();
            context.tests.extend(test.clone());
            // All rows come to the first one.
            let condition = match at {
                0 => expression(context, (*when).expr.cast(), scope),
                _ => branch(context, (*when).expr.cast(), scope),
            };
            context.tests.truncate(depth);
            branches.push((condition?, branch(context, (*when).result.cast(), scope)?));
        }
        Ok(Expression::Case { branches, otherwise, result })
    }
}

/// `GREATEST` and `LEAST`, which leave NULLs out.
unsafe fn extreme(
    context: &mut Context<'_>,
    expr: &pg_sys::MinMaxExpr,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    // SAFETY: args is a list of expressions of one type.
    let parts = unsafe { all(context, expr.args, scope)? };
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
