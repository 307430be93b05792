//! `colonnade.show_options = off`: queries of the session find no options of colcompress tables in
//! `pg_class.reloptions`.
//!
//! This is for dumps that are restored on a server without the extension. pg_dump writes the options that it
//! finds there into `WITH (...)`, which such a server refuses.
//!
//! The setting is for a whole session (PGOPTIONS), so no plan is kept across a change of it. The planner hook
//! replaces each mention of the column by `engine.portable_options(reloptions, relam)`. Options of others
//! stay.
//!
//! Invariant: nothing changes in a session in which the setting is on, or in a database without the
//! extension.

use super::access_method;
use super::catalog;
use super::nodes;
use super::report::Refusal;
use super::settings::SHOW_OPTIONS;
use crate::host::fmgr::{argument, return_null};
use crate::host::hooks::Chain;
use crate::host::tree::{self, Typed};
use crate::host::unguarded::guarded;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, Node, Oid, ParamListInfo, PlannedStmt, Query};
use std::ffi::{CStr, c_char, c_int, c_void};
static NEXT: Chain<pg_sys::planner_hook_type> = Chain::new();

/// The function of version 0.2, and its symbol.
const NAME: &CStr = c"portable_options";
const SYMBOL: &CStr = c"colonnade_portable_options";
/// The server's ClanguageId.
const C_LANGUAGE: u32 = 13;

unsafe extern "C-unwind" {
    /// The server's own planner, without pgrx's guard. It is called from a frame that owns nothing.
    fn standard_planner(
        query: *mut Query,
        text: *const c_char,
        options: c_int,
        parameters: ParamListInfo,
    ) -> *mut PlannedStmt;
}

/// Puts the hook in front of those already there.
///
/// # Safety
/// Call it from `_PG_init`.
pub unsafe fn register() {
    NEXT.put_in_front(&raw mut pg_sys::planner_hook, Some(plan));
}

/// Where a mention of the column was found.
struct Place<'a> {
    function: Oid,
    /// The query, and the queries around it.
    queries: Vec<Typed<'a, Query>>,
}

unsafe extern "C-unwind" fn plan(
    query: *mut Query,
    text: *const c_char,
    options: c_int,
    parameters: ParamListInfo,
) -> *mut PlannedStmt {
    let query = if SHOW_OPTIONS.get() { query } else { guarded(|| without_options(query)) };
    match NEXT.next() {
        Some(next) => next(query, text, options, parameters),
        None => standard_planner(query, text, options, parameters),
    }
}

/// A copy of a query with the function in place of each mention of the column; the query itself where there
/// is none.
///
/// # Safety
/// An analysed query with its views expanded.
unsafe fn without_options(query: *mut Query) -> *mut Query {
    if !Typed::new(query).is_some_and(mentions_catalog) {
        return query;
    }
    let Some(function) = function() else { return query };
    let mut place = Place { function, queries: Vec::new() };
    tree::guarded(|| change(query.cast(), (&raw mut place).cast())).cast()
}

/// Whether the query may read pg_class. It is analysed and its views are expanded. A query with queries
/// inside may always read it.
fn mentions_catalog(query: Typed<'_, Query>) -> bool {
    let inside = query.hasSubLinks || !query.cteList.is_null();
    inside
        || query.tables().iter().any(|table| {
            table.relid == pg_sys::RelationRelationId || table.rtekind == pg_sys::RTEKind::RTE_SUBQUERY
        })
}

