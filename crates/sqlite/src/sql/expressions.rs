//! Expressions of SQL, bound to columns and given classes.
//!
//! A part whose arguments are all constants is computed by SQLite itself when the query is planned.

use query::Expression;
use sqlite3_parser::ast::{Expr, LikeOperator, Literal, Operator, UnaryOperator};
use vector::{CompareOp, LogicalType};

use super::frame::Frame;
use super::names::{Meaning, Reference, unquoted};
use super::planner::Planner;
use super::typed::{Class, Typed, constant, null_of, truth, united, unsupported};
use crate::api::{Result, Value};
use crate::values::{Affinity, Collation, Owned};

impl<'b> Planner<'b> {
    /// An expression where the frame stands: over rows, or over groups once there are some.
    pub fn bind(&mut self, expression: &'b Expr<'b>, frame: &mut Frame<'b>) -> Result<Typed> {
        if frame.groups.is_some()
            && let Some(bound) = self.bind_group_part(expression, frame)?
        {
            return Ok(bound);
        }
        match expression {
            Expr::Literal(literal) => self.literal(literal),
            Expr::Variable(name) => self.parameter(name),
            Expr::Id(id) => self.name(&reference(None, None, id.0), frame),
            Expr::Name(name) => self.name(&reference(None, None, name.0), frame),
            Expr::Qualified(table, column) => self.name(&reference(None, Some(table.0), column.0), frame),
            Expr::DoublyQualified(schema, table, column) => {
                self.name(&reference(Some(schema.0), Some(table.0), column.0), frame)
            }
            Expr::Parenthesized(parts) => match parts.as_slice() {
                [one] => self.bind(one, frame),
                _ => Err(unsupported("row values")),
            },
            Expr::Collate(inner, name) => {
                let bound = self.bind(inner, frame)?;
                let name = unquoted(name);
                let collation =
                    Collation::of_name(&name).ok_or_else(|| unsupported(&format!("the collation {name}")))?;
                Ok(Typed { collation: (collation, true), ..bound })
            }
            Expr::Unary(operator, inner) => self.unary(*operator, inner, frame),
            Expr::Binary(left, operator, right) => self.binary(left, *operator, right, frame),
            Expr::Between { lhs, not, start, end } => {
                let value = self.bind(lhs, frame)?;
                let (start, end) = (self.bind(start, frame)?, self.bind(end, frame)?);
                let low = self.compare(CompareOp::GreaterOrEqual, value.clone(), start)?;
                let high = self.compare(CompareOp::LessOrEqual, value, end)?;
                Ok(negated(Expression::And(vec![low, high]), *not))
            }
            Expr::IsNull(inner) => {
                let bound = self.bind(inner, frame)?;
                Ok(Typed::truth(Expression::IsNull(Box::new(bound.value))))
            }
            Expr::NotNull(inner) => {
                let bound = self.bind(inner, frame)?;
                let is_null = Expression::IsNull(Box::new(bound.value));
                Ok(Typed::truth(Expression::Not(Box::new(is_null))))
            }
            Expr::Case { base, when_then_pairs, else_expr } => {
                self.case(*base, when_then_pairs, *else_expr, frame)
            }
            Expr::Cast { expr, type_name } => {
                let bound = self.bind(expr, frame)?;
                let name = type_name.as_ref().map_or(String::new(), |name| name.name.to_owned());
                self.cast(bound, &name)
            }
            Expr::InList { lhs, not, rhs } => self.in_list(lhs, *not, rhs.unwrap_or_default(), frame),
            Expr::Like { lhs, not, op, rhs, escape } => {
                let mut arguments = vec![self.bind(rhs, frame)?, self.bind(lhs, frame)?];
                if let Some(escape) = escape {
                    arguments.push(self.bind(escape, frame)?);
                }
                let name = match op {
                    LikeOperator::Like => "like",
                    LikeOperator::Glob => "glob",
                    LikeOperator::Match => return Err(unsupported("MATCH")),
                    LikeOperator::Regexp => return Err(unsupported("REGEXP")),
                };
                let found = self.scalar_call(name, arguments)?;
                Ok(negated(found.condition()?, *not))
            }
            Expr::FunctionCall { .. } | Expr::FunctionCallStar { .. } => self.call(expression, frame),
            Expr::Subquery(select) => self.scalar_subquery(select, frame),
            Expr::Exists(select) => self.exists(select, false, frame).map(Typed::truth),
            Expr::InSelect { lhs, not, rhs } => self.in_select(lhs, *not, rhs, frame).map(Typed::truth),
            Expr::InTable { .. } => Err(unsupported("IN with a table's name: write IN (SELECT ...)")),
            Expr::Raise(..) => Err(unsupported("RAISE")),
        }
    }

