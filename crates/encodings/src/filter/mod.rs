//! Predicates on values: exact evaluation on vectors, and tests that are translated into integer domains.

mod int_set;
mod int_test;
mod vector_filter;

pub(crate) use int_test::{IntTest, int_test, numeric_test};
pub use vector_filter::filter_vector;
pub(crate) use vector_filter::test_values;
