//! Aggregates of the server's that `query` does not know: their own transition and final functions, called on
//! the main thread for values that `query` collected and put in order.
//!
//! Made by `translate::aggregate` for built-in aggregates. The functions see the same as in the server's
//! executor. Each group has a state of their own kind, in memory that lives as long as the group. Their
//! context is an aggregate. Invariant: the loop over rows owns nothing, because an ERROR jumps out of it.

use std::sync::{Arc, Mutex};

use pgrx::pg_sys::{self, Datum, NodeTag, Oid};
use query::HostAggregate;
use vector::Vector;

use crate::convert::{ColumnReader, ColumnType, ColumnWriter};
use crate::expressions::aggregate::{self as aggregates, Definition};
use crate::expressions::{calls, foreign_order};
use crate::host::catalogs;
use crate::host::own_type;
use crate::host::tree::Typed;
use crate::vectorised::attempt::{attempt, batch};

/// Rows between two resets of the memory that the functions work in.
const ROWS: usize = 256;

/// One aggregate for arguments of fixed types.
pub struct ServerAggregate {
    name: String,
    strict: bool,
    /// See `calls`.
    may_hold_back: bool,
    arguments: Vec<ColumnType>,
    result: ColumnType,
    inner: Mutex<Inner>,
}

struct Inner {
    call: *const pg_sys::Aggref,
    definition: Definition,
    types: Vec<Oid>,
    memory: pg_sys::MemoryContext,
    running: Option<Running>,
    /// The group whose rows came last.
    group: Option<i32>,
}
// SAFETY: it is only used on the main thread, and dropping it frees nothing of the server's.
unsafe impl Send for Inner {}

/// The parts of a running aggregate; all of them are the server's memory.
#[derive(Clone, Copy)]
struct Running {
    step: pg_sys::FunctionCallInfo,
    /// Null where the state is the result.
    last: pg_sys::FunctionCallInfo,
    /// Memory of the group, and of a call.
    group: pg_sys::MemoryContext,
    work: pg_sys::MemoryContext,
    by_value: bool,
    length: i16,
    initial: (Datum, bool),
    state: (Datum, bool),
    /// A strict function takes its first value as its state.
    empty: bool,
}

impl ServerAggregate {
    /// The aggregate that a node calls; None for one that is not of the plain kind.
    ///
    /// # Safety
    /// The node is part of a finished plan; that and the current memory outlive the result.
    pub unsafe fn new(call: Typed<'_, pg_sys::Aggref>, name: String) -> Option<Arc<Self>> {
        let built_in = call.aggfnoid.to_u32() < pg_sys::FirstNormalObjectId
            || own_type::uint8_function(call.aggfnoid).is_some();
        // SAFETY: catalog look-ups.
        let definition = unsafe { aggregates::definition(call.aggfnoid)? };
        if !built_in
            // SAFETY: a catalog look-up.
            || !unsafe { catalogs::may_execute(call.aggfnoid) }
            || call.aggkind as u8 != b'n'
            || call.aggvariadic
            || foreign_order::is_of(call.aggtype)
        {
            return None;
        }
        let types: Vec<_> = call.argument_types().iter().collect();
        // SAFETY: catalog look-ups of types and a function that exist.
        unsafe {
            Some(Arc::new(Self {
                name,
                may_hold_back: calls::may_hold_back_errors(call.node()),
                strict: pg_sys::func_strict(definition.step),
                arguments: types.iter().map(|&kind| ColumnType::of_type(kind)).collect(),
                result: ColumnType::of_type(call.aggtype),
                inner: Mutex::new(Inner {
                    call: call.as_ptr(),
                    definition,
                    types,
                    memory: pg_sys::CurrentMemoryContext,
                    running: None,
                    group: None,
                }),
            }))
        }
    }
}

impl Inner {
    /// The functions ready to be called, with no group yet.
    ///
    /// # Safety
    /// On the main thread, inside a running node.
    unsafe fn start(&mut self) {
        if self.running.is_some() {
            return;
        }
        // SAFETY: the main thread; the memory outlives this. Zeroed structs are what the server fills in.
        unsafe {
            let previous = pg_sys::MemoryContextSwitchTo(self.memory);
            let call = &*self.call;
            let (group, work) =
                (pg_sys::CreateStandaloneExprContext(), pg_sys::CreateStandaloneExprContext());
            let aggregate = pg_sys::palloc0(size_of::<pg_sys::AggState>()).cast::<pg_sys::AggState>();
            (*aggregate).ss.ps.type_ = NodeTag::T_AggState;
            (*aggregate).curaggcontext = group;
            (*aggregate).tmpcontext = work;
            let transition = call.aggtranstype;
            let (step, last) = aggregates::expressions(&self.definition, call, &mut self.types);
            let arguments = self.types.len() + 1;
            let context = Context { aggregate: aggregate.cast(), collation: call.inputcollid };
            let step = frame(self.definition.step, step, arguments, context);
            let last_arguments = if self.definition.last_extra { arguments } else { 1 };
            let last = match self.definition.last {
                pg_sys::InvalidOid => std::ptr::null_mut(),
                function => frame(function, last, last_arguments, context),
            };
            let (mut length, mut by_value) = (0, false);
            pg_sys::get_typlenbyval(transition, &raw mut length, &raw mut by_value);
            let initial = self.definition.initial(transition);
            pg_sys::MemoryContextSwitchTo(previous);
            self.running = Some(Running {
                step,
                last,
                group: (*group).ecxt_per_tuple_memory,
                work: (*work).ecxt_per_tuple_memory,
                by_value,
                length,
                initial,
                state: (Datum::null(), true),
                empty: true,
            });
        }
    }
}

