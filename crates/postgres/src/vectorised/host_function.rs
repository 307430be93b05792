//! Functions of the server that `query` does not know, called row by row on the main thread.
//!
//! Made by `translate::functions` for built-in functions that are strict and not volatile. Where it can, the
//! evaluator calls once for each entry of a dictionary. An ERROR of the function is the query's (see
//! `attempt`). Invariant: the loop over rows owns nothing, because an ERROR jumps out of it.

use std::sync::{Arc, Mutex};

use pgrx::pg_sys::{self, Datum, Oid};
use query::HostFunction;
use vector::Vector;

use crate::convert::{ColumnReader, ColumnType, ColumnWriter};
use crate::expressions::calls;
use crate::host::tree::Node;
use crate::vectorised::attempt::{self, Results};

/// One function for arguments of fixed types.
pub struct ServerFunction {
    name: String,
    collation: Oid,
    arguments: Vec<ColumnType>,
    result: ColumnType,
    /// See `calls`.
    may_hold_back: bool,
    /// What the function looks at and remembers.
    info: Mutex<Info>,
}

struct Info(Box<pg_sys::FmgrInfo>);
// SAFETY: it is only used on the main thread (`needs_host`), and dropping it frees nothing of the server's.
unsafe impl Send for Info {}

impl ServerFunction {
    /// The function that a node of an expression calls.
    ///
    /// # Safety
    /// `node` calls function `oid` with arguments of these types; it and the current memory outlive the
    /// result.
    pub unsafe fn new(
        oid: Oid,
        name: String,
        collation: Oid,
        node: Node<'_>,
        arguments: &[Oid],
    ) -> Option<Self> {
        // SAFETY: the caller's node and memory; a zeroed FmgrInfo is what the server fills in.
        unsafe {
            let mut info = Box::new(std::mem::zeroed::<pg_sys::FmgrInfo>());
            pg_sys::fmgr_info(oid, &raw mut *info);
            info.fn_expr = node.as_ptr();
            if !info.fn_strict || info.fn_retset || info.fn_addr.is_none() {
                return None;
            }
            Some(Self {
                name,
                collation,
                arguments: arguments.iter().map(|&argument| ColumnType::of_type(argument)).collect(),
                result: ColumnType::of_type(node.type_oid()),
                may_hold_back: calls::may_hold_back_errors(node),
                info: Mutex::new(Info(info)),
            })
        }
    }
}

/// Calls the function for `count` rows from `start`; a strict function is not called for a NULL.
///
/// # Safety
/// Every slice has that many rows. An ERROR jumps past the caller's frame: this must run under guard, and
/// owns nothing.
unsafe fn run(
    call: pg_sys::FunctionCallInfo,
    values: &[Vec<Datum>],
    nulls: &[Vec<bool>],
    (start, count): (usize, usize),
    out: &mut Results,
) {
    // SAFETY: the caller's slices have so many rows; the call has room for the arguments.
    unsafe {
        let Some(function) = (*(*call).flinfo).fn_addr else { return };
        let arguments = (*call).args.as_mut_ptr();
        for row in 0..count {
            let mut strict = false;
            for at in 0..values.len() {
                (*arguments.add(at)).value = values[at][start + row];
                (*arguments.add(at)).isnull = false;
                strict |= nulls[at][start + row];
            }
            if strict {
                out[row] = (Datum::null(), true);
            } else {
                (*call).isnull = false;
                let value = function(call);
                out[row] = (value, (*call).isnull);
            }
        }
    }
}

impl HostFunction for ServerFunction {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> query::Result<Vector> {
        let Ok(mut info) = self.info.lock() else { return Err(query::Error::Decline("function in use")) };
        let (mut values, mut nulls) = (Vec::new(), Vec::new());
        let mut readers = self.arguments.iter().map(|kind| ColumnReader::new(*kind)).collect::<Vec<_>>();
        for (reader, argument) in readers.iter_mut().zip(arguments) {
            let (mut value, mut null) = (vec![Datum::null(); rows], vec![true; rows]);
            reader.datums_in(argument, 0..rows, &mut value, &mut null);
            values.push(value);
            nulls.push(null);
        }
        if values.len() != self.arguments.len() {
            return Err(query::Error::Decline("function of another number of arguments"));
        }
        let mut writer = ColumnWriter::new(self.result);
        // SAFETY: the main thread (`needs_host`), inside a running node; the memory made here is a child of
        // the current one, so that an ERROR frees it.
        unsafe {
            let memory = pg_sys::AllocSetContextCreateExtended(
                pg_sys::CurrentMemoryContext,
                c"colonnade function".as_ptr(),
                pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            );
            let size = size_of::<pg_sys::FunctionCallInfoBaseData>()
                + values.len() * size_of::<pg_sys::NullableDatum>();
            let call = pg_sys::palloc0(size).cast::<pg_sys::FunctionCallInfoBaseData>();
            (*call).flinfo = &raw mut *info.0;
            (*call).fncollation = self.collation;
            (*call).nargs = i16::try_from(values.len()).unwrap_or(0);
            let run = |start, count, out: &mut Results| run(call, &values, &nulls, (start, count), out);
            let done = attempt::values(self.may_hold_back, rows, memory, &mut writer, run);
            pg_sys::pfree(call.cast());
            pg_sys::MemoryContextDelete(memory);
            done?;
        }
        Ok(writer.take())
    }

    fn needs_host(&self) -> bool {
        true
    }

    fn takes_constants(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn name(&self) -> &str {
        &self.name
    }
}
