//! CREATE TABLE, CREATE TABLE AS and CREATE MATERIALIZED VIEW (also under EXPLAIN).
//!
//! Our options are taken out of the statement. They are stored as soon as the table's catalog rows exist, so
//! that they hold for rows that the same statement writes.
//!
//! A partitioned table keeps our options for its partitions: each that is created as a table of ours gets
//! them as its own, where the statement does not say otherwise. So does one that is partitioned itself.

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
    kind: u8,
}

impl Target<'_> {
    /// Is this a partitioned table that the statement gives no option of ours?
    fn is_left_alone(&self) -> bool {
        access_method::is_partitioned(self.kind) && !statement::names_any(self.options)
    }
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
    let parent = Node::new((*plan).utilityStmt).and_then(partitioned_table_of);
    let inherited = parent.and_then(method_of_partitions);
    let method = target.method.or(inherited.as_deref());
    let takes_options = access_method::named_takes_options(method, target.kind);
    let mut settings = parent.filter(|_| takes_options).map(catalog::read).unwrap_or_default();
    // None for a partitioned table that names no access method.
    let ours = match access_method::is_partitioned(target.kind) && method.is_none() {
        true => None,
        false => access_method::named(method),
    };
    if let Some(ours) = ours {
        settings.keep_of(ours);
    }
    let orders = [definitions::ORDERBY, definitions::PRUNING_COLUMN];
    let names_order = orders.into_iter().any(|option| statement::names(target.options, option));
    let mut creation = Creation {
        schema: target.relation.schema().map(CStr::to_owned),
        name: name.to_owned(),
        takes_usual_order: !names_order && settings.get(definitions::ORDERBY).is_none(),
        settings,
    };
    // What is wrong with a partitioned table that has no option of ours, the server says as ever.
    if target.options.is_empty() || target.is_left_alone() {
        return (Frame::Create(creation), plan);
    }
    if !takes_options {
        if access_method::names_heap(method) {
            or_raise(statement::refuse_ours(
                target.options,
                "Write USING {} before WITH, or set default_table_access_method to {}.",
            ));
        }
        return (Frame::Create(creation), plan);
    }
    // A cached plan runs the same tree again, so a copy is edited.
    let plan = nodes::copy(plan);
    if let Some(statement) = Node::new((*plan).utilityStmt)
        && let Some(target) = target_of(statement)
    {
        let inherited = std::mem::take(&mut creation.settings);
        let (settings, rest) = or_raise(statement::split_creation(inherited, target.options, ours));
        creation.settings = settings;
        put_options(statement, rest);
    }
    (Frame::Create(creation), plan)
}

/// The partitioned table that a CREATE TABLE makes a partition of, if it is there.
fn partitioned_table_of(statement: Node<'_>) -> Option<Oid> {
    let create = statement.as_a::<pg_sys::CreateStmt>()?;
    if create.partbound.is_null() {
        return None;
    }
    let parent = create.parents().get(0)?;
    // SAFETY: a catalog look-up of a name that the statement has, which may be that of no table.
    let table = unsafe {
        let no_lock = pg_sys::NoLock as i32;
        let missing_ok = pg_sys::RVROption::RVR_MISSING_OK;
        pg_sys::RangeVarGetRelidExtended(parent.as_ptr(), no_lock, missing_ok, None, std::ptr::null_mut())
    };
    (table != pg_sys::InvalidOid).then_some(table)
}

/// The access method that a partition has from its partitioned table where its statement names none, if the
/// server hands it on.
fn method_of_partitions(parent: Oid) -> Option<CString> {
    if !compat::PARTITIONS_INHERIT_METHOD {
        return None;
    }
    let (method, _) = access_method::method_and_kind(parent)?;
    // SAFETY: a catalog look-up, which gives null or a string.
    unsafe { nodes::owned(pg_sys::get_am_name(method)) }
}

fn target_of(statement: Node<'_>) -> Option<Target<'_>> {
    if let Some(create) = statement.as_a::<pg_sys::CreateStmt>() {
        let kind = match create.partspec.is_null() {
            true => pg_sys::RELKIND_RELATION,
            false => pg_sys::RELKIND_PARTITIONED_TABLE,
        };
        let (relation, options, method) = (create.relation(), create.options(), create.method());
        return Some(Target { relation, options, method, kind });
    }
    let into = into_clause(statement)?;
    let (relation, options, method) = (into.relation(), into.options(), into.method());
    Some(Target { relation, options, method, kind: pg_sys::RELKIND_RELATION })
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
    if !access_method::takes_options(relation) {
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
        // The setting is not kept for a partitioned table: it may be another when a partition is made.
        if takes_usual_order
            && access_method::is_our_table(relation)
            && let Some(order) = usual.and_then(|order| fitting(relation, &order))
        {
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
