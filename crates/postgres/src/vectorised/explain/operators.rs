//! The operators of a vectorised plan as EXPLAIN shows them: one entry each, with what it computes by and
//! from.
//!
//! Called by `explain`. The walk goes down the plan and names the columns of each operator on the way back
//! up, since those of an operator are told in the names of the one below.

use pgrx::PgList;
use pgrx::pg_sys;
use query::{Expression, JoinKind, Plan};

use super::expression::Words;
use crate::vectorised::translated::{Origin, SourceSpec};

/// An operator.
pub struct Operator {
    /// How many operators are above it.
    pub depth: usize,
    /// What it is.
    pub name: String,
    /// Its properties: label and items; one text for a condition.
    pub details: Vec<(&'static std::ffi::CStr, Detail)>,
    /// Whether it leaves out rows of its only input.
    pub filters: bool,
}

/// A property.
pub enum Detail {
    /// A condition.
    Text(String),
    /// Keys, calls or columns.
    List(Vec<String>),
    /// How many there are of something.
    Number(usize),
}

/// The operators of a plan, each before its inputs.
///
/// # Safety
/// The sources are those of the plan, and belong to the statement that `words` explains.
pub unsafe fn operators(
    plan: &Plan,
    sources: &[&SourceSpec],
    words: &Words<'_>,
    verbose: bool,
) -> Vec<Operator> {
    let mut walk = Walk { sources, words, verbose, found: Vec::new() };
    // SAFETY: the caller's promise.
    unsafe { walk.enter(plan, 0) };
    walk.found
}

struct Walk<'a> {
    sources: &'a [&'a SourceSpec],
    words: &'a Words<'a>,
    verbose: bool,
    found: Vec<Operator>,
}

