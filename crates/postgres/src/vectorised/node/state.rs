//! What the node remembers: the translated plan, its sources, the running execution and the rows that come
//! next.
//!
//! When the node begins, the kept subtree is translated without values, to learn which plan nodes its rows
//! come from. These plan nodes are initialised as children. At that time parameters only decide which
//! partitions are left, as on the server. At the first row, and again after each rescan, the subtree is
//! translated with the values that parameters have by then. Then an execution is built. Invariant: once a row
//! was handed out, nothing is repeated: a failure after that is an ERROR.

use std::sync::Arc;

use pgrx::pg_sys::{self, Datum};
use query::explain::{OperatorFigures, add_figures};
use query::{Execution, Profile, Settings};

use super::host::Backend;
use super::pruning::{Initial, Pruning};
use super::temp_files::Directory;
use super::threads::Reservation;
use super::values::Live;
use super::{fallback, host};
use crate::convert::{ColumnReader, ColumnType};
use crate::expressions::early_value::EarlyValue;
use crate::host::identity::Identity;
use crate::host::tree::{self, FinishedStatement, Typed};
use crate::host::{error, memory};
use crate::planner::cost;
use crate::scan::vectors;
use crate::vectorised::attempt;
use crate::vectorised::derive::derive;
use crate::vectorised::privileges;
use crate::vectorised::source;
use crate::vectorised::translate::translate;
use crate::vectorised::translated::{Kept, Origins, SourceSpec, Translated};

/// Rows turned into Datums at once.
pub const ROWS: usize = 1024;

/// The state of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before the first row.
    Start,
    /// Rows come from the execution.
    Running,
    /// Rows come from the kept subtree, run by the server.
    Fallback,
    /// No rows left.
    Done,
}

/// Datums of one column.
pub struct Output {
    reader: ColumnReader,
    /// Values; zero where NULL.
    pub values: Vec<Datum>,
    /// NULL flags.
    pub nulls: Vec<bool>,
}

/// A plan node that rows come from.
pub struct Leaf {
    /// What it is.
    pub spec: SourceSpec,
    /// Initialised.
    pub state: *mut pg_sys::PlanState,
}

/// Everything the node remembers.
pub struct State {
    /// The server's node.
    pub custom: *mut pg_sys::CustomScanState,
    /// The subtree that the node stands for.
    pub subtree: *mut pg_sys::Plan,
    /// How the node was initialised.
    pub eflags: i32,
    /// Where rows come from.
    pub leaves: Vec<Leaf>,
    /// The plan as translated without values, for EXPLAIN.
    pub shape: Option<(query::Plan, Origins)>,
    /// Where it stands.
    pub phase: Phase,
    /// The kept subtree, once it had to be started.
    pub fallback: *mut pg_sys::PlanState,
    /// Why it had to be.
    pub reason: Option<String>,
    /// Next row of the Datums.
    pub at: usize,
    /// One past their last row.
    pub end: usize,
    /// Datums, a column each.
    pub outputs: Vec<Output>,
    /// The user who began the execution.
    pub identity: Identity,
    values: Vec<EarlyValue>,
    kept: Kept,
    /// Other objects of the server's that a translation makes. They live until the next translation.
    scratch: pg_sys::MemoryContext,
    pruning: Vec<Pruning>,
    execution: Option<Execution>,
    files: Option<Arc<Directory>>,
    /// Dropped after the execution that uses its threads.
    reservation: Option<Reservation>,
    /// The figures of the operators in the present start, for EXPLAIN ANALYZE.
    profile: Option<Arc<Profile>>,
    /// The figures of earlier starts, by operator.
    measured: Vec<OperatorFigures>,
    /// Threads of the last start, for EXPLAIN.
    pub threads: usize,
    batch: query::Batch,
    /// Rows of the batch that are Datums already.
    taken: usize,
    handed_out: bool,
}

impl State {
    /// Translates the subtree and initialises its leaves.
    ///
    /// # Safety
    /// Called while the server initialises the node, in the query's memory.
    pub unsafe fn begin(custom: *mut pg_sys::CustomScanState, eflags: i32) -> Self {
        // SAFETY: the plan is one of ours: its only child is the kept subtree.
        unsafe {
            let plan = Typed::<pg_sys::CustomScan>::new((*custom).ss.ps.plan.cast());
            let Some(subtree) = plan.and_then(|plan| plan.children().get(0)) else {
                error::internal("a vectorised plan without the subtree it stands for");
            };
            let mut state = Self::new(custom, subtree.as_ptr(), eflags);
            if !(*(*custom).ss.ps.state).es_epq_active.is_null() {
                fallback::start(&mut state, "rows are checked again one by one".into());
                return state;
            }
            if !privileges::may_call_all(subtree) {
                fallback::start(&mut state, "a function that the user may not call".into());
                return state;
            }
            let mut values = Initial::new(custom, &mut state.pruning);
            let translated = translate(subtree, statement_of(custom), &mut values);
            match translated {
                Ok(translated) => state.take_shape(translated),
                Err(reason) => fallback::start(&mut state, reason.0.into_owned()),
            }
            state
        }
    }

