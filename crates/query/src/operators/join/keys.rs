//! Brings join keys to few forms. Values that are equal in SQL are equal in their form, so hashing and
//! comparing need not know types.
//!
//! Called by `build` (the kept side fixes the forms) and `probe` (the other side is brought to them). The
//! forms:
//! - integers, dates, booleans, floats (one zero, one NaN) and decimals (at the kept side's scale) become
//!   64-bit integers;
//! - wider decimals and 16-byte values become 128-bit integers;
//! - text stays bytes.
//!
//! A value that cannot be brought to the form, such as a decimal with more digits than the kept side has,
//! equals nothing there. It is `unfit`.

use vector::{
    Bitmap, ByteViews, FixedBytes, NumericInts, NumericValues, Special, Values, Vector, power_of_ten,
};

use crate::hash::{each, float_bits, hash_bytes, hash_int, hash_views, hash_wide, word};
use crate::row_container::{IntCodes, NO_CODE, integer_of, is_special};
use crate::{Error, Result};

/// The form that the values of a key are brought to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// 64-bit integers, for integers, floats' bits, short fixed values.
    Int,
    /// 64-bit integers at a decimal scale.
    Decimal(u16),
    /// 128-bit integers at a decimal scale.
    WideDecimal(u16),
    /// 128-bit integers, for fixed values of 16 bytes.
    Wide,
    /// Byte strings.
    Bytes,
    /// Fixed values of other widths.
    Fixed,
}

/// Values in a form.
#[derive(Debug, Clone)]
pub enum KeyValues {
    /// `Int` and `Decimal`.
    Int(Vec<i64>),
    /// `Wide` and `WideDecimal`.
    Wide(Vec<i128>),
    /// `Bytes`.
    Bytes(ByteViews),
    /// `Fixed`.
    Fixed(FixedBytes),
}

/// A key of many rows.
#[derive(Debug, Clone)]
pub struct KeyColumn {
    /// The values; anything where NULL or unfit.
    pub values: KeyValues,
    /// Rows that are not NULL; None when all are not.
    pub valid: Option<Bitmap>,
    /// Rows whose value equals none of the other side.
    pub unfit: Option<Bitmap>,
}

impl Form {
    /// The form for the kept side's values.
    pub fn of(vector: &Vector) -> Self {
        match &vector.values {
            Values::Constant(value, _) => Self::of(value),
            Values::Dictionary { dictionary, .. } => Self::of(&dictionary.entries),
            Values::Runs { values, .. } => Self::of(values),
            Values::Numeric(numeric) => match numeric.ints {
                // NaN and infinities get integers that no number has.
                _ if !numeric.side.is_empty() => Self::WideDecimal(numeric.scale),
                NumericInts::Int128(_) => Self::WideDecimal(numeric.scale),
                _ => Self::Decimal(numeric.scale),
            },
            Values::Bytes(_) => Self::Bytes,
            Values::Fixed(fixed) if fixed.width <= 8 => Self::Int,
            Values::Fixed(fixed) if fixed.width == 16 => Self::Wide,
            Values::Fixed(_) => Self::Fixed,
            _ => Self::Int,
        }
    }
}

