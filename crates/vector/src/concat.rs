//! Puts vectors of one column end to end: rows from several chunks or stripes become one vector again.

use std::sync::Arc;

use crate::{
    Bitmap, ByteView, ByteViews, Dictionary, DisplayScales, Error, FixedBytes, LogicalType, NumericInts,
    NumericValues, power_of_ten,
};
use crate::{PhysicalType, Result, Values, Vector};

/// As [`concat`], but parts that share one dictionary stay codes into it.
///
/// # Errors
/// As `concat`.
pub fn concat_coded(logical: LogicalType, mut parts: Vec<Vector>) -> Result<Vector> {
    if parts.len() == 1
        && let Some(only) = parts.pop()
    {
        return Ok(only);
    }
    let Some(dictionary) = shared_dictionary(&parts) else { return concat(logical, parts) };
    let mut codes = Vec::with_capacity(parts.iter().map(Vector::len).sum());
    for part in &parts {
        if let Values::Dictionary { codes: more, .. } = &part.values {
            codes.extend_from_slice(more);
        }
    }
    let validity = concat_validity(&parts);
    Ok(Vector { logical, validity, values: Values::Dictionary { codes, dictionary } })
}

/// The dictionary of all parts, if it is one.
fn shared_dictionary(parts: &[Vector]) -> Option<Arc<Dictionary>> {
    let mut found: Option<&Arc<Dictionary>> = None;
    for part in parts {
        let Values::Dictionary { dictionary, .. } = &part.values else { return None };
        if found.is_some_and(|found| found.id != dictionary.id) {
            return None;
        }
        found = Some(dictionary);
    }
    found.cloned()
}

/// The validity of all rows. None if every part is without NULLs.
fn concat_validity(parts: &[Vector]) -> Option<Bitmap> {
    parts.iter().any(|part| part.validity.is_some()).then(|| {
        let mut bits = Bitmap::new();
        for part in parts {
            match &part.validity {
                Some(validity) => validity.iter().for_each(|bit| bits.push(bit)),
                None => (0..part.len()).for_each(|_| bits.push(true)),
            }
        }
        bits
    })
}

/// All rows of `parts` in order, flat. The parts have type `logical`. No parts make an empty vector. Decimals
/// get the largest scale of the parts. One that would not fit 128 bits then is `InvalidInput`.
pub fn concat(logical: LogicalType, parts: Vec<Vector>) -> Result<Vector> {
    let parts: Vec<Vector> = parts.into_iter().map(Vector::flatten).collect();
    if let Some(part) = parts.iter().find(|part| part.logical != logical) {
        return Err(Error::InvalidInput(format!("{:?} put after {logical:?}", part.logical)));
    }
    let validity = concat_validity(&parts);
    if logical.physical() == PhysicalType::Numeric {
        let numerics = parts.into_iter().map(|part| match part.values {
            Values::Numeric(numeric) => Ok(numeric),
            _ => Err(Error::InvalidInput(format!("values that do not belong into {logical:?}"))),
        });
        let values = Values::Numeric(concat_numeric(numerics.collect::<Result<Vec<_>>>()?)?);
        return Ok(Vector { logical, validity, values });
    }
    let mut joined = empty(logical);
    for part in parts {
        let fits = match (&mut joined, part.values) {
            (Values::Bool(to), Values::Bool(from)) => {
                from.iter().for_each(|bit| to.push(bit));
                true
            }
            (Values::Int16(to), Values::Int16(from)) => extend(to, &from),
            (Values::Int32(to), Values::Int32(from)) => extend(to, &from),
            (Values::Int64(to), Values::Int64(from)) => extend(to, &from),
            (Values::Float32(to), Values::Float32(from)) => extend(to, &from),
            (Values::Float64(to), Values::Float64(from)) => extend(to, &from),
            (Values::Fixed(to), Values::Fixed(from)) if to.width == from.width => {
                extend(&mut to.bytes, &from.bytes)
            }
            (Values::Bytes(to), Values::Bytes(from)) => to.append(&from),
            _ => false,
        };
        if !fits {
            return Err(Error::InvalidInput(format!("values that do not belong into {logical:?}")));
        }
    }
    Ok(Vector { logical, validity, values: joined })
}

