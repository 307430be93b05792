//! SQL functions that set and reset options: another way to write ALTER TABLE ... SET and RESET.
//!
//! They run that very statement, so that privileges, locks, checks and event triggers are the same.

use super::access_method;
use super::catalog::table_name;
use super::definitions::{self, OptionId};
use super::nodes;
use super::report::Refusal;
use crate::host::fmgr::{argument, return_null};
use pgrx::pg_sys::AlterTableType as Kind;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, List, NodeTag, Oid};
use std::ffi::{CStr, CString};

/// The order of the functions' arguments after the table.
const ARGUMENTS: [OptionId; 8] = [
    definitions::CHUNK_GROUP_ROW_LIMIT,
    definitions::STRIPE_ROW_LIMIT,
    definitions::COMPRESSION,
    definitions::COMPRESSION_LEVEL,
    definitions::ORDERBY,
    definitions::INDEX_SCAN,
    definitions::PACKING,
    definitions::PACKING_ROWS,
];

crate::sql_function!(pg_finfo_colonnade_alter_colcompress_table_set);
crate::sql_function!(pg_finfo_colonnade_alter_colcompress_table_reset);
crate::sql_function!(pg_finfo_colonnade_colcompress_option);

unsafe fn table_argument(call: FunctionCallInfo) -> Oid {
    let Some(datum) = argument(call, 0) else {
        Refusal::new(Code::ERRCODE_NULL_VALUE_NOT_ALLOWED, "table_name must not be NULL").raise()
    };
    let table = Oid::from(datum.value() as u32);
    if !access_method::is_our_table(table) {
        Refusal::new(
            Code::ERRCODE_WRONG_OBJECT_TYPE,
            format!("\"{}\" is not a colcompress table", table_name(table)),
        )
        .hint("CREATE TABLE ... USING colcompress makes one, ALTER TABLE ... SET ACCESS METHOD colcompress turns a table into one.")
        .raise();
    }
    table
}

/// `engine.alter_colcompress_table_set(regclass, ...)`: NULL leaves an option as it is.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn colonnade_alter_colcompress_table_set(call: FunctionCallInfo) -> Datum {
    let table = table_argument(call);
    let mut elements = Vec::new();
    for (number, option) in ARGUMENTS.iter().enumerate() {
        let Some(datum) = argument(call, number + 1) else { continue };
        let value = spelling(*option, datum);
        elements.push(nodes::option(option.definition().name, Some(&value)));
    }
    run(table, Kind::AT_SetRelOptions, nodes::list(&elements), "engine.alter_colcompress_table_set");
    Datum::null()
}

/// `engine.alter_colcompress_table_reset(regclass, ...)`: true resets an option.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn colonnade_alter_colcompress_table_reset(call: FunctionCallInfo) -> Datum {
    let table = table_argument(call);
    let chosen = ARGUMENTS
        .iter()
        .enumerate()
        .filter(|(number, _)| argument(call, number + 1).is_some_and(|d| d.value() & 0xff != 0));
    let elements: Vec<_> = chosen.map(|(_, option)| nodes::option(option.definition().name, None)).collect();
    run(table, Kind::AT_ResetRelOptions, nodes::list(&elements), "engine.alter_colcompress_table_reset");
    Datum::null()
}

/// An argument as an option's text.
unsafe fn spelling(option: OptionId, datum: Datum) -> CString {
    use definitions::Kind;
    let owned = match option.definition().kind {
        Kind::Integer { .. } => (datum.value() as i32).to_string().into_bytes(),
        Kind::Boolean => (datum.value() & 0xff != 0).to_string().into_bytes(),
        // name
        Kind::Choice(_) => CStr::from_ptr(datum.cast_mut_ptr()).to_bytes().to_vec(),
        // text
        Kind::Columns => CStr::from_ptr(pg_sys::text_to_cstring(datum.cast_mut_ptr())).to_bytes().to_vec(),
    };
    CString::new(owned).unwrap_or_default()
}

/// Runs `ALTER TABLE table SET (...)` or `RESET (...)`.
unsafe fn run(table: Oid, kind: pg_sys::AlterTableType::Type, options: *mut List, source: &str) {
    if options.is_null() {
        return;
    }
    // Hold the table while it is looked up again by name.
    pg_sys::LockRelationOid(table, pg_sys::AccessShareLock as i32);
    let name = pg_sys::get_rel_name(table);
    if name.is_null() {
        Refusal::new(
            Code::ERRCODE_UNDEFINED_TABLE,
            format!("table with OID {} does not exist", table.to_u32()),
        )
        .raise();
    }
    let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(table));
    let size = size_of::<pg_sys::AlterTableStmt>();
    let statement = pg_sys::palloc0(size).cast::<pg_sys::AlterTableStmt>();
    (*statement).type_ = NodeTag::T_AlterTableStmt;
    (*statement).relation = pg_sys::makeRangeVar(schema, name, -1);
    (*(*statement).relation).inh = true;
    (*statement).cmds = nodes::list(&[nodes::alter_command(kind, options)]);
    (*statement).objtype = pg_sys::ObjectType::OBJECT_TABLE;
    if pg_sys::get_rel_relkind(table) as u8 == pg_sys::RELKIND_MATVIEW {
        (*statement).objtype = pg_sys::ObjectType::OBJECT_MATVIEW;
    }

    let size = size_of::<pg_sys::PlannedStmt>();
    let plan = pg_sys::palloc0(size).cast::<pg_sys::PlannedStmt>();
    (*plan).type_ = NodeTag::T_PlannedStmt;
    (*plan).commandType = pg_sys::CmdType::CMD_UTILITY;
    (*plan).canSetTag = false;
    (*plan).utilityStmt = statement.cast();
    (*plan).stmt_location = -1;

    let source = CString::new(source).unwrap_or_default();
    pg_sys::ProcessUtility(
        plan,
        // The server may keep the text as long as the statement runs.
        pg_sys::pstrdup(source.as_ptr()),
        false,
        pg_sys::ProcessUtilityContext::PROCESS_UTILITY_QUERY,
        std::ptr::null_mut(),
        std::ptr::null_mut(),
        pg_sys::None_Receiver,
        std::ptr::null_mut(),
    );
    pg_sys::CommandCounterIncrement();
}

/// `engine.colcompress_option(regclass, name)`: the value in force as text, NULL for no order and for
/// anything that is not a table of ours; for the view `engine.colcompress_options`.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn colonnade_colcompress_option(call: FunctionCallInfo) -> Datum {
    let (Some(table), Some(name)) = (argument(call, 0), argument(call, 1)) else {
        return return_null(call);
    };
    let table = Oid::from(table.value() as u32);
    let option = OptionId::find(CStr::from_ptr(name.cast_mut_ptr()));
    let value = match option {
        Some(option) if access_method::is_our_table(table) => super::shown(table, option),
        _ => None,
    };
    match value {
        Some(value) => Datum::from(pg_sys::cstring_to_text(value.as_ptr())),
        None => return_null(call),
    }
}
