//! From the server's expressions to `query::Expression`.
//!
//! Called for target lists, conditions, keys and arguments. The walk owns structure (boolean logic, NULL tests, CASE, IN); `functions` knows what functions and operators mean. An
//! expression without columns becomes a constant once its value is known. Invariant: an expression is translated only where `query` gives the server's value, NULL or error for every row.

use std::sync::Arc;

use pgrx::PgList;
use pgrx::pg_sys::{self, Datum, NodeTag, Oid};
use query::{Expression, Function};
use vector::{CompareOp, LogicalType, Vector};

use super::{Context, decline, functions, kept, types};
use crate::convert::{ColumnType, ColumnWriter};
use crate::vectorised::server_expression::{self, ServerExpression};
use crate::vectorised::translated::Reason;

/// Most arguments of GREATEST and LEAST: each one doubles the expression.
const MOST_COMPARED: usize = 4;

/// What the columns that an expression names stand for.
#[derive(Clone, Copy)]
pub enum Scope<'a> {
    /// Columns of a scanned table, by attribute.
    Table {
        /// The table's number in the range table.
        relid: u32,
        /// Zero-based attribute of each column.
        attributes: &'a [usize],
    },
    /// Columns of a subquery, by its target list.
    Subquery {
        /// Its number in the range table.
        relid: u32,
        /// What it gives.
        columns: &'a [Expression],
    },
    /// Target lists of the nodes below.
    Inputs {
        /// What the outer one gives.
        outer: &'a [Expression],
        /// What the inner one gives.
        inner: &'a [Expression],
    },
    /// The target list of the node below, and the window functions of this one.
    Windows {
        /// What the input gives.
        outer: &'a [Expression],
        /// Each function and what it became.
        functions: &'a [(*mut pg_sys::WindowFunc, Expression)],
    },
    /// The node's own target list, for conditions that are looked at after it was computed.
    Own {
        /// What it gives.
        columns: &'a [Expression],
    },
    /// Groups: what the input's columns that are grouped by, and the aggregates, became.
    Groups {
        /// Number of an input column (from 1) and what it became.
        keys: &'a [(i16, Expression)],
        /// By number of the aggregate.
        aggregates: &'a [Expression],
        /// Which grouping set a group is of, where there are several.
        sets: Option<Sets<'a>>,
    },
}

/// Grouping sets.
#[derive(Clone, Copy)]
pub struct Sets<'a> {
    /// The number of a group's set.
    pub number: &'a Expression,
    /// Each set's columns of the input, from 1.
    pub sets: &'a [Vec<i16>],
}

impl Sets<'_> {
    /// Whether a group's set is without one of these columns.
    pub fn without(&self, columns: &[i16]) -> Expression {
        let lacks = |set: &Vec<i16>| columns.iter().any(|column| !set.contains(column));
        let numbers = self.sets.iter().zip(0..).filter(|(set, _)| lacks(set)).map(|(_, number)| number);
        let entries = Vector::new(LogicalType::Int32, vector::Values::Int32(numbers.collect()));
        match entries.len() {
            0 => boolean(false),
            _ => Expression::In { value: Box::new(self.number.clone()), entries: Arc::new(entries) },
        }
    }

    /// `GROUPING`: a bit for each of these columns, the first the highest, that says whether a group's set is without it.
    fn grouping(&self, columns: &[i16]) -> Expression {
        let bits = |set: &Vec<i16>| {
            columns.iter().fold(0i32, |bits, column| bits << 1 | i32::from(!set.contains(column)))
        };
        let branch = |(set, number): (&Vec<i16>, i32)| {
            let sides = vec![self.number.clone(), integer(number)];
            (call(Function::Compare(CompareOp::Equal), sides, LogicalType::Bool), integer(bits(set)))
        };
        let branches = self.sets.iter().zip(0..).map(branch).collect();
        Expression::Case { branches, otherwise: None, result: LogicalType::Int32 }
    }
}

