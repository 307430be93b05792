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
use super::statement::{self, Element};
use crate::compat;
use crate::host::tree::{List, Node, Typed};
use pgrx::PgLogLevel;
use pgrx::pg_sys::{self, Oid, PlannedStmt, RangeVar};
use std::ffi::{CStr, CString};

/// The parts of a CREATE statement that matter here.
struct Target<'a> {
    relation: Typed<'a, RangeVar>,
    options: List<'a, Element<'a>>,
    method: Option<&'a CStr>,
}

/// If the statement creates a table of ours, returns its frame and the statement to run instead.
///
/// # Safety
/// A utility statement as the server hands it to a hook.
pub unsafe fn before(plan: *mut PlannedStmt) -> (Frame, *mut PlannedStmt) {
    let Some(target) = Node::new((*plan).utilityStmt).and_then(target_of) else {
        return (Frame::Other, plan);
    };
    let Some(name) = target.relation.name() else { return (Frame::Other, plan) };
    let mut creation = Creation {
        schema: target.relation.schema().map(CStr::to_owned),
        name: name.to_owned(),
        settings: Settings::default(),
        takes_usual_order: !statement::names(target.options, definitions::ORDERBY),
    };
    if target.options.is_empty() {
        return (Frame::Create(creation), plan);
    }
    let inherited = Node::new((*plan).utilityStmt).and_then(|statement| method_of_parent(statement));
    let method = target.method.or(inherited.as_deref());
    if !access_method::names_ours(method) {
        if access_method::names_heap(method) {
            or_raise(statement::refuse_ours(
                target.options,
                "Write USING colcompress before WITH, or set default_table_access_method to colcompress.",
            ));
        }
        return (Frame::Create(creation), plan);
    }
    // A cached plan runs the same tree again, so a copy is edited.
    let plan = nodes::copy(plan);
    if let Some(statement) = Node::new((*plan).utilityStmt)
        && let Some(target) = target_of(statement)
    {
        let (settings, rest) = or_raise(statement::split_creation(target.options));
        creation.settings = settings;
        put_options(statement, rest);
    }
    (Frame::Create(creation), plan)
}

/// The access method that a partition has from its partitioned table, where the statement names none and the
/// server hands it on.
fn method_of_parent(statement: Node<'_>) -> Option<CString> {
    let create = statement.as_a::<pg_sys::CreateStmt>()?;
    if !compat::PARTITIONS_INHERIT_METHOD || create.method().is_some() || create.partbound.is_null() {
        return None;
    }
    let parent = create.parents().get(0)?;
    // SAFETY: catalog look-ups of a name that the statement has, which may be that of no table.
    unsafe {
        let no_lock = pg_sys::NoLock as i32;
        let missing_ok = pg_sys::RVROption::RVR_MISSING_OK;
        let nothing = std::ptr::null_mut();
        let table = pg_sys::RangeVarGetRelidExtended(parent.as_ptr(), no_lock, missing_ok, None, nothing);
        let (method, _) = access_method::method_and_kind(table)?;
        nodes::owned(pg_sys::get_am_name(method))
    }
}

fn target_of(statement: Node<'_>) -> Option<Target<'_>> {
    if let Some(create) = statement.as_a::<pg_sys::CreateStmt>() {
        // A partitioned table has no rows, and the server lets it have no options.
        return create.partspec.is_null().then(|| Target {
            relation: create.relation(),
            options: create.options(),
            method: create.method(),
        });
    }
    let into = into_clause(statement)?;
    Some(Target { relation: into.relation(), options: into.options(), method: into.method() })
}

/// Puts other options into a CREATE statement.
///
/// # Safety
/// A statement that is ours to change, and a list of options.
unsafe fn put_options(statement: Node<'_>, options: *mut pg_sys::List) {
    if let Some(create) = statement.as_a::<pg_sys::CreateStmt>() {
        (*create.as_ptr()).options = options;
    } else if let Some(into) = into_clause(statement) {
        (*into.as_ptr()).options = options;
    }
}

/// The INTO clause of CREATE TABLE AS and CREATE MATERIALIZED VIEW, or of EXPLAIN of one.
fn into_clause(statement: Node<'_>) -> Option<Typed<'_, pg_sys::IntoClause>> {
    let create = match statement.as_a::<pg_sys::ExplainStmt>() {
        Some(explain) => explain.query()?.as_a::<pg_sys::Query>()?.statement()?,
        None => statement,
    };
    create.as_a::<pg_sys::CreateTableAsStmt>()?.into_clause()?.as_a()
}

/// Called when the server has just written the catalog rows of `relation`. If the innermost statement is
/// creating it, stores its options.
pub fn created(relation: Oid) {
    let usual = usual_order();
    let waiting = with_innermost(
        |frame| matches!(frame, Frame::Create(creation) if !creation.settings.is_empty() || (creation.takes_usual_order && usual.is_some())),
    );
    if !waiting {
        return;
    }
    // SAFETY: inside a statement that writes.
    unsafe { pg_sys::CommandCounterIncrement() };
    if !access_method::is_our_table(relation) {
        return;
    }
    // SAFETY: catalog look-ups, which give null or strings.
    let (name, schema) = unsafe {
        let schema = pg_sys::get_namespace_name_or_temp(pg_sys::get_rel_namespace(relation));
        (nodes::owned(pg_sys::get_rel_name(relation)), nodes::owned(schema))
    };
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
fn fitting(table: Oid, order: &CStr) -> Option<CString> {
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
pub fn store_checked(table: Oid, mut settings: Settings) {
    let text: Option<std::ffi::CString> = settings.get(definitions::ORDERBY).map(CStr::to_owned);
    if let Some(text) = text {
        let (spelling, _) = or_raise(orderby::resolve(table, &text));
        settings.set(definitions::ORDERBY, spelling);
    }
    catalog::store(table, &settings);
}
