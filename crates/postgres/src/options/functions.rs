//! SQL functions that set and reset options: another way to write ALTER TABLE ... SET and RESET.
//!
//! They run that very statement as text. So privileges, locks, checks and event triggers are the same. And
//! other extensions find a statement that they can read (pg_stat_statements, pgaudit, and Citus, which sends
//! it to other nodes).

use super::access_method::{self, AccessMethod};
use super::catalog::{quoted_table_name, table_name};
use super::definitions::{self, OptionId};
use super::maintenance;
use super::report::{Refusal, text};
use crate::host::fmgr::{argument, return_null};
use crate::host::{error, full_errors};
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, Oid};
use std::ffi::{CStr, CString};

/// The order of the functions' arguments after the table.
const fn arguments(method: AccessMethod) -> &'static [OptionId] {
    match method {
        AccessMethod::Colcompress => &[
            definitions::CHUNK_GROUP_ROW_LIMIT,
            definitions::STRIPE_ROW_LIMIT,
            definitions::COMPRESSION,
            definitions::COMPRESSION_LEVEL,
            definitions::ORDERBY,
            definitions::INDEX_SCAN,
            definitions::PACKING,
            definitions::PACKING_ROWS,
        ],
        AccessMethod::Rowcompress => &[
            definitions::BATCH_SIZE,
            definitions::COMPRESSION,
            definitions::COMPRESSION_LEVEL,
            definitions::PRUNING_COLUMN,
            definitions::INDEX_SCAN,
            definitions::ORDERBY,
            definitions::PACKING,
            definitions::PACKING_ROWS,
        ],
    }
}

/// The options that a function resets, in the order of its arguments: scripts give some by position.
const fn reset_arguments(method: AccessMethod) -> &'static [OptionId] {
    match method {
        AccessMethod::Colcompress => arguments(method),
        AccessMethod::Rowcompress => &[
            definitions::BATCH_SIZE,
            definitions::COMPRESSION,
            definitions::COMPRESSION_LEVEL,
            definitions::INDEX_SCAN,
            definitions::ORDERBY,
            definitions::PRUNING_COLUMN,
            definitions::PACKING,
            definitions::PACKING_ROWS,
        ],
    }
}

crate::sql_function!(pg_finfo_colonnade_alter_colcompress_table_set);
crate::sql_function!(pg_finfo_colonnade_alter_colcompress_table_reset);
crate::sql_function!(pg_finfo_colonnade_alter_rowcompress_table_set);
crate::sql_function!(pg_finfo_colonnade_alter_rowcompress_table_reset);
crate::sql_function!(pg_finfo_colonnade_colcompress_option);
crate::sql_function!(pg_finfo_colonnade_colcompress_option_checked);

/// The table, or the columnar partitions of a partitioned one.
///
/// # Safety
/// The server's call frame.
unsafe fn table_arguments(call: FunctionCallInfo, method: AccessMethod) -> Vec<Oid> {
    let Some(datum) = argument(call, 0) else {
        Refusal::new(Code::ERRCODE_NULL_VALUE_NOT_ALLOWED, "table_name must not be NULL").raise()
    };
    let table = Oid::from(datum.value() as u32);
    let mut tables = maintenance::columnar_tables(table);
    // Partitions may have different access methods.
    if tables.as_slice() != [table] {
        tables.retain(|&table| access_method::of_table(table) == Some(method));
        if tables.is_empty() {
            let name = method.name().to_string_lossy();
            maintenance::raise_no_partitions(table, &name, &name);
        }
    }
    if let Some(&table) = tables.iter().find(|&&table| access_method::of_table(table) != Some(method)) {
        raise_other(table, method);
    }
    tables
}

/// Raises the ERROR that a table does not have this access method.
fn raise_other(table: Oid, method: AccessMethod) -> ! {
    error::not_ours(&format!("\"{}\"", table_name(table)), &method.name().to_string_lossy())
}

/// `engine.alter_colcompress_table_set(regclass, ...)`: NULL leaves an option as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn colonnade_alter_colcompress_table_set(call: FunctionCallInfo) -> Datum {
    set(call, AccessMethod::Colcompress)
}

/// `engine.alter_rowcompress_table_set(regclass, ...)`: NULL leaves an option as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn colonnade_alter_rowcompress_table_set(call: FunctionCallInfo) -> Datum {
    set(call, AccessMethod::Rowcompress)
}

/// `engine.alter_colcompress_table_reset(regclass, ...)`: true resets an option.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn colonnade_alter_colcompress_table_reset(call: FunctionCallInfo) -> Datum {
    reset(call, AccessMethod::Colcompress)
}

/// `engine.alter_rowcompress_table_reset(regclass, ...)`: true resets an option.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn colonnade_alter_rowcompress_table_reset(call: FunctionCallInfo) -> Datum {
    reset(call, AccessMethod::Rowcompress)
}

/// Sets the options that are not NULL.
///
/// # Safety
/// The server's call frame, with the arguments of `arguments` after the table.
unsafe fn set(call: FunctionCallInfo, method: AccessMethod) -> Datum {
    full_errors::guarded(|| {
        let tables = table_arguments(call, method);
        let given = arguments(method).iter().enumerate().filter_map(|(number, option)| {
            let value = spelling(*option, argument(call, number + 1)?);
            let quoted = pg_sys::quote_literal_cstr(value.as_ptr());
            Some(format!("{} = {}", option.name(), text(CStr::from_ptr(quoted))))
        });
        let given: Vec<String> = given.collect();
        tables.into_iter().for_each(|table| run(table, "SET", &given));
        Datum::null()
    })
}

