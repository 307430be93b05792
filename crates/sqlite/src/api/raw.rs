//! SQLite's C interface as a loaded extension gets it: a table of routines, the structs that both sides
//! share, and their numbers.
//!
//! SQLite hands an extension one array of function pointers (`sqlite3_api_routines`). Newer versions append
//! to it and never change a place, so a place in it and a look at the version are a stable interface. The
//! wrapper crates do not serve: they abort where the host is older than the headers they were made from, or
//! lack savepoints and shadow names. Names are SQLite's own here; its documents describe each.
//!
//! All routines are used through the modules beside this one. Each may be called only after `init`.

#![allow(non_camel_case_types, missing_docs, clippy::missing_safety_doc, clippy::too_many_arguments)]

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// An opaque struct of SQLite's.
macro_rules! opaque {
    ($($name:ident)*) => {
        $(#[repr(C)]
        pub struct $name {
            _opaque: [u8; 0],
        })*
    };
}

opaque! { sqlite3 sqlite3_stmt sqlite3_value sqlite3_context }

pub const SQLITE_OK: c_int = 0;
pub const SQLITE_ERROR: c_int = 1;
pub const SQLITE_ABORT: c_int = 4;
pub const SQLITE_NOMEM: c_int = 7;
pub const SQLITE_INTERRUPT: c_int = 9;
pub const SQLITE_CORRUPT_VTAB: c_int = 11 | 1 << 8;
pub const SQLITE_FULL: c_int = 13;
pub const SQLITE_CANTOPEN: c_int = 14;
pub const SQLITE_CONSTRAINT: c_int = 19;
pub const SQLITE_CONSTRAINT_NOTNULL: c_int = 19 | 5 << 8;
pub const SQLITE_CONSTRAINT_PRIMARYKEY: c_int = 19 | 6 << 8;
pub const SQLITE_CONSTRAINT_ROWID: c_int = 19 | 10 << 8;
pub const SQLITE_MISMATCH: c_int = 20;
pub const SQLITE_ROW: c_int = 100;
pub const SQLITE_DONE: c_int = 101;

pub const SQLITE_INTEGER: c_int = 1;
pub const SQLITE_FLOAT: c_int = 2;
pub const SQLITE_TEXT: c_int = 3;
pub const SQLITE_BLOB: c_int = 4;

pub const SQLITE_UTF8: c_uchar = 1;
pub const SQLITE_DETERMINISTIC: c_int = 0x800;
pub const SQLITE_DIRECTONLY: c_int = 0x8_0000;
pub const SQLITE_PREPARE_PERSISTENT: c_uint = 1;

pub const SQLITE_INDEX_CONSTRAINT_EQ: c_uchar = 2;
pub const SQLITE_INDEX_CONSTRAINT_GT: c_uchar = 4;
pub const SQLITE_INDEX_CONSTRAINT_LE: c_uchar = 8;
pub const SQLITE_INDEX_CONSTRAINT_LT: c_uchar = 16;
pub const SQLITE_INDEX_CONSTRAINT_GE: c_uchar = 32;
pub const SQLITE_INDEX_CONSTRAINT_ISNOTNULL: c_uchar = 70;
pub const SQLITE_INDEX_CONSTRAINT_ISNULL: c_uchar = 71;
pub const SQLITE_INDEX_CONSTRAINT_LIMIT: c_uchar = 73;
pub const SQLITE_INDEX_CONSTRAINT_OFFSET: c_uchar = 74;
pub const SQLITE_INDEX_SCAN_UNIQUE: c_int = 1;

pub const SQLITE_VTAB_CONSTRAINT_SUPPORT: c_int = 1;
pub const SQLITE_VTAB_INNOCUOUS: c_int = 2;

pub const SQLITE_IGNORE: c_int = 2;
pub const SQLITE_REPLACE: c_int = 5;

/// Destructor that stands for "copy these bytes".
pub const SQLITE_TRANSIENT: isize = -1;