impl Walk<'_> {
    /// Adds a plan's operators; the names of its columns.
    unsafe fn enter(&mut self, plan: &Plan, depth: usize) -> Vec<String> {
        let at = self.found.len();
        let filters = matches!(plan, Plan::Filter { .. });
        self.found.push(Operator { depth, name: title(plan), details: Vec::new(), filters });
        // SAFETY: `operators`' promise.
        let inputs = plan.inputs().into_iter().map(|input| unsafe { self.enter(input, depth + 1) });
        let inputs: Vec<Vec<String>> = inputs.collect();
        // SAFETY: as above.
        let (columns, mut details) = unsafe { self.describe(plan, inputs) };
        if self.verbose && !columns.is_empty() {
            details.insert(0, (c"Output", Detail::List(columns.clone())));
        }
        if let Some(operator) = self.found.get_mut(at) {
            operator.details = details;
        }
        columns
    }

    /// The names of a plan's columns, and its properties.
    unsafe fn describe(
        &self,
        plan: &Plan,
        mut inputs: Vec<Vec<String>>,
    ) -> (Vec<String>, Vec<(&'static std::ffi::CStr, Detail)>) {
        let words = self.words;
        let below = if inputs.is_empty() { Vec::new() } else { inputs.swap_remove(0) };
        let all = |parts: &[Expression]| {
            parts.iter().map(|part| words.expression(part, &below)).collect::<Vec<_>>()
        };
        let mut details = Vec::new();
        let mut list = |label, items: Vec<String>| {
            if !items.is_empty() {
                details.push((label, Detail::List(items)));
            }
        };
        let columns = match plan {
            // SAFETY: `operators`' promise.
            Plan::Scan { source, .. } => unsafe { self.columns_of(*source) },
            Plan::Filter { condition, .. } => {
                details.push((c"Filter", Detail::Text(words.expression(condition, &below))));
                below
            }
            Plan::Project { expressions, .. } => all(expressions),
            Plan::Aggregate { keys, aggregates, .. } => {
                let mut columns = all(keys);
                list(c"Group Key", columns.clone());
                let calls: Vec<_> = aggregates.iter().map(|call| words.aggregate(call, &below)).collect();
                list(c"Aggregates", calls.clone());
                columns.extend(calls);
                columns
            }
            Plan::GroupingSets { keys, sets, aggregates, .. } => {
                let mut columns = all(keys);
                let set = |set: &Vec<usize>| {
                    let keys = set.iter().filter_map(|&key| columns.get(key).cloned());
                    format!("({})", keys.collect::<Vec<_>>().join(", "))
                };
                list(c"Grouping Sets", sets.iter().map(set).collect());
                let calls: Vec<_> = aggregates.iter().map(|call| words.aggregate(call, &below)).collect();
                list(c"Aggregates", calls.clone());
                columns.extend(calls);
                columns.push("grouping set".into());
                columns
            }
            Plan::Repeat { count, .. } => {
                details.push((c"Count", Detail::Text(words.expression(count, &below))));
                below
            }
            Plan::Join { kind, keys, condition, .. } => {
                let right = inputs.pop().unwrap_or_default();
                let pairs = keys.iter().map(|(a, b)| {
                    format!("({} = {})", words.expression(a, &below), words.expression(b, &right))
                });
                let pairs: Vec<_> = pairs.collect();
                if !pairs.is_empty() {
                    let text = pairs.join(" AND ");
                    let text = if pairs.len() > 1 { format!("({text})") } else { text };
                    details.push((c"Hash Cond", Detail::Text(text)));
                }
                let both = [below.as_slice(), right.as_slice()].concat();
                if let Some(condition) = condition {
                    details.push((c"Join Filter", Detail::Text(words.expression(condition, &both))));
                }
                match (kind.gives_left(), kind.gives_right()) {
                    (true, true) => both,
                    (true, false) => below,
                    (false, _) => right,
                }
            }
            Plan::Sort { keys, .. } => {
                list(c"Sort Key", keys.iter().map(|key| words.sort_key(key, &below)).collect());
                below
            }
            Plan::DistinctOn { keys, on, .. } => {
                list(c"Sort Key", keys.iter().map(|key| words.sort_key(key, &below)).collect());
                let on = keys.iter().take(*on).map(|key| words.expression(&key.expression, &below));
                list(c"Distinct On", on.collect());
                below
            }
            Plan::Limit { .. } => below,
            Plan::Append { inputs: parts, removed } => {
                if *removed > 0 {
                    details.push((c"Subplans Removed", Detail::Number(*removed)));
                }
                appended(parts, below)
            }
            Plan::Window { partition, order, functions, .. } => {
                list(c"Partition Key", all(partition));
                list(c"Order Key", all(order));
                let calls: Vec<_> = functions.iter().map(|call| words.window(call, &below)).collect();
                list(c"Functions", calls.clone());
                [below, calls].concat()
            }
        };
        (columns, details)
    }

    /// What the server calls the columns of a source.
    unsafe fn columns_of(&self, source: usize) -> Vec<String> {
        let Some(source) = self.sources.get(source) else { return Vec::new() };
        // SAFETY: `operators`' promise; a Var of a scanned table, and the entries of a target list, are what
        // the server shows.
        unsafe {
            match source {
                SourceSpec::Columnar { scan, attributes } => {
                    let column = |&attribute: &usize| {
                        let var = pg_sys::makeVar(
                            (**scan).scan.scanrelid.cast_signed(),
                            i16::try_from(attribute + 1).unwrap_or(0),
                            pg_sys::InvalidOid,
                            -1,
                            pg_sys::InvalidOid,
                            0,
                        );
                        self.words.of(Origin { node: var.cast(), plan: source.node() })
                    };
                    attributes.iter().map(column).collect()
                }
                SourceSpec::Rows { plan } => {
                    let targets = PgList::<pg_sys::TargetEntry>::from_pg((**plan).targetlist);
                    let targets = targets.iter_ptr().map(|target| (*target).expr.cast());
                    targets.map(|node| self.words.of(Origin { node, plan: *plan })).collect()
                }
            }
        }
    }
}

/// The columns of an append by the names of its first input's; one that is another constant in each input
/// says which of them a row is from.
fn appended(parts: &[Plan], mut first: Vec<String>) -> Vec<String> {
    let constant = |plan: &Plan, at: usize| match plan {
        Plan::Project { expressions, .. } => match expressions.get(at) {
            Some(Expression::Constant(value)) => Some(std::sync::Arc::clone(value)),
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
        // What gathers all rows before the first is given out (`translate::stream`).
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
