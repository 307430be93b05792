//! How relations are joined: which conditions go where, and in which order.
//!
//! The order is found by dynamic programming over sets of relations (Selinger et al., "Access path selection
//! in a relational database management system", 1979; bushy trees are allowed). The cost of a plan is the
//! number of rows that its joins take and give; rows that are kept in memory count more.

use std::collections::HashMap;

use query::{Expression, Function, JoinKind, Plan};
use vector::CompareOp;

use super::frame::{Frame, Keeps, Outer, Semi};
use super::from::Relation;
use super::host_functions;
use super::planner::{Id, Node, Planner, ids_of};
use crate::api::{Error, Result};

/// More relations than these are joined greedily.
const MOST_SEARCHED: usize = 12;

/// The columns that an expression reads, each once.
pub fn own_ids(expression: &Expression) -> Vec<Id> {
    let mut ids = Vec::new();
    ids_of(expression, &mut ids);
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The parts of conditions that all have to hold.
pub fn split(conditions: Vec<Expression>) -> Vec<Expression> {
    let mut parts = Vec::new();
    for condition in conditions {
        match condition {
            Expression::And(inner) => parts.extend(split(inner)),
            Expression::Or(branches) => parts.extend(common(branches)),
            other => parts.push(other),
        }
    }
    parts
}

/// What all branches of OR have in common stands before it.
fn common(branches: Vec<Expression>) -> Vec<Expression> {
    let branches: Vec<Vec<Expression>> = branches.into_iter().map(|branch| split(vec![branch])).collect();
    let Some((first, rest)) = branches.split_first() else { return Vec::new() };
    let shared: Vec<Expression> =
        first.iter().filter(|part| rest.iter().all(|branch| branch.contains(part))).cloned().collect();
    let mut left = Vec::new();
    for branch in branches {
        let own: Vec<Expression> = branch.into_iter().filter(|part| !shared.contains(part)).collect();
        if own.is_empty() {
            return shared;
        }
        left.push(all(own));
    }
    let mut parts = shared;
    parts.push(Expression::Or(left));
    parts
}

/// All of these, as one condition.
pub fn all(mut conditions: Vec<Expression>) -> Expression {
    match conditions.len() {
        1 => conditions.remove(0),
        _ => Expression::And(conditions),
    }
}

/// Whether a condition holds for no row in which all of these columns are NULL.
fn rejects_null(condition: &Expression, ids: &[Id]) -> bool {
    match condition {
        Expression::And(parts) => parts.iter().any(|part| rejects_null(part, ids)),
        Expression::Or(parts) => !parts.is_empty() && parts.iter().all(|part| rejects_null(part, ids)),
        other => is_strict(other, ids),
    }
}

/// Whether an expression is NULL where these columns are.
fn is_strict(expression: &Expression, ids: &[Id]) -> bool {
    match expression {
        Expression::Column(id) => ids.contains(id),
        Expression::Call { arguments, .. } => arguments.iter().any(|argument| is_strict(argument, ids)),
        Expression::Host { function, arguments, .. } => {
            host_functions::is_strict(function.as_ref())
                && arguments.iter().any(|argument| is_strict(argument, ids))
        }
        Expression::Not(part) | Expression::In { value: part, .. } => is_strict(part, ids),
        _ => false,
    }
}

/// An equality of two expressions over different relations.
struct Edge {
    left: (usize, Expression),
    right: (usize, Expression),
    share: f64,
}

/// The best plan that was found for a set of relations.
#[derive(Clone, Copy)]
struct Best {
    cost: f64,
    rows: f64,
    /// The set of the probing side, 0 for a single relation. The other side is the rest.
    left: u64,
}

struct Search<'s> {
    rows: Vec<f64>,
    edges: &'s [Edge],
    /// Other conditions: the relations that each needs, and how much it keeps.
    others: Vec<(u64, f64)>,
    best: HashMap<u64, Best>,
}

