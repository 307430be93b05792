//! The operators of a plan: one entry each, with what it computes by and from.
//!
//! Called by hosts. The walk goes down the plan and names the columns of each operator on the way back up.
//! This order is needed because an operator's expressions use the names of the columns below.

use std::sync::Arc;

use super::expressions::Words;
use super::{Measured, Operator, Options, Property, Spelling, Value};
use crate::{Aggregate, Expression, JoinKind, Plan, SortKey};

/// The operators of a plan as a tree of the same shape.
pub fn operators(plan: &Plan, host: &dyn Spelling, options: Options<'_>) -> Operator {
    Walk { words: Words { host }, options, entered: 0 }.enter(plan).0
}

struct Walk<'a> {
    words: Words<'a>,
    options: Options<'a>,
    /// Operators seen so far: each before its inputs, as figures stand.
    entered: usize,
}

impl Walk<'_> {
    /// A plan's operators, and the names of its columns.
    fn enter(&mut self, plan: &Plan) -> (Operator, Vec<String>) {
        let measured = self.measured(plan);
        self.entered += 1;
        let inputs = plan.inputs().into_iter().map(|input| self.enter(input));
        let (inputs, names): (Vec<_>, Vec<_>) = inputs.unzip();
        let (columns, mut properties) = self.describe(plan, names);
        if self.options.verbose && !columns.is_empty() {
            properties.insert(0, Property::new("Output", Value::List(columns.clone())));
        }
        let own = match plan {
            Plan::Scan { source, .. } => self.words.host.source(*source),
            _ => None,
        };
        let (title, of_source) = own.unwrap_or_else(|| (title(plan), Vec::new()));
        properties.extend(of_source);
        (Operator { title, properties, measured, inputs }, columns)
    }

    /// What the operator did that comes next.
    fn measured(&self, plan: &Plan) -> Option<Measured> {
        let figures = *self.options.figures.get(self.entered)?;
        let input = self.options.figures.get(self.entered + 1);
        let input = input.filter(|_| matches!(plan, Plan::Filter { .. }));
        let removed = input.map(|input| input.rows.saturating_sub(figures.rows)).filter(|&rows| rows > 0);
        Some(Measured { figures, removed, with_work: self.options.with_work })
    }

    /// The names of a plan's columns, and its properties, given the names of its inputs' columns.
    fn describe(&self, plan: &Plan, mut inputs: Vec<Vec<String>>) -> (Vec<String>, Vec<Property>) {
        let below = if inputs.is_empty() { Vec::new() } else { inputs.swap_remove(0) };
        let all = |parts: &[Expression]| -> Vec<_> {
            parts.iter().map(|part| self.words.expression(part, &below)).collect()
        };
        let keys = |keys: &[SortKey]| keys.iter().map(|key| self.words.sort_key(key, &below)).collect();
        let mut found = Properties::default();
        let columns = match plan {
            Plan::Scan { source, .. } => self.words.host.columns(*source),
            Plan::Filter { condition, .. } => {
                found.text("Filter", self.words.expression(condition, &below));
                below
            }
            Plan::Project { expressions, .. } => all(expressions),
            Plan::Aggregate { keys, aggregates, .. } => {
                let keys = all(keys);
                found.list("Group Key", keys.clone());
                self.grouped(keys, aggregates, &below, &mut found)
            }
            Plan::GroupingSets { keys, sets, aggregates, .. } => {
                let keys = all(keys);
                let set = |set: &Vec<usize>| {
                    let keys = set.iter().filter_map(|&key| keys.get(key).cloned());
                    format!("({})", keys.collect::<Vec<_>>().join(", "))
                };
                found.list("Grouping Sets", sets.iter().map(set).collect());
                let mut columns = self.grouped(keys, aggregates, &below, &mut found);
                columns.push("grouping set".into());
                columns
            }
            Plan::Repeat { count, .. } => {
                found.text("Count", self.words.expression(count, &below));
                below
            }
            Plan::Join { kind, keys, condition, .. } => {
                let right = inputs.pop().unwrap_or_default();
                self.joined(*kind, (keys, condition.as_ref()), (below, right), &mut found)
            }
            Plan::Sort { keys: by, .. } => {
                found.list("Sort Key", keys(by));
                below
            }
            Plan::DistinctOn { keys: by, on, .. } => {
                found.list("Sort Key", keys(by));
                let on = by.iter().take(*on).map(|key| self.words.expression(&key.expression, &below));
                found.list("Distinct On", on.collect());
                below
            }
            Plan::Limit { .. } => below,
            Plan::Append { inputs: parts, removed } => {
                if *removed > 0 {
                    found.0.push(Property::new("Subplans Removed", Value::Count(*removed as u64)));
                }
                appended(parts, below)
            }
            Plan::Window { partition, order, functions, .. } => {
                found.list("Partition Key", all(partition));
                found.list("Order Key", all(order));
                let calls: Vec<_> = functions.iter().map(|call| self.words.window(call, &below)).collect();
                found.list("Functions", calls.clone());
                [below, calls].concat()
            }
        };
        (columns, found.0)
    }

    /// The columns of groups with these keys.
    fn grouped(
        &self,
        keys: Vec<String>,
        aggregates: &[Aggregate],
        below: &[String],
        found: &mut Properties,
    ) -> Vec<String> {
        let calls: Vec<_> = aggregates.iter().map(|call| self.words.aggregate(call, below)).collect();
        found.list("Aggregates", calls.clone());
        [keys, calls].concat()
    }

    /// The columns of a join by these keys and this condition, of inputs with these columns.
    fn joined(
        &self,
        kind: JoinKind,
        (keys, condition): (&[(Expression, Expression)], Option<&Expression>),
        (left, right): (Vec<String>, Vec<String>),
        found: &mut Properties,
    ) -> Vec<String> {
        let pair = |(a, b): &(Expression, Expression)| {
            format!("({} = {})", self.words.expression(a, &left), self.words.expression(b, &right))
        };
        let pairs: Vec<_> = keys.iter().map(pair).collect();
        if !pairs.is_empty() {
            let text = pairs.join(" AND ");
            found.text("Hash Cond", if pairs.len() > 1 { format!("({text})") } else { text });
        }
        let both = [left.as_slice(), right.as_slice()].concat();
        if let Some(condition) = condition {
            found.text("Join Filter", self.words.expression(condition, &both));
        }
        match (kind.gives_left(), kind.gives_right()) {
            (true, true) => both,
            (true, false) => left,
            (false, _) => right,
        }
    }
}

