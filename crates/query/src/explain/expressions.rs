//! Expressions of a plan as SQL.
//!
//! Called by `operators`. Columns have the names that the operator below gives them. The host writes
//! constants and calls of its functions if it knows what they were translated from (`Spelling`). So
//! parameters, casts and literals read as they do elsewhere in its EXPLAIN.

use std::sync::Arc;

use vector::{CompareOp, LogicalType, Values, Vector};

use super::Spelling;
use crate::{
    Aggregate, AggregateFunction, Expression, Function, Regression, SortKey, WindowCall, WindowFunction,
};

/// Longer texts are cut: a projection over a projection may repeat the same expression many times.
const LONGEST: usize = 4_000;

/// SQL with the host's words in it.
pub(super) struct Words<'a> {
    pub host: &'a dyn Spelling,
}

impl Words<'_> {
    fn value(&self, value: &Arc<Vector>) -> String {
        self.host.constant(value).unwrap_or_else(|| literal(value))
    }

    /// An expression over columns of these names.
    pub fn expression(&self, expression: &Expression, columns: &[String]) -> String {
        let mut text = self.whole(expression, columns);
        if text.len() > LONGEST {
            let end = (0..=LONGEST).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
            text.truncate(end);
            text.push_str("...");
        }
        text
    }

    fn whole(&self, expression: &Expression, columns: &[String]) -> String {
        let list = |parts: &[Expression], between: &str| {
            let parts = parts.iter().map(|part| self.expression(part, columns));
            parts.collect::<Vec<_>>().join(between)
        };
        match expression {
            Expression::Column(at) => columns.get(*at).cloned().unwrap_or_else(|| format!("${at}")),
            Expression::Constant(value) => self.value(value),
            Expression::Call { function, arguments, .. } => {
                let arguments: Vec<_> = arguments.iter().map(|part| self.expression(part, columns)).collect();
                call(*function, &arguments)
            }
            Expression::Host { function, arguments, .. } => (self.host.function(function))
                .unwrap_or_else(|| format!("{}({})", function.name(), list(arguments, ", "))),
            Expression::And(parts) => format!("({})", list(parts, " AND ")),
            Expression::Or(parts) => format!("({})", list(parts, " OR ")),
            Expression::Not(part) => match part.as_ref() {
                Expression::IsNull(value) => format!("({} IS NOT NULL)", self.expression(value, columns)),
                Expression::In { value, entries } => {
                    format!("({} <> ALL ({}))", self.expression(value, columns), self.value(entries))
                }
                part => format!("(NOT {})", self.expression(part, columns)),
            },
            Expression::IsNull(value) => format!("({} IS NULL)", self.expression(value, columns)),
            Expression::Case { branches, otherwise, .. } => {
                let mut text = String::from("CASE");
                for (condition, value) in branches {
                    let (condition, value) =
                        (self.expression(condition, columns), self.expression(value, columns));
                    text.push_str(&format!(" WHEN {condition} THEN {value}"));
                }
                if let Some(otherwise) = otherwise {
                    text.push_str(&format!(" ELSE {}", self.expression(otherwise, columns)));
                }
                text + " END"
            }
            Expression::Coalesce(parts) => {
                // Where the host knows the constant, it stands for what depends on a value that is not known
                // yet.
                let unknown = match parts.first() {
                    Some(Expression::Constant(value)) => self.host.constant(value),
                    _ => None,
                };
                unknown.unwrap_or_else(|| format!("COALESCE({})", list(parts, ", ")))
            }
            Expression::In { value, entries } => {
                format!("({} = ANY ({}))", self.expression(value, columns), self.value(entries))
            }
        }
    }

    /// An item of ORDER BY.
    pub fn sort_key(&self, key: &SortKey, columns: &[String]) -> String {
        let direction = match (key.descending, key.nulls_first) {
            (false, false) => "",
            (false, true) => " NULLS FIRST",
            (true, true) => " DESC",
            (true, false) => " DESC NULLS LAST",
        };
        format!("{}{direction}", self.expression(&key.expression, columns))
    }

    /// A call of an aggregate.
    pub fn aggregate(&self, aggregate: &Aggregate, columns: &[String]) -> String {
        use AggregateFunction as F;
        let list = |parts: &[Expression]| {
            parts.iter().map(|part| self.expression(part, columns)).collect::<Vec<_>>().join(", ")
        };
        let order = aggregate.order_by.iter().map(|key| self.sort_key(key, columns));
        let order = order.collect::<Vec<_>>().join(", ");
        let mut text = match aggregate.function {
            F::CountRows => "count(*)".to_owned(),
            F::PercentileDisc(part) => format!("percentile_disc({part}) WITHIN GROUP (ORDER BY {order})"),
            F::PercentileCont(part) => format!("percentile_cont({part}) WITHIN GROUP (ORDER BY {order})"),
            F::Mode => format!("mode() WITHIN GROUP (ORDER BY {order})"),
            function => {
                let distinct = if aggregate.distinct { "DISTINCT " } else { "" };
                let order = if order.is_empty() { order } else { format!(" ORDER BY {order}") };
                let name = match &aggregate.host {
                    Some(host) => host.name().to_owned(),
                    None => aggregate_name(function),
                };
                format!("{name}({distinct}{}{order})", list(&aggregate.arguments))
            }
        };
        if let Some(filter) = &aggregate.filter {
            text.push_str(&format!(" FILTER (WHERE {})", self.expression(filter, columns)));
        }
        text
    }

    /// A call of a window function.
    pub fn window(&self, call: &WindowCall, columns: &[String]) -> String {
        let name = match call.function {
            WindowFunction::Aggregate(AggregateFunction::CountRows) => return "count(*) OVER (?)".to_owned(),
            WindowFunction::Aggregate(function) => aggregate_name(function),
            function => name(function),
        };
        let arguments = call.arguments.iter().map(|part| self.expression(part, columns));
        format!("{name}({}) OVER (?)", arguments.collect::<Vec<_>>().join(", "))
    }
}

