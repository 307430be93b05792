//! Predicates on values: exact evaluation on vectors, and tests that are translated into integer domains.

mod int_condition;
mod int_set;
mod vector_filter;

pub(crate) use int_condition::{IntCondition, int_condition, numeric_condition};
pub use vector_filter::filter_vector;
pub(crate) use vector_filter::test_values;
