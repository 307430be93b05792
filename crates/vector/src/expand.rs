//! Writes one value many times: this is how constants and runs become flat.

use crate::{ByteViews, Values, Vector};

/// A flat vector with value `i` of `values` repeated `counts[i]` times (missing counts are 0). `None` if a
/// gather by position is as good.
pub(crate) fn repeat(values: &Vector, counts: &[usize]) -> Option<Values> {
    fn fill<T: Copy>(values: &[T], counts: &[usize]) -> Vec<T> {
        let mut filled = Vec::with_capacity(counts.iter().sum());
        for (&value, &count) in values.iter().zip(counts) {
            filled.resize(filled.len() + count, value);
        }
        filled
    }
    Some(match &values.values {
        Values::Int16(values) => Values::Int16(fill(values, counts)),
        Values::Int32(values) => Values::Int32(fill(values, counts)),
        Values::Int64(values) => Values::Int64(fill(values, counts)),
        Values::Float32(values) => Values::Float32(fill(values, counts)),
        Values::Float64(values) => Values::Float64(fill(values, counts)),
        Values::Bytes(views) => {
            Values::Bytes(ByteViews::from_parts(fill(views.views(), counts), views.shared_buffers()))
        }
        _ => return None,
    })
}
