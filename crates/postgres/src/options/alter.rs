//! ALTER TABLE and ALTER MATERIALIZED VIEW: SET and RESET of our options, beside the server's own.
//!
//! Whenever one option changes, the server checks the whole stored array against heap's names. So our options
//! must not be in it then. The statement that is run begins its option changes with `RESET (all of ours)`,
//! which the server accepts. When the statement is done, our options are put back, changed as it said. If the
//! statement rewrites the table, the new table gets them (see [`rewritten`]).
//!
//! SET ACCESS METHOD drops the options that the new access method does not have. A statement that sets our
//! access method may set our options, too. What a partitioned table gets is for partitions to come; those
//! that are there keep theirs.

use super::access_method::{self, AccessMethod};
use super::catalog::{self, Settings};
use super::create::store_checked;
use super::definitions::{self, OptionId};
use super::frames::{Alteration, Frame, with_innermost};
use super::nodes;
use super::orderby;
use super::report::{Refusal, or_raise};
use super::statement;
use crate::host::tree::{List, Typed};
use pgrx::pg_sys::AlterTableType as Kind;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, AlterTableCmd, AlterTableStmt, DefElem, Oid, PlannedStmt};
use std::ffi::{CStr, CString};
use std::sync::OnceLock;

/// The function that is told of tables whose option `orderby` was set.
static ORDER_WAS_SET: OnceLock<unsafe fn(Oid)> = OnceLock::new();

/// Notes the function that is told of tables whose `orderby` was set.
pub fn register(order_was_set: unsafe fn(Oid)) {
    let _ = ORDER_WAS_SET.set(order_was_set);
}

/// Prepares an ALTER TABLE. Returns its frame, and the statement to run instead.
///
/// # Safety
/// An ALTER TABLE as the server hands it to a hook.
pub unsafe fn before(plan: *mut PlannedStmt) -> (Frame, *mut PlannedStmt) {
    let Some(alter) = Typed::<AlterTableStmt>::new((*plan).utilityStmt.cast()) else {
        return (Frame::Other, plan);
    };
    let commands = alter.commands();
    let mut alteration = Alteration { restricted_drops: restricted_drops(commands), ..Default::default() };
    let relevant = commands.iter().any(|c| changes_options(&c) || sets_method(&c));
    // On a standby and in a read-only transaction the server refuses the statement itself.
    if !relevant || pg_sys::XactReadOnly || pg_sys::RecoveryInProgress() {
        return (Frame::Alter(alteration), plan);
    }
    let lock = pg_sys::AlterTableGetLockLevel(commands.as_ptr());
    let table = pg_sys::AlterTableLookupRelation(alter.as_ptr(), lock);
    let Some((method, kind)) = access_method::method_and_kind(table) else {
        return (Frame::Alter(alteration), plan);
    };
    let is_partitioned = access_method::is_partitioned(kind);
    if !access_method::has_rows(kind) && !is_partitioned {
        return (Frame::Alter(alteration), plan);
    }
    let was_ours = access_method::method_takes_options(method, kind);
    let becomes = commands.iter().rev().find(|c| sets_method(c));
    let is_ours = becomes.map_or(was_ours, |c| access_method::named_takes_options(c.name(), kind));
    let is_heap = !is_ours
        && becomes.map_or(method == pg_sys::HEAP_TABLE_AM_OID, |c| access_method::names_heap(c.name()));
    if is_heap {
        let hint =
            "ALTER TABLE ... SET ACCESS METHOD {}, SET (...) turns the table into one and sets its options.";
        for command in commands.iter().filter(|c| c.subtype == Kind::AT_SetRelOptions) {
            or_raise(statement::refuse_ours(command.options(), hint));
        }
    }
    if !is_ours && !was_ours {
        return (Frame::Alter(alteration), plan);
    }
    // None for a partitioned table that names no access method, and for one that is not ours.
    let method = match becomes {
        Some(command) if is_partitioned && command.name().is_none() => None,
        Some(command) => access_method::named(command.name()),
        None => access_method::of_method(method),
    };
    let mut stored = catalog::read(table);
    let any = !stored.is_empty();
    let drops = method.is_some_and(|method| stored.keep_of(method));
    let changes = commands.iter().any(|c| changes_options(&c));
    if !is_ours && !any || is_ours && !changes && !drops {
        return (Frame::Alter(alteration), plan);
    }
    let changes_ours = |c: Typed<'_, AlterTableCmd>| changes_options(&c) && statement::names_any(c.options());
    // What is wrong with a partitioned table that has no option of ours, the server says as ever.
    if is_partitioned && !any && !commands.iter().any(changes_ours) {
        return (Frame::Alter(alteration), plan);
    }
    // A cached plan runs the same tree again: edit a copy.
    let plan = nodes::copy(plan);
    let Some(alter) = Typed::<AlterTableStmt>::new((*plan).utilityStmt.cast()) else {
        return (Frame::Alter(alteration), plan);
    };
    let commands = alter.commands();
    if !is_ours {
        let commands = std::iter::once(reset_all()).chain(commands.iter().map(Typed::as_ptr));
        (*alter.as_ptr()).cmds = nodes::list(commands);
        return (Frame::Alter(alteration), plan);
    }
    let untouched = untouched_columns(commands);
    let (settings, commands) = or_raise(take_out(stored, commands, method, drops, &mut alteration));
    if alteration.sets_orderby {
        or_raise(check_order(table, &settings, &untouched));
    }
    (*alter.as_ptr()).cmds = nodes::list(commands);
    alteration.options = Some((table, settings));
    (Frame::Alter(alteration), plan)
}

