//! Where frames begin and end.
//!
//! Both ends only move forward within a partition. With ROWS and GROUPS they are computed from the row's
//! place. With a RANGE offset each end goes on from its place for the row before, by the server's in_range
//! tests. Invariant: a frame's end is never before its start.

use vector::{LogicalType, Values, Vector, power_of_ten};

use super::input::{Input, Reader};
use super::places::{Holes, Places};
use super::{MISTYPED, Spec, count, needs_key};
use crate::expression::after_interval;
use crate::{Error, FrameBound, FrameExclusion, FrameOffset, FrameUnits, Result, WindowFrame, interrupt};

/// The frames of a chunk's rows.
pub struct Frames {
    frame: WindowFrame,
    /// Rows or groups from the current one to start and end; None where no offset says it.
    start: Option<u64>,
    end: Option<u64>,
    /// The state for an offset that is a distance between values of the order key.
    range: Option<Range>,
    /// The ends of the frame of the row before.
    head: Edge,
    tail: Edge,
}

/// Where a frame begins or ends; it only moves forward in a partition.
#[derive(Default)]
struct Edge {
    /// The row: the first one of the frame, or one past its last.
    row: usize,
    /// Where its partition begins, and how many groups of peers of it are before the row.
    partition: Option<u32>,
    group: u64,
    reader: Reader,
}

