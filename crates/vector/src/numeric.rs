//! Exact decimals as scaled integers: value = integer x 10^-scale, with one scale for the whole vector. The
//! display scale of each value is kept beside it. Single values that do not fit (NaN, infinities, huge ones)
//! are in a side lane.

/// The powers of ten that 128 bits hold.
const POWERS: [i128; 39] = {
    let mut powers = [1; 39];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// Ten to this power. None if 128 bits do not hold it.
#[inline]
pub fn power_of_ten(exponent: impl Into<u32>) -> Option<i128> {
    POWERS.get(exponent.into() as usize).copied()
}

/// A single decimal: `unscaled` x 10^-`scale`, shown with `display` digits after the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    /// Integer.
    pub unscaled: i128,
    /// The power of ten it is divided by.
    pub scale: u16,
    /// Digits shown after the point.
    pub display: u16,
}

/// The integers of a numeric vector, as narrow as its values allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NumericInts {
    /// 32-bit unscaled values.
    Int32(Vec<i32>),
    /// 64-bit unscaled values.
    Int64(Vec<i64>),
    /// 128-bit unscaled values.
    Int128(Vec<i128>),
}

impl NumericInts {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Int32(values) => values.len(),
            Self::Int64(values) => values.len(),
            Self::Int128(values) => values.len(),
        }
    }

    /// True when there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The unscaled value at `index`; zero past the end.
    #[inline]
    pub fn get(&self, index: usize) -> i128 {
        match self {
            Self::Int32(values) => values.get(index).map_or(0, |&v| i128::from(v)),
            Self::Int64(values) => values.get(index).map_or(0, |&v| i128::from(v)),
            Self::Int128(values) => values.get(index).copied().unwrap_or(0),
        }
    }

    /// The same values in the narrowest width that holds all of them.
    #[must_use]
    pub fn narrowed(self) -> Self {
        match self {
            Self::Int32(_) => self,
            Self::Int64(values) => {
                let (low, high) = values.iter().fold((0, 0), |(low, high), &v| (v.min(low), v.max(high)));
                match i32::try_from(low).and(i32::try_from(high)) {
                    Ok(_) => Self::Int32(values.iter().map(|&v| i32::try_from(v).unwrap_or(0)).collect()),
                    Err(_) => Self::Int64(values),
                }
            }
            Self::Int128(values) => {
                let (low, high) = values.iter().fold((0, 0), |(low, high), &v| (v.min(low), v.max(high)));
                match i64::try_from(low).and(i64::try_from(high)) {
                    Ok(_) => Self::Int64(values.iter().map(|&v| i64::try_from(v).unwrap_or(0)).collect())
                        .narrowed(),
                    Err(_) => Self::Int128(values),
                }
            }
        }
    }

    /// The values at `positions`.
    #[must_use]
    pub fn take(&self, positions: &[u32]) -> Self {
        fn pick<T: Copy + Default>(values: &[T], positions: &[u32]) -> Vec<T> {
            positions.iter().map(|&p| values.get(p as usize).copied().unwrap_or_default()).collect()
        }
        match self {
            Self::Int32(values) => Self::Int32(pick(values, positions)),
            Self::Int64(values) => Self::Int64(pick(values, positions)),
            Self::Int128(values) => Self::Int128(pick(values, positions)),
        }
    }

    /// Values `start..start + len`, clipped.
    #[must_use]
    pub fn slice(&self, start: usize, len: usize) -> Self {
        fn cut<T: Copy>(values: &[T], start: usize, len: usize) -> Vec<T> {
            let end = (start + len).min(values.len());
            values.get(start.min(end)..end).unwrap_or(&[]).to_vec()
        }
        match self {
            Self::Int32(values) => Self::Int32(cut(values, start, len)),
            Self::Int64(values) => Self::Int64(cut(values, start, len)),
            Self::Int128(values) => Self::Int128(cut(values, start, len)),
        }
    }
}

/// Decimals that are no numbers, in their order. Numbers come between the infinities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Special {
    /// Below every number.
    NegativeInfinity,
    /// Above every number.
    Infinity,
    /// Equal to itself and above everything else.
    Nan,
}

impl Special {
    const ALL: [(Self, u16); 3] =
        [(Self::NegativeInfinity, 0xF000), (Self::Infinity, 0xD000), (Self::Nan, 0xC000)];

    /// The special value that bytes of a side lane stand for. None for a number.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let bytes = u16::from_ne_bytes(bytes.try_into().ok()?);
        Self::ALL.iter().find(|(_, of)| *of == bytes).map(|(special, _)| *special)
    }

    /// Its bytes in a side lane: the host's.
    pub fn bytes(self) -> [u8; 2] {
        let bytes = Self::ALL.iter().find(|(special, _)| *special == self).map_or(0, |(_, bytes)| *bytes);
        bytes.to_ne_bytes()
    }
}

