//! A column of kept values that grows: the keys of groups, distinct values, kept rows.
//!
//! Values are appended from rows of vectors, compared with rows of vectors, and given back as flat vectors.
//! Equality is that of grouping: NULL equals NULL, -0 equals 0, NaN equals NaN, decimals by value. Invariant:
//! a value is given back as it was appended (1.0 stays 1.0 though 1.00 is equal).

use std::cmp::Ordering;

use vector::{
    Bitmap, ByteViews, DisplayScales, FixedBytes, LogicalType, NumericInts, NumericValues, PhysicalType,
    Special, Values, Vector, compare_floats, power_of_ten,
};

use crate::{Error, Result, TextOrder};

/// Values of one type, kept.
#[derive(Debug)]
pub struct ValueColumn {
    logical: LogicalType,
    /// Empty until the first NULL.
    nulls: Bitmap,
    lane: Lane,
    len: usize,
}

#[derive(Debug)]
enum Lane {
    Bool(Vec<bool>),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Fixed(FixedBytes),
    Bytes(ByteViews, usize),
    Numeric(Decimals),
}

#[derive(Debug, Default)]
struct Decimals {
    ints: Vec<i128>,
    scale: u16,
    display: Vec<u16>,
    /// Some integer stands for what is no number.
    specials: bool,
}

