//! Builds a flat vector value by value. A host fills it from its rows.
//!
//! Each numeric comes with a scale of its own. The builder keeps numerics as they come, and brings them to
//! one common scale when it is finished. A value that would not fit 128 bits then goes to the side lane, as
//! the bytes that the host gives for it.

use crate::{
    Bitmap, ByteViews, DisplayScales, FixedBytes, LogicalType, NumericInts, NumericValues, PhysicalType,
    power_of_ten,
};
use crate::{Values, Vector};

/// The largest unscaled magnitude that is kept as an integer: 10^38 - 1, which 128 bits hold at any scale up
/// to 38.
const MAX_UNSCALED: i128 = 10i128.pow(38) - 1;

/// Largest common scale.
const MAX_SCALE: u16 = 38;

/// The display scale of a row that shows none (NULL, side lane). It takes over the scale of the others.
const NO_DISPLAY: u16 = u16::MAX;

enum Lane {
    Bool(Bitmap),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Fixed(FixedBytes),
    Bytes(ByteViews),
    Numeric(NumericLane),
}

/// Decimals as they come. Most columns have one scale and values of 64 bits. These take eight bytes a value.
struct NumericLane {
    /// The values, as long as all are alike.
    values: Vec<i64>,
    /// Their scale, and the digits that they show. `NO_DISPLAY` until the first one comes.
    scale: u16,
    display: u16,
    /// All rows, once one was different.
    mixed: Option<MixedLane>,
}

/// Decimals of any scale and width.
#[derive(Default)]
struct MixedLane {
    /// The unscaled value, its own scale (the digits that it needs) and its display scale.
    unscaled: Vec<i128>,
    scales: Vec<u16>,
    display: Vec<u16>,
    side: Vec<(u32, Box<[u8]>)>,
}

/// Collects the values of one column.
pub struct VectorBuilder {
    logical: LogicalType,
    validity: Option<Bitmap>,
    lane: Lane,
    len: usize,
    bytes: usize,
}

impl VectorBuilder {
    /// An empty column of this type.
    pub fn new(logical: LogicalType) -> Self {
        let lane = match logical.physical() {
            PhysicalType::Bool => Lane::Bool(Bitmap::new()),
            PhysicalType::Int16 => Lane::Int16(Vec::new()),
            PhysicalType::Int32 => Lane::Int32(Vec::new()),
            PhysicalType::Int64 => Lane::Int64(Vec::new()),
            PhysicalType::Float32 => Lane::Float32(Vec::new()),
            PhysicalType::Float64 => Lane::Float64(Vec::new()),
            PhysicalType::Fixed(width) => {
                Lane::Fixed(FixedBytes { width: usize::from(width).max(1), bytes: Vec::new() })
            }
            PhysicalType::Bytes => Lane::Bytes(ByteViews::new()),
            PhysicalType::Numeric => Lane::Numeric(NumericLane::new()),
        };
        Self { logical, validity: None, lane, len: 0, bytes: 0 }
    }

    /// The column's type.
    pub const fn logical(&self) -> LogicalType {
        self.logical
    }

    /// Rows so far.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True when no row was added.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory held by the values so far, in bytes (an estimate for byte caps).
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    #[inline]
    fn added(&mut self, bytes: usize) {
        if let Some(validity) = &mut self.validity {
            validity.push(true);
        }
        self.len += 1;
        self.bytes += bytes;
    }

    /// Adds SQL NULL.
    pub fn push_null(&mut self) {
        let validity = self.validity.get_or_insert_with(|| Bitmap::filled(self.len, true));
        validity.push(false);
        match &mut self.lane {
            Lane::Bool(bits) => bits.push(false),
            Lane::Int16(values) => values.push(0),
            Lane::Int32(values) => values.push(0),
            Lane::Int64(values) => values.push(0),
            Lane::Float32(values) => values.push(0.0),
            Lane::Float64(values) => values.push(0.0),
            Lane::Fixed(fixed) => fixed.bytes.resize(fixed.bytes.len() + fixed.width, 0),
            Lane::Bytes(views) => {
                views.push(&[]);
            }
            Lane::Numeric(lane) => lane.push_nothing(),
        }
        self.len += 1;
        self.bytes += 8;
    }

