//! Window functions: FUNCTION(...) OVER (PARTITION BY ... ORDER BY ... frame).

use query::{
    AggregateFunction, Expression, FrameBound, FrameExclusion, FrameOffset, FrameUnits, Function, Plan,
    SortKey, TextOrder, WindowCall, WindowFrame, WindowFunction,
};
use sqlite3_parser::ast::{self, FrameExclude, FrameMode, Over, Window};
use vector::LogicalType;

use super::aggregates::Call;
use super::compare::{folded, text_order};
use super::frame::Frame;
use super::kernels;
use super::names::unquoted;
use super::planner::{Id, Node, Planner, ids_of};
use super::select::direction;
use super::typed::{Class, Typed, call, int32, null_of, unsupported, widened};
use crate::api::Result;
use crate::values::{Collation, Owned};

/// A window function that was met in an expression.
pub struct WindowTerm {
    partition: Vec<Expression>,
    order: Vec<SortKey>,
    frame: WindowFrame,
    call: WindowCall,
    id: Id,
}

impl WindowTerm {
    /// The columns that it reads.
    pub fn ids(&self, out: &mut Vec<Id>) {
        self.partition.iter().for_each(|part| ids_of(part, out));
        self.order.iter().for_each(|key| ids_of(&key.expression, out));
        self.call.arguments.iter().for_each(|argument| ids_of(argument, out));
    }
}

impl<'b> Planner<'b> {
    /// A call with OVER.
    pub fn window_call(&mut self, given: &Call<'b>, frame: &mut Frame<'b>) -> Result<Typed> {
        let Some(mut terms) = frame.windows.take() else {
            return Err(unsupported("a window function in this place"));
        };
        let result = self.window_call_in(given, frame, &mut terms);
        frame.windows = Some(terms);
        result
    }

    fn window_call_in(
        &mut self,
        given: &Call<'b>,
        frame: &mut Frame<'b>,
        terms: &mut Vec<WindowTerm>,
    ) -> Result<Typed> {
        let window: &'b Window<'b> = match given.tail.and_then(|tail| tail.over_clause) {
            Some(Over::Window(window)) => window,
            Some(Over::Name(name)) => self.named_window(&unquoted(name.0))?,
            None => return Err(unsupported("a window function without OVER")),
        };
        if window.base.is_some() {
            return Err(unsupported("a window that extends another one"));
        }
        if given.distinct || given.is_ordered {
            return Err(unsupported("DISTINCT and ORDER BY in window functions"));
        }
        let filter = match given.tail.and_then(|tail| tail.filter_clause) {
            Some(filter) => Some(self.bind(filter, frame)?.condition()?),
            None => None,
        };
        let mut partition = Vec::new();
        for part in window.partition_by.unwrap_or_default() {
            let bound = self.bind(part, frame)?.plain();
            let collation = bound.collation.0;
            partition.push(folded(bound, collation));
        }
        let mut order = Vec::new();
        for column in window.order_by.unwrap_or_default() {
            let bound = self.bind(&column.expr, frame)?.plain();
            let (descending, nulls_first) = direction(column);
            let collation = bound.collation.0;
            let expression = folded(bound, collation);
            order.push(SortKey { expression, descending, nulls_first, order: TextOrder::Bytes });
        }
        let shape = self.window_frame(window, &order, frame)?;
        let mut arguments = Vec::new();
        for argument in given.arguments.unwrap_or_default() {
            arguments.push(self.bind(argument, frame)?.plain());
        }
        let by = arguments.first().map_or(Collation::Binary, |first| first.collation.0);
        let mut add = |planner: &mut Self, function, arguments: Vec<Expression>, result, class: Class| {
            let id = planner.new_hidden(class);
            let own = WindowCall { function, arguments, order: text_order(by), result };
            let (partition, order) = (partition.clone(), order.clone());
            terms.push(WindowTerm { partition, order, frame: shape, call: own, id });
            Expression::Column(id)
        };
        self.window_function(given, arguments, filter, &mut add)
    }