/// Resets the options that are true.
///
/// # Safety
/// As `set`.
unsafe fn reset(call: FunctionCallInfo, method: AccessMethod) -> Datum {
    full_errors::guarded(|| {
        let tables = table_arguments(call, method);
        let chosen = reset_arguments(method)
            .iter()
            .enumerate()
            .filter(|(number, _)| argument(call, number + 1).is_some_and(|d| d.value() & 0xff != 0));
        let chosen: Vec<String> = chosen.map(|(_, option)| option.name().to_owned()).collect();
        tables.into_iter().for_each(|table| run(table, "RESET", &chosen));
        Datum::null()
    })
}

/// An argument as an option's text.
///
/// # Safety
/// A value of the type that the function declares for this option.
unsafe fn spelling(option: OptionId, datum: Datum) -> CString {
    use definitions::Kind;
    let owned = match option.definition().kind {
        Kind::Integer { .. } => (datum.value() as i32).to_string().into_bytes(),
        Kind::Boolean => (datum.value() & 0xff != 0).to_string().into_bytes(),
        // name
        Kind::Choice(_) => CStr::from_ptr(datum.cast_mut_ptr()).to_bytes().to_vec(),
        // text
        Kind::Columns | Kind::Column => {
            CStr::from_ptr(pg_sys::text_to_cstring(datum.cast_mut_ptr())).to_bytes().to_vec()
        }
    };
    CString::new(owned).unwrap_or_default()
}

/// Runs `ALTER TABLE table SET (...)` or `RESET (...)`.
fn run(table: Oid, verb: &str, options: &[String]) {
    if options.is_empty() {
        return;
    }
    // SAFETY: a lock, and catalog look-ups, which give null or strings.
    let (name, matview) = unsafe {
        // Locks the table while it is looked up again by name.
        pg_sys::LockRelationOid(table, pg_sys::AccessShareLock as i32);
        if pg_sys::get_rel_name(table).is_null() {
            Refusal::new(
                Code::ERRCODE_UNDEFINED_TABLE,
                format!("table with OID {} does not exist", table.to_u32()),
            )
            .raise();
        }
        (quoted_table_name(table), pg_sys::get_rel_relkind(table) as u8 == pg_sys::RELKIND_MATVIEW)
    };
    let kind = if matview { "MATERIALIZED VIEW" } else { "TABLE" };
    let statement =
        CString::new(format!("ALTER {kind} {name} {verb} ({})", options.join(", "))).unwrap_or_default();
    // SAFETY: inside a call of a function; the text outlives the statement.
    unsafe {
        pg_sys::SPI_connect();
        let outcome = pg_sys::SPI_execute(statement.as_ptr(), false, 0);
        if outcome < 0 {
            Refusal::new(Code::ERRCODE_INTERNAL_ERROR, format!("a statement could not be run: {outcome}"))
                .raise();
        }
        pg_sys::SPI_finish();
    }
}

/// `engine.colcompress_option(regclass, name)` of version 0.1: the value in force as text. NULL for no order,
/// and for anything that is not a table of ours, because the planner may have the view call it for other
/// tables, too.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn colonnade_colcompress_option(call: FunctionCallInfo) -> Datum {
    let (Some(table), Some(name)) = (argument(call, 0), argument(call, 1)) else {
        return return_null(call);
    };
    let table = Oid::from(table.value() as u32);
    match OptionId::find(CStr::from_ptr(name.cast_mut_ptr())) {
        Some(option) if access_method::is_our_table(table) => in_force(call, table, option),
        _ => return_null(call),
    }
}

/// The same function since version 0.2. It raises an ERROR for a name that no option has, and for a relation
/// that is no table of ours. NULL for no order, and for a table that is gone.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn colonnade_colcompress_option_checked(call: FunctionCallInfo) -> Datum {
    let (Some(table), Some(name)) = (argument(call, 0), argument(call, 1)) else {
        return return_null(call);
    };
    let table = Oid::from(table.value() as u32);
    let name = CStr::from_ptr(name.cast_mut_ptr());
    let found = OptionId::find(name);
    if found.is_some() && access_method::method_and_kind(table).is_none() {
        return return_null(call);
    }
    let method = access_method::of_table(table);
    if found.is_some() && method.is_none() {
        raise_other(table, AccessMethod::Colcompress);
    }
    let method = method.unwrap_or(AccessMethod::Colcompress);
    let Some(option) = found.filter(|option| option.is_of(method)) else {
        let (tables, name) = (method.name().to_string_lossy(), text(name));
        Refusal::new(
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("{tables} tables have no option \"{name}\""),
        )
        .hint(format!("Their options are {}.", definitions::names_of(method)))
        .raise()
    };
    in_force(call, table, option)
}

/// What a table's option is, as the function's result.
///
/// # Safety
/// The server's call frame.
unsafe fn in_force(call: FunctionCallInfo, table: Oid, option: OptionId) -> Datum {
    match super::shown(table, option) {
        Some(value) => Datum::from(pg_sys::cstring_to_text(value.as_ptr())),
        None => return_null(call),
    }
}
