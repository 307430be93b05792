//! Which columns and operators a template understands.
//!
//! Called by `template` only. The server's operator families say what an operator means, never its name. Only
//! the built-in families are on the list whose order and equality `vector::LogicalType` promises.
//!
//! Invariant: a pair that is not on the list is declined. So a user's operator never reaches a native filter.

use pgrx::pg_sys::{self, NodeTag, Oid};
use vector::CompareOp;

use crate::host::collation::orders_bytewise;
use crate::host::own_type;
use crate::host::tree::{Expression, Node};

/// What a column's values are, as far as comparisons care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Truth values.
    Bool,
    /// 16-bit integers.
    Int16,
    /// 32-bit integers.
    Int32,
    /// 64-bit integers.
    Int64,
    /// Single floats.
    Float32,
    /// Double floats.
    Float64,
    /// Days.
    Date,
    /// Microseconds without time zone.
    Timestamp,
    /// Microseconds with time zone.
    TimestampTz,
    /// Exact decimals.
    Numeric,
    /// Sixteen bytes.
    Uuid,
    /// Unsigned 64-bit integers: `engine.uint8`, of this OID.
    Unsigned(Oid),
    /// Text and varchar.
    Text,
    /// char(n), stored padded to this many characters.
    Padded(u32),
    /// Byte strings.
    Bytea,
    /// Anything else: only NULL tests.
    Other,
}

/// A column of the scanned relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Attribute number, from 1.
    pub attno: i16,
    /// What its values are.
    pub kind: Kind,
}

/// What an operator asks of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// A comparison with a value of this type (column on the left).
    Compare {
        /// How.
        op: CompareOp,
        /// Type of the value.
        value_type: Oid,
    },
    /// `LIKE`
    Like,
    /// `NOT LIKE`
    NotLike,
    /// `^@`
    StartsWith,
}

// Built-in operator families of btree whose OIDs have no symbol in the server's headers (pg_opfamily.dat).
const DATETIME_FAMILY: u32 = 434;
const FLOAT_FAMILY: u32 = 1970;
const NUMERIC_FAMILY: u32 = 1988;
const UUID_FAMILY: u32 = 2968;

// Built-in operators and casts without a symbol (pg_operator.dat, pg_proc.dat).
const TEXT_LIKE: u32 = 1209;
const TEXT_NOT_LIKE: u32 = 1210;
const TEXT_STARTS_WITH: u32 = 3877;
/// Casts that keep value and order: int2 -> int4, int2 -> int8, int4 -> int8, float4 -> float8, int2/int4 ->
/// float8, int2/int4/int8 -> numeric.
const LOSSLESS_CASTS: [u32; 9] = [313, 754, 481, 311, 235, 316, 1782, 1740, 1781];

/// `NOT (a op b)` for values that are not NULL.
pub const fn negated(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Equal => CompareOp::NotEqual,
        CompareOp::NotEqual => CompareOp::Equal,
        CompareOp::Less => CompareOp::GreaterOrEqual,
        CompareOp::LessOrEqual => CompareOp::Greater,
        CompareOp::Greater => CompareOp::LessOrEqual,
        CompareOp::GreaterOrEqual => CompareOp::Less,
    }
}

/// `b op' a` for `a op b`.
const fn mirrored(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Equal | CompareOp::NotEqual => op,
        CompareOp::Less => CompareOp::Greater,
        CompareOp::LessOrEqual => CompareOp::GreaterOrEqual,
        CompareOp::Greater => CompareOp::Less,
        CompareOp::GreaterOrEqual => CompareOp::LessOrEqual,
    }
}

/// The kind of a column of this type. A domain counts as its base type.
fn kind_of(type_oid: Oid, typmod: i32) -> Kind {
    let mut typmod = typmod;
    // SAFETY: a catalog look-up of an existing type.
    let base = unsafe { pg_sys::getBaseTypeAndTypmod(type_oid, &raw mut typmod) };
    match base {
        pg_sys::BOOLOID => Kind::Bool,
        pg_sys::INT2OID => Kind::Int16,
        pg_sys::INT4OID => Kind::Int32,
        pg_sys::INT8OID => Kind::Int64,
        pg_sys::FLOAT4OID => Kind::Float32,
        pg_sys::FLOAT8OID => Kind::Float64,
        pg_sys::DATEOID => Kind::Date,
        pg_sys::TIMESTAMPOID => Kind::Timestamp,
        pg_sys::TIMESTAMPTZOID => Kind::TimestampTz,
        pg_sys::NUMERICOID => Kind::Numeric,
        pg_sys::UUIDOID => Kind::Uuid,
        pg_sys::TEXTOID | pg_sys::VARCHAROID => Kind::Text,
        // Without a length modifier, values keep the blanks that they came with.
        pg_sys::BPCHAROID => match u32::try_from(typmod - pg_sys::VARHDRSZ as i32) {
            Ok(length) if length > 0 => Kind::Padded(length),
            _ => Kind::Other,
        },
        pg_sys::BYTEAOID => Kind::Bytea,
        _ if own_type::is_uint8(base) => Kind::Unsigned(base),
        _ => Kind::Other,
    }
}

