//! Plain: values of booleans, floats and decimals as they are. (Integers have their own plain in `integers`.)
//!
//! Payload: booleans as 64-bit words; floats as their bit patterns.

use std::ops::Range;

use vector::{Bitmap, PhysicalType, Result, Selection, Values, Vector};

use crate::cursor::{Reader, Writer};
use crate::encoding::{ColumnEncoder, Encoding, Estimate, Leaf, Node, NodeContext, Sample};
use crate::filter::test_values;
use crate::options::{EncodeOptions, EncodingId};
use crate::registry::unknown;
use crate::single::Single;

/// Plain booleans and floats.
pub(crate) struct Plain;

impl Encoding for Plain {
    fn id(&self) -> EncodingId {
        EncodingId::Plain
    }

    fn estimate(&self, sample: &Sample<'_>, _: &EncodeOptions<'_>) -> Option<Estimate> {
        let rows = sample.column.len() as f64;
        let bytes = match sample.column.logical.physical() {
            PhysicalType::Bool => rows / 8.0,
            PhysicalType::Float32 => rows * 4.0,
            PhysicalType::Float64 => rows * 8.0,
            _ => return None,
        };
        Some(Estimate { bytes, penalty: 1.0 })
    }

    fn begin<'c>(
        &self,
        column: &'c Vector,
        _: &EncodeOptions<'c>,
    ) -> Result<Option<Box<dyn ColumnEncoder + 'c>>> {
        Ok(Some(Box::new(PlainEncoder(column))))
    }
}

struct PlainEncoder<'c>(&'c Vector);

impl ColumnEncoder for PlainEncoder<'_> {
    fn chunk(&mut self, rows: Range<usize>, out: &mut Writer) -> Result<bool> {
        let start = out.len();
        out.u8(EncodingId::Plain.tag());
        match &self.0.values {
            Values::Bool(bits) => {
                bits.slice(rows.start, rows.len()).words().iter().for_each(|&word| out.u64(word));
            }
            Values::Float32(values) => {
                values.get(rows).unwrap_or(&[]).iter().for_each(|v| out.u32(v.to_bits()));
            }
            Values::Float64(values) => {
                values.get(rows).unwrap_or(&[]).iter().for_each(|v| out.u64(v.to_bits()));
            }
            _ => {
                out.truncate(start);
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The reading side.
pub(crate) enum PlainNode<'a> {
    Bool(Bitmap),
    Float32(&'a [[u8; 4]]),
    Float64(&'a [[u8; 8]]),
}

impl PlainNode<'_> {
    const fn rows(&self) -> usize {
        match self {
            Self::Bool(bits) => bits.len(),
            Self::Float32(values) => values.len(),
            Self::Float64(values) => values.len(),
        }
    }
}

/// Opens a plain node.
pub(crate) fn open<'a>(reader: &mut Reader<'a>, context: &NodeContext<'a>) -> Result<PlainNode<'a>> {
    let rows = context.rows;
    let node = match context.physical() {
        PhysicalType::Bool => {
            let (words, _) = reader.take(rows.div_ceil(64) * 8)?.as_chunks::<8>();
            let words = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
            PlainNode::Bool(Bitmap::from_words(words, rows))
        }
        PhysicalType::Float32 => PlainNode::Float32(reader.take(rows * 4)?.as_chunks().0),
        PhysicalType::Float64 => PlainNode::Float64(reader.take(rows * 8)?.as_chunks().0),
        physical => return Err(unknown(EncodingId::Plain, physical)),
    };
    Ok(node)
}

impl Node for PlainNode<'_> {
    fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::Plain.name());
    }

    fn decode(&self) -> Result<Values> {
        Ok(match self {
            Self::Bool(bits) => Values::Bool(bits.clone()),
            Self::Float32(values) => Values::Float32(values.iter().map(|v| f32::from_le_bytes(*v)).collect()),
            Self::Float64(values) => Values::Float64(values.iter().map(|v| f64::from_le_bytes(*v)).collect()),
        })
    }

    fn take(&self, rows: &[u32]) -> Result<Values> {
        fn pick<T: Copy + Default>(values: &[T], rows: &[u32]) -> impl Iterator<Item = T> {
            rows.iter().map(|&row| values.get(row as usize).copied().unwrap_or_default())
        }
        Ok(match self {
            Self::Bool(bits) => Values::Bool(bits.take(rows)),
            Self::Float32(values) => Values::Float32(pick(values, rows).map(f32::from_le_bytes).collect()),
            Self::Float64(values) => Values::Float64(pick(values, rows).map(f64::from_le_bytes).collect()),
        })
    }

    fn single<'s>(&'s self, row: usize, _: &'s mut Vec<u8>) -> Result<Option<Single<'s>>> {
        Ok(match self {
            Self::Bool(bits) => (row < bits.len()).then(|| Single::Bool(bits.get(row))),
            Self::Float32(values) => values.get(row).map(|v| Single::Float32(f32::from_le_bytes(*v))),
            Self::Float64(values) => values.get(row).map(|v| Single::Float64(f64::from_le_bytes(*v))),
        })
    }

    fn test(&self, leaf: &Leaf<'_>, selection: &Selection) -> Result<Option<Bitmap>> {
        match self {
            Self::Bool(bits) => {
                // Two answers for the two values.
                let both = Values::Bool([false, true].into_iter().collect());
                let passed = test_values(&both, leaf, &[0, 1])?;
                Ok(Some(match (passed.get(0), passed.get(1)) {
                    (false, true) => bits.clone(),
                    (true, false) => {
                        Bitmap::from_words(bits.words().iter().map(|word| !word).collect(), bits.len())
                    }
                    (all, _) => Bitmap::filled(bits.len(), all),
                }))
            }
            // Reading a few rows is cheaper than decoding. For many rows the caller decodes, and keeps the
            // decoded values.
            _ => match selection {
                Selection::Rows(rows) if rows.len() * 8 < self.rows() => {
                    let all: Vec<u32> = (0..).take(rows.len()).collect();
                    let passed = test_values(&self.take(rows)?, leaf, &all)?;
                    let mut bits = Bitmap::filled(self.rows(), false);
                    for (at, &row) in rows.iter().enumerate() {
                        bits.set(row as usize, passed.get(at));
                    }
                    Ok(Some(bits))
                }
                _ => Ok(None),
            },
        }
    }
}