/// Applies the changes of our options to `settings` and returns the commands that remain. `method` is what
/// the table's access method will be. If it `drops` options, those of today are taken out in any case.
///
/// # Safety
/// Commands that are ours to change.
unsafe fn take_out(
    mut settings: Settings,
    commands: List<'_, Typed<'_, AlterTableCmd>>,
    method: Option<AccessMethod>,
    drops: bool,
    alteration: &mut Alteration,
) -> Result<(Settings, Vec<*mut AlterTableCmd>), Refusal> {
    let mut remaining = Vec::with_capacity(commands.len() + 1);
    let mut first = !drops;
    if drops {
        remaining.push(reset_all());
    }
    for command in commands.iter() {
        if !changes_options(&command) {
            remaining.push(command.as_ptr());
            continue;
        }
        if std::mem::take(&mut first) {
            remaining.push(reset_all());
        }
        let setting = command.subtype == Kind::AT_SetRelOptions;
        let mut seen: Vec<OptionId> = Vec::new();
        let mut rest: Vec<*mut DefElem> = Vec::new();
        let elements = command.options();
        for (at, element) in elements.iter().enumerate() {
            let Some(option) = statement::ours(element) else {
                // The server accepts a RESET of names that it does not know.
                if setting {
                    statement::check_known(element, elements.iter().take(at), method)?;
                }
                rest.push(element.as_ptr());
                continue;
            };
            if setting {
                statement::check_method(option, method)?;
            }
            statement::given_once(&mut seen, option)?;
            alteration.sets_orderby |= statement::stored_as(option) == definitions::ORDERBY;
            if setting {
                statement::set(&mut settings, option, element, elements)?;
            } else if element.value().is_none() {
                settings.reset(statement::stored_as(option));
            } else {
                return Err(Refusal::new(
                    Code::ERRCODE_SYNTAX_ERROR,
                    format!("RESET of option \"{}\" takes no value", option.name()),
                ));
            }
        }
        if !rest.is_empty() {
            (*command.as_ptr()).def = nodes::list(rest).cast();
            remaining.push(command.as_ptr());
        }
    }
    settings.check(method.unwrap_or(AccessMethod::Colcompress))?;
    Ok((settings, remaining))
}

/// A function that says of a column's name whether the statement leaves the column alone and adds none of
/// that name.
fn untouched_columns(commands: List<'_, Typed<'_, AlterTableCmd>>) -> impl Fn(&CStr) -> bool + use<> {
    let added = commands.iter().filter(|c| c.subtype == Kind::AT_AddColumn);
    let added = added.filter_map(|c| c.definition()?.as_a::<pg_sys::ColumnDef>()?.name());
    let named = commands.iter().filter_map(Typed::<AlterTableCmd>::name);
    let touched: Vec<CString> = added.chain(named).map(CStr::to_owned).collect();
    move |column| touched.iter().all(|name| name.as_c_str() != column)
}