    fn literal(&self, literal: &Literal<'_>) -> Result<Typed> {
        match literal {
            Literal::Null => Ok(Typed::null()),
            Literal::Numeric(text) => number(text),
            Literal::String(text) => Typed::constant(Value::Text(unquoted(text).as_bytes())),
            Literal::Blob(_) => Err(unsupported("blobs")),
            Literal::Keyword(word) => match word.to_ascii_lowercase().as_str() {
                "true" => Typed::constant(Value::Integer(1)),
                "false" => Typed::constant(Value::Integer(0)),
                other => Err(unsupported(other)),
            },
            Literal::CurrentDate => self.asked("CURRENT_DATE", &[]),
            Literal::CurrentTime => self.asked("CURRENT_TIME", &[]),
            Literal::CurrentTimestamp => self.asked("CURRENT_TIMESTAMP", &[]),
        }
    }

    fn parameter(&self, name: &str) -> Result<Typed> {
        let number = name.trim_start_matches('?').parse::<usize>();
        let number =
            number.ok().or_else(|| self.parameter_names.iter().position(|own| own == name).map(|at| at + 1));
        let number = number.ok_or_else(|| unsupported(&format!("the parameter {name}")))?;
        match self.parameters.get(number - 1) {
            Some(Some(value)) => Typed::constant(value.value()),
            _ => Ok(Typed::null()),
        }
    }

