//! Expressions of the server's that `query` does not know, evaluated row by row on the main thread by the
//! server's own interpreter.
//!
//! Made by `translate::expressions` for the smallest part that has no translation and calls built-in
//! functions only. The values that the part takes from its row (columns, aggregates, parameters) become
//! parameters of a copy of it. So one copy serves all executions of a node. Where it can, the evaluator calls
//! once for each entry of a dictionary. An ERROR is the query's (see `attempt`). Invariant: the loop over
//! rows owns nothing, because an ERROR jumps out of it.

use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Datum, NodeTag, Oid};
use query::HostFunction;
use vector::{Values, Vector};

use crate::convert::{ColumnReader, ColumnType, ColumnWriter};
use crate::expressions::{calls, foreign_order};
use crate::host::catalogs;
use crate::host::identity::Identity;
use crate::host::own_type;
use crate::host::tree::{self, Node};
use crate::vectorised::attempt::{self, Results};

/// An expression over some values.
pub struct ServerExpression {
    name: String,
    parts: Vec<ColumnType>,
    result: ColumnType,
    /// See `calls`.
    may_hold_back: bool,
    /// Takes nothing from the row.
    constant: bool,
    inner: Mutex<Inner>,
}

/// The parts that belong to the server: the expression, and its state once it was first evaluated.
struct Inner {
    tree: *mut pg_sys::Node,
    types: Vec<Oid>,
    memory: pg_sys::MemoryContext,
    /// The user who began the execution.
    identity: Identity,
    prepared: Option<Prepared>,
}
// SAFETY: it is only used on the main thread (`needs_host`), and dropping it frees nothing of the server's.
unsafe impl Send for Inner {}

#[derive(Clone, Copy)]
struct Prepared {
    state: *mut pg_sys::ExprState,
    context: *mut pg_sys::ExprContext,
    values: pg_sys::ParamListInfo,
}

/// Whether making a value of a type may call the user's functions. The constraints of domains inside the type
/// and a range's order may be such functions.
fn may_check(kind: Oid) -> bool {
    let built_in = kind.to_u32() < pg_sys::FirstNormalObjectId;
    // SAFETY: a catalog look-up.
    !built_in && unsafe { pg_sys::get_typtype(kind) } as u8 != pg_sys::TYPTYPE_ENUM
}

/// True for what comes from a row, or from outside: a part of its own.
const fn is_part(tag: NodeTag) -> bool {
    matches!(tag, NodeTag::T_Var | NodeTag::T_Aggref | NodeTag::T_GroupingFunc | NodeTag::T_Param)
}

/// True for an expression that cannot be evaluated outside its node, and for domains, whose constraints may
/// call anything.
const fn is_bound(tag: NodeTag) -> bool {
    matches!(
        tag,
        NodeTag::T_SubPlan
            | NodeTag::T_AlternativeSubPlan
            | NodeTag::T_WindowFunc
            | NodeTag::T_CoerceToDomain
            | NodeTag::T_CurrentOfExpr
            | NodeTag::T_NextValueExpr
    )
}

/// The values that an expression of a finished plan takes from its row, each once. None if the expression
/// cannot be evaluated by itself.
pub fn parts(node: Node<'_>) -> Option<Vec<Node<'_>>> {
    // SAFETY: a catalog look-up.
    let class = || unsafe { pg_sys::get_typtype(node.type_oid()) } as u8;
    if is_part(node.tag()) || class() == pg_sys::TYPTYPE_PSEUDO {
        return None;
    }
    let mut found = Look { parts: Vec::new(), cases: 0 };
    let data = (&raw mut found).cast();
    let root = node.as_ptr();
    // SAFETY: the walks begin at a valid node, under guard, and what they write to lives as long as they run.
    let is_fit =
        unsafe { tree::guarded(|| !is_unfit(root, data) && !is_forbidden(root, std::ptr::null_mut())) };
    is_fit.then_some(found.parts)
}

/// The result of a walk.
struct Look<'a> {
    parts: Vec<Node<'a>>,
    /// The number of CASEs around, whose values may be mentioned.
    cases: u32,
}

