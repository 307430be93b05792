//! Questions about documents that go down to the scan: where only they are asked of a column, the documents
//! themselves need not be put together.
//!
//! Called by the node on each translation, after the plan is known. Looks at projections and aggregates that
//! stand above a columnar scan, with nothing but filters between: each question about one column of the scan
//! becomes a further column, which the source answers chunk by chunk. Invariant: columns of the scan keep
//! their places; further ones come behind them, and whoever sits above the projection or aggregate sees no
//! difference.

use std::sync::Arc;

use query::{Expression, HostFunction, Plan};

use super::documents::Ask;

/// What a source gives besides and instead of its attributes.
#[derive(Debug, Clone, Default)]
pub struct Derived {
    /// Position of the column asked, and the question: one for each further column.
    pub questions: Vec<(usize, Arc<Ask>)>,
    /// Columns that nobody reads any more.
    pub unread: Vec<usize>,
}

/// Moves questions into the columnar scans of a plan, given which of its sources are; what each source has to
/// give.
pub fn derive(plan: &mut Plan, columnar: impl Iterator<Item = bool>) -> Vec<Derived> {
    let mut found: Vec<_> = columnar.map(|columnar| columnar.then(Derived::default)).collect();
    walk(plan, &mut found);
    found.into_iter().map(Option::unwrap_or_default).collect()
}

/// `found` is None for a source that answers no questions.
fn walk(plan: &mut Plan, found: &mut [Option<Derived>]) {
    match plan {
        Plan::Scan { .. } => {}
        Plan::Aggregate { input, keys, aggregates, .. }
        | Plan::GroupingSets { input, keys, aggregates, .. } => {
            let mut own: Vec<&mut Expression> = keys.iter_mut().collect();
            for aggregate in aggregates {
                own.extend(aggregate.arguments.iter_mut().chain(&mut aggregate.filter));
                own.extend(aggregate.order_by.iter_mut().map(|key| &mut key.expression));
            }
            above(input, own, found);
        }
        Plan::Window { input, .. } => walk(input, found),
        Plan::Project { input, expressions } => above(input, expressions.iter_mut().collect(), found),
        Plan::Filter { input, .. }
        | Plan::Repeat { input, .. }
        | Plan::Sort { input, .. }
        | Plan::DistinctOn { input, .. }
        | Plan::Limit { input, .. } => walk(input, found),
        Plan::Join { left, right, .. } => {
            walk(left, found);
            walk(right, found);
        }
        Plan::Append { inputs, .. } => inputs.iter_mut().for_each(|input| walk(input, found)),
    }
}

/// An operator with these expressions over `input`.
fn above<'a>(input: &'a mut Plan, mut own: Vec<&'a mut Expression>, found: &mut [Option<Derived>]) {
    let mut below = input;
    while let Plan::Filter { input, condition } = below {
        own.push(condition);
        below = input;
    }
    let Plan::Scan { source, types } = below else { return walk(below, found) };
    let Some(Some(derived)) = found.get_mut(*source) else { return };
    let width = types.len();
    own.iter_mut().for_each(|expression| replace(expression, width, derived));
    if derived.questions.is_empty() {
        return;
    }
    let mut read = vec![false; width + derived.questions.len()];
    own.iter().for_each(|expression| expression.mark_columns(&mut read));
    derived.unread = (0..width).filter(|&at| read.get(at) == Some(&false)).collect();
    types.extend(derived.questions.iter().map(|(_, ask)| ask.result()));
}

/// Puts further columns in the place of questions.
fn replace(expression: &mut Expression, width: usize, derived: &mut Derived) {
    if let Expression::Host { function, arguments, .. } = expression
        && let [Expression::Column(column)] = arguments.as_slice()
        && let Some(ask) = question(function)
    {
        let asked = (*column, ask);
        let known = derived.questions.iter().position(|known| *known == asked);
        let at = known.unwrap_or_else(|| {
            derived.questions.push(asked);
            derived.questions.len() - 1
        });
        *expression = Expression::Column(width + at);
        return;
    }
    match expression {
        Expression::Column(_) | Expression::Constant(_) => {}
        Expression::Call { arguments: parts, .. }
        | Expression::Host { arguments: parts, .. }
        | Expression::And(parts)
        | Expression::Or(parts)
        | Expression::Coalesce(parts) => {
            parts.iter_mut().for_each(|part| replace(part, width, derived));
        }
        Expression::Not(part) | Expression::IsNull(part) | Expression::In { value: part, .. } => {
            replace(part, width, derived);
        }
        Expression::Case { branches, otherwise, .. } => {
            for (condition, value) in branches {
                replace(condition, width, derived);
                replace(value, width, derived);
            }
            if let Some(otherwise) = otherwise {
                replace(otherwise, width, derived);
            }
        }
    }
}

/// A question that can be answered from paths.
fn question(function: &Arc<dyn HostFunction>) -> Option<Arc<Ask>> {
    let ask = function.as_any().downcast_ref::<Ask>()?;
    ask.has_paths().then(|| Arc::new(ask.clone()))
}
