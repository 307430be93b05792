//! Encodes one column of one stripe: prepare, choose, encode chunk by chunk.
//!
//! Called by the stripe writer. NULL rows take over the value before them (the first ones take the first
//! value). So they do not disturb runs, deltas and ranges. Readers never look at these values.

use vector::{Bitmap, Error, NumericInts, Result, Values, Vector};

use crate::chooser;
use crate::chunk::{Chunk, VERSION};
use crate::constant;
use crate::cursor::Writer;
use crate::encoding::ColumnEncoder;
use crate::options::{EncodeOptions, EncodingId};
use crate::shared::SharedColumn;
use crate::validity::{self, Validity};

/// An encoded column of a stripe.
#[derive(Debug, Clone, Default)]
pub struct EncodedColumn {
    /// What the chunks share. Empty if they share nothing.
    pub shared: Vec<u8>,
    /// The chunks in order.
    pub chunks: Vec<EncodedChunk>,
}

/// One encoded chunk.
#[derive(Debug, Clone)]
pub struct EncodedChunk {
    /// The chunk's bytes.
    pub bytes: Vec<u8>,
    /// Its rows.
    pub rows: u32,
    /// Its encodings, outermost first.
    pub encoding: String,
}

/// Encodes a column of a stripe in chunks of `options.chunk_rows` rows.
///
/// The column may be of any form. A constant, dictionary or run-length vector is flattened first.
///
/// Errors: `InvalidInput` for a vector whose values are not of its logical type, for a chunk size of 0, or
/// for a chunk whose bytes exceed 4 GiB. Also the error of `options.check`.
pub fn encode_column(column: &Vector, options: &EncodeOptions<'_>) -> Result<EncodedColumn> {
    if options.chunk_rows == 0 || u32::try_from(options.chunk_rows).is_err() {
        return Err(Error::InvalidInput(format!("chunk of {} rows", options.chunk_rows)));
    }
    let flat;
    let column = match &column.values {
        Values::Constant(..) | Values::Dictionary { .. } | Values::Runs { .. } => {
            flat = column.clone().flatten();
            &flat
        }
        _ => column,
    };
    check_type(column)?;
    let filled = fill_nulls(column);
    let values = filled.as_ref().unwrap_or(column);
    let mut encoder = chooser::choose(values, options)?;
    let mut encoded = EncodedColumn::default();
    let rows = column.len();
    let mut start = 0;
    while start < rows {
        (options.check)()?;
        let end = rows.min(start + options.chunk_rows);
        let slice = column.validity.as_ref().map(|bits| bits.slice(start, end - start));
        let mut out = Writer::new();
        out.u8(VERSION);
        if validity::write(slice.as_ref(), end - start, &mut out) != Validity::AllNull {
            encoder.encode(start..end, &mut out)?;
        }
        let rows = u32::try_from(end - start).map_err(|_| Error::InvalidInput("chunk too long".into()))?;
        encoded.chunks.push(EncodedChunk { bytes: out.into_bytes(), rows, encoding: String::new() });
        start = end;
    }
    if let (Some(owner), Some(payload)) = (encoder.owner(), encoder.shared()?) {
        encoded.shared = SharedColumn::write(owner, &payload, options)?;
    }
    let shared = SharedColumn::open(column.logical, &encoded.shared, options.codecs)?;
    for chunk in &mut encoded.chunks {
        (options.check)()?;
        let opened = Chunk::open(column.logical, chunk.rows, &chunk.bytes, &shared, options.codecs)?;
        let encoding = opened.encoding();
        chunk.encoding = encoding;
    }
    Ok(encoded)
}

