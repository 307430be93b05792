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

use pgrx::PgList;
use pgrx::pg_sys::{self, NodeTag};
use vector::CompareOp;

use super::like;
use super::operand::{self, Column, Operator};

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
            Self::Like { pattern, .. } => unsafe { like::is_exact_shape(*pattern) },
            _ => true,
        }
    }
}

/// The template of a clause over relation `relid` (its number in the range table).
///
/// # Safety
/// `clause` is a valid expression tree that outlives the template.
pub unsafe fn translate(clause: *mut pg_sys::Node, relid: u32) -> Template {
    // SAFETY: the caller's promise.
    unsafe { walk(clause, relid, true) }
}

/// The template of "`node` is TRUE" (`wanted`) or "`node` is FALSE".
unsafe fn walk(node: *mut pg_sys::Node, relid: u32, wanted: bool) -> Template {
    if node.is_null() {
        return Template::Unknown;
    }
    // SAFETY: each cast follows the node's own tag.
    unsafe {
        match (*node).type_ {
            NodeTag::T_RestrictInfo => {
                walk((*node.cast::<pg_sys::RestrictInfo>()).clause.cast(), relid, wanted)
            }
            NodeTag::T_BoolExpr => walk_bool(&*node.cast(), relid, wanted),
            NodeTag::T_List => {
                let parts = PgList::<pg_sys::Node>::from_pg(node.cast());
                let parts = parts.iter_ptr().map(|part| walk(part, relid, wanted)).collect();
                if wanted { Template::And(parts) } else { Template::Or(parts) }
            }
            NodeTag::T_Const => {
                let value = &*node.cast::<pg_sys::Const>();
                if value.consttype != pg_sys::BOOLOID {
                    return Template::Unknown;
                }
                Template::Known(!value.constisnull && (value.constvalue.value() != 0) == wanted)
            }
            NodeTag::T_Var => match operand::boolean_column(node, relid) {
                Some(column) => Template::Truth { column, value: wanted },
                None => Template::Unknown,
            },
            NodeTag::T_NullTest => walk_null_test(&*node.cast(), relid, wanted),
            NodeTag::T_BooleanTest => walk_boolean_test(&*node.cast(), relid, wanted),
            NodeTag::T_OpExpr => walk_operator(&*node.cast(), relid, wanted),
            NodeTag::T_ScalarArrayOpExpr => walk_array(&*node.cast(), relid, wanted),
            _ => Template::Unknown,
        }
    }
}

unsafe fn walk_bool(expr: &pg_sys::BoolExpr, relid: u32, wanted: bool) -> Template {
    // SAFETY: args is a list of expressions.
    let parts = unsafe { PgList::<pg_sys::Node>::from_pg(expr.args) };
    let walk_all = |wanted: bool| -> Vec<Template> {
        // SAFETY: a part of a valid expression.
        parts.iter_ptr().map(|part| unsafe { walk(part, relid, wanted) }).collect()
    };
    match (expr.boolop, wanted) {
        (pg_sys::BoolExprType::AND_EXPR, true) => Template::And(walk_all(true)),
        (pg_sys::BoolExprType::OR_EXPR, true) => Template::Or(walk_all(true)),
        // AND is FALSE when one part is FALSE; OR when all are.
        (pg_sys::BoolExprType::AND_EXPR, false) => Template::Or(walk_all(false)),
        (pg_sys::BoolExprType::OR_EXPR, false) => Template::And(walk_all(false)),
        (pg_sys::BoolExprType::NOT_EXPR, _) => match parts.get_ptr(0) {
            // SAFETY: a part of a valid expression.
            Some(part) => unsafe { walk(part, relid, !wanted) },
            None => Template::Unknown,
        },
        _ => Template::Unknown,
    }
}

unsafe fn walk_null_test(test: &pg_sys::NullTest, relid: u32, wanted: bool) -> Template {
    if test.argisrow {
        return Template::Unknown;
    }
    // SAFETY: arg is an expression.
    match unsafe { operand::any_column(test.arg.cast(), relid) } {
        Some(column) => {
            Template::Null { column, is_null: (test.nulltesttype == pg_sys::NullTestType::IS_NULL) == wanted }
        }
        None => Template::Unknown,
    }
}

/// `x IS [NOT] TRUE | FALSE | UNKNOWN`, which is never NULL. "Not TRUE" is "FALSE or UNKNOWN". UNKNOWN can be
/// tested only for a column.
unsafe fn walk_boolean_test(test: &pg_sys::BooleanTest, relid: u32, wanted: bool) -> Template {
    use pg_sys::BoolTestType as B;
    let arg: *mut pg_sys::Node = test.arg.cast();
    // SAFETY: arg is an expression.
    let column = unsafe { operand::boolean_column(arg, relid) };
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
        // SAFETY: a part of a valid expression.
        (B::IS_TRUE, true) | (B::IS_NOT_TRUE, false) => unsafe { walk(arg, relid, true) },
        // SAFETY: a part of a valid expression.
        (B::IS_FALSE, true) | (B::IS_NOT_FALSE, false) => unsafe { walk(arg, relid, false) },
        (B::IS_NOT_TRUE, true) | (B::IS_TRUE, false) => value_or_null(false),
        (B::IS_NOT_FALSE, true) | (B::IS_FALSE, false) => value_or_null(true),
        (B::IS_UNKNOWN, true) | (B::IS_NOT_UNKNOWN, false) => null(true),
        (B::IS_NOT_UNKNOWN, true) | (B::IS_UNKNOWN, false) => null(false),
        _ => Template::Unknown,
    }
}

unsafe fn walk_operator(expr: &pg_sys::OpExpr, relid: u32, wanted: bool) -> Template {
    // SAFETY: args is a list of expressions.
    let args = unsafe { PgList::<pg_sys::Node>::from_pg(expr.args) };
    let (Some(left), Some(right)) = (args.get_ptr(0), args.get_ptr(1)) else { return Template::Unknown };
    // SAFETY: both sides are parts of a valid expression.
    unsafe {
        for (column_side, value, flipped) in [(left, right, false), (right, left, true)] {
            if !operand::is_value(value, relid) {
                continue;
            }
            let Some((column, operator)) =
                operand::operator_on(column_side, relid, expr.opno, expr.inputcollid, flipped)
            else {
                continue;
            };
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
    }
    Template::Unknown
}

unsafe fn walk_array(expr: &pg_sys::ScalarArrayOpExpr, relid: u32, wanted: bool) -> Template {
    // SAFETY: args is a list of expressions.
    let args = unsafe { PgList::<pg_sys::Node>::from_pg(expr.args) };
    let (Some(left), Some(array)) = (args.get_ptr(0), args.get_ptr(1)) else { return Template::Unknown };
    // SAFETY: both sides are parts of a valid expression.
    unsafe {
        if !operand::is_value(array, relid) {
            return Template::Unknown;
        }
        match operand::operator_on(left, relid, expr.opno, expr.inputcollid, false) {
            Some((column, Operator::Compare { op, value_type })) => {
                // "ANY is FALSE" is "ALL of the negated", and the other way round: see `constant::elements`.
                let (op, any) = if wanted { (op, expr.useOr) } else { (operand::negated(op), !expr.useOr) };
                Template::Elements { column, op, any, array, element_type: value_type }
            }
            _ => Template::Unknown,
        }
    }
}
