//! The compiled tree of an expression: what each part needs, may do and remembers.
//!
//! Called by the evaluator and by the parts themselves. Invariant: `evaluate` gives a row for each row of the
//! batch; batches passed down may have unused columns of another length (see `narrowed`).

use std::sync::Arc;

use vector::{Bitmap, LogicalType, Values, Vector};

use super::encoded::Encoded;
use super::functions::{self, Compute};
use super::value::{Value, nulls, repeated, zeros};
use super::{branch, in_list, logic};
use crate::kernels::words::both;
use crate::{Batch, Error, Expression, HostFunction, Result};

/// What a node computes.
pub(super) enum Kind {
    Column(usize),
    Constant(Arc<Vector>),
    Call {
        compute: Box<dyn Compute>,
        arguments: Vec<Node>,
    },
    Host {
        function: Arc<dyn HostFunction>,
        arguments: Vec<Node>,
    },
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    IsNull(Box<Node>),
    Case {
        branches: Vec<(Node, Node)>,
        otherwise: Option<Box<Node>>,
    },
    Coalesce(Vec<Node>),
    In {
        value: Box<Node>,
        list: in_list::List,
    },
    /// A part that needs one column only: computed once for each entry or run where that column is encoded.
    Encoded(Box<Encoded>),
}

/// One part of an expression.
pub(super) struct Node {
    pub kind: Kind,
    /// Type of its values.
    pub logical: LogicalType,
    /// The columns it reads, ascending, each once.
    pub columns: Vec<usize>,
    /// Whether it may end the query. It must then see only the rows that reach it, because the server
    /// computes it for no others.
    pub may_fail: bool,
    /// Whether it calls the host.
    pub host: bool,
    /// Roughly the time for a value, in simple operations.
    pub cost: u32,
}

impl Node {
    /// Compiles an expression over columns of these types.
    pub fn compile(expression: &Expression, types: &[LogicalType]) -> Result<Self> {
        let node = Self::compile_part(expression, types)?;
        Ok(Encoded::around(node))
    }

    fn compile_part(expression: &Expression, types: &[LogicalType]) -> Result<Self> {
        let all = |parts: &[Expression]| {
            parts.iter().map(|part| Self::compile_part(part, types)).collect::<Result<Vec<_>>>()
        };
        let logical = expression.logical(types);
        let (kind, may_fail, own_cost) = match expression {
            Expression::Column(at) => {
                if *at >= types.len() {
                    return Err(Error::Decline("column outside its input"));
                }
                (Kind::Column(*at), false, 0)
            }
            Expression::Constant(value) => (Kind::Constant(Arc::clone(value)), false, 0),
            Expression::Call { function, arguments, result } => {
                let arguments = all(arguments)?;
                let inputs: Vec<LogicalType> = arguments.iter().map(|argument| argument.logical).collect();
                let may_fail = function.can_raise(&inputs) || function.can_decline(&inputs);
                let constants: Vec<Option<&Vector>> = arguments.iter().map(Self::as_constant).collect();
                let (compute, cost) = functions::compile(*function, &inputs, *result, &constants)?;
                (Kind::Call { compute, arguments }, may_fail, cost)
            }
            Expression::Host { function, arguments, .. } => {
                (Kind::Host { function: Arc::clone(function), arguments: all(arguments)? }, true, 100)
            }
            Expression::And(parts) => (Kind::And(all(parts)?), false, 1),
            Expression::Or(parts) => (Kind::Or(all(parts)?), false, 1),
            Expression::Not(part) => (Kind::Not(Box::new(Self::compile_part(part, types)?)), false, 1),
            Expression::IsNull(part) => (Kind::IsNull(Box::new(Self::compile_part(part, types)?)), false, 1),
            Expression::Case { branches, otherwise, .. } => {
                let pair = |(condition, value): &(Expression, Expression)| {
                    Ok((Self::compile_part(condition, types)?, Self::compile_part(value, types)?))
                };
                let branches = branches.iter().map(pair).collect::<Result<Vec<_>>>()?;
                let otherwise = match otherwise {
                    Some(value) => Some(Box::new(Self::compile_part(value, types)?)),
                    None => None,
                };
                (Kind::Case { branches, otherwise }, false, 4)
            }
            Expression::Coalesce(parts) => (Kind::Coalesce(all(parts)?), false, 2),
            Expression::In { value, entries } => {
                let value = Box::new(Self::compile_part(value, types)?);
                let may_fail = value.logical == LogicalType::Numeric;
                let list = in_list::List::new(entries)?;
                (Kind::In { value, list }, may_fail, 6)
            }
        };
        let host = matches!(kind, Kind::Host { .. });
        let mut node = Self { kind, logical, columns: Vec::new(), may_fail, host, cost: own_cost };
        let mut columns: Vec<usize> = match node.kind {
            Kind::Column(at) => vec![at],
            _ => Vec::new(),
        };
        for child in node.children_mut() {
            columns.extend_from_slice(&child.columns);
        }
        columns.sort_unstable();
        columns.dedup();
        let (mut fails, mut host, mut cost) = (node.may_fail, node.host, node.cost);
        for child in node.children_mut() {
            (fails, host) = (fails || child.may_fail, host || child.host);
            cost = cost.saturating_add(child.cost);
        }
        (node.may_fail, node.host, node.cost) = (fails, host, cost);
        node.columns = columns;
        if node.columns.len() > 1 {
            // The largest parts that need one column only are what is worth keeping per entry.
            for child in node.children_mut() {
                let taken = std::mem::replace(child, Self::null());
                *child = Encoded::around(taken);
            }
        }
        Ok(node)
    }