/// Checks an order before the statement does its work, which may be to rewrite a large table. Columns that
/// the statement itself changes are checked once they are there: by [`rewritten`] before the first row, or by
/// [`after`] if nothing is rewritten.
fn check_order(table: Oid, settings: &Settings, is_untouched: &dyn Fn(&CStr) -> bool) -> Result<(), Refusal> {
    let Some(order) = settings.get(definitions::ORDERBY) else { return Ok(()) };
    for key in orderby::parse(order)?.iter().filter(|key| is_untouched(&key.column)) {
        orderby::resolve_key(table, key)?;
    }
    Ok(())
}

/// Called when the statement is done. Puts our options back, tells of rows that are not in a new order, and
/// checks tables whose columns changed.
pub fn after(alteration: Alteration) {
    let own = alteration.options.as_ref().map(|(table, _)| *table);
    if let Some((table, mut settings)) = alteration.options {
        see_own_changes();
        if access_method::takes_options(table) {
            // Options that a statement inside this one has set meanwhile (an event trigger's) stay.
            for (option, value) in catalog::read(table).iter() {
                settings.set(*option, value.clone());
            }
            store_checked(table, settings);
            if alteration.sets_orderby
                && access_method::is_our_table(table)
                && let Some(tell) = ORDER_WAS_SET.get()
            {
                // SAFETY: inside the statement that has set it.
                unsafe { tell(table) };
            }
        }
    }
    for table in alteration.changed_columns.into_iter().filter(|t| Some(*t) != own) {
        see_own_changes();
        if let Some(text) = catalog::read(table).get(definitions::ORDERBY) {
            or_raise(orderby::resolve(table, text));
        }
    }
}

/// Makes what the command has written so far visible to itself.
fn see_own_changes() {
    // SAFETY: inside a statement that writes.
    unsafe { pg_sys::CommandCounterIncrement() };
}

/// Called when a table was created inside ALTER TABLE. If the altered table is rewritten into it, it gets the
/// options that the altered table will have, so that its rows are written by these. It has the columns that
/// the statement has made. If a column of `orderby` is not among them, the statement ends before a row is
/// copied.
pub fn rewritten(relation: Oid) {
    let pending = with_innermost(|frame| match frame {
        Frame::Alter(Alteration { options: Some((table, settings)), .. }) if !settings.is_empty() => {
            Some((*table, settings.clone()))
        }
        _ => None,
    });
    let Some((table, settings)) = pending else { return };
    see_own_changes();
    let transient = CString::new(format!("pg_temp_{}", table.to_u32())).unwrap_or_default();
    // SAFETY: a catalog look-up, which gives null or a string.
    let name = unsafe { nodes::owned(pg_sys::get_rel_name(relation)) };
    if name.as_ref() == Some(&transient) && access_method::is_our_table(relation) {
        store_checked(relation, settings);
    }
}

fn changes_options(command: &AlterTableCmd) -> bool {
    matches!(command.subtype, Kind::AT_SetRelOptions | Kind::AT_ResetRelOptions)
}

fn sets_method(command: &AlterTableCmd) -> bool {
    command.subtype == Kind::AT_SetAccessMethod
}

fn restricted_drops(commands: List<'_, Typed<'_, AlterTableCmd>>) -> Vec<CString> {
    let drops = commands
        .iter()
        .filter(|c| c.subtype == Kind::AT_DropColumn && c.behavior == pg_sys::DropBehavior::DROP_RESTRICT);
    drops.filter_map(|c| Some(c.name()?.to_owned())).collect()
}

fn reset_all() -> *mut AlterTableCmd {
    let names = OptionId::all().map(|option| nodes::option(option.definition().name));
    nodes::alter_command(Kind::AT_ResetRelOptions, nodes::list(names))
}
