//! Expressions of the server's that `query` does not know, evaluated row by row on the main thread by the
//! server's own interpreter.
//!
//! Made by `translate::expressions` for the smallest part that has no translation and calls built-in
//! functions only. What the part takes from its row (columns, aggregates, parameters) becomes parameters of a
//! copy of it, so that one copy serves all executions of a node. The evaluator asks once for each entry of a
//! dictionary where it can. An ERROR is the query's (see `attempt`). Invariant: the loop over rows owns
//! nothing, because an ERROR jumps out of it.

use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use pgrx::pg_sys::{self, Datum, Node, NodeTag, Oid};
use pgrx::{PgList, pg_guard};
use query::HostFunction;
use vector::{Values, Vector};

use crate::compat;
use crate::convert::{ColumnReader, ColumnType, ColumnWriter};
use crate::expressions::{calls, foreign_order};
use crate::host::identity::Identity;
use crate::host::tree;
use crate::vectorised::attempt::{self, Results};

/// An expression over some values.
pub struct ServerExpression {
    name: String,
    parts: Vec<ColumnType>,
    result: ColumnType,
    /// See `calls`.
    is_tame: bool,
    /// Takes nothing from the row.
    constant: bool,
    inner: Mutex<Inner>,
}

/// What belongs to the server: the expression, and its state once it was asked.
struct Inner {
    tree: *mut Node,
    types: Vec<Oid>,
    memory: pg_sys::MemoryContext,
    /// Who began.
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

/// Whether making a value of a type may call functions of the user's: those of the constraints of domains
/// inside it, or of a range's order.
unsafe fn may_check(kind: Oid) -> bool {
    // SAFETY: catalog look-ups.
    unsafe {
        let built_in = kind.to_u32() < pg_sys::FirstNormalObjectId;
        !built_in && pg_sys::get_typtype(kind) as u8 != pg_sys::TYPTYPE_ENUM
    }
}

/// What an expression takes from its row, each once; None where it cannot be evaluated by itself.
///
/// # Safety
/// A valid expression of a finished plan.
pub unsafe fn parts(node: *mut Node) -> Option<Vec<*mut Node>> {
    struct Look {
        parts: Vec<*mut Node>,
        /// CASEs around whose value may be mentioned.
        cases: u32,
    }
    /// True for what cannot be.
    #[pg_guard]
    unsafe extern "C-unwind" fn look(node: *mut Node, data: *mut c_void) -> bool {
        // SAFETY: the server passes valid nodes, or null, and the data it was given; casts follow the tag.
        unsafe {
            if node.is_null() {
                return false;
            }
            let found = &mut *data.cast::<Look>();
            let inside = |part: *mut Node, data: *mut c_void| {
                (*data.cast::<Look>()).cases += 1;
                let fails = look(part, data);
                (*data.cast::<Look>()).cases -= 1;
                fails
            };
            match (*node).type_ {
                NodeTag::T_Var | NodeTag::T_Aggref | NodeTag::T_GroupingFunc | NodeTag::T_Param => {
                    if !found.parts.iter().any(|&part| tree::are_equal(part, node)) {
                        found.parts.push(node);
                    }
                    false
                }
                NodeTag::T_SubPlan
                | NodeTag::T_AlternativeSubPlan
                | NodeTag::T_WindowFunc
                // Its constraints may call anything.
                | NodeTag::T_CoerceToDomain
                | NodeTag::T_CurrentOfExpr
                | NodeTag::T_NextValueExpr => true,
                NodeTag::T_CaseTestExpr => found.cases == 0,
                NodeTag::T_CaseExpr if !(*node.cast::<pg_sys::CaseExpr>()).arg.is_null() => {
                    let case = &*node.cast::<pg_sys::CaseExpr>();
                    // The server's walker knows a CASE, but not its branches by themselves.
                    let branches = PgList::<pg_sys::CaseWhen>::from_pg(case.args);
                    look(case.arg.cast(), data)
                        || branches.iter_ptr().any(|branch| {
                            inside((*branch).expr.cast(), data) || look((*branch).result.cast(), data)
                        })
                        || look(case.defresult.cast(), data)
                }
                NodeTag::T_ArrayCoerceExpr => {
                    let cast = &*node.cast::<pg_sys::ArrayCoerceExpr>();
                    look(cast.arg.cast(), data) || inside(cast.elemexpr.cast(), data)
                }
                _ => tree::walk(node, look, data),
            }
        }
    }
    #[pg_guard]
    unsafe extern "C-unwind" fn may_not_call(function: Oid, _data: *mut c_void) -> bool {
        let built_in = function.to_u32() < pg_sys::FirstNormalObjectId;
        // SAFETY: catalog look-ups.
        unsafe { !built_in || !compat::may_execute(function) || pg_sys::get_func_retset(function) }
    }
    #[pg_guard]
    unsafe extern "C-unwind" fn forbidden(node: *mut Node, data: *mut c_void) -> bool {
        // SAFETY: the server passes valid nodes, or null.
        unsafe {
            !node.is_null()
                && (matches!((*node).type_, NodeTag::T_CoerceViaIO | NodeTag::T_FuncExpr)
                    && may_check(pg_sys::exprType(node))
                    || calls::shows_type(node) && foreign_order::is_of(pg_sys::exprType(node))
                    || foreign_order::compares(node)
                    || pg_sys::check_functions_in_node(node, Some(may_not_call), data)
                    || tree::walk(node, forbidden, data))
        }
    }
    // SAFETY: the caller's promise; the walkers' data lives as long as they run.
    unsafe {
        if matches!(
            (*node).type_,
            NodeTag::T_Var | NodeTag::T_Aggref | NodeTag::T_GroupingFunc | NodeTag::T_Param
        ) || pg_sys::get_typtype(pg_sys::exprType(node)) as u8 == pg_sys::TYPTYPE_PSEUDO
        {
            return None;
        }
        let mut found = Look { parts: Vec::new(), cases: 0 };
        let data = (&raw mut found).cast();
        let is_fit = tree::guarded(|| !look(node, data) && !forbidden(node, std::ptr::null_mut()));
        is_fit.then_some(found.parts)
    }
}

impl ServerExpression {
    /// An expression and its `parts`, whose values are its arguments.
    ///
    /// # Safety
    /// A valid expression of a finished plan; the current memory outlives the result.
    pub unsafe fn new(node: *mut Node, parts: &[*mut Node]) -> Arc<Self> {
        struct Replace<'a> {
            parts: &'a [*mut Node],
            parameters: &'a [*mut Node],
        }
        unsafe extern "C-unwind" fn replace(node: *mut Node, data: *mut c_void) -> *mut Node {
            // SAFETY: the server passes valid nodes, or null, and the data it was given.
            unsafe {
                if node.is_null() {
                    return node;
                }
                let with = &*data.cast::<Replace<'_>>();
                let same = |(part, _): &(&*mut Node, &*mut Node)| tree::are_equal(**part, node);
                match with.parts.iter().zip(with.parameters).find(same) {
                    Some((_, parameter)) => *parameter,
                    None => tree::mutate(node, replace, data),
                }
            }
        }
        // SAFETY: the caller's promise; zeroed nodes are what the server's own start as.
        unsafe {
            let parameter = |(part, number): (&*mut Node, i32)| {
                let parameter = pg_sys::palloc0(size_of::<pg_sys::Param>()).cast::<pg_sys::Param>();
                (*parameter).xpr.type_ = NodeTag::T_Param;
                (*parameter).paramkind = pg_sys::ParamKind::PARAM_EXTERN;
                (*parameter).paramid = number;
                (*parameter).paramtype = pg_sys::exprType(*part);
                (*parameter).paramtypmod = pg_sys::exprTypmod(*part);
                (*parameter).paramcollid = pg_sys::exprCollation(*part);
                (*parameter).location = -1;
                parameter.cast::<Node>()
            };
            let parameters: Vec<_> = parts.iter().zip(1..).map(parameter).collect();
            let mut with = Replace { parts, parameters: &parameters };
            let tree = tree::guarded(|| tree::mutate(node, replace, (&raw mut with).cast()));
            let types: Vec<_> = parts.iter().map(|&part| pg_sys::exprType(part)).collect();
            let tag = format!("{:?}", (*node).type_);
            Arc::new(Self {
                name: tag.trim_start_matches("T_").to_string(),
                parts: types.iter().map(|&part| ColumnType::of_type(part)).collect(),
                result: ColumnType::of_type(pg_sys::exprType(node)),
                is_tame: calls::may_hold_back_errors(node),
                constant: parts.iter().all(|&part| (*part).type_ == NodeTag::T_Param),
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
    // SAFETY: the caller's promise; there is a parameter for each column of values.
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
            attempt::values(self.is_tame, wanted, memory, &mut writer, run)?;
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
