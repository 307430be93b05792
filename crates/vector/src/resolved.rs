//! Predicates that stand for conditions, and how they are made where the two do not say the same.
//!
//! A host translates a condition of its language. Its values may be of another type than the column: a number
//! between two integers, a moment between two days. The predicate then is about the next value that keeps the
//! comparison, or it is weaker.
//!
//! Invariant: the predicate is TRUE wherever the condition is TRUE. `exact` is set only if it is TRUE nowhere
//! else.

use std::cmp::Ordering;

use crate::{CompareOp, Predicate, Scalar};

/// A predicate, and whether it says all that its clause says.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// It is TRUE at least where the clause is TRUE.
    pub predicate: Predicate,
    /// The predicate is TRUE only where the clause is TRUE.
    pub exact: bool,
}

impl Resolved {
    /// A predicate that says all that its clause says.
    pub const fn exact(predicate: Predicate) -> Self {
        Self { predicate, exact: true }
    }

    /// A predicate whose rows still have to be checked.
    pub const fn weaker(predicate: Predicate) -> Self {
        Self { predicate, exact: false }
    }

    /// A predicate that is TRUE if all parts are.
    pub fn all_of(parts: Vec<Self>) -> Self {
        let exact = parts.iter().all(|part| part.exact);
        let mut predicates = Vec::with_capacity(parts.len());
        for part in parts {
            match part.predicate {
                Predicate::Always(true) => {}
                Predicate::Always(false) => return Self::exact(Predicate::Always(false)),
                Predicate::And(inner) => predicates.extend(inner),
                other => predicates.push(other),
            }
        }
        let mut predicates = gathered(predicates, CompareOp::NotEqual);
        let predicate = match predicates.len() {
            0 => Predicate::Always(true),
            1 => predicates.swap_remove(0),
            _ => Predicate::And(predicates),
        };
        Self { predicate, exact }
    }

    /// A predicate that is TRUE if one part is.
    pub fn any_of(parts: Vec<Self>) -> Self {
        let exact = parts.iter().all(|part| part.exact || part.predicate == Predicate::Always(false));
        let mut predicates = Vec::with_capacity(parts.len());
        for part in parts {
            match part.predicate {
                Predicate::Always(false) => {}
                Predicate::Always(true) => {
                    return Self { predicate: Predicate::Always(true), exact: part.exact };
                }
                Predicate::Or(inner) => predicates.extend(inner),
                other => predicates.push(other),
            }
        }
        let mut predicates = gathered(predicates, CompareOp::Equal);
        let predicate = match predicates.len() {
            0 => Predicate::Always(false),
            1 => predicates.swap_remove(0),
            _ => Predicate::Or(predicates),
        };
        Self { predicate, exact }
    }

    /// `op` against a value above (`Greater`) or below every value of the column.
    pub fn beyond(column: usize, op: CompareOp, side: Ordering) -> Self {
        let holds = match op {
            CompareOp::Equal => false,
            CompareOp::NotEqual => true,
            CompareOp::Less | CompareOp::LessOrEqual => side == Ordering::Greater,
            CompareOp::Greater | CompareOp::GreaterOrEqual => side == Ordering::Less,
        };
        Self::exact(if holds { not_null(column) } else { Predicate::Always(false) })
    }

    /// `op` against a number whose floor is `floor`, for a column of integers within `range`. `whole`: the
    /// number is an integer itself.
    pub fn of_integers(column: usize, op: CompareOp, floor: i128, whole: bool, range: (i64, i64)) -> Self {
        let (op, bound) = match (op, whole) {
            (CompareOp::Equal, false) => return Self::exact(Predicate::Always(false)),
            (CompareOp::NotEqual, false) => return Self::exact(not_null(column)),
            // floor < value < floor + 1
            (CompareOp::Less, false) => (CompareOp::LessOrEqual, floor),
            (CompareOp::GreaterOrEqual, false) => (CompareOp::Greater, floor),
            (op, _) => (op, floor),
        };
        if bound > i128::from(range.1) {
            return Self::beyond(column, op, Ordering::Greater);
        }
        if bound < i128::from(range.0) {
            return Self::beyond(column, op, Ordering::Less);
        }
        match i64::try_from(bound) {
            Ok(bound) => Self::exact(leaf(column, op, Scalar::Int(bound))),
            Err(_) => Self::weaker(not_null(column)),
        }
    }

