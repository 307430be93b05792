//! Where frames begin and end.
//!
//! Both ends only move forward within a partition. With ROWS and GROUPS they are computed from the row's place; with a RANGE offset each goes on from where it was for the row before, by the
//! server's in_range tests. Invariant: a frame's end is never before its start.

use vector::{Bitmap, LogicalType, NumericInts, Values, Vector};

use super::places::{Holes, Places};
use super::{Input, MISTYPED, Spec, count, needs_key};
use crate::expression::after_interval;
use crate::{Error, FrameBound, FrameExclusion, FrameOffset, FrameUnits, Result, WindowFrame, interrupt};

/// The frames of a chunk's rows.
pub struct Frames {
    frame: WindowFrame,
    /// Rows or groups from the current one to start and end; None where no offset says it.
    start: Option<u64>,
    end: Option<u64>,
    key: Option<usize>,
    range: Option<Range>,
    head: usize,
    tail: usize,
}

impl Frames {
    /// For a chunk that was not looked at yet.
    pub fn new(spec: &Spec) -> Result<Self> {
        let frame = spec.frame;
        let rows = |bound| match bound {
            FrameBound::Preceding(offset) | FrameBound::Following(offset) if !needs_key(&frame) => {
                count(offset).map(Some)
            }
            _ => Ok(None),
        };
        let (start, end) = (rows(frame.start)?, rows(frame.end)?);
        Ok(Self { frame, start, end, key: spec.key, range: None, head: 0, tail: 0 })
    }

    /// Looks at the order key once, before the first range.
    pub fn prepare(&mut self, input: &Input) -> Result<()> {
        if let Some(key) = self.key {
            self.range = Some(Range::new(input.argument(key)?, &self.frame)?);
        }
        Ok(())
    }

    /// Sets the frames of the rows of `places`.
    pub fn fill(&mut self, input: &Input, places: &mut Places) -> Result<()> {
        let (mut starts, mut ends) =
            (std::mem::take(&mut places.frame_start), std::mem::take(&mut places.frame_end));
        match self.frame.start {
            FrameBound::Unbounded => starts.clone_from(&places.partition_start),
            FrameBound::CurrentRow if self.frame.units != FrameUnits::Rows => {
                starts.clone_from(&places.peers_start);
            }
            _ => {
                starts.clear();
                for at in 0..places.len() {
                    starts.push(self.first(input, places, at)?);
                }
            }
        }
        match self.frame.end {
            FrameBound::Unbounded => ends.clone_from(&places.partition_end),
            FrameBound::CurrentRow if self.frame.units != FrameUnits::Rows => {
                ends.clone_from(&places.peers_end);
            }
            _ => {
                ends.clear();
                for at in 0..places.len() {
                    ends.push(self.last(input, places, at)?);
                }
            }
        }
        for (end, &start) in ends.iter_mut().zip(&starts) {
            *end = start.max(*end);
        }
        places.holes = holes(self.frame.exclusion, places, &starts, &ends);
        (places.frame_start, places.frame_end) = (starts, ends);
        Ok(())
    }

    /// The first row of a frame.
    fn first(&mut self, input: &Input, places: &Places, at: usize) -> Result<u32> {
        let row = places.rows.start + at;
        let (from, to) = (places.partition_start[at], places.partition_end[at]);
        let forward = matches!(self.frame.start, FrameBound::Following(_));
        if let Some(range) = &self.range {
            if row == from as usize {
                self.head = row;
            }
            while self.head < to as usize && !range.begins(self.head, row)? {
                interrupt::check_at(self.head)?;
                self.head += 1;
            }
            return Ok(self.head as u32);
        }
        let offset = self.start.unwrap_or(0);
        Ok(match self.frame.units {
            FrameUnits::Groups => {
                let group = moved(places.group[at].into(), offset, forward);
                group.map_or(from, |group| group_start(input, places, at, group))
            }
            _ => moved(row as u64, offset, forward).map_or(from, |row| clamped(row, from, to)),
        })
    }

