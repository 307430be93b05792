//! Parts of an expression that read one column only, computed on the column's encoding. A part is computed
//! once for a constant, for each run or for each dictionary entry, and not for each row.
//!
//! Results for a dictionary are kept by its id, so that a filter touches each entry once a stripe. A
//! dictionary may have entries that do not occur in the rows at hand. If one of its entries ends the part
//! with an error, the rows are computed one by one instead. If the part calls the host, only entries that
//! occur are computed, each once. Invariant: the answer is that of the plain rows.

use std::sync::Arc;

use vector::{Bitmap, Dictionary, LogicalType, Values, Vector};

use super::node::{Kind, Node};
use super::value::{Value, end_to_end, nulls, repeated};
use crate::kernels::compare::test_each;
use crate::kernels::words::{both, combine};
use crate::{Batch, Error, Result};

/// A node that reads one column only.
pub(super) struct Encoded {
    node: Node,
    column: usize,
    host: bool,
    kept: Option<Kept>,
    null: Option<Vector>,
}

const NOT_MET: u32 = u32::MAX;

/// Parts that cost less than this are not worth remembering entry by entry.
const DEAR: u32 = 10;

/// What is known about a dictionary.
struct Kept {
    id: u64,
    /// Rows met so far. A large dictionary is computed as a whole once it has no more entries than this.
    rows: usize,
    outcome: Outcome,
}

enum Outcome {
    /// Not computed yet.
    Unknown,
    /// An entry ends the part.
    Failed,
    /// The verdict of each entry: bit 0 the value, bit 1 that it is not NULL.
    Truths(Vec<u8>),
    /// A value for each entry, none NULL.
    Entries(Arc<Dictionary>),
    /// A value for each entry, some NULL.
    Nullable(Vector),
    /// Values of the entries met so far, and where each entry's is (`NOT_MET`: nowhere).
    Met { places: Vec<u32>, values: Option<Vector> },
}

impl Encoded {
    /// Wraps a node that reads one column and is more than that column.
    pub fn around(node: Node) -> Node {
        match (&node.kind, node.columns.as_slice()) {
            (Kind::Column(_), _) => node,
            (_, &[column]) => {
                let (logical, columns) = (node.logical, node.columns.clone());
                let (may_fail, host, cost) = (node.may_fail, node.host, node.cost);
                let kind = Kind::Encoded(Box::new(Self { node, column, host, kept: None, null: None }));
                Node { kind, logical, columns, may_fail, host, cost }
            }
            _ => node,
        }
    }