/// Takes the parts; true for an expression that cannot be evaluated by itself.
#[pg_guard]
unsafe extern "C-unwind" fn is_unfit(node: *mut pg_sys::Node, data: *mut c_void) -> bool {
    // SAFETY: the server passes valid nodes, or null, and the data it was given.
    let (part, found) = unsafe { (Node::new(node), &mut *data.cast::<Look<'_>>()) };
    let Some(part) = part else { return false };
    match part.tag() {
        tag if is_part(tag) => {
            // SAFETY: two valid expressions, in a walk under guard.
            let same = |known: &Node<'_>| unsafe { tree::are_equal(known.as_ptr(), node) };
            if !found.parts.iter().any(same) {
                found.parts.push(part);
            }
            false
        }
        tag if is_bound(tag) => true,
        NodeTag::T_CaseTestExpr => found.cases == 0,
        // SAFETY: as this was called.
        _ => unsafe { is_unfit_below(part, data) },
    }
}

/// Goes on below a node. The value of a CASE may be mentioned in its conditions, and that of a cast of an
/// array in the cast of its elements.
///
/// # Safety
/// As `is_unfit`.
unsafe fn is_unfit_below(node: Node<'_>, data: *mut c_void) -> bool {
    // SAFETY: a part of the expression, or null, and the data that the walk was given.
    let look = |part: *mut pg_sys::Node| unsafe { is_unfit(part, data) };
    let inside = |part: *mut pg_sys::Node| {
        // SAFETY: the data that the walk was given.
        unsafe { (*data.cast::<Look<'_>>()).cases += 1 };
        let is_unfit = look(part);
        // SAFETY: as before.
        unsafe { (*data.cast::<Look<'_>>()).cases -= 1 };
        is_unfit
    };
    if let Some(cast) = node.as_a::<pg_sys::ArrayCoerceExpr>() {
        return look(cast.arg.cast()) || inside(cast.elemexpr.cast());
    }
    match node.as_a::<pg_sys::CaseExpr>() {
        // The server's walker knows a CASE, but not its branches by themselves.
        Some(case) if case.arg().is_some() => {
            look(case.arg.cast())
                || case
                    .branches()
                    .iter()
                    .any(|branch| inside(branch.expr.cast()) || look(branch.result.cast()))
                || look(case.defresult.cast())
        }
        // SAFETY: as this was called.
        _ => unsafe { tree::walk(node.as_ptr(), is_unfit, data) },
    }
}

/// True for an expression that calls what is not built in, or what the user may not call.
#[pg_guard]
unsafe extern "C-unwind" fn is_forbidden(node: *mut pg_sys::Node, data: *mut c_void) -> bool {
    // SAFETY: the server passes valid nodes, or null.
    unsafe {
        let Some(part) = Node::new(node) else { return false };
        matches!(part.tag(), NodeTag::T_CoerceViaIO | NodeTag::T_FuncExpr) && may_check(part.type_oid())
            || calls::shows_type(part.tag()) && foreign_order::is_of(part.type_oid())
            || foreign_order::compares(part)
            || pg_sys::check_functions_in_node(node, Some(may_not_call), data)
            || tree::walk(node, is_forbidden, data)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn may_not_call(function: Oid, _data: *mut c_void) -> bool {
    let built_in = function.to_u32() < pg_sys::FirstNormalObjectId || own_type::is_own_function(function);
    // SAFETY: catalog look-ups.
    unsafe { !built_in || !catalogs::may_execute(function) || pg_sys::get_func_retset(function) }
}

/// The expressions to replace, and their replacements.
struct Replace<'a> {
    parts: &'a [Node<'a>],
    parameters: &'a [*mut pg_sys::Node],
}

/// A copy of an expression with parameters in place of its parts.
unsafe extern "C-unwind" fn replace(node: *mut pg_sys::Node, data: *mut c_void) -> *mut pg_sys::Node {
    // SAFETY: the server passes valid nodes, or null, and the data it was given.
    unsafe {
        if node.is_null() {
            return node;
        }
        let with = &*data.cast::<Replace<'_>>();
        let same = |(part, _): &(&Node<'_>, &*mut pg_sys::Node)| tree::are_equal(part.as_ptr(), node);
        match with.parts.iter().zip(with.parameters).find(same) {
            Some((_, parameter)) => *parameter,
            None => tree::mutate(node, replace, data),
        }
    }
}

/// A parameter of this number for a part, in the current memory.
fn parameter(part: Node<'_>, number: i32) -> *mut pg_sys::Node {
    // SAFETY: a zeroed node is what the server's own start as.
    unsafe {
        let parameter = pg_sys::palloc0(size_of::<pg_sys::Param>()).cast::<pg_sys::Param>();
        (*parameter).xpr.type_ = NodeTag::T_Param;
        (*parameter).paramkind = pg_sys::ParamKind::PARAM_EXTERN;
        (*parameter).paramid = number;
        (*parameter).paramtype = part.type_oid();
        (*parameter).paramtypmod = part.typmod();
        (*parameter).paramcollid = part.collation();
        (*parameter).location = -1;
        parameter.cast()
    }
}

impl ServerExpression {
    /// An expression of a finished plan and its `parts`, whose values are its arguments.
    ///
    /// # Safety
    /// The current memory outlives the result.
    pub unsafe fn new(node: Node<'_>, parts: &[Node<'_>]) -> Arc<Self> {
        let parameters: Vec<_> =
            parts.iter().zip(1..).map(|(&part, number)| parameter(part, number)).collect();
        let mut with = Replace { parts, parameters: &parameters };
        let types: Vec<_> = parts.iter().map(|part| part.type_oid()).collect();
        let tag = format!("{:?}", node.tag());
        // SAFETY: the walk begins at a valid node, under guard, and what it reads lives as long as it runs;
        // catalog look-ups of types that exist.
        unsafe {
            let tree = tree::guarded(|| tree::mutate(node.as_ptr(), replace, (&raw mut with).cast()));
            Arc::new(Self {
                name: tag.trim_start_matches("T_").to_string(),
                parts: types.iter().map(|&part| ColumnType::of_type(part)).collect(),
                result: ColumnType::of_type(node.type_oid()),
                may_hold_back: calls::may_hold_back_errors(node),
                constant: parts.iter().all(|part| part.tag() == NodeTag::T_Param),
                inner: Mutex::new(Inner {
                    tree,
                    types,
                    memory: pg_sys::CurrentMemoryContext,
                    identity: Identity::current(),
                    prepared: None,
                }),
            })
        }
    }
}

impl Inner {
    /// The state, made when it is first asked for.
    ///
    /// # Safety
    /// On the main thread, inside a running node.
    unsafe fn prepared(&mut self) -> Prepared {
        if let Some(prepared) = self.prepared {
            return prepared;
        }
        // SAFETY: the main thread; the memory outlives this.
        unsafe {
            let previous = pg_sys::MemoryContextSwitchTo(self.memory);
            let values = pg_sys::makeParamList(i32::try_from(self.types.len()).unwrap_or(0));
            for (at, &kind) in self.types.iter().enumerate() {
                let value = (*values).params.as_mut_ptr().add(at);
                *value =
                    pg_sys::ParamExternData { value: Datum::null(), isnull: true, pflags: 0, ptype: kind };
            }
            let state = || pg_sys::ExecInitExprWithParams(self.tree.cast(), values);
            let state = self.identity.during(state);
            let context = pg_sys::CreateStandaloneExprContext();
            (*context).ecxt_param_list_info = values;
            pg_sys::MemoryContextSwitchTo(previous);
            *self.prepared.insert(Prepared { state, context, values })
        }
    }
}

/// Evaluates `count` rows from `start`.
///
/// # Safety
/// Every slice has that many rows. An ERROR jumps past the caller's frame: this must run under guard, and
/// owns nothing.
unsafe fn run(
    prepared: Prepared,
    values: &[Vec<Datum>],
    nulls: &[Vec<bool>],
    (start, count): (usize, usize),
    out: &mut Results,
) {
    // SAFETY: the caller's slices have so many rows; there is a parameter for each column of values.
    unsafe {
        let Some(evaluate) = (*prepared.state).evalfunc else { return };
        let parameters = (*prepared.values).params.as_mut_ptr();
        for row in 0..count {
            for at in 0..values.len() {
                (*parameters.add(at)).value = values[at][start + row];
                (*parameters.add(at)).isnull = nulls[at][start + row];
            }
            let mut is_null = false;
            let value = evaluate(prepared.state, prepared.context, &raw mut is_null);
            out[row] = (value, is_null);
        }
    }
}

impl HostFunction for ServerExpression {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> query::Result<Vector> {
        let Ok(mut inner) = self.inner.lock() else { return Err(query::Error::Decline("expression in use")) };
        if arguments.len() != self.parts.len() {
            return Err(query::Error::Decline("expression of another number of parts"));
        }
        let wanted = if self.constant { rows.min(1) } else { rows };
        let (mut values, mut nulls) = (Vec::new(), Vec::new());
        let mut readers = self.parts.iter().map(|kind| ColumnReader::new(*kind)).collect::<Vec<_>>();
        for (reader, argument) in readers.iter_mut().zip(arguments) {
            let (mut value, mut null) = (vec![Datum::null(); wanted], vec![true; wanted]);
            reader.datums_in(argument, 0..wanted, &mut value, &mut null);
            values.push(value);
            nulls.push(null);
        }
        let mut writer = ColumnWriter::new(self.result);
        // SAFETY: the main thread (`needs_host`), inside a running node.
        unsafe {
            let prepared = inner.prepared();
            let memory = (*prepared.context).ecxt_per_tuple_memory;
            let run = |start, count, out: &mut Results| run(prepared, &values, &nulls, (start, count), out);
            attempt::values(self.may_hold_back, wanted, memory, &mut writer, run)?;
        }
        let found = writer.take();
        Ok(match self.constant && rows > 1 {
            true => Vector::new(found.logical, Values::Constant(Box::new(found), rows)).flatten(),
            false => found,
        })
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