    #[allow(clippy::type_complexity)]
    fn window_function(
        &mut self,
        given: &Call<'b>,
        arguments: Vec<Typed>,
        filter: Option<Expression>,
        add: &mut dyn FnMut(&mut Self, WindowFunction, Vec<Expression>, LogicalType, Class) -> Expression,
    ) -> Result<Typed> {
        use AggregateFunction as A;
        use LogicalType::{Float64, Int32, Int64, Numeric};
        use WindowFunction as W;
        let simple = match given.name.as_str() {
            "row_number" => Some(W::RowNumber),
            "rank" => Some(W::Rank),
            "dense_rank" => Some(W::DenseRank),
            "percent_rank" => Some(W::PercentRank),
            "cume_dist" => Some(W::CumeDist),
            _ => None,
        };
        if let Some(function) = simple {
            let is_real = matches!(function, W::PercentRank | W::CumeDist);
            let (result, class) = if is_real { (Float64, Class::Real) } else { (Int64, Class::Integer) };
            return Ok(Typed::new(add(self, function, Vec::new(), result, class.clone()), class));
        }
        let small = |typed: &Typed| match typed.known() {
            Some(Some(Owned::Integer(number))) => i32::try_from(number).ok().filter(|number| *number >= 0),
            _ => None,
        };
        let steps = |typed: Option<&Typed>| match typed {
            None => Ok(int32(1)),
            Some(typed) => small(typed).map(int32).ok_or_else(|| {
                unsupported("a window function with a number that is no constant, or negative")
            }),
        };
        // A column of numeric affinity tells by its values which are reals.
        let first_class = arguments.first().map_or(Class::Null, |argument| argument.class.clone());
        let tells_class = arguments.first().is_none_or(Typed::tells_class);
        let kept = |value: Expression, class: Class| -> Result<Typed> {
            let class = match class {
                Class::Number(_) if tells_class => Class::Number(Box::new(kernels::fraction(value.clone()))),
                Class::Number(_) => {
                    return Err(unsupported("windows over values that are integers or reals"));
                }
                class => class,
            };
            Ok(Typed::new(value, class))
        };
        let logical = first_class.logical();
        match (given.name.as_str(), arguments.as_slice()) {
            ("ntile", [buckets]) => {
                let number = add(self, W::Ntile, vec![steps(Some(buckets))?], Int32, Class::Integer);
                Ok(Typed::new(widened(number), Class::Integer))
            }
            ("lag" | "lead", [value, rest @ ..]) => {
                let function = if given.name == "lag" { W::Lag } else { W::Lead };
                let mut all = vec![value.value.clone(), steps(rest.first())?];
                if let Some(otherwise) = rest.get(1) {
                    all.push(match &otherwise.class {
                        Class::Null => null_of(logical),
                        class if *class == first_class => otherwise.value.clone(),
                        _ => return Err(unsupported("a default of another class than the values")),
                    });
                }
                let value = add(self, function, all, logical, first_class.clone());
                kept(value, first_class)
            }
            ("first_value" | "last_value", [value]) => {
                let function = if given.name == "first_value" { W::FirstValue } else { W::LastValue };
                let value = add(self, function, vec![value.value.clone()], logical, first_class.clone());
                kept(value, first_class)
            }
            ("nth_value", [value, number]) => {
                let all = vec![value.value.clone(), steps(Some(number))?];
                let value = add(self, W::NthValue, all, logical, first_class.clone());
                kept(value, first_class)
            }
            ("count", []) => match filter {
                None => {
                    let rows = add(self, W::Aggregate(A::CountRows), Vec::new(), Int64, Class::Integer);
                    Ok(Typed::new(rows, Class::Integer))
                }
                Some(filter) => {
                    let one = super::expressions::integer(1);
                    let counted = filtered(Some(filter), one, Int64);
                    let rows = add(self, W::Aggregate(A::Count), vec![counted], Int64, Class::Integer);
                    Ok(Typed::new(rows, Class::Integer))
                }
            },
            ("count", [value]) => {
                let counted = filtered(filter, value.value.clone(), logical);
                let rows = add(self, W::Aggregate(A::Count), vec![counted], Int64, Class::Integer);
                Ok(Typed::new(rows, Class::Integer))
            }
            ("min" | "max", [value]) => {
                let function = if given.name == "min" { A::Min } else { A::Max };
                let value = filtered(filter, value.value.clone(), logical);
                let value = add(self, W::Aggregate(function), vec![value], logical, first_class.clone());
                kept(value, first_class)
            }
            ("sum" | "avg" | "total", [_]) if first_class == Class::Text => {
                Err(unsupported(&format!("{} of text", given.name)))
            }
            ("sum", [value]) if first_class == Class::Integer => {
                let value = filtered(filter, value.value.clone(), logical);
                let exact = add(self, W::Aggregate(A::Sum), vec![value], Numeric, Class::Null);
                Ok(Typed::new(call(Function::Cast(Int64), vec![exact], Int64), Class::Integer))
            }
            ("sum", [value]) if first_class == Class::Real => {
                let value = filtered(filter, value.value.clone(), logical);
                let sum = add(self, W::Aggregate(A::Sum), vec![value], Float64, Class::Real);
                Ok(Typed::new(sum, Class::Real))
            }
            ("avg", [value]) => {
                let value = filtered(filter, value.clone().real(), Float64);
                let average = add(self, W::Aggregate(A::Avg), vec![value], Float64, Class::Real);
                Ok(Typed::new(average, Class::Real))
            }
            (other, _) => Err(unsupported(&format!("the window function {other} of such values"))),
        }
    }