/// What an aggregate's functions are called for.
#[derive(Clone, Copy)]
struct Context {
    aggregate: *mut pg_sys::Node,
    collation: Oid,
}

/// What a function is called with, in the current memory.
///
/// # Safety
/// A function of an aggregate, with the expression that it is called from, and so many arguments.
unsafe fn frame(
    function: Oid,
    expression: *mut pg_sys::Node,
    arguments: usize,
    context: Context,
) -> pg_sys::FunctionCallInfo {
    // SAFETY: zeroed structs are what the server fills in; the frame has room for the arguments.
    unsafe {
        let info = pg_sys::palloc0(size_of::<pg_sys::FmgrInfo>()).cast::<pg_sys::FmgrInfo>();
        pg_sys::fmgr_info(function, info);
        (*info).fn_expr = expression;
        let size =
            size_of::<pg_sys::FunctionCallInfoBaseData>() + arguments * size_of::<pg_sys::NullableDatum>();
        let frame = pg_sys::palloc0(size).cast::<pg_sys::FunctionCallInfoBaseData>();
        (*frame).flinfo = info;
        (*frame).context = context.aggregate;
        (*frame).fncollation = context.collation;
        (*frame).nargs = i16::try_from(arguments).unwrap_or(0);
        frame
    }
}

impl Running {
    /// A state of no rows.
    ///
    /// # Safety
    /// Under guard; nobody looks at what the group had.
    unsafe fn clear(&mut self) {
        // SAFETY: nobody reads what the group's memory holds.
        unsafe {
            pg_sys::MemoryContextReset(self.group);
            self.empty = self.initial.1;
            self.state = match self.initial {
                (_, true) => (Datum::null(), true),
                (value, false) => (self.kept(value), false),
            };
        }
    }

    /// A copy in the group's memory.
    ///
    /// # Safety
    /// Under guard; a value of the state's type.
    unsafe fn kept(&self, value: Datum) -> Datum {
        // SAFETY: the caller's value.
        unsafe {
            let previous = pg_sys::MemoryContextSwitchTo(self.group);
            let copy = aggregates::copied(value, self.by_value, self.length);
            pg_sys::MemoryContextSwitchTo(previous);
            copy
        }
    }

    /// Takes rows `start..end` of the arguments.
    ///
    /// # Safety
    /// Under guard; owns nothing.
    unsafe fn take(&mut self, values: &[Vec<Datum>], nulls: &[Vec<bool>], (start, end): (usize, usize)) {
        // SAFETY: the caller's rows are there; the frame has room for the arguments.
        unsafe {
            let frame = self.step;
            let info = (*frame).flinfo;
            let Some(function) = (*info).fn_addr else { return };
            let arguments = (*frame).args.as_mut_ptr();
            let previous = pg_sys::MemoryContextSwitchTo(self.work);
            for row in start..end {
                if (row - start) % ROWS == ROWS - 1 {
                    pg_sys::MemoryContextReset(self.work);
                }
                for at in 0..values.len() {
                    (*arguments.add(at + 1)).value = values[at][row];
                    (*arguments.add(at + 1)).isnull = nulls[at][row];
                }
                if (*info).fn_strict {
                    if self.empty {
                        self.state = match values.first() {
                            Some(first) => (self.kept(first[row]), false),
                            None => self.state,
                        };
                        self.empty = false;
                        continue;
                    }
                    if self.state.1 {
                        continue;
                    }
                }
                (*arguments).value = self.state.0;
                (*arguments).isnull = self.state.1;
                (*frame).isnull = false;
                let next = function(frame);
                self.change((next, (*frame).isnull));
            }
            pg_sys::MemoryContextSwitchTo(previous);
        }
    }