/// `engine.portable_options` of the extension. None if the database does not have the extension. It must be a
/// function in C, which only superusers can make, so nobody else can put another one in its place.
fn function() -> Option<Oid> {
    // SAFETY: catalog look-ups; a tuple that was found has the catalog's columns.
    unsafe {
        let schema = pg_sys::get_namespace_oid(c"engine".as_ptr(), true);
        if !access_method::is_here() || schema == Oid::INVALID {
            return None;
        }
        let mut types = [pg_sys::TEXTARRAYOID, pg_sys::OIDOID];
        let types = pg_sys::buildoidvector(types.as_mut_ptr(), 2);
        let cache = pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as c_int;
        let tuple = pg_sys::SearchSysCache3(cache, NAME.as_ptr().into(), types.into(), schema.into());
        if !tuple.is_null() {
            let form = pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_proc>(tuple);
            let mut null = true;
            let source =
                pg_sys::SysCacheGetAttr(cache, tuple, pg_sys::Anum_pg_proc_prosrc as i16, &raw mut null);
            let is_ours = (*form).prolang == Oid::from(C_LANGUAGE)
                && !null
                && CStr::from_ptr(pg_sys::text_to_cstring(source.cast_mut_ptr())) == SYMBOL;
            let found = (*form).oid;
            pg_sys::ReleaseSysCache(tuple);
            if is_ours {
                return Some(found);
            }
        }
    }
    Refusal::new(
        Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "colonnade.show_options = off needs version 0.2 of the extension in this database",
    )
    .hint("ALTER EXTENSION colonnade UPDATE.")
    .raise()
}

unsafe extern "C-unwind" fn change(node: *mut Node, context: *mut c_void) -> *mut Node {
    let place = context.cast::<Place<'_>>();
    let Some(part) = tree::Node::new(node) else { return node };
    if let Some(query) = part.as_a::<Query>() {
        (*place).queries.push(query);
        let changed = tree::mutate_query(query.as_ptr(), change, context);
        (*place).queries.pop();
        return changed.cast();
    }
    match part.as_a::<pg_sys::Var>() {
        Some(var) if is_options(&*place, &var) => call((*place).function, var.as_ptr()),
        _ => tree::mutate(node, change, context),
    }
}

/// Whether a Var is the column of pg_class with a relation's options.
fn is_options(place: &Place<'_>, var: &pg_sys::Var) -> bool {
    let up = usize::try_from(var.varlevelsup).unwrap_or(usize::MAX);
    let query = place.queries.len().checked_sub(1).and_then(|last| place.queries.get(last.checked_sub(up)?));
    let (Some(query), Ok(number)) = (query, usize::try_from(var.varno - 1)) else { return false };
    query.tables().get(number).is_some_and(|table| {
        table.rtekind == pg_sys::RTEKind::RTE_RELATION
            && table.relid == pg_sys::RelationRelationId
            && u32::try_from(var.varattno) == Ok(pg_sys::Anum_pg_class_reloptions)
    })
}

/// `engine.portable_options(reloptions, relam)`.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn call(function: Oid, var: *const pg_sys::Var) -> *mut Node {
    let method = nodes::copy(var);
    (*method).varattno = pg_sys::Anum_pg_class_relam as i16;
    (*method).varattnosyn = (*method).varattno;
    (*method).vartype = pg_sys::OIDOID;
    (*method).varcollid = Oid::INVALID;
    let arguments = nodes::list([nodes::copy(var).cast::<Node>(), method.cast::<Node>()]);
    let form = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
    let collation = (*var).varcollid;
    pg_sys::makeFuncExpr(function, pg_sys::TEXTARRAYOID, arguments, collation, collation, form).cast()
}

crate::sql_function!(pg_finfo_colonnade_portable_options);

/// `engine.portable_options(text[], oid)`: the options of a relation, without ours if it is a colcompress
/// table or a partitioned one. NULL if none is left.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn colonnade_portable_options(call: FunctionCallInfo) -> Datum {
    let (Some(options), Some(method)) = (argument(call, 0), argument(call, 1)) else {
        return return_null(call);
    };
    let method = Oid::from(method.value() as u32);
    // Partitioned tables and views may have no method. The options of views have other names than ours.
    if method != pg_sys::InvalidOid && !access_method::is_ours(method) {
        return options;
    }
    match catalog::without_ours(options) {
        Some(left) => left,
        None => return_null(call),
    }
}
