//! What a predicate means for values: exact evaluation on vectors, and tests translated into integer domains.

mod int_test;
mod vector_filter;

use vector::{CompareOp, Predicate, Scalar};

pub(crate) use int_test::{IntTest, int_test, numeric_test};
pub use vector_filter::filter_vector;
pub(crate) use vector_filter::test_values;

/// So many constants that a value must not be are compared one after the other.
const FEW: usize = 4;

/// The constants of a conjunction that a value must not be (`NOT IN`), where they are many, and the other parts: asking once whether the value is one of them takes a fraction of
/// comparing it with each. All parts are about one column.
pub(crate) fn left_out(parts: &[Predicate]) -> (Vec<Scalar>, Vec<&Predicate>) {
    let unequal = |part: &&Predicate| matches!(part, Predicate::Compare { op: CompareOp::NotEqual, .. });
    if parts.iter().filter(unequal).count() <= FEW {
        return (Vec::new(), parts.iter().collect());
    }
    let (unequal, others): (Vec<_>, Vec<_>) = parts.iter().partition(unequal);
    let constant = |part: &Predicate| match part {
        Predicate::Compare { value, .. } => Some(value.clone()),
        _ => None,
    };
    (unequal.into_iter().filter_map(constant).collect(), others)
}