/// Values that order as integers.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub enum Integers<'a> {
    Bool(&'a [bool]),
    Int16(&'a [i16]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Int128(&'a [i128]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
}

/// An integer that orders as the float: -0 as 0, NaN above everything.
#[inline]
pub fn float_order(value: f64) -> i64 {
    let value = if value == 0.0 { 0.0 } else { value };
    if value.is_nan() {
        return i64::MAX;
    }
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

const MISTYPED: Error = Error::Decline("a column changed its type");

impl ValueColumn {
    /// No values of this type.
    pub fn new(logical: LogicalType) -> Self {
        let lane = match logical.physical() {
            PhysicalType::Bool => Lane::Bool(Vec::new()),
            PhysicalType::Int16 => Lane::Int16(Vec::new()),
            PhysicalType::Int32 => Lane::Int32(Vec::new()),
            PhysicalType::Int64 => Lane::Int64(Vec::new()),
            PhysicalType::Float32 => Lane::Float32(Vec::new()),
            PhysicalType::Float64 => Lane::Float64(Vec::new()),
            PhysicalType::Fixed(width) => {
                Lane::Fixed(FixedBytes { width: usize::from(width).max(1), bytes: Vec::new() })
            }
            PhysicalType::Bytes => Lane::Bytes(ByteViews::new(), 0),
            PhysicalType::Numeric => Lane::Numeric(Decimals::default()),
        };
        Self { logical, nulls: Bitmap::new(), lane, len: 0 }
    }

    /// Their type.
    pub const fn logical(&self) -> LogicalType {
        self.logical
    }

    /// Number of values.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True when there is none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        self.nulls.len() / 8
            + match &self.lane {
                Lane::Bool(values) => values.capacity(),
                Lane::Int16(values) => values.capacity() * 2,
                Lane::Int32(values) => values.capacity() * 4,
                Lane::Int64(values) => values.capacity() * 8,
                Lane::Float32(values) => values.capacity() * 4,
                Lane::Float64(values) => values.capacity() * 8,
                Lane::Fixed(fixed) => fixed.bytes.capacity(),
                Lane::Bytes(views, long) => views.len() * 16 + long,
                Lane::Numeric(numeric) => numeric.ints.capacity() * 18,
            }
    }

    /// True where the value is NULL.
    #[inline]
    pub fn is_null(&self, at: usize) -> bool {
        self.nulls.get(at)
    }

    /// Whether values of a flat vector of its type can be appended for certain, and as they are.
    pub fn takes(&self, from: &Vector) -> bool {
        let (Lane::Numeric(to), Values::Numeric(from)) = (&self.lane, &from.values) else { return true };
        let narrow = !matches!(from.ints, NumericInts::Int128(_));
        narrow && from.side.is_empty() && (self.len == 0 || to.scale == from.scale)
    }

    /// Appends these rows of a flat vector.
    ///
    /// # Errors
    /// `Decline` for decimals that need more than 128 bits at their common scale.
    pub fn append(&mut self, from: &Vector, rows: &[u32]) -> Result<()> {
        if let Some(validity) = &from.validity {
            for (at, &row) in (self.len..).zip(rows) {
                if !validity.get(row as usize) {
                    while self.nulls.len() < at {
                        self.nulls.push(false);
                    }
                    self.nulls.push(true);
                }
            }
        }
        self.len += rows.len();
        fn pick<T: Copy>(to: &mut Vec<T>, from: &[T], rows: &[u32]) {
            to.extend(rows.iter().map(|&row| from[row as usize]));
        }
        match (&mut self.lane, &from.values) {
            (Lane::Bool(to), Values::Bool(from)) => to.extend(rows.iter().map(|&row| from.get(row as usize))),
            (Lane::Int16(to), Values::Int16(from)) => pick(to, from, rows),
            (Lane::Int32(to), Values::Int32(from)) => pick(to, from, rows),
            (Lane::Int64(to), Values::Int64(from)) => pick(to, from, rows),
            (Lane::Float32(to), Values::Float32(from)) => pick(to, from, rows),
            (Lane::Float64(to), Values::Float64(from)) => pick(to, from, rows),
            (Lane::Fixed(to), Values::Fixed(from)) => {
                rows.iter().for_each(|&row| to.bytes.extend_from_slice(from.get(row as usize)));
            }
            (Lane::Bytes(to, long), Values::Bytes(from)) => {
                for &row in rows {
                    let value = from.get(row as usize);
                    *long += value.len();
                    if !to.push(value) {
                        return Err(Error::Decline("a value of 4 GiB"));
                    }
                }
            }
            (Lane::Numeric(to), Values::Numeric(from)) => to.append(from, rows)?,
            _ => return Err(MISTYPED),
        }
        Ok(())
    }

    /// Clears `equal[i]` where the vector's row `rows[i]` differs from the value at `at[i]`. The vector is
    /// flat.
    pub fn compare(&self, with: &Vector, rows: &[u32], at: &[u32], equal: &mut [bool]) -> Result<()> {
        match (&self.lane, &with.values) {
            (Lane::Bool(a), Values::Bool(b)) => {
                self.each(with, rows, at, equal, |at, row| a[at] == b.get(row));
            }
            (Lane::Int16(a), Values::Int16(b)) => self.each(with, rows, at, equal, |at, row| a[at] == b[row]),
            (Lane::Int32(a), Values::Int32(b)) => self.each(with, rows, at, equal, |at, row| a[at] == b[row]),
            (Lane::Int64(a), Values::Int64(b)) => self.each(with, rows, at, equal, |at, row| a[at] == b[row]),
            (Lane::Float32(a), Values::Float32(b)) => self.each(with, rows, at, equal, |at, row| {
                a[at] == b[row] || (a[at].is_nan() && b[row].is_nan())
            }),
            (Lane::Float64(a), Values::Float64(b)) => self.each(with, rows, at, equal, |at, row| {
                a[at] == b[row] || (a[at].is_nan() && b[row].is_nan())
            }),
            (Lane::Fixed(a), Values::Fixed(b)) => {
                self.each(with, rows, at, equal, |at, row| a.get(at) == b.get(row));
            }
            (Lane::Bytes(a, _), Values::Bytes(b)) => {
                let (a_views, b_views) = (a.views(), b.views());
                self.each(with, rows, at, equal, |at, row| {
                    let (x, y) = (a_views[at], b_views[row]);
                    x == y && x.place().is_none()
                        || x.len() == y.len() && x.prefix() == y.prefix() && a.get(at) == b.get(row)
                });
            }
            (Lane::Numeric(a), Values::Numeric(b)) => {
                if a.specials || !b.side.is_empty() {
                    self.each(with, rows, at, equal, |at, row| a.is_same(at, b, row));
                } else if a.scale == b.scale {
                    self.each(with, rows, at, equal, |at, row| a.ints[at] == b.ints.get(row));
                } else {
                    let same = |at: usize, row: usize| {
                        vector::compare_decimals(a.ints[at], a.scale, b.ints.get(row), b.scale).is_eq()
                    };
                    self.each(with, rows, at, equal, same);
                }
            }
            _ => return Err(MISTYPED),
        }
        Ok(())
    }

    #[inline]
    fn each(
        &self,
        with: &Vector,
        rows: &[u32],
        at: &[u32],
        equal: &mut [bool],
        same: impl Fn(usize, usize) -> bool,
    ) {
        let pairs = equal.iter_mut().zip(rows.iter().zip(at));
        match (&with.validity, self.nulls.is_empty()) {
            (None, true) => pairs.for_each(|(equal, (&row, &at))| *equal &= same(at as usize, row as usize)),
            (validity, _) => {
                for (equal, (&row, &at)) in pairs {
                    let null = !validity.as_ref().is_none_or(|validity| validity.get(row as usize));
                    *equal &= match (self.is_null(at as usize), null) {
                        (false, false) => same(at as usize, row as usize),
                        (a, b) => a == b,
                    };
                }
            }
        }
    }

    /// Appends `rows` rows of a flat vector, all it has.
    ///
    /// # Errors
    /// As `append`.
    pub fn append_all(&mut self, from: &Vector) -> Result<()> {
        if from.validity.is_none() {
            match (&mut self.lane, &from.values) {
                (Lane::Int32(to), Values::Int32(from)) => to.extend_from_slice(from),
                (Lane::Int64(to), Values::Int64(from)) => to.extend_from_slice(from),
                (Lane::Float64(to), Values::Float64(from)) => to.extend_from_slice(from),
                _ => return self.append_each(from),
            }
            self.len += from.len();
            return Ok(());
        }
        self.append_each(from)
    }

    fn append_each(&mut self, from: &Vector) -> Result<()> {
        let rows = 0..u32::try_from(from.len()).map_err(|_| MISTYPED)?;
        self.append(from, &rows.collect::<Vec<_>>())
    }

    /// The values at these positions as a flat vector.
    pub fn take(&self, at: &[u32]) -> Vector {
        fn pick<T: Copy>(from: &[T], at: &[u32]) -> Vec<T> {
            at.iter().map(|&at| from[at as usize]).collect()
        }
        let values = match &self.lane {
            Lane::Bool(from) => Values::Bool(at.iter().map(|&at| from[at as usize]).collect()),
            Lane::Int16(from) => Values::Int16(pick(from, at)),
            Lane::Int32(from) => Values::Int32(pick(from, at)),
            Lane::Int64(from) => Values::Int64(pick(from, at)),
            Lane::Float32(from) => Values::Float32(pick(from, at)),
            Lane::Float64(from) => Values::Float64(pick(from, at)),
            Lane::Fixed(fixed) => {
                let mut bytes = Vec::with_capacity(at.len() * fixed.width);
                at.iter().for_each(|&at| bytes.extend_from_slice(fixed.get(at as usize)));
                Values::Fixed(FixedBytes { width: fixed.width, bytes })
            }
            Lane::Bytes(views, _) => Values::Bytes(views.take(at)),
            Lane::Numeric(numeric) => {
                Values::Numeric(numeric.vector(pick(&numeric.ints, at), pick(&numeric.display, at)))
            }
        };
        let validity = (!self.nulls.is_empty())
            .then(|| at.iter().map(|&at| !self.nulls.get(at as usize)).collect::<Bitmap>())
            .filter(|validity| validity.count_zeros() > 0);
        Vector { logical: self.logical, validity, values }
    }

    /// The order of two values that are not NULL, text as `text` says.
    pub fn order(&self, a: usize, b: usize, text: &TextOrder) -> Ordering {
        match &self.lane {
            Lane::Bool(values) => values[a].cmp(&values[b]),
            Lane::Int16(values) => values[a].cmp(&values[b]),
            Lane::Int32(values) => values[a].cmp(&values[b]),
            Lane::Int64(values) => values[a].cmp(&values[b]),
            Lane::Float32(values) => compare_floats(values[a].into(), values[b].into()),
            Lane::Float64(values) => compare_floats(values[a], values[b]),
            Lane::Fixed(fixed) => fixed.get(a).cmp(fixed.get(b)),
            Lane::Bytes(views, _) => text.compare(views.get(a), views.get(b)),
            Lane::Numeric(numeric) => numeric.ints[a].cmp(&numeric.ints[b]),
        }
    }

    /// True where the column has a NULL.
    pub fn has_nulls(&self) -> bool {
        !self.nulls.is_empty()
    }

    /// The values as integers that order as they do, where the type has such; those of NULLs are unspecified.
    pub fn integers(&self) -> Option<Integers<'_>> {
        Some(match &self.lane {
            Lane::Bool(values) => Integers::Bool(values),
            Lane::Int16(values) => Integers::Int16(values),
            Lane::Int32(values) => Integers::Int32(values),
            Lane::Int64(values) => Integers::Int64(values),
            Lane::Float32(values) => Integers::Float32(values),
            Lane::Float64(values) => Integers::Float64(values),
            Lane::Numeric(numeric) => Integers::Int128(&numeric.ints),
            Lane::Fixed(_) | Lane::Bytes(..) => return None,
        })
    }

    /// True for byte strings, which have no integers that order as they do.
    pub const fn is_ranked(&self) -> bool {
        matches!(self.lane, Lane::Fixed(_) | Lane::Bytes(..))
    }

    /// True for text, which holds no zero byte.
    pub const fn is_text(&self) -> bool {
        matches!(self.logical, LogicalType::Text)
    }

    /// The byte string at a position, of the types that are byte strings.
    pub fn bytes_at(&self, at: usize) -> &[u8] {
        match &self.lane {
            Lane::Fixed(fixed) => fixed.get(at),
            Lane::Bytes(views, _) => views.get(at),
            _ => &[],
        }
    }

    /// Nothing more will be appended for now: slices share its bytes instead of copying them.
    pub fn seal(&mut self) {
        if let Lane::Bytes(views, _) = &mut self.lane {
            views.seal();
        }
    }

    /// Values `start..start + len` as a flat vector.
    pub fn slice(&self, start: usize, len: usize) -> Vector {
        let end = (start + len).min(self.len);
        let start = start.min(end);
        let values = match &self.lane {
            Lane::Bool(values) => Values::Bool(values[start..end].iter().copied().collect()),
            Lane::Int16(values) => Values::Int16(values[start..end].to_vec()),
            Lane::Int32(values) => Values::Int32(values[start..end].to_vec()),
            Lane::Int64(values) => Values::Int64(values[start..end].to_vec()),
            Lane::Float32(values) => Values::Float32(values[start..end].to_vec()),
            Lane::Float64(values) => Values::Float64(values[start..end].to_vec()),
            Lane::Fixed(fixed) => Values::Fixed(FixedBytes {
                width: fixed.width,
                bytes: fixed.bytes[start * fixed.width..end * fixed.width].to_vec(),
            }),
            Lane::Bytes(views, _) => Values::Bytes(views.slice(start, end - start)),
            Lane::Numeric(numeric) => {
                let (ints, display) = (&numeric.ints[start..end], &numeric.display[start..end]);
                Values::Numeric(numeric.vector(ints.to_vec(), display.to_vec()))
            }
        };
        let nulls = self.nulls.slice(start, end - start);
        let validity =
            (nulls.count_ones() > 0).then(|| (0..end - start).map(|row| !nulls.get(row)).collect());
        Vector { logical: self.logical, validity, values }
    }
}