    /// A node that stands where another was taken out.
    fn null() -> Self {
        let kind = Kind::And(Vec::new());
        Self { kind, logical: LogicalType::Bool, columns: Vec::new(), may_fail: false, host: false, cost: 0 }
    }

    fn as_constant(&self) -> Option<&Vector> {
        match &self.kind {
            Kind::Constant(value) => Some(value),
            _ => None,
        }
    }

    fn children_mut(&mut self) -> Vec<&mut Self> {
        match &mut self.kind {
            Kind::Column(_) | Kind::Constant(_) | Kind::Encoded(_) => Vec::new(),
            Kind::Call { arguments, .. } | Kind::Host { arguments, .. } => arguments.iter_mut().collect(),
            Kind::And(parts) | Kind::Or(parts) | Kind::Coalesce(parts) => parts.iter_mut().collect(),
            Kind::Not(part) | Kind::IsNull(part) | Kind::In { value: part, .. } => vec![part],
            Kind::Case { branches, otherwise } => {
                let branches = branches.iter_mut().flat_map(|(condition, value)| [condition, value]);
                branches.chain(otherwise.as_deref_mut()).collect()
            }
        }
    }

    /// Its value in each row.
    pub fn evaluate(&mut self, batch: &Batch) -> Result<Value> {
        if batch.rows == 0 {
            // Without rows nothing is computed, because a constant part must not fail then.
            return Ok(Vector::new(self.logical, zeros(self.logical, 0)).into());
        }
        match &mut self.kind {
            Kind::Column(at) => {
                let column = batch.columns.get(*at).ok_or(Error::Decline("column outside its input"))?;
                Ok(Arc::clone(column).into())
            }
            Kind::Constant(value) => Ok(repeated(value, batch.rows).into()),
            Kind::Call { compute, arguments } => {
                let arguments = arguments
                    .iter_mut()
                    .map(|argument| Ok(argument.evaluate(batch)?.plain()))
                    .collect::<Result<Vec<_>>>()?;
                call(compute.as_mut(), arguments, self.logical, batch.rows)
            }
            Kind::Host { function, arguments } => {
                let arguments = arguments
                    .iter_mut()
                    .map(|argument| {
                        let value = argument.evaluate(batch)?;
                        Ok(if function.takes_constants() { value.plain() } else { value.flat() }.vector)
                    })
                    .collect::<Result<Vec<_>>>()?;
                Ok(function.call(&arguments, batch.rows)?.into())
            }
            Kind::And(parts) => logic::all(parts, batch),
            Kind::Or(parts) => logic::any(parts, batch),
            Kind::Not(part) => logic::not(&part.evaluate(batch)?, batch.rows),
            Kind::IsNull(part) => Ok(logic::is_null(part.evaluate(batch)?, batch.rows)),
            Kind::Case { branches, otherwise } => {
                branch::case(branches, otherwise.as_deref_mut(), self.logical, batch)
            }
            Kind::Coalesce(parts) => branch::coalesce(parts, self.logical, batch),
            Kind::In { value, list } => list.test(&value.evaluate(batch)?.plain(), batch.rows),
            Kind::Encoded(encoded) => encoded.evaluate(batch),
        }
    }

    /// The rows of a batch that a node is to see, in the columns that it reads; other columns keep their
    /// length.
    pub fn narrowed(&self, batch: &Batch, rows: &[u32]) -> Batch {
        let column = |(at, column): (usize, &Arc<Vector>)| match self.columns.binary_search(&at) {
            Ok(_) => Arc::new(column.take(rows)),
            Err(_) => Arc::clone(column),
        };
        Batch::new(rows.len(), batch.columns.iter().enumerate().map(column).collect())
    }
}

/// A strict call: NULL where an argument is.
fn call(
    compute: &mut dyn Compute,
    arguments: Vec<Value>,
    logical: LogicalType,
    rows: usize,
) -> Result<Value> {
    if arguments.iter().any(|argument| argument.constant().is_some_and(|value| !value.is_valid(0))) {
        return Ok(nulls(logical, rows).into());
    }
    if !arguments.is_empty() && arguments.iter().all(|argument| argument.constant().is_some()) {
        let output = compute.compute(&arguments, 1, None)?;
        let one = Vector { logical, validity: output.validity, values: output.values };
        return Ok(Value { vector: Arc::new(repeated(&one, rows)), bounds: output.bounds });
    }
    let mut validity: Option<Bitmap> = None;
    for argument in &arguments {
        if argument.vector.validity.is_some() {
            validity = both(validity.as_ref(), argument.vector.validity.as_ref());
        }
    }
    let output = compute.compute(&arguments, rows, validity.as_ref())?;
    let validity = match output.validity {
        None => validity,
        Some(own) => both(Some(&own), validity.as_ref()),
    };
    let vector = Vector { logical, validity, values: output.values };
    if vector.len() != rows {
        return Err(Error::Decline("a function of another number of rows"));
    }
    Ok(Value { vector: Arc::new(vector), bounds: output.bounds })
}

/// What a function gives for some rows.
pub(super) struct Output {
    /// Flat values, unspecified where an argument is NULL.
    pub values: Values,
    /// Rows that are NULL for another reason than an argument.
    pub validity: Option<Bitmap>,
    /// See `Value::bounds`.
    pub bounds: Option<(i128, i128)>,
}

impl From<Values> for Output {
    fn from(values: Values) -> Self {
        Self { values, validity: None, bounds: None }
    }
}