impl KeyColumn {
    /// The values of a vector in this form.
    ///
    /// # Errors
    /// `Decline` for huge decimals, whose equality only the host knows, and for values of another type.
    pub fn new(vector: &Vector, form: Form) -> Result<Self> {
        match &vector.values {
            Values::Constant(..) | Values::Runs { .. } => return Self::new(&vector.clone().flatten(), form),
            Values::Dictionary { codes, dictionary } => {
                let mut column = if dictionary.entries.len() <= codes.len() {
                    Self::new(&dictionary.entries, form)?.take(codes)
                } else {
                    Self::new(&dictionary.entries.take(codes), form)?
                };
                column.valid.clone_from(&vector.validity);
                return Ok(column);
            }
            _ => {}
        }
        let mut unfit = None;
        let values = match (&vector.values, form) {
            (Values::Bool(bits), Form::Int) => KeyValues::Int(bits.iter().map(i64::from).collect()),
            (Values::Int16(values), Form::Int) => KeyValues::Int(values.iter().map(|&v| v.into()).collect()),
            (Values::Int32(values), Form::Int) => KeyValues::Int(values.iter().map(|&v| v.into()).collect()),
            (Values::Int64(values), Form::Int) => KeyValues::Int(values.clone()),
            (Values::Float32(values), Form::Int) => {
                KeyValues::Int(values.iter().map(|&value| float_bits(value.into())).collect())
            }
            (Values::Float64(values), Form::Int) => {
                KeyValues::Int(values.iter().map(|&value| float_bits(value)).collect())
            }
            (Values::Fixed(fixed), Form::Int) => KeyValues::Int(
                fixed.bytes.chunks_exact(fixed.width.max(1)).map(|value| word(value).cast_signed()).collect(),
            ),
            (Values::Fixed(fixed), Form::Wide) => KeyValues::Wide(
                fixed
                    .bytes
                    .chunks_exact(16)
                    .map(|value| value.first_chunk::<16>().map_or(0, |bytes| i128::from_le_bytes(*bytes)))
                    .collect(),
            ),
            (Values::Fixed(fixed), Form::Fixed) => KeyValues::Fixed(fixed.clone()),
            (Values::Bytes(views), Form::Bytes) => KeyValues::Bytes(views.clone()),
            (Values::Numeric(numeric), Form::Decimal(scale)) => {
                let (values, bad) = decimals(numeric, scale, |value| i64::try_from(value).ok(), |_| None)?;
                unfit = bad;
                KeyValues::Int(values)
            }
            (Values::Numeric(numeric), Form::WideDecimal(scale)) => {
                let (values, bad) = decimals(numeric, scale, Some, |special| Some(integer_of(special)))?;
                unfit = bad;
                KeyValues::Wide(values)
            }
            _ => return Err(Error::Decline("join keys of different types")),
        };
        let valid = vector.validity.clone().filter(|valid| valid.count_zeros() > 0);
        Ok(Self { values, valid, unfit })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match &self.values {
            KeyValues::Int(values) => values.len(),
            KeyValues::Wide(values) => values.len(),
            KeyValues::Bytes(views) => views.len(),
            KeyValues::Fixed(fixed) => fixed.len(),
        }
    }

    fn take(&self, positions: &[u32]) -> Self {
        fn pick<T: Copy + Default>(values: &[T], positions: &[u32]) -> Vec<T> {
            positions.iter().map(|&p| values.get(p as usize).copied().unwrap_or_default()).collect()
        }
        let values = match &self.values {
            KeyValues::Int(values) => KeyValues::Int(pick(values, positions)),
            KeyValues::Wide(values) => KeyValues::Wide(pick(values, positions)),
            KeyValues::Bytes(views) => KeyValues::Bytes(views.take(positions)),
            KeyValues::Fixed(fixed) => {
                let mut bytes = Vec::with_capacity(positions.len() * fixed.width);
                positions.iter().for_each(|&p| bytes.extend_from_slice(fixed.get(p as usize)));
                KeyValues::Fixed(FixedBytes { width: fixed.width, bytes })
            }
        };
        let take = |bits: &Option<Bitmap>| bits.as_ref().map(|bits| bits.take(positions));
        Self { values, valid: take(&self.valid), unfit: take(&self.unfit) }
    }

    /// True where the row may equal something.
    #[inline]
    pub fn can_match(&self, row: usize) -> bool {
        self.is_valid(row) && self.unfit.as_ref().is_none_or(|unfit| !unfit.get(row))
    }

    /// True where the row is not NULL.
    #[inline]
    pub fn is_valid(&self, row: usize) -> bool {
        self.valid.as_ref().is_none_or(|valid| valid.get(row))
    }

    /// Calls `miss` with each row that cannot match.
    pub fn each_unmatchable(&self, mut miss: impl FnMut(usize)) {
        if self.valid.is_some() || self.unfit.is_some() {
            (0..self.len()).filter(|&row| !self.can_match(row)).for_each(&mut miss);
        }
    }

    fn hash<const FIRST: bool>(&self, hashes: &mut [u64]) {
        match &self.values {
            KeyValues::Int(values) => each::<FIRST>(hashes, None, values.iter().map(|&v| hash_int(v))),
            KeyValues::Wide(values) => {
                each::<FIRST>(hashes, None, values.iter().map(|&v| hash_wide(v.cast_unsigned())));
            }
            KeyValues::Bytes(views) => hash_views::<FIRST>(views, hashes, None),
            KeyValues::Fixed(fixed) => {
                each::<FIRST>(hashes, None, (0..fixed.len()).map(|row| hash_bytes(fixed.get(row))));
            }
        }
    }

    /// Whether two values are equal; neither may be NULL or unfit.
    #[inline]
    pub fn equals(&self, row: usize, other: &Self, other_row: usize) -> bool {
        match (&self.values, &other.values) {
            (KeyValues::Int(a), KeyValues::Int(b)) => a.get(row) == b.get(other_row),
            (KeyValues::Wide(a), KeyValues::Wide(b)) => a.get(row) == b.get(other_row),
            (KeyValues::Bytes(a), KeyValues::Bytes(b)) => bytes_equal(a, row, b, other_row),
            (KeyValues::Fixed(a), KeyValues::Fixed(b)) => a.get(row) == b.get(other_row),
            _ => false,
        }
    }
}