    /// Takes the state that the step function has given.
    ///
    /// # Safety
    /// Under guard; a state of this aggregate, which may be the one before.
    #[inline]
    unsafe fn change(&mut self, (next, is_null): (Datum, bool)) {
        if self.by_value || next == self.state.0 {
            self.state = (next, is_null);
            return;
        }
        let before = self.state;
        // SAFETY: the caller's state; nobody looks at the one before any more.
        unsafe {
            self.state = if is_null { (Datum::null(), true) } else { (self.kept(next), false) };
            if !before.1 && !before.0.is_null() {
                pg_sys::pfree(before.0.cast_mut_ptr());
            }
        }
    }

    /// The group's result, in the memory of a call.
    ///
    /// # Safety
    /// Under guard; owns nothing.
    unsafe fn result(&self) -> (Datum, bool) {
        if self.last.is_null() {
            return self.state;
        }
        // SAFETY: the frame has room for its arguments.
        unsafe {
            let frame = self.last;
            let info = (*frame).flinfo;
            let Some(function) = (*info).fn_addr else { return (Datum::null(), true) };
            let arguments = (*frame).args.as_mut_ptr();
            (*arguments).value = self.state.0;
            (*arguments).isnull = self.state.1;
            for at in 1..usize::try_from((*frame).nargs).unwrap_or(0) {
                (*arguments.add(at)).value = Datum::null();
                (*arguments.add(at)).isnull = true;
            }
            if (*info).fn_strict && (self.state.1 || (*frame).nargs > 1) {
                return (Datum::null(), true);
            }
            let previous = pg_sys::MemoryContextSwitchTo(self.work);
            (*frame).isnull = false;
            let value = function(frame);
            pg_sys::MemoryContextSwitchTo(previous);
            (value, (*frame).isnull)
        }
    }
}

const BUSY: query::Error = query::Error::Decline("aggregate in use");

impl HostAggregate for ServerAggregate {
    fn begin(&self) -> query::Result<()> {
        let mut inner = self.inner.lock().map_err(|_| BUSY)?;
        inner.group = None;
        // SAFETY: the main thread, inside a running node; an ERROR while the functions are looked up unwinds,
        // and so does one of a copy.
        unsafe {
            inner.start();
            if let Some(running) = &mut inner.running {
                pg_sys::ffi::pg_guard_ffi_boundary(|| running.clear());
            }
        }
        Ok(())
    }

    fn push(&self, groups: &[i32], arguments: &[Arc<Vector>]) -> query::Result<Vector> {
        let mut inner = self.inner.lock().map_err(|_| BUSY)?;
        let (mut values, mut nulls) = (Vec::new(), Vec::new());
        let mut readers = self.arguments.iter().map(|kind| ColumnReader::new(*kind)).collect::<Vec<_>>();
        for (reader, argument) in readers.iter_mut().zip(arguments) {
            let (mut value, mut null) = (vec![Datum::null(); groups.len()], vec![true; groups.len()]);
            reader.datums_in(argument, 0..groups.len(), &mut value, &mut null);
            values.push(value);
            nulls.push(null);
        }
        let Inner { running: Some(running), group, .. } = &mut *inner else { return Err(BUSY) };
        if values.len() != self.arguments.len() {
            return Err(query::Error::Decline("aggregate of another number of arguments"));
        }
        let mut writer = ColumnWriter::new(self.result);
        let mut start = 0;
        // SAFETY: the main thread, inside a running node.
        unsafe {
            batch(self.may_hold_back, || {
                while let Some(&number) = groups.get(start) {
                    pgrx::check_for_interrupts!();
                    if group.is_some_and(|group| group != number) {
                        let (value, is_null) = attempt(self.may_hold_back, || running.result())?;
                        writer.push_value(value, is_null);
                        pg_sys::MemoryContextReset(running.work);
                        pg_sys::ffi::pg_guard_ffi_boundary(|| running.clear());
                    }
                    *group = Some(number);
                    let rest = groups.get(start..).unwrap_or_default();
                    let end = start + rest.iter().take_while(|&&other| other == number).count();
                    attempt(self.may_hold_back, || running.take(&values, &nulls, (start, end)))?;
                    pg_sys::MemoryContextReset(running.work);
                    start = end;
                }
                Ok(())
            })?;
        }
        Ok(writer.take())
    }

    fn end(&self) -> query::Result<Vector> {
        let mut inner = self.inner.lock().map_err(|_| BUSY)?;
        let Some(running) = &mut inner.running else { return Err(BUSY) };
        let mut writer = ColumnWriter::new(self.result);
        // SAFETY: the main thread, inside a running node.
        unsafe {
            let (value, is_null) =
                batch(self.may_hold_back, || attempt(self.may_hold_back, || running.result()))?;
            writer.push_value(value, is_null);
            pg_sys::MemoryContextReset(running.work);
            // The state is of no use any more.
            pg_sys::MemoryContextReset(running.group);
            running.state = (Datum::null(), true);
        }
        Ok(writer.take())
    }

    fn is_strict(&self) -> bool {
        self.strict
    }

    fn name(&self) -> &str {
        &self.name
    }
}
