//! 128-bit integers. If all distances from the smallest value fit 63 bits, the payload is 0, the smallest
//! value (16 bytes) and an integer node of the distances. Otherwise it is 1, an integer child of the high
//! halves and an integer node of the low halves.

use vector::{Error, Result};

use crate::cursor::{Reader, Writer};
use crate::integers::{self, IntNode};
use crate::options::EncodingId;

const BASE: u8 = 0;
const HALVES: u8 = 1;

#[allow(clippy::cast_possible_truncation)]
const fn halves(value: i128) -> (i64, i64) {
    ((value >> 64) as i64, value as i64)
}

const fn join(high: i64, low: i64) -> i128 {
    ((high as i128) << 64) | (low.cast_unsigned() as i128)
}

/// Appends a wide node.
pub(super) fn write(values: &[i128], out: &mut Writer) {
    let low = values.iter().copied().min().unwrap_or(0);
    let high = values.iter().copied().max().unwrap_or(0);
    out.u8(EncodingId::Wide.tag());
    let depth = integers::CHILD_DEPTH - 1;
    if high.checked_sub(low).is_some_and(|range| i64::try_from(range).is_ok()) {
        out.u8(BASE);
        out.bytes(&low.to_le_bytes());
        let rest: Vec<i64> = values.iter().map(|value| i64::try_from(value - low).unwrap_or(0)).collect();
        integers::write_node(&rest, depth, None, out);
    } else {
        out.u8(HALVES);
        let (highs, lows): (Vec<i64>, Vec<i64>) = values.iter().map(|&value| halves(value)).unzip();
        integers::write_child(&highs, depth, out);
        integers::write_node(&lows, depth, None, out);
    }
}

/// A wide node over its bytes.
pub(super) enum WideNode<'a> {
    Base(i128, IntNode<'a>),
    Halves(IntNode<'a>, IntNode<'a>),
}

impl<'a> WideNode<'a> {
    pub(super) fn open(reader: &mut Reader<'a>, rows: usize, depth: u8) -> Result<Self> {
        let tag = reader.u8()?;
        if tag != EncodingId::Wide.tag() {
            return Err(Error::corrupt(format!("encoding {tag} for 128-bit integers")));
        }
        let depth = depth.checked_sub(1).ok_or_else(|| Error::corrupt("nodes nested too deep"))?;
        match reader.u8()? {
            BASE => {
                let base = i128::from_le_bytes(reader.array()?);
                Ok(Self::Base(base, IntNode::open(reader, rows, depth)?))
            }
            HALVES => {
                let high = IntNode::open(&mut reader.child()?, rows, depth)?;
                Ok(Self::Halves(high, IntNode::open(reader, rows, depth)?))
            }
            kind => Err(Error::corrupt(format!("wide integers of kind {kind}"))),
        }
    }

    pub(super) fn describe(&self, out: &mut String) {
        out.push_str(EncodingId::Wide.name());
        out.push_str(" > ");
        match self {
            Self::Base(_, node) => node.describe(out),
            Self::Halves(high, low) => {
                high.describe(out);
                out.push_str(", ");
                low.describe(out);
            }
        }
    }

    pub(super) fn decode(&self) -> Result<Vec<i128>> {
        self.read(|node, out| node.decode_into(out))
    }

    pub(super) fn take(&self, rows: &[u32]) -> Result<Vec<i128>> {
        self.read(|node, out| node.take_into(rows, out))
    }

    fn read(&self, read: impl Fn(&IntNode<'_>, &mut Vec<i64>) -> Result<()>) -> Result<Vec<i128>> {
        match self {
            Self::Base(base, node) => {
                let mut rest = Vec::new();
                read(node, &mut rest)?;
                Ok(rest.into_iter().map(|value| base.wrapping_add(i128::from(value))).collect())
            }
            Self::Halves(high, low) => {
                let (mut highs, mut lows) = (Vec::new(), Vec::new());
                read(high, &mut highs)?;
                read(low, &mut lows)?;
                Ok(highs.into_iter().zip(lows).map(|(high, low)| join(high, low)).collect())
            }
        }
    }
}