/// How many digits after the point a value shows. It may show fewer or more than the common scale stores. A
/// value never has non-zero digits past its display scale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DisplayScales {
    /// Every value shows this many digits.
    Constant(u16),
    /// Digits shown, value by value.
    PerValue(Vec<u16>),
}

impl DisplayScales {
    /// The display scale at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> u16 {
        match self {
            Self::Constant(scale) => *scale,
            Self::PerValue(scales) => scales.get(index).copied().unwrap_or(0),
        }
    }
}

/// A vector of exact decimals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumericValues {
    /// Unscaled integers. Zero if the row is NULL or in the side lane.
    pub ints: NumericInts,
    /// Value = integer x 10^-scale.
    pub scale: u16,
    /// Digits shown after the point.
    pub display: DisplayScales,
    /// The host's own bytes of values that are no scaled integers of at most 128 bits, ascending by row.
    pub side: Vec<(u32, Box<[u8]>)>,
}

impl NumericValues {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.ints.len()
    }

    /// True when there is no value.
    pub fn is_empty(&self) -> bool {
        self.ints.is_empty()
    }

    /// The side-lane bytes of row `index`, if the row is there.
    pub fn side_value(&self, index: usize) -> Option<&[u8]> {
        let index = u32::try_from(index).ok()?;
        let at = self.side.binary_search_by_key(&index, |(row, _)| *row).ok()?;
        self.side.get(at).map(|(_, bytes)| bytes.as_ref())
    }

    /// The unscaled integer of row `index` as a decimal of so many digits, so many of them after the point.
    /// None where no such decimal is the value.
    pub fn as_decimal(&self, index: usize, (precision, scale): (u16, u16)) -> Option<i128> {
        let value = rescaled(self.ints.get(index), self.scale, scale)?;
        let fits = power_of_ten(precision).is_none_or(|most| value.unsigned_abs() < most.unsigned_abs());
        (fits && self.side_value(index).is_none()).then_some(value)
    }

    /// The rows of the side lane, ascending, if all are NaN or infinite.
    pub fn specials(&self) -> Option<Vec<(u32, Special)>> {
        self.side.iter().map(|(row, bytes)| Some((*row, Special::of(bytes)?))).collect()
    }

    /// The values at `positions`, in that order.
    #[must_use]
    pub fn take(&self, positions: &[u32]) -> Self {
        let display = match &self.display {
            DisplayScales::Constant(scale) => DisplayScales::Constant(*scale),
            DisplayScales::PerValue(_) => {
                DisplayScales::PerValue(positions.iter().map(|&p| self.display.get(p as usize)).collect())
            }
        };
        let side = match self.side.is_empty() {
            true => Vec::new(),
            false => (0u32..)
                .zip(positions)
                .filter_map(|(row, &p)| self.side_value(p as usize).map(|bytes| (row, bytes.into())))
                .collect(),
        };
        Self { ints: self.ints.take(positions), scale: self.scale, display, side }
    }

    /// Values `start..start + len`, clipped.
    #[must_use]
    pub fn slice(&self, start: usize, len: usize) -> Self {
        let end = (start + len).min(self.len());
        let display = match &self.display {
            DisplayScales::Constant(scale) => DisplayScales::Constant(*scale),
            DisplayScales::PerValue(scales) => {
                DisplayScales::PerValue(scales.get(start.min(end)..end).unwrap_or(&[]).to_vec())
            }
        };
        let side = self
            .side
            .iter()
            .filter(|(row, _)| (start..end).contains(&(*row as usize)))
            .filter_map(|(row, bytes)| Some((u32::try_from(*row as usize - start).ok()?, bytes.clone())))
            .collect();
        Self { ints: self.ints.slice(start, len), scale: self.scale, display, side }
    }
}

/// A decimal's unscaled integer with `to` digits after the point instead of `from`. None where digits would
/// be lost, or 128 bits do not hold it.
pub fn rescaled(unscaled: i128, from: u16, to: u16) -> Option<i128> {
    match to.checked_sub(from) {
        Some(more) => unscaled.checked_mul(power_of_ten(more)?),
        None => {
            let part = power_of_ten(from - to)?;
            (unscaled % part == 0).then_some(unscaled / part)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DisplayScales, NumericInts, NumericValues};

    #[test]
    fn decimals_have_all_their_digits_or_are_none() {
        let values = NumericValues {
            ints: NumericInts::Int64(vec![-1250, 125, 99_900, 0, 7]),
            scale: 2,
            display: DisplayScales::Constant(2),
            side: vec![(4, Box::default())],
        };
        let all = |digits| (0..5).map(|row| values.as_decimal(row, digits)).collect::<Vec<_>>();
        assert_eq!(all((5, 2)), [Some(-1250), Some(125), Some(99_900), Some(0), None]);
        assert_eq!(all((5, 3)), [Some(-12_500), Some(1250), None, Some(0), None]);
        assert_eq!(all((3, 1)), [Some(-125), None, None, Some(0), None]);
        assert_eq!(all((38, 38)), [None, None, None, Some(0), None]);
    }
}