impl Search<'_> {
    fn rows_of(&self, set: u64) -> f64 {
        let mut rows: f64 = 1.0;
        for (at, own) in self.rows.iter().enumerate() {
            if set >> at & 1 == 1 {
                rows *= own;
            }
        }
        // Several equalities between two relations are one key.
        let mut shares: HashMap<(usize, usize), f64> = HashMap::new();
        for edge in self.edges {
            let inside = |at: usize| set >> at & 1 == 1;
            if inside(edge.left.0) && inside(edge.right.0) {
                let pair = (edge.left.0.min(edge.right.0), edge.left.0.max(edge.right.0));
                *shares.entry(pair).or_insert(1.0) *= edge.share;
            }
        }
        for ((a, b), share) in shares {
            let most = |at: usize| self.rows.get(at).copied().unwrap_or(1.0);
            rows *= share.max(0.5 / most(a).max(most(b)));
        }
        for (needs, share) in &self.others {
            if needs & set == *needs {
                rows *= share;
            }
        }
        rows.max(1.0)
    }

    fn connected(&self, a: u64, b: u64) -> bool {
        self.edges.iter().any(|edge| {
            let (left, right) = (1 << edge.left.0, 1 << edge.right.0);
            (a & left != 0 && b & right != 0) || (a & right != 0 && b & left != 0)
        })
    }

    fn offer(&mut self, a: u64, b: u64, is_product: bool) {
        let (Some(one), Some(other)) = (self.best.get(&a).copied(), self.best.get(&b).copied()) else {
            return;
        };
        let set = a | b;
        let rows = match self.best.get(&set) {
            Some(known) => known.rows,
            None => self.rows_of(set),
        };
        // The smaller side is kept.
        let (left, kept, probing) = if one.rows >= other.rows { (a, other, one) } else { (b, one, other) };
        let penalty = if is_product { 10.0 * rows } else { 0.0 };
        let cost = one.cost + other.cost + rows + 2.0 * kept.rows + 0.5 * probing.rows + penalty;
        if self.best.get(&set).is_none_or(|known| cost < known.cost) {
            self.best.insert(set, Best { cost, rows, left });
        }
    }

    /// The best plans of all sets.
    fn search(&mut self) {
        let count = self.rows.len();
        for (at, rows) in self.rows.iter().enumerate() {
            self.best.insert(1 << at, Best { cost: 0.0, rows: *rows, left: 0 });
        }
        let full = (1_u64 << count) - 1;
        if count <= MOST_SEARCHED {
            for set in 1..=full {
                let mut part = (set - 1) & set;
                while part > 0 {
                    let rest = set & !part;
                    if part > rest && self.connected(part, rest) {
                        self.offer(part, rest, false);
                    }
                    part = (part - 1) & set;
                }
            }
        }
        // What is not connected, or too much to search: the two that give the fewest rows come together.
        let mut parts: Vec<u64> = match self.best.contains_key(&full) {
            true => vec![full],
            false if count <= MOST_SEARCHED => self.largest_parts(full),
            false => (0..count).map(|at| 1 << at).collect(),
        };
        while parts.len() > 1 {
            let mut choice = (0, 1, f64::INFINITY);
            for a in 0..parts.len() {
                for b in a + 1..parts.len() {
                    let (Some(&one), Some(&other)) = (parts.get(a), parts.get(b)) else { continue };
                    let far = if self.connected(one, other) { 1.0 } else { 1e6 };
                    let rows = self.rows_of(one | other) * far;
                    if rows < choice.2 {
                        choice = (a, b, rows);
                    }
                }
            }
            let other = parts.remove(choice.1);
            let one = parts.remove(choice.0);
            self.offer(one, other, !self.connected(one, other));
            parts.push(one | other);
        }
    }

    /// Sets of relations that are connected among each other only.
    fn largest_parts(&self, full: u64) -> Vec<u64> {
        let mut left = full;
        let mut parts = Vec::new();
        while left != 0 {
            let mut part = left & left.wrapping_neg();
            loop {
                let mut grown = part;
                for edge in self.edges {
                    let both = 1_u64 << edge.left.0 | 1 << edge.right.0;
                    if both & part != 0 {
                        grown |= both;
                    }
                }
                if grown == part {
                    break;
                }
                part = grown;
            }
            parts.push(part);
            left &= !part;
        }
        parts
    }
}