fn empty(logical: LogicalType) -> Values {
    match logical.physical() {
        PhysicalType::Bool => Values::Bool(Bitmap::new()),
        PhysicalType::Int16 => Values::Int16(Vec::new()),
        PhysicalType::Int32 => Values::Int32(Vec::new()),
        PhysicalType::Int64 => Values::Int64(Vec::new()),
        PhysicalType::Float32 => Values::Float32(Vec::new()),
        PhysicalType::Float64 => Values::Float64(Vec::new()),
        PhysicalType::Fixed(width) => {
            Values::Fixed(FixedBytes { width: usize::from(width).max(1), bytes: Vec::new() })
        }
        PhysicalType::Bytes => Values::Bytes(ByteViews::new()),
        PhysicalType::Numeric => Values::Numeric(NumericValues {
            ints: NumericInts::Int128(Vec::new()),
            scale: 0,
            display: DisplayScales::Constant(0),
            side: Vec::new(),
        }),
    }
}

fn extend<T: Copy>(to: &mut Vec<T>, from: &[T]) -> bool {
    to.extend_from_slice(from);
    true
}

/// Decimals put end to end at the largest scale of the parts.
fn concat_numeric(parts: Vec<NumericValues>) -> Result<NumericValues> {
    let scale = parts.iter().map(|part| part.scale).max().unwrap_or(0);
    let rows = parts.iter().map(NumericValues::len).sum();
    let ints = if parts.iter().all(|part| part.scale == scale) {
        same_scale(&parts, rows)
    } else {
        let mut ints = Vec::with_capacity(rows);
        for part in &parts {
            let factor = power_of_ten(scale - part.scale);
            for index in 0..part.len() {
                ints.push(match (part.ints.get(index), factor) {
                    (0, _) => 0,
                    (value, factor) => {
                        factor.and_then(|factor| value.checked_mul(factor)).ok_or_else(|| {
                            Error::InvalidInput(format!("a decimal past 128 bits at scale {scale}"))
                        })?
                    }
                });
            }
        }
        NumericInts::Int128(ints)
    };
    let shown = parts.iter().find(|part| !part.is_empty()).map(|part| part.display.get(0)).unwrap_or(0);
    let constant = |part: &NumericValues| part.is_empty() || part.display == DisplayScales::Constant(shown);
    let display = match parts.iter().all(constant) {
        true => DisplayScales::Constant(shown),
        false => DisplayScales::PerValue(
            parts.iter().flat_map(|part| (0..part.len()).map(|index| part.display.get(index))).collect(),
        ),
    };
    let mut side = Vec::new();
    let mut start = 0;
    for part in parts {
        let len = part.len();
        for (row, bytes) in part.side {
            let row = u32::try_from(start + row as usize)
                .map_err(|_| Error::InvalidInput("more than 4 billion rows in a vector".into()))?;
            side.push((row, bytes));
        }
        start += len;
    }
    Ok(NumericValues { ints: narrowed(ints), scale, display, side })
}

/// The integers of all parts, end to end, in the width of the widest part.
fn same_scale(parts: &[NumericValues], rows: usize) -> NumericInts {
    let widest = parts.iter().map(|part| match part.ints {
        NumericInts::Int32(_) => 0,
        NumericInts::Int64(_) => 1,
        NumericInts::Int128(_) => 2,
    });
    match widest.max().unwrap_or(0) {
        0 => {
            let mut ints: Vec<i32> = Vec::with_capacity(rows);
            for part in parts {
                if let NumericInts::Int32(values) = &part.ints {
                    ints.extend_from_slice(values);
                }
            }
            NumericInts::Int32(ints)
        }
        1 => {
            let mut ints: Vec<i64> = Vec::with_capacity(rows);
            for part in parts {
                match &part.ints {
                    NumericInts::Int32(values) => ints.extend(values.iter().map(|&value| i64::from(value))),
                    NumericInts::Int64(values) => ints.extend_from_slice(values),
                    NumericInts::Int128(_) => {}
                }
            }
            NumericInts::Int64(ints)
        }
        _ => {
            let mut ints: Vec<i128> = Vec::with_capacity(rows);
            for part in parts {
                match &part.ints {
                    NumericInts::Int128(values) => ints.extend_from_slice(values),
                    other => ints.extend((0..other.len()).map(|index| other.get(index))),
                }
            }
            NumericInts::Int128(ints)
        }
    }
}