    /// What SQLite computes of constants.
    pub fn asked(&self, expression: &str, values: &[Value<'_>]) -> Result<Typed> {
        let statement = self.db.prepare(&format!("SELECT {expression}"))?;
        for (at, &value) in values.iter().enumerate() {
            statement.bind(at + 1, value)?;
        }
        match statement.step()? {
            true => Typed::constant(statement.value(0)),
            false => Ok(Typed::null()),
        }
    }

    /// What SQLite computes, if all arguments are constants. `expression` names them `?1`, `?2` and so on.
    pub fn folded(&self, expression: &str, arguments: &[&Typed]) -> Result<Option<Typed>> {
        let known: Option<Vec<Option<Owned>>> = arguments.iter().map(|argument| argument.known()).collect();
        let Some(known) = known else { return Ok(None) };
        let values: Vec<Value<'_>> =
            known.iter().map(|value| value.as_ref().map_or(Value::Null, Owned::value)).collect();
        self.asked(expression, &values).map(Some)
    }

    fn name(&mut self, reference: &Reference, frame: &mut Frame<'b>) -> Result<Typed> {
        // Not a name, unless a column is called so.
        let word = reference.column.to_ascii_lowercase();
        let is_word = reference.table.is_none() && !reference.quoted && (word == "true" || word == "false");
        match self.resolve(reference) {
            Ok(Meaning::Column(id)) => Ok(self.column(id)),
            Ok(Meaning::Alias(expression)) => self.bind(expression, frame),
            Ok(Meaning::Text(text)) => Typed::constant(Value::Text(text.as_bytes())),
            Err(_) if is_word => Typed::constant(Value::Integer(i64::from(word == "true"))),
            Err(error) => Err(error),
        }
    }

    fn unary(
        &mut self,
        operator: UnaryOperator,
        inner: &'b Expr<'b>,
        frame: &mut Frame<'b>,
    ) -> Result<Typed> {
        // The least integer has no positive counterpart.
        if let (UnaryOperator::Negative, Expr::Literal(Literal::Numeric(text))) = (operator, inner) {
            return number(&format!("-{text}"));
        }
        let bound = self.bind(inner, frame)?;
        match operator {
            UnaryOperator::Positive => Ok(bound.with_affinity(None)),
            UnaryOperator::Not => match self.folded("NOT ?1", &[&bound])? {
                Some(known) => Ok(known),
                None => Ok(negated(bound.condition()?, true)),
            },
            UnaryOperator::Negative => match self.folded("-?1", &[&bound])? {
                Some(known) => Ok(known),
                None => {
                    let zero = Typed::constant(Value::Integer(0))?;
                    self.arithmetic(Operator::Subtract, zero, bound)
                }
            },
            UnaryOperator::BitwiseNot => match self.folded("~?1", &[&bound])? {
                Some(known) => Ok(known),
                None => self.bitwise_not(bound),
            },
        }
    }

    fn binary(
        &mut self,
        left: &'b Expr<'b>,
        operator: Operator,
        right: &'b Expr<'b>,
        frame: &mut Frame<'b>,
    ) -> Result<Typed> {
        let (a, b) = (self.bind(left, frame)?, self.bind(right, frame)?);
        self.operate(operator, a, b)
    }

    /// The result of an operator.
    pub fn operate(&mut self, operator: Operator, a: Typed, b: Typed) -> Result<Typed> {
        let compared = match operator {
            Operator::Equals => Some(CompareOp::Equal),
            Operator::NotEquals => Some(CompareOp::NotEqual),
            Operator::Less => Some(CompareOp::Less),
            Operator::LessEquals => Some(CompareOp::LessOrEqual),
            Operator::Greater => Some(CompareOp::Greater),
            Operator::GreaterEquals => Some(CompareOp::GreaterOrEqual),
            _ => None,
        };
        if let Some(op) = compared {
            return self.compare(op, a, b).map(Typed::truth);
        }
        match operator {
            Operator::And => Ok(Typed::truth(Expression::And(vec![a.condition()?, b.condition()?]))),
            Operator::Or => Ok(Typed::truth(Expression::Or(vec![a.condition()?, b.condition()?]))),
            Operator::Is => self.is(a, b, false),
            Operator::IsNot => self.is(a, b, true),
            Operator::Add
            | Operator::Subtract
            | Operator::Multiply
            | Operator::Divide
            | Operator::Modulus => self.arithmetic(operator, a, b),
            Operator::Concat => self.concat(a, b),
            Operator::BitwiseAnd | Operator::BitwiseOr | Operator::LeftShift | Operator::RightShift => {
                self.bits(operator, a, b)
            }
            Operator::ArrowRight | Operator::ArrowRightShift => Err(unsupported("-> and ->>")),
            _ => Err(unsupported("this operator")),
        }
    }

    /// `IS` and `IS NOT`: NULL is equal to NULL.
    fn is(&mut self, a: Typed, b: Typed, not: bool) -> Result<Typed> {
        let is_null = |typed: &Typed| Expression::IsNull(Box::new(typed.value.clone()));
        if matches!(b.class, Class::Null) {
            return Ok(negated(is_null(&a), not));
        }
        if matches!(a.class, Class::Null) {
            return Ok(negated(is_null(&b), not));
        }
        let both = Expression::And(vec![is_null(&a), is_null(&b)]);
        let equal = self.compare(CompareOp::Equal, a, b)?;
        Ok(negated(Expression::Coalesce(vec![equal, both]), not))
    }

    fn case(
        &mut self,
        base: Option<&'b Expr<'b>>,
        pairs: &'b [(Expr<'b>, Expr<'b>)],
        otherwise: Option<&'b Expr<'b>>,
        frame: &mut Frame<'b>,
    ) -> Result<Typed> {
        let base = base.map(|base| self.bind(base, frame)).transpose()?;
        let (mut conditions, mut values) = (Vec::new(), Vec::new());
        for (when, then) in pairs {
            let when = self.bind(when, frame)?;
            conditions.push(match &base {
                Some(base) => self.compare(CompareOp::Equal, base.clone(), when)?,
                None => when.condition()?,
            });
            values.push(self.bind(then, frame)?);
        }
        values.push(match otherwise {
            Some(otherwise) => self.bind(otherwise, frame)?,
            None => Typed::null(),
        });
        branches(conditions, values)
    }

    fn in_list(
        &mut self,
        lhs: &'b Expr<'b>,
        not: bool,
        list: &'b [Expr<'b>],
        frame: &mut Frame<'b>,
    ) -> Result<Typed> {
        let value = self.bind(lhs, frame)?;
        let mut parts = Vec::new();
        for entry in list {
            let mut entry = self.bind(entry, frame)?;
            // The affinity of the list's values does not count.
            entry.affinity = None;
            parts.push(entry);
        }
        self.one_of(value, parts, not)
    }