impl<'b> Planner<'b> {
    /// The rows of a frame before they are grouped: all relations joined, with the columns of `needed`.
    pub fn joined(&mut self, frame: &mut Frame<'b>, needed: &[Id]) -> Result<Node> {
        let mut conjuncts = split(std::mem::take(&mut frame.conjuncts));
        let mut relations = std::mem::take(&mut frame.relations);
        let mut outers = Vec::new();
        // A condition that no NULL passes makes an inner join of an outer one.
        let mut waiting: Vec<Outer> = std::mem::take(&mut frame.outers);
        waiting.reverse();
        while let Some(outer) = waiting.pop() {
            let ids = outer.relation.ids();
            if conjuncts.iter().any(|condition| rejects_null(condition, &ids)) {
                relations.push(outer.relation);
                conjuncts.extend(split(outer.on));
                // Which may do the same to those before it.
                let earlier: Vec<Outer> = std::mem::take(&mut outers);
                waiting.extend(earlier.into_iter().rev());
            } else {
                outers.push(outer);
            }
        }
        let mut semis = std::mem::take(&mut frame.semis);
        // What is read in the end.
        let mut wanted: Vec<Id> = needed.to_vec();
        conjuncts.iter().for_each(|condition| ids_of(condition, &mut wanted));
        outers.iter().flat_map(|outer| &outer.on).for_each(|condition| ids_of(condition, &mut wanted));
        for semi in &semis {
            semi.keys.iter().for_each(|(outer, _)| ids_of(outer, &mut wanted));
            semi.others.iter().for_each(|condition| ids_of(condition, &mut wanted));
        }
        let ids: Vec<Vec<Id>> = relations.iter().map(Relation::ids).collect();
        let of = |condition: &Expression| -> Option<u64> {
            let mut set = 0;
            for id in own_ids(condition) {
                let at = ids.iter().position(|own| own.contains(&id))?;
                set |= 1 << at;
            }
            Some(set)
        };
        let mut own: Vec<Vec<Expression>> = relations.iter().map(|_| Vec::new()).collect();
        let (mut between, mut last) = (Vec::new(), Vec::new());
        for condition in conjuncts {
            match of(&condition) {
                Some(set) if set.count_ones() == 1 => {
                    let at = set.trailing_zeros() as usize;
                    own.get_mut(at).into_iter().for_each(|own| own.push(condition.clone()));
                }
                Some(set) if set.count_ones() > 1 => {
                    for (at, part) in implied(&condition, &ids) {
                        own.get_mut(at).into_iter().for_each(|own| own.push(part.clone()));
                    }
                    between.push((set, condition));
                }
                _ => last.push(condition),
            }
        }
        let mut nodes = Vec::new();
        for (at, (relation, conditions)) in relations.into_iter().zip(own).enumerate() {
            let mut node = self.leaf(relation, &wanted, conditions)?;
            // IN with a subquery that knows nothing of the rows around it.
            let known = ids.get(at).cloned().unwrap_or_default();
            let (early, rest): (Vec<Semi>, Vec<Semi>) =
                std::mem::take(&mut semis).into_iter().partition(|semi| {
                    let keys = semi.keys.iter().flat_map(|(outer, _)| own_ids(outer));
                    semi.others.is_empty()
                        && semi.keys.len() == 1
                        && keys.into_iter().all(|id| known.contains(&id))
                });
            semis = rest;
            for semi in early {
                node = self.with_semi(node, semi)?;
            }
            nodes.push(Some(node));
        }
        let mut node = match nodes.len() {
            0 => self.one_row(),
            _ => self.ordered(nodes, between)?,
        };
        for outer in outers {
            node = self.with_outer(node, outer, &wanted)?;
        }
        for semi in semis {
            node = self.with_semi(node, semi)?;
        }
        let share = self.selectivity(&last);
        node.filtered(&last, share)
    }