    fn named_window(&self, name: &str) -> Result<&'b Window<'b>> {
        let found = self.windows_named.iter().find(|own| unquoted(own.name.0).eq_ignore_ascii_case(name));
        found.map(|own| &own.window).ok_or_else(|| unsupported(&format!("the window {name}")))
    }

    fn window_frame(
        &mut self,
        window: &'b Window<'b>,
        order: &[SortKey],
        frame: &mut Frame<'b>,
    ) -> Result<WindowFrame> {
        let (descending, nulls_first) =
            order.first().map_or((false, true), |key| (key.descending, key.nulls_first));
        let mut shape = WindowFrame {
            units: FrameUnits::Range,
            start: FrameBound::Unbounded,
            end: FrameBound::CurrentRow,
            exclusion: FrameExclusion::Nothing,
            descending,
            nulls_first,
        };
        let Some(given) = &window.frame_clause else { return Ok(shape) };
        shape.units = match given.mode {
            FrameMode::Rows => FrameUnits::Rows,
            FrameMode::Range => FrameUnits::Range,
            FrameMode::Groups => FrameUnits::Groups,
        };
        shape.exclusion = match &given.exclude {
            None | Some(FrameExclude::NoOthers) => FrameExclusion::Nothing,
            Some(FrameExclude::CurrentRow) => FrameExclusion::CurrentRow,
            Some(FrameExclude::Group) => FrameExclusion::Group,
            Some(FrameExclude::Ties) => FrameExclusion::Ties,
        };
        let mut bound = |given: &'b ast::FrameBound<'b>| -> Result<FrameBound> {
            let mut offset = |expression| -> Result<FrameOffset> {
                match self.bind(expression, frame)?.known() {
                    Some(Some(Owned::Integer(number))) => u64::try_from(number)
                        .map(FrameOffset::Count)
                        .map_err(|_| unsupported("a frame with a negative offset")),
                    Some(Some(Owned::Real(real))) => Ok(FrameOffset::Float(real)),
                    _ => Err(unsupported("a frame with an offset that is no constant number")),
                }
            };
            Ok(match given {
                ast::FrameBound::CurrentRow => FrameBound::CurrentRow,
                ast::FrameBound::UnboundedFollowing | ast::FrameBound::UnboundedPreceding => {
                    FrameBound::Unbounded
                }
                ast::FrameBound::Preceding(expression) => FrameBound::Preceding(offset(expression)?),
                ast::FrameBound::Following(expression) => FrameBound::Following(offset(expression)?),
            })
        };
        shape.start = bound(&given.start)?;
        if let Some(end) = &given.end {
            shape.end = bound(end)?;
        }
        Ok(shape)
    }

    /// The rows with the results of window functions.
    pub fn windowed(&mut self, mut node: Node, mut terms: Vec<WindowTerm>) -> Result<Node> {
        while let Some(first) = terms.first() {
            let (partition, order, frame) = (first.partition.clone(), first.order.clone(), first.frame);
            let (now, later): (Vec<WindowTerm>, Vec<WindowTerm>) = terms
                .into_iter()
                .partition(|term| term.partition == partition && term.order == order && term.frame == frame);
            terms = later;
            let placed = |key: &SortKey, node: &Node| -> Result<SortKey> {
                Ok(SortKey { expression: node.place(&key.expression)?, ..key.clone() })
            };
            let mut keys = Vec::new();
            for part in &partition {
                let expression = node.place(part)?;
                keys.push(SortKey {
                    expression,
                    descending: false,
                    nulls_first: true,
                    order: TextOrder::Bytes,
                });
            }
            for key in &order {
                keys.push(placed(key, &node)?);
            }
            let partition = partition.iter().map(|part| node.place(part)).collect::<Result<Vec<_>>>()?;
            let peers = order.iter().map(|key| node.place(&key.expression)).collect::<Result<Vec<_>>>()?;
            let mut functions = Vec::new();
            let mut ids = node.ids.clone();
            for term in now {
                let mut call = term.call;
                call.arguments =
                    call.arguments.iter().map(|argument| node.place(argument)).collect::<Result<Vec<_>>>()?;
                functions.push(call);
                ids.push(term.id);
            }
            let input = match keys.is_empty() {
                true => node.plan,
                false => Plan::Sort { input: Box::new(node.plan), keys, limit: None },
            };
            let plan = Plan::Window { input: Box::new(input), partition, order: peers, frame, functions };
            node = Node { plan, ids, rows: node.rows };
        }
        Ok(node)
    }
}

/// The value where a condition holds, else NULL.
fn filtered(filter: Option<Expression>, value: Expression, logical: LogicalType) -> Expression {
    match filter {
        None => value,
        Some(filter) => {
            Expression::Case { branches: vec![(filter, value)], otherwise: None, result: logical }
        }
    }
}
