//! Window functions: the source of `Plan::Window`.
//!
//! Rows are pulled in order and gathered into chunks of whole partitions (`gather`, `boundaries`). A chunk is
//! a unit of work: any thread computes its functions, a range of rows at a time, so that results are never
//! kept (`unit`). The columns that functions look at (`input`) are in memory, or in a file if they are too
//! large. For a range of rows `places` says where each row's partition and peers are. `frames` says where its
//! frame begins and ends. Ranking functions (`ranking`) use `places`. Functions of rows (`values`) and
//! aggregates (`sums`, `extremes`, `running`) use `frames`.
//!
//! Aggregates of exact numbers are differences of sums from the chunk's start. Min and max keep the
//! candidates of the frame as it slides (`slide`). Floats are summed again where rows leave the frame, as the
//! server does.
//!
//! Invariant: ranges are computed in order, each row once.

mod boundaries;
mod extremes;
mod frames;
mod gather;
mod input;
mod places;
mod ranking;
mod running;
mod slide;
mod sums;
mod unit;
mod values;

use vector::{Decimal, LogicalType, Special, Vector};

use self::gather::Gather;
use self::input::Input;
use self::places::Places;
use crate::pipeline::Context;
use crate::{
    Error, FrameBound, FrameOffset, FrameUnits, Pipeline, Plan, Result, Source, WindowCall, WindowFrame,
    WindowFunction,
};

/// The rows of a window plan whose input is `pipeline`. `wanted` says which of the input's columns are read
/// above.
pub(crate) fn window(
    plan: &Plan,
    pipeline: Pipeline,
    wanted: &[bool],
    context: &Context,
) -> Result<Box<dyn Source>> {
    let Plan::Window { input, partition, order, frame, functions } = plan else {
        return Err(Error::Decline("not a window"));
    };
    let unknown = |bound| {
        use FrameBound::{Following, Preceding};
        matches!(bound, Preceding(FrameOffset::Unknown) | Following(FrameOffset::Unknown))
    };
    if unknown(frame.start) || unknown(frame.end) {
        return Err(Error::Decline("frame offset without a value"));
    }
    let types = input.types();
    let mut arguments = Vec::new();
    let mut calls = Vec::new();
    for call in functions {
        calls.push(Call {
            call: call.clone(),
            types: call.arguments.iter().map(|argument| argument.logical(&types)).collect(),
            first: arguments.len(),
        });
        arguments.extend(call.arguments.iter().cloned());
    }
    let in_frame = functions.iter().any(|call| uses_frame(call.function));
    let key = match order.as_slice() {
        [key] if in_frame && needs_key(frame) => {
            arguments.push(key.clone());
            Some(arguments.len() - 1)
        }
        _ if in_frame && needs_key(frame) => return Err(Error::Decline("RANGE of several keys")),
        _ => None,
    };
    let spec = Spec { calls, frame: *frame, in_frame, key, memory: context.settings.memory };
    // A function that cannot be computed is declined here, before anything runs.
    spec.computers()?;
    frames::Frames::new(&spec)?;
    let keys = gather::Keys { partition: partition.clone(), order: order.clone(), arguments };
    Ok(Box::new(Gather::new(pipeline, spec, keys, &types, wanted, context)))
}

fn uses_frame(function: WindowFunction) -> bool {
    use WindowFunction as F;
    matches!(function, F::FirstValue | F::LastValue | F::NthValue | F::Aggregate(_))
}

/// True where frames depend on the distance of the order key's values.
fn needs_key(frame: &WindowFrame) -> bool {
    let has_offset = |bound| matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_));
    frame.units == FrameUnits::Range && (has_offset(frame.start) || has_offset(frame.end))
}

/// What is computed.
struct Spec {
    calls: Vec<Call>,
    frame: WindowFrame,
    /// A function looks at frames.
    in_frame: bool,
    /// The argument that is the order key, where frames need it.
    key: Option<usize>,
    /// Bytes that the operator may hold.
    memory: usize,
}

/// One function.
struct Call {
    call: WindowCall,
    /// Types of its arguments.
    types: Vec<LogicalType>,
    /// Its first argument among those of all functions.
    first: usize,
}

impl Spec {
    /// What computes each function.
    fn computers(&self) -> Result<Vec<Box<dyn Compute>>> {
        self.calls.iter().map(|call| make(call, &self.frame, self.memory)).collect()
    }
}

/// Results of some rows.
enum Column {
    /// As they come out.
    Vector(Vector),
    /// Decimals that may have no scale in common, and the rows, ascending, that are no numbers.
    Decimals(Vec<Option<Decimal>>, Vec<(usize, Special)>),
}

/// Computes one function.
trait Compute: Send {
    /// Looks at a chunk's rows once, before the first range.
    fn prepare(&mut self, _input: &Input) -> Result<()> {
        Ok(())
    }

    /// The results of a range of rows, the one after the range before.
    fn compute(&mut self, input: &Input, at: &Places) -> Result<Column>;
}

/// An argument of another type than planned.
const MISTYPED: Error = Error::Decline("window function of another type");

fn make(call: &Call, frame: &WindowFrame, memory: usize) -> Result<Box<dyn Compute>> {
    use WindowFunction as F;
    Ok(match call.call.function {
        F::RowNumber | F::Rank | F::DenseRank | F::PercentRank | F::CumeDist => {
            Box::new(ranking::Ranking(call.call.function))
        }
        F::Ntile => Box::new(ranking::Ntile::new(call)?),
        F::Lag | F::Lead => Box::new(values::Shifted::new(call)?),
        F::FirstValue | F::LastValue | F::NthValue => Box::new(values::OfFrame::new(call)?),
        F::Aggregate(function) => {
            if let Some(sums) = sums::make(function, call, frame)? {
                sums
            } else if let Some(extremes) = extremes::make(function, call, frame)? {
                extremes
            } else {
                running::make(function, call, memory)?
            }
        }
    })
}

/// Rows or groups of an offset.
fn count(offset: FrameOffset) -> Result<u64> {
    match offset {
        FrameOffset::Count(count) => Ok(count),
        _ => Err(Error::Decline("frame offset of another type")),
    }
}
