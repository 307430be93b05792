//! ALTER TABLE and ALTER MATERIALIZED VIEW: SET and RESET of our options, beside the server's own.
//!
//! Whenever one option changes, the server checks the whole stored array against heap's names. So our options
//! must not be in it then. The statement that is run begins its option changes with `RESET (all of ours)`,
//! which the server accepts. When the statement is done, our options are put back, changed as it said. If the
//! statement rewrites the table, the new table gets them (see [`rewritten`]).
//!
//! SET ACCESS METHOD to another method drops our options. A statement that sets our access method may set our
//! options, too.

use super::access_method;
use super::catalog::{self, Settings};
use super::create::store_checked;
use super::definitions::{self, OptionId};
use super::frames::{Alteration, Frame, with_innermost};
use super::nodes;
use super::orderby;
use super::report::{Refusal, or_raise};
use super::statement;
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
pub unsafe fn before(plan: *mut PlannedStmt) -> (Frame, *mut PlannedStmt) {
    let alter = (*plan).utilityStmt.cast::<AlterTableStmt>();
    let commands = nodes::pointers::<AlterTableCmd>((*alter).cmds);
    let mut alteration = Alteration { restricted_drops: restricted_drops(&commands), ..Default::default() };
    let relevant = commands.iter().any(|c| changes_options(*c) || sets_method(*c));
    // On a standby and in a read-only transaction the server refuses the statement itself.
    if !relevant || pg_sys::XactReadOnly || pg_sys::RecoveryInProgress() {
        return (Frame::Alter(alteration), plan);
    }
    let lock = pg_sys::AlterTableGetLockLevel((*alter).cmds);
    let table = pg_sys::AlterTableLookupRelation(alter, lock);
    let Some((method, kind)) = access_method::method_and_kind(table) else {
        return (Frame::Alter(alteration), plan);
    };
    if !access_method::has_rows(kind) {
        return (Frame::Alter(alteration), plan);
    }
    let was_ours = access_method::is_ours(method);
    let becomes = commands.iter().rev().find(|c| sets_method(**c));
    let is_ours = becomes.map_or(was_ours, |c| access_method::names_ours((**c).name));
    let is_heap =
        becomes.map_or(method == pg_sys::HEAP_TABLE_AM_OID, |c| access_method::names_heap((**c).name));
    if is_heap {
        let hint = "ALTER TABLE ... SET ACCESS METHOD colcompress, SET (...) turns the table into one and sets its options.";
        for command in commands.iter().filter(|c| (***c).subtype == Kind::AT_SetRelOptions) {
            or_raise(statement::refuse_ours((**command).def.cast(), hint));
        }
    }
    if !is_ours && !was_ours {
        return (Frame::Alter(alteration), plan);
    }
    let stored = catalog::read(table);
    if !is_ours {
        if stored.is_empty() {
            return (Frame::Alter(alteration), plan);
        }
        let plan = nodes::copy(plan);
        let alter = (*plan).utilityStmt.cast::<AlterTableStmt>();
        let mut commands = nodes::pointers::<AlterTableCmd>((*alter).cmds);
        commands.insert(0, reset_all());
        (*alter).cmds = nodes::list(&commands);
        return (Frame::Alter(alteration), plan);
    }
    if !commands.iter().any(|c| changes_options(*c)) {
        return (Frame::Alter(alteration), plan);
    }
    let plan = nodes::copy(plan);
    let alter = (*plan).utilityStmt.cast::<AlterTableStmt>();
    let commands = nodes::pointers::<AlterTableCmd>((*alter).cmds);
    let untouched = untouched_columns(&commands);
    let (settings, commands) = or_raise(take_out(stored, commands, &mut alteration));
    if alteration.sets_orderby {
        or_raise(check_order(table, &settings, &untouched));
    }
    (*alter).cmds = nodes::list(&commands);
    alteration.options = Some((table, settings));
    (Frame::Alter(alteration), plan)
}

/// Applies the changes of our options to `settings` and returns the commands that remain.
unsafe fn take_out(
    mut settings: Settings,
    commands: Vec<*mut AlterTableCmd>,
    alteration: &mut Alteration,
) -> Result<(Settings, Vec<*mut AlterTableCmd>), Refusal> {
    let mut remaining = Vec::with_capacity(commands.len() + 1);
    let mut first = true;
    for command in commands {
        if !changes_options(command) {
            remaining.push(command);
            continue;
        }
        if std::mem::take(&mut first) {
            remaining.push(reset_all());
        }
        let setting = (*command).subtype == Kind::AT_SetRelOptions;
        let mut seen: Vec<OptionId> = Vec::new();
        let mut rest: Vec<*mut DefElem> = Vec::new();
        let elements = nodes::pointers::<DefElem>((*command).def.cast());
        for (at, &element) in elements.iter().enumerate() {
            let Some(option) = statement::ours(element) else {
                // The server accepts a RESET of names that it does not know.
                if setting {
                    statement::check_known(element, elements.get(..at).unwrap_or_default())?;
                }
                rest.push(element);
                continue;
            };
            if seen.contains(&option) {
                return Err(Refusal::new(
                    Code::ERRCODE_INVALID_PARAMETER_VALUE,
                    format!("option \"{}\" is given more than once", option.name()),
                ));
            }
            seen.push(option);
            alteration.sets_orderby |= option == definitions::ORDERBY;
            if setting {
                statement::set(&mut settings, option, element)?;
            } else if (*element).arg.is_null() {
                settings.reset(option);
            } else {
                return Err(Refusal::new(
                    Code::ERRCODE_SYNTAX_ERROR,
                    format!("RESET of option \"{}\" takes no value", option.name()),
                ));
            }
        }
        if !rest.is_empty() {
            (*command).def = nodes::list(&rest).cast();
            remaining.push(command);
        }
    }
    settings.check()?;
    Ok((settings, remaining))
}