/// Whether a comparison of this kind of column is understood if its other side has this type. The operator
/// must be in the family of both.
fn takes(kind: Kind, value_type: Oid) -> bool {
    const INTEGERS: [Oid; 3] = [pg_sys::INT2OID, pg_sys::INT4OID, pg_sys::INT8OID];
    match kind {
        Kind::Bool => value_type == pg_sys::BOOLOID,
        Kind::Int16 | Kind::Int32 => {
            INTEGERS.contains(&value_type) || [pg_sys::NUMERICOID, pg_sys::FLOAT8OID].contains(&value_type)
        }
        Kind::Int64 => INTEGERS.contains(&value_type) || value_type == pg_sys::NUMERICOID,
        Kind::Unsigned(own) => {
            INTEGERS.contains(&value_type) || [pg_sys::NUMERICOID, own].contains(&value_type)
        }
        Kind::Float32 | Kind::Float64 => [pg_sys::FLOAT4OID, pg_sys::FLOAT8OID].contains(&value_type),
        Kind::Date | Kind::Timestamp | Kind::TimestampTz => {
            [pg_sys::DATEOID, pg_sys::TIMESTAMPOID, pg_sys::TIMESTAMPTZOID].contains(&value_type)
        }
        Kind::Numeric => value_type == pg_sys::NUMERICOID,
        Kind::Uuid => value_type == pg_sys::UUIDOID,
        Kind::Text => value_type == pg_sys::TEXTOID,
        Kind::Padded(_) => value_type == pg_sys::BPCHAROID,
        Kind::Bytea => value_type == pg_sys::BYTEAOID,
        Kind::Other => false,
    }
}

/// True if a comparison of this pair of types is translated exactly, except for single odd values. If a time
/// zone moves each column value, the comparison is only bracketed.
pub fn is_exact(kind: Kind, value_type: Oid) -> bool {
    match kind {
        Kind::Date | Kind::Timestamp => value_type != pg_sys::TIMESTAMPTZOID,
        _ => true,
    }
}

/// The column that `node` is, of any type, looking through relabelling, which keeps the bytes, and NULLs.
pub fn column_of(node: Node<'_>, relid: u32) -> Option<Column> {
    let mut node = node;
    while let Expression::RelabelType(relabel) = node.expression() {
        node = relabel.arg();
    }
    let var = node.as_a::<pg_sys::Var>()?;
    (var.varno as u32 == relid && var.varlevelsup == 0 && var.varattno > 0)
        .then(|| Column { attno: var.varattno, kind: kind_of(var.vartype, var.vartypmod) })
}

/// A boolean column that stands as a condition.
pub fn boolean_column(node: Node<'_>, relid: u32) -> Option<Column> {
    column_of(node, relid).filter(|column| column.kind == Kind::Bool)
}

/// A column, also below a cast that keeps value and order, and the type that an operator above sees.
fn compared_column(node: Node<'_>, relid: u32) -> Option<(Column, Oid)> {
    if let Some(column) = column_of(node, relid) {
        return Some((column, own_type(column.kind)));
    }
    let call = node.as_a::<pg_sys::FuncExpr>()?;
    if !LOSSLESS_CASTS.contains(&call.funcid.to_u32()) {
        return None;
    }
    Some((column_of(call.args().get(0)?, relid)?, call.funcresulttype))
}

/// The type that operators take this kind of column as.
const fn own_type(kind: Kind) -> Oid {
    match kind {
        Kind::Bool => pg_sys::BOOLOID,
        Kind::Int16 => pg_sys::INT2OID,
        Kind::Int32 => pg_sys::INT4OID,
        Kind::Int64 => pg_sys::INT8OID,
        Kind::Float32 => pg_sys::FLOAT4OID,
        Kind::Float64 => pg_sys::FLOAT8OID,
        Kind::Date => pg_sys::DATEOID,
        Kind::Timestamp => pg_sys::TIMESTAMPOID,
        Kind::TimestampTz => pg_sys::TIMESTAMPTZOID,
        Kind::Numeric => pg_sys::NUMERICOID,
        Kind::Uuid => pg_sys::UUIDOID,
        Kind::Unsigned(own) => own,
        Kind::Text => pg_sys::TEXTOID,
        Kind::Padded(_) => pg_sys::BPCHAROID,
        Kind::Bytea => pg_sys::BYTEAOID,
        Kind::Other => pg_sys::InvalidOid,
    }
}