/// Properties of an operator.
#[derive(Default)]
struct Properties(Vec<Property>);

impl Properties {
    fn text(&mut self, label: &'static str, text: String) {
        self.0.push(Property::new(label, Value::Text(text)));
    }

    /// Keys, calls or columns, where there are any.
    fn list(&mut self, label: &'static str, items: Vec<String>) {
        if !items.is_empty() {
            self.0.push(Property::new(label, Value::List(items)));
        }
    }
}

/// The columns of an append by the names of its first input's; one that is another constant in each input
/// says which of them a row is from.
fn appended(parts: &[Plan], mut first: Vec<String>) -> Vec<String> {
    let constant = |plan: &Plan, at: usize| match plan {
        Plan::Project { expressions, .. } => match expressions.get(at) {
            Some(Expression::Constant(value)) => Some(Arc::clone(value)),
            _ => None,
        },
        _ => None,
    };
    for (at, name) in first.iter_mut().enumerate() {
        let values: Option<Vec<_>> = parts.iter().map(|part| constant(part, at)).collect();
        if values.is_some_and(|values| values.windows(2).any(|pair| pair[0] != pair[1])) {
            "branch".clone_into(name);
        }
    }
    first
}

fn title(plan: &Plan) -> String {
    match plan {
        Plan::Scan { source, .. } => format!("Scan {}", source + 1),
        Plan::Filter { .. } => "Filter".into(),
        Plan::Project { .. } => "Project".into(),
        Plan::Aggregate { keys, .. } if keys.is_empty() => "Aggregate".into(),
        Plan::Aggregate { .. } => "Hash Aggregate".into(),
        Plan::GroupingSets { .. } => "Grouping Sets".into(),
        Plan::Repeat { .. } => "Repeat".into(),
        Plan::Join { kind, .. } => format!("Hash Join ({})", kind_name(*kind)),
        Plan::Sort { limit: Some(limit), .. } => format!("Top-N Sort ({limit})"),
        Plan::Sort { .. } => "Sort".into(),
        Plan::DistinctOn { .. } => "Sort, Distinct On".into(),
        // The operator that gathers all rows before the first is given out (`stream`).
        Plan::Limit { offset: 0, limit: None, .. } => "Materialize".into(),
        Plan::Limit { .. } => "Limit".into(),
        Plan::Append { .. } => "Append".into(),
        Plan::Window { .. } => "Window".into(),
    }
}

/// The right input is the one that is kept.
fn kind_name(kind: JoinKind) -> String {
    match kind {
        JoinKind::RightSemi => "Right Semi".into(),
        JoinKind::RightAnti => "Right Anti".into(),
        JoinKind::NullAwareAnti => "Null-Aware Anti".into(),
        _ => format!("{kind:?}"),
    }
}