impl Edge {
    /// Goes on to the group of peers with this number in the partition `from..to`; to the partition's end
    /// past its groups.
    fn reach_group(&mut self, input: &Input, from: u32, to: u32, group: u64) -> u32 {
        if self.partition != Some(from) {
            (self.partition, self.group, self.row) = (Some(from), 0, from as usize);
        }
        while self.group < group && self.row < to as usize {
            self.row = input.next_peers(self.row + 1).min(to as usize);
            self.group += 1;
        }
        self.row as u32
    }
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
        let range = spec.key.map(|key| Range { key, frame, base: Reader::default() });
        Ok(Self { frame, start, end, range, head: Edge::default(), tail: Edge::default() })
    }

    /// Checks the order key once, before the first range. Values without a distance are declined before there
    /// are results.
    pub fn prepare(&mut self, input: &Input) -> Result<()> {
        let Some(range) = &self.range else { return Ok(()) };
        input.each_piece(|piece| {
            let key = piece.argument(range.key)?;
            let is_certain = match &key.values {
                Values::Numeric(numeric) => numeric.side.is_empty(),
                _ => key.logical != LogicalType::Date,
            };
            (0..key.len() * usize::from(!is_certain)).try_for_each(|row| {
                interrupt::check_at(row)?;
                value(key, row).map(|_| ())
            })
        })
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
        if let Some(range) = &mut self.range {
            return range.first(input, &mut self.head, row, (from, to));
        }
        let offset = self.start.unwrap_or(0);
        Ok(match self.frame.units {
            FrameUnits::Groups => {
                let group = moved(places.group[at].into(), offset, forward);
                group.map_or(from, |group| self.head.reach_group(input, from, to, group))
            }
            _ => moved(row as u64, offset, forward).map_or(from, |row| clamped(row, from, to)),
        })
    }

    /// One past the last row of a frame.
    fn last(&mut self, input: &Input, places: &Places, at: usize) -> Result<u32> {
        let row = places.rows.start + at;
        let (from, to) = (places.partition_start[at], places.partition_end[at]);
        let forward = matches!(self.frame.end, FrameBound::Following(_));
        if let Some(range) = &mut self.range {
            return range.last(input, &mut self.tail, row, (from, to));
        }
        let offset = self.end.unwrap_or(0);
        Ok(match self.frame.units {
            FrameUnits::Groups => {
                let group = moved(u64::from(places.group[at]) + 1, offset, forward);
                group.map_or(from, |group| self.tail.reach_group(input, from, to, group))
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

/// How far frames reach in the order key.
struct Range {
    /// The argument that is the key.
    key: usize,
    frame: WindowFrame,
    /// At the current row.
    base: Reader,
}

/// A value whose distance from others is known.
#[derive(Debug, Clone, Copy)]
enum Key {
    Null,
    Integer(i64),
    /// Microseconds; the extremes are infinite.
    Time(i64),
    Float(f64),
    /// An integer and its scale.
    Decimal(i128, u16),
}

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;
/// What the server calls a timestamp: from 4713 BC to 294276.
const TIMES: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;
const OUTSIDE: Error = Error::Decline("a frame past the last timestamp");
const UNKNOWN: Error = Error::Decline("RANGE over values of this type");
const WIDE: Error = Error::Decline("numeric outside 128 bits");

/// The order key in a row.
#[inline]
fn value(key: &Vector, row: usize) -> Result<Key> {
    if !key.is_valid(row) {
        return Ok(Key::Null);
    }
    Ok(match &key.values {
        Values::Int16(v) => Key::Integer(v[row].into()),
        Values::Int32(v) if key.logical == LogicalType::Date => Key::Time(match v[row] {
            i32::MIN => i64::MIN,
            i32::MAX => i64::MAX,
            day => i64::from(day).checked_mul(DAY).filter(|time| TIMES.contains(time)).ok_or(OUTSIDE)?,
        }),
        Values::Int32(v) => Key::Integer(v[row].into()),
        Values::Int64(v) if key.logical == LogicalType::Timestamp => Key::Time(v[row]),
        Values::Int64(v) => Key::Integer(v[row]),
        Values::Float32(v) => Key::Float(v[row].into()),
        Values::Float64(v) => Key::Float(v[row]),
        Values::Numeric(v) if v.side.is_empty() || v.side_value(row).is_none() => {
            Key::Decimal(v.ints.get(row), v.scale)
        }
        _ => return Err(UNKNOWN),
    })
}

impl Range {
    /// The first row of the frame of `row`, which is in the partition `from..to`.
    fn first(&mut self, input: &Input, head: &mut Edge, row: usize, (from, to): (u32, u32)) -> Result<u32> {
        let (key, at) = self.base.at(input, self.key, row)?;
        let base = value(key, at)?;
        if row == from as usize {
            head.row = row;
        }
        while head.row < to as usize {
            interrupt::check_at(head.row)?;
            let (key, at) = head.reader.at(input, self.key, head.row)?;
            if self.begins(value(key, at)?, base)? {
                break;
            }
            head.row += 1;
        }
        Ok(head.row as u32)
    }

    /// One past the last row of the frame of `row`.
    fn last(&mut self, input: &Input, tail: &mut Edge, row: usize, (from, to): (u32, u32)) -> Result<u32> {
        let (key, at) = self.base.at(input, self.key, row)?;
        let base = value(key, at)?;
        if row == from as usize {
            tail.row = row;
        }
        while tail.row < to as usize {
            interrupt::check_at(tail.row)?;
            let (key, at) = tail.reader.at(input, self.key, tail.row)?;
            if !self.reaches(value(key, at)?, base)? {
                break;
            }
            tail.row += 1;
        }
        Ok(tail.row as u32)
    }

    /// True when the frame of a row with the key `base` does not begin after one with the key `head`.
    fn begins(&self, head: Key, base: Key) -> Result<bool> {
        Ok(match (matches!(head, Key::Null), matches!(base, Key::Null)) {
            (false, false) => match self.frame.start {
                FrameBound::Preceding(offset) => self.reaches_by(head, base, offset, true, false)?,
                FrameBound::Following(offset) => self.reaches_by(head, base, offset, false, false)?,
                // Found without the key's values.
                FrameBound::CurrentRow | FrameBound::Unbounded => return Err(MISTYPED),
            },
            (head, base) if self.frame.nulls_first => !head || base,
            (head, base) => head || !base,
        })
    }

    /// True when the frame of a row with the key `base` does not end before one with the key `tail`.
    fn reaches(&self, tail: Key, base: Key) -> Result<bool> {
        Ok(match (matches!(tail, Key::Null), matches!(base, Key::Null)) {
            (false, false) => match self.frame.end {
                FrameBound::Preceding(offset) => self.reaches_by(tail, base, offset, true, true)?,
                FrameBound::Following(offset) => self.reaches_by(tail, base, offset, false, true)?,
                FrameBound::CurrentRow | FrameBound::Unbounded => return Err(MISTYPED),
            },
            (tail, _) if self.frame.nulls_first => tail,
            (_, base) => base,
        })
    }

    /// The server's in_range: whether `value` is on this side of `base` moved by the offset, before or after
    /// in order.
    fn reaches_by(
        &self,
        value: Key,
        base: Key,
        offset: FrameOffset,
        before: bool,
        upper: bool,
    ) -> Result<bool> {
        let (subtract, less) = (before != self.frame.descending, upper != self.frame.descending);
        let beside = |value: i128, base: i128, offset: i128| {
            let sum = if subtract { base - offset } else { base + offset };
            if less { value <= sum } else { value >= sum }
        };
        Ok(match (value, base, offset) {
            (Key::Integer(value), Key::Integer(base), FrameOffset::Count(offset)) => {
                beside(value.into(), base.into(), offset.into())
            }
            (Key::Time(value), Key::Time(base), FrameOffset::Interval { months, days, micros }) => {
                let sum = after_interval(base, subtract, months, days, micros).ok_or(OUTSIDE)?;
                if less { value <= sum } else { value >= sum }
            }
            (Key::Float(value), Key::Float(base), FrameOffset::Float(offset)) => {
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
            (
                Key::Decimal(value, of_value),
                Key::Decimal(base, of_base),
                FrameOffset::Decimal { unscaled, scale },
            ) => {
                let common = scale.max(of_value).max(of_base);
                let scaled = |value: i128, scale: u16| {
                    let factor = power_of_ten(common - scale);
                    let value = factor.and_then(|factor| value.checked_mul(factor));
                    value.filter(|value| value.abs() < i128::MAX / 2).ok_or(WIDE)
                };
                beside(scaled(value, of_value)?, scaled(base, of_base)?, scaled(unscaled, scale)?)
            }
            _ => return Err(MISTYPED),
        })
    }
}