    fn leaf(&mut self, relation: Relation, wanted: &[Id], conditions: Vec<Expression>) -> Result<Node> {
        match relation {
            Relation::Table(table) => self.read(&table, wanted, conditions),
            Relation::Node(node) => {
                let share = self.selectivity(&conditions);
                node.filtered(&conditions, share)
            }
        }
    }

    fn ordered(&mut self, mut nodes: Vec<Option<Node>>, between: Vec<(u64, Expression)>) -> Result<Node> {
        let rows: Vec<f64> = nodes.iter().map(|node| node.as_ref().map_or(1.0, |node| node.rows)).collect();
        let owner = |expression: &Expression| -> Option<usize> {
            let mut found = None;
            for id in own_ids(expression) {
                let at =
                    nodes.iter().position(|node| node.as_ref().is_some_and(|node| node.ids.contains(&id)))?;
                if found.is_some_and(|known| known != at) {
                    return None;
                }
                found = Some(at);
            }
            found
        };
        let (mut edges, mut others) = (Vec::new(), Vec::new());
        for (set, condition) in between {
            if let Expression::Call { function: Function::Compare(CompareOp::Equal), arguments, .. } =
                &condition
                && let [a, b] = arguments.as_slice()
                && let (Some(left), Some(right)) = (owner(a), owner(b))
                && left != right
            {
                let most = |at: usize| rows.get(at).copied().unwrap_or(1.0);
                let share = 1.0 / self.distinct(a, most(left)).max(self.distinct(b, most(right)));
                edges.push(Edge { left: (left, a.clone()), right: (right, b.clone()), share });
            } else {
                others.push((set, condition));
            }
        }
        let shares =
            others.iter().map(|(set, condition)| (*set, self.selectivity(std::slice::from_ref(condition))));
        let shares = shares.collect();
        let mut search = Search { rows, edges: &edges, others: shares, best: HashMap::new() };
        search.search();
        let best = search.best;
        let full = (1_u64 << nodes.len()) - 1;
        self.build(full, &best, &mut nodes, &edges, &mut others)
    }

    fn build(
        &mut self,
        set: u64,
        best: &HashMap<u64, Best>,
        nodes: &mut [Option<Node>],
        edges: &[Edge],
        others: &mut Vec<(u64, Expression)>,
    ) -> Result<Node> {
        let missing = || Error::new("a join that was not planned");
        let plan = best.get(&set).copied().ok_or_else(missing)?;
        if plan.left == 0 {
            let at = set.trailing_zeros() as usize;
            return nodes.get_mut(at).and_then(Option::take).ok_or_else(missing);
        }
        let right_set = set & !plan.left;
        let left = self.build(plan.left, best, nodes, edges, others)?;
        let right = self.build(right_set, best, nodes, edges, others)?;
        let inside = |set: u64, at: usize| set >> at & 1 == 1;
        let mut keys = Vec::new();
        for edge in edges {
            if inside(plan.left, edge.left.0) && inside(right_set, edge.right.0) {
                keys.push((edge.left.1.clone(), edge.right.1.clone()));
            } else if inside(plan.left, edge.right.0) && inside(right_set, edge.left.0) {
                keys.push((edge.right.1.clone(), edge.left.1.clone()));
            }
        }
        let (now, later): (Vec<_>, Vec<_>) =
            std::mem::take(others).into_iter().partition(|(needs, _)| needs & set == *needs);
        *others = later;
        let conditions = now.into_iter().map(|(_, condition)| condition).collect();
        joined(JoinKind::Inner, left, right, &keys, conditions, plan.rows)
    }

    fn with_outer(&mut self, node: Node, outer: Outer, wanted: &[Id]) -> Result<Node> {
        let ids = outer.relation.ids();
        let (own, others): (Vec<_>, Vec<_>) = split(outer.on).into_iter().partition(|condition| {
            let read = own_ids(condition);
            !read.is_empty() && read.iter().all(|id| ids.contains(id))
        });
        let right = self.leaf(outer.relation, wanted, own)?;
        let (keys, others) = keys_of(others, &node, &right);
        let rows = node.rows.max(right.rows.min(node.rows * 2.0));
        // The smaller side is kept.
        if right.rows > 2.0 * node.rows && !keys.is_empty() {
            let keys: Vec<_> = keys.into_iter().map(|(outer, inner)| (inner, outer)).collect();
            return joined(JoinKind::Right, right, node, &keys, others, rows);
        }
        joined(JoinKind::Left, node, right, &keys, others, rows)
    }