/// The name of a function in SQL: that of ours, as PostgreSQL writes names.
fn name(function: impl std::fmt::Debug) -> String {
    let known = format!("{function:?}");
    let known = known.split([' ', '(', '{']).next().unwrap_or_default();
    let mut name = String::with_capacity(known.len() + 4);
    for (at, letter) in known.chars().enumerate() {
        if letter.is_ascii_uppercase() && at > 0 {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

fn aggregate_name(function: AggregateFunction) -> String {
    match function {
        AggregateFunction::Regression(function) => regression(function).to_owned(),
        function => name(function),
    }
}

const fn regression(function: Regression) -> &'static str {
    match function {
        Regression::Count => "regr_count",
        Regression::AverageX => "regr_avgx",
        Regression::AverageY => "regr_avgy",
        Regression::SquaresX => "regr_sxx",
        Regression::SquaresY => "regr_syy",
        Regression::Products => "regr_sxy",
        Regression::CovarPop => "covar_pop",
        Regression::CovarSamp => "covar_samp",
        Regression::Corr => "corr",
        Regression::R2 => "regr_r2",
        Regression::Slope => "regr_slope",
        Regression::Intercept => "regr_intercept",
    }
}

/// A call of one of this crate's functions.
fn call(function: Function, arguments: &[String]) -> String {
    use Function as F;
    let of = |at: usize| arguments.get(at).map_or("", String::as_str);
    let operator = |symbol: &str| format!("({} {symbol} {})", of(0), of(1));
    let plain = |name: &str| format!("{name}({})", arguments.join(", "));
    match function {
        F::Compare(CompareOp::Equal) => operator("="),
        F::Compare(CompareOp::NotEqual) => operator("<>"),
        F::Compare(CompareOp::Less) => operator("<"),
        F::Compare(CompareOp::LessOrEqual) => operator("<="),
        F::Compare(CompareOp::Greater) => operator(">"),
        F::Compare(CompareOp::GreaterOrEqual) => operator(">="),
        F::Add => operator("+"),
        F::Subtract => operator("-"),
        F::Multiply => operator("*"),
        F::Divide => operator("/"),
        F::Modulo => operator("%"),
        F::Like => operator("~~"),
        F::ILike(_) => operator("~~*"),
        F::Concat => operator("||"),
        F::Negate => format!("(- {})", of(0)),
        // PostgreSQL does not show the type of a small number either.
        F::Cast(_) if !of(0).is_empty() && of(0).bytes().all(|digit| digit.is_ascii_digit()) => {
            of(0).to_owned()
        }
        F::Cast(logical) => format!("({})::{}", of(0), type_name(logical)),
        F::NumericLength { precision, scale } => format!("({})::numeric({precision},{scale})", of(0)),
        F::Extract(field) => format!("EXTRACT({} FROM {})", name(field), of(0)),
        F::DatePart(field) => format!("date_part('{}', {})", name(field), of(0)),
        F::DateTrunc(field) => format!("date_trunc('{}', {})", name(field), of(0)),
        F::Absolute => plain("abs"),
        F::Truncate => plain("trunc"),
        F::Ceiling => plain("ceil"),
        F::Position => plain("strpos"),
        F::Trim { start: true, end: true } => plain("btrim"),
        F::Trim { start: true, end: false } => plain("ltrim"),
        F::Trim { .. } => plain("rtrim"),
        other => plain(&name(other)),
    }
}

fn type_name(logical: LogicalType) -> &'static str {
    use LogicalType as T;
    match logical {
        T::Bool => "boolean",
        T::Int16 => "smallint",
        T::Int32 => "integer",
        T::Int64 => "bigint",
        T::UInt64 => "uint8",
        T::Float32 => "real",
        T::Float64 => "double precision",
        T::Date => "date",
        T::Timestamp => "timestamp",
        T::Uuid => "uuid",
        T::Numeric => "numeric",
        T::Text => "text",
        T::FixedBytes(_) | T::Bytes => "bytes",
    }
}

/// A constant that was made by translation: a truth value, a number or a NULL.
fn literal(value: &Vector) -> String {
    if value.null_count() == value.len() {
        return format!("NULL::{}", type_name(value.logical));
    }
    let texts = |values: &mut dyn Iterator<Item = String>| values.collect::<Vec<_>>().join(", ");
    match &value.values {
        Values::Bool(bits) => texts(&mut bits.iter().map(|bit| bit.to_string())),
        Values::Int16(values) => texts(&mut values.iter().map(ToString::to_string)),
        Values::Int32(values) => texts(&mut values.iter().map(ToString::to_string)),
        Values::Int64(values) if value.logical == LogicalType::UInt64 => {
            texts(&mut values.iter().map(|&held| vector::unsigned(held).to_string()))
        }
        Values::Int64(values) => texts(&mut values.iter().map(ToString::to_string)),
        Values::Float32(values) => texts(&mut values.iter().map(ToString::to_string)),
        Values::Float64(values) => texts(&mut values.iter().map(ToString::to_string)),
        _ => format!("?::{}", type_name(value.logical)),
    }
}
