//! Run-time pruning by the server's own functions: which inputs of an Append can have rows for the current
//! values of parameters and stable expressions.
//!
//! Called by the translation through `Values`. Pruning has two steps, as on the server:
//! 1. When the node begins, parameters of the statement and stable expressions leave out some inputs. These
//!    inputs are not part of the plan: they are not initialised and not shown.
//! 2. Parameters of nested loops and sub-plans change from one start to the next. They only say which inputs
//!    are not asked in that start.
//!
//! Invariant: the inputs left when the node begins stay until it ends, so every start has the same operators
//! and sources.

use pgrx::pg_sys::{self, NodeTag};

use crate::expressions::{calls, value_error};
use crate::host::partition_pruning;
use crate::host::tree::{self, List, Node, Typed};
use crate::vectorised::translated::{Reason, Remaining, Values};

/// What the server knows of the inputs of one Append or MergeAppend.
pub struct Pruning {
    /// A part of the plan, by which this entry is found again.
    partitions: *mut pg_sys::PartitionPruneInfo,
    state: *mut partition_pruning::PruneState,
    /// Inputs left when the node began, by place.
    left: Vec<usize>,
    /// Whether each start may leave out more inputs.
    changes: bool,
    /// The executor's parameters that say which inputs a start leaves out.
    parameters: Vec<usize>,
    /// Whether an ERROR of pruning may be held back.
    may_hold_back: bool,
    /// A sub-plan is among what changes.
    sub_plans: bool,
}

/// The values known when the node begins: none, except which partitions can have rows.
pub struct Initial<'a> {
    custom: *mut pg_sys::CustomScanState,
    pruning: &'a mut Vec<Pruning>,
}

impl<'a> Initial<'a> {
    /// For a node that begins; what is found out about inputs is added to `pruning`.
    ///
    /// # Safety
    /// The node is being initialised. What is asked for is part of its plan.
    pub const unsafe fn new(custom: *mut pg_sys::CustomScanState, pruning: &'a mut Vec<Pruning>) -> Self {
        Self { custom, pruning }
    }
}

impl Values for Initial<'_> {
    fn value(&mut self, _expression: Node<'_>) -> Result<Option<(pg_sys::Datum, bool)>, Reason> {
        Ok(None)
    }

    fn remaining(
        &mut self,
        inputs: usize,
        partitions: Typed<'_, pg_sys::PartitionPruneInfo>,
    ) -> Result<Vec<Remaining>, Reason> {
        // SAFETY: as `new` was promised.
        let pruning = unsafe { of(self.pruning, self.custom, inputs, partitions) };
        Ok(pruning.left.iter().map(|&place| Remaining { place, idle: false }).collect())
    }
}

/// The inputs left when the node began, and which of them the values of now leave idle.
///
/// # Safety
/// The node starts, and `partitions` is part of its plan.
pub unsafe fn now(
    known: &mut Vec<Pruning>,
    custom: *mut pg_sys::CustomScanState,
    inputs: usize,
    partitions: Typed<'_, pg_sys::PartitionPruneInfo>,
) -> Result<Vec<Remaining>, Reason> {
    // SAFETY: the caller's node, which runs, and a part of its plan; the set found is a new one.
    unsafe {
        let Pruning { state, left, changes, parameters, may_hold_back, sub_plans, .. } =
            of(known, custom, inputs, partitions);
        if *sub_plans {
            // It would have to be told of changed parameters, as the server tells its Append's.
            return Err(Reason("sub-plan that says which partitions".into()));
        }
        if !*changes || left.is_empty() {
            return Ok(left.iter().map(|&place| Remaining { place, idle: false }).collect());
        }
        let values = (*(*custom).ss.ps.state).es_param_exec_vals;
        // An init plan that stops half-way cannot be run again from its start. Any other ERROR is the
        // server's to raise, if it ever comes to the Append.
        let may_hand_over =
            *may_hold_back && parameters.iter().all(|&number| (*values.add(number)).execPlan.is_null());
        let find = || partition_pruning::matching_inputs(*state);
        let found = match may_hand_over {
            true => value_error::released(|| value_error::attempt(find)),
            false => Ok(tree::guarded(find)),
        };
        let matching = found.map_err(|_| Reason("partitions by a value that cannot be computed".into()))?;
        let read = members(matching);
        pg_sys::bms_free(matching);
        let remaining = |(at, &place)| Remaining { place, idle: !read.contains(&at) };
        Ok(left.iter().enumerate().map(remaining).collect())
    }
}

