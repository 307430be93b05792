//! Window functions that a plan computes, and the frames they look at.

use vector::LogicalType;

use super::{AggregateFunction, TextOrder};
use crate::Expression;

/// Window functions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WindowFunction {
    /// Number of the row in its partition; Int64, as the next two.
    RowNumber,
    /// Rank with gaps.
    Rank,
    /// Rank without gaps.
    DenseRank,
    /// (rank - 1) / (rows - 1); Float64.
    PercentRank,
    /// Rows up to the last peer / rows; Float64.
    CumeDist,
    /// Number of the bucket, of as many as the Int32 argument says; Int32.
    Ntile,
    /// The first argument some rows before: as many as the second one (Int32) says, else one. The third one,
    /// or NULL, where there is no such row.
    Lag,
    /// The same for rows after.
    Lead,
    /// The argument in the first row of the frame.
    FirstValue,
    /// In the last row of the frame.
    LastValue,
    /// In the row of the frame that the second argument (Int32) says, counted from 1.
    NthValue,
    /// An aggregate over the frame; its arguments as for `Aggregate`, NULL where a FILTER leaves a row out
    /// (`Count` stands for `CountRows` then).
    Aggregate(AggregateFunction),
}

/// One window function call.
#[derive(Debug, Clone)]
pub struct WindowCall {
    /// What it computes.
    pub function: WindowFunction,
    /// Its arguments.
    pub arguments: Vec<Expression>,
    /// How text compares for Min and Max.
    pub order: TextOrder,
    /// Type of the result.
    pub result: LogicalType,
}

/// What the offsets of a frame count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameUnits {
    /// Rows.
    Rows,
    /// Distance in the value of the one order key; without offsets peers.
    Range,
    /// Groups of peers.
    Groups,
}

/// How far a frame reaches from the current row; not negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FrameOffset {
    /// Rows or groups; for RANGE, a distance of integers.
    Count(u64),
    /// RANGE: a distance of floats.
    Float(f64),
    /// RANGE: a distance of decimals.
    Decimal {
        /// Integer.
        unscaled: i128,
        /// Its power of ten.
        scale: u16,
    },
    /// RANGE: a distance of dates (at midnight) or timestamps without time zone.
    Interval {
        /// Months of the calendar, added first.
        months: i32,
        /// Days, added after the months.
        days: i32,
        /// Microseconds, added last.
        micros: i64,
    },
    /// No value is known; NULL, or one that is an error: such a frame is declined.
    Unknown,
}

/// Where a frame begins or ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FrameBound {
    /// With the partition.
    Unbounded,
    /// So far before the current row.
    Preceding(FrameOffset),
    /// At the current row (ROWS), or with its peers.
    CurrentRow,
    /// So far after the current row.
    Following(FrameOffset),
}

/// Rows that a frame does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameExclusion {
    /// Has them all.
    Nothing,
    /// The current row.
    CurrentRow,
    /// The current row and its peers.
    Group,
    /// Its peers.
    Ties,
}

/// The frame of the window functions of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowFrame {
    /// What offsets count.
    pub units: FrameUnits,
    /// First row.
    pub start: FrameBound,
    /// Last row.
    pub end: FrameBound,
    /// Rows left out.
    pub exclusion: FrameExclusion,
    /// The order key goes down (RANGE with an offset).
    pub descending: bool,
    /// NULLs come first (RANGE with an offset).
    pub nulls_first: bool,
}

impl WindowFrame {
    /// True where no row's frame can be declined once the execution is made.
    pub fn is_certain(&self) -> bool {
        let certain = |bound| {
            !matches!(
                bound,
                FrameBound::Preceding(FrameOffset::Decimal { .. } | FrameOffset::Interval { .. })
                    | FrameBound::Following(FrameOffset::Decimal { .. } | FrameOffset::Interval { .. })
            )
        };
        certain(self.start) && certain(self.end)
    }
}

impl WindowCall {
    /// True where no row can be declined or raise an error, over an input of these types; its arguments
    /// aside.
    pub fn is_certain(&self, input: &[LogicalType]) -> bool {
        use AggregateFunction as A;
        use WindowFunction as W;
        let numeric = |argument: &Expression| argument.logical(input) == LogicalType::Numeric;
        let exact = |argument: &Expression| {
            matches!(argument.logical(input), LogicalType::Int16 | LogicalType::Int32 | LogicalType::Int64)
        };
        match self.function {
            W::RowNumber | W::Rank | W::DenseRank | W::PercentRank | W::CumeDist => true,
            W::Ntile | W::NthValue => false,
            W::Lag | W::Lead | W::FirstValue | W::LastValue => !self.arguments.iter().any(numeric),
            W::Aggregate(A::CountRows | A::Count | A::Min | A::Max | A::BoolAnd | A::BoolOr) => {
                !self.arguments.iter().any(numeric)
            }
            W::Aggregate(A::Sum | A::Avg) => self.arguments.iter().all(exact),
            W::Aggregate(_) => false,
        }
    }
}
