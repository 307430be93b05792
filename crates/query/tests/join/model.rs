//! What a join of two sides gives, by nested loops, and the plan that asks for it.

use query::{Expression, Function, JoinKind, Plan};
use vector::{CompareOp, LogicalType};

use crate::keys::{Encoding, Key, Row};

#[derive(Debug, Clone)]
pub struct Case {
    pub left: Vec<Row>,
    pub right: Vec<Row>,
    pub types: [Key; 2],
    pub keys: usize,
    pub condition: Option<u8>,
    pub cuts: (usize, usize),
    pub encodings: (Encoding, Encoding),
}

pub fn equal(case: &Case, left: &Row, right: &Row) -> Option<bool> {
    let mut equal = Some(true);
    for at in 0..case.keys {
        match (left.keys[at], right.keys[at]) {
            (Some(a), Some(b)) => {
                if case.types[at].model(a, true) != case.types[at].model(b, false) {
                    return Some(false);
                }
            }
            _ => equal = None,
        }
    }
    equal
}

pub fn expected(case: &Case, kind: JoinKind) -> Vec<String> {
    let holds = |left: &Row, right: &Row| match case.condition {
        None => true,
        Some(0) => left.flag == Some(true),
        Some(1) => right.flag == Some(true),
        Some(_) => left.flag.is_some() && left.flag == right.flag,
    };
    let flag = |row: &Row| row.flag.map_or("-".to_owned(), |flag| flag.to_string());
    let left_text = |at: usize| format!("{}|row of the left side {at}", flag(&case.left[at]));
    let right_text = |at: usize| format!("{}|row of the right side {at}", flag(&case.right[at]));
    let mut rows = Vec::new();
    let mut right_matched = vec![false; case.right.len()];
    for (at, left) in case.left.iter().enumerate() {
        let (mut matched, mut possible) = (false, false);
        for (other, right) in case.right.iter().enumerate() {
            if !holds(left, right) {
                continue;
            }
            let equal = equal(case, left, right);
            possible |= equal != Some(false);
            if equal == Some(true) {
                matched = true;
                right_matched[other] = true;
                if matches!(kind, JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full) {
                    rows.push(format!("{}|{}", left_text(at), right_text(other)));
                }
            }
        }
        match kind {
            JoinKind::Semi if matched => rows.push(left_text(at)),
            JoinKind::Anti if !matched => rows.push(left_text(at)),
            JoinKind::NullAwareAnti if !possible => rows.push(left_text(at)),
            JoinKind::Left | JoinKind::Full if !matched => rows.push(format!("{}|-|-", left_text(at))),
            _ => {}
        }
    }
    for (other, matched) in right_matched.into_iter().enumerate() {
        match kind {
            JoinKind::Right | JoinKind::Full if !matched => rows.push(format!("-|-|{}", right_text(other))),
            JoinKind::RightSemi if matched => rows.push(right_text(other)),
            JoinKind::RightAnti if !matched => rows.push(right_text(other)),
            _ => {}
        }
    }
    rows.sort();
    rows
}

pub fn plan_of(case: &Case, kind: JoinKind) -> Plan {
    let scan = |source| Plan::Scan {
        source,
        types: vec![case.types[0].logical(), case.types[1].logical(), LogicalType::Bool, LogicalType::Text],
    };
    let keys = (0..case.keys).map(|at| (Expression::Column(at), Expression::Column(at)));
    let condition = case.condition.map(|condition| match condition {
        0 => Expression::Column(2),
        1 => Expression::Column(6),
        _ => Expression::Call {
            function: Function::Compare(CompareOp::Equal),
            arguments: vec![Expression::Column(6), Expression::Column(2)],
            result: LogicalType::Bool,
        },
    });
    Plan::Join { kind, left: Box::new(scan(0)), right: Box::new(scan(1)), keys: keys.collect(), condition }
}