    /// One past the last row of a frame.
    fn last(&mut self, input: &Input, places: &Places, at: usize) -> Result<u32> {
        let row = places.rows.start + at;
        let (from, to) = (places.partition_start[at], places.partition_end[at]);
        let forward = matches!(self.frame.end, FrameBound::Following(_));
        if let Some(range) = &self.range {
            if row == from as usize {
                self.tail = row;
            }
            while self.tail < to as usize && range.reaches(self.tail, row)? {
                interrupt::check_at(self.tail)?;
                self.tail += 1;
            }
            return Ok(self.tail as u32);
        }
        let offset = self.end.unwrap_or(0);
        Ok(match self.frame.units {
            FrameUnits::Groups => {
                let group = moved(u64::from(places.group[at]) + 1, offset, forward);
                group.map_or(from, |group| group_start(input, places, at, group))
            }
            _ => moved(row as u64 + 1, offset, forward).map_or(from, |row| clamped(row, from, to)),
        })
    }
}

/// So far before or after; None before zero.
const fn moved(from: u64, offset: u64, forward: bool) -> Option<u64> {
    match forward {
        true => Some(from.saturating_add(offset)),
        false => from.checked_sub(offset),
    }
}

fn clamped(row: u64, from: u32, to: u32) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX).clamp(from, to)
}

/// Where a partition's group of this number begins; the partition's end past its groups.
fn group_start(input: &Input, places: &Places, at: usize, group: u64) -> u32 {
    let end = places.partition_end[at];
    let number = usize::try_from(group).ok().and_then(|g| g.checked_add(places.first_group[at] as usize));
    number.and_then(|number| input.peers.get(number)).map_or(end, |&start| start.min(end))
}

/// What the frames leave out.
fn holes(exclusion: FrameExclusion, places: &Places, starts: &[u32], ends: &[u32]) -> Option<Holes> {
    let bounds = starts.iter().zip(ends).enumerate();
    let (start, end) = match exclusion {
        FrameExclusion::Nothing => return None,
        FrameExclusion::CurrentRow => bounds
            .map(|(at, (&start, &end))| {
                let row = (places.rows.start + at) as u32;
                (row.clamp(start, end), (row + 1).clamp(start, end))
            })
            .unzip(),
        FrameExclusion::Group | FrameExclusion::Ties => bounds
            .map(|(at, (&start, &end))| {
                (places.peers_start[at].clamp(start, end), places.peers_end[at].clamp(start, end))
            })
            .unzip(),
    };
    Some(Holes { start, end, keep_row: exclusion == FrameExclusion::Ties })
}

/// The order key of a chunk, and how far frames reach in it.
struct Range {
    values: Keys,
    valid: Option<Bitmap>,
    nulls_first: bool,
    descending: bool,
    start: FrameBound,
    end: FrameBound,
}

/// Values whose distances are known.
enum Keys {
    Integers(Vec<i64>),
    /// Microseconds; the extremes are infinite.
    Times(Vec<i64>),
    Floats(Vec<f64>),
    /// Decimals of one scale, and the offsets at that scale.
    Decimals(Vec<i128>, u16),
}

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;
/// What the server calls a timestamp: from 4713 BC to 294276.
const TIMES: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;
const OUTSIDE: Error = Error::Decline("a frame past the last timestamp");

impl Range {
    fn new(key: &Vector, frame: &WindowFrame) -> Result<Self> {
        let ints = |values: Vec<i64>| match key.logical {
            LogicalType::Timestamp => Keys::Times(values),
            _ => Keys::Integers(values),
        };
        let values = match &key.values {
            Values::Int16(v) => ints(v.iter().map(|&v| v.into()).collect()),
            Values::Int32(v) if key.logical == LogicalType::Date => {
                let time = |&day: &i32| match day {
                    i32::MIN => Ok(i64::MIN),
                    i32::MAX => Ok(i64::MAX),
                    day => i64::from(day).checked_mul(DAY).filter(|time| TIMES.contains(time)).ok_or(OUTSIDE),
                };
                Keys::Times(v.iter().map(time).collect::<Result<_>>()?)
            }
            Values::Int32(v) => ints(v.iter().map(|&v| v.into()).collect()),
            Values::Int64(v) => ints(v.clone()),
            Values::Float32(v) => Keys::Floats(v.iter().map(|&v| v.into()).collect()),
            Values::Float64(v) => Keys::Floats(v.clone()),
            Values::Numeric(v) if v.side.is_empty() => Keys::Decimals(
                match &v.ints {
                    NumericInts::Int32(v) => v.iter().map(|&v| v.into()).collect(),
                    NumericInts::Int64(v) => v.iter().map(|&v| v.into()).collect(),
                    NumericInts::Int128(v) => v.clone(),
                },
                v.scale,
            ),
            _ => return Err(Error::Decline("RANGE over values of this type")),
        };
        Ok(Self {
            values,
            valid: key.validity.clone(),
            nulls_first: frame.nulls_first,
            descending: frame.descending,
            start: frame.start,
            end: frame.end,
        })
    }