/// A function that says of a column's name whether the statement leaves the column alone and adds none of
/// that name.
unsafe fn untouched_columns(commands: &[*mut AlterTableCmd]) -> impl Fn(&CStr) -> bool + use<> {
    let added = commands.iter().filter(|c| (***c).subtype == Kind::AT_AddColumn);
    let added = added.filter_map(|c| nodes::owned((*(**c).def.cast::<pg_sys::ColumnDef>()).colname));
    let named = commands.iter().filter_map(|c| nodes::owned((**c).name));
    let touched: Vec<CString> = added.chain(named).collect();
    move |column| touched.iter().all(|name| name.as_c_str() != column)
}

/// Checks an order before the statement does its work, which may be to rewrite a large table. Columns that
/// the statement itself changes are checked once they are there: by [`rewritten`] before the first row, or by
/// [`after`] if nothing is rewritten.
unsafe fn check_order(
    table: Oid,
    settings: &Settings,
    is_untouched: &dyn Fn(&CStr) -> bool,
) -> Result<(), Refusal> {
    let Some(order) = settings.get(definitions::ORDERBY) else { return Ok(()) };
    for key in orderby::parse(order)?.iter().filter(|key| is_untouched(&key.column)) {
        orderby::resolve_key(table, key)?;
    }
    Ok(())
}

/// Called when the statement is done. Puts our options back, tells of rows that are not in a new order, and
/// checks tables whose columns changed.
pub unsafe fn after(alteration: Alteration) {
    let own = alteration.options.as_ref().map(|(table, _)| *table);
    if let Some((table, mut settings)) = alteration.options {
        pg_sys::CommandCounterIncrement();
        if access_method::is_our_table(table) {
            // Options that a statement inside this one has set meanwhile (an event trigger's) stay.
            for (option, value) in catalog::read(table).iter() {
                settings.set(*option, value.clone());
            }
            store_checked(table, settings);
            if alteration.sets_orderby
                && let Some(tell) = ORDER_WAS_SET.get()
            {
                tell(table);
            }
        }
    }
    for table in alteration.changed_columns.into_iter().filter(|t| Some(*t) != own) {
        pg_sys::CommandCounterIncrement();
        if let Some(text) = catalog::read(table).get(definitions::ORDERBY) {
            or_raise(orderby::resolve(table, text));
        }
    }
}

/// Called when a table was created inside ALTER TABLE. If the altered table is rewritten into it, it gets the
/// options that the altered table will have, so that its rows are written by these. It has the columns that
/// the statement has made. If a column of `orderby` is not among them, the statement ends before a row is
/// copied.
pub unsafe fn rewritten(relation: Oid) {
    let pending = with_innermost(|frame| match frame {
        Frame::Alter(Alteration { options: Some((table, settings)), .. }) if !settings.is_empty() => {
            Some((*table, settings.clone()))
        }
        _ => None,
    });
    let Some((table, settings)) = pending else { return };
    pg_sys::CommandCounterIncrement();
    let transient = CString::new(format!("pg_temp_{}", table.to_u32())).unwrap_or_default();
    let name = nodes::owned(pg_sys::get_rel_name(relation));
    if name.as_ref() == Some(&transient) && access_method::is_our_table(relation) {
        store_checked(relation, settings);
    }
}

unsafe fn changes_options(command: *const AlterTableCmd) -> bool {
    let kind = (*command).subtype;
    kind == Kind::AT_SetRelOptions || kind == Kind::AT_ResetRelOptions
}

unsafe fn sets_method(command: *const AlterTableCmd) -> bool {
    (*command).subtype == Kind::AT_SetAccessMethod
}

unsafe fn restricted_drops(commands: &[*mut AlterTableCmd]) -> Vec<CString> {
    let drops = commands.iter().filter(|c| {
        (***c).subtype == Kind::AT_DropColumn && (***c).behavior == pg_sys::DropBehavior::DROP_RESTRICT
    });
    drops.filter_map(|c| nodes::owned((**c).name)).collect()
}

unsafe fn reset_all() -> *mut AlterTableCmd {
    let names: Vec<*mut DefElem> =
        OptionId::all().map(|o| nodes::option(o.definition().name, None)).collect();
    nodes::alter_command(Kind::AT_ResetRelOptions, nodes::list(&names))
}