    /// The node itself, for callers that look into it.
    pub fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }

    /// True where computing on the column's encoding may be cheaper than computing row by row.
    pub fn applies(&self, batch: &Batch) -> bool {
        batch.columns.get(self.column).is_some_and(|column| {
            matches!(column.values, Values::Constant(..) | Values::Runs { .. } | Values::Dictionary { .. })
        })
    }

    /// The part's value in each row.
    pub fn evaluate(&mut self, batch: &Batch) -> Result<Value> {
        let Some(column) = batch.columns.get(self.column).cloned() else {
            return Err(Error::Decline("column outside its input"));
        };
        let done = match &column.values {
            Values::Constant(value, _) if column.validity.is_none() => self.constant(batch, value)?,
            Values::Runs { ends, values } if column.validity.is_none() && values.len() * 2 <= batch.rows => {
                self.runs(batch, ends, values)?
            }
            Values::Dictionary { codes, dictionary } => {
                // If no row is NULL, nothing is computed for NULL, because that may fail.
                let validity = column.validity.as_ref().filter(|validity| validity.count_zeros() > 0);
                self.codes(batch, codes, dictionary, validity)?
            }
            _ => None,
        };
        match done {
            Some(value) => Ok(value),
            None => self.node.evaluate(batch),
        }
    }

    /// The part's value for each of these values of the column, flat.
    fn over(&mut self, batch: &Batch, values: Vector) -> Result<Value> {
        let mut columns = batch.columns.clone();
        let rows = values.len();
        if let Some(column) = columns.get_mut(self.column) {
            *column = Arc::new(values);
        }
        Ok(self.node.evaluate(&Batch::new(rows, columns))?.flat())
    }

    /// As `over`. None if the part fails for one of the values; the rows themselves may not fail.
    fn try_over(&mut self, batch: &Batch, values: Vector) -> Result<Option<Vector>> {
        match self.over(batch, values) {
            Ok(value) => Ok(Some(Arc::unwrap_or_clone(value.vector))),
            Err(Error::Sql(_) | Error::Decline(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn constant(&mut self, batch: &Batch, value: &Vector) -> Result<Option<Value>> {
        let value = self.over(batch, value.clone())?;
        Ok(Some(Value { vector: Arc::new(repeated(&value.vector, batch.rows)), bounds: value.bounds }))
    }

    fn runs(&mut self, batch: &Batch, ends: &[u32], values: &Vector) -> Result<Option<Value>> {
        let Some(values) = self.try_over(batch, values.clone())? else { return Ok(None) };
        let runs =
            Vector::new(self.node.logical, Values::Runs { ends: ends.to_vec(), values: Box::new(values) });
        let vector = if self.node.logical == LogicalType::Bool { runs.flatten() } else { runs };
        Ok(Some(vector.into()))
    }

    fn codes(
        &mut self,
        batch: &Batch,
        codes: &[u32],
        dictionary: &Arc<Dictionary>,
        validity: Option<&Bitmap>,
    ) -> Result<Option<Value>> {
        let (entries, before) = (dictionary.entries.len(), self.kept.take());
        let mut kept = match before {
            Some(kept) if kept.id == dictionary.id => kept,
            _ => Kept { id: dictionary.id, rows: 0, outcome: Outcome::Unknown },
        };
        kept.rows = kept.rows.saturating_add(batch.rows);
        if self.host || (entries > kept.rows && self.node.cost >= DEAR) {
            let result = self.met(batch, codes, dictionary, validity, &mut kept);
            self.kept = Some(kept);
            return result;
        }
        if matches!(kept.outcome, Outcome::Unknown | Outcome::Met { .. }) && entries <= kept.rows {
            kept.outcome = match self.try_over(batch, dictionary.entries.clone())? {
                None => Outcome::Failed,
                Some(values) => outcome(values),
            };
        }
        let null = match validity {
            Some(_) if matches!(kept.outcome, Outcome::Unknown | Outcome::Failed | Outcome::Met { .. }) => {
                Ok(None)
            }
            Some(_) => self.of_null(batch),
            None => Ok(None),
        };
        let result = match (&kept.outcome, null?, validity) {
            (Outcome::Unknown | Outcome::Failed | Outcome::Met { .. }, ..) | (_, None, Some(_)) => None,
            (outcome, null, _) => Some(by_code(outcome, codes, null.as_ref(), validity, self.node.logical)?),
        };
        self.kept = Some(kept);
        Ok(result.map(Value::from))
    }

    /// The rows' values, taken from the values of the entries met so far. Entries that these rows meet for
    /// the first time are computed now. None if one of them fails.
    fn met(
        &mut self,
        batch: &Batch,
        codes: &[u32],
        dictionary: &Dictionary,
        validity: Option<&Bitmap>,
        kept: &mut Kept,
    ) -> Result<Option<Value>> {
        if matches!(kept.outcome, Outcome::Failed) {
            return Ok(None);
        }
        let (mut places, mut values) = match std::mem::replace(&mut kept.outcome, Outcome::Failed) {
            Outcome::Met { places, values } => (places, values),
            _ => (vec![NOT_MET; dictionary.entries.len()], None),
        };
        let mut next = values.as_ref().map_or(0, Vector::len);
        let mut missing = Vec::new();
        for (row, &code) in codes.iter().enumerate() {
            if let Some(place) = places.get_mut(code as usize)
                && *place == NOT_MET
                && validity.is_none_or(|validity| validity.get(row))
            {
                *place = u32::try_from(next).unwrap_or(NOT_MET);
                next += 1;
                missing.push(code);
            }
        }
        if !missing.is_empty() {
            let Some(more) = self.try_over(batch, dictionary.entries.take(&missing))? else {
                return Ok(None);
            };
            values = Some(match values {
                None => more,
                Some(before) => end_to_end(self.node.logical, vec![before, more])?,
            });
        }
        let null = match validity {
            Some(_) => match self.of_null(batch)? {
                Some(null) => Some(null),
                None => return Ok(None),
            },
            None => None,
        };
        let result = match &values {
            Some(values) => {
                // Entries that were never met belong to NULL rows: any place will do.
                let place =
                    |code: &u32| places.get(*code as usize).copied().filter(|&place| place != NOT_MET);
                let rows: Vec<u32> = codes.iter().map(|code| place(code).unwrap_or(0)).collect();
                gathered(values, &rows, null.as_ref(), validity)?
            }
            None => repeated(&null.unwrap_or_else(|| nulls(self.node.logical, 1).flatten()), codes.len()),
        };
        kept.outcome = Outcome::Met { places, values };
        Ok(Some(result.into()))
    }

    /// The part's value where the column is NULL, as a flat vector of one row; None where that fails.
    fn of_null(&mut self, batch: &Batch) -> Result<Option<Vector>> {
        if self.null.is_none() {
            let logical = batch.columns.get(self.column).map_or(LogicalType::Bytes, |column| column.logical);
            self.null = self.try_over(batch, nulls(logical, 1).flatten())?;
        }
        Ok(self.null.clone())
    }
}

fn outcome(values: Vector) -> Outcome {
    match &values.values {
        Values::Bool(bits) => Outcome::Truths(
            (0..bits.len()).map(|at| u8::from(bits.get(at)) | (u8::from(values.is_valid(at)) << 1)).collect(),
        ),
        _ if values.null_count() > 0 => Outcome::Nullable(values),
        _ => {
            let entries = Vector { validity: None, ..values };
            Outcome::Entries(Arc::new(Dictionary { id: Dictionary::next_id(), entries }))
        }
    }
}

/// The rows' values: each row takes the value of its entry, a row of NULL takes `null`.
fn by_code(
    outcome: &Outcome,
    codes: &[u32],
    null: Option<&Vector>,
    validity: Option<&Bitmap>,
    logical: LogicalType,
) -> Result<Vector> {
    let null_is_null = null.is_none_or(|null| !null.is_valid(0));
    let values = match outcome {
        Outcome::Truths(truths) => {
            let truth = |code: u32| truths.get(code as usize).copied().unwrap_or(0);
            let mut bits = Bitmap::from_words(test_each(codes, |code| truth(code) & 1 == 1), codes.len());
            let mut valid = truths
                .iter()
                .any(|truth| truth & 2 == 0)
                .then(|| Bitmap::from_words(test_each(codes, |code| truth(code) & 2 == 2), codes.len()));
            if let Some(validity) = validity {
                if null_is_null {
                    valid = both(valid.as_ref(), Some(validity));
                } else {
                    let value =
                        null.is_some_and(|null| matches!(&null.values, Values::Bool(bits) if bits.get(0)));
                    bits = match value {
                        true => combine(&bits, validity, |bits, valid| bits | !valid),
                        false => combine(&bits, validity, |bits, valid| bits & valid),
                    };
                    valid = valid.map(|own| combine(&own, validity, |own, valid| own | !valid));
                }
            }
            return Ok(Vector { logical, validity: valid, values: Values::Bool(bits) });
        }
        Outcome::Entries(dictionary) if null_is_null => {
            let values = Values::Dictionary { codes: codes.to_vec(), dictionary: Arc::clone(dictionary) };
            return Ok(Vector { logical, validity: validity.cloned(), values });
        }
        Outcome::Entries(dictionary) => &dictionary.entries,
        Outcome::Nullable(values) => values,
        Outcome::Unknown | Outcome::Failed | Outcome::Met { .. } => {
            return Err(Error::Decline("nothing is known of the dictionary"));
        }
    };
    gathered(values, codes, null, validity)
}

/// The values at these places, and `null` where a row is not valid.
fn gathered(
    values: &Vector,
    places: &[u32],
    null: Option<&Vector>,
    validity: Option<&Bitmap>,
) -> Result<Vector> {
    match (null, validity) {
        (Some(null), Some(validity)) if null.is_valid(0) => {
            let last = u32::try_from(values.len()).unwrap_or(u32::MAX);
            let values = end_to_end(values.logical, vec![values.clone(), null.clone()])?;
            let valid = places.iter().zip(validity.iter());
            let rows: Vec<u32> = valid.map(|(&place, valid)| if valid { place } else { last }).collect();
            Ok(values.take(&rows))
        }
        _ => {
            let mut taken = values.take(places);
            taken.validity = both(taken.validity.as_ref(), validity);
            Ok(taken)
        }
    }
}