impl Scope<'_> {
    /// What a column of the server's stands for.
    fn column(&self, var: &pg_sys::Var) -> Option<Expression> {
        let position = usize::try_from(var.varattno).ok()?.checked_sub(1)?;
        match self {
            Scope::Table { relid, attributes } => {
                let own = u32::try_from(var.varno).ok()? == *relid && var.varlevelsup == 0;
                let at = attributes.iter().position(|&attribute| attribute == position)?;
                own.then_some(Expression::Column(at))
            }
            Scope::Subquery { relid, columns } => {
                let own = u32::try_from(var.varno).ok()? == *relid && var.varlevelsup == 0;
                columns.get(position).filter(|_| own).cloned()
            }
            Scope::Inputs { outer, inner } => match var.varno {
                pg_sys::OUTER_VAR => outer.get(position).cloned(),
                pg_sys::INNER_VAR => inner.get(position).cloned(),
                _ => None,
            },
            Scope::Windows { outer, .. } => {
                outer.get(position).filter(|_| var.varno == pg_sys::OUTER_VAR).cloned()
            }
            // The planner numbers these tables by chance, but not as one of the inputs.
            Scope::Own { columns } => columns.get(position).filter(|_| var.varno >= 0).cloned(),
            Scope::Groups { keys, .. } => {
                let found = keys.iter().find(|(attno, _)| *attno == var.varattno)?;
                (var.varno == pg_sys::OUTER_VAR).then(|| found.1.clone())
            }
        }
    }
}

/// `true` or `false`.
pub fn boolean(value: bool) -> Expression {
    let values = vector::Values::Bool(std::iter::once(value).collect());
    Expression::Constant(Arc::new(Vector::new(LogicalType::Bool, values)))
}

/// An integer.
pub fn integer(value: i32) -> Expression {
    let values = vector::Values::Int32(vec![value]);
    Expression::Constant(Arc::new(Vector::new(LogicalType::Int32, values)))
}

/// A value of the server's.
///
/// # Safety
/// The Datum is one of this type, or NULL.
pub unsafe fn constant(type_oid: Oid, datum: Datum, is_null: bool) -> Expression {
    // SAFETY: the caller's promise.
    unsafe {
        let mut writer = ColumnWriter::new(ColumnType::of_type(type_oid));
        writer.push_value(datum, is_null);
        Expression::Constant(Arc::new(writer.take()))
    }
}

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

/// The conditions of a node, in the server's order. Several become one where no function of the server's is called: such a function sees only rows for which all conditions before
/// it are TRUE, not NULL, because row security may be among them.
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