    /// Before the first row, with nothing translated yet.
    ///
    /// # Safety
    /// As `begin`.
    unsafe fn new(custom: *mut pg_sys::CustomScanState, subtree: *mut pg_sys::Plan, eflags: i32) -> Self {
        // SAFETY: the server has set the node's slot, and the query's memory.
        let (descriptor, memory) = unsafe {
            let descriptor = (*(*custom).ss.ss_ScanTupleSlot).tts_tupleDescriptor;
            (descriptor, (*(*custom).ss.ps.state).es_query_cxt)
        };
        let output = |kind| Output {
            reader: ColumnReader::new(kind),
            values: vec![Datum::null(); ROWS],
            nulls: vec![true; ROWS],
        };
        // SAFETY: the slot's descriptor.
        let kinds = unsafe { ColumnType::of_all(descriptor) };
        Self {
            custom,
            subtree,
            eflags: eflags & !(pg_sys::EXEC_FLAG_BACKWARD | pg_sys::EXEC_FLAG_MARK) as i32,
            leaves: Vec::new(),
            shape: None,
            phase: Phase::Start,
            fallback: std::ptr::null_mut(),
            reason: None,
            at: 0,
            end: 0,
            outputs: kinds.into_iter().map(output).collect(),
            identity: Identity::current(),
            values: Vec::new(),
            kept: Kept::new(memory),
            scratch: std::ptr::null_mut(),
            pruning: Vec::new(),
            execution: None,
            files: None,
            reservation: None,
            profile: None,
            measured: Vec::new(),
            threads: 1,
            batch: query::Batch::default(),
            taken: 0,
            handed_out: false,
        }
    }

    /// Initialises the nodes that rows come from.
    ///
    /// # Safety
    /// As `begin`; the translation is that of the kept subtree.
    unsafe fn take_shape(&mut self, translated: Translated) {
        // SAFETY: the specs name plan nodes of the kept subtree.
        unsafe {
            for spec in translated.sources {
                let estate = (*self.custom).ss.ps.state;
                let state = match &spec {
                    SourceSpec::Columnar { .. } => vectors::init(spec.node(), estate, self.eflags),
                    SourceSpec::Rows { .. } => pg_sys::ExecInitNode(spec.node(), estate, self.eflags),
                };
                (*self.custom).custom_ps = pg_sys::lappend((*self.custom).custom_ps, state.cast());
                self.leaves.push(Leaf { spec, state });
            }
        }
        self.shape = Some((translated.plan, translated.origins));
    }

    /// Finds the next rows, and says in `phase` where they are.
    ///
    /// # Safety
    /// Called under guard while the node runs.
    pub unsafe fn refill(&mut self) {
        // SAFETY: the node runs, and so does its statement.
        unsafe {
            if (*(*self.custom).ss.ps.state).es_direction == pg_sys::ScanDirection::BackwardScanDirection {
                error::not_supported("a vectorised plan cannot run backwards", "", "");
            }
            if self.phase == Phase::Start {
                match self.start() {
                    Ok(execution) => {
                        self.execution = Some(execution);
                        self.phase = Phase::Running;
                    }
                    Err(problem) => return self.give_up(problem),
                }
            }
            if self.taken >= self.batch.rows {
                let Some(execution) = &mut self.execution else {
                    self.phase = Phase::Done;
                    return;
                };
                self.batch = query::Batch::default();
                self.taken = 0;
                let next = || execution.next(&mut Backend::default());
                let batch = attempt::running(!self.handed_out, next);
                if let Some(files) = &self.files {
                    files.report();
                }
                match batch {
                    Ok(Some(batch)) => self.batch = batch,
                    Ok(None) => {
                        self.stop();
                        self.phase = Phase::Done;
                        return;
                    }
                    Err(problem) => return self.give_up(problem),
                }
            }
            self.fill();
        }
    }

    /// Builds the execution with the values of now.
    ///
    /// # Safety
    /// Called under guard while the node runs.
    unsafe fn start(&mut self) -> query::Result<Execution> {
        memory::keep_freed();
        // SAFETY: the node runs.
        let Some(translated) = (unsafe { self.translated() }) else {
            return Err(query::Error::Decline("values of parameters"));
        };
        let known = translated.plan.types();
        let fits = self.outputs.iter().map(|output| output.reader.kind().logical).eq(known);
        let same = self.leaves.iter().map(|leaf| &leaf.spec).eq(translated.sources.iter());
        if !fits || !same {
            return Err(query::Error::Decline("the plan changes with its parameters"));
        }
        let mut plan = translated.plan;
        let columnar = self.leaves.iter().map(|leaf| matches!(leaf.spec, SourceSpec::Columnar { .. }));
        let derived = derive(&mut plan, columnar);
        // SAFETY: the node runs, and its leaves are initialised.
        unsafe {
            let settings = self.settings();
            let threads = settings.threads > 1;
            let sources = self.leaves.iter().zip(&derived).enumerate();
            let sources = sources.map(|(at, (leaf, derived))| match translated.idle.contains(&at) {
                true => Ok(source::idle()),
                false => source::open(leaf, derived, threads),
            });
            let sources = sources.collect::<query::Result<_>>()?;
            self.profile = (!(*self.custom).ss.ps.instrument.is_null()).then(|| Profile::of(&plan));
            Execution::measured(&plan, sources, settings, self.profile.clone())
        }
    }

