//! CREATE TABLE, CREATE TABLE AS and CREATE MATERIALIZED VIEW (also under EXPLAIN).
//!
//! Our options are taken out of the statement. They are stored as soon as the table's catalog rows exist, so
//! that they hold for rows that the same statement writes.

use super::access_method;
use super::catalog::{self, Settings};
use super::definitions;
use super::frames::{Creation, Frame, with_innermost};
use super::nodes;
use super::orderby;
use super::report::or_raise;
use super::settings;
use super::statement;
use pgrx::PgLogLevel;
use pgrx::pg_sys::{self, Node, NodeTag, Oid, PlannedStmt, RangeVar};
use std::ffi::{CStr, CString};

/// The parts of a CREATE statement that matter here.
struct Target {
    relation: *mut RangeVar,
    options: *mut pg_sys::List,
    method: *mut std::ffi::c_char,
}

/// If the statement creates a table of ours, returns its frame and the statement to run instead.
pub unsafe fn before(plan: *mut PlannedStmt) -> (Frame, *mut PlannedStmt) {
    let Some(target) = target_of((*plan).utilityStmt) else { return (Frame::Other, plan) };
    let Some(name) = nodes::owned((*target.relation).relname) else {
        return (Frame::Other, plan);
    };
    let mut creation = Creation {
        schema: nodes::owned((*target.relation).schemaname),
        name,
        settings: Settings::default(),
        takes_usual_order: !statement::names(target.options, definitions::ORDERBY),
    };
    if target.options.is_null() {
        return (Frame::Create(creation), plan);
    }
    if !access_method::names_ours(target.method) {
        if access_method::names_heap(target.method) {
            or_raise(statement::refuse_ours(
                target.options,
                "Write USING colcompress before WITH, or set default_table_access_method to colcompress.",
            ));
        }
        return (Frame::Create(creation), plan);
    }
    // A cached plan runs the same tree again, so a copy is edited.
    let plan = nodes::copy(plan);
    let (settings, rest) = or_raise(statement::split_creation(
        target_of((*plan).utilityStmt).map_or(std::ptr::null_mut(), |t| t.options),
    ));
    creation.settings = settings;
    put_options((*plan).utilityStmt, rest);
    (Frame::Create(creation), plan)
}

unsafe fn target_of(statement: *mut Node) -> Option<Target> {
    match nodes::tag(statement) {
        NodeTag::T_CreateStmt => {
            let create = statement.cast::<pg_sys::CreateStmt>();
            // A partitioned table has neither rows nor, here, an access method.
            (*create).partspec.is_null().then(|| Target {
                relation: (*create).relation,
                options: (*create).options,
                method: (*create).accessMethod,
            })
        }
        _ => into_clause(statement).map(|into| Target {
            relation: (*into).rel,
            options: (*into).options,
            method: (*into).accessMethod,
        }),
    }
}

unsafe fn put_options(statement: *mut Node, options: *mut pg_sys::List) {
    if nodes::tag(statement) == NodeTag::T_CreateStmt {
        (*statement.cast::<pg_sys::CreateStmt>()).options = options;
    } else if let Some(into) = into_clause(statement) {
        (*into).options = options;
    }
}

/// The INTO clause of CREATE TABLE AS and CREATE MATERIALIZED VIEW, or of EXPLAIN of one.
unsafe fn into_clause(statement: *mut Node) -> Option<*mut pg_sys::IntoClause> {
    match nodes::tag(statement) {
        NodeTag::T_CreateTableAsStmt => {
            let into = (*statement.cast::<pg_sys::CreateTableAsStmt>()).into;
            (!into.is_null()).then_some(into)
        }
        NodeTag::T_ExplainStmt => {
            let query = (*statement.cast::<pg_sys::ExplainStmt>()).query;
            if nodes::tag(query) != NodeTag::T_Query {
                return None;
            }
            let inner = (*query.cast::<pg_sys::Query>()).utilityStmt;
            if nodes::tag(inner) == NodeTag::T_CreateTableAsStmt { into_clause(inner) } else { None }
        }
        _ => None,
    }
}

/// Called when the server has just written the catalog rows of `relation`. If the innermost statement is
/// creating it, stores its options.
pub unsafe fn created(relation: Oid) {
    let usual = usual_order();
    let waiting = with_innermost(
        |frame| matches!(frame, Frame::Create(creation) if !creation.settings.is_empty() || (creation.takes_usual_order && usual.is_some())),
    );
    if !waiting {
        return;
    }
    pg_sys::CommandCounterIncrement();
    if !access_method::is_our_table(relation) {
        return;
    }
    let name = nodes::owned(pg_sys::get_rel_name(relation));
    let schema = nodes::owned(pg_sys::get_namespace_name_or_temp(pg_sys::get_rel_namespace(relation)));
    let settings = with_innermost(|frame| match frame {
        Frame::Create(creation)
            if name.as_ref() == Some(&creation.name)
                && (creation.schema.is_none() || creation.schema == schema) =>
        {
            let takes_usual_order = std::mem::take(&mut creation.takes_usual_order);
            Some((std::mem::take(&mut creation.settings), takes_usual_order))
        }
        _ => None,
    });
    if let Some((mut settings, takes_usual_order)) = settings {
        if takes_usual_order && let Some(order) = usual.and_then(|order| fitting(relation, &order)) {
            settings.set(definitions::ORDERBY, order);
        }
        store_checked(relation, settings);
    }
}

/// The value of `colonnade.orderby`, if it is not empty.
fn usual_order() -> Option<CString> {
    settings::ORDERBY.get().filter(|order| !order.to_bytes().trim_ascii().is_empty())
}

/// The keys of an order whose columns the table has, in stored spelling.
unsafe fn fitting(table: Oid, order: &CStr) -> Option<CString> {
    match orderby::parse(order) {
        Ok(mut keys) => {
            keys.retain(|key| orderby::resolve_key(table, key).is_ok());
            (!keys.is_empty()).then(|| orderby::spell(&keys))
        }
        Err(refusal) => {
            refusal.send(PgLogLevel::WARNING);
            None
        }
    }
}

/// Stores options after checking `orderby` against the table's columns.
pub unsafe fn store_checked(table: Oid, mut settings: Settings) {
    let text: Option<std::ffi::CString> = settings.get(definitions::ORDERBY).map(CStr::to_owned);
    if let Some(text) = text {
        let (spelling, _) = or_raise(orderby::resolve(table, &text));
        settings.set(definitions::ORDERBY, spelling);
    }
    catalog::store(table, &settings);
}
