//! Where partitions and groups of peers begin, batch by batch.
//!
//! Equality is that of grouping: NULL equals NULL, -0 equals 0, NaN equals NaN, decimals by value, text by
//! its bytes.

use std::sync::Arc;

use vector::{Values, Vector, compare_decimals};

use super::MISTYPED;
use crate::Result;
use crate::row_container::{flat, integers_of};

/// Finds the rows whose keys differ from those of the row before.
#[derive(Default)]
pub struct Boundaries {
    /// The last row of the batch before.
    last: Option<Vec<Arc<Vector>>>,
    differs: Vec<bool>,
}

impl Boundaries {
    /// Whether each row of the next batch differs from the one before it; the very first one does. `already`
    /// are rows that do for another reason.
    pub fn next(&mut self, keys: &[Arc<Vector>], rows: usize, already: Option<&[bool]>) -> Result<&[bool]> {
        self.differs.clear();
        match already {
            Some(already) => self.differs.extend_from_slice(already),
            None => self.differs.resize(rows, false),
        }
        let (Some(first), false) = (self.differs.first_mut(), rows == 0) else { return Ok(&self.differs) };
        match &self.last {
            None => *first = true,
            Some(last) => {
                for (last, key) in last.iter().zip(keys) {
                    *first = *first || !equal(last, 0, &flat(&Arc::new(key.slice(0, 1))), 0)?;
                }
            }
        }
        for key in keys {
            neighbours(&flat(key), &mut self.differs)?;
        }
        self.last = Some(keys.iter().map(|key| flat(&Arc::new(key.slice(rows - 1, 1)))).collect());
        Ok(&self.differs)
    }
}

/// Sets the flags of rows that differ from the one before, of a flat vector.
fn neighbours(key: &Vector, differs: &mut [bool]) -> Result<()> {
    /// Calls `differ` with each pair of neighbours.
    fn pairs(key: &Vector, differs: &mut [bool], differ: impl Fn(usize, usize) -> bool) {
        match &key.validity {
            None => {
                for (row, flag) in differs.iter_mut().enumerate().skip(1) {
                    *flag |= differ(row - 1, row);
                }
            }
            Some(validity) => {
                for (row, flag) in differs.iter_mut().enumerate().skip(1) {
                    *flag |= match (validity.get(row - 1), validity.get(row)) {
                        (true, true) => differ(row - 1, row),
                        (a, b) => a != b,
                    };
                }
            }
        }
    }
    match &key.values {
        Values::Bool(v) => pairs(key, differs, |a, b| v.get(a) != v.get(b)),
        Values::Int16(v) => pairs(key, differs, |a, b| v[a] != v[b]),
        Values::Int32(v) => pairs(key, differs, |a, b| v[a] != v[b]),
        Values::Int64(v) => pairs(key, differs, |a, b| v[a] != v[b]),
        Values::Float32(v) => pairs(key, differs, |a, b| v[a] != v[b] && !(v[a].is_nan() && v[b].is_nan())),
        Values::Float64(v) => pairs(key, differs, |a, b| v[a] != v[b] && !(v[a].is_nan() && v[b].is_nan())),
        Values::Fixed(v) => pairs(key, differs, |a, b| v.get(a) != v.get(b)),
        Values::Bytes(v) => {
            let views = v.views();
            pairs(key, differs, |a, b| {
                let (x, y) = (views[a], views[b]);
                let same = x == y && x.place().is_none();
                !same && (x.len() != y.len() || x.prefix() != y.prefix() || v.get(a) != v.get(b))
            });
        }
        Values::Numeric(v) if v.side.is_empty() => {
            pairs(key, differs, |a, b| v.ints.get(a) != v.ints.get(b));
        }
        Values::Numeric(v) => {
            let ints = integers_of(v).ok_or(crate::Error::Decline("numeric outside 128 bits"))?;
            pairs(key, differs, |a, b| ints[a] != ints[b]);
        }
        _ => return Err(MISTYPED),
    }
    Ok(())
}

/// Whether two values of flat vectors of one type are equal.
fn equal(a: &Vector, i: usize, b: &Vector, j: usize) -> Result<bool> {
    if !a.is_valid(i) || !b.is_valid(j) {
        return Ok(a.is_valid(i) == b.is_valid(j));
    }
    Ok(match (&a.values, &b.values) {
        (Values::Bool(a), Values::Bool(b)) => a.get(i) == b.get(j),
        (Values::Int16(a), Values::Int16(b)) => a[i] == b[j],
        (Values::Int32(a), Values::Int32(b)) => a[i] == b[j],
        (Values::Int64(a), Values::Int64(b)) => a[i] == b[j],
        (Values::Float32(a), Values::Float32(b)) => a[i] == b[j] || a[i].is_nan() && b[j].is_nan(),
        (Values::Float64(a), Values::Float64(b)) => a[i] == b[j] || a[i].is_nan() && b[j].is_nan(),
        (Values::Fixed(a), Values::Fixed(b)) => a.get(i) == b.get(j),
        (Values::Bytes(a), Values::Bytes(b)) => a.get(i) == b.get(j),
        (Values::Numeric(a), Values::Numeric(b)) => match (a.side_value(i), b.side_value(j)) {
            (None, None) => compare_decimals(a.ints.get(i), a.scale, b.ints.get(j), b.scale).is_eq(),
            // NaN and infinities. Decimals with too many digits are declined together with their own rows.
            (a, b) => a == b,
        },
        _ => return Err(MISTYPED),
    })
}