    /// A comparison of two truth values holds never, always unless NULL, or for one of the two values.
    pub fn of_truth_values(column: usize, op: CompareOp, value: bool) -> Self {
        let holds = |stored: bool| match op {
            CompareOp::Equal => stored == value,
            CompareOp::NotEqual => stored != value,
            CompareOp::Less => !stored & value,
            CompareOp::LessOrEqual => stored <= value,
            CompareOp::Greater => stored & !value,
            CompareOp::GreaterOrEqual => stored >= value,
        };
        Self::exact(match (holds(false), holds(true)) {
            (true, true) => not_null(column),
            (false, false) => Predicate::Always(false),
            (_, wanted) => leaf(column, CompareOp::Equal, Scalar::Bool(wanted)),
        })
    }

    /// A comparison with something that lies within `slack` of `middle`.
    pub fn near(column: usize, op: CompareOp, middle: i64, slack: i64) -> Self {
        let (low, high) = (middle.saturating_sub(slack), middle.saturating_add(slack));
        let at_most = leaf(column, CompareOp::LessOrEqual, Scalar::Int(high));
        let at_least = leaf(column, CompareOp::GreaterOrEqual, Scalar::Int(low));
        Self::weaker(match op {
            CompareOp::Less | CompareOp::LessOrEqual => at_most,
            CompareOp::Greater | CompareOp::GreaterOrEqual => at_least,
            CompareOp::Equal => Predicate::And(vec![at_least, at_most]),
            CompareOp::NotEqual => not_null(column),
        })
    }
}

/// Makes one list, `In` or `NotIn`, of all parts that compare one column by `op`, which is `=` or `<>`. So a
/// column is looked at once, however its values were written down.
fn gathered(parts: Vec<Predicate>, op: CompareOp) -> Vec<Predicate> {
    let wanted = op == CompareOp::Equal;
    let mut lists: Vec<(usize, Vec<Scalar>)> = Vec::new();
    let mut gathered = Vec::with_capacity(parts.len());
    for part in parts {
        let (column, values) = match part {
            Predicate::Compare { column, op: by, value } if by == op => (column, vec![value]),
            Predicate::In { column, values } if wanted => (column, values),
            Predicate::NotIn { column, values } if !wanted => (column, values),
            other => {
                gathered.push(other);
                continue;
            }
        };
        match lists.iter_mut().find(|(known, _)| *known == column) {
            Some((_, list)) => list.extend(values),
            None => lists.push((column, values)),
        }
    }
    gathered.extend(lists.into_iter().map(|(column, mut values)| {
        // The filter sorts the list for every chunk. That is quick if it is sorted already.
        values.sort_by(|a, b| a.compare(b).unwrap_or(Ordering::Equal));
        values.dedup_by(|a, b| a.compare(b) == Some(Ordering::Equal));
        match (values.len(), wanted) {
            (1, _) => leaf(column, op, values.swap_remove(0)),
            (_, true) => Predicate::In { column, values },
            (_, false) => Predicate::NotIn { column, values },
        }
    }));
    gathered
}

fn leaf(column: usize, op: CompareOp, value: Scalar) -> Predicate {
    Predicate::Compare { column, op, value }
}

