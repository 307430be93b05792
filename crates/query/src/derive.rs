//! Derived columns: columns that a source computes from its own ones.
//!
//! Applied by the host each time it starts a plan. It changes projections and aggregates that stand above a
//! scan, with only filters between. One of them may call a host's function of a single column of the scan.
//! Some sources can compute such a function themselves, for example from the column's encoding. The call then
//! becomes a derived column. The source need not give a column that is read for such calls only.
//!
//! Invariant: columns of the scan keep their places, and derived ones come behind them. Operators above the
//! projection or aggregate see no difference.

use std::sync::Arc;

use vector::LogicalType;

use crate::{Expression, HostFunction, Plan};

/// A column that a source computes from one of its own; `F` is the host's function.
#[derive(Debug, Clone, PartialEq)]
pub struct DerivedColumn<F> {
    /// Position of the column that it is computed from.
    pub column: usize,
    /// How.
    pub function: Arc<F>,
    /// Type of its values.
    pub result: LogicalType,
}

/// What a source gives besides and instead of its own columns.
#[derive(Debug, Clone, PartialEq)]
pub struct DerivedColumns<F> {
    /// In the order in which they stand behind its own.
    pub columns: Vec<DerivedColumn<F>>,
    /// Positions of own columns that no operator reads any more.
    pub unread: Vec<usize>,
}

impl<F> Default for DerivedColumns<F> {
    fn default() -> Self {
        Self { columns: Vec::new(), unread: Vec::new() }
    }
}

/// Moves calls of the host's functions into the scans of a plan, and says what each source has to give.
/// `derives` tells of each source whether it computes columns. `known` gives the function that a source is to
/// compute for a call; None where it cannot. Calls of equal functions of one column share a derived column.
pub fn derive_columns<F: PartialEq>(
    plan: &mut Plan,
    derives: impl IntoIterator<Item = bool>,
    known: impl Fn(&Arc<dyn HostFunction>) -> Option<Arc<F>>,
) -> Vec<DerivedColumns<F>> {
    let found = derives.into_iter().map(|derives| derives.then(DerivedColumns::default));
    let mut walk = Walk { known, found: found.collect() };
    walk.enter(plan);
    walk.found.into_iter().map(Option::unwrap_or_default).collect()
}

struct Walk<F, K> {
    known: K,
    /// One for each source; None for one that computes no columns.
    found: Vec<Option<DerivedColumns<F>>>,
}

impl<F: PartialEq, K: Fn(&Arc<dyn HostFunction>) -> Option<Arc<F>>> Walk<F, K> {
    fn enter(&mut self, plan: &mut Plan) {
        match plan {
            Plan::Aggregate { input, keys, aggregates, .. }
            | Plan::GroupingSets { input, keys, aggregates, .. } => {
                let mut own: Vec<&mut Expression> = keys.iter_mut().collect();
                for aggregate in aggregates {
                    own.extend(aggregate.arguments.iter_mut().chain(&mut aggregate.filter));
                    own.extend(aggregate.order_by.iter_mut().map(|key| &mut key.expression));
                }
                self.above(input, own);
            }
            Plan::Project { input, expressions } => self.above(input, expressions.iter_mut().collect()),
            other => other.inputs_mut().into_iter().for_each(|input| self.enter(input)),
        }
    }

    /// An operator with these expressions over `input`.
    fn above<'a>(&mut self, input: &'a mut Plan, mut own: Vec<&'a mut Expression>) {
        let mut below = input;
        while let Plan::Filter { input, condition } = below {
            own.push(condition);
            below = input;
        }
        let Plan::Scan { source, types } = below else { return self.enter(below) };
        let Some(Some(found)) = self.found.get_mut(*source) else { return };
        let width = types.len();
        own.iter_mut().for_each(|expression| replace(expression, width, &self.known, found));
        if found.columns.is_empty() {
            return;
        }
        let mut read = vec![false; width + found.columns.len()];
        own.iter().for_each(|expression| expression.mark_columns(&mut read));
        found.unread = (0..width).filter(|&at| read.get(at) == Some(&false)).collect();
        types.extend(found.columns.iter().map(|column| column.result));
    }
}

/// Puts derived columns in the place of calls, behind the scan's own columns, of which there are `width`.
fn replace<F: PartialEq>(
    expression: &mut Expression,
    width: usize,
    known: &impl Fn(&Arc<dyn HostFunction>) -> Option<Arc<F>>,
    found: &mut DerivedColumns<F>,
) {
    if let Expression::Host { function, arguments, result } = expression
        && let [Expression::Column(column)] = arguments.as_slice()
        && let Some(function) = known(function)
    {
        let derived = DerivedColumn { column: *column, function, result: *result };
        let place = found.columns.iter().position(|other| *other == derived).unwrap_or_else(|| {
            found.columns.push(derived);
            found.columns.len() - 1
        });
        *expression = Expression::Column(width + place);
        return;
    }
    expression.children_mut().into_iter().for_each(|part| replace(part, width, known, found));
}