    /// The translation with the values of now.
    ///
    /// # Safety
    /// As `start`.
    unsafe fn translated(&mut self) -> Option<Translated> {
        // SAFETY: the node is initialised; values live in the per-tuple memory, which is not reset before
        // they have been copied into the plan.
        unsafe {
            let econtext = (*self.custom).ss.ps.ps_ExprContext;
            pg_sys::MemoryContextReset((*econtext).ecxt_per_tuple_memory);
            let statement = statement_of(self.custom);
            if self.scratch.is_null() {
                let parent = (*(*self.custom).ss.ps.state).es_query_cxt;
                self.scratch = memory::small_context(parent, c"colonnade translation");
            }
            // The execution that may have used it is gone.
            pg_sys::MemoryContextReset(self.scratch);
            let fetching = Identity::current();
            let mut values =
                Live::new(self.custom, &mut self.values, &mut self.kept, &mut self.pruning, fetching);
            let previous = pg_sys::MemoryContextSwitchTo(self.scratch);
            let subtree = tree::Plan::new(self.subtree);
            let translate = || subtree.and_then(|plan| translate(plan, statement, &mut values).ok());
            let translated = self.identity.during(translate);
            pg_sys::MemoryContextSwitchTo(previous);
            translated
        }
    }

    /// Limits of an execution that starts now.
    ///
    /// # Safety
    /// On the main thread, while the node runs.
    unsafe fn settings(&mut self) -> Settings {
        // SAFETY: on the main thread, while the node runs.
        let directory = unsafe { Directory::open() };
        self.files = Some(Arc::clone(&directory));
        // SAFETY: the subtree lives as long as the node.
        let cost = unsafe { cost::enabled((*self.subtree).total_cost) };
        let reservation = Reservation::take(cost);
        self.threads = reservation.threads();
        self.reservation = Some(reservation);
        Settings { memory: host::operator_memory(), threads: self.threads, temp_files: Some(directory) }
    }

    /// Ends the execution, which removes its files.
    fn stop(&mut self) {
        self.execution = None;
        self.batch = query::Batch::default();
        self.taken = 0;
        self.reservation = None;
        self.measured = self.figures();
        self.profile = None;
        if let Some(files) = self.files.take() {
            // SAFETY: the callers run on the main thread.
            unsafe { files.report() };
        }
    }

    /// The figures of each operator of the shape, all starts together. Empty if nothing was measured.
    pub fn figures(&self) -> Vec<OperatorFigures> {
        let mut figures = self.measured.clone();
        if let Some(profile) = &self.profile {
            add_figures(&mut figures, profile);
        }
        figures
    }

    /// Ends what is going on, when the node ends without an ERROR.
    pub fn close(&mut self) {
        self.stop();
    }

    /// Runs the kept subtree instead, unless rows were handed out already.
    ///
    /// # Safety
    /// Called under guard while the node runs.
    unsafe fn give_up(&mut self, problem: query::Error) {
        self.stop();
        if self.handed_out {
            host::raise(problem);
        }
        let reason = match problem {
            query::Error::Decline(reason) => reason.to_string(),
            query::Error::Sql(error) => host::sql_error(error).1.to_string(),
            other => host::raise(other),
        };
        // SAFETY: called while the node runs.
        unsafe { fallback::start(self, reason) };
    }

    /// The next rows of the batch as Datums.
    fn fill(&mut self) {
        let count = (self.batch.rows - self.taken).min(ROWS);
        let rows = self.taken..self.taken + count;
        for (output, vector) in self.outputs.iter_mut().zip(&self.batch.columns) {
            output.reader.reset();
            let (values, nulls) = (output.values.as_mut_slice(), output.nulls.as_mut_slice());
            output.reader.datums_in(vector, rows.clone(), values, nulls);
        }
        self.taken += count;
        self.at = 0;
        self.end = count;
        self.handed_out |= count > 0;
    }

    /// Goes back to before the first row; the children have been restarted.
    pub fn restart(&mut self) {
        self.stop();
        self.at = 0;
        self.end = 0;
        self.handed_out = false;
        // A plan that was declined once is likely to be declined again.
        self.phase = if self.fallback.is_null() { Phase::Start } else { Phase::Fallback };
    }
}

/// The statement that a node is part of.
///
/// # Safety
/// The node is initialised, or being so, for as long as the statement is looked at.
unsafe fn statement_of<'a>(custom: *mut pg_sys::CustomScanState) -> FinishedStatement<'a> {
    // SAFETY: such a node belongs to a running statement.
    unsafe { FinishedStatement::of((*(*custom).ss.ps.state).es_plannedstmt) }
}