fn not_null(column: usize) -> Predicate {
    Predicate::IsNotNull { column }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::*;

    const C: usize = 0;
    const RANGE: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);

    fn holds(predicate: &Predicate, value: i64) -> bool {
        match predicate {
            Predicate::Always(known) => *known,
            Predicate::IsNotNull { .. } => true,
            Predicate::And(parts) => parts.iter().all(|part| holds(part, value)),
            Predicate::Compare { op, value: Scalar::Int(bound), .. } => match op {
                CompareOp::Equal => value == *bound,
                CompareOp::NotEqual => value != *bound,
                CompareOp::Less => value < *bound,
                CompareOp::LessOrEqual => value <= *bound,
                CompareOp::Greater => value > *bound,
                CompareOp::GreaterOrEqual => value >= *bound,
            },
            other => panic!("unexpected {other:?}"),
        }
    }

    fn compares(op: CompareOp, left: i128, right: i128) -> bool {
        match op {
            CompareOp::Equal => left == right,
            CompareOp::NotEqual => left != right,
            CompareOp::Less => left < right,
            CompareOp::LessOrEqual => left <= right,
            CompareOp::Greater => left > right,
            CompareOp::GreaterOrEqual => left >= right,
        }
    }

    fn equals(column: usize, op: CompareOp, value: i64) -> Resolved {
        Resolved::exact(leaf(column, op, Scalar::Int(value)))
    }

    #[test]
    fn comparisons_of_one_column_become_one_list() {
        let (one, two) = (Scalar::Int(1), Scalar::Int(2));
        let null = || Resolved::exact(Predicate::IsNull { column: 0 });
        let listed = |values: &[&Scalar]| values.iter().map(|&value| value.clone()).collect::<Vec<_>>();
        for (op, join, list) in [
            (
                CompareOp::Equal,
                Resolved::any_of as fn(Vec<Resolved>) -> Resolved,
                Predicate::In { column: 0, values: listed(&[&one, &two]) },
            ),
            (
                CompareOp::NotEqual,
                Resolved::all_of,
                Predicate::NotIn { column: 0, values: listed(&[&one, &two]) },
            ),
        ] {
            let parts = [2, 1, 2].map(|value| equals(0, op, value));
            assert_eq!(join(parts.to_vec()), Resolved::exact(list.clone()));
            let again = join(vec![Resolved::exact(list.clone()), equals(0, op, 1)]);
            assert_eq!(again, Resolved::exact(list.clone()));
            assert_eq!(join(vec![equals(0, op, 1), equals(0, op, 1)]), equals(0, op, 1));
            let mixed = join(vec![equals(0, op, 1), null(), equals(7, op, 5), equals(0, op, 2)]);
            let parts = vec![null().predicate, list, equals(7, op, 5).predicate];
            let whole = match op {
                CompareOp::Equal => Predicate::Or(parts),
                _ => Predicate::And(parts),
            };
            assert_eq!(mixed, Resolved::exact(whole));
        }
        // Conditions of the other kind stay what they are.
        let both = [equals(0, CompareOp::Equal, 1), equals(0, CompareOp::Equal, 2)];
        assert!(matches!(Resolved::all_of(both.to_vec()).predicate, Predicate::And(_)));
        let both = [equals(0, CompareOp::NotEqual, 1), equals(0, CompareOp::NotEqual, 2)];
        assert!(matches!(Resolved::any_of(both.to_vec()).predicate, Predicate::Or(_)));
    }

    /// Bounds in halves: -3 stands for -1.5.
    #[test]
    fn bounds_between_integers_round_to_the_right_side() {
        for halves in -9i128..=9 {
            for op in CompareOp::ALL {
                let resolved =
                    Resolved::of_integers(C, op, halves.div_euclid(2), halves.rem_euclid(2) == 0, RANGE);
                assert!(resolved.exact);
                for value in -6i64..=6 {
                    let expected = compares(op, i128::from(value) * 2, halves);
                    assert_eq!(holds(&resolved.predicate, value), expected, "{value} {op:?} {halves}/2");
                }
            }
        }
    }

    #[test]
    fn bounds_past_the_column_range_are_decided() {
        for (bound, op) in [RANGE.1 + 1, RANGE.0 - 1, i64::MAX, i64::MIN]
            .into_iter()
            .flat_map(|bound| CompareOp::ALL.into_iter().map(move |op| (bound, op)))
        {
            let resolved = Resolved::of_integers(C, op, i128::from(bound), true, RANGE);
            for value in [RANGE.0, -1, 0, RANGE.1] {
                let expected = compares(op, i128::from(value), i128::from(bound));
                assert_eq!(holds(&resolved.predicate, value), expected, "{value} {op:?} {bound}");
            }
        }
    }

    #[test]
    fn brackets_hold_wherever_the_moved_value_compares() {
        for op in CompareOp::ALL {
            let resolved = Resolved::near(C, op, 100, 2);
            assert!(!resolved.exact);
            for value in 90i64..110 {
                for moved in 98i64..=102 {
                    if compares(op, i128::from(value), i128::from(moved)) {
                        assert!(holds(&resolved.predicate, value), "{value} {op:?} {moved}");
                    }
                }
            }
        }
    }
}
