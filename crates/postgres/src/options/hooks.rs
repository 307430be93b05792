//! The two server hooks of the options: utility statements, and access to objects.
//!
//! The next object access hook is called as plain C (see `host::unguarded`), while nothing on our stack has a
//! destructor.

use super::brin;
use super::columns;
use super::frames::{self, Frame};
use super::{alter, create};
use crate::host::hooks::Chain;
use crate::host::tree::Node;
use crate::host::unguarded::guarded;
use crate::host::utility_hook::{self, Call, UtilityHook};
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::ffi::{c_int, c_void};
static NEXT_UTILITY: Chain<pg_sys::ProcessUtility_hook_type> = Chain::new();
static NEXT_ACCESS: Chain<pg_sys::object_access_hook_type> = Chain::new();

/// Puts both hooks in front of those already there.
///
/// # Safety
/// Call it from `_PG_init`.
pub unsafe fn register() {
    NEXT_UTILITY.put_in_front(&raw mut pg_sys::ProcessUtility_hook, utility_hook::hook::<Hook>());
    NEXT_ACCESS.put_in_front(&raw mut pg_sys::object_access_hook, Some(object_access));
}

struct Hook;

impl UtilityHook for Hook {
    /// The depth of the statement's frame.
    type Kept = usize;

    unsafe fn before(call: Call) -> (*mut pg_sys::PlannedStmt, usize) {
        guarded(|| before(call.statement))
    }

    fn next() -> pg_sys::ProcessUtility_hook_type {
        NEXT_UTILITY.next()
    }

    unsafe fn after(_call: Call, depth: usize) {
        guarded(|| after(depth));
    }
}

/// Pushes a frame for a statement: the statement to run instead, and the frame's depth.
///
/// # Safety
/// A utility statement as the server hands it to a hook.
unsafe fn before(plan: *mut pg_sys::PlannedStmt) -> (*mut pg_sys::PlannedStmt, usize) {
    let Some(statement) = Node::new((*plan).utilityStmt) else {
        return (plan, frames::push(Frame::Other));
    };
    let (frame, plan) = match statement.tag() {
        NodeTag::T_CreateStmt | NodeTag::T_CreateTableAsStmt | NodeTag::T_ExplainStmt => create::before(plan),
        NodeTag::T_AlterTableStmt => alter::before(plan),
        NodeTag::T_CreateTrigStmt => {
            statement.as_a().into_iter().for_each(super::repack::before);
            (Frame::Other, plan)
        }
        NodeTag::T_CreateSchemaStmt => {
            statement.as_a().into_iter().for_each(super::schema::before);
            (Frame::Other, plan)
        }
        // COMMIT and similar statements may run where no subtransaction id can be asked for.
        NodeTag::T_TransactionStmt => return (plan, usize::MAX),
        _ => (Frame::Other, plan),
    };
    (plan, frames::push(frame))
}

/// Takes a statement's frame back, and does what it left to do.
fn after(depth: usize) {
    if depth == usize::MAX {
        return;
    }
    if let Frame::Alter(alteration) = frames::pop(depth) {
        alter::after(alteration);
    }
}

unsafe extern "C-unwind" fn object_access(
    access: pg_sys::ObjectAccessType::Type,
    class: Oid,
    object: Oid,
    sub_object: c_int,
    argument: *mut c_void,
) {
    if let Some(next) = NEXT_ACCESS.next() {
        next(access, class, object, sub_object, argument);
    }
    if class == pg_sys::RelationRelationId {
        guarded(|| relation_access(access, object, sub_object));
    }
}

/// A relation, or a column of it, was created, changed or dropped.
fn relation_access(access: pg_sys::ObjectAccessType::Type, relation: Oid, column: c_int) {
    use pg_sys::ObjectAccessType as Access;
    let attnum = i16::try_from(column).unwrap_or(0);
    match access {
        Access::OAT_POST_CREATE if column == 0 => {
            brin::index_created(relation);
            create::created(relation);
            alter::rewritten(relation);
        }
        Access::OAT_DROP if attnum > 0 => columns::dropping(relation, attnum),
        Access::OAT_POST_ALTER if attnum > 0 => columns::changed(relation, attnum),
        _ => {}
    }
}