    /// Adds a truth value. As all `push_*`, it returns false and adds nothing if the column is of another
    /// kind.
    #[inline]
    pub fn push_bool(&mut self, value: bool) -> bool {
        let Lane::Bool(bits) = &mut self.lane else { return false };
        bits.push(value);
        self.added(1);
        true
    }

    /// Adds a 16-bit integer.
    #[inline]
    pub fn push_i16(&mut self, value: i16) -> bool {
        let Lane::Int16(values) = &mut self.lane else { return false };
        values.push(value);
        self.added(2);
        true
    }

    /// Adds a 32-bit integer or date.
    #[inline]
    pub fn push_i32(&mut self, value: i32) -> bool {
        let Lane::Int32(values) = &mut self.lane else { return false };
        values.push(value);
        self.added(4);
        true
    }

    /// Adds a 64-bit integer or timestamp.
    #[inline]
    pub fn push_i64(&mut self, value: i64) -> bool {
        let Lane::Int64(values) = &mut self.lane else { return false };
        values.push(value);
        self.added(8);
        true
    }

    /// Adds a single float.
    #[inline]
    pub fn push_f32(&mut self, value: f32) -> bool {
        let Lane::Float32(values) = &mut self.lane else { return false };
        values.push(value);
        self.added(4);
        true
    }

    /// Adds a double float.
    #[inline]
    pub fn push_f64(&mut self, value: f64) -> bool {
        let Lane::Float64(values) = &mut self.lane else { return false };
        values.push(value);
        self.added(8);
        true
    }

    /// Adds a byte string, or a fixed-width value of exactly the column's width.
    #[inline]
    pub fn push_bytes(&mut self, value: &[u8]) -> bool {
        let added = match &mut self.lane {
            Lane::Bytes(views) => views.push(value),
            Lane::Fixed(fixed) if value.len() == fixed.width => {
                fixed.bytes.extend_from_slice(value);
                true
            }
            _ => false,
        };
        if added {
            self.added(value.len() + 16);
        }
        added
    }

    /// Adds a decimal: `unscaled` x 10^-`scale`, shown with `display` digits after the point.
    #[inline]
    pub fn push_numeric(&mut self, unscaled: i128, scale: u16, display: u16) -> bool {
        let Lane::Numeric(lane) = &mut self.lane else { return false };
        let bytes = lane.push(unscaled, scale, display);
        self.added(bytes);
        true
    }

    /// Adds a decimal that is no scaled integer of 128 bits, as the host's own bytes.
    pub fn push_numeric_side(&mut self, host_bytes: &[u8]) -> bool {
        let (Lane::Numeric(lane), Ok(row)) = (&mut self.lane, u32::try_from(self.len)) else { return false };
        lane.push_nothing();
        lane.mixed().side.push((row, host_bytes.into()));
        self.added(host_bytes.len() + 36);
        true
    }

    /// The finished vector. `to_side` gives the host's bytes of a decimal (unscaled, scale, display) that
    /// does not fit the common scale of the others.
    pub fn finish(self, to_side: &dyn Fn(i128, u16, u16) -> Box<[u8]>) -> Vector {
        let values = match self.lane {
            Lane::Bool(bits) => Values::Bool(bits),
            Lane::Int16(values) => Values::Int16(values),
            Lane::Int32(values) => Values::Int32(values),
            Lane::Int64(values) => Values::Int64(values),
            Lane::Float32(values) => Values::Float32(values),
            Lane::Float64(values) => Values::Float64(values),
            Lane::Fixed(fixed) => Values::Fixed(fixed),
            Lane::Bytes(mut views) => {
                views.seal();
                Values::Bytes(views)
            }
            Lane::Numeric(lane) => Values::Numeric(lane.finish(to_side)),
        };
        Vector { logical: self.logical, validity: self.validity, values }
    }
}