#[repr(C)]
pub struct sqlite3_vtab {
    pub module: *const sqlite3_module,
    pub references: c_int,
    pub message: *mut c_char,
}

#[repr(C)]
pub struct sqlite3_vtab_cursor {
    pub table: *mut sqlite3_vtab,
}

#[repr(C)]
pub struct sqlite3_index_constraint {
    pub column: c_int,
    pub op: c_uchar,
    pub usable: c_uchar,
    pub offset: c_int,
}

#[repr(C)]
pub struct sqlite3_index_orderby {
    pub column: c_int,
    pub descending: c_uchar,
}

#[repr(C)]
pub struct sqlite3_index_constraint_usage {
    pub argument: c_int,
    pub omit: c_uchar,
}

#[repr(C)]
pub struct sqlite3_index_info {
    pub constraint_count: c_int,
    pub constraints: *const sqlite3_index_constraint,
    pub order_by_count: c_int,
    pub order_by: *const sqlite3_index_orderby,
    pub usage: *mut sqlite3_index_constraint_usage,
    pub number: c_int,
    pub text: *mut c_char,
    pub free_text: c_int,
    pub order_by_consumed: c_int,
    pub cost: f64,
    pub rows: i64,
    pub flags: c_int,
    pub columns_used: u64,
}

type Connect = unsafe extern "C" fn(
    *mut sqlite3,
    *mut c_void,
    c_int,
    *const *const c_char,
    *mut *mut sqlite3_vtab,
    *mut *mut c_char,
) -> c_int;
type OfTable = unsafe extern "C" fn(*mut sqlite3_vtab) -> c_int;
type OfTableAndNumber = unsafe extern "C" fn(*mut sqlite3_vtab, c_int) -> c_int;
type OfCursor = unsafe extern "C" fn(*mut sqlite3_vtab_cursor) -> c_int;

#[repr(C)]
pub struct sqlite3_module {
    pub version: c_int,
    pub create: Option<Connect>,
    pub connect: Option<Connect>,
    pub best_index: Option<unsafe extern "C" fn(*mut sqlite3_vtab, *mut sqlite3_index_info) -> c_int>,
    pub disconnect: Option<OfTable>,
    pub destroy: Option<OfTable>,
    pub open: Option<unsafe extern "C" fn(*mut sqlite3_vtab, *mut *mut sqlite3_vtab_cursor) -> c_int>,
    pub close: Option<OfCursor>,
    pub filter: Option<
        unsafe extern "C" fn(
            *mut sqlite3_vtab_cursor,
            c_int,
            *const c_char,
            c_int,
            *mut *mut sqlite3_value,
        ) -> c_int,
    >,
    pub next: Option<OfCursor>,
    pub eof: Option<OfCursor>,
    pub column: Option<unsafe extern "C" fn(*mut sqlite3_vtab_cursor, *mut sqlite3_context, c_int) -> c_int>,
    pub rowid: Option<unsafe extern "C" fn(*mut sqlite3_vtab_cursor, *mut i64) -> c_int>,
    pub update:
        Option<unsafe extern "C" fn(*mut sqlite3_vtab, c_int, *mut *mut sqlite3_value, *mut i64) -> c_int>,
    pub begin: Option<OfTable>,
    pub sync: Option<OfTable>,
    pub commit: Option<OfTable>,
    pub rollback: Option<OfTable>,
    pub find_function: *const c_void,
    pub rename: Option<unsafe extern "C" fn(*mut sqlite3_vtab, *const c_char) -> c_int>,
    pub savepoint: Option<OfTableAndNumber>,
    pub release: Option<OfTableAndNumber>,
    pub rollback_to: Option<OfTableAndNumber>,
    pub shadow_name: Option<unsafe extern "C" fn(*const c_char) -> c_int>,
    pub integrity: Option<
        unsafe extern "C" fn(
            *mut sqlite3_vtab,
            *const c_char,
            *const c_char,
            c_int,
            *mut *mut c_char,
        ) -> c_int,
    >,
}

// SAFETY: it holds function pointers and nothing that changes.
unsafe impl Sync for sqlite3_module {}