/// An error unless the values are of the physical type that the logical type asks for.
fn check_type(column: &Vector) -> Result<()> {
    use vector::PhysicalType as P;
    let fits = match (&column.values, column.logical.physical()) {
        (Values::Bool(_), P::Bool)
        | (Values::Int16(_), P::Int16)
        | (Values::Int32(_), P::Int32)
        | (Values::Int64(_), P::Int64)
        | (Values::Float32(_), P::Float32)
        | (Values::Float64(_), P::Float64)
        | (Values::Bytes(_), P::Bytes)
        | (Values::Numeric(_), P::Numeric) => true,
        (Values::Fixed(fixed), P::Fixed(width)) => fixed.width == usize::from(width).max(1),
        _ => false,
    };
    if !fits {
        return Err(Error::InvalidInput(format!("values of another type than {:?}", column.logical)));
    }
    match &column.validity {
        Some(bits) if bits.len() != column.len() => {
            Err(Error::InvalidInput(format!("validity of {} rows for {}", bits.len(), column.len())))
        }
        _ => Ok(()),
    }
}

/// The column, in which each NULL row has the value before it. `None` if no row or every row is NULL.
fn fill_nulls(column: &Vector) -> Option<Vector> {
    fn forward<T: Copy>(values: &[T], bits: &Bitmap, first: usize) -> Vec<T> {
        let mut values = values.to_vec();
        let Some(&start) = values.get(first) else { return values };
        let mut last = start;
        for (row, value) in values.iter_mut().enumerate() {
            if bits.get(row) {
                last = *value;
            } else {
                *value = last;
            }
        }
        values
    }
    let bits = column.validity.as_ref()?;
    if bits.count_zeros() == 0 {
        return None;
    }
    let first = bits.ones().next()?;
    let values = match &column.values {
        Values::Int16(values) => Values::Int16(forward(values, bits, first)),
        Values::Int32(values) => Values::Int32(forward(values, bits, first)),
        Values::Int64(values) => Values::Int64(forward(values, bits, first)),
        Values::Float32(values) => Values::Float32(forward(values, bits, first)),
        Values::Float64(values) => Values::Float64(forward(values, bits, first)),
        Values::Numeric(numeric) => {
            let mut numeric = numeric.clone();
            numeric.ints = match &numeric.ints {
                NumericInts::Int32(values) => NumericInts::Int32(forward(values, bits, first)),
                NumericInts::Int64(values) => NumericInts::Int64(forward(values, bits, first)),
                NumericInts::Int128(values) => NumericInts::Int128(forward(values, bits, first)),
            };
            // A row whose value is in the side lane has a zero here. NULL rows after it must not be in the
            // side lane.
            numeric.side.retain(|(row, _)| bits.get(*row as usize));
            Values::Numeric(numeric)
        }
        _ => {
            let mut last = first;
            let places: Vec<u32> = (0..column.len())
                .map(|row| {
                    if bits.get(row) {
                        last = row;
                    }
                    u32::try_from(last).unwrap_or(u32::MAX)
                })
                .collect();
            return Some(Vector {
                logical: column.logical,
                validity: None,
                values: column.take(&places).values,
            });
        }
    };
    Some(Vector { logical: column.logical, validity: None, values })
}

/// The chosen encoder of a column with its fallbacks.
pub(crate) struct Chosen<'c> {
    pub(crate) column: &'c Vector,
    pub(crate) owner: EncodingId,
    pub(crate) encoder: Box<dyn ColumnEncoder + 'c>,
    /// Encodes the chunks that the chosen encoder refuses.
    pub(crate) fallback: Box<dyn ColumnEncoder + 'c>,
}

impl Chosen<'_> {
    pub(crate) fn encode(&mut self, rows: std::ops::Range<usize>, out: &mut Writer) -> Result<()> {
        let start = out.len();
        if constant::write(self.column, rows.clone(), self.fallback.as_mut(), out)? {
            return Ok(());
        }
        if self.encoder.chunk(rows.clone(), out)? {
            return Ok(());
        }
        out.truncate(start);
        if self.fallback.chunk(rows, out)? {
            return Ok(());
        }
        Err(Error::InvalidInput("no encoding holds these values".into()))
    }

    pub(crate) const fn owner(&self) -> Option<EncodingId> {
        Some(self.owner)
    }

    pub(crate) fn shared(&mut self) -> Result<Option<Vec<u8>>> {
        self.encoder.shared()
    }
}