impl NumericLane {
    const fn new() -> Self {
        Self { values: Vec::new(), scale: NO_DISPLAY, display: NO_DISPLAY, mixed: None }
    }

    /// Adds a value. Returns the bytes that it takes.
    #[inline]
    fn push(&mut self, unscaled: i128, scale: u16, display: u16) -> usize {
        if self.mixed.is_none()
            && scale <= MAX_SCALE
            && let Ok(value) = i64::try_from(unscaled)
        {
            if self.scale == NO_DISPLAY {
                (self.scale, self.display) = (scale, display);
            }
            if (self.scale, self.display) == (scale, display) {
                self.values.push(value);
                return 8;
            }
        }
        self.mixed().push(unscaled, scale, display);
        20
    }

    /// Adds a row without a value of its own: NULL, or one of the side lane.
    fn push_nothing(&mut self) {
        match &mut self.mixed {
            None => self.values.push(0),
            Some(lane) => lane.push(0, 0, NO_DISPLAY),
        }
    }

    /// The lane for values that are not alike. The values so far are moved there.
    fn mixed(&mut self) -> &mut MixedLane {
        self.mixed.get_or_insert_with(|| {
            let values = std::mem::take(&mut self.values);
            // NULLs among them are 0, whose scale does not matter. They show as many digits as the others.
            let scale = if self.scale == NO_DISPLAY { 0 } else { self.scale };
            MixedLane {
                unscaled: values.iter().map(|&value| value.into()).collect(),
                scales: vec![scale; values.len()],
                display: vec![self.display; values.len()],
                side: Vec::new(),
            }
        })
    }

    fn finish(self, to_side: &dyn Fn(i128, u16, u16) -> Box<[u8]>) -> NumericValues {
        if let Some(lane) = self.mixed {
            return lane.finish(to_side);
        }
        let known = |scale: u16| if scale == NO_DISPLAY { 0 } else { scale };
        NumericValues {
            ints: NumericInts::Int64(self.values).narrowed(),
            scale: known(self.scale),
            display: DisplayScales::Constant(known(self.display)),
            side: Vec::new(),
        }
    }
}

impl MixedLane {
    fn push(&mut self, unscaled: i128, scale: u16, display: u16) {
        self.unscaled.push(unscaled);
        self.scales.push(scale);
        self.display.push(display);
    }

    fn finish(mut self, to_side: &dyn Fn(i128, u16, u16) -> Box<[u8]>) -> NumericValues {
        // No common scale can have more than 38 digits. A value that needs more goes to the side lane.
        let scale = self.scales.iter().copied().max().unwrap_or(0).min(MAX_SCALE);
        let mut moved = false;
        for (row, value) in self.unscaled.iter_mut().enumerate() {
            let own = self.scales.get(row).copied().unwrap_or(0);
            if own == scale || *value == 0 {
                continue;
            }
            let scaled = scale
                .checked_sub(own)
                .and_then(power_of_ten)
                .and_then(|factor| value.checked_mul(factor))
                .filter(|scaled| scaled.unsigned_abs() <= MAX_UNSCALED.unsigned_abs());
            match scaled {
                Some(scaled) => *value = scaled,
                None => {
                    let display = self.display.get(row).copied().unwrap_or(0);
                    if let Ok(row) = u32::try_from(row) {
                        self.side.push((row, to_side(*value, own, display)));
                    }
                    *value = 0;
                    moved = true;
                }
            }
        }
        if moved {
            self.side.sort_unstable_by_key(|(row, _)| *row);
        }
        let first = self.display.iter().copied().find(|&d| d != NO_DISPLAY).unwrap_or(0);
        self.display.iter_mut().filter(|d| **d == NO_DISPLAY).for_each(|d| *d = first);
        let display = match self.display.iter().all(|&d| d == first) {
            true => DisplayScales::Constant(first),
            false => DisplayScales::PerValue(self.display),
        };
        NumericValues { ints: NumericInts::Int128(self.unscaled).narrowed(), scale, display, side: self.side }
    }
}
