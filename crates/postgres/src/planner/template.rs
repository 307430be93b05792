//! From a WHERE clause to a predicate template: the shape of a `vector::Predicate` whose constants are still
//! expressions.
//!
//! Called twice for each clause. The planner asks which clauses can be filtered natively, and what the known
//! constants prune. The scan translates the clauses of the finished plan again when the node starts.
//!
//! The tree walk here owns the structure: AND, OR, NOT pushed to the leaves, NULL tests, truth tests, arrays.
//! `operand` owns which columns and operators are understood, and `constant` the comparison of a column with
//! a value.
//!
//! Clauses come in the server's own simplified form: AND and OR are flattened, constants folded, and
//! operators may be commuted.
//!
//! Invariant: a template is TRUE wherever its clause is TRUE. `Unknown` marks a part that is not understood.
//! A template without `Unknown` whose leaves all turn out exact is TRUE *only* where the clause is TRUE. Such
//! a clause needs no further check.

use pgrx::pg_sys;
use vector::CompareOp;

use super::like;
use super::operand::{self, Column, Operator};
use crate::host::tree::{Expression as E, Node, Typed};

/// A clause whose constants are not evaluated yet. Node pointers live as long as the clause that they point
/// into.
#[derive(Debug)]
pub enum Template {
    /// Says nothing: it is TRUE, and never exact.
    Unknown,
    /// TRUE for every row, or for none.
    Known(bool),
    /// TRUE if all parts are.
    And(Vec<Template>),
    /// TRUE if one part is.
    Or(Vec<Template>),
    /// Column is (not) NULL.
    Null {
        /// Column asked.
        column: Column,
        /// IS NULL, or IS NOT NULL.
        is_null: bool,
    },
    /// A boolean column has this value.
    Truth {
        /// Column asked.
        column: Column,
        /// Value wanted.
        value: bool,
    },
    /// Column compared with one value.
    Compare {
        /// Column compared.
        column: Column,
        /// How (column on the left).
        op: CompareOp,
        /// Expression of the value, without columns of this relation.
        value: *mut pg_sys::Node,
        /// The type the operator takes the value as.
        value_type: pg_sys::Oid,
    },
    /// Column compared with the elements of an array.
    Elements {
        /// Column compared.
        column: Column,
        /// How (column on the left).
        op: CompareOp,
        /// The comparison must hold for one element, or else for all.
        any: bool,
        /// Expression of the array.
        array: *mut pg_sys::Node,
        /// Type of its elements.
        element_type: pg_sys::Oid,
    },
    /// Text matches a LIKE pattern.
    Like {
        /// Column matched.
        column: Column,
        /// Expression of the pattern.
        pattern: *mut pg_sys::Node,
    },
    /// Text starts with a value.
    StartsWith {
        /// Column matched.
        column: Column,
        /// Expression of the prefix.
        prefix: *mut pg_sys::Node,
    },
}

impl Template {
    /// True if evaluating the template can prune or filter anything.
    pub fn is_useful(&self) -> bool {
        match self {
            Self::Unknown => false,
            Self::And(parts) => parts.iter().any(Self::is_useful),
            Self::Or(parts) => parts.iter().all(Self::is_useful),
            _ => true,
        }
    }

    /// True if nothing in its shape makes it weaker than the clause. Single values still can: see `constant`.
    pub fn is_exact(&self) -> bool {
        match self {
            Self::Unknown => false,
            Self::And(parts) | Self::Or(parts) => parts.iter().all(Self::is_exact),
            Self::Compare { column, value_type, .. }
            | Self::Elements { column, element_type: value_type, .. } => {
                operand::is_exact(column.kind, *value_type)
            }
            // SAFETY: nodes live as long as the clause, and so does the template.
            Self::Like { pattern, .. } => unsafe { Node::new(*pattern) }.is_some_and(like::is_exact_shape),
            _ => true,
        }
    }
}

/// The template of a clause over relation `relid` (its number in the range table).
///
/// # Safety
/// `clause` is a valid expression tree that outlives the template.
pub unsafe fn translate(clause: *mut pg_sys::Node, relid: u32) -> Template {
    // SAFETY: the caller's clause.
    unsafe { Node::new(clause) }.map_or(Template::Unknown, |clause| walk(clause, relid, true))
}

/// The template of "`node` is TRUE" (`wanted`) or "`node` is FALSE".
fn walk(node: Node<'_>, relid: u32, wanted: bool) -> Template {
    if let Some(parts) = node.as_list() {
        let parts = parts.iter().map(|part| walk(part, relid, wanted)).collect();
        return if wanted { Template::And(parts) } else { Template::Or(parts) };
    }
    match node.expression() {
        E::RestrictInfo(restriction) => walk(restriction.clause(), relid, wanted),
        E::BoolExpr(expr) => walk_bool(expr, relid, wanted),
        E::Const(value) if value.consttype != pg_sys::BOOLOID => Template::Unknown,
        E::Const(value) => Template::Known(!value.constisnull && (value.constvalue.value() != 0) == wanted),
        E::Var(_) => match operand::boolean_column(node, relid) {
            Some(column) => Template::Truth { column, value: wanted },
            None => Template::Unknown,
        },
        E::NullTest(test) => walk_null_test(test, relid, wanted),
        E::BooleanTest(test) => walk_boolean_test(test, relid, wanted),
        E::OpExpr(expr) => walk_operator(expr, relid, wanted),
        E::ScalarArrayOpExpr(expr) => walk_array(expr, relid, wanted),
        _ => Template::Unknown,
    }
}