/// What is known of an Append's inputs; found out now if nothing is.
///
/// # Safety
/// The node is initialised, or being so, and `partitions` is part of its plan.
unsafe fn of<'a>(
    known: &'a mut Vec<Pruning>,
    custom: *mut pg_sys::CustomScanState,
    inputs: usize,
    partitions: Typed<'_, pg_sys::PartitionPruneInfo>,
) -> &'a Pruning {
    let is_of = |pruning: &Pruning| pruning.partitions == partitions.as_ptr();
    let at = known.iter().position(is_of).unwrap_or_else(|| {
        // SAFETY: the caller's node, and a part of its plan.
        known.push(unsafe { Pruning::begin(custom, inputs, partitions) });
        known.len() - 1
    });
    &known[at]
}

impl Pruning {
    /// Finds out what the server knows, while the statement runs.
    ///
    /// # Safety
    /// As `of`.
    unsafe fn begin(
        custom: *mut pg_sys::CustomScanState,
        inputs: usize,
        partitions: Typed<'_, pg_sys::PartitionPruneInfo>,
    ) -> Self {
        // SAFETY: a running statement, in the memory of its query.
        let (state, left) = unsafe {
            let estate = (*custom).ss.ps.state;
            let previous = pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
            // The server gives the node that prunes an expression context of its own; ours has one, which its
            // projection uses.
            let node = pg_sys::palloc0(size_of::<pg_sys::AppendState>()).cast::<pg_sys::PlanState>();
            (*node).type_ = NodeTag::T_AppendState;
            (*node).plan = (*custom).ss.ps.plan;
            (*node).state = estate;
            let count = i32::try_from(inputs).unwrap_or(i32::MAX);
            let begun = partition_pruning::begin_pruning(node, count, partitions.as_ptr());
            pg_sys::MemoryContextSwitchTo(previous);
            begun
        };
        let mut pruning = Self {
            partitions: partitions.as_ptr(),
            state,
            // SAFETY: a set that the server has made.
            left: unsafe { members(left) },
            changes: false,
            parameters: Vec::new(),
            may_hold_back: true,
            sub_plans: false,
        };
        for table in partitions.hierarchies().iter().flat_map(List::iter) {
            let steps = table.steps_of_each_start();
            pruning.changes |= !steps.is_empty();
            pruning.may_hold_back &= may_hold_back(steps);
            pruning.sub_plans |= steps.node().is_some_and(|steps| steps.contains(is_sub_plan));
            // SAFETY: a set of the plan's.
            pruning.parameters.extend(unsafe { members(table.execparamids) });
        }
        pruning
    }
}

const fn is_sub_plan(tag: NodeTag) -> bool {
    matches!(tag, NodeTag::T_SubPlan | NodeTag::T_AlternativeSubPlan)
}

/// Whether an ERROR of steps of pruning may be held back.
fn may_hold_back(steps: List<'_>) -> bool {
    steps.iter().all(|step| {
        // A step has expressions, and functions that compare their values.
        step.as_a::<pg_sys::PartitionPruneStepOp>().is_none_or(|step| {
            step.functions().iter().all(|function| function.to_u32() < pg_sys::FirstNormalObjectId)
                && step.values().iter().all(calls::may_hold_back_errors)
        })
    })
}

/// The numbers in a set, ascending.
///
/// # Safety
/// A set of the server's, or null.
unsafe fn members(set: *mut pg_sys::Bitmapset) -> Vec<usize> {
    // SAFETY: the callers pass a set, or null.
    let next =
        |&before: &i32| Some(unsafe { pg_sys::bms_next_member(set, before) }).filter(|&found| found >= 0);
    std::iter::successors(next(&-1), next).filter_map(|found| usize::try_from(found).ok()).collect()
}