/// The translation of one expression. What `query` does not know is left to the server's interpreter, row by row.
///
/// # Safety
/// `node` is a valid expression of a finished plan.
pub unsafe fn expression(
    context: &mut Context<'_>,
    node: *mut pg_sys::Node,
    scope: Scope<'_>,
) -> Result<Expression, Reason> {
    // SAFETY: the caller's promise.
    let made = unsafe { translated(context, node, scope)? };
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
    let depth = context.tests.len();
    // SAFETY: the caller's promise.
    unsafe {
        own(context, node, scope).or_else(|reason| {
            context.tests.truncate(depth);
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
            _ if is_value(node) && is_certain(node) => {
                let (datum, is_null) = context.values.value(node).unwrap_or((Datum::null(), true));
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
                Ok(Expression::Coalesce(all(context, (*node.cast::<pg_sys::CoalesceExpr>()).args, scope)?))
            }
            NodeTag::T_MinMaxExpr => extreme(context, &*node.cast(), scope),
            tag => decline(format!("expression {}", format!("{tag:?}").trim_start_matches("T_"))),
        }
    }
}

/// The value of an expression without columns; None for NULL, and while it is not known.
///
/// # Safety
/// `node` is a valid expression of a finished plan.
pub unsafe fn value(context: &mut Context<'_>, node: *mut pg_sys::Node) -> Result<Option<Datum>, Reason> {
    // SAFETY: the caller's.
    let value = unsafe { value_or_null(context, node)? };
    Ok(value.and_then(|(datum, is_null)| (!is_null).then_some(datum)))
}

/// As `value`, for those to whom NULL is not the same as a value that is not known yet: the value and whether it is NULL.
///
/// # Safety
/// A valid expression.
pub unsafe fn value_or_null(
    context: &mut Context<'_>,
    node: *mut pg_sys::Node,
) -> Result<Option<(Datum, bool)>, Reason> {
    // SAFETY: the cast follows the tag.
    unsafe {
        if (*node).type_ == NodeTag::T_Const {
            let value = &*node.cast::<pg_sys::Const>();
            return Ok(Some((value.constvalue, value.constisnull)));
        }
        if !is_value(node) {
            return decline("value that depends on the row");
        }
        Ok(context.values.value(node))
    }
}

/// True for an expression that has one value for a whole execution of the node.
///
/// # Safety
/// A valid expression.
pub unsafe fn is_value(node: *mut pg_sys::Node) -> bool {
    // SAFETY: a valid expression; a CASE's own value is not one for the whole execution.
    unsafe {
        matches!((*node).type_, NodeTag::T_Const | NodeTag::T_Param)
            || !(pg_sys::contain_var_clause(node)
                || pg_sys::contain_agg_clause(node)
                || pg_sys::contain_window_function(node)
                || pg_sys::contain_subplans(node)
                || contains_case_test(node)
                || pg_sys::contain_volatile_functions(node))
    }
}

/// True for an expression without columns that may be evaluated where no row asks for it, because it does not fail: parameters, the time, and what is usually done with them.
/// Anything else is computed for the rows that reach it.
unsafe fn is_certain(node: *mut pg_sys::Node) -> bool {
    use pg_sys as p;
    // SAFETY: casts follow the tags; args are lists of expressions.
    unsafe {
        let known = |function: Oid| {
            matches!(
                function.to_u32(),
                p::F_NOW
                    | p::F_TIMESTAMPTZ_DATE
                    | p::F_TIMESTAMPTZ_TIMESTAMP
                    | p::F_TIMESTAMP_DATE
                    | p::F_TIMESTAMP_TIMESTAMPTZ
                    | p::F_DATE_TIMESTAMP
                    | p::F_DATE_TIMESTAMPTZ
                    | p::F_DATE_PLI
                    | p::F_DATE_MII
                    | p::F_DATE_PL_INTERVAL
                    | p::F_DATE_MI_INTERVAL
                    | p::F_TIMESTAMP_PL_INTERVAL
                    | p::F_TIMESTAMP_MI_INTERVAL
                    | p::F_TIMESTAMPTZ_PL_INTERVAL
                    | p::F_TIMESTAMPTZ_MI_INTERVAL
                    | p::F_INT4_INT2
                    | p::F_INT8_INT2
                    | p::F_INT8_INT4
                    | p::F_NUMERIC_INT2
                    | p::F_NUMERIC_INT4
                    | p::F_NUMERIC_INT8
                    | p::F_FLOAT8_INT4
                    | p::F_FLOAT8_FLOAT4
            )
        };
        let all = |list| PgList::<pg_sys::Node>::from_pg(list).iter_ptr().all(|part| is_certain(part));
        match (*node).type_ {
            NodeTag::T_Const | NodeTag::T_Param | NodeTag::T_SQLValueFunction => true,
            NodeTag::T_RelabelType => is_certain((*node.cast::<pg_sys::RelabelType>()).arg.cast()),
            NodeTag::T_ArrayExpr => all((*node.cast::<pg_sys::ArrayExpr>()).elements),
            NodeTag::T_FuncExpr => {
                let expr = &*node.cast::<pg_sys::FuncExpr>();
                known(expr.funcid) && all(expr.args)
            }
            NodeTag::T_OpExpr => {
                let expr = &*node.cast::<pg_sys::OpExpr>();
                known(pg_sys::get_opcode(expr.opno)) && all(expr.args)
            }
            _ => false,
        }
    }
}

/// A CASE's value appears inside, outside the CASE it belongs to.
unsafe fn contains_case_test(node: *mut pg_sys::Node) -> bool {
    unsafe extern "C-unwind" fn walk(node: *mut pg_sys::Node, _: *mut std::ffi::c_void) -> bool {
        // SAFETY: the server passes valid nodes, or null.
        unsafe {
            !node.is_null()
                && ((*node).type_ == NodeTag::T_CaseTestExpr
                    || pg_sys::expression_tree_walker(node, Some(walk), std::ptr::null_mut()))
        }
    }
    // SAFETY: a valid expression.
    unsafe { walk(node, std::ptr::null_mut()) }
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
    // SAFETY: args is a list of expressions.
    unsafe {
        let parts = all(context, expr.args, scope)?;
        match (parts.as_slice(), functions::comparison(context, expr, scope)?) {
            ([left, right], Some(equal)) => Ok((left.clone(), right.clone(), equal)),
            _ => decline("equality"),
        }
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
            false => Some(Box::new(expression(context, expr.defresult.cast(), scope)?)),
        };
        let mut branches = Vec::new();
        let test = match expr.arg.is_null() {
            true => None,
            false => Some(expression(context, expr.arg.cast(), scope)?),
        };
        for when in PgList::<pg_sys::CaseWhen>::from_pg(expr.args).iter_ptr() {
            // Only the condition sees this CASE's value.
            let depth = context.tests.len();
            context.tests.extend(test.clone());
            let condition = expression(context, (*when).expr.cast(), scope);
            context.tests.truncate(depth);
            branches.push((condition?, expression(context, (*when).result.cast(), scope)?));
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
    if parts.len() > MOST_COMPARED || !matches!(types::order(column)?, query::TextOrder::Bytes) {
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