fn walk_bool(expr: Typed<'_, pg_sys::BoolExpr>, relid: u32, wanted: bool) -> Template {
    let walk_all = |wanted: bool| expr.args().iter().map(|part| walk(part, relid, wanted)).collect();
    match (expr.boolop, wanted) {
        (pg_sys::BoolExprType::AND_EXPR, true) => Template::And(walk_all(true)),
        (pg_sys::BoolExprType::OR_EXPR, true) => Template::Or(walk_all(true)),
        // AND is FALSE when one part is FALSE; OR when all are.
        (pg_sys::BoolExprType::AND_EXPR, false) => Template::Or(walk_all(false)),
        (pg_sys::BoolExprType::OR_EXPR, false) => Template::And(walk_all(false)),
        (pg_sys::BoolExprType::NOT_EXPR, _) => match expr.args().get(0) {
            Some(part) => walk(part, relid, !wanted),
            None => Template::Unknown,
        },
        _ => Template::Unknown,
    }
}

fn walk_null_test(test: Typed<'_, pg_sys::NullTest>, relid: u32, wanted: bool) -> Template {
    if test.argisrow {
        return Template::Unknown;
    }
    match operand::column_of(test.arg(), relid) {
        Some(column) => {
            Template::Null { column, is_null: (test.nulltesttype == pg_sys::NullTestType::IS_NULL) == wanted }
        }
        None => Template::Unknown,
    }
}

/// `x IS [NOT] TRUE | FALSE | UNKNOWN`, which is never NULL. "Not TRUE" is "FALSE or UNKNOWN". UNKNOWN can be
/// tested only for a column.
fn walk_boolean_test(test: Typed<'_, pg_sys::BooleanTest>, relid: u32, wanted: bool) -> Template {
    use pg_sys::BoolTestType as B;
    let column = operand::boolean_column(test.arg(), relid);
    let value_or_null = |value: bool| match column {
        Some(column) => {
            Template::Or(vec![Template::Null { column, is_null: true }, Template::Truth { column, value }])
        }
        None => Template::Unknown,
    };
    let null = |is_null: bool| match column {
        Some(column) => Template::Null { column, is_null },
        None => Template::Unknown,
    };
    match (test.booltesttype, wanted) {
        (B::IS_TRUE, true) | (B::IS_NOT_TRUE, false) => walk(test.arg(), relid, true),
        (B::IS_FALSE, true) | (B::IS_NOT_FALSE, false) => walk(test.arg(), relid, false),
        (B::IS_NOT_TRUE, true) | (B::IS_TRUE, false) => value_or_null(false),
        (B::IS_NOT_FALSE, true) | (B::IS_FALSE, false) => value_or_null(true),
        (B::IS_UNKNOWN, true) | (B::IS_NOT_UNKNOWN, false) => null(true),
        (B::IS_NOT_UNKNOWN, true) | (B::IS_UNKNOWN, false) => null(false),
        _ => Template::Unknown,
    }
}

fn walk_operator(expr: Typed<'_, pg_sys::OpExpr>, relid: u32, wanted: bool) -> Template {
    let (Some(left), Some(right)) = (expr.args().get(0), expr.args().get(1)) else {
        return Template::Unknown;
    };
    for (column_side, value, flipped) in [(left, right, false), (right, left, true)] {
        if !operand::is_value(value, relid) {
            continue;
        }
        let Some((column, operator)) =
            operand::operator_on(column_side, relid, expr.opno, expr.inputcollid, flipped)
        else {
            continue;
        };
        let value = value.as_ptr();
        return match operator {
            Operator::Compare { op, value_type } => {
                let op = if wanted { op } else { operand::negated(op) };
                Template::Compare { column, op, value, value_type }
            }
            Operator::Like if wanted => Template::Like { column, pattern: value },
            Operator::NotLike if !wanted => Template::Like { column, pattern: value },
            Operator::StartsWith if wanted => Template::StartsWith { column, prefix: value },
            _ => Template::Unknown,
        };
    }
    Template::Unknown
}

fn walk_array(expr: Typed<'_, pg_sys::ScalarArrayOpExpr>, relid: u32, wanted: bool) -> Template {
    let (Some(left), Some(array)) = (expr.args().get(0), expr.args().get(1)) else {
        return Template::Unknown;
    };
    if !operand::is_value(array, relid) {
        return Template::Unknown;
    }
    match operand::operator_on(left, relid, expr.opno, expr.inputcollid, false) {
        Some((column, Operator::Compare { op, value_type })) => {
            // "ANY is FALSE" is "ALL of the negated", and the other way round: see `constant::elements`.
            let (op, any) = if wanted { (op, expr.useOr) } else { (operand::negated(op), !expr.useOr) };
            Template::Elements { column, op, any, array: array.as_ptr(), element_type: value_type }
        }
        _ => Template::Unknown,
    }
}