/// The array of routines that SQLite handed over.
static ROUTINES: AtomicPtr<*const c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Takes over SQLite's array of routines. False if another SQLite library of this process has loaded us
/// before: its connections must not be given to this one's routines.
pub unsafe fn init(routines: *mut *const c_void) -> bool {
    let null = std::ptr::null_mut();
    match ROUTINES.compare_exchange(null, routines, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => true,
        Err(before) => before == routines,
    }
}

/// Whether the library is of this version or a later one, written as `3_038_000`.
pub fn is_since(version: c_int) -> bool {
    // SAFETY: it takes nothing.
    unsafe { libversion_number() >= version }
}

/// Each line: the place in the array, and the routine as SQLite declares it.
macro_rules! routines {
    ($($slot:literal $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {
        $(pub unsafe fn $name($($argument: $kind),*) $(-> $result)? {
            type Routine = unsafe extern "C" fn($($kind),*) $(-> $result)?;
            // SAFETY: the place holds the routine of this name in every version that has it. Callers look at
            // the version where it is younger than the oldest that is served.
            unsafe {
                let routine = *ROUTINES.load(Ordering::Relaxed).add($slot);
                std::mem::transmute::<*const c_void, Routine>(routine)($($argument),*)
            }
        })*
    };
}

routines! {
    3 bind_double(statement: *mut sqlite3_stmt, index: c_int, value: f64) -> c_int;
    5 bind_int64(statement: *mut sqlite3_stmt, index: c_int, value: i64) -> c_int;
    6 bind_null(statement: *mut sqlite3_stmt, index: c_int) -> c_int;
    7 bind_parameter_count(statement: *mut sqlite3_stmt) -> c_int;
    9 bind_parameter_name(statement: *mut sqlite3_stmt, index: c_int) -> *const c_char;
    12 bind_value(statement: *mut sqlite3_stmt, index: c_int, value: *const sqlite3_value) -> c_int;
    22 column_count(statement: *mut sqlite3_stmt) -> c_int;
    29 column_int64(statement: *mut sqlite3_stmt, index: c_int) -> i64;
    30 column_name(statement: *mut sqlite3_stmt, index: c_int) -> *const c_char;
    39 column_value(statement: *mut sqlite3_stmt, index: c_int) -> *mut sqlite3_value;
    50 declare_vtab(db: *mut sqlite3, sql: *const c_char) -> c_int;
    53 errmsg(db: *mut sqlite3) -> *const c_char;
    57 finalize(statement: *mut sqlite3_stmt) -> c_int;
    58 free(memory: *mut c_void);
    60 get_autocommit(db: *mut sqlite3) -> c_int;
    65 last_insert_rowid(db: *mut sqlite3) -> i64;
    67 libversion_number() -> c_int;
    77 reset(statement: *mut sqlite3_stmt) -> c_int;
    79 result_double(context: *mut sqlite3_context, value: f64);
    80 result_error(context: *mut sqlite3_context, message: *const c_char, length: c_int);
    83 result_int64(context: *mut sqlite3_context, value: i64);
    84 result_null(context: *mut sqlite3_context);
    94 step(statement: *mut sqlite3_stmt) -> c_int;
    95 table_column_metadata(
        db: *mut sqlite3,
        schema: *const c_char,
        table: *const c_char,
        column: *const c_char,
        kind: *mut *const c_char,
        collation: *mut *const c_char,
        not_null: *mut c_int,
        primary_key: *mut c_int,
        autoincrement: *mut c_int
    ) -> c_int;
    101 user_data(context: *mut sqlite3_context) -> *mut c_void;
    102 value_blob(value: *mut sqlite3_value) -> *const c_void;
    103 value_bytes(value: *mut sqlite3_value) -> c_int;
    105 value_double(value: *mut sqlite3_value) -> f64;
    107 value_int64(value: *mut sqlite3_value) -> i64;
    108 value_numeric_type(value: *mut sqlite3_value) -> c_int;
    109 value_text(value: *mut sqlite3_value) -> *const c_uchar;
    113 value_type(value: *mut sqlite3_value) -> c_int;
    119 create_module_v2(
        db: *mut sqlite3,
        name: *const c_char,
        module: *const sqlite3_module,
        data: *mut c_void,
        destroy: Option<unsafe extern "C" fn(*mut c_void)>
    ) -> c_int;
    146 result_error_code(context: *mut sqlite3_context, code: c_int);
    148 randomness(length: c_int, bytes: *mut c_void);
    149 context_db_handle(context: *mut sqlite3_context) -> *mut sqlite3;
    162 create_function_v2(
        db: *mut sqlite3,
        name: *const c_char,
        arguments: c_int,
        flags: c_int,
        data: *mut c_void,
        function: Option<unsafe extern "C" fn(*mut sqlite3_context, c_int, *mut *mut sqlite3_value)>,
        step: *const c_void,
        last: *const c_void,
        destroy: Option<unsafe extern "C" fn(*mut c_void)>
    ) -> c_int;
    166 extended_errcode(db: *mut sqlite3) -> c_int;
    178 vtab_on_conflict(db: *mut sqlite3) -> c_int;
    185 stmt_readonly(statement: *mut sqlite3_stmt) -> c_int;
    193 bind_blob64(
        statement: *mut sqlite3_stmt,
        index: c_int,
        bytes: *const c_void,
        length: u64,
        destructor: isize
    ) -> c_int;
    194 bind_text64(
        statement: *mut sqlite3_stmt,
        index: c_int,
        bytes: *const c_char,
        length: u64,
        destructor: isize,
        encoding: c_uchar
    ) -> c_int;
    197 malloc64(length: u64) -> *mut c_void;
    201 result_blob64(context: *mut sqlite3_context, bytes: *const c_void, length: u64, destructor: isize);
    202 result_text64(
        context: *mut sqlite3_context,
        bytes: *const c_char,
        length: u64,
        destructor: isize,
        encoding: c_uchar
    );
    216 set_last_insert_rowid(db: *mut sqlite3, id: i64);
    217 prepare_v3(
        db: *mut sqlite3,
        sql: *const c_char,
        length: c_int,
        flags: c_uint,
        statement: *mut *mut sqlite3_stmt,
        rest: *mut *const c_char
    ) -> c_int;
    224 vtab_collation(info: *mut sqlite3_index_info, constraint: c_int) -> *const c_char;
    242 value_frombind(value: *mut sqlite3_value) -> c_int;
    257 vtab_rhs_value(info: *mut sqlite3_index_info, constraint: c_int, value: *mut *mut sqlite3_value) -> c_int;
    259 vtab_in(info: *mut sqlite3_index_info, constraint: c_int, handle: c_int) -> c_int;
    260 vtab_in_first(list: *mut sqlite3_value, value: *mut *mut sqlite3_value) -> c_int;
    261 vtab_in_next(list: *mut sqlite3_value, value: *mut *mut sqlite3_value) -> c_int;
}

/// Memory of the library whose routines these are, whether or not they were taken over.
pub unsafe fn malloc_of(routines: *mut *const c_void, length: u64) -> *mut c_void {
    type Routine = unsafe extern "C" fn(u64) -> *mut c_void;
    // SAFETY: as the routines above.
    unsafe { std::mem::transmute::<*const c_void, Routine>(*routines.add(197))(length) }
}

/// Tells SQLite of a property of the virtual table that is being made. The routine takes more arguments for
/// some properties, so it cannot stand above.
pub unsafe fn vtab_config(db: *mut sqlite3, property: c_int, value: c_int) -> c_int {
    type Routine = unsafe extern "C" fn(*mut sqlite3, c_int, ...) -> c_int;
    // SAFETY: as the routines above.
    unsafe {
        let routine = *ROUTINES.load(Ordering::Relaxed).add(177);
        std::mem::transmute::<*const c_void, Routine>(routine)(db, property, value)
    }
}