/// True for an expression that has one value for the whole scan: no column of this relation, nothing
/// volatile, no sub-plan. Columns of outer relations are allowed: they are parameters by the time the plan
/// runs.
pub fn is_value(node: Node<'_>, relid: u32) -> bool {
    if matches!(node.tag(), NodeTag::T_Const | NodeTag::T_Param) {
        return true;
    }
    let mut attributes: *mut pg_sys::Bitmapset = std::ptr::null_mut();
    // SAFETY: a valid expression, which is only read; the set is a new one.
    unsafe { pg_sys::pull_varattnos(node.as_ptr(), relid, &raw mut attributes) };
    attributes.is_null() && !node.is_volatile() && !node.has_sub_plans()
}

/// What operator `opno` asks of the column at `node`. The column is its left side, or its right side if
/// `flipped`.
pub fn operator_on(
    node: Node<'_>,
    relid: u32,
    opno: Oid,
    collation: Oid,
    flipped: bool,
) -> Option<(Column, Operator)> {
    let (column, seen_as) = compared_column(node, relid)?;
    if column.kind == Kind::Other {
        return None;
    }
    // Without a collation the server itself reports an error.
    // SAFETY: a catalog look-up.
    let deterministic =
        || collation != pg_sys::InvalidOid && unsafe { pg_sys::get_collation_isdeterministic(collation) };
    if column.kind == Kind::Text && !flipped && deterministic() {
        match opno.to_u32() {
            TEXT_LIKE => return Some((column, Operator::Like)),
            TEXT_NOT_LIKE => return Some((column, Operator::NotLike)),
            TEXT_STARTS_WITH => return Some((column, Operator::StartsWith)),
            _ => {}
        }
    }
    let (family, op) = comparison(opno)?;
    let (mut left, mut right) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: the operator exists, it is part of a plan.
    unsafe { pg_sys::op_input_types(opno, &raw mut left, &raw mut right) };
    let (column_type, value_type) = if flipped { (right, left) } else { (left, right) };
    if column_type != seen_as || !takes(column.kind, value_type) {
        return None;
    }
    let equality = matches!(op, CompareOp::Equal | CompareOp::NotEqual);
    let understood = match column.kind {
        // The pattern families compare bytes under any collation. The others order by the collation, unless
        // it is C's.
        Kind::Text if family == pg_sys::TEXT_PATTERN_BTREE_FAM_OID.to_u32() => true,
        Kind::Text if equality => deterministic(),
        // SAFETY: a catalog look-up.
        Kind::Text => unsafe { orders_bytewise(collation) },
        Kind::Padded(_) => equality && deterministic(),
        Kind::Bytea => equality,
        _ => true,
    };
    let op = if flipped { mirrored(op) } else { op };
    understood.then_some((column, Operator::Compare { op, value_type }))
}

/// The built-in family that has an operator, or that of our own type, and its comparison there by strategy
/// number. `<>` is found by its negator.
pub fn comparison(opno: Oid) -> Option<(u32, CompareOp)> {
    let families: [u32; 11] = [
        pg_sys::INTEGER_BTREE_FAM_OID.to_u32(),
        DATETIME_FAMILY,
        pg_sys::TEXT_BTREE_FAM_OID.to_u32(),
        FLOAT_FAMILY,
        NUMERIC_FAMILY,
        pg_sys::BPCHAR_BTREE_FAM_OID.to_u32(),
        UUID_FAMILY,
        pg_sys::BOOL_BTREE_FAM_OID.to_u32(),
        pg_sys::BYTEA_BTREE_FAM_OID.to_u32(),
        pg_sys::TEXT_PATTERN_BTREE_FAM_OID.to_u32(),
        pg_sys::BPCHAR_PATTERN_BTREE_FAM_OID.to_u32(),
    ];
    let strategy_in = |op: Oid, family: u32| {
        // SAFETY: a catalog look-up.
        let strategy = unsafe { pg_sys::get_op_opfamily_strategy(op, Oid::from(family)) };
        match strategy as u32 {
            pg_sys::BTLessStrategyNumber => Some(CompareOp::Less),
            pg_sys::BTLessEqualStrategyNumber => Some(CompareOp::LessOrEqual),
            pg_sys::BTEqualStrategyNumber => Some(CompareOp::Equal),
            pg_sys::BTGreaterEqualStrategyNumber => Some(CompareOp::GreaterOrEqual),
            pg_sys::BTGreaterStrategyNumber => Some(CompareOp::Greater),
            _ => None,
        }
    };
    // A built-in operator, as nearly all are, need not be looked for there.
    let is_built_in = opno.to_u32() < pg_sys::FirstNormalObjectId;
    let own = if is_built_in { None } else { own_type::uint8_family().map(Oid::to_u32) };
    let find = |op: Oid| {
        let mut families = families.into_iter().chain(own);
        families.find_map(|family| Some((family, strategy_in(op, family)?)))
    };
    find(opno).or_else(|| {
        // SAFETY: a catalog look-up.
        let negator = unsafe { pg_sys::get_negator(opno) };
        if negator == pg_sys::InvalidOid {
            return None;
        }
        find(negator)
            .filter(|(_, op)| *op == CompareOp::Equal)
            .map(|(family, _)| (family, CompareOp::NotEqual))
    })
}