/// The hash of each row over all key columns; anything where a key is NULL or unfit.
pub fn hash_keys(columns: &[KeyColumn], rows: usize, hashes: &mut Vec<u64>) {
    hashes.clear();
    hashes.resize(rows, 0);
    for (at, column) in columns.iter().enumerate() {
        if at == 0 {
            column.hash::<true>(hashes);
        } else {
            column.hash::<false>(hashes);
        }
    }
}

/// Compares two byte strings, whole views where they are inline.
#[inline]
pub fn bytes_equal(a: &ByteViews, row: usize, b: &ByteViews, other: usize) -> bool {
    match (a.views().get(row), b.views().get(other)) {
        (Some(x), Some(y)) if x.len() <= vector::INLINE_BYTES => x == y,
        (Some(x), Some(y)) => x.len() == y.len() && x.prefix() == y.prefix() && a.get(row) == b.get(other),
        _ => false,
    }
}

/// Decimals at `scale`, and which rows have none there; `narrow` is told of numbers, `special` of what is
/// none.
fn decimals<T: Copy + Default>(
    numeric: &NumericValues,
    scale: u16,
    narrow: impl Fn(i128) -> Option<T>,
    special: impl Fn(Special) -> Option<T>,
) -> Result<(Vec<T>, Option<Bitmap>)> {
    const HUGE: Error = Error::Decline("join on a huge numeric");
    let specials = numeric.specials().ok_or(HUGE)?;
    let factor = power_of_ten(scale.abs_diff(numeric.scale));
    let scaled = |value: i128| match (value, factor) {
        (0, _) => Some(0),
        (_, Some(1)) => Some(value),
        (_, Some(factor)) if numeric.scale < scale => value.checked_mul(factor),
        (_, Some(factor)) => (value % factor == 0).then_some(value / factor),
        (_, None) => None,
    };
    let mut unfit: Option<Bitmap> = None;
    let rows = numeric.len();
    let mut values = Vec::with_capacity(rows);
    let mut specials = specials.into_iter().peekable();
    for row in 0..rows {
        let value = match specials.next_if(|(at, _)| *at as usize == row) {
            Some((_, value)) => special(value),
            None => {
                let value = scaled(numeric.ints.get(row));
                if value.is_some_and(is_special) {
                    return Err(HUGE);
                }
                value.and_then(&narrow)
            }
        };
        if value.is_none() {
            unfit.get_or_insert_with(|| Bitmap::filled(rows, false)).set(row, true);
        }
        values.push(value.unwrap_or_default());
    }
    Ok((values, unfit))
}

/// Codes for rows of integer keys: what the kept side's values take, side by side.
#[derive(Debug)]
pub struct KnownCodes(Vec<IntCodes>);

impl KnownCodes {
    /// Codes for these keys; None when they are not integers or take too many bits together.
    pub fn new(columns: &[KeyColumn]) -> Option<Self> {
        let codes = columns.iter().map(|column| match &column.values {
            KeyValues::Int(values) => IntCodes::of(values, column.valid.as_ref()),
            _ => None,
        });
        let codes = codes.collect::<Option<Vec<_>>>()?;
        (codes.iter().map(|codes| codes.bits()).sum::<u32>() < u64::BITS).then_some(Self(codes))
    }

    /// One more than the greatest code that a row may have.
    pub fn places(&self) -> u64 {
        let Some((last, others)) = self.0.split_last() else { return 1 };
        (last.values() + 1) << others.iter().map(|codes| codes.bits()).sum::<u32>()
    }

    /// The codes of the only key.
    pub fn single(&self) -> Option<IntCodes> {
        match self.0.as_slice() {
            [codes] => Some(*codes),
            _ => None,
        }
    }

    /// The code of each row, `NO_CODE` where there can be no match.
    pub fn encode(&self, columns: &[KeyColumn], rows: usize, to: &mut Vec<u64>) {
        to.clear();
        to.resize(rows, 0);
        let mut shift = 0;
        for (codes, column) in self.0.iter().zip(columns) {
            if let KeyValues::Int(values) = &column.values {
                codes.add_known(values, shift, to);
            }
            shift += codes.bits();
            column.each_unmatchable(|row| {
                if let Some(code) = to.get_mut(row) {
                    *code = NO_CODE;
                }
            });
        }
    }
}