    fn is_null(&self, row: usize) -> bool {
        self.valid.as_ref().is_some_and(|valid| !valid.get(row))
    }

    /// True when the frame of `row` does not begin after row `head`.
    fn begins(&self, head: usize, row: usize) -> Result<bool> {
        Ok(match (self.is_null(head), self.is_null(row)) {
            (false, false) => match self.start {
                FrameBound::Preceding(offset) => self.reaches_by(head, row, offset, true, false)?,
                FrameBound::Following(offset) => self.reaches_by(head, row, offset, false, false)?,
                // Found without the key's values.
                FrameBound::CurrentRow | FrameBound::Unbounded => return Err(MISTYPED),
            },
            (head, row) if self.nulls_first => !head || row,
            (head, row) => head || !row,
        })
    }

    /// True when the frame of `row` does not end before row `tail`.
    fn reaches(&self, tail: usize, row: usize) -> Result<bool> {
        Ok(match (self.is_null(tail), self.is_null(row)) {
            (false, false) => match self.end {
                FrameBound::Preceding(offset) => self.reaches_by(tail, row, offset, true, true)?,
                FrameBound::Following(offset) => self.reaches_by(tail, row, offset, false, true)?,
                FrameBound::CurrentRow | FrameBound::Unbounded => return Err(MISTYPED),
            },
            (tail, _) if self.nulls_first => tail,
            (_, row) => row,
        })
    }

    /// The server's in_range: whether the value in row `at` is on this side of that in row `base` moved by the offset, before or after in order.
    fn reaches_by(
        &self,
        at: usize,
        base: usize,
        offset: FrameOffset,
        before: bool,
        upper: bool,
    ) -> Result<bool> {
        let (subtract, less) = (before != self.descending, upper != self.descending);
        let beside = |value: i128, base: i128, offset: i128| {
            let sum = if subtract { base - offset } else { base + offset };
            if less { value <= sum } else { value >= sum }
        };
        Ok(match (&self.values, offset) {
            (Keys::Integers(v), FrameOffset::Count(offset)) => {
                beside(v[at].into(), v[base].into(), offset.into())
            }
            (Keys::Times(v), FrameOffset::Interval { months, days, micros }) => {
                let sum = after_interval(v[base], subtract, months, days, micros).ok_or(OUTSIDE)?;
                if less { v[at] <= sum } else { v[at] >= sum }
            }
            (Keys::Floats(v), FrameOffset::Float(offset)) => {
                let (value, base) = (v[at], v[base]);
                if value.is_nan() {
                    return Ok(base.is_nan() || !less);
                }
                if base.is_nan() {
                    return Ok(less);
                }
                if offset.is_infinite() && base.is_infinite() && subtract == (base > 0.0) {
                    return Ok(true);
                }
                let sum = if subtract { base - offset } else { base + offset };
                if less { value <= sum } else { value >= sum }
            }
            (Keys::Decimals(v, own), FrameOffset::Decimal { unscaled, scale }) => {
                const WIDE: Error = Error::Decline("numeric outside 128 bits");
                let power = |of: u16| 10i128.checked_pow(of.into()).ok_or(WIDE);
                let common = scale.max(*own);
                let (value_factor, factor) = (power(common - own)?, power(common - scale)?);
                let scaled = |value: i128, factor: i128| {
                    value.checked_mul(factor).filter(|value| value.abs() < i128::MAX / 2).ok_or(WIDE)
                };
                beside(
                    scaled(v[at], value_factor)?,
                    scaled(v[base], value_factor)?,
                    scaled(unscaled, factor)?,
                )
            }
            _ => return Err(MISTYPED),
        })
    }
}