    /// Whether a value is one of others.
    pub fn one_of(&mut self, value: Typed, parts: Vec<Typed>, not: bool) -> Result<Typed> {
        if parts.is_empty() {
            return Ok(Typed::truth(truth(not)));
        }
        let mut equals = Vec::new();
        for part in parts {
            equals.push(self.compare(CompareOp::Equal, value.clone(), part)?);
        }
        Ok(negated(super::compare::as_list(equals), not))
    }

    fn cast(&mut self, bound: Typed, name: &str) -> Result<Typed> {
        let affinity = Affinity::of_type(name);
        let is_integer = name.to_ascii_uppercase().contains("INT");
        // Typed::constant loses what a CAST prefers.
        if let Some(known) = self.folded(&format!("CAST(?1 AS {})", type_word(name)), &[&bound])? {
            return Ok(known.with_affinity(Some(affinity)));
        }
        let cast = match (affinity, bound.class.clone()) {
            (_, Class::Null) => Typed::null(),
            (Affinity::Real, class) if class.is_number() => Typed::new(bound.real(), Class::Real),
            (Affinity::Numeric, Class::Integer | Class::Truth) => bound.plain(),
            (Affinity::Numeric, Class::Real | Class::Number(_)) if is_integer => {
                let body = |values: &[Value<'_>]| match values {
                    [Value::Real(real)] => Some(Owned::Integer(saturated(*real))),
                    _ => None,
                };
                let value = self.row_function("cast to integer", LogicalType::Int64, body, vec![bound.value]);
                Typed::new(value, Class::Integer)
            }
            (Affinity::Numeric, Class::Number(_) | Class::Real) => bound,
            (Affinity::Text, Class::Text) => bound,
            (Affinity::Text, Class::Integer | Class::Truth) => {
                let body = |values: &[Value<'_>]| match values {
                    [Value::Integer(integer)] => Some(Owned::Text(integer.to_string().into_bytes().into())),
                    _ => None,
                };
                let arguments = vec![bound.plain().value];
                Typed::new(self.row_function("cast to text", LogicalType::Text, body, arguments), Class::Text)
            }
            (Affinity::Numeric, Class::Text) if is_integer => {
                let body = |values: &[Value<'_>]| match values {
                    [Value::Text(text)] => Some(Owned::Integer(leading_integer(text))),
                    _ => None,
                };
                let value = self.row_function("text as integer", LogicalType::Int64, body, vec![bound.value]);
                Typed::new(value, Class::Integer)
            }
            (Affinity::Text, _) => return Err(unsupported("a CAST of reals to text")),
            _ => return Err(unsupported(&format!("a CAST to {name} of such values"))),
        };
        Ok(cast.with_affinity(Some(affinity)))
    }
}

/// A column's name as it was written.
pub fn reference(schema: Option<&str>, table: Option<&str>, column: &str) -> Reference {
    Reference {
        schema: schema.map(unquoted),
        table: table.map(unquoted),
        column: unquoted(column),
        quoted: column.starts_with('"'),
    }
}