/// `NumericInts::narrowed`, but quick if the width is right already.
fn narrowed(ints: NumericInts) -> NumericInts {
    match ints {
        NumericInts::Int32(_) => ints,
        NumericInts::Int64(values) if values.iter().any(|&value| i32::try_from(value).is_err()) => {
            NumericInts::Int64(values)
        }
        other => other.narrowed(),
    }
}

impl ByteViews {
    /// Appends all values of `other`, sharing its buffers. False when there would be too many buffers.
    fn append(&mut self, other: &Self) -> bool {
        self.seal();
        let buffers = other.shared_buffers();
        let Ok(first) = u32::try_from(self.buffers.len()) else { return false };
        if u32::try_from(self.buffers.len() + buffers.len()).is_err() {
            return false;
        }
        self.buffers.extend(buffers);
        self.views.extend(other.views.iter().map(|view| match view.place() {
            Some((buffer, offset)) => {
                let len = u32::try_from(view.len()).unwrap_or(0);
                ByteView::reference(len, view.prefix(), buffer.saturating_add(first), offset)
            }
            None => *view,
        }));
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::VectorBuilder;

    fn texts(values: &[Option<&str>]) -> Vector {
        let mut builder = VectorBuilder::new(LogicalType::Text);
        for value in values {
            match value {
                Some(value) => assert!(builder.push_bytes(value.as_bytes())),
                None => builder.push_null(),
            }
        }
        builder.finish(&|_, _, _| Box::default())
    }

    fn decimals(values: &[(i128, u16)]) -> Vector {
        let mut builder = VectorBuilder::new(LogicalType::Numeric);
        values.iter().for_each(|&(unscaled, scale)| assert!(builder.push_numeric(unscaled, scale, scale)));
        assert!(builder.push_numeric_side(b"NaN"));
        builder.finish(&|_, _, _| Box::default())
    }

    #[test]
    fn long_and_short_text_with_nulls() {
        let long = "a text that does not fit into a view";
        let joined = concat(
            LogicalType::Text,
            vec![texts(&[Some(long), Some("x")]), texts(&[]), texts(&[None, Some(long)])],
        )
        .unwrap();
        assert_eq!(joined, texts(&[Some(long), Some("x"), None, Some(long)]));
    }

    #[test]
    fn decimals_meet_at_the_larger_scale() {
        let joined = concat(LogicalType::Numeric, vec![decimals(&[(15, 1)]), decimals(&[(-7, 3)])]).unwrap();
        let Values::Numeric(numeric) = &joined.values else { unreachable!() };
        assert_eq!(numeric.scale, 3);
        assert_eq!((0..4).map(|i| numeric.ints.get(i)).collect::<Vec<_>>(), [1500, 0, -7, 0]);
        assert_eq!((numeric.display.get(0), numeric.display.get(2)), (1, 3));
        assert_eq!(numeric.side.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [1, 3]);
        let huge = decimals(&[(10i128.pow(38) - 1, 0)]);
        assert!(concat(LogicalType::Numeric, vec![huge, decimals(&[(1, 5)])]).is_err());
    }

    #[test]
    fn nothing_and_mixed_types() {
        assert_eq!(concat(LogicalType::Int64, vec![]).unwrap().len(), 0);
        assert!(concat(LogicalType::Int64, vec![texts(&[None])]).is_err());
    }
}