impl Decimals {
    fn append(&mut self, from: &NumericValues, rows: &[u32]) -> Result<()> {
        const WIDE: Error = Error::Decline("numeric outside 128 bits");
        let is_number = |value: &i128| value.unsigned_abs() < LIMIT.unsigned_abs();
        let scaled = |value: i128, factor: i128| value.checked_mul(factor).filter(is_number).ok_or(WIDE);
        if from.scale > self.scale {
            let factor = power_of_ten(from.scale - self.scale).ok_or(WIDE)?;
            for value in self.ints.iter_mut().filter(|value| is_number(value)) {
                *value = scaled(*value, factor)?;
            }
            self.scale = from.scale;
        }
        let factor = power_of_ten(self.scale - from.scale).ok_or(WIDE)?;
        for &row in rows {
            let special = if from.side.is_empty() { None } else { from.side_value(row as usize) };
            self.ints.push(match special {
                None => scaled(from.ints.get(row as usize), factor)?,
                Some(bytes) => {
                    self.specials = true;
                    integer_of(Special::of(bytes).ok_or(WIDE)?)
                }
            });
            self.display.push(from.display.get(row as usize));
        }
        Ok(())
    }

    /// Whether the value at a place is that of a row of a vector.
    fn is_same(&self, at: usize, other: &NumericValues, row: usize) -> bool {
        match (special_of(self.ints[at]), other.side_value(row)) {
            (None, None) => {
                vector::compare_decimals(self.ints[at], self.scale, other.ints.get(row), other.scale).is_eq()
            }
            (special, bytes) => special == bytes.and_then(Special::of),
        }
    }