    pub fn with_semi(&mut self, node: Node, semi: Semi) -> Result<Node> {
        let Semi { node: inner, keys, others, keeps, .. } = semi;
        let rows = match keeps {
            Keeps::Matched => (node.rows * 0.5).max(1.0),
            Keeps::Unmatched | Keeps::NotIn => node.rows,
        };
        // The smaller side is kept.
        if keeps != Keeps::NotIn && inner.rows > 2.0 * node.rows && !keys.is_empty() {
            let kind = if keeps == Keeps::Matched { JoinKind::RightSemi } else { JoinKind::RightAnti };
            let keys: Vec<_> = keys.into_iter().map(|(outer, inner)| (inner, outer)).collect();
            return joined(kind, inner, node, &keys, others, rows);
        }
        let kind = match keeps {
            Keeps::Matched => JoinKind::Semi,
            Keeps::Unmatched => JoinKind::Anti,
            Keeps::NotIn => JoinKind::NullAwareAnti,
        };
        joined(kind, node, inner, &keys, others, rows)
    }
}

/// What an OR over several relations says of each of them alone.
fn implied(condition: &Expression, ids: &[Vec<Id>]) -> Vec<(usize, Expression)> {
    let Expression::Or(branches) = condition else { return Vec::new() };
    let mut found = Vec::new();
    for (at, own) in ids.iter().enumerate() {
        let mut parts = Vec::new();
        for branch in branches {
            let conjuncts = split(vec![branch.clone()]);
            let about: Vec<Expression> = conjuncts
                .into_iter()
                .filter(|part| {
                    let read = own_ids(part);
                    !read.is_empty() && read.iter().all(|id| own.contains(id))
                })
                .collect();
            if about.is_empty() {
                parts.clear();
                break;
            }
            parts.push(all(about));
        }
        if !parts.is_empty() {
            found.push((at, Expression::Or(parts)));
        }
    }
    found
}

/// The equalities between two sides among conditions, and all others.
fn keys_of(
    conditions: Vec<Expression>,
    left: &Node,
    right: &Node,
) -> (Vec<(Expression, Expression)>, Vec<Expression>) {
    let within = |expression: &Expression, node: &Node| {
        let read = own_ids(expression);
        !read.is_empty() && read.iter().all(|id| node.ids.contains(id))
    };
    let (mut keys, mut others) = (Vec::new(), Vec::new());
    for condition in conditions {
        if let Expression::Call { function: Function::Compare(CompareOp::Equal), arguments, .. } = &condition
            && let [a, b] = arguments.as_slice()
        {
            if within(a, left) && within(b, right) {
                keys.push((a.clone(), b.clone()));
                continue;
            }
            if within(b, left) && within(a, right) {
                keys.push((b.clone(), a.clone()));
                continue;
            }
        }
        others.push(condition);
    }
    (keys, others)
}

/// A join of two parts of a plan.
fn joined(
    kind: JoinKind,
    left: Node,
    right: Node,
    keys: &[(Expression, Expression)],
    others: Vec<Expression>,
    rows: f64,
) -> Result<Node> {
    let keys = keys.iter().map(|(a, b)| Ok((left.place(a)?, right.place(b)?))).collect::<Result<Vec<_>>>()?;
    let both =
        Node { plan: Plan::nothing(), ids: left.ids.iter().chain(&right.ids).copied().collect(), rows };
    let condition = match others.is_empty() {
        true => None,
        false => Some(both.place(&all(others))?),
    };
    let mut ids = if kind.gives_left() { left.ids } else { Vec::new() };
    if kind.gives_right() {
        ids.extend(right.ids);
    }
    let plan = Plan::Join { kind, left: Box::new(left.plan), right: Box::new(right.plan), keys, condition };
    Ok(Node { plan, ids, rows })
}
