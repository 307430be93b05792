//! What a node of a compiled expression gives for the rows of a batch.

use std::sync::Arc;

use vector::{
    Bitmap, ByteViews, DisplayScales, FixedBytes, LogicalType, NumericInts, NumericValues, PhysicalType,
    Values, Vector, concat,
};

use crate::{Error, Result};

/// Values with what is known about them.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    /// One for each row.
    pub vector: Arc<Vector>,
    /// For numerics: no unscaled integer lies outside (NULL rows included).
    pub bounds: Option<(i128, i128)>,
}

impl From<Arc<Vector>> for Value {
    fn from(vector: Arc<Vector>) -> Self {
        Self { vector, bounds: None }
    }
}

impl From<Vector> for Value {
    fn from(vector: Vector) -> Self {
        Arc::new(vector).into()
    }
}

impl Value {
    /// The same as a flat vector or a plain constant: codes, runs and constants with a validity of their own
    /// expanded.
    pub fn plain(self) -> Self {
        let is_plain = match &self.vector.values {
            Values::Dictionary { .. } | Values::Runs { .. } => false,
            Values::Constant(..) => self.vector.validity.is_none(),
            _ => true,
        };
        if is_plain { self } else { Self { vector: Arc::new(flattened(&self.vector)), bounds: self.bounds } }
    }

    /// The same as a flat vector.
    pub fn flat(self) -> Self {
        match &self.vector.values {
            Values::Dictionary { .. } | Values::Runs { .. } | Values::Constant(..) => {
                Self { vector: Arc::new(flattened(&self.vector)), bounds: self.bounds }
            }
            _ => self,
        }
    }

    /// The one value of a constant, as a flat vector of one row.
    pub fn constant(&self) -> Option<&Vector> {
        match &self.vector.values {
            Values::Constant(value, _) if self.vector.validity.is_none() => Some(value),
            _ => None,
        }
    }

    /// The flat vector that holds the values: of one row for a constant.
    pub fn inner(&self) -> &Vector {
        self.constant().unwrap_or(&self.vector)
    }
}

/// A flat vector of the same rows, without copying more than needed.
fn flattened(vector: &Vector) -> Vector {
    match &vector.values {
        // A gather: the codes need not be copied first.
        Values::Dictionary { codes, dictionary } => {
            let mut taken = dictionary.entries.take(codes);
            taken.validity = crate::kernels::words::both(taken.validity.as_ref(), vector.validity.as_ref());
            taken
        }
        _ => vector.clone().flatten(),
    }
}

/// `rows` times the one row of `value`.
pub(crate) fn repeated(value: &Vector, rows: usize) -> Vector {
    Vector::new(value.logical, Values::Constant(Box::new(value.clone()), rows))
}

/// Values of this type that stand where all rows are NULL.
pub(crate) fn zeros(logical: LogicalType, rows: usize) -> Values {
    match logical.physical() {
        PhysicalType::Bool => Values::Bool(Bitmap::filled(rows, false)),
        PhysicalType::Int16 => Values::Int16(vec![0; rows]),
        PhysicalType::Int32 => Values::Int32(vec![0; rows]),
        PhysicalType::Int64 => Values::Int64(vec![0; rows]),
        PhysicalType::Float32 => Values::Float32(vec![0.0; rows]),
        PhysicalType::Float64 => Values::Float64(vec![0.0; rows]),
        PhysicalType::Fixed(width) => {
            let width = usize::from(width).max(1);
            Values::Fixed(FixedBytes { width, bytes: vec![0; width * rows] })
        }
        PhysicalType::Bytes => {
            Values::Bytes(ByteViews::from_parts(vec![Default::default(); rows], Vec::new()))
        }
        PhysicalType::Numeric => Values::Numeric(NumericValues {
            ints: NumericInts::Int32(vec![0; rows]),
            scale: 0,
            display: DisplayScales::Constant(0),
            side: Vec::new(),
        }),
    }
}

/// `rows` times NULL.
pub(crate) fn nulls(logical: LogicalType, rows: usize) -> Vector {
    let one = Vector { logical, validity: Some(Bitmap::filled(1, false)), values: zeros(logical, 1) };
    repeated(&one, rows)
}

/// Vectors of one type, one after the other.
pub(crate) fn end_to_end(logical: LogicalType, parts: Vec<Vector>) -> Result<Vector> {
    // What cannot be put together are decimals without a common scale.
    concat(logical, parts).map_err(|_| Error::Decline("numeric of more than 38 digits"))
}