    fn vector(&self, ints: Vec<i128>, display: Vec<u16>) -> NumericValues {
        let display = match display.first() {
            Some(first) if display.iter().any(|other| other != first) => DisplayScales::PerValue(display),
            first => DisplayScales::Constant(first.copied().unwrap_or(0)),
        };
        let mut ints = ints;
        let mut side = Vec::new();
        if self.specials {
            for (row, value) in (0..).zip(&mut ints) {
                if let Some(special) = special_of(*value) {
                    side.push((row, special.bytes().into()));
                    *value = 0;
                }
            }
        }
        NumericValues { ints: NumericInts::Int128(ints).narrowed(), scale: self.scale, display, side }
    }
}

/// Magnitudes of numbers stay below.
const LIMIT: i128 = 10i128.pow(38);

/// The integer that stands for what is no number: at every scale, and in the order of values.
pub const fn integer_of(special: Special) -> i128 {
    match special {
        Special::NegativeInfinity => i128::MIN,
        Special::Infinity => i128::MAX - 1,
        Special::Nan => i128::MAX,
    }
}

/// The integers of decimals, with those that stand for what is no number in its place; None where one has too
/// many digits.
pub fn integers_of(numeric: &NumericValues) -> Option<Vec<i128>> {
    let mut ints: Vec<i128> = (0..numeric.len()).map(|row| numeric.ints.get(row)).collect();
    for (row, special) in numeric.specials()? {
        *ints.get_mut(row as usize)? = integer_of(special);
    }
    Some(ints)
}

/// Whether an integer stands for what is no number.
pub const fn is_special(integer: i128) -> bool {
    special_of(integer).is_some()
}

const fn special_of(integer: i128) -> Option<Special> {
    match integer {
        i128::MIN => Some(Special::NegativeInfinity),
        i128::MAX => Some(Special::Nan),
        _ if integer == i128::MAX - 1 => Some(Special::Infinity),
        _ => None,
    }
}