/// A number as it was written.
fn number(text: &str) -> Result<Typed> {
    let plain = text.replace('_', "");
    let (sign, digits) = match plain.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, plain.as_str()),
    };
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let bits = u64::from_str_radix(hex, 16).map_err(|_| unsupported(text))?;
        return Typed::constant(Value::Integer(bits.cast_signed().wrapping_mul(sign)));
    }
    match plain.parse::<i64>() {
        Ok(integer) => Typed::constant(Value::Integer(integer)),
        Err(_) => Typed::constant(Value::Real(plain.parse().map_err(|_| unsupported(text))?)),
    }
}

/// A condition, or its opposite.
pub fn negated(condition: Expression, not: bool) -> Typed {
    Typed::truth(if not { Expression::Not(Box::new(condition)) } else { condition })
}

/// The value that belongs to the first condition that holds; the last value if none does.
pub fn branches(conditions: Vec<Expression>, values: Vec<Typed>) -> Result<Typed> {
    let limit = limit_of(&values);
    let (class, values, flags) = united(values)?;
    let logical = class.logical();
    let choose = |mut values: Vec<Expression>, result: LogicalType| {
        let otherwise = values.pop().map(Box::new);
        let branches = conditions.iter().cloned().zip(values).collect();
        Expression::Case { branches, otherwise, result }
    };
    let value = choose(values, logical);
    let class = match flags {
        Some(flags) => Class::Number(Box::new(choose(flags, LogicalType::Bool))),
        None => class,
    };
    Ok(match class {
        Class::Null => Typed::null(),
        class => Typed::new(value, class).within(limit),
    })
}

/// The limit of values that are one column.
pub fn limit_of(values: &[Typed]) -> Option<f64> {
    let numbers = values.iter().filter(|value| value.class != Class::Null);
    numbers.map(|value| value.limit).try_fold(0.0, |most: f64, limit| Some(most.max(limit?)))
}

/// NULL where an expression is, else what is given.
pub fn unless_null(of: &[&Typed], value: Expression, result: LogicalType) -> Expression {
    let is_null = |typed: &&Typed| Expression::IsNull(Box::new(typed.value.clone()));
    let some_null = Expression::Or(of.iter().map(is_null).collect());
    Expression::Case {
        branches: vec![(some_null, null_of(result))],
        otherwise: Some(Box::new(value)),
        result,
    }
}

/// A type's name that has the same affinity: names may hold anything.
fn type_word(name: &str) -> &'static str {
    if name.to_ascii_uppercase().contains("INT") {
        return "INTEGER";
    }
    match Affinity::of_type(name) {
        Affinity::Text => "TEXT",
        Affinity::Real => "REAL",
        Affinity::Numeric => "NUMERIC",
        Affinity::Blob => "BLOB",
    }
}

#[allow(clippy::cast_possible_truncation)]
const fn saturated(real: f64) -> i64 {
    real as i64
}

/// The integer that a text begins with. 0 if it begins with none.
fn leading_integer(text: &[u8]) -> i64 {
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(text.len());
    let rest = text.get(start..).unwrap_or_default();
    let sign = usize::from(matches!(rest.first(), Some(b'+' | b'-')));
    let digits = rest.get(sign..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count();
    let negative = rest.first() == Some(&b'-');
    let mut value: i64 = 0;
    for digit in rest.get(sign..sign + digits).unwrap_or_default() {
        let digit = i64::from(digit - b'0');
        let next = value.checked_mul(10);
        let next =
            next.and_then(|value| if negative { value.checked_sub(digit) } else { value.checked_add(digit) });
        value = match next {
            Some(next) => next,
            None => return if negative { i64::MIN } else { i64::MAX },
        };
    }
    value
}

/// A constant as an expression.
pub fn integer(value: i64) -> Expression {
    constant(Value::Integer(value))
}
